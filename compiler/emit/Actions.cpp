// From the steps of the plan dialect to the actions of plan files.
#include "compiler/emit/Actions.h"

#include "compiler/emit/FileTables.h"
#include "dialects/hydra/NumberFormats.h"
#include "runtime/support/Integers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace hydra {

namespace {

template <typename Table> planfile::ActionUnion action(Table table) {
  planfile::ActionUnion action;
  action.Set(std::move(table));
  return action;
}

/// What operands are rounded to before they are multiplied; f32: nothing.
template <typename Op> planfile::DType multipliedIn(Op op) {
  std::optional<Type> compute = op.getCompute();
  return compute ? fileWord<planfile::DType>(*formatOf(*compute)) : planfile::DType::f32;
}

planfile::ActionUnion actionOf(plan::MatmulOp op) {
  planfile::MatmulT matmul;
  matmul.transpose_a = op.getTransposeA();
  matmul.transpose_b = op.getTransposeB();
  matmul.bias = op.getBias() != nullptr;
  matmul.accumulate = op.getAccumulate();
  matmul.gelu = op.getGelu();
  matmul.saves_sums = op.getSums() != nullptr;
  matmul.reduced_reduction = op.getReducedReduction();
  matmul.compute = multipliedIn(op);
  matmul.scaled = op.getScaleA() != nullptr;
  matmul.weight_scale = op.getWeightScale() != nullptr;
  matmul.multiprocessors = op.getMultiprocessors();
  return action(matmul);
}

/// 0: none.
double capOf(FloatAttr cap) { return cap ? cap.getValueAsDouble() : 0.0; }

template <typename Table, typename Op> planfile::ActionUnion attention(Op op) {
  Table table;
  table.scale = op.getScale().convertToDouble();
  table.cap = capOf(op.getCapAttr());
  table.causal = op.getCausal();
  table.chunk = op.getChunk();
  table.window = op.getWindow();
  return action(table);
}
planfile::ActionUnion actionOf(plan::AttentionOp op) { return attention<planfile::AttentionT>(op); }
planfile::ActionUnion actionOf(plan::AttentionGradOp op) {
  return attention<planfile::AttentionGradT>(op);
}

planfile::ActionUnion actionOf(plan::CachedAttentionOp op) {
  planfile::CachedAttentionT table;
  table.scale = op.getScale().convertToDouble();
  table.cap = capOf(op.getCapAttr());
  table.chunk = op.getChunk();
  table.window = op.getWindow();
  return action(table);
}

planfile::ActionUnion actionOf(plan::SampleOp) { return action(planfile::SampleT()); }
planfile::ActionUnion actionOf(plan::EmbeddingGradOp) { return action(planfile::EmbeddingGradT()); }
planfile::ActionUnion actionOf(plan::CopyOp) { return action(planfile::CopyT()); }
planfile::ActionUnion actionOf(plan::TransferOp) { return action(planfile::TransferT()); }
planfile::ActionUnion actionOf(plan::FillOp op) {
  planfile::FillT fill;
  fill.value = op.getValue().convertToDouble();
  return action(fill);
}
planfile::ActionUnion actionOf(plan::CompactOp) { return action(planfile::CompactT()); }
planfile::ActionUnion actionOf(plan::RouteOp) { return action(planfile::RouteT()); }
planfile::ActionUnion actionOf(plan::CountExponentsOp op) {
  planfile::CountExponentsT counting;
  counting.first = static_cast<int64_t>(op.getFirst());
  counting.scaled = op.getScaled();
  return action(counting);
}
planfile::ActionUnion actionOf(plan::GroupedLinearOp op) {
  planfile::GroupedLinearT linear;
  linear.transposed = op.getTransposed();
  linear.compute = multipliedIn(op);
  return action(linear);
}
planfile::ActionUnion actionOf(plan::GroupedOuterOp op) {
  planfile::GroupedOuterT outer;
  outer.compute = multipliedIn(op);
  return action(outer);
}
planfile::ActionUnion actionOf(plan::FftOp op) {
  planfile::FftT transform;
  transform.inverse = op.getInverse();
  return action(transform);
}
planfile::ActionUnion actionOf(plan::LinearRecurrenceOp op) {
  planfile::LinearRecurrenceT recurrence;
  recurrence.backward = op.getBackward();
  return action(recurrence);
}
template <typename Table, typename Op> planfile::ActionUnion collective(Op op) {
  Table table;
  table.axis = op.getAxis();
  table.wire_bytes = op.getWireBytes();
  return action(table);
}
planfile::ActionUnion actionOf(plan::AllGatherOp op) {
  return collective<planfile::AllGatherT>(op);
}
planfile::ActionUnion actionOf(plan::AllToAllOp op) { return collective<planfile::AllToAllT>(op); }

/// What takes the place of a launch.
planfile::ActionUnion actionOf(plan::SubstituteAttr substitute) {
  auto attention = [&](auto table) {
    table.scale = substitute.getScale().getValueAsDouble();
    table.causal = substitute.getCausal();
    return action(table);
  };
  switch (substitute.getFunction()) {
  case plan::LibraryFunction::nothing:
    return action(planfile::NothingT());
  case plan::LibraryFunction::attention:
    return attention(planfile::AttentionT());
  case plan::LibraryFunction::attention_grad:
    return attention(planfile::AttentionGradT());
  }
  llvm_unreachable("all functions are above");
}

} // namespace

