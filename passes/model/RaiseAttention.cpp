// hydra-raise-attention: matmuls, cap, mask and softmax over all scores become attention.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <optional>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_RAISEATTENTION
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-raise-attention";

/// What a query sees: the conjunction of all conditions found.
struct Mask {
  bool causal = false;
  int64_t chunk = 0, window = 0; // 0: none

  /// Two sizes of chunks are no chunk of either size.
  bool addChunk(int64_t size) {
    if (chunk != 0 && chunk != size)
      return false;
    chunk = size;
    return true;
  }
  void addWindow(int64_t size) { window = window ? std::min(window, size) : size; }
};

/// The operation of type Op that makes a value which nothing else reads; null otherwise.
template <typename Op> Op only(Value v) { return v.hasOneUse() ? v.getDefiningOp<Op>() : Op(); }

bool sameButLeadingUnits(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  auto isUnit = [](int64_t d) { return d == 1; };
  return llvm::equal(llvm::make_range(llvm::find_if_not(a, isUnit), a.end()),
                     llvm::make_range(llvm::find_if_not(b, isUnit), b.end()));
}

/// `v` itself, or what it repeats: through broadcasts, and reshapes that only add or drop leading
/// dimensions of 1, which leave the last dimensions where they are.
Value repeated(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<BroadcastOp, ReshapeOp>(op) ||
        (isa<ReshapeOp>(op) &&
         !sameButLeadingUnits(build::shapeOf(v), build::shapeOf(op->getOperand(0)))))
      break;
    v = op->getOperand(0);
  }
  return v;
}

Value withoutReshapes(Value v) {
  while (auto reshape = v.getDefiningOp<ReshapeOp>())
    v = reshape.getX();
  return v;
}

/// The axis (0 rows, 1 columns) of scores [S, Sk] that an index tensor counts; -1 for anything
/// else, such as one whose type does not hold every index.
int64_t indexAxis(Value v, ArrayRef<int64_t> scores) {
  while (auto broadcast = v.getDefiningOp<BroadcastOp>())
    v = broadcast.getX();
  auto iota = v.getDefiningOp<IotaOp>();
  if (!iota || isNarrowFloat(build::typeOf(v).getElementType()))
    return -1;
  ArrayRef<int64_t> shape = build::shapeOf(v);
  const int64_t leading = static_cast<int64_t>(shape.size()) - 2, axis = iota.getAxis() - leading;
  return (shape == scores || shape == scores.take_back(2)) && axis >= 0 ? axis : -1;
}

/// Numbers of chunks along an axis of scores.
struct Chunks {
  int64_t size = 0;  // 0: not that
  int64_t axis = -1; // 0 rows, 1 columns
};

/// The chunks that an index tensor [S, 1] or [Sk], repeated over scores, numbers.
Chunks chunksOf(Value v, ArrayRef<int64_t> scores) {
  v = repeated(v);
  SmallVector<int64_t> shape(build::shapeOf(v));
  if (shape.size() == 1)
    shape.insert(shape.begin(), 1);
  if (shape.size() < 2 ||
      llvm::any_of(ArrayRef(shape).drop_back(2), [](int64_t d) { return d != 1; }))
    return {};
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const bool overRows = rows == scores[2] && columns == 1,
             overColumns = rows == 1 && columns == scores[3];
  if (overRows == overColumns)
    return {};
  v = withoutReshapes(v);
  if (auto slice = v.getDefiningOp<SliceOp>()) { // the last chunk may be short
    if (slice.getStart() != 0 || build::typeOf(v).getRank() != 1)
      return {};
    v = withoutReshapes(slice.getX());
  }
  auto iota = v.getDefiningOp<IotaOp>();
  ArrayRef<int64_t> numbers = iota ? build::shapeOf(v) : ArrayRef<int64_t>();
  if (numbers.size() != 2 || iota.getAxis() != 0 ||
      isNarrowFloat(build::typeOf(v).getElementType()))
    return {};
  return {numbers[1], overRows ? 0 : 1};
}

