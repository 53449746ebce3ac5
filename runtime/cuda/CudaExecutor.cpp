// Loading a plan on a GPU, capturing its programs, and moving tensors.
#include "runtime/cuda/CudaExecutor.h"

#include "runtime/cpu/MatmulCall.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Cupti.h"
#include "runtime/cuda/Driver.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"
#include "runtime/support/DType.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nvtx3/nvToolsExt.h>
#include <set>

namespace hydra::runtime {

bool builtWithCuda() { return true; }

namespace cuda {
namespace {

using namespace hydra::planfile;
using report::bytesText;
using support::fail;
using BlockList = flatbuffers::Vector<flatbuffers::Offset<Block>>;

/// Device memory that is given back.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(size_t bytes, const std::string &what) : bytes(bytes) {
    if (bytes > 0)
      driver().check(driver().cuMemAlloc(&address, bytes),
                     fmt::format("{}: cannot take {} of GPU memory", what, bytesText(bytes)));
  }
  ~DeviceMemory() {
    if (address)
      driver().cuMemFree(address);
  }
  DeviceMemory(DeviceMemory &&other) noexcept
      : address(std::exchange(other.address, 0)), bytes(std::exchange(other.bytes, 0)) {}
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    std::swap(address, other.address);
    std::swap(bytes, other.bytes);
    return *this;
  }
  CUdeviceptr get() const { return address; }
  size_t size() const { return bytes; }

private:
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

/// The GPU: its context, made current for the thread that creates it.
class Device {
public:
  Device(const PlanFile &file, int number) {
    const Driver &d = driver();
    int count = 0;
    d.check(d.cuDeviceGetCount(&count), "cannot count GPUs");
    if (number < 0 || number >= count)
      fail("--device cuda:{}: this machine has {} GPU{}", number, count, count == 1 ? "" : "s");
    d.check(d.cuDeviceGet(&device, number), "cannot open the GPU");
    std::array<char, 256> text{};
    d.check(d.cuDeviceGetName(text.data(), text.size(), device), "cannot ask the GPU for its name");
    name = text.data();
    const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    architecture = fmt::format("sm_{}{}", major, minor);
    const std::string wanted = file.plan().target()->sm_arch()->str();
    if (wanted.rfind(architecture, 0) != 0 && wanted.back() == 'a')
      fail("{}: compiled for {} ({}), but GPU {} ({}) is {}; compile the model again for it",
           file.origin(), file.plan().target()->name()->string_view(), wanted, number, name,
           architecture);
    d.check(d.cuDevicePrimaryCtxRetain(&context, device), "cannot start the GPU");
    d.check(d.cuCtxSetCurrent(context), "cannot use the GPU");
    uint32_t wantedStreams = 1;
    for (const Program *program : *file.plan().programs())
      wantedStreams = std::max(wantedStreams, program->streams());
    streams.resize(wantedStreams, nullptr);
    for (CUstream &created : streams)
      d.check(d.cuStreamCreate(&created, CU_STREAM_NON_BLOCKING), "cannot make a stream");
    stream = streams.front();
  }
  ~Device() {
    for (CUstream created : streams)
      if (created)
        driver().cuStreamDestroy(created);
    if (context)
      driver().cuDevicePrimaryCtxRelease(device);
  }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  int attribute(CUdevice_attribute which) const {
    int value = 0;
    driver().check(driver().cuDeviceGetAttribute(&value, which, device), "cannot ask the GPU");
    return value;
  }
  void wait(const std::string &what) const {
    driver().check(driver().cuStreamSynchronize(stream), what);
  }

