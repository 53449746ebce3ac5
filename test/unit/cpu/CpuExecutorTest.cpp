// Plans made by hand, run on the CPU: launches, loops, switches, library calls, views, refusals.
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/CpuFeatures.h"
#include "runtime/cpu/PreparedProgram.h"
#include "runtime/plan/Poison.h"
#include "runtime/support/Error.h"
#include "test/unit/cpu/Kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>

using namespace hydra::runtime;
using hydra::planfile::Arg;
using hydra::planfile::AttentionGradT;
using hydra::planfile::AttentionT;
using hydra::planfile::CopyT;
using hydra::planfile::EmbeddingGradT;
using hydra::planfile::FftT;
using hydra::planfile::FillT;
using hydra::planfile::LoopStride;
using hydra::planfile::MatmulT;
using hydra::planfile::SegmentKind;
using namespace hydra::test;

namespace {

std::vector<float> readFloats(Executor &executor, uint32_t tensor, size_t count) {
  std::vector<float> values(count);
  executor.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

void writeFloats(Executor &executor, uint32_t tensor, const std::vector<float> &values) {
  executor.write(tensor, std::as_bytes(std::span(values)));
}

/// An argument: a scalar of its own with this value, once `writeScalars` was called.
Arg number(PlanBuilder &builder, double value) {
  const size_t count = builder.plan.scalars.size();
  return builder.readsScalar(builder.scalar("number" + std::to_string(count), value));
}

/// What a run does before a step.
void writeScalars(Executor &executor, const PlanBuilder &builder) {
  for (const auto &scalar : builder.plan.scalars)
    writeFloats(executor, scalar->tensor, {static_cast<float>(scalar->schedule->peak)});
}

std::vector<float> randomFloats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &x : values)
    x = normal(random);
  return values;
}

/// What the loader or the executor says about a plan that must not run.
std::string refusal(const PlanBuilder &builder, const CpuOptions &options = {.threads = 1}) {
  try {
    const PlanFile file = builder.load();
    CpuExecutor executor(file, options);
  } catch (const hydra::support::Error &error) {
    return error.what();
  }
  return "(accepted)";
}

} // namespace

TEST(CpuExecutor, LaunchesKernelsOverGrains) {
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "scale_rows", 3);
  const uint32_t in = builder.tensor("in", {7, 4}), out = builder.tensor("out", {7, 4});
  builder.program(
      "main", blocks(launch("scale", kernel, 7, 2, {reads(in), writes(out), number(builder, 3)})));
  const PlanFile file = builder.load();
  for (const unsigned threads : {1u, 2u, 5u}) {
    CpuExecutor executor(file, {.threads = threads});
    writeScalars(executor, builder);
    const std::vector<float> values = randomFloats(28, 1);
    writeFloats(executor, in, values);
    executor.run(0);
    const std::vector<float> result = readFloats(executor, out, 28);
    for (size_t i = 0; i < 28; ++i)
      EXPECT_EQ(result[i], 3 * values[i]);
  }
}

TEST(CpuExecutor, ScalarsComeFromTheirBlock) {
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "add_scalar", 2);
  const uint32_t lr = builder.scalar("lr", 0.5);
  const uint32_t x = builder.tensor("x", {5});
  builder.program("main",
                  blocks(launch("add", kernel, 5, 5, {updates(x), builder.readsScalar(lr)})));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  writeFloats(executor, x, {0, 1, 2, 3, 4});
  writeFloats(executor, builder.plan.scalars[lr]->tensor, {0.25f});
  executor.run(0);
  EXPECT_EQ(readFloats(executor, x, 5), (std::vector<float>{0.25f, 1.25f, 2.25f, 3.25f, 4.25f}));
}

TEST(CpuExecutor, LoopsShiftTensorsAndAddUp) {
  // x[i][j] of [3, 4] gets +1 in an inner loop over j inside a loop over i, row[i] +1 in between.
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "add_scalar", 2);
  const uint32_t x = builder.tensor("x", {3, 4}), row = builder.tensor("row", {3});
  const SegmentKind transient = SegmentKind::transient;
  const uint32_t element =
      builder.view("x.element", {}, {}, transient, builder.plan.tensors[x]->offset);
  const uint32_t entry =
      builder.view("row.element", {}, {}, transient, builder.plan.tensors[row]->offset);
  Blocks inner = blocks(launch("one", kernel, 1, 1, {updates(element), number(builder, 1)}));
  Blocks body = blocks(launch("row", kernel, 1, 1, {updates(entry), number(builder, 1)}),
                       loop(4, {LoopStride(element, 4)}, std::move(inner)),
                       launch("last", kernel, 1, 1, {updates(element), number(builder, 10)}));
  builder.program("main",
                  blocks(loop(3, {LoopStride(element, 16), LoopStride(entry, 4)}, std::move(body)),
                         launch("after", kernel, 1, 1, {updates(element), number(builder, 100)})));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 2});
  writeScalars(executor, builder);
  for (int repeat = 1; repeat <= 2; ++repeat) { // addresses are back where they were
    writeFloats(executor, x, std::vector<float>(12, 0.0f));
    writeFloats(executor, row, std::vector<float>(3, 0.0f));
    executor.run(0);
    EXPECT_EQ(readFloats(executor, x, 12),
              (std::vector<float>{111, 1, 1, 1, 11, 1, 1, 1, 11, 1, 1, 1}));
    EXPECT_EQ(readFloats(executor, row, 3), (std::vector<float>{1, 1, 1}));
  }
}

