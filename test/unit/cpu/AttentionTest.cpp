// Attention against a plain evaluation in double, over masks, ragged sizes and strided layouts; the
// bits against the number of threads; and, by --gtest_also_run_disabled_tests, its speed.
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/AttentionKernels.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace hydra::runtime;

namespace {

/// A [batch, rows, heads, width] tensor with `gap` unused elements behind each row.
struct Buffer {
  int64_t rows, heads, width, gap;
  std::vector<float> values;

  Buffer(int64_t batch, int64_t rows, int64_t heads, int64_t width, int64_t gap, float unused)
      : rows(rows), heads(heads), width(width), gap(gap),
        values(static_cast<size_t>(batch * rows * rowStride()), unused) {}

  int64_t rowStride() const { return heads * width + gap; }
  AttentionTensor<float> view() { return {values.data(), rows * rowStride(), rowStride(), width}; }
  AttentionTensor<const float> constView() const {
    return {values.data(), rows * rowStride(), rowStride(), width};
  }
  float &at(int64_t b, int64_t r, int64_t h, int64_t e) {
    return values[static_cast<size_t>((b * rows + r) * rowStride() + h * width + e)];
  }
  void randomise(std::mt19937 &random, float size) {
    std::normal_distribution<float> normal(0.0f, size);
    for (size_t i = 0; i < values.size(); ++i)
      if (static_cast<int64_t>(i) % rowStride() < heads * width)
        values[i] = normal(random);
  }
};

bool sees(const AttentionShape &s, int64_t i, int64_t j) {
  return (!s.causal || j <= i) && (s.chunk == 0 || i / s.chunk == j / s.chunk) &&
         (s.window == 0 || i - j < s.window);
}

/// Results of one evaluation, dense, in double whatever they were computed in.
struct Results {
  std::vector<double> o, lse, dq, dk, dv;
};

struct Problem {
  AttentionShape shape;
  Buffer q, k, v, dO;

  Problem(const AttentionShape &shape, uint32_t seed, int64_t gap)
      : shape(shape),
        // A gap is never read: NaN would show.
        q(shape.batch, shape.queries, shape.heads, shape.headDim, gap, NAN),
        k(shape.batch, shape.keys, shape.kvHeads, shape.headDim, gap, NAN),
        v(shape.batch, shape.keys, shape.kvHeads, shape.valueDim, gap, NAN),
        dO(shape.batch, shape.queries, shape.heads, shape.valueDim, gap, NAN) {
    std::mt19937 random(seed);
    q.randomise(random, 1.0f);
    k.randomise(random, 1.0f);
    v.randomise(random, 1.0f);
    dO.randomise(random, 1.0f);
  }

