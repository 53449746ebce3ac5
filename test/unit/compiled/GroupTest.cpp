// Groups of row-wise operations in every form, compiled and run: sums over rows, reductions of
// rows, broadcasts, columns and rows read elsewhere, strided operands; at sizes around the vector
// width.
#include "test/support/SmallModel.h"
#include "test/unit/compiled/CompiledModel.h"

#include <gtest/gtest.h>

namespace hydra::test {

namespace {

using Ints = std::vector<int64_t>;

Ints operator+(Ints a, const Ints &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A model whose group works on `rows` × `columns`.
struct GroupCase {
  const char *name;
  SmallModel (*make)(int64_t rows, int64_t columns);
};

/// A residual sum and two norms; their weights' gradients are sums over rows.
SmallModel norms(int64_t rows, int64_t columns) {
  const Ints x = {rows, columns}, w = {columns};
  SmallModel m;
  m.parameters = {{"x", x}, {"a", x}, {"w", w, 0.5, 1.5}, {"v", w, 0.5, 1.5}, {"b", w}};
  m.resultShape = x;
  m.code = R"(
    %sum = hydra.add %x, %a
    %n = hydra.rms_norm %sum, %w eps = 1.0e-2
    %y = hydra.layer_norm %n, %v, %b eps = 1.0e-2
)";
  return m;
}

/// A value for each column, one for each row and one for all meet tiles on both sides.
SmallModel broadcasts(int64_t rows, int64_t columns) {
  SmallModel m;
  m.parameters = {{"x", {rows, columns}}, {"c", {columns}}, {"r", {rows, 1}}, {"s", {}}};
  m.resultShape = {rows, columns};
  m.code = R"(
    %a = hydra.mul %x, %c
    %b = hydra.add %r, %a
    %d = hydra.sub %s, %b
    %p = hydra.softmax %d
    %q = hydra.mul %p, %r
    %y = hydra.add %q, %s
)";
  return m;
}

/// Reductions over two inner dimensions, whose results return to the tiles.
SmallModel innerReductions(int64_t rows, int64_t columns) {
  const Ints x = Ints{2, rows} + Ints{3, columns};
  SmallModel m;
  m.parameters = {{"x", x}, {"w", {3, columns}}};
  m.resultShape = x;
  m.code = R"(
    %mean = hydra.mean %x axes = [2, 3] keep
    %centred = hydra.sub %x, %mean
    %square = hydra.mul %centred, %centred
    %total = hydra.sum %square axes = [-1, -2] keep
    %top = hydra.reduce_max %x axes = [2, 3] keep
    %scaled = hydra.mul %total, %top
    %weighed = hydra.mul %x, %w
    %y = hydra.add %weighed, %scaled
)";
  return m;
}

/// Sums over two row dimensions of tiles and of row values, used by a second group.
SmallModel rowSums(int64_t rows, int64_t columns) {
  const Ints x = {3, rows, columns};
  SmallModel m;
  m.parameters = {{"x", x}, {"a", x}, {"r", {3, rows, 1}}};
  m.resultShape = x;
  m.code = R"(
    %product = hydra.mul %x, %a
    %scaled = hydra.mul %product, %r
    %columns = hydra.mean %scaled axes = [0, 1]
    %curve = hydra.tanh %columns
    %squares = hydra.mul %r, %r
    %all = hydra.mean %squares axes = [0, 1, 2]
    %bent = hydra.mul %x, %curve
    %y = hydra.add %bent, %all
)";
  return m;
}

/// Thirds of a wider row and a transposed operand are views with strides.
SmallModel stridedOperands(int64_t rows, int64_t columns) {
  SmallModel m;
  m.parameters = {{"x", {2, rows, 3 * columns}}, {"t", {rows, 2, columns}}, {"w", {columns}}};
  m.resultShape = {2, rows, columns};
  const std::string size = " size = " + std::to_string(columns) + "\n";
  m.code = "    %a = hydra.slice %x axis = 2 start = 0" + size +
           "    %b = hydra.slice %x axis = 2 start = " + std::to_string(columns) + size +
           "    %c = hydra.slice %x axis = 2 start = " + std::to_string(2 * columns) + size + R"(
    %turned = hydra.transpose %t order = [1, 0, 2]
    %act = hydra.silu %a
    %gated = hydra.mul %act, %b
    %sum = hydra.add %gated, %turned
    %n = hydra.rms_norm %sum, %w eps = 1.0e-2
    %y = hydra.add %n, %c
)";
  return m;
}

