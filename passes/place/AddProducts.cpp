// hydra-add-products: a matmul adds to the tensor that its product would be added to.
#include "dialects/hydra/Build.h"
#include "dialects/plan/BufferUsers.h"
#include "dialects/plan/Plan.h"
#include "passes/Passes.h"
#include "passes/place/Batches.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_ADDPRODUCTS
#include "passes/Passes.h.inc"

namespace {

/// Whether a kernel does nothing but add two tensors of f32, of one shape.
bool onlyAdds(plan::KernelOp kernel) {
  auto groups = kernel.getBody().getOps<FusedOp>();
  if (groups.empty())
    return false;
  Block &block = (*groups.begin()).getBlock();
  if (block.getNumArguments() != 2 || !llvm::hasSingleElement(block.without_terminator()))
    return false;
  auto add = dyn_cast<AddOp>(block.front());
  if (!add || !build::typeOf(add->getResult(0)).getElementType().isF32() ||
      block.getTerminator()->getNumOperands() != 1)
    return false;
  const Value first = add->getOperand(0), second = add->getOperand(1);
  return first != second && first.getType() == second.getType() &&
         llvm::is_contained(block.getArguments(), first) &&
         llvm::is_contained(block.getArguments(), second);
}

struct AddProducts : impl::AddProductsBase<AddProducts> {
  using AddProductsBase::AddProductsBase;

  void runOnOperation() override {
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      SetVector<Operation *> unused;
      SymbolTable symbols(module);
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        for (auto launch : llvm::make_early_inc_range(program.getBody().getOps<plan::LaunchOp>())) {
          auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernelAttr().getAttr());
          if (!onlyAdds(kernel) || !fold(launch))
            continue;
          unused.insert(kernel);
          ++added;
        }
      module.walk([&](plan::LaunchOp launch) {
        unused.remove(symbols.lookup<plan::KernelOp>(launch.getKernelAttr().getAttr()));
      });
      for (Operation *kernel : unused)
        kernel->erase();
    }
  }

private:
  /// Lets the matmul do it that makes one of two terms, if the sum lies where the other was.
  bool fold(plan::LaunchOp launch) const {
    if (launch.getAccess() != ArrayRef<int64_t>{plan::kRead, plan::kRead, plan::kWrite} ||
        launch.getLimit())
      return false;
    const Value sum = launch.getArgs()[2];
    for (unsigned i : {0u, 1u}) {
      const Value term = launch.getArgs()[i], product = launch.getArgs()[1 - i];
      plan::MatmulOp matmul =
          plan::sameElements(term, sum) ? producerOf(product, launch) : plan::MatmulOp();
      if (!matmul || !canAddTo(matmul, term, launch))
        continue;
      auto type = cast<MemRefType>(term.getType());
      // What it would have stored is the sum; what it reads as well is the term.
      matmul.setBytes(matmul.getBytes() +
                      type.getNumElements() * type.getElementTypeBitWidth() / 8);
      moveBefore(term, matmul);
      matmul.getCMutable().assign(term);
      matmul.setAccumulate(true);
      launch.erase();
      return true;
    }
    return false;
  }

  /// The matmul in front of a launch that makes what nothing but the launch reads.
  static plan::MatmulOp producerOf(Value product, plan::LaunchOp launch) {
    plan::BufferOp buffer = plan::placeOf(product).buffer;
    plan::MatmulOp matmul;
    if (!buffer.isTransient())
      return matmul;
    for (Operation *user : plan::usersOf(buffer.getBuffer())) {
      if (user == launch)
        continue;
      if (matmul || !isa<plan::MatmulOp>(user))
        return {};
      matmul = cast<plan::MatmulOp>(user);
    }
    const bool makes = matmul && matmul->getBlock() == launch->getBlock() &&
                       matmul->isBeforeInBlock(launch) &&
                       plan::sameElements(matmul.getC(), product);
    return makes ? matmul : plan::MatmulOp();
  }

  /// Whether a matmul may change a term where the matmul stands, and its library can add.
  bool canAddTo(plan::MatmulOp matmul, Value term, plan::LaunchOp launch) const {
    auto type = cast<MemRefType>(term.getType());
    plan::BufferOp buffer = plan::placeOf(term).buffer;
    if (matmul.getBias() || matmul.getWeightScale() || matmul.getScaleA() || matmul.getGelu() ||
        matmul.getAccumulate() || type.getNumElements() <= fewRows * type.getShape().back() ||
        !buffer.isTransient() || plan::alignmentOf(term) < plan::alignmentOf(matmul.getC()))
      return false;
    // In between it is neither made nor read.
    return llvm::none_of(plan::usersOf(buffer.getBuffer()), [&](Operation *user) {
      Operation *at = launch->getBlock()->findAncestorOpInBlock(*user);
      return at && at != launch && !at->isBeforeInBlock(matmul) && at->isBeforeInBlock(launch);
    });
  }
};

} // namespace
} // namespace hydra
