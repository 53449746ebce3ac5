// hydra-quantize-matmuls: matmuls of linear layers on numbers of 8 bits.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Target.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_QUANTIZEMATMULS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-quantize-matmuls";

/// A tensor as its elements in 8 bits, and what they are multiplied by to get it back.
struct Quantized {
  Value source, elements, scale;
  Value transposed; ///< the elements as a matrix [K, rows], once something reads them so
};

/// Quantizes values of one program.
class Quantizer {
public:
  Quantizer(EntryOp entry, std::optional<MeshAttr> mesh, bool byRows)
      : mesh(mesh), byRows(byRows), b(entry.getContext()) {}

  unsigned tensors = 0;

  /// `a bᵀ` of quantized operands in the place of an operation.
  void replace(QuantizableOpInterface op, const QuantizedProduct &product) {
    auto [a, scaleA] = operand(op, product.a);
    auto [other, scaleB] = operand(op, product.b);
    b.setInsertionPoint(op);
    const Location loc = op.getLoc();
    RankedTensorType type = build::typeOf(op->getResult(0));
    const Type sums = product.bias ? b.getF32Type() : type.getElementType();
    Value c = QuantizedMatmulOp::create(b, loc, a, other, scaleA, scaleB, TypeAttr::get(sums));
    c = build::reshape(b, loc, c, type.getShape());
    if (product.bias) {
      Value bias = build::cast(b, loc, product.bias, sums);
      c = AddOp::create(b, loc, c, build::broadcast(b, loc, bias, type.getShape()));
      c = build::cast(b, loc, c, type.getElementType());
    }
    op->getResult(0).replaceAllUsesWith(c);
    op->erase();
  }

private:
  /// The operand as a matrix [rows, K] in 8 bits, and its scale.
  std::pair<Value, Value> operand(Operation *reader, const QuantizedProduct::Operand &operand) {
    const int64_t columns = build::shapeOf(operand.value).back();
    if (byRows)
      return scaledByRows(reader, operand, columns);
    Quantized &q = quantized(reader, operand.value, columns, operand.format);
    b.setInsertionPoint(reader);
    const Location loc = madeBy(kPass, reader->getLoc());
    const int64_t rows = build::typeOf(operand.value).getNumElements() / columns;
    auto matrix = [&](Value elements) { return build::reshape(b, loc, elements, {rows, columns}); };
    if (!operand.transposed)
      return {matrix(q.elements), q.scale};
    if (!q.transposed) {
      // What ranks have gathered is not kept from the forward pass to the backward pass in 8 bits
      // either.
      Value elements = q.elements;
      if (isGathered(q.source))
        elements = QuantizeOp::create(b, loc, q.source, q.scale, TypeAttr::get(operand.format),
                                      b.getUnitAttr());
      q.transposed = CopyOp::create(
          b, loc, TransposeOp::create(b, loc, matrix(elements), b.getI64ArrayAttr({1, 0})));
    }
    return {q.transposed, q.scale};
  }

