// CUDA C++ for loops: what is moved, barriers, and the text of calls.
#include "compiler/codegen/cuda/LoopKernels.h"

#include "compiler/codegen/RecordGroup.h"
#include "compiler/codegen/cuda/LoopGroup.h"
#include "compiler/codegen/cuda/LoopPlacement.h"
#include "compiler/codegen/cuda/StepLauncher.h"
#include "dialects/plan/Ordering.h"
#include "dialects/plan/Slices.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

constexpr int64_t kThreads = 512; // as in templates/loop.cuh

int64_t bytesOf(Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

class Writer {
public:
  Writer(plan::LoopOp loop, int64_t mostShared)
      : loop(loop), slices(*loop.getSlices()), steps(stepsOf(loop)),
        places(loop, steps, mostShared) {}

  FailureOr<LoopKernel> write() {
    for (plan::BufferOp buffer : places.carriedBuffers())
      carry(buffer, *places.sharedForm(buffer));
    std::string body, chunksIn, chunksOut;
    for (const auto &[value, tile] : places.chunks())
      moveTile(value, tile, chunksIn, chunksOut);
    if (!next.empty())
      chunksIn += formatv("if (iteration + 1 < {0}) {{\n{1}}\n", loop.getCount(), next);
    if (!chunksIn.empty())
      chunksIn += "__syncthreads();\n";
    if (!chunksOut.empty())
      chunksOut = "__syncthreads();\n" + chunksOut;
    for (const LoopStep &step : steps) {
      if (needsBarrier(step))
        body += "__syncthreads();\n";
      note(step);
      if (failed(textOf(step, body)))
        return failure();
    }
    std::string advance;
    for (auto [value, stride] : llvm::zip(loop.getMoving(), loop.getStrides()))
      for (auto &[place, name] : outside)
        if (place.first == value)
          advance +=
              formatv("{0} += {1};\n", name, stride / bytesOf(typeOf(value).getElementType()));
    LoopKernel kernel;
    std::string parameters;
    for (auto [i, value] : llvm::enumerate(arguments)) {
      parameters +=
          formatv("{0}{1} *a{2}", i ? ", " : "", cType(typeOf(value).getElementType()), i);
      kernel.access.push_back(plan::kRead);
    }
    for (const plan::BufferUse &use : plan::usesOf(loop))
      if (auto *known = llvm::find(arguments, use.value); use.writes && known != arguments.end())
        kernel.access[known - arguments.begin()] = plan::kUpdate;
    for (auto [value, access] : llvm::zip(arguments, kernel.access))
      if (bufferOfIteration(value)) // written before it is read
        access = plan::kWrite;
    for (plan::BufferOp buffer : places.carriedBuffers())
      kernel.access[argument(buffer)] = plan::kUpdate;
    kernel.text =
        formatv("({0}) {{\n"
                "extern __shared__ __align__(128) unsigned char shared[];\n"
                "const int slice = blockIdx.x;\n"
                "{1}{2}"
                "for (int iteration = 0; iteration < {3}; ++iteration) {{\n"
                "__syncthreads();\n{4}{5}{6}{7}}\n{8}}",
                parameters, declarations, carryIn, loop.getCount(), chunksIn, body, chunksOut,
                advance, carryOut.empty() ? "" : "__syncthreads();\n" + carryOut)
            .str();
    kernel.args = llvm::map_to_vector(arguments, [&](Value v) { return wholeOf(v); });
    kernel.blocks = slices;
    kernel.threads = kThreads;
    kernel.sharedBytes = places.sharedBytes();
    return kernel;
  }

private:
  static std::vector<LoopStep> stepsOf(plan::LoopOp loop) {
    std::vector<LoopStep> steps;
    for (auto step : loop.getBody().getOps<plan::StepInterface>())
      steps.push_back({step, step.getAccesses(), *step.slicedDimensions(*loop.getSlices())});
    return steps;
  }

  /// Adds what a step does for its slice.
  LogicalResult textOf(const LoopStep &step, std::string &body) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(step.op)
        .Case([&](plan::LaunchOp op) { return group(step, op, body); })
        .Case([&](plan::MatmulOp op) {
          body += matmul(step, op);
          return success();
        })
        .Case([&](plan::CopyOp) {
          body += copy(step);
          return success();
        })
        .Default(
            [](Operation *op) { return op->emitOpError("cannot be part of a loop's kernel"); });
  }

  //===-- Chunks ----------------------------------------------------------------------------===//

  void moveTile(Value value, const LoopTile &tile, std::string &in, std::string &out) {
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(value));
    const int64_t element = bytesOf(typeOf(value).getElementType());
    const int64_t wide = LoopPlacement::outsideAlignment(value, 1) >= 16 ? 16 / element : 1;
    std::string far = outsidePointer(value, tile.sliced), near = pointer(value, tile.sliced);
    if (tile.read) {
      Pieces pieces = piecesOf(value, tile.sliced, wide, tile.strides, strides);
      in += pieces.copy(near, far);
      auto moving = llvm::find(loop.getMoving(), value) - loop.getMoving().begin();
      if (wide > 1)
        next += formatv("prefetchSlice<{0}{1}>(reinterpret_cast<const uint4 *>({2} + ({3})));\n",
                        pieces.count, pieces.dims, far, loop.getStrides()[moving] / element);
    }
    if (tile.written)
      out += piecesOf(value, tile.sliced, wide, strides, tile.strides).copy(far, near);
  }

  /// The elements of a slice, of which `wide` side by side are moved at once.
  struct Pieces {
    std::string type, dims; ///< as the templates have them
    int64_t count = 1;
    std::string copy(const std::string &to, const std::string &from) const {
      return formatv("copySlice<{0}, {1}{2}>(reinterpret_cast<{0} *>({3}), reinterpret_cast<const "
                     "{0} *>({4}));\n",
                     type, count, dims, to, from);
    }
  };

  static Pieces piecesOf(Value value, unsigned sliced, int64_t wide, ArrayRef<int64_t> to,
                         ArrayRef<int64_t> from) {
    MemRefType type = typeOf(value);
    Pieces pieces{wide > 1 ? "uint4" : cType(type.getElementType()).str(), "", 1};
    for (unsigned d = sliced; d < to.size(); ++d) {
      const bool isLast = d + 1 == to.size();
      const int64_t size = type.getDimSize(d) / (isLast ? wide : 1), by = isLast ? 1 : wide;
      if (size == 1)
        continue;
      pieces.dims += formatv(", Dim<{0}, {1}, {2}>", size, to[d] / by, from[d] / by);
      pieces.count *= size;
    }
    return pieces;
  }

  /// Copies the slice of a carried buffer to shared memory and back.
  void carry(plan::BufferOp buffer, const LoopBuffer &shared) {
    const int64_t element = bytesOf(typeOf(buffer).getElementType());
    const int64_t pieces = plan::extentBytes(typeOf(buffer)) / slices / 16; // of 16 bytes
    const int64_t row = shared.row ? shared.row * element / 16 : pieces;
    const int64_t padded = shared.row ? (shared.row + kLoopPad) * element / 16 : pieces;
    std::string outside =
        formatv("reinterpret_cast<uint4 *>(a{0}) + slice * {1}", argument(buffer), pieces);
    std::string inside = formatv("reinterpret_cast<uint4 *>(shared + {0})", shared.begin);
    carryIn += formatv("copySlice<uint4, {0}, Dim<{1}, {2}, {3}>, Dim<{3}, 1, 1>>({4}, {5});\n",
                       pieces, pieces / row, padded, row, inside, outside);
    carryOut += formatv("copySlice<uint4, {0}, Dim<{1}, {3}, {2}>, Dim<{3}, 1, 1>>({5}, {4});\n",
                        pieces, pieces / row, padded, row, inside, outside);
  }

  unsigned argument(Value value) {
    auto *known = llvm::find(arguments, value);
    unsigned number = known - arguments.begin();
    if (known == arguments.end())
      arguments.push_back(value);
    return number;
  }

  /// A variable that points at the first element of the slice.
  std::string pointer(Value value, unsigned sliced) {
    plan::Place place = plan::placeOf(value);
    const LoopTile *tile = places.chunkOf(value);
    const LoopBuffer *shared = places.sharedForm(place.buffer);
    if (!tile && !shared)
      return outsidePointer(value, sliced);
    std::string &name = inside[value];
    if (!name.empty())
      return name;
    name = "s" + std::to_string(inside.size() - 1);
    Type type = typeOf(value).getElementType();
    int64_t begin = tile ? tile->begin : shared->begin;
    int64_t offset = tile ? 0 : shared->at(place.bytes / bytesOf(type));
    declarations += formatv("{0} *{1} = reinterpret_cast<{0} *>(shared + {2}) + {3};\n",
                            cType(type), name, begin, offset);
    return name;
  }

  /// The same where the plan has put it.
  std::string outsidePointer(Value value, unsigned sliced) {
    std::string &name = outside[{value, sliced}];
    if (!name.empty())
      return name;
    name = "v" + std::to_string(outside.size() - 1);
    MemRefType type = typeOf(value);
    // A buffer of one iteration is one argument, whatever views of it there are.
    plan::BufferOp own = bufferOfIteration(value);
    const int64_t first =
        own ? plan::placeOf(value).bytes / bytesOf(type.getElementType()) : firstElement(value);
    declarations +=
        formatv("{0} *{1} = a{2} + ({3}) + {4};\n", cType(type.getElementType()), name,
                argument(own ? own.getBuffer() : value), sliceText(type, sliced), first);
    return name;
  }

  /// The buffer of a value that only one iteration knows; null for others.
  plan::BufferOp bufferOfIteration(Value value) {
    plan::BufferOp buffer = plan::placeOf(value).buffer;
    return buffer->getBlock() == &loop.getBody().front() ? buffer : plan::BufferOp();
  }

  /// The bytes by which the loop moves a value; 0 for one that it leaves in place.
  int64_t strideOf(Value value) {
    auto moving = llvm::find(loop.getMoving(), value);
    return moving == loop.getMoving().end() ? 0
                                            : loop.getStrides()[moving - loop.getMoving().begin()];
  }

  /// Where the first iteration finds a value, in elements from the lowest address of all.
  int64_t firstElement(Value value) {
    const int64_t back = -std::min<int64_t>(strideOf(value), 0) * (loop.getCount() - 1);
    return back / bytesOf(typeOf(value).getElementType());
  }

  /// What the kernel touches of an argument in all iterations: a view with the iterations as its
  /// first dimension, from the lowest address on. The loops around move it as they move the
  /// argument.
  Value wholeOf(Value value) {
    const int64_t stride = strideOf(value);
    if (stride == 0)
      return value;
    MemRefType type = typeOf(value);
    const int64_t element = bytesOf(type.getElementType());
    SmallVector<int64_t> shape(type.getShape()), strides = plan::stridesOf(type);
    shape.insert(shape.begin(), loop.getCount());
    strides.insert(strides.begin(), std::abs(stride) / element);
    plan::Place place = plan::placeOf(value);
    OpBuilder b(value.getContext());
    b.setInsertionPointAfter(value.getDefiningOp());
    Value whole = plan::ViewOp::create(
        b, value.getLoc(), plan::bufferType(shape, strides, type.getElementType()), place.buffer,
        b.getI64IntegerAttr(place.bytes / element - firstElement(value)));
    for (auto outer = loop->getParentOfType<plan::LoopOp>(); outer;
         outer = outer->getParentOfType<plan::LoopOp>()) {
      auto moving = llvm::find(outer.getMoving(), value);
      if (moving == outer.getMoving().end())
        continue;
      SmallVector<int64_t> all(outer.getStrides());
      all.push_back(all[moving - outer.getMoving().begin()]);
      outer.getMovingMutable().append(whole);
      outer.setStrides(all);
    }
    return whole;
  }

  static std::string sliceText(MemRefType type, unsigned sliced) {
    SmallVector<int64_t> strides = plan::stridesOf(type);
    return offsetText("slice", type.getShape().take_front(sliced),
                      ArrayRef(strides).take_front(sliced));
  }

  //===-- Barriers --------------------------------------------------------------------------===//

  bool needsBarrier(const LoopStep &step) const {
    for (auto [i, arg] : llvm::enumerate(step.args())) {
      Operation *buffer = plan::placeOf(arg).buffer;
      if (written.contains(buffer) || (step.writes(i) && read.contains(buffer)))
        return true;
      // Others may have had the same bytes of shared memory before.
      auto overlaps = [&](Operation *other) {
        return other != buffer && places.shareBytes(buffer, other);
      };
      if (step.writes(i) && (llvm::any_of(read, overlaps) || llvm::any_of(written, overlaps)))
        return true;
    }
    return false;
  }

  void note(const LoopStep &step) {
    if (needsBarrier(step)) {
      written.clear();
      read.clear();
    }
    for (auto [i, arg] : llvm::enumerate(step.args()))
      (step.writes(i) ? written : read).insert(plan::placeOf(arg).buffer);
  }

  //===-- Calls -----------------------------------------------------------------------------===//

  std::string copy(const LoopStep &step) {
    Value from = step.args()[0], to = step.args()[1];
    SmallVector<int64_t> fromStrides = places.stridesOf(from), toStrides = places.stridesOf(to);
    // Pieces of 16 bytes where both sides have them.
    const size_t rank = toStrides.size();
    int64_t wide = 16 / bytesOf(typeOf(to).getElementType());
    if (rank <= step.sliced[1] || toStrides.back() != 1 || fromStrides.back() != 1 ||
        typeOf(to).getShape().back() % wide || places.alignmentOf(to, 1) < 16 ||
        places.alignmentOf(from, 1) < 16)
      wide = 1;
    // Both have the same shape, so the same dimensions are sliced.
    return piecesOf(to, step.sliced[1], wide, toStrides, fromStrides)
        .copy(pointer(to, step.sliced[1]), pointer(from, step.sliced[0]));
  }

  /// A matrix of the template from the last two dimensions; `transposed` exchanges them.
  std::string matrix(const LoopStep &step, unsigned i, bool transposed) {
    Value value = step.args()[i];
    MemRefType type = typeOf(value);
    SmallVector<int64_t> strides = places.stridesOf(value);
    const size_t rank = strides.size();
    unsigned down = rank - 2, across = rank - 1;
    if (transposed)
      std::swap(down, across);
    return formatv("Matrix<{0}, {1}, {2}, {3}, {4}, {5}, {6}>{{{7}}", cType(type.getElementType()),
                   type.getDimSize(down), type.getDimSize(across), strides[down], strides[across],
                   places.alignmentOf(value, 1), places.isShared(value) ? "true" : "false",
                   pointer(value, step.sliced[i]));
  }

  std::string matmul(const LoopStep &step, plan::MatmulOp op) {
    std::string a = matrix(step, 0, op.getTransposeA()), b = matrix(step, 1, !op.getTransposeB()),
                c = matrix(step, 2, false);
    return formatv("multiplySlice<{0}{1}>({2}, {3}, {4}, {5}, {6});\n",
                   op.getAccumulate() ? "true" : "false", op.getCompute() ? ", true" : "", c, a, b,
                   pointer(step.args()[0], 0), pointer(step.args()[1], 0));
  }

  //===-- Groups ----------------------------------------------------------------------------===//

  LogicalResult group(const LoopStep &step, plan::LaunchOp launch, std::string &body) {
    auto kernel = launch->getParentOfType<plan::PlanModuleOp>().lookupSymbol<plan::KernelOp>(
        launch.getKernelAttr());
    FusedOp fused = *kernel.getBody().getOps<FusedOp>().begin();
    FailureOr<RowProgram> program = recordRows(fused);
    if (failed(program))
      return failure();
    SmallVector<SliceTensor> tensors;
    for (auto [arg, sliced] : llvm::zip(step.args(), step.sliced))
      tensors.push_back(
          {pointer(arg, sliced), typeOf(arg), places.stridesOf(arg), places.alignmentOf(arg, 1)});
    const size_t inputs = program->inputs.size();
    body += groupText(*program, *plan::leadingDimensions(program->domain.rowShape, slices),
                      ArrayRef(tensors).take_front(inputs), ArrayRef(tensors).drop_front(inputs));
    return success();
  }

  plan::LoopOp loop;
  int64_t slices;
  std::vector<LoopStep> steps;
  LoopPlacement places;
  SmallVector<Value> arguments;
  // Variables that point into shared memory, or not: what one step slices, another may read whole.
  DenseMap<Value, std::string> inside;
  llvm::MapVector<std::pair<Value, unsigned>, std::string> outside;
  DenseSet<Operation *> written, read; ///< since the last barrier
  std::string declarations, carryIn, carryOut, next;
};

} // namespace

FailureOr<LoopKernel> writeLoopKernel(plan::LoopOp loop, int64_t mostShared) {
  return Writer(loop, mostShared).write();
}

} // namespace hydra::cuda
