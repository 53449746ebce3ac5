// Rows in groups, and those that the device counts: which templates sort and multiply them, and how
// many blocks that takes.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/KernelExpansion.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

/// As in templates/grouped.cuh; tiles of templates/matmul_hopper.cuh are as high.
constexpr int64_t kSide = 128, kPlainSide = 64, kThreads = 256;
constexpr int64_t kSharedBytes = 4 * 2 * 128 * (32 + 8) * 2;

std::string flag(bool set) { return set ? "true" : "false"; }

/// Whether a factor has rows of 16-byte pieces of 16-bit numbers.
bool isTiled(Value factor) {
  MemRefType type = typeOf(factor);
  return isNarrowFloat(type.getElementType()) && type.getShape().back() % 8 == 0 &&
         plan::alignmentOf(factor) >= 16;
}

/// How many tiles of that height rows in groups, and those without one, have at most.
int64_t mostTiles(int64_t rows, int64_t groups, int64_t height) {
  return std::min(rows, (rows + (groups + 1) * (height - 1)) / height);
}

SmallVector<std::string> parameterTypes(Value operand, Value result) {
  const std::string in = ("const " + cType(typeOf(operand).getElementType()) + " *").str();
  return {in, in, "const int *", (cType(typeOf(result).getElementType()) + " *").str()};
}

/// A call of a template with these operands, behind its name and its first arguments.
void launchGrouped(StepLauncher &launcher, StringRef name, const std::string &call,
                   const LaunchShape &shape, ArrayRef<Value> operands) {
  const SmallVector<std::string> types = parameterTypes(operands[0], operands[3]);
  launcher.launch(name, SmallVector<StringRef>(types.begin(), types.end()),
                  call + ">(a0, a1, a2, a3);", shape, operands,
                  {plan::kRead, plan::kRead, plan::kRead, plan::kWrite});
}

/// How templates/matmul_hopper.cuh multiplies: tiles of 128 rows and `width` columns, by as many
/// blocks as there are multiprocessors, which have a ring of stages and, for each warpgroup,
/// buffers.
struct WarpgroupTiles {
  int64_t blocks, width, stages, buffers, sharedBytes, scratchBytes;

  static constexpr int64_t kWarpgroups = 2, kWarpgroupThreads = 128 * (kWarpgroups + 1),
                           kNarrowest = 64, kDepth = 64;

  /// Of results with `columns` of `resultBytes` a number, of about `sums` products each.
  /// `perGroup`: the operands' maps are written for every group, as many pairs as the ring has
  /// stages and one; else there are `pairs` of operands. Nothing where the target has no
  /// warpgroups, does not say how many multiprocessors it has, or has no memory for their ring.
  static std::optional<WarpgroupTiles> of(TargetAttr target, int64_t columns, int64_t sums,
                                          int64_t resultBytes, bool perGroup, int64_t pairs = 1) {
    // All widths multiply as much, but for what is beyond the last column: fewest bytes are read.
    auto traffic = [&](int64_t w) { return ceilDiv(columns, w) * double(kSide + w); };
    return ofLeast(target, traffic, sums, resultBytes, perGroup, pairs);
  }

  /// The same for results of as many rows as the device counts, up to `rows`: the width that takes
  /// least in the mean of all numbers of rows.
  static std::optional<WarpgroupTiles> ofCounted(TargetAttr target, int64_t rows, int64_t columns,
                                                 int64_t sums, int64_t resultBytes) {
    auto time = [&](int64_t w) {
      double all = 0;
      for (int64_t height = 1; height <= ceilDiv(rows, kSide); ++height)
        all += timeOf(height * ceilDiv(columns, w), w, ceilDiv(sums, kDepth),
                      target.getMultiprocessors());
      return all;
    };
    return ofLeast(target, time, sums, resultBytes, /*perGroup=*/false, /*pairs=*/1);
  }

