// hydra-lora: beside frozen matrices, products of two small ones are trained.
#include "dialects/hydra/Build.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"

#include "llvm/ADT/SmallBitVector.h"

#include <cmath>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_LORA
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-lora";

/// The values of the two matrices beside one, where it is read; of experts' matrices, two each.
struct Low {
  Value a, b; ///< [R, K] and [N, R], or [E, R, K] and [E, N, R]
};

using Lows = DenseMap<Value, Low>;
/// Two parameters for each that is adapted, by its name.
using Adapters = DenseMap<Attribute, std::pair<ParamOp, ParamOp>>;

/// What reads an adapted matrix, rewritten: programs, and the bodies of loops that are given it.
class Adapting {
public:
  explicit Adapting(double scale) : scale(scale) {}

  unsigned layers = 0; ///< linear layers that got a second path

  /// Rewrites a block in which these matrices are read as these values, and what it reads itself as
  /// parameters of `adapters`.
  LogicalResult rewrite(Block &block, Lows known, const Adapters &adapters) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto use = dyn_cast<UseOp>(op)) {
        auto it = adapters.find(use.getVariableAttr().getAttr());
        if (it != adapters.end())
          known[use.getValue()] = read(use, it->second);
      } else if (auto linear = dyn_cast<LinearOp>(op)) {
        if (failed(rewrite(linear, known)))
          return failure();
      } else if (auto experts = dyn_cast<GroupedLinearOp>(op)) {
        if (failed(rewrite(experts, known)))
          return failure();
      } else if (auto loop = dyn_cast<LoopOp>(op)) {
        if (failed(rewrite(loop, known)))
          return failure();
      } else if (failed(refuse(&op, op.getOperands(), known))) {
        return failure();
      }
    }
    return success();
  }

