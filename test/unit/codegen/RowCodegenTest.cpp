// Generated kernels against float64: every kind of node, odd widths, strides, in place, grains.
#include "dialects/hydra/RowMath.h"
#include "test/unit/codegen/KernelRunner.h"

#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

using namespace hydra;
using namespace hydra::test;
using hydra::cpu::Strides;

namespace {

class RowCodegenTest : public testing::Test {
protected:
  using Shape = llvm::SmallVector<int64_t>;

  RowCodegenTest() : b(&context) { context.disableMultithreading(); }

  /// Starts a program whose inputs have these forms and types.
  void start(RowDomain domain, std::vector<std::pair<RowForm, RowType>> inputs) {
    std::vector<RowInput> all;
    for (auto [form, type] : inputs) {
      Shape shape;
      if (variesOverRows(form))
        llvm::append_range(shape, domain.rowShape);
      if (variesOverColumns(form))
        llvm::append_range(shape, domain.innerShape);
      all.push_back({shape, type, form});
    }
    recorder = std::make_unique<RowRecorder>(&context, domain, all);
  }

  RowTerm in(unsigned i) { return {recorder.get(), recorder->input(i)}; }

  RowProgram finish(std::vector<std::pair<RowTerm, RowForm>> results, RowType type = RowType::F32) {
    llvm::SmallVector<RowValue> values;
    std::vector<RowResult> kinds;
    for (auto &[value, form] : results) {
      values.push_back(value);
      kinds.push_back({form, type});
    }
    return recorder->finish(values, kinds);
  }

  /// y = x r w with r = (mean x² + eps)^(-1/2), and r.
  RowProgram rmsNorm(RowDomain domain, RowType type = RowType::F32) {
    start(domain, {{RowForm::Tile, type}, {RowForm::Column, RowType::F32}});
    RowTerm x = in(0), r = rsqrt(mean(x * x) + 1e-5);
    return finish({{x * r * in(1), RowForm::Tile}, {r, RowForm::Row}}, RowType::F32);
  }

  /// dx, dw and db of a layer norm.
  RowProgram layerNormGrad(RowDomain domain) {
    start(domain, {{RowForm::Tile, RowType::F32},
                   {RowForm::Tile, RowType::F32},
                   {RowForm::Column, RowType::F32},
                   {RowForm::Row, RowType::F32},
                   {RowForm::Row, RowType::F32}});
    RowTerm dy = in(0), x = in(1), r = in(4);
    RowTerm n = (x - in(3)) * r, h = dy * in(2);
    return finish({{r * (h - mean(h) - n * mean(h * n)), RowForm::Tile},
                   {sumRows(dy * n, RowForm::Tile), RowForm::Column},
                   {sumRows(dy, RowForm::Tile), RowForm::Column}});
  }

  RowProgram softmax(RowDomain domain) {
    start(domain, {{RowForm::Tile, RowType::F32}});
    RowTerm p = exp(in(0) - max(in(0)));
    return finish({{p * (1.0 / sum(p)), RowForm::Tile}});
  }

  /// silu(a) b over tiles.
  RowProgram swiglu(RowDomain domain, RowType type) {
    start(domain, {{RowForm::Tile, type}, {RowForm::Tile, type}});
    return finish({{in(0) * sigmoid(in(0)) * in(1), RowForm::Tile}}, type);
  }