  /// The formulas of models.md section 1.3, all in Real. `sizes`, if given, become the sizes of the
  /// terms that each number is a sum of, as the root of the sum of their squares: what rounding
  /// errors are relative to, however much of the terms cancels.
  template <typename Real> Results plain(Results *sizes = nullptr) {
    const AttentionShape &s = shape;
    const int64_t group = s.heads / s.kvHeads;
    const auto zeros = [](int64_t n) { return std::vector<Real>(static_cast<size_t>(n)); };
    std::vector<Real> o = zeros(s.batch * s.queries * s.heads * s.valueDim),
                      lse = zeros(s.batch * s.heads * s.queries),
                      dq = zeros(s.batch * s.queries * s.heads * s.headDim),
                      dk = zeros(s.batch * s.keys * s.kvHeads * s.headDim),
                      dv = zeros(s.batch * s.keys * s.kvHeads * s.valueDim);
    Results squares{std::vector<double>(o.size()), std::vector<double>(lse.size()),
                    std::vector<double>(dq.size()), std::vector<double>(dk.size()),
                    std::vector<double>(dv.size())};
    const auto square = [](double x) { return x * x; };
    std::vector<Real> scores = zeros(s.keys), slopes = zeros(s.keys), p = zeros(s.keys);
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t i = 0; i < s.queries; ++i) {
          const int64_t g = h / group;
          Real highest = -std::numeric_limits<Real>::infinity(), sum = 0;
          double ofScores = 1; // an error of a score is a relative one of its weight
          for (int64_t j = 0; j < s.keys; ++j) {
            if (!sees(s, i, j))
              continue;
            Real dot = 0;
            double terms = 0;
            for (int64_t e = 0; e < s.headDim; ++e) {
              const Real term = Real(q.at(b, i, h, e)) * Real(k.at(b, j, g, e));
              dot += term;
              terms += square(term * s.scale);
            }
            ofScores = std::max(ofScores, 1 + terms);
            scores[size_t(j)] = dot * Real(s.scale);
            slopes[size_t(j)] = Real(s.scale);
            if (s.cap > 0) {
              const Real tangent = std::tanh(scores[size_t(j)] / Real(s.cap));
              scores[size_t(j)] = Real(s.cap) * tangent;
              slopes[size_t(j)] *= 1 - tangent * tangent;
            }
            highest = std::max(highest, scores[size_t(j)]);
          }
          for (int64_t j = 0; j < s.keys; ++j) {
            p[size_t(j)] = sees(s, i, j) ? std::exp(scores[size_t(j)] - highest) : Real(0);
            sum += p[size_t(j)];
          }
          const Real rowLse = highest + std::log(sum);
          lse[size_t((b * s.heads + h) * s.queries + i)] = rowLse;
          squares.lse[size_t((b * s.heads + h) * s.queries + i)] = ofScores + square(rowLse);
          const size_t ofRow = size_t(((b * s.queries + i) * s.heads + h) * s.valueDim);
          Real delta = 0;
          double ofDelta = 0;
          for (int64_t e = 0; e < s.valueDim; ++e) {
            for (int64_t j = 0; j < s.keys; ++j)
              if (sees(s, i, j)) {
                const Real term = p[size_t(j)] / sum * Real(v.at(b, j, g, e));
                o[ofRow + size_t(e)] += term;
                squares.o[ofRow + size_t(e)] += ofScores * square(term);
              }
            const Real upstream = dO.at(b, i, h, e);
            delta += o[ofRow + size_t(e)] * upstream;
            ofDelta += squares.o[ofRow + size_t(e)] * square(upstream);
          }
          for (int64_t j = 0; j < s.keys; ++j) {
            if (!sees(s, i, j))
              continue;
            const Real weight = std::exp(scores[size_t(j)] - rowLse);
            Real dP = 0;
            double ofDP = 0;
            for (int64_t e = 0; e < s.valueDim; ++e) {
              const Real upstream = dO.at(b, i, h, e);
              const Real term = upstream * Real(v.at(b, j, g, e));
              dP += term;
              ofDP += square(term);
              const size_t at = size_t(((b * s.keys + j) * s.kvHeads + g) * s.valueDim + e);
              dv[at] += weight * upstream;
              squares.dv[at] += ofScores * square(weight * upstream);
            }
            const Real dS = weight * (dP - delta) * slopes[size_t(j)];
            const double ofDS =
                ofScores * square(weight * s.scale) * (ofDP + ofDelta + square(dP) + square(delta));
            for (int64_t e = 0; e < s.headDim; ++e) {
              const size_t ofQuery = size_t(((b * s.queries + i) * s.heads + h) * s.headDim + e);
              const size_t ofKey = size_t(((b * s.keys + j) * s.kvHeads + g) * s.headDim + e);
              dq[ofQuery] += dS * Real(k.at(b, j, g, e));
              squares.dq[ofQuery] += ofDS * square(k.at(b, j, g, e));
              dk[ofKey] += dS * Real(q.at(b, i, h, e));
              squares.dk[ofKey] += ofDS * square(q.at(b, i, h, e));
            }
          }
        }
    if (sizes) {
      for (std::vector<double> Results::*field :
           {&Results::o, &Results::lse, &Results::dq, &Results::dk, &Results::dv})
        for (double &x : squares.*field)
          x = std::sqrt(x);
      *sizes = std::move(squares);
    }
    const auto doubles = [](const std::vector<Real> &x) {
      return std::vector<double>(x.begin(), x.end());
    };
    return {doubles(o), doubles(lse), doubles(dq), doubles(dk), doubles(dv)};
  }
};

