// How attention over slots is cut into blocks, and which blocks compute what they multiply.
#include "compiler/codegen/cuda/CachedOperands.h"
#include "compiler/codegen/cuda/ExpandSteps.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/BufferUsers.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

std::string layout(Value buffer) {
  SmallVector<int64_t> strides = plan::stridesOf(typeOf(buffer));
  return llvm::formatv("Layout<{0}, {1}, {2}>", strides[0], strides[1], strides[2]).str();
}

/// Whether every row of all tensors begins at a multiple of 16 bytes and has whole pieces of them.
bool hasPieces(ArrayRef<Value> tensors, int64_t piece) {
  return llvm::all_of(tensors, [&](Value tensor) {
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(tensor));
    ArrayRef<int64_t> shape = typeOf(tensor).getShape();
    for (unsigned d = 0; d < 3; ++d)
      if (shape[d] > 1 && strides[d] % piece)
        return false;
    return shape[3] % piece == 0 && plan::alignmentOf(tensor) >= 16;
  });
}

/// What both templates are told.
struct CachedShape {
  explicit CachedShape(plan::CachedAttentionOp op) {
    ArrayRef<int64_t> qs = typeOf(op.getQ()).getShape(), ks = typeOf(op.getKeys()).getShape();
    batch = qs[0], calls = qs[1], heads = qs[2], width = qs[3];
    keyHeads = ks[1], slots = ks[2], valueWidth = typeOf(op.getValues()).getShape()[3];
    seen = slots;
    for (const auto size : {op.getChunk(), op.getWindow()})
      seen = size ? std::min<int64_t>(seen, size + calls) : seen;
  }
  int64_t queries() const { return calls * (heads / keyHeads); } ///< that share keys

  int64_t batch, calls, heads, width, keyHeads, slots, valueWidth;
  int64_t seen; ///< tokens, by a call's
};

/// Where the parts of `rows` queries in `tiles` are left for the block that joins them, and what
/// tells it.
struct Parts {
  Parts(StepLauncher &launcher, plan::CachedAttentionOp op, const CachedShape &shape, int64_t tiles,
        int64_t parts, int64_t rows) {
    if (parts == 1)
      return;
    auto type =
        MemRefType::get({shape.batch, shape.keyHeads, tiles, parts, rows, 2 + shape.valueWidth},
                        launcher.b.getF32Type());
    sums = plan::BufferOp::create(launcher.b, op.getLoc(), type, plan::Segment::transient,
                                  plan::Category::workspace, IntegerAttr());
    counters = launcher.zeroCounters(shape.batch * shape.keyHeads * tiles);
  }

  Value sums, counters; ///< none of one part
};

/// Launches a kernel with the operands of both templates; `call` is its name with what it is told.
/// Of tiles (`computed`) blocks may make operands; `waits` says whether the template waits itself.
void launchCached(StepLauncher &launcher, plan::CachedAttentionOp op, const Parts &parts,
                  const LaunchShape &blocks, StringRef call,
                  const ComputedOperands *computed = nullptr,
                  StepLauncher::Waits waits = StepLauncher::Waits::First) {
  Arguments arguments;
  std::string rows, compute;
  const auto operand = [&](Value value, const std::optional<ComputedOperand> &own, StringRef name) {
    if (!own)
      return arguments.add(value, plan::kRead);
    rows += llvm::formatv("__shared__ __align__(16) {0} {1}[{2}];\n",
                          cType(typeOf(value).getElementType()), name, blockNumbers(op, value));
    compute += computedText(*computed, *own, computed->teamOf(own), op, value, name, arguments);
    return name.str();
  };
  const std::optional<ComputedOperand> none;
  const std::string q = operand(op.getQ(), computed ? computed->q : none, "q"),
                    k = operand(op.getK(), computed ? computed->k : none, "k"),
                    v = arguments.add(op.getV(), plan::kRead),
                    position = arguments.add(op.getPosition(), plan::kRead),
                    keys = arguments.add(op.getKeys(), plan::kUpdate),
                    values = arguments.add(op.getValues(), plan::kUpdate),
                    o = arguments.add(op.getO(), plan::kWrite);
  const std::string sums = parts.sums ? arguments.add(parts.sums, plan::kWrite) : "nullptr";
  std::string counters = "nullptr";
  if (parts.counters) {
    counters = "reinterpret_cast<uint32 *>(" + arguments.add(parts.counters, plan::kUpdate) + ")";
  }
  if (!compute.empty())
    compute = ", [&] {\n" + compute + "}";
  launcher.launch(
      "cached_attention", SmallVector<StringRef>(arguments.types.begin(), arguments.types.end()),
      llvm::formatv("{0}{1}({2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {{{11}, {12}}, "
                    "{13}{14});",
                    rows, call, q, k, v, position, o, keys, values, sums, counters, op.getChunk(),
                    op.getWindow(), scoresText(op, llvm::numbers::log2e), compute)
          .str(),
      blocks, arguments.values, arguments.access, waits);
}