  mlir::MLIRContext context;
  mlir::Builder b;
  std::unique_ptr<RowRecorder> recorder;
};

TEST_F(RowCodegenTest, AllWidthsOfARow) {
  for (int64_t columns = 1; columns <= 70; ++columns) {
    SCOPED_TRACE(columns);
    RowProgram program = columns % 4 == 0   ? rmsNorm({{3, 5}, {columns}}, RowType::BF16)
                         : columns % 4 == 1 ? softmax({{9}, {columns}})
                         : columns % 4 == 2 ? swiglu({{7}, {columns}}, RowType::BF16)
                                            : rmsNorm({{4}, {columns}});
    expectMatches(program, randomInputs(program, columns));
    program = layerNormGrad({{11}, {columns}});
    expectMatches(program, randomInputs(program, columns));
    // A last column that is alone in its vector must leave its neighbour alone.
    program = rmsNorm({{6}, {columns}}, RowType::BF16);
    expectMatches(program, randomInputs(program, columns), {.grain = 1, .backwards = true});
  }
}

TEST_F(RowCodegenTest, WideRows) {
  for (int64_t columns : {127, 768, 1000, 4096, 20011}) {
    SCOPED_TRACE(columns);
    for (const RowProgram &program :
         {rmsNorm({{3}, {columns}}), layerNormGrad({{4}, {columns}}), softmax({{3}, {columns}})})
      expectMatches(program, randomInputs(program, columns));
  }
}

TEST_F(RowCodegenTest, NoRowsAndNoColumns) {
  for (const RowProgram &program : {softmax({{}, {37}}), rmsNorm({{}, {40}}), rmsNorm({{5}, {}}),
                                    swiglu({{}, {}}, RowType::F32)})
    expectMatches(program, randomInputs(program, 5));
}

TEST_F(RowCodegenTest, EveryForm) {
  // Sums over rows of tiles and row values, results that are the same in all rows, and splats.
  start({{6, 4}, {33}}, {{RowForm::Tile, RowType::F32},
                         {RowForm::Row, RowType::F32},
                         {RowForm::Column, RowType::F32},
                         {RowForm::Scalar, RowType::F32}});
  RowTerm x = in(0), r = in(1), c = in(2), s = in(3);
  RowProgram program = finish({{x * r + c * s, RowForm::Tile},
                               {sumRows(x * c, RowForm::Tile), RowForm::Column},
                               {sumRows(r * s, RowForm::Row), RowForm::Scalar},
                               {sumRows(c, RowForm::Tile), RowForm::Column},
                               {c * s, RowForm::Column},
                               {exp(s), RowForm::Scalar},
                               {r * s + sum(x), RowForm::Row},
                               {sum(c), RowForm::Row},
                               {r, RowForm::Tile},
                               {s, RowForm::Tile},
                               {s, RowForm::Row},
                               {c, RowForm::Tile},
                               {s, RowForm::Column}});
  expectMatches(program, randomInputs(program, 1));
  RunOptions backwards;
  backwards.backwards = true;
  backwards.grain = 4;
  expectMatches(program, randomInputs(program, 2), backwards);
}

/// What does not vary over rows, or over columns, is added once for every row all the same.
TEST_F(RowCodegenTest, SumsOfWhatVariesLess) {
  for (const RowDomain &domain :
       {RowDomain{{4}, {8}}, RowDomain{{100}, {7}}, RowDomain{{3}, {1}}, RowDomain{{1}, {33}},
        RowDomain{{50, 2}, {}}, RowDomain{{}, {20}}}) {
    start(domain, {{RowForm::Row, RowType::F32},
                   {RowForm::Column, RowType::F32},
                   {RowForm::Scalar, RowType::F32},
                   {RowForm::Tile, RowType::F32}});
    RowTerm s = in(2);
    const std::vector<RowProgram> programs = {
        finish({{sumRows(s, RowForm::Tile), RowForm::Column}}),
        (start(domain, {{RowForm::Row, RowType::F32}, {RowForm::Column, RowType::F32}}),
         finish({{sumRows(in(0), RowForm::Tile), RowForm::Column},
                 {sumRows(in(1), RowForm::Tile), RowForm::Column},
                 {sumRows(in(0).constant(1.0), RowForm::Tile), RowForm::Column},
                 {sumRows(in(0).constant(1.0), RowForm::Row), RowForm::Scalar}})),
        (start(domain, {{RowForm::Tile, RowType::F32}, {RowForm::Scalar, RowType::F32}}),
         finish({{in(0) * in(1), RowForm::Tile},
                 {sumRows(in(1), RowForm::Tile), RowForm::Column},
                 {sumRows(in(1), RowForm::Row), RowForm::Scalar}}))};
    for (const RowProgram &program : programs) {
      expectMatches(program, randomInputs(program, 3));
      RunOptions backwards;
      backwards.backwards = true;
      backwards.grain = 3;
      expectMatches(program, randomInputs(program, 4), backwards);
    }
  }
}

TEST_F(RowCodegenTest, IntegersAndTruthValues) {
  for (RowDomain domain :
       {RowDomain{{5, 3}, {4, 9}}, RowDomain{{45}, {}}, RowDomain{{3}, {2, 32}}}) {
    start(domain, {{RowForm::Tile, RowType::F32},
                   {RowForm::Tile, RowType::I32},
                   {RowForm::Row, RowType::I32},
                   {RowForm::Tile, RowType::I1}});
    RowRecorder &e = *recorder;
    mlir::Type f32 = b.getF32Type(), i32 = b.getI32Type();
    RowValue x = in(0), i = in(1), r = in(2), t = in(3);
    RowValue position = e.constant(0.0, i32);
    for (unsigned d = 0; d < domain.rowShape.size() + domain.innerShape.size(); ++d)
      position = e.binary(RowBinary::Add, e.binary(RowBinary::Mul, position, e.constant(10.0, i32)),
                          e.index(d));
    RowValue below = e.compare(Predicate::lt, i, r);
    RowValue chosen = e.select(below, x, e.unary(RowUnary::Neg, x));
    RowValue whole = e.cast(e.binary(RowBinary::Mul, x, e.constant(100.0, f32)), i32);
    RowProgram program =
        e.finish({position, below, chosen, whole, e.cast(t, f32), e.binary(RowBinary::Max, i, r),
                  e.compare(Predicate::ne, t, below), e.select(t, i, r)},
                 {{RowForm::Tile, RowType::I32},
                  {RowForm::Tile, RowType::I1},
                  {RowForm::Tile, RowType::F32},
                  {RowForm::Tile, RowType::I32},
                  {RowForm::Tile, RowType::F32},
                  {RowForm::Tile, RowType::I32},
                  {RowForm::Tile, RowType::I1},
                  {RowForm::Tile, RowType::I32}});
    expectMatches(program, randomInputs(program, 3, 7));
  }
}

// The numbers of hydra.random: products and sums of words keep their low bits.
TEST_F(RowCodegenTest, Words) {
  for (RowDomain domain : {RowDomain{{5}, {37}}, RowDomain{{64}, {}}}) {
    start(domain, {{RowForm::Tile, RowType::I32}});
    RowRecorder &e = *recorder;
    mlir::Type i32 = b.getI32Type();
    RowValue word = e.binary(RowBinary::Mul, in(0), e.constant(-766435501.0, i32));
    RowValue high = e.binary(RowBinary::MulHigh, word, e.constant(-845247145.0, i32));
    RowValue mixed = e.binary(RowBinary::Xor, high, e.binary(RowBinary::Add, word, word));
    RowProgram program = e.finish({word, high, mixed}, {{RowForm::Tile, RowType::I32},
                                                        {RowForm::Tile, RowType::I32},
                                                        {RowForm::Tile, RowType::I32}});
    expectMatches(program, randomInputs(program, 3, 7));
  }
}

TEST_F(RowCodegenTest, Predicates) {
  start({{50}, {}}, {{RowForm::Tile, RowType::F32}, {RowForm::Tile, RowType::F32}});
  std::vector<std::pair<RowTerm, RowForm>> results;
  for (Predicate p :
       {Predicate::eq, Predicate::ne, Predicate::lt, Predicate::le, Predicate::gt, Predicate::ge})
    results.push_back({{recorder.get(), recorder->compare(p, in(0), in(1))}, RowForm::Tile});
  RowProgram program = finish(results, RowType::I1);
  std::vector<Numbers> inputs = randomInputs(program, 4);
  for (size_t i = 0; i < 50; i += 3)
    inputs[1][i] = inputs[0][i];
  inputs[0][7] = std::numeric_limits<double>::quiet_NaN();
  expectMatches(program, inputs);
}

TEST_F(RowCodegenTest, RoundingToBf16) {
  start({{4000}, {}}, {{RowForm::Tile, RowType::F32}});
  RowProgram program = finish({{in(0), RowForm::Tile}}, RowType::BF16);
  Numbers x;
  for (uint32_t i = 0; i < 4000; ++i) // ties, neighbours of ties, denormals, the largest numbers
    x.push_back(std::bit_cast<float>((i << 20) | (i % 5 == 0 ? 0x8000u : i * 7919u & 0xffffu)));
  Numbers y = runKernel(program, {x})[0];
  for (size_t i = 0; i < x.size(); ++i) {
    double expected = roundTo(x[i], RowType::BF16);
    EXPECT_TRUE(std::isnan(x[i]) ? std::isnan(y[i]) : y[i] == expected) << x[i];
  }
}

/// Whole numbers of 8 bits are read and written as they are, in vectors and alone.
TEST_F(RowCodegenTest, IntegersOfEightBits) {
  for (const int64_t n : {256, 255, 7}) {
    Numbers x;
    for (int64_t i = 0; i < n; ++i)
      x.push_back(static_cast<double>(i) - 128);
    start({{n}, {}}, {{RowForm::Tile, RowType::I8}});
    EXPECT_EQ(runKernel(finish({{in(0), RowForm::Tile}}, RowType::BF16), {x})[0], x) << n;
    start({{n}, {}}, {{RowForm::Tile, RowType::F32}});
    EXPECT_EQ(runKernel(finish({{in(0), RowForm::Tile}}, RowType::I8), {x})[0], x) << n;
  }
}

/// The bits of an f32 are a whole number, of which an i16 keeps the lower half, and make it again.
TEST_F(RowCodegenTest, BitsOfNumbers) {
  for (const int64_t n : {256, 7}) {
    Numbers x, words, halves;
    for (int64_t i = 0; i < n; ++i) {
      const auto number = static_cast<float>(std::ldexp(0.37 * static_cast<double>(i) - 3, i % 9));
      const auto word = std::bit_cast<int32_t>(number);
      x.push_back(number);
      words.push_back(word);
      halves.push_back(static_cast<int16_t>(word));
    }
    for (const auto &[type, expected] :
         {std::pair(RowType::I32, &words), std::pair(RowType::I16, &halves)}) {
      start({{n}, {}}, {{RowForm::Tile, RowType::F32}});
      const RowTerm bits{recorder.get(), recorder->unary(RowUnary::Bits, in(0))};
      EXPECT_EQ(runKernel(finish({{bits, RowForm::Tile}}, type), {x})[0], *expected) << n;
    }
    start({{n}, {}}, {{RowForm::Tile, RowType::I32}});
    const RowTerm number{recorder.get(), recorder->unary(RowUnary::OfBits, in(0))};
    EXPECT_EQ(runKernel(finish({{number, RowForm::Tile}}), {words})[0], x) << n;
  }
}

/// What a kernel stores is the pattern that the table of formats says, of numbers near each pattern
/// and of all others, in vectors and alone.
TEST_F(RowCodegenTest, RoundingToEightBits) {
  for (const RowType type : {RowType::E4M3, RowType::E5M2}) {
    SCOPED_TRACE(type == RowType::E4M3 ? "e4m3" : "e5m2");
    Numbers x;
    for (uint32_t pattern = 0; pattern < 256; ++pattern) {
      const auto byte = static_cast<std::byte>(pattern);
      double value = 0.0, next = 0.0;
      support::toDoubles(formatOf(type), {&byte, 1}, {&value, 1});
      const auto above = static_cast<std::byte>(pattern + 1);
      support::toDoubles(formatOf(type), {&above, 1}, {&next, 1});
      const auto tie = static_cast<float>(0.5 * (value + next));
      for (const float v : {static_cast<float>(value), tie, std::nextafter(tie, 0.0f),
                            std::nextafter(tie, std::copysign(1e30f, tie))})
        x.push_back(v);
    }
    for (uint64_t u = 0; u < uint64_t{1} << 32; u += 65521 * 3)
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(u)));
    for (const double v : {0.0, -0.0, 448.0, 464.0, 480.0, 57344.0, 61440.0, 3.4e38, 0x1p-149})
      x.push_back(v);
    x.push_back(std::numeric_limits<double>::infinity());
    const auto n = static_cast<int64_t>(x.size());
    start({{n}, {}}, {{RowForm::Tile, RowType::F32}});
    const Numbers y = runKernel(finish({{in(0), RowForm::Tile}}, type), {x})[0];
    // And as values of the type that is read again.
    start({{n}, {}}, {{RowForm::Tile, type}});
    const Numbers z = runKernel(finish({{in(0), RowForm::Tile}}, RowType::F32), {y})[0];
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = roundTo(x[i], type);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[i]) && std::isnan(z[i])) << i;
        continue;
      }
      EXPECT_EQ(y[i], expected) << x[i];
      EXPECT_EQ(std::signbit(y[i]), std::signbit(x[i])) << x[i];
      EXPECT_EQ(z[i], expected) << x[i];
    }
  }
}

