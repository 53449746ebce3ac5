// Linear recurrences: launches over segments of rows (templates/recurrence.cuh).
#include "compiler/codegen/cuda/StepLauncher.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

/// A recurrence as its kernels have it: what templates/recurrence.cuh computes from the same.
struct Recurrence {
  int64_t batch, tokens, channels, states;
  int64_t width; ///< lanes of a channel
  int64_t channelsOfBlock, threads;
  int64_t tiles = 1; ///< of a segment

  static constexpr int64_t kTile = 32, kMostThreads = 256, kMostTiles = 4;

  Recurrence(Value x, Value q, int64_t multiprocessors) {
    ArrayRef<int64_t> shape = typeOf(x).getShape();
    batch = shape[0];
    tokens = shape[1];
    channels = shape[2];
    states = typeOf(q).getDimSize(1);
    width = std::min<int64_t>(static_cast<int64_t>(llvm::PowerOf2Ceil(states)), 32);
    channelsOfBlock = std::min<int64_t>(kMostThreads / width, 32);
    threads = width * channelsOfBlock;
    // Long segments are fewer, and so are their states; but enough blocks for all multiprocessors.
    constexpr int64_t kBlocksOfMultiprocessor = 4;
    for (int64_t more = 2; more <= kMostTiles; more *= 2)
      if (blocksWith(more) >= kBlocksOfMultiprocessor * multiprocessors)
        tiles = more;
  }

  int64_t segmentsWith(int64_t tilesOfSegment) const {
    return ceilDiv(tokens, tilesOfSegment * kTile);
  }
  int64_t blocksWith(int64_t tilesOfSegment) const {
    return batch * segmentsWith(tilesOfSegment) * ceilDiv(channels, channelsOfBlock);
  }
  int64_t segments() const { return segmentsWith(tiles); }
  /// A block for channels of a segment.
  int64_t blocks() const { return blocksWith(tiles); }

  LaunchShape shape() const { return {blocks(), 1, 1, threads, 0}; }
  /// Where a lane keeps the states of a tile: 128 registers, more for several states of a lane.
  LaunchShape keepingStates() const {
    LaunchShape launch = shape();
    launch.resident = states > width ? 1 : 2 * kMostThreads / threads;
    return launch;
  }
};

class Writer {
public:
  Writer(StepLauncher &launcher, plan::LinearRecurrenceOp op)
      : launcher(launcher), op(op), reads(op.getReads()), behindDy(op.getBackward() ? 1 : 0),
        of(reads[behindDy], reads[behindDy + 1], launcher.target.getMultiprocessors()),
        f32(launcher.b.getF32Type()), x(reads[behindDy]),
        parameters(ArrayRef(reads).slice(behindDy + 1, 4)) {
    if (reads.size() > behindDy + 5)
      begins = reads.back();
    if (begins && of.segments() > 1)
      through = launcher.workspace({of.batch, of.segments()}, f32);
  }

  void forward() {
    Value front = states();
    if (front) {
      Launch segments(*this);
      segments.call("recurrenceSegments", "blockIdx.x");
      addSegments(segments, x, front);
      segments.add(through, plan::kWrite);
      segments.end();
      launcher.setWork(0, bytesOf(x) + bytesOf(front));
      segments.finish("recurrence_segments", of.shape());
      Launch fold(*this);
      addFold(fold, front, /*back=*/false, 0);
      launcher.setWork(0, 2 * bytesOf(front));
      fold.finish("recurrence_fold", {foldBlocks(), 1, 1, kFoldThreads, 0});
    }
    Launch launch(*this);
    launch.call("recurrenceForward");
    launch.add(x, plan::kRead);
    launch.addTerms();
    launch.add(begins, plan::kRead);
    launch.addStates(front, plan::kRead);
    launch.add(op.getWrites()[0], plan::kWrite);
    launch.end();
    launcher.setWork(launcher.flops(), launcher.bytes() + bytesOf(front));
    launch.finish("recurrence", of.shape());
  }

  void backward() {
    Value dy = reads[0], front = states(), behind = states();
    if (front)
      launchBothSegments(dy, front, behind);
    const int64_t elements = of.channels * of.states, parts = of.batch * of.segments();
    Value sums = launcher.workspace({parts, 4, elements}, f32);
    Launch launch(*this);
    launch.call("recurrenceBackward");
    launch.add(dy, plan::kRead);
    launch.add(x, plan::kRead);
    launch.addTerms();
    launch.add(begins, plan::kRead);
    launch.addStates(front, plan::kRead);
    launch.addStates(behind, plan::kRead);
    launch.add(op.getWrites()[0], plan::kWrite);
    launch.add(sums, plan::kWrite);
    launch.end();
    launcher.setWork(launcher.flops(), launcher.bytes() + 2 * bytesOf(front) + bytesOf(sums));
    launch.finish("recurrence_gradients", of.keepingStates());

    Launch total(*this);
    total.open(formatv("recurrenceSums<{0}, {1}>(", parts, elements));
    total.add(sums, plan::kRead);
    for (Value result : op.getWrites().drop_front())
      total.add(result, plan::kWrite);
    total.end();
    constexpr int64_t kNumbersOfBlock = 32;
    launcher.setWork(0, bytesOf(sums));
    total.finish("recurrence_sums",
                 {ceilDiv(4 * elements, kNumbersOfBlock), 1, 1, 8 * kNumbersOfBlock, 0});
  }

private:
  /// A kernel that calls functions of the template, and its arguments.
  struct Launch {
    explicit Launch(Writer &writer) : writer(writer) {}

