// hydra-to-plan: values become buffers, operations become steps.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowPartition.h"
#include "dialects/plan/Lowering.h"
#include "passes/Passes.h"
#include "passes/lower/Liveness.h"
#include "passes/lower/RowSwitch.h"
#include "passes/place/ActiveRows.h"
#include "passes/place/Layouts.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_TOPLAN
#include "passes/Passes.h.inc"

namespace {

/// The plan of a model as it grows: what its programs share.
class PlanWriter {
public:
  const TargetAttr target;

  PlanWriter(ModelOp model, OpBuilder &at) : target(targetOf(model)), b(model.getContext()) {
    module = plan::PlanModuleOp::create(at, model.getLoc(), at.getStringAttr(model.getSymName()),
                                        model.getBoundAttr(), IntegerAttr(), IntegerAttr());
    b.setInsertionPointToEnd(&module.getBody().emplaceBlock());
    placeSideBySide(model);
    for (Operation &op : model.getBody().front()) {
      if (auto param = dyn_cast<ParamOp>(op))
        addVariable(param, VariableRole::parameter, param.getBoundType(), param.getInit(),
                    b.getStringAttr(param.getGroup().value_or("default")), StringAttr(),
                    plan::Category::param);
      else if (auto state = dyn_cast<StateOp>(op))
        addVariable(state, state.getRole(), state.getBoundType(), state.getInit(), StringAttr(),
                    state.getOwnerAttr(), categoryOf(state));
    }
  }

  plan::PlanModuleOp getModule() { return module; }
  Value variable(StringAttr name) { return variables.lookup(name); }
  /// The bytes of parameters that lie side by side, of which `first` is the first.
  Value sideBySide(StringAttr first) { return wholes.lookup(first); }

  /// A new program behind all others; scalars and kernels go before the first.
  plan::ProgramOp program(EntryOp entry) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&module.getBody().front());
    auto program =
        plan::ProgramOp::create(b, entry.getLoc(), b.getStringAttr(entry.getSymName()),
                                ProgramRoleAttr::get(b.getContext(), entry.programRole()),
                                b.getI64IntegerAttr(1), IntegerAttr(), IntegerAttr());
    if (!firstProgram)
      firstProgram = program;
    return program;
  }

  /// The scalar that an argument with a default is, made by the first program that asks.
  FailureOr<Value> scalar(EntryOp entry, unsigned argument) {
    auto name = cast<StringAttr>(entry.getArgNames()[argument]);
    double value = *entry.getDefault(argument);
    plan::ScalarOp &scalar = scalars[name.getValue()];
    if (scalar && scalar.getValue().convertToDouble() != value)
      return entry.emitOpError() << "argument '" << name.getValue() << "' is " << value
                                 << " unless given; in another program it is "
                                 << scalar.getValue().convertToDouble();
    BlockArgument number = entry.getBody().getArgument(argument);
    Type element = build::typeOf(number).getElementType();
    if (scalar && cast<MemRefType>(scalar.getBuffer().getType()).getElementType() != element)
      return entry.emitOpError() << "argument '" << name.getValue()
                                 << "' is of another type in another program";
    if (!scalar) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(firstProgram);
      Value buffer = addBuffer(build::typeOf(number), plan::Category::other, number.getLoc());
      StringRef schedule = name.getValue() == "step" && element.isInteger(32) ? "step" : "constant";
      scalar = plan::ScalarOp::create(b, number.getLoc(), name, b.getStringAttr(schedule),
                                      b.getF64FloatAttr(value), buffer);
    }
    return scalar.getBuffer();
  }

  /// The kernel of a group for these layouts; equal ones are the same.
  plan::KernelOp kernel(FusedOp group, ArrayRef<Type> layouts, const RowPartition &partition) {
    std::string key;
    llvm::raw_string_ostream os(key);
    AsmState names(group, OpPrintingFlags().useLocalScope());
    group.getBody().front().print(os, names);
    os << '|' << partition.rows << '|' << partition.grain << '|' << shapeText(group.getRows())
       << shapeText(group.getInner());
    for (Type layout : layouts)
      os << '|' << layout;
    plan::KernelOp &kernel = kernels[key];
    if (kernel)
      return kernel;
    std::string name = kernelName(group);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(firstProgram);
    kernel =
        plan::KernelOp::create(b, group.getLoc(), b.getStringAttr(name),
                               b.getTypeArrayAttr(layouts), b.getI64IntegerAttr(partition.rows),
                               b.getI64IntegerAttr(partition.grain), IntegerAttr(), IntegerAttr(),
                               StringAttr(), DenseI64ArrayAttr());
    OpBuilder inner(b.getContext());
    inner.setInsertionPointToEnd(&kernel.getBody().emplaceBlock());
    IRMapping mapping;
    for (Value input : group.getInputs())
      mapping.map(input, plan::OuterOp::create(inner, group.getLoc(), input.getType()));
    inner.clone(*group, mapping);
    return kernel;
  }

  /// The kernel that adds `parts` rows of partial sums, `columns` wide.
  plan::KernelOp combineKernel(int64_t parts, int64_t columns, ArrayRef<Type> layouts,
                               Location loc) {
    std::string key;
    llvm::raw_string_ostream(key) << "combine|" << parts << '|' << columns << '|' << layouts.back();
    plan::KernelOp &kernel = kernels[key];
    if (!kernel) {
      RowPartition partition = partitionCombine(parts, columns);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(firstProgram);
      kernel = plan::KernelOp::create(
          b, loc, b.getStringAttr(("combine_" + Twine(kernels.size() - 1)).str()),
          b.getTypeArrayAttr(layouts), b.getI64IntegerAttr(partition.rows),
          b.getI64IntegerAttr(partition.grain), b.getI64IntegerAttr(parts), IntegerAttr(),
          StringAttr(), DenseI64ArrayAttr());
      kernel.getBody().emplaceBlock();
    }
    return kernel;
  }

  size_t kernelCount() const { return kernels.size(); }