  std::vector<CUstream> streams;
  CUstream stream = nullptr; ///< the first
  std::string name, architecture;

private:
  CUdevice device = 0;
  CUcontext context = nullptr;
};

class Event {
public:
  Event() {
    driver().check(driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "cannot make an event");
  }
  ~Event() {
    if (event)
      driver().cuEventDestroy(event);
  }
  Event(Event &&other) noexcept : event(std::exchange(other.event, nullptr)) {}
  void record(CUstream stream) const {
    driver().check(driver().cuEventRecord(event, stream), "cannot record an event");
  }
  void makeWait(CUstream stream) const {
    driver().check(driver().cuStreamWaitEvent(stream, event, 0), "cannot wait for an event");
  }
  double secondsSince(const Event &begin) const {
    float milliseconds = 0.0f;
    driver().check(driver().cuEventElapsedTime(&milliseconds, begin.event, event),
                   "cannot read a time");
    return 1e-3 * static_cast<double>(milliseconds);
  }

private:
  CUevent event = nullptr;
};

/// One step with everything resolved.
struct Node {
  const Step *step = nullptr;
  // Launch
  CUfunction function = nullptr;
  const Kernel *kernel = nullptr;
  uint32_t instances = 1; ///< lists of arguments
  std::vector<CUdeviceptr> args;
  // Call
  const CudaMatmul *matmul = nullptr;
  // Order
  uint32_t stream = 0;
  std::vector<uint32_t> waits; ///< numbers of events
  int32_t signals = -1;
  // Profile
  uint64_t calls = 0;
  double seconds = 0.0;
};

/// A range of NVIDIA's tools, where one of them listens.
class Range {
public:
  explicit Range(const char *name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;
};

class Executor final : public runtime::Executor {
public:
  Executor(const PlanFile &file, const CudaOptions &options)
      : file(file), plan(file.plan()), options(options), device(file, options.device) {
    if (options.profile && options.graph && !options.check)
      cupti = Cupti::load(whyNoCupti);
    checkMemory();
    for (size_t i = 0; i < segments.size(); ++i) {
      segments[i] =
          DeviceMemory(plan.segments()->Get(static_cast<uint32_t>(i))->size(), file.origin());
      if (segments[i].size() > 0)
        driver().check(
            driver().cuMemsetD8Async(segments[i].get(), 0, segments[i].size(), device.stream),
            "cannot clear GPU memory");
    }
    void *pinned = nullptr;
    driver().check(driver().cuMemHostAlloc(&pinned, kStagingBytes, 0),
                   "cannot take memory for transfers");
    staging = static_cast<std::byte *>(pinned);
    loadCode();
    for (const Program *program : *plan.programs()) {
      Prepared &prepared = programs.emplace_back();
      prepared.name = program->name()->str();
      try {
        addBlocks(prepared, *program->blocks(), {});
      } catch (const support::Error &error) {
        fail("{}: program {}: {}", file.origin(), prepared.name, error.what());
      }
    }
    checkTuning();
    device.wait("cannot prepare the plan");
  }

  std::string tune(PlanT &content) {
    fillRandomly();
    std::vector<StepT *> steps;
    report::Table table(1);
    table.add({"product (m, n, k)", "steps", "us", "tuned us", "algorithm"});
    std::map<const CudaMatmul *, Tuned> tuned;
    double before = 0.0, after = 0.0;
    for (size_t p = 0; p < programs.size(); ++p) {
      steps.clear();
      collectSteps(content.programs[p]->blocks, steps);
      if (steps.size() != programs[p].nodes.size())
        fail("{}: a plan with loops cannot be tuned", file.origin());
      for (size_t i = 0; i < steps.size(); ++i) {
        const Node &node = programs[p].nodes[i];
        if (!node.matmul)
          continue;
        auto [entry, isNew] = tuned.try_emplace(node.matmul);
        if (isNew)
          entry->second = tuneProduct(node);
        Tuned &choice = entry->second;
        ++choice.steps;
        if (p == 0) {
          before += choice.guessed;
          after += choice.best;
        }
        writeChoice(*steps[i], choice);
      }
    }
    for (const auto &[matmul, choice] : tuned)
      table.add({choice.name, fmt::format("{}", choice.steps),
                 fmt::format("{:.1f}", choice.guessed), fmt::format("{:.1f}", choice.best),
                 fmt::format("{}", choice.algorithm)});
    auto tunedFor = std::make_unique<KeyValueT>();
    tunedFor->key = kTunedKey;
    tunedFor->value = tuningText();
    std::erase_if(content.header->options, [](const auto &o) { return o->key == kTunedKey; });
    content.header->options.push_back(std::move(tunedFor));
    return fmt::format("{}  products of program {}: {:.2f} ms, tuned {:.2f} ms\n", table.text(),
                       programs.empty() ? "" : programs.front().name, 1e-3 * before, 1e-3 * after);
  }

  ~Executor() override {
    for (Prepared &program : programs)
      if (program.graph)
        driver().cuGraphExecDestroy(program.graph);
    for (CUmodule module : modules)
      if (module)
        driver().cuModuleUnload(module);
    if (staging)
      driver().cuMemFreeHost(staging);
  }

  double run(uint32_t number) override {
    Prepared &program = programs[number];
    const Range range(program.name.c_str());
    if ((profiling && !cupti) || options.check || !options.graph) {
      begin.record(device.stream);
      for (Node &node : program.nodes)
        runTimed(program, node);
    } else {
      if (!program.graph)
        capture(program);
      begin.record(device.stream);
      driver().check(driver().cuGraphLaunch(program.graph, device.stream),
                     fmt::format("cannot start program {}", program.name));
    }
    end.record(device.stream);
    device.wait(fmt::format("program {} stopped (--check names the step)", program.name));
    stagedBytes = 0;
    if (profiling && !cupti)
      takeTimes(program);
    return end.secondsSince(begin);
  }

