// CUDA C++ for loops: what is moved, barriers, and the text of calls.
#include "compiler/codegen/cuda/LoopKernels.h"

#include "compiler/codegen/cuda/GroupText.h"
#include "compiler/codegen/cuda/LoopBarriers.h"
#include "compiler/codegen/cuda/LoopJoin.h"
#include "compiler/codegen/cuda/LoopPieces.h"
#include "compiler/codegen/cuda/LoopPlacement.h"
#include "compiler/codegen/cuda/StepLauncher.h"
#include "dialects/plan/Ordering.h"
#include "dialects/plan/Slices.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

class Writer {
public:
  Writer(plan::LoopOp loop, ArrayRef<LoopStep> steps, int64_t mostShared, int64_t multiprocessors)
      : loop(loop), slices(*loop.getSlices()), steps(steps), places(loop, steps, mostShared),
        waits(LoopBarriers(places).waitsOf(steps)),
        each(ceilDiv(loop.getCount(), mostParts(multiprocessors))),
        parts(ceilDiv(loop.getCount(), each)),
        count(parts > 1 ? "iterations" : std::to_string(loop.getCount())),
        nextScratch(places.reductionScratch()) {}

  LoopKernel write() {
    bringTensors();
    const std::string body = bodyText(), ready = readyText(), advance = advanceText();
    LoopKernel kernel;
    kernel.access = accessOfArguments();
    kernel.text =
        formatv("({0}) {{\n"
                "extern __shared__ __align__(128) unsigned char shared[];\n"
                "const int64 slice = blockIdx.x;\n" // tensors may have more than 2^31 elements
                "{10}{1}{2}{3}"
                "for (int iteration = 0; iteration < {4}; ++iteration) {{\n"
                "{5}__syncthreads();\n{6}{7}{8}}\n{9}}",
                parametersText(), declarations, carryIn, firstChunks, count, ready, turn, body,
                advance, carryOut.empty() ? "" : "__syncthreads();\n" + carryOut, ownIterations())
            .str();
    kernel.args = llvm::map_to_vector(arguments, [&](Value v) { return wholeOf(loop, v); });
    kernel.blocks = slices;
    kernel.parts = parts;
    kernel.threads = kLoopThreads;
    kernel.sharedBytes = places.sharedBytes();
    return kernel;
  }

private:
  /// A copy of a chunk by the threads of the block, in turns.
  struct Move {
    const LoopTile *tile;
    int64_t turns;
    std::function<std::string(int64_t, int64_t)> text; ///< of turns from .. to
  };
  /// One that goes on behind barriers.
  struct Begun : Move {
    int64_t each, next; ///< turns behind a barrier, and the next one
  };

  /// How many blocks at most share out the iterations of a slice: more than one where no iteration
  /// needs another, and each has what it makes for itself in shared memory.
  int64_t mostParts(int64_t multiprocessors) {
    if (multiprocessors < 2 * slices || !plan::areIterationsApart(loop))
      return 1;
    for (const LoopStep &step : steps)
      for (Value arg : step.args)
        if (bufferOfIteration(arg) && !places.isShared(arg))
          return 1;
    return std::min<int64_t>(multiprocessors / slices, loop.getCount());
  }

  /// Which iterations a block has, counted from its first one; nothing where it has all.
  std::string ownIterations() {
    if (parts == 1)
      return "";
    return formatv("const int begin = blockIdx.y * {0};\n"
                   "const int iterations = min({0}, {1} - begin);\n",
                   each, loop.getCount());
  }

  /// What is carried, and chunks: to where steps find them.
  void bringTensors() {
    for (auto [buffer, registers] : places.registers())
      hold(cast<plan::BufferOp>(buffer), registers);
    for (plan::BufferOp buffer : places.carriedBuffers())
      carry(buffer, *places.sharedForm(buffer));
    for (const auto &[value, tile] : places.chunks())
      moveTile(value, tile);
    for (const LoopTile &tile : places.chunksOutside())
      ask(tile);
  }

  /// The steps of an iteration, and the copies of chunks that go on beside them.
  std::string bodyText() {
    std::string body;
    for (auto [number, step] : llvm::enumerate(steps)) {
      if (waits[number] == LoopWait::Block)
        body += barrier(number);
      else if (waits[number] == LoopWait::Warp)
        body += "__syncwarp();\n";
      body += textOf(step);
    }
    if (!fetches.empty() || !stores.empty())
      body += barrier(steps.size());
    if (!fetches.empty()) // of chunks that were stored just now
      body += barrier(steps.size());
    for (const Begun &move : begun)
      body += move.text(move.next, move.turns);
    return body;
  }