TEST(CpuExecutor, LoopsMayGoBackwards) {
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "scale_rows", 3);
  const uint32_t x = builder.tensor("x", {5, 4});
  const uint64_t offset = builder.plan.tensors[x]->offset;
  // x[i] = 2 x[i + 1] from the end: a chain that only works in this order.
  const uint32_t from = builder.view("from", {1, 4}, {4, 1}, SegmentKind::transient, offset + 64);
  const uint32_t to = builder.view("to", {1, 4}, {4, 1}, SegmentKind::transient, offset + 48);
  builder.program("main",
                  blocks(loop(4, {LoopStride(from, -16), LoopStride(to, -16)},
                              blocks(launch("double", kernel, 1, 1,
                                            {reads(from), writes(to), number(builder, 2)})))));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  writeScalars(executor, builder);
  writeFloats(executor, x, std::vector<float>(20, 1.0f));
  executor.run(0);
  const std::vector<float> result = readFloats(executor, x, 20);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(result[i * 4], std::ldexp(1.0f, 4 - static_cast<int>(i)));
}

TEST(CpuExecutor, SwitchesRunTheSelectedCase) {
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "add_scalar", 2);
  const uint32_t counter = testKernel(builder, "count", 1);
  const uint32_t x = builder.tensor("x", {});
  const uint32_t selector =
      builder.tensor("selector", {}, SegmentKind::transient, hydra::planfile::DType::i32);
  std::vector<Blocks> inner;
  inner.push_back(blocks(launch("a", kernel, 1, 1, {updates(x), number(builder, 1000)})));
  inner.push_back(blocks(launch("b", kernel, 1, 1, {updates(x), number(builder, 2000)})));
  std::vector<Blocks> cases;
  cases.push_back(blocks(launch("zero", kernel, 1, 1, {updates(x), number(builder, 1)})));
  cases.push_back(blocks(launch("one", kernel, 1, 1, {updates(x), number(builder, 10)}),
                         choose(selector, std::move(inner))));
  cases.push_back(Blocks());
  // The body counts the selector up, so that five iterations see 0, 1, 2, 3 and 4.
  Blocks body = blocks(choose(selector, std::move(cases)),
                       launch("count", counter, 1, 1, {updates(selector)}));
  builder.program("main", blocks(loop(5, {}, std::move(body))));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  writeScalars(executor, builder);
  const std::array<int32_t, 1> zero{0};
  executor.write(selector, std::as_bytes(std::span(zero)));
  writeFloats(executor, x, {0});
  executor.run(0);
  EXPECT_EQ(readFloats(executor, x, 1), std::vector<float>{2011});
}