  void write(uint32_t tensor, std::span<const std::byte> values) override {
    const Tensor &entry = *plan.tensors()->Get(tensor);
    checkSize(entry, values.size());
    const CUdeviceptr to = addressOf(tensor);
    if (!isDense(entry)) {
      // The bytes between rows belong to others: read, change, write.
      std::vector<std::byte> whole(extentBytes(entry));
      download(to, whole);
      moveElements(entry, whole.data(), const_cast<std::byte *>(values.data()), /*in=*/true);
      upload(to, whole);
      device.wait("cannot write a tensor");
      return;
    }
    if (stagedBytes + values.size() > kStagingBytes) {
      upload(to, values);
      device.wait("cannot write a tensor");
      return;
    }
    // Small ones go by pinned memory, without waiting; the next run ends after they arrived.
    std::byte *place = staging + stagedBytes;
    std::memcpy(place, values.data(), values.size());
    stagedBytes += (values.size() + 63) / 64 * 64;
    upload(to, {place, values.size()});
  }

  void read(uint32_t tensor, std::span<std::byte> values) override {
    const Tensor &entry = *plan.tensors()->Get(tensor);
    checkSize(entry, values.size());
    if (isDense(entry)) {
      download(addressOf(tensor), values);
      return;
    }
    std::vector<std::byte> whole(extentBytes(entry));
    download(addressOf(tensor), whole);
    moveElements(entry, whole.data(), values.data(), /*in=*/false);
  }

  void setProfiling(bool on) override {
    profiling = on;
    if (!on)
      return;
    for (Prepared &program : programs)
      for (Node &node : program.nodes) {
        node.calls = 0;
        node.seconds = 0.0;
      }
    runs.clear();
    if (cupti)
      cupti->start();
  }

  std::vector<StepRun> timeline() override {
    if (!cupti)
      fail("a time line of GPU kernels needs CUPTI, one graph a program and no --check{}{}",
           whyNoCupti.empty() ? "" : ": ", whyNoCupti);
    takeRecords();
    return runs;
  }

  std::optional<double> matmulRate() override {
    constexpr int64_t size = 8192;
    constexpr size_t bytes = size * size * 2;
    size_t free = 0, total = 0;
    driver().check(driver().cuMemGetInfo(&free, &total), "cannot ask the GPU for its memory");
    if (free < 3 * bytes + CublasLt::kWorkspaceBytes)
      return std::nullopt;
    if (!library)
      library = std::make_unique<CublasLt>();
    const DeviceMemory a(bytes, "product"), b(bytes, "product"), c(bytes, "product"),
        scratch(CublasLt::kWorkspaceBytes, "product");
    for (const DeviceMemory *memory : {&a, &b})
      fillRandomly(memory->get(), bytes);
    const MatmulOperand operand{support::DType::BF16, {}, size, 1};
    const MatmulOperand transposed{support::DType::BF16, {}, 1, size};
    MatmulSpec spec;
    spec.m = spec.n = spec.k = size;
    spec.a = operand;
    spec.b = transposed;
    spec.c = operand;
    const CudaMatmul product(*library, spec, false, 0);
    const std::array addresses = {a.get(), b.get(), c.get()};
    const double seconds =
        1e-6 * medianMicroseconds([&] { product.run(addresses, scratch.get(), device.stream); });
    return 2.0 * size * size * size / seconds;
  }

  std::vector<StepTime> stepTimes() override {
    std::vector<StepTime> times;
    if (cupti)
      takeRecords();
    for (size_t i = 0; i < programs.size(); ++i)
      for (const Node &node : programs[i].nodes)
        times.push_back({node.step, static_cast<uint32_t>(i), node.calls, node.seconds});
    return times;
  }

  uint64_t arenaBytes() const override { return segments[0].size() + segments[1].size(); }

