// hydra-join-weight-gradients: a weight that is used several times has one matmul for its gradient.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Target.h"
#include "passes/Passes.h"
#include "passes/place/Layouts.h"

#include "llvm/ADT/MapVector.h"

#include <map>
#include <optional>
#include <vector>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_JOINWEIGHTGRADIENTS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-join-weight-gradients";
/// Rows that begin elsewhere in a buffer are read by whole pieces of so many bytes.
constexpr int64_t kPiece = 16;

/// What a chain of additions adds up that nothing else reads, from the last one on.
SmallVector<Value> termsOf(AddOp last) {
  SmallVector<Value> terms, open{last->getOperand(1), last->getOperand(0)};
  while (!open.empty()) {
    const Value term = open.pop_back_val();
    auto inner = term.getDefiningOp<AddOp>();
    if (inner && inner->hasOneUse() && inner->getBlock() == last->getBlock())
      open.append({inner->getOperand(1), inner->getOperand(0)});
    else
      terms.push_back(term);
  }
  return terms;
}

/// Whether a concatenation reads a value, itself or reshaped.
bool isJoined(Value v) {
  return llvm::any_of(v.getUsers(), [](Operation *user) {
    return isa<ConcatOp>(user) || (isa<ReshapeOp>(user) && isJoined(user->getResult(0)));
  });
}

/// Whether a program returns a value, itself or reshaped: outputs have bytes of their own.
bool isReturned(Value v) {
  return llvm::any_of(v.getUsers(), [](Operation *user) {
    return isa<ReturnOp>(user) || (isa<ReshapeOp>(user) && isReturned(user->getResult(0)));
  });
}

/// Whether what makes a matrix may write it anywhere: it is neither a variable, an input or a part
/// of another value, nor lies somewhere else already.
bool canBePlaced(Value matrix) {
  Operation *op = build::behindReshapes(matrix).getDefiningOp();
  if (!op || op->getNumOperands() == 0 || isa<LoopOp>(op))
    return false;
  auto storage = dyn_cast<StorageOpInterface>(op);
  const Value made = build::behindReshapes(matrix);
  return !(storage && storage.viewedOperand()) && !isJoined(made) && !isReturned(made);
}

/// The value whose bytes a value is, itself or the one that it views.
Value ownerOf(Value v) {
  while (auto storage = v.getDefiningOp<StorageOpInterface>()) {
    const std::optional<unsigned> viewed = storage.viewedOperand();
    if (!viewed)
      break;
    v = storage->getOperand(*viewed);
  }
  return v;
}

/// Whether a group is expected to compute a value and all that reads it, without storing it.
bool staysInGroup(Value v) {
  return isa<RowWiseOpInterface>(v.getDefiningOp()) &&
         llvm::all_of(v.getUsers(), [](Operation *user) { return isa<RowWiseOpInterface>(user); });
}

/// The bytes of values that are live at each operation of a program in its present order, without
/// inputs, variables and what groups will not store. An estimate: groups move their operations.
class LiveBytes {
public:
  explicit LiveBytes(Block &body) : live(body.getOperations().size()) {
    for (auto [i, op] : llvm::enumerate(body)) {
      positions[&op] = i;
      if (!isa<UseOp>(op))
        for (Value result : op.getResults())
          if (ownerOf(result) == result && !staysInGroup(result))
            ranges[result] = {i, i};
    }
    for (Operation &op : body)
      op.walk([&](Operation *reader) {
        for (Value operand : reader->getOperands())
          if (auto it = ranges.find(ownerOf(operand)); it != ranges.end())
            it->second.last = std::max(it->second.last, positions.lookup(&op));
      });
    for (const auto &[value, range] : ranges)
      add(range, bytesOf(value.getType()));
    most = live.empty() ? 0 : *llvm::max_element(live);
  }

