// hydra-gather-quantized: weights that are multiplied in 8 bits are gathered in 8 bits.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"
#include "passes/partition/GatherReaders.h"
#include "passes/partition/ScaleGroups.h"
#include "passes/precision/AmaxHistory.h"
#include "passes/precision/KeptMagnitudes.h"
#include "passes/precision/UnitScales.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_GATHERQUANTIZED
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-gather-quantized";

/// Elements of a unit, counted over all ranks, that a program reads as one operand in 8 bits.
struct Weight {
  int64_t start, size;
  Value scale = {}; ///< [] f32
  Type format = {};
  SmallVector<QuantizeOp, 2> quantized = {};
  SmallVector<ReduceMaxOp, 1> magnitudes = {}; ///< of all of it, or of its rows

  int64_t end() const { return start + size; }
};

/// What is gathered of a unit, and all that reads it.
struct Gathered {
  AllGatherOp gather;
  FlatUnitAttr unit;
  SmallVector<Weight> weights = {}; ///< one behind the other
  bool finite = false;              ///< infinities become NaN before they are quantized
  bool present = false;             ///< scales are of the step's own magnitudes

  RankedTensorType pieceType() { return build::typeOf(gather.getX()); }
};

/// Finds what reads a gathered unit.
class Readers {
public:
  /// `first`: of all gathers of units that the program has.
  Readers(Gathered &gathered, AllGatherOp first) : gathered(gathered), first(first) {}

  /// Whether that is nothing but its weights in 8 bits, each by a scale of its own that does not
  /// wait for what is gathered.
  bool areQuantized() {
    if (!follow(gathered.gather.getY(), 0) || gathered.weights.empty())
      return false;
    llvm::sort(gathered.weights,
               [](const Weight &a, const Weight &b) { return a.start < b.start; });
    return areApart() && areAllMembers() && haveScalesBefore();
  }

private:
  /// Everything behind a view that begins at an element.
  bool follow(Value view, int64_t start) {
    return llvm::all_of(view.getUsers(), [&](Operation *user) {
      if (auto reshape = dyn_cast<ReshapeOp>(user))
        return follow(reshape.getResult(), start);
      auto slice = dyn_cast<SliceOp>(user);
      if (!slice)
        return add(user, view, start);
      const ArrayRef<int64_t> shape = build::shapeOf(view);
      const auto axis = static_cast<int64_t>(slice.getAxis());
      const int64_t row = productOf(shape.drop_front(axis + 1));
      return productOf(shape.take_front(axis)) == 1 &&
             follow(slice.getResult(), start + static_cast<int64_t>(slice.getStart()) * row);
    });
  }

  /// A reader of a weight: what makes its 8 bits, or finds its largest magnitude.
  bool add(Operation *reader, Value view, int64_t start) {
    Weight &weight = weightAt(start, build::typeOf(view).getNumElements());
    if (auto quantize = dyn_cast<QuantizeOp>(reader))
      return addQuantized(weight, quantize);
    if (auto max = dyn_cast<MaxOp>(reader))
      return isMagnitudeOf(max, view) && addMagnitudes(weight, max);
    if (auto add = dyn_cast<AddOp>(reader))
      return isFiniteOf(add, view) && addFinite(weight, add);
    auto isPartOf = [&](Operation *user) {
      auto max = dyn_cast<MaxOp>(user);
      auto add = dyn_cast<AddOp>(user);
      return (max && isMagnitudeOf(max, view)) || (add && isFiniteOf(add, view));
    };
    return isa<NegOp, MulOp>(reader) && llvm::all_of(reader->getUsers(), isPartOf);
  }

  Weight &weightAt(int64_t start, int64_t size) {
    auto *found = llvm::find_if(gathered.weights, [&](const Weight &weight) {
      return weight.start == start && weight.size == size;
    });
    if (found != gathered.weights.end())
      return *found;
    return gathered.weights.emplace_back(Weight{.start = start, .size = size});
  }

