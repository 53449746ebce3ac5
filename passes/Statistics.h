// Counters of passes, as Passes.td declares them. MLIR's own class counts nothing where MLIR was
// built without assertions, as its packages are.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>

namespace mlir {
class Pass;
} // namespace mlir

namespace hydra {

/// A member of the pass that counts.
class PassStatistic {
public:
  PassStatistic(const mlir::Pass *owner, const char *name, const char *description);
  PassStatistic(const PassStatistic &) = delete;
  PassStatistic &operator=(const PassStatistic &) = delete;
  ~PassStatistic();

  PassStatistic &operator++() { return *this += 1; }
  PassStatistic &operator+=(uint64_t more) {
    count += more;
    return *this;
  }
  PassStatistic &operator=(uint64_t value) {
    count = value;
    return *this;
  }

  const char *const name, *const description;
  uint64_t value() const { return count; }

private:
  const mlir::Pass *owner;
  uint64_t count = 0;
};

/// Visits the statistics of a pass in the order of their declaration.
void forEachStatistic(const mlir::Pass *pass,
                      llvm::function_ref<void(const PassStatistic &)> visit);

} // namespace hydra
