// hydra-keep-gathered: parameters are gathered where they are updated, and kept.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_KEEPGATHERED
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-keep-gathered";

struct KeepGathered : impl::KeepGatheredBase<KeepGathered> {
  void runOnOperation() override {
    model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    model.walk([&](AllGatherOp gather) { number = std::max(number, gather.getNumber() + 1); });
    // Reading, then writing: what only writes has to know all that is read.
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto gather : llvm::make_early_inc_range(entry.getBody().front().getOps<AllGatherOp>()))
        if (UseOp use = source(gather); use && unitOf(use.lookup()) && canBeKept(use.lookup()))
          readWhole(gather, use.lookup());
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      writeWhole(entry);
    dropUnread();
  }

private:
  /// The state that keeps what is gathered, and over which ranks it is.
  struct Kept {
    StateOp whole;
    StringAttr over;
    Attribute ranks;
  };

  /// What is gathered, itself or rounded, if it is a variable.
  static UseOp source(AllGatherOp gather) {
    Value piece = build::behindReshapes(gather.getX());
    auto cast = piece.getDefiningOp<CastOp>();
    return (cast ? cast.getX() : piece).getDefiningOp<UseOp>();
  }

  /// Parameters, and what is rounded or derived of them. What changes within an update, as sums of
  /// gradients do, is gathered where it is read.
  static bool canBeKept(Operation *variable) {
    auto state = dyn_cast<StateOp>(variable);
    return !state || state.getRole() == VariableRole::copy ||
           state.getRole() == VariableRole::derived;
  }

  void readWhole(AllGatherOp gather, Operation *variable) {
    const Type element = build::typeOf(gather.getY()).getElementType();
    Kept *it = llvm::find_if(kept[variable],
                             [&](Kept &known) { return known.whole.getDtype() == element; });
    if (it == kept[variable].end()) {
      it = &kept[variable].emplace_back();
      auto state = dyn_cast<StateOp>(variable);
      const StringAttr owner = state ? state.getOwnerAttr() : SymbolTable::getSymbolName(variable);
      OpBuilder b(variable);
      b.setInsertionPointAfter(variable);
      it->whole = StateOp::create(
          b, madeBy(kPass, variable->getLoc()), b.getStringAttr(nameFor(variable, element)),
          b.getI64ArrayAttr(build::shapeOf(gather.getY())), TypeAttr::get(element),
          InitAttr::get(&getContext(), InitKind::zeros, {}), StringAttr(), Attribute(), owner,
          VariableRoleAttr::get(&getContext(), roleOf(variable)));
      it->over = gather.getOverAttr();
      it->ranks = gather.getRanksAttr();
      ++units;
    }
    OpBuilder b(gather);
    StateOp whole = it->whole;
    Value value =
        UseOp::create(b, madeBy(kPass, gather.getLoc()), whole.getBoundType(), whole.getSymName());
    gather.getY().replaceAllUsesWith(value);
    Operation *maker = gather.getX().getDefiningOp();
    gather.erase();
    while (maker && isOpTriviallyDead(maker)) {
      Operation *before =
          maker->getNumOperands() > 0 ? maker->getOperand(0).getDefiningOp() : nullptr;
      maker->erase();
      maker = before;
    }
  }

  /// The whole of what is derived is derived too: the program that makes the one gathers the other.
  static VariableRole roleOf(Operation *variable) {
    auto state = dyn_cast<StateOp>(variable);
    return state && state.getRole() == VariableRole::derived ? VariableRole::derived
                                                             : VariableRole::copy;
  }

  /// `unit.layers.3.bf16.whole`.
  std::string nameFor(Operation *variable, Type element) {
    std::string name = SymbolTable::getSymbolName(variable).str();
    if (variable->getAttrOfType<TypeAttr>("dtype").getValue() != element)
      name += "." + std::string(support::irName(*formatOf(element)));
    return name + ".whole";
  }

  /// Gathers the new values of what is kept.
  void writeWhole(EntryOp entry) {
    ReturnOp end = entry.getReturn();
    OpBuilder b(end);
    SmallVector<Attribute> symbols(end.getUpdated().begin(), end.getUpdated().end());
    SmallVector<Value> updates(end.getUpdates());
    for (auto [symbol, value] :
         llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), SmallVector<Value>(updates))) {
      for (Kept &each : kept.lookup(model.lookupSymbol(symbol.getAttr()))) {
        b.setInsertionPointAfterValue(value);
        Value rows = build::cast(b, madeBy(kPass, value.getLoc()), value, each.whole.getDtype());
        updates.push_back(AllGatherOp::create(b, madeBy(kPass, value.getLoc()), rows,
                                              b.getI64IntegerAttr(0), each.over, each.ranks,
                                              b.getI64IntegerAttr(number++)));
        symbols.push_back(FlatSymbolRefAttr::get(each.whole));
      }
    }
    end.getValuesMutable()
        .slice(end.getOutputNames().size(), end.getUpdates().size())
        .assign(updates);
    end.setUpdatedAttr(b.getArrayAttr(symbols));
  }

  /// Rounded pieces that were read to be gathered only need not be kept themselves.
  void dropUnread() {
    DenseSet<Operation *> read;
    model.walk([&](UseOp use) { read.insert(use.lookup()); });
    for (Operation *variable : llvm::make_first_range(kept)) {
      auto state = dyn_cast<StateOp>(variable);
      if (!state || read.contains(variable))
        continue;
      for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
        ReturnOp end = entry.getReturn();
        SmallVector<Attribute> symbols;
        SmallVector<Value> updates;
        for (auto [symbol, value] : llvm::zip(end.getUpdated(), end.getUpdates()))
          if (cast<FlatSymbolRefAttr>(symbol).getAttr() != state.getSymNameAttr()) {
            symbols.push_back(symbol);
            updates.push_back(value);
          }
        end.getValuesMutable()
            .slice(end.getOutputNames().size(), end.getUpdates().size())
            .assign(updates);
        end.setUpdatedAttr(Builder(&getContext()).getArrayAttr(symbols));
      }
      state.erase();
    }
  }

  ModelOp model;
  int64_t number = 0;                                      ///< of the next gather
  llvm::MapVector<Operation *, SmallVector<Kept, 1>> kept; ///< by what is gathered
};

} // namespace
} // namespace hydra