    /// Begins a call, with its first argument if there is one.
    void open(const std::string &text) {
      body += text;
      first = true;
    }
    void call(StringRef function, StringRef argument = "") {
      open(formatv("{0}<{1}>(", function, writer.templateArguments()));
      if (!argument.empty())
        addText(argument.str());
    }
    void end() { body += ");"; }

    void addText(const std::string &text) {
      body += (first ? "" : ", ") + text;
      first = false;
    }
    /// A null pointer where there is no value.
    void add(Value value, int64_t access) {
      addText(value ? arguments.add(value, access) : "nullptr");
    }
    /// In braces, as `RecurrenceTerms` has them.
    void addTerms() {
      std::string terms;
      for (Value parameter : writer.parameters)
        terms += (terms.empty() ? "" : ", ") + arguments.add(parameter, plan::kRead);
      addText("{" + terms + "}");
    }
    /// Complex numbers.
    void addStates(Value states, int64_t access) {
      if (!states)
        return addText("nullptr");
      addText(std::string(access == plan::kRead ? "(const Complex *)" : "(Complex *)") +
              arguments.add(states, access));
    }
    void finish(StringRef name, const LaunchShape &shape) {
      writer.launcher.launch(name, llvm::to_vector_of<StringRef>(arguments.types), body, shape,
                             arguments.values, arguments.access);
    }

    Writer &writer;
    std::string body;
    Arguments arguments;
    bool first = true;
  };

  static int64_t bytesOf(Value buffer) {
    if (!buffer)
      return 0;
    MemRefType type = typeOf(buffer);
    return type.getNumElements() * elementBytes(type.getElementType());
  }
  std::string templateArguments() const {
    return formatv("{0}, {1}, {2}, {3}, {4}, {5}", of.batch, of.tokens, of.channels, of.states,
                   of.tiles, begins ? "true" : "false");
  }

  /// Complex numbers of all states in all segments; none where a row is one.
  Value states() {
    if (of.segments() == 1)
      return {};
    return launcher.workspace({of.batch, of.segments(), of.channels, of.states, 2}, f32);
  }

  /// Arguments of what segments add.
  void addSegments(Launch &launch, Value numbers, Value added) {
    launch.add(numbers, plan::kRead);
    launch.addTerms();
    launch.add(begins, plan::kRead);
    launch.addStates(added, plan::kWrite);
  }

  // The smaller blocks, the more multiprocessors have one.
  static constexpr int64_t kFoldThreads = 32;
  int64_t foldBlocks() const { return ceilDiv(of.batch * of.channels * of.states, kFoldThreads); }
  void addFold(Launch &launch, Value states, bool back, int64_t firstBlock) {
    launch.open(formatv("recurrenceFold<{0}, {1}>(", templateArguments(), back ? "true" : "false"));
    launch.add(parameters[0], plan::kRead);
    launch.add(parameters[1], plan::kRead);
    launch.add(through, plan::kRead);
    launch.addStates(states, plan::kUpdate);
    launch.addText(
        formatv("int64(blockIdx.x - {0}) * {1} + threadIdx.x", firstBlock, kFoldThreads));
    launch.end();
  }

  /// What segments add to states and to gradients of states, in a launch, and both folded, in one.
  void launchBothSegments(Value dy, Value front, Value behind) {
    const auto split = [](int64_t blocks) { // the first blocks work backward
      return formatv("if (blockIdx.x < {0}) return ", blocks).str();
    };
    Launch segments(*this);
    segments.body = split(of.blocks());
    segments.call("recurrenceSegmentsBack", "blockIdx.x");
    addSegments(segments, dy, behind);
    segments.end();
    segments.call(" recurrenceSegments", formatv("blockIdx.x - {0}", of.blocks()).str());
    addSegments(segments, x, front);
    segments.add(through, plan::kWrite);
    segments.end();
    LaunchShape shape = of.shape();
    shape.x *= 2;
    launcher.setWork(0, bytesOf(dy) + bytesOf(x) + 2 * bytesOf(front));
    segments.finish("recurrence_segments", shape);

    Launch fold(*this);
    fold.body = split(foldBlocks());
    addFold(fold, behind, /*back=*/true, 0);
    fold.body += " ";
    addFold(fold, front, /*back=*/false, foldBlocks());
    launcher.setWork(0, 4 * bytesOf(front));
    fold.finish("recurrence_fold", {2 * foldBlocks(), 1, 1, kFoldThreads, 0});
  }

  StepLauncher &launcher;
  plan::LinearRecurrenceOp op;
  SmallVector<Value> reads;
  unsigned behindDy; ///< where x is
  Recurrence of;
  Type f32;
  Value x;
  ArrayRef<Value> parameters;
  Value begins, through; ///< where a row is one segment there is no `through`
};

} // namespace

void expandLinearRecurrence(StepLauncher &launcher, plan::LinearRecurrenceOp op) {
  Writer writer(launcher, op);
  op.getBackward() ? writer.backward() : writer.forward();
}

} // namespace hydra::cuda