private:
  /// What the bytes of state are for, in memory reports.
  static plan::Category categoryOf(StateOp state) {
    using plan::Category;
    switch (state.getRole()) {
    case VariableRole::parameter:
      return Category::param;
    case VariableRole::moment:
    case VariableRole::update_count:
    case VariableRole::loss_scaling:
      return Category::opt_state;
    case VariableRole::gradient:
      return Category::grad;
    case VariableRole::copy:
      return state.isCopyOfParameter() ? Category::param : Category::act_state;
    case VariableRole::state:
    case VariableRole::step_sum:
      return Category::act_state;
    }
    llvm_unreachable("role of a variable");
  }

  /// One buffer for each concatenation of parameters, or copies of them, that needs no bytes of its
  /// own.
  void placeSideBySide(ModelOp model) {
    model.walk([&](ConcatOp concat) {
      auto nameOf = [](Value part) {
        return part.getDefiningOp<UseOp>().getVariableAttr().getAttr();
      };
      if (!concat->hasAttr(kAdjacentAttr) || wholes.count(nameOf(concat.getParts().front())))
        return;
      Value whole = addBuffer(build::typeOf(concat.getY()), plan::Category::param, concat.getLoc());
      wholes[nameOf(concat.getParts().front())] = whole;
      int64_t start = 0;
      for (Value part : concat.getParts()) {
        RankedTensorType type = build::typeOf(part);
        variables[nameOf(part)] = plan::ViewOp::create(
            b, part.getLoc(), MemRefType::get(type.getShape(), type.getElementType()), whole,
            b.getI64IntegerAttr(start));
        start += type.getNumElements();
      }
    });
  }

  Value addBuffer(RankedTensorType type, plan::Category category, Location loc) {
    return plan::BufferOp::create(b, loc, MemRefType::get(type.getShape(), type.getElementType()),
                                  plan::Segment::persistent, category, IntegerAttr());
  }

  void addVariable(Operation *op, VariableRole role, RankedTensorType type, InitAttr init,
                   StringAttr group, StringAttr owner, plan::Category category) {
    StringAttr name = SymbolTable::getSymbolName(op);
    Value &buffer = variables[name];
    if (!buffer)
      buffer = addBuffer(type, category, op->getLoc());
    plan::VariableOp::create(b, op->getLoc(), name, VariableRoleAttr::get(b.getContext(), role),
                             buffer, init, group, owner);
  }

  /// Named after the operations inside, numbered.
  std::string kernelName(FusedOp group) {
    std::string name;
    unsigned more = 0;
    for (Operation &op : group.getBody().front().without_terminator()) {
      StringRef part = op.getName().stripDialect();
      if (isa<ConstantOp, BroadcastOp, ReshapeOp>(op) || StringRef(name).contains(part))
        continue;
      if (name.size() < 24)
        name += (name.empty() ? "" : "_") + part.str();
      else
        ++more;
    }
    if (name.empty())
      name = "move";
    return name + (more ? "_and_more" : "") + "_" + std::to_string(kernels.size() - 1);
  }

  OpBuilder b;
  plan::PlanModuleOp module;
  plan::ProgramOp firstProgram;
  DenseMap<Attribute, Value> variables;
  DenseMap<Attribute, Value> wholes; // of parameters side by side, by the first of them
  llvm::StringMap<plan::ScalarOp> scalars;
  llvm::StringMap<plan::KernelOp> kernels;
};

