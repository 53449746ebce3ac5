// Loading a plan: checks first, then memory, code and programs.
#include "runtime/cpu/CpuExecutor.h"

#include "runtime/cpu/Affinity.h"
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/Copy.h"
#include "runtime/cpu/CpuFeatures.h"
#include "runtime/cpu/ElfFunctions.h"
#include "runtime/plan/ByteRange.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Poison.h"
#include "runtime/plan/TensorBytes.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

using namespace hydra::report;
using namespace hydra::runtime;
using hydra::support::ceilDiv;
using hydra::support::fail;
using hydra::support::roundUp;
using hydra::support::shown;
namespace planfile = hydra::planfile;

namespace {

void checkTarget(const PlanFile &file) {
  const planfile::Target &target = *file.plan().target();
  if (target.kind() != planfile::TargetKind::cpu)
    fail("{}: compiled for {}; --device cpu runs plans that hydrac made with --target=cpu",
         file.origin(), shown(target.name()->string_view()));
  const CpuInfo cpu = readCpuInfo();
  std::string missing;
  for (const flatbuffers::String *feature : *target.cpu_features())
    if (!cpu.features.contains(feature->str()))
      missing += (missing.empty() ? "" : ", ") + feature->str();
  if (!missing.empty()) {
    fail(
        "{}: compiled for {}, but this CPU ({}) lacks {}; compile the model again for this machine",
        file.origin(), shown(target.name()->string_view()), cpu.model, shown(missing));
  }
}

void checkRanks(const PlanFile &file, const CpuOptions &options) {
  const uint64_t expected = ranksOf(file.plan());
  const uint64_t ranks = options.ranks ? options.ranks->size() : 1;
  if (ranks != expected && !options.dryRun)
    fail("{}: is for {} ranks, not for {}", file.origin(), expected, ranks);
}

void checkMemory(const PlanFile &file, uint64_t available) {
  const auto &segments = *file.plan().segments();
  const uint64_t persistent = segments.Get(0)->size() + segments.Get(2)->size(),
                 transient = segments.Get(1)->size();
  if (persistent <= available && transient <= available - persistent)
    return;
  const char *help = persistent > available
                         ? "a smaller model would help"
                         : "a smaller --batch or --seq, hydrac's --recompute=every=1 or "
                           "--precision=bf16 would help";
  fail("{}: needs {} of memory ({} for parameters and state, {} for the step), but {} are "
       "available; {}",
       file.origin(), bytesText(persistent + transient), bytesText(persistent),
       bytesText(transient), bytesText(available), help);
}

} // namespace

CpuExecutor::CpuExecutor(const PlanFile &file, const CpuOptions &options)
    : file(file), poison(options.poison), dryRun(options.dryRun) {
  checkTarget(file);
  checkRanks(file, options);
  checkMemory(file, options.memoryAvailable ? options.memoryAvailable : availableMemory());
  pool = std::make_unique<ThreadPool>(options.threads ? options.threads : usableProcessors());
  for (size_t i = 0; i < segments.size(); ++i)
    segments[i] = Arena(file.plan().segments()->Get(static_cast<uint32_t>(i))->size());
  loadPrograms(options.ranks);
  if (options.ranks)
    for (const auto &[tensor, value] : coordinateTensors(file.plan(), options.ranks->rank()))
      write(tensor, std::as_bytes(std::span(&value, 1)));
}

CpuExecutor::~CpuExecutor() = default;

std::vector<KernelFunction> CpuExecutor::loadCode() {
  const planfile::Plan &plan = file.plan();
  std::vector<std::set<std::string, std::less<>>> exported; // in a dry run, by each blob
  for (const planfile::Blob *blob : *plan.blobs()) {
    const auto object = std::as_bytes(std::span(blob->data()->data(), blob->data()->size()));
    const std::string name =
        fmt::format("{}: blob {}", file.origin(), dryRun ? exported.size() : code.size());
    if (dryRun)
      exported.push_back(exportedFunctions(object, name));
    else
      code.emplace_back(object, name);
  }
  std::vector<KernelFunction> functions;
  for (const planfile::Kernel *kernel : *plan.kernels()) {
    const std::string_view symbol = kernel->symbol()->string_view();
    if (dryRun && !exported[kernel->blob()].contains(symbol))
      fail("{}: blob {}: its code has no symbol {}", file.origin(), kernel->blob(), shown(symbol));
    functions.push_back(dryRun ? nullptr : code[kernel->blob()].function(symbol));
  }
  return functions;
}

void CpuExecutor::loadPrograms(Communicator *ranks) {
  const planfile::Plan &plan = file.plan();
  const Resolved resolved{plan,
                          {segments[0].data(), segments[1].data(), segments[2].data()},
                          loadCode(),
                          prepareCall,
                          {pool->threads(), ranks}};
  for (const planfile::Program *program : *plan.programs()) {
    try {
      programs.emplace_back(resolved, *program);
    } catch (const support::Error &error) {
      fail("{}: program {}: {}", file.origin(), shown(program->name()->string_view()),
           error.what());
    }
    programs.back().setPoison(poison);
    scratch.bytesPerWorker =
        std::max(scratch.bytesPerWorker, programs.back().scratchBytesPerWorker());
  }
  scratch.bytesPerWorker = roundUp(scratch.bytesPerWorker, WorkerScratch::alignment);
  scratchMemory = Arena(scratch.bytesPerWorker * pool->threads());
  scratch.base = reinterpret_cast<std::byte *>(scratchMemory.data());
}

