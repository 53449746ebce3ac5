// What operations say about themselves (cost, storage, precision) against what they do, and the
// time that the largest model takes to compile.
#include "test/support/OpCases.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

using namespace hydra;
using namespace hydra::test;
using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Operation;

namespace {

/// Calls `visit` with every value operation of the forward and gradient programs of all cases.
template <typename Visit> void forEachCaseOp(Visit visit, uint64_t seeds = 3) {
  for (const OpCase &c : opCases())
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      Random random(seed);
      SmallProgram program(c.make(random));
      ASSERT_EQ(program.error, "");
      for (EntryOp entry : {program.forward(), program.gradient()})
        for (Operation &op : entry.getBody().front().without_terminator()) {
          SCOPED_TRACE(c.name + ": " + op.getName().getStringRef().str());
          visit(&op);
          if (testing::Test::HasFatalFailure())
            return;
        }
    }
}

SmallVector<int64_t> shapeOf(mlir::Value v) { return SmallVector<int64_t>(build::shapeOf(v)); }

int64_t bytesOf(mlir::TypeRange types) {
  int64_t bytes = 0;
  for (mlir::Type type : types) {
    auto tensor = llvm::cast<mlir::RankedTensorType>(type);
    bytes += tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
  }
  return bytes;
}

/// Random operands that the operation accepts.
std::vector<RefTensor> randomOperands(Operation *op, Random &random) {
  std::vector<RefTensor> operands;
  for (mlir::Value v : op->getOperands()) {
    RefTensor &tensor = operands.emplace_back(build::shapeOf(v));
    mlir::Type element = build::typeOf(v).getElementType();
    for (double &x : tensor.data)
      x = element.isInteger(1)    ? random.below(2)
          : element.isInteger(32) ? 0 // an id that every table has
                                  : 0.6 + 0.4 * random.uniform();
  }
  return operands;
}

std::vector<RefTensor> evaluate(Operation *op, const std::vector<RefTensor> &operands) {
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &tensor : operands)
    pointers.push_back(&tensor);
  SmallVector<RefTensor> results;
  for (mlir::Value v : op->getResults())
    results.emplace_back(build::shapeOf(v));
  EXPECT_TRUE(succeeded(llvm::cast<ReferenceOpInterface>(op).evaluate(pointers, results)));
  return {results.begin(), results.end()};
}

} // namespace

//===-- Cost --------------------------------------------------------------------------------===//

TEST(Cost, IsKnownOfEveryOperation) {
  forEachCaseOp([&](Operation *op) {
    if (llvm::isa<UseOp>(op))
      return;
    auto cost = llvm::dyn_cast<CostOpInterface>(op);
    ASSERT_TRUE(cost);
    EXPECT_NE(cost.costClass(), OpClass::other);
    EXPECT_GE(cost.flops(), 0);
    const int64_t results = bytesOf(op->getResultTypes());
    EXPECT_GE(cost.bytes(), results);
    // Only a lookup does not read all of its operands.
    if (cost.costClass() != OpClass::gather_scatter)
      EXPECT_EQ(cost.bytes(), results + bytesOf(op->getOperandTypes()));
    if (cost.costClass() == OpClass::copy_cast)
      EXPECT_EQ(cost.flops(), 0);
  });
}

namespace {

/// The sum of FLOPs of a class over a program.
int64_t flopsOf(EntryOp entry, OpClass costClass) {
  int64_t flops = 0;
  entry.walk([&](CostOpInterface op) {
    if (op.costClass() == costClass)
      flops += op.flops();
  });
  return flops;
}

mlir::OwningOpRef<mlir::ModuleOp> compileCs336(Compiler &compiler, const BindingOptions &binding,
                                               Mode mode) {
  auto module = compiler.parseFile(sourcePath("models/cs336.mlir"));
  EXPECT_TRUE(module);
  EXPECT_TRUE(compiler.run(*module, [&](mlir::OpPassManager &passes) {
    buildForwardPipeline(passes, binding);
    buildTrainingPipeline(passes, mode, {"loss"}, 1, /*clip=*/true);
  })) << compiler.takeDiagnostics();
  return module;
}

BindingOptions cs336Binding(const std::string &preset, int64_t batch, int64_t seq) {
  BindingOptions binding;
  binding.preset = preset;
  binding.batch = batch;
  binding.seq = seq;
  return binding;
}

} // namespace