  std::vector<std::pair<std::string, std::string>> describe() const override {
    int version = 0;
    driver().cuDriverGetVersion(&version);
    std::vector<std::pair<std::string, std::string>> rows = {
        {"device",
         fmt::format("cuda:{}, {} ({})", options.device, device.name, device.architecture)},
        {"driver", fmt::format("for CUDA {}.{}", version / 1000, version % 1000 / 10)},
        {"product workspace", workspace.size()
                                  ? fmt::format("{} beside the arena", bytesText(workspace.size()))
                                  : "none"},
        {"execution", options.check   ? "step by step, each checked"
                      : options.graph ? "one captured graph a program"
                                      : "step by step"}};
    if (options.profile)
      rows.emplace_back("profile", cupti ? "of replayed graphs, by CUPTI"
                                   : whyNoCupti.empty()
                                       ? "step by step, between events"
                                       : "step by step, between events: " + whyNoCupti);
    return rows;
  }

private:
  struct Prepared {
    std::string name;
    std::vector<Node> nodes;
    std::vector<Event> events; ///< of profiling: before each node, and after the last
    CUgraphExec graph = nullptr;
  };

  static constexpr size_t kStagingBytes = size_t{4} << 20;
  static constexpr const char *kTunedKey = "tuned";

  //---- Tuning ------------------------------------------------------------------------------------

  struct Tuned {
    std::string name;
    int64_t algorithm = 0;
    double guessed = 0.0, best = 0.0; ///< microseconds
    int steps = 0;
  };

  std::string tuningText() const {
    return fmt::format("{}, cuBLASLt {}", device.name, library ? library->version() : 0);
  }

  /// Numbers of algorithms mean something only on the device and with the library they were found
  /// on.
  void checkTuning() const {
    for (const KeyValue *option : *plan.header()->options())
      if (option->key()->string_view() == kTunedKey && option->value()->str() != tuningText())
        fail("{}: tuned for {}, but this is {}; tune the plan again, or use it as hydrac wrote it",
             file.origin(), option->value()->string_view(), tuningText());
  }

  void fillRandomly() {
    for (const DeviceMemory &segment : segments)
      fillRandomly(segment.get(), segment.size());
  }
  /// bf16 numbers around 1 in every byte: zeros would need less power and run faster.
  void fillRandomly(CUdeviceptr to, size_t size) {
    std::vector<uint16_t> numbers(size_t{8} << 20);
    uint64_t state = 1;
    for (uint16_t &x : numbers) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      x = support::bf16FromDouble(double(int64_t(state) >> 11) * 0x1p-52);
    }
    const auto bytes = std::as_bytes(std::span(numbers));
    for (size_t at = 0; at < size; at += bytes.size())
      upload(to + at, bytes.first(std::min(bytes.size(), size - at)));
    device.wait("cannot fill GPU memory");
  }

  /// Microseconds of one run.
  double timeProduct(const CudaMatmul &product, const Node &node) {
    return medianMicroseconds([&] { product.run(node.args, workspace.get(), device.stream); });
  }

  /// Microseconds of one run of several behind one another, by the median of several rounds.
  template <typename Run> double medianMicroseconds(const Run &run) {
    constexpr int runs = 10, rounds = 5;
    run();
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      begin.record(device.stream);
      for (int i = 0; i < runs; ++i)
        run();
      end.record(device.stream);
      device.wait("cannot time a product");
      times.push_back(1e6 * end.secondsSince(begin) / runs);
    }
    std::sort(times.begin(), times.end());
    return times[rounds / 2];
  }

  /// Whether two runs give the same bits.
  bool repeats(const CudaMatmul &product, const Node &node) {
    const Arg &result = *node.step->args()->Get(node.step->args()->size() - 1);
    const Tensor &entry = *plan.tensors()->Get(result.index());
    const CUdeviceptr address = node.args.back();
    std::array<std::vector<std::byte>, 2> results;
    for (std::vector<std::byte> &bytes : results) {
      bytes.resize(extentBytes(entry));
      driver().check(driver().cuMemsetD8Async(address, 0, bytes.size(), device.stream),
                     "cannot clear a result");
      product.run(node.args, workspace.get(), device.stream);
      download(address, bytes);
    }
    return results[0] == results[1];
  }

  Tuned tuneProduct(const Node &node) {
    constexpr int64_t candidates = 12;
    const CallSite site(plan, *node.step, 1);
    const MatmulSpec spec = describeMatmul(site);
    const bool reduced = site.attributes.flag("reduced_reduction", false);
    std::vector<std::pair<double, int64_t>> times;
    for (int64_t i = 0; i < candidates; ++i) {
      try {
        times.emplace_back(timeProduct(CudaMatmul(*library, spec, reduced, i), node), i);
      } catch (const support::Error &) {
        break; // there are no more
      }
    }
    if (times.empty())
      fail("{}: no algorithm runs", node.step->name()->string_view());
    Tuned choice{fmt::format("{} {} {}", spec.m, spec.n, spec.k), 0, times[0].first,
                 times[0].first};
    std::sort(times.begin(), times.end());
    for (const auto &[microseconds, algorithm] : times)
      if (algorithm == 0 || (microseconds < choice.guessed &&
                             repeats(CudaMatmul(*library, spec, reduced, algorithm), node))) {
        choice.algorithm = algorithm;
        choice.best = microseconds;
        break;
      }
    return choice;
  }

