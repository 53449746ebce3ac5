// Evaluation of programs in float64 through the reference interface.
#include "compiler/reference/Interpreter.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"
#include "runtime/support/DType.h"
#include "runtime/support/Philox.h"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>

using namespace mlir;

namespace hydra {

void roundTo(RefTensor &tensor, Type element) {
  const std::optional<support::DType> format = formatOf(element);
  if (!format || !support::isFloat(*format))
    return;
  for (double &v : tensor.data)
    v = support::rounded(*format, v);
}

namespace {

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

class Interpreter {
public:
  Interpreter(const TensorMap &values, const InterpreterOptions &options, int64_t interpreters = 1)
      : values(values), options(options), interpreters(interpreters) {
    for (const auto &item : values)
      held += oracleBytes(item.getValue().shape);
  }

  FailureOr<TensorMap> run(EntryOp entry) {
    if (failed(begin(entry)))
      return failure();
    for (Operation &op : entry.getBody().front().without_terminator())
      if (failed(evaluate(&op)))
        return failure();
    return results(entry);
  }

  /// All ranks of a model's mesh, each with its own interpreter, in lockstep: what goes over ranks
  /// is computed of the values of all.
  static FailureOr<std::vector<TensorMap>>
  run(EntryOp entry, MeshAttr mesh, MutableArrayRef<std::unique_ptr<Interpreter>> ranks) {
    for (auto [number, rank] : llvm::enumerate(ranks)) {
      rank->mesh = mesh;
      rank->number = static_cast<int64_t>(number);
      if (failed(rank->begin(entry)))
        return failure();
    }
    for (Operation &op : entry.getBody().front().without_terminator()) {
      if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
        if (failed(evaluate(collective, mesh, ranks)))
          return failure();
        continue;
      }
      for (auto &rank : ranks)
        if (failed(rank->evaluate(&op)))
          return failure();
    }
    std::vector<TensorMap> all;
    for (auto &rank : ranks)
      all.push_back(rank->results(entry));
    return all;
  }

private:
  using Shared = std::shared_ptr<const RefTensor>;

  LogicalResult begin(EntryOp entry) {
    for (auto [argument, name] : llvm::zip(entry.getBody().getArguments(),
                                           entry.getArgNames().getAsValueRange<StringAttr>()))
      if (failed(bind(argument, name, entry)))
        return failure();
    countUses(entry.getBody().front());
    return success();
  }

  TensorMap results(EntryOp entry) {
    ReturnOp end = entry.getReturn();
    TensorMap results;
    for (auto [name, value] :
         llvm::zip(end.getOutputNames().getAsValueRange<StringAttr>(), end.getOutputs()))
      results[name] = *tensors[value];
    for (auto [symbol, value] :
         llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates()))
      results[symbol.getValue()] = *tensors[value];
    return results;
  }

  /// What goes over ranks, of every group of them.
  static LogicalResult evaluate(CollectiveOpInterface op, MeshAttr mesh,
                                MutableArrayRef<std::unique_ptr<Interpreter>> ranks) {
    const int64_t size = mesh.size(op.getOver());
    for (int64_t first = 0; first < static_cast<int64_t>(ranks.size()); ++first) {
      if (mesh.coordinate(op.getOver(), first) != 0)
        continue;
      auto rankAt = [&](int64_t coordinate) -> Interpreter & {
        return *ranks[first + mesh.distance(op.getOver(), coordinate)];
      };
      SmallVector<SmallVector<const RefTensor *>> operands;
      SmallVector<RefTensor> results;
      for (int64_t i = 0; i < size; ++i) {
        Interpreter &rank = rankAt(i);
        if (failed(rank.checkRoom(op, op->getResults())))
          return failure();
        operands.push_back(
            llvm::map_to_vector(op->getOperands(), [&](Value v) { return rank.tensors[v].get(); }));
        results.emplace_back(typeOf(op->getResult(0)).getShape());
      }
      op.evaluateOverRanks(operands, results);
      for (int64_t i = 0; i < size; ++i) {
        Interpreter &rank = rankAt(i);
        if (rank.options.round)
          roundTo(results[i], typeOf(op->getResult(0)).getElementType());
        rank.tensors[op->getResult(0)] = rank.hold(std::move(results[i]));
        rank.release(op);
      }
    }
    return success();
  }