/// Adds what a condition over scores keeps to the mask; false when it is no known mask.
bool addCondition(Value condition, ArrayRef<int64_t> scores, Mask &mask) {
  while (auto broadcast = condition.getDefiningOp<BroadcastOp>())
    condition = broadcast.getX();
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare)
    return false;
  Value a = compare.getA(), b = compare.getB();
  Predicate is = compare.getPredicate();
  if (is == Predicate::ge || is == Predicate::gt) {
    std::swap(a, b);
    is = is == Predicate::ge ? Predicate::le : Predicate::lt;
  }
  if (is == Predicate::le && indexAxis(a, scores) == 1 && indexAxis(b, scores) == 0)
    return mask.causal = true;
  if (is == Predicate::eq) {
    const Chunks first = chunksOf(a, scores), second = chunksOf(b, scores);
    return first.size > 0 && first.size == second.size && first.axis != second.axis &&
           mask.addChunk(first.size);
  }
  auto behind = a.getDefiningOp<SubOp>();
  std::optional<double> width = build::constantValue(b);
  if (is == Predicate::lt && behind && width && indexAxis(behind.getA(), scores) == 0 &&
      indexAxis(behind.getB(), scores) == 1) {
    // i - j < width: whole numbers below it, of which all of the scores are enough.
    const double whole = std::ceil(std::min(*width, static_cast<double>(scores[2] + scores[3])));
    if (!(whole >= 1.0))
      return false;
    mask.addWindow(static_cast<int64_t>(whole));
    return true;
  }
  return false;
}

/// Whether a score of this value, scaled afterwards, gets no weight beside any other: minus
/// infinity, or as text can write it.
bool isNever(Value v, double scale) {
  constexpr double kNever = -1e9;
  std::optional<double> value = build::constantValue(v);
  return value && *value * scale <= kNever;
}

/// One attention written out, as it is recognised.
struct Pattern {
  MatmulOp output;             // weights by values
  Value queries, keys, values; // [B, H, S, hd], [B, Hk, Sk, hd], [B, Hk, Sk, dv]
  SmallVector<int64_t> scores;
  double scale = 1.0;
  double cap = 0.0; // 0: none
  Mask mask;
};

struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      SmallVector<SoftmaxOp> softmaxes(entry.getBody().front().getOps<SoftmaxOp>());
      for (SoftmaxOp softmax : softmaxes)
        if (std::optional<Pattern> pattern = match(softmax))
          raise(*pattern);
    }
  }