void CpuExecutor::fillUnwritten(uint32_t program) {
  const planfile::Plan &plan = file.plan();
  char *transient = segments[static_cast<size_t>(planfile::SegmentKind::transient)].data();
  for (const auto &[begin, end] : unwrittenBytes(plan, *plan.programs()->Get(program)))
    std::memset(transient + begin, kPoison, end - begin);
}

double CpuExecutor::run(uint32_t program) {
  if (dryRun)
    fail("{}: a dry run runs nothing", file.origin());
  if (poison)
    fillUnwritten(program);
  const auto begin = std::chrono::steady_clock::now();
  programs[program].run(*pool, scratch);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void CpuExecutor::transfer(uint32_t tensor, size_t size, std::byte *to, const std::byte *from) {
  const planfile::Tensor &entry = *file.plan().tensors()->Get(tensor);
  checkSize(entry, size);
  char *inArena = segments[static_cast<size_t>(entry.segment())].data() + entry.offset();
  if (isDense(entry)) {
    std::memcpy(to ? static_cast<void *>(to) : inArena,
                from ? static_cast<const void *>(from) : inArena, size);
    return;
  }
  std::vector<int64_t> sizes(entry.shape()->begin(), entry.shape()->end());
  const std::vector<int64_t> strides(entry.strides()->begin(), entry.strides()->end());
  std::vector<int64_t> denseStrides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d])
    denseStrides[d] = stride;
  if (to)
    StridedCopy(sizes, denseStrides, strides, elementSize(entry)).run(to, inArena, *pool);
  else
    StridedCopy(sizes, strides, denseStrides, elementSize(entry)).run(inArena, from, *pool);
}

void CpuExecutor::write(uint32_t tensor, std::span<const std::byte> values) {
  transfer(tensor, values.size(), nullptr, values.data());
}

void CpuExecutor::read(uint32_t tensor, std::span<std::byte> values) {
  transfer(tensor, values.size(), values.data(), nullptr);
}

std::byte *CpuExecutor::placeOf(uint32_t tensor, uint64_t begin, size_t size) {
  const planfile::Tensor &entry = *file.plan().tensors()->Get(tensor);
  checkRange(entry, begin, size);
  char *segment = segments[static_cast<size_t>(entry.segment())].data();
  return reinterpret_cast<std::byte *>(segment + entry.offset() + begin);
}

void CpuExecutor::writeRange(uint32_t tensor, uint64_t begin, std::span<const std::byte> values) {
  std::byte *place = placeOf(tensor, begin, values.size());
  inParts(values.size(),
          [&](size_t at, size_t size) { std::memcpy(place + at, values.data() + at, size); });
}

void CpuExecutor::clearRange(uint32_t tensor, uint64_t begin, uint64_t size) {
  std::byte *place = placeOf(tensor, begin, size);
  inParts(size, [&](size_t at, size_t bytes) { std::memset(place + at, 0, bytes); });
}

void CpuExecutor::parallelFor(int64_t tasks, const std::function<void(int64_t task)> &work) {
  pool->parallelFor(tasks, [&](int64_t task, unsigned) { work(task); });
}

void CpuExecutor::inParts(size_t size, FunctionRef<void(size_t, size_t)> work) {
  constexpr size_t part = size_t{1} << 20;
  pool->parallelFor(static_cast<int64_t>(ceilDiv(size, part)), [&](int64_t task, unsigned) {
    const size_t begin = static_cast<size_t>(task) * part;
    work(begin, std::min(part, size - begin));
  });
}

void CpuExecutor::readRange(uint32_t tensor, uint64_t begin, std::span<std::byte> values) {
  const std::byte *place = placeOf(tensor, begin, values.size());
  inParts(values.size(),
          [&](size_t at, size_t size) { std::memcpy(values.data() + at, place + at, size); });
}

void CpuExecutor::setProfiling(bool on) {
  for (PreparedProgram &program : programs)
    program.setProfiling(on);
}

std::vector<StepTime> CpuExecutor::stepTimes() {
  std::vector<StepTime> times;
  for (size_t i = 0; i < programs.size(); ++i)
    programs[i].addTimes(static_cast<uint32_t>(i), times);
  return times;
}

std::vector<StepRun> CpuExecutor::timeline() {
  std::vector<StepRun> runs;
  for (size_t i = 0; i < programs.size(); ++i)
    programs[i].addRuns(static_cast<uint32_t>(i), runs);
  std::ranges::sort(runs, {}, &StepRun::begin);
  return runs;
}

uint64_t CpuExecutor::arenaBytes() const { return segments[0].size() + segments[1].size(); }

std::string CpuExecutor::deviceName() const { return readCpuInfo().model; }

std::vector<std::pair<std::string, std::string>> CpuExecutor::describe() const {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"device", fmt::format("cpu, {}", deviceName())},
      {"threads", fmt::format("{}", pool->threads())},
      {"attention kernels", attentionLevel()},
      {"worker scratch", fmt::format("{} beside the arena", bytesText(scratchMemory.size()))}};
  if (poison)
    rows.emplace_back("poison", "what a program must write first is NaN before it runs");
  return rows;
}
