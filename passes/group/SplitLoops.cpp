// hydra-split-loops: what iterations do not need of each other leaves a loop that carries
// something.
//
// A body falls into three parts: what depends on nothing that is carried; what carries on, and what
// depends on what is carried; and of the latter what nothing carried depends on. The first and the
// last are loops without carried values, in front of and behind the rest, whose iterations can run
// side by side. Values go from part to part as sequences. What is carried only to be added to is no
// reason to go one after the other either: it is summed behind the loops.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Target.h"
#include "passes/Passes.h"
#include "passes/group/GroupLayout.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SPLITLOOPS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-split-loops";

/// How an operation takes part in a step of a loop's kernel.
enum class Work {
  Free,     ///< repeated wherever it is read
  ByNumber, ///< repeated by a reader that is row-wise, for no step of its own
  RowWise,  ///< part of a group, but with sums over rows that are not worth repeating
  Step      ///< reads whole operands from memory, as matmuls do
};

/// Views, and values made of nothing.
bool isFree(Operation *op) {
  auto storage = dyn_cast<StorageOpInterface>(op);
  return op->getNumOperands() == 0 || (storage && storage.viewedOperand());
}

int64_t bytesOf(Value value) {
  RankedTensorType type = build::typeOf(value);
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

RankedTensorType withLeadingOne(Value value) {
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, build::shapeOf(value));
  return build::typeOf(value).clone(shape);
}

/// A view's source and the smallest value on the way there, which is the one to keep.
struct Viewed {
  Value root, least;
  bool isPlain = true; ///< behind reshapes and broadcasts alone, which groups look through

  explicit Viewed(Value value) : root(value), least(value) {
    const auto elements = [](Value v) { return build::typeOf(v).getNumElements(); };
    for (Operation *op = root.getDefiningOp(); op && op->getNumOperands() > 0 && isFree(op);
         op = root.getDefiningOp()) {
      isPlain &= isFreeSource(op);
      root = op->getOperand(*cast<StorageOpInterface>(op).viewedOperand());
      if (elements(root) <= elements(least))
        least = root;
    }
  }
};

bool isRowWise(Operation *op) {
  auto rowWise = dyn_cast<RowWiseOpInterface>(op);
  return rowWise && !isFree(op) && rowWise.isRowWise();
}

/// Whether a value, which a group makes, has to be written before it can be seen as this view.
bool isSeenInMemory(Value value) {
  const Viewed viewed(value);
  Operation *op = viewed.root.getDefiningOp();
  return !viewed.isPlain && op && isRowWise(op);
}

Work workOf(Operation *op) {
  if (isFree(op))
    return Work::Free;
  if (!isRowWise(op))
    return Work::Step;
  if (!cast<RowWiseOpInterface>(op).rowDimensions())
    return Work::ByNumber;
  return llvm::any_of(op->getOperands(), isSeenInMemory) ? Work::Step : Work::RowWise;
}

/// Which slices all values of a body have in common: the product of the leading dimensions that
/// they share. 1: none.
int64_t commonSlices(Block &body) {
  std::optional<SmallVector<int64_t>> common;
  auto meet = [&](Value value) {
    if (build::typeOf(value).getNumElements() == 1)
      return;
    ArrayRef<int64_t> shape = build::shapeOf(value);
    shape = shape.drop_while([](int64_t size) { return size == 1; });
    if (!common)
      common = SmallVector<int64_t>(shape);
    size_t same = 0;
    while (same < std::min(shape.size(), common->size()) && shape[same] == (*common)[same])
      ++same;
    common->truncate(same);
  };
  llvm::for_each(body.getArguments(), meet);
  for (Operation &op : body)
    llvm::for_each(op.getResults(), meet);
  return common ? productOf(*common) : 1;
}

/// A loop that does a part of the work: its body, and how its arguments and results go with those
/// of the whole.
struct Part {
  SmallVector<Value> given, made; ///< what it is given of, and makes for, other parts
  SmallVector<unsigned> joined;   ///< results of the whole that it has
  SmallVector<unsigned> carried;  ///< what the whole carries that it does
  /// What the whole carries to which it makes what is added, and that.
  SmallVector<std::pair<unsigned, Value>> summed;
  DenseSet<Operation *> operations; ///< of the whole that it has, too

