// Units whose weights have a scale for each row, column or block: part of hydra-gather-quantized.
#include "passes/partition/ScaleGroups.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Parameters.h"
#include "passes/partition/GatherReaders.h"
#include "passes/precision/KeptMagnitudes.h"

#include <numeric>

using namespace mlir;

namespace hydra {

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-gather-quantized";
constexpr int64_t kBlock = support::kScaleBlock;

bool isZeros(Value value) { return build::constantValue(value) == 0.0; }

bool reduces(ReduceMaxOp reduce, ArrayRef<int64_t> axes) {
  return reduce && ArrayRef<int64_t>(reduce.getAxes()) == axes;
}

Value behindCast(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  return cast ? cast.getX() : value;
}

/// Finds what reads a gathered unit: the patterns of hydra-quantize-matmuls.
class GroupReaders {
public:
  explicit GroupReaders(GroupedUnit &unit) : unit(unit) {}

  bool areAllGrouped() {
    if (!follow(unit.gather.getY(), 0, /*isPadded=*/false) || unit.weights.empty() ||
        !llvm::all_of(others, [&](Operation *other) { return leadsToScales(other); }))
      return false;
    llvm::sort(unit.weights,
               [](const GroupedWeight &a, const GroupedWeight &b) { return a.start < b.start; });
    return areApart() && areAllMembers();
  }

private:
  /// Everything behind a view that begins at an element; `isPadded`: with zeros behind some rows or
  /// columns.
  bool follow(Value view, int64_t start, bool isPadded) {
    return llvm::all_of(view.getUsers(), [&](Operation *user) {
      if (auto reshape = dyn_cast<ReshapeOp>(user))
        return follow(reshape.getResult(), start, isPadded);
      if (auto concat = dyn_cast<ConcatOp>(user))
        return concat.getParts().front() == view &&
               llvm::all_of(concat.getParts().drop_front(), isZeros) &&
               follow(concat.getY(), start, /*isPadded=*/true);
      if (auto quantize = dyn_cast<QuantizeOp>(user))
        return quantize.getX() == view && addQuantized(quantize, start);
      if (auto transpose = dyn_cast<TransposeOp>(user))
        return !isPadded && followTransposed(transpose, start);
      auto slice = dyn_cast<SliceOp>(user);
      if (!slice) {
        others.push_back(user);
        return true;
      }
      const ArrayRef<int64_t> shape = build::shapeOf(view);
      const auto axis = static_cast<int64_t>(slice.getAxis());
      const int64_t row = productOf(shape.drop_front(axis + 1));
      return !isPadded && productOf(shape.take_front(axis)) == 1 &&
             follow(slice.getResult(), start + static_cast<int64_t>(slice.getStart()) * row,
                    isPadded);
    });
  }

  /// A matrix that is transposed before it is rounded.
  bool followTransposed(TransposeOp transpose, int64_t start) {
    if (ArrayRef<int64_t>(transpose.getOrder()) != ArrayRef<int64_t>{1, 0})
      return false;
    return llvm::all_of(transpose->getUsers(), [&](Operation *copy) {
      return isa<CopyOp>(copy) && llvm::all_of(copy->getUsers(), [&](Operation *user) {
               auto quantize = dyn_cast<QuantizeOp>(user);
               if (!quantize) {
                 others.push_back(user);
                 return true;
               }
               std::optional<GroupedWeight> found = ofRows(quantize);
               if (!found || quantize.getX() != copy->getResult(0))
                 return false;
               std::swap(found->rows, found->columns);
               found->groups = ScaleGroups::Columns;
               return add(std::move(*found), start);
             });
    });
  }

  bool addQuantized(QuantizeOp quantize, int64_t start) {
    std::optional<GroupedWeight> found = ofRows(quantize);
    if (!found)
      found = ofBlocks(quantize);
    return found && add(std::move(*found), start);
  }

  bool add(GroupedWeight weight, int64_t start) {
    weight.start = start;
    auto *same = llvm::find_if(unit.weights, [&](const GroupedWeight &other) {
      return other.start == start && other.scale == weight.scale && other.rows == weight.rows &&
             other.columns == weight.columns && other.groups == weight.groups;
    });
    if (same == unit.weights.end())
      unit.weights.push_back(std::move(weight));
    else
      llvm::append_range(same->bits, weight.bits);
    return true;
  }

