// Which statistics a pass has: MLIR's passes have no room for other ones than its own.
#include "passes/Statistics.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <mutex>

namespace hydra {

namespace {

/// Passes of any thread.
struct Registry {
  std::mutex mutex;
  llvm::DenseMap<const mlir::Pass *, llvm::SmallVector<const PassStatistic *, 4>> ofPass;
};

Registry &registry() {
  static Registry instance;
  return instance;
}

} // namespace

PassStatistic::PassStatistic(const mlir::Pass *owner, const char *name, const char *description)
    : name(name), description(description), owner(owner) {
  Registry &all = registry();
  const std::scoped_lock lock(all.mutex);
  all.ofPass[owner].push_back(this);
}

PassStatistic::~PassStatistic() {
  Registry &all = registry();
  const std::scoped_lock lock(all.mutex);
  auto mine = all.ofPass.find(owner);
  llvm::erase(mine->second, this);
  if (mine->second.empty())
    all.ofPass.erase(mine);
}

void forEachStatistic(const mlir::Pass *pass,
                      llvm::function_ref<void(const PassStatistic &)> visit) {
  Registry &all = registry();
  const std::scoped_lock lock(all.mutex);
  if (auto own = all.ofPass.find(pass); own != all.ofPass.end())
    for (const PassStatistic *statistic : own->second)
      visit(*statistic);
}

} // namespace hydra