  /// What is waited for in front of an iteration. Where chunks are fetched whole, says in front of
  /// the first one, and of the fetches for each next one, how many bytes will come.
  std::string readyText() {
    std::string ready;
    if (fetched > 0) {
      const std::string expect = formatv("expectFetches(fetches, {0});\n", fetched);
      declarations +=
          formatv("const uint32 fetches = sharedAddress(shared + {0});\n", places.fetchBarrier());
      firstChunks = "prepareFetches(fetches);\n" + expect + firstChunks;
      turn = formatv("if (iteration + 1 < {0})\n", count).str() + expect + turn;
      ready += "waitForFetches(fetches, iteration);\n";
    }
    if (waitsForPieces)
      ready += "waitForPieces();\n";
    return ready;
  }

  /// Moves pointers to what the next iteration has of sequences.
  std::string advanceText() {
    std::string advance;
    for (auto [value, stride] : llvm::zip(loop.getMoving(), loop.getStrides()))
      for (auto &[place, name] : outside)
        if (place.first == value)
          advance +=
              formatv("{0} += {1};\n", name, stride / elementBytes(typeOf(value).getElementType()));
    return advance;
  }

  std::string parametersText() const {
    std::string parameters;
    for (auto [i, value] : llvm::enumerate(arguments))
      parameters +=
          formatv("{0}{1} *a{2}", i ? ", " : "", cType(typeOf(value).getElementType()), i);
    return parameters;
  }

  /// What the kernel does with each argument.
  SmallVector<int64_t> accessOfArguments() {
    SmallVector<int64_t> accesses(arguments.size(), plan::kRead);
    for (const plan::BufferUse &use : plan::usesOf(loop))
      for (auto [value, access] : llvm::zip(arguments, accesses))
        if (use.writes && plan::sameElements(value, use.value))
          access = plan::kUpdate;
    for (auto [value, access] : llvm::zip(arguments, accesses))
      if (bufferOfIteration(value)) // written before it is read
        access = plan::kWrite;
    for (plan::BufferOp buffer : places.carriedBuffers())
      accesses[argument(buffer)] = plan::kUpdate;
    for (Operation *buffer : llvm::make_first_range(places.registers()))
      accesses[argument(cast<plan::BufferOp>(buffer))] = plan::kUpdate;
    return accesses;
  }

  /// What a step does for its slice.
  std::string textOf(const LoopStep &step) {
    return llvm::TypeSwitch<Operation *, std::string>(step.op)
        .Case([&](plan::LaunchOp) { return group(step); })
        .Case([&](plan::MatmulOp op) { return matmul(step, op); })
        .Case([&](plan::CopyOp) { return copy(step); });
  }

  /// A barrier of the block in front of step `number`, and the copies that it lets begin or go on.
  std::string barrier(size_t number) {
    std::string text = "__syncthreads();\n" + goOn();
    nextWarp = 0;
    // A chunk that is stored gives way to the next behind another barrier.
    llvm::erase_if(fetches, [&](const Move &move) {
      const bool isStored =
          llvm::any_of(stores, [&](const Move &store) { return store.tile == move.tile; });
      if (isStored || std::max(move.tile->lastReader, move.tile->lastWriter) >= number)
        return false;
      text += move.text(0, move.turns);
      return true;
    });
    llvm::erase_if(stores, [&](const Move &move) {
      if (move.tile->lastWriter >= number)
        return false;
      text += move.tile->read ? move.text(0, move.turns) : begin(move, number);
      return true;
    });
    return text;
  }

  /// The first turns of copies that may take until the end of the iteration, behind the barrier in
  /// front of step `number`. Memory takes what a block stores, and gives what it fetches, more
  /// slowly than its threads ask: instead of waiting for that, they ask for a part behind every
  /// barrier. The next iteration waits for what is fetched, so nothing of that is left for the end.
  std::string begin(const Move &move, size_t number) {
    const int64_t barriersLeft =
        number < steps.size() ? llvm::count(ArrayRef(waits).drop_front(number + 1), LoopWait::Block)
                              : 0;
    const int64_t each = move.tile->odd ? ceilDiv(move.turns, barriersLeft + 1)
                                        : std::max<int64_t>(1, move.turns / (barriersLeft + 1));
    if (each < move.turns)
      begun.push_back({move, each, each});
    return move.text(0, std::min(each, move.turns));
  }

