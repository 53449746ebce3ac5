// hydra-apply-dropout: what is trained drops at random, all else does not.
#include "dialects/hydra/Build.h"
#include "passes/CountedNumbers.h"
#include "passes/Passes.h"
#include "passes/model/AttentionSteps.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_APPLYDROPOUT
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral kPass = "hydra-apply-dropout";

/// By what a block draws, all of it [] i32.
struct Key {
  Value low, high;
  Value microBatch; ///< its number in the step
};

struct ApplyDropout : impl::ApplyDropoutBase<ApplyDropout> {
  using ApplyDropoutBase::ApplyDropoutBase;

  void runOnOperation() override {
    model = findBoundModel(getOperation());
    if (!model || failed(checkUnrolled()) || (!programs.empty() && failed(applyToPrograms())))
      return signalPassFailure();
    model.walk([](Operation *op) {
      if (auto attention = dyn_cast<AttentionOp>(op)) {
        attention.removeDropoutAttr();
        attention.removeDropkeyAttr();
      }
      auto dropout = dyn_cast<DropoutOp>(op);
      if (!dropout || dropout.getKept())
        return;
      dropout.getY().replaceAllUsesWith(dropout.getX());
      dropout.erase();
    });
    eraseUnusedBodies(model);
  }

private:
  LogicalResult checkUnrolled() {
    WalkResult walked = model.walk([](Operation *op) {
      auto attention = dyn_cast<AttentionOp>(op);
      const bool mayDrop =
          isa<DropoutOp>(op) ||
          (attention && (attention.getDropoutAttr() || attention.getDropkeyAttr()));
      if (!mayDrop || isa<EntryOp>(op->getParentOp()))
        return WalkResult::advance();
      op->emitOpError("is in a layer; run hydra-unroll-layers first");
      return WalkResult::interrupt();
    });
    return failure(walked.wasInterrupted());
  }

  LogicalResult applyToPrograms() {
    FailureOr<SmallVector<EntryOp>> entries =
        findPrograms(model, SmallVector<std::string>(programs.begin(), programs.end()));
    if (failed(entries))
      return failure();
    for (EntryOp entry : *entries)
      if (drops(entry) && failed(applyTo(entry)))
        return failure();
    return success();
  }

  static bool drops(DropoutOp dropout) { return !dropout.getKept() && dropout.getP() > 0.0; }
  static bool drops(AttentionOp attention) {
    return attention.droppedWeights() > 0.0 || attention.droppedKeys() > 0.0;
  }
  static bool drops(EntryOp entry) {
    return llvm::any_of(entry.getBody().front(), [](Operation &op) {
      if (auto loop = dyn_cast<LoopOp>(op))
        return drops(loop.getEntry());
      if (auto attention = dyn_cast<AttentionOp>(op))
        return drops(attention);
      auto dropout = dyn_cast<DropoutOp>(op);
      return dropout && drops(dropout);
    });
  }

  LogicalResult applyTo(EntryOp entry) {
    constexpr StringLiteral names[] = {kDrawLow, kDrawHigh, kMicroBatch};
    Key key;
    Value *const numbers[] = {&key.low, &key.high, &key.microBatch};
    for (auto [name, number] : llvm::zip_equal(names, numbers)) {
      if (llvm::is_contained(entry.getArgNames().getAsValueRange<StringAttr>(), name))
        return entry.emitOpError() << "has an argument '" << name << "', which dropout adds";
      Builder b(&getContext());
      *number = entry.addArgument(name, RankedTensorType::get({}, b.getI32Type()),
                                  madeBy(kPass, entry.getLoc()), b.getI64IntegerAttr(0));
    }
    return draw(entry, key, 0);
  }