  /// Of all tiles, in steps of 256 columns, as `Units` of the template have it. A whole tile is
  /// also stored, which nothing is multiplied beside.
  static double timeOf(int64_t tiles, int64_t width, int64_t steps, int64_t blocks) {
    constexpr int64_t kMostParts = 8;
    constexpr double kStep[] = {0.5, 0.64, 0.73, 1.0}; // of 64, 128, 192 and 256 columns
    auto part = [&](int64_t w, int64_t parts) {
      return double(ceilDiv(steps, parts)) * kStep[w / kNarrowest - 1] +
             (parts > 1 ? 3.3 + 0.008 * double(parts * w) : 0.0);
    };
    auto store = [](int64_t w) { return 0.6 + 0.0105 * double(w); };
    const int64_t rest = tiles % blocks;
    const double whole = double(tiles / blocks) * (part(width, 1) + store(width));
    if (rest == 0)
      return whole;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t strips = 1; strips * kNarrowest <= width && rest * strips <= blocks; ++strips)
      if (const int64_t w = width / strips; width % (kNarrowest * strips) == 0)
        for (int64_t parts : {int64_t{1}, std::min(blocks / (rest * strips), kMostParts)})
          least = std::min(least, part(w, parts) + store(w));
    return whole + least;
  }

  /// With the width for which `cost` is least.
  static std::optional<WarpgroupTiles> ofLeast(TargetAttr target,
                                               llvm::function_ref<double(int64_t)> cost,
                                               int64_t sums, int64_t resultBytes, bool perGroup,
                                               int64_t pairs) {
    constexpr int64_t kWidest = 256, kNumber = 2, kMap = 128, kBarriers = 16, kWord = 4,
                      kLine = 128, kRows = 64, kLeast = 2;
    WarpgroupTiles tiles;
    tiles.blocks = target.getMultiprocessors();
    if (!target.has(kWarpgroupMatmul) || tiles.blocks < 1)
      return std::nullopt;
    tiles.width = kWidest;
    for (int64_t w = kWidest - kNarrowest; w >= kNarrowest; w -= kNarrowest)
      if (cost(w) < cost(tiles.width))
        tiles.width = w;
    // Short sums are stored often: as much of a tile as fits is buffered, beside three stages. Long
    // ones want four.
    const int64_t wanted = ceilDiv(sums, kDepth) < 64 ? 3 : 4;
    const int64_t stage = (kSide + tiles.width) * kDepth * kNumber + kBarriers,
                  buffer = kWarpgroups * (kRows * kLine + kBarriers + kWord),
                  rest = (1 + kWarpgroups) * kMap + kWarpgroups * kWord;
    const int64_t shared = target.getBlockShared() - rest;
    tiles.buffers = std::clamp((shared - wanted * stage) / buffer, kLeast,
                               std::max(kLeast, tiles.width * resultBytes / kLine));
    tiles.stages = (shared - tiles.buffers * buffer) / stage;
    tiles.sharedBytes = rest + tiles.buffers * buffer + tiles.stages * stage;
    const int64_t maps = 2 * (perGroup ? tiles.stages + 1 : pairs) + kWarpgroups;
    // And the sums of a part of a tile.
    tiles.scratchBytes = tiles.blocks * (maps * kMap + kSide * tiles.width * 4);
    return tiles.stages >= kLeast ? std::optional(tiles) : std::nullopt;
  }

  void launch(StepLauncher &launcher, StringRef name, StringRef call,
              ArrayRef<Value> operands) const {
    const SmallVector<std::string> types = parameterTypes(operands[0], operands[3]);
    Arguments args;
    for (auto [operand, type] : llvm::zip_equal(operands, types)) {
      args.add(operand, args.values.size() < 3 ? plan::kRead : plan::kWrite);
      args.types.back() = type;
    }
    launch(launcher, name, call, "a0, a1, a2, a3", std::move(args));
  }

  /// A call of a template with these operands, behind its first arguments.
  void launch(StepLauncher &launcher, StringRef name, StringRef call, StringRef operands,
              Arguments args) const {
    Value scratch =
        plan::BufferOp::create(launcher.b, args.values.front().getLoc(),
                               MemRefType::get({scratchBytes / 4}, launcher.b.getI32Type()),
                               plan::Segment::transient, plan::Category::workspace, IntegerAttr());
    const std::string place = args.add(scratch, plan::kWrite);
    args.types.back() = "unsigned char *";
    const std::string done = args.add(launcher.ownCounters(kWarpgroups * blocks), plan::kUpdate);
    launcher.launch(name, SmallVector<StringRef>(args.types.begin(), args.types.end()),
                    llvm::formatv("{0}, {1}, {2}, {3}>({4}, {5}, {6});", call, width, stages,
                                  buffers, operands, place, done)
                        .str(),
                    {blocks, 1, 1, kWarpgroupThreads, sharedBytes}, args.values, args.access);
  }
};

