// Which matmuls have so few rows that they are a sweep over weights, how that is cut into blocks,
// and which of them compute their rows.
#include "compiler/codegen/cuda/ExpandSteps.h"
#include "compiler/codegen/cuda/GroupText.h"
#include "compiler/codegen/cuda/LoopPlacement.h"
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/KernelExpansion.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

/// The rows of a matrix [.., columns] at one distance from each other.
struct Rows {
  int64_t count = 1, stride = 0;
};

/// Of a buffer whose last dimension is dense; nothing where its leading dimensions do not merge.
std::optional<Rows> rowsOf(Value buffer) {
  SmallVector<int64_t> strides = plan::stridesOf(typeOf(buffer));
  ArrayRef<int64_t> shape = typeOf(buffer).getShape();
  if (shape.back() > 1 && strides.back() != 1)
    return std::nullopt;
  Rows rows;
  for (size_t d = shape.size() - 1; d-- > 0;) {
    if (shape[d] == 1)
      continue;
    if (rows.count == 1)
      rows.stride = strides[d];
    else if (strides[d] != rows.stride * rows.count)
      return std::nullopt;
    rows.count *= shape[d];
  }
  return rows;
}

/// What a sweep multiplies.
struct FewRows {
  Rows a, w, c;
  int64_t n = 0, k = 0;
  int64_t weightBits = 16; ///< of a number of w: 16, or 8 or 4 of integers

  bool ofIntegers() const { return weightBits < 16; }
  /// Numbers of a row of w in so many bytes.
  int64_t numbersIn(int64_t bytes) const { return bytes * 8 / weightBits; }
  /// Numbers of a row of w that four threads take at a time.
  int64_t piece() const { return numbersIn(64); }
  /// Warps of the bulk kernel that multiply: integers take more instructions.
  int64_t bulkWarps() const { return ofIntegers() ? 16 : 8; }
  Team team() const { return {.threads = 32 * bulkWarps()}; }
};

/// Nothing where a matmul is none.
std::optional<FewRows> fewRowsOf(plan::MatmulOp op) {
  constexpr int64_t kLoad = 16; // bytes that a thread loads at a time
  Value a = op.getA(), w = op.getB(), c = op.getC();
  if (op.getTransposeA() || !op.getTransposeB() || op.getAccumulate() || op.getGelu() ||
      op.getSums() || op.getCompute() || !isNarrowFloat(typeOf(a).getElementType()) ||
      typeOf(w).getRank() != 2)
    return std::nullopt;
  const std::optional<Rows> ofA = rowsOf(a), ofW = rowsOf(w), ofC = rowsOf(c);
  const int64_t k = typeOf(a).getShape().back(), n = typeOf(c).getShape().back();
  const int64_t weightBytes = elementBytes(typeOf(w).getElementType());
  if (!ofA || !ofW || !ofC || ofA->count > kFewRows || ofA->stride % 8 ||
      ofW->stride * weightBytes % kLoad ||
      std::min(plan::alignmentOf(a), plan::alignmentOf(w)) < 16)
    return std::nullopt;
  const FewRows few{*ofA, *ofW, *ofC, n, k, op.isPacked() ? 4 : 8 * weightBytes};
  return k % few.numbersIn(kLoad) == 0 ? std::optional(few) : std::nullopt;
}

/// Bytes behind a row of a: those that eight lanes read at a time, of two rows, meet all banks.
int64_t padOf(const FewRows &few) { return few.ofIntegers() ? 16 : 64; }

/// Elements between computed rows.
int64_t computedPitch(const FewRows &few) {
  constexpr int64_t kNumber = 2, kLine = 128;
  return (ceilDiv(few.k * kNumber, kLine) * kLine + padOf(few)) / kNumber;
}

/// A template and how it is launched.
struct Sweep {
  StringRef name;
  std::string how; ///< its arguments between those of the matmul and whether there is a bias
  LaunchShape shape;
};

