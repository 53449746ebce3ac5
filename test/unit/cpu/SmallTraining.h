// A train plan small enough to follow by hand: w [4] is pulled towards an input by gradient
// descent.
#pragma once

#include "test/unit/cpu/Kernels.h"

#include <string>

namespace hydra::test {

/// Programs train and eval with the inputs target [4], tokens [2, 3] and labels [2, 3] (ids below
/// 8); loss = mean (w - target)^2 / 2, w -= lr * (w - target) / 4, momentum m [4] += 1 each step.
/// The scalar lr is 0.5. With accumulation, accumulate and apply do train's work.
inline PlanBuilder smallTraining(uint32_t accumulation = 1) {
  using namespace planfile;
  test::PlanBuilder builder;
  builder.plan.accumulation = accumulation;
  builder.plan.header->mode = "train";
  builder.plan.header->preset = "tiny";
  const uint32_t w = builder.variable("w", {4}, 3.0);
  const uint32_t m = builder.variable("w.m", {4}, 0.0, static_cast<int32_t>(w));
  const uint32_t lr = builder.scalar("lr", 0.5);
  const uint32_t wTensor = builder.plan.variables[w]->tensor;
  const uint32_t mTensor = builder.plan.variables[m]->tensor;

  const uint32_t target = builder.tensor("target", {4});
  const uint32_t tokens =
      builder.tensor("tokens", {2, 3}, SegmentKind::transient, planfile::DType::i32);
  const uint32_t labels =
      builder.tensor("labels", {2, 3}, SegmentKind::transient, planfile::DType::i32);
  const uint32_t loss = builder.tensor("loss", {});
  // Where accumulation needs the gradient in another program, so it must survive.
  const uint32_t gradient = builder.tensor("gradient", {4}, SegmentKind::persistent);

  const uint32_t halfSquare = testKernel(builder, "half_square", 4);
  const uint32_t sgd = testKernel(builder, "sgd", 3);
  const uint32_t add = testKernel(builder, "add_one", 1);
  const auto forward = [&] {
    return launch("half_square", halfSquare, 4, 4,
                  {reads(wTensor), reads(target), writes(loss), writes(gradient)});
  };
  const auto update = [&] {
    return launch("sgd", sgd, 4, 2, {updates(wTensor), reads(gradient), builder.readsScalar(lr)});
  };
  const auto momentum = [&] { return launch("momentum", add, 4, 4, {updates(mTensor)}); };
  const auto addInputs = [&](ProgramT &program) {
    builder.input(program, "target", InputKind::values, target);
    builder.input(program, "tokens", InputKind::tokens, tokens, 8);
    builder.input(program, "labels", InputKind::labels, labels, 8);
    builder.output(program, "loss", loss);
  };
  if (accumulation == 1) {
    addInputs(builder.program("train", blocks(forward(), update(), momentum())));
  } else {
    addInputs(builder.program("accumulate", blocks(forward())));
    builder.program("apply", blocks(update(), momentum()));
  }
  addInputs(builder.program("eval", blocks(forward())));
  for (auto &program : builder.plan.programs)
    for (auto &block : program->blocks) {
      StepT &step = *block->node.AsStep();
      step.op_class = step.name == "sgd" ? OpClass::optimizer : OpClass::loss;
      step.phase = step.name == "sgd" ? Phase::optimizer : Phase::loss;
      step.cost = Cost(40, 160, 0.5);
    }
  builder.plan.cost = Cost(120, 480, 1.5);
  return builder;
}

} // namespace hydra::test
