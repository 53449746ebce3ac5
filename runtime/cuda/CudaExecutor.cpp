// Loading a plan on a GPU, and running its programs: as captured graphs, or step by step.
#include "runtime/cuda/CudaExecutor.h"

#include "runtime/cuda/Capture.h"
#include "runtime/cuda/DeviceLibrary.h"
#include "runtime/cuda/GraphProfile.h"
#include "runtime/cuda/KernelCode.h"
#include "runtime/cuda/MatmulRate.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/NodeBuilder.h"
#include "runtime/cuda/NodeRunner.h"
#include "runtime/cuda/Nvml.h"
#include "runtime/cuda/StartedRuns.h"
#include "runtime/cuda/Transfers.h"
#include "runtime/cuda/TunedPlan.h"
#include "runtime/cuda/Tuner.h"
#include "runtime/plan/Actions.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Poison.h"
#include "runtime/plan/TensorBytes.h"
#include "runtime/ranks/Channel.h"
#include "runtime/report/Units.h"
#include "runtime/support/Integers.h"
#include "runtime/support/ParallelFor.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nvtx3/nvToolsExt.h>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

namespace hydra::runtime {

bool builtWithCuda() { return true; }

namespace cuda {
namespace {

using namespace hydra::planfile;
using report::bytesText;
using support::fail;
using support::shown;

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
      : file(file), plan(file.plan()), options(options),
        device(file, options.device, options.ranks != nullptr) {
    if (options.profile && options.graph && !options.check)
      records.load();
    checkRanks();
    checkMemory();
    for (size_t i = 0; i < segments.size(); ++i) {
      const uint64_t bytes = plan.segments()->Get(static_cast<uint32_t>(i))->size();
      segments[i] =
          options.ranks ? Nccl::allocate(bytes, file.origin()) : DeviceMemory(bytes, file.origin());
      if (segments[i].size() > 0)
        driver().check(
            driver().cuMemsetD8Async(segments[i].get(), 0, segments[i].size(), device.stream),
            "cannot clear GPU memory");
    }
    host.emplace(plan.segments()->Get(static_cast<uint32_t>(SegmentKind::host))->size(),
                 file.origin(), hostThreads());
    transfers.emplace(device);
    if (options.ranks)
      connectRanks();
    code.emplace(file, device);
    NodeBuilder nodes(plan, code->functions(), library,
                      [this](uint32_t tensor) { return addressOf(tensor); });
    for (const Program *program : *plan.programs()) {
      try {
        programs.push_back(nodes.build(*program));
      } catch (const support::Error &error) {
        fail("{}: program {}: {}", file.origin(), shown(program->name()->string_view()),
             error.what());
      }
    }
    if (options.oneStream)
      leaveStreams();
    runner.allocate(programs, device.streams.size(), file.origin());
    checkTunedFor(file, machine());
    meetRanks();
    device.wait("cannot prepare the plan");
  }

  std::string tune(PlanT &content) {
    for (const DeviceMemory &segment : segments)
      fillRandomly(device, segment.get(), segment.size());
    Tuner tuner(
        file, device, library,
        [this](const Node &node, CUstream stream) { runner.run(node, stream); },
        options.allowNondeterministic);
    for (size_t p = 0; p < programs.size(); ++p)
      if (!isSafeForm(plan, static_cast<uint32_t>(p))) // which stays as hydrac wrote it
        tuner.tune(programs[p], stepsInOrder(*content.programs[p]));
    noteTunedFor(content, machine());
    return tuner.report();
  }

  ~Executor() override {
    driver().cuStreamSynchronize(device.stream); // a run may be under way
    for (CudaProgram &program : programs)
      if (program.graph)
        driver().cuGraphExecDestroy(program.graph);
  }

  double run(uint32_t number) override {
    checkInFlight(0);
    start(number, {});
    return finish();
  }

  /// Step by step as well. Not where the host has a part in programs: by memory that both reach, or
  /// by what it does between steps.
  bool startsAhead(uint32_t) const override {
    return host->size() == 0 && !profiling && !options.check && !options.poison;
  }