planfile::ActionUnion ActionWriter::launch(plan::LaunchOp op) {
  auto kernel = symbols.lookup<plan::KernelOp>(op.getKernelAttr().getAttr());
  planfile::LaunchT launch;
  launch.kernel = kernels.lookup(kernel.getSymNameAttr());
  const int64_t limit = op.getLimit().value_or(kernel.getRows());
  if (target == planfile::TargetKind::cpu) {
    launch.rows = limit;
    launch.grain = kernel.getGrain();
  } else if (limit < static_cast<int64_t>(kernel.getRows())) {
    // Blocks share out rows in order. (In plans for reports a grid may not be known: 0.)
    const int64_t grid = file.kernels[launch.kernel]->grid.x();
    launch.blocks = support::ceilDiv(grid * limit, kernel.getRows());
  }
  return action(launch);
}

planfile::ActionUnion ActionWriter::actionOf(plan::StepInterface step) {
  return llvm::TypeSwitch<Operation *, planfile::ActionUnion>(step)
      .Case([&](plan::LaunchOp op) { return launch(op); })
      .Case<plan::MatmulOp, plan::AttentionOp, plan::AttentionGradOp, plan::CachedAttentionOp,
            plan::EmbeddingGradOp, plan::CopyOp, plan::FillOp, plan::CompactOp, plan::RouteOp,
            plan::GroupedLinearOp, plan::GroupedOuterOp, plan::SampleOp, plan::AllGatherOp,
            plan::AllToAllOp, plan::TransferOp, plan::FftOp, plan::CountExponentsOp,
            plan::LinearRecurrenceOp>(
          [](auto op) { return hydra::actionOf(op); });
}

std::vector<std::unique_ptr<planfile::AlternativeT>>
ActionWriter::alternativesOf(plan::StepInterface step) {
  std::vector<std::unique_ptr<planfile::AlternativeT>> all;
  auto launch = dyn_cast<plan::LaunchOp>(step.getOperation());
  std::optional<plan::SubstituteAttr> substitute = launch ? launch.getSubstitute() : std::nullopt;
  if (!substitute)
    return all;
  all.push_back(std::make_unique<planfile::AlternativeT>());
  all.back()->description = "own kernel";
  all.push_back(std::make_unique<planfile::AlternativeT>());
  all.back()->description = "cuDNN";
  all.back()->action = hydra::actionOf(*substitute);
  return all;
}

} // namespace hydra
