// Kernels of kernels/TestKernels.c in plans made by hand.
#pragma once

#include "test/support/PlanBuilder.h"

#include <fstream>
#include <iterator>

namespace hydra::test {

/// Adds the kernel of that name, its code being the shared object the build made.
inline uint32_t testKernel(PlanBuilder &builder, const std::string &symbol, uint32_t argCount) {
  std::ifstream file(HYDRA_TEST_KERNELS, std::ios::binary);
  const std::vector<uint8_t> code{std::istreambuf_iterator<char>(file), {}};
  return builder.kernel(symbol, argCount, code);
}

} // namespace hydra::test
