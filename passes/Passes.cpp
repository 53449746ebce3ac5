// Look-ups that several passes start with.
#include "passes/Passes.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

ModelOp findModel(ModuleOp module) {
  auto models = module.getOps<ModelOp>();
  if (llvm::hasSingleElement(models))
    return *models.begin();
  module.emitError() << "found " << llvm::range_size(models)
                     << " hydra.model operations; expected 1";
  return {};
}

ModelOp findBoundModel(ModuleOp module) {
  ModelOp model = findModel(module);
  if (model && !model.isBound()) {
    model.emitOpError() << "@" << model.getSymName() << " is not bound; run hydra-bind first";
    return {};
  }
  return model;
}

LogicalResult checkProgramName(ModelOp model, StringRef name) {
  if (Operation *existing = model.lookupSymbol(name))
    return existing->emitOpError()
           << "@" << name << " has the name of a program that is made; expected another";
  return success();
}

FailureOr<SmallVector<EntryOp>> findPrograms(ModelOp model, ArrayRef<std::string> names) {
  static const std::string standard = "loss";
  SmallVector<EntryOp> programs;
  for (const std::string &name : names.empty() ? ArrayRef<std::string>(standard) : names) {
    auto entry = model.lookupSymbol<EntryOp>(name);
    if (!entry)
      return model.emitOpError() << "@" << model.getSymName() << " has no program @" << name;
    programs.push_back(entry);
  }
  return programs;
}

void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

EntryOp bodyLike(EntryOp body, StringRef stem, ScanAttr scan, IRMapping &mapping) {
  SmallVector<RankedTensorType> types =
      llvm::map_to_vector(body.getBody().getArguments(), [](Value v) { return build::typeOf(v); });
  EntryOp entry = build::loopBody(body, stem, body.getLoc(), scan, types);
  mapping.map(body.getBody().getArguments(), entry.getBody().getArguments());
  return entry;
}

void eraseUnusedBodies(ModelOp model) {
  // A body stands in front of what runs it: from the back, who erases one sees all that used it.
  DenseSet<Attribute> used;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(model.getBody().front()))) {
    auto entry = dyn_cast<EntryOp>(op);
    if (!entry)
      continue;
    if (!entry.isProgram() && !used.contains(entry.getSymNameAttr()))
      entry.erase();
    else
      entry.walk([&](LoopOp loop) { used.insert(loop.getBodyAttr().getAttr()); });
  }
}

} // namespace hydra
