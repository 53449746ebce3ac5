// hydra-keep-quantized: weights in 8 bits are state, written where their parameters are updated.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"
#include "passes/precision/AlongBlocks.h"
#include "passes/precision/AmaxHistory.h"
#include "passes/precision/KeptMagnitudes.h"

#include <map>
#include <set>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_KEEPQUANTIZED
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-keep-quantized";
/// The largest magnitudes of the weights as they are, which the next step is to remember.
constexpr StringLiteral kPresent = "fp8_amax.weights";

/// Numbers of an update whose largest magnitude is found together.
constexpr int64_t kBlock = 256;

/// An operand that is made of parameters: one, or several that are joined along an axis. Or all the
/// operands that lie in a unit, of which ranks have pieces.
struct Weight {
  SmallVector<ParamOp> parameters;
  int64_t axis = 0;
  Type rounded; ///< what elements are cast to before they are quantized
  Type format;
  /// Of the history, that scales are made of: one; of a unit those of its operands.
  SmallVector<int64_t, 4> rows = {};
  SmallVector<int64_t, 4> starts = {}; ///< where these begin in the unit; else none
  SmallVector<StateOp> copies = {};    ///< of each parameter, in 8 bits

  bool isUnit() const { return !starts.empty(); }
  UnitScales layout() { return UnitScales(parameters.front().getUnitAttr(), starts); }
  bool isSame(const Weight &other) const {
    return parameters == other.parameters && axis == other.axis && rounded == other.rounded &&
           format == other.format && rows == other.rows && starts == other.starts;
  }
};

/// By the first of their rows.
using Weights = std::map<int64_t, Weight>;

/// A row of the history, and where the elements begin that are divided by a scale made of it.
struct ScaleRow {
  int64_t row, start;
};

/// Those of what is quantized; none where a scale is made of anything else.
SmallVector<ScaleRow> scaleRowsOf(QuantizeOp quantize, StateOp history) {
  SmallVector<ScaleRow> rows;
  for (auto [start, scale] : UnitScales::partsOf(quantize.getScale())) {
    std::optional<int64_t> row = AmaxHistory::rowOf(scale, history);
    if (!row)
      return {};
    rows.push_back({*row, start});
  }
  return rows;
}

/// The weight that is quantized; nullopt where it is made in another way than of whole parameters
/// that are cast once, or of what a rank has of a unit.
std::optional<Weight> weightOf(QuantizeOp quantize, ArrayRef<ScaleRow> rows) {
  auto finite = quantize.getX().getDefiningOp<AddOp>(); // see AmaxHistory::withoutInfinities
  if (!finite)
    return std::nullopt;
  Value value = finite->getOperand(0);
  Weight weight{.parameters = {},
                .rounded = build::typeOf(value).getElementType(),
                .format = build::typeOf(quantize.getResult()).getElementType()};
  for (const ScaleRow &each : rows)
    weight.rows.push_back(each.row);
  if (ParamOp param = castParameterOf(build::behindReshapes(value)); param && param.getUnit()) {
    weight.parameters.push_back(param);
    for (const ScaleRow &each : rows)
      weight.starts.push_back(each.start);
    return weight;
  }
  SmallVector<Value> parts{value};
  auto cast = value.getDefiningOp<CastOp>();
  if (auto concat = (cast ? cast.getX() : value).getDefiningOp<ConcatOp>()) {
    weight.axis = concat.getAxis();
    parts.assign(concat.getParts().begin(), concat.getParts().end());
    if (cast && llvm::any_of(parts, [](Value part) { return part.getDefiningOp<CastOp>(); }))
      return std::nullopt;
  }
  for (Value part : parts) {
    ParamOp param = castParameterOf(part);
    if (!param || param.getUnit() || llvm::is_contained(weight.parameters, param))
      return std::nullopt;
    weight.parameters.push_back(param);
  }
  if (rows.size() != 1)
    return std::nullopt;
  return weight;
}

