// Batches in the order of steps, whoever asks for them first.
#include "runtime/run/StepBatches.h"

#include <chrono>
#include <utility>

using namespace hydra::runtime;

void StepBatches::Set::draw(uint64_t first) {
  using Clock = std::chrono::steady_clock;
  step = -1;
  const Clock::time_point begin = Clock::now();
  for (Batch &batch : batches)
    batch.advance(first++);
  seconds += std::chrono::duration<double>(Clock::now() - begin).count();
}

void StepBatches::draw(uint64_t first) { present.draw(first); }

void StepBatches::drawBeside(int64_t step) {
  beside.batches = present.batches; // of which only the source is needed
  beside.draw(0);
  beside.step = step;
}

void StepBatches::take(int64_t step) {
  if (beside.step == step)
    present = std::exchange(beside, Set());
}