/// The tiled kernels on `problem`, with everything that they need.
struct TiledRun {
  static constexpr float untouched = 12345.0f;
  Problem &problem;
  Buffer o, dq, dk, dv;
  std::vector<float> lse;
  std::vector<std::byte> scratchBytes, workspaceBytes;
  WorkerScratch scratch;
  void *workspace;
  ThreadPool pool;

  TiledRun(Problem &p, unsigned threads)
      : problem(p),
        o(p.shape.batch, p.shape.queries, p.shape.heads, p.shape.valueDim, p.q.gap, untouched),
        dq(p.shape.batch, p.shape.queries, p.shape.heads, p.shape.headDim, p.q.gap, untouched),
        dk(p.shape.batch, p.shape.keys, p.shape.kvHeads, p.shape.headDim, p.q.gap, untouched),
        dv(p.shape.batch, p.shape.keys, p.shape.kvHeads, p.shape.valueDim, p.q.gap, untouched),
        lse(size_t(p.shape.batch * p.shape.heads * p.shape.queries)), pool(threads) {
    checkAttentionShape(p.shape);
    scratch.bytesPerWorker = (attentionScratchBytes(p.shape) + 63) / 64 * 64;
    // 0xff: not a number wherever something is read before it is written. The sizes are exact, so
    // that the address sanitizer sees a step beyond.
    scratchBytes.assign(scratch.bytesPerWorker * threads + 63, std::byte{0xff});
    scratch.base = aligned(scratchBytes);
    workspaceBytes.assign(attentionWorkspaceBytes(p.shape, true) + 63, std::byte{0xff});
    workspace = aligned(workspaceBytes);
  }

  static std::byte *aligned(std::vector<std::byte> &bytes) {
    return reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 *
                                         64);
  }

  void forward() {
    const AttentionForward<float> tensors{problem.q.constView(), problem.k.constView(),
                                          problem.v.constView(), o.view(), lse.data()};
    attentionForward(problem.shape, tensors, pool, scratch);
  }
  void backward() {
    const AttentionBackward<float> tensors{problem.q.constView(),
                                           problem.k.constView(),
                                           problem.v.constView(),
                                           o.constView(),
                                           problem.dO.constView(),
                                           lse.data(),
                                           dq.view(),
                                           dk.view(),
                                           dv.view(),
                                           workspace};
    attentionBackward(problem.shape, tensors, pool, scratch);
  }

  /// Values without the gaps, which must be as they were.
  static std::vector<double> dense(const Buffer &buffer) {
    std::vector<double> values;
    for (size_t i = 0; i < buffer.values.size(); ++i)
      if (static_cast<int64_t>(i) % buffer.rowStride() < buffer.heads * buffer.width)
        values.push_back(buffer.values[i]);
      else
        EXPECT_EQ(buffer.values[i], untouched) << "a gap was written";
    return values;
  }
  Results results() const {
    return {dense(o), std::vector<double>(lse.begin(), lse.end()), dense(dq), dense(dk), dense(dv)};
  }
};

/// L2 distance. Positions where both are minus infinity agree.
double distance(const std::vector<double> &x, const std::vector<double> &reference) {
  EXPECT_EQ(x.size(), reference.size());
  double squares = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (!std::isinf(reference[i]) || x[i] != reference[i])
      squares += (x[i] - reference[i]) * (x[i] - reference[i]);
  return std::sqrt(squares);
}