/// Whether a value is made of variables alone.
bool isMadeOfVariables(Value value) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (!op || (op->getNumOperands() == 0 && !isa<UseOp, ConstantOp>(op)))
      return false;
    seen.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// What a program makes of a variable; null where it leaves that as it is.
Value updateOf(EntryOp entry, StringAttr variable) {
  ReturnOp end = entry.getReturn();
  for (auto [symbol, value] :
       llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates()))
    if (symbol.getAttr() == variable)
      return value;
  return {};
}

void addUpdates(EntryOp entry, ArrayRef<std::pair<StateOp, Value>> added) {
  ReturnOp end = entry.getReturn();
  SmallVector<Attribute> updated(end.getUpdated().begin(), end.getUpdated().end());
  for (auto [state, value] : added) {
    updated.push_back(FlatSymbolRefAttr::get(state));
    end.getValuesMutable().append(value);
  }
  end.setUpdatedAttr(Builder(end.getContext()).getArrayAttr(updated));
}

GuardOp guardOf(Value value) {
  return value ? build::behindReshapes(value).getDefiningOp<GuardOp>() : GuardOp();
}

Value read(OpBuilder &b, Location loc, StateOp state) {
  return UseOp::create(b, loc, state.getBoundType(), state.getSymName());
}

struct KeepQuantized : impl::KeepQuantizedBase<KeepQuantized> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    history = {};
    weights.clear();
    formats.clear();
    for (StateOp state : model.getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::amax_history)
        history = state;
    if (!history || model.lookupSymbol(kPresent))
      return;
    findWeights(model);
    if (weights.empty())
      return;
    addStates(model);
    for (EntryOp entry : llvm::to_vector(model.getBody().getOps<EntryOp>()))
      if (entry.isProgram()) {
        readCopies(entry);
        handOnPresent(entry);
        if (updateOf(entry, history.getSymNameAttr()))
          writeCopies(entry);
        eraseDead(entry.getBody().front());
      }
    addDerivation(model);
  }

