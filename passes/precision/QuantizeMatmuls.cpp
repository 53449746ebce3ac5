// hydra-quantize-matmuls: matmuls of linear layers on numbers of 8 bits.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Target.h"
#include "passes/Passes.h"
#include "passes/precision/AmaxHistory.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_QUANTIZEMATMULS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-quantize-matmuls";

/// An operand of a matmul in 8 bits, `[rows, K]`, and what its elements are multiplied by to get
/// them back.
struct Quantized {
  Value matrix, scale;
};

/// What has a scale of its own.
enum class Scaling {
  Tensor,
  Row,
  Block, ///< of activations and gradients 128 neighbours of a row, of weights 128 such rows
};

std::optional<Scaling> scalingNamed(StringRef name) {
  return llvm::StringSwitch<std::optional<Scaling>>(name)
      .Case("tensor", Scaling::Tensor)
      .Case("row", Scaling::Row)
      .Case("block128", Scaling::Block)
      .Default(std::nullopt);
}

/// Quantizes values of one program; with a history, by scales of earlier steps.
class Quantizer {
public:
  Quantizer(MLIRContext *context, std::optional<MeshAttr> mesh, Scaling scaling,
            AmaxHistory *history)
      : mesh(mesh), scaling(scaling), history(history), b(context) {}

  unsigned tensors = 0;

  /// `a bᵀ` of quantized operands in the place of an operation.
  void replace(QuantizableOpInterface op, const MatmulToQuantize &matmul) {
    // What has no weight is of the derivative of what has one: first comes the gradient.
    auto [a, scaleA] =
        operand(op, matmul.a, /*isGradient=*/!op.getWeight(), /*mayShareRows=*/false);
    auto [other, scaleB] = operand(op, matmul.b, /*isGradient=*/false, /*mayShareRows=*/true);
    b.setInsertionPoint(op);
    const Location loc = op.getLoc();
    RankedTensorType type = build::typeOf(op->getResult(0));
    const Type sums = matmul.bias ? b.getF32Type() : type.getElementType();
    Value c = QuantizedMatmulOp::create(b, loc, a, other, scaleA, scaleB, TypeAttr::get(sums));
    c = build::reshape(b, loc, c, type.getShape());
    if (matmul.bias) {
      Value bias = build::cast(b, loc, matmul.bias, sums);
      c = AddOp::create(b, loc, c, build::broadcast(b, loc, bias, type.getShape()));
      c = build::cast(b, loc, c, type.getElementType());
    }
    op->getResult(0).replaceAllUsesWith(c);
    op->erase();
  }

private:
  /// Each is made once, for all that read a value so. `mayShareRows`: rows of a weight may share
  /// scales of blocks, which those of one operand of a matmul can.
  const Quantized &operand(Operation *reader, const MatmulToQuantize::Operand &operand,
                           bool isGradient, bool mayShareRows) {
    Value value = build::behindReshapes(operand.value);
    const int64_t columns = build::shapeOf(operand.value).back();
    const bool shares =
        scaling == Scaling::Block && mayShareRows && !isMadeOf(value, isArgumentOrRank);
    Quantized &q =
        matrices[{value, operand.format, columns, operand.transposed + (shares ? 2U : 0U)}];
    if (!q.matrix)
      q = scaling == Scaling::Tensor ? scaledAsWhole(reader, value, columns, operand, isGradient)
          : scaling == Scaling::Row  ? scaledByRows(reader, value, columns, operand)
          : shares                   ? scaledByBlocks(reader, value, columns, operand)
                                     : scaledByRowBlocks(reader, value, columns, operand);
    return q;
  }