TEST_F(RowCodegenTest, StridedOperandsAndResults) {
  const RowDomain domain{{3, 4}, {5, 32}};
  RowProgram program = layerNormGrad(domain);
  std::vector<Numbers> inputs = randomInputs(program, 6);
  for (const Strides &tile : std::vector<Strides>{{4 * 163 + 8, 163, 32, 1},  // row gaps
                                                  {32, 3 * 160, 1000 * 2, 1}, // blocks
                                                  {640, 160, 1, 5},           // transposed
                                                  {1280, 320, 64, 2}}) {      // every second
    SCOPED_TRACE(tile.back());
    RunOptions options;
    options.inputLayouts = {tile, {}, {64, 2}, {5, 1}, {1, 3}};
    expectMatches(program, inputs, options);
    options.inputLayouts = {{}, tile, {}, {}, {}};
    options.resultLayouts = {tile, {40, 1}, {}};
    expectMatches(program, inputs, options);
  }
  RunOptions broadcast; // strides of 0
  broadcast.inputLayouts = {{0, 0, 32, 1}, {160, 0, 0, 1}, {0, 1}, {0, 1}, {0, 0}};
  start(domain, {{RowForm::Tile, RowType::F32}, {RowForm::Tile, RowType::BF16}});
  program = finish({{in(0) + in(1), RowForm::Tile}});
  inputs = randomInputs(program, 7);
  for (int64_t i = 0; i < 1920; ++i) {
    inputs[0][i] = inputs[0][i % 160];
    inputs[1][i] = inputs[1][i / 640 * 640 + i % 32];
  }
  broadcast.inputLayouts.resize(2);
  expectMatches(program, inputs, broadcast);
  for (int64_t inner : {32, 12, 3}) { // one number for so many columns
    SCOPED_TRACE(inner);
    start({{3, 4}, {5, inner}}, {{RowForm::Tile, RowType::F32}, {RowForm::Tile, RowType::BF16}});
    program = finish({{in(0) + in(1), RowForm::Tile}});
    inputs = randomInputs(program, 8);
    for (int64_t i = 0; i < 60 * inner; ++i)
      inputs[0][i] = inputs[0][i / inner * inner];
    RunOptions repeated;
    repeated.inputLayouts = {{20, 5, 1, 0}, {}};
    expectMatches(program, inputs, repeated);
  }
}