  static void collectSteps(const std::vector<std::unique_ptr<BlockT>> &blocks,
                           std::vector<StepT *> &steps) {
    for (const auto &block : blocks)
      if (StepT *step = block->node.AsStep())
        steps.push_back(step);
  }

  static void writeChoice(StepT &step, const Tuned &choice) {
    const auto alternative = [](int64_t algorithm, double microseconds) {
      auto entry = std::make_unique<AlternativeT>();
      entry->description = fmt::format("cuBLASLt algorithm {}", algorithm);
      auto attr = std::make_unique<AttrT>();
      attr->name = "algorithm";
      attr->kind = AttrKind::integer;
      attr->integer = algorithm;
      entry->attrs.push_back(std::move(attr));
      entry->microseconds = microseconds;
      return entry;
    };
    step.alternatives.clear();
    step.alternatives.push_back(alternative(0, choice.guessed));
    step.chosen = 0;
    if (choice.algorithm != 0) {
      step.alternatives.push_back(alternative(choice.algorithm, choice.best));
      step.chosen = 1;
    }
  }

  //---- Loading -----------------------------------------------------------------------------------

  void checkMemory() const {
    size_t free = 0, total = 0;
    driver().check(driver().cuMemGetInfo(&free, &total), "cannot ask the GPU for its memory");
    const uint64_t needed = plan.segments()->Get(0)->size() + plan.segments()->Get(1)->size() +
                            CublasLt::kWorkspaceBytes * device.streams.size();
    if (needed > free)
      fail("{}: needs {} of GPU memory ({} for parameters and state, {} for the step), but {} of "
           "{} are free; a smaller --batch or --seq, hydrac's --recompute=every=1 or "
           "--precision=bf16 would help",
           file.origin(), bytesText(needed), bytesText(plan.segments()->Get(0)->size()),
           bytesText(plan.segments()->Get(1)->size()), bytesText(free), bytesText(total));
  }

  /// The module of a kernel: machine code, or where that does not fit what the driver compiles.
  CUmodule moduleOf(const Kernel &kernel) {
    modules.resize(plan.blobs()->size(), nullptr);
    CUmodule &module = modules[kernel.blob()];
    if (module)
      return module;
    const auto load = [&](uint32_t blob) {
      // PTX ends with a zero byte.
      const auto *data = plan.blobs()->Get(blob)->data();
      std::vector<char> text(data->begin(), data->end());
      text.push_back('\0');
      return driver().cuModuleLoadData(&module, text.data());
    };
    CUresult status = load(kernel.blob());
    if (status != CUDA_SUCCESS && kernel.ptx() >= 0 &&
        static_cast<uint32_t>(kernel.ptx()) != kernel.blob())
      status = load(static_cast<uint32_t>(kernel.ptx()));
    driver().check(status,
                   fmt::format("{}: the code of kernel {} does not load on {} ({})", file.origin(),
                               kernel.name()->string_view(), device.name, device.architecture));
    return module;
  }

  void loadCode() {
    for (const Kernel *kernel : *plan.kernels()) {
      CUfunction function = nullptr;
      driver().check(
          driver().cuModuleGetFunction(&function, moduleOf(*kernel), kernel->symbol()->c_str()),
          fmt::format("{}: kernel {}", file.origin(), kernel->name()->string_view()));
      constexpr uint32_t withoutAsking = 48 * 1024;
      if (kernel->shared_bytes() > withoutAsking)
        driver().check(driver().cuFuncSetAttribute(function,
                                                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   static_cast<int>(kernel->shared_bytes())),
                       fmt::format("{}: kernel {}: {} bytes of shared memory", file.origin(),
                                   kernel->name()->string_view(), kernel->shared_bytes()));
      functions.push_back(function);
    }
  }

  CUdeviceptr addressOf(uint32_t tensor) const {
    const Tensor &entry = *plan.tensors()->Get(tensor);
    return segments[static_cast<size_t>(entry.segment())].get() + entry.offset();
  }

  /// Bytes by which the loops around a block move a tensor.
  using Shifts = std::map<uint32_t, int64_t>;