TEST(CpuExecutor, MatmulKnowsLinearLayersAndWeightGradients) {
  PlanBuilder builder;
  const uint32_t x = builder.tensor("x", {2, 5, 6}), w = builder.tensor("w", {7, 6}),
                 bias = builder.tensor("bias", {7}), y = builder.tensor("y", {2, 5, 7}),
                 dw = builder.tensor("dw", {7, 6}), dx = builder.tensor("dx", {2, 5, 6}),
                 gram = builder.tensor("gram", {2, 5, 5});
  MatmulT linear, weight, added, transposed;
  linear.transpose_b = linear.bias = true;
  weight.transpose_a = true;
  added.accumulate = true;
  transposed.transpose_b = true;
  builder.program("main", blocks(call(linear, {reads(x), reads(w), reads(bias), writes(y)}),
                                 call(weight, {reads(y), reads(x), writes(dw)}),
                                 call(MatmulT(), {reads(y), reads(w), writes(dx)}),
                                 call(added, {reads(y), reads(w), updates(dx)}),
                                 call(transposed, {reads(x), reads(x), writes(gram)})));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 2});
  const std::vector<float> xs = randomFloats(60, 1), ws = randomFloats(42, 2),
                           bs = randomFloats(7, 3);
  writeFloats(executor, x, xs);
  writeFloats(executor, w, ws);
  writeFloats(executor, bias, bs);
  executor.run(0);
  const std::vector<float> ys = readFloats(executor, y, 70), dws = readFloats(executor, dw, 42),
                           dxs = readFloats(executor, dx, 60),
                           grams = readFloats(executor, gram, 50);
  const auto sum = [](size_t n, auto term) {
    double total = 0;
    for (size_t i = 0; i < n; ++i)
      total += term(i);
    return total;
  };
  for (size_t t = 0; t < 10; ++t)
    for (size_t n = 0; n < 7; ++n)
      EXPECT_NEAR(ys[t * 7 + n],
                  bs[n] + sum(6, [&](size_t k) { return xs[t * 6 + k] * ws[n * 6 + k]; }), 1e-5);
  for (size_t n = 0; n < 7; ++n)
    for (size_t k = 0; k < 6; ++k)
      EXPECT_NEAR(dws[n * 6 + k], sum(10, [&](size_t t) { return ys[t * 7 + n] * xs[t * 6 + k]; }),
                  1e-4);
  for (size_t t = 0; t < 10; ++t)
    for (size_t k = 0; k < 6; ++k)
      EXPECT_NEAR(dxs[t * 6 + k],
                  2 * sum(7, [&](size_t n) { return ys[t * 7 + n] * ws[n * 6 + k]; }), 1e-4);
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = 0; j < 5; ++j)
        EXPECT_NEAR(
            grams[b * 25 + i * 5 + j],
            sum(6, [&](size_t k) { return xs[(b * 5 + i) * 6 + k] * xs[(b * 5 + j) * 6 + k]; }),
            1e-5);
}

TEST(CpuExecutor, AttentionOnViewsOfOneFusedTensor) {
  // q, k, v are slices of [B, S, 3 H hd]; gradients too. One key at most: o is v, lse the score.
  PlanBuilder builder;
  constexpr int64_t B = 2, S = 3, H = 2, hd = 4;
  const uint32_t qkv = builder.tensor("qkv", {B, S, 3 * H * hd}),
                 dqkv = builder.tensor("dqkv", {B, S, 3 * H * hd}),
                 o = builder.tensor("o", {B, S, H, hd}), dO = builder.tensor("dO", {B, S, H, hd}),
                 lse = builder.tensor("lse", {B, H, S});
  const auto part = [&](uint32_t whole, const char *name, int64_t index) {
    return builder.view(
        name, {B, S, H, hd}, {S * 3 * H * hd, 3 * H * hd, hd, 1}, SegmentKind::transient,
        builder.plan.tensors[whole]->offset + static_cast<uint64_t>(index) * 4 * H * hd);
  };
  const uint32_t q = part(qkv, "q", 0), k = part(qkv, "k", 1), v = part(qkv, "v", 2);
  const uint32_t dq = part(dqkv, "dq", 0), dk = part(dqkv, "dk", 1), dv = part(dqkv, "dv", 2);
  AttentionShape shape;
  shape.batch = B;
  shape.queries = shape.keys = S;
  shape.heads = shape.kvHeads = H;
  shape.headDim = shape.valueDim = hd;
  const uint32_t workspace =
      builder.tensor("workspace", {static_cast<int64_t>(attentionWorkspaceBytes(shape, true))},
                     SegmentKind::transient, hydra::planfile::DType::u8);
  const auto masked = [](auto table) {
    table.scale = 0.5;
    table.causal = true;
    table.window = 1;
    return table;
  };
  builder.program(
      "main",
      blocks(call(masked(AttentionT()), {reads(q), reads(k), reads(v), writes(o), writes(lse)}),
             call(masked(AttentionGradT()),
                  {reads(dO), reads(q), reads(k), reads(v), reads(o), reads(lse), writes(dq),
                   writes(dk), writes(dv), writes(workspace)})));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 2});
  const std::vector<float> values = randomFloats(B * S * 3 * H * hd, 5),
                           gradient = randomFloats(B * S * H * hd, 6);
  writeFloats(executor, qkv, values);
  writeFloats(executor, dO, gradient);
  executor.run(0);
  const std::vector<float> os = readFloats(executor, o, B * S * H * hd),
                           lses = readFloats(executor, lse, B * H * S),
                           gradients = readFloats(executor, dqkv, values.size());
  for (size_t t = 0; t < B * S; ++t)
    for (size_t h = 0; h < H; ++h) {
      double score = 0;
      for (size_t e = 0; e < hd; ++e) {
        const float *row = &values[t * 3 * H * hd + h * hd + e];
        score += 0.5 * row[0] * row[H * hd];
        EXPECT_NEAR(os[(t * H + h) * hd + e], row[2 * H * hd], 1e-6);
        const float *d = &gradients[t * 3 * H * hd + h * hd + e];
        EXPECT_NEAR(d[0], 0, 1e-5);
        EXPECT_NEAR(d[H * hd], 0, 1e-5);
        EXPECT_NEAR(d[2 * H * hd], gradient[(t * H + h) * hd + e], 1e-5);
      }
      EXPECT_NEAR(lses[(t / S * H + h) * S + t % S], score, 1e-5);
    }
}