TEST_F(RowCodegenTest, TransposedElementwise) {
  for (RowType type : {RowType::F32, RowType::BF16, RowType::I32, RowType::I1}) {
    start({{6, 7, 3}, {}}, {{RowForm::Tile, type}});
    RowProgram program = finish({{in(0), RowForm::Tile}}, type);
    RunOptions options;
    options.inputLayouts = {{1, 6, 42}};
    expectMatches(program, randomInputs(program, 8), options);
    options.resultLayouts = {{3, 18, 1}};
    expectMatches(program, randomInputs(program, 9), options);
  }
}

TEST_F(RowCodegenTest, ResultsTakeOverInputs) {
  RowProgram program = layerNormGrad({{13}, {83}});
  std::vector<Numbers> inputs = randomInputs(program, 10);
  for (int input : {0, 1}) {
    RunOptions options;
    options.inPlace = {input};
    expectMatches(program, inputs, options);
    EXPECT_EQ(runKernel(program, inputs, options), runKernel(program, inputs));
  }
  program = softmax({{13}, {300}});
  inputs = randomInputs(program, 11);
  RunOptions options;
  options.inPlace = {0};
  EXPECT_EQ(runKernel(program, inputs, options), runKernel(program, inputs));
  program = swiglu({{13, 77}, {}}, RowType::BF16);
  inputs = randomInputs(program, 12);
  options.inPlace = {1};
  EXPECT_EQ(runKernel(program, inputs, options), runKernel(program, inputs));
}