private:
  static Low read(UseOp use, std::pair<ParamOp, ParamOp> adapter) {
    OpBuilder b(use);
    b.setInsertionPointAfter(use);
    auto [a, up] = adapter;
    Value low = UseOp::create(b, madeBy(kPass, use.getLoc()), a.getBoundType(), a.getSymName());
    return {low, UseOp::create(b, madeBy(kPass, use.getLoc()), up.getBoundType(), up.getSymName())};
  }

  /// Fails if any of these operands is an adapted matrix.
  static LogicalResult refuse(Operation *op, OperandRange operands, const Lows &known) {
    for (Value operand : operands)
      if (known.contains(operand))
        return op->emitOpError()
               << "--lora: reads a parameter that is to be adapted; expected it as the weight of "
               << (build::typeOf(operand).getRank() == 3 ? "hydra.grouped_linear" : "hydra.linear")
               << " alone";
    return success();
  }

  /// y = x wᵀ + b becomes y + s (x Aᵀ) Bᵀ. The scale stands where a row is shortest.
  LogicalResult rewrite(LinearOp linear, const Lows &known) {
    return addPath(linear, known, [&](OpBuilder &b, Location loc, Low low) -> Value {
      Value rows = scaled(b, loc, LinearOp::create(b, loc, linear.getX(), low.a, Value()));
      return LinearOp::create(b, loc, rows, low.b, Value(), linear.getDtypeAttr(), UnitAttr(),
                              TypeAttr());
    });
  }

  /// The same for the rows of each expert. What is multiplied as it lies gives y + s (x B) A.
  LogicalResult rewrite(GroupedLinearOp linear, const Lows &known) {
    return addPath(linear, known, [&](OpBuilder &b, Location loc, Low low) -> Value {
      if (linear.getTransposed())
        std::swap(low.a, low.b);
      auto multiply = [&](Value x, Value w, TypeAttr dtype) -> Value {
        return GroupedLinearOp::create(b, loc, x, w, linear.getOffsets(),
                                       linear.getTransposedAttr(), dtype, TypeAttr());
      };
      Value rows = scaled(b, loc, multiply(linear.getX(), low.a, TypeAttr()));
      return multiply(rows, low.b, linear.getDtypeAttr());
    });
  }

  /// Adds to the result of a linear layer what `path` makes of its input, if its weight, which is
  /// its operand 1, is adapted.
  template <class Op, class Path> LogicalResult addPath(Op linear, const Lows &known, Path path) {
    if (failed(refuse(linear, linear->getOperands().take_front(1), known)) ||
        failed(refuse(linear, linear->getOperands().drop_front(2), known)))
      return failure();
    auto it = known.find(linear.getW());
    if (it == known.end())
      return success();
    OpBuilder b(linear);
    b.setInsertionPointAfter(linear);
    const Location loc = madeBy(kPass, linear.getLoc());
    addTo(b, loc, linear.getY(), path(b, loc, it->second));
    return success();
  }

  Value scaled(OpBuilder &b, Location loc, Value low) const {
    return scale == 1.0 ? low : build::scale(b, loc, low, scale);
  }

  /// What read `y` reads its sum with `path`.
  void addTo(OpBuilder &b, Location loc, Value y, Value path) {
    auto sum = AddOp::create(b, loc, y, path);
    y.replaceAllUsesExcept(sum, sum);
    ++layers;
  }

  /// A loop that gives its body adapted matrices to keep gives it the small ones too.
  LogicalResult rewrite(LoopOp loop, const Lows &known) {
    const unsigned kept = loop.getInputs().size() - loop.getKept().size();
    if (failed(refuse(loop, loop.getInputs().take_front(kept), known)))
      return failure();
    llvm::SmallBitVector adapted(loop.getInputs().size());
    SmallVector<Value> inputs(loop.getInputs());
    for (auto [i, input] : llvm::enumerate(loop.getInputs()))
      if (auto it = known.find(input); it != known.end()) {
        adapted.set(i);
        inputs.append({it->second.a, it->second.b});
      }
    if (adapted.none())
      return success();
    FailureOr<EntryOp> body = bodyWith(loop.getEntry(), adapted, inputs);
    if (failed(body))
      return failure();
    OpBuilder b(loop);
    auto wider = LoopOp::create(b, loop.getLoc(), *body, inputs);
    loop.replaceAllUsesWith(wider.getResults());
    loop.erase();
    return success();
  }

  /// The body of a loop with those of its arguments adapted, which it is given behind all others;
  /// loops over the same one share it.
  FailureOr<EntryOp> bodyWith(EntryOp body, const llvm::SmallBitVector &adapted,
                              ArrayRef<Value> inputs) {
    std::string key = body.getSymName().str() + "|";
    for (unsigned i = 0; i < adapted.size(); ++i)
      key += adapted[i] ? '1' : '0';
    EntryOp &wider = bodies[key];
    if (wider)
      return wider;
    IRMapping mapping;
    wider = bodyLike(body, (body.getSymName() + "_lora").str(), *body.getScan(), mapping);
    EntryOp made = wider;
    Lows known;
    unsigned next = adapted.size();
    auto add = [&](StringRef what, unsigned i) -> Value {
      const RankedTensorType type = build::typeOf(inputs[next++]);
      return made.addArgument((what + Twine(i)).str(), type, made.getLoc());
    };
    for (unsigned i : adapted.set_bits()) {
      Value a = add("lora_a", i), up = add("lora_b", i);
      known[made.getBody().getArgument(i)] = {a, up};
    }
    Block &block = made.getBody().front();
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    for (Operation &op : body.getBody().front().without_terminator())
      b.clone(op, mapping);
    build::endLoopBody(made, llvm::map_to_vector(body.getReturn().getOutputs(), [&](Value v) {
                         return mapping.lookupOrDefault(v);
                       }));
    if (failed(rewrite(block, std::move(known), Adapters())))
      return failure();
    return made;
  }

  double scale;
  llvm::StringMap<EntryOp> bodies;
};

struct Lora : impl::LoraBase<Lora> {
  using LoraBase::LoraBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model || failed(adapt(model)))
      signalPassFailure();
  }