  /// The next turns of those.
  std::string goOn() {
    std::string text;
    for (Begun &move : begun) {
      const int64_t end = std::min(move.next + move.each, move.turns);
      text += move.text(move.next, end);
      move.next = end;
    }
    llvm::erase_if(begun, [](const Begun &move) { return move.next == move.turns; });
    return text;
  }

  //===-- Chunks ----------------------------------------------------------------------------===//

  void moveTile(Value value, const LoopTile &tile) {
    MemRefType type = typeOf(value);
    SmallVector<int64_t> strides = plan::stridesOf(type);
    const int64_t wide = outsideWidth(tile.value),
                  stride = strideOf(loop, value) / elementBytes(type.getElementType());
    std::string far = outsidePointer(value, tile.sliced), near = pointer(value, tile.sliced);
    auto at = [&](const std::string &begin) {
      return formatv("reinterpret_cast<{0} *>(shared + {1})", cType(type.getElementType()), begin)
          .str();
    };
    if (tile.read) {
      const LoopPieces pieces(value, tile.sliced, wide, tile.strides, strides);
      // What is written as well may have to be read where threads have stored it. Operands of
      // matmuls, which have a pad behind each row, are asked for earlier, by all threads.
      const bool byRows = pieces.isDense() || (pieces.isOfRows() && !tile.ofMatmul);
      const bool whole = wide > 1 && byRows && !tile.written;
      waitsForPieces |= wide > 1 && !whole;
      if (whole)
        fetched += pieces.size() * 16;
      // The last ones first: matmuls begin with the first.
      const int64_t warp = kLoopWarps - 1 - wholeChunks % kLoopWarps;
      wholeChunks += whole;
      auto fetch = [=](const std::string &to, const std::string &from) {
        return whole      ? pieces.fetchRows(to, from, warp)
               : wide > 1 ? pieces.fetchPieces(to, from)
                          : pieces.copy(to, from);
      };
      firstChunks += fetch(near, far);
      // That of the next iteration, if there is one.
      auto next = [=, count = count](const std::string &to) {
        return [=](int64_t begin, int64_t end) {
          const std::string from = formatv("{0} + ({1})", far, stride).str();
          return formatv("if (iteration + 1 < {0}) {{\n{1}}\n", count,
                         whole || wide == 1 ? fetch(to, from)
                                            : pieces.fetchTurns(to, from, begin, end))
              .str();
        };
      };
      const int64_t turns = whole || wide == 1 ? 1 : pieces.turns();
      if (tile.odd) {
        turn += formatv("{0} = {1};\n", near,
                        at(formatv("(iteration % 2 ? {0} : {1})", *tile.odd, tile.begin)));
        const Move move{&tile, turns,
                        next(at(formatv("(iteration % 2 ? {0} : {1})", tile.begin, *tile.odd)))};
        // What one warp asks for is asked for behind the first barrier: in front of it all work.
        if (whole)
          begun.push_back({move, 1, 0});
        else
          turn += begin(move, 0);
      } else {
        fetches.push_back({&tile, turns, next(near)});
      }
    }
    if (tile.written) {
      const LoopPieces pieces(value, tile.sliced, wide, strides, tile.strides);
      stores.push_back({&tile, pieces.turns(), [=](int64_t begin, int64_t end) {
                          return pieces.copyTurns(far, near, begin, end);
                        }});
    }
  }

  /// Asks for the lines of the next chunk of a sequence that stays outside.
  void ask(const LoopTile &tile) {
    const int64_t wide = outsideWidth(tile.value);
    if (wide == 1)
      return;
    MemRefType type = typeOf(tile.value);
    const LoopPieces pieces(tile.value, tile.sliced, wide, tile.strides, plan::stridesOf(type));
    const std::string next =
        formatv("{0} + ({1})", outsidePointer(tile.value, tile.sliced),
                strideOf(loop, tile.value) / elementBytes(type.getElementType()));
    turn += formatv("if (iteration + 1 < {0})\n{1}", count, pieces.prefetch(next));
  }