  EntryOp entry;
  SmallVector<int64_t> axes;       ///< of its sequences
  SmallVector<unsigned> arguments; ///< of `entry`, as numbered before unused ones were left out

  bool isEmpty() const {
    return joined.empty() && made.empty() && carried.empty() && summed.empty();
  }
};

/// The parts of one body.
struct Parts {
  Part early, core, late;
  double seconds = 0; ///< of an iteration

  SmallVector<Part *> all() { return {&early, &core, &late}; }
};

/// Of loops that are one kernel: seconds of a launch and of a step; of one block, FLOP/s and
/// bytes/s.
struct LoopRates {
  double launch, step, flops, loads, stores;

  explicit LoopRates(TargetAttr target)
      : launch(target.rate(kGraphLaunchSeconds)), step(target.rate(kLoopStepSeconds)),
        flops(target.rate(kBlockFlops)), loads(target.rate(kBlockBandwidth)),
        stores(target.rate(kBlockStoreBandwidth)) {}
};

class BodySplitter {
public:
  BodySplitter(EntryOp body, TargetAttr target)
      : body(body), block(body.getBody().front()), walk(*body.getWalk()), rates(target),
        sequences(walk.getOver().size()), carried(walk.getCarried()),
        stacked(walk.getStacked().size()), slices(commonSlices(block)),
        beside(slices > 1 ? target.getMultiprocessors() / slices : 1) {}

  /// The parts that take less time than the whole; nullopt: none do.
  std::optional<Parts> split() {
    if (carried == 0 || beside < 2 || !canBeSplit())
      return std::nullopt;
    findDependent();
    Parts whole;
    whole.core = core(/*hasEarly=*/false);
    finish(whole);
    double least = whole.seconds;
    std::optional<Parts> best;
    for (auto [hasEarly, hasLate] :
         {std::pair(true, true), std::pair(true, false), std::pair(false, true)})
      if (std::optional<Parts> parts = partsWith(hasEarly, hasLate);
          parts && parts->seconds < least) {
        least = parts->seconds;
        best = std::move(parts);
      }
    if (best)
      for (Part *part : best->all())
        if (!part->isEmpty())
          write(*part, part == &best->early ? "_early" : part == &best->late ? "_late" : "_core");
    return best;
  }

  /// Runs parts in the place of a loop.
  void replace(LoopOp loop, Parts &parts) {
    OpBuilder b(loop);
    DenseMap<Value, Value> between; // values of the body, and their sequences
    SmallVector<Value> results(loop->getNumResults());
    for (Part *part : parts.all()) {
      if (part->isEmpty())
        continue;
      SmallVector<Value> all(loop.getInputs().take_front(sequences));
      for (Value value : part->given)
        all.push_back(between.lookup(value));
      for (unsigned i : part->carried)
        all.push_back(loop.getInputs()[sequences + i]);
      llvm::append_range(all, loop.getInputs().drop_front(sequences + carried));
      SmallVector<Value> inputs =
          llvm::map_to_vector(part->arguments, [&](unsigned i) { return all[i]; });
      auto made = LoopOp::create(b, madeBy(kPass, loop.getLoc()), part->entry, inputs);
      for (auto [i, result] : llvm::enumerate(part->joined))
        results[result] = made.getResult(i);
      unsigned next = part->joined.size();
      for (Value value : part->made)
        between[value] = made.getResult(next++);
      for (auto [i, value] : part->summed)
        results[stacked + i] =
            sumBehind(b, made.getLoc(), loop.getInputs()[sequences + i], made.getResult(next++));
      for (unsigned i : part->carried)
        results[stacked + i] = made.getResult(next++);
    }
    loop.replaceAllUsesWith(results);
    loop.erase();
  }

  /// Bytes of the sequences that go from part to part.
  int64_t bytesBetween(Parts &parts) const {
    int64_t bytes = 0;
    for (Part *part : parts.all()) {
      for (Value value : part->made)
        bytes += bytesOf(value) * walk.getCount();
      for (auto [i, value] : part->summed)
        bytes += bytesOf(value) * walk.getCount();
    }
    return bytes;
  }

private:
  ValueRange results() { return body.getReturn().getOutputs(); }

