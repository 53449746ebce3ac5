// Work on a number of rows that only the device knows, without a choice between cases: of a switch
// the last case, that of all rows, says what its steps are.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/RowPartition.h"
#include "dialects/plan/KernelExpansion.h"

#include "llvm/ADT/MapVector.h"

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

ArrayRef<int64_t> countedOf(Operation *step) {
  auto mark = step->getAttrOfType<DenseI64ArrayAttr>(plan::kCountedAttr);
  return mark ? mark.asArrayRef() : ArrayRef<int64_t>();
}

bool canCount(plan::StepInterface step, TargetAttr target) {
  const ArrayRef<int64_t> mark = countedOf(step);
  if (mark.empty())
    return false;
  if (auto launch = dyn_cast<plan::LaunchOp>(step.getOperation()))
    return canStop(launch, mark[0]);
  auto matmul = dyn_cast<plan::MatmulOp>(step.getOperation());
  return matmul && canCountRows(matmul, target);
}

/// On average over all numbers of rows: half of the work on all of them.
int64_t meanOf(int64_t work) { return work / 2; }

class CountedSteps {
public:
  explicit CountedSteps(StepLauncher &launcher) : launcher(launcher) {}

  /// Whether every step that a switch has for all rows can read their number by itself.
  bool canTakePlaceOf(plan::SwitchOp choice) const;
  /// Puts these steps there.
  void takePlaceOf(plan::SwitchOp choice);

private:
  void expandLaunch(plan::LaunchOp launch, Value count, int64_t rows);
  /// The kernel that reads a number, which stands for `each` times so many of its rows.
  plan::KernelOp counted(plan::KernelOp kernel, int64_t each);

  StepLauncher &launcher;
  DenseMap<std::pair<Operation *, int64_t>, plan::KernelOp> kernels;
};

bool CountedSteps::canTakePlaceOf(plan::SwitchOp choice) const {
  // In the order of a program that hydra-assign-streams has not given streams yet.
  if (choice.getStream() != 0 || !choice.getWaits().empty() ||
      static_cast<int64_t>(choice.getSignals()) >= 0 || choice.getCases().empty())
    return false;
  Block &whole = choice.getCases().back().front();
  return !whole.getOps<plan::StepInterface>().empty() && llvm::all_of(whole, [&](Operation &op) {
    auto step = dyn_cast<plan::StepInterface>(op);
    return step ? canCount(step, launcher.target) : isa<plan::BufferOp, plan::ViewOp>(op);
  });
}

void CountedSteps::takePlaceOf(plan::SwitchOp choice) {
  Value count = choice.getSelector();
  for (Operation &op : llvm::make_early_inc_range(choice.getCases().back().front())) {
    op.moveBefore(choice);
    if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
      expandLaunch(launch, count, countedOf(launch)[0]);
    } else if (auto matmul = dyn_cast<plan::MatmulOp>(op)) {
      launcher.begin(cast<plan::StepInterface>(op));
      launcher.setWork(meanOf(launcher.flops()), meanOf(launcher.bytes()));
      expandCountedMatmul(launcher, matmul, count);
      launcher.finish();
    }
  }
  choice.erase();
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

} // namespace

void expandCountedSwitches(StepLauncher &launcher, plan::PlanModuleOp module) {
  // Those of one number together: in rows behind the last one that there is, which a case of a
  // switch works on up to its granule, the others would leave whatever was there.
  llvm::MapVector<std::pair<Operation *, int64_t>, SmallVector<plan::SwitchOp>> ofNumber;
  module.walk([&](plan::SwitchOp choice) {
    const plan::Place number = plan::placeOf(choice.getSelector());
    ofNumber[{number.buffer, number.bytes}].push_back(choice);
  });
  CountedSteps counted(launcher);
  for (auto &[number, choices] : ofNumber)
    if (llvm::all_of(choices,
                     [&](plan::SwitchOp choice) { return counted.canTakePlaceOf(choice); }))
      for (plan::SwitchOp choice : choices)
        counted.takePlaceOf(choice);
}

} // namespace hydra::cuda