  /// The same with a scale for each row: [rows].
  std::pair<Value, Value> scaledByRows(Operation *reader, const QuantizedProduct::Operand &operand,
                                       int64_t columns) {
    Value value = withoutReshapes(operand.value);
    Quantized &q = (operand.transposed ? knownTransposed : known)[{value, operand.format}];
    if (q.elements)
      return {q.elements, q.scale};
    ++tensors;
    const Location loc = setInsertionPoint(reader, value);
    if (operand.transposed) {
      const int64_t rows = build::typeOf(value).getNumElements() / columns;
      Value matrix = build::reshape(b, loc, value, {rows, columns});
      value = CopyOp::create(b, loc,
                             TransposeOp::create(b, loc, matrix, b.getI64ArrayAttr({1, 0})));
      columns = rows;
    }
    const SmallVector<int64_t> shape(build::shapeOf(value));
    const SmallVector<int64_t> inner = innerAxes(shape, columns);
    Value amax = ReduceMaxOp::create(b, loc, magnitudesOf(loc, value), b.getI64ArrayAttr(inner),
                                     UnitAttr());
    amax = build::cast(b, loc, amax, b.getF32Type());
    Value scale = QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(operand.format));
    SmallVector<int64_t> kept(shape);
    for (int64_t axis : inner)
      kept[axis] = 1;
    Value ofEach = build::broadcast(b, loc, build::reshape(b, loc, scale, kept), shape);
    Value elements = QuantizeOp::create(b, loc, value, ofEach, TypeAttr::get(operand.format),
                                        UnitAttr());
    const int64_t rows = build::typeOf(value).getNumElements() / columns;
    q.elements = build::reshape(b, loc, elements, {rows, columns});
    q.scale = build::reshape(b, loc, scale, {rows});
    return {q.elements, q.scale};
  }

  Quantized &quantized(Operation *reader, Value value, int64_t columns, Type format) {
    value = withoutReshapes(value);
    Quantized &q = known[{value, format}];
    if (q.elements)
      return q;
    ++tensors;
    const Location loc = setInsertionPoint(reader, value);
    Value amax = largestMagnitude(loc, value, columns, isMadeOf(value, isArgumentOrRank));
    q.source = value;
    q.scale = QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(format));
    q.elements = QuantizeOp::create(b, loc, value, q.scale, TypeAttr::get(format), UnitAttr());
    return q;
  }

  static Value withoutReshapes(Value value) {
    while (auto reshape = value.getDefiningOp<ReshapeOp>())
      value = reshape.getX();
    return value;
  }

  /// What is made of parameters alone is quantized before its reader; anything else behind what
  /// makes it, whose kernel then finds the largest magnitudes too.
  Location setInsertionPoint(Operation *reader, Value value) {
    const bool varies = isMadeOf(value, isArgumentOrRank);
    if (varies)
      b.setInsertionPointAfterValue(value);
    else
      b.setInsertionPoint(reader);
    return madeBy(kPass, varies ? value.getLoc() : reader->getLoc());
  }

  Value magnitudesOf(Location loc, Value value) {
    return MaxOp::create(b, loc, value, NegOp::create(b, loc, value));
  }

  /// Of all elements on all ranks: [] f32. `columns`: of the matrix that is multiplied, whose rows
  /// come first.
  Value largestMagnitude(Location loc, Value value, int64_t columns, bool varies) {
    Value &amax = magnitudes[value];
    if (amax)
      return amax;
    amax = magnitudesOf(loc, value);
    auto reduce = [&](ArrayRef<int64_t> axes) {
      amax = ReduceMaxOp::create(b, loc, amax, b.getI64ArrayAttr(axes), UnitAttr());
    };
    SmallVector<int64_t> inner = innerAxes(build::shapeOf(value), columns);
    reduce(inner);
    const int64_t rows = build::typeOf(amax).getNumElements();
    amax = build::reshape(b, loc, amax, rows > 1 ? ArrayRef{rows} : ArrayRef<int64_t>());
    if (rows > 1)
      reduce({0});
    amax = build::cast(b, loc, amax, b.getF32Type());
    if (varies && mesh)
      for (auto [axis, size] : llvm::zip(mesh->getAxes(), mesh->getSizes())) {
        if (size == 1)
          continue;
        amax =
            AllGatherOp::create(b, loc, build::reshape(b, loc, amax, {1}), b.getI64IntegerAttr(0),
                                axis, b.getI64IntegerAttr(size), b.getI64IntegerAttr(0));
        reduce({0});
      }
    return amax;
  }

  /// The last axes that have so many elements, or else the last one.
  static SmallVector<int64_t> innerAxes(ArrayRef<int64_t> shape, int64_t columns) {
    const auto rank = static_cast<int64_t>(shape.size());
    SmallVector<int64_t> axes;
    int64_t product = 1;
    while (product < columns && axes.size() < shape.size()) {
      axes.insert(axes.begin(), rank - 1 - static_cast<int64_t>(axes.size()));
      product *= shape[axes.front()];
    }
    return product == columns && !axes.empty() && axes.size() <= kMaxInnerDimensions
               ? axes
               : SmallVector<int64_t>{rank - 1};
  }

  /// Whether something like that is among what a value is made of.
  static bool isMadeOf(Value value, function_ref<bool(Value)> wanted) {
    SmallVector<Value> work{value};
    DenseSet<Value> seen{value};
    while (!work.empty()) {
      Value v = work.pop_back_val();
      if (wanted(v))
        return true;
      if (Operation *op = v.getDefiningOp())
        for (Value operand : op->getOperands())
          if (seen.insert(operand).second)
            work.push_back(operand);
    }
    return false;
  }
  /// What is made of variables alone is the same on all ranks once it is whole.
  static bool isArgumentOrRank(Value v) {
    Operation *op = v.getDefiningOp();
    return !op || (isa<CollectiveOpInterface>(op) && op->getNumOperands() == 0);
  }
  static bool isGathered(Value value) {
    return !isMadeOf(value, isArgumentOrRank) &&
           isMadeOf(value, [](Value v) { return v.getDefiningOp<AllGatherOp>() != nullptr; });
  }

  std::optional<MeshAttr> mesh;
  const bool byRows;
  OpBuilder b;
  DenseMap<std::pair<Value, Type>, Quantized> known;
  DenseMap<std::pair<Value, Type>, Quantized> knownTransposed; ///< if rows have scales
  DenseMap<Value, Value> magnitudes;
};

struct QuantizeMatmuls : impl::QuantizeMatmulsBase<QuantizeMatmuls> {
  using QuantizeMatmulsBase::QuantizeMatmulsBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    if (scaling != "tensor" && scaling != "row") {
      model.emitOpError() << "has no scaling '" << scaling.getValue()
                          << "'; expected tensor or row";
      return signalPassFailure();
    }
    const int64_t multiple = targetOf(model).getQuantizedMultiple();
    bool any = false;
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (!entry.isProgram())
        continue;
      Quantizer quantizer(entry, model.getMesh(), scaling == "row");
      SmallVector<QuantizableOpInterface> ops(
          entry.getBody().front().getOps<QuantizableOpInterface>());
      for (QuantizableOpInterface op : ops) {
        std::optional<QuantizedProduct> product = op.quantizedProduct();
        if (!product)
          continue;
        if (isTaken(*product, multiple)) {
          quantizer.replace(op, *product);
          any = true;
          ++matmuls;
        } else {
          ++left;
        }
      }
      tensors += quantizer.tensors;
      eraseDead(entry.getBody().front());
    }
    if (strict && !any) {
      model.emitOpError() << "has no matmul to quantize: linear layers are kept in bf16 by "
                             "--fp8-keep, have weights smaller than --fp8-least, or dimensions "
                             "that are no multiple of "
                          << multiple;
      signalPassFailure();
    }
  }

private:
  static bool isTaken(const QuantizedProduct &product, int64_t multiple) {
    return multiple > 0 && llvm::all_of(ArrayRef{product.a, product.b}, [&](const auto &operand) {
             const int64_t columns = build::shapeOf(operand.value).back();
             const int64_t rows = build::typeOf(operand.value).getNumElements() / columns;
             return rows % multiple == 0 && columns % multiple == 0;
           });
  }
};

} // namespace
} // namespace hydra