  static GroupedWeight weightOf(QuantizeOp quantize, QuantizationScaleOp scale, int64_t rows,
                                int64_t columns, ScaleGroups groups) {
    return {.start = 0,
            .rows = rows,
            .columns = columns,
            .groups = groups,
            .format = build::typeOf(quantize.getResult()).getElementType(),
            .scale = scale.getScale()};
  }

  /// The last axes of what is rounded are a row.
  static std::optional<GroupedWeight> ofRows(QuantizeOp quantize) {
    auto spread = quantize.getScale().getDefiningOp<BroadcastOp>();
    auto scale = spread ? build::behindReshapes(spread.getX()).getDefiningOp<QuantizationScaleOp>()
                        : QuantizationScaleOp();
    if (!scale)
      return std::nullopt;
    const ArrayRef<int64_t> shape = build::shapeOf(quantize.getX()),
                            kept = build::shapeOf(spread.getX());
    const int64_t rows = productOf(kept), columns = productOf(shape) / rows;
    auto inner = static_cast<int64_t>(shape.size());
    for (int64_t row = 1; row < columns && inner > 0;)
      row *= shape[--inner];
    const SmallVector<int64_t> axes =
        llvm::to_vector(llvm::seq(inner, static_cast<int64_t>(shape.size())));
    auto reduce = behindCast(scale.getAmax()).getDefiningOp<ReduceMaxOp>();
    if (kept.size() != shape.size() || kept.take_front(inner) != shape.take_front(inner) ||
        productOf(kept.drop_front(inner)) != 1 || !reduces(reduce, axes))
      return std::nullopt;
    auto max = reduce.getX().getDefiningOp<MaxOp>();
    if (!max || !isMagnitudeOf(max, quantize.getX()))
      return std::nullopt;
    GroupedWeight weight = weightOf(quantize, scale, rows, columns, ScaleGroups::Rows);
    weight.bits.push_back(quantize.getResult());
    return weight;
  }

  /// What is rounded are blocks, [down, 128, across, 128].
  static std::optional<GroupedWeight> ofBlocks(QuantizeOp quantize) {
    Value tiles = quantize.getX();
    const ArrayRef<int64_t> shape = build::shapeOf(tiles);
    QuantizationScaleOp scale = scaleOfBlocks(quantize);
    if (!scale)
      return std::nullopt;
    const int64_t down = shape[0], across = shape[2];
    int64_t rows = down * kBlock, columns = across * kBlock;
    auto made = tiles.getDefiningOp<ReshapeOp>();
    Value padded = made ? made.getX() : Value();
    for (const int64_t axis : {1, 0})
      if (auto concat = padded ? padded.getDefiningOp<ConcatOp>() : ConcatOp();
          concat && static_cast<int64_t>(concat.getAxis()) == axis &&
          build::typeOf(concat.getParts().front()).getRank() == 2) {
        padded = concat.getParts().front();
        (axis == 1 ? columns : rows) = build::shapeOf(padded)[axis];
      }
    GroupedWeight weight = weightOf(quantize, scale, rows, columns, ScaleGroups::Blocks);
    if (down * kBlock == rows && across * kBlock == columns) {
      weight.bits.push_back(quantize.getResult());
      return weight;
    }
    if (!findParts(quantize.getResult(), weight))
      return std::nullopt;
    return weight;
  }

  static QuantizationScaleOp scaleOfBlocks(QuantizeOp quantize) {
    Value tiles = quantize.getX();
    const ArrayRef<int64_t> shape = build::shapeOf(tiles);
    if (shape.size() != 4 || shape[1] != kBlock || shape[3] != kBlock)
      return {};
    const SmallVector<int64_t> ofRows{shape[0], kBlock, shape[2], 1},
        ofBlocks{shape[0], 1, shape[2]};
    auto spread = quantize.getScale().getDefiningOp<BroadcastOp>();
    if (!spread || build::shapeOf(spread.getX()) != ArrayRef(ofRows))
      return {};
    auto overRows = build::behindReshapes(spread.getX()).getDefiningOp<BroadcastOp>();
    if (!overRows || build::shapeOf(overRows.getX()) != ArrayRef(ofBlocks))
      return {};
    auto scale = build::behindReshapes(overRows.getX()).getDefiningOp<QuantizationScaleOp>();
    auto ofBlock = scale ? behindCast(scale.getAmax()).getDefiningOp<ReduceMaxOp>() : ReduceMaxOp();
    if (!reduces(ofBlock, {2}))
      return {};
    auto inOrder = ofBlock.getX().getDefiningOp<TransposeOp>();
    auto max = inOrder ? inOrder.getX().getDefiningOp<MaxOp>() : MaxOp();
    if (!max)
      return {};
    auto above = max.getA().getDefiningOp<ReduceMaxOp>();
    auto below = max.getB().getDefiningOp<ReduceMaxOp>();
    if (!reduces(above, {3}) || !reduces(below, {3}) || above.getX() != tiles)
      return {};
    auto negative = below.getX().getDefiningOp<NegOp>();
    return negative && negative.getX() == tiles ? scale : QuantizationScaleOp();
  }

