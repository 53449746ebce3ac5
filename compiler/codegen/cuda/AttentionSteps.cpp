// Which template, and of which shape, computes attention on a target.
#include "compiler/codegen/cuda/AttentionItems.h"
#include "compiler/codegen/cuda/AttentionRotations.h"
#include "compiler/codegen/cuda/ExpandSteps.h"
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

class AttentionExpander {
public:
  explicit AttentionExpander(StepLauncher &launcher) : launcher(launcher) {}

  LogicalResult expand(plan::AttentionOp op) {
    auto args = llvm::to_vector(op->getOperands());
    Attention a = describe(op, ArrayRef(args).take_front(4), Pass::Forward);
    FailureOr<Cut> cut = cutOf(op, a, Pass::Forward);
    if (failed(cut))
      return failure();
    bool saves = args.size() > 4;
    std::string in = "const " + a.element + " *", out = a.element + " *";
    std::string body =
        (Twine(takesTurns(a, *cut) ? "hopperForwardInTurns"
               : a.warpgroups      ? "hopperForward"
               : a.tiled           ? "attentionForward"
                                   : "plainForward") +
         parameters(a, cutText(a, *cut), ArrayRef(args).take_front(4),
                    sectionsText(a, *cut, Pass::Forward)) +
         "(a0, a1, a2, a3, " + (saves ? "a4" : "nullptr") + ", " + a.mask + ", " + a.scores + ");")
            .str();
    SmallVector<StringRef> types{in, in, in, out};
    SmallVector<int64_t> access{plan::kRead, plan::kRead, plan::kRead, plan::kWrite};
    if (saves) {
      types.push_back("float *");
      access.push_back(plan::kWrite);
    }
    launcher.launch(kAttentionForward, types, body, shapeOf(a, *cut, Pass::Forward), args, access);
    offer(op, a, plan::LibraryFunction::attention);
    return success();
  }

  /// Whether kernels store gradients as these launches rotate them: those of warpgroups.
  bool canRotate(plan::AttentionGradOp op, ArrayRef<plan::LaunchOp> launches) {
    const std::optional<Rotations> found = rotationsOf(op, launches);
    if (!found)
      return false;
    const Value dq = found->ofQueries ? found->ofQueries->to() : op.getDq(),
                dk = found->ofKeys ? found->ofKeys->to() : op.getDk();
    const SmallVector<Value> tensors{op.getDO(), op.getQ(), op.getK(), op.getV(),
                                     op.getO(),  dq,        dk,        op.getDv()};
    return describe(op, tensors, Pass::Keys).warpgroups;
  }

