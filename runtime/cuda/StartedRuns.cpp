// Events in a ring of runs.
#include "runtime/cuda/StartedRuns.h"

#include <algorithm>
#include <stdexcept>

namespace hydra::runtime::cuda {

StartedRuns::~StartedRuns() {
  driver().cuStreamSynchronize(device.stream); // which may write copies
}

void StartedRuns::begin(uint32_t program) {
  constexpr size_t most = 2;
  if (count == most)
    throw std::logic_error("two runs of programs are under way");
  Run &run = coming();
  run.program = program;
  run.copies.clear();
  run.begin.record(device.stream);
}

void StartedRuns::end(std::span<const Output> outputs) {
  constexpr size_t alignment = 16;
  Run &run = coming();
  run.end.record(device.stream);
  size_t bytes = 0;
  for (const Output &output : outputs) {
    run.copies.push_back({output.tensor, bytes, output.bytes});
    bytes += (output.bytes + alignment - 1) / alignment * alignment;
  }
  if (bytes > run.memory.size())
    run.memory = HostMemory(bytes, "outputs of a program");
  for (size_t i = 0; i < outputs.size(); ++i)
    device.beginDownload(outputs[i].from,
                         {run.memory.get() + run.copies[i].offset, outputs[i].bytes});
  run.arrived.record(device.stream);
  ++count;
}

double StartedRuns::finish(const std::string &what) {
  if (count == 0)
    throw std::logic_error("no run of a program is under way");
  const Run &run = runs[next];
  next = (next + 1) % runs.size();
  --count;
  run.arrived.wait(what);
  return run.end.secondsSince(run.begin);
}

std::span<const std::byte> StartedRuns::copyOf(uint32_t tensor) const {
  const Run &run = runs[(next + runs.size() - 1) % runs.size()];
  const auto copy = std::ranges::find(run.copies, tensor, &Run::Copy::tensor);
  if (copy == run.copies.end())
    return {};
  return {run.memory.get() + copy->offset, copy->bytes};
}

} // namespace hydra::runtime::cuda
