// Text and verification of the plan dialect.
#include "dialects/plan/Plan.h"
#include "dialects/plan/FusedSteps.h"
#include "dialects/plan/KernelExpansion.h"
#include "dialects/plan/Ordering.h"

#include "dialects/hydra/Reference.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

/// `[64, 64]`.
static ParseResult parseDimensions(AsmParser &parser, SmallVector<int64_t> &shape) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(shape.emplace_back()); });
}
static void printDimensions(AsmPrinter &p, ArrayRef<int64_t> shape) {
  p << '[' << llvm::interleaved(shape) << ']';
}

/// `(read %a : memref<…>, write %b : memref<…>)`.
static ParseResult parseArgs(OpAsmParser &parser,
                             SmallVectorImpl<OpAsmParser::UnresolvedOperand> &args,
                             SmallVectorImpl<Type> &types, DenseI64ArrayAttr &access) {
  SmallVector<int64_t> kinds;
  auto one = [&]() -> ParseResult {
    StringRef word;
    if (parser.parseKeyword(&word) || parser.parseOperand(args.emplace_back()) ||
        parser.parseColonType(types.emplace_back()))
      return failure();
    if (!llvm::is_contained({"read", "write", "update"}, word))
      return parser.emitError(parser.getNameLoc())
             << "unknown access '" << word << "'; expected read, write or update";
    kinds.push_back(word == "read"    ? hydra::plan::kRead
                    : word == "write" ? hydra::plan::kWrite
                                      : hydra::plan::kUpdate);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  access = parser.getBuilder().getDenseI64ArrayAttr(kinds);
  return success();
}
static void printArgs(OpAsmPrinter &p, Operation *, OperandRange args, TypeRange types,
                      DenseI64ArrayAttr access) {
  static constexpr StringRef words[] = {"read ", "write ", "update "};
  p << '(';
  for (size_t i = 0; i < args.size(); ++i)
    p << (i ? ", " : "") << words[access[i]] << args[i] << " : " << types[i];
  p << ')';
}

/// `, bias %b : memref<…> weight_scale %s : memref<…>, scales %a : memref<…>, %b : memref<…>`, each
/// where it is there. By hand: a generated parser would take any first comma for that of a bias.
using MaybeOperand = std::optional<OpAsmParser::UnresolvedOperand>;
static ParseResult parseBesideFactors(OpAsmParser &parser, MaybeOperand &bias, Type &biasType,
                                      MaybeOperand &weightScale, Type &weightScaleType,
                                      MaybeOperand &scaleA, Type &scaleAType, MaybeOperand &scaleB,
                                      Type &scaleBType) {
  const auto parseOne = [&](MaybeOperand &operand, Type &type) {
    return parser.parseOperand(operand.emplace()) || parser.parseColonType(type);
  };
  bool comma = succeeded(parser.parseOptionalComma());
  if (comma && succeeded(parser.parseOptionalKeyword("bias"))) {
    if (parseOne(bias, biasType))
      return failure();
    comma = false;
  }
  if (!comma && succeeded(parser.parseOptionalKeyword("weight_scale")) &&
      parseOne(weightScale, weightScaleType))
    return failure();
  if (comma || succeeded(parser.parseOptionalComma()))
    return failure(parser.parseKeyword("scales") || parseOne(scaleA, scaleAType) ||
                   parser.parseComma() || parseOne(scaleB, scaleBType));
  return success();
}
static void printBesideFactors(OpAsmPrinter &p, Operation *, Value bias, Type biasType,
                               Value weightScale, Type weightScaleType, Value scaleA,
                               Type scaleAType, Value scaleB, Type scaleBType) {
  if (bias)
    p << ", bias " << bias << " : " << biasType;
  if (weightScale)
    p << " weight_scale " << weightScale << " : " << weightScaleType;
  if (scaleA)
    p << ", scales " << scaleA << " : " << scaleAType << ", " << scaleB << " : " << scaleBType;
}

/// `(%x by 1024 : memref<…>)`.
static ParseResult parseMoving(OpAsmParser &parser,
                               SmallVectorImpl<OpAsmParser::UnresolvedOperand> &moving,
                               SmallVectorImpl<Type> &types, DenseI64ArrayAttr &strides) {
  SmallVector<int64_t> bytes;
  auto one = [&]() -> ParseResult {
    return failure(parser.parseOperand(moving.emplace_back()) || parser.parseKeyword("by") ||
                   parser.parseInteger(bytes.emplace_back()) ||
                   parser.parseColonType(types.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  strides = parser.getBuilder().getDenseI64ArrayAttr(bytes);
  return success();
}
static void printMoving(OpAsmPrinter &p, Operation *, OperandRange moving, TypeRange types,
                        DenseI64ArrayAttr strides) {
  p << '(';
  for (size_t i = 0; i < moving.size(); ++i)
    p << (i ? ", " : "") << moving[i] << " by " << strides[i] << " : " << types[i];
  p << ')';
}

#include "dialects/plan/PlanDialect.cpp.inc"
#include "dialects/plan/PlanEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttributes.cpp.inc"
#include "dialects/plan/PlanInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

namespace hydra::plan {

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/plan/PlanAttributes.cpp.inc"
      >();
}

bool sameElements(Value a, Value b) {
  if (a == b)
    return true;
  Place x = placeOf(a), y = placeOf(b);
  return x.buffer == y.buffer && x.bytes == y.bytes && a.getType() == b.getType();
}

Place placeOf(Value v) {
  Place place;
  while (auto view = v.getDefiningOp<ViewOp>()) {
    place.bytes += view.getPlus() * elementBytes(cast<MemRefType>(view.getType()).getElementType());
    v = view.getSource();
  }
  place.buffer = v.getDefiningOp<BufferOp>();
  return place;
}

SmallVector<int64_t> stridesOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return denseStrides(type.getShape());
  return strides;
}

int64_t alignmentOf(Value buffer) {
  int64_t alignment = 256;
  auto keep = [&](int64_t bytes) {
    if (bytes != 0)
      alignment = std::min(alignment, bytes & -bytes);
  };
  Place place = placeOf(buffer);
  keep(place.buffer.getOffset().value_or(0) + place.bytes);
  for (Operation *user : buffer.getUsers())
    if (auto loop = dyn_cast<LoopOp>(user))
      for (auto [value, stride] : llvm::zip(loop.getMoving(), loop.getStrides()))
        if (value == buffer)
          keep(stride);
  return alignment;
}

int64_t extentBytes(MemRefType type) {
  int64_t last = 0;
  for (auto [d, stride] : llvm::zip(type.getShape(), stridesOf(type)))
    last += (d - 1) * stride;
  return (last + 1) * elementBytes(type.getElementType());
}

MemRefType bufferType(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides, Type element) {
  if (strides == ArrayRef<int64_t>(denseStrides(shape)))
    return MemRefType::get(shape, element);
  return MemRefType::get(shape, element,
                         StridedLayoutAttr::get(element.getContext(), /*offset=*/0, strides));
}

//===-- Steps -------------------------------------------------------------------------------===//

SmallVector<Access> LaunchOp::getAccesses() {
  return llvm::map_to_vector(getAccess(), [](int64_t kind) { return static_cast<Access>(kind); });
}

/// The first arguments are read, the rest written.
static SmallVector<Access> readsFirst(Operation *step, unsigned reads) {
  SmallVector<Access> accesses(step->getNumOperands(), kWrite);
  std::fill_n(accesses.begin(), reads, kRead);
  return accesses;
}

SmallVector<Access> MatmulOp::getAccesses() {
  const unsigned reads =
      2 + (getBias() ? 1 : 0) + (getWeightScale() ? 1 : 0) + (getScaleA() ? 2 : 0);
  SmallVector<Access> accesses = readsFirst(*this, reads);
  if (getAccumulate())
    accesses[reads] = kUpdate;
  return accesses;
}
bool MatmulOp::isPacked() {
  if (!getWeightScale())
    return false;
  auto type = cast<MemRefType>(getWeightScale().getType());
  return type.getRank() == 2 && type.getElementType().isBF16();
}
void MatmulOp::countOnMultiprocessors(int64_t count) { setMultiprocessors(count); }
/// What a matmul rounds its operands to, or else their format.
static Type formatOfFactors(std::optional<Type> compute, Value operand) {
  return compute.value_or(cast<MemRefType>(operand.getType()).getElementType());
}
Type MatmulOp::computedIn() { return formatOfFactors(getCompute(), getA()); }
Type GroupedLinearOp::computedIn() { return formatOfFactors(getCompute(), getX()); }
Type GroupedOuterOp::computedIn() { return formatOfFactors(getCompute(), getA()); }

SmallVector<Access> AttentionOp::getAccesses() { return readsFirst(*this, 3); }
SmallVector<Access> AttentionGradOp::getAccesses() { return readsFirst(*this, 6); }
SmallVector<Access> CachedAttentionOp::getAccesses() {
  return {kRead, kRead, kRead, kRead, kWrite, kUpdate, kUpdate};
}
SmallVector<Access> SampleOp::getAccesses() {
  return {kRead, kRead, kRead, kRead, kRead, kWrite, kUpdate};
}
SmallVector<Access> CopyOp::getAccesses() { return readsFirst(*this, 1); }
SmallVector<Access> TransferOp::getAccesses() { return readsFirst(*this, 1); }
SmallVector<Access> FillOp::getAccesses() { return readsFirst(*this, 0); }
SmallVector<Access> EmbeddingGradOp::getAccesses() { return readsFirst(*this, 2); }
SmallVector<Access> CompactOp::getAccesses() { return readsFirst(*this, 1); }
SmallVector<Access> RouteOp::getAccesses() { return readsFirst(*this, 1); }
SmallVector<Access> CountExponentsOp::getAccesses() {
  SmallVector<Access> accesses = readsFirst(*this, getTensors().size());
  accesses.back() = kUpdate;
  return accesses;
}
SmallVector<Access> GroupedLinearOp::getAccesses() { return readsFirst(*this, 3); }
SmallVector<Access> GroupedOuterOp::getAccesses() { return readsFirst(*this, 3); }
SmallVector<Access> FftOp::getAccesses() { return readsFirst(*this, 1); }
SmallVector<Access> LinearRecurrenceOp::getAccesses() {
  return readsFirst(*this, getReads().size());
}
SmallVector<Access> AllGatherOp::getAccesses() { return readsFirst(*this, 1); }
SmallVector<Access> AllToAllOp::getAccesses() { return readsFirst(*this, 1); }

RankGroup StepInterface::group() {
  RankGroup group;
  const int64_t axis = getMeshAxis();
  if (axis < 0)
    return group;
  int64_t number = 0;
  for (auto one : (*this)->getParentOfType<PlanModuleOp>().getBody().getOps<MeshAxisOp>()) {
    const auto size = static_cast<int64_t>(one.getSize());
    group.world *= size;
    if (number == axis)
      group.ranks = size;
    else if (number > axis)
      group.stride *= size;
    ++number;
  }
  return group;
}

namespace {

/// Of a step that meets nobody: its arithmetic alone and its bytes alone, each with a launch.
struct AloneSeconds {
  double compute, memory;
};

AloneSeconds aloneSeconds(StepInterface step, const Roofline &rates) {
  Arithmetic kind = Arithmetic::Other;
  if (step.getOpClass() == OpClass::gemm)
    kind = Arithmetic::Matmul;
  else if (step.getOpClass() == OpClass::attention)
    kind = Arithmetic::Attention;
  std::string format;
  llvm::raw_string_ostream(format) << step.computedIn();
  return {rates.seconds(kind, format, step.getFlops(), 0),
          rates.seconds(kind, format, 0, step.getBytes())};
}

} // namespace

double StepInterface::seconds(const Roofline &rates) {
  if (meetsRanks())
    return rates.collectiveSeconds(group(), getSentBytes(), getBytes());
  if (getLink())
    return rates.transferSeconds(getBytes());
  const auto [compute, memory] = aloneSeconds(*this, rates);
  const double seconds = std::max(compute, memory);
  auto exposed = (*this)->getAttrOfType<FloatAttr>(kExposedAttr);
  return exposed ? seconds + exposed.getValueAsDouble() * std::min(compute, memory) : seconds;
}

Bound StepInterface::boundOf(const Roofline &rates) {
  if (getLink())
    return Bound::exchange;
  const auto [compute, memory] = aloneSeconds(*this, rates);
  if (std::max(compute, memory) < 2 * rates.launchSeconds)
    return Bound::launch;
  return compute > memory ? Bound::compute : Bound::memory;
}

bool AllGatherOp::meetsRanks() { return true; }
bool AllToAllOp::meetsRanks() { return true; }
int64_t AllGatherOp::getMeshAxis() { return getAxis(); }
int64_t AllToAllOp::getMeshAxis() { return getAxis(); }
uint64_t AllGatherOp::getSentBytes() { return getWireBytes(); }
uint64_t AllToAllOp::getSentBytes() { return getWireBytes(); }

std::optional<support::Link> TransferOp::getLink() {
  return placeOf(getFrom()).buffer.isOnHost() ? support::Link::ToDevice : support::Link::ToHost;
}

//===-- Verifiers ---------------------------------------------------------------------------===//

LogicalResult BufferOp::verify() {
  if (isTransient() == isa<PlanModuleOp>((*this)->getParentOp()))
    return emitOpError(
        "persistent and host buffers belong into the module, transient ones into a program");
  auto type = cast<MemRefType>(getType());
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return emitOpError("must be dense and of static shape");
  if (getOffset() && (*getOffset() < 0 || *getOffset() % 16))
    return emitOpError() << "lies at byte " << *getOffset() << "; expected a multiple of 16";
  return success();
}

LogicalResult ViewOp::verify() {
  auto from = cast<MemRefType>(getSource().getType()), to = cast<MemRefType>(getType());
  if (from.getElementType() != to.getElementType())
    return emitOpError("changes the element type");
  int64_t element = elementBytes(to.getElementType());
  int64_t end = static_cast<int64_t>(getPlus()) * element + extentBytes(to);
  if (getPlus() < 0 || end > extentBytes(from))
    return emitOpError() << "ends " << end << " bytes behind the start of a buffer of "
                         << extentBytes(from);
  return success();
}

int64_t VariableOp::getNumElements() {
  if (!getMember())
    return cast<MemRefType>(getBuffer().getType()).getNumElements() * (getPacked() ? 2 : 1);
  return llvm::product_of(getMember()->getShape());
}

LogicalResult VariableOp::verify() {
  std::optional<MemberAttr> member = getMember();
  auto type = cast<MemRefType>(getBuffer().getType());
  if (getPacked() && (member || getRole() != VariableRole::parameter ||
                      !type.getElementType().isSignlessInteger(8)))
    return emitOpError("is packed; expected a parameter by itself, in bytes of i8");
  if (!member)
    return success();
  if (!type.getLayout().isIdentity())
    return emitOpError() << "is a member of a buffer with strides; a unit is dense";
  int64_t pieces = 1;
  const SmallVector<StringRef, 2> over = member->getAxis()
                                             ? MeshAttr::axesOf(member->getAxis().getValue())
                                             : SmallVector<StringRef, 2>();
  for (auto [i, name] : llvm::enumerate(over)) {
    auto axes = (*this)->getParentOfType<PlanModuleOp>().getBody().getOps<MeshAxisOp>();
    auto axis =
        llvm::find_if(axes, [&, name = name](MeshAxisOp op) { return op.getName() == name; });
    if (axis == axes.end())
      return emitOpError() << "is cut over \"" << name << "\", which is no axis of the mesh";
    if (llvm::is_contained(ArrayRef(over).take_front(i), name))
      return emitOpError() << "is cut over \"" << name << "\" twice";
    pieces *= (*axis).getSize();
  }
  int64_t unit = 0, end = member->getOffset();
  bool fits = !llvm::MulOverflow(type.getNumElements(), pieces, unit) && end >= 0;
  int64_t count = 1;
  for (int64_t size : member->getShape())
    fits = fits && size >= 1 && !llvm::MulOverflow(count, size, count);
  fits = fits && !llvm::AddOverflow(end, count, end) && end <= unit;
  if (!fits)
    return emitOpError() << "with the elements " << *member << " does not fit into a unit of "
                         << unit;
  return success();
}

LogicalResult KernelOp::verify() {
  if (!getCounted())
    return success();
  const auto each = static_cast<int64_t>(*getCounted());
  if (getSource() || getCombines())
    return emitOpError("is counted but no group of row-wise operations");
  if (each < 1 || static_cast<int64_t>(getRows()) % each != 0)
    return emitOpError() << "has " << getRows() << " rows, counted by " << each;
  ArrayRef<Attribute> layouts = getLayouts().getValue();
  auto count = layouts.empty() ? MemRefType()
                               : dyn_cast<MemRefType>(cast<TypeAttr>(layouts.back()).getValue());
  if (!count || count.getRank() != 0 || !count.getElementType().isInteger(32))
    return emitOpError("is counted by something that is not one i32");
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto module = (*this)->getParentOfType<PlanModuleOp>();
  auto kernel =
      module ? symbols.lookupSymbolIn<KernelOp>(module, getKernelAttr().getAttr()) : KernelOp();
  if (!kernel)
    return emitOpError() << "there is no kernel @" << getKernel();
  int64_t each = kernel.getLayouts().size(), all = getArgs().size();
  int64_t most = each * kernel.getInstances().value_or(1);
  if (all != each && (each == 0 || all % each != 0 || all > most))
    return emitOpError() << "has " << all << " arguments; expected " << each
                         << " for each of up to " << kernel.getInstances().value_or(1)
                         << " instances";
  if (kernel.getSource() && getArgs().size() > kMostArguments)
    return emitOpError() << "has " << all << " arguments; a launch takes at most "
                         << kMostArguments;
  if (getAccess().size() != getArgs().size())
    return emitOpError() << "has " << getArgs().size() << " arguments but " << getAccess().size()
                         << " kinds of access";
  for (int64_t kind : getAccess())
    if (kind < kRead || kind > kUpdate)
      return emitOpError() << "has the unknown access " << kind;
  return success();
}

LogicalResult MatmulOp::verify() {
  if (getSums() && !getGelu())
    return emitOpError("saves sums, which only gelu leaves");
  if (!getScaleA() != !getScaleB() ||
      (getScaleA() && (getBias() || getGelu() || getAccumulate() || getCompute())))
    return emitOpError("has scales; expected one for each operand of a plain matmul");
  const bool isInt8 = cast<MemRefType>(getB().getType()).getElementType().isSignlessInteger(8);
  if (isInt8 != (getWeightScale() != nullptr) ||
      (isInt8 && (getScaleA() || getGelu() || getAccumulate() || getCompute())))
    return emitOpError("has a weight of i8 or a scale of one; expected both of a plain matmul");
  return success();
}

LogicalResult CopyOp::verify() {
  auto from = cast<MemRefType>(getFrom().getType()), to = cast<MemRefType>(getTo().getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError() << "copies " << from << " to " << to
                         << "; expected the same shape and element type";
  return success();
}

LogicalResult TransferOp::verify() {
  auto from = cast<MemRefType>(getFrom().getType()), to = cast<MemRefType>(getTo().getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType() ||
      denseStrides(from.getShape()) != stridesOf(from) ||
      denseStrides(to.getShape()) != stridesOf(to))
    return emitOpError() << "moves " << from << " to " << to
                         << "; expected two dense buffers of the same shape and element type";
  if (placeOf(getFrom()).buffer.isOnHost() == placeOf(getTo()).buffer.isOnHost())
    return emitOpError("moves between two buffers of one side; expected one of the host's memory");
  return success();
}

/// `factor`: how many elements y has for each of x, by how many ranks there are.
template <typename Op>
static LogicalResult verifyCollective(Op op, llvm::function_ref<int64_t(int64_t)> factor) {
  auto module = op->template getParentOfType<PlanModuleOp>();
  if (!isa<ProgramOp>(op->getParentOp()))
    return op.emitOpError("stands in a loop or a case; ranks meet in programs only");
  auto axes = module.getBody().template getOps<MeshAxisOp>();
  const int64_t count = std::distance(axes.begin(), axes.end()), axis = op.getAxis();
  if (axis < 0 || axis >= count)
    return op.emitOpError() << "goes along axis " << axis << " of a mesh of " << count;
  const int64_t ranks = (*std::next(axes.begin(), axis)).getSize();
  auto x = cast<MemRefType>(op.getX().getType()), y = cast<MemRefType>(op.getY().getType());
  if (x.getElementType() != y.getElementType() ||
      x.getNumElements() * factor(ranks) != y.getNumElements())
    return op.emitOpError() << "moves " << x << " to " << y << " between " << ranks << " ranks";
  return success();
}

LogicalResult AllGatherOp::verify() {
  return verifyCollective(*this, [](int64_t ranks) { return ranks; });
}

LogicalResult AllToAllOp::verify() {
  return verifyCollective(*this, [](int64_t) { return 1; });
}

LogicalResult LoopOp::verify() {
  if (getCount() < 1)
    return emitOpError() << "runs " << getCount() << " times; expected at least once";
  if (getSlices().value_or(1) < 1)
    return emitOpError() << "has " << *getSlices() << " slices; expected at least one";
  if (getStrides().size() != getMoving().size())
    return emitOpError() << "moves " << getMoving().size() << " buffers by " << getStrides().size()
                         << " strides";
  for (auto [value, stride] : llvm::zip(getMoving(), getStrides())) {
    Place place = placeOf(value);
    int64_t last = place.bytes + (getCount() - 1) * stride;
    int64_t end = std::max(place.bytes, last) + extentBytes(cast<MemRefType>(value.getType()));
    if (std::min(place.bytes, last) < 0 ||
        end > extentBytes(cast<MemRefType>(place.buffer.getType())))
      return emitOpError() << "moves a buffer out of its "
                           << extentBytes(cast<MemRefType>(place.buffer.getType())) << " bytes";
  }
  return success();
}

LogicalResult SwitchOp::verify() {
  auto type = cast<MemRefType>(getSelector().getType());
  if (type.getRank() != 0 || !type.getElementType().isInteger(32))
    return emitOpError("selects by something that is not one i32");
  return success();
}

/// Of what is in the host's memory.
static LogicalResult verifyHostMemory(ProgramOp program) {
  const WalkResult found = program.walk([](Operation *op) {
    if (isa<TransferOp, ViewOp>(op))
      return WalkResult::advance();
    for (Value operand : op->getOperands())
      if (BufferOp buffer = placeOf(operand).buffer; buffer && buffer.isOnHost()) {
        op->emitOpError("touches memory of the host, which only transfers do");
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(found.wasInterrupted());
}

LogicalResult ProgramOp::verifyRegions() {
  return failure(failed(verifyHostMemory(*this)) || failed(verifyFusedSteps(*this)) ||
                 failed(verifyOrder(*this)));
}

} // namespace hydra::plan