/// Copies by the multiprocessor itself: a block on each, with a ring of all that a block may have,
/// or of integers half of that: a fuller one takes memory's time from the kernels in front, and
/// they take longer to multiply than to come. Or of what the target says. Behind the ring are
/// `computed` bytes of rows, where they are not copied.
FailureOr<Sweep> bulkSweep(Operation *op, TargetAttr target, const SaidSizes &said,
                           const FewRows &few, int64_t computed) {
  // Of integers one of the four joins sums instead.
  constexpr int64_t kCopiers = 4, kRows = 16, kNumber = 2, kPad = 64;
  const int64_t warps = few.bulkWarps();
  const int64_t m = few.a.count, n = few.n, k = few.k;
  const int64_t piece = warps * few.piece();
  auto stageBytes = [&](int64_t depth) {
    return kRows * (depth * few.weightBits / 8 + kPad) +
           (computed ? 0 : m * (depth * kNumber + padOf(few)));
  };
  struct Ring {
    int64_t depth, room; // stages that fit
  };
  // Rows in pieces of 2 KiB where at least three stages of them fit.
  constexpr int64_t kRowBytes = 2048, kLeastStages = 3;
  auto ringIn = [&](int64_t shared) {
    const int64_t sums = 2 * warps * kRows * (m | 1) * 4, barriers = 1024;
    const int64_t bytes = shared - sums - barriers - computed;
    int64_t depth = std::min<int64_t>(said.get("depth").value_or(few.numbersIn(kRowBytes)),
                                      ceilDiv(k, piece) * piece);
    while (!said.get("depth") && depth > piece && bytes / stageBytes(depth) < kLeastStages)
      depth = ceilDiv(depth / 2, piece) * piece;
    return Ring{depth, bytes / stageBytes(depth)};
  };
  Ring ring = ringIn(target.getBlockShared());
  if (said.empty() && few.ofIntegers())
    if (const Ring half = ringIn(target.getBlockShared() / 2); half.room >= kLeastStages)
      ring = half;
  const auto [depth, room] = ring;
  const int64_t stages = said.get("stages").value_or(room);
  if (depth % piece != 0)
    return said.refuse(op) << "of a weight of "
                           << (few.weightBits == 4 ? "half a byte"
                                                   : std::to_string(few.weightBits / 8) + " bytes")
                           << " a number a stage has a multiple of " << piece << " as its depth";
  if (said.get("warps"))
    return said.refuse(op) << "the kernel for targets with bulk copies has " << warps << " warps";
  if (!said.empty() && (stages > room || room < 2))
    return said.refuse(op) << "of " << m << " rows a block of " << target.getName() << " has "
                           << "room for " << room << " stages of depth " << depth;
  return Sweep{"fewRowsBulk",
               llvm::formatv("{0}, {1}", depth, stages).str(),
               {std::min<int64_t>(n, target.getMultiprocessors()), 1, 1, 32 * (warps + kCopiers),
                stages * stageBytes(depth) + computed}};
}

/// Loads by threads. Four pieces of 64 bytes are in flight and four are multiplied; of more rows,
/// and of integers, half as many.
FailureOr<Sweep> plainSweep(Operation *op, const SaidSizes &said, const FewRows &few) {
  const int64_t m = few.a.count;
  const bool many = m > 8;
  // A piece of integers has two or four times as many numbers of a.
  const bool packed = few.weightBits == 4;
  const int64_t tiles = many && !packed ? 2 : 1, most = many || few.ofIntegers() ? 8 : 16,
                flight = packed ? 1 : many || few.ofIntegers() ? 2 : 4;
  const int64_t warps = said.get("warps").value_or(
      std::clamp<int64_t>(ceilDiv(ceilDiv(few.k, few.piece()), 2 * flight), 1, most));
  if (said.get("depth") || said.get("stages"))
    return said.refuse(op) << "only the kernel for targets with bulk copies has depth and stages, "
                           << "of weights of i8 only where it computes its rows";
  if (warps > most)
    return said.refuse(op) << "of " << m << " rows a block has at most " << most << " warps";
  return Sweep{"fewRowsMatmul",
               llvm::formatv("{0}, {1}, {2}", tiles, warps, flight).str(),
               {ceilDiv(few.n, 16 * tiles), 1, 1, 32 * warps, 0}};
}

/// The operand of a matmul, computed by a group: the text that does it, with what it reads and what
/// else it writes as further arguments.
std::string computeText(plan::LaunchOp launch, plan::MatmulOp matmul, const FewRows &few,
                        Arguments &arguments) {
  RowProgram program = *programOf(launch);
  const std::vector<RowResult> all = std::exchange(program.results, {});
  auto args = launch.getArgs();
  auto tensorOf = [&](Value value, int64_t how) {
    return SliceTensor{arguments.add(value, how), typeOf(value), plan::stridesOf(typeOf(value)),
                       LoopPlacement::outsideAlignment(value, 1), how != plan::kRead};
  };
  SmallVector<SliceTensor> inputs, results;
  for (Value input : args.take_front(program.inputs.size()))
    inputs.push_back(tensorOf(input, plan::kRead));
  for (auto [result, value] : llvm::zip(all, args.drop_front(program.inputs.size()))) {
    if (plan::sameElements(value, matmul.getA())) {
      SmallVector<int64_t> strides(typeOf(value).getRank(), 1);
      int64_t stride = computedPitch(few);
      for (size_t d = strides.size() - 1; d-- > 0; stride *= typeOf(value).getDimSize(d))
        strides[d] = stride;
      program.results.push_back(result);
      results.push_back({"x", typeOf(value), strides, 16});
      if (!cast<BoolAttr>(launch->getAttr(plan::kComputedAttr)).getValue())
        continue;
    }
    program.results.push_back(result);
    results.push_back(tensorOf(value, plan::kWrite));
  }
  return llvm::formatv(", [&]({0} *x) {{\n{1}}", cType(typeOf(matmul.getA()).getElementType()),
                       teamGroupText(program, allRows(program), inputs, results, few.team()));
}

} // namespace