/// At most twice as far from the exact result as plain single precision is, and a few roundings of
/// the terms that were added up: of few numbers, single precision may be right by chance.
void expectClose(Problem &problem, const Results &mine) {
  constexpr double roundings = 4 * 0x1p-24;
  Results sizes;
  const Results single = problem.plain<float>(), exact = problem.plain<double>(&sizes);
  const auto check = [&](const char *what, const std::vector<double> Results::*field) {
    double terms = 0;
    for (const double size : sizes.*field)
      terms += std::isfinite(size) ? size * size : 0;
    EXPECT_LE(distance(mine.*field, exact.*field),
              2 * distance(single.*field, exact.*field) + roundings * std::sqrt(terms))
        << what;
  };
  check("o", &Results::o);
  check("lse", &Results::lse);
  check("dq", &Results::dq);
  check("dk", &Results::dk);
  check("dv", &Results::dv);
}

struct Mask {
  bool causal = false;
  int64_t chunk = 0, window = 0;
};
constexpr Mask causal{.causal = true};

AttentionShape makeShape(int64_t batch, int64_t queries, int64_t keys, int64_t heads,
                         int64_t kvHeads, int64_t headDim, int64_t valueDim, Mask mask = causal) {
  return {batch,       queries,    keys,       heads,
          kvHeads,     headDim,    valueDim,   1 / std::sqrt(double(headDim)),
          mask.causal, mask.chunk, mask.window};
}

void check(const AttentionShape &shape, uint32_t seed, int64_t gap) {
  SCOPED_TRACE(testing::Message() << "B " << shape.batch << " S " << shape.queries << " Sk "
                                  << shape.keys << " H " << shape.heads << " Hk " << shape.kvHeads
                                  << " hd " << shape.headDim << " dv " << shape.valueDim
                                  << " causal " << shape.causal << " chunk " << shape.chunk
                                  << " window " << shape.window << " cap " << shape.cap << " seed "
                                  << seed);
  Problem problem(shape, seed, gap);
  TiledRun run(problem, 2);
  run.forward();
  run.backward();
  expectClose(problem, run.results());
}

} // namespace

TEST(Attention, MatchesThePlainEvaluation) {
  uint32_t seed = 1;
  for (const AttentionShape &shape : {
           makeShape(2, 64, 64, 2, 2, 64, 64),
           makeShape(1, 1, 1, 1, 1, 16, 16),
           makeShape(1, 1, 1, 1, 1, 1, 1),
           makeShape(2, 37, 37, 3, 1, 24, 24),
           makeShape(1, 129, 129, 4, 2, 64, 64),
           makeShape(1, 200, 200, 2, 1, 128, 128),
           makeShape(1, 100, 100, 6, 3, 33, 47),
           makeShape(3, 65, 65, 2, 2, 80, 80),
           makeShape(1, 150, 150, 1, 1, 16, 40, Mask{}),
           makeShape(2, 70, 133, 2, 1, 48, 48, Mask{}),
           makeShape(1, 133, 70, 2, 1, 48, 48, causal),
           makeShape(1, 70, 133, 2, 2, 32, 32, causal),
           makeShape(2, 300, 300, 2, 2, 16, 16, Mask{.causal = true, .chunk = 100}),
           makeShape(1, 256, 256, 1, 1, 64, 64, Mask{.causal = true, .chunk = 64}),
           makeShape(1, 190, 190, 2, 1, 20, 20, Mask{.causal = true, .chunk = 7}),
           makeShape(1, 300, 300, 2, 1, 32, 32, Mask{.causal = true, .window = 77}),
           makeShape(1, 140, 140, 1, 1, 16, 16, Mask{.causal = true, .window = 1}),
           makeShape(1, 140, 140, 1, 1, 16, 16, Mask{.causal = true, .window = 1000}),
           makeShape(1, 150, 140, 1, 1, 16, 24, Mask{.chunk = 50}),
           makeShape(1, 150, 140, 1, 1, 16, 24, Mask{.window = 30}),
           makeShape(1, 150, 150, 1, 1, 16, 24, Mask{.causal = true, .chunk = 80, .window = 30}),
           makeShape(1, 90, 90, 1, 1, 40, 300),
           makeShape(1, 40, 40, 2, 1, 270, 17),
       })
    check(shape, seed++, 5);
}