  /// Kernels of loops hold no loops, and what has effects happens once.
  bool canBeSplit() {
    return llvm::all_of(block.without_terminator(), [](Operation &op) {
      return op.getNumRegions() == 0 && !isa<LoopOp>(op) && isMemoryEffectFree(&op);
    });
  }

  bool isCarried(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() >= sequences &&
           argument.getArgNumber() < sequences + carried;
  }

  /// Whether a value is other than it would be if nothing were carried.
  bool isDependent(Value value) const {
    return isCarried(value) || dependent.contains(value.getDefiningOp());
  }

  Value carriedResult(unsigned i) { return results()[stacked + i]; }

  /// Finds what depends on carried values.
  void findDependent() {
    for (Operation &op : block.without_terminator())
      if (llvm::any_of(op.getOperands(), [&](Value v) { return isDependent(v); }))
        dependent.insert(&op);
  }

  /// Finds carried values that nothing reads but the sum that is carried on.
  void findAdded() {
    for (unsigned i = 0; i < carried; ++i) {
      BlockArgument before = block.getArgument(sequences + i);
      auto sum = carriedResult(i).getDefiningOp<AddOp>();
      if (!sum || !before.hasOneUse() || *before.user_begin() != sum || !sum->hasOneUse() ||
          !build::typeOf(before).getElementType().isF32())
        continue;
      added[i] = sum->getOperand(sum->getOperand(0) == before ? 1 : 0);
      sums.insert(sum);
    }
  }

  /// What was carried and all that was to be added to it: [iterations, elements] for the sum, which
  /// a row-wise group can take whatever the rank is.
  static Value sumBehind(OpBuilder &b, Location loc, Value start, Value all) {
    RankedTensorType type = build::typeOf(start);
    const int64_t elements = type.getNumElements(), count = build::shapeOf(all).front();
    Value rows = build::reshape(b, loc, all, {count, elements});
    Value sum = SumOp::create(b, loc, type.clone(ArrayRef<int64_t>{elements}), rows,
                              b.getI64ArrayAttr({0}), UnitAttr());
    return AddOp::create(b, loc, type, start, build::reshape(b, loc, sum, type.getShape()));
  }

  /// All operations that values are computed by, but for those of which values are given.
  DenseSet<Operation *> behind(SmallVector<Value> values, ArrayRef<Value> given) {
    DenseSet<Operation *> found;
    while (!values.empty()) {
      Value value = values.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (op && !llvm::is_contained(given, value) && found.insert(op).second)
        values.append(op->operand_begin(), op->operand_end());
    }
    return found;
  }

  //===-- What is in which part -------------------------------------------------------------===//

  std::optional<Parts> partsWith(bool hasEarly, bool hasLate) {
    added.clear();
    sums.clear();
    lateOperations.clear();
    if (hasLate) {
      findAdded();
      chooseLate();
      if (lateOperations.empty())
        return std::nullopt;
    }
    Parts parts;
    parts.core = core(hasEarly);
    parts.late = late(hasEarly);
    // What they are given is made by parts in front of them.
    SetVector<Value> early, handed;
    for (Part *part : {&parts.core, &parts.late})
      for (Value value : part->given)
        (isDependent(value) ? handed : early).insert(value);
    parts.core.made = handed.takeVector();
    parts.early.made = early.takeVector();
    for (unsigned i = 0; i < stacked; ++i)
      if (hasEarly && isMadeEarly(results()[i]))
        parts.early.joined.push_back(i);
    for (auto [i, value] : added)
      partOf(value, parts, hasEarly).summed.emplace_back(i, value);
    finish(parts);
    // Work by number alone costs a loop's kernel next to nothing.
    const bool isWorth = llvm::any_of(parts.early.operations, [](Operation *op) {
      return workOf(op) == Work::Step || workOf(op) == Work::RowWise;
    });
    if ((hasEarly && !isWorth) || isTooLarge(parts))
      return std::nullopt;
    return parts;
  }