/// Whether nothing in front of a step, in any program, can have been writing what it finds in
/// slots, or where: it alone stores there, and the position is given.
bool slotsAreItsOwn(plan::CachedAttentionOp op) {
  const auto program = op->getParentOfType<plan::ProgramOp>();
  const auto alone = [&](Value slots) {
    plan::BufferOp buffer = plan::placeOf(slots).buffer;
    return !buffer.isTransient() &&
           llvm::all_of(plan::usersOf(buffer.getBuffer()), [&](Operation *user) {
             return user == op || user->getParentOfType<plan::ProgramOp>() != program;
           });
  };
  return isNeverWritten(op.getPosition()) && alone(op.getKeys()) && alone(op.getValues());
}

/// How tensor cores are given tiles.
struct Tiles {
  static constexpr int64_t kRows = 16, kWarps = 8;

  int64_t count, rows, parts, stages, shared;
  bool bulk, late;
};

/// `computed`: what blocks make of operands. Nothing where tensor cores cannot.
std::optional<Tiles> tilesOf(plan::CachedAttentionOp op, const CachedShape &shape,
                             const ComputedOperands *computed, TargetAttr target) {
  constexpr int64_t kPiece = 8, kMostWidth = 256, kLeast = Tiles::kWarps * 16, kMostParts = 64;
  SmallVector<Value> read{op.getV(), op.getKeys(), op.getValues()};
  int64_t ofBlock = 0; // bytes of what is computed
  for (const auto &[value, own] : {std::pair(op.getQ(), computed ? &computed->q : nullptr),
                                   std::pair(op.getK(), computed ? &computed->k : nullptr)}) {
    if (!own || !*own) {
      read.push_back(value);
      continue;
    }
    ofBlock += sharedBytesOf(*computed, **own, op, value);
  }
  if (!isNarrowFloat(typeOf(op.getQ()).getElementType()) || shape.width % kPiece != 0 ||
      std::max(shape.width, shape.valueWidth) > kMostWidth || !hasPieces(read, kPiece))
    return std::nullopt;
  Tiles tiles;
  tiles.count = ceilDiv(shape.queries(), Tiles::kRows);
  tiles.rows = std::min(Tiles::kRows, shape.queries());
  // A block a multiprocessor, if each then has as many tokens as its warps read at a time.
  const int64_t wanted = target.getMultiprocessors() / (shape.batch * shape.keyHeads * tiles.count);
  tiles.parts = std::clamp<int64_t>(std::min(wanted, ceilDiv(shape.seen, kLeast)), 1, kMostParts);

  tiles.bulk = target.has(kBulkCopies);
  // Rows of many tokens are copied ahead like those in slots.
  tiles.late = tiles.bulk && tiles.count == 1 && slotsAreItsOwn(op);
  const int64_t pieces = 2 * ceilDiv(shape.width, 32) + 4 * ceilDiv(shape.valueWidth, 64);
  const int64_t stageBytes =
      Tiles::kWarps *
      (tiles.bulk ? 2 * Tiles::kRows * (shape.width + shape.valueWidth) : 512 * pieces);
  const int64_t most = target.getBlockShared() - 1024 - ofBlock;
  tiles.stages = std::clamp<int64_t>(ceilDiv(shape.seen, tiles.parts * kLeast), 1,
                                     std::max<int64_t>(1, most / stageBytes));
  const int64_t joined = Tiles::kWarps * tiles.rows * (2 + shape.valueWidth) * 4;
  tiles.shared = std::max(tiles.stages * stageBytes, joined);
  return tiles.shared <= most ? std::optional(tiles) : std::nullopt;
}

/// On tensor cores; false where they cannot.
bool expandTiles(StepLauncher &launcher, plan::CachedAttentionOp op, const CachedShape &shape,
                 const ComputedOperands *computed) {
  const std::optional<Tiles> tiles = tilesOf(op, shape, computed, launcher.target);
  if (!tiles)
    return false;
  const auto rowsOf = [&](Value value, bool own, int64_t heads) {
    return own ? llvm::formatv("OfBlock<{0}, {1}>", heads, shape.width).str() : layout(value);
  };
  launchCached(
      launcher, op, Parts(launcher, op, shape, tiles->count, tiles->parts, tiles->rows),
      {tiles->parts * tiles->count, shape.keyHeads, shape.batch, 32 * Tiles::kWarps, tiles->shared},
      llvm::formatv("cachedAttentionTiles<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, "
                    "{9}, {10}, {11}, {12}, {13}, {14}, {15}>",
                    cType(typeOf(op.getQ()).getElementType()), shape.calls, shape.heads,
                    shape.keyHeads, shape.width, shape.valueWidth, shape.slots, tiles->parts,
                    Tiles::kWarps, tiles->stages, tiles->bulk, tiles->late,
                    rowsOf(op.getQ(), computed && computed->q, shape.heads / shape.keyHeads),
                    rowsOf(op.getK(), computed && computed->k, 1), layout(op.getV()),
                    layout(op.getO()))
          .str(),
      computed, tiles->late ? StepLauncher::Waits::Itself : StepLauncher::Waits::First);
  return true;
}

} // namespace

