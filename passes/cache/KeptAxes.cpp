// Where the tokens and the sequences of a call lie in the values of a program, and what no call
// tells.
#include "passes/cache/KeptAxes.h"

using namespace mlir;

namespace hydra {

namespace {

/// Whether a value is the same along a dimension, whatever it is computed from.
bool isUniform(Value v, int64_t dim) {
  ArrayRef<int64_t> shape = build::shapeOf(v);
  if (shape[dim] == 1 || build::constantValue(v))
    return true;
  Operation *op = v.getDefiningOp();
  if (!op)
    return false;
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    ArrayRef<int64_t> from = build::shapeOf(broadcast.getX());
    const int64_t own = dim - static_cast<int64_t>(shape.size() - from.size());
    return own < 0 || isUniform(broadcast.getX(), own);
  }
  if (auto iota = dyn_cast<IotaOp>(op))
    return iota.getAxis() != dim && !iota.getPositions();
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return isUniform(transpose.getX(), transpose.getOrder()[dim]);
  if (isa<ScanBeginOp, ScanEndOp>(op)) // hand on their operands
    return isUniform(op->getOperand(cast<OpResult>(v).getResultNumber()), dim);
  return op->hasTrait<Elementwise>() &&
         llvm::all_of(op->getOperands(), [&](Value x) { return isUniform(x, dim); });
}

/// Whether an operation may keep something of earlier tokens.
bool mayKeep(Operation &op) {
  auto iota = dyn_cast<IotaOp>(op);
  return isa<CacheOpInterface, ScanBeginOp>(op) || (iota && iota.getPositions());
}

/// What a program has outside of scans over tokens, which axes tell as far as they are known:
/// begins of scans, but not what is behind them up to their ends.
SmallVector<Operation *> outsideOfScans(EntryOp entry, ArrayRef<int64_t> axes) {
  SmallVector<Operation *> found;
  size_t candidates = 0;
  Operation *until = nullptr;
  for (Operation &op : entry.getBody().front().without_terminator()) {
    if (until) {
      until = until == &op ? nullptr : until;
      continue;
    }
    found.push_back(&op);
    if (!mayKeep(op))
      continue;
    const size_t number = candidates++;
    if (auto begin = dyn_cast<ScanBeginOp>(op); begin && number < axes.size() && axes[number] >= 0)
      until = endOf(begin);
  }
  return found;
}

/// The same without broadcasts, which a call of one token has fewer of.
SmallVector<Operation *> comparedOf(EntryOp entry, ArrayRef<int64_t> axes) {
  SmallVector<Operation *> found = outsideOfScans(entry, axes);
  llvm::erase_if(found, llvm::IsaPred<BroadcastOp>);
  return found;
}

/// What depends on the tokens of a call.
DenseSet<Value> madeOfTokens(EntryOp entry) {
  Block &block = entry.getBody().front();
  DenseSet<Value> made(block.args_begin(), block.args_end());
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(), [&](Value v) { return made.contains(v); }))
      made.insert(op.result_begin(), op.result_end());
  return made;
}

bool isNumber(Attribute value) { return isa_and_present<FloatAttr, IntegerAttr>(value); }

std::string numberShown(Attribute number) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto real = dyn_cast<FloatAttr>(number))
    out << real.getValueAsDouble();
  else
    out << intValue(number);
  return text;
}

/// Whether an attribute says how many tokens an operation has, or chooses, or begins with.
bool countsTokens(Operation *op, StringRef attribute) {
  return isa<TopKOp, PadOp, ScanBeginOp>(op) || (isa<SliceOp>(op) && attribute == "size");
}

} // namespace

int64_t tokensOf(EntryOp entry) { return build::shapeOf(entry.getBody().getArgument(0))[1]; }