  /// What is left of blocks without the zeros that were added: a slice of rows and one of columns.
  static bool findParts(Value view, GroupedWeight &weight) {
    return llvm::all_of(view.getUsers(), [&](Operation *user) {
      if (!isa<ReshapeOp, SliceOp>(user) || build::typeOf(user->getResult(0)).getRank() != 2)
        return false;
      if (auto slice = dyn_cast<SliceOp>(user); slice && slice.getStart() != 0)
        return false;
      Value part = user->getResult(0);
      if (build::shapeOf(part) != ArrayRef<int64_t>{weight.rows, weight.columns})
        return findParts(part, weight);
      weight.bits.push_back(part);
      return true;
    });
  }

  /// Whether all that becomes of a view is scales that are known.
  bool leadsToScales(Operation *op) const {
    if (auto scale = dyn_cast<QuantizationScaleOp>(op))
      return llvm::any_of(unit.weights, [&](const GroupedWeight &weight) {
        return weight.scale == scale.getScale();
      });
    return isa<NegOp, MaxOp, ReduceMaxOp, TransposeOp, CastOp>(op) &&
           llvm::all_of(op->getUsers(), [&](Operation *user) { return leadsToScales(user); });
  }

  bool areApart() const {
    const ArrayRef<GroupedWeight> weights = unit.weights;
    return llvm::all_of(weights,
                        [&](const GroupedWeight &weight) {
                          return weight.format == weights.front().format &&
                                 (weight.groups == ScaleGroups::Columns) == unit.isOfColumns();
                        }) &&
           llvm::all_of(llvm::zip(weights, weights.drop_front()), [](const auto &pair) {
             return std::get<0>(pair).end() <= std::get<1>(pair).start;
           });
  }

  /// Then nothing but zeros is in no weight.
  bool areAllMembers() const {
    return llvm::all_of(unit.unit.getMembers(), [&](MemberAttr member) {
      return llvm::any_of(unit.weights, [&](const GroupedWeight &weight) {
        return weight.start <= member.getOffset() &&
               member.getOffset() + member.elements() <= weight.end();
      });
    });
  }

  GroupedUnit &unit;
  SmallVector<Operation *> others; ///< that read a view, and neither move nor round it
};

/// Lets a program gather units in 8 bits.
class GroupWriter {
public:
  explicit GroupWriter(EntryOp entry)
      : block(entry.getBody().front()), b(OpBuilder::atBlockBegin(&block)) {}

  void run(MutableArrayRef<GroupedUnit> units) {
    SmallVector<size_t> numbers; // of the pieces that each gathers
    for (GroupedUnit &each : units) {
      const auto *same = llvm::find_if(all, [&](Pieces &other) { return other.isOf(each); });
      numbers.push_back(same - all.begin());
      if (same == all.end())
        addPieces(each);
    }
    exchange();
    for (Pieces &own : all)
      round(own);
    for (auto [each, number] : llvm::zip_equal(units, numbers))
      gather(each, all[number]);
    eraseDead(block);
  }

private:
  /// What a rank has of a unit, for all gathers that weights are read alike of.
  struct Pieces {
    GroupedUnit unit;
    ParamOp param;
    Location loc;
    Value elements; ///< in segments, [segments, segment]; of columns [elements]
    /// What a rank has found of segments or columns, one behind the other; then what all have.
    Value largest;
    SmallVector<Value> scales{}; ///< of each weight, in the shape of its own
    Value piece{};               ///< in 8 bits