/// Turns one entry into a program, or the body of a loop into an iteration.
class ProgramWriter : public plan::Lowering {
public:
  ProgramWriter(PlanWriter &plan, EntryOp entry)
      : Lowering(entry.getContext()), plan(plan), entry(entry), liveness(entry) {}

  /// Where the body of a loop finds what it is given and leaves its results: a buffer, or the bytes
  /// of one chunk, for each argument, each joined result and each carried value.
  struct LoopBuffers {
    SmallVector<Value> arguments, joined, carried;
  };

  /// Writes one iteration at the end of a block.
  LogicalResult runBody(Block &block, const LoopBuffers &given) {
    b.setInsertionPointToEnd(&block);
    ReturnOp end = entry.getReturn();
    for (auto [argument, buffer] : llvm::zip(entry.getBody().getArguments(), given.arguments))
      buffers[argument] = buffer;
    auto joined = end.getOutputs().take_front(given.joined.size());
    auto carried = end.getOutputs().drop_front(given.joined.size());
    SmallVector<bool> inPlaceJoined;
    for (auto [value, slot] : llvm::zip(joined, given.joined)) {
      bool passed = isa<BlockArgument>(layoutOf(value).root);
      if (passed)
        copy(end.getLoc(), source(value), slot);
      inPlaceJoined.push_back(passed || writeInto(value, slot));
    }
    ValueRange starts = entry.getBody().getArguments().slice(entry.getWalk()->getOver().size(),
                                                             given.carried.size());
    for (auto [value, start, buffer] : llvm::zip(carried, starts, given.carried))
      if (auto result = dyn_cast<OpResult>(value);
          result && !result.getOwner()->hasAttr(kViewAttr) && !buffers.count(value) &&
          liveness.canOverwrite(start, result))
        buffers[value] = buffer;
    if (failed(lowerAll()))
      return failure();
    for (auto [value, slot, done] : llvm::zip(joined, given.joined, inPlaceJoined))
      if (!done)
        copy(end.getLoc(), source(value), slot);
    // All are read before any is written.
    SmallVector<std::pair<Value, Value>> moves;
    for (auto [value, buffer] : llvm::zip(carried, given.carried)) {
      Value from = source(value);
      if (from == buffer)
        continue;
      bool lies = llvm::any_of(given.carried, [&](Value other) {
        return plan::placeOf(other).buffer == plan::placeOf(from).buffer;
      });
      if (lies) {
        Value apart = newBuffer(build::typeOf(value), plan::Category::act_state, end.getLoc());
        copy(end.getLoc(), from, apart);
        from = apart;
      }
      moves.emplace_back(from, buffer);
    }
    for (auto [from, to] : moves)
      copy(end.getLoc(), from, to);
    return success();
  }

  LogicalResult run() {
    program = plan.program(entry);
    b.setInsertionPointToEnd(&program.getBody().emplaceBlock());
    if (failed(addInputs()))
      return failure();
    chooseUpdateTargets();
    if (failed(lowerAll()))
      return failure();
    finish();
    return success();
  }

  unsigned steps = 0, inPlace = 0;

  //===-- The interface of operations -------------------------------------------------------===//

  Value source(Value value) override {
    Value buffer = buffers.lookup(value);
    if (!buffer) { // a view: everything else was written before
      Layout layout = layoutOf(value, [&](Value root) {
        return plan::stridesOf(cast<MemRefType>(source(root).getType()));
      });
      RankedTensorType type = build::typeOf(value);
      OpBuilder::InsertionGuard guard(b);
      buffer = plan::ViewOp::create(
          b, value.getLoc(),
          plan::bufferType(type.getShape(), layout.view.strides, type.getElementType()),
          source(layout.root), b.getI64IntegerAttr(layout.view.offset));
      buffers[value] = buffer;
    }
    return buffer;
  }