private:
  static std::optional<Pattern> match(SoftmaxOp softmax) {
    Pattern p;
    p.scores.assign(build::shapeOf(softmax.getX()).begin(), build::shapeOf(softmax.getX()).end());
    if (p.scores.size() != 4 || !softmax.getY().hasOneUse())
      return std::nullopt;
    // Behind the softmax: the matmul with the values, the rows maybe in another shape.
    Operation *user = *softmax.getY().user_begin();
    if (auto reshape = dyn_cast<ReshapeOp>(user); reshape && reshape.getY().hasOneUse())
      user = *reshape.getY().user_begin();
    p.output = dyn_cast<MatmulOp>(user);
    if (!p.output || p.output.getTransposeA() || p.output.getTransposeB() ||
        withoutReshapes(p.output.getA()) != softmax.getY())
      return std::nullopt;
    p.values = p.output.getB();
    // Before it: masks and scales in any order, maybe a cap, then the matmul of queries and keys.
    // What multiplies a hyperbolic tangent is the cap; what it is of is scaled by the rest.
    Value x = softmax.getX();
    while (true) {
      // What masks are written for. Under a cap nothing is hidden.
      const bool wholeScores = build::shapeOf(x) == ArrayRef(p.scores) && p.cap == 0.0;
      if (auto select = only<SelectOp>(x)) {
        if (!wholeScores || !isNever(select.getB(), p.scale) ||
            !addCondition(select.getC(), p.scores, p.mask))
          return std::nullopt;
        x = select.getA();
      } else if (auto add = only<AddOp>(x)) { // a mask of zeros and minus infinities
        auto bias = repeated(add.getB()).getDefiningOp<SelectOp>();
        if (!wholeScores || !bias || build::constantValue(bias.getA()) != 0.0 ||
            !isNever(bias.getB(), p.scale) || !addCondition(bias.getC(), p.scores, p.mask))
          return std::nullopt;
        x = add.getA();
      } else if (auto mul = only<MulOp>(x); mul && build::constantValue(mul.getB())) {
        p.scale *= *build::constantValue(mul.getB());
        x = mul.getA();
      } else if (auto div = only<DivOp>(x); div && build::constantValue(div.getB())) {
        p.scale /= *build::constantValue(div.getB());
        x = div.getA();
      } else if (auto tanh = only<TanhOp>(x); tanh && p.cap == 0.0) {
        if (!isNumber(p.scale))
          return std::nullopt;
        p.cap = p.scale;
        x = tanh.getX();
      } else if (auto reshape = only<ReshapeOp>(x)) {
        x = reshape.getX();
      } else {
        break;
      }
    }
    auto scores = only<MatmulOp>(x);
    if (!scores || scores.getTransposeA() || !isPlain(scores) || !isPlain(p.output))
      return std::nullopt;
    p.queries = scores.getA();
    p.keys = scores.getB();
    if (!scores.getTransposeB()) { // keys transposed by hand
      auto transpose = p.keys.getDefiningOp<TransposeOp>();
      if (!transpose || transpose.getOrder() != SmallVector<int64_t>{0, 1, 3, 2})
        return std::nullopt;
      p.keys = transpose.getX();
    }
    return fits(p) ? std::optional(p) : std::nullopt;
  }

  /// Attention adds nothing to its matmuls, and chooses the formats that it computes in.
  static bool isPlain(MatmulOp op) {
    return !op.getAddend() && !op.getDtype() && !op.getFullPrecision() && !op.getCompute();
  }

  /// Whether attention can have it as scale or cap.
  static bool isNumber(double x) { return x > 0.0 && std::isfinite(static_cast<float>(x)); }

  /// Whether the shapes are those of attention, and scale and mask are ones that it has. A query
  /// that sees no key, which a window or a chunk could leave behind the last key, is nothing that a
  /// softmax has.
  static bool fits(const Pattern &p) {
    if (!isNumber(p.scale) || (p.cap != 0.0 && !isNumber(p.scale / static_cast<float>(p.cap))))
      return false;
    ArrayRef<int64_t> q = build::shapeOf(p.queries), k = build::shapeOf(p.keys),
                      v = build::shapeOf(p.values);
    return q.size() == 4 && k.size() == 4 && v.size() == 4 && k[1] == v[1] && k[2] == v[2] &&
           std::max(q[3], v[3]) <= AttentionOp::kWidest && k[0] == p.scores[0] &&
           v[0] == p.scores[0] && k[2] == p.scores[3] && p.scores[1] % k[1] == 0 &&
           q[1] * q[2] == p.scores[1] * p.scores[2] && (q[1] == k[1] || q[1] == p.scores[1]) &&
           (p.mask.causal ? p.scores[2] == p.scores[3] : p.mask.chunk == 0 && p.mask.window == 0);
  }

  void raise(const Pattern &p) {
    MatmulOp output = p.output;
    OpBuilder b(output);
    Location loc = madeBy(kPass, output.getLoc());
    auto headsLast = [&](Value x, Category category = Category::act_attn) -> Value {
      return TransposeOp::create(b, withCategory(loc, category), x,
                                 b.getI64ArrayAttr({0, 2, 1, 3}));
    };
    const int64_t width = build::shapeOf(p.queries)[3];
    Value q = build::reshape(b, loc, p.queries, {p.scores[0], p.scores[1], p.scores[2], width});
    auto optional = [&](int64_t n) { return n > 0 ? b.getI64IntegerAttr(n) : IntegerAttr(); };
    SmallVector<int64_t> shape = {p.scores[0], p.scores[2], p.scores[1],
                                  build::shapeOf(p.values)[3]};
    auto type = RankedTensorType::get(shape, build::typeOf(p.queries).getElementType());
    auto attention = AttentionOp::create(
        b, loc, TypeRange{type}, headsLast(q), headsLast(p.keys), headsLast(p.values),
        b.getF64FloatAttr(p.scale), p.cap > 0.0 ? b.getF64FloatAttr(p.cap) : FloatAttr(),
        p.mask.causal ? b.getUnitAttr() : UnitAttr(), optional(p.mask.chunk),
        optional(p.mask.window), /*dropout=*/Attribute(), /*dropkey=*/Attribute(),
        /*saving=*/UnitAttr());
    Value o = build::reshape(b, loc, headsLast(attention.getO(), Category::act_attn_out),
                             build::shapeOf(output.getResult()));
    output.getResult().replaceAllUsesWith(o);
    eraseDead(output);
    ++raised;
  }

  /// Erases an operation, and what only it needed.
  static void eraseDead(Operation *op) {
    llvm::SmallSetVector<Operation *, 8> work; // an operation once, however many values it gives
    work.insert(op);
    while (!work.empty()) {
      Operation *next = work.pop_back_val();
      if (next != op && (!isOpTriviallyDead(next) || isa<UseOp>(next)))
        continue;
      for (Value operand : next->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          work.insert(producer);
      next->erase();
    }
  }
};

} // namespace
} // namespace hydra
