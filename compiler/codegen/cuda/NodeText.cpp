// Which functions of templates/ and of CUDA compute a node.
#include "compiler/codegen/cuda/NodeText.h"

#include "compiler/codegen/cuda/StepLauncher.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

static std::string constantText(const RowNode &node) {
  if (isFloat(node.type))
    return formatv("__int_as_float({0})", llvm::bit_cast<int32_t>(static_cast<float>(node.value)));
  return formatv("{0}", static_cast<int64_t>(node.value));
}

static std::string quotient(Divisions divisions) {
  return divisions == Divisions::Branchless ? "hopper_update::quotient" : "__fdiv_rn";
}
static std::string root(Divisions divisions) {
  return divisions == Divisions::Branchless ? "hopper_update::root" : "__fsqrt_rn";
}

static std::string unaryText(const RowNode &node, const std::string &x, Divisions divisions) {
  switch (static_cast<RowUnary>(node.code)) {
  case RowUnary::Neg:
    return "-" + x;
  case RowUnary::Exp:
    return "exponential(" + x + ")";
  case RowUnary::Log:
    return "logf(" + x + ")";
  case RowUnary::Sqrt:
    return root(divisions) + "(" + x + ")";
  case RowUnary::Rsqrt:
    return quotient(divisions) + "(1.0f, " + root(divisions) + "(" + x + "))";
  case RowUnary::Tanh:
    return "tanhf(" + x + ")";
  case RowUnary::Erf:
    return "erff(" + x + ")";
  case RowUnary::Sigmoid:
    return "sigmoid(" + x + ")";
  case RowUnary::Sin:
    return "sinf(" + x + ")";
  case RowUnary::Cos:
    return "cosf(" + x + ")";
  case RowUnary::PowerOfTwo:
    return "powerOfTwo(" + x + ")";
  case RowUnary::Bits:
    return "__float_as_int(" + x + ")";
  case RowUnary::OfBits:
    return "__int_as_float(" + x + ")";
  }
  llvm_unreachable("thirteen functions");
}

static std::string binaryText(const RowNode &node, const std::string &x, const std::string &y,
                              Divisions divisions) {
  auto call = [&](const char *real, const char *integer) {
    if (isFloat(node.type))
      return formatv("{0}({1}, {2})", real, x, y).str();
    return formatv(integer, x, y).str();
  };
  switch (static_cast<RowBinary>(node.code)) {
  case RowBinary::Add:
    return call("__fadd_rn", "int(unsigned({0}) + unsigned({1}))");
  case RowBinary::Sub:
    return call("__fsub_rn", "int(unsigned({0}) - unsigned({1}))");
  case RowBinary::Mul:
    return call("__fmul_rn", "int(unsigned({0}) * unsigned({1}))");
  case RowBinary::Div:
    return call(quotient(divisions).c_str(), "{0} / {1}");
  case RowBinary::Max:
    return call("larger", "max({0}, {1})");
  case RowBinary::Min:
    return call("smaller", "min({0}, {1})");
  case RowBinary::MulHigh:
    return formatv("int(__umulhi(unsigned({0}), unsigned({1})))", x, y);
  case RowBinary::Xor:
    return formatv("({0} ^ {1})", x, y);
  }
  llvm_unreachable("eight operations");
}

static StringRef comparisonText(const RowNode &node) {
  static constexpr StringRef texts[] = {"==", "!=", "<", "<=", ">", ">="};
  return texts[node.code];
}

std::string roundedText(RowType type, const std::string &x) {
  return formatv("rounded<{0}>(float({1}))", support::formatOf(formatOf(type)).cuda, x);
}

std::string castText(RowType type, const std::string &x) {
  if (isNarrow(type))
    return roundedText(type, x);
  return formatv(type == RowType::I16 ? "{0}(int16({1}))" : "{0}({1})", numberType(type), x);
}

std::optional<std::string>
madeText(const RowNode &node, llvm::function_ref<std::string(unsigned)> name, Divisions divisions) {
  const auto input = [&](unsigned i) { return name(node.inputs[i]); };
  switch (node.kind) {
  case RowNode::Kind::Constant:
    return constantText(node);
  case RowNode::Kind::Unary:
    return unaryText(node, input(0), divisions);
  case RowNode::Kind::Binary:
    return binaryText(node, input(0), input(1), divisions);
  case RowNode::Kind::Compare:
    return formatv("{0} {1} {2}", input(0), comparisonText(node), input(1)).str();
  case RowNode::Kind::Select:
    return formatv("{0} ? {1} : {2}", input(0), input(1), input(2)).str();
  case RowNode::Kind::Cast:
    return castText(node.type, input(0));
  default:
    return std::nullopt;
  }
}

StringRef numberType(RowType type) {
  return isFloat(type) ? "float" : type == RowType::I1 ? "bool" : "int";
}

std::string loadedText(RowType type, const std::string &element) {
  if (isFloat(type))
    return "widen(" + element + ")";
  return type == RowType::I1 ? element + " != 0" : element;
}

std::string frequenciesText(const std::string &name, const Rotation &rotation, int64_t pairs) {
  std::string numbers;
  for (int64_t i = 0; i < pairs; ++i)
    numbers +=
        (i > 0 ? ", " : "") +
        doubleText(std::pow(rotation.base, -static_cast<double>(i) / static_cast<double>(pairs)));
  return "static constexpr double " + name + "[] = {" + numbers + "};\n";
}

} // namespace hydra::cuda