  /// See AmaxHistory::withoutInfinities.
  static bool isFiniteOf(AddOp add, Value view) {
    auto mul = add.getB().getDefiningOp<MulOp>();
    return add.getA() == view && mul && mul.getA() == view &&
           build::constantValue(mul.getB()) == 0.0;
  }

  static bool addMagnitudes(Weight &weight, MaxOp max) {
    for (Operation *user : max->getUsers()) {
      auto reduce = dyn_cast<ReduceMaxOp>(user);
      if (!reduce)
        return false;
      weight.magnitudes.push_back(reduce);
    }
    return true;
  }

  bool addFinite(Weight &weight, AddOp finite) {
    gathered.finite = true;
    return llvm::all_of(finite->getUsers(), [&](Operation *user) {
      auto quantize = dyn_cast<QuantizeOp>(user);
      return quantize && addQuantized(weight, quantize);
    });
  }

  static bool addQuantized(Weight &weight, QuantizeOp quantize) {
    const Type format = build::typeOf(quantize.getResult()).getElementType();
    if (!build::shapeOf(quantize.getScale()).empty() ||
        (weight.scale && (weight.scale != quantize.getScale() || weight.format != format)))
      return false;
    weight.scale = quantize.getScale();
    weight.format = format;
    weight.quantized.push_back(quantize);
    return true;
  }

  bool areApart() const {
    const ArrayRef<Weight> weights = gathered.weights;
    return llvm::all_of(weights,
                        [&](const Weight &weight) {
                          return weight.scale && weight.format == weights.front().format;
                        }) &&
           llvm::all_of(llvm::zip(weights, weights.drop_front()), [](const auto &pair) {
             return std::get<0>(pair).end() <= std::get<1>(pair).start;
           });
  }

  /// Then nothing but zeros is in no weight.
  bool areAllMembers() const {
    return llvm::all_of(gathered.unit.getMembers(), [&](MemberAttr member) {
      return llvm::any_of(gathered.weights, [&](const Weight &weight) {
        return weight.start <= member.getOffset() &&
               member.getOffset() + member.elements() <= weight.end();
      });
    });
  }

  /// Scales are all known before anything is gathered, or all made of the magnitudes of their
  /// weights.
  bool haveScalesBefore() {
    gathered.present = isPresent(gathered.weights.front());
    return llvm::all_of(gathered.weights, [&](const Weight &weight) {
      return gathered.present ? isPresent(weight) : isKnownBefore(weight.scale);
    });
  }

  static bool isPresent(const Weight &weight) {
    auto scale = weight.scale.getDefiningOp<QuantizationScaleOp>();
    Value amax = scale ? scale.getAmax() : Value();
    while (amax) {
      auto reduce = amax.getDefiningOp<ReduceMaxOp>();
      if (reduce && llvm::is_contained(weight.magnitudes, reduce))
        return true;
      Operation *op = amax.getDefiningOp();
      amax = isa_and_present<ReduceMaxOp, ReshapeOp, CastOp>(op) ? op->getOperand(0) : Value();
    }
    return false;
  }

  /// Pieces of all units are quantized behind the last of these scales.
  bool isKnownBefore(Value scale) {
    Operation *op = scale.getDefiningOp();
    return !op || op->isBeforeInBlock(first);
  }

  Gathered &gathered;
  AllGatherOp first;
};

/// Lets a program gather units in 8 bits.
class Writer {
public:
  explicit Writer(EntryOp entry)
      : block(entry.getBody().front()), b(OpBuilder::atBlockBegin(&block)) {}

  void run(MutableArrayRef<Gathered> units) {
    setInsertionPoint(units);
    for (Gathered &each : units)
      UnitScales::moveHere(b, each.gather.getX().getDefiningOp());
    // Before any piece is quantized, so that ranks compare the magnitudes of all of them at once.
    SmallVector<Pieces> pieces =
        llvm::map_to_vector(units, [&](Gathered &each) { return piecesOf(each); });
    makePresentScales(units, pieces);
    for (auto [each, own] : llvm::zip_equal(units, pieces))
      gather(each, own);
    eraseDead(block);
  }

private:
  /// What a rank has of a unit.
  struct Pieces {
    UnitScales layout;
    Location loc;
    Value blocks;              ///< [blocks, block]
    Value largest;             ///< [weights], or null where nothing looks for it
    SmallVector<Value> scales; ///< of each weight
  };