  Value target(Value result) override {
    Value &buffer = buffers[result];
    if (buffer)
      return buffer;
    if (Value part = placeInConcat(result))
      return buffers[result] = part;
    if (Value dying = dyingOperand(result)) {
      ++inPlace;
      return buffers[result] = dying;
    }
    return buffers[result] = newBuffer(build::typeOf(result), categoryOf(result), result.getLoc());
  }

  Value scratch(Operation *op, ArrayRef<int64_t> shape, Type element) override {
    return newBuffer(RankedTensorType::get(shape, element), plan::Category::workspace,
                     op->getLoc());
  }

  bool isInPlace(Operation *concat, unsigned part) override {
    return placed.contains({concat, part});
  }

  void finish(Operation *op, Operation *made) override {
    auto step = cast<plan::StepInterface>(made);
    step.setWork(flopsOf(op), bytesOf(op));
    step.setReported(classOf(op), op->getName().stripDialect());
    ++steps;
  }

private:
  LogicalResult lowerAll() {
    for (Operation &op : entry.getBody().front().without_terminator())
      if (failed(lowerInRun(&op)))
        return failure();
    endRun();
    return success();
  }

  /// A copy that no operation of the model asks for.
  void copy(Location loc, Value from, Value to) {
    auto type = cast<MemRefType>(to.getType());
    int64_t bytes = 2 * type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
    plan::CopyOp::create(b, loc, from, to, 0, bytes, OpClass::copy_cast, "copy");
    ++steps;
  }

  static int64_t flopsOf(Operation *op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost ? cost.flops() : 0;
  }
  static int64_t bytesOf(Operation *op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost ? cost.bytes() : 0;
  }
  static OpClass classOf(Operation *op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost ? cost.costClass() : OpClass::other;
  }

  Value newBuffer(RankedTensorType type, plan::Category category, Location loc) {
    return plan::BufferOp::create(b, loc, MemRefType::get(type.getShape(), type.getElementType()),
                                  plan::Segment::transient, category, IntegerAttr());
  }

  /// What the bytes of a value are for, in memory reports.
  plan::Category categoryOf(Value v) {
    using plan::Category;
    for (OpOperand &use : v.getUses())
      if (auto end = dyn_cast<ReturnOp>(use.getOwner()))
        if (use.getOperandNumber() < end.getOutputNames().size()) {
          StringRef name = cast<StringAttr>(end.getOutputNames()[use.getOperandNumber()]);
          return end.gradientOf(use.getOperandNumber()) ? Category::grad
                 : name == "logits"                     ? Category::logits
                                                        : Category::other;
        }
    ScopeAttr scope = scopeOf(v.getLoc());
    if (scope && scope.getPhase() != Phase::forward)
      return scope.getPhase() == Phase::backward ? Category::grad : Category::opt_state;
    if (feedsAttention(v))
      return Category::act_attn;
    switch (classOf(v.getDefiningOp())) {
    case OpClass::norm:
      return Category::act_norm;
    case OpClass::attention:
      return Category::act_attn_out;
    case OpClass::softmax:
      return Category::act_softmax;
    case OpClass::gather_scatter:
      return Category::act_embed;
    case OpClass::loss:
      return Category::logits;
    case OpClass::gemm:
    case OpClass::elementwise:
    case OpClass::copy_cast:
    case OpClass::reduce:
    case OpClass::scan:
    case OpClass::optimizer:
    case OpClass::other:
      return Category::act_ffn;
    }
    llvm_unreachable("all classes are above");
  }

  /// Whether attention reads the value, or a view of it.
  static bool feedsAttention(Value v) {
    return llvm::any_of(v.getUsers(), [](Operation *user) {
      return user->hasAttr(kViewAttr)
                 ? llvm::any_of(user->getResults(), [](Value w) { return feedsAttention(w); })
                 : classOf(user) == OpClass::attention;
    });
  }