  /// Keeps the slice of a carried buffer in registers.
  void hold(plan::BufferOp buffer, LoopRegisters registers) {
    std::string name = "h" + std::to_string(held.size());
    held[buffer] = name;
    std::string outside =
        formatv("a{0} + slice * {1}", argument(buffer), registers.rows * registers.columns);
    carryIn += formatv("Held<{0}, {1}> {2};\n{2}.load({3});\n", registers.rows, registers.columns,
                       name, outside);
    carryOut += formatv("{0}.store({1});\n", name, outside);
  }

  /// Copies the slice of a carried buffer to shared memory and back.
  void carry(plan::BufferOp buffer, const LoopBuffer &shared) {
    const int64_t element = elementBytes(typeOf(buffer).getElementType());
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
    int64_t offset = tile ? 0 : shared->at(place.bytes / elementBytes(type));
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
    const int64_t first = own ? plan::placeOf(value).bytes / elementBytes(type.getElementType())
                              : firstElement(loop, value);
    const int64_t stride = strideOf(loop, value) / elementBytes(type.getElementType());
    declarations +=
        formatv("{0} *{1} = a{2} + ({3}) + {4}{5};\n", cType(type.getElementType()), name,
                argument(own ? own.getBuffer() : value), sliceText(type, sliced), first,
                parts > 1 && stride != 0 ? formatv(" + begin * int64({0})", stride).str() : "");
    return name;
  }

  /// The buffer of a value that only one iteration knows; null for others.
  plan::BufferOp bufferOfIteration(Value value) {
    plan::BufferOp buffer = plan::placeOf(value).buffer;
    return buffer->getBlock() == &loop.getBody().front() ? buffer : plan::BufferOp();
  }

  static std::string sliceText(MemRefType type, unsigned sliced) {
    SmallVector<int64_t> strides = plan::stridesOf(type);
    return offsetText("slice", type.getShape().take_front(sliced),
                      ArrayRef(strides).take_front(sliced));
  }

  //===-- Calls -----------------------------------------------------------------------------===//

  std::string copy(const LoopStep &step) {
    Value from = step.args[0], to = step.args[1];
    SmallVector<int64_t> fromStrides = places.stridesOf(from), toStrides = places.stridesOf(to);
    // Pieces of 16 bytes where both sides have them.
    const size_t rank = toStrides.size();
    int64_t wide = 16 / elementBytes(typeOf(to).getElementType());
    if (rank <= step.sliced[1] || toStrides.back() != 1 || fromStrides.back() != 1 ||
        typeOf(to).getShape().back() % wide || places.alignmentOf(to, 1) < 16 ||
        places.alignmentOf(from, 1) < 16)
      wide = 1;
    // Both have the same shape, so the same dimensions are sliced.
    return LoopPieces(to, step.sliced[1], wide, toStrides, fromStrides)
        .copy(pointer(to, step.sliced[1]), pointer(from, step.sliced[0]));
  }

  /// A matrix of the template from the last two dimensions, or the first `rows` of it; `transposed`
  /// exchanges them.
  std::string matrix(const LoopStep &step, unsigned i, bool transposed,
                     std::optional<int64_t> rows = std::nullopt) {
    Value value = step.args[i];
    MemRefType type = typeOf(value);
    SmallVector<int64_t> strides = places.stridesOf(value);
    const size_t rank = strides.size();
    unsigned down = rank - 2, across = rank - 1;
    if (transposed)
      std::swap(down, across);
    return formatv("Matrix<{0}, {1}, {2}, {3}, {4}, {5}, {6}>{{{7}}", cType(type.getElementType()),
                   rows.value_or(type.getDimSize(down)), type.getDimSize(across), strides[down],
                   strides[across], places.alignmentOf(value, 1),
                   places.isShared(value) ? "true" : "false", pointer(value, step.sliced[i]));
  }

  /// How many rows of a matmul's result steps of the iteration read, in tiles of 16; all where
  /// others might.
  int64_t rowsRead(const LoopStep &step) {
    Value result = step.args[2];
    const int64_t all = typeOf(result).getShape().end()[-2];
    SmallVector<int64_t> strides = plan::stridesOf(typeOf(result));
    plan::BufferOp buffer = bufferOfIteration(result);
    // One tile is all; the stride of a single row may be anything.
    if (all <= 16 || !buffer || !places.sharedForm(buffer) || strides.back() != 1)
      return all;
    const int64_t begin = plan::placeOf(result).bytes;
    int64_t end = begin;
    for (const LoopStep &other : steps)
      for (auto [i, arg] : llvm::enumerate(other.args)) {
        if (plan::placeOf(arg).buffer != buffer || (&other == &step && i == 2))
          continue;
        if (&other == &step || other.writes(i))
          return all;
        end = std::max(end, sliceEnd(arg, other.sliced[i]));
      }
    const int64_t row = strides.end()[-2] * elementBytes(typeOf(result).getElementType()),
                  rows = ceilDiv(end - begin, 16 * row) * 16;
    return rows > 0 ? std::min(rows, all) : all;
  }

