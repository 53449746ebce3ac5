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
  int64_t lanes;        ///< threads of a channel
  int64_t statesOfLane; ///< a channel's last threads may have fewer
  int64_t length;       ///< tokens of a segment

  static constexpr int64_t kThreads = 64, kShortest = 32, kLongest = 128;

  Recurrence(Value x, Value q, int64_t multiprocessors) {
    ArrayRef<int64_t> shape = typeOf(x).getShape();
    batch = shape[0];
    tokens = shape[1];
    channels = shape[2];
    states = typeOf(q).getDimSize(1);
    // As many chains of arithmetic hide its latency, and their numbers fit a thread's registers.
    constexpr int64_t kStates = 4, kWarp = 32;
    lanes = std::min<int64_t>(static_cast<int64_t>(llvm::PowerOf2Ceil(ceilDiv(states, kStates))),
                              kWarp);
    statesOfLane = ceilDiv(states, lanes);
    // Long segments are fewer, and so are their states; but enough warps for multiprocessors.
    constexpr int64_t kWarpsOfMultiprocessor = 8;
    length = kShortest;
    for (int64_t more = 2 * kShortest; more <= kLongest; more *= 2)
      if (threadsWith(more) >= kWarpsOfMultiprocessor * kWarp * multiprocessors)
        length = more;
  }

  int64_t segments() const { return ceilDiv(tokens, length); }
  int64_t blocks() const { return ceilDiv(threadsWith(length), kThreads); }
  LaunchShape shape(int64_t blocks) const { return {blocks, 1, 1, kThreads, 0}; }
  /// States of a row in a segment, with those that pad a channel's.
  int64_t numbers() const { return channels * lanes * statesOfLane; }

private:
  int64_t threadsWith(int64_t lengthOfSegment) const {
    return batch * ceilDiv(tokens, lengthOfSegment) * channels * lanes;
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
    constexpr int64_t kWide = 16;
    const bool wide = llvm::all_of(
        parameters, [](Value parameter) { return plan::alignmentOf(parameter) >= kWide; });
    recurrence = formatv("Recurrence<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}>", of.batch, of.tokens,
                         of.channels, of.states, of.lanes, of.length, begins ? "true" : "false",
                         wide ? "true" : "false");
  }

  void forward() {
    Value front = states();
    if (front) {
      Launch segments(*this);
      addSegments(segments, kForward, x, front, 0);
      launcher.setWork(0, bytesOf(x) + bytesOf(front));
      segments.finish("recurrence_segments", of.shape(of.blocks()));
      Launch fold(*this);
      addFold(fold, kForward, front, 0);
      launcher.setWork(0, 2 * bytesOf(front));
      fold.finish("recurrence_fold", foldShape(foldBlocks()));
    }
    Launch launch(*this);
    addRows(launch, kForward, x, front, op.getWrites()[0], 0);
    launcher.setWork(launcher.flops(), launcher.bytes() + bytesOf(front));
    launch.finish("recurrence", of.shape(of.blocks()));
  }

  /// Both directions are one launch each time; the first blocks have those that take longer.
  void backward() {
    Value dy = reads[0], front = states(), behind = states();
    if (front) {
      Launch segments(*this);
      segments.firstBlocks(of.blocks());
      addSegments(segments, kForward, x, front, 0);
      addSegments(segments, kBack, dy, behind, of.blocks());
      launcher.setWork(0, bytesOf(dy) + bytesOf(x) + 2 * bytesOf(front));
      segments.finish("recurrence_segments", of.shape(2 * of.blocks()));
      Launch fold(*this);
      fold.firstBlocks(foldBlocks());
      addFold(fold, kForward, front, 0);
      addFold(fold, kBack, behind, foldBlocks());
      launcher.setWork(0, 4 * bytesOf(front));
      fold.finish("recurrence_fold", foldShape(2 * foldBlocks()));
    }
    Value sums = launcher.workspace({of.batch * of.segments(), 4, of.numbers()}, f32);
    Launch launch(*this);
    launch.firstBlocks(of.blocks());
    launch.call("recurrenceParameters", "");
    launch.addText(blockFrom(0));
    launch.add(dy, plan::kRead);
    launch.add(x, plan::kRead);
    launch.addTerms();
    launch.add(begins, plan::kRead);
    launch.addStates(front, plan::kRead);
    launch.addStates(behind, plan::kRead);
    launch.add(sums, plan::kWrite);
    launch.end();
    addRows(launch, kBack, dy, behind, op.getWrites()[0], of.blocks());
    launcher.setWork(launcher.flops(), launcher.bytes() + 2 * bytesOf(front) + bytesOf(sums));
    launch.finish("recurrence_gradients", of.shape(2 * of.blocks()));

    Launch total(*this);
    total.call("recurrenceSums", "");
    total.add(sums, plan::kRead);
    total.addTerms();
    for (Value result : op.getWrites().drop_front())
      total.add(result, plan::kWrite);
    total.end();
    launcher.setWork(0, bytesOf(sums));
    total.finish("recurrence_sums", foldShape(ceilDiv(of.numbers(), kColumns)));
  }

