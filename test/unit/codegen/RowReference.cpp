// Every node holds a number for each element of the domain; nothing is clever.
#include "test/unit/codegen/RowReference.h"

#include "test/support/WordArithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace hydra;
using namespace hydra::test;

double hydra::test::roundTo(double x, RowType type) {
  switch (type) {
  case RowType::F32:
    return static_cast<float>(x);
  case RowType::BF16: {
    uint32_t u = std::bit_cast<uint32_t>(static_cast<float>(x));
    if (std::isnan(x))
      return x;
    u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000;
    return std::bit_cast<float>(u);
  }
  case RowType::F16:
  case RowType::E4M3:
  case RowType::E5M2:
    return support::rounded(formatOf(type), static_cast<float>(x));
  case RowType::I8:
    return std::isnan(x) ? -128.0 : std::nearbyint(std::clamp(x, -128.0, 127.0));
  case RowType::I16: // wraps around
    return static_cast<int16_t>(static_cast<int64_t>(x));
  case RowType::I32:
    return std::trunc(x);
  case RowType::I1:
    return x != 0.0;
  }
  return x;
}

namespace {

class Evaluator {
public:
  Evaluator(const RowProgram &program, const std::vector<Numbers> &inputs, bool rounded)
      : program(program), inputs(inputs), rounded(rounded), rows(program.domain.rows()),
        columns(program.domain.columns()) {}

  std::vector<Numbers> run() {
    for (const RowNode &node : program.nodes)
      values.push_back(node.kind == RowNode::Kind::SumRows ? Numbers() : evaluate(node));
    std::vector<Numbers> results;
    for (const RowResult &result : program.results)
      results.push_back(program.isSummed(result) ? sum(result) : pick(result));
    return results;
  }

private:
  double round(double x, RowType type) const {
    return rounded || !isFloat(type) ? roundTo(x, type) : x;
  }

  Numbers evaluate(const RowNode &node) {
    Numbers out(rows * columns);
    for (int64_t r = 0; r < rows; ++r) {
      double reduced =
          node.kind == RowNode::Kind::Reduce ? reduce(node, r) : 0.0; // once for the row
      for (int64_t c = 0; c < columns; ++c)
        out[r * columns + c] =
            node.kind == RowNode::Kind::Reduce ? reduced : round(element(node, r, c), node.type);
    }
    return out;
  }

  double operand(const RowNode &node, unsigned i, int64_t r, int64_t c) const {
    return values[node.inputs[i]][r * columns + c];
  }

  double element(const RowNode &node, int64_t r, int64_t c) const {
    auto in = [&](unsigned i) { return operand(node, i, r, c); };
    switch (node.kind) {
    case RowNode::Kind::Input: {
      int64_t at =
          (variesOverRows(node.form) ? r : 0) * (variesOverColumns(node.form) ? columns : 1) +
          (variesOverColumns(node.form) ? c : 0);
      return inputs[node.code][at];
    }
    case RowNode::Kind::Constant:
      return node.value;
    case RowNode::Kind::Index: {
      llvm::SmallVector<int64_t> shape(program.domain.rowShape);
      shape.append(program.domain.innerShape.begin(), program.domain.innerShape.end());
      int64_t below = 1;
      for (size_t d = node.code + 1; d < shape.size(); ++d)
        below *= shape[d];
      return static_cast<double>((r * columns + c) / below % shape[node.code]);
    }
    case RowNode::Kind::Unary:
      return unary(static_cast<RowUnary>(node.code), in(0));
    case RowNode::Kind::Binary: {
      const auto f = static_cast<RowBinary>(node.code);
      return isFloat(node.type) ? binary(f, in(0), in(1)) : test::ofWords(f, in(0), in(1));
    }
    case RowNode::Kind::Compare:
      return compare(static_cast<Predicate>(node.code), in(0), in(1));
    case RowNode::Kind::Select:
      return in(0) != 0.0 ? in(1) : in(2);
    case RowNode::Kind::Cast:
      return in(0);
    case RowNode::Kind::Gather:
      return inputs[node.code][static_cast<int64_t>(in(0)) * columns + c];
    case RowNode::Kind::Rotate:
      return rotate(node, r, c);
    default:
      return 0.0;
    }
  }