  void start(uint32_t number, std::span<const uint32_t> outputs) override {
    CudaProgram &program = programs[number];
    const Range range(program.name.c_str());
    const Channel::Waiting waiting = waitingForRun();
    if (options.poison)
      fillUnwritten(number);
    kept.clear();
    for (const uint32_t tensor : outputs)
      if (const Tensor &entry = *plan.tensors()->Get(tensor); entry.segment() != SegmentKind::host)
        kept.push_back({tensor, addressOf(tensor), extentBytes(entry)});
    if (launchesSteps() || warmsUp(program)) {
      started.begin(number, kept);
      program.ran.assign(program.nodes.size(), false);
      runRange(program, 0, program.nodes.size());
    } else {
      if (!program.graph)
        capture(program);
      started.begin(number, kept);
      const double launchBegin = clock();
      driver().check(driver().cuGraphLaunch(program.graph, device.stream),
                     fmt::format("cannot start program {}", program.name));
      if (profiling)
        records.noteLaunch({"cuGraphLaunch", number, 0, launchBegin, clock()});
    }
    started.end();
    transfers->runStarted();
  }

  double finish() override {
    CudaProgram &program = programs[started.first()];
    const Range range(program.name.c_str());
    const double seconds = waitFor(program);
    if (profiling && !records.isLoaded())
      takeTimes(program);
    return seconds;
  }

  void write(uint32_t tensor, std::span<const std::byte> values) override {
    checkInFlight(1);
    const Channel::Waiting waiting = waitingForRun(); // where there is too much to write
    started.forget(tensor);
    if (std::byte *place = onHost(tensor, 0, values.size()))
      std::memcpy(place, values.data(), values.size());
    else
      transfers->write(*plan.tensors()->Get(tensor), addressOf(tensor), values);
  }

  void writeRange(uint32_t tensor, uint64_t begin, std::span<const std::byte> values) override {
    checkInFlight(0);
    started.forget(tensor);
    if (std::byte *place = onHost(tensor, begin, values.size()))
      inParts(values.size(),
              [&](size_t at, size_t size) { std::memcpy(place + at, values.data() + at, size); });
    else
      transfers->writeRange(*plan.tensors()->Get(tensor), addressOf(tensor), begin, values);
  }

  void readRange(uint32_t tensor, uint64_t begin, std::span<std::byte> values) override {
    checkInFlight(0);
    if (const std::byte *place = onHost(tensor, begin, values.size()))
      inParts(values.size(),
              [&](size_t at, size_t size) { std::memcpy(values.data() + at, place + at, size); });
    else
      transfers->readRange(*plan.tensors()->Get(tensor), addressOf(tensor), begin, values);
  }

  void clearRange(uint32_t tensor, uint64_t begin, uint64_t size) override {
    checkInFlight(0);
    started.forget(tensor);
    if (std::byte *place = onHost(tensor, begin, size))
      inParts(size, [&](size_t at, size_t bytes) { std::memset(place + at, 0, bytes); });
    else
      transfers->clearRange(*plan.tensors()->Get(tensor), addressOf(tensor), begin, size);
  }

  std::span<std::byte> staging(size_t bytes) override { return transfers->staged(bytes); }

  void parallelFor(int64_t tasks, const std::function<void(int64_t task)> &work) override {
    support::parallelFor(hostThreads(), tasks, work);
  }

  void read(uint32_t tensor, std::span<std::byte> values) override {
    const Tensor &entry = *plan.tensors()->Get(tensor);
    if (const std::span<std::byte> copy = started.copyOf(tensor); !copy.empty()) {
      checkSize(entry, values.size());
      moveElements(entry, copy.data(), values.data(), /*in=*/false);
      return;
    }
    checkInFlight(0);
    if (const std::byte *place = onHost(tensor, 0, values.size()))
      std::memcpy(values.data(), place, values.size());
    else
      transfers->read(entry, addressOf(tensor), values);
  }

  void setProfiling(bool on) override {
    profiling = on;
    if (!on)
      return;
    for (CudaProgram &program : programs)
      for (Node &node : program.nodes) {
        node.calls = 0;
        node.seconds = node.hostSeconds = 0.0;
      }
    if (records.isLoaded())
      records.start();
  }