TEST(CpuExecutor, TransformsBringRowsBackTimesTheirLength) {
  PlanBuilder builder;
  const uint32_t x = builder.tensor("x", {2, 3, 10}), y = builder.tensor("y", {2, 3, 6, 2}),
                 back = builder.tensor("back", {2, 3, 10});
  FftT inverse;
  inverse.inverse = true;
  builder.program(
      "main", blocks(call(FftT(), {reads(x), writes(y)}), call(inverse, {reads(y), writes(back)})));
  const PlanFile file = builder.load();
  std::vector<float> first;
  for (const unsigned threads : {1, 2}) {
    CpuExecutor executor(file, {.threads = threads});
    const std::vector<float> rows = randomFloats(60, 8);
    writeFloats(executor, x, rows);
    executor.run(0);
    const std::vector<float> result = readFloats(executor, back, 60);
    for (size_t i = 0; i < rows.size(); ++i)
      EXPECT_NEAR(result[i], 10 * rows[i], 1e-4);
    if (first.empty())
      first = result;
    EXPECT_EQ(result, first);
  }
}

/// Against sums in double, and with the same bits for any number of threads: more channels than a
/// task has, and rows whose states are computed again in several parts.
TEST(CpuExecutor, RecurrencesAndTheirGradients) {
  constexpr int64_t B = 2, S = 70, D = 20, N = 3;
  for (const bool marked : {false, true}) {
    PlanBuilder builder;
    const auto rows = [&](const char *name) { return builder.tensor(name, {B, S, D}); };
    const auto terms = [&](const char *name) { return builder.tensor(name, {D, N}); };
    const uint32_t x = rows("x"), y = rows("y"), dy = rows("dy"), dx = rows("dx"),
                   marks = builder.tensor("begins", {B, S, 1});
    const std::array in = {terms("q_re"), terms("q_im"), terms("c_re"), terms("c_im")};
    const std::array out = {terms("dq_re"), terms("dq_im"), terms("dc_re"), terms("dc_im")};
    hydra::planfile::LinearRecurrenceT forward, backward;
    backward.backward = true;
    std::vector operands = {reads(x), reads(in[0]), reads(in[1]), reads(in[2]), reads(in[3])};
    if (marked)
      operands.push_back(reads(marks));
    std::vector first = operands, second = operands;
    first.push_back(writes(y));
    second.insert(second.begin(), reads(dy));
    for (const uint32_t result : {dx, out[0], out[1], out[2], out[3]})
      second.push_back(writes(result));
    builder.program("main", blocks(call(forward, first), call(backward, second)));
    const PlanFile file = builder.load();

    const std::vector<float> xs = randomFloats(B * S * D, 1), dys = randomFloats(B * S * D, 2);
    std::vector<float> begins(B * S), p[4];
    for (int64_t i = 0; i < B * S; ++i)
      begins[i] = i % 23 == 5 ? 1.0F : 0.0F;
    for (int i = 0; i < 4; ++i) {
      p[i] = randomFloats(D * N, 3 + i);
      if (i < 2) // states shrink
        for (float &number : p[i])
          number = 0.6F * std::clamp(number, -1.0F, 1.0F);
    }
    using Complex = std::complex<double>;
    std::vector<double> ys(B * S * D), dxs(B * S * D);
    std::vector<Complex> dq(D * N), dc(D * N);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t d = 0; d < D; ++d)
        for (int64_t at = d * N; at < (d + 1) * N; ++at) {
          const Complex q(p[0][at], p[1][at]), c(p[2][at], p[3][at]);
          const auto kept = [&](int64_t t) { return marked && begins[b * S + t] > 0 ? 0.0 : 1.0; };
          std::vector<Complex> h(S + 1);
          for (int64_t t = 0; t < S; ++t) {
            h[t + 1] = q * kept(t) * h[t] + double(xs[(b * S + t) * D + d]);
            ys[(b * S + t) * D + d] += (c * h[t + 1]).real();
          }
          Complex g;
          for (int64_t t = S; t-- > 0;) {
            const double gradient = dys[(b * S + t) * D + d];
            g += std::conj(c) * gradient;
            dxs[(b * S + t) * D + d] += g.real();
            dq[at] += kept(t) * std::conj(h[t]) * g;
            dc[at] += gradient * std::conj(h[t + 1]);
            g *= std::conj(q) * kept(t);
          }
        }

    std::vector<float> before;
    for (const unsigned threads : {1, 2}) {
      CpuExecutor executor(file, {.threads = threads});
      writeFloats(executor, x, xs);
      writeFloats(executor, dy, dys);
      writeFloats(executor, marks, begins);
      for (int i = 0; i < 4; ++i)
        writeFloats(executor, in[i], p[i]);
      executor.run(0);
      std::vector<float> all = readFloats(executor, y, B * S * D);
      const std::vector<float> back = readFloats(executor, dx, B * S * D);
      for (int64_t i = 0; i < B * S * D; ++i) {
        EXPECT_NEAR(all[i], ys[i], 1e-5);
        EXPECT_NEAR(back[i], dxs[i], 1e-5);
      }
      all.insert(all.end(), back.begin(), back.end());
      for (int i = 0; i < 4; ++i) {
        const std::vector<float> sums = readFloats(executor, out[i], D * N);
        for (int64_t at = 0; at < D * N; ++at) {
          const Complex expected = i < 2 ? dq[at] : dc[at];
          EXPECT_NEAR(sums[at], i % 2 == 0 ? expected.real() : expected.imag(), 1e-4);
        }
        all.insert(all.end(), sums.begin(), sums.end());
      }
      if (before.empty())
        before = all;
      EXPECT_EQ(all, before);
    }
  }
}