TEST_F(RowCodegenTest, GathersRows) {
  for (RowType type : {RowType::F32, RowType::BF16}) {
    for (int64_t columns : {1, 8, 48, 100}) {
      RowDomain domain{{4, 6}, {columns}};
      RowRecorder e(&context, domain,
                    {{{4, 6}, RowType::I32, RowForm::Row}, {{11, columns}, type, std::nullopt}});
      RowTerm row{&e, e.gather(1, e.input(0))};
      RowProgram program =
          e.finish({row * 2.0, sum(row)}, {{RowForm::Tile, type}, {RowForm::Row, RowType::F32}});
      std::vector<Numbers> inputs = randomInputs(program, 13, 11);
      expectMatches(program, inputs);
      RunOptions options;
      options.inputLayouts = {{1, 4}, {columns * 2 + 1, 2}};
      expectMatches(program, inputs, options);
    }
  }
}

TEST_F(RowCodegenTest, Rotates) {
  for (int64_t width : {2, 6, 8, 16, 40, 64, 80, 128})
    for (bool halfSplit : {false, true})
      for (bool inverse : {false, true})
        for (bool strided : {false, true}) {
          SCOPED_TRACE(testing::Message() << width << halfSplit << inverse << strided);
          RowType type = inverse == strided ? RowType::F32 : RowType::BF16;
          RowDomain domain{{2, 9}, {3, width}};
          RowRecorder e(&context, domain, {{{2, 9, 3, width}, type, std::nullopt}});
          Rotation rotation{1e4, halfSplit, inverse, 9, width % 16 == 0 ? 0 : 4};
          RowProgram program = e.finish({e.rotate(0, rotation)}, {{RowForm::Tile, type}});
          RunOptions options;
          if (strided) { // heads outside of the sequence, and a gap between them
            options.inputLayouts = {{9 * 3 * width, width, 9 * width, 1}};
            options.resultLayouts = {{9 * 4 * width, 4 * width, width + 1, 1}};
          }
          expectMatches(program, randomInputs(program, width), options);
        }
}

