// Finds the driver and its functions.
#include "runtime/cuda/Driver.h"

#include "runtime/support/SharedLibrary.h"

namespace hydra::runtime::cuda {

using support::fail;

void Driver::check(CUresult status, const std::string &what) const {
  if (status == CUDA_SUCCESS)
    return;
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(status, &name);
  cuGetErrorString(status, &text);
  fail("{}: {}, {}", what, name ? name : "unknown CUDA error", text ? text : "no description");
}

static Driver load() {
  const support::SharedLibrary library({"libcuda.so.1"});
  if (!library)
    fail("no GPU: this machine has no NVIDIA driver (libcuda.so.1); --device cpu runs plans that "
         "hydrac made with --target=cpu");
  Driver driver;
#define HYDRA_LOAD(name, symbol)                                                                   \
  if (!library.find(driver.name, #symbol))                                                         \
    fail("the NVIDIA driver is too old: it has no " #symbol "; expected one for CUDA 12.4 or "     \
         "newer");
  HYDRA_CUDA_FUNCTIONS(HYDRA_LOAD)
#undef HYDRA_LOAD
  driver.check(driver.cuInit(0), "no GPU: the NVIDIA driver does not start");
  return driver;
}

const Driver &driver() {
  static const Driver instance = load();
  return instance;
}

} // namespace hydra::runtime::cuda