private:
  //===-- Which weights ---------------------------------------------------------------------===//

  /// Those of which all programs that know the history make the same of the same parameters, and
  /// which have new values whenever their scales have.
  void findWeights(ModelOp model) {
    std::set<int64_t> others;
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto quantize : entry.getBody().front().getOps<QuantizeOp>()) {
        SmallVector<ScaleRow> rows = scaleRowsOf(quantize, history);
        if (rows.empty() || !isMadeOfVariables(quantize.getX()))
          continue;
        std::optional<Weight> weight = weightOf(quantize, rows);
        if (!weight ||
            !weights.try_emplace(rows.front().row, *weight).first->second.isSame(*weight))
          for (const ScaleRow &each : rows)
            others.insert(each.row);
      }
    std::set<int64_t> known;
    for (auto &[first, weight] : weights) {
      const bool updated = isUpdatedWithHistory(model, weight);
      for (int64_t row : weight.rows)
        if (!known.insert(row).second || !updated)
          others.insert(row);
    }
    dropWeightsOf(others);
    left += others.size();
    kept += formats.size();
  }

  /// A weight goes with any of its rows, and takes the others along.
  void dropWeightsOf(std::set<int64_t> &others) {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto it = weights.begin(); it != weights.end();) {
        const ArrayRef<int64_t> rows = it->second.rows;
        if (llvm::none_of(rows, [&](int64_t row) { return others.count(row) > 0; })) {
          ++it;
          continue;
        }
        others.insert(rows.begin(), rows.end());
        it = weights.erase(it);
        changed = true;
      }
    }
    for (auto &[first, weight] : weights)
      for (int64_t row : weight.rows)
        formats[row] = weight.format;
  }

  bool isUpdatedWithHistory(ModelOp model, const Weight &weight) {
    return llvm::all_of(model.getBody().getOps<EntryOp>(), [&](EntryOp entry) {
      Value moved = updateOf(entry, history.getSymNameAttr());
      GuardOp guard = guardOf(moved);
      return llvm::all_of(weight.parameters, [&](ParamOp param) {
        Value value = updateOf(entry, param.getSymNameAttr());
        GuardOp own = guardOf(value);
        return !moved && !value ? true : guard && own && guard.getOk() == own.getOk();
      });
    });
  }

  //===-- State -----------------------------------------------------------------------------===//

  void addStates(ModelOp model) {
    auto add = [&](Operation *behind, const Twine &name, ArrayRef<int64_t> shape, Type element,
                   StringAttr owner) {
      OpBuilder b(behind);
      b.setInsertionPointAfter(behind);
      return StateOp::create(
          b, madeBy(kPass, behind->getLoc()), b.getStringAttr(name), b.getI64ArrayAttr(shape),
          TypeAttr::get(element), InitAttr::get(b.getContext(), InitKind::zeros, {}), StringAttr(),
          Attribute(), owner, VariableRoleAttr::get(b.getContext(), VariableRole::derived));
    };
    for (auto &[row, weight] : weights)
      for (ParamOp param : weight.parameters) {
        // One parameter may be in several operands, each with a scale of its own.
        std::string name =
            (param.getSymName() + "." + support::irName(*formatOf(weight.format))).str();
        if (model.lookupSymbol(name))
          name += "." + std::to_string(weight.rows.front());
        weight.copies.push_back(add(param, name, param.getBoundType().getShape(), weight.format,
                                    param.getSymNameAttr()));
      }
    present = add(history, kPresent, {static_cast<int64_t>(formats.size())},
                  Float32Type::get(&getContext()), StringAttr());
  }

  //===-- Reading ---------------------------------------------------------------------------===//

  void readCopies(EntryOp entry) {
    for (auto quantize : llvm::make_early_inc_range(entry.getBody().front().getOps<QuantizeOp>())) {
      SmallVector<ScaleRow> rows = scaleRowsOf(quantize, history);
      auto it = rows.empty() ? weights.end() : weights.find(rows.front().row);
      if (it == weights.end())
        continue;
      OpBuilder b(quantize);
      const Location loc = madeBy(kPass, quantize.getLoc());
      Value copies = build::concat(
          b, loc,
          llvm::map_to_vector(it->second.copies, [&](StateOp copy) { return read(b, loc, copy); }),
          it->second.axis);
      quantize.replaceAllUsesWith(
          build::reshape(b, loc, copies, build::shapeOf(quantize.getResult())));
      quantize.erase();
    }
  }

  /// A program finds the largest magnitudes of kept weights in the state that has them.
  void handOnPresent(EntryOp entry) {
    ConcatOp found = findingsOf(entry);
    if (!found)
      return;
    OpBuilder b(found);
    const Location loc = madeBy(kPass, found.getLoc());
    Value known = read(b, loc, present);
    SmallVector<Value> parts;
    int64_t first = 0, run = 0; // of the rows of a part; rows in front of it that are kept
    auto takeRun = [&](int64_t end) {
      if (run > 0)
        parts.push_back(build::partOf(b, loc, known, 0, numberOf(end - run), run));
      run = 0;
    };
    for (Value part : found.getParts()) {
      const int64_t end = first + build::shapeOf(part)[0];
      for (int64_t row = first; row < end;) {
        if (formats.count(row)) {
          ++run;
          ++row;
          continue;
        }
        takeRun(row);
        int64_t next = row + 1;
        while (next < end && !formats.count(next))
          ++next;
        parts.push_back(build::partOf(b, loc, part, 0, row - first, next - row));
        row = next;
      }
      first = end;
    }
    takeRun(first);
    found.replaceAllUsesWith(build::concat(b, loc, parts, 0));
    found.erase();
  }

  /// Which of the kept weights has that row.
  int64_t numberOf(int64_t row) { return std::distance(formats.begin(), formats.find(row)); }

  /// The largest magnitudes that a program finds of all operands, [operands]; null where it finds
  /// none.
  ConcatOp findingsOf(EntryOp entry) {
    const auto type = RankedTensorType::get({history.getBoundType().getDimSize(0)},
                                            Float32Type::get(&getContext()));
    llvm::SetVector<Value> seen;
    if (GuardOp guard = guardOf(updateOf(entry, history.getSymNameAttr())))
      seen.insert(guard.getFresh());
    if (Value step = updateOf(entry, StringAttr::get(&getContext(), AmaxHistory::kStep)))
      seen.insert(step);
    for (size_t i = 0; i < seen.size(); ++i) {
      Operation *op = seen[i].getDefiningOp();
      auto concat = dyn_cast_or_null<ConcatOp>(op);
      if (concat && concat.getY().getType() == type)
        return concat;
      if (op)
        seen.insert(op->operand_begin(), op->operand_end());
    }
    return {};
  }

  //===-- Writing ---------------------------------------------------------------------------===//

  /// Rows of kept weights, of the history or of what is made of it.
  Value rowsOf(OpBuilder &b, Location loc, Value x) {
    SmallVector<Value> parts;
    for (auto it = formats.begin(); it != formats.end();) {
      const int64_t first = it->first;
      int64_t end = first;
      for (; it != formats.end() && it->first == end; ++it)
        ++end;
      parts.push_back(build::partOf(b, loc, x, 0, first, end - first));
    }
    return build::concat(b, loc, parts, 0);
  }

  /// The scale [] of each kept weight by rows of the history, [weights, N].
  SmallVector<Value> scalesOf(OpBuilder &b, Location loc, Value rows) {
    Value amax = build::largest(b, loc, rows, {1});
    llvm::SmallDenseMap<Type, Value> all; // by format
    SmallVector<Value> scales;
    for (auto &[row, format] : formats) {
      Value &ofFormat = all[format];
      if (!ofFormat)
        ofFormat = AmaxHistory::scales(b, loc, amax, OperandKind::Weight, format);
      scales.push_back(build::reshape(
          b, loc, build::partOf(b, loc, ofFormat, 0, static_cast<int64_t>(scales.size()), 1), {}));
    }
    return scales;
  }

  /// The value of a parameter in 8 bits; the largest magnitudes of rows are added to the others.
  Value quantized(OpBuilder &b, Location loc, Value value, const Weight &weight,
                  ArrayRef<Value> scales, SmallVectorImpl<Value> &magnitudes) {
    Value rounded = build::cast(b, loc, value, weight.rounded);
    magnitudes.push_back(magnitudesOfRows(b, loc, rounded));
    return QuantizeOp::create(b, loc, AmaxHistory::withoutInfinities(b, loc, rounded),
                              scales[numberOf(weight.rows.front())], TypeAttr::get(weight.format),
                              UnitAttr());
  }

  /// What a rank has of a unit in 8 bits; what it finds is added to the others.
  Value quantizedPiece(OpBuilder &b, Location loc, Value value, Weight &weight,
                       ArrayRef<Value> scales, KeptMagnitudes &findings) {
    const UnitScales layout = weight.layout();
    const SmallVector<int64_t> numbers =
        llvm::map_to_vector(weight.rows, [&](int64_t row) { return numberOf(row); });
    const SmallVector<Value> own =
        llvm::map_to_vector(numbers, [&](int64_t number) { return scales[number]; });
    Value rounded = build::cast(b, loc, value, weight.rounded);
    Value blocks =
        UnitScales::inBlocks(b, loc, rounded, layout.block(build::shapeOf(rounded).back()));
    findings.addPieces(layout, numbers, layout.largestOfEach(b, loc, blocks));
    Value scale = layout.ofElements(b, loc, own, build::shapeOf(blocks));
    return QuantizeOp::create(b, loc, AmaxHistory::withoutInfinities(b, loc, blocks), scale,
                              TypeAttr::get(weight.format), UnitAttr());
  }

  /// Beside the new values of parameters those in 8 bits, by the scales of the next step. They are
  /// known early: they remember the values that are replaced, and of these the magnitudes are
  /// state. If the update is refused, scales and values are the old ones.
  void writeCopies(EntryOp entry) {
    const Value ok = guardOf(updateOf(entry, history.getSymNameAttr())).getOk();
    OpBuilder b(entry.getReturn());
    b.setInsertionPointAfterValue(ok);
    Location loc = madeBy(kPass, history.getLoc());
    Value old = rowsOf(b, loc, read(b, loc, history));
    Value moved = AmaxHistory::shifted(b, loc, old, read(b, loc, present));
    SmallVector<Value> scales = scalesOf(b, loc, GuardOp::create(b, loc, ok, moved, old));
    SmallVector<std::pair<StateOp, Value>> updates;
    KeptMagnitudes findings;
    for (auto &[first, weight] : weights) {
      SmallVector<Value> ofParameters;
      for (auto [param, copy] : llvm::zip_equal(weight.parameters, weight.copies)) {
        // In the shape in which it is made, so that it is rounded there.
        const int64_t block = weight.isUnit() ? weight.layout().block(kBlock) : kBlock;
        Value made =
            alongBlocks(build::behindReshapes(updateOf(entry, param.getSymNameAttr())), block);
        if (build::typeOf(made).getRank() < 2)
          made = updateOf(entry, param.getSymNameAttr());
        b.setInsertionPointAfterValue(made);
        const Location at = madeBy(kPass, made.getLoc());
        Value q = weight.isUnit() ? quantizedPiece(b, at, made, weight, scales, findings)
                                  : quantized(b, at, made, weight, scales, ofParameters);
        updates.emplace_back(copy, build::reshape(b, at, q, param.getBoundType().getShape()));
      }
      b.setInsertionPoint(entry.getReturn());
      if (!weight.isUnit())
        findings.addWhole(numberOf(first), build::concat(b, loc, ofParameters, 0));
    }
    updates.emplace_back(present, findings.ofAll(b, loc));
    addUpdates(entry, updates);
  }

  //===-- Beginning -------------------------------------------------------------------------===//

  /// The program that makes the states of parameters and history, as the update before has.
  void addDerivation(ModelOp model) {
    std::string name = "derive";
    for (unsigned i = 1; model.lookupSymbol(name); ++i)
      name = "derive." + std::to_string(i);
    auto b = OpBuilder::atBlockEnd(&model.getBody().front());
    auto none = b.getArrayAttr({});
    const Location loc = madeBy(kPass, history.getLoc());
    auto entry =
        EntryOp::create(b, loc, b.getStringAttr(name), none, none, none, none, none,
                        ProgramStageAttr::get(b.getContext(), ProgramStage::derive),
                        ProgramRoleAttr(), b.getDenseI64ArrayAttr({}), ScanAttr(), RowsAttr());
    b.setInsertionPointToEnd(&entry.getBody().emplaceBlock());
    auto end = ReturnOp::create(b, loc, ValueRange(), none, none, ArrayAttr(), ArrayAttr());
    b.setInsertionPoint(end);
    SmallVector<Value> scales = scalesOf(b, loc, rowsOf(b, loc, read(b, loc, history)));
    SmallVector<std::pair<StateOp, Value>> updates;
    KeptMagnitudes findings;
    for (auto &[first, weight] : weights) {
      SmallVector<Value> ofParameters;
      for (auto [param, copy] : llvm::zip_equal(weight.parameters, weight.copies)) {
        Value value = UseOp::create(b, loc, param.getBoundType(), param.getSymName());
        Value q = weight.isUnit() ? quantizedPiece(b, loc, value, weight, scales, findings)
                                  : quantized(b, loc, value, weight, scales, ofParameters);
        updates.emplace_back(copy, build::reshape(b, loc, q, param.getBoundType().getShape()));
      }
      if (!weight.isUnit())
        findings.addWhole(numberOf(first), build::concat(b, loc, ofParameters, 0));
    }
    updates.emplace_back(present, findings.ofAll(b, loc));
    addUpdates(entry, updates);
  }

  StateOp history, present;
  Weights weights;
  std::map<int64_t, Type> formats; ///< of kept weights, by row
};

} // namespace
} // namespace hydra