//===-- Rows that the device counts ---------------------------------------------------------===//

int64_t rowStride(Value matrix) { return plan::stridesOf(typeOf(matrix))[0]; }

/// Whether the copy engine takes it: rows of 16-byte pieces, which follow each other.
bool isMapped(Value matrix) {
  MemRefType type = typeOf(matrix);
  if (type.getRank() != 2)
    return false;
  const SmallVector<int64_t> strides = plan::stridesOf(type);
  return strides[1] == 1 && strides[0] >= type.getDimSize(1) &&
         strides[0] * elementBytes(type.getElementType()) % 16 == 0 &&
         plan::alignmentOf(matrix) >= 16;
}

/// Whether templates/matmul_hopper.cuh multiplies such operands.
bool hasWarpgroupOperands(plan::MatmulOp op) {
  const Type in = typeOf(op.getA()).getElementType(), out = typeOf(op.getC()).getElementType();
  return !op.getBias() && !op.getWeightScale() && !op.getScaleA() && !op.getSums() &&
         !op.getGelu() && !op.getCompute() && isNarrowFloat(in) &&
         typeOf(op.getB()).getElementType() == in && (out == in || out.isF32()) &&
         isMapped(op.getA()) && isMapped(op.getB()) && isMapped(op.getC());
}

/// A matmul by the rows that there are: c = a b of the first rows of a, or (`sums`) aT b over them.
struct CountedMatmul {
  bool sums;
  int64_t rows, width, inner; ///< of all; columns of c; what else there is: columns of a

  /// What kCountedAttr says of a matmul that templates/matmul_hopper.cuh can do.
  static std::optional<CountedMatmul> of(plan::MatmulOp op) {
    auto mark = op->getAttrOfType<DenseI64ArrayAttr>(plan::kCountedAttr);
    if (!mark || op.getAccumulate() || !hasWarpgroupOperands(op))
      return std::nullopt;
    const bool sums = op.getTransposeA();
    const SmallVector<int64_t, 2> withRows{0, sums ? 1 : 2}; // a and b, or a and c
    const ArrayRef<int64_t> counted = mark.asArrayRef().drop_front();
    if (counted != ArrayRef<int64_t>(withRows) || (sums && op.getTransposeB()) ||
        llvm::any_of(counted,
                     [&](int64_t i) { return typeOf(op->getOperand(i)).getDimSize(0) != mark[0]; }))
      return std::nullopt;
    return CountedMatmul{sums, mark[0], typeOf(op.getC()).getDimSize(1),
                         typeOf(op.getA()).getDimSize(1)};
  }

  std::optional<WarpgroupTiles> tiles(TargetAttr target, Value c) const {
    const int64_t bytes = elementBytes(typeOf(c).getElementType());
    if (sums) // of a mean number of rows
      return WarpgroupTiles::of(target, width, rows / 2, bytes, /*perGroup=*/false);
    return WarpgroupTiles::ofCounted(target, rows, width, inner, bytes);
  }
};

/// Of all terms together.
int64_t rowsOf(ArrayRef<CountedTerm> terms) {
  int64_t rows = 0;
  for (const CountedTerm &term : terms) {
    plan::MatmulOp matmul = term.matmul;
    rows += typeOf(matmul.getA()).getDimSize(0);
  }
  return rows;
}

std::optional<WarpgroupTiles> tilesOfSums(ArrayRef<CountedTerm> terms, TargetAttr target) {
  plan::MatmulOp first = terms.front().matmul;
  return WarpgroupTiles::of(target, typeOf(first.getC()).getDimSize(1),
                            rowsOf(terms) / 2, // of mean numbers of rows
                            elementBytes(typeOf(first.getC()).getElementType()),
                            /*perGroup=*/false, static_cast<int64_t>(terms.size()));
}

} // namespace

bool canCountRows(plan::MatmulOp op, TargetAttr target) {
  const auto counted = CountedMatmul::of(op);
  return counted && counted->tiles(target, op.getC());
}