TEST_F(RowCodegenTest, RotationsOfNeighboursTakeOverTheirInput) {
  for (const RowType type : {RowType::F32, RowType::BF16})
    for (const bool inverse : {false, true})
      for (const int64_t width : {6, 16, 64, 80}) {
        SCOPED_TRACE(testing::Message() << width << inverse);
        RowDomain domain{{2, 9}, {3, width}};
        RowRecorder e(&context, domain, {{{2, 9, 3, width}, type, std::nullopt}});
        const Rotation rotation{1e4, /*halfSplit=*/false, inverse, 9, 0};
        RowProgram program = e.finish({e.rotate(0, rotation)}, {{RowForm::Tile, type}});
        const std::vector<Numbers> inputs = randomInputs(program, width);
        RunOptions options; // a part of rows of three times as many numbers
        options.inputLayouts = {{9 * 9 * width, 9 * width, width, 1}};
        options.inPlace = {0};
        expectMatches(program, inputs, options);
        EXPECT_EQ(runKernel(program, inputs, options), runKernel(program, inputs));
      }
}

TEST_F(RowCodegenTest, RotatesByGivenPositions) {
  for (const int64_t period : {0, 5})
    for (const bool computed :
         {false, true}) { // a number of the row, or what the group makes of one
      SCOPED_TRACE(testing::Message() << period << computed);
      const int64_t width = 20, rows = 6;
      RowDomain domain{{2, 3}, {3, width}};
      RowRecorder e(&context, domain,
                    {{{2, 3, 3, width}, RowType::F32, std::nullopt},
                     {{2, 3}, RowType::F32, RowForm::Row},
                     {{2, 3, 3, width}, RowType::F32, RowForm::Tile}});
      RowTerm position{&e, e.input(1)};
      if (computed) // behind a reduction of the row
        position = position + sum(RowTerm{&e, e.input(2)}) * 0.0;
      RowProgram program =
          e.finish({e.rotate(0, {1e4, true, false, 3, period}, RowValue(position))},
                   {{RowForm::Tile, RowType::F32}});
      std::vector<Numbers> inputs = randomInputs(program, 17);
      for (int64_t i = 0; i < rows; ++i)
        inputs[1][i] = static_cast<double>(i * i * 4003);
      expectMatches(program, inputs);
    }
}

TEST_F(RowCodegenTest, RotationsAreExactFarOut) {
  RowDomain domain{{1, 200000}, {1, 2}};
  RowRecorder e(&context, domain, {{{1, 200000, 1, 2}, RowType::F32, std::nullopt}});
  RowProgram program =
      e.finish({e.rotate(0, {1e4, false, false, 200000, 0})}, {{RowForm::Tile, RowType::F32}});
  expectMatches(program, randomInputs(program, 14));
}