  /// Where scales are known that do not depend on weights. What a rank gathers is made there, long
  /// before it is needed, so that the gather can begin as early as it likes.
  void setInsertionPoint(ArrayRef<Gathered> units) {
    Operation *last = nullptr;
    for (const Gathered &each : units)
      for (const Weight &weight : each.weights) {
        Operation *op = each.present ? nullptr : weight.scale.getDefiningOp();
        if (op && (!last || last->isBeforeInBlock(op)))
          last = op;
      }
    if (last)
      b.setInsertionPointAfter(last);
  }

  Pieces piecesOf(Gathered &each) {
    const SmallVector<int64_t> starts =
        llvm::map_to_vector(each.weights, [](const Weight &weight) { return weight.start; });
    UnitScales layout(each.unit, starts);
    const Location loc = madeBy(kPass, each.gather.getLoc());
    const int64_t block = layout.block(each.pieceType().getDimSize(1));
    Pieces pieces{
        layout, loc, UnitScales::inBlocks(b, loc, each.gather.getX(), block), Value(), {}};
    if (llvm::any_of(each.weights, [](const Weight &weight) { return !weight.magnitudes.empty(); }))
      pieces.largest = layout.largestOfEach(b, loc, pieces.blocks);
    if (!each.present)
      for (const Weight &weight : each.weights)
        pieces.scales.push_back(weight.scale);
    return pieces;
  }

  /// One exchange for the weights of all units. Matmuls read scales where they lie (kScaleBytes).
  void makePresentScales(MutableArrayRef<Gathered> units, MutableArrayRef<Pieces> pieces) {
    SmallVector<Value> largest;
    const Pieces *first = nullptr;
    for (auto [each, own] : llvm::zip_equal(units, pieces))
      if (each.present) {
        first = first ? first : &own;
        largest.push_back(build::cast(b, own.loc, own.largest, b.getF32Type()));
      }
    if (!first)
      return;
    const Location loc = first->loc;
    Value amax = largest.size() == 1
                     ? largest.front()
                     : ConcatOp::create(b, loc, largest, b.getI64IntegerAttr(0)).getResult();
    amax = first->layout.overRanks(b, loc, amax);
    constexpr int64_t kCopies = kScaleBytes / sizeof(float);
    const int64_t weights = build::shapeOf(amax)[0];
    amax = build::broadcast(b, loc, build::reshape(b, loc, amax, {weights, 1}), {weights, kCopies});
    llvm::SmallDenseMap<Type, Value> ofFormat;
    int64_t number = 0;
    for (auto [each, own] : llvm::zip_equal(units, pieces)) {
      if (!each.present)
        continue;
      const Type format = each.weights.front().format;
      Value &all = ofFormat[format];
      if (!all)
        all = QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(format));
      for (size_t i = 0; i < each.weights.size(); ++i) {
        Value one =
            build::slice(b, own.loc, build::slice(b, own.loc, all, 0, number++, 1), 1, 0, 1);
        own.scales.push_back(build::reshape(b, own.loc, one, {}));
      }
    }
  }

  void gather(Gathered &each, Pieces &own) {
    const Location loc = own.loc;
    const Type format = each.weights.front().format;
    Value blocks = own.blocks;
    Value scale = own.layout.ofElements(b, loc, own.scales, build::shapeOf(blocks));
    if (each.finite)
      blocks = AmaxHistory::withoutInfinities(b, loc, blocks);
    Value piece =
        QuantizeOp::create(b, loc, blocks, scale, TypeAttr::get(format), /*again=*/UnitAttr());
    piece = build::reshape(b, loc, piece, each.pieceType().getShape());
    const OpBuilder::InsertPoint here = b.saveInsertionPoint();
    b.setInsertionPoint(each.gather);
    Value all =
        AllGatherOp::create(b, loc, piece, each.gather.getAxisAttr(), each.gather.getOverAttr(),
                            each.gather.getRanksAttr(), each.gather.getNumberAttr());
    all = build::reshape(b, loc, all, {build::typeOf(all).getNumElements()});
    for (auto [i, weight] : llvm::enumerate(each.weights))
      replace(loc, weight, all, own, static_cast<int64_t>(i), each.present);
    b.restoreInsertionPoint(here);
  }

  /// Lets what read a weight read its 8 bits, its scale, and what was found of it.
  void replace(Location loc, Weight &weight, Value all, const Pieces &own, int64_t number,
               bool present) {
    Value bits = build::slice(b, loc, all, 0, weight.start, weight.size);
    for (QuantizeOp quantize : weight.quantized)
      quantize.replaceAllUsesWith(
          build::reshape(b, loc, bits, build::shapeOf(quantize.getResult())));
    if (present) {
      weight.scale.replaceAllUsesWith(own.scales[number]);
      return;
    }
    // A history compares what ranks have found, once a step (AmaxHistory).
    for (ReduceMaxOp reduce : weight.magnitudes) {
      Value largest = build::reshape(b, loc, build::slice(b, loc, own.largest, 0, number, 1), {});
      reduce.replaceAllUsesWith(
          build::broadcast(b, loc, largest, build::shapeOf(reduce.getResult())));
    }
  }

  Block &block;
  OpBuilder b;
};