  LogicalResult addInputs() {
    for (auto [argument, name] : llvm::zip(entry.getBody().getArguments(),
                                           entry.getArgNames().getAsValueRange<StringAttr>())) {
      RankedTensorType type = build::typeOf(argument);
      if (entry.getDefault(argument.getArgNumber())) {
        FailureOr<Value> scalar = plan.scalar(entry, argument.getArgNumber());
        if (failed(scalar))
          return failure();
        buffers[argument] = *scalar;
        continue;
      }
      Value buffer = newBuffer(type, plan::Category::other, argument.getLoc());
      int64_t bound = entry.getIds() ? (*entry.getIds())[argument.getArgNumber()] : 0;
      plan::InputOp::create(b, entry.getLoc(), b.getStringAttr(name), buffer,
                            b.getStringAttr(bound > 0   ? "tokens"
                                            : bound < 0 ? "labels"
                                                        : "values"),
                            b.getI64IntegerAttr(std::abs(bound)));
      buffers[argument] = buffer;
    }
    return success();
  }

  /// Lets the operation that makes a variable's new value write it in place, where no old value is
  /// read after it.
  void chooseUpdateTargets() {
    ReturnOp end = entry.getReturn();
    for (auto [symbol, value] :
         llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
      Operation *producer = value.getDefiningOp();
      if (!producer || isa<UseOp>(producer) || producer->hasAttr(kViewAttr) || buffers.count(value))
        continue;
      if (liveness.canOverwriteVariable(symbol.getAttr(), cast<OpResult>(value)))
        buffers[value] = plan.variable(symbol.getAttr());
    }
  }

  /// The bytes of a concatenation that a value with no other use will be, itself or reshaped.
  Value placeInConcat(Value result) {
    Value part = result;
    while (part.hasOneUse() && isa<ReshapeOp>(*part.user_begin()) &&
           part.user_begin()->hasAttr(kViewAttr))
      part = part.user_begin()->getResult(0);
    if (!part.hasOneUse())
      return {};
    OpOperand &use = *part.getUses().begin();
    auto concat = dyn_cast<ConcatOp>(use.getOwner());
    if (!concat || concat->hasAttr(kAdjacentAttr))
      return {};
    int64_t axis = concat.getAxis(), start = 0;
    for (Value before : concat.getParts().take_front(use.getOperandNumber()))
      start += build::shapeOf(before)[axis];
    // The concatenation itself may become part of another one, or get a buffer of its own.
    Value buffer = target(concat.getY());
    SmallVector<int64_t> whole = plan::stridesOf(cast<MemRefType>(buffer.getType()));
    RankedTensorType type = build::typeOf(result);
    FailureOr<SmallVector<int64_t>> own =
        reshapedStrides(build::shapeOf(part), whole, type.getShape());
    auto storage = result.getDefiningOp<StorageOpInterface>();
    if (failed(own) ||
        !accepts(storage ? storage.resultLayout(cast<OpResult>(result).getResultNumber())
                         : OperandLayout{},
                 type.getShape(), *own))
      return {};
    placed.insert({concat, use.getOperandNumber()});
    return plan::ViewOp::create(b, result.getLoc(),
                                plan::bufferType(type.getShape(), *own, type.getElementType()),
                                buffer, b.getI64IntegerAttr(start * whole[axis]));
  }

  /// The transient buffer of an operand that this operation is the last to read and may overwrite.
  Value dyingOperand(Value value) {
    auto result = cast<OpResult>(value);
    auto storage = dyn_cast<StorageOpInterface>(result.getOwner());
    if (!storage)
      return {};
    for (unsigned i : storage.overwritableOperands(result.getResultNumber())) {
      Value operand = storage->getOperand(i);
      if (operand.getType() != result.getType() || !liveness.diesAt(operand, storage, i))
        continue;
      Value buffer = source(operand);
      plan::Place place = plan::placeOf(buffer);
      if (isa<BlockArgument>(layoutOf(operand).root) || !place.buffer.isTransient() ||
          buffer.getType() != cast<MemRefType>(place.buffer.getType()))
        continue;
      // One result of an operation takes a buffer.
      if (!takenAt.insert({storage.getOperation(), place.buffer}).second)
        continue;
      return buffer;
    }
    return {};
  }

  //===-- Runs on rows that take part ---------------------------------------------------------===//

  /// Steps of operations that hydra-skip-rows has marked become one switch.
  struct Run {
    int64_t number = -1, rows = 0;
    Value count;
    SmallVector<RowStep> steps;
  };