bool canComputeOperand(plan::LaunchOp launch, plan::MatmulOp matmul, TargetAttr target) {
  // What a block reads of the second cache in about the time that a launch would take, and its
  // part of shared memory that rows may take from the ring.
  constexpr int64_t kMostRead = 64 << 10, kMostShare = 4;
  const std::optional<FewRows> few = fewRowsOf(matmul);
  if (!few || !target.has(kBulkCopies))
    return false;
  const std::optional<RowProgram> program = programOf(launch);
  if (!program || !canBeTeamText(*program, few->a.count, few->team()) ||
      program->domain.rows() != few->a.count || program->domain.columns() != few->k)
    return false;
  const auto inputs = launch.getArgs().take_front(program->inputs.size()),
             results = launch.getArgs().drop_front(program->inputs.size());
  int64_t makers = 0;
  for (auto [result, value] : llvm::zip(program->results, results))
    if (plan::sameElements(value, matmul.getA()))
      makers += result.form == RowForm::Tile ? 1 : 2;
  if (makers != 1)
    return false;
  int64_t bytes = 0;
  for (Value input : inputs)
    bytes += typeOf(input).getNumElements() * elementBytes(typeOf(input).getElementType());
  return bytes <= kMostRead &&
         kMostShare * few->a.count * computedPitch(*few) * 2 <= target.getBlockShared();
}

FailureOr<bool> expandFewRows(StepLauncher &launcher, plan::MatmulOp op, plan::LaunchOp rows) {
  const std::optional<FewRows> few = fewRowsOf(op);
  if (!few)
    return false;
  const int64_t m = few->a.count, pitch = rows ? computedPitch(*few) : 0;
  Value a = op.getA(), w = op.getB(), c = op.getC(), bias = op.getBias();
  const SaidSizes said = launcher.tiles.of(kFewRowsMatmul);
  // To widen integers takes more warps than the bulk kernel has, unless that saves a launch.
  const FailureOr<Sweep> sweep = launcher.target.has(kBulkCopies) && (rows || !few->ofIntegers())
                                     ? bulkSweep(op, launcher.target, said, *few, 2 * m * pitch)
                                     : plainSweep(op, said, *few);
  if (failed(sweep))
    return failure();

  Arguments arguments;
  const std::string ofA = rows ? "nullptr" : arguments.add(a, plan::kRead),
                    weight = arguments.add(w, plan::kRead), ofC = arguments.add(c, plan::kWrite),
                    ofW = op.isPacked() ? "reinterpret_cast<const Int4Bytes *>(" + weight + ")"
                                        : weight,
                    ofBias = bias ? arguments.add(bias, plan::kRead) : "nullptr";
  std::string computed, compute;
  if (rows) {
    computed = ", " + std::to_string(pitch);
    compute = computeText(rows, op, *few, arguments);
    // The operand is neither written nor read.
    launcher.take(cast<plan::StepInterface>(rows.getOperation()));
    launcher.setWork(launcher.flops(), std::max<int64_t>(0, launcher.bytes() - 4 * m * few->k));
  }
  if (op.getWeightScale())
    compute += ", " + arguments.add(op.getWeightScale(), plan::kRead);
  const auto waits = isNeverWritten(w) ? StepLauncher::Waits::Itself : StepLauncher::Waits::First;
  launcher.launch(kFewRowsMatmul,
                  SmallVector<StringRef>(arguments.types.begin(), arguments.types.end()),
                  llvm::formatv("{0}<{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}{11}>"
                                "({12}, {13}, {14}, {15}{16});",
                                sweep->name, cType(typeOf(a).getElementType()),
                                cType(typeOf(c).getElementType()), m, few->n, few->k, few->a.stride,
                                few->w.stride, few->c.stride, sweep->how, bias ? "true" : "false",
                                computed, ofA, ofW, ofBias, ofC, compute)
                      .str(),
                  sweep->shape, arguments.values, arguments.access, waits);
  return true;
}

} // namespace hydra::cuda