  std::vector<StepRun> timeline() override {
    if (!records.isLoaded())
      fail("a time line of GPU kernels needs CUPTI, one graph a program and no --check{}{}",
           records.whyNotLoaded().empty() ? "" : ": ", records.whyNotLoaded());
    records.takeRecords();
    return records.stepRuns();
  }

  std::vector<HostRun> launches() override { return records.launches(); }

  double clock() override {
    return records.isLoaded() ? records.now() : hydra::runtime::Executor::clock();
  }

  bool launchesSteps() const override {
    return (profiling && !records.isLoaded()) || options.check || !options.graph;
  }

  uint32_t multiprocessors() const override {
    return static_cast<uint32_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  }

  std::optional<double> matmulRate() override {
    return measureMatmulRate(device, library.matmuls());
  }

  std::unique_ptr<DeviceWatch> watch() override {
    constexpr std::chrono::milliseconds interval{50}; // what is counted moves no faster
    return watchGpu(Nvml::find(), device.busId(), interval);
  }

  std::vector<StepTime> stepTimes() override {
    std::vector<StepTime> times;
    if (records.isLoaded())
      records.takeRecords();
    for (size_t i = 0; i < programs.size(); ++i)
      for (const Node &node : programs[i].nodes)
        if (node.step)
          times.push_back(
              {node.step, static_cast<uint32_t>(i), node.calls, node.seconds, node.hostSeconds});
    return times;
  }

  uint64_t arenaBytes() const override { return segments[0].size() + segments[1].size(); }

  std::string deviceName() const override {
    return fmt::format("{} ({})", device.name, device.architecture);
  }
  std::string driverVersion() const override {
    int version = 0;
    driver().cuDriverGetVersion(&version);
    return fmt::format("for CUDA {}.{}", version / 1000, version % 1000 / 10);
  }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    size_t workspaceBytes = 0;
    for (const DeviceMemory &workspace : runner.workspaces())
      workspaceBytes += workspace.size();
    std::vector<std::pair<std::string, std::string>> rows = {
        {"device", fmt::format("cuda:{}, {}", options.device, deviceName())},
        {"driver", driverVersion()},
        {"workspace of libraries",
         workspaceBytes > 0 ? fmt::format("{} beside the arena", bytesText(workspaceBytes))
                            : "none"},
        {"execution", options.check    ? "step by step, each checked"
                      : !options.graph ? "step by step"
                      : options.graphAfter > 0
                          ? fmt::format("one captured graph a program, behind {} runs step by step",
                                        options.graphAfter)
                          : "one captured graph a program"}};
    if (nccl)
      rows.emplace_back(
          "ranks",
          fmt::format("rank {} of {} (mesh {}), NCCL {}{}, {} beside the arena",
                      options.ranks->rank(), options.ranks->size(), meshText(plan), nccl->version(),
                      nccl->usesEngines() ? " with copy engines" : "", bytesText(ncclBytes)));
    if (options.profile)
      rows.emplace_back("profile", records.isLoaded() ? "of replayed graphs, by CUPTI"
                                   : records.whyNotLoaded().empty()
                                       ? "step by step, between events"
                                       : "step by step, between events: " + records.whyNotLoaded());
    if (options.poison)
      rows.emplace_back("poison", "what a program must write first is NaN before it runs");
    return rows;
  }

private:
  /// What is read or written now would be of another run.
  void checkInFlight(size_t most) const {
    if (started.inFlight() > most)
      throw std::logic_error("a tensor is read or written beside a run of a program");
  }

  unsigned hostThreads() const {
    return options.threads > 0 ? options.threads : std::thread::hardware_concurrency();
  }

  /// Calls work(begin, size) for parts of so many bytes, on the threads of the host.
  void inParts(size_t size, const std::function<void(size_t begin, size_t size)> &work) {
    constexpr size_t part = size_t{1} << 20;
    parallelFor(static_cast<int64_t>(support::ceilDiv(size, part)), [&](int64_t task) {
      const size_t begin = static_cast<size_t>(task) * part;
      work(begin, std::min(part, size - begin));
    });
  }

  /// Whether a program is not to be captured yet. What is profiled are graphs.
  bool warmsUp(CudaProgram &program) const {
    if (program.graph || profiling || program.runs >= options.graphAfter)
      return false;
    ++program.runs;
    return true;
  }