TEST(CpuExecutor, ExponentsAreAddedToCounters) {
  using hydra::planfile::DType;
  PlanBuilder builder;
  constexpr size_t kElements = 200'000; // of several tasks
  const uint32_t factor = builder.tensor("factor", {}), x = builder.tensor("x", {4, kElements / 4}),
                 y = builder.tensor("y", {3}, SegmentKind::transient, DType::bf16),
                 counts = builder.tensor("counts", {4}, SegmentKind::transient, DType::i32);
  hydra::planfile::CountExponentsT scaled;
  scaled.first = 1;
  scaled.scaled = true;
  builder.program("main",
                  blocks(call(scaled, {reads(factor), reads(x), reads(y), updates(counts)})));
  const PlanFile file = builder.load();
  for (const unsigned threads : {1, 3}) {
    CpuExecutor executor(file, {.threads = threads});
    std::vector<float> numbers(kElements, 0.5F); // 2
    numbers.front() = std::numeric_limits<float>::quiet_NaN();
    numbers[1] = numbers.back() = -std::numeric_limits<float>::infinity();
    numbers[2] = 1.5F; // 6
    writeFloats(executor, factor, {4.0F});
    writeFloats(executor, x, numbers);
    const std::vector<uint16_t> rounded = {0x3f80, 0xc000, 0x0000}; // 1, -2, 0
    executor.write(y, std::as_bytes(std::span(rounded)));
    const std::vector<int32_t> before = {100, 0, 0, 1};
    executor.write(counts, std::as_bytes(std::span(before)));
    executor.run(0);
    std::vector<int32_t> found(4);
    executor.read(counts, std::as_writable_bytes(std::span(found)));
    EXPECT_EQ(found, (std::vector<int32_t>{100 + kElements - 4 + 2, 1, 2, 3}));
  }
}

TEST(CpuExecutor, EmbeddingGradientCopyAndFill) {
  PlanBuilder builder;
  const uint32_t tokens =
      builder.tensor("tokens", {2, 3}, SegmentKind::transient, hydra::planfile::DType::i32);
  const uint32_t dx = builder.tensor("dx", {2, 3, 4}), grad = builder.tensor("grad", {5, 4}),
                 turned = builder.tensor("turned", {4, 5}), filled = builder.tensor("filled", {3});
  const uint32_t view = builder.view("turned.view", {5, 4}, {1, 5}, SegmentKind::transient,
                                     builder.plan.tensors[turned]->offset);
  FillT fill;
  fill.value = 0.75;
  builder.program("main",
                  blocks(call(EmbeddingGradT(), {reads(tokens), reads(dx), writes(grad)}),
                         call(CopyT(), {reads(grad), writes(view)}), call(fill, {writes(filled)})));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 2});
  const std::array<int32_t, 6> ids{1, 4, 1, 0, 1, 4};
  executor.write(tokens, std::as_bytes(std::span(ids)));
  const std::vector<float> rows = randomFloats(24, 7);
  writeFloats(executor, dx, rows);
  executor.run(0);
  const std::vector<float> result = readFloats(executor, turned, 20);
  for (size_t e = 0; e < 4; ++e) {
    EXPECT_EQ(result[e * 5 + 0], rows[12 + e]);
    EXPECT_EQ(result[e * 5 + 1], rows[e] + rows[8 + e] + rows[16 + e]);
    EXPECT_EQ(result[e * 5 + 2], 0.0f);
    EXPECT_EQ(result[e * 5 + 4], rows[4 + e] + rows[20 + e]);
  }
  EXPECT_EQ(readFloats(executor, filled, 3), std::vector<float>(3, 0.75f));

  const std::array<int32_t, 6> wrong{1, 4, 1, 0, 1, 5};
  executor.write(tokens, std::as_bytes(std::span(wrong)));
  EXPECT_THROW(executor.run(0), hydra::support::Error);
}

