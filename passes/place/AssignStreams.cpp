// hydra-assign-streams: what the next step does not wait for runs beside it.
#include "passes/Passes.h"
#include "passes/place/Sides.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_ASSIGNSTREAMS
#include "passes/Passes.h.inc"

namespace {

/// Links: what ranks exchange. In, Out: from the host's memory, and back there.
enum Stream : int64_t { Main, Updates, Casts, Links, In, Out, Streams };

/// Blocks in whose average time another stream may be ahead or behind. More would keep more buffers
/// alive; fewer would make streams wait for each other.
constexpr double kLag = 96;
/// Exchanges whose bytes wait at a time for the stream of updates to read them.
constexpr int64_t kExchanges = 2;
/// Every so many blocks of the main stream it waits for updates that far back.
constexpr int64_t kJoinEvery = 8;

/// Which steps of one program run beside the others.
class StreamChoice {
public:
  StreamChoice(plan::ProgramOp program, int64_t multiprocessors)
      : program(program), table(program), multiprocessors(multiprocessors),
        lag(kLag * table.time / static_cast<double>(blocks.size())) {}

  /// Whether there was anything to move.
  bool run() {
    chooseStreams();
    if (llvm::none_of(stream, [](int64_t s) { return s != Main; }))
      return false;
    order();
    Builder b(program.getContext());
    for (auto [i, op] : llvm::enumerate(blocks)) {
      op->setAttr("stream", b.getI64IntegerAttr(stream[i]));
      op->setAttr("waits", b.getDenseI64ArrayAttr(waits[i]));
      op->setAttr("signals", b.getI64IntegerAttr(signals[i]));
      if (auto step = dyn_cast<plan::StepInterface>(op);
          step && multiprocessors > 0 && stream[i] == Updates)
        step.countOnMultiprocessors(multiprocessors);
    }
    program.setStreams(std::max<int64_t>(Links, *llvm::max_element(stream) + 1));
    return true;
  }

  int64_t moved() const {
    return llvm::count_if(stream, [](int64_t s) { return s != Main; });
  }

private:
  static Stream streamOf(support::Link link) {
    switch (link) {
    case support::Link::Ranks:
      return Links;
    case support::Link::ToDevice:
      return In;
    case support::Link::ToHost:
      return Out;
    }
    llvm_unreachable("all links are above");
  }

  /// Each side has a stream of its own, each direction of a link as well.
  void chooseStreams() {
    for (auto [i, side] : llvm::enumerate(sidesOf(program, table)))
      stream.push_back(streamOf(side, i));
    moveReadersOfExchanges();
    chooseBesideIdle();
  }

  int64_t streamOf(Side side, size_t block) const {
    switch (side) {
    case Side::Main:
      return Main;
    case Side::Updates:
      return Updates;
    case Side::Variables:
      return Casts;
    case Side::Links:
      return streamOf(*table.linkOf(block));
    }
    llvm_unreachable("all sides are above");
  }

  /// What stands in front of a block that leaves multiprocessors idle, and need not come before it,
  /// runs beside it, and does not begin earlier: until then the main stream has use for all of
  /// them.
  void chooseBesideIdle() {
    begins.resize(blocks.size());
    for (size_t block = 0; block < blocks.size(); ++block) {
      if (stream[block] != Main || table.idle[block] <= 0)
        continue;
      double left = table.idle[block];
      for (size_t i = block; i-- > 0;) {
        if (stream[i] == Main) {
          left -= end[i] - begin[i];
          if (left < 0 || blocks[i]->getNumRegions() > 0 || table.conflict(i, block))
            break;
          stream[i] = Updates;
        }
        if (stream[i] == Updates)
          begins.set(i);
      }
    }
  }

  /// What is computed from exchanged bytes and variables alone (the sums of gradients, before the
  /// norm of them all) would make the main stream wait for the links. It runs beside that where the
  /// main stream has other work to do until it reads the results.
  void moveReadersOfExchanges() {
    BitVector exchanged(blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i)
      exchanged[i] = stream[i] == Links || (stream[i] == Main && readsExchanged(i, exchanged));
    for (size_t i = blocks.size(); i-- > 0;) // what reads is decided before what writes
      if (exchanged[i] && stream[i] == Main && isNeededLater(i))
        stream[i] = Updates;
  }

  bool readsExchanged(size_t i, const BitVector &exchanged) {
    bool found = false;
    if (blocks[i]->getNumRegions() > 0)
      return false;
    for (const auto &[buffer, use] : uses[i]) {
      if (use.writes)
        continue;
      const int64_t writer = writerBefore(i, buffer, use);
      if (writer >= 0 && exchanged[writer])
        found = true;
      else if (plan::BufferOp(buffer).isTransient())
        return false;
    }
    return found;
  }

