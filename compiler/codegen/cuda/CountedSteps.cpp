// Of a switch the last case, that of all rows, says what its steps are.
#include "compiler/codegen/cuda/CountedSteps.h"

#include "dialects/hydra/RowPartition.h"
#include "dialects/plan/KernelExpansion.h"

#include <numeric>

using namespace mlir;

namespace hydra::cuda {

namespace {

plan::KernelOp kernelOf(plan::LaunchOp launch) {
  return launch->getParentOfType<plan::PlanModuleOp>().lookupSymbol<plan::KernelOp>(
      launch.getKernelAttr());
}

/// Whether a group's kernel can stop behind a row: each of its results is of rows.
bool canStop(plan::LaunchOp launch, int64_t rows) {
  plan::KernelOp kernel = kernelOf(launch);
  if (kernel.getSource() || kernel.getCombines() || launch.getLimit() || launch.getSubstitute() ||
      launch.getArgs().size() != kernel.getLayouts().size() ||
      static_cast<int64_t>(kernel.getRows()) % rows != 0)
    return false;
  FusedOp group = *kernel.getBody().getOps<FusedOp>().begin();
  for (unsigned i = 0; i < group->getNumResults(); ++i)
    if (RowForm form = group.getResultForm(i);
        sumsOverRows(group, i) || (form != RowForm::Tile && form != RowForm::Row))
      return false;
  return true;
}

bool canCount(plan::StepInterface step, TargetAttr target) {
  auto mark = step->getAttrOfType<DenseI64ArrayAttr>(plan::kCountedAttr);
  if (!mark)
    return false;
  if (auto launch = dyn_cast<plan::LaunchOp>(step.getOperation()))
    return canStop(launch, mark[0]);
  auto matmul = dyn_cast<plan::MatmulOp>(step.getOperation());
  return matmul && canCountRows(matmul, target);
}

/// On average over all numbers of rows: half of the work on all of them.
int64_t meanOf(int64_t work) { return work / 2; }

} // namespace

bool CountedSteps::expand(plan::SwitchOp choice) {
  // In the order of a program that hydra-assign-streams has not given streams yet.
  if (choice.getStream() != 0 || !choice.getWaits().empty() || choice.getSignals() >= 0)
    return false;
  Block &whole = choice.getCases().back().front();
  SmallVector<plan::StepInterface> steps;
  for (Operation &op : whole) {
    if (isa<plan::BufferOp, plan::ViewOp>(op))
      continue;
    auto step = dyn_cast<plan::StepInterface>(op);
    if (!step || !canCount(step, launcher.target))
      return false;
    steps.push_back(step);
  }
  for (Operation &op : llvm::make_early_inc_range(whole))
    op.moveBefore(choice);
  Value count = choice.getSelector();
  for (plan::StepInterface step : steps) {
    if (auto launch = dyn_cast<plan::LaunchOp>(step.getOperation())) {
      expandLaunch(launch, count, launch->getAttrOfType<DenseI64ArrayAttr>(plan::kCountedAttr)[0]);
      continue;
    }
    launcher.begin(step);
    launcher.setWork(meanOf(launcher.flops()), meanOf(launcher.bytes()));
    expandCountedMatmul(launcher, cast<plan::MatmulOp>(step.getOperation()), count);
    launcher.finish();
  }
  choice.erase();
  return true;
}

void CountedSteps::expandLaunch(plan::LaunchOp launch, Value count, int64_t rows) {
  plan::KernelOp kernel = kernelOf(launch);
  launch.setKernel(counted(kernel, static_cast<int64_t>(kernel.getRows()) / rows).getSymName());
  SmallVector<int64_t> access(launch.getAccess());
  access.push_back(plan::kRead);
  launch.getArgsMutable().append(count);
  launch.setAccess(access);
  launch->removeAttr(plan::kCountedAttr);
  int64_t flops = meanOf(launch.getFlops());
  if (std::optional<ArrayRef<int64_t>> each = launch.getPhaseFlops()) {
    const SmallVector<int64_t> means = llvm::map_to_vector(*each, meanOf);
    flops = std::accumulate(means.begin(), means.end(), int64_t{0});
    launch.setPhaseFlops(means);
  }
  cast<plan::StepInterface>(launch.getOperation()).setWork(flops, meanOf(launch.getBytes()));
}

plan::KernelOp CountedSteps::counted(plan::KernelOp kernel, int64_t each) {
  plan::KernelOp &known = kernels[{kernel, each}];
  if (known)
    return known;
  OpBuilder b(kernel);
  known = cast<plan::KernelOp>(b.clone(*kernel));
  std::string name = (kernel.getSymName() + "_counted").str();
  if (each > 1)
    name += std::to_string(each);
  known.setSymName(name);
  SmallVector<Attribute> layouts(kernel.getLayouts().getValue());
  layouts.push_back(TypeAttr::get(MemRefType::get({}, b.getI32Type())));
  known.setLayoutsAttr(b.getArrayAttr(layouts));
  known.setCounted(each);
  return known;
}

} // namespace hydra::cuda