  LogicalResult lowerInRun(Operation *op) {
    auto mark = op->getAttrOfType<DenseI64ArrayAttr>(kActiveRowsAttr);
    if (!mark) {
      if (!op->hasAttr(kViewAttr) && !isa<UseOp>(op))
        endRun();
      if (failed(lower(op)))
        return failure();
      if (auto number = op->getAttrOfType<IntegerAttr>(kCompactAttr))
        compactions[number.getInt()] = cast<CompactOp>(op);
      return success();
    }
    if (mark[1] != open.number) {
      endRun();
      CompactOp compact = compactions.lookup(mark[0]);
      open.number = mark[1];
      open.rows = build::shapeOf(compact.getMask())[0];
      open.count = source(compact.getCount());
    }
    Block *block = b.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    if (failed(lower(op)))
      return failure();
    auto use = cast<RowUseOpInterface>(op);
    RowStep::Kind kind = use.rowUse(0) == RowUse::Sum ? RowStep::Sum : RowStep::Each;
    DenseSet<Value> withRows;
    for (OpOperand &operand : op->getOpOperands())
      if (use.rowUse(operand.getOperandNumber()) != RowUse::All)
        withRows.insert(source(operand.get()));
    if (kind == RowStep::Each)
      for (Value result : op->getResults())
        withRows.insert(source(result));
    // What a step reads may be a view that it made itself of an operand.
    auto hasRows = [&](Value arg) {
      auto type = cast<MemRefType>(arg.getType());
      if (type.getRank() == 0 || type.getDimSize(0) != open.rows)
        return withRows.contains(arg);
      while (!withRows.contains(arg)) {
        auto view = arg.getDefiningOp<plan::ViewOp>();
        if (!view)
          return false;
        arg = view.getSource();
      }
      return true;
    };
    for (Operation *step = last ? last->getNextNode() : &block->front(); step;
         step = step->getNextNode())
      if (isa<plan::BlockInterface>(step)) {
        // What a sum is added to is copied to its place for any number of rows.
        const bool copiesAddend = kind == RowStep::Sum && isa<plan::CopyOp>(step);
        RowStep &entry = open.steps.emplace_back();
        entry = {step, copiesAddend ? RowStep::Always : kind, {}};
        if (isa<plan::LaunchOp>(step)) // has a limit
          continue;
        for (OpOperand &arg : step->getOpOperands())
          if (isa<ConcatOp>(op) || hasRows(arg.get()))
            entry.args.push_back(arg.getOperandNumber());
      }
    return success();
  }

  void endRun() {
    if (!open.steps.empty())
      switchByRows(b, open.steps, open.count, open.rows);
    open = Run();
  }

  //===-- Loops -----------------------------------------------------------------------------===//

  LogicalResult lowerLoop(LoopOp loop) {
    EntryOp body = loop.getEntry();
    WalkAttr walk = loop.getWalk();
    const size_t over = walk.getOver().size(), stacked = walk.getStacked().size();
    LoopBuffers given;
    DenseMap<Value, int64_t> moved; // by how many bytes
    auto chunkOf = [&](Value whole, RankedTensorType chunk, int64_t axis) {
      SmallVector<int64_t> strides = plan::stridesOf(cast<MemRefType>(whole.getType()));
      const int64_t step = chunk.getDimSize(axis) * strides[axis];
      const int64_t start = walk.getReverse() ? (walk.getCount() - 1) * step : 0;
      Value view = plan::ViewOp::create(
          b, loop.getLoc(), plan::bufferType(chunk.getShape(), strides, chunk.getElementType()),
          whole, b.getI64IntegerAttr(start));
      const int64_t bytes = step * ((chunk.getElementTypeBitWidth() + 7) / 8);
      moved[view] = walk.getReverse() ? -bytes : bytes;
      return view;
    };
    for (unsigned i = 0; i < loop.getInputs().size(); ++i) {
      Value input = loop.getInputs()[i];
      BlockArgument argument = body.getBody().getArgument(i);
      if (i < over)
        given.arguments.push_back(
            chunkOf(source(input), build::typeOf(argument), walk.getOver()[i]));
      else if (i < over + walk.getCarried())
        given.arguments.push_back(carriedBuffer(loop, i, loop.getResult(stacked + i - over)));
      else
        given.arguments.push_back(source(input));
    }
    for (unsigned i = 0; i < stacked; ++i)
      given.joined.push_back(chunkOf(target(loop.getResult(i)),
                                     build::typeOf(body.getReturn().getOutputs()[i]),
                                     walk.getStacked()[i]));
    llvm::append_range(given.carried, ArrayRef(given.arguments).slice(over, walk.getCarried()));

    auto planned =
        plan::LoopOp::create(b, loop.getLoc(), walk.getCount(), ValueRange(), ArrayRef<int64_t>(),
                             0, ArrayRef<int64_t>(), -1, IntegerAttr());
    ProgramWriter inner(plan, body);
    if (failed(inner.runBody(planned.getBody().emplaceBlock(), given)))
      return failure();
    steps += inner.steps;
    inPlace += inner.inPlace;
    moveWithLoop(planned, moved);
    // A body that only hands on what it is given has no steps.
    if (llvm::none_of(planned.getBody().front(),
                      [](Operation &op) { return isa<plan::BlockInterface>(op); }))
      planned.erase();
    return success();
  }

