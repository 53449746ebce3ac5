// One small plan of blocks of every kind, for a CPU or a GPU. SamplePlans.h has what it leaves out.
#pragma once

#include "test/support/PlanBuilder.h"

namespace hydra::test {

/// Block numbers of the program `train`, for tests that change one.
enum SampleBlock : size_t { kEmbedding, kLoop, kSide, kMatmul, kAdamW };

/// Program 0, `train`: an embedding, a loop around a launch and an inner loop around a switch, a
/// copy on a side stream, a matmul with alternatives, an update. Program 1, `eval`: one step.
inline PlanBuilder samplePlan() {
  using namespace planfile;
  PlanBuilder builder;
  builder.plan.header->preset = "tiny";
  builder.plan.header->passes = {"hydra-bind", "hydra-differentiate"};
  auto symbol = std::make_unique<KeyValueT>();
  symbol->key = "D";
  symbol->value = "4";
  builder.plan.header->symbols.push_back(std::move(symbol));
  builder.plan.target->cpu_features = {"sse2"};

  const uint32_t w = builder.variable("layers.0.w", {8, 4}, 1.0);
  const uint32_t m = builder.variable("layers.0.w.m", {8, 4}, 0.0, static_cast<int32_t>(w));
  builder.plan.variables[w]->initializer->kind = InitKind::trunc_normal;
  builder.plan.variables[w]->initializer->std = 0.02;
  builder.plan.variables[w]->initializer->cut = 3;
  builder.plan.variables[w]->group = "decay";
  const uint32_t theta = builder.variable("theta", {3});
  builder.plan.variables[theta]->initializer->kind = InitKind::shuffle;
  builder.plan.variables[theta]->initializer->table = {1, 2, 3};
  const uint32_t lr = builder.scalar("lr", 1e-3);
  builder.plan.scalars[lr]->schedule->kind = ScheduleKind::cosine;
  builder.plan.scalars[lr]->schedule->warmup_steps = 10;
  builder.plan.scalars[lr]->schedule->total_steps = 100;
  const uint32_t wTensor = builder.plan.variables[w]->tensor;
  const uint32_t mTensor = builder.plan.variables[m]->tensor;
  const uint32_t thetaTensor = builder.plan.variables[theta]->tensor;

  const SegmentKind transient = SegmentKind::transient;
  const uint32_t tokens = builder.tensor("tokens", {2, 3}, transient, DType::i32);
  const uint32_t labels = builder.tensor("labels", {2, 3}, transient, DType::i32);
  const uint32_t x = builder.tensor("x", {5, 6, 4});
  const uint32_t selector = builder.tensor("depth", {}, transient, DType::i32);
  const uint32_t copy = builder.tensor("x.copy", {6, 4});
  const uint32_t gradient = builder.tensor("grad.w", {8, 4});
  const uint32_t loss = builder.tensor("loss", {});
  const uint32_t workspace = builder.tensor("workspace", {256}, transient, DType::u8);
  builder.plan.tensors[x]->category = Category::act_ffn;
  builder.plan.tensors[x]->layer = 0;
  builder.plan.tensors[workspace]->category = Category::workspace;
  const uint64_t xOffset = builder.plan.tensors[x]->offset;
  const uint32_t slice = builder.view("x.slice", {6, 4}, {4, 1}, transient, xOffset);
  const uint32_t column = builder.view("x.column", {6}, {4}, transient, xOffset);

  const uint32_t scale = builder.kernel("scale", 3);
  const uint32_t adamw = builder.kernel("adamw", 4);

  std::vector<Blocks> cases;
  FillT half;
  half.value = 0.5;
  cases.push_back(blocks(call(half, {writes(column)})));
  cases.push_back(Blocks());
  Blocks inner = blocks(choose(selector, std::move(cases)));
  Blocks body = blocks(
      launch("scale", scale, 6, 2, {updates(slice), reads(thetaTensor), builder.readsScalar(lr)}),
      loop(4, {LoopStride(column, 4)}, std::move(inner)));
  MatmulT product;
  product.transpose_a = true;
  Blocks train = blocks(
      step("embedding", {reads(tokens), reads(wTensor), writes(x), writes(selector)}),
      loop(5, {LoopStride(slice, 96), LoopStride(column, 96)}, std::move(body)),
      call(CopyT(), {reads(slice), writes(copy)}),
      call(product, {reads(x), reads(labels), writes(gradient), writes(workspace)}),
      launch("adamw", adamw, 8, 8,
             {updates(wTensor), updates(mTensor), reads(gradient), builder.readsScalar(lr)}));
  train[kLoop]->signals = 0;
  train[kSide]->stream = 1;
  train[kSide]->waits = {0};
  train[kSide]->signals = 1;
  train[kAdamW]->waits = {1};
  StepT &matmul = *train[kMatmul]->node.AsStep();
  for (const uint32_t algorithm : {32, 64}) {
    auto alternative = std::make_unique<AlternativeT>();
    alternative->description = "algorithm " + std::to_string(algorithm);
    product.algorithm = algorithm;
    alternative->action.Set(product);
    matmul.alternatives.push_back(std::move(alternative));
  }
  matmul.alternatives[1]->microseconds = 12.5;
  matmul.chosen = 1;
  matmul.op_class = OpClass::gemm;
  matmul.phase = Phase::backward;
  matmul.layer = 0;
  matmul.cost = Cost(1536, 640, 2.5);

  ProgramT &first = builder.program("train", std::move(train));
  first.streams = 2;
  first.events = 2;
  first.cost = Cost(1536, 640, 2.5);
  builder.input(first, "tokens", InputKind::tokens, tokens, 8);
  builder.input(first, "labels", InputKind::labels, labels, 8);
  builder.output(first, "loss", loss);
  builder.output(first, "depth", selector);

  ProgramT &second = builder.program("eval", blocks(call(CopyT(), {reads(x), updates(x)})));
  builder.input(second, "x", InputKind::values, x);
  builder.output(second, "x", x);
  return builder;
}

/// Turns the sample into a plan for a GPU.
inline void makeCuda(planfile::PlanT &plan) {
  using namespace planfile;
  plan.target->kind = TargetKind::cuda;
  plan.target->sm_arch = "sm_90a";
  plan.target->block_shared_bytes = 1000;
  for (auto &blob : plan.blobs)
    blob->kind = BlobKind::cubin;
  for (auto &kernel : plan.kernels) {
    kernel->grid = Dim3(4, 1, 1);
    kernel->block = Dim3(256, 1, 1);
  }
  for (auto &block : plan.programs[0]->blocks) {
    if (StepT *step = block->node.AsStep())
      if (LaunchT *launch = step->action.AsLaunch())
        launch->rows = launch->grain = 0;
  }
  StepT &scale = *plan.programs[0]->blocks[kLoop]->node.AsLoop()->blocks[0]->node.AsStep();
  scale.action.AsLaunch()->rows = scale.action.AsLaunch()->grain = 0;
}

} // namespace hydra::test
