// hydra-partition: programs of the whole batch become programs of one rank's part of it.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/partition/RankWriter.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_PARTITION
#include "passes/Passes.h.inc"

namespace {

struct Partition : impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    std::optional<MeshAttr> mesh = model.getMesh();
    if (!mesh)
      return;
    // Outermost first: the ranks of a node have neighbouring rows.
    for (auto [name, ranks] : llvm::zip(mesh->getAxes(), mesh->getSizes())) {
      PartitionAxis axis{name, ranks};
      const bool differs = llvm::any_of(model.getBody().front(), [&](Operation &op) {
        return isa<ParamOp, StateOp>(op) && !axis.spreadOf(&op).isSame();
      });
      for (EntryOp entry : llvm::make_early_inc_range(model.getBody().getOps<EntryOp>()))
        if (entry.isProgram() && (entry.getRows() || differs) && failed(write(entry, axis)))
          return signalPassFailure();
      cutVariables(model, axis);
      reductions += axis.reductions;
      gathers += axis.gathers;
    }
    model.walk([](ShardOp shard) { // of an axis of one rank
      shard.getY().replaceAllUsesWith(shard.getX());
      shard.erase();
    });
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      eraseDead(entry.getBody().front());
    eraseUnusedBodies(model);
  }

private:
  /// Gives units, and the state that belongs to them, the rows that a rank has along the axis.
  static void cutVariables(ModelOp model, const PartitionAxis &axis) {
    SmallVector<Operation *> variables;
    for (Operation &op : model.getBody().front())
      if (isa<ParamOp, StateOp>(op) && axis.spreadOf(&op).isRows())
        variables.push_back(&op);
    for (Operation *variable : variables) {
      SmallVector<int64_t> shape = intList(variable->getAttrOfType<ArrayAttr>("shape"));
      shape[0] /= axis.ranks;
      variable->setAttr("shape", Builder(variable->getContext()).getI64ArrayAttr(shape));
    }
    for (Operation *variable : variables)
      if (auto param = dyn_cast<ParamOp>(variable))
        param.setUnitAttr(param.getUnitAttr().withPieces(axis.ranks));
  }

  LogicalResult write(EntryOp entry, PartitionAxis &axis) {
    if (axis.ranks == 1)
      return success();
    Block &old = entry.getBody().front(), &block = entry.getBody().emplaceBlock();
    RankWriter writer(axis, OpBuilder::atBlockEnd(&block));
    for (BlockArgument argument : old.getArguments()) {
      const int64_t dim = entry.batchDimension(argument.getArgNumber());
      Spread spread = dim < 0 ? Spread::same() : Spread::rows(dim);
      if (dim >= 0 && build::shapeOf(argument)[dim] % axis.ranks != 0) {
        const int64_t batch = entry.batchType(argument.getArgNumber()).getShape()[dim];
        const int64_t outside = entry.ranks(); // that have parts of the batch already
        return entry.emitOpError()
               << "@" << entry.getSymName() << " has a batch of " << batch << ", which the "
               << outside * axis.ranks << " ranks along '" << axis.name.getValue()
               << "' of the mesh" << (outside > 1 ? " and the axes outside of it" : "")
               << " do not divide";
      }
      writer.place(
          argument,
          block.addArgument(localType(argument.getType(), spread, axis.ranks), argument.getLoc()),
          spread);
    }
    LogicalResult written = writer.write(old);
    ReturnOp end = cast<ReturnOp>(old.getTerminator());
    SmallVector<Value> values;
    SmallVector<int64_t> dims;
    const ArrayRef<int64_t> before =
        entry.getRows() ? entry.getRows()->getResults() : ArrayRef<int64_t>();
    auto model = entry->getParentOfType<ModelOp>();
    if (succeeded(written))
      for (auto [i, value] : llvm::enumerate(end.getValues())) {
        Spread spread = writer.spreadOf(value);
        if (!entry.getRows() || !spread.isRows() || spread.order || spread.blocks != 1)
          spread = Spread::same();
        if (i >= end.getOutputs().size()) {
          auto symbol = cast<FlatSymbolRefAttr>(end.getUpdated()[i - end.getOutputs().size()]);
          spread = axis.spreadOf(model.lookupSymbol(symbol.getAttr()));
        } else {
          dims.push_back(spread.isRows() ? spread.dim : -1);
          if (!before.empty() && before[i] != dims.back())
            return end.emitOpError()
                   << "has an output that is rows along some axes of the mesh only";
        }
        values.push_back(writer.as(value, spread, end));
      }
    if (writer.problem.op) {
      writer.problem.op->emitOpError(writer.problem.text);
      return failure();
    }
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    auto copy = cast<ReturnOp>(b.insert(end->clone()));
    copy->setOperands(values);
    old.dropAllReferences();
    old.erase();
    if (!entry.getRows()) // every rank has all that it is given, and all of what it gives
      return success();
    const SmallVector<int64_t> arguments(entry.getRows()->getArguments());
    for (BlockArgument argument : block.getArguments())
      entry.setArgumentType(argument.getArgNumber(), build::typeOf(argument));
    entry.setRowsAttr(RowsAttr::get(&getContext(), entry.ranks() * axis.ranks, arguments, dims));
    return success();
  }
};

} // namespace
} // namespace hydra