  double unary(RowUnary f, double x) const {
    switch (f) {
    case RowUnary::Neg:
      return -x;
    case RowUnary::Exp:
      return std::exp(x);
    case RowUnary::Log:
      return std::log(x);
    case RowUnary::Sqrt:
      return std::sqrt(x);
    case RowUnary::Rsqrt:
      return 1.0 / round(std::sqrt(x), RowType::F32);
    case RowUnary::Tanh:
      return std::tanh(x);
    case RowUnary::Erf:
      return std::erf(x);
    case RowUnary::Sin:
      return std::sin(x);
    case RowUnary::Cos:
      return std::cos(x);
    case RowUnary::Sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case RowUnary::PowerOfTwo:
      return x == 0.0 || !std::isfinite(x) ? x : std::ldexp(1.0, std::ilogb(x));
    case RowUnary::Bits:
      return std::bit_cast<int32_t>(static_cast<float>(x));
    case RowUnary::OfBits:
      return std::bit_cast<float>(static_cast<int32_t>(x));
    }
    return x;
  }

  static double binary(RowBinary f, double a, double b) {
    switch (f) {
    case RowBinary::Add:
      return a + b;
    case RowBinary::Sub:
      return a - b;
    case RowBinary::Mul:
      return a * b;
    case RowBinary::Div:
      return a / b;
    case RowBinary::Max:
      return a < b || b != b ? b : a;
    case RowBinary::Min:
      return b < a || b != b ? b : a;
    case RowBinary::MulHigh:
    case RowBinary::Xor:
      break;
    }
    return a;
  }

  static bool compare(Predicate p, double a, double b) {
    switch (p) {
    case Predicate::eq:
      return a == b;
    case Predicate::ne:
      return a != b;
    case Predicate::lt:
      return a < b;
    case Predicate::le:
      return a <= b;
    case Predicate::gt:
      return a > b;
    case Predicate::ge:
      return a >= b;
    }
    return false;
  }

  double reduce(const RowNode &node, int64_t r) const {
    bool isSum = static_cast<RowReduction>(node.code) == RowReduction::Sum;
    if (!isSum) {
      double top = operand(node, 0, r, 0);
      for (int64_t c = 1; c < columns; ++c)
        top = std::max(top, operand(node, 0, r, c));
      return top;
    }
    double lanes[16] = {}, total = 0.0;
    for (int64_t c = 0; c < columns; ++c)
      lanes[c % 16] = round(lanes[c % 16] + operand(node, 0, r, c), RowType::F32);
    for (double lane : lanes)
      total = round(total + lane, RowType::F32);
    return total;
  }

  double rotate(const RowNode &node, int64_t r, int64_t c) const {
    const Rotation &rotation = node.rotation;
    int64_t width = program.domain.innerShape.back(), head = c / width * width, j = c % width;
    int64_t position = node.inputs.empty()
                           ? r % rotation.length
                           : static_cast<int64_t>(values[node.inputs[0]][r * columns]);
    if (rotation.period > 0)
      position %= rotation.period;
    int64_t pair = rotation.halfSplit ? j % (width / 2) : j / 2;
    bool first = rotation.halfSplit ? j < width / 2 : j % 2 == 0;
    int64_t other = rotation.halfSplit ? (first ? j + width / 2 : j - width / 2) : j ^ 1;
    double angle = position * std::pow(rotation.base, -2.0 * pair / width);
    double x = inputs[node.code][r * columns + c];
    double y = inputs[node.code][r * columns + head + other];
    double sign = first != rotation.inverse ? -1.0 : 1.0;
    return x * std::cos(angle) + sign * y * std::sin(angle);
  }

  Numbers pick(const RowResult &result) const {
    Numbers out;
    for (int64_t r = 0; r < (variesOverRows(result.form) ? rows : 1); ++r)
      for (int64_t c = 0; c < (variesOverColumns(result.form) ? columns : 1); ++c)
        out.push_back(round(values[result.node][r * columns + c], result.type));
    return out;
  }

  Numbers sum(const RowResult &result) const {
    const RowNode &node = program.nodes[result.node];
    const Numbers &terms = values[node.inputs[0]];
    Numbers out(variesOverColumns(node.form) ? columns : 1);
    for (int64_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < out.size(); ++c)
        out[c] = round(out[c] + terms[r * columns + c], RowType::F32);
    for (double &x : out)
      x = round(x, result.type);
    return out;
  }

  const RowProgram &program;
  const std::vector<Numbers> &inputs;
  bool rounded;
  int64_t rows, columns;
  std::vector<Numbers> values;
};

} // namespace

std::vector<Numbers> hydra::test::evaluateRows(const RowProgram &program,
                                               const std::vector<Numbers> &inputs, bool rounded) {
  return Evaluator(program, inputs, rounded).run();
}