bool canAddUp(ArrayRef<CountedTerm> terms, TargetAttr target) {
  constexpr size_t kMost = 32, kOwn = 3, kOfTerm = 3; // terms; arguments of a launch, and of a term
  if (terms.size() > kMost || kOwn + kOfTerm * terms.size() > plan::kMostArguments)
    return false;
  plan::MatmulOp first = terms.front().matmul;
  return typeOf(first.getC()).getElementType().isF32() && tilesOfSums(terms, target) &&
         llvm::all_of(terms, [&](const CountedTerm &term) {
           plan::MatmulOp op = term.matmul;
           const int64_t counted[] = {typeOf(op.getA()).getDimSize(0), 0, 1}; // a and b
           auto mark = op->getAttrOfType<DenseI64ArrayAttr>(plan::kCountedAttr);
           return (!term.count || (mark && mark.asArrayRef() == ArrayRef(counted))) &&
                  op.getTransposeA() && !op.getTransposeB() && hasWarpgroupOperands(op) &&
                  op.getAccumulate() == (op != first) &&
                  plan::sameElements(op.getC(), first.getC()) &&
                  typeOf(op.getC()) == typeOf(first.getC()) &&
                  typeOf(op.getA()).getElementType() == typeOf(first.getA()).getElementType() &&
                  rowStride(op.getA()) == rowStride(first.getA()) &&
                  rowStride(op.getB()) == rowStride(first.getB());
         });
}

void expandCountedSum(StepLauncher &launcher, ArrayRef<CountedTerm> terms) {
  plan::MatmulOp first = terms.front().matmul;
  const MemRefType from = typeOf(first.getA());
  Arguments args;
  std::string pairs;
  for (const CountedTerm &term : terms) {
    plan::MatmulOp op = term.matmul;
    const int64_t rows = typeOf(op.getA()).getDimSize(0);
    const std::string a = args.add(op.getA(), plan::kRead), b = args.add(op.getB(), plan::kRead);
    const std::string count = term.count ? llvm::formatv("hopper_matmul::rowsOf<{0}>({1})", rows,
                                                         args.add(term.count, plan::kRead))
                                               .str()
                                         : std::to_string(rows);
    pairs += llvm::formatv("{0}{{{1}, {2}, {3}}", pairs.empty() ? "" : ", ", a, b, count);
  }
  const std::string c = args.add(first.getC(), plan::kWrite);
  const std::string call =
      llvm::formatv("const hopper_matmul::RowPair<{0}> pairs[] = {{{1}};\n"
                    "outerOfPairs<{2}, {3}, {4}, {5}, {6}, {7}, {8}",
                    cType(from.getElementType()), pairs, terms.size(), rowsOf(terms),
                    from.getDimSize(1), typeOf(first.getC()).getDimSize(1), rowStride(first.getA()),
                    rowStride(first.getB()), rowStride(first.getC()))
          .str();
  tilesOfSums(terms, launcher.target)
      ->launch(launcher, "counted_sum", call, "pairs, " + c, std::move(args));
}

void expandCountedMatmul(StepLauncher &launcher, plan::MatmulOp op, Value count) {
  const CountedMatmul counted = *CountedMatmul::of(op);
  const std::string strides = llvm::formatv("{0}, {1}, {2}", rowStride(op.getA()),
                                            rowStride(op.getB()), rowStride(op.getC()))
                                  .str();
  const Value operands[] = {op.getA(), op.getB(), count, op.getC()};
  const std::string call =
      counted.sums ? llvm::formatv("outerOfFirstRows<{0}, {1}, {2}, {3}", counted.rows,
                                   counted.inner, counted.width, strides)
                         .str()
                   : llvm::formatv("linearOfFirstRows<{0}, {1}, {2}, {3}, {4}", counted.rows,
                                   counted.width, counted.inner, flag(!op.getTransposeB()), strides)
                         .str();
  counted.tiles(launcher.target, op.getC())
      ->launch(launcher, counted.sums ? "counted_outer" : "counted_linear", call, operands);
}