  /// Makes one value of each list, from where the first of it is made to `reader`, which is there
  /// instead of the values `gone`. Where that makes the peak more than `percent` higher than it was
  /// at first, it changes nothing and returns false.
  bool join(ArrayRef<SmallVector<Value>> lists, ArrayRef<Value> gone, Operation *reader,
            int64_t percent) {
    const std::vector<int64_t> before = live;
    const size_t end = positions.lookup(reader);
    for (const SmallVector<Value> &parts : lists) {
      Range whole{end, end};
      int64_t bytes = 0;
      for (Value part : parts) {
        const Value owner = ownerOf(part);
        const Range range = ranges.lookup(owner);
        const int64_t own = bytesOf(owner.getType());
        add(range, -own);
        whole = {std::min(whole.first, range.first), std::max(whole.last, range.last)};
        bytes += own;
      }
      add(whole, bytes);
    }
    for (Value value : gone)
      add(ranges.lookup(value), -bytesOf(value.getType()));
    if (*llvm::max_element(live) <= most + most / 100 * percent)
      return true;
    live = before;
    return false;
  }

private:
  struct Range {
    size_t first = 0, last = 0;
  };

  void add(const Range &range, int64_t bytes) {
    for (size_t i = range.first; i <= range.last; ++i)
      live[i] += bytes;
  }

  llvm::DenseMap<Operation *, size_t> positions;
  llvm::MapVector<Value, Range> ranges; ///< of values that will have bytes
  std::vector<int64_t> live;            ///< by position
  int64_t most = 0;                     ///< at first
};

/// Matmuls of one weight's gradient, whose operands can be joined.
using Matmuls = SmallVector<MatmulOp>;

struct JoinWeightGradients : impl::JoinWeightGradientsBase<JoinWeightGradients> {
  using JoinWeightGradientsBase::JoinWeightGradientsBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    countsRows = targetOf(getOperation()).has(kWarpgroupMatmul);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      if (entry.isProgram())
        join(entry);
  }