  /// In loops ranks do not meet: what has no operands a rank knows alone.
  LogicalResult evaluateAlone(CollectiveOpInterface op) {
    const int64_t size = mesh.size(op.getOver());
    const SmallVector<SmallVector<const RefTensor *>> operands(size);
    SmallVector<RefTensor> results(size, RefTensor(typeOf(op->getResult(0)).getShape()));
    op.evaluateOverRanks(operands, results);
    RefTensor &own = results[mesh.coordinate(op.getOver(), number)];
    tensors[op->getResult(0)] = hold(std::move(own));
    return success();
  }

  /// Takes a named tensor as the value of an argument or a use.
  LogicalResult bind(Value value, StringRef name, Operation *op) {
    if (isUnbound(value.getType()))
      return op->emitOpError("is not bound; run hydra-bind first");
    auto it = values.find(name);
    if (it == values.end())
      return op->emitOpError() << "needs a value for '" << name << "'";
    if (ArrayRef<int64_t>(it->second.shape) != typeOf(value).getShape())
      return op->emitOpError() << "got '" << name << "' of shape " << shapeText(it->second.shape)
                               << "; expected " << shapeText(typeOf(value).getShape());
    if (!options.round) {
      tensors[value] = Shared(&it->second, [](const RefTensor *) {});
      return success();
    }
    if (failed(checkRoom(op, value)))
      return failure();
    RefTensor copy = it->second;
    roundTo(copy, typeOf(value).getElementType());
    tensors[value] = hold(std::move(copy));
    return success();
  }

  /// Fails when there is no memory for more values beside those that are held.
  LogicalResult checkRoom(Operation *op, ValueRange more) const {
    double bytes = 0;
    for (Value v : more)
      bytes += oracleBytes(typeOf(v).getShape());
    if (held + bytes <= static_cast<double>(machineMemory()) / static_cast<double>(interpreters))
      return success();
    return op->emitOpError() << "needs " << static_cast<int64_t>(bytes)
                             << " bytes for its results as f64 beside "
                             << static_cast<int64_t>(held) << "; this machine has "
                             << machineMemory() / interpreters
                             << (interpreters > 1 ? " for each rank" : "");
  }

  /// A tensor that counts as held until its last reader is done.
  Shared hold(RefTensor tensor) {
    const double bytes = oracleBytes(tensor.shape);
    held += bytes;
    return {new RefTensor(std::move(tensor)), [this, bytes](const RefTensor *t) {
              held -= bytes;
              delete t;
            }};
  }

  /// Tensors are dropped after their last use.
  void countUses(Block &block) {
    for (Operation &op : block)
      for (Value v : op.getOperands())
        ++uses[v];
  }