ScanEndOp endOf(ScanBeginOp begin) {
  unsigned depth = 0;
  for (Operation *op = begin->getNextNode(); op; op = op->getNextNode()) {
    depth += isa<ScanBeginOp>(op);
    if (auto end = dyn_cast<ScanEndOp>(op))
      if (depth-- == 0)
        return end;
  }
  return {};
}

SmallVector<Operation *> mayKeepOf(EntryOp entry, ArrayRef<int64_t> axes) {
  SmallVector<Operation *> found = outsideOfScans(entry, axes);
  llvm::erase_if(found, [](Operation *op) { return !mayKeep(*op); });
  return found;
}

LogicalResult keepsOther(EntryOp entry) {
  return entry.emitOpError() << "@" << entry.getSymName()
                             << " keeps other values of earlier tokens than a program with another "
                                "number of tokens a call";
}

LogicalResult checkNumbers(EntryOp entry, EntryOp longest, ArrayRef<int64_t> axes) {
  const SmallVector<Operation *> own = comparedOf(entry, axes), others = comparedOf(longest, axes);
  if (!llvm::equal(own, others,
                   [](Operation *a, Operation *b) { return a->getName() == b->getName(); }))
    return success();
  const DenseSet<Value> made = madeOfTokens(entry);
  const auto shown = [](auto part) {
    std::string text;
    llvm::raw_string_ostream(text) << part;
    return text;
  };
  const auto refuse = [&](Operation *op, const Twine &here, const Twine &there) {
    return op->emitOpError() << "has " << here << " in calls of " << tokensOf(entry)
                             << " tokens and " << there << " in calls of " << tokensOf(longest)
                             << "; expected `length`, of whole sequences, instead of `S`";
  };
  for (auto [op, other] : llvm::zip(own, others)) {
    for (const NamedAttribute &attribute : op->getAttrs()) {
      const Attribute here = attribute.getValue(), there = other->getAttr(attribute.getName());
      if (here != there && isNumber(here) && isNumber(there) &&
          !countsTokens(op, attribute.getName()))
        return refuse(op, attribute.getName().getValue() + " = " + numberShown(here),
                      numberShown(there));
    }
    // Of what no token is in, a shape that is the call's leaves a number that is, too.
    if (op->getNumOperands() == 0 || op->getResultTypes() != other->getResultTypes() ||
        llvm::any_of(op->getOperands(), [&](Value v) { return made.contains(v); }))
      continue;
    for (auto [here, there] : llvm::zip(op->getOperandTypes(), other->getOperandTypes()))
      if (here != there)
        return refuse(op, "an operand " + shown(here), shown(there));
  }
  return success();
}

//===-- Where the tokens of a call are ------------------------------------------------------===//

namespace {

/// Why a value cannot be continued.
struct Problem {
  Operation *op = nullptr;
  std::string text;
};

/// How the tokens of a call lie in the values of a program.
struct Placement {
  DenseMap<Value, Spread> spreads;
  DenseSet<Value> windows;            ///< rows behind some of those before the call
  DenseMap<Value, unsigned> problems; ///< what is computed from these has the problem too
  std::vector<Problem> all;

