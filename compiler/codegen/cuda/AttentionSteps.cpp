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
    Attention a = describe(op, ArrayRef(args).take_front(4), Pass::Forward);
    bool saves = args.size() > 4;
    std::string in = "const " + a.element + " *", out = a.element + " *";
    bool own = a.warpgroups;
    int64_t m = own ? warpgroups(a, a.queries, a.heads, a.widest() <= 80 ? 3 : 2) : rowTiles(a);
    int64_t stages = a.widest() <= 80 ? 4 : 5;
    std::string body =
        (Twine(own       ? "hopperForward"
               : a.tiled ? "attentionForward"
                         : "plainForward") +
         parameters(a, own ? blockText(a, m, stages) : tilesText(a, m),
                    ArrayRef(args).take_front(4)) +
         "(a0, a1, a2, a3, " + (saves ? "a4" : "nullptr") + ", " + a.mask + ", " + a.scores + ");")
            .str();
    SmallVector<StringRef> types{in, in, in, out};
    SmallVector<int64_t> access{plan::kRead, plan::kRead, plan::kRead, plan::kWrite};
    if (saves) {
      types.push_back("float *");
      access.push_back(plan::kWrite);
    }
    launcher.launch("attention_forward", types, body,
                    own ? hopperShape(a, m, a.queries, a.heads, tileBytes(a.width), stages, 0)
                        : shapeFor(a, m, a.queries, a.heads, Pass::Forward),
                    args, access);
    offer(op, a, plan::LibraryFunction::attention);
  }

  void expand(plan::AttentionGradOp op) {
    Value dO = op.getDO(), q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO();
    Value lse = op.getLse(), dq = op.getDq(), dk = op.getDk(), dv = op.getDv();
    Attention a = describe(op, {dO, q, k, v, o, dq, dk, dv}, Pass::Keys);
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
      int64_t rows = 256 / (a.width <= 64 ? 8 : a.width <= 128 ? 16 : 32);
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
    const int64_t ofQueries = flops * 3 / 7; // of the matmuls of attention_grad (five, here seven)
    launcher.setWork(flops - ofQueries, bytes - bytes / 2);
    expandKeyGradients(op, a, delta);
    launcher.setWork(ofQueries, bytes / 2);
    launcher.launch(
        "attention_query_gradients", {in, in, in, in, "const float *", "const float *", out},
        (Twine(a.tiled ? "attentionQueryGradients" : "plainQueryGradients") +
         parameters(a, tilesText(a, 1), {q, k, v, dO, dq}) + "(a0, a1, a2, a3, a4, a5, a6, " +
         a.mask + ", " + a.scores + ");")
            .str(),
        shapeFor(a, 1, a.queries, a.heads, Pass::Queries), {dO, q, k, v, lse, delta, dq},
        {kRead, kRead, kRead, kRead, kRead, kRead, kWrite});
  }

