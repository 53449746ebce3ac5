// CUDA C++ for loops: what lies in shared memory, what is moved, barriers, and the text of calls.
#include "compiler/codegen/cuda/LoopKernels.h"

#include "compiler/codegen/RecordGroup.h"
#include "compiler/codegen/cuda/LoopGroup.h"
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
constexpr int64_t kAlignment = 128;
constexpr int64_t kPad = 8; ///< elements between rows in shared memory

int64_t bytesOf(Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

class Writer {
public:
  Writer(plan::LoopOp loop, int64_t mostShared)
      : loop(loop), slices(*loop.getSlices()), mostShared(mostShared) {}

  FailureOr<LoopKernel> write() {
    for (auto step : loop.getBody().getOps<plan::StepInterface>())
      steps.push_back({step, step.getAccesses(), *step.slicedDimensions(slices)});
    placeInShared();
    std::string body, chunksIn, chunksOut;
    for (const auto &[value, tile] : tiles)
      moveTile(value, tile, chunksIn, chunksOut);
    if (!next.empty())
      chunksIn += formatv("if (iteration + 1 < {0}) {{\n{1}}\n", loop.getCount(), next);
    if (!chunksIn.empty())
      chunksIn += "__syncthreads();\n";
    if (!chunksOut.empty())
      chunksOut = "__syncthreads();\n" + chunksOut;
    for (const Step &step : steps) {
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
    for (Value buffer : broughtBack)
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
    kernel.sharedBytes = sharedBytes;
    return kernel;
  }

private:
  struct Step;

  /// Adds what a step does for its slice.
  LogicalResult textOf(const Step &step, std::string &body) {
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

  struct Step {
    plan::StepInterface op;
    SmallVector<plan::Access> accesses;
    SmallVector<unsigned> sliced; ///< leading dimensions of each argument
    OperandRange args() const { return op->getOperands(); }
    bool writes(unsigned i) const { return accesses[i] != plan::kRead; }
  };

  //===-- Shared memory ---------------------------------------------------------------------===//

  /// Gives buffers of which every slice has its own part a place in shared memory: those that are
  /// carried for the whole loop, those of an iteration as long as they live; between the two come
  /// the chunks that matmuls read, and last all others.
  void placeInShared() {
    struct Item {
      plan::BufferOp buffer;
      int64_t first, last;
      bool carried, apart = true, written = false;
      SmallVector<std::pair<Value, unsigned>> views;
      int64_t bytes = 0;
    };
    llvm::MapVector<Operation *, Item> items;
    for (auto [number, step] : llvm::enumerate(steps))
      for (auto [i, arg] : llvm::enumerate(step.args())) {
        plan::BufferOp buffer = plan::placeOf(arg).buffer;
        int64_t position = number;
        const bool inside = buffer->getBlock() == &loop.getBody().front();
        Item &item =
            items.insert({buffer, Item{buffer, position, position, !inside, true, false, {}, 0}})
                .first->second;
        item.last = position;
        item.written |= step.writes(i);
        item.apart &= plan::liesInOwnPart(arg, step.sliced[i], slices);
        item.views.emplace_back(arg, step.sliced[i]);
      }
    SmallVector<Tile> chunks = findTiles();
    std::vector<Item> order;
    for (auto &[buffer, item] : items) {
      if (!item.apart || !item.written)
        continue;
      Shared shared = sharedForm(item.buffer, item.views);
      item.bytes = shared.bytes;
      if (item.bytes % 16 != 0)
        continue;
      inShared[item.buffer] = shared;
      order.push_back(item);
    }
    // What is carried first, then the small.
    llvm::stable_sort(order, [](const Item &a, const Item &b) {
      return std::tuple(!a.carried, a.bytes) < std::tuple(!b.carried, b.bytes);
    });
    struct Placed {
      int64_t begin, end, first, last;
    };
    std::vector<Placed> placed; // by begin
    auto place = [&](int64_t bytes, int64_t first, int64_t last) -> std::optional<int64_t> {
      int64_t at = 0;
      for (const Placed &other : placed)
        if (other.first <= last && first <= other.last && at < other.end &&
            other.begin < at + bytes)
          at = (other.end + kAlignment - 1) / kAlignment * kAlignment;
      if (at + bytes > mostShared)
        return std::nullopt;
      placed.push_back({at, at + bytes, first, last});
      llvm::stable_sort(placed, [](const Placed &a, const Placed &b) { return a.begin < b.begin; });
      sharedBytes = std::max(sharedBytes, at + bytes);
      return at;
    };
    auto placeTiles = [&](bool ofMatmuls) {
      for (Tile &tile : chunks)
        if (tile.ofMatmul == ofMatmuls)
          if (std::optional<int64_t> at = place(tile.bytes, -1, INT64_MAX)) {
            tile.begin = *at;
            tiles.insert({tile.value, tile});
          }
    };
    bool tilesOfProducts = false;
    for (Item &item : order) {
      if (!item.carried && !std::exchange(tilesOfProducts, true))
        placeTiles(true);
      std::optional<int64_t> at = item.carried ? place(item.bytes, -1, INT64_MAX)
                                               : place(item.bytes, item.first, item.last);
      if (!at) {
        inShared.erase(item.buffer);
        continue;
      }
      inShared[item.buffer].begin = *at;
      if (item.carried)
        carry(item.buffer, inShared[item.buffer]);
    }
    if (!tilesOfProducts)
      placeTiles(true);
    placeTiles(false);
  }

  //===-- Chunks ----------------------------------------------------------------------------===//

  /// A slice's chunk of a sequence that is brought to shared memory in every iteration, or back.
  struct Tile {
    Value value;
    unsigned sliced = 0;
    bool read = false, written = false, ofMatmul = false;
    SmallVector<int64_t> strides; ///< of all dimensions; of sliced ones 0
    int64_t bytes = 0, begin = 0;
  };

  /// Chunks that steps look at, and slice, in one way alone.
  SmallVector<Tile> findTiles() {
    llvm::MapVector<Value, Tile> found;
    DenseMap<Operation *, DenseSet<Value>> views; // of a buffer
    DenseSet<Value> moving(loop.getMoving().begin(), loop.getMoving().end()), mixed;
    DenseMap<Value, unsigned> slicing;
    for (const Step &step : steps)
      for (auto [i, arg] : llvm::enumerate(step.args())) {
        views[plan::placeOf(arg).buffer].insert(arg);
        if (slicing.try_emplace(arg, step.sliced[i]).first->second != step.sliced[i])
          mixed.insert(arg);
        if (!moving.contains(arg) || step.sliced[i] == 0)
          continue;
        Tile &tile = found[arg];
        tile.value = arg;
        tile.sliced = step.sliced[i];
        tile.ofMatmul |= isa<plan::MatmulOp>(step.op);
        // What is written first need not be loaded.
        const bool update = step.accesses[i] == plan::kUpdate;
        tile.read |= !tile.written && (!step.writes(i) || update);
        tile.written |= step.writes(i);
      }
    SmallVector<Tile> tiles;
    for (auto &[value, tile] : found)
      if (views[plan::placeOf(value).buffer].size() == 1 && !mixed.contains(value) && shape(tile))
        tiles.push_back(tile);
    llvm::stable_sort(tiles, [](const Tile &a, const Tile &b) { return a.bytes < b.bytes; });
    return tiles;
  }

  /// Strides of a tile, row by row with a pad behind each; false where it would not pay.
  static bool shape(Tile &tile) {
    MemRefType type = typeOf(tile.value);
    SmallVector<int64_t> old = plan::stridesOf(type);
    const int64_t element = bytesOf(type.getElementType());
    tile.strides.assign(old.size(), 0);
    int64_t next = 1, rows = 0;
    for (size_t d = old.size(); d-- > tile.sliced;) {
      const int64_t size = type.getDimSize(d);
      if (size > 1 && old[d] == 0)
        return false;
      tile.strides[d] = next;
      next *= size;
      if (size > 1 && rows++ == 0)
        next += kPad;
    }
    tile.bytes = next * element;
    return rows > 1 && !old.empty() && old.back() == 1 && type.getShape().back() >= 16 &&
           type.getShape().back() * element % 16 == 0;
  }

  void moveTile(Value value, const Tile &tile, std::string &in, std::string &out) {
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(value));
    const int64_t element = bytesOf(typeOf(value).getElementType());
    const int64_t wide = outsideAlignment(value, 1) >= 16 ? 16 / element : 1;
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

  /// A slice's part of a buffer in shared memory. Rows of `row` elements lie `kPad` elements
  /// further apart than they are long, so that a column of them meets all banks; row 0: dense.
  struct Shared {
    int64_t begin = 0, bytes = 0, row = 0;

    int64_t at(int64_t element) const {
      return row ? element / row * (row + kPad) + element % row : element;
    }
    SmallVector<int64_t> strides(MemRefType type) const {
      SmallVector<int64_t> strides = plan::stridesOf(type);
      if (row)
        for (int64_t &stride : strides)
          if (stride % row == 0)
            stride = stride / row * (row + kPad);
      return strides;
    }
  };

  Shared sharedForm(plan::BufferOp buffer, ArrayRef<std::pair<Value, unsigned>> views) const {
    MemRefType type = typeOf(buffer);
    const int64_t element = bytesOf(type.getElementType()), count = type.getNumElements() / slices;
    Shared dense{0, count * element, 0};
    const int64_t row = type.getRank() > 0 ? type.getShape().back() : 1;
    if (row < 16 || count % row != 0 || count == row || row * element % 16 != 0)
      return dense;
    // Views must not run from one row into the next.
    for (auto [view, sliced] : views) {
      MemRefType own = typeOf(view);
      SmallVector<int64_t> strides = plan::stridesOf(own);
      int64_t last = plan::placeOf(view).bytes / element % row;
      for (unsigned d = sliced; d < strides.size(); ++d)
        if (own.getDimSize(d) > 1 && strides[d] % row != 0)
          last += (own.getDimSize(d) - 1) * strides[d];
      if (last >= row)
        return dense;
    }
    return {0, count / row * (row + kPad) * element, row};
  }

  /// The strides of a value where it lies now.
  SmallVector<int64_t> stridesOf(Value value) const {
    if (auto tile = tiles.find(value); tile != tiles.end())
      return tile->second.strides;
    auto shared = inShared.find(plan::placeOf(value).buffer);
    return shared == inShared.end() ? plan::stridesOf(typeOf(value))
                                    : shared->second.strides(typeOf(value));
  }

  /// Bytes by which every slice's rows are aligned: the first element, and those that lie any
  /// stride but that of the last dimensions `inner` further.
  int64_t alignmentOf(Value value, unsigned inner) const {
    plan::Place place = plan::placeOf(value);
    const int64_t element = bytesOf(typeOf(value).getElementType());
    int64_t begin = 0; // in shared memory
    if (auto shared = inShared.find(place.buffer); shared != inShared.end())
      begin = shared->second.at(place.bytes / element) * element;
    else if (!tiles.count(value))
      return outsideAlignment(value, inner);
    unsigned first = *plan::leadingDimensions(typeOf(value).getShape(), slices);
    return rowAlignment(value, stridesOf(value), first, inner, kAlignment | begin);
  }

  /// The same where the plan has put it.
  static int64_t outsideAlignment(Value value, unsigned inner) {
    return rowAlignment(value, plan::stridesOf(typeOf(value)), 0, inner, plan::alignmentOf(value));
  }

  /// The largest power of two that divides `bytes` and the strides of dimensions from `first` to
  /// the last `inner`.
  static int64_t rowAlignment(Value value, ArrayRef<int64_t> strides, unsigned first,
                              unsigned inner, int64_t bytes) {
    for (unsigned d = first; d + inner < strides.size(); ++d)
      if (typeOf(value).getDimSize(d) > 1)
        bytes |= strides[d] * bytesOf(typeOf(value).getElementType());
    return bytes & -bytes;
  }

  /// Brings the slice of a carried buffer to shared memory and back.
  void carry(plan::BufferOp buffer, const Shared &shared) {
    broughtBack.push_back(buffer);
    const int64_t element = bytesOf(typeOf(buffer).getElementType());
    const int64_t pieces = plan::extentBytes(typeOf(buffer)) / slices / 16; // of 16 bytes
    const int64_t row = shared.row ? shared.row * element / 16 : pieces;
    const int64_t padded = shared.row ? (shared.row + kPad) * element / 16 : pieces;
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
    auto tile = tiles.find(value);
    auto shared = inShared.find(place.buffer);
    if (tile == tiles.end() && shared == inShared.end())
      return outsidePointer(value, sliced);
    std::string &name = inside[value];
    if (!name.empty())
      return name;
    name = "s" + std::to_string(inside.size() - 1);
    Type type = typeOf(value).getElementType();
    int64_t begin = tile != tiles.end() ? tile->second.begin : shared->second.begin;
    int64_t offset = tile != tiles.end() ? 0 : shared->second.at(place.bytes / bytesOf(type));
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
    const int64_t first = own ? plan::placeOf(value).bytes / bytesOf(type.getElementType())
                              : firstElement(value);
    declarations += formatv("{0} *{1} = a{2} + ({3}) + {4};\n", cType(type.getElementType()), name,
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
    return moving == loop.getMoving().end()
               ? 0
               : loop.getStrides()[moving - loop.getMoving().begin()];
  }

  /// Where the first iteration finds a value, in elements from the lowest address of all.
  int64_t firstElement(Value value) {
    const int64_t back = -std::min<int64_t>(strideOf(value), 0) * (loop.getCount() - 1);
    return back / bytesOf(typeOf(value).getElementType());
  }

  /// What the kernel touches of an argument in all iterations: a view with the iterations as its first
  /// dimension, from the lowest address on. The loops around move it as they move the argument.
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

  bool liesInShared(Value value) const {
    return tiles.count(value) || inShared.count(plan::placeOf(value).buffer);
  }

  static std::string sliceText(MemRefType type, unsigned sliced) {
    SmallVector<int64_t> strides = plan::stridesOf(type);
    return offsetText("slice", type.getShape().take_front(sliced),
                      ArrayRef(strides).take_front(sliced));
  }

  //===-- Barriers --------------------------------------------------------------------------===//

  bool needsBarrier(const Step &step) const {
    for (auto [i, arg] : llvm::enumerate(step.args())) {
      Operation *buffer = plan::placeOf(arg).buffer;
      if (written.contains(buffer) || (step.writes(i) && read.contains(buffer)))
        return true;
      // Others may have had the same bytes of shared memory before.
      auto overlaps = [&](Operation *other) {
        return other != buffer && shareBytes(buffer, other);
      };
      if (step.writes(i) && (llvm::any_of(read, overlaps) || llvm::any_of(written, overlaps)))
        return true;
    }
    return false;
  }

  bool shareBytes(Operation *a, Operation *b) const {
    auto x = inShared.find(a), y = inShared.find(b);
    if (x == inShared.end() || y == inShared.end())
      return false;
    auto end = [&](const auto &it) { return it->second.begin + it->second.bytes; };
    return x->second.begin < end(y) && y->second.begin < end(x);
  }

  void note(const Step &step) {
    if (needsBarrier(step)) {
      written.clear();
      read.clear();
    }
    for (auto [i, arg] : llvm::enumerate(step.args()))
      (step.writes(i) ? written : read).insert(plan::placeOf(arg).buffer);
  }

  //===-- Calls -----------------------------------------------------------------------------===//

  std::string copy(const Step &step) {
    Value from = step.args()[0], to = step.args()[1];
    SmallVector<int64_t> fromStrides = stridesOf(from), toStrides = stridesOf(to);
    // Pieces of 16 bytes where both sides have them.
    const size_t rank = toStrides.size();
    int64_t wide = 16 / bytesOf(typeOf(to).getElementType());
    if (rank <= step.sliced[1] || toStrides.back() != 1 || fromStrides.back() != 1 ||
        typeOf(to).getShape().back() % wide || alignmentOf(to, 1) < 16 || alignmentOf(from, 1) < 16)
      wide = 1;
    // Both have the same shape, so the same dimensions are sliced.
    return piecesOf(to, step.sliced[1], wide, toStrides, fromStrides)
        .copy(pointer(to, step.sliced[1]), pointer(from, step.sliced[0]));
  }

  /// A matrix of the template from the last two dimensions; `transposed` exchanges them.
  std::string matrix(const Step &step, unsigned i, bool transposed) {
    Value value = step.args()[i];
    MemRefType type = typeOf(value);
    SmallVector<int64_t> strides = stridesOf(value);
    const size_t rank = strides.size();
    unsigned down = rank - 2, across = rank - 1;
    if (transposed)
      std::swap(down, across);
    return formatv("Matrix<{0}, {1}, {2}, {3}, {4}, {5}, {6}>{{{7}}", cType(type.getElementType()),
                   type.getDimSize(down), type.getDimSize(across), strides[down], strides[across],
                   alignmentOf(value, 1), liesInShared(value) ? "true" : "false",
                   pointer(value, step.sliced[i]));
  }

  std::string matmul(const Step &step, plan::MatmulOp op) {
    std::string a = matrix(step, 0, op.getTransposeA()), b = matrix(step, 1, !op.getTransposeB()),
                c = matrix(step, 2, false);
    return formatv("multiplySlice<{0}{1}>({2}, {3}, {4}, {5}, {6});\n",
                   op.getAccumulate() ? "true" : "false", op.getCompute() ? ", true" : "", c, a, b,
                   pointer(step.args()[0], 0), pointer(step.args()[1], 0));
  }

  //===-- Groups ----------------------------------------------------------------------------===//

  LogicalResult group(const Step &step, plan::LaunchOp launch, std::string &body) {
    auto kernel = launch->getParentOfType<plan::PlanModuleOp>().lookupSymbol<plan::KernelOp>(
        launch.getKernelAttr());
    FusedOp fused = *kernel.getBody().getOps<FusedOp>().begin();
    FailureOr<RowProgram> program = recordRows(fused);
    if (failed(program))
      return failure();
    SmallVector<SliceTensor> tensors;
    for (auto [arg, sliced] : llvm::zip(step.args(), step.sliced))
      tensors.push_back({pointer(arg, sliced), typeOf(arg), stridesOf(arg), alignmentOf(arg, 1)});
    const size_t inputs = program->inputs.size();
    body += groupText(*program, *plan::leadingDimensions(program->domain.rowShape, slices),
                      ArrayRef(tensors).take_front(inputs), ArrayRef(tensors).drop_front(inputs));
    return success();
  }

  plan::LoopOp loop;
  int64_t slices, mostShared;
  std::vector<Step> steps;
  SmallVector<Value> arguments;
  // Variables that point into shared memory, or not: what one step slices, another may read whole.
  DenseMap<Value, std::string> inside;
  llvm::MapVector<std::pair<Value, unsigned>, std::string> outside;
  llvm::MapVector<Value, Tile> tiles;
  DenseMap<Operation *, Shared> inShared; ///< buffers
  SmallVector<Value> broughtBack;         ///< buffers that are carried in shared memory
  DenseSet<Operation *> written, read;    ///< since the last barrier
  std::string declarations, carryIn, carryOut, next;
  int64_t sharedBytes = 0;
};

} // namespace

FailureOr<LoopKernel> writeLoopKernel(plan::LoopOp loop, int64_t mostShared) {
  return Writer(loop, mostShared).write();
}

} // namespace hydra::cuda
