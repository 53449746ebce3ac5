// Which template, and of which shape, computes attention on a target.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

class AttentionExpander {
public:
  explicit AttentionExpander(StepLauncher &launcher) : launcher(launcher) {}

  void expand(plan::AttentionOp op) {
    auto args = llvm::to_vector(op->getOperands());
    Attention a = describe(op, ArrayRef(args).take_front(4));
    bool saves = args.size() > 4;
    std::string in = "const " + a.element + " *", out = a.element + " *";
    bool own = a.warpgroups;
    int64_t m = own ? warpgroups(a, a.queries, a.heads, a.widest() <= 80 ? 3 : 2) : rowTiles(a);
    int64_t stages = a.widest() <= 80 ? 4 : 5;
    std::string body =
        (Twine(own       ? "hopperForward"
               : a.tiled ? "attentionForward"
                         : "plainForward") +
         parameters(a, own ? blockText(a, m, stages) : std::to_string(m),
                    ArrayRef(args).take_front(4)) +
         "(a0, a1, a2, a3, " + (saves ? "a4" : "nullptr") + ", " + a.mask + ", " + a.scale + ");")
            .str();
    SmallVector<StringRef> types{in, in, in, out};
    SmallVector<int64_t> access{plan::kRead, plan::kRead, plan::kRead, plan::kWrite};
    if (saves) {
      types.push_back("float *");
      access.push_back(plan::kWrite);
    }
    launcher.launch("attention_forward", types, body,
                    own ? hopperShape(a, m, a.queries, a.heads, tileBytes(a.width), stages, 0)
                        : shapeFor(a, m, a.queries, a.heads, 64 * m + 256, 0),
                    args, access);
    offer(op, a, plan::LibraryFunction::attention);
  }