  std::string matmul(const LoopStep &step, plan::MatmulOp op) {
    const int64_t rows = rowsRead(step);
    std::string a = matrix(step, 0, op.getTransposeA(), rows),
                b = matrix(step, 1, !op.getTransposeB()), elements = pointer(step.args[0], 0);
    if (auto registers = held.find(plan::placeOf(step.args[2]).buffer); registers != held.end())
      return formatv("addProduct({0}, {1}, {2}, {3});\n", registers->second, a, b, elements);
    // Matmuls that nothing keeps apart begin with the warps that the one before leaves idle.
    const int64_t first = nextWarp;
    ArrayRef<int64_t> result = typeOf(step.args[2]).getShape();
    // Tiles of 32 rows where they divide up, as multiplySlice has them.
    const int64_t down = (rows + 15) / 16, across = (result.back() + 15) / 16;
    nextWarp += (down % 2 == 0 ? down / 2 : down) * across;
    nextWarp %= kLoopWarps;
    return formatv("multiplySlice<{0}, {1}{2}>({3}, {4}, {5}, {6}, {7});\n",
                   op.getAccumulate() ? "true" : "false", first, op.getCompute() ? ", true" : "",
                   matrix(step, 2, false, rows), a, b, elements, pointer(step.args[1], 0));
  }

  //===-- Groups ----------------------------------------------------------------------------===//

  std::string group(const LoopStep &step) {
    const RowProgram &program = *step.program;
    const int64_t sliced = *plan::leadingDimensions(program.domain.rowShape, slices);
    auto tensor = [&](unsigned i) {
      Value arg = step.args[i];
      return SliceTensor{pointer(arg, step.sliced[i]), typeOf(arg), places.stridesOf(arg),
                         places.alignmentOf(arg, 1)};
    };
    SmallVector<SliceTensor> inputs, results;
    for (unsigned i = program.inputs.size(); i < step.args.size(); ++i)
      results.push_back(tensor(i));
    if (auto registers = held.find(plan::placeOf(step.args[0]).buffer); registers != held.end())
      return heldGroupText(program, sliced, registers->second, results);
    for (unsigned i = 0; i < program.inputs.size(); ++i)
      inputs.push_back(tensor(i));
    const RowSharers sharers{places.hasRowOfThread(step), places.warpsOfRow(step), nextScratch};
    if (sharers.warps > 1)
      nextScratch += program.reductions() * kReductionScratch;
    return groupText(program, sliced, sharers, inputs, results);
  }

  plan::LoopOp loop;
  int64_t slices;
  ArrayRef<LoopStep> steps;
  LoopPlacement places;
  const SmallVector<LoopWait> waits; ///< in front of each step
  const int64_t each, parts;         ///< iterations of a block, and blocks of a slice
  const std::string count;           ///< of iterations of the block, as text
  int64_t nextWarp = 0;              ///< of those that begin the next matmul
  int64_t nextScratch;               ///< of reductions by several warps
  SmallVector<Value> arguments;
  // Variables that point into shared memory, or not: what one step slices, another may read whole.
  DenseMap<Value, std::string> inside;
  llvm::MapVector<std::pair<Value, unsigned>, std::string> outside;
  DenseMap<Operation *, std::string> held; ///< names of registers
  // Copies of chunks that the next barrier may let begin: those of the next iteration, and back.
  std::vector<Move> fetches, stores;
  std::vector<Begun> begun;
  bool waitsForPieces = false;
  int64_t wholeChunks = 0, fetched = 0; ///< how many are fetched whole, and their bytes
  std::string declarations, carryIn, carryOut, firstChunks, turn;
};

} // namespace

FailureOr<LoopKernel> writeLoopKernel(plan::LoopOp loop, TargetAttr target) {
  FailureOr<std::vector<LoopStep>> steps = loopSteps(loop);
  if (failed(steps))
    return failure();
  joinGroups(loop, *steps);
  return Writer(loop, *steps, target.getBlockShared(), target.getMultiprocessors()).write();
}

} // namespace hydra::cuda
