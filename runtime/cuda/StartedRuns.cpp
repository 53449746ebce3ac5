// Events in a ring of runs.
#include "runtime/cuda/StartedRuns.h"

#include <algorithm>
#include <stdexcept>

namespace hydra::runtime::cuda {

StartedRuns::~StartedRuns() {
  driver().cuStreamSynchronize(device.stream); // which may write copies
}

void StartedRuns::begin(uint32_t program, std::span<const Output> outputs) {
  constexpr size_t most = 2, alignment = 16;
  if (count == most)
    throw std::logic_error("two runs of programs are in flight");
  Run &run = coming();
  run.program = program;
  run.copies.clear();
  size_t bytes = 0;
  for (const Output &output : outputs) {
    run.copies.push_back({output, bytes});
    bytes += (output.bytes + alignment - 1) / alignment * alignment;
  }
  if (bytes > run.memory.size())
    run.memory = HostMemory(bytes, "outputs of a program");
  run.begin.record(device.stream);
}

void StartedRuns::end() {
  Run &run = coming();
  run.end.record(device.stream);
  for (const Run::Copy &copy : run.copies)
    device.beginDownload(copy.output.from, {run.memory.get() + copy.offset, copy.output.bytes});
  run.arrived.record(device.stream);
  ++count;
}

double StartedRuns::finish(const std::string &what) {
  if (count == 0)
    throw std::logic_error("no run of a program is in flight");
  const Run &run = runs[next];
  next = (next + 1) % runs.size();
  --count;
  run.arrived.wait(what);
  return run.end.secondsSince(run.begin);
}

std::span<std::byte> StartedRuns::copyOf(uint32_t tensor) {
  for (const Run::Copy &copy : last().copies)
    if (copy.output.tensor == tensor)
      return {last().memory.get() + copy.offset, copy.output.bytes};
  return {};
}

void StartedRuns::forget(uint32_t tensor) {
  std::erase_if(last().copies, [&](const Run::Copy &copy) { return copy.output.tensor == tensor; });
}

} // namespace hydra::runtime::cuda
