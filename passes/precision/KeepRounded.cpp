// hydra-keep-rounded: rounded parameters are state, written where parameters are updated.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_KEEPROUNDED
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-keep-rounded";

struct KeepRounded : impl::KeepRoundedBase<KeepRounded> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    llvm::SetVector<Attribute> updated;
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto symbol : entry.getReturn().getUpdated().getAsRange<FlatSymbolRefAttr>())
        updated.insert(symbol.getAttr());
    auto isNameFree = [&](ParamOp param, Type element) {
      return known(param, element) || !model.lookupSymbol(nameOf(param, element));
    };
    const llvm::DenseSet<std::pair<Attribute, Type>> ofSteps = roundedInSteps(model);
    // Reading, then writing: what only writes has to know all that is read.
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto cast : llvm::make_early_inc_range(entry.getBody().front().getOps<CastOp>())) {
        SmallVector<ParamOp> parameters = joinedParametersOf(cast.getX());
        Type element = build::typeOf(cast.getResult()).getElementType();
        auto stays = [&](ParamOp param) {
          return param.getFrozen() || (updated.contains(param.getSymNameAttr()) &&
                                       ofSteps.contains({param.getSymNameAttr(), element}));
        };
        if (isNarrowFloat(element) && !parameters.empty() && llvm::all_of(parameters, stays) &&
            llvm::all_of(parameters, [&](ParamOp param) { return isNameFree(param, element); }))
          readCopies(cast, parameters);
      }
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      writeCopies(entry);
  }

private:
  /// What programs of training steps round, and to what. An update is to write nothing that only
  /// measurements read, which are few: its copies would be written for nobody.
  static llvm::DenseSet<std::pair<Attribute, Type>> roundedInSteps(ModelOp model) {
    llvm::DenseSet<std::pair<Attribute, Type>> found;
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      const ProgramRole role = entry.programRole();
      if (role != ProgramRole::train && role != ProgramRole::count &&
          role != ProgramRole::accumulate && role != ProgramRole::apply)
        continue;
      for (auto cast : entry.getBody().front().getOps<CastOp>())
        for (ParamOp param : joinedParametersOf(cast.getX()))
          found.insert({param.getSymNameAttr(), build::typeOf(cast.getResult()).getElementType()});
    }
    return found;
  }

  static std::string nameOf(ParamOp param, Type element) {
    return (param.getSymName() + "." + support::irName(*formatOf(element))).str();
  }

  /// The state that is the parameter rounded.
  StateOp copyOf(ParamOp param, Type element) {
    if (StateOp copy = known(param, element))
      return copy;
    ++kept;
    OpBuilder b(param);
    b.setInsertionPointAfter(param);
    auto copy =
        StateOp::create(b, madeBy(kPass, param.getLoc()), b.getStringAttr(nameOf(param, element)),
                        param.getShape(), element, param.getInit(), StringAttr(), Attribute(),
                        param.getSymNameAttr(), VariableRole::copy);
    copies[param.getSymNameAttr()].push_back(copy);
    return copy;
  }

  StateOp known(ParamOp param, Type element) {
    for (StateOp copy : copies.lookup(param.getSymNameAttr()))
      if (copy.getDtype() == element)
        return copy;
    return {};
  }

  void readCopies(CastOp cast, ArrayRef<ParamOp> parameters) {
    OpBuilder b(cast);
    SmallVector<Value> parts;
    for (ParamOp param : parameters) {
      StateOp copy = copyOf(param, build::typeOf(cast.getResult()).getElementType());
      parts.push_back(
          UseOp::create(b, madeBy(kPass, cast.getLoc()), copy.getBoundType(), copy.getSymName()));
    }
    Value all = parts.front();
    Operation *source = cast.getX().getDefiningOp();
    if (auto concat = dyn_cast<ConcatOp>(source))
      all = ConcatOp::create(b, madeBy(kPass, concat.getLoc()), parts, concat.getAxisAttr());
    cast.replaceAllUsesWith(all);
    cast.erase();
    if (isOpTriviallyDead(source))
      source->erase();
  }

  void writeCopies(EntryOp entry) {
    ReturnOp end = entry.getReturn();
    OpBuilder b(end);
    SmallVector<Attribute> symbols(end.getUpdated().begin(), end.getUpdated().end());
    SmallVector<Value> updates(end.getUpdates());
    for (auto [symbol, value] :
         llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), SmallVector<Value>(updates)))
      for (StateOp copy : copies.lookup(symbol.getAttr())) {
        b.setInsertionPointAfterValue(value);
        // In the shape in which it was made, so that it is rounded there.
        const Location loc = madeBy(kPass, value.getLoc());
        Value rounded = build::cast(b, loc, build::behindReshapes(value), copy.getDtype());
        updates.push_back(build::reshape(b, loc, rounded, build::shapeOf(value)));
        symbols.push_back(FlatSymbolRefAttr::get(copy));
      }
    end.getValuesMutable()
        .slice(end.getOutputNames().size(), end.getUpdates().size())
        .assign(updates);
    end.setUpdatedAttr(b.getArrayAttr(symbols));
  }

  DenseMap<Attribute, SmallVector<StateOp, 1>> copies; ///< by the name of the parameter
};

} // namespace
} // namespace hydra
