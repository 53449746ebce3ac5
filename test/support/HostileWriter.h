// Writes random operations line by line: what programs, scans and training models are made of.
#pragma once

#include "test/support/Random.h"

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace hydra::test::hostile {

/// The most elements that a value has.
inline constexpr int64_t kMostElements = 4096;

/// A dimension as text and as a number. In the body of a scan the text may name `rows`, and then
/// the number in a short last chunk is another.
struct Dim {
  std::string text;
  int64_t size, last, most; ///< most: of all programs of the model
  unsigned scan = 0; ///< how many scans deep the `rows` of the text belong; 0: the text has none

  Dim(int64_t n = 1)
      : text(std::to_string(n)), size(n), last(n), most(n) {} // NOLINT: numbers are dimensions
  Dim(std::string text, int64_t size, int64_t last, int64_t most, unsigned scan)
      : text(std::move(text)), size(size), last(last), most(most), scan(scan) {}

  bool isNumber() const { return text == std::to_string(size); }
  bool isOne() const { return text == "1"; }
  int64_t least() const { return std::min(size, last); }
  bool operator==(const Dim &other) const { return text == other.text && scan == other.scan; }
};
using Shape = std::vector<Dim>;

Dim product(const Dim &a, const Dim &b);
Dim sum(const Dim &a, const Dim &b);
int64_t elementsOf(const Shape &shape);
std::string textOf(const Shape &shape);
/// `name = [1, 2]`.
std::string listText(const std::string &name, const std::vector<int64_t> &values);
std::string numberText(double value);
/// The common shape of two under broadcasting of trailing dimensions; none if they do not fit.
std::optional<Shape> commonShape(const Shape &a, const Shape &b);
bool allNumbers(const Shape &shape);

/// Narrow: floats of 16 bits, in one program of one format.
enum class Element { F32, Narrow, I32, I1 };

/// A value that later lines may use.
struct Value {
  std::string name = {};
  Shape shape = {};
  Element element = Element::F32;
  double size = 1.0;                                     ///< typical magnitude of an element
  double low = -std::numeric_limits<double>::infinity(); ///< no element is below this
  int64_t first = 0, final = 0; ///< of integers: the smallest and the largest
  bool repeatable = false;      ///< elements that are equal in theory have the same bits
  bool distinct = false;        ///< elements differ, but by chance

  bool isFloat() const { return element == Element::F32 || element == Element::Narrow; }
  size_t rank() const { return shape.size(); }
  int64_t count() const { return elementsOf(shape); }
  /// Whether the largest element is the same one after rounding, or is one of several equal ones.
  bool hasClearOrder() const { return repeatable || distinct; }
};

class Writer {
public:
  explicit Writer(uint64_t seed);

  /// `n` random operations in the current block.
  void steps(int64_t n);
  /// Random operations until the program has about that many lines.
  void fill(unsigned most);
  /// A scan or prefix scan.
  void scan();
  /// Leaves whole families of operations out and makes others frequent, so that programs differ.
  void chooseFamilies(double controlWeight, double scanWeight);

  //===-- Lines -----------------------------------------------------------------------------===//

  /// Adds a line to the current block; the result, whose name is new, joins the values in reach.
  Value emit(const std::string &op, const std::vector<Value> &operands,
             const std::string &attributes, Value result);
  void line(const std::string &text);
  std::string wordOf(Element element) const;
  std::string fresh(const char *prefix) { return prefix + std::to_string(count++); }
  /// Adds a value to those in reach of the current block.
  void remember(Value value) { blocks.back().values.push_back(std::move(value)); }

  Value unary(const std::string &op, const Value &x, double size);
  Value binary(const std::string &op, const Value &a, const Value &b, double size);
  Value constant(double value, const Shape &shape = {}, Element element = Element::F32);
  Value iota(const Shape &shape, int64_t axis, Element element = Element::I32);
  Value cast(const Value &x, Element to);
  Value reshape(const Value &x, const Shape &shape);
  Value transpose(const Value &x, const std::vector<int64_t> &order);
  Value broadcast(const Value &x, const Shape &shape);
  /// `size` elements from `start` on; both are in range in every chunk.
  Value slice(const Value &x, size_t axis, int64_t start, int64_t size);
  Value concat(const std::vector<Value> &parts, size_t axis);
  Value reduce(const std::string &op, const Value &x, const std::vector<bool> &mask, bool keep);
  Value linear(const Value &x, const Value &w, const std::optional<Value> &bias);
  Value softmaxOf(const Value &x);
  Value compare(const Value &a, const Value &b, const std::string &is);
  /// The same, with elements that are not much larger than 1.
  Value tame(const Value &x);
  Value toScalar(const Value &x);
  /// A number made of a value: its sum, that of its squares, one element, …
  Value lossTerm(const Value &x);
  /// A loss of one or several values in reach, mostly of those that nothing has used.
  Value loss();
  /// The end of an entry with that loss, perhaps with other results and new values of state.
  std::string ending(const Value &loss, const std::string &updates);
  /// A state that starts as some numbers, and its value here.
  Value state(const Shape &shape);
  /// A number that a run gives anew to every step.
  Value stepNumber();
  /// A new value for a state, as it stands in `updates`.
  std::string update(const Value &state);
  /// Labels in [0, classes) of that shape, some of them perhaps -100.
  Value labels(const Shape &shape, int64_t classes);

  //===-- What there is ---------------------------------------------------------------------===//

  std::vector<Value> visible() const;
  /// One of the values in reach for which this holds, later ones more often.
  std::optional<Value> find(const std::function<bool(const Value &)> &fits);
  /// Some number, mostly f32.
  Value any();
  std::optional<Value> anyOfRank(size_t least, size_t most);
  /// Some value that can be moved about: also whole numbers and truth values.
  std::optional<Value> movable(size_t least);
  /// Some value of that shape: one in reach, a parameter, an input, a constant, or a view of one.
  Value make(const Shape &shape, Element element = Element::F32, unsigned depth = 0);
  Value parameter(const Shape &shape, Element element = Element::F32);
  Value input(const Shape &shape, Element element = Element::F32);
  bool canHaveInputs() const;
  /// Whether the text of a shape can stand in the current block.
  bool canWrite(const Shape &shape) const;
  Dim dim();
  Shape randomShape(size_t least, size_t most);

  //===-- Blocks ----------------------------------------------------------------------------===//

  struct Block {
    std::string text;
    std::vector<Value> values;
    unsigned scan = 0;     ///< how many scans it lies in
    int stack = -1;        ///< of the innermost loop over layers
    bool isWhen = false;   ///< it may be left out
    bool isolated = false; ///< a definition: values outside are out of reach
  };
  std::vector<Block> blocks;
  Block &block() { return blocks.back(); }
  void open(const std::vector<Value> &arguments);
  /// Ends the innermost block and returns its lines.
  std::string close();

  Random random;

  struct Stack {
    std::string name;
    int64_t count;
    std::string lines;
  };
  std::string symbolLines, groupLines, variableLines, definitionLines;
  std::vector<std::string> groups;       ///< that parameters may belong to
  std::vector<std::string> matrixGroups; ///< the same of matrices alone
  bool mayFreeze = false;                ///< some parameters are not trained
  std::vector<Stack> stacks;
  std::vector<std::string> arguments;
  std::string dims;            ///< symbols of the entry
  size_t mostRank = 4;         ///< of values; in some programs as many as there can be
  bool mayRound = false;       ///< narrow elements may occur
  std::string narrow = "bf16"; ///< what these are
  bool measures = false;       ///< there is an entry `@eval` besides, which updates no state

  /// The whole model: all declarations, and an entry `@loss` of what the outermost block holds.
  std::string model(const std::string &end) const;

private:
  enum class Group { Plain, Idiom, Control, Scan };
  struct Family {
    double weight;
    bool (Writer::*write)();
    Group group;
  };
  static const std::vector<Family> &families();
  void step();

  // Each returns false, having written nothing that matters, when it has nothing to work on.
  bool unaries();
  bool arithmetic();
  bool constants();
  bool integers();
  bool picking();
  bool truths();
  bool casting();
  bool reducing();
  bool reshaping();
  bool transposing();
  bool broadcasting();
  bool slicing();
  bool padding();
  bool joining();
  bool viewChain();
  bool linears();
  bool matmuls();
  bool norms();
  bool softmaxes();
  bool transforms();
  bool recurrences();
  bool ropes();
  bool attentions();
  bool embeddings();
  bool losses();
  bool routing();
  bool grouping();
  bool choosing();
  bool counting();
  bool writtenAttention();
  bool gating();
  bool projecting();
  bool activating();
  bool rowStatistics();
  bool scanning();
  bool prefixScanning();
  bool layering();
  bool conditions();
  bool calling();

  std::optional<Value> other(const Value &a);
  std::optional<Value> sequenceHeads(const Value &like, const Dim &length, int64_t heads,
                                     int64_t width);
  Value chunkNumbers(int64_t length, int64_t size);
  Value scoreMask(const Dim &rows, const Dim &columns);
  std::optional<Value> wideTokens(int64_t rows);
  Value stepBetween(const Value &carried, int64_t chunks);
  std::string condition();
  std::string nameList(const std::vector<Value> &values) const;
  /// Writes a bundle of these, and returns its name.
  std::string bundleOf(const std::vector<Value> &values);
  /// Writes the fields of such a bundle, under the names of the values; none of one without a name.
  void fieldsOf(const std::string &bundle, const std::vector<Value> &values);
  /// What a body goes over or carries.
  struct Passed {
    std::string list;   ///< `%a = %x, %b = %y`
    std::string bundle; ///< what the body has all of them as; empty: each is a value
  };
  Passed passed(const std::vector<Value> &inside, const std::vector<Value> &outside);
  /// The names of both, those behind as one bundle if that has a name.
  std::string listOf(const std::vector<Value> &front, const std::vector<Value> &behind,
                     const std::string &bundle) const;

  struct Callable {
    std::string name;
    std::vector<Value> arguments, results;
  };
  std::vector<Callable> callables;
  struct Declared {
    std::string name;
    Shape shape;
    Element element;
    double size;
    bool distinct;
  };
  std::vector<Declared> parameters; ///< of the model, not of stacks
  std::vector<int64_t> palette;
  std::vector<double> weights;
  unsigned count = 0, lines = 0;
};

/// The text of a model of random operations, with scans or without.
std::string straightModel(Writer &w, bool scans);
/// The text of a language model over `B` rows of `S` tokens, and how many these are.
std::string trainingModel(Writer &w, int64_t &batch, int64_t &seq);

} // namespace hydra::test::hostile