  void addBlocks(Prepared &program, const BlockList &blocks, const Shifts &shifts) {
    for (const Block *block : blocks) {
      if (const Step *step = block->node_as_Step()) {
        addStep(program, *step, shifts);
        Node &node = program.nodes.back();
        // Iterations of a loop follow each other: only outside are there several streams.
        if (shifts.empty()) {
          node.stream = block->stream();
          if (block->waits())
            node.waits.assign(block->waits()->begin(), block->waits()->end());
          node.signals = block->signals();
        }
      } else if (const Loop *loop = block->node_as_Loop()) {
        // A graph has no loops: iterations follow each other.
        for (uint64_t i = 0; i < loop->count(); ++i) {
          Shifts moved = shifts;
          for (const LoopStride *stride : *loop->strides())
            moved[stride->tensor()] += static_cast<int64_t>(i) * stride->bytes();
          addBlocks(program, *loop->blocks(), moved);
        }
      } else {
        fail("switches do not run on CUDA yet");
      }
    }
  }

  void addStep(Prepared &program, const Step &step, const Shifts &shifts) {
    Node node;
    node.step = &step;
    for (const Arg *arg : *step.args()) {
      if (arg->kind() == ArgKind::constant)
        fail("step {}: constant arguments do not run on CUDA", step.name()->string_view());
      const uint32_t tensor = arg->kind() == ArgKind::scalar
                                  ? plan.scalars()->Get(arg->index())->tensor()
                                  : arg->index();
      const auto shift = shifts.find(tensor);
      node.args.push_back(addressOf(tensor) +
                          (shift == shifts.end() ? 0 : static_cast<CUdeviceptr>(shift->second)));
    }
    if (const Launch *launch = step.action_as_Launch()) {
      node.function = functions[launch->kernel()];
      node.kernel = plan.kernels()->Get(launch->kernel());
      node.instances =
          static_cast<uint32_t>(node.args.size() / std::max(1u, node.kernel->arg_count()));
      if (node.kernel->instances() > 1) // the whole table is a parameter
        node.args.resize(size_t{node.kernel->instances()} * node.kernel->arg_count());
    } else {
      node.matmul = &matmulFor(step);
    }
    program.nodes.push_back(std::move(node));
  }

  /// Products of one shape are prepared once.
  const CudaMatmul &matmulFor(const Step &step) {
    const CallSite site(plan, step, 1);
    if (site.attributes.function() != "matmul")
      site.fail("this function does not run on CUDA");
    const MatmulSpec spec = describeMatmul(site);
    const bool reduced = site.attributes.flag("reduced_reduction", false);
    const int64_t algorithm = site.attributes.integer("algorithm", 0);
    if (!library) {
      workspace = DeviceMemory(CublasLt::kWorkspaceBytes * device.streams.size(), file.origin());
      library = std::make_unique<CublasLt>();
    }
    std::vector<int64_t> key = {spec.m,  spec.n,    spec.k,    spec.hasBias,  spec.accumulate,
                                reduced, algorithm, spec.gelu, spec.savesSums};
    key.insert(key.end(), spec.batch.begin(), spec.batch.end());
    for (const MatmulOperand *m : {&spec.a, &spec.b, &spec.c}) {
      key.insert(key.end(), {static_cast<int64_t>(m->dtype), m->rowStride, m->columnStride});
      key.insert(key.end(), m->batchStrides.begin(), m->batchStrides.end());
    }
    auto known = products.find(key);
    if (known == products.end())
      known = products.emplace(key, CudaMatmul(*library, spec, reduced, algorithm)).first;
    return known->second;
  }

  //---- Running -----------------------------------------------------------------------------------

  /// On the node's own stream when capturing; else all on one, in the order of the list.
  void runNode(const Node &node, CUstream stream) {
    if (node.matmul) {
      node.matmul->run(node.args, workspace.get() + node.stream * CublasLt::kWorkspaceBytes,
                       stream);
      return;
    }
    const bool table = node.kernel->instances() > 1;
    const size_t parameters = table ? 1 : node.args.size();
    std::array<void *, 64> pointers;
    if (parameters > pointers.size())
      fail("{}: {} arguments; expected at most {}", node.step->name()->string_view(), parameters,
           pointers.size());
    for (size_t i = 0; i < parameters; ++i)
      pointers[i] = const_cast<CUdeviceptr *>(&node.args[i]);
    const Dim3 &grid = *node.kernel->grid(), &block = *node.kernel->block();
    driver().check(driver().cuLaunchKernel(node.function, grid.x(),
                                           table ? node.instances : grid.y(), grid.z(), block.x(),
                                           block.y(), block.z(), node.kernel->shared_bytes(),
                                           stream, pointers.data(), nullptr),
                   placeOf(node));
  }