void expandRoute(StepLauncher &launcher, plan::RouteOp op) {
  ArrayRef<int64_t> mask = typeOf(op.getMask()).getShape();
  const int64_t k = typeOf(op.getPlace()).getDimSize(1);
  Value groups = plan::BufferOp::create(
      launcher.b, op.getLoc(), MemRefType::get({mask[0], k}, launcher.b.getI32Type()),
      plan::Segment::transient, plan::Category::workspace, IntegerAttr());
  const std::string sizes = llvm::formatv("<{0}, {1}, {2}>", mask[0], mask[1], k).str();
  launcher.launch("list_groups", {"const unsigned char *", "int *"},
                  "listGroups" + sizes + "(a0, a1);", {ceilDiv(mask[0], 256), 1, 1, 256, 0},
                  {op.getMask(), groups}, {plan::kRead, plan::kWrite});
  launcher.launch("route", {"const int *", "int *", "int *", "int *", "int *"},
                  "routeRows" + sizes + "(a0, a1, a2, a3, a4);", {mask[1], 1, 1, 1024, 0},
                  {groups, op.getIndex(), op.getGroup(), op.getPlace(), op.getOffsets()},
                  {plan::kRead, plan::kWrite, plan::kWrite, plan::kWrite, plan::kWrite});
}

void expandGroupedLinear(StepLauncher &launcher, plan::GroupedLinearOp op) {
  const int64_t rows = typeOf(op.getX()).getDimSize(0), k = typeOf(op.getX()).getDimSize(1);
  const int64_t groups = typeOf(op.getW()).getDimSize(0), n = typeOf(op.getY()).getDimSize(1);
  const bool tiled =
      isTiled(op.getX()) && isTiled(op.getW()) && n % 8 == 0 && plan::alignmentOf(op.getY()) >= 16;
  const auto warpgroups =
      tiled
          ? WarpgroupTiles::of(launcher.target, n, k,
                               elementBytes(typeOf(op.getY()).getElementType()), /*perGroup=*/false)
          : std::nullopt;
  const int64_t side = tiled ? kSide : kPlainSide;
  std::string call = llvm::formatv("groupedLinear{0}<{1}, {2}, {3}, {4}, {5}",
                                   warpgroups ? "Hopper"
                                   : tiled    ? ""
                                              : "Plain",
                                   rows, groups, n, k, flag(op.getTransposed()))
                         .str();
  const Value operands[] = {op.getX(), op.getW(), op.getOffsets(), op.getY()};
  if (warpgroups)
    return warpgroups->launch(launcher, "grouped_linear", call, operands);
  if (!tiled)
    call += ", " + flag(op.getCompute().has_value());
  launchGrouped(
      launcher, "grouped_linear", call,
      {ceilDiv(n, side) * mostTiles(rows, groups, side), 1, 1, kThreads, tiled ? kSharedBytes : 0},
      operands);
}

void expandGroupedOuter(StepLauncher &launcher, plan::GroupedOuterOp op) {
  const int64_t rows = typeOf(op.getA()).getDimSize(0), n = typeOf(op.getA()).getDimSize(1);
  const int64_t groups = typeOf(op.getC()).getDimSize(0), k = typeOf(op.getB()).getDimSize(1);
  const bool tiled = isTiled(op.getA()) && isTiled(op.getB()) && plan::alignmentOf(op.getC()) >= 16;
  const auto warpgroups =
      tiled
          ? WarpgroupTiles::of(launcher.target, k, rows / groups,
                               elementBytes(typeOf(op.getC()).getElementType()), /*perGroup=*/true)
          : std::nullopt;
  const int64_t side = tiled ? kSide : kPlainSide;
  std::string call = llvm::formatv("groupedOuter{0}<{1}, {2}, {3}, {4}",
                                   warpgroups ? "Hopper"
                                   : tiled    ? ""
                                              : "Plain",
                                   rows, groups, n, k)
                         .str();
  const Value operands[] = {op.getA(), op.getB(), op.getOffsets(), op.getC()};
  if (warpgroups)
    return warpgroups->launch(launcher, "grouped_outer", call, operands);
  if (!tiled)
    call += ", " + flag(op.getCompute().has_value());
  launchGrouped(launcher, "grouped_outer", call,
                {ceilDiv(k, side), ceilDiv(n, side), groups, kThreads, tiled ? kSharedBytes : 0},
                operands);
}

} // namespace hydra::cuda