  SmallVector<Spread> of(ValueRange values) const {
    return llvm::map_to_vector(values, [&](Value v) { return spreads.lookup(v); });
  }
  /// That of the first of them that has one.
  std::optional<unsigned> problemOf(ValueRange values) const {
    for (Value value : values)
      if (auto known = problems.find(value); known != problems.end())
        return known->second;
    return std::nullopt;
  }
  /// A problem of an operation, if there is one.
  std::optional<unsigned> add(Operation &op, const std::string &text) {
    if (text.empty())
      return std::nullopt;
    all.push_back({&op, text});
    return all.size() - 1;
  }
};

StringRef otherNumbers() {
  return "gives each token of a call other numbers, which do not follow from where it stands in "
         "its sequence; expected hydra.iota with positions";
}

StringRef mixes() {
  return "reads several tokens of a sequence together, and does not say what it needs of those "
         "before the call (the cache interface)";
}

/// Rows with earlier ones in front are read by slices of as many as there are tokens. Returns
/// what is wrong.
std::string readWindow(Operation &op, int64_t tokens, Placement &at, MutableArrayRef<Spread> out) {
  auto slice = dyn_cast<SliceOp>(op);
  if (!slice)
    return "reads tokens together with those before the call; expected slices of as many as there "
           "are";
  out[0] = at.spreads.lookup(slice.getX());
  if (slice.getAxis() != out[0].dim)
    at.windows.insert(slice.getY());
  else if (slice.getSize() != tokens)
    return mixes().str();
  return "";
}

/// Of an operation that treats each token alone. Returns what is wrong.
std::string readTokens(Operation &op, int64_t tokens, Placement &at, MutableArrayRef<Spread> out) {
  auto rule = dyn_cast<PartitionOpInterface>(op);
  if (!rule)
    return mixes().str();
  const SmallVector<Spread> in = at.of(op.getOperands());
  SmallVector<Spread> wanted(in);
  rule.partition(tokens, wanted, out);
  for (auto [operand, has, wants] : llvm::zip(op.getOperands(), in, wanted)) {
    if (has == wants)
      continue;
    if (has.isRows() || !wants.isRows())
      return mixes().str();
    if (!isUniform(operand, wants.dim)) // then rows of any blocks are alike
      return otherNumbers().str();
  }
  return "";
}

void hand(Value from, Value to, Placement &at) {
  const Spread spread = at.spreads.lookup(from);
  at.spreads[to] = spread;
  if (const std::optional<unsigned> known = at.problemOf(from))
    at.problems[to] = *known;
}

/// Of what is read token after token along an axis. Returns what is wrong.
std::string readRows(ValueRange values, int64_t axis, const Placement &at) {
  for (Value value : values) {
    const Spread has = at.spreads.lookup(value);
    if (has == Spread::rows(axis))
      continue;
    if (!has.isSame())
      return mixes().str();
    if (!isUniform(value, axis))
      return otherNumbers().str();
  }
  return "";
}

/// Of an operation in a scan over tokens, where everything is the call's own: positions are not,
/// and what it reads from outside is of all tokens of the call, which is only the scan's own
/// where it has them at once. Returns what is wrong.
std::string readFromOutside(Operation &op, ScanBeginOp scan, int64_t tokens, const Placement &at) {
  if (auto iota = dyn_cast<IotaOp>(op); iota && iota.getPositions())
    return "counts positions inside of a scan over tokens; expected it in front of the scan";
  const bool apart = scan.getChunk() < tokens;
  return apart && llvm::any_of(at.of(op.getOperands()), [](Spread s) { return !s.isSame(); })
             ? mixes().str()
             : "";
}

void place(ScanEndOp end, std::optional<unsigned> problem, Placement &at) {
  for (Value value : end.getResults().take_front(end.getSequences())) {
    at.spreads[value] = Spread::rows(end.getAxis());
    if (problem)
      at.problems[value] = *problem;
  }
  for (Value value : end.getResults().drop_front(end.getSequences())) {
    at.problems[value] = *at.add(*end, "hands on what a scan over tokens carries behind its end; "
                                       "programs that read on have no such end");
  }
}

int64_t axisOfKept(Operation &op, ArrayRef<Spread> in) {
  if (auto iota = dyn_cast<IotaOp>(op))
    return iota.getAxis();
  if (auto begin = dyn_cast<ScanBeginOp>(op))
    return llvm::any_of(in.take_front(begin.getSequences()),
                        [&](const Spread &s) { return s == Spread::rows(begin.getAxis()); })
               ? begin.getAxis()
               : -1;
  if (in[0].isRows() && in[0].blocks == 1 && cast<CacheOpInterface>(op).needsEarlier(in[0].dim))
    return in[0].dim;
  return -1;
}

/// Through an operation that keeps something along the axis; -1: nothing.
void follow(Operation &op, int64_t tokens, int64_t axis, Placement &at) {
  SmallVector<Spread> out(op.getNumResults());
  std::string problem;
  if (axis >= 0) {
    out[0] = Spread::rows(axis);
    problem = readRows(op.getOperands(), axis, at);
    if (auto pad = dyn_cast<PadOp>(op)) {
      at.windows.insert(pad.getY());
      if (pad.getAfter() > 0)
        problem = mixes().str();
    }
  } else if (!llvm::all_of(at.of(op.getOperands()), [](const Spread &s) { return s.isSame(); })) {
    problem = llvm::any_of(op.getOperands(), [&](Value v) { return at.windows.contains(v); })
                  ? readWindow(op, tokens, at, out)
                  : readTokens(op, tokens, at, out);
  }
  std::optional<unsigned> known = at.problemOf(op.getOperands());
  if (!known)
    known = at.add(op, problem);
  for (auto [value, spread] : llvm::zip(op.getResults(), out)) {
    at.spreads[value] = spread;
    if (known || spread.isPart()) {
      if (!known)
        known = at.add(op, mixes().str());
      at.problems[value] = *known;
    }
  }
}

} // namespace

