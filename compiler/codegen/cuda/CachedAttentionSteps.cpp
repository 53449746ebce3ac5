// How attention over slots is cut into blocks.
#include "compiler/codegen/cuda/StepLauncher.h"

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

} // namespace

void expandCachedAttention(StepLauncher &launcher, plan::CachedAttentionOp op) {
  Value q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO(), keys = op.getKeys(),
        values = op.getValues();
  ArrayRef<int64_t> qs = typeOf(q).getShape(), ks = typeOf(keys).getShape();
  const int64_t batch = qs[0], calls = qs[1], heads = qs[2], width = qs[3];
  const int64_t keyHeads = ks[1], slots = ks[2], valueWidth = typeOf(values).getShape()[3];
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
  const int64_t queries = calls * (heads / keyHeads);
  const int64_t rows =
      std::min<int64_t>(llvm::PowerOf2Ceil(queries),
                        std::min(kMostRows, static_cast<int64_t>(llvm::bit_floor<uint64_t>(
                                                std::max<int64_t>(1, kMostHeld / held)))));
  const int64_t tiles = ceilDiv(queries, rows);
  const int64_t threads = valueWidth * rows <= 2560 ? 128 : 64; // what is joined fits 48 KiB

  const int64_t flight = rows == 1 ? 8 : 4; // rows of each group of lanes
  int64_t seen = slots;
  for (const auto size : {op.getChunk(), op.getWindow()})
    seen = size ? std::min<int64_t>(seen, size + calls) : seen;
  // Four blocks a multiprocessor, if each then has as many tokens as its groups read at a time.
  const int64_t wanted =
      ceilDiv(4 * launcher.target.getMultiprocessors(), batch * keyHeads * tiles);
  const int64_t parts =
      std::clamp<int64_t>(std::min(wanted, ceilDiv(seen, threads / lanes * flight)), 1, 64);

  using namespace plan;
  Value result = o;
  if (parts > 1)
    result = BufferOp::create(launcher.b, op.getLoc(),
                              MemRefType::get({batch, keyHeads, tiles, parts, rows, 2 + valueWidth},
                                              launcher.b.getF32Type()),
                              Segment::transient, Category::workspace, IntegerAttr());
  const std::string in = "const " + element + " *", out = element + " *";
  const double log2e = 1.4426950408889634;
  launcher.launch(
      "cached_attention",
      {in, in, in, "const float *", out, out, parts > 1 ? StringRef("float *") : out},
      llvm::formatv("cachedAttention<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, "
                    "{12}, {13}, {14}, {15}, {16}>(a0, a1, a2, a3, {17}, SlotMask<{1}, {6}>{{{18}, "
                    "{19}}, {20});",
                    element, calls, heads, keyHeads, width, valueWidth, slots, parts, rows, lanes,
                    piece, threads, flight, layout(q), layout(k), layout(v), layout(o),
                    parts > 1 ? "nullptr, a4, a5, a6" : "a6, a4, a5, nullptr", op.getChunk(),
                    op.getWindow(), numberText(op.getScale().convertToDouble() * log2e))
          .str(),
      {parts * tiles, keyHeads, batch, threads, 0},
      {q, k, v, op.getPosition(), keys, values, result},
      {kRead, kRead, kRead, kRead, kUpdate, kUpdate, kWrite});
  if (parts > 1)
    launcher.launch(
        "cached_attention_join", {"const float *", out},
        llvm::formatv("joinCachedAttention<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, "
                      "128, {8}>(a0, a1);",
                      element, batch, calls, heads, keyHeads, valueWidth, parts, rows, layout(o))
            .str(),
        {ceilDiv(batch * heads * calls, 4), 1, 1, 128, 0}, {result, o}, {kRead, kWrite});
}

} // namespace hydra::cuda
