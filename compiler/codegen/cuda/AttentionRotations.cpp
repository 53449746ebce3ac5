// Which launches rotate gradients of attention, and the text by which its kernels do so.
#include "compiler/codegen/cuda/AttentionRotations.h"

#include "compiler/codegen/cuda/NodeText.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;
using Kind = hydra::RowNode::Kind;

namespace hydra::cuda {

namespace {

// Dimensions of gradients.
enum : unsigned { kBatch, kRow, kHead, kColumn, kRank };

/// The first of the heads of `whole` that are `part`; nothing where `part` is something else.
std::optional<int64_t> firstHeadOf(Value part, Value whole) {
  const MemRefType type = typeOf(part), all = typeOf(whole);
  const plan::Place place = plan::placeOf(part), of = plan::placeOf(whole);
  if (place.buffer != of.buffer || type.getElementType() != all.getElementType() ||
      type.getRank() != kRank || all.getRank() != kRank)
    return std::nullopt;
  const SmallVector<int64_t> own = plan::stridesOf(type), strides = plan::stridesOf(all);
  for (unsigned d : {kBatch, kRow, kColumn})
    if (type.getDimSize(d) != all.getDimSize(d) || (type.getDimSize(d) > 1 && own[d] != strides[d]))
      return std::nullopt;
  if (type.getDimSize(kHead) > 1 && own[kHead] != strides[kHead])
    return std::nullopt;
  const int64_t apart = strides[kHead] * elementBytes(type.getElementType()),
                bytes = place.bytes - of.bytes;
  if (apart <= 0 || bytes < 0 || bytes % apart != 0 ||
      bytes / apart + type.getDimSize(kHead) > all.getDimSize(kHead))
    return std::nullopt;
  return bytes / apart;
}

/// Whether a node is a number for each row, or for all, that is made of such alone: a position.
bool isOfRow(const RowNode &node) {
  switch (node.kind) {
  case Kind::Input:
  case Kind::Constant:
  case Kind::Unary:
  case Kind::Binary:
  case Kind::Compare:
  case Kind::Select:
  case Kind::Cast:
    return !variesOverColumns(node.form);
  default:
    return false;
  }
}

/// The node whose numbers, rounded to the type of the result, are all that a group yields; nothing
/// where it is no rotation.
std::optional<unsigned> rotationIn(const RowProgram &program) {
  if (program.results.size() != 1)
    return std::nullopt;
  const RowResult &result = program.results.front();
  unsigned node = result.node;
  if (program.nodes[node].kind == Kind::Cast && program.nodes[node].type == result.type)
    node = program.nodes[node].inputs[0];
  if (program.nodes[node].kind != Kind::Rotate)
    return std::nullopt;
  const RowDomain &domain = program.domain;
  const RowType type = program.inputs[program.nodes[node].code].type;
  if (domain.rowShape.size() != kHead || domain.innerShape.size() != kRank - kHead ||
      program.nodes[node].rotation.length != domain.rowShape[kRow] || type != result.type ||
      !isNarrow(type))
    return std::nullopt;
  for (unsigned i = 0; i < node; ++i)
    if (!isOfRow(program.nodes[i]))
      return std::nullopt;
  return node;
}

/// Whether an argument is a number for each row of a batch, or one for all.
bool isOfRows(Value value, const RowDomain &domain) {
  const ArrayRef<int64_t> shape = typeOf(value).getShape();
  return shape.empty() || shape == ArrayRef(domain.rowShape);
}

} // namespace

Value GradientRotation::from() const {
  plan::LaunchOp of = launch;
  return of.getArgs()[program.nodes[node].code];
}
Value GradientRotation::to() const {
  plan::LaunchOp of = launch;
  return of.getArgs().back();
}

std::optional<GradientRotation> gradientRotationOf(plan::AttentionGradOp op,
                                                   plan::LaunchOp launch) {
  std::optional<RowProgram> program = programOf(launch);
  if (!program)
    return std::nullopt;
  const std::optional<unsigned> node = rotationIn(*program);
  if (!node)
    return std::nullopt;
  GradientRotation rotation{launch, std::move(*program), *node};
  const unsigned from = rotation.program.nodes[*node].code;
  for (unsigned i = 0; i < rotation.program.inputs.size(); ++i)
    if (i != from && !isOfRows(launch.getArgs()[i], rotation.program.domain))
      return std::nullopt;
  if (typeOf(rotation.to()).getShape() != typeOf(rotation.from()).getShape())
    return std::nullopt;
  // Heads of the one are side by side, and of the other: together they are all.
  rotation.ofQueries = firstHeadOf(op.getDq(), rotation.from());
  rotation.ofKeys = firstHeadOf(op.getDk(), rotation.from());
  const int64_t heads = (rotation.ofQueries ? typeOf(op.getDq()).getDimSize(kHead) : 0) +
                        (rotation.ofKeys ? typeOf(op.getDk()).getDimSize(kHead) : 0);
  const bool isSame = rotation.ofQueries && rotation.ofQueries == rotation.ofKeys;
  if (isSame || heads != typeOf(rotation.from()).getDimSize(kHead))
    return std::nullopt;
  return rotation;
}

Value rotatedPlace(OpBuilder &b, const GradientRotation &rotation, MemRefType type,
                   int64_t firstHead) {
  const SmallVector<int64_t> strides = plan::stridesOf(typeOf(rotation.to()));
  return plan::ViewOp::create(b, rotation.launch->getLoc(),
                              plan::bufferType(type.getShape(), strides, type.getElementType()),
                              rotation.to(), b.getI64IntegerAttr(firstHead * strides[kHead]));
}

RotationText rotationText(const GradientRotation &rotation, Arguments &arguments) {
  const RowProgram &program = rotation.program;
  const Rotation &r = rotation.rotation();
  plan::LaunchOp launch = rotation.launch;
  std::string position = "row", made;
  if (const RowNode &node = program.nodes[rotation.node]; !node.inputs.empty()) {
    SmallVector<std::string> inputs(program.inputs.size());
    const auto name = [](unsigned number) { return "n" + std::to_string(number); };
    const auto elementOf = [&](unsigned input) {
      std::string &element = inputs[input];
      if (element.empty()) {
        const Value value = launch.getArgs()[input];
        const SmallVector<int64_t> strides = plan::stridesOf(typeOf(value));
        element = arguments.add(value, plan::kRead) +
                  (strides.empty() ? std::string("[0]")
                                   : formatv("[int64(sequence) * {0} + int64(row) * {1}]",
                                             strides[kBatch], strides[kRow])
                                         .str());
      }
      return element;
    };
    for (unsigned i = 0; i < rotation.node; ++i) {
      const RowNode &of = program.nodes[i];
      const std::string value = of.kind == Kind::Input ? loadedText(of.type, elementOf(of.code))
                                                       : *madeText(of, name, Divisions::Rounded);
      made += formatv("const {0} {1} = {2}; ", numberType(of.type), name(i), value);
    }
    position = name(node.inputs[0]);
  }
  const auto truth = [](bool is) { return is ? "true" : "false"; };
  return {frequenciesText("frequencies", r, typeOf(rotation.from()).getDimSize(kColumn) / 2),
          formatv(", rotation<{0}, {1}>(frequencies, [=](int sequence, int row) {{ {2}return "
                  "uint32({3}){4}; })",
                  truth(r.halfSplit), truth(r.inverse), made, position,
                  r.period > 0 ? formatv(" % {0}u", r.period).str() : "")
              .str()};
}

} // namespace hydra::cuda