TEST(CpuExecutor, ReadsAndWritesViewsDensely) {
  PlanBuilder builder;
  const uint32_t x = builder.tensor("x", {3, 4});
  const uint32_t turned = builder.view("x.turned", {4, 3}, {1, 4}, SegmentKind::transient,
                                       builder.plan.tensors[x]->offset);
  builder.program("main", Blocks());
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  writeFloats(executor, turned, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(readFloats(executor, x, 12),
            (std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  EXPECT_EQ(readFloats(executor, turned, 12),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_THROW(readFloats(executor, x, 11), hydra::support::Error);
}

TEST(CpuExecutor, ProfileCountsCallsOfEveryStep) {
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "add_scalar", 2);
  const uint32_t x = builder.tensor("x", {});
  builder.program(
      "main",
      blocks(
          launch("once", kernel, 1, 1, {updates(x), number(builder, 1)}),
          loop(3, {}, blocks(launch("thrice", kernel, 1, 1, {updates(x), number(builder, 1)})))));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  writeScalars(executor, builder);
  executor.run(0);
  executor.setProfiling(true);
  executor.run(0);
  executor.run(0);
  const std::vector<StepTime> times = executor.stepTimes();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].step->name()->string_view(), "once");
  EXPECT_EQ(times[0].calls, 2u);
  EXPECT_EQ(times[1].calls, 6u);
  EXPECT_GT(times[1].seconds, 0.0);
}

TEST(CpuExecutor, PoisonShowsWhatIsReadUnwritten) {
  // y is read where a program first has to write it; x is an input, w a variable, lr a scalar.
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "add_scalar", 2);
  const uint32_t lr = builder.scalar("lr", 0.5);
  const uint32_t w = builder.plan.variables[builder.variable("w", {2}, 0.0)]->tensor;
  const uint32_t x = builder.tensor("x", {2}), y = builder.tensor("y", {2});
  auto &program = builder.program(
      "main", blocks(launch("x", kernel, 2, 2, {updates(x), builder.readsScalar(lr)}),
                     launch("w", kernel, 2, 2, {updates(w), builder.readsScalar(lr)}),
                     launch("y", kernel, 2, 2, {updates(y), builder.readsScalar(lr)})));
  builder.input(program, "x", hydra::planfile::InputKind::values, x);
  const PlanFile file = builder.load();
  for (const bool poison : {false, true}) {
    CpuExecutor executor(file, {.threads = 1, .poison = poison});
    writeFloats(executor, builder.plan.scalars[lr]->tensor, {0.5f});
    writeFloats(executor, w, {1, 2});
    for (int run = 1; run <= 2; ++run) {
      writeFloats(executor, x, {3, 4});
      executor.run(0);
      EXPECT_EQ(readFloats(executor, x, 2), (std::vector<float>{3.5f, 4.5f}));
      EXPECT_EQ(readFloats(executor, w, 2),
                (std::vector<float>{1 + 0.5f * float(run), 2 + 0.5f * float(run)}));
      for (const float value : readFloats(executor, y, 2))
        EXPECT_EQ(std::isnan(value), poison) << value;
    }
  }
}

namespace {

/// Keeps the first number of its scratch, then leaves another one there.
class ScratchReader final : public LibraryCall {
public:
  explicit ScratchReader(std::vector<float> &seen) : seen(seen) {}
  size_t scratchBytesPerWorker() const override { return sizeof(float); }
  void run(char *const *, ThreadPool &, const WorkerScratch &scratch) override {
    float &first = *reinterpret_cast<float *>(scratch.of(0));
    seen.push_back(first);
    first = 1;
  }

private:
  std::vector<float> &seen;
};

} // namespace