TEST(Cost, OfATransformerIsThatOfItsFormula) {
  // models.md section 8, per token: 8 D² + 6 D F + 2 S D (half of the square is masked) in a layer.
  const int64_t B = 2, S = 32, D = 64, F = 192, L = 2, V = 97, T = B * S;
  Compiler compiler;
  auto forward = compileCs336(compiler, cs336Binding("tiny", B, S), Mode::Forward);
  auto train = compileCs336(compiler, cs336Binding("tiny", B, S), Mode::Train);
  const int64_t gemm = T * L * (8 * D * D + 6 * D * F);
  EXPECT_EQ(flopsOf(programOf(*forward, "logits"), OpClass::gemm), gemm + T * 2 * D * V);
  EXPECT_EQ(flopsOf(programOf(*forward), OpClass::gemm), gemm);
  EXPECT_EQ(flopsOf(programOf(*train), OpClass::gemm), 3 * gemm);
  const int64_t attention = T * L * 2 * S * D;
  EXPECT_EQ(flopsOf(programOf(*forward), OpClass::attention), attention);
  EXPECT_EQ(flopsOf(programOf(*train), OpClass::attention), attention + attention * 5 / 2);
  EXPECT_EQ(flopsOf(programOf(*forward), OpClass::loss), T * (2 * D * V + 4 * V));
  EXPECT_EQ(flopsOf(programOf(*train), OpClass::loss), T * (6 * D * V + 4 * V));
  EXPECT_EQ(flopsOf(programOf(*train), OpClass::optimizer) % 18, 0); // 16 of AdamW, 2 of the norm
}

TEST(Cost, OfMasksCountsVisiblePairs) {
  struct Form {
    const char *attributes;
    double pairs; ///< of 64 queries and 64 keys
  };
  for (const Form f :
       {Form{"", 64.0 * 64}, Form{" causal", 64.0 * 32}, Form{" causal chunk = 16", 64.0 * 8},
        Form{" causal window = 8", 64.0 * 8 - 32}, Form{" causal window = 100", 64.0 * 32},
        Form{" causal chunk = 100", 64.0 * 32}}) {
    SmallModel m;
    m.parameters = {{"q", {3, 64, 4, 8}}, {"k", {3, 64, 2, 8}}, {"v", {3, 64, 2, 5}}};
    m.resultShape = {3, 64, 4, 5};
    m.code = std::string("    %y = hydra.attention %q, %k, %v scale = 1.0") + f.attributes + "\n";
    SmallProgram program(m);
    ASSERT_EQ(program.error, "");
    EXPECT_EQ(flopsOf(program.forward(), OpClass::attention), 3 * 4 * f.pairs * 2 * (8 + 5))
        << f.attributes;
  }
}

//===-- Storage -----------------------------------------------------------------------------===//

namespace {

/// Strides of a tensor whose dimensions lie in another order in memory, with gaps.
SmallVector<int64_t> randomStrides(ArrayRef<int64_t> shape, Random &random) {
  SmallVector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (random.chance(0.5))
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = random.between(1, 2);
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride = stride * shape[order[i]] + (random.chance(0.3) ? random.below(4) : 0);
  }
  return strides;
}

/// Whether the positions of the elements are a linear function of their index in another shape.
bool reshapeHasView(ArrayRef<int64_t> from, ArrayRef<int64_t> strides, ArrayRef<int64_t> to) {
  std::vector<int64_t> positions;
  forEachIndex(from, [&](ArrayRef<int64_t> i) { positions.push_back(at(i, strides)); });
  const SmallVector<int64_t> dense = denseStrides(to);
  bool linear = true;
  forEachIndex(to, [&](ArrayRef<int64_t> i) {
    int64_t want = 0;
    for (size_t d = 0; d < to.size(); ++d)
      if (i[d] > 0)
        want += i[d] * positions[dense[d]];
    linear &= positions[at(i, dense)] == want;
  });
  return linear;
}

} // namespace