  /// The last block before `i` that writes bytes of a use; -1 where there is none.
  int64_t writerBefore(size_t i, plan::BufferOp buffer, const BlockUse &use) {
    int64_t writer = -1;
    for (const BlockUse &earlier : history[buffer])
      if (earlier.block < static_cast<int64_t>(i) && earlier.writes && earlier.overlaps(use))
        writer = std::max(writer, earlier.block);
    return writer;
  }

  /// Whether the main stream works at least as long as a step takes before it touches what that
  /// writes.
  bool isNeededLater(size_t i) {
    const double own = end[i] - begin[i];
    for (const auto &[buffer, use] : uses[i]) {
      if (!use.writes)
        continue;
      for (const BlockUse &later : history[buffer])
        if (later.block > static_cast<int64_t>(i) && later.overlaps(use) &&
            stream[later.block] == Main && begin[later.block] - end[i] < own)
          return false;
    }
    return true;
  }

  /// The last block of a stream, before block `end`, that touches what a block writes; -1 for none.
  int64_t lastReader(int64_t block, int64_t which, int64_t end) {
    int64_t last = -1;
    for (const auto &[buffer, use] : uses[block])
      for (const BlockUse &later : history[buffer])
        if (use.writes && later.block > block && later.block < end && later.overlaps(use) &&
            stream[later.block] == which)
          last = std::max(last, later.block);
    return last;
  }

  /// Waits wherever blocks of two streams touch the same bytes, and where one would run too far
  /// ahead.
  void order() {
    waits.resize(blocks.size());
    signals.assign(blocks.size(), -1);
    using Clock = std::array<int64_t, Streams>;
    std::array<Clock, Streams> known;
    for (Clock &clock : known)
      clock.fill(-1);
    std::vector<Clock> knownAt(blocks.size());
    std::array<SmallVector<int64_t>, Streams> issued;
    /// The last block of a stream that begins so much earlier than a block; -1 for none.
    auto lastBefore = [&](int64_t s, int64_t block) {
      auto it = llvm::upper_bound(issued[s], begin[block] - lag,
                                  [&](double time, int64_t i) { return time < begin[i]; });
      return it == issued[s].begin() ? -1 : *std::prev(it);
    };
    for (int64_t i = 0; i < static_cast<int64_t>(blocks.size()); ++i) {
      int64_t own = stream[i];
      Clock needed;
      needed.fill(-1);
      for (auto &[buffer, use] : uses[i])
        for (const BlockUse &earlier : history[buffer])
          if (earlier.block < i && earlier.conflicts(use))
            needed[stream[earlier.block]] = std::max(needed[stream[earlier.block]], earlier.block);
      if (own == Main && i % kJoinEvery == 0)
        needed[Updates] = std::max(needed[Updates], lastBefore(Updates, i));
      if (begins.test(i) && !issued[Main].empty())
        needed[Main] = issued[Main].back();
      // What reads variables alone (casts, gathers, moments on the host) could begin at once, and
      // all of it would be kept.
      if (own == Casts || own == Links || own == In)
        needed[Main] = std::max(needed[Main], lastBefore(Main, i));
      if (own == Links && issued[Links].size() >= kExchanges)
        needed[Updates] =
            std::max(needed[Updates], lastReader(issued[Links].end()[-kExchanges], Updates, i));
      // The latest need may make others known.
      for (int64_t s = 0; s < Streams; ++s) {
        int64_t block = needed[s];
        if (s == own || block <= known[own][s])
          continue;
        if (signals[block] < 0)
          signals[block] = events++;
        waits[i].push_back(signals[block]);
        known[own][s] = block;
        for (int64_t t = 0; t < Streams; ++t)
          known[own][t] = std::max(known[own][t], knownAt[block][t]);
      }
      known[own][own] = i;
      knownAt[i] = known[own];
      issued[own].push_back(i);
    }
  }

  plan::ProgramOp program;
  ProgramBlocks table;
  std::vector<Operation *> &blocks = table.operations;
  std::vector<double> &begin = table.begin, &end = table.end;
  decltype(ProgramBlocks::uses) &uses = table.uses;
  decltype(ProgramBlocks::history) &history = table.history;
  int64_t multiprocessors; ///< of matmuls on the stream of updates; 0: all
  double lag;              ///< in the unit of times
  std::vector<int64_t> stream, signals;
  llvm::BitVector begins; ///< with the next block of the main stream, that is
  std::vector<SmallVector<int64_t>> waits;
  int64_t events = 0;
};

struct AssignStreams : impl::AssignStreamsBase<AssignStreams> {
  using AssignStreamsBase::AssignStreamsBase;

  void runOnOperation() override {
    for (auto module : getOperation().getOps<plan::PlanModuleOp>())
      for (auto program : module.getBody().getOps<plan::ProgramOp>()) {
        if (program.getTransientBytes()) {
          program.emitOpError("has its memory planned, for the streams that it has");
          return signalPassFailure();
        }
        StreamChoice work(program, multiprocessors);
        if (work.run())
          moved += work.moved();
        if (failed(plan::verifyOrder(program)))
          return signalPassFailure();
      }
  }
};

} // namespace
} // namespace hydra