    int64_t segment() const { return build::shapeOf(elements)[1]; }
    bool isOf(GroupedUnit &other) {
      return castParameterOf(other.gather.getX()) == param &&
             other.pieceType() == unit.pieceType() &&
             llvm::equal(unit.weights, other.weights, [](const auto &a, const auto &b) {
               return a.start == b.start && a.rows == b.rows && a.columns == b.columns &&
                      a.groups == b.groups && a.format == b.format;
             });
    }
  };

  void addPieces(GroupedUnit &each) {
    Value piece = each.gather.getX();
    UnitScales::moveHere(b, piece.getDefiningOp());
    const Location loc = madeBy(kPass, each.gather.getLoc());
    Value elements, largest;
    if (each.isOfColumns()) {
      elements = build::reshape(b, loc, piece, {build::typeOf(piece).getNumElements()});
      largest = each.columns().largest(b, loc, elements);
    } else {
      elements = UnitScales::inBlocks(b, loc, piece, each.segment());
      largest = magnitudesOfRows(b, loc, elements);
    }
    all.push_back({each, castParameterOf(piece), loc, elements, largest});
  }

  /// What ranks have found, one exchange for all units of an axis and a format.
  void exchange() {
    llvm::MapVector<std::tuple<StringAttr, int64_t, Type>, SmallVector<Pieces *>> alike;
    for (Pieces &own : all)
      alike[{own.unit.unit.getOver(), own.unit.unit.getPieces(),
             build::typeOf(own.largest).getElementType()}]
          .push_back(&own);
    for (auto &[key, pieces] : alike) {
      const auto [over, ranks, element] = key;
      const Location loc = pieces.front()->loc;
      Value together = build::concat(
          b, loc, llvm::map_to_vector(pieces, [](Pieces *own) { return own->largest; }), 0);
      const int64_t size = build::shapeOf(together)[0];
      together = build::reshape(b, loc, together, {1, size});
      if (ranks > 1)
        together = AllGatherOp::create(b, loc, together, b.getI64IntegerAttr(0), over,
                                       b.getI64IntegerAttr(ranks), b.getI64IntegerAttr(0));
      int64_t first = 0;
      for (Pieces *own : pieces) {
        const int64_t count = build::shapeOf(own->largest)[0];
        Value found = build::partOf(b, own->loc, together, 1, first, count);
        own->largest = build::reshape(b, own->loc, found, {ranks * count});
        first += count;
      }
    }
  }

  /// All scales of a unit, and by them what this rank has.
  void round(Pieces &own) {
    Value piece = own.unit.isOfColumns() ? roundColumns(own) : roundSegments(own);
    own.piece = build::reshape(b, own.loc, piece, own.unit.pieceType().getShape());
  }

  /// This rank's row of what is of all, [ranks, size], as [size].
  Value ownOf(const Pieces &own, Value ofRanks) {
    const Location loc = own.loc;
    const FlatUnitAttr unit = own.unit.unit;
    const int64_t size = build::shapeOf(ofRanks)[1];
    if (unit.getPieces() > 1) {
      Value rank = RankOp::create(b, loc, RankedTensorType::get({}, b.getI32Type()), unit.getOver(),
                                  b.getI64IntegerAttr(unit.getPieces()));
      ofRanks = EmbeddingOp::create(b, loc, build::reshape(b, loc, rank, {1}), ofRanks);
    }
    return build::reshape(b, loc, ofRanks, {size});
  }

  Value roundColumns(Pieces &own) {
    const Location loc = own.loc;
    const ColumnScales columns = own.unit.columns();
    for (auto [i, weight] : llvm::enumerate(own.unit.weights))
      own.scales.push_back(scaleOf(own, weight, columns.ofColumns(b, loc, own.largest, i)));
    Value scale = ownOf(own, columns.ofRanks(b, loc, own.scales));
    for (auto [scale, weight] : llvm::zip_equal(own.scales, own.unit.weights))
      scale = build::reshape(b, loc, scale, build::shapeOf(weight.scale));
    return columns.quantize(b, loc, own.elements, scale, own.unit.weights.front().format);
  }