private:
  void join(EntryOp entry) {
    joinedRows.clear();
    gatheredRows.clear();
    live.reset();
    Block &body = entry.getBody().front();
    for (auto compact : body.getOps<CompactOp>())
      gatheredRows.insert(build::shapeOf(compact.getMask())[0]);
    SmallVector<AddOp> roots;
    for (auto add : body.getOps<AddOp>()) {
      const bool isTerm = add->hasOneUse() && isa<AddOp>(*add->user_begin()) &&
                          add->user_begin()->getBlock() == &body;
      if (!isTerm)
        roots.push_back(add);
    }
    for (AddOp root : roots)
      join(root);
  }

  void join(AddOp root) {
    // By what else matmuls have: the formats of their operands, and attributes.
    llvm::MapVector<DictionaryAttr, Matmuls> alike;
    for (Value term : termsOf(root))
      if (MatmulOp matmul = ownMatmul(term, root))
        alike[kindOf(matmul)].push_back(matmul);
    for (auto &[kind, matmuls] : alike) {
      llvm::sort(matmuls, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      if (!pays(matmuls))
        continue;
      ++weights;
      this->matmuls += matmuls.size();
      replace(matmuls, joined(matmuls));
    }
  }

  /// Lets a value stand for the last of several terms of a sum, and leaves out the others.
  static void replace(ArrayRef<MatmulOp> matmuls, Value sum) {
    for (MatmulOp matmul : matmuls.drop_back()) {
      Operation *add = *matmul->user_begin();
      add->getResult(0).replaceAllUsesWith(add->getOperand(add->getOperand(0) == matmul.getC()));
      add->erase();
      matmul->erase();
    }
    MatmulOp last = matmuls.back();
    last.getC().replaceAllUsesWith(sum);
    last->erase();
  }

  /// The matmul aᵀ b over rows, of two matrices, which makes a term for this sum alone.
  MatmulOp ownMatmul(Value term, AddOp root) const {
    auto matmul = term.getDefiningOp<MatmulOp>();
    if (!matmul || !matmul->hasOneUse() || matmul->getBlock() != root->getBlock() ||
        matmul.getAddend() || !matmul.getTransposeA() || matmul.getTransposeB() ||
        matmul.getQuantizeA() || matmul.getQuantizeB() || build::typeOf(term).getRank() != 2 ||
        term.getType() != root->getResult(0).getType())
      return {};
    if (gatheredRows.contains(build::shapeOf(matmul.getA())[0]) && !canEndByParts(matmul))
      return {};
    for (Value matrix : {matmul.getA(), matmul.getB()})
      if (bytesOf(matrix.getType()) / build::shapeOf(matrix)[0] % kPiece != 0)
        return {};
    return matmul;
  }

  /// Whether a sum over joined rows can end, in each part, where the gathered rows of this part end
  /// (hydra-skip-rows): where a kernel reads how many there are. Elsewhere its terms would be
  /// switches one after the other, with nothing won.
  bool canEndByParts(MatmulOp matmul) const {
    auto element = [](Value v) { return build::typeOf(v).getElementType(); };
    return countsRows && isNarrowFloat(element(matmul.getA())) &&
           element(matmul.getA()) == element(matmul.getB()) && element(matmul.getC()).isF32();
  }

  static DictionaryAttr kindOf(MatmulOp matmul) {
    Builder b(matmul.getContext());
    NamedAttrList kind(matmul->getAttrDictionary());
    auto element = [](Value v) { return TypeAttr::get(build::typeOf(v).getElementType()); };
    kind.set("a", element(matmul.getA()));
    kind.set("b", element(matmul.getB()));
    return kind.getDictionary(matmul.getContext());
  }

  /// Whether the operands of several matmuls can be made side by side without a higher peak.
  bool pays(const Matmuls &matmuls) {
    if (matmuls.size() < 2)
      return false;
    SmallVector<SmallVector<Value>> lists; // those that are not joined yet
    DenseSet<Value> seen;
    for (const bool left : {true, false}) {
      const SmallVector<Value> parts = operands(matmuls, left);
      if (joinedRows.count(parts) > 0)
        continue;
      for (Value part : parts)
        if (!canBePlaced(part) || !seen.insert(build::behindReshapes(part)).second)
          return false;
      lists.push_back(parts);
    }
    MatmulOp last = matmuls.back();
    if (!live)
      live.emplace(*last->getBlock());
    SmallVector<Value> gone;
    for (MatmulOp matmul : ArrayRef(matmuls).drop_back())
      gone.push_back(matmul.getC());
    return live->join(lists, gone, last, percent);
  }

  static SmallVector<Value> operands(const Matmuls &matmuls, bool left) {
    return llvm::map_to_vector(
        matmuls, [&](MatmulOp matmul) { return left ? matmul.getA() : matmul.getB(); });
  }

  /// One matmul where the last of several stands.
  Value joined(const Matmuls &matmuls) {
    MatmulOp first = matmuls.front(), last = matmuls.back();
    OpBuilder b(last);
    Value a = rows(b, operands(matmuls, true)), x = rows(b, operands(matmuls, false));
    const Location loc = withCategory(madeBy(kPass, last.getLoc()), Category::grad);
    return MatmulOp::create(b, loc, a, x, Value(), b.getUnitAttr(), UnitAttr(),
                            first.getDtypeAttr(), first.getReducedReductionAttr(),
                            first.getFullPrecisionAttr(), first.getComputeAttr())
        .getC();
  }

  /// Matrices below each other. What multiplies another weight as well is joined once.
  Value rows(OpBuilder &b, const SmallVector<Value> &parts) {
    Value &whole = joinedRows[parts];
    Operation *reader = &*b.getInsertionPoint();
    if (whole && !whole.getDefiningOp()->isBeforeInBlock(reader))
      whole.getDefiningOp()->moveBefore(reader); // which reads all parts, or stands behind who does
    if (whole)
      return whole;
    auto concat =
        ConcatOp::create(b, madeBy(kPass, parts.front().getLoc()), parts, b.getI64IntegerAttr(0));
    concat->setAttr(kPartsInPlaceAttr, b.getUnitAttr());
    return whole = concat.getY();
  }

  /// In the order of no address: only looked up.
  struct InOrder {
    bool operator()(const SmallVector<Value> &a, const SmallVector<Value> &b) const {
      return std::lexicographical_compare(
          a.begin(), a.end(), b.begin(), b.end(),
          [](Value x, Value y) { return x.getAsOpaquePointer() < y.getAsOpaquePointer(); });
    }
  };
  std::map<SmallVector<Value>, Value, InOrder> joinedRows;
  DenseSet<int64_t> gatheredRows; ///< capacities of what hydra.compact gathers
  bool countsRows = false;        ///< by the target's kernels
  std::optional<LiveBytes> live;  ///< of the program at hand; where it has something to join
};

} // namespace
} // namespace hydra