  LogicalResult evaluate(Operation *op) {
    if (auto use = dyn_cast<UseOp>(op))
      return bind(use.getResult(), use.getVariable(), use);
    if (auto group = dyn_cast<FusedOp>(op))
      return evaluateGroup(group);
    if (auto loop = dyn_cast<LoopOp>(op))
      return evaluateLoop(loop);
    if (auto alone = dyn_cast<CollectiveOpInterface>(op);
        alone && mesh && op->getNumOperands() == 0)
      return evaluateAlone(alone);
    if (isa<BoundaryOp>(op)) // between layers
      return success();
    auto reference = dyn_cast<ReferenceOpInterface>(op);
    if (!reference)
      return op->emitOpError("cannot be interpreted; run hydra-unroll-layers first");
    SmallVector<const RefTensor *> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value v) { return tensors[v].get(); });
    if (failed(checkRoom(op, op->getResults())))
      return failure();
    std::vector<RefTensor> multiplied; // operands in the format that they are multiplied in
    multiplied.reserve(operands.size());
    for (auto [i, operand] : llvm::enumerate(operands))
      if (Type format = options.round ? formatOfOperand(op, i) : Type()) {
        roundTo(multiplied.emplace_back(*operand), format);
        operands[i] = &multiplied.back();
      }
    SmallVector<RefTensor> results;
    for (Value v : op->getResults())
      results.emplace_back(typeOf(v).getShape());
    if (failed(options.round ? reference.evaluateRounded(operands, results)
                             : reference.evaluate(operands, results)))
      return failure();
    if (options.perturb && failed(perturb(reference, operands, results)))
      return failure();
    for (auto [value, result] : llvm::zip(op->getResults(), results)) {
      if (options.round)
        roundTo(result, typeOf(value).getElementType());
      tensors[value] = hold(std::move(result));
    }
    release(op);
    return success();
  }

  /// The format that an operand is rounded to before it is multiplied; null: its own.
  static Type formatOfOperand(Operation *op, unsigned operand) {
    auto precision = dyn_cast<PrecisionOpInterface>(op);
    return precision ? precision.multipliedIn(operand) : Type();
  }

  /// Replaces results by those of operands that are a little off, and puts them off a little. With
  /// an even number equal numbers are off alike, as they are when they are rounded, so that sums of
  /// them do not average it away; with an odd one each by itself, so that their differences do not
  /// cancel.
  LogicalResult perturb(ReferenceOpInterface op, ArrayRef<const RefTensor *> operands,
                        MutableArrayRef<RefTensor> results) {
    const support::Philox random(options.perturb, "perturb", evaluated++);
    uint64_t draws = 0;
    auto off = [&](double v, double unit, double least = 0.0) {
      const uint64_t draw = options.perturb % 2 == 0 ? std::bit_cast<uint64_t>(v) : draws++;
      const double error = v == 0.0 ? 0.0 : std::max(unit * std::abs(v), least);
      return v + error * (2.0 * random.uniform53(draw) - 1.0);
    };
    SmallVector<RefTensor> moved =
        llvm::map_to_vector(operands, [](const RefTensor *operand) { return RefTensor(*operand); });
    bool whole = true;
    for (auto [i, operand, tensor] : llvm::enumerate(op->getOperands(), moved)) {
      if (!isa<FloatType>(typeOf(operand).getElementType()))
        continue;
      // Machines round to nearest or towards zero.
      const Type format = formatOfOperand(op, i);
      const double unit = format ? 2.0 * unitOf(format) : kF32Unit;
      for (double &v : tensor.data)
        if (std::rint(v) != v || (format && support::rounded(*formatOf(format), v) != v)) {
          v = off(v, unit);
          whole = false;
        }
    }
    const Exactness exactness = op.exactness();
    const bool exact =
        exactness == Exactness::Always || (exactness == Exactness::OfWholeNumbers && whole);
    SmallVector<const RefTensor *> pointers;
    for (const RefTensor &tensor : moved)
      pointers.push_back(&tensor);
    SmallVector<RefTensor> others;
    for (Value v : op->getResults())
      others.emplace_back(typeOf(v).getShape());
    if (failed(op.evaluate(pointers, others)))
      return failure();
    for (auto [value, result, other] : llvm::zip(op->getResults(), results, others)) {
      Type element = typeOf(value).getElementType();
      if (!isa<FloatType>(element))
        continue;
      RefTensor rounded = result;
      roundTo(rounded, element);
      // A sum of equal terms is rounded to the same side again and again.
      const double unit = std::max(unitOf(element), kF32Unit) +
                          kF32Unit * termsOf(op, result.data.size()) / kTermsPerUnit;
      for (auto [v, r, o] : llvm::zip(result.data, rounded.data, other.data))
        if (!exact || v != r || std::abs(o - v) > kF32Unit * std::abs(v))
          v = off(o, 2.0 * unit, support::smallestNumber(*formatOf(element)));
    }
    return success();
  }

  /// How many terms a sum in a result of so many elements may have. Indices may send all that they
  /// stand for to one place.
  static double termsOf(Operation *op, size_t elements) {
    double terms = 0.0;
    if (auto cost = dyn_cast<CostOpInterface>(op))
      terms = 0.5 * static_cast<double>(cost.flops()) /
              static_cast<double>(std::max<size_t>(elements, 1));
    for (Value operand : op->getOperands())
      if (isa<IntegerType>(typeOf(operand).getElementType()))
        terms = std::max(terms, static_cast<double>(typeOf(operand).getNumElements()));
    return terms;
  }

  /// A group has no value of its own: its operations run one after the other.
  LogicalResult evaluateGroup(FusedOp group) {
    Block &body = group.getBlock();
    for (auto [argument, input] : llvm::zip(body.getArguments(), group.getInputs()))
      give(argument, input);
    countUses(body);
    for (Operation &op : body.without_terminator())
      if (failed(evaluate(&op)))
        return failure();
    for (auto [result, value] : llvm::zip(group.getResults(), group.getYield().getValues()))
      give(result, value);
    release(group.getYield());
    release(group);
    return success();
  }

  LogicalResult evaluateLoop(LoopOp loop) {
    EntryOp entry = loop.getEntry();
    ScanAttr scan = loop.getScan();
    Block &body = entry.getBody().front();
    ReturnOp end = entry.getReturn();
    const size_t over = scan.getOver().size(), stacked = scan.getStacked().size();
    auto inputs = llvm::map_to_vector(loop.getInputs(), [&](Value v) { return tensors.lookup(v); });
    if (failed(checkRoom(loop, loop.getResults())))
      return failure();
    std::vector<RefTensor> joined;
    for (unsigned i = 0; i < stacked; ++i)
      joined.emplace_back(entry.wholeResultType(i).getShape());
    for (int64_t i = 0; i < scan.getCount(); ++i) {
      const int64_t number = scan.getReverse() ? scan.getCount() - 1 - i : i;
      for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
        tensors[argument] = input;
      for (auto [argument, input, axis] : llvm::zip(body.getArguments(), inputs, scan.getOver())) {
        RefTensor chunk(typeOf(argument).getShape());
        takePiece(*input, chunk, axis, number * chunk.shape[axis]);
        tensors[argument] = hold(std::move(chunk));
      }
      countUses(body);
      for (Operation &op : body.without_terminator())
        if (failed(evaluate(&op)))
          return failure();
      for (auto [value, whole, axis] : llvm::zip(end.getOutputs(), joined, scan.getStacked())) {
        const Shared chunk = tensors.lookup(value);
        putPiece(whole, *chunk, axis, number * chunk->shape[axis]);
      }
      for (auto [input, value] : llvm::zip(MutableArrayRef(inputs).slice(over, scan.getCarried()),
                                           end.getOutputs().drop_front(stacked)))
        input = tensors.lookup(value);
      release(end);
    }
    for (BlockArgument argument : body.getArguments())
      tensors.erase(argument);
    for (auto [result, whole] : llvm::zip(loop.getResults(), joined))
      tensors[result] = hold(std::move(whole));
    for (auto [result, input] : llvm::zip(loop.getResults().drop_front(stacked),
                                          ArrayRef(inputs).slice(over, scan.getCarried())))
      tensors[result] = input;
    release(loop);
    return success();
  }

  void give(Value to, Value from) {
    Shared tensor = tensors.lookup(from);
    tensors[to] = std::move(tensor);
  }

  void release(Operation *op) {
    for (Value v : op->getOperands())
      if (--uses[v] == 0)
        tensors.erase(v);
  }

  /// The largest relative error of rounding to nearest.
  static constexpr double kF32Unit = 0x1p-24;
  static double unitOf(Type element) { return support::roundingUnit(*formatOf(element)); }
  static constexpr double kTermsPerUnit = 8.0; ///< terms of a sum that put it off by another unit

  const TensorMap &values;
  const InterpreterOptions &options;
  const int64_t interpreters; ///< that share the memory of this machine
  MeshAttr mesh;              ///< null: there are no ranks
  int64_t number = 0;         ///< of the rank
  uint64_t evaluated = 0;     ///< operations so far: each has random numbers of its own
  double held = 0;            ///< bytes; outlives the tensors
  DenseMap<Value, Shared> tensors;
  DenseMap<Value, unsigned> uses;
};

} // namespace