  /// Whether a result is computed, and by nothing that depends on what is carried.
  bool isMadeEarly(Value result) {
    Operation *op = Viewed(result).root.getDefiningOp();
    return op && op->getNumOperands() > 0 && !isDependent(result);
  }

  Part &partOf(Value value, Parts &parts, bool hasEarly) {
    return hasEarly && isMadeEarly(value)                   ? parts.early
           : lateOperations.contains(value.getDefiningOp()) ? parts.late
                                                            : parts.core;
  }

  /// Steps that carry nothing on, where taking them out saves more than storing what they read of
  /// the rest, and what depends on them.
  void chooseLate() {
    SmallVector<Value> ends;
    for (unsigned i = 0; i < carried; ++i)
      if (!added.contains(i))
        ends.push_back(carriedResult(i));
    const DenseSet<Operation *> needed = behind(std::move(ends), {});
    DenseSet<Operation *> &chosen = lateOperations;
    DenseSet<Value> stored;
    for (Operation &op : block.without_terminator()) {
      if (!dependent.contains(&op) || needed.contains(&op) || sums.contains(&op))
        continue;
      const bool follows = llvm::any_of(
          op.getOperands(), [&](Value v) { return chosen.contains(v.getDefiningOp()); });
      if (!follows && workOf(&op) != Work::Step)
        continue;
      int64_t bytes = 0;
      SmallVector<Value> reads;
      for (Value operand : op.getOperands()) {
        const Viewed viewed(operand);
        if (!isDependent(viewed.root) || chosen.contains(viewed.root.getDefiningOp()) ||
            stored.contains(viewed.least))
          continue;
        reads.push_back(viewed.least);
        bytes += bytesOf(viewed.least);
      }
      if (!follows && stepSeconds(&op) <= bytes / double(slices) / rates.stores)
        continue;
      chosen.insert(&op);
      stored.insert(reads.begin(), reads.end());
    }
  }

  /// What carries on, and all results that are not late (nor early, where there is such a part).
  Part core(bool hasEarly) {
    Part part;
    for (unsigned i = 0; i < carried; ++i)
      if (!added.contains(i))
        part.carried.push_back(i);
    for (unsigned i = 0; i < stacked; ++i)
      if (!lateOperations.contains(results()[i].getDefiningOp()) &&
          !(hasEarly && isMadeEarly(results()[i])))
        part.joined.push_back(i);
    Given given;
    if (hasEarly) {
      for (Operation &op : block.without_terminator())
        if (dependent.contains(&op) && !lateOperations.contains(&op) && !sums.contains(&op))
          for (Value operand : op.getOperands())
            findGiven(operand, workOf(&op) == Work::Step, given);
      for (unsigned i : part.carried)
        findGiven(carriedResult(i), /*isWhole=*/true, given);
    }
    part.given = given.values.takeVector();
    return part;
  }

  Part late(bool hasEarly) {
    Part part;
    for (unsigned i = 0; i < stacked; ++i)
      if (lateOperations.contains(results()[i].getDefiningOp()))
        part.joined.push_back(i);
    Given given;
    for (Operation &op : block.without_terminator()) {
      if (!lateOperations.contains(&op))
        continue;
      for (Value operand : op.getOperands()) {
        const Viewed viewed(operand);
        if (!isDependent(viewed.root)) {
          if (hasEarly)
            findGiven(operand, workOf(&op) == Work::Step, given);
        } else if (!lateOperations.contains(viewed.root.getDefiningOp())) {
          given.values.insert(viewed.least);
        }
      }
    }
    part.given = given.values.takeVector();
    return part;
  }

  /// What the early part makes of values that others read.
  struct Given {
    SetVector<Value> values;
    DenseSet<Operation *> repeated; ///< work by number, done where it is read
  };

  /// Adds what the early part makes of a value: itself, where its reader takes it whole from memory
  /// or it is no work by number, else what it is computed from.
  void findGiven(Value value, bool isWhole, Given &given) {
    const Viewed viewed(value);
    Operation *op = viewed.root.getDefiningOp();
    if (!op || op->getNumOperands() == 0 || isDependent(viewed.root))
      return;
    if (isWhole || workOf(op) != Work::ByNumber)
      given.values.insert(viewed.least);
    else if (given.repeated.insert(op).second)
      for (Value operand : op->getOperands())
        findGiven(operand, /*isWhole=*/false, given);
  }