  /// The buffer in which a value is carried: that of the initial value if nobody reads it later,
  /// else one that starts as a copy of it.
  Value carriedBuffer(LoopOp loop, unsigned number, Value result) {
    Value init = loop.getInputs()[number];
    Value start = source(init);
    Value &buffer = buffers[result];
    plan::Place place = plan::placeOf(start);
    if (!buffer && liveness.diesAt(init, loop, number) &&
        !isa<BlockArgument>(layoutOf(init).root) && place.buffer.isTransient() &&
        start.getType() == place.buffer.getType() &&
        takenAt.insert({loop.getOperation(), place.buffer}).second)
      return buffer = start;
    Value own = target(result);
    copy(loop.getLoc(), start, own);
    return own;
  }

  /// Lets a loop move buffers, and all views of them that are used inside.
  static void moveWithLoop(plan::LoopOp loop, DenseMap<Value, int64_t> &moved) {
    loop->walk([&](plan::ViewOp view) {
      auto from = moved.find(view.getSource());
      if (from == moved.end())
        return;
      const int64_t bytes = from->second;
      view->moveBefore(loop);
      moved[view] = bytes;
    });
    DenseSet<Value> used;
    loop->walk([&](Operation *step) { used.insert(step->operand_begin(), step->operand_end()); });
    SmallVector<Value> moving;
    SmallVector<int64_t> strides;
    for (Operation &op : *loop->getBlock())
      if (auto view = dyn_cast<plan::ViewOp>(op);
          view && moved.count(view) && used.contains(view)) {
        moving.push_back(view);
        strides.push_back(moved.lookup(view));
      }
    loop.getMovingMutable().assign(moving);
    loop.setStrides(strides);
  }

  /// Lets the operation that makes a value write it to a slot, if its result can lie like that and
  /// all that reads it in the body can read it there.
  bool writeInto(Value value, Value slot) {
    Value made = value;
    while (Operation *op = made.getDefiningOp()) {
      if (!op->hasAttr(kViewAttr))
        break;
      if (!isa<ReshapeOp>(op))
        return false;
      made = op->getOperand(0);
    }
    auto storage = dyn_cast_or_null<StorageOpInterface>(made.getDefiningOp());
    if (!storage || isa<UseOp>(storage) || storage->hasAttr(kAdjacentAttr) || buffers.count(made))
      return false;
    RankedTensorType type = build::typeOf(made);
    FailureOr<SmallVector<int64_t>> strides = reshapedStrides(
        build::shapeOf(value), plan::stridesOf(cast<MemRefType>(slot.getType())), type.getShape());
    if (failed(strides) ||
        !accepts(storage.resultLayout(cast<OpResult>(made).getResultNumber()), type.getShape(),
                 *strides) ||
        !readersAccept(made, *strides))
      return false;
    buffers[made] = plan::ViewOp::create(
        b, made.getLoc(), plan::bufferType(type.getShape(), *strides, type.getElementType()), slot,
        b.getI64IntegerAttr(0));
    return true;
  }

  //===-- Operations ------------------------------------------------------------------------===//

  LogicalResult lower(Operation *op) {
    if (auto use = dyn_cast<UseOp>(op)) {
      buffers[use.getResult()] = plan.variable(use.getVariableAttr().getAttr());
      return success();
    }
    if (op->hasAttr(kViewAttr))
      return success(); // made when first read
    if (op->hasAttr(kAdjacentAttr)) {
      auto first = op->getOperand(0).getDefiningOp<UseOp>();
      buffers[op->getResult(0)] = plan.sideBySide(first.getVariableAttr().getAttr());
      return success();
    }
    if (auto group = dyn_cast<FusedOp>(op))
      return launch(group);
    if (auto loop = dyn_cast<LoopOp>(op))
      return lowerLoop(loop);
    if (auto lowering = dyn_cast<plan::PlanLoweringOpInterface>(op))
      return lowering.lowerToPlan(*this);
    return op->emitOpError("has no lowering for this target");
  }

