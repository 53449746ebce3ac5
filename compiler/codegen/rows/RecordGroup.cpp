// Lets the operations of a group emit themselves into a RowRecorder.
#include "compiler/codegen/rows/RecordGroup.h"

using namespace mlir;

namespace hydra {

FailureOr<RowProgram> recordRows(FusedOp group) {
  auto typeOf = [&](Value v) -> FailureOr<RowType> {
    Type element = cast<RankedTensorType>(v.getType()).getElementType();
    if (std::optional<RowType> type = rowTypeOf(element))
      return *type;
    return emitError(v.getLoc()) << "a group of row-wise operations holds elements of type "
                                 << element
                                 << "; expected f32, bf16, f16, f8E4M3FN, f8E5M2, i32 or i1";
  };
  for (Operation &op : group.getBlock().without_terminator())
    for (Value v : op.getResults())
      if (failed(typeOf(v)))
        return failure();
  std::vector<RowInput> inputs;
  for (auto [i, value] : llvm::enumerate(group.getInputs())) {
    FailureOr<RowType> type = typeOf(value);
    if (failed(type))
      return failure();
    RowInput &input = inputs.emplace_back();
    input.shape.assign(cast<RankedTensorType>(value.getType()).getShape());
    input.type = *type;
    if (!group.isOuterOnly(i))
      input.form = group.getInputForm(i);
  }
  std::vector<RowResult> results;
  for (auto [i, value] : llvm::enumerate(group.getResults()))
    results.push_back({group.getResultForm(i), *typeOf(value)});

  RowRecorder recorder(group.getContext(), group.getDomain(), inputs);
  SmallVector<RowValue> values(inputs.size());
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input.form)
      values[i] = recorder.input(i);
  return recorder.finish(group.emit(recorder, values), std::move(results));
}

} // namespace hydra