struct GatherQuantized : impl::GatherQuantizedBase<GatherQuantized> {
  using GatherQuantizedBase::GatherQuantizedBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    number = freeGatherNumber(model);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      if (entry.isProgram())
        run(entry);
  }

private:
  void run(EntryOp entry) {
    SmallVector<Gathered> taken;
    SmallVector<GroupedUnit> grouped;
    AllGatherOp first;
    gatherRowsApartIn(entry);
    for (auto gather : entry.getBody().front().getOps<AllGatherOp>()) {
      std::optional<Gathered> unit = unitIn(gather);
      if (!unit)
        continue;
      if (!first)
        first = gather;
      if (Readers(*unit, first).areQuantized())
        taken.push_back(std::move(*unit));
      else if (auto ofGroups = findGroupedUnit(gather, unit->unit))
        grouped.push_back(std::move(*ofGroups));
      else if (readsEightBits(gather.getY()))
        ++left;
    }
    units += taken.size() + grouped.size();
    if (!taken.empty())
      Writer(entry).run(taken);
    if (!grouped.empty())
      gatherGroupedUnits(entry, grouped);
  }

  void gatherRowsApartIn(EntryOp entry) {
    if (between == 0)
      return;
    const SmallVector<AllGatherOp> all = llvm::to_vector(
        llvm::make_filter_range(entry.getBody().front().getOps<AllGatherOp>(),
                                [](AllGatherOp gather) { return unitIn(gather).has_value(); }));
    for (AllGatherOp gather : all)
      if (gatherRowsApart(gather, all, between, number)) {
        ++number;
        ++apart;
      }
  }

  /// A gather of a unit, itself or rounded.
  static std::optional<Gathered> unitIn(AllGatherOp gather) {
    ParamOp param = castParameterOf(gather.getX());
    const FlatUnitAttr unit = param ? param.getUnitAttr() : FlatUnitAttr();
    if (!unit || unit.getOver() != gather.getOverAttr() || gather.getAxis() != 0)
      return std::nullopt;
    return Gathered{.gather = gather, .unit = unit};
  }

  /// Whether any operand in 8 bits is made of a value by views and what is computed of elements.
  static bool readsEightBits(Value value) {
    llvm::SetVector<Value> seen;
    seen.insert(value);
    for (size_t i = 0; i < seen.size(); ++i)
      for (Operation *user : seen[i].getUsers()) {
        if (isa<QuantizeOp>(user))
          return true;
        if (isa<ReshapeOp, SliceOp, TransposeOp, CopyOp, ConcatOp, MulOp, AddOp>(user))
          seen.insert(user->result_begin(), user->result_end());
      }
    return false;
  }

  int64_t number = 0; ///< of the next gather
};

} // namespace
} // namespace hydra