  std::string placeOf(const Node &node) const {
    const Location &at = *plan.locations()->Get(node.step->location());
    return fmt::format("step {} (layer {}, {}:{}:{})", node.step->name()->string_view(),
                       node.step->layer(), plan.files()->Get(at.file())->string_view(), at.line(),
                       at.column());
  }

  void runTimed(Prepared &program, Node &node) {
    const Range range(node.step->name()->c_str());
    const size_t number = static_cast<size_t>(&node - program.nodes.data());
    if (profiling) {
      while (program.events.size() <= program.nodes.size())
        program.events.emplace_back();
      program.events[number].record(device.stream);
    }
    runNode(node, device.stream);
    if (profiling && number + 1 == program.nodes.size())
      program.events.back().record(device.stream);
    if (options.check)
      device.wait(placeOf(node));
  }

  void takeTimes(Prepared &program) {
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      program.nodes[i].seconds += program.events[i + 1].secondsSince(program.events[i]);
      ++program.nodes[i].calls;
    }
  }

  /// What CUPTI has recorded since it was asked last becomes times of steps.
  void takeRecords() {
    for (KernelRun &record : cupti->stop()) {
      if (record.node == kUnknownNode)
        continue;
      if (runs.empty())
        origin = record.begin; // so that doubles hold what follows
      const uint32_t number = static_cast<uint32_t>(record.node >> 33);
      Node &node = programs[number].nodes[static_cast<uint32_t>(record.node >> 1)];
      const double begin = 1e-9 * static_cast<double>(record.begin - origin),
                   end = begin + 1e-9 * static_cast<double>(record.end - record.begin);
      node.seconds += end - begin;
      node.calls += record.node & 1;
      runs.push_back({.step = node.step,
                      .program = number,
                      .run = record.correlation,
                      .begin = begin,
                      .end = end,
                      .stream = record.stream,
                      .kernel = std::move(record.name),
                      .grid = record.grid,
                      .block = record.block});
    }
  }

  /// Tells CUPTI which nodes of the graph a step has just become.
  void noteNodes(const Prepared &program, const Node &node, CUstream stream,
                 std::set<CUgraphNode> &known) {
    const Driver &d = driver();
    CUstreamCaptureStatus status{};
    const CUgraphNode *last = nullptr;
    // Asked for because the library's kernels start early by edges that are more than an order.
    const CUgraphEdgeData *edges = nullptr;
    std::vector<CUgraphEdgeData> edgesBefore;
    size_t count = 0;
    d.check(d.cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, &edges, &count),
            "cannot look at a captured graph");
    const uint64_t tag = static_cast<uint64_t>(&program - programs.data()) << 33 |
                         static_cast<uint64_t>(&node - program.nodes.data()) << 1;
    std::vector<CUgraphNode> fresh(last, last + count);
    bool isLast = true;
    while (!fresh.empty()) {
      const CUgraphNode one = fresh.back();
      fresh.pop_back();
      if (!known.insert(one).second)
        continue;
      cupti->noteNode(one, tag | isLast);
      isLast = false;
      size_t before = 0;
      d.check(d.cuGraphNodeGetDependencies(one, nullptr, nullptr, &before),
              "cannot look at a captured graph");
      std::vector<CUgraphNode> dependencies(before);
      edgesBefore.resize(before);
      if (before > 0)
        d.check(d.cuGraphNodeGetDependencies(one, dependencies.data(), edgesBefore.data(), &before),
                "cannot look at a captured graph");
      fresh.insert(fresh.end(), dependencies.begin(), dependencies.end());
    }
  }

  /// Every block on its stream; all streams begin behind the first and end before it does.
  void recordStreams(const Prepared &program) {
    std::vector<Event> ends(device.streams.size());
    std::vector<bool> used(device.streams.size(), false);
    std::map<uint32_t, Event> events;
    ends[0].record(device.stream);
    std::set<CUgraphNode> known;
    for (const Node &node : program.nodes) {
      CUstream stream = device.streams[node.stream];
      if (node.stream != 0 && !used[node.stream]) {
        ends[0].makeWait(stream);
        used[node.stream] = true;
      }
      for (const uint32_t event : node.waits)
        events.at(event).makeWait(stream);
      runNode(node, stream);
      if (cupti)
        noteNodes(program, node, stream, known);
      if (node.signals >= 0)
        events[static_cast<uint32_t>(node.signals)].record(stream);
    }
    for (size_t i = 1; i < device.streams.size(); ++i) {
      if (!used[i])
        continue;
      ends[i].record(device.streams[i]);
      ends[i].makeWait(device.stream);
    }
  }

  void capture(Prepared &program) {
    const Driver &d = driver();
    CUgraph graph = nullptr;
    d.check(d.cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "cannot begin to capture");
    recordStreams(program);
    d.check(d.cuStreamEndCapture(device.stream, &graph),
            fmt::format("cannot capture program {}", program.name));
    const CUresult status = d.cuGraphInstantiate(&program.graph, graph, 0);
    d.cuGraphDestroy(graph);
    d.check(status, fmt::format("cannot make a graph of program {}", program.name));
  }

  //---- Tensors -----------------------------------------------------------------------------------

  void upload(CUdeviceptr to, std::span<const std::byte> bytes) {
    driver().check(driver().cuMemcpyHtoDAsync(to, bytes.data(), bytes.size(), device.stream),
                   "cannot write to the GPU");
  }
  void download(CUdeviceptr from, std::span<std::byte> bytes) {
    driver().check(driver().cuMemcpyDtoHAsync(bytes.data(), from, bytes.size(), device.stream),
                   "cannot read from the GPU");
    device.wait("cannot read from the GPU");
  }

  static size_t denseBytes(const Tensor &entry) {
    size_t bytes = support::byteSize(dtypeOf(entry));
    for (const int64_t extent : *entry.shape())
      bytes *= static_cast<size_t>(extent);
    return bytes;
  }

  static void checkSize(const Tensor &entry, size_t size) {
    const size_t expected = denseBytes(entry);
    if (size != expected)
      fail("{}: {} bytes for a tensor of {}", entry.name()->string_view(), size, expected);
  }

  static bool isDense(const Tensor &entry) {
    int64_t elements = 1;
    for (flatbuffers::uoffset_t d = entry.shape()->size(); d-- > 0;
         elements *= entry.shape()->Get(d))
      if (entry.shape()->Get(d) != 1 && entry.strides()->Get(d) != elements)
        return false;
    return true;
  }

  static size_t extentBytes(const Tensor &entry) {
    int64_t last = 0;
    for (flatbuffers::uoffset_t d = 0; d < entry.shape()->size(); ++d)
      last += (entry.shape()->Get(d) - 1) * entry.strides()->Get(d);
    return static_cast<size_t>(last + 1) * support::byteSize(dtypeOf(entry));
  }

  /// Between a tensor's own layout and dense rows.
  static void moveElements(const Tensor &entry, std::byte *strided, std::byte *dense, bool in) {
    const size_t size = support::byteSize(dtypeOf(entry)), count = denseBytes(entry) / size;
    for (size_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      size_t rest = i;
      for (flatbuffers::uoffset_t d = entry.shape()->size(); d-- > 0;) {
        const auto extent = static_cast<size_t>(entry.shape()->Get(d));
        offset += static_cast<int64_t>(rest % extent) * entry.strides()->Get(d);
        rest /= extent;
      }
      std::byte *place = strided + static_cast<size_t>(offset) * size;
      std::memcpy(in ? place : dense + i * size, in ? dense + i * size : place, size);
    }
  }

  const PlanFile &file;
  const Plan &plan;
  CudaOptions options;
  std::unique_ptr<Cupti> cupti; // under profiling, where it is found
  std::string whyNoCupti;
  Device device;
  std::array<DeviceMemory, 2> segments; // by SegmentKind
  DeviceMemory workspace;
  std::byte *staging = nullptr; // pinned
  size_t stagedBytes = 0;       // since the last run
  std::vector<CUmodule> modules;
  std::vector<CUfunction> functions;
  std::unique_ptr<CublasLt> library;
  std::map<std::vector<int64_t>, CudaMatmul> products;
  std::vector<Prepared> programs;
  Event begin, end;
  bool profiling = false;
  std::vector<StepRun> runs; // from CUPTI's records
  uint64_t origin = 0;       // of their times, ns
};

} // namespace
} // namespace cuda

std::unique_ptr<Executor> makeCudaExecutor(const PlanFile &file, const CudaOptions &options) {
  if (file.plan().target()->kind() != planfile::TargetKind::cuda)
    support::fail("{}: compiled for {}; --device cuda runs plans that hydrac made with "
                  "--target=h200 or another GPU",
                  file.origin(), file.plan().target()->name()->string_view());
  return std::make_unique<cuda::Executor>(file, options);
}

std::string tunePlan(const PlanFile &file, const CudaOptions &options, planfile::PlanT &content) {
  return cuda::Executor(file, options).tune(content);
}

} // namespace hydra::runtime