  Value roundSegments(Pieces &own) {
    const Location loc = own.loc;
    SmallVector<Value> parts; // what each segment of all ranks is divided by
    int64_t end = 0;
    const auto between = [&](int64_t next) { // of no weight
      if (next > end)
        parts.push_back(build::constant(
            b, loc, RankedTensorType::get({(next - end) / own.segment()}, b.getF32Type()), 1.0));
    };
    for (GroupedWeight &weight : own.unit.weights) {
      between(weight.start);
      Value largest = build::slice(b, loc, own.largest, 0, weight.start / own.segment(),
                                   weight.size() / own.segment());
      const auto [scale, ofSegments] = weight.groups == ScaleGroups::Rows
                                           ? scalesOfRows(own, weight, largest)
                                           : scalesOfBlocks(own, weight, largest);
      own.scales.push_back(scale);
      parts.push_back(ofSegments);
      end = weight.end();
    }
    between(build::shapeOf(own.largest)[0] * own.segment());
    Value scale = build::concat(b, loc, parts, 0);
    const ArrayRef<int64_t> shape = build::shapeOf(own.elements);
    scale = ownOf(own, build::reshape(b, loc, scale, {own.unit.unit.getPieces(), shape[0]}));
    scale = build::broadcast(b, loc, build::reshape(b, loc, scale, {shape[0], 1}), shape);
    return QuantizeOp::create(b, loc, own.elements, scale,
                              TypeAttr::get(own.unit.weights.front().format), UnitAttr());
  }

  /// Those that matmuls read, in their shape, and that of each segment.
  using Scales = std::pair<Value, Value>;

  Scales scalesOfRows(const Pieces &own, const GroupedWeight &weight, Value largest) {
    const Location loc = own.loc;
    const SmallVector<int64_t> segments{weight.rows, weight.columns / own.segment()};
    Value amax = build::reshape(b, loc, largest, segments);
    amax = segments[1] > 1 ? build::largest(b, loc, amax, {1}) : largest;
    Value scale = scaleOf(own, weight, amax);
    Value ofEach =
        build::broadcast(b, loc, build::reshape(b, loc, scale, {weight.rows, 1}), segments);
    return {build::reshape(b, loc, scale, build::shapeOf(weight.scale)),
            build::reshape(b, loc, ofEach, {productOf(segments)})};
  }

  /// Rows and columns without elements have segments of zeros.
  Scales scalesOfBlocks(const Pieces &own, const GroupedWeight &weight, Value largest) {
    const Location loc = own.loc;
    const int64_t down = support::scaleBlocks(weight.rows),
                  across = support::scaleBlocks(weight.columns), inside = kBlock / own.segment(),
                  columns = weight.columns / own.segment();
    Value amax = build::reshape(b, loc, largest, {weight.rows, columns});
    amax = padded(loc, amax, 1, across * inside);
    amax = padded(loc, amax, 0, down * kBlock);
    if (inside > 1)
      amax =
          build::largest(b, loc, build::reshape(b, loc, amax, {down, kBlock, across, inside}), {3});
    amax = build::reshape(b, loc, amax, {down, kBlock, across});
    amax = TransposeOp::create(b, loc, amax, b.getI64ArrayAttr({0, 2, 1}));
    Value scale = scaleOf(own, weight, build::largest(b, loc, amax, {2}));
    Value ofEach = build::broadcast(b, loc, build::reshape(b, loc, scale, {down, 1, across}),
                                    {down, kBlock, across});
    ofEach = build::broadcast(b, loc, build::reshape(b, loc, ofEach, {down * kBlock, across, 1}),
                              {down * kBlock, across, inside});
    ofEach = build::reshape(b, loc, ofEach, {down * kBlock, across * inside});
    ofEach = build::partOf(b, loc, ofEach, 0, 0, weight.rows);
    ofEach = build::partOf(b, loc, ofEach, 1, 0, columns);
    return {build::reshape(b, loc, scale, build::shapeOf(weight.scale)),
            build::reshape(b, loc, ofEach, {weight.rows * columns})};
  }

  Value scaleOf(const Pieces &own, const GroupedWeight &weight, Value amax) {
    return QuantizationScaleOp::create(b, own.loc, build::cast(b, own.loc, amax, b.getF32Type()),
                                       TypeAttr::get(weight.format));
  }

  Value padded(Location loc, Value matrix, int64_t axis, int64_t size) {
    SmallVector<int64_t> missing(build::shapeOf(matrix));
    missing[axis] = size - missing[axis];
    if (missing[axis] == 0)
      return matrix;
    Value zeros = build::constant(b, loc, build::typeOf(matrix).clone(missing), 0.0);
    return build::concat(b, loc, {matrix, zeros}, axis);
  }