  void addLaunch(Operation *op, plan::KernelOp kernel, ValueRange args, size_t reads, int64_t flops,
                 int64_t bytes) {
    SmallVector<int64_t> access(args.size(), plan::kWrite);
    std::fill(access.begin(), access.begin() + reads, plan::kRead);
    plan::LaunchOp::create(b, op->getLoc(), kernel.getSymName(), args, access, flops, bytes,
                           classOf(op), kernel.getSymName(), 0, ArrayRef<int64_t>(), -1,
                           IntegerAttr(), plan::SubstituteAttr());
    ++steps;
  }

  /// One launch, and for every sum over rows a second that adds the parts.
  LogicalResult launch(FusedOp group) {
    SmallVector<Value> args =
        llvm::map_to_vector(group.getInputs(), [&](Value v) { return source(v); });
    size_t reads = args.size();
    RowPartition partition = partitionRows(group, plan.target);
    SmallVector<std::pair<Value, Value>> sums; // partial buffer, result
    SmallVector<Value> partials;
    for (OpResult result : group->getResults()) {
      if (!sumsOverRows(group, result.getResultNumber())) {
        args.push_back(target(result));
        continue;
      }
      int64_t columns = build::typeOf(result).getNumElements();
      Value partial = scratch(group, {partition.grains(), columns}, b.getF32Type());
      partials.push_back(partial);
      sums.emplace_back(partial, result);
    }
    llvm::append_range(args, partials);
    SmallVector<Type> layouts = llvm::map_to_vector(args, [](Value v) { return v.getType(); });
    addLaunch(group, plan.kernel(group, layouts, partition), args, reads, group.flops(),
              group.bytes());
    for (auto [partial, result] : sums) {
      Value to = target(result);
      int64_t columns = build::typeOf(result).getNumElements();
      int64_t bytes = 4 * columns * (partition.grains() + 1);
      addLaunch(group,
                plan.combineKernel(partition.grains(), columns, {partial.getType(), to.getType()},
                                   group.getLoc()),
                {partial, to}, 1, columns * partition.grains(), bytes);
    }
    return success();
  }

  /// Outputs, and the variables that nothing wrote in place.
  void finish() {
    ReturnOp end = entry.getReturn();
    // A value that lives in a variable is moved out before any variable changes.
    auto detached = [&](Value value) {
      Value buffer = source(value);
      if (plan::placeOf(buffer).buffer.isTransient())
        return buffer;
      Value apart = newBuffer(build::typeOf(value), plan::Category::other, value.getLoc());
      copy(end.getLoc(), buffer, apart);
      return apart;
    };
    SmallVector<std::pair<Value, Value>> moves;
    for (auto [symbol, value] :
         llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
      Value variable = plan.variable(symbol.getAttr());
      if (source(value) != variable)
        moves.emplace_back(detached(value), variable);
    }
    SmallVector<Value> outputs = llvm::map_to_vector(end.getOutputs(), detached);
    for (auto [from, to] : moves)
      copy(end.getLoc(), from, to);
    for (auto [i, name, buffer] :
         llvm::enumerate(end.getOutputNames().getAsRange<StringAttr>(), outputs)) {
      FlatSymbolRefAttr parameter = end.gradientOf(i);
      plan::OutputOp::create(b, end.getLoc(), name, buffer,
                             parameter ? parameter.getAttr() : StringAttr());
    }
  }

  PlanWriter &plan;
  EntryOp entry;
  ProgramLiveness liveness;
  plan::ProgramOp program;
  DenseMap<Value, Value> buffers;
  DenseSet<std::pair<Operation *, unsigned>> placed;
  DenseSet<std::pair<Operation *, Operation *>> takenAt;
  DenseMap<int64_t, CompactOp> compactions; // by number
  Run open;
};

struct ToPlan : impl::ToPlanBase<ToPlan> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    OpBuilder at(model);
    PlanWriter writer(model, at);
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (!entry.isProgram())
        continue;
      ProgramWriter program(writer, entry);
      if (failed(program.run()))
        return signalPassFailure();
      steps += program.steps;
      inPlace += program.inPlace;
    }
    kernels += writer.kernelCount();
    model.erase();
  }
};

} // namespace
} // namespace hydra