private:
  /// What kernels of templates/attention.cuh compute: o; dq; dk and dv.
  enum class Pass { Forward, Queries, Keys };

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
    std::string mask, scores, element;
    bool warpgroups; ///< for the tensor cores of Hopper
    bool tiled;      ///< for those of others
    int64_t tile;    ///< rows that tiled kernels read at a time

    int64_t widest() const { return std::max(width, valueWidth); }
  };

  template <typename Op> Attention describe(Op op, ArrayRef<Value> tensors, Pass pass) {
    ArrayRef<int64_t> qs = typeOf(op.getQ()).getShape(), ks = typeOf(op.getK()).getShape(),
                      vs = typeOf(op.getV()).getShape();
    Attention a{qs[0], qs[1], ks[1], qs[2], ks[2], qs[3], vs[3], "", "", "", false, false, 0};
    a.mask = llvm::formatv("Mask{{{0}, {1}, {2}}", op.getCausal() ? "true" : "false", op.getChunk(),
                           op.getWindow())
                 .str();
    a.scores = scoresText(op);
    a.element = cType(typeOf(op.getQ()).getElementType()).str();
    bool tiles = a.width % 16 == 0 && a.valueWidth % 16 == 0 && llvm::all_of(tensors, isTiled);
    a.warpgroups = tiles && a.widest() <= kNarrow && launcher.target.has(kWarpgroupMatmul);
    if (tiles && a.width == a.valueWidth && a.width <= kWidest)
      a.tile = tileFor(a, pass);
    a.tiled = a.tile > 0;
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
  static constexpr int64_t kNarrow = 128; ///< heads whose sums fit a thread twice
  static constexpr int64_t kWidest = 256; ///< of tiled kernels

  /// Bytes of shared memory of a tiled kernel, whose blocks have 64 m rows.
  static int64_t tiledShared(const Attention &a, int64_t m, int64_t tile, Pass pass) {
    // Own rows of one tensor or two, and two stages of two tiles; of queries with two numbers each.
    const int64_t rows = (pass == Pass::Forward ? 64 : 128) * m + 4 * tile;
    return rows * (a.width + 8) * 2 + (pass == Pass::Keys ? 4 * 4 * tile : 0);
  }

  /// Rows that a block reads at a time: the most for which it has shared memory; 0: it has not. 32
  /// need half the registers in the backward pass too, but measured no faster where 64 fit:
  /// (4, 12, 1024, 64) took 98 + 71 us instead of 91 + 64.
  int64_t tileFor(const Attention &a, Pass pass) const {
    const int64_t m = pass == Pass::Forward ? rowTiles(a) : 1;
    for (int64_t tile : {64, 32})
      if ((tile == 32 || a.width <= kNarrow) &&
          tiledShared(a, m, tile, pass) <= launcher.target.getBlockShared())
        return tile;
    return 0;
  }

  /// `M, Tile` of the templates.
  static std::string tilesText(const Attention &a, int64_t m) {
    return llvm::formatv("{0}, {1}", m, a.tile).str();
  }

  /// A block for each 64 m rows of a head, or for eight rows.
  static LaunchShape shapeFor(const Attention &a, int64_t m, int64_t rows, int64_t heads,
                              Pass pass) {
    if (!a.tiled)
      return {ceilDiv(rows, kPlainRows), heads, a.batch, 32 * kPlainRows, 0};
    return {ceilDiv(rows, 64 * m), heads, a.batch, 128, tiledShared(a, m, a.tile, pass)};
  }

  /// dk and dv: one kernel, or of wide heads two.
  void expandKeyGradients(plan::AttentionGradOp op, const Attention &a, Value delta) {
    Value dO = op.getDO(), q = op.getQ(), k = op.getK(), v = op.getV(), lse = op.getLse();
    Value dk = op.getDk(), dv = op.getDv();
    const std::string in = "const " + a.element + " *", out = a.element + " *",
                      rest = ", " + a.mask + ", " + a.scores + ");";
    const StringRef statistic = "const float *";
    const SmallVector<Value> layouts = {q, k, v, dO, dk, dv};
    const LaunchShape shape = shapeFor(a, 1, a.keys, a.keyHeads, Pass::Keys);
    using namespace plan;
    if (!a.tiled || a.width <= kNarrow) {
      launcher.launch("attention_key_gradients", {in, in, in, in, statistic, statistic, out, out},
                      (a.tiled ? "attentionKeyGradients" : "plainKeyGradients") +
                          parameters(a, tilesText(a, 1) + ", true, true", layouts) +
                          "(a0, a1, a2, a3, a4, a5, a6, a7" + rest,
                      shape, {dO, q, k, v, lse, delta, dk, dv},
                      {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite});
      return;
    }
    // Arguments that a kernel does not need are others of their type.
    const int64_t flops = launcher.flops(), bytes = launcher.bytes(), ofKeys = flops * 2 / 7;
    launcher.setWork(ofKeys, bytes / 4);
    launcher.launch(
        "attention_key_gradients", {in, in, in, in, statistic, statistic, out},
        "attentionKeyGradients" + parameters(a, tilesText(a, 1) + ", true, false", layouts) +
            "(a0, a1, a2, a3, a4, a5, a6, a6" + rest,
        shape, {dO, q, k, v, lse, delta, dk}, {kRead, kRead, kRead, kRead, kRead, kRead, kWrite});
    launcher.setWork(flops - flops * 3 / 7 - ofKeys, bytes - bytes / 2 - bytes / 4);
    launcher.launch("attention_value_gradients", {in, in, in, statistic, out},
                    "attentionKeyGradients" +
                        parameters(a, tilesText(a, 1) + ", false, true", layouts) +
                        "(a0, a1, a2, a2, a3, a3, a4, a4" + rest,
                    shape, {dO, q, k, lse, dv}, {kRead, kRead, kRead, kRead, kWrite});
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
  /// (see Alternative in runtime/plan/plan.fbs): whole sequences with a dense mask or none, and
  /// no cap.
  template <typename Op> void offer(Op op, const Attention &a, plan::LibraryFunction function) {
    if (!a.warpgroups || op.getChunk() != 0 || op.getWindow() != 0 || op.getCapAttr() ||
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
    std::string rest = ", " + a.mask + ", " + a.scores + ");";
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