  /// Draws all truth values of a block, by streams of the key from `stream` on.
  LogicalResult draw(EntryOp entry, const Key &key, int64_t stream) {
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
      if (auto dropout = dyn_cast<DropoutOp>(op); dropout && drops(dropout)) {
        if (failed(checkRows(dropout, build::shapeOf(dropout.getX()))))
          return failure();
        OpBuilder b(dropout);
        dropout.getKeptMutable().assign(draw(b, madeBy(kPass, dropout.getLoc()), dropout.getX(),
                                             dropout.getP(), key, stream++));
      } else if (auto attention = dyn_cast<AttentionOp>(op); attention && drops(attention)) {
        if (failed(draw(attention, key, stream)))
          return failure();
      } else if (auto loop = dyn_cast<LoopOp>(op); loop && drops(loop.getEntry())) {
        if (failed(draw(loop, key, stream)))
          return failure();
        stream += kStreamsOfKey;
      }
    }
    return success();
  }

  /// From which word on, as a signed number, a value is kept: p 2^32 - 2^31.
  static double threshold(double p) { return std::min(std::ceil(p * 0x1p32), 0x1p32 - 1) - 0x1p31; }

  /// Rows of what is dropped from have a number that is i32.
  static LogicalResult checkRows(Operation *op, ArrayRef<int64_t> shape) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (shape.empty() || productOf(shape.drop_back()) <= most)
      return success();
    return op->emitOpError() << "drops from " << shapeText(shape) << "; expected at most " << most
                             << " rows";
  }

  /// Which elements of x stay, when the part p of them goes: truth values of its shape.
  Value draw(OpBuilder &b, Location loc, Value x, double p, const Key &key, int64_t stream) {
    ArrayRef<int64_t> shape = build::shapeOf(x);
    ArrayRef<int64_t> rows = shape.empty() ? shape : shape.drop_back();
    const auto type = RankedTensorType::get(shape, b.getI32Type());
    auto number = [&](double value) { return build::constant(b, loc, type, value); };
    auto all = [&](Value scalar) { return build::broadcast(b, loc, scalar, shape); };
    auto index = [&](int64_t axis) -> Value {
      return IotaOp::create(b, loc, type, b.getI64ArrayAttr(shape), b.getI64IntegerAttr(axis),
                            TypeAttr::get(b.getI32Type()));
    };
    Value row = all(key.microBatch);
    for (auto [axis, size] : llvm::enumerate(rows)) {
      row = MulOp::create(b, loc, row, number(static_cast<double>(size)));
      row = AddOp::create(b, loc, row, index(static_cast<int64_t>(axis)));
    }
    Value column = shape.empty() ? number(0.0) : index(static_cast<int64_t>(rows.size()));
    Value drawn = RandomOp::create(b, loc, all(key.low), all(key.high), row, column,
                                   b.getI64IntegerAttr(stream));
    ++masks;
    return CompareOp::create(b, loc, drawn, number(threshold(p)), Predicate::ge);
  }

  /// Writes an attention as its steps, of which keys take the next stream and then weights, where
  /// they are dropped.
  LogicalResult draw(AttentionOp attention, const Key &key, int64_t &stream) {
    if (attention.getSaving())
      return attention.emitOpError("drops, and is differentiated already; expected "
                                   "hydra-apply-dropout in front of hydra-differentiate");
    ArrayRef<int64_t> q = build::shapeOf(attention.getQ());
    if (failed(checkRows(attention, {q[0], q[2], q[1], build::shapeOf(attention.getK())[1]})))
      return failure();
    const double keys = attention.droppedKeys(), weights = attention.droppedWeights();
    const auto keptKeys = [&](OpBuilder &b, Location loc, Value scores) {
      return draw(b, loc, scores, keys, key, stream++);
    };
    const auto onWeights = [&](OpBuilder &b, Location loc, Value x) -> Value {
      Value kept = draw(b, loc, x, weights, key, stream++);
      return DropoutOp::create(b, loc, x, kept, b.getF64FloatAttr(weights));
    };
    AttentionChanges changes;
    changes.wideScores = true;
    if (keys > 0.0)
      changes.keptKeys = keptKeys;
    if (weights > 0.0)
      changes.onWeights = onWeights;
    attention.getO().replaceAllUsesWith(writeAttentionSteps(attention, kPass, changes));
    attention.erase();
    return success();
  }

  //===-- Loops -----------------------------------------------------------------------------===//

  /// Of which one gives each word of a key that is drawn from another.
  static constexpr int64_t kStreamsOfKey = 2;

  /// A key for what has that number.
  static Key keyOf(OpBuilder &b, Location loc, const Key &key, Value number, int64_t stream) {
    Value zero = build::constant(b, loc, number.getType(), 0.0);
    auto word = [&](int64_t which) -> Value {
      return RandomOp::create(b, loc, key.low, key.high, number, zero, b.getI64IntegerAttr(which));
    };
    return {word(stream), word(stream + 1), key.microBatch};
  }

  /// Lets a loop run a body that draws: behind its sequences stands the number of the iteration,
  /// behind all else the key.
  LogicalResult draw(LoopOp loop, const Key &key, int64_t stream) {
    OpBuilder b(loop);
    Location loc = madeBy(kPass, loop.getLoc());
    FailureOr<EntryOp> body = drawingBody(loop.getEntry());
    if (failed(body))
      return failure();
    const auto scalar = RankedTensorType::get({}, b.getI32Type());
    const Key own = keyOf(b, loc, key, build::constant(b, loc, scalar, 0.0), stream);
    const int64_t count = loop.getScan().getCount();
    const auto type = RankedTensorType::get({count}, b.getI32Type());
    const Value iterations = IotaOp::create(b, loc, type, b.getI64ArrayAttr({count}),
                                            b.getI64IntegerAttr(0), TypeAttr::get(b.getI32Type()));
    SmallVector<Value> inputs(loop.getInputs());
    inputs.insert(inputs.begin() + static_cast<int64_t>(loop.getScan().getOver().size()),
                  iterations);
    inputs.append({own.low, own.high, own.microBatch});
    auto drawing = LoopOp::create(b, loop.getLoc(), *body, inputs);
    loop.replaceAllUsesWith(drawing.getResults());
    loop.erase();
    return success();
  }

  /// The copy of a body that draws, which loops over one body share.
  FailureOr<EntryOp> drawingBody(EntryOp body) {
    if (EntryOp known = bodies.lookup(body.getSymNameAttr()))
      return known;
    const ScanAttr scan = *body.getScan();
    const size_t sequences = scan.getOver().size();
    SmallVector<int64_t> over(scan.getOver());
    over.push_back(0);
    Block &old = body.getBody().front();
    const auto i32 = IntegerType::get(&getContext(), 32);
    const auto scalar = RankedTensorType::get({}, i32);
    SmallVector<RankedTensorType> types =
        llvm::map_to_vector(old.getArguments(), [](Value v) { return build::typeOf(v); });
    types.insert(types.begin() + static_cast<int64_t>(sequences), RankedTensorType::get({1}, i32));
    types.append(3, scalar);
    const EntryOp drawing =
        build::loopBody(body, (body.getSymName() + "_drawing").str(), body.getLoc(),
                        ScanAttr::get(&getContext(), scan.getCount(), over, scan.getCarried(),
                                      scan.getStacked(), scan.getReverse()),
                        types);
    Block &block = EntryOp(drawing).getBody().front();
    SmallVector<Value> arguments(block.getArguments().drop_back(3));
    const Value iteration = arguments[sequences];
    arguments.erase(arguments.begin() + static_cast<int64_t>(sequences));
    IRMapping mapping;
    mapping.map(old.getArguments(), arguments);

    OpBuilder b = OpBuilder::atBlockEnd(&block);
    Location loc = madeBy(kPass, body.getLoc());
    const auto given = block.getArguments().take_back(3);
    const Key key =
        keyOf(b, loc, {given[0], given[1], given[2]}, build::reshape(b, loc, iteration, {}), 0);
    for (Operation &op : old.without_terminator())
      b.clone(op, mapping);
    build::endLoopBody(drawing, llvm::map_to_vector(body.getReturn().getOutputs(),
                                                    [&](Value v) { return mapping.lookup(v); }));
    bodies[body.getSymNameAttr()] = drawing;
    if (failed(draw(drawing, key, kStreamsOfKey)))
      return failure();
    return drawing;
  }

  ModelOp model;
  DenseMap<StringAttr, EntryOp> bodies; ///< that draw, by the name of what they are copies of
};

} // namespace
} // namespace hydra