bool canComputeOperands(ArrayRef<plan::LaunchOp> launches, plan::CachedAttentionOp op,
                        TargetAttr target) {
  const std::optional<ComputedOperands> computed = computedOperands(op, launches);
  if (!computed)
    return false;
  const std::optional<Tiles> tiles = tilesOf(op, CachedShape(op), &*computed, target);
  return tiles && tiles->late;
}

LogicalResult expandCachedAttention(StepLauncher &launcher, plan::CachedAttentionOp op,
                                    ArrayRef<plan::LaunchOp> launches) {
  const CachedShape shape(op);
  std::optional<ComputedOperands> computed;
  if (!launches.empty()) {
    computed = computedOperands(op, launches);
    if (!computed)
      return op.emitOpError("cannot compute what launches in front of it make");
    // What they make is neither written nor read.
    int64_t bytes = 0;
    for (plan::LaunchOp launch : launches)
      for (auto [made, access] : llvm::zip(launch.getArgs(), launch.getAccess()))
        if (access != plan::kRead)
          bytes += 2 * typeOf(made).getNumElements() * elementBytes(typeOf(made).getElementType());
    launcher.take(llvm::map_to_vector(launches, [](plan::LaunchOp launch) {
      return cast<plan::StepInterface>(launch.getOperation());
    }));
    launcher.setWork(launcher.flops(), std::max<int64_t>(0, launcher.bytes() - bytes));
  }
  if (expandTiles(launcher, op, shape, computed ? &*computed : nullptr))
    return success();
  if (computed)
    return op.emitOpError("has no tiles to compute its operands for");
  Value q = op.getQ(), k = op.getK(), v = op.getV(), keys = op.getKeys(), values = op.getValues();
  const auto [batch, calls, heads, width, keyHeads, slots, valueWidth, seen] = shape;
  const Type type = typeOf(q).getElementType();
  const std::string element = cType(type).str();

  int64_t piece = 128 / type.getIntOrFloatBitWidth();
  if (!hasPieces({q, k, v, keys, values}, piece))
    piece = 1;
  const int64_t lanes =
      piece == 1 ? 32
                 : std::min<int64_t>(32, llvm::PowerOf2Ceil(std::max(width, valueWidth) / piece));
  // Numbers of a query and of what it comes to that a thread holds.
  constexpr int64_t kMostHeld = 128, kMostRows = 8;
  const int64_t held = piece * (ceilDiv(width, lanes * piece) + ceilDiv(valueWidth, lanes * piece));
  const int64_t queries = shape.queries();
  const int64_t rows =
      std::min<int64_t>(llvm::PowerOf2Ceil(queries),
                        std::min(kMostRows, static_cast<int64_t>(llvm::bit_floor<uint64_t>(
                                                std::max<int64_t>(1, kMostHeld / held)))));
  const int64_t tiles = ceilDiv(queries, rows);
  const int64_t threads = valueWidth * rows <= 2560 ? 128 : 64; // what is joined fits 48 KiB

  const int64_t flight = rows == 1 ? 8 : 4; // rows of each group of lanes
  // Four blocks a multiprocessor, if each then has as many tokens as its groups read at a time.
  const int64_t wanted =
      ceilDiv(4 * launcher.target.getMultiprocessors(), batch * keyHeads * tiles);
  const int64_t parts =
      std::clamp<int64_t>(std::min(wanted, ceilDiv(seen, threads / lanes * flight)), 1, 64);

  launchCached(launcher, op, Parts(launcher, op, shape, tiles, parts, rows),
               {parts * tiles, keyHeads, batch, threads, 0},
               llvm::formatv("cachedAttention<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, "
                             "{10}, {11}, {12}, {13}, {14}, {15}, {16}>",
                             cType(type), calls, heads, keyHeads, width, valueWidth, slots, parts,
                             rows, lanes, piece, threads, flight, layout(q), layout(k), layout(v),
                             layout(op.getO()))
                   .str());
  return success();
}

} // namespace hydra::cuda