TEST(Storage, ViewsPickTheElementsThatEvaluationGives) {
  unsigned views = 0, refused = 0;
  Random random(7);
  forEachCaseOp(
      [&](Operation *op) {
        auto storage = llvm::dyn_cast<StorageOpInterface>(op);
        if (!storage || !storage.viewedOperand())
          return;
        const SmallVector<int64_t> from = shapeOf(op->getOperand(*storage.viewedOperand()));
        const SmallVector<int64_t> to = shapeOf(op->getResult(0));
        for (int round = 0; round < 6; ++round) {
          const SmallVector<int64_t> strides =
              round == 0 ? denseStrides(from) : randomStrides(from, random);
          int64_t extent = 1;
          for (size_t i = 0; i < from.size(); ++i)
            extent += (from[i] - 1) * strides[i];
          std::vector<double> buffer(extent);
          for (double &x : buffer)
            x = random.uniform();
          std::vector<RefTensor> operands = {RefTensor(from)};
          double *next = operands[0].data.data();
          forEachIndex(from, [&](ArrayRef<int64_t> i) { *next++ = buffer[at(i, strides)]; });

          llvm::FailureOr<StridedView> view = storage.view(strides);
          if (failed(view)) {
            EXPECT_TRUE(llvm::isa<ReshapeOp>(op)) << "only a reshape depends on strides";
            EXPECT_FALSE(reshapeHasView(from, strides, to))
                << shapeText(from) << " with strides " << shapeText(strides) << " to "
                << shapeText(to);
            ++refused;
            continue;
          }
          ++views;
          const std::vector<RefTensor> results = evaluate(op, operands);
          const double *want = results[0].data.data();
          ASSERT_EQ(view->strides.size(), to.size());
          forEachIndex(to, [&](ArrayRef<int64_t> i) {
            const int64_t position = view->offset + at(i, view->strides);
            ASSERT_TRUE(position >= 0 && position < extent);
            ASSERT_EQ(buffer[position], *want++);
          });
        }
      },
      /*seeds=*/20);
  EXPECT_GT(views, 1000u);
  EXPECT_GT(refused, 20u);
}

TEST(Storage, ReshapesOfStridedRowsAreViewsWherePossible) {
  // A slice of the columns of [6, 8]: rows stay apart, so that splitting is possible, merging not.
  const struct {
    std::vector<int64_t> from, strides, to;
    bool possible;
    std::vector<int64_t> view;
  } forms[] = {
      {{6, 4}, {8, 1}, {2, 3, 4}, true, {24, 8, 1}},
      {{6, 4}, {8, 1}, {6, 2, 2}, true, {8, 2, 1}},
      {{6, 4}, {8, 1}, {24}, false, {}},
      {{6, 4}, {8, 1}, {3, 8}, false, {}},
      {{6, 4}, {4, 1}, {3, 8}, true, {8, 1}},
      {{6, 1, 4}, {8, 99, 1}, {6, 4}, true, {8, 1}},
      {{6, 4}, {8, 1}, {6, 1, 4}, true, {8, 4, 1}},
      {{1, 4}, {8, 2}, {4}, true, {2}},
      {{2, 3}, {1, 2}, {6}, false, {}},
  };
  for (const auto &f : forms) {
    SmallModel m;
    m.parameters = {{"x", f.from}};
    m.resultShape = f.to;
    m.code = "    %y = hydra.reshape %x shape = " + shapeText(f.to) + "\n";
    SmallProgram program(m);
    ASSERT_EQ(program.error, "");
    program.forward().walk([&](ReshapeOp op) {
      const llvm::FailureOr<StridedView> view = op.view(f.strides);
      ASSERT_EQ(succeeded(view), f.possible) << shapeText(f.from) << " to " << shapeText(f.to);
      if (!f.possible)
        return;
      EXPECT_EQ(view->offset, 0);
      for (size_t i = 0; i < f.to.size(); ++i)
        if (f.to[i] != 1)
          EXPECT_EQ(view->strides[i], f.view[i]) << shapeText(f.to) << ", dimension " << i;
    });
  }
}

TEST(Storage, AnOverwrittenOperandIsReadInTheSameRowOnly) {
  unsigned pairs = 0;
  Random random(3);
  forEachCaseOp([&](Operation *op) {
    auto storage = llvm::dyn_cast<StorageOpInterface>(op);
    if (!storage)
      return;
    for (unsigned r = 0; r < op->getNumResults(); ++r)
      for (const unsigned o : storage.overwritableOperands(r)) {
        ASSERT_LT(o, op->getNumOperands());
        ASSERT_EQ(op->getOperand(o).getType(), op->getResult(r).getType());
        std::vector<RefTensor> operands = randomOperands(op, random);
        const RefTensor before = evaluate(op, operands)[r];
        const int64_t changed = random.below(before.size());
        operands[o].data[changed] += 0.25;
        const RefTensor after = evaluate(op, operands)[r];
        const bool elementwise = op->hasTrait<Elementwise>();
        const int64_t unit = elementwise ? 1 : before.cols();
        for (int64_t i = 0; i < before.size(); ++i)
          if (i / unit != changed / unit)
            ASSERT_EQ(before.data[i], after.data[i]);
        ++pairs;
      }
  });
  EXPECT_GT(pairs, 100u);
}