TEST(Attention, MatchesThePlainEvaluationOnRandomShapes) {
  std::mt19937 random(std::random_device{}());
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 25; ++trial) {
    const int64_t kvHeads = draw(1, 3), group = draw(1, 3), queries = draw(1, 170);
    const bool square = draw(0, 2) > 0;
    AttentionShape shape =
        makeShape(draw(1, 2), queries, square ? queries : draw(1, 170), kvHeads * group, kvHeads,
                  draw(1, 130), draw(1, 130),
                  Mask{draw(0, 1) > 0, draw(0, 1) * draw(1, 100), draw(0, 1) * draw(1, 100)});
    shape.cap = static_cast<double>(draw(0, 1) * draw(1, 60));
    check(shape, static_cast<uint32_t>(random()), draw(0, 20));
  }
}

TEST(Attention, CapsScores) {
  uint32_t seed = 100;
  for (const double cap : {0.3, 2.0, 50.0})
    for (AttentionShape shape : {
             makeShape(2, 64, 64, 2, 2, 64, 64),
             makeShape(1, 1, 1, 1, 1, 1, 1),
             makeShape(1, 100, 100, 6, 3, 33, 47),
             makeShape(2, 70, 133, 2, 1, 48, 48, Mask{}),
             makeShape(1, 190, 190, 2, 1, 20, 20, Mask{.causal = true, .chunk = 7}),
             makeShape(1, 300, 300, 2, 1, 32, 32, Mask{.causal = true, .window = 77}),
             makeShape(1, 130, 130, 4, 2, 256, 256, causal),
             makeShape(1, 40, 40, 2, 1, 270, 17),
         }) {
      shape.cap = cap;
      check(shape, seed++, 5);
    }
}

TEST(Attention, QueryThatSeesNothingGivesZero) {
  // The second chunk of queries has no keys.
  Problem problem(makeShape(1, 12, 6, 1, 1, 16, 16, Mask{.causal = true, .chunk = 6}), 3, 0);
  TiledRun run(problem, 1);
  run.forward();
  run.backward();
  for (int64_t i = 6; i < 12; ++i) {
    EXPECT_EQ(run.lse[size_t(i)], -std::numeric_limits<float>::infinity());
    for (int64_t e = 0; e < 16; ++e) {
      EXPECT_EQ(run.o.at(0, i, 0, e), 0.0f);
      EXPECT_EQ(run.dq.at(0, i, 0, e), 0.0f);
    }
  }
  for (const float x : run.dk.values)
    EXPECT_TRUE(std::isfinite(x));
}

TEST(Attention, LargeScoresNeitherOverflowNorVanish) {
  Problem problem(makeShape(1, 80, 80, 1, 1, 32, 32), 4, 0);
  for (float &x : problem.q.values)
    x *= 60.0f;
  TiledRun run(problem, 1);
  run.forward();
  run.backward();
  expectClose(problem, run.results());
}

TEST(Attention, NumberOfThreadsDoesNotChangeTheBits) {
  for (const AttentionShape &shape :
       {makeShape(1, 333, 333, 2, 1, 64, 64), makeShape(2, 100, 100, 3, 3, 24, 40),
        makeShape(3, 65, 65, 8, 4, 16, 16)}) {
    Problem problem(shape, 5, 0);
    TiledRun one(problem, 1);
    one.forward();
    one.backward();
    for (const unsigned threads : {2u, 3u, 7u}) {
      TiledRun many(problem, threads);
      many.forward();
      many.backward();
      EXPECT_EQ(one.o.values, many.o.values);
      EXPECT_EQ(one.lse, many.lse);
      EXPECT_EQ(one.dq.values, many.dq.values);
      EXPECT_EQ(one.dk.values, many.dk.values);
      EXPECT_EQ(one.dv.values, many.dv.values);
    }
  }
}