  /// What tuning is measured on: the device and the libraries.
  std::string machine() const { return fmt::format("{}, {}", device.name, library.versions()); }

  //---- Loading -----------------------------------------------------------------------------------

  void checkMemory() const {
    const auto [free, total] = device.memory();
    const uint64_t needed = plan.segments()->Get(0)->size() + plan.segments()->Get(1)->size() +
                            CublasLt::kWorkspaceBytes * device.streams.size();
    if (needed > free)
      fail("{}: needs {} of GPU memory ({} for parameters and state, {} for the step), but {} of "
           "{} are free; a smaller --batch or --seq, hydrac's --recompute=every=1 or "
           "--precision=bf16 would help",
           file.origin(), bytesText(needed), bytesText(plan.segments()->Get(0)->size()),
           bytesText(plan.segments()->Get(1)->size()), bytesText(free), bytesText(total));
  }

  /// The host's memory has the same addresses on both sides.
  CUdeviceptr addressOf(uint32_t tensor) const {
    const Tensor &entry = *plan.tensors()->Get(tensor);
    if (entry.segment() == SegmentKind::host)
      return reinterpret_cast<CUdeviceptr>(host->get() + entry.offset());
    return segments[static_cast<size_t>(entry.segment())].get() + entry.offset();
  }

  /// Where bytes of a tensor are, if it is in the host's memory: no program runs while others ask
  /// for them. Throws Error when it has not so many.
  std::byte *onHost(uint32_t tensor, uint64_t begin, size_t size) const {
    const Tensor &entry = *plan.tensors()->Get(tensor);
    if (entry.segment() != SegmentKind::host)
      return nullptr;
    checkRange(entry, begin, size);
    return host->get() + entry.offset() + begin;
  }

  /// The order of lists is one that streams and events allow.
  void leaveStreams() {
    for (CudaProgram &program : programs)
      for (Node &node : program.nodes) {
        node.stream = 0;
        node.waits.clear();
        node.signals = -1;
      }
  }

  void checkRanks() const {
    const uint64_t expected = ranksOf(plan), ranks = options.ranks ? options.ranks->size() : 1;
    if (ranks != expected)
      fail("{}: is for {} ranks, not for {}", file.origin(), expected, ranks);
  }

  void connectRanks() {
    const size_t before = device.memory().free;
    nccl = std::make_unique<Nccl>(plan, *options.ranks);
    for (const DeviceMemory &segment : segments)
      nccl->share(segment);
    library.useRanks(*nccl);
    ncclBytes = before - std::min(before, device.memory().free);
  }

  /// Every collective once, on memory that holds nothing yet: NCCL connects what a call needs when
  /// it is first made, which is not for a graph to do.
  void meetRanks() {
    if (!nccl)
      return;
    for (const CudaProgram &program : programs)
      for (const Node &node : program.nodes)
        if (meetsRanks(node))
          runner.run(node, device.stream);
    for (const auto &[tensor, value] : coordinateTensors(plan, options.ranks->rank()))
      write(tensor, std::as_bytes(std::span(&value, 1)));
    {
      const Channel::Waiting waiting(options.ranks, {.what = "the first exchange"});
      device.wait("cannot exchange with the other ranks");
    }
    nccl->check();
  }

  static bool meetsRanks(const Node &node) {
    if (!node.step)
      return false;
    const Action action = actionOf(*node.step).type;
    return action == Action::AllGather || action == Action::AllToAll;
  }

  /// What is done beside a run may have to wait for its end.
  Channel::Waiting waitingForRun() const {
    if (started.inFlight() == 0)
      return {nullptr, {}};
    return {options.ranks, {.what = programs[started.first()].name.c_str()}};
  }

  //---- Running -----------------------------------------------------------------------------------

  /// On the stream where the program begins. The libraries' workspaces as well.
  void fillUnwritten(uint32_t number) {
    const auto fill = [&](CUdeviceptr at, size_t bytes) {
      driver().check(driver().cuMemsetD8Async(at, kPoison, bytes, device.stream),
                     "cannot fill GPU memory");
    };
    const CUdeviceptr transient = segments[static_cast<size_t>(SegmentKind::transient)].get();
    for (const auto &[begin, end] : unwrittenBytes(plan, *plan.programs()->Get(number)))
      fill(transient + begin, end - begin);
    for (const DeviceMemory &workspace : runner.workspaces())
      if (workspace.size() > 0)
        fill(workspace.get(), workspace.size());
  }