private:
  LogicalResult adapt(ModelOp model) {
    if (rank < 1 || !(alpha > 0) || !std::isfinite(alpha))
      return model.emitOpError() << "--lora: rank is " << rank.getValue() << " and alpha "
                                 << alpha.getValue() << "; expected numbers above 0";
    const SmallVector<std::string> names(targets.begin(), targets.end());
    FailureOr<SmallVector<ParamOp>> matched = parametersMatching(model, names, "--lora");
    if (failed(matched))
      return failure();
    for (ParamOp param : model.getBody().getOps<ParamOp>())
      param.setFrozen(true);
    Adapters adapters;
    for (ParamOp param : *matched)
      if (failed(addAdapter(model, param, adapters)))
        return failure();
    Adapting work(alpha / static_cast<double>(rank));
    for (EntryOp entry : llvm::make_early_inc_range(model.getBody().getOps<EntryOp>()))
      if (entry.isProgram() && failed(work.rewrite(entry.getBody().front(), Lows(), adapters)))
        return failure();
    eraseUnusedBodies(model);
    adapted += adapters.size();
    return success();
  }

  /// `<name>.lora_a [R, K]`, which starts as in PEFT, and `<name>.lora_b [N, R]`, which starts with
  /// zeros; of the matrices of E experts, `[E, R, K]` and `[E, N, R]`.
  LogicalResult addAdapter(ModelOp model, ParamOp param, Adapters &adapters) {
    const ArrayRef<int64_t> shape = param.getBoundType().getShape();
    if (shape.size() != 2 && shape.size() != 3)
      return param.emitOpError() << "--lora: @" << param.getSymName() << " is " << shapeText(shape)
                                 << "; expected a matrix, the weight of hydra.linear";
    const ArrayRef<int64_t> experts = shape.drop_back(2);
    const int64_t rows = shape.take_back(2)[0], columns = shape.back();
    if (rank > std::min(rows, columns))
      return param.emitOpError() << "--lora: rank " << rank.getValue() << " of @"
                                 << param.getSymName() << " " << shapeText(shape)
                                 << "; expected at most " << std::min(rows, columns)
                                 << ", which any matrix of that shape has";
    MLIRContext *context = &getContext();
    auto limit = Builder(context).getF64FloatAttr(1.0 / std::sqrt(static_cast<double>(columns)));
    OpBuilder b(param);
    b.setInsertionPointAfter(param);
    auto add = [&](StringRef suffix, StringRef theirs, int64_t out, int64_t in,
                   InitAttr init) -> FailureOr<ParamOp> {
      SmallVector<int64_t, 3> size(experts);
      size.append({out, in});
      const std::string name = (param.getSymName() + suffix).str();
      if (Operation *existing = model.lookupSymbol(name))
        return existing->emitOpError() << "--lora: @" << name << " has the name of an adapter";
      auto adapter = AdapterAttr::get(context, b.getStringAttr(nameForOthers(param, theirs)),
                                      b.getF64FloatAttr(alpha));
      return ParamOp::create(b, madeBy(kPass, param.getLoc()), b.getStringAttr(name),
                             b.getI64ArrayAttr(size), param.getDtypeAttr(), init,
                             param.getGroupAttr(), Attribute(), StringAttr(), UnitAttr(),
                             UnitAttr(), param.getElementAttr(), FlatUnitAttr(), adapter);
    };
    FailureOr<ParamOp> a =
        add(".lora_a", "lora_A", rank, columns, InitAttr::get(context, InitKind::uniform, {limit}));
    if (failed(a))
      return failure();
    FailureOr<ParamOp> up =
        add(".lora_b", "lora_B", rows, rank, InitAttr::get(context, InitKind::zeros, {}));
    if (failed(up))
      return failure();
    adapters[param.getSymNameAttr()] = {*a, *up};
    return success();
  }

  /// `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`: of the tensor that the
  /// matrix is from, or by its own name. `{row}` stays, for the number of each expert; of a matrix
  /// whose rows are tensors nobody adapts these.
  static std::string nameForOthers(ParamOp param, StringRef part) {
    StringRef module = param.getOrigin().value_or(param.getSymName());
    if (module.contains(kRowPlaceholder) && param.getShape().size() == 2)
      module = param.getSymName();
    module.consume_back(".weight");
    return ("base_model.model." + module + "." + part + ".weight").str();
  }
};

} // namespace
} // namespace hydra
