// Steps of a CUDA plan that are kernels written by hand: attention, copies, fills, the gradient of
// an embedding, matmuls of rows in groups. Their templates (templates/*.cuh) are specialised to
// shapes and strides as text.
#pragma once

#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"

#include <string>

namespace hydra::cuda {

/// Replaces steps that have a template by launches, and loops that hydra-fuse-loops chose by one.
/// What stays is for libraries. Fails, with the place, for a step that neither a template nor a
/// library takes.
llvm::LogicalResult expandSteps(plan::PlanModuleOp module, TargetAttr target);

/// Up to so many rows a matmul of narrow operands is a sweep over its weights, where it does
/// nothing but multiply and add a bias.
constexpr int64_t kFewRows = 16;

/// Whether a matmul of few rows can compute its first operand as the launch in front of it does, in
/// each block, in less time than a launch takes (plan::KernelExpansionInterface).
bool canComputeOperand(plan::LaunchOp launch, plan::MatmulOp matmul, TargetAttr target);

/// Whether blocks of attention over slots can compute queries or keys as these launches in front of
/// it do (plan::KernelExpansionInterface).
bool canComputeOperands(llvm::ArrayRef<plan::LaunchOp> launches, plan::CachedAttentionOp op,
                        TargetAttr target);

/// Whether there is a kernel for a matmul whose sums these launches, behind it, use instead of its
/// being stored (plan::KernelExpansionInterface).
bool canUseSums(plan::MatmulOp matmul, llvm::ArrayRef<plan::LaunchOp> launches, TargetAttr target);

/// Whether kernels of attention_grad store what these launches, behind it, rotate as they would
/// (plan::KernelExpansionInterface).
bool canRotateGradients(plan::AttentionGradOp op, llvm::ArrayRef<plan::LaunchOp> launches,
                        TargetAttr target);

/// One CUDA C++ source with all kernels made from templates; empty when there are none.
std::string templateSource(plan::PlanModuleOp module);

} // namespace hydra::cuda