TEST(CpuExecutor, PoisonFillsScratchBeforeEveryCall) {
  PlanBuilder builder;
  builder.program("main", blocks(call(CopyT(), {}), call(CopyT(), {})));
  const PlanFile file = builder.load();
  std::vector<float> seen;
  const auto prepare = [&](const CallSite &, const CallResources &) {
    return std::make_unique<ScratchReader>(seen);
  };
  PreparedProgram program({file.plan(), {}, {}, prepare, {}}, *file.plan().programs()->Get(0));
  std::vector<std::byte> memory(WorkerScratch::alignment);
  ThreadPool pool(1);
  program.setPoison(true);
  program.run(pool, {memory.data(), memory.size()});
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(std::isnan(seen[0]) && std::isnan(seen[1]));
}

TEST(CpuExecutor, RefusalsAreOneLineAndSayWhatHelps) {
  PlanBuilder features;
  features.plan.target->cpu_features = {"sse2", "warp_drive"};
  features.program("main", Blocks());
  EXPECT_NE(refusal(features).find("lacks warp_drive; compile"), std::string::npos)
      << refusal(features);

  PlanBuilder memory;
  memory.tensor("x", {1 << 20});
  memory.program("main", Blocks());
  const CpuOptions options{.threads = 1, .memoryAvailable = 1 << 20};
  EXPECT_NE(refusal(memory, options)
                .find("needs 4.00 MiB of memory (0 B for parameters and state, "
                      "4.00 MiB for the step), but 1.00 MiB are available; a smaller --batch or "
                      "--seq, hydrac's --recompute=every=1 or --precision=bf16 would help"),
            std::string::npos)
      << refusal(memory, options);

  PlanBuilder code;
  const uint32_t kernel = code.kernel("nothing", 0);
  code.program("main", blocks(launch("nothing", kernel, 1, 1, {})));
  PlanBuilder symbol;
  const uint32_t absent = testKernel(symbol, "no_such_symbol", 0);
  symbol.program("main", blocks(launch("absent", absent, 1, 1, {})));
  for (const bool dryRun : {false, true}) {
    const CpuOptions how{.threads = 1, .dryRun = dryRun};
    EXPECT_NE(refusal(code, how).find("blob 0: its code does not load: "), std::string::npos)
        << refusal(code, how);
    EXPECT_NE(refusal(symbol, how).find("blob 0: its code has no symbol no_such_symbol"),
              std::string::npos)
        << refusal(symbol, how);
  }
}

TEST(CpuExecutor, FeaturesAreThoseThatProgramsCanUse) {
  const std::set<std::string> features = readCpuInfo().features;
  const std::set<std::string> third = {"abm",    "avx",    "avx2",   "bmi1",    "bmi2",
                                       "cx16",   "f16c",   "fma",    "lahf_lm", "movbe",
                                       "popcnt", "sse4_1", "sse4_2", "ssse3",   "xsave"};
  const std::set<std::string> fourth = {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"};
  const auto hasAll = [&](const std::set<std::string> &level) {
    return std::ranges::includes(features, level);
  };
  EXPECT_EQ(hasAll(third), __builtin_cpu_supports("x86-64-v3") != 0);
  EXPECT_EQ(hasAll(third) && hasAll(fourth), __builtin_cpu_supports("x86-64-v4") != 0);
}

TEST(CpuExecutor, RefusalsCutLongNames) {
  const std::string name(100000, 'n');
  PlanBuilder function;
  function.program(name, blocks(step(name, {})));
  PlanBuilder symbol;
  const uint32_t kernel = testKernel(symbol, name, 0);
  symbol.program("main", blocks(launch(name, kernel, 1, 1, {})));
  PlanBuilder twice;
  twice.variable(name, {1});
  twice.variable(name, {1});
  for (const PlanBuilder *builder : {&function, &symbol, &twice}) {
    const std::string text = refusal(*builder);
    EXPECT_NE(text.find("nnn...nnn"), std::string::npos) << text.substr(0, 1000);
    EXPECT_LT(text.size(), 600u) << text.substr(0, 1000);
  }
}

TEST(CpuExecutor, ADryRunRunsNothing) {
  PlanBuilder builder;
  const uint32_t kernel = testKernel(builder, "count", 1);
  const uint32_t x = builder.tensor("x", {}, SegmentKind::transient, hydra::planfile::DType::i32);
  builder.program("main", blocks(launch("count", kernel, 1, 1, {updates(x)})));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1, .dryRun = true});
  EXPECT_THROW(executor.run(0), hydra::support::Error);
}

