// hydra-hold-rounded: parameters that nothing changes are held in the format that matmuls round
// them to.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_HOLDROUNDED
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-hold-rounded";

struct HoldRounded : impl::HoldRoundedBase<HoldRounded> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    findFormats(model);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto use : llvm::make_early_inc_range(entry.getBody().front().getOps<UseOp>()))
        if (auto param = dyn_cast<ParamOp>(use.lookup()); param && formats.lookup(param))
          readRounded(use, formats.lookup(param));
    for (auto [param, format] : formats)
      if (format) {
        cast<ParamOp>(param).setDtypeAttr(TypeAttr::get(format));
        ++held;
      }
  }

private:
  /// What all programs round a parameter to; null where one needs more of it.
  void findFormats(ModelOp model) {
    for (auto param : model.getBody().getOps<ParamOp>())
      if (param.getDtype().isF32())
        formats[param] = Type();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto cast : entry.getBody().front().getOps<CastOp>())
        if (Type to = build::typeOf(cast.getResult()).getElementType(); isNarrowFloat(to))
          for (ParamOp param : joinedParametersOf(cast.getX()))
            if (auto found = formats.find(param); found != formats.end() && !found->second)
              found->second = to;
    // One that falls out takes along those that it is joined with.
    for (bool changed = true; changed;) {
      changed = false;
      for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
        ReturnOp end = entry.getReturn();
        for (auto symbol : end.getUpdated().getAsRange<FlatSymbolRefAttr>())
          changed |= drop(model.lookupSymbol<ParamOp>(symbol.getValue()));
        for (unsigned i = 0; i < end.getOutputNames().size(); ++i)
          if (FlatSymbolRefAttr param = end.gradientOf(i))
            changed |= drop(model.lookupSymbol<ParamOp>(param.getValue()));
        for (auto use : entry.getBody().front().getOps<UseOp>())
          if (auto param = dyn_cast<ParamOp>(use.lookup()))
            if (Type format = formats.lookup(param);
                format &&
                !llvm::all_of(use->getUses(), [&](OpOperand &at) { return takes(at, format); }))
              changed |= drop(param);
      }
    }
  }

  bool drop(ParamOp param) {
    auto found = param ? formats.find(param) : formats.end();
    return found != formats.end() && std::exchange(found->second, Type());
  }

  /// Whether what reads the parameter rounds it to the format, or reads few of its rows.
  bool takes(OpOperand &at, Type format) {
    Operation *reader = at.getOwner();
    if (isa<EmbeddingOp>(reader))
      return true;
    auto rounds = [&](Operation *user) {
      return isa<CastOp>(user) && build::typeOf(user->getResult(0)).getElementType() == format;
    };
    auto concat = dyn_cast<ConcatOp>(reader);
    if (!concat)
      return rounds(reader);
    SmallVector<ParamOp> parts = joinedParametersOf(concat.getY());
    return !parts.empty() && llvm::all_of(concat->getUsers(), rounds) &&
           llvm::all_of(parts, [&](ParamOp part) { return formats.lookup(part) == format; });
  }

  /// Retypes what a parameter is read by, which rounds it no more. Joined parts are retyped with
  /// the last of them.
  void readRounded(UseOp use, Type format) {
    use.getResult().setType(build::typeOf(use.getResult()).clone(format));
    for (OpOperand &at : llvm::make_early_inc_range(use->getUses())) {
      Operation *reader = at.getOwner();
      if (auto rows = dyn_cast<EmbeddingOp>(reader)) {
        OpBuilder b(rows->getContext());
        b.setInsertionPointAfter(rows);
        Type wide = build::typeOf(rows.getResult()).getElementType();
        rows.getResult().setType(build::typeOf(rows.getResult()).clone(format));
        Value widened = build::cast(b, madeBy(kPass, rows.getLoc()), rows.getResult(), wide);
        rows.getResult().replaceAllUsesExcept(widened, widened.getDefiningOp());
      } else if (auto concat = dyn_cast<ConcatOp>(reader)) {
        // What reads it is of this format already where one parameter is several of its parts.
        if (build::typeOf(concat.getResult()).getElementType() == format ||
            llvm::any_of(concat.getParts(), [&](Value part) {
              return build::typeOf(part).getElementType() != format;
            }))
          continue;
        concat.getResult().setType(build::typeOf(concat.getResult()).clone(format));
        for (Operation *cast : llvm::make_early_inc_range(concat->getUsers()))
          forward(cast);
      } else {
        forward(reader);
      }
    }
  }

  static void forward(Operation *cast) {
    cast->getResult(0).replaceAllUsesWith(cast->getOperand(0));
    cast->erase();
  }

  llvm::MapVector<Operation *, Type> formats; ///< of parameters
};

} // namespace
} // namespace hydra
