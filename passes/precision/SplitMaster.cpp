// hydra-split-master: parameters are held in two halves, the bf16 that matmuls read and the rest.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SPLITMASTER
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-split-master";

/// A parameter and the states that it is to be held as.
struct Master {
  ParamOp param;
  StateOp rest;
  SmallVector<StateOp, 1> copies; ///< in bf16, which the parameter itself becomes
};

struct SplitMaster : impl::SplitMasterBase<SplitMaster> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto symbol : entry.getReturn().getUpdated().getAsRange<FlatSymbolRefAttr>())
        if (auto param = model.lookupSymbol<ParamOp>(symbol.getAttr());
            param && !masters.contains(param.getSymNameAttr()) && isLarge(param))
          if (failed(hold(model, param)))
            return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      Block &body = entry.getBody().front();
      for (auto use : llvm::make_early_inc_range(body.getOps<UseOp>()))
        read(use);
      for (auto cast : llvm::make_early_inc_range(body.getOps<CastOp>()))
        readUpperHalves(cast);
      write(entry);
      eraseDead(body);
    }
    for (auto &[name, master] : masters)
      for (StateOp copy : master.copies)
        copy.erase();
    split += masters.size();
  }

private:
  /// Of a unit all members are read alike.
  static bool isLarge(ParamOp param) {
    const FlatUnitAttr unit = param.getUnitAttr();
    const size_t rank =
        unit ? unit.getMembers().front().getShape().size() : param.getShape().size();
    return param.getDtype().isF32() && rank >= 2;
  }

  LogicalResult hold(ModelOp model, ParamOp param) {
    Master master{param, {}, {}};
    for (auto state : model.getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::copy && state.getOwner() == param.getSymName()) {
        // With a copy that no half could be it stays as it is.
        if (!state.getDtype().isBF16() || state.getShape() != param.getShape())
          return success();
        master.copies.push_back(state);
      }
    const std::string name = (param.getSymName() + ".rest").str();
    if (model.lookupSymbol(name))
      return param.emitOpError() << "is to have a rest @" << name << ", which is there already";
    OpBuilder b(param);
    b.setInsertionPointAfter(param);
    master.rest =
        StateOp::create(b, madeBy(kPass, param.getLoc()), b.getStringAttr(name), param.getShape(),
                        b.getI16Type(), InitAttr::get(b.getContext(), InitKind::zeros, {}),
                        StringAttr(), Attribute(), param.getSymNameAttr(), VariableRole::rest);
    param.setDtypeAttr(TypeAttr::get(b.getBF16Type()));
    for (StateOp copy : master.copies)
      ofCopies[copy.getSymNameAttr()] = param.getSymNameAttr();
    masters[param.getSymNameAttr()] = master;
    return success();
  }

  /// A reader of the copy has the parameter as it lies. Every other one has halves of its own to
  /// join, so that no kernel has to write down what another would read.
  void read(UseOp use) {
    OpBuilder b(use);
    const StringAttr name = use.getVariableAttr().getAttr();
    if (auto copy = ofCopies.find(name); copy != ofCopies.end()) {
      use.replaceAllUsesWith(high(b, use.getLoc(), masters[copy->second]));
      return use.erase();
    }
    const auto found = masters.find(name);
    if (found == masters.end())
      return;
    const Master &master = found->second;
    Value upper = high(b, use.getLoc(), master), lower = left(b, use.getLoc(), master);
    for (OpOperand &at : llvm::make_early_inc_range(use->getUses())) {
      Operation *reader = at.getOwner();
      b.setInsertionPoint(reader);
      if (auto rows = dyn_cast<EmbeddingOp>(reader); rows && at.get() == rows.getTable()) {
        const Location loc = madeBy(kPass, rows.getLoc());
        Value tokens = rows.getTokens();
        rows.replaceAllUsesWith(join(b, loc, EmbeddingOp::create(b, loc, tokens, upper).getX(),
                                     EmbeddingOp::create(b, loc, tokens, lower).getX()));
        rows.erase();
      } else if (auto shaped = dyn_cast<ReshapeOp>(reader)) {
        // Halves are joined behind it, in the kernel of what reads it.
        const Location loc = madeBy(kPass, shaped.getLoc());
        const ArrayRef<int64_t> shape = build::shapeOf(shaped.getResult());
        shaped.replaceAllUsesWith(join(b, loc, build::reshape(b, loc, upper, shape),
                                       build::reshape(b, loc, lower, shape)));
        shaped.erase();
      } else {
        const Location loc = madeBy(kPass, reader->getLoc());
        at.set(join(b, loc, upper, lower));
      }
    }
    use.erase();
  }

  /// A cast of joined halves, or of several side by side, is the upper ones.
  static void readUpperHalves(CastOp cast) {
    if (!cast.getTo().isBF16())
      return;
    if (auto joined = cast.getX().getDefiningOp<JoinMasterOp>())
      return cast.replaceAllUsesWith(joined.getHigh());
    auto concat = cast.getX().getDefiningOp<ConcatOp>();
    SmallVector<Value> upper;
    for (Value part : concat ? concat.getParts() : ValueRange())
      if (auto joined = part.getDefiningOp<JoinMasterOp>())
        upper.push_back(joined.getHigh());
    if (!concat || upper.size() != concat.getParts().size())
      return;
    OpBuilder b(cast);
    cast.replaceAllUsesWith(
        ConcatOp::create(b, madeBy(kPass, concat.getLoc()), upper, concat.getAxisAttr()).getY());
  }

  static Value join(OpBuilder &b, Location loc, Value high, Value rest) {
    return JoinMasterOp::create(b, loc, high, rest);
  }
  static Value high(OpBuilder &b, Location loc, const Master &master) {
    ParamOp param = master.param;
    return UseOp::create(b, madeBy(kPass, loc), param.getBoundType(), param.getSymName());
  }
  static Value left(OpBuilder &b, Location loc, const Master &master) {
    StateOp rest = master.rest;
    return UseOp::create(b, madeBy(kPass, loc), rest.getBoundType(), rest.getSymName());
  }

  void write(EntryOp entry) {
    ReturnOp end = entry.getReturn();
    OpBuilder b(end);
    SmallVector<Attribute> symbols;
    SmallVector<Value> updates;
    for (auto [symbol, value] : llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(),
                                          SmallVector<Value>(end.getUpdates()))) {
      if (ofCopies.contains(symbol.getAttr()))
        continue; // the upper half of what is written to its owner
      const auto found = masters.find(symbol.getAttr());
      if (found == masters.end()) {
        symbols.push_back(symbol);
        updates.push_back(value);
        continue;
      }
      b.setInsertionPointAfterValue(value);
      // In the shape in which it was made, so that it is split there.
      const Location loc = madeBy(kPass, value.getLoc());
      auto halves = SplitMasterOp::create(b, loc, build::behindReshapes(value));
      for (auto [half, name] :
           {std::pair(halves.getHigh(), symbol),
            std::pair(halves.getRest(), FlatSymbolRefAttr::get(found->second.rest))}) {
        updates.push_back(build::reshape(b, loc, half, build::shapeOf(value)));
        symbols.push_back(name);
      }
    }
    end.getValuesMutable()
        .slice(end.getOutputNames().size(), end.getUpdates().size())
        .assign(updates);
    end.setUpdatedAttr(b.getArrayAttr(symbols));
  }

  llvm::MapVector<Attribute, Master> masters; ///< by the name of the parameter
  DenseMap<Attribute, StringAttr> ofCopies;   ///< the parameter that a copy is of
};

} // namespace
} // namespace hydra