TEST(CpuExecutor, RefusesCallsThatDoNotFit) {
  const auto refuses = [](const char *part, auto action, auto makeArgs) {
    PlanBuilder builder;
    std::vector<Arg> args = makeArgs(builder);
    builder.program("main", blocks(call(std::move(action), std::move(args))));
    const std::string message = refusal(builder);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  refuses("2 arguments; expected 3", MatmulT(), [](PlanBuilder &b) {
    return std::vector{reads(b.tensor("a", {2, 2})), reads(b.tensor("b", {2, 2}))};
  });
  refuses("sizes do not fit", MatmulT(), [](PlanBuilder &b) {
    return std::vector{reads(b.tensor("a", {2, 3})), reads(b.tensor("b", {4, 5})),
                       writes(b.tensor("c", {2, 5}))};
  });
  refuses("expected f32", EmbeddingGradT(), [](PlanBuilder &b) {
    return std::vector{
        reads(b.tensor("t", {2}, SegmentKind::transient, hydra::planfile::DType::i32)),
        reads(b.tensor("g", {2, 4}, SegmentKind::transient, hydra::planfile::DType::bf16)),
        writes(b.tensor("e", {5, 4}))};
  });
  refuses("2 arguments; expected 1", FillT(), [](PlanBuilder &b) {
    return std::vector{writes(b.tensor("x", {2})), writes(b.tensor("y", {2}))};
  });
  refuses("expected the same", CopyT(), [](PlanBuilder &b) {
    return std::vector{reads(b.tensor("x", {2})), writes(b.tensor("y", {3}))};
  });
  refuses("rows have shape [2, 7]; expected a dense [..., n], n even", FftT(), [](PlanBuilder &b) {
    return std::vector{reads(b.tensor("x", {2, 7})), writes(b.tensor("y", {2, 4, 2}))};
  });
  refuses("spectra have shape [2, 4, 2]; expected a dense [2, 5, 2]", FftT(), [](PlanBuilder &b) {
    return std::vector{reads(b.tensor("x", {2, 8})), writes(b.tensor("y", {2, 4, 2}))};
  });
  const hydra::planfile::LinearRecurrenceT recurrence;
  const auto recurrenceOf = [](PlanBuilder &b, std::vector<int64_t> q, std::vector<int64_t> y) {
    return std::vector{reads(b.tensor("x", {2, 3, 4})), reads(b.tensor("q_re", std::move(q))),
                       reads(b.tensor("q_im", {4, 5})), reads(b.tensor("c_re", {4, 5})),
                       reads(b.tensor("c_im", {4, 5})), writes(b.tensor("y", std::move(y)))};
  };
  refuses("q_re has shape [3, 5]; expected a dense [4, 5]", recurrence,
          [&](PlanBuilder &b) { return recurrenceOf(b, {3, 5}, {2, 3, 4}); });
  refuses("y has shape [2, 4, 3]; expected a dense [2, 3, 4]", recurrence,
          [&](PlanBuilder &b) { return recurrenceOf(b, {4, 5}, {2, 4, 3}); });
  refuses("2 arguments; expected 6 to 7", recurrence, [](PlanBuilder &b) {
    return std::vector{reads(b.tensor("x", {2, 3, 4})), writes(b.tensor("y", {2, 3, 4}))};
  });
  hydra::planfile::CountExponentsT counting;
  const auto counters = [](PlanBuilder &b, int64_t count) {
    return updates(
        b.tensor("counts", {count}, SegmentKind::transient, hydra::planfile::DType::i32));
  };
  refuses("1 arguments; expected at least 2", counting,
          [&](PlanBuilder &b) { return std::vector{counters(b, 4)}; });
  refuses("has 255 counters; expected from 1 to 254, dense", counting,
          [&](PlanBuilder &b) { return std::vector{reads(b.tensor("x", {2})), counters(b, 255)}; });
  refuses("argument 0 is i32; expected f32, bf16 or f16", counting, [&](PlanBuilder &b) {
    return std::vector{
        reads(b.tensor("x", {2}, SegmentKind::transient, hydra::planfile::DType::i32)),
        counters(b, 4)};
  });
  counting.first = 125;
  refuses("counts from exponent 125 on; expected from -126 to 124", counting,
          [&](PlanBuilder &b) { return std::vector{reads(b.tensor("x", {2})), counters(b, 4)}; });
  AttentionT attention;
  attention.scale = 1.0;
  refuses("expected a multiple", attention, [](PlanBuilder &b) {
    return std::vector{reads(b.tensor("q", {1, 4, 3, 8})), reads(b.tensor("k", {1, 4, 2, 8})),
                       reads(b.tensor("v", {1, 4, 2, 8})), writes(b.tensor("o", {1, 4, 3, 8}))};
  });
}