  //===-- Cost ------------------------------------------------------------------------------===//

  /// Notes the operations of every part, and how long an iteration takes.
  void finish(Parts &parts) {
    parts.seconds = 0;
    for (Part *part : parts.all()) {
      if (part->isEmpty())
        continue;
      part->operations = behind(endsOf(*part), part->given);
      const double seconds = blockSeconds(*part);
      parts.seconds += part == &parts.core
                           ? seconds
                           : seconds / static_cast<double>(beside) +
                                 rates.launch / static_cast<double>(walk.getCount());
    }
  }

  /// What a part makes, in the order of its results.
  SmallVector<Value> endsOf(const Part &part) {
    SmallVector<Value> ends;
    for (unsigned i : part.joined)
      ends.push_back(results()[i]);
    llvm::append_range(ends, part.made);
    llvm::append_range(ends, llvm::make_second_range(part.summed));
    for (unsigned i : part.carried)
      ends.push_back(carriedResult(i));
    return ends;
  }

  /// A step by one block, for its slice.
  double stepSeconds(Operation *op) const { return rates.step + arithmeticSeconds(op); }
  double arithmeticSeconds(Operation *op) const {
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost ? cost.flops() / double(slices) / rates.flops : 0.0;
  }

  /// Of an iteration: its steps, a group in front of each operand that one makes, and what is
  /// brought from and for other parts.
  double blockSeconds(const Part &part) const {
    double seconds = 0;
    DenseSet<Operation *> groups;
    for (Operation &op : block.without_terminator()) {
      if (!part.operations.contains(&op))
        continue;
      seconds += arithmeticSeconds(&op);
      if (workOf(&op) != Work::Step)
        continue;
      seconds += rates.step;
      for (Value operand : op.getOperands())
        if (Operation *made = Viewed(operand).root.getDefiningOp();
            made && part.operations.contains(made) && workOf(made) != Work::Step &&
            workOf(made) != Work::Free && groups.insert(made).second)
          seconds += rates.step;
    }
    for (Value value : part.given)
      seconds += bytesOf(value) / double(slices) / rates.loads;
    for (Value value : part.made)
      seconds += bytesOf(value) / double(slices) / rates.stores;
    for (auto [i, value] : part.summed) // and a kernel that sums
      seconds += bytesOf(value) / double(slices) / rates.stores +
                 rates.launch / static_cast<double>(walk.getCount());
    return seconds;
  }

  /// Whether what goes from part to part is more than half of what the loop reads and makes.
  bool isTooLarge(Parts &parts) {
    int64_t bytes = 0;
    for (BlockArgument argument : block.getArguments().take_front(sequences))
      bytes += bytesOf(argument);
    for (Value result : results().take_front(stacked))
      bytes += bytesOf(result);
    return bytesBetween(parts) > bytes * walk.getCount() / 2;
  }

  //===-- Writing ---------------------------------------------------------------------------===//

  WalkAttr walkOf(const Part &part) {
    SmallVector<int64_t> joined =
        llvm::map_to_vector(part.joined, [&](unsigned i) { return walk.getStacked()[i]; });
    joined.append(part.made.size() + part.summed.size(), 0);
    return WalkAttr::get(body.getContext(), walk.getCount(), part.axes,
                         static_cast<int64_t>(part.carried.size()), joined, walk.getReverse());
  }