TEST(Attention, LevelsWithFmaGiveTheSameBits) {
  if (!__builtin_cpu_supports("x86-64-v4"))
    GTEST_SKIP() << "needs AVX-512";
  const AttentionShape shape = makeShape(1, 64, 64, 1, 1, 40, 40);
  Problem problem(shape, 6, 0);
  std::vector<std::vector<float>> outputs;
  for (const AttentionBuild *build :
       {&v4::attentionBuild, &v3::attentionBuild, &baseline::attentionBuild}) {
    const AttentionKernels<float> *kernels = &build->f32;
    TiledRun run(problem, 1);
    auto *scratch = reinterpret_cast<float *>(run.scratch.of(0));
    kernels->forward(shape,
                     {problem.q.constView(), problem.k.constView(), problem.v.constView(),
                      run.o.view(), run.lse.data()},
                     0, 0, 0, scratch);
    const AttentionBackward<float> backward{
        problem.q.constView(),  problem.k.constView(), problem.v.constView(), run.o.constView(),
        problem.dO.constView(), run.lse.data(),        run.dq.view(),         run.dk.view(),
        run.dv.view(),          run.workspace};
    kernels->delta(shape, backward, 0, 0, 0);
    kernels->backward(shape, backward, 0, 0, 0, scratch);
    kernels->gather(shape, backward, 0, 0, 0);
    expectClose(problem, run.results());
    outputs.push_back(run.o.values);
    outputs.push_back(run.dq.values);
    outputs.push_back(run.dv.values);
  }
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(outputs[i], outputs[i + 3]);
}

template <typename T> uint16_t halfOf(double x) {
  return std::is_same_v<T, F16> ? hydra::support::f16FromDouble(x)
                                : hydra::support::bf16FromDouble(x);
}

/// The numbers of a buffer in 16 bits, with the same strides.
template <typename T> struct Halves {
  std::vector<T> bits;
  const Buffer &like;

  explicit Halves(const Buffer &buffer) : like(buffer) {
    for (const float x : buffer.values)
      bits.push_back({halfOf<T>(x)});
  }
  AttentionTensor<T> view() {
    const auto strides = like.constView();
    return {bits.data(), strides.batchStride, strides.rowStride, strides.headStride};
  }
  AttentionTensor<const T> constView() const {
    const auto strides = like.constView();
    return {bits.data(), strides.batchStride, strides.rowStride, strides.headStride};
  }
};

template <typename T> void roundTo(Buffer &buffer) {
  for (float &x : buffer.values)
    x = std::is_same_v<T, F16> ? hydra::support::f16ToFloat(halfOf<T>(x))
                               : hydra::support::bf16ToFloat(halfOf<T>(x));
}

template <typename T> void expectRounded(const Halves<T> &low, const Buffer &wide) {
  for (size_t i = 0; i < wide.values.size(); ++i)
    ASSERT_EQ(low.bits[i].bits, halfOf<T>(wide.values[i])) << i;
}

// On the same numbers, 16-bit tensors give what f32 tensors give, rounded once.
template <typename T> void expectRoundedOnce() {
  for (const AttentionShape &shape :
       {makeShape(2, 70, 70, 4, 2, 64, 64), makeShape(1, 33, 130, 3, 1, 20, 40),
        makeShape(1, 16, 16, 8, 8, 16, 16)}) {
    Problem problem(shape, 8, 0);
    for (Buffer *input : {&problem.q, &problem.k, &problem.v, &problem.dO})
      roundTo<T>(*input);
    TiledRun wide(problem, 2);
    wide.forward();
    Halves<T> q(problem.q), k(problem.k), v(problem.v), dO(problem.dO), o(wide.o), dq(wide.dq),
        dk(wide.dk), dv(wide.dv);
    std::vector<float> lse(wide.lse.size());
    attentionForward(
        shape,
        AttentionForward<T>{q.constView(), k.constView(), v.constView(), o.view(), lse.data()},
        wide.pool, wide.scratch);
    expectRounded(o, wide.o);
    EXPECT_EQ(lse, wide.lse);
    roundTo<T>(wide.o);
    wide.backward();
    std::vector<std::byte> workspace(attentionWorkspaceBytes(shape, false) + 63, std::byte{0xff});
    attentionBackward(shape,
                      AttentionBackward<T>{q.constView(), k.constView(), v.constView(),
                                           o.constView(), dO.constView(), lse.data(), dq.view(),
                                           dk.view(), dv.view(), TiledRun::aligned(workspace)},
                      wide.pool, wide.scratch);
    expectRounded(dq, wide.dq);
    expectRounded(dk, wide.dk);
    expectRounded(dv, wide.dv);
  }
}

