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

/// Whether a switch can be taken apart: it stands in the order of a program that
/// hydra-assign-streams has not given streams yet.
bool standsInOrder(plan::SwitchOp choice) {
  return choice.getStream() == 0 && choice.getWaits().empty() &&
         static_cast<int64_t>(choice.getSignals()) < 0 && !choice.getCases().empty();
}

/// The case of all rows.
Block &wholeOf(plan::SwitchOp choice) { return choice.getCases().back().front(); }

/// Neighbours that add up one matrix, as hydra-to-plan makes them of a sum over joined rows: a
/// matmul each, of all rows or in a switch over their number.
class SumOfTerms {
public:
  /// Adds the next operation of a block that is no buffer or view; false where it is no term of
  /// this sum.
  bool add(Operation *op) {
    CountedTerm term;
    auto choice = dyn_cast<plan::SwitchOp>(op);
    if (choice) {
      auto steps = wholeOf(choice).getOps<plan::StepInterface>();
      if (!standsInOrder(choice) || !llvm::hasSingleElement(steps))
        return false;
      term = {dyn_cast<plan::MatmulOp>((*steps.begin()).getOperation()), choice.getSelector()};
    } else {
      term.matmul = dyn_cast<plan::MatmulOp>(op);
    }
    if (!term.matmul || !term.matmul.getTransposeA() ||
        term.matmul.getAccumulate() == terms.empty() ||
        (!terms.empty() && !plan::sameElements(term.matmul.getC(), terms.front().matmul.getC())))
      return false;
    terms.push_back(term);
    choices.push_back(choice);
    return true;
  }

  /// Several terms, of which the device counts rows.
  bool isCounted() const {
    return terms.size() > 1 && llvm::any_of(choices, [](plan::SwitchOp choice) { return choice; });
  }

  SmallVector<CountedTerm> terms;
  SmallVector<plan::SwitchOp> choices; ///< of terms; null: of all rows
};

/// All such sums of a module that one launch can be.
std::vector<SumOfTerms> findSums(plan::PlanModuleOp module, TargetAttr target) {
  std::vector<SumOfTerms> found;
  for (auto program : module.getBody().getOps<plan::ProgramOp>()) {
    SumOfTerms open;
    const auto close = [&] {
      if (open.isCounted() && canAddUp(open.terms, target))
        found.push_back(std::move(open));
      open = SumOfTerms();
    };
    for (Operation &op : program.getBody().front()) {
      if (isa<plan::BufferOp, plan::ViewOp>(op) || open.add(&op))
        continue;
      close();
      open.add(&op);
    }
    close();
  }
  return found;
}

class CountedSteps {
public:
  CountedSteps(StepLauncher &launcher, plan::PlanModuleOp module)
      : launcher(launcher), sums(findSums(module, launcher.target)) {
    module.walk([&](plan::SwitchOp choice) { choicesOf[numberOf(choice)].push_back(choice); });
  }

  void run();

private:
  /// The bytes of a number of rows.
  using Number = std::pair<Operation *, int64_t>;
  static Number numberOf(plan::SwitchOp choice) {
    const plan::Place number = plan::placeOf(choice.getSelector());
    return {number.buffer, number.bytes};
  }

  /// Leaves alone numbers, and sums, of which not all switches can be taken the places of.
  void dropOthers();

  /// Whether every step that a switch has for all rows can read their number by itself.
  bool canTakePlaceOf(plan::SwitchOp choice) const;
  /// Puts these steps there.
  void takePlaceOf(plan::SwitchOp choice);
  /// Puts a launch where the last term stands.
  void takePlaceOf(SumOfTerms &sum);

  void expandLaunch(plan::LaunchOp launch, Value count, int64_t rows);
  /// The kernel that reads a number, which stands for `each` times so many of its rows.
  plan::KernelOp counted(plan::KernelOp kernel, int64_t each);

  StepLauncher &launcher;
  std::vector<SumOfTerms> sums;
  // Those of one number together: in rows behind the last one that there is, which a case of a
  // switch works on up to its granule, the others would leave whatever was there.
  llvm::MapVector<Number, SmallVector<plan::SwitchOp>> choicesOf;
  DenseMap<std::pair<Operation *, int64_t>, plan::KernelOp> kernels;
};

void CountedSteps::run() {
  dropOthers();
  DenseSet<Operation *> taken;
  for (const SumOfTerms &sum : sums)
    for (plan::SwitchOp choice : sum.choices)
      if (choice)
        taken.insert(choice);
  for (auto &[number, choices] : choicesOf)
    for (plan::SwitchOp choice : choices)
      if (!taken.contains(choice))
        takePlaceOf(choice);
  for (SumOfTerms &sum : sums)
    takePlaceOf(sum);
}

void CountedSteps::dropOthers() {
  size_t before = 0;
  do {
    before = choicesOf.size() + sums.size();
    llvm::erase_if(sums, [&](const SumOfTerms &sum) {
      return llvm::any_of(sum.choices, [&](plan::SwitchOp choice) {
        return choice && !choicesOf.contains(numberOf(choice));
      });
    });
    DenseSet<Operation *> ofSums;
    for (const SumOfTerms &sum : sums)
      for (plan::SwitchOp choice : sum.choices)
        if (choice)
          ofSums.insert(choice);
    choicesOf.remove_if([&](const auto &entry) {
      return !llvm::all_of(entry.second, [&](plan::SwitchOp choice) {
        return ofSums.contains(choice) || canTakePlaceOf(choice);
      });
    });
  } while (choicesOf.size() + sums.size() != before);
}

bool CountedSteps::canTakePlaceOf(plan::SwitchOp choice) const {
  if (!standsInOrder(choice))
    return false;
  Block &whole = wholeOf(choice);
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

void CountedSteps::takePlaceOf(SumOfTerms &sum) {
  plan::MatmulOp last = sum.terms.back().matmul;
  Operation *place = sum.choices.back() ? sum.choices.back().getOperation() : last.getOperation();
  SmallVector<plan::StepInterface> others;
  int64_t flops = 0, bytes = 0;
  for (auto [term, choice] : llvm::zip_equal(sum.terms, sum.choices)) {
    plan::MatmulOp matmul = term.matmul;
    auto step = cast<plan::StepInterface>(matmul.getOperation());
    const auto work = static_cast<int64_t>(step.getFlops()),
               moved = static_cast<int64_t>(step.getBytes());
    flops += choice ? meanOf(work) : work;
    bytes += choice ? meanOf(moved) : moved;
    if (matmul != last)
      others.push_back(step);
    if (!choice)
      continue;
    for (Operation &op : llvm::make_early_inc_range(wholeOf(choice)))
      op.moveBefore(place);
  }
  launcher.begin(cast<plan::StepInterface>(last.getOperation()));
  launcher.take(others);
  launcher.setWork(flops, bytes);
  expandCountedSum(launcher, sum.terms);
  launcher.finish();
  for (plan::SwitchOp choice : sum.choices)
    if (choice)
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
  CountedSteps(launcher, module).run();
}

} // namespace hydra::cuda
