// Random operations on values, added to the code of a model: the vocabulary of RandomProgram.
#pragma once

#include "test/support/ProgramText.h"
#include "test/support/Random.h"

#include <optional>

namespace hydra::test {

/// The most elements that a value of a random program has.
inline constexpr int64_t kMostElements = 800;

/// A value that later operations may use.
struct Operand {
  std::string name;
  Shape shape;
  double size = 1.0; ///< typical magnitude of an element, kept near 1
};

/// Writes operations into the current block. Everything it makes is f32 and differentiable almost
/// everywhere, with slopes that stay moderate.
class OpWriter {
public:
  OpWriter(ModelText &model, Random &random) : model(model), random(random) {}

  /// One random operation, or a short idiom, on values in reach; its result joins them.
  void step();

  const Operand &any();
  /// A value in reach that satisfies the predicate.
  std::optional<Operand> find(const std::function<bool(const Operand &)> &fits);
  /// A value of that shape made from what is in reach.
  Operand ofShape(const Shape &shape);
  /// The same value with elements of magnitude at most about 2.
  Operand tame(Operand x);

  Operand unary(const std::string &op, const Operand &x, double size);
  Operand binary(const std::string &op, const Operand &a, const Operand &b, double size);
  Operand constant(double value);
  Operand reduceAll(const Operand &x);
  /// A parameter of that shape for use here: in the stack of the current loop or the model.
  /// Dimensions that belong to the entry become 1.
  Operand parameter(Shape shape);

  std::string freshName(const std::string &prefix) { return prefix + std::to_string(count++); }
  Statement &add(Statement statement);
  const Operand &remember(Operand x);

  /// What the current block can see and where it stands.
  struct Scope {
    Code *code = nullptr;
    std::vector<Operand> values;
    Condition condition;    ///< when the block runs at all
    Stack *stack = nullptr; ///< of the innermost loop
    bool inEntry = true;    ///< the arguments `tokens` and `labels` are in reach
  };
  Scope scope;
  std::map<std::string, int64_t> sizes; ///< of every symbol that is a dimension

private:
  struct Family {
    double weight;
    bool (OpWriter::*write)();
  };

  // Each returns false, writing nothing that matters, when no value fits.
  bool elementwise();
  bool arithmetic();
  bool constants();
  bool picking();
  bool casting();
  bool counting();
  bool dropping();
  bool reducing();
  bool reshaping();
  bool moving();
  bool joining();
  bool linear();
  bool matmul();
  bool embedding();
  bool routing();
  bool grouping();
  bool magnitudes();
  bool norm();
  bool softmax();
  bool transforms();
  bool recurrences();
  bool rope();
  bool attention();
  bool loss();

  Operand op(const std::string &name, const std::vector<Operand> &operands,
             const std::string &attributes, const Shape &shape, double size);
  Operand linear(const Operand &x, const Dim &width);
  Operand heads(const Operand &x, const std::string &count, const std::string &width);
  Operand reshape(const Operand &x, const Shape &shape);

  std::optional<Operand> withRank(size_t least, size_t most);
  /// [rows, sequence, channels] with few rows: what attention and rope can take.
  std::optional<Operand> sequence();
  std::optional<Operand> rows();
  Dim dim(const std::string &symbol) const;
  /// The width of that many heads side by side.
  Dim allHeads(const std::string &count, const std::string &width) const;
  Dim someWidth();

  ModelText &model;
  Random &random;
  unsigned count = 0;
};

/// Whether a parameter can have the dimension: it does not depend on batch or sequence.
bool isModelDim(const Dim &d);

/// The common shape of two under broadcasting of trailing dimensions; none if they do not fit.
std::optional<Shape> broadcastShape(const Shape &a, const Shape &b);

} // namespace hydra::test
