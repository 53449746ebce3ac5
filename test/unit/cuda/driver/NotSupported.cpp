// Every function that the runtime looks up, for those that FakeDriver.cpp has not.
#include "runtime/cuda/Driver.h"

extern "C" {

CUresult hydraNotSupported() { return CUDA_ERROR_NOT_SUPPORTED; }

#define HYDRA_NOT_SUPPORTED(name, symbol)                                                          \
  CUresult hydraNotSupported_##symbol() __asm__(#symbol)                                           \
      __attribute__((weak, alias("hydraNotSupported")));
HYDRA_CUDA_FUNCTIONS(HYDRA_NOT_SUPPORTED)

} // extern "C"