  void expand(plan::AttentionGradOp op) {
    Value dO = op.getDO(), q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO();
    Value lse = op.getLse(), dq = op.getDq(), dk = op.getDk(), dv = op.getDv();
    Attention a = describe(op, {dO, q, k, v, o, dq, dk, dv});
    // A number for each row of each head.
    Value delta = plan::BufferOp::create(
        launcher.b, op.getLoc(),
        MemRefType::get({a.batch, a.heads, a.queries}, launcher.b.getF32Type()),
        plan::Segment::transient, plan::Category::workspace, IntegerAttr());
    if (a.warpgroups) {
      expandHopperGrad(op, a, {dO, q, k, v, o, lse, dq, dk, dv, delta});
      return;
    }
    std::string in = "const " + a.element + " *", out = a.element + " *";
    using namespace plan;
    const int64_t flops = launcher.flops(), bytes = launcher.bytes();
    launcher.setWork(0, 0);
    if (a.tiled) {
      int64_t rows = 256 / (a.width <= 64 ? 8 : 16);
      launcher.launch("attention_delta", {in, in, "float *"},
                      llvm::formatv("attentionDeltaTiled<{0}, {1}, {2}, {3}, {4}>(a0, a1, a2);",
                                    a.width, a.queries, a.heads, layout(o), layout(dO))
                          .str(),
                      {ceilDiv(a.queries, rows), a.heads, a.batch, 256, 0}, {dO, o, delta},
                      {kRead, kRead, kWrite});
    } else {
      launcher.launch("attention_delta", {in, in, "float *"},
                      llvm::formatv("attentionDelta<{0}, {1}, {2}, {3}, {4}, {5}>(a0, a1, a2);",
                                    a.valueWidth, a.queries, a.heads, a.element, layout(o),
                                    layout(dO))
                          .str(),
                      {ceilDiv(a.queries, kPlainRows), a.heads, a.batch, 32 * kPlainRows, 0},
                      {dO, o, delta}, {kRead, kRead, kWrite});
    }
    constexpr int64_t tile = kBackwardTile;
    // Of the matmuls of attention_grad (five, here seven) four are for keys.
    launcher.setWork(flops - flops * 3 / 7, bytes - bytes / 2);
    launcher.launch("attention_key_gradients",
                    {in, in, in, in, "const float *", "const float *", out, out},
                    (Twine(a.tiled ? "attentionKeyGradients" : "plainKeyGradients") +
                     parameters(a, "1, " + std::to_string(tile), {q, k, v, dO, dk, dv}) +
                     "(a0, a1, a2, a3, a4, a5, a6, a7, " + a.mask + ", " + a.scale + ");")
                        .str(),
                    shapeFor(a, 1, a.keys, a.keyHeads, 128 + 4 * tile, 4 * 4 * tile),
                    {dO, q, k, v, lse, delta, dk, dv},
                    {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite});
    launcher.setWork(flops * 3 / 7, bytes / 2);
    launcher.launch(
        "attention_query_gradients", {in, in, in, in, "const float *", "const float *", out},
        (Twine(a.tiled ? "attentionQueryGradients" : "plainQueryGradients") +
         parameters(a, "1, " + std::to_string(tile), {q, k, v, dO, dq}) +
         "(a0, a1, a2, a3, a4, a5, a6, " + a.mask + ", " + a.scale + ");")
            .str(),
        shapeFor(a, 1, a.queries, a.heads, 128 + 4 * tile, 0), {dO, q, k, v, lse, delta, dq},
        {kRead, kRead, kRead, kRead, kRead, kRead, kWrite});
  }

private:
  static std::string layout(Value buffer) {
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(buffer));
    return llvm::formatv("Layout<{0}, {1}, {2}>", strides[0], strides[1], strides[2]).str();
  }

  /// Rows of 16-byte pieces.
  static bool isTiled(Value buffer) {
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(buffer));
    ArrayRef<int64_t> shape = typeOf(buffer).getShape();
    for (unsigned d = 0; d < 3; ++d)
      if (shape[d] > 1 && strides[d] % 8 != 0)
        return false;
    return isNarrowFloat(typeOf(buffer).getElementType()) && strides[3] == 1 &&
           plan::alignmentOf(buffer) >= 16;
  }

  struct Attention {
    int64_t batch, queries, keys, heads, keyHeads, width, valueWidth;
    std::string mask, scale, element;
    bool tiled;      ///< for tensor cores
    bool warpgroups; ///< and for those of Hopper

    int64_t widest() const { return std::max(width, valueWidth); }
  };

  template <typename Op> Attention describe(Op op, ArrayRef<Value> tensors) {
    ArrayRef<int64_t> qs = typeOf(op.getQ()).getShape(), ks = typeOf(op.getK()).getShape(),
                      vs = typeOf(op.getV()).getShape();
    Attention a{qs[0], qs[1], ks[1], qs[2], ks[2], qs[3], vs[3], "", "", "", false, false};
    a.mask = llvm::formatv("Mask{{{0}, {1}, {2}}", op.getCausal() ? "true" : "false", op.getChunk(),
                           op.getWindow())
                 .str();
    a.scale = numberText(op.getScale().convertToDouble());
    a.element = cType(typeOf(op.getQ()).getElementType()).str();
    bool tiles = a.width % 16 == 0 && a.valueWidth % 16 == 0 && a.widest() <= 128 &&
                 llvm::all_of(tensors, isTiled);
    a.tiled = tiles && a.width == a.valueWidth;
    a.warpgroups = tiles && launcher.target.has(kWarpgroupMatmul);
    return a;
  }

  /// Tiles of 16 rows for each warp of the forward pass: two where a GPU then still has work for
  /// every multiprocessor and a thread has the registers. The backward pass measured slower with
  /// two: fewer blocks fit a multiprocessor.
  int64_t rowTiles(const Attention &a) const {
    return a.width <= 96 && ceilDiv(a.queries, 128) * a.heads * a.batch >=
                                launcher.target.getMultiprocessors()
               ? 2
               : 1;
  }

  /// `<tiles, Width, [ValueWidth,] Queries, Keys, Heads, KeyHeads, layouts…>`, or with `<T, Width,
  /// ValueWidth, …`.
  static std::string parameters(const Attention &a, const std::string &tiles,
                                ArrayRef<Value> layouts) {
    std::string text =
        a.warpgroups ? llvm::formatv("<{0}, {1}, {2}, ", tiles, a.width, a.valueWidth).str()
        : a.tiled    ? llvm::formatv("<{0}, {1}, ", tiles, a.width).str()
                     : llvm::formatv("<{0}, {1}, {2}, ", a.element, a.width, a.valueWidth).str();
    text += llvm::formatv("{0}, {1}, {2}, {3}", a.queries, a.keys, a.heads, a.keyHeads).str();
    for (Value v : layouts)
      text += ", " + layout(v);
    return text + ">";
  }

  static constexpr int64_t kPlainRows = 8;
  /// Rows that the backward kernels read at a time. 32 need half the registers, but measured
  /// no faster: (4, 12, 1024, 64) took 98 + 71 us instead of 91 + 64.
  static constexpr int64_t kBackwardTile = 64;

  /// A block for each 64 m rows of a head, or for eight rows; `sharedRows`: of 16-bit numbers in
  /// shared memory.
  static LaunchShape shapeFor(const Attention &a, int64_t m, int64_t rows, int64_t heads,
                              int64_t sharedRows, int64_t extra) {
    if (!a.tiled)
      return {ceilDiv(rows, kPlainRows), heads, a.batch, 32 * kPlainRows, 0};
    return {ceilDiv(rows, 64 * m), heads, a.batch, 128, sharedRows * (a.width + 8) * 2 + extra};
  }

  /// Warpgroups of a block of attention_hopper.cuh: as many as `most`, for whose registers there is
  /// room, and as leave a block for every multiprocessor.
  int64_t warpgroups(const Attention &a, int64_t rows, int64_t heads, int64_t most) const {
    int64_t groups = most;
    while (groups > 1 &&
           ceilDiv(rows, 64 * groups) * heads * a.batch < launcher.target.getMultiprocessors())
      --groups;
    return groups;
  }

  /// Bytes of a tile of 64 rows.
  static int64_t tileBytes(int64_t width) { return 64 * 2 * llvm::alignTo(width, 64); }

  /// Blocks that share out what there is to do. In shared memory: `own` bytes of each warpgroup,
  /// and `stages` of a tile of either width, of `extra` bytes and of two barriers.
  LaunchShape hopperShape(const Attention &a, int64_t groups, int64_t rows, int64_t heads,
                          int64_t own, int64_t stages, int64_t extra) const {
    int64_t pair = tileBytes(a.width) + tileBytes(a.valueWidth);
    int64_t shared = groups * own + stages * (pair + extra + 16) + 16;
    int64_t resident =
        groups == 1 && 2 * shared <= launcher.target.getMultiprocessorShared() ? 2 : 1;
    int64_t items = ceilDiv(rows, 64 * groups) * heads * a.batch;
    return {std::min(items, launcher.target.getMultiprocessors() * resident),
            1,
            1,
            128 * (groups + 1),
            shared,
            resident};
  }

  /// `Groups, Stages, Batch` of the templates.
  static std::string blockText(const Attention &a, int64_t groups, int64_t stages) {
    return llvm::formatv("{0}, {1}, {2}", groups, stages, a.batch).str();
  }

  /// Marks the last launch as one that a library's function of the same arguments can replace
  /// (see Alternative in runtime/plan/plan.fbs): whole sequences with a dense mask or none.
  template <typename Op> void offer(Op op, const Attention &a, plan::LibraryFunction function) {
    if (!a.warpgroups || op.getChunk() != 0 || op.getWindow() != 0 ||
        (op.getCausal() && a.queries != a.keys))
      return;
    const bool works = function != plan::LibraryFunction::nothing;
    launcher.last.setSubstituteAttr(plan::SubstituteAttr::get(
        launcher.b.getContext(), function, works ? op.getScaleAttr() : FloatAttr(),
        works && op.getCausal()));
  }

  /// Two kernels: dq and delta, then dk and dv.
  void expandHopperGrad(plan::AttentionGradOp op, const Attention &a, ArrayRef<Value> args) {
    Value dO = args[0], q = args[1], k = args[2], v = args[3], o = args[4], lse = args[5];
    Value dq = args[6], dk = args[7], dv = args[8], delta = args[9];
    using namespace plan;
    const int64_t flops = launcher.flops(), bytes = launcher.bytes();
    std::string in = "const " + a.element + " *", out = a.element + " *";
    StringRef statistic = "const float *";
    std::string rest = ", " + a.mask + ", " + a.scale + ");";
    // Of the matmuls of attention_grad (five, here seven) three are for queries.
    launcher.setWork(flops * 3 / 7, bytes / 2);
    int64_t groups = warpgroups(a, a.queries, a.heads, a.widest() <= 64 ? 3 : 2);
    int64_t stages = a.widest() <= 80 ? 4 : 3;
    // All arguments of the step, so that another function can do its work: dk and dv are not
    // touched.
    launcher.launch(
        "attention_query_gradients", {in, in, in, in, in, statistic, out, out, out, "float *"},
        "hopperQueryGradients" + parameters(a, blockText(a, groups, stages), {q, k, v, o, dO, dq}) +
            "(a0, a1, a2, a3, a4, a5, a9, a6" + rest,
        hopperShape(a, groups, a.queries, a.heads, tileBytes(a.width) + 2 * tileBytes(a.valueWidth),
                    stages, 0),
        args, {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite, kWrite, kWrite});
    offer(op, a, plan::LibraryFunction::attention_grad);
    launcher.setWork(flops - flops * 3 / 7, bytes - bytes / 2);
    groups = warpgroups(a, a.keys, a.keyHeads, 2);
    launcher.launch("attention_key_gradients", {in, in, in, in, statistic, statistic, out, out},
                    "hopperKeyGradients" +
                        parameters(a, blockText(a, groups, 4), {q, k, v, dO, dk, dv}) +
                        "(a0, a1, a2, a3, a4, a5, a6, a7" + rest,
                    hopperShape(a, groups, a.keys, a.keyHeads,
                                tileBytes(a.width) + tileBytes(a.valueWidth), 4, 2 * 64 * 4),
                    {dO, q, k, v, lse, delta, dk, dv},
                    {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite});
    offer(op, a, plan::LibraryFunction::nothing);
  }

  StepLauncher &launcher;
};

} // namespace

void expandAttention(StepLauncher &launcher, plan::AttentionOp op) {
  AttentionExpander(launcher).expand(op);
}

void expandAttentionGrad(StepLauncher &launcher, plan::AttentionGradOp op) {
  AttentionExpander(launcher).expand(op);
}

} // namespace hydra::cuda