/// A column of one tensor scales all of another; columns far apart are read one by one.
SmallModel stridedColumns(int64_t rows, int64_t columns) {
  SmallModel m;
  m.parameters = {{"x", {columns, rows}}, {"a", {rows, columns}}};
  m.resultShape = {rows, columns};
  m.code = R"(
    %turned = hydra.transpose %x order = [1, 0]
    %first = hydra.slice %a axis = 1 start = 0 size = 1
    %scaled = hydra.mul %turned, %first
    %p = hydra.softmax %scaled
    %y = hydra.mul %p, %a
)";
  return m;
}

/// Rotary positions read a pair's other half, in both pairings.
SmallModel rotations(int64_t rows, int64_t columns) {
  const Ints x = {2, rows, 2, 2 * columns};
  SmallModel m;
  m.parameters = {{"x", x}, {"a", x}};
  m.resultShape = x;
  m.code = R"(
    %pairs = hydra.rope %x base = 100.0
    %halves = hydra.rope %a base = 50.0 half_split
    %product = hydra.mul %pairs, %halves
    %y = hydra.gelu %product
)";
  return m;
}

/// Rows of a table by id, and of each row the element of its label.
SmallModel gathers(int64_t rows, int64_t columns) {
  SmallModel m;
  m.ids = {{"tokens", {rows}, 5}, {"labels", {rows}, columns, 0.2}};
  m.parameters = {{"table", {5, columns}}, {"x", {rows, columns}}};
  m.code = R"(
    %found = hydra.embedding %tokens, %table
    %sum = hydra.add %found, %x
    %act = hydra.silu %sum
    %y = hydra.cross_entropy %act, %labels
)";
  return m;
}

/// Gathered rows leave in a shape without the dimension that is 1 when there is one row or column.
SmallModel flattened(int64_t rows, int64_t columns) {
  const Ints x = {rows * columns};
  SmallModel m;
  m.ids = {{"tokens", {rows}, 5}};
  m.parameters = {{"table", {5, columns}}, {"x", x}};
  m.resultShape = x;
  m.code = "    %found = hydra.embedding %tokens, %table\n"
           "    %row = hydra.reshape %found shape = " +
           shapeText(x) + R"(
    %sum = hydra.add %row, %x
    %y = hydra.silu %sum
)";
  return m;
}

/// Truth values, whole numbers and bf16 inside of a group.
SmallModel types(int64_t rows, int64_t columns) {
  const Ints x = {rows, columns};
  SmallModel m;
  m.parameters = {{"x", x}, {"a", x}};
  m.arguments = {{"limit", {rows, 1}}};
  m.resultShape = x;
  const std::string shape = " shape = " + shapeText(x);
  m.code = "    %column = hydra.iota" + shape + " axis = 1 dtype = f32\n" + R"(
    %below = hydra.compare %a, %limit is = "lt"
    %chosen = hydra.select %below, %x, %a
    %narrow = hydra.cast %chosen to = bf16
    %wide = hydra.cast %narrow to = f32
    %half = hydra.constant value = 0.5
    %ratio = hydra.mul %column, %half
    %whole = hydra.cast %ratio to = i32
    %back = hydra.cast %whole to = f32
    %least = hydra.min %wide, %back
    %y = hydra.mul %least, %x
)";
  return m;
}

const std::vector<GroupCase> &cases() {
  static const std::vector<GroupCase> all = {
      {"norms", norms},
      {"broadcasts", broadcasts},
      {"inner_reductions", innerReductions},
      {"row_sums", rowSums},
      {"strided_operands", stridedOperands},
      {"strided_columns", stridedColumns},
      {"rotations", rotations},
      {"gathers", gathers},
      {"flattened", flattened},
      {"types", types},
  };
  return all;
}

/// One row, one column, and on both sides of one, two and four vectors of 16.
struct Size {
  int64_t rows, columns;
};
constexpr Size kSizes[] = {{1, 1}, {1, 37}, {19, 1}, {5, 16}, {3, 15}, {4, 33}, {33, 2}, {7, 70}};

class Groups : public testing::TestWithParam<GroupCase> {};

std::string nameOf(const testing::TestParamInfo<GroupCase> &info) { return info.param.name; }

} // namespace

TEST_P(Groups, MatchTheOracleAtEverySize) {
  for (const auto [rows, columns] : kSizes) {
    SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(columns));
    const SmallModel small = GetParam().make(rows, columns);
    CompiledModel model(small.text(), {}, Mode::Grad);
    model.setValues(small.values(static_cast<uint64_t>(100 * rows + columns)));
    const TensorMap results = runPlan(model.plan(), model.values(), 2);
    expectWithinRounding(results, model.evaluate(false), model.evaluate(true));
    expectSameBits(runPlan(model.plan(2, {"hydra-form-fusions"}), model.values(), 1), results);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Groups, testing::ValuesIn(cases()), nameOf);

} // namespace hydra::test