int64_t machineMemory() {
  static const int64_t bytes =
      static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  return bytes;
}

FailureOr<TensorMap> interpret(EntryOp entry, const TensorMap &values,
                               const InterpreterOptions &options) {
  return Interpreter(values, options).run(entry);
}

FailureOr<std::vector<TensorMap>> interpretRanks(EntryOp entry, ArrayRef<TensorMap> values,
                                                 const InterpreterOptions &options) {
  std::optional<MeshAttr> mesh = entry->getParentOfType<ModelOp>().getMesh();
  const int64_t ranks = mesh ? mesh->ranks() : 1;
  if (ranks != static_cast<int64_t>(values.size()))
    return entry.emitOpError() << "@" << entry.getSymName() << " is for " << ranks
                               << " ranks; got the values of " << values.size();
  if (!mesh) {
    FailureOr<TensorMap> results = interpret(entry, values.front(), options);
    if (failed(results))
      return failure();
    return std::vector<TensorMap>{std::move(*results)};
  }
  std::vector<std::unique_ptr<Interpreter>> interpreters;
  for (const TensorMap &own : values)
    interpreters.push_back(std::make_unique<Interpreter>(own, options, ranks));
  return Interpreter::run(entry, *mesh, interpreters);
}

/// Whether the programs of a model are those of one rank.
static bool isPartitioned(ModelOp model) {
  return llvm::any_of(model.getBody().getOps<EntryOp>(),
                      [](EntryOp entry) { return entry.ranks() > 1; });
}