  /// One after the other; of a switch the case that the device's number says.
  void runRange(CudaProgram &program, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i = program.nodes[i].end) {
      Node &node = program.nodes[i];
      if (!node.choice) {
        runTimed(program, node);
        continue;
      }
      int32_t scalar = 0;
      device.download(node.args.front(), std::as_writable_bytes(std::span(&scalar, 1)));
      const int32_t divisor = node.choice->divisor();
      const auto selected = static_cast<size_t>(support::ceilDiv(int64_t{scalar}, divisor));
      if (scalar >= 0 && selected < node.cases.size())
        runRange(program, node.cases[selected].first, node.cases[selected].second);
    }
  }

  void runTimed(CudaProgram &program, Node &node) {
    const Range range(node.step->name()->c_str());
    const size_t number = static_cast<size_t>(&node - program.nodes.data());
    if (profiling) {
      while (program.events.size() < 2 * program.nodes.size())
        program.events.emplace_back();
      program.events[2 * number].record(device.stream);
    }
    const double launchBegin = profiling ? clock() : 0;
    runner.run(node, device.stream);
    if (profiling) {
      node.hostSeconds += clock() - launchBegin;
      program.events[2 * number + 1].record(device.stream);
      program.ran[number] = true;
    }
    if (options.check)
      device.wait(runner.placeOf(node));
  }

  void takeTimes(CudaProgram &program) {
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      if (!program.ran[i])
        continue;
      program.nodes[i].seconds += program.events[2 * i + 1].secondsSince(program.events[2 * i]);
      ++program.nodes[i].calls;
    }
  }

  /// For the run of the program that began first; returns the seconds it took.
  double waitFor(const CudaProgram &program) {
    double seconds = 0;
    {
      const Channel::Waiting waiting(options.ranks, {.what = program.name.c_str()});
      seconds =
          started.finish(fmt::format("program {} stopped (--check names the step)", program.name));
    }
    if (nccl)
      nccl->check();
    return seconds;
  }

  void capture(CudaProgram &program) {
    std::set<CUgraphNode> known;
    Capture::NoteNode note;
    if (records.isLoaded()) {
      records.beginGraph();
      note = [&](const Node &node, CUstream stream) { records.note(program, node, stream, known); };
    }
    const Capture::RunNode run = [this](const Node &node, CUstream stream, bool early) {
      runner.run(node, stream, early);
    };
    program.graph = Capture(device, program, run, note).record();
  }

  const PlanFile &file;
  const Plan &plan;
  CudaOptions options;
  GraphProfile records{plan, programs}; // under profiling, where CUPTI is found
  Device device;
  std::array<DeviceMemory, 2> segments; // by SegmentKind, those of the device
  std::optional<HostMemory> host;
  NodeRunner runner{plan};
  std::optional<Transfers> transfers;
  std::optional<KernelCode> code;
  std::unique_ptr<Nccl> nccl; // of a plan with a mesh
  size_t ncclBytes = 0;       // of GPU memory that it took to connect
  DeviceLibrary library;
  std::vector<CudaProgram> programs;
  StartedRuns started{device};
  std::vector<StartedRuns::Output> kept; // of the run that is started
  bool profiling = false;
};

} // namespace
} // namespace cuda

std::unique_ptr<Executor> makeCudaExecutor(const PlanFile &file, const CudaOptions &options) {
  if (file.plan().target()->kind() != planfile::TargetKind::cuda)
    support::fail("{}: compiled for {}; --device cuda runs plans that hydrac made with "
                  "--target=h200 or another GPU",
                  file.origin(), support::shown(file.plan().target()->name()->string_view()));
  return std::make_unique<cuda::Executor>(file, options);
}

std::string tunePlan(const PlanFile &file, const CudaOptions &options, planfile::PlanT &content) {
  return cuda::Executor(file, options).tune(content);
}

} // namespace hydra::runtime
