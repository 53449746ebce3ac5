// The oracle's evaluation of compound operations against other, naive ways to compute them.
#include "test/support/OpCases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

using namespace hydra;
using namespace hydra::test;
using Index = std::vector<int64_t>;

namespace {

/// A tensor by index.
class View {
public:
  explicit View(RefTensor tensor) : tensor(std::move(tensor)) {}
  double operator()(const Index &index) const { return tensor.data[position(index)]; }
  int64_t dim(size_t i) const { return tensor.shape[i]; }
  const RefTensor &flat() const { return tensor; }

  /// Calls `visit` with every index.
  template <typename Visit> void forEach(Visit visit) const {
    Index index(tensor.shape.size(), 0);
    for (int64_t n = 0; n < tensor.size(); ++n) {
      int64_t rest = n;
      for (size_t i = index.size(); i-- > 0; rest /= tensor.shape[i])
        index[i] = rest % tensor.shape[i];
      visit(index);
    }
  }

private:
  size_t position(const Index &index) const {
    int64_t position = 0;
    for (size_t i = 0; i < index.size(); ++i)
      position = position * tensor.shape[i] + index[i];
    return static_cast<size_t>(position);
  }

  RefTensor tensor;
};

/// Runs `model` at random values for several seeds; `expected` gives the result at an index.
template <typename Expected> void expectResult(const std::string &caseName, Expected expected) {
  const std::vector<OpCase> &cases = opCases();
  auto it =
      std::find_if(cases.begin(), cases.end(), [&](const OpCase &c) { return c.name == caseName; });
  ASSERT_NE(it, cases.end()) << caseName;
  for (uint64_t seed = 100; seed < 110; ++seed) {
    SCOPED_TRACE(caseName + ", seed " + std::to_string(seed));
    Random random(seed);
    const SmallModel model = it->make(random);
    SmallProgram program(model);
    ASSERT_EQ(program.error, "");
    const TensorMap values = model.values(seed);
    const View result(program.evaluate(values));
    ASSERT_EQ(program.error, "");
    const auto at = [&](const char *name) { return View(values.lookup(name)); };
    result.forEach([&](const Index &i) {
      const double want = expected(at, i);
      EXPECT_NEAR(result(i), want, 1e-12 * (1.0 + std::abs(want))) << model.text();
    });
  }
}

Index with(Index index, size_t axis, int64_t value) {
  index[axis] = value;
  return index;
}

} // namespace

TEST(Reference, LinearIsASumOverColumns) {
  for (const bool bias : {false, true})
    expectResult(bias ? "linear_bias" : "linear", [&](auto at, const Index &i) {
      double sum = bias ? at("b")({i.back()}) : 0.0;
      for (int64_t k = 0; k < at("w").dim(1); ++k)
        sum += at("x")(with(i, i.size() - 1, k)) * at("w")({i.back(), k});
      return sum;
    });
}

TEST(Reference, MatmulSumsRowsTimesColumns) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      expectResult(std::string("matmul") + (ta || tb ? "_" : "") + (ta ? "ta" : "") +
                       (tb ? "tb" : ""),
                   [&](auto at, Index i) {
                     const View a = at("a"), b = at("b");
                     const int64_t column = i.back(), row = i[i.size() - 2];
                     i.resize(i.size() - 2);
                     double sum = 0.0;
                     for (int64_t k = 0; k < a.dim(i.size() + (ta ? 0 : 1)); ++k) {
                       Index ia = i, ib = i;
                       ia.insert(ia.end(), {ta ? k : row, ta ? row : k});
                       ib.insert(ib.end(), {tb ? column : k, tb ? k : column});
                       sum += a(ia) * b(ib);
                     }
                     return sum;
                   });
}

TEST(Reference, EmbeddingPicksRows) {
  expectResult("embedding", [](auto at, Index i) {
    const int64_t column = i.back();
    i.pop_back();
    return at("table")({static_cast<int64_t>(at("tokens")(i)), column});
  });
}