FailureOr<KeptAxes> findAxes(EntryOp entry) {
  KeptAxes axes;
  Placement at;
  at.spreads[entry.getBody().getArgument(0)] = Spread::rows(1);
  const int64_t tokens = tokensOf(entry);
  ScanBeginOp scan;               // over tokens
  Operation *until = nullptr;     // its end
  std::optional<unsigned> inside; // the problem of a value that it reads
  for (Operation &op : entry.getBody().front().without_terminator()) {
    if (until && !inside)
      inside = at.problemOf(op.getOperands());
    if (until && !inside)
      inside = at.add(op, readFromOutside(op, scan, tokens, at));
    if (until && until != &op)
      continue;
    if (until) {
      place(cast<ScanEndOp>(op), inside, at);
      until = nullptr;
      continue;
    }
    if (isa<ScanEndOp>(op)) { // of a scan over something else: each value for itself
      for (auto [result, value] : llvm::zip(op.getResults(), op.getOperands()))
        hand(value, result, at);
      continue;
    }
    if (mayKeep(op)) {
      axes.push_back(axisOfKept(op, at.of(op.getOperands())));
      if (auto begin = dyn_cast<ScanBeginOp>(op)) {
        inside = at.problemOf(op.getOperands());
        if (axes.back() >= 0) {
          scan = begin;
          until = endOf(begin);
          if (!inside)
            inside = at.add(op, readRows(begin.getValues().take_front(begin.getSequences()),
                                         begin.getAxis(), at));
        } else
          for (auto [result, value] : llvm::zip(op.getResults(), op.getOperands()))
            hand(value, result, at);
        continue;
      }
    }
    follow(op, tokens, mayKeep(op) ? axes.back() : -1, at);
  }
  Value scores = entry.getReturn().getOutputs()[0];
  if (const std::optional<unsigned> known = at.problemOf(scores)) {
    const Problem &problem = at.all[*known];
    return problem.op->emitOpError() << problem.text;
  }
  if (at.spreads.lookup(scores) != Spread::rows(1))
    return entry.emitOpError("has scores that are not one row for each token [B, S, V]");
  return axes;
}

//===-- Which dimension sequences are -------------------------------------------------------===//

