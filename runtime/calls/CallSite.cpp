// What descriptions of calls ask about a step.
#include "runtime/calls/CallSite.h"

#include "runtime/support/Safetensors.h"
#include "runtime/support/Shown.h"

using namespace hydra::runtime;

int64_t TensorShape::elements() const {
  int64_t count = 1;
  for (const int64_t size : sizes)
    count *= size;
  return count;
}

bool TensorShape::isDense() const {
  int64_t expected = 1;
  for (size_t d = rank(); d-- > 0; expected *= sizes[d])
    if (sizes[d] != 1 && strides[d] != expected)
      return false;
  return true;
}

std::string CallSite::place() const {
  return fmt::format("step {}: {}", support::shown(step.name()->string_view()),
                     wordOf(action.type));
}

hydra::planfile::SegmentKind CallSite::segment(size_t index) const {
  const auto argument = static_cast<flatbuffers::uoffset_t>(index);
  return plan.tensors()->Get(step.args()->Get(argument)->tensor())->segment();
}

std::string CallSite::modelPlace() const {
  const planfile::Location &at = *plan.locations()->Get(step.location());
  return fmt::format("{}{}:{}", step.layer() < 0 ? "" : fmt::format("layer {}, ", step.layer()),
                     support::shown(plan.files()->Get(at.file())->string_view()), at.line());
}

uint64_t CallSite::ranksAlong(uint32_t axis) const {
  const uint32_t axes = plan.mesh() ? plan.mesh()->size() : 0;
  if (axis >= axes)
    fail("goes along axis {} of a mesh of {}", axis, axes);
  return plan.mesh()->Get(axis)->size();
}

size_t CallSite::argumentCount(size_t least, size_t most) const {
  const size_t count = step.args()->size();
  if (count < least || count > most)
    fail("{} arguments; expected {}", count,
         least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most));
  return count;
}

TensorShape CallSite::tensor(size_t index, std::string_view name, int rank) const {
  const planfile::Arg &arg = *step.args()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const planfile::Tensor &tensor = *plan.tensors()->Get(arg.tensor());
  TensorShape shape{dtypeOf(tensor),
                    {tensor.shape()->begin(), tensor.shape()->end()},
                    {tensor.strides()->begin(), tensor.strides()->end()}};
  if (rank >= 0 && shape.rank() != static_cast<size_t>(rank))
    fail("argument {} ({}) has shape {}; expected rank {}", index, name,
         support::shapeText(shape.sizes), rank);
  return shape;
}

TensorShape CallSite::tensor(size_t index, std::string_view name, int rank,
                             support::DType dtype) const {
  TensorShape shape = tensor(index, name, rank);
  if (shape.dtype != dtype)
    fail("argument {} ({}) is {}; expected {}", index, name, support::irName(shape.dtype),
         support::irName(dtype));
  return shape;
}