  /// Of one scale: what is read transposed is a copy of the same elements.
  Quantized scaledAsWhole(Operation *reader, Value value, int64_t columns,
                          const MatmulToQuantize::Operand &operand, bool isGradient) {
    Quantized &whole = elements[{value, operand.format}];
    if (!whole.matrix) {
      ++tensors;
      const Location loc = setInsertionPoint(reader, value);
      const bool varies = isMadeOf(value, isArgumentOrRank);
      if (history) {
        const OperandKind kind = isGradient ? OperandKind::Gradient
                                 : varies   ? OperandKind::Activation
                                            : OperandKind::Weight;
        Value amax = magnitudesOfRows(loc, value, columns);
        auto [rounded, scale] = history->quantize(b, loc, value, kind, operand.format, amax);
        whole = {rounded, scale};
      } else {
        Value amax = largestMagnitude(loc, value, columns, varies);
        whole.scale = QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(operand.format));
        whole.matrix = QuantizeOp::create(b, loc, value, whole.scale, TypeAttr::get(operand.format),
                                          UnitAttr());
      }
    }
    b.setInsertionPoint(reader);
    const Location loc = madeBy(kPass, reader->getLoc());
    Value of = whole.matrix;
    // What ranks have gathered is not kept from the forward pass to the backward pass in 8 bits
    // either.
    if (operand.transposed && isGathered(value))
      of = QuantizeOp::create(b, loc, value, whole.scale, TypeAttr::get(operand.format),
                              b.getUnitAttr());
    Value matrix = matrixOf(loc, of, columns);
    return {operand.transposed ? transposed(loc, matrix) : matrix, whole.scale};
  }

  /// Of a scale for each row, [rows]: what is read transposed is so before it is rounded.
  Quantized scaledByRows(Operation *reader, Value value, int64_t columns,
                         const MatmulToQuantize::Operand &operand) {
    ++tensors;
    const Location loc = setInsertionPoint(reader, value);
    if (operand.transposed) {
      value = transposed(loc, matrixOf(loc, value, columns));
      columns = build::shapeOf(value).back();
    } else if (!innerAxes(build::shapeOf(value), columns)) {
      value = matrixOf(loc, value, columns);
    }
    const SmallVector<int64_t> shape(build::shapeOf(value));
    const SmallVector<int64_t> inner = *innerAxes(shape, columns);
    Value amax =
        ReduceMaxOp::create(b, loc, magnitudesOf(loc, value), b.getI64ArrayAttr(inner), UnitAttr());
    amax = build::cast(b, loc, amax, b.getF32Type());
    Value scale = QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(operand.format));
    SmallVector<int64_t> kept(shape);
    for (int64_t axis : inner)
      kept[axis] = 1;
    Value ofEach = build::broadcast(b, loc, build::reshape(b, loc, scale, kept), shape);
    Value rounded =
        QuantizeOp::create(b, loc, value, ofEach, TypeAttr::get(operand.format), UnitAttr());
    Value matrix = matrixOf(loc, rounded, columns);
    return {matrix, build::reshape(b, loc, scale, {build::shapeOf(matrix)[0]})};
  }

  /// Of a scale for each 128 neighbours of a row, [blocks, rows], as they are summed over: what is
  /// read transposed is so before it is rounded.
  Quantized scaledByRowBlocks(Operation *reader, Value value, int64_t columns,
                              const MatmulToQuantize::Operand &operand) {
    ++tensors;
    const Location loc = setInsertionPoint(reader, value);
    Value matrix = matrixOf(loc, value, columns);
    if (operand.transposed)
      matrix = transposed(loc, matrix);
    const SmallVector<int64_t> shape(build::shapeOf(matrix));
    const int64_t across = support::scaleBlocks(shape[1]);
    Value tiles =
        build::reshape(b, loc, padded(loc, matrix, 1), {shape[0], across, support::kScaleBlock});
    Value scale = scaleOf(loc, largestMagnitudes(loc, tiles), operand.format);
    Value rounded = round(loc, tiles, build::reshape(b, loc, scale, {shape[0], across, 1}),
                          operand.format, UnitAttr());
    return {part(loc, build::reshape(b, loc, rounded, {shape[0], across * support::kScaleBlock}),
                 shape),
            scalesTransposed(loc, scale)};
  }

  /// Of a scale for each block of 128 rows and as many neighbours in them, [blocks of rows,
  /// blocks]: what is read transposed is a copy of the same numbers with the same scales.
  Quantized scaledByBlocks(Operation *reader, Value value, int64_t columns,
                           const MatmulToQuantize::Operand &operand) {
    Blocks &made = blocks[{value, operand.format, columns}];
    if (!made.rounded)
      made = roundedInBlocks(reader, value, columns, operand.format);
    b.setInsertionPoint(reader);
    const Location loc = madeBy(kPass, reader->getLoc());
    const ArrayRef<int64_t> tiles = build::shapeOf(made.tiles);
    const int64_t rows = build::typeOf(value).getNumElements() / columns;
    const bool isWhole = tiles[0] * tiles[1] == rows && tiles[2] * tiles[3] == columns;
    Value rounded = made.rounded;
    // As where a tensor has one scale; but zeros would have to be added again too.
    if (operand.transposed && isWhole && isGathered(value))
      rounded = round(loc, made.tiles, made.ofRows, operand.format, b.getUnitAttr());
    Value matrix =
        part(loc, build::reshape(b, loc, rounded, {tiles[0] * tiles[1], tiles[2] * tiles[3]}),
             {rows, columns});
    if (!operand.transposed)
      return {matrix, made.scale};
    return {transposed(loc, matrix), scalesTransposed(loc, made.scale)};
  }

  /// A matrix in blocks, [blocks of rows, 128, blocks, 128].
  struct Blocks {
    Value tiles, rounded;
    Value scale;  ///< [blocks of rows, blocks]
    Value ofRows; ///< the same for each row, [blocks of rows, 128, blocks, 1]
  };
  Blocks roundedInBlocks(Operation *reader, Value value, int64_t columns, Type format) {
    ++tensors;
    const Location loc = setInsertionPoint(reader, value);
    constexpr int64_t size = support::kScaleBlock;
    Value whole = padded(loc, padded(loc, matrixOf(loc, value, columns), 0), 1);
    const int64_t down = build::shapeOf(whole)[0] / size, across = build::shapeOf(whole)[1] / size;
    Blocks made;
    made.tiles = build::reshape(b, loc, whole, {down, size, across, size});
    Value amax = TransposeOp::create(b, loc, largestMagnitudes(loc, made.tiles),
                                     b.getI64ArrayAttr({0, 2, 1}));
    made.scale = scaleOf(loc, build::largest(b, loc, amax, {2}), format);
    // Row by row first: kernels read one number for each row, and no group has them in its middle.
    made.ofRows = build::reshape(
        b, loc,
        build::broadcast(b, loc, build::reshape(b, loc, made.scale, {down, 1, across}),
                         {down, size, across}),
        {down, size, across, 1});
    made.rounded = round(loc, made.tiles, made.ofRows, format, UnitAttr());
    return made;
  }

  /// Along the last axis. Of both signs apart: the kernel that makes a value has other rows, and
  /// would write magnitudes of elements for the one that has these.
  Value largestMagnitudes(Location loc, Value tiles) {
    const int64_t last = build::typeOf(tiles).getRank() - 1;
    Value above = build::largest(b, loc, tiles, {last});
    return MaxOp::create(b, loc, above,
                         build::largest(b, loc, NegOp::create(b, loc, tiles), {last}));
  }

  Value scaleOf(Location loc, Value amax, Type format) {
    return QuantizationScaleOp::create(b, loc, build::cast(b, loc, amax, b.getF32Type()),
                                       TypeAttr::get(format));
  }
  /// By scales that are repeated along dimensions of 1.
  Value round(Location loc, Value value, Value scale, Type format, UnitAttr again) {
    Value ofEach = build::broadcast(b, loc, scale, build::shapeOf(value));
    return QuantizeOp::create(b, loc, value, ofEach, TypeAttr::get(format), again);
  }

  /// With zeros behind the last of an axis, so that its blocks are whole. A value that nothing else
  /// reads is made in front of them; a pad would copy it.
  Value padded(Location loc, Value matrix, int64_t axis) {
    RankedTensorType type = build::typeOf(matrix);
    SmallVector<int64_t> missing(type.getShape());
    missing[axis] = support::scaleBlocks(missing[axis]) * support::kScaleBlock - missing[axis];
    if (missing[axis] == 0)
      return matrix;
    Value zeros = build::constant(b, loc, type.clone(missing), 0.0);
    return ConcatOp::create(b, loc, ValueRange{matrix, zeros}, b.getI64IntegerAttr(axis));
  }
  /// Without what has been added.
  Value part(Location loc, Value matrix, ArrayRef<int64_t> shape) {
    for (auto [axis, size] : llvm::enumerate(shape))
      if (build::shapeOf(matrix)[axis] != size)
        matrix = SliceOp::create(b, loc, matrix, b.getI64IntegerAttr(axis), b.getI64IntegerAttr(0),
                                 b.getI64IntegerAttr(size));
    return matrix;
  }
  Value scalesTransposed(Location loc, Value scale) {
    const ArrayRef<int64_t> shape = build::shapeOf(scale);
    return llvm::is_contained(shape, 1) ? build::reshape(b, loc, scale, {shape[1], shape[0]})
                                        : transposed(loc, scale);
  }

  Value matrixOf(Location loc, Value value, int64_t columns) {
    return build::reshape(b, loc, value,
                          {build::typeOf(value).getNumElements() / columns, columns});
  }
  Value transposed(Location loc, Value matrix) {
    return CopyOp::create(b, loc, TransposeOp::create(b, loc, matrix, b.getI64ArrayAttr({1, 0})));
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

  /// Of rows, [rows]. Any axes will do; those of rows become part of the kernel that makes them.
  /// `columns`: of the matrix that is multiplied, whose rows come first.
  Value magnitudesOfRows(Location loc, Value value, int64_t columns) {
    if (build::shapeOf(value).empty())
      value = build::reshape(b, loc, value, {1});
    else if (build::typeOf(value).getRank() == 1) // it lies in a unit
      value = matrixOf(loc, value, columns);
    const int64_t last = build::typeOf(value).getRank() - 1;
    Value ofRows = build::largest(
        b, loc, magnitudesOf(loc, value),
        innerAxes(build::shapeOf(value), columns).value_or(SmallVector<int64_t>{last}));
    return build::reshape(b, loc, ofRows, {build::typeOf(ofRows).getNumElements()});
  }

  /// Of all elements on all ranks: [] f32.
  Value largestMagnitude(Location loc, Value value, int64_t columns, bool varies) {
    Value &amax = magnitudes[value];
    if (amax)
      return amax;
    amax = magnitudesOfRows(loc, value, columns);
    amax = build::shapeOf(amax)[0] > 1 ? build::largest(b, loc, amax, {0})
                                       : build::reshape(b, loc, amax, {});
    amax = build::cast(b, loc, amax, b.getF32Type());
    if (varies && mesh)
      for (auto [axis, size] : llvm::zip(mesh->getAxes(), mesh->getSizes())) {
        if (size == 1)
          continue;
        amax =
            AllGatherOp::create(b, loc, build::reshape(b, loc, amax, {1}), b.getI64IntegerAttr(0),
                                axis, b.getI64IntegerAttr(size), b.getI64IntegerAttr(0));
        amax = build::largest(b, loc, amax, {0});
      }
    return amax;
  }

  /// The last axes that have so many elements; nullopt where there are none, or too many for a row.
  static std::optional<SmallVector<int64_t>> innerAxes(ArrayRef<int64_t> shape, int64_t columns) {
    if (shape.empty()) // one number, which is read as a matrix
      return std::nullopt;
    auto axis = static_cast<int64_t>(shape.size()) - 1;
    SmallVector<int64_t> axes{axis};
    int64_t product = shape[axis];
    while (product < columns && axis > 0) {
      axes.insert(axes.begin(), --axis);
      product *= shape[axis];
    }
    if (product != columns || axes.size() > kMaxInnerDimensions)
      return std::nullopt;
    return axes;
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
  const Scaling scaling;
  AmaxHistory *const history; ///< or null
  OpBuilder b;
  /// By value, format, columns and whether it is transposed, or its rows share scales of blocks.
  DenseMap<std::tuple<Value, Type, int64_t, unsigned>, Quantized> matrices;
  DenseMap<std::tuple<Value, Type, int64_t>, Blocks> blocks; ///< by value, format and columns
  DenseMap<std::pair<Value, Type>, Quantized> elements;      ///< of one scale, in the value's shape
  DenseMap<Value, Value> magnitudes;
};

struct QuantizeMatmuls : impl::QuantizeMatmulsBase<QuantizeMatmuls> {
  using QuantizeMatmulsBase::QuantizeMatmulsBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    const std::optional<Scaling> scales = scalingNamed(scaling);
    if (!scales) {
      model.emitOpError() << "has no scaling '" << scaling.getValue()
                          << "'; expected tensor, row or block128";
      return signalPassFailure();
    }
    if (failed(checkAmax(model)))
      return signalPassFailure();
    AmaxHistory delayed(model, history, accum);
    const int64_t multiple = targetOf(model).getQuantizedMultiple();
    bool any = false;
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (!entry.isProgram())
        continue;
      const bool remembers = amax == "delayed" && AmaxHistory::isFor(entry);
      Quantizer quantizer(&getContext(), model.getMesh(), *scales, remembers ? &delayed : nullptr);
      SmallVector<QuantizableOpInterface> ops(
          entry.getBody().front().getOps<QuantizableOpInterface>());
      for (QuantizableOpInterface op : ops) {
        std::optional<MatmulToQuantize> matmul = op.matmulToQuantize();
        if (!matmul)
          continue;
        if (isTaken(*matmul, multiple)) {
          quantizer.replace(op, *matmul);
          any = true;
          ++matmuls;
        } else {
          ++left;
        }
      }
      tensors += quantizer.tensors;
      if (failed(delayed.finish(entry)))
        return signalPassFailure();
      eraseDead(entry.getBody().front());
    }
    if (strict && !any) {
      InFlightDiagnostic error = model.emitOpError();
      error << "has no matmul to quantize: linear layers are kept in bf16 by --fp8-keep, have "
               "weights smaller than --fp8-least, or ";
      if (multiple > 1)
        error << "dimensions that are no multiple of " << multiple << ", or ";
      error << "weights that are computed from parameters, or there are none";
      error.report();
      signalPassFailure();
    }
  }

private:
  LogicalResult checkAmax(ModelOp model) {
    if (amax != "current" && amax != "delayed")
      return model.emitOpError() << "has no largest magnitude '" << amax.getValue()
                                 << "'; expected current or delayed";
    if (amax == "delayed" && scaling != "tensor")
      return model.emitOpError(
          "has delayed scales of rows or blocks; expected tensor with delayed");
    if (history < 1 || history > 1024)
      return model.emitOpError() << "has a history of " << history.getValue()
                                 << " steps; expected 1 to 1024";
    return success();
  }

  static bool isTaken(const MatmulToQuantize &matmul, int64_t multiple) {
    return multiple > 0 && llvm::all_of(ArrayRef{matmul.a, matmul.b}, [&](const auto &operand) {
             const int64_t columns = build::shapeOf(operand.value).back();
             const int64_t rows = build::typeOf(operand.value).getNumElements() / columns;
             return rows % multiple == 0 && columns % multiple == 0;
           });
  }
};

} // namespace
} // namespace hydra
