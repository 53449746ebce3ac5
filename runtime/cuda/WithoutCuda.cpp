// What stands for the CUDA executor in a build without CUDA's headers.
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

bool hydra::runtime::builtWithCuda() { return false; }

std::string hydra::runtime::tunePlan(const PlanFile &file, const CudaOptions &options,
                                     planfile::PlanT &) {
  makeCudaExecutor(file, options);
  return "";
}

std::unique_ptr<hydra::runtime::Executor> hydra::runtime::makeCudaExecutor(const PlanFile &file,
                                                                           const CudaOptions &) {
  support::fail("{}: compiled for {}, but this build has no CUDA: it was made on a machine without "
                "the CUDA toolkit",
                file.origin(), support::shown(file.plan().target()->name()->string_view()));
}