  /// `launches`: right behind it, for which `canRotate` holds.
  LogicalResult expand(plan::AttentionGradOp op, ArrayRef<plan::LaunchOp> launches) {
    Value dO = op.getDO(), q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO();
    Value lse = op.getLse(), dq = op.getDq(), dk = op.getDk(), dv = op.getDv();
    const Rotations rotations = *rotationsOf(op, launches);
    if (rotations.ofQueries)
      dq = rotatedPlace(launcher.b, *rotations.ofQueries, typeOf(dq),
                        *rotations.ofQueries->ofQueries);
    if (rotations.ofKeys)
      dk = rotatedPlace(launcher.b, *rotations.ofKeys, typeOf(dk), *rotations.ofKeys->ofKeys);
    Attention a = describe(op, {dO, q, k, v, o, dq, dk, dv}, Pass::Keys);
    FailureOr<Cut> ofQueries = cutOf(op, a, Pass::Queries);
    if (failed(ofQueries))
      return failure();
    FailureOr<Cut> ofKeys = cutOf(op, a, Pass::Keys);
    if (failed(ofKeys))
      return failure();
    // A number for each row of each head.
    Value delta = plan::BufferOp::create(
        launcher.b, op.getLoc(),
        MemRefType::get({a.batch, a.heads, a.queries}, launcher.b.getF32Type()),
        plan::Segment::transient, plan::Category::workspace, IntegerAttr());
    if (a.warpgroups) {
      expandHopperGrad(op, a, *ofQueries, *ofKeys, {dO, q, k, v, o, lse, dq, dk, dv, delta},
                       rotations);
      return success();
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
    const int64_t third = flops * 3 / 7; // of the matmuls of attention_grad (five, here seven)
    launcher.setWork(flops - third, bytes - bytes / 2);
    expandKeyGradients(op, a, *ofKeys, delta);
    launcher.setWork(third, bytes / 2);
    launcher.launch(kAttentionQueryGradients,
                    {in, in, in, in, "const float *", "const float *", out},
                    (Twine(a.tiled ? "attentionQueryGradients" : "plainQueryGradients") +
                     parameters(a, cutText(a, *ofQueries), {q, k, v, dO, dq}) +
                     "(a0, a1, a2, a3, a4, a5, a6, " + a.mask + ", " + a.scores + ");")
                        .str(),
                    shapeOf(a, *ofQueries, Pass::Queries), {dO, q, k, v, lse, delta, dq},
                    {kRead, kRead, kRead, kRead, kRead, kRead, kWrite});
    return success();
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
    AttentionMask seen;
    std::string mask, scores, element;
    bool warpgroups; ///< for the tensor cores of Hopper
    bool tiled;      ///< for those of others
    bool plain;      ///< of whole sequences with a dense mask or none, and scores without a cap
    int64_t reach;   ///< keys that a query sees at most, without a window and a cap; else 0
    int64_t tile;    ///< rows that tiled kernels read at a time, unless the target says it

    int64_t widest() const { return std::max(width, valueWidth); }
  };

  /// How a kernel cuts its work.
  struct Cut {
    int64_t units = 1;  ///< of 64 rows each that a block has: of Hopper warpgroups
    int64_t tile = 0;   ///< rows that these are multiplied with at a time; 0: row by row
    int64_t stages = 2; ///< tiles in shared memory
  };

  template <typename Op> Attention describe(Op op, ArrayRef<Value> tensors, Pass pass) {
    ArrayRef<int64_t> qs = typeOf(op.getQ()).getShape(), ks = typeOf(op.getK()).getShape(),
                      vs = typeOf(op.getV()).getShape();
    const auto chunk = static_cast<int64_t>(op.getChunk()),
               window = static_cast<int64_t>(op.getWindow());
    Attention a{qs[0], qs[1], ks[1], qs[2], ks[2], qs[3], vs[3], {op.getCausal(), chunk, window},
                "",    "",    "",    false, false, false, 0,     0};
    a.mask = llvm::formatv("Mask{{{0}, {1}, {2}}", op.getCausal() ? "true" : "false", chunk, window)
                 .str();
    a.scores = scoresText(op);
    a.element = cType(typeOf(op.getQ()).getElementType()).str();
    const bool chunksAlone = window == 0 && !op.getCapAttr();
    a.plain = chunk == 0 && chunksAlone;
    a.reach = !chunksAlone ? 0 : chunk == 0 ? a.keys : std::min(chunk, a.keys);
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

  /// `<tiles, Width, [ValueWidth,] Queries, Keys, Heads, KeyHeads, layouts… [, sections]>`, or with
  /// `<T, Width, ValueWidth, …`.
  static std::string parameters(const Attention &a, const std::string &tiles,
                                ArrayRef<Value> layouts, const std::string &sections = "") {
    std::string text =
        a.warpgroups ? llvm::formatv("<{0}, {1}, {2}, ", tiles, a.width, a.valueWidth).str()
        : a.tiled    ? llvm::formatv("<{0}, {1}, ", tiles, a.width).str()
                     : llvm::formatv("<{0}, {1}, {2}, ", a.element, a.width, a.valueWidth).str();
    text += llvm::formatv("{0}, {1}, {2}, {3}", a.queries, a.keys, a.heads, a.keyHeads).str();
    for (Value v : layouts)
      text += ", " + layout(v);
    return text + sections + ">";
  }

  static constexpr int64_t kPlainRows = 8;
  static constexpr int64_t kNarrow = 128; ///< heads whose sums fit a thread twice
  static constexpr int64_t kWidest = 256; ///< of tiled kernels

  /// Of the kernels for warpgroups: rows of a tile, and of one of attention_hopper_turns.cuh.
  static constexpr int64_t kTile = 64, kTurnsTile = 128;
  static constexpr int64_t kManyKeys = 512; ///< from which the latter measured faster

  /// Whether attention_hopper_turns.cuh has it: o leaves as whole blocks of columns.
  static bool mayTakeTurns(const Attention &a, Pass pass) {
    return a.warpgroups && pass == Pass::Forward && a.width % 64 == 0 && a.valueWidth % 64 == 0;
  }
  static bool takesTurns(const Attention &a, const Cut &cut) {
    return a.warpgroups && cut.tile == kTurnsTile;
  }

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

  static StringRef kernelOf(Pass pass) {
    return pass == Pass::Forward   ? kAttentionForward
           : pass == Pass::Queries ? kAttentionQueryGradients
                                   : kAttentionKeyGradients;
  }

  /// The most units of 64 rows for whose sums and scores threads have registers: of tiled kernels
  /// as many as ptxas keeps without spilling.
  static int64_t mostUnits(const Attention &a, int64_t tile, Pass pass) {
    if (a.warpgroups) {
      const int64_t widestOfThree = pass == Pass::Forward   ? (tile == kTurnsTile ? 64 : 80)
                                    : pass == Pass::Queries ? 64
                                                            : 0;
      return a.widest() <= widestOfThree ? 3 : 2;
    }
    const bool small = tile == 32;
    const int64_t widestOfTwo = pass == Pass::Forward   ? 96
                                : pass == Pass::Queries ? (small ? 96 : 64)
                                                        : (small ? 64 : 0);
    return a.width <= widestOfTwo ? 2 : 1;
  }

  /// What measured fastest.
  Cut usualCut(const Attention &a, Pass pass) const {
    if (!a.warpgroups)
      return {pass == Pass::Forward ? rowTiles(a) : 1, a.tile};
    if (mayTakeTurns(a, pass) && a.reach >= kManyKeys)
      return hopperCut(a, pass, kTurnsTile);
    return hopperCut(a, pass, kTile);
  }

  /// The same of kernels for warpgroups with tiles of `tile` rows.
  Cut hopperCut(const Attention &a, Pass pass, int64_t tile) const {
    const int64_t most = mostUnits(a, tile, pass);
    if (tile == kTurnsTile)
      return {warpgroups(a, pass, most, kItemsOfThree), tile, a.widest() <= 64 ? 4 : 2};
    const bool narrow = a.widest() <= 80;
    const Cut usual = {warpgroups(a, pass, most, 1), tile,
                       pass == Pass::Forward   ? (narrow ? 4 : 5)
                       : pass == Pass::Queries ? (narrow ? 4 : 3)
                                               : 4};
    return pass != Pass::Forward && usual.units == 2 ? inPairs(a, usual, pass) : usual;
  }

  /// Two blocks of a warpgroup instead of one of two, where a multiprocessor has the memory and
  /// blocks of two would have one item or two, many of them one: these are shared out more evenly.
  /// Measured faster for gradients of 1.5 items a block of two, slower of 1.9.
  Cut inPairs(const Attention &a, const Cut &cut, Pass pass) const {
    constexpr int64_t kLeastStages = 2;
    if (4 * itemsOf(a, cut.units, pass) >= 7 * launcher.target.getMultiprocessors())
      return cut;
    for (Cut one{1, cut.tile, cut.stages}; one.stages >= kLeastStages; --one.stages)
      if (2 * hopperShared(a, one, pass) <= launcher.target.getMultiprocessorShared())
        return one;
    return cut;
  }

  /// The same where the target says nothing else. Reports what no template has, and what a block
  /// has not the memory for.
  FailureOr<Cut> cutOf(Operation *op, const Attention &a, Pass pass) {
    Cut cut = usualCut(a, pass);
    const SaidSizes said = launcher.tiles.of(kernelOf(pass), a.widest());
    if (said.empty())
      return cut;
    if (!a.warpgroups && !a.tiled)
      return said.refuse(op) << "attention of " << a.element << " with heads of " << a.width
                             << " and " << a.valueWidth << " has no tiles here";
    if (const std::optional<int64_t> tile = said.get("tile")) {
      const bool turns = mayTakeTurns(a, pass);
      if (a.warpgroups && *tile != kTile && !(turns && *tile == kTurnsTile))
        return said.refuse(op) << (turns ? "the kernels for warpgroups have tiles of 64 or 128 rows"
                                         : "the kernel for warpgroups has tiles of 64 rows");
      if (!a.warpgroups && *tile > 64)
        return said.refuse(op) << "the kernel for this target has tiles of 32 or 64 rows";
      if (a.warpgroups)
        cut = hopperCut(a, pass, *tile);
      cut.tile = *tile;
      if (a.width > kNarrow && cut.tile != 32)
        return said.refuse(op) << "heads of " << a.width << " have tiles of 32 rows";
    }
    if (const std::optional<int64_t> rows = said.get("rows")) {
      cut.units = *rows / 64;
      if (const int64_t most = mostUnits(a, cut.tile, pass); cut.units > most)
        return said.refuse(op) << "with heads of " << a.widest() << " and tiles of " << cut.tile
                               << " a block has at most " << 64 * most << " rows";
    }
    if (const std::optional<int64_t> stages = said.get("stages")) {
      cut.stages = *stages;
      if (!a.warpgroups && cut.stages != 2)
        return said.refuse(op) << "the kernel for this target has 2 stages";
    }
    const int64_t bytes = sharedBytes(a, cut, pass), most = launcher.target.getBlockShared();
    if (bytes > most)
      return said.refuse(op) << "takes " << bytes << " bytes of shared memory; a block of "
                             << launcher.target.getName() << " has " << most;
    return cut;
  }

  static int64_t sharedBytes(const Attention &a, const Cut &cut, Pass pass) {
    return a.warpgroups ? hopperShared(a, cut, pass)
           : a.tiled    ? tiledShared(a, cut.units, cut.tile, pass)
                        : 0;
  }

  /// `Groups, Stages, Batch` or `M, Tile` of the templates.
  static std::string cutText(const Attention &a, const Cut &cut) {
    return a.warpgroups ? llvm::formatv("{0}, {1}, {2}", cut.units, cut.stages, a.batch).str()
                        : llvm::formatv("{0}, {1}", cut.units, cut.tile).str();
  }

  /// The parameter behind the layouts: sections of heads, where blocks take items in turn.
  std::string sectionsText(const Attention &a, const Cut &cut, Pass pass) const {
    if (!a.warpgroups)
      return "";
    const bool ofKeys = pass == Pass::Keys;
    const std::vector<int64_t> work =
        ofKeys ? queryTilesOf(a.seen, a.queries, a.keys, cut.units)
               : keyTilesOf(a.seen, a.queries, a.keys, cut.units, cut.tile);
    const auto blocks = static_cast<int64_t>(work.size());
    const int64_t rows = cut.units * kTile, chunk = a.seen.chunk;
    const bool whole = chunk > 0 && chunk % rows == 0 && blocks % (chunk / rows) == 0;
    const AttentionItems items{work, rowsAndHeads(a, pass).second * a.batch,
                               hopperShape(a, cut, pass).x, !ofKeys, whole ? chunk / rows : blocks};
    const int64_t headBytes =
        2 * (a.width + a.valueWidth) * (ofKeys ? a.queries * (a.heads / a.keyHeads) : a.keys);
    return ", " + std::to_string(sectionsOf(items, headBytes));
  }

  /// Rows and heads that blocks of a pass have.
  static std::pair<int64_t, int64_t> rowsAndHeads(const Attention &a, Pass pass) {
    return pass == Pass::Keys ? std::pair(a.keys, a.keyHeads) : std::pair(a.queries, a.heads);
  }

  LaunchShape shapeOf(const Attention &a, const Cut &cut, Pass pass) const {
    if (a.warpgroups)
      return hopperShape(a, cut, pass);
    const auto [rows, heads] = rowsAndHeads(a, pass);
    if (!a.tiled)
      return {ceilDiv(rows, kPlainRows), heads, a.batch, 32 * kPlainRows, 0};
    return {ceilDiv(rows, 64 * cut.units), heads, a.batch, 128, sharedBytes(a, cut, pass)};
  }

  /// dk and dv: one kernel, or of wide heads two.
  void expandKeyGradients(plan::AttentionGradOp op, const Attention &a, const Cut &cut,
                          Value delta) {
    Value dO = op.getDO(), q = op.getQ(), k = op.getK(), v = op.getV(), lse = op.getLse();
    Value dk = op.getDk(), dv = op.getDv();
    const std::string in = "const " + a.element + " *", out = a.element + " *",
                      rest = ", " + a.mask + ", " + a.scores + ");";
    const StringRef statistic = "const float *";
    const SmallVector<Value> layouts = {q, k, v, dO, dk, dv};
    const LaunchShape shape = shapeOf(a, cut, Pass::Keys);
    using namespace plan;
    if (!a.tiled || a.width <= kNarrow) {
      launcher.launch(kAttentionKeyGradients, {in, in, in, in, statistic, statistic, out, out},
                      (a.tiled ? "attentionKeyGradients" : "plainKeyGradients") +
                          parameters(a, cutText(a, cut) + ", true, true", layouts) +
                          "(a0, a1, a2, a3, a4, a5, a6, a7" + rest,
                      shape, {dO, q, k, v, lse, delta, dk, dv},
                      {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite});
      return;
    }
    // Arguments that a kernel does not need are others of their type.
    const int64_t flops = launcher.flops(), bytes = launcher.bytes(), ofKeys = flops * 2 / 7;
    launcher.setWork(ofKeys, bytes / 4);
    launcher.launch(
        kAttentionKeyGradients, {in, in, in, in, statistic, statistic, out},
        "attentionKeyGradients" + parameters(a, cutText(a, cut) + ", true, false", layouts) +
            "(a0, a1, a2, a3, a4, a5, a6, a6" + rest,
        shape, {dO, q, k, v, lse, delta, dk}, {kRead, kRead, kRead, kRead, kRead, kRead, kWrite});
    launcher.setWork(flops - flops * 3 / 7 - ofKeys, bytes - bytes / 2 - bytes / 4);
    launcher.launch("attention_value_gradients", {in, in, in, statistic, out},
                    "attentionKeyGradients" +
                        parameters(a, cutText(a, cut) + ", false, true", layouts) +
                        "(a0, a1, a2, a2, a3, a3, a4, a4" + rest,
                    shape, {dO, q, k, lse, dv}, {kRead, kRead, kRead, kRead, kWrite});
  }

  /// Items for every multiprocessor from which blocks that take turns measured faster with three
  /// warpgroups than with two, which share out few items more evenly.
  static constexpr int64_t kItemsOfThree = 4;

  /// Warpgroups of a block of attention_hopper.cuh: as many as `most`, for whose registers there is
  /// room, and as leave an item for every multiprocessor, or `ofThree`.
  int64_t warpgroups(const Attention &a, Pass pass, int64_t most, int64_t ofThree) const {
    int64_t groups = most;
    while (groups > 1 && itemsOf(a, groups, pass) <
                             (groups == 3 ? ofThree : 1) * launcher.target.getMultiprocessors())
      --groups;
    return groups;
  }

  /// What blocks of so many warpgroups share out.
  static int64_t itemsOf(const Attention &a, int64_t groups, Pass pass) {
    const auto [rows, heads] = rowsAndHeads(a, pass);
    return ceilDiv(rows, 64 * groups) * heads * a.batch;
  }

  /// Bytes of a tile of 64 rows.
  static int64_t tileBytes(int64_t width) { return 64 * 2 * llvm::alignTo(width, 64); }

  /// Of each warpgroup its own rows: q; q, dO and o; k and v. Of each stage a tile of either width,
  /// for gradients of keys lse and delta of its queries, and two barriers.
  static int64_t hopperShared(const Attention &a, const Cut &cut, Pass pass) {
    if (takesTurns(a, cut))
      return turnsShared(a, cut);
    const int64_t narrow = tileBytes(a.width), wide = tileBytes(a.valueWidth);
    const int64_t own = narrow + (pass == Pass::Forward   ? 0
                                  : pass == Pass::Queries ? 2 * wide
                                                          : wide);
    const int64_t statistics = pass == Pass::Keys ? 2 * 64 * 4 : 0;
    return cut.units * own + cut.stages * (narrow + wide + statistics + 16) + 16;
  }

  /// Two stages of queries, in places that o leaves through. Of each other stage a tile of keys and
  /// one of values, twice as large. Of every place two barriers.
  static int64_t turnsShared(const Attention &a, const Cut &cut) {
    return 2 * (cut.units * tileBytes(a.widest()) + 16) +
           cut.stages * 2 * (tileBytes(a.width) + tileBytes(a.valueWidth) + 16);
  }

  /// Blocks that share out what there is to do.
  LaunchShape hopperShape(const Attention &a, const Cut &cut, Pass pass) const {
    const int64_t shared = hopperShared(a, cut, pass);
    const int64_t resident =
        cut.units == 1 && 2 * shared <= launcher.target.getMultiprocessorShared() ? 2 : 1;
    return {std::min(itemsOf(a, cut.units, pass), launcher.target.getMultiprocessors() * resident),
            1,
            1,
            128 * (cut.units + 1),
            shared,
            resident};
  }

  /// Marks the last launch as one that a library's function of the same arguments can replace
  /// (see Alternative in runtime/plan/plan.fbs): whole sequences with a dense mask or none, and
  /// no cap.
  template <typename Op> void offer(Op op, const Attention &a, plan::LibraryFunction function) {
    if (!a.warpgroups || !a.plain || (op.getCausal() && a.queries != a.keys))
      return;
    const bool works = function != plan::LibraryFunction::nothing;
    launcher.last.setSubstituteAttr(plan::SubstituteAttr::get(
        launcher.b.getContext(), function, works ? op.getScaleAttr() : FloatAttr(),
        works && op.getCausal()));
  }

  /// How gradients are rotated as they are stored.
  struct Rotations {
    SmallVector<plan::LaunchOp> launches; ///< that would rotate them
    std::optional<GradientRotation> ofQueries, ofKeys;
    int64_t bytes = 0; ///< of gradients that are rotated
  };

  /// Nothing where a launch does something else, or two rotate the same.
  static std::optional<Rotations> rotationsOf(plan::AttentionGradOp op,
                                              ArrayRef<plan::LaunchOp> launches) {
    Rotations all;
    all.launches = SmallVector<plan::LaunchOp>(launches);
    for (plan::LaunchOp launch : launches) {
      const std::optional<GradientRotation> one = gradientRotationOf(op, launch);
      if (!one || (one->ofQueries && all.ofQueries) || (one->ofKeys && all.ofKeys))
        return std::nullopt;
      if (one->ofQueries)
        all.ofQueries = one;
      if (one->ofKeys)
        all.ofKeys = one;
      const MemRefType type = typeOf(one->from());
      all.bytes += type.getNumElements() * elementBytes(type.getElementType());
    }
    return all;
  }

  /// Two kernels: dq and delta, then dk and dv.
  void expandHopperGrad(plan::AttentionGradOp op, const Attention &a, const Cut &ofQueries,
                        const Cut &ofKeys, ArrayRef<Value> args, const Rotations &rotations) {
    Value dO = args[0], q = args[1], k = args[2], v = args[3], o = args[4], lse = args[5];
    Value dq = args[6], dk = args[7], dv = args[8], delta = args[9];
    using namespace plan;
    for (plan::LaunchOp launch : rotations.launches)
      launcher.take(cast<plan::StepInterface>(launch.getOperation()));
    // What launches would rotate is neither stored before nor read again.
    const int64_t flops = launcher.flops(),
                  bytes = std::max<int64_t>(0, launcher.bytes() - 2 * rotations.bytes);
    const auto launch = [&](StringRef name, StringRef function, const Cut &cut, Pass pass,
                            ArrayRef<Value> layouts, ArrayRef<Value> values,
                            ArrayRef<int64_t> access, StringRef order,
                            const std::optional<GradientRotation> &rotation) {
      Arguments arguments;
      for (auto [value, how] : llvm::zip_equal(values, access))
        arguments.add(value, how);
      const RotationText text = rotation ? rotationText(*rotation, arguments) : RotationText();
      launcher.launch(name, SmallVector<StringRef>(arguments.types.begin(), arguments.types.end()),
                      (text.table + function +
                       parameters(a, cutText(a, cut), layouts, sectionsText(a, cut, pass)) + "(" +
                       order + ", " + a.mask + ", " + a.scores + text.argument + ");")
                          .str(),
                      shapeOf(a, cut, pass), arguments.values, arguments.access);
    };
    // cuDNN rotates nothing.
    const bool canReplace = rotations.launches.empty();
    // Of the matmuls of attention_grad (five, here seven) three are for queries.
    launcher.setWork(flops * 3 / 7, bytes / 2);
    // All arguments of the step, so that another function can do its work: dk and dv are not
    // touched.
    launch(kAttentionQueryGradients, "hopperQueryGradients", ofQueries, Pass::Queries,
           {q, k, v, o, dO, dq}, args,
           {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite, kWrite, kWrite},
           "a0, a1, a2, a3, a4, a5, a9, a6", rotations.ofQueries);
    if (canReplace)
      offer(op, a, plan::LibraryFunction::attention_grad);
    launcher.setWork(flops - flops * 3 / 7, bytes - bytes / 2);
    launch(kAttentionKeyGradients, "hopperKeyGradients", ofKeys, Pass::Keys, {q, k, v, dO, dk, dv},
           {dO, q, k, v, lse, delta, dk, dv},
           {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite},
           "a0, a1, a2, a3, a4, a5, a6, a7", rotations.ofKeys);
    if (canReplace)
      offer(op, a, plan::LibraryFunction::nothing);
  }

  StepLauncher &launcher;
};

} // namespace

LogicalResult expandAttention(StepLauncher &launcher, plan::AttentionOp op) {
  return AttentionExpander(launcher).expand(op);
}

LogicalResult expandAttentionGrad(StepLauncher &launcher, plan::AttentionGradOp op,
                                  ArrayRef<plan::LaunchOp> rotations) {
  return AttentionExpander(launcher).expand(op, rotations);
}

bool canRotateGradients(plan::AttentionGradOp op, ArrayRef<plan::LaunchOp> launches,
                        TargetAttr target) {
  StepLauncher launcher(op->getParentOfType<plan::PlanModuleOp>(), target);
  return AttentionExpander(launcher).canRotate(op, launches);
}

} // namespace hydra::cuda