TEST(Storage, LayoutsOfOperandsAreSensible) {
  forEachCaseOp([&](Operation *op) {
    auto storage = llvm::dyn_cast<StorageOpInterface>(op);
    for (unsigned i = 0; storage && i < op->getNumOperands(); ++i) {
      const OperandLayout layout = storage.operandLayout(i);
      EXPECT_TRUE(llvm::isPowerOf2_32(layout.alignment));
      EXPECT_LE(layout.denseInner.value_or(0), 2u);
    }
  });
}

//===-- Precision ---------------------------------------------------------------------------===//

TEST(PrecisionClass, KeepsStatisticsLossesAndUpdatesInFull) {
  forEachCaseOp([&](Operation *op) {
    if (llvm::isa<UseOp>(op))
      return;
    auto precision = llvm::dyn_cast<PrecisionOpInterface>(op);
    ASSERT_TRUE(precision);
    const OpClass kind = llvm::cast<CostOpInterface>(op).costClass();
    const Precision found = precision.precisionClass();
    if (kind == OpClass::gemm || kind == OpClass::attention || llvm::isa<LinearCrossEntropyOp>(op))
      EXPECT_EQ(found, Precision::Matmul);
    else if (llvm::is_contained({OpClass::norm, OpClass::softmax, OpClass::reduce}, kind) ||
             llvm::isa<EmbeddingGradOp>(op))
      EXPECT_EQ(found, Precision::Full);
    else if (kind == OpClass::loss || kind == OpClass::optimizer || kind == OpClass::fft ||
             kind == OpClass::scan)
      EXPECT_EQ(found, Precision::Exact);
    else if (llvm::isa<TopKOp, CompactOp, RouteOp>(op)) // an order and counts, not values
      EXPECT_EQ(found, Precision::Exact);
    else if (llvm::isa<TakeRowsOp>(op)) // of several rows it is a sum
      EXPECT_EQ(found,
                llvm::cast<CostOpInterface>(op).flops() > 0 ? Precision::Follow : Precision::Move);
    else if (kind == OpClass::copy_cast)
      EXPECT_EQ(found, Precision::Move);
    else
      EXPECT_EQ(found, Precision::Follow);
  });
}

TEST(PrecisionClass, OfTheUpdateIsExact) {
  Compiler compiler;
  auto train = compileCs336(compiler, cs336Binding("tiny", 1, 3), Mode::Train);
  unsigned updates = 0;
  programOf(*train).walk([&](Operation *op) {
    if (!llvm::isa<AdamWOp, GlobalNormOp>(op))
      return;
    ++updates;
    EXPECT_EQ(llvm::cast<PrecisionOpInterface>(op).precisionClass(), Precision::Exact);
    EXPECT_EQ(llvm::cast<CostOpInterface>(op).costClass(), OpClass::optimizer);
    auto storage = llvm::cast<StorageOpInterface>(op);
    for (unsigned r = 0; r < op->getNumResults(); ++r)
      EXPECT_EQ(storage.overwritableOperands(r),
                llvm::isa<AdamWOp>(op) ? SmallVector<unsigned>{r} : SmallVector<unsigned>{});
  });
  EXPECT_EQ(updates, 22u);
}

//===-- Speed -------------------------------------------------------------------------------===//

TEST(Speed, XlBindsUnrollsAndDifferentiatesInThreeSeconds) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  constexpr double limit = 30.0;
#else
  constexpr double limit = 3.0;
#endif
#else
  constexpr double limit = 3.0;
#endif
  Compiler compiler;
  auto module = compiler.parseFile(sourcePath("models/cs336.mlir"));
  ASSERT_TRUE(module);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(compiler.run(*module, [](mlir::OpPassManager &passes) {
    buildForwardPipeline(passes, cs336Binding("xl", 4, 512));
    buildTrainingPipeline(passes, Mode::Grad, {"loss"}, 1, false);
  })) << compiler.takeDiagnostics();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", static_cast<int>(taken.count() * 1e3));
  EXPECT_LT(taken.count(), limit);
  size_t attentions = 0;
  programOf(*module).walk([&](AttentionGradOp) { ++attentions; });
  EXPECT_EQ(attentions, 48u);
}