TEST(Attention, HalfPrecisionRoundsOnce) {
  expectRoundedOnce<BF16>();
  expectRoundedOnce<F16>();
}

TEST(Attention, RefusesShapesThatCannotBe) {
  EXPECT_THROW(checkAttentionShape(makeShape(1, 4, 4, 3, 2, 8, 8)), hydra::support::Error);
  EXPECT_THROW(checkAttentionShape(makeShape(1, 0, 4, 1, 1, 8, 8)), hydra::support::Error);
  EXPECT_THROW(checkAttentionShape(makeShape(1, 4, 4, 1, 1, 5000, 8)), hydra::support::Error);
  EXPECT_THROW(checkAttentionShape(makeShape(1, 4, 4, 1, 1, 8, 8, Mask{.window = -1})),
               hydra::support::Error);
  AttentionShape capped = makeShape(1, 4, 4, 1, 1, 8, 8);
  for (const double cap : {-1.0, 1e-50, 1e39, static_cast<double>(NAN)}) {
    capped.cap = cap;
    EXPECT_THROW(checkAttentionShape(capped), hydra::support::Error);
  }
}

TEST(Attention, DISABLED_Benchmark) {
  std::printf("attention on %s, 2 threads: best of 10\n", attentionLevel());
  std::printf("  %-38s %10s %8s %10s %8s\n", "shape", "fwd us", "GFLOP/s", "bwd us", "GFLOP/s");
  for (const AttentionShape &shape :
       {makeShape(4, 256, 256, 6, 6, 64, 64), makeShape(4, 1024, 1024, 6, 6, 64, 64),
        makeShape(1, 4096, 4096, 4, 4, 64, 64), makeShape(4, 512, 512, 12, 4, 128, 128),
        makeShape(4, 1024, 1024, 12, 3, 16, 16), makeShape(2, 512, 512, 8, 8, 80, 80),
        makeShape(4, 512, 512, 6, 6, 64, 64, Mask{}),
        makeShape(4, 1024, 1024, 6, 6, 64, 64, Mask{.causal = true, .window = 256})}) {
    Problem problem(shape, 7, 0);
    TiledRun run(problem, 2);
    const auto best = [](auto &&fn) {
      double seconds = 1e9;
      for (int i = 0; i < 10; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        fn();
        seconds = std::min(
            seconds,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      return seconds;
    };
    const double forward = best([&] { run.forward(); }), backward = best([&] { run.backward(); });
    int64_t pairs = 0;
    for (int64_t i = 0; i < shape.queries; ++i)
      for (int64_t j = 0; j < shape.keys; ++j)
        pairs += sees(shape, i, j);
    const double unit = 2e-9 * double(pairs * shape.batch * shape.heads);
    char text[80];
    std::snprintf(text, sizeof text, "B%ld S%ld H%ld/%ld d%ld %s window %ld", shape.batch,
                  shape.queries, shape.heads, shape.kvHeads, shape.headDim,
                  shape.causal ? "causal" : "full", shape.window);
    std::printf("  %-38s %10.1f %8.1f %10.1f %8.1f\n", text, forward * 1e6,
                unit * double(shape.headDim + shape.valueDim) / forward, backward * 1e6,
                unit * double(3 * shape.headDim + 2 * shape.valueDim) / backward);
  }
}
