// A model as a tree, printed either as a person would write it or with everything written out.
#pragma once

#include "compiler/Pipelines.h"

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hydra::test {

/// A dimension: an expression over the symbols, and what it comes to.
struct Dim {
  std::string text;
  int64_t size;
  bool operator==(const Dim &other) const { return text == other.text; }
};
using Shape = std::vector<Dim>;
std::string textOf(const Shape &shape);
int64_t elementsOf(const Shape &shape);

/// An expression that is true or false, perhaps of the layer. No text: always true.
struct Condition {
  std::string text;
  bool usesLayer = false;
  std::function<bool(int64_t layer)> holds;

  bool isTrue(int64_t layer) const { return text.empty() || holds(layer); }
};
/// Both; the negation.
Condition operator&&(const Condition &a, const Condition &b);
Condition operator!(const Condition &a);

/// An operation. Besides those of the dialect under their own name (`add`): `use`, `for`, `when`,
/// `call` and `yield`.
struct Statement {
  std::string op;
  std::vector<std::string> results, operands;
  std::string attributes;
  std::string symbol;                 ///< of use, for, call
  Shape broadcast;                    ///< what operands of other shapes are repeated to
  std::vector<bool> repeated;         ///< which operands those are
  std::vector<std::string> arguments; ///< carried values inside a `for`
  Condition condition;                ///< of `when`
  std::vector<Statement> body, otherwise;
};
using Code = std::vector<Statement>;

struct Variable {
  bool isState = false;
  std::string name;
  Shape shape;
  std::string dtype = "f32", init = "zeros", group; ///< `init` may use `layer` in a stack
  Condition condition;
  bool frozen = false; ///< a parameter that is not trained
};

struct Stack {
  std::string name;
  Dim count;
  std::vector<Variable> variables;
};

struct Definition {
  std::string name;
  std::vector<std::string> arguments;
  Code body;
};

/// Where a symbol gets its value from.
enum class Given { Default, Preset, Setting };

struct Symbol {
  std::string kind; ///< dims, reals, flags or choices
  std::string name, value;
  Given given = Given::Default;
  std::string other;   ///< a value that a stronger source overrides; empty: none
  std::string options; ///< ` of (a, b)` of a choice
};

struct Argument {
  std::string name;
  Shape shape;
  std::string dtype;
};

struct ModelText {
  std::vector<Symbol> symbols;
  std::vector<std::pair<std::string, std::string>> derived; ///< name and expression, in order
  std::vector<std::string> groups;                          ///< complete lines
  std::vector<Variable> variables;
  std::deque<Stack> stacks; // deques: elements keep their place
  std::deque<Definition> definitions;
  std::vector<Argument> arguments;
  Code code;
  std::vector<std::pair<std::string, std::string>> outputs; ///< name and value
  std::vector<std::pair<std::string, std::string>> updates; ///< parameter or state, and value
};

/// A model file and what binds it.
struct BoundText {
  std::string text;
  BindingOptions binding;
};

/// The file as a person would write it: loops, conditions, definitions, implicit broadcasts.
BoundText printTemplate(const ModelText &model, int64_t batch, int64_t seq);
/// The same model with loops, conditions and calls written out and every broadcast explicit.
BoundText printFlat(const ModelText &model, int64_t batch, int64_t seq);

} // namespace hydra::test
