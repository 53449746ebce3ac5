// How attention over slots is cut into blocks.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

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

/// Launches a kernel with the operands of both templates; `text` is its call with the arguments
/// between what they are and the mask.
void launchCached(StepLauncher &launcher, plan::CachedAttentionOp op, const Parts &parts,
                  const LaunchShape &blocks, StringRef call) {
  const std::string element = cType(typeOf(op.getQ()).getElementType()).str(),
                    in = "const " + element + " *", out = element + " *";
  SmallVector<StringRef> types = {in, in, in, "const float *", out, out, out};
  SmallVector<Value> args = {op.getQ(),    op.getK(),      op.getV(), op.getPosition(),
                             op.getKeys(), op.getValues(), op.getO()};
  SmallVector<int64_t> access = {plan::kRead,   plan::kRead,   plan::kRead, plan::kRead,
                                 plan::kUpdate, plan::kUpdate, plan::kWrite};
  if (parts.sums) {
    types.append({"float *", "uint32 *"});
    args.append({parts.sums, parts.counters});
    access.append({plan::kWrite, plan::kUpdate});
  }
  launcher.launch("cached_attention", types,
                  llvm::formatv("{0}(a0, a1, a2, a3, a6, a4, a5, {1}, {{{2}, {3}}, {4});", call,
                                parts.sums ? "a7, a8" : "nullptr, nullptr", op.getChunk(),
                                op.getWindow(), scoresText(op, llvm::numbers::log2e))
                      .str(),
                  blocks, args, access);
}

/// On tensor cores; false where they cannot.
bool expandTiles(StepLauncher &launcher, plan::CachedAttentionOp op, const CachedShape &shape) {
  constexpr int64_t kPiece = 8, kRows = 16, kMostWidth = 256, kWarps = 8, kLeast = kWarps * 16,
                    kMostParts = 64;
  const Type type = typeOf(op.getQ()).getElementType();
  if (!isNarrowFloat(type) || std::max(shape.width, shape.valueWidth) > kMostWidth ||
      !hasPieces({op.getQ(), op.getK(), op.getV(), op.getKeys(), op.getValues()}, kPiece))
    return false;
  // A block a multiprocessor, if each then has as many tokens as its warps read at a time.
  const int64_t tiles = ceilDiv(shape.queries(), kRows), rows = std::min(kRows, shape.queries());
  const int64_t wanted =
      launcher.target.getMultiprocessors() / (shape.batch * shape.keyHeads * tiles);
  const int64_t parts =
      std::clamp<int64_t>(std::min(wanted, ceilDiv(shape.seen, kLeast)), 1, kMostParts);

  const bool bulk = launcher.target.has(kBulkCopies);
  const int64_t pieces = 2 * ceilDiv(shape.width, 32) + 4 * ceilDiv(shape.valueWidth, 64);
  const int64_t stageBytes =
      kWarps * (bulk ? 2 * kRows * (shape.width + shape.valueWidth) : 512 * pieces);
  const int64_t most = launcher.target.getBlockShared() - 1024;
  const int64_t stages = std::clamp<int64_t>(ceilDiv(shape.seen, parts * kLeast), 1,
                                             std::max<int64_t>(1, most / stageBytes));
  const int64_t joined = kWarps * rows * (2 + shape.valueWidth) * 4;
  const int64_t shared = std::max(stages * stageBytes, joined);
  if (shared > most)
    return false;
  launchCached(launcher, op, Parts(launcher, op, shape, tiles, parts, rows),
               {parts * tiles, shape.keyHeads, shape.batch, 32 * kWarps, shared},
               llvm::formatv("cachedAttentionTiles<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, "
                             "{9}, {10}, {11}, {12}, {13}, {14}>",
                             cType(type), shape.calls, shape.heads, shape.keyHeads, shape.width,
                             shape.valueWidth, shape.slots, parts, kWarps, stages,
                             bulk ? "true" : "false", layout(op.getQ()), layout(op.getK()),
                             layout(op.getV()), layout(op.getO()))
                   .str());
  return true;
}

} // namespace

void expandCachedAttention(StepLauncher &launcher, plan::CachedAttentionOp op) {
  const CachedShape shape(op);
  if (expandTiles(launcher, op, shape))
    return;
  Value q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO(), keys = op.getKeys(),
        values = op.getValues();
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
}

} // namespace hydra::cuda
