// What several ranks share: the mesh that a model is bound for, and which dimensions are the batch.
#include "passes/bind/Ranks.h"

using namespace mlir;

namespace hydra {

/// The entry dimension that `--batch` gives.
static constexpr llvm::StringLiteral kBatchSymbol = "B";

FailureOr<MeshAttr> readMesh(ModelOp model, ArrayRef<std::string> texts) {
  if (texts.empty())
    return MeshAttr();
  MLIRContext *context = model.getContext();
  SmallVector<StringAttr> axes;
  SmallVector<int64_t> sizes;
  for (StringRef text : texts) {
    auto [name, size] = text.split(':');
    axes.push_back(StringAttr::get(context, name));
    if (name.empty() || size.getAsInteger(10, sizes.emplace_back()))
      return model.emitOpError() << "cannot read the axis '" << text
                                 << "' of the mesh; expected NAME:SIZE";
  }
  auto mesh = MeshAttr::getChecked([&] { return model.emitOpError(); }, context,
                                   ArrayRef<StringAttr>(axes), ArrayRef<int64_t>(sizes));
  if (!mesh)
    return failure();
  return mesh;
}

LogicalResult noteRows(EntryOp entry) {
  if (entry.getRole() == ProgramRole::generate || entry.getRole() == ProgramRole::decode ||
      !llvm::is_contained(entry.getDims().getAsValueRange<StringAttr>(), kBatchSymbol))
    return success();
  SmallVector<int64_t> dims;
  for (auto [name, shape] : llvm::zip(entry.getArgNames(), entry.getArgShapes())) {
    dims.push_back(-1);
    for (auto [i, size] : llvm::enumerate(cast<ArrayAttr>(shape))) {
      auto expression = dyn_cast<ExprAttr>(size);
      bool reads = false;
      forEachSymbol(size, [&](StringRef symbol) { reads |= symbol == kBatchSymbol; });
      if (!reads)
        continue;
      if (dims.back() >= 0 || !expression || !expression.getArgs().empty())
        return entry.emitOpError() << "argument '" << cast<StringAttr>(name).getValue()
                                   << "' does not have the batch as one dimension " << kBatchSymbol
                                   << ", of which ranks could have parts";
      dims.back() = i;
    }
  }
  entry.setRowsAttr(RowsAttr::get(entry.getContext(), 1, dims, {}));
  return success();
}

} // namespace hydra
