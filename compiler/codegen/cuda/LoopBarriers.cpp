// Which steps of a loop's kernel have to wait for others.
#include "compiler/codegen/cuda/LoopBarriers.h"

#include "compiler/codegen/cuda/StepLauncher.h"

using namespace mlir;

namespace hydra::cuda {

SmallVector<LoopBarriers::Touch> LoopBarriers::touchesOf(const LoopStep &step) const {
  SmallVector<Touch> touches;
  const bool byRows = step.program && !places.hasRowOfThread(step) &&
                      places.warpsOfRow(step) == 1 && llvm::none_of(step.args, [&](Value arg) {
                        return places.registers().contains(plan::placeOf(arg).buffer);
                      });
  for (auto [i, arg] : llvm::enumerate(step.args)) {
    plan::Place place = plan::placeOf(arg);
    if (places.registers().contains(place.buffer)) // every thread has its own
      continue;
    touches.push_back({arg, step.writes(i), byRows ? &step.program->domain : nullptr, place.bytes,
                       sliceEnd(arg, step.sliced[i])});
  }
  return touches;
}

LoopWait LoopBarriers::between(const Touch &earlier, const Touch &later) const {
  if (!earlier.writes && !later.writes)
    return LoopWait::None;
  Operation *before = plan::placeOf(earlier.value).buffer;
  Operation *buffer = plan::placeOf(later.value).buffer;
  // Others may have had the same bytes of shared memory before.
  if (before != buffer)
    return later.writes && places.shareBytes(before, buffer) ? LoopWait::Block : LoopWait::None;
  // Buffers in shared memory are those whose slices lie alike in their parts.
  if (places.sharedForm(buffer) && (earlier.end <= later.begin || later.end <= earlier.begin))
    return LoopWait::None;
  const bool sameRows = earlier.value == later.value && earlier.domain && later.domain &&
                        *earlier.domain == *later.domain;
  return sameRows ? LoopWait::Warp : LoopWait::Block;
}

LoopWait LoopBarriers::waitOf(const LoopStep &step) const {
  LoopWait wait = LoopWait::None;
  for (const Touch &later : touchesOf(step))
    for (const Touch &earlier : touched)
      wait = std::max(wait, between(earlier, later));
  return wait;
}

SmallVector<LoopWait> LoopBarriers::waitsOf(ArrayRef<LoopStep> steps) {
  SmallVector<LoopWait> waits;
  touched.clear(); // all threads have met
  for (const LoopStep &step : steps) {
    waits.push_back(waitOf(step));
    if (waits.back() == LoopWait::Block)
      touched.clear();
    touched.append(touchesOf(step));
  }
  return waits;
}

} // namespace hydra::cuda