/// Whether the new value of a state is the larger of what it was and something else, as the largest
/// magnitude of all micro-batches is found: what ranks then have are parts of the largest of all.
static bool isRaised(StateOp state, Value value) {
  const auto outer = [](Value value) { // what goes into a group
    auto argument = dyn_cast<BlockArgument>(value);
    auto group = argument ? dyn_cast<FusedOp>(argument.getOwner()->getParentOp()) : FusedOp();
    return group ? group.getInputs()[argument.getArgNumber()] : value;
  };
  if (auto group = value.getDefiningOp<FusedOp>())
    value = group.getYield().getValues()[cast<OpResult>(value).getResultNumber()];
  auto larger = value.getDefiningOp<MaxOp>();
  return larger && llvm::any_of(larger->getOperands(), [&](Value operand) {
           auto use = outer(operand).getDefiningOp<UseOp>();
           return use && use.lookup() == state;
         });
}

FailureOr<TensorMap> interpretBatch(EntryOp entry, const TensorMap &given,
                                    const InterpreterOptions &options) {
  auto model = entry->getParentOfType<ModelOp>();
  TensorMap values(given);
  joinMembers(model, values);
  // The units that are cut, and state of them.
  SmallVector<Operation *> cut;
  for (Operation &op : model.getBody().front())
    if (FlatUnitAttr unit = isa<ParamOp, StateOp>(op) ? unitOf(&op) : FlatUnitAttr();
        unit && unit.getPieces() > 1)
      cut.push_back(&op);
  // State of which each rank has a part of the sum that it stands for.
  SmallVector<StringRef> parts;
  if (isPartitioned(model))
    for (StateOp state : model.getBody().getOps<StateOp>())
      if (state.isPart())
        parts.push_back(state.getSymName());
  // Whose values on other ranks a program asks for, though it has no rows of a batch.
  const bool meets = llvm::any_of(entry.getBody().front(), llvm::IsaPred<CollectiveOpInterface>);
  if (entry.ranks() == 1 && cut.empty() && parts.empty() && !meets) {
    FailureOr<TensorMap> results = interpret(entry, values, options);
    if (succeeded(results))
      takeMembers(model, *results);
    return results;
  }
  const MeshAttr mesh = *model.getMesh();
  const int64_t ranks = mesh.ranks();
  std::vector<TensorMap> own(ranks, values);
  for (auto [i, name] : llvm::enumerate(entry.getArgNames().getAsValueRange<StringAttr>())) {
    const int64_t dim = entry.batchDimension(i);
    const auto whole = values.find(name);
    if (dim < 0 || whole == values.end())
      continue;
    ArrayRef<int64_t> shape = entry.batchType(i).getShape();
    if (ArrayRef<int64_t>(whole->second.shape) != shape)
      return entry.emitOpError() << "got '" << name << "' of shape "
                                 << shapeText(whole->second.shape) << "; expected "
                                 << shapeText(shape);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      RefTensor piece(typeOf(entry.getBody().getArgument(i)).getShape());
      takePiece(whole->second, piece, dim, rank * piece.shape[dim]);
      own[rank][name] = std::move(piece);
    }
  }
  for (Operation *variable : cut) {
    const StringRef name = SymbolTable::getSymbolName(variable).getValue();
    const auto whole = values.find(name);
    if (whole == values.end())
      continue;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      RefTensor piece(intList(variable->getAttrOfType<ArrayAttr>("shape")));
      takePiece(whole->second, piece, 0,
                mesh.coordinate(unitOf(variable).getOver(), rank) * piece.shape[0]);
      own[rank][name] = std::move(piece);
    }
  }
  for (StringRef name : parts) // all of the sum is the part of rank 0
    for (int64_t rank = 1; rank < ranks; ++rank)
      if (auto part = own[rank].find(name); part != own[rank].end())
        llvm::fill(part->second.data, 0.0);
  FailureOr<std::vector<TensorMap>> all = interpretRanks(entry, own, options);
  if (failed(all))
    return failure();
  ReturnOp end = entry.getReturn();
  TensorMap results;
  // Along a dimension, as many pieces as `pieceOf` numbers; ranks with the same piece must have the
  // same.
  auto join = [&](StringRef name, int64_t dim, int64_t pieces,
                  llvm::function_ref<int64_t(int64_t)> pieceOf) -> LogicalResult {
    SmallVector<int64_t> first(pieces, -1);
    SmallVector<int64_t> shape = (*all)[0][name].shape;
    if (pieces > 1)
      shape[dim] *= pieces;
    RefTensor whole(shape);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const RefTensor &own = (*all)[rank][name];
      int64_t &before = first[pieceOf(rank)];
      if (before < 0) {
        before = rank;
        if (pieces > 1)
          putPiece(whole, own, dim, pieceOf(rank) * own.shape[dim]);
        else
          whole = own;
      } else if (std::memcmp(own.data.data(), (*all)[before][name].data.data(),
                             own.data.size() * sizeof(double)) != 0) {
        return end.emitOpError() << "gives '" << name << "' other values on rank " << rank
                                 << " than on rank " << before << "; expected the same";
      }
    }
    results[name] = std::move(whole);
    return success();
  };
  auto joinRows = [&](StringRef name, int64_t dim) {
    return dim < 0 ? join(
                         name, 0, 1, [](int64_t) { return 0; })
                   : join(name, dim, ranks, [](int64_t rank) { return rank; });
  };
  auto addUp = [&](StringRef name) {
    RefTensor &sum = results[name] = std::move((*all)[0][name]);
    for (int64_t rank = 1; rank < ranks; ++rank)
      for (auto [to, v] : llvm::zip(sum.data, (*all)[rank][name].data))
        to += v;
    return success();
  };
  auto takeLargest = [&](StringRef name) {
    RefTensor &largest = results[name] = std::move((*all)[0][name]);
    for (int64_t rank = 1; rank < ranks; ++rank)
      for (auto [to, v] : llvm::zip(largest.data, (*all)[rank][name].data))
        to = std::isnan(to) ? to : std::max(v, to);
    return success();
  };
  ArrayRef<int64_t> rows = entry.getRows() ? entry.getRows()->getResults() : ArrayRef<int64_t>();
  for (auto [i, name] : llvm::enumerate(end.getOutputNames().getAsValueRange<StringAttr>()))
    if (failed(joinRows(name, rows.empty() ? -1 : rows[i])))
      return failure();
  for (auto [symbol, value] :
       llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
    Operation *variable = model.lookupSymbol(symbol.getAttr());
    FlatUnitAttr unit = unitOf(variable);
    auto state = dyn_cast<StateOp>(variable);
    const StringRef name = symbol.getValue();
    if (failed(llvm::is_contained(parts, name)            ? addUp(name)
               : !unit && state && isRaised(state, value) ? takeLargest(name)
               : unit && unit.getPieces() > 1
                   ? join(name, 0, unit.getPieces(),
                          [&](int64_t rank) { return mesh.coordinate(unit.getOver(), rank); })
                   : joinRows(name, -1)))
      return failure();
  }
  takeMembers(model, results);
  return results;
}

} // namespace hydra