  void write(Part &part, StringRef suffix) {
    SmallVector<RankedTensorType> types;
    SmallVector<BlockArgument> old; // arguments of the whole; null where a part is given more
    auto take = [&](ArrayRef<BlockArgument> arguments) {
      for (BlockArgument argument : arguments) {
        types.push_back(build::typeOf(argument));
        old.push_back(argument);
      }
    };
    const SmallVector<BlockArgument> all(block.getArguments());
    take(ArrayRef(all).take_front(sequences));
    part.axes.assign(walk.getOver().begin(), walk.getOver().end());
    for (Value value : part.given) {
      types.push_back(withLeadingOne(value));
      old.push_back({});
      part.axes.push_back(0);
    }
    for (unsigned i : part.carried)
      take(all[sequences + i]);
    take(ArrayRef(all).drop_front(sequences + carried));

    part.entry = build::loopBody(body, (body.getSymName() + suffix).str(),
                                 madeBy(kPass, body.getLoc()), walkOf(part), types);
    Block &own = part.entry.getBody().front();
    OpBuilder b = OpBuilder::atBlockEnd(&own);
    IRMapping mapping;
    for (auto [argument, from] : llvm::zip(own.getArguments(), old))
      if (from)
        mapping.map(from, argument);
    for (auto [i, value] : llvm::enumerate(part.given))
      mapping.map(value, build::reshape(b, madeBy(kPass, value.getLoc()),
                                        own.getArgument(sequences + i), build::shapeOf(value)));
    for (Operation &op : block.without_terminator())
      if (part.operations.contains(&op))
        b.clone(op, mapping);
    SmallVector<Value> ends = endsOf(part);
    const size_t first = part.joined.size(), last = ends.size() - part.carried.size();
    for (auto [i, end] : llvm::enumerate(ends)) {
      Value own = mapping.lookup(end);
      const Location loc = madeBy(kPass, end.getLoc());
      if (i >= first && i < last) { // handed on
        if (isReadInside(end, part))
          own = CopyOp::create(b, loc, own);
        own = build::reshape(b, loc, own, withLeadingOne(end).getShape());
      }
      end = own;
    }
    build::endLoopBody(part.entry, ends);
    leaveOutUnused(part);
  }

  /// Whether steps of the part read a value as well: on chip then, beside what is stored for other
  /// parts. Without anything carried, groups that make a value read it among themselves, as it is
  /// or broadcast.
  static bool isReadInside(Value value, const Part &part) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      if (!part.operations.contains(user))
        return false;
      const bool inGroups = part.carried.empty();
      if (workOf(user) == Work::Free)
        return (inGroups && !isa<BroadcastOp>(user)) || isReadInside(user->getResult(0), part);
      return workOf(user) == Work::Step || !inGroups;
    });
  }

  /// What a part does not read it need not be given; what it carries stays.
  void leaveOutUnused(Part &part) {
    Block &own = part.entry.getBody().front();
    eraseDead(own);
    const size_t over = part.axes.size(), kept = over + part.carried.size();
    SmallVector<int64_t> axes;
    for (unsigned i = 0; i < own.getNumArguments(); ++i) {
      const bool stays = !own.getArgument(i).use_empty() || (i >= over && i < kept);
      if (stays)
        part.arguments.push_back(i);
      if (stays && i < over)
        axes.push_back(part.axes[i]);
    }
    for (unsigned i = own.getNumArguments(); i-- > 0;)
      if (!llvm::is_contained(part.arguments, i))
        part.entry.eraseArgument(i);
    part.axes = std::move(axes);
    part.entry.setWalkAttr(walkOf(part));
  }

  EntryOp body;
  Block &block;
  WalkAttr walk;
  LoopRates rates;
  size_t sequences, carried, stacked;
  int64_t slices, beside; ///< slices, and blocks that can have iterations of each
  DenseSet<Operation *> dependent, lateOperations;
  llvm::MapVector<unsigned, Value> added; ///< to carried values that are only added to
  DenseSet<Operation *> sums;             ///< by these
};

struct SplitLoops : impl::SplitLoopsBase<SplitLoops> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    const TargetAttr target = targetOf(getOperation());
    if (target.getMultiprocessors() == 0)
      return;
    llvm::MapVector<Operation *, SmallVector<LoopOp>> loops; // by body
    model.walk([&](LoopOp loop) { loops[loop.getEntry()].push_back(loop); });
    for (auto &[entry, users] : loops) {
      BodySplitter splitter(cast<EntryOp>(entry), target);
      std::optional<Parts> parts = splitter.split();
      if (!parts)
        continue;
      for (LoopOp loop : users)
        splitter.replace(loop, *parts);
      split += users.size();
      megabytes += splitter.bytesBetween(*parts) >> 20;
    }
    eraseUnusedBodies(model);
  }
};

} // namespace
} // namespace hydra
