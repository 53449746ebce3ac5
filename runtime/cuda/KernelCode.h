// The generated kernels of a plan, loaded.
#pragma once

#include "runtime/cuda/Device.h"

#include <vector>

namespace hydra::runtime::cuda {

class KernelCode {
public:
  /// Throws Error when the code of a kernel does not load on the device.
  KernelCode(const PlanFile &file, const Device &device);
  ~KernelCode();
  KernelCode(const KernelCode &) = delete;
  KernelCode &operator=(const KernelCode &) = delete;

  /// By kernel.
  const std::vector<CUfunction> &functions() const { return byKernel; }

private:
  CUmodule moduleOf(const planfile::Kernel &kernel);

  const PlanFile &file;
  const Device &device;
  std::vector<CUmodule> modules; ///< by blob; null until a kernel of it is loaded
  std::vector<CUfunction> byKernel;
};

} // namespace hydra::runtime::cuda