namespace {

/// How the sequences of a call lie in the values of a program. What a scan carries into a call is
/// what it carried out of the last one, as `last` has it, whatever the first one began with.
Placement followSequences(EntryOp entry, int64_t batch, const Placement &last) {
  Placement at;
  at.all = last.all;
  at.spreads[entry.getBody().getArgument(0)] = Spread::rows(0);
  for (Operation &op : entry.getBody().front().without_terminator()) {
    if (isa<ScanBeginOp, ScanEndOp>(op)) {
      for (auto [result, value] : llvm::zip(op.getResults(), op.getOperands()))
        hand(value, result, at);
      if (auto begin = dyn_cast<ScanBeginOp>(op)) {
        ScanEndOp end = endOf(begin);
        for (auto [into, out] : llvm::zip(begin.getResults().drop_front(begin.getSequences()),
                                          end.getValues().drop_front(end.getSequences()))) {
          if (const Spread spread = last.spreads.lookup(out); !spread.isSame())
            at.spreads[into] = spread;
          if (const std::optional<unsigned> known = last.problemOf(out))
            at.problems[into] = *known;
        }
      }
      continue;
    }
    const SmallVector<Spread> in = at.of(op.getOperands());
    SmallVector<Spread> wanted(in), out(op.getNumResults());
    if (auto rule = dyn_cast<PartitionOpInterface>(op)) // of loops nothing is known
      rule.partition(batch, wanted, out);
    std::optional<unsigned> known = at.problemOf(op.getOperands());
    auto mixesAll = [&] {
      if (!known)
        known = at.add(op, "reads several sequences of the batch together, which programs that "
                           "read on have side by side; expected a batch of 1");
    };
    for (auto [has, wants] : llvm::zip(in, wanted))
      if (has != wants && (has.isRows() || !wants.isRows()))
        mixesAll();
    for (auto [value, spread] : llvm::zip(op.getResults(), out)) {
      if (spread.isRows() || spread.isOwn())
        at.spreads[value] = spread;
      if (spread.isPart())
        mixesAll();
      if (known)
        at.problems[value] = *known;
    }
  }
  return at;
}

} // namespace

FailureOr<KeptAxes> findBatches(EntryOp entry, ArrayRef<int64_t> axes) {
  const int64_t batch = build::shapeOf(entry.getBody().getArgument(0))[0];
  const SmallVector<Operation *> found = mayKeepOf(entry, axes);
  if (found.size() != axes.size())
    return keepsOther(entry);
  // A value may be carried from state to state before it is read: at most through all of them.
  Placement at = followSequences(entry, batch, Placement());
  for (ScanBeginOp begin : entry.getBody().front().getOps<ScanBeginOp>())
    for (int64_t i = begin.getSequences(); i < begin->getNumResults(); ++i)
      at = followSequences(entry, batch, at);
  const DenseMap<Value, Spread> &spreads = at.spreads;
  if (const std::optional<unsigned> known = at.problemOf(entry.getReturn().getOutputs()[0]);
      known && batch > 1)
    return at.all[*known].op->emitOpError() << at.all[*known].text;
  KeptAxes batches;
  for (auto [op, axis] : llvm::zip(found, axes)) {
    batches.push_back(0);
    if (axis < 0 || batch == 1)
      continue;
    auto begin = dyn_cast<ScanBeginOp>(op);
    SmallVector<Value> kept;
    if (auto pad = dyn_cast<PadOp>(op))
      kept.push_back(pad.getX());
    else if (begin)
      llvm::append_range(kept, endOf(begin).getValues().drop_front(endOf(begin).getSequences()));
    std::optional<int64_t> dim;
    bool told = true;
    for (Value value : kept)
      if (const Spread spread = spreads.lookup(value); spread.isRows()) {
        told &= spread.blocks == 1 && dim.value_or(spread.dim) == spread.dim;
        dim = spread.dim;
      }
    // What no token changes is the same for all sequences that are as long.
    for (Value value : kept)
      told &= dim && *dim < build::typeOf(value).getRank() &&
              build::typeOf(value).getDimSize(*dim) == batch;
    if (!told && !kept.empty())
      return op->emitOpError("keeps values of which it cannot be told what belongs to which "
                             "sequence of the batch; expected a batch of 1");
    batches.back() = dim.value_or(0);
  }
  return batches;
}

} // namespace hydra
