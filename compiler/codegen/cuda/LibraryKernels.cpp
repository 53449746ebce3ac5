// Writes instances of the templates, and launches of them.
#include "compiler/codegen/cuda/LibraryKernels.h"

#include "compiler/codegen/cuda/LoopKernels.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

const char *const kTemplates =
#include "compiler/codegen/cuda/Templates.inc"
    ;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

MemRefType typeOf(Value buffer) { return cast<MemRefType>(buffer.getType()); }

unsigned bytesOf(Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

std::string number(double x) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17ef", x);
  return text;
}

/// How a kernel is launched.
struct Shape {
  int64_t x = 1, y = 1, z = 1, threads = 1, shared = 0;
  int64_t resident = 1; ///< blocks that must fit a multiprocessor
};

class Expander {
public:
  Expander(plan::PlanModuleOp module, TargetAttr target)
      : module(module), b(module.getContext()), target(target) {}

  LogicalResult run() {
    SmallVector<plan::LoopOp> loops;
    module.walk([&](plan::LoopOp loop) {
      if (loop.getSlices())
        loops.push_back(loop);
    });
    for (plan::LoopOp loop : loops)
      if (failed(expandLoop(loop)))
        return failure();
    eraseUnusedKernels();
    SmallVector<plan::StepInterface> steps;
    module.walk([&](plan::StepInterface step) { steps.push_back(step); });
    for (plan::StepInterface step : steps) {
      b.setInsertionPoint(step);
      remainingFlops = step.getFlops();
      remainingBytes = step.getBytes();
      lastLaunch = nullptr;
      if (failed(expand(step)))
        return failure();
      if (!lastLaunch)
        continue;
      lastLaunch.setSignals(step.getSignalled());
      step->erase();
    }
    module.walk([&](plan::SwitchOp choice) { choice.setKernelAttr(setterOf(choice)); });
    eraseUnusedBuffers();
    return success();
  }

private:
  /// Launches that take the place of a step. None for what is a launch already, and for matmuls,
  /// which are cuBLASLt's.
  LogicalResult expand(Operation *step) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(step)
        .Case<plan::AttentionOp>([&](auto op) { return expandAttention(op); })
        .Case<plan::AttentionGradOp>([&](auto op) { return expandAttentionGrad(op); })
        .Case<plan::EmbeddingGradOp>([&](auto op) { return expandEmbeddingGrad(op); })
        .Case<plan::CompactOp>([&](auto op) { return expandCompact(op); })
        .Case<plan::CopyOp>([&](auto op) { return expandCopy(op); })
        .Case<plan::FillOp>([&](auto op) { return expandFill(op); })
        .Default(success());
  }

  //===-- Loops -----------------------------------------------------------------------------===//

  LogicalResult expandLoop(plan::LoopOp loop) {
    FailureOr<LoopKernel> text = writeLoopKernel(loop, target.getBlockShared());
    if (failed(text))
      return failure();
    Shape shape{text->blocks, 1, 1, text->threads, text->sharedBytes};
    plan::KernelOp kernel =
        addKernel(loop.getLoc(), "loop", text->text, shape,
                  llvm::map_to_vector(text->args, [](Value v) { return v.getType(); }));
    int64_t flops = 0, bytes = 0;
    for (Operation &op : llvm::make_early_inc_range(loop.getBody().front()))
      if (isa<plan::BufferOp, plan::ViewOp>(op)) {
        op.moveBefore(loop); // it may be an argument
      } else if (auto step = dyn_cast<plan::StepInterface>(op)) {
        flops += static_cast<int64_t>(step.getFlops());
        bytes += static_cast<int64_t>(step.getBytes());
      }
    const int64_t count = loop.getCount();
    b.setInsertionPoint(loop);
    plan::LaunchOp::create(b, loop.getLoc(), kernel.getSymName(), text->args, text->access,
                           flops * count, bytes * count, OpClass::scan, "loop", loop.getStream(),
                           loop.getWaits(), loop.getSignals(), IntegerAttr(),
                           plan::SubstituteAttr());
    loop.erase();
    return success();
  }

  /// Kernels of which only loops made use.
  void eraseUnusedKernels() {
    DenseSet<Attribute> used;
    module.walk([&](plan::LaunchOp launch) { used.insert(launch.getKernelAttr().getAttr()); });
    for (auto kernel : llvm::make_early_inc_range(module.getBody().getOps<plan::KernelOp>()))
      if (!used.contains(kernel.getSymNameAttr()))
        kernel.erase();
  }

  /// Working memory of what was replaced, and what a loop's kernel keeps on chip.
  void eraseUnusedBuffers() {
    SmallVector<Operation *> names;
    module.walk([&](Operation *op) {
      auto buffer = dyn_cast<plan::BufferOp>(op);
      if (isa<plan::ViewOp>(op) || (buffer && buffer.isTransient()))
        names.push_back(op);
    });
    for (Operation *op : llvm::reverse(names)) // views before what they name
      if (op->use_empty())
        op->erase();
  }

  /// The kernel that tells a graph which case a switch has.
  FlatSymbolRefAttr setterOf(plan::SwitchOp choice) {
    MLIRContext *context = module.getContext();
    auto scalar = MemRefType::get({}, b.getI32Type());
    plan::KernelOp kernel =
        addKernel(choice.getLoc(), "set_switch",
                  "(unsigned long long node, const int *selector, int divisor) {\n"
                  "  setSwitch(node, selector, divisor);\n}",
                  Shape(), {scalar, scalar, scalar});
    return FlatSymbolRefAttr::get(context, kernel.getSymName());
  }

  /// The kernel with this text behind its name and these types of arguments; equal ones are the
  /// same.
  plan::KernelOp addKernel(Location loc, StringRef name, StringRef text, const Shape &shape,
                           ArrayRef<Type> layouts) {
    std::string key =
        (text + llvm::join(llvm::map_range(ArrayRef({shape.x, shape.y, shape.z, shape.threads,
                                                     shape.shared, shape.resident}),
                                           [](int64_t n) { return std::to_string(n); }),
                           ","))
            .str();
    plan::KernelOp &kernel = kernels[key];
    if (kernel)
      return kernel;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(*module.getBody().getOps<plan::ProgramOp>().begin());
    std::string symbol = (name + "_" + Twine(kernels.size() - 1)).str();
    kernel = plan::KernelOp::create(b, loc, b.getStringAttr(symbol), b.getTypeArrayAttr(layouts),
                                    b.getI64IntegerAttr(0), b.getI64IntegerAttr(0), IntegerAttr(),
                                    IntegerAttr(), StringAttr(), DenseI64ArrayAttr());
    kernel.getBody().emplaceBlock();
    std::string source = "extern \"C\" __global__ void __launch_bounds__(" +
                         std::to_string(shape.threads) + ", " + std::to_string(shape.resident) +
                         ") " + symbol + text.str() + "\n";
    kernel.setSource(source);
    kernel.setLaunch(ArrayRef({shape.x, shape.y, shape.z, shape.threads, shape.shared}));
    return kernel;
  }

  /// Adds a launch of the kernel with this body; `parameters` are the C++ types of the arguments.
  /// The first launch of a step bears its cost.
  void launch(plan::StepInterface step, StringRef name, ArrayRef<StringRef> parameters,
              StringRef body, Shape shape, ArrayRef<Value> args, ArrayRef<int64_t> access) {
    std::string text = "(";
    for (auto [i, parameter] : llvm::enumerate(parameters))
      text += (Twine(i ? ", " : "") + parameter + " a" + Twine(i)).str();
    text += (") { " + body + " }").str();
    plan::KernelOp kernel =
        addKernel(step.getLoc(), name, text, shape,
                  llvm::map_to_vector(args, [](Value v) { return v.getType(); }));
    // The first waits for what the step waits for; the last signals what it signals.
    lastLaunch = plan::LaunchOp::create(
        b, step.getLoc(), kernel.getSymName(), args, access, std::exchange(remainingFlops, 0),
        std::exchange(remainingBytes, 0), step.getOpClass(), name, step.getStreamNumber(),
        lastLaunch ? ArrayRef<int64_t>() : step.getAwaited(), -1, IntegerAttr(),
        plan::SubstituteAttr());
  }

  static StringRef cType(Type element) {
    if (element.isBF16())
      return "bf16";
    if (element.isF32())
      return "float";
    return element.isInteger(32) ? "int" : "unsigned char";
  }

  //===-- Attention -------------------------------------------------------------------------===//

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
    return typeOf(buffer).getElementType().isBF16() && strides[3] == 1 &&
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
    a.scale = number(op.getScale().convertToDouble());
    a.element = cType(typeOf(op.getQ()).getElementType()).str();
    bool tiles = a.width % 16 == 0 && a.valueWidth % 16 == 0 && a.widest() <= 128 &&
                 llvm::all_of(tensors, isTiled);
    a.tiled = tiles && a.width == a.valueWidth;
    a.warpgroups = tiles && target.has(kWarpgroupMatmul);
    return a;
  }

  /// Tiles of 16 rows for each warp of the forward pass: two where a GPU then still has work for
  /// every multiprocessor and a thread has the registers. The backward pass measured slower with
  /// two: fewer blocks fit a multiprocessor.
  int64_t rowTiles(const Attention &a) const {
    return a.width <= 96 &&
                   ceilDiv(a.queries, 128) * a.heads * a.batch >= target.getMultiprocessors()
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
  /// Rows that the backward kernels walk over at a time. 32 need half the registers, but measured
  /// no faster: (4, 12, 1024, 64) took 98 + 71 us in place of 91 + 64.
  static constexpr int64_t kBackwardTile = 64;

  /// A block for each 64 m rows of a head, or for eight rows; `sharedRows`: of bf16 in shared
  /// memory.
  static Shape shapeFor(const Attention &a, int64_t m, int64_t rows, int64_t heads,
                        int64_t sharedRows, int64_t extra) {
    if (!a.tiled)
      return {ceilDiv(rows, kPlainRows), heads, a.batch, 32 * kPlainRows, 0};
    return {ceilDiv(rows, 64 * m), heads, a.batch, 128, sharedRows * (a.width + 8) * 2 + extra};
  }

  /// Warpgroups of a block of attention_hopper.cuh: as many as `most`, for whose registers there is
  /// room, and as leave a block for every multiprocessor.
  int64_t warpgroups(const Attention &a, int64_t rows, int64_t heads, int64_t most) const {
    int64_t groups = most;
    while (groups > 1 && ceilDiv(rows, 64 * groups) * heads * a.batch < target.getMultiprocessors())
      --groups;
    return groups;
  }

  /// Bytes of a tile of 64 rows.
  static int64_t tileBytes(int64_t width) { return 64 * 2 * llvm::alignTo(width, 64); }

  /// Blocks that share out what there is to do. In shared memory: `own` bytes of each warpgroup,
  /// and `stages` of a tile of either width, of `extra` bytes and of two barriers.
  Shape hopperShape(const Attention &a, int64_t groups, int64_t rows, int64_t heads, int64_t own,
                    int64_t stages, int64_t extra) const {
    int64_t pair = tileBytes(a.width) + tileBytes(a.valueWidth);
    int64_t shared = groups * own + stages * (pair + extra + 16) + 16;
    int64_t resident = groups == 1 && 2 * shared <= target.getMultiprocessorShared() ? 2 : 1;
    int64_t items = ceilDiv(rows, 64 * groups) * heads * a.batch;
    return {std::min(items, target.getMultiprocessors() * resident),
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

  /// Marks the last launch as one that a library's function of the same arguments can stand in for
  /// (see Alternative in runtime/plan/plan.fbs): whole sequences in bf16 with a dense mask or none.
  template <typename Op> void offer(Op op, const Attention &a, plan::LibraryFunction function) {
    if (!a.warpgroups || op.getChunk() != 0 || op.getWindow() != 0 ||
        (op.getCausal() && a.queries != a.keys))
      return;
    const bool works = function != plan::LibraryFunction::nothing;
    lastLaunch.setSubstituteAttr(plan::SubstituteAttr::get(b.getContext(), function,
                                                           works ? op.getScaleAttr() : FloatAttr(),
                                                           works && op.getCausal()));
  }

  LogicalResult expandAttention(plan::AttentionOp op) {
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
    launch(op, "attention_forward", types, body,
           own ? hopperShape(a, m, a.queries, a.heads, tileBytes(a.width), stages, 0)
               : shapeFor(a, m, a.queries, a.heads, 64 * m + 256, 0),
           args, access);
    offer(op, a, plan::LibraryFunction::attention);
    return success();
  }

  /// Two kernels: dq and delta, then dk and dv.
  void expandHopperGrad(plan::AttentionGradOp op, const Attention &a, ArrayRef<Value> args) {
    Value dO = args[0], q = args[1], k = args[2], v = args[3], o = args[4], lse = args[5];
    Value dq = args[6], dk = args[7], dv = args[8], delta = args[9];
    using namespace plan;
    int64_t flops = std::exchange(remainingFlops, 0), bytes = std::exchange(remainingBytes, 0);
    StringRef in = "const bf16 *", out = "bf16 *", statistic = "const float *";
    std::string rest = ", " + a.mask + ", " + a.scale + ");";
    // Of the products of attention_grad (five, here seven) three are for queries.
    remainingFlops = flops * 3 / 7;
    remainingBytes = bytes / 2;
    int64_t groups = warpgroups(a, a.queries, a.heads, a.widest() <= 64 ? 3 : 2);
    int64_t stages = a.widest() <= 80 ? 4 : 3;
    // All arguments of the step, so that another function can do its work: dk and dv are not
    // touched.
    launch(
        op, "attention_query_gradients", {in, in, in, in, in, statistic, out, out, out, "float *"},
        "hopperQueryGradients" + parameters(a, blockText(a, groups, stages), {q, k, v, o, dO, dq}) +
            "(a0, a1, a2, a3, a4, a5, a9, a6" + rest,
        hopperShape(a, groups, a.queries, a.heads, tileBytes(a.width) + 2 * tileBytes(a.valueWidth),
                    stages, 0),
        args, {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite, kWrite, kWrite});
    offer(op, a, plan::LibraryFunction::attention_grad);
    remainingFlops = flops - flops * 3 / 7;
    remainingBytes = bytes - bytes / 2;
    groups = warpgroups(a, a.keys, a.keyHeads, 2);
    launch(op, "attention_key_gradients", {in, in, in, in, statistic, statistic, out, out},
           "hopperKeyGradients" + parameters(a, blockText(a, groups, 4), {q, k, v, dO, dk, dv}) +
               "(a0, a1, a2, a3, a4, a5, a6, a7" + rest,
           hopperShape(a, groups, a.keys, a.keyHeads, tileBytes(a.width) + tileBytes(a.valueWidth),
                       4, 2 * 64 * 4),
           {dO, q, k, v, lse, delta, dk, dv},
           {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite});
    offer(op, a, plan::LibraryFunction::nothing);
  }

  LogicalResult expandAttentionGrad(plan::AttentionGradOp op) {
    Value dO = op.getDO(), q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO();
    Value lse = op.getLse(), dq = op.getDq(), dk = op.getDk(), dv = op.getDv();
    Attention a = describe(op, {dO, q, k, v, o, dq, dk, dv});
    // A number for each row of each head.
    Value delta = plan::BufferOp::create(
        b, op.getLoc(), MemRefType::get({a.batch, a.heads, a.queries}, b.getF32Type()),
        plan::Segment::transient, plan::Category::workspace, IntegerAttr());
    if (a.warpgroups) {
      expandHopperGrad(op, a, {dO, q, k, v, o, lse, dq, dk, dv, delta});
      return success();
    }
    std::string in = "const " + a.element + " *", out = a.element + " *";
    using namespace plan;
    int64_t flops = std::exchange(remainingFlops, 0), bytes = std::exchange(remainingBytes, 0);
    if (a.tiled) {
      int64_t rows = 256 / (a.width <= 64 ? 8 : 16);
      launch(op, "attention_delta", {in, in, "float *"},
             llvm::formatv("attentionDeltaTiled<{0}, {1}, {2}, {3}, {4}>(a0, a1, a2);", a.width,
                           a.queries, a.heads, layout(o), layout(dO))
                 .str(),
             {ceilDiv(a.queries, rows), a.heads, a.batch, 256, 0}, {dO, o, delta},
             {kRead, kRead, kWrite});
    } else {
      launch(op, "attention_delta", {in, in, "float *"},
             llvm::formatv("attentionDelta<{0}, {1}, {2}, {3}, {4}, {5}>(a0, a1, a2);",
                           a.valueWidth, a.queries, a.heads, a.element, layout(o), layout(dO))
                 .str(),
             {ceilDiv(a.queries, kPlainRows), a.heads, a.batch, 32 * kPlainRows, 0}, {dO, o, delta},
             {kRead, kRead, kWrite});
    }
    constexpr int64_t tile = kBackwardTile;
    // Of the products of attention_grad (five, here seven) four are for keys.
    remainingFlops = flops - flops * 3 / 7;
    remainingBytes = bytes - bytes / 2;
    launch(op, "attention_key_gradients",
           {in, in, in, in, "const float *", "const float *", out, out},
           (Twine(a.tiled ? "attentionKeyGradients" : "plainKeyGradients") +
            parameters(a, "1, " + std::to_string(tile), {q, k, v, dO, dk, dv}) +
            "(a0, a1, a2, a3, a4, a5, a6, a7, " + a.mask + ", " + a.scale + ");")
               .str(),
           shapeFor(a, 1, a.keys, a.keyHeads, 128 + 4 * tile, 4 * 4 * tile),
           {dO, q, k, v, lse, delta, dk, dv},
           {kRead, kRead, kRead, kRead, kRead, kRead, kWrite, kWrite});
    remainingFlops = flops * 3 / 7;
    remainingBytes = bytes / 2;
    launch(op, "attention_query_gradients", {in, in, in, in, "const float *", "const float *", out},
           (Twine(a.tiled ? "attentionQueryGradients" : "plainQueryGradients") +
            parameters(a, "1, " + std::to_string(tile), {q, k, v, dO, dq}) +
            "(a0, a1, a2, a3, a4, a5, a6, " + a.mask + ", " + a.scale + ");")
               .str(),
           shapeFor(a, 1, a.queries, a.heads, 128 + 4 * tile, 0), {dO, q, k, v, lse, delta, dq},
           {kRead, kRead, kRead, kRead, kRead, kRead, kWrite});
    return success();
  }

  //===-- Movement --------------------------------------------------------------------------===//

  struct Dim {
    int64_t size, to, from;
  };

  /// The dimensions of a copy, merged where both sides allow.
  static SmallVector<Dim> mergedDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> to,
                                     ArrayRef<int64_t> from) {
    SmallVector<Dim> dims;
    for (auto [size, t, f] : llvm::zip(shape, to, from)) {
      if (size == 1)
        continue;
      if (!dims.empty() && dims.back().to == size * t && dims.back().from == size * f)
        dims.back() = {dims.back().size * size, t, f};
      else
        dims.push_back({size, t, f});
    }
    return dims;
  }

  static std::string dimsText(ArrayRef<Dim> dims) {
    std::string text;
    for (const Dim &dim : dims)
      text += llvm::formatv(", Dim<{0}, {1}, {2}>", dim.size, dim.to, dim.from).str();
    return text;
  }

  static Shape elementShape(int64_t count) { return {ceilDiv(count, 256), 1, 1, 256, 0}; }

  /// Launches a copy by squares if elements lie side by side in different dimensions of both sides.
  bool transposes(plan::CopyOp op, ArrayRef<Dim> dims, StringRef piece, Value to, Value from) {
    constexpr int64_t kLeast = 8, kSide = 32; // what is worth a square, and its side
    const Dim *inTo = llvm::find_if(dims, [](const Dim &dim) { return dim.to == 1; });
    const Dim *inFrom = llvm::find_if(dims, [](const Dim &dim) { return dim.from == 1; });
    if (inTo == dims.end() || inFrom == dims.end() || inTo == inFrom || inTo->size < kLeast ||
        inFrom->size < kLeast)
      return false;
    SmallVector<Dim> order{*inTo, *inFrom};
    int64_t blocks = ceilDiv(inTo->size, kSide) * ceilDiv(inFrom->size, kSide);
    for (const Dim &dim : dims)
      if (&dim != inTo && &dim != inFrom) {
        order.push_back(dim);
        blocks *= dim.size;
      }
    launch(op, "transpose", {(piece + " *").str(), ("const " + piece + " *").str()},
           llvm::formatv("copyTransposed<{0}{1}>(a0, a1);", piece, dimsText(order)).str(),
           {blocks, 1, 1, 256, 0}, {to, from}, {plan::kWrite, plan::kRead});
    return true;
  }

  LogicalResult expandCopy(plan::CopyOp op) {
    Value from = op.getFrom(), to = op.getTo();
    Type element = typeOf(to).getElementType();
    SmallVector<Dim> dims = mergedDims(typeOf(to).getShape(), plan::stridesOf(typeOf(to)),
                                       plan::stridesOf(typeOf(from)));
    // Pieces of up to 16 bytes where both sides have them.
    unsigned bytes = bytesOf(element);
    int64_t width = 16 / bytes;
    auto fits = [&](int64_t w) {
      if (dims.empty() || dims.back().to != 1 || dims.back().from != 1 || dims.back().size % w ||
          std::min(plan::alignmentOf(to), plan::alignmentOf(from)) < w * bytes)
        return false;
      return llvm::all_of(ArrayRef(dims).drop_back(),
                          [&](const Dim &dim) { return dim.to % w == 0 && dim.from % w == 0; });
    };
    while (width > 1 && !fits(width))
      width /= 2;
    if (width > 1) {
      dims.back().size /= width;
      for (Dim &dim : MutableArrayRef(dims).drop_back()) {
        dim.to /= width;
        dim.from /= width;
      }
    }
    static const std::map<int64_t, StringRef> pieces = {
        {1, "unsigned char"}, {2, "unsigned short"}, {4, "uint32"}, {8, "uint2"}, {16, "uint4"}};
    StringRef piece = pieces.at(width * bytes);
    if (width == 1 && transposes(op, dims, piece, to, from))
      return success();
    int64_t count = 1;
    for (const Dim &dim : dims)
      count *= dim.size;
    launch(op, "copy", {(piece + " *").str(), ("const " + piece + " *").str()},
           llvm::formatv("copyElements<{0}, {1}{2}>(a0, a1);", piece, count, dimsText(dims)).str(),
           elementShape(count), {to, from}, {plan::kWrite, plan::kRead});
    return success();
  }

  LogicalResult expandFill(plan::FillOp op) {
    Value to = op.getTo();
    const double value = op.getValue().convertToDouble();
    Type element = typeOf(to).getElementType();
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(to));
    SmallVector<Dim> dims = mergedDims(typeOf(to).getShape(), strides, strides);
    int64_t count = typeOf(to).getNumElements();
    std::string text;
    if (element.isBF16()) {
      llvm::APFloat x(value);
      bool inexact;
      x.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      text = llvm::formatv("bf16({0})", x.bitcastToAPInt().getZExtValue()).str();
    } else {
      text =
          llvm::formatv("{0}({1})",
                        element.isF32()         ? "float"
                        : element.isInteger(32) ? "int"
                                                : "(unsigned char)",
                        std::isinf(value) ? (value < 0 ? "-INFINITY" : "INFINITY") : number(value))
              .str();
    }
    launch(op, "fill", {(cType(element) + " *").str()},
           llvm::formatv("fillElements<{0}, {1}{2}>(a0, {3});", cType(element), count,
                         dimsText(dims), text)
               .str(),
           elementShape(count), {to}, {plan::kWrite});
    return success();
  }

  LogicalResult expandCompact(plan::CompactOp op) {
    launch(op, "compact", {"const unsigned char *", "int *", "int *", "int *"},
           llvm::formatv("compactRows<{0}>(a0, a1, a2, a3);", typeOf(op.getMask()).getNumElements())
               .str(),
           {1, 1, 1, 1024, 0}, llvm::to_vector(op->getOperands()),
           {plan::kRead, plan::kWrite, plan::kWrite, plan::kWrite});
    return success();
  }

  LogicalResult expandEmbeddingGrad(plan::EmbeddingGradOp op) {
    Value tokens = op.getTokens(), dx = op.getDx(), grad = op.getGrad();
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(dx));
    int64_t count = typeOf(tokens).getNumElements(), width = typeOf(grad).getDimSize(1);
    SmallVector<Dim> rows =
        mergedDims(typeOf(dx).getShape().drop_back(), ArrayRef(strides).drop_back(),
                   ArrayRef(strides).drop_back());
    if (rows.size() > 1 || (width > 1 && strides.back() != 1))
      return op.emitError("the gradient of an embedding has rows at several distances");
    int64_t stride = rows.empty() ? width : rows.front().to;
    // Every block reads all ids: as many rows of the table each as keep that below 256 MiB.
    int64_t table = typeOf(grad).getDimSize(0);
    int64_t each = std::clamp<int64_t>(ceilDiv(4 * table * count, 256 << 20), 1, 255);
    launch(op, "embedding_grad", {"const int *", "const float *", "float *"},
           llvm::formatv("embeddingGradient<{0}, {1}, {2}, {3}, {4}>(a0, a1, a2);", count, table,
                         width, stride, each)
               .str(),
           {ceilDiv(table, each), 1, 1, 256, 0}, {tokens, dx, grad},
           {plan::kRead, plan::kRead, plan::kWrite});
    return success();
  }

  plan::PlanModuleOp module;
  OpBuilder b;
  TargetAttr target;
  llvm::StringMap<plan::KernelOp> kernels; ///< by text and shape
  int64_t remainingFlops = 0, remainingBytes = 0;
  plan::LaunchOp lastLaunch; ///< of the step
};

} // namespace

LogicalResult expandSteps(plan::PlanModuleOp module, TargetAttr target) {
  return Expander(module, target).run();
}

std::string templateSource(plan::PlanModuleOp module) {
  std::string instances;
  for (auto kernel : module.getBody().getOps<plan::KernelOp>())
    if (std::optional<StringRef> source = kernel.getSource())
      instances += *source;
  return instances.empty() ? "" : kTemplates + instances;
}

} // namespace hydra::cuda