TEST_F(RowCodegenTest, GrainsInAnyOrderGiveTheSameBits) {
  for (const RowProgram &program :
       {layerNormGrad({{50}, {70}}), rmsNorm({{50}, {70}}), swiglu({{50, 70}, {}}, RowType::F32),
        rmsNorm({{50}, {97}}, RowType::BF16)}) {
    std::vector<Numbers> inputs = randomInputs(program, 15);
    RunOptions options;
    options.grain = 6;
    std::vector<Numbers> forwards = runKernel(program, inputs, options);
    options.backwards = true;
    EXPECT_EQ(runKernel(program, inputs, options), forwards);
  }
}

TEST_F(RowCodegenTest, SumsOverElements) {
  for (int64_t n : {1, 15, 16, 100, 5000}) {
    start({{n}, {}}, {{RowForm::Tile, RowType::F32}, {RowForm::Tile, RowType::BF16}});
    RowProgram program = finish({{sumRows(in(0) * in(1), RowForm::Row), RowForm::Scalar},
                                 {in(0) * in(0), RowForm::Tile},
                                 {sumRows(in(0), RowForm::Row), RowForm::Scalar}});
    expectMatches(program, randomInputs(program, n));
  }
}

/// Values without influence on a reduction must not move its bits.
TEST_F(RowCodegenTest, ReductionsDoNotDependOnTheirGroup) {
  const RowDomain domain{{8}, {5, 24}};
  RowProgram alone = rmsNorm(domain);
  std::vector<Numbers> inputs = randomInputs(alone, 16);
  start(domain, {{RowForm::Tile, RowType::F32},
                 {RowForm::Column, RowType::F32},
                 {RowForm::Tile, RowType::F32}});
  RowTerm x = in(0), r = rsqrt(mean(x * x) + 1e-5), p = exp(in(2) - max(in(2)));
  RowProgram grouped = finish(
      {{x * r * in(1), RowForm::Tile}, {r, RowForm::Row}, {p * (1.0 / sum(p)), RowForm::Tile}});
  std::vector<Numbers> more = inputs;
  more.push_back(randomInputs(grouped, 17)[2]);
  RunOptions options; // the third tensor cannot be seen as rows of 120 dense columns
  options.inputLayouts = {{}, {}, {120, 1, 5}};
  std::vector<Numbers> a = runKernel(alone, inputs), c = runKernel(grouped, more, options);
  EXPECT_EQ(a[0], c[0]);
  EXPECT_EQ(a[1], c[1]);
  options.inputLayouts = {{120, 1, 5}, {}, {}};
  EXPECT_EQ(a[1], runKernel(grouped, more, options)[1]);
}

TEST_F(RowCodegenTest, EqualInputGivesEqualBytes) {
  auto build = [&](bool reversed) {
    cpu::CpuModule module(testTarget());
    std::vector<RowProgram> programs = {softmax({{9}, {100}}),
                                        swiglu({{9, 100}, {}}, RowType::F32)};
    std::vector<std::vector<Strides>> layouts = {{{100, 1}, {100, 1}},
                                                 {{100, 1}, {100, 1}, {100, 1}}};
    for (size_t i : {0, 1, 0}) {
      size_t n = reversed ? 1 - i : i;
      module.add(programs[n], layouts[n], 2);
    }
    module.addCombine(4, {100}, {1}, RowType::BF16);
    EXPECT_EQ(module.size(), 3u);
    return llvm::cantFail(module.link());
  };
  EXPECT_EQ(build(false), build(true));
}

/// What runs on any machine: the levels give the same bits.
TEST_F(RowCodegenTest, LevelsGiveTheSameBits) {
  if (testTarget().level != "x86-64-v4")
    GTEST_SKIP() << "this machine has no AVX-512";
  RowProgram program = layerNormGrad({{9}, {77}});
  std::vector<Numbers> inputs = randomInputs(program, 18);
  std::vector<Numbers> wide = runKernel(program, inputs);
  setenv("HYDRA_TEST_TARGET", "x86-64-v3", 1);
  EXPECT_EQ(runKernel(program, inputs), wide);
  unsetenv("HYDRA_TEST_TARGET");
}

TEST_F(RowCodegenTest, MergesEqualNodesAndDropsDeadOnes) {
  start({{4}, {8}}, {{RowForm::Tile, RowType::F32}});
  RowTerm x = in(0);
  (void)exp(x);
  RowProgram program = finish({{x * x + x * x, RowForm::Tile}});
  EXPECT_EQ(program.nodes.size(), 3u);
}

} // namespace