TEST(Reference, RoutingBringsRowsTogetherAndBack) {
  TensorMap values;
  const auto give = [&](const char *name, std::vector<int64_t> shape, std::vector<double> data) {
    values[name] = RefTensor(shape);
    values[name].data = std::move(data);
  };
  give("mask", {5}, {0, 1, 1, 0, 1});
  give("x", {5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  give("u", {2, 4}, {3, 1, 3, 2, 5, 5, 5, 4});
  const auto check = [&](const std::string &code, std::vector<int64_t> shape,
                         const std::vector<double> &expected) {
    SmallModel m;
    m.parameters = {{"mask", {5}}, {"x", {5, 2}}, {"u", {2, 4}}};
    m.resultShape = std::move(shape);
    m.code = "    %zero = hydra.constant value = 0\n"
             "    %set = hydra.compare %mask, %zero is = \"gt\"\n"
             "    %index, %place, %count = hydra.compact %set\n" +
             code;
    SmallProgram program(m);
    ASSERT_EQ(program.error, "") << code;
    TensorMap all = m.values(1); // and the weights of results
    for (const auto &[name, tensor] : values)
      all[name] = tensor;
    EXPECT_EQ(program.evaluate(all).data, expected) << code;
  };
  const std::string taken = "    %some = hydra.take_rows %x, %index, %place\n";
  check("    %y = hydra.cast %index to = f32\n", {5}, {1, 2, 4, -1, -1});
  check("    %y = hydra.cast %place to = f32\n", {5}, {-1, 0, 1, -1, 2});
  check("    %y = hydra.cast %count to = f32\n", {}, {3});
  check(taken + "    %y = hydra.mul %some, %some\n", {5, 2}, {9, 16, 25, 36, 81, 100, 0, 0, 0, 0});
  check(taken + "    %y = hydra.take_rows %some, %place, %index\n", {5, 2},
        {0, 0, 3, 4, 5, 6, 0, 0, 9, 10});
  check("    %c = hydra.top_k %u k = 2\n    %y = hydra.cast %c to = f32\n", {2, 4},
        {1, 0, 1, 0, 1, 1, 0, 0});
}

TEST(Reference, ExponentsAreCountedOverAllOperands) {
  const auto check = [](const std::string &operation, const std::vector<double> &expected) {
    SmallModel m;
    m.parameters = {{"x", {2, 4}}, {"z", {3}}, {"factor", {}}};
    m.resultShape = {static_cast<int64_t>(expected.size())};
    m.code = "    %n = hydra.count_exponents " + operation + "\n    %y = hydra.cast %n to = f32\n";
    SmallProgram program(m);
    ASSERT_EQ(program.error, "") << operation;
    TensorMap values = m.values(1);
    const double infinity = std::numeric_limits<double>::infinity();
    values["x"] = RefTensor(llvm::ArrayRef<int64_t>{2, 4});
    values["x"].data = {0.0, -1.0, 1.5, std::nan(""), infinity, 0.4, -3.0, 1e-30};
    values["z"] = RefTensor(llvm::ArrayRef<int64_t>{3});
    values["z"].data = {1.0, 2.0, -infinity};
    values["factor"] = RefTensor(llvm::ArrayRef<int64_t>());
    values["factor"].data = {4.0};
    EXPECT_EQ(program.evaluate(values).data, expected) << operation;
  };
  check("%x first = -1 count = 3", {4, 1, 3});
  check("%x, %z first = -1 count = 4", {4, 2, 2, 3});
  check("%factor, %x, %z scaled first = 1 count = 4", {4, 2, 2, 3});
  check("%z first = 0 count = 1", {3});
}

TEST(Reference, RowsInGroupsHaveAMatrixEach) {
  TensorMap values;
  const auto give = [&](const char *name, std::vector<int64_t> shape, std::vector<double> data) {
    values[name] = RefTensor(shape);
    values[name].data = std::move(data);
  };
  // Row 0 is in all groups, of which it has two; row 1 in none, row 2 in the last, row 3 in the
  // first.
  give("mask", {4, 3}, {1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0});
  give("x", {4, 1}, {1, 2, 3, 4});
  give("w", {3, 2, 1}, {1, -1, 10, -10, 100, -100});
  const auto check = [&](const std::string &code, std::vector<int64_t> shape,
                         const std::vector<double> &expected) {
    SmallModel m;
    m.parameters = {{"mask", {4, 3}}, {"x", {4, 1}}, {"w", {3, 2, 1}}};
    m.resultShape = std::move(shape);
    m.code = "    %zero = hydra.constant value = 0\n"
             "    %set = hydra.compare %mask, %zero is = \"gt\"\n"
             "    %index, %group, %place, %offsets = hydra.route %set k = 2\n"
             "    %some = hydra.take_rows %x, %index, %place\n" +
             code;
    SmallProgram program(m);
    ASSERT_EQ(program.error, "") << code;
    TensorMap all = m.values(1); // and the weights of results
    for (const auto &[name, tensor] : values)
      all[name] = tensor;
    EXPECT_EQ(program.evaluate(all).data, expected) << code;
  };
  const std::string product = "    %z = hydra.grouped_linear %some, %w, %offsets\n";
  check("    %y = hydra.cast %index to = f32\n", {8}, {0, 3, 0, 2, -1, -1, -1, -1});
  check("    %y = hydra.cast %group to = f32\n", {8}, {0, 0, 1, 2, 0, 0, 0, 0});
  check("    %y = hydra.cast %place to = f32\n", {4, 2}, {0, 2, -1, -1, 3, -1, 1, -1});
  check("    %y = hydra.cast %offsets to = f32\n", {4}, {0, 2, 3, 4});
  check("    %y = hydra.mul %some, %some\n", {8, 1}, {1, 16, 1, 9, 0, 0, 0, 0});
  check(product + "    %y = hydra.neg %z\n", {8, 2},
        {-1, 1, -4, 4, -10, 10, -300, 300, 0, 0, 0, 0, 0, 0, 0, 0});
  check(product + "    %y = hydra.take_rows %z, %place, %index\n", {4, 2},
        {11, -11, 0, 0, 300, -300, 4, -4});
  check(product + "    %y = hydra.grouped_outer %z, %some, %offsets\n", {3, 2, 1},
        {1 + 16, -1 - 16, 10, -10, 900, -900});
}

TEST(Reference, SoftmaxIsAShareOfExponentials) {
  expectResult("softmax", [](auto at, const Index &i) {
    const View x = at("x");
    double sum = 0.0;
    for (int64_t k = 0; k < x.dim(i.size() - 1); ++k)
      sum += std::exp(x(with(i, i.size() - 1, k)) - x(i));
    return 1.0 / sum;
  });
}

TEST(Reference, RmsNormDividesByTheRootMeanSquare) {
  expectResult("rms_norm", [](auto at, const Index &i) {
    const View x = at("x");
    const int64_t n = x.dim(i.size() - 1);
    double square = 0.0;
    for (int64_t k = 0; k < n; ++k)
      square += std::pow(x(with(i, i.size() - 1, k)), 2);
    return x(i) * at("w")({i.back()}) / std::sqrt(square / static_cast<double>(n) + 1e-2);
  });
}

TEST(Reference, LayerNormUsesMomentsOfTheRow) {
  expectResult("layer_norm", [](auto at, const Index &i) {
    const View x = at("x");
    const int64_t n = x.dim(i.size() - 1);
    double sum = 0.0, square = 0.0; // variance as E[x²] - E[x]²
    for (int64_t k = 0; k < n; ++k) {
      sum += x(with(i, i.size() - 1, k));
      square += std::pow(x(with(i, i.size() - 1, k)), 2);
    }
    const double mean = sum / static_cast<double>(n);
    const double variance = square / static_cast<double>(n) - mean * mean;
    return (x(i) - mean) / std::sqrt(variance + 1e-2) * at("w")({i.back()}) + at("b")({i.back()});
  });
}

TEST(Reference, RopeRotatesComplexPairs) {
  struct Form {
    const char *name;
    bool half, inverse;
    int64_t period;
  };
  for (const Form f : {Form{"rope", false, false, 1000}, Form{"rope_half_split", true, false, 1000},
                       Form{"rope_inverse", false, true, 1000},
                       Form{"rope_period", false, false, 2}, Form{"rope_all", true, true, 3}})
    expectResult(f.name, [&](auto at, const Index &i) {
      const View x = at("x");
      const int64_t width = x.dim(3), half = width / 2;
      const int64_t pair = f.half ? i[3] % half : i[3] / 2;
      const int64_t first = f.half ? pair : 2 * pair, second = f.half ? pair + half : first + 1;
      const std::complex<double> z(x(with(i, 3, first)), x(with(i, 3, second)));
      const double frequency =
          std::pow(100.0, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
      const double angle = static_cast<double>(i[1] % f.period) * frequency;
      const std::complex<double> turned = z * std::polar(1.0, f.inverse ? -angle : angle);
      return i[3] == first ? turned.real() : turned.imag();
    });
}

TEST(Reference, AttentionIsSoftmaxOfAllVisibleScores) {
  struct Form {
    const char *name;
    bool (*sees)(int64_t query, int64_t key);
    double cap = 0.0;
  };
  const Form forms[] = {
      {"attention", [](int64_t, int64_t) { return true; }},
      {"attention_causal", [](int64_t i, int64_t j) { return j <= i; }},
      {"attention_chunk", [](int64_t i, int64_t j) { return j <= i && i / 3 == j / 3; }},
      {"attention_window", [](int64_t i, int64_t j) { return j <= i && i - j < 2; }},
      {"attention_both",
       [](int64_t i, int64_t j) { return j <= i && i / 4 == j / 4 && i - j < 2; }},
      {"attention_cap", [](int64_t, int64_t) { return true; }, 0.8},
      {"attention_cap_window", [](int64_t i, int64_t j) { return j <= i && i - j < 2; }, 1.5},
  };
  for (const Form &f : forms)
    expectResult(f.name, [&](auto at, const Index &i) {
      const View q = at("q"), k = at("k"), v = at("v");
      const int64_t keyHead = i[2] / (q.dim(2) / k.dim(2));
      double total = 0.0, sum = 0.0;
      for (int64_t j = 0; j < k.dim(1); ++j) {
        if (!f.sees(i[1], j))
          continue;
        double score = 0.0;
        for (int64_t e = 0; e < q.dim(3); ++e)
          score += q({i[0], i[1], i[2], e}) * k({i[0], j, keyHead, e});
        score *= 0.7;
        if (f.cap > 0.0)
          score = f.cap * std::tanh(score / f.cap);
        const double share = std::exp(score);
        total += share;
        sum += share * v({i[0], j, keyHead, i[3]});
      }
      return sum / total;
    });
}

namespace {

/// The mean of -ln(softmax(z)[label]) over the rows whose label is not -100.
double meanSurprise(const RefTensor &labels, int64_t classes,
                    const std::function<double(int64_t row, int64_t column)> &z) {
  double sum = 0.0, valid = 0.0;
  for (int64_t t = 0; t < labels.size(); ++t) {
    if (labels.data[t] == -100)
      continue;
    double total = 0.0;
    for (int64_t c = 0; c < classes; ++c)
      total += std::exp(z(t, c));
    sum -= std::log(std::exp(z(t, static_cast<int64_t>(labels.data[t]))) / total);
    valid += 1.0;
  }
  return valid > 0.0 ? sum / valid : 0.0;
}

} // namespace

TEST(Reference, CrossEntropyIsTheMeanSurprise) {
  for (const std::string form : {"", "_ignored", "_all_ignored"}) {
    expectResult("cross_entropy" + form, [](auto at, const Index &) {
      const RefTensor x = at("x").flat();
      return meanSurprise(at("labels").flat(), x.cols(),
                          [&](int64_t t, int64_t c) { return x.data[t * x.cols() + c]; });
    });
    expectResult("linear_cross_entropy" + form, [](auto at, const Index &) {
      const RefTensor x = at("x").flat(), w = at("w").flat();
      return meanSurprise(at("labels").flat(), w.shape[0], [&](int64_t t, int64_t c) {
        return std::inner_product(&x.data[t * x.cols()], &x.data[t * x.cols()] + x.cols(),
                                  &w.data[c * w.cols()], 0.0);
      });
    });
  }
}

namespace {

/// linear + cross entropy over 37 rows and 101 classes, as one operation or as two.
SmallModel lossModel(bool fused, double ignored) {
  SmallModel m;
  m.parameters = {{"x", {37, 12}}, {"w", {101, 12}}};
  m.ids = {{"labels", {37}, 101, ignored}};
  m.code = fused ? "    %y = hydra.linear_cross_entropy %x, %w, %labels\n"
                 : "    %z = hydra.linear %x, %w\n    %y = hydra.cross_entropy %z, %labels\n";
  return m;
}

} // namespace

TEST(Reference, LinearCrossEntropyEqualsLinearThenCrossEntropy) {
  for (const double ignored : {0.0, 0.3, 1.0}) {
    SCOPED_TRACE(ignored);
    SmallProgram fused(lossModel(true, ignored)), separate(lossModel(false, ignored));
    ASSERT_EQ(fused.error + separate.error, "");
    const TensorMap values = lossModel(true, ignored).values(5);
    const TensorMap a = fused.differentiate(values), b = separate.differentiate(values);
    for (const char *name : {"loss", "grad.x", "grad.w"}) {
      const RefTensor left = a.lookup(name), right = b.lookup(name);
      ASSERT_EQ(left.shape, right.shape);
      ASSERT_GT(left.size(), 0);
      for (int64_t i = 0; i < left.size(); ++i) {
        ASSERT_NEAR(left.data[i], right.data[i], 1e-14) << name;
        if (ignored == 1.0)
          ASSERT_EQ(left.data[i], 0.0) << name;
      }
    }
  }
}

TEST(Reference, SoftmaxOfMinusInfinitiesIsZero) {
  SmallModel m;
  m.parameters = {{"x", {2, 3}}};
  m.resultShape = {2, 3};
  m.code = "    %y = hydra.softmax %x\n";
  SmallProgram program(m);
  ASSERT_EQ(program.error, "");
  TensorMap values = m.values(1);
  const double none = -std::numeric_limits<double>::infinity();
  values["x"].data = {none, none, none, none, 2.0, none};
  EXPECT_EQ(program.evaluate(values).data, (std::vector<double>{0, 0, 0, 0, 1, 0}));
}

TEST(Reference, LossesStayFiniteForLargeLogits) {
  SmallModel m;
  m.parameters = {{"x", {2, 3}}};
  m.ids = {{"labels", {2}, 3}};
  m.code = "    %y = hydra.cross_entropy %x, %labels\n";
  SmallProgram program(m);
  ASSERT_EQ(program.error, "");
  TensorMap values = m.values(1);
  values["x"].data = {1000.0, 0.0, -1000.0, 0.0, 0.0, -5000.0};
  values["labels"].data = {2, 0};
  EXPECT_DOUBLE_EQ(program.evaluate(values).data[0], 0.5 * (2000.0 + std::log(2.0)));
}

TEST(Reference, ReductionsVisitEveryElementOnce) {
  struct Form {
    const char *op;
    double (*fold)(const std::vector<double> &);
  };
  const Form forms[] = {
      {"sum",
       [](const std::vector<double> &v) { return std::accumulate(v.begin(), v.end(), 0.0); }},
      {"mean",
       [](const std::vector<double> &v) {
         return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
       }},
      {"reduce_max",
       [](const std::vector<double> &v) { return *std::max_element(v.begin(), v.end()); }},
  };
  for (const Form &f : forms) {
    SmallModel m;
    m.parameters = {{"x", {2, 3, 4}}};
    m.resultShape = {3};
    m.code = std::string("    %y = hydra.") + f.op + " %x axes = [-1, 0]\n";
    SmallProgram program(m);
    ASSERT_EQ(program.error, "");
    const TensorMap values = m.values(2);
    const View x(values.lookup("x"));
    const RefTensor y = program.evaluate(values);
    for (int64_t j = 0; j < 3; ++j) {
      std::vector<double> terms;
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t k = 0; k < 4; ++k)
          terms.push_back(x({i, j, k}));
      EXPECT_NEAR(y.data[j], f.fold(terms), 1e-14) << f.op;
    }
  }
}

TEST(Reference, MovementPutsElementsWhereTheyBelong) {
  SmallModel m;
  m.parameters = {{"x", {2, 3}}};
  TensorMap values = m.values(1);
  values["x"].data = {1, 2, 3, 4, 5, 6};
  struct Form {
    const char *code;
    Index shape;
    std::vector<double> result;
  };
  const Form forms[] = {
      {"transpose %x order = [1, 0]", {3, 2}, {1, 4, 2, 5, 3, 6}},
      {"reshape %x shape = [3, 2]", {3, 2}, {1, 2, 3, 4, 5, 6}},
      {"slice %x axis = 1 start = 1 size = 2", {2, 2}, {2, 3, 5, 6}},
      {"pad %x axis = 0 before = 1 after = 0", {3, 3}, {0, 0, 0, 1, 2, 3, 4, 5, 6}},
      {"pad %x axis = 1 before = 0 after = 1", {2, 4}, {1, 2, 3, 0, 4, 5, 6, 0}},
      {"concat %x, %x axis = 1", {2, 6}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},
      {"concat %x, %x axis = 0", {4, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}},
      {"broadcast %x shape = [2, 2, 3]", {2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}},
  };
  for (const Form &f : forms) {
    m.resultShape = f.shape;
    m.code = std::string("    %y = hydra.") + f.code + "\n";
    values["weight"] = RefTensor(f.shape);
    SmallProgram program(m);
    ASSERT_EQ(program.error, "");
    EXPECT_EQ(program.evaluate(values).data, f.result) << f.code;
  }
}

TEST(Reference, ComparisonsCastsAndIndices) {
  SmallModel m;
  m.parameters = {{"x", {5}}};
  m.resultShape = {5};
  TensorMap values = m.values(1);
  values["x"].data = {-2.5, 1.0, 2.0, 3.0, 4.9};
  const std::pair<const char *, std::vector<double>> comparisons[] = {
      {"eq", {0, 0, 1, 0, 0}}, {"ne", {1, 1, 0, 1, 1}}, {"lt", {1, 1, 0, 0, 0}},
      {"le", {1, 1, 1, 0, 0}}, {"gt", {0, 0, 0, 1, 1}}, {"ge", {0, 0, 1, 1, 1}},
  };
  for (const auto &[is, result] : comparisons) {
    m.code = std::string("    %two = hydra.constant value = 2.0\n"
                         "    %c = hydra.compare %x, %two is = \"") +
             is +
             "\"\n    %one = hydra.constant value = 1.0\n"
             "    %zero = hydra.constant value = 0.0\n"
             "    %y = hydra.select %c, %one, %zero\n";
    // Both alternatives are scalars; the condition gives the shape.
    SmallProgram program(m);
    ASSERT_EQ(program.error, "");
    EXPECT_EQ(program.evaluate(values).data, result) << is;
  }
  m.code = "    %whole = hydra.cast %x to = i32\n    %y = hydra.cast %whole to = f32\n";
  SmallProgram cast(m);
  ASSERT_EQ(cast.error, "");
  EXPECT_EQ(cast.evaluate(values).data, (std::vector<double>{-2, 1, 2, 3, 4}));
  m.code = "    %i = hydra.iota shape = [5] axis = 0 dtype = f32\n    %y = hydra.mul %x, %i\n";
  SmallProgram iota(m);
  ASSERT_EQ(iota.error, "");
  EXPECT_EQ(iota.evaluate(values).data, (std::vector<double>{-0.0, 1, 4, 9, 4.9 * 4}));
}

TEST(Reference, ActivationsHaveTheirFormulas) {
  const std::pair<const char *, double (*)(double)> activations[] = {
      {"sigmoid", [](double x) { return 0.5 * (1.0 + std::tanh(0.5 * x)); }},
      {"silu", [](double x) { return x / (1.0 + std::exp(-x)); }},
      {"gelu",
       [](double x) {
         const double u = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
         return x / (1.0 + std::exp(-2.0 * u));
       }},
      {"tanh", [](double x) { return 1.0 - 2.0 / (1.0 + std::exp(2.0 * x)); }},
      {"rsqrt", [](double x) { return std::pow(x, -0.5); }},
  };
  for (const auto &[op, formula] : activations)
    expectResult(op, [f = formula](auto at, const Index &i) { return f(at("x")(i)); });
}

//===-- Bad data ----------------------------------------------------------------------------===//

TEST(Reference, ReportsIdsOutOfRangeAtTheirLine) {
  SmallModel m;
  m.parameters = {{"table", {4, 2}}};
  m.ids = {{"tokens", {3}, 4}};
  m.resultShape = {3, 2};
  m.code = "    %y = hydra.embedding %tokens, %table\n";
  for (const double bad : {-1.0, 4.0}) {
    SmallProgram program(m);
    ASSERT_EQ(program.error, "");
    TensorMap values = m.values(1);
    values["tokens"].data[1] = bad;
    program.evaluate(values);
    EXPECT_NE(program.error.find("at position 1 is not in [0, 4)"), std::string::npos)
        << program.error;
    EXPECT_EQ(program.error.compare(0, 12, "test.mlir:5:"), 0) << program.error;
  }
}

TEST(Reference, RowsOfComputedIdsOutOfRangeAreNoNumbers) {
  SmallModel m;
  m.parameters = {{"table", {4, 2}}};
  m.ids = {{"tokens", {3}, 4}};
  m.resultShape = {3, 2};
  m.code = "    %one = hydra.constant dtype = i32 shape = [3] value = 1\n"
           "    %ids = hydra.add %tokens, %one\n"
           "    %y = hydra.embedding %ids, %table\n";
  SmallProgram program(m);
  ASSERT_EQ(program.error, "");
  TensorMap values = m.values(1);
  values["tokens"].data = {2, 3, 0};
  const RefTensor y = program.evaluate(values);
  const RefTensor &table = values["table"];
  for (const int64_t i : {0, 1}) {
    EXPECT_EQ(y.data[i], table.data[3 * 2 + i]);
    EXPECT_TRUE(std::isnan(y.data[2 + i]));
    EXPECT_EQ(y.data[4 + i], table.data[1 * 2 + i]);
  }
}

TEST(Reference, ReportsLabelsOutOfRange) {
  for (const bool fused : {false, true}) {
    const SmallModel m = lossModel(fused, 0.0);
    SmallProgram program(m);
    ASSERT_EQ(program.error, "");
    TensorMap values = m.values(1);
    values["labels"].data[7] = -99;
    program.evaluate(values);
    EXPECT_NE(program.error.find("label -99 at position 7 is not in [0, 101) or -100"),
              std::string::npos)
        << program.error;
  }
}

TEST(Reference, ReportsMissingAndMisshapenValues) {
  const SmallModel m = lossModel(true, 0.0);
  SmallProgram missing(m), misshapen(m);
  ASSERT_EQ(missing.error + misshapen.error, "");
  TensorMap values = m.values(1);
  values["w"] = RefTensor({101, 11});
  misshapen.evaluate(values);
  EXPECT_NE(misshapen.error.find("got 'w' of shape [101, 11]; expected [101, 12]"),
            std::string::npos)
      << misshapen.error;
  values.erase("w");
  missing.evaluate(values);
  EXPECT_NE(missing.error.find("needs a value for 'w'"), std::string::npos) << missing.error;
}

TEST(Reference, RoundingGivesWhatTheTypesCanHold) {
  SmallModel m;
  m.parameters = {{"x", {64}}};
  m.resultShape = {64};
  m.code = "    %b = hydra.cast %x to = bf16\n    %y = hydra.cast %b to = f32\n";
  SmallProgram program(m);
  ASSERT_EQ(program.error, "");
  const TensorMap values = m.values(1);
  auto rounded = interpret(program.forward(), values, {.round = true});
  auto exact = interpret(program.forward(), values);
  ASSERT_TRUE(succeeded(rounded) && succeeded(exact));
  EXPECT_TRUE(sameBits(exact->lookup("result"), values.lookup("x")));
  for (int64_t i = 0; i < 64; ++i) {
    const double x = values.lookup("x").data[i], y = rounded->lookup("result").data[i];
    EXPECT_NE(x, y);
    EXPECT_NEAR(x, y, std::abs(x) * 0x1p-8);
    EXPECT_EQ(std::fmod(std::ldexp(y, 7 - std::ilogb(y)), 1.0), 0.0); // 8 significant bits
  }
}