private:
  /// A kernel that calls functions of the template, and its arguments.
  struct Launch {
    explicit Launch(Writer &writer) : writer(writer) {}

    /// Leaves the call that follows to the first blocks.
    void firstBlocks(int64_t count) {
      body += formatv("if (blockIdx.x < {0}) return ", count).str();
    }
    /// Begins a call; `more`: template arguments behind the recurrence.
    void call(StringRef function, StringRef more) {
      body += formatv("{0}{1}<{2}{3}>(", StringRef(body).ends_with(";") ? " " : "", function,
                      writer.recurrence, more)
                  .str();
      first = true;
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

  /// Complex numbers of all states in all segments; none where a row is one.
  Value states() {
    if (of.segments() == 1)
      return {};
    return launcher.workspace({of.batch, of.segments(), of.numbers(), 2}, f32);
  }

  // Template arguments of a direction.
  static constexpr StringLiteral kForward = ", false", kBack = ", true";
  static std::string blockFrom(int64_t first) {
    return first ? formatv("blockIdx.x - {0}", first).str() : "blockIdx.x";
  }

  /// What segments add.
  void addSegments(Launch &launch, StringRef direction, Value numbers, Value added, int64_t first) {
    launch.call("recurrenceSegments", direction);
    launch.addText(blockFrom(first));
    launch.add(numbers, plan::kRead);
    launch.addTerms();
    launch.add(begins, plan::kRead);
    launch.addStates(added, plan::kWrite);
    launch.add(direction == kForward ? through : Value(), plan::kWrite);
    launch.end();
  }

  // States of a block, each of whose warps has a part of the segments.
  static constexpr int64_t kColumns = 32, kRows = 8;
  static LaunchShape foldShape(int64_t blocks) { return {blocks, 1, 1, kRows * kColumns, 0}; }
  int64_t foldBlocks() const { return ceilDiv(of.batch * of.numbers(), kColumns); }
  void addFold(Launch &launch, StringRef direction, Value states, int64_t first) {
    launch.call("recurrenceFold", direction);
    launch.addText(blockFrom(first));
    launch.add(parameters[0], plan::kRead);
    launch.add(parameters[1], plan::kRead);
    launch.add(through, plan::kRead);
    launch.addStates(states, plan::kUpdate);
    launch.end();
  }

  /// Results of the size of x.
  void addRows(Launch &launch, StringRef direction, Value numbers, Value states, Value result,
               int64_t first) {
    launch.call("recurrenceRows", direction);
    launch.addText(blockFrom(first));
    launch.add(numbers, plan::kRead);
    launch.addTerms();
    launch.add(begins, plan::kRead);
    launch.addStates(states, plan::kRead);
    launch.add(result, plan::kWrite);
    launch.end();
  }

  StepLauncher &launcher;
  plan::LinearRecurrenceOp op;
  SmallVector<Value> reads;
  unsigned behindDy; ///< where x is
  Recurrence of;
  Type f32;
  Value x;
  ArrayRef<Value> parameters;
  Value begins, through;  ///< where a row is one segment there is no `through`
  std::string recurrence; ///< the type of the template
};

} // namespace

void expandLinearRecurrence(StepLauncher &launcher, plan::LinearRecurrenceOp op) {
  Writer writer(launcher, op);
  op.getBackward() ? writer.backward() : writer.forward();
}

} // namespace hydra::cuda