  Value transposed(Location loc, Value part, const GroupedWeight &weight) {
    Value matrix = build::reshape(b, loc, part, {weight.rows, weight.columns});
    return CopyOp::create(b, loc, TransposeOp::create(b, loc, matrix, b.getI64ArrayAttr({1, 0})));
  }

  /// Lets what read weights read their 8 bits and scales.
  void gather(GroupedUnit &each, const Pieces &own) {
    const OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(each.gather);
    const Location loc = madeBy(kPass, each.gather.getLoc());
    Value bits =
        AllGatherOp::create(b, loc, own.piece, each.gather.getAxisAttr(), each.gather.getOverAttr(),
                            each.gather.getRanksAttr(), each.gather.getNumberAttr());
    bits = build::reshape(b, loc, bits, {build::typeOf(bits).getNumElements()});
    for (auto [weight, scale] : llvm::zip_equal(each.weights, own.scales)) {
      Value part = build::slice(b, loc, bits, 0, weight.start, weight.size());
      for (Value old : weight.bits)
        old.replaceAllUsesWith(weight.groups == ScaleGroups::Columns
                                   ? transposed(loc, part, weight)
                                   : build::reshape(b, loc, part, build::shapeOf(old)));
      weight.scale.replaceAllUsesWith(scale);
    }
  }

  Block &block;
  OpBuilder b;
  SmallVector<Pieces> all;
};

} // namespace

RankedTensorType GroupedUnit::pieceType() { return build::typeOf(gather.getX()); }

int64_t GroupedUnit::segment() {
  int64_t segment = pieceType().getDimSize(1);
  for (const GroupedWeight &weight : weights) {
    segment = std::gcd(segment, std::gcd(weight.start, weight.columns));
    if (weight.groups == ScaleGroups::Blocks)
      segment = std::gcd(segment, kBlock);
  }
  return segment;
}

ColumnScales GroupedUnit::columns() {
  SmallVector<ColumnScales::Weight> all;
  for (const GroupedWeight &weight : weights)
    all.push_back({weight.start, weight.end(), weight.columns});
  return ColumnScales(pieceType().getNumElements(), unit.getPieces(), all);
}

std::optional<GroupedUnit> findGroupedUnit(AllGatherOp gather, FlatUnitAttr unit) {
  GroupedUnit found{.gather = gather, .unit = unit};
  if (!GroupReaders(found).areAllGrouped())
    return std::nullopt;
  const RankedTensorType piece = found.pieceType();
  const int64_t bits = piece.getElementTypeBitWidth(), elements = piece.getNumElements();
  const int64_t told = found.isOfColumns() ? found.columns().found() : elements / found.segment();
  if (8 * elements + bits * told >= bits * elements)
    return std::nullopt;
  return found;
}

bool gatherRowsApart(AllGatherOp gather, ArrayRef<AllGatherOp> others, int64_t between,
                     int64_t number) {
  const SmallVector<GatherReader> readers = readersOf(gather);
  const auto isTransposed = [](const GatherReader &reader) {
    return llvm::any_of(reader.views, llvm::IsaPred<TransposeOp>) &&
           isa<CopyOp>(reader.operand->getOwner());
  };
  const auto *first = llvm::find_if(readers, isTransposed);
  const bool isInTwo = first != readers.begin() && first != readers.end() &&
                       std::all_of(first, readers.end(), isTransposed) &&
                       std::all_of(readers.begin(), first, [](const GatherReader &reader) {
                         return isa<NegOp, MaxOp, QuantizeOp>(reader.operand->getOwner());
                       });
  if (!isInTwo)
    return false;
  const auto apart = llvm::count_if(others, [&](AllGatherOp other) {
    return other != gather && std::prev(first)->operand->getOwner()->isBeforeInBlock(other) &&
           other->isBeforeInBlock(first->operand->getOwner());
  });
  if (apart < between)
    return false;
  GatherAgain again(gather, first->operand->getOwner(), number);
  for (const GatherReader &reader : llvm::make_range(first, readers.end()))
    again.readBy(reader);
  return true;
}

void gatherGroupedUnits(EntryOp entry, MutableArrayRef<GroupedUnit> units) {
  GroupWriter(entry).run(units);
}

} // namespace hydra
