// Loading a plan's kernels.
#include "runtime/cuda/KernelCode.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

namespace hydra::runtime::cuda {

using support::shown;

/// The module of a kernel: machine code, or where that does not fit what the driver compiles.
CUmodule KernelCode::moduleOf(const planfile::Kernel &kernel) {
  CUmodule &module = modules[kernel.blob()];
  if (module)
    return module;
  const auto load = [&](uint32_t blob) {
    // PTX ends with a zero byte.
    const auto *data = file.plan().blobs()->Get(blob)->data();
    std::vector<char> text(data->begin(), data->end());
    text.push_back('\0');
    return driver().cuModuleLoadData(&module, text.data());
  };
  CUresult status = load(kernel.blob());
  if (status != CUDA_SUCCESS && kernel.ptx() >= 0 &&
      static_cast<uint32_t>(kernel.ptx()) != kernel.blob())
    status = load(static_cast<uint32_t>(kernel.ptx()));
  driver().check(status, fmt::format("{}: the code of kernel {} does not load on {} ({})",
                                     file.origin(), shown(kernel.name()->string_view()),
                                     device.name, device.architecture));
  return module;
}

KernelCode::KernelCode(const PlanFile &file, const Device &device)
    : file(file), device(device), modules(file.plan().blobs()->size(), nullptr) {
  for (const planfile::Kernel *kernel : *file.plan().kernels()) {
    CUfunction function = nullptr;
    driver().check(
        driver().cuModuleGetFunction(&function, moduleOf(*kernel), kernel->symbol()->c_str()),
        fmt::format("{}: kernel {}", file.origin(), shown(kernel->name()->string_view())));
    // Without asking, 48 KiB are for this and for what the kernel's own variables take.
    if (kernel->shared_bytes() > 0)
      driver().check(driver().cuFuncSetAttribute(function,
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 static_cast<int>(kernel->shared_bytes())),
                     fmt::format("{}: kernel {}: {} bytes of shared memory", file.origin(),
                                 shown(kernel->name()->string_view()), kernel->shared_bytes()));
    byKernel.push_back(function);
  }
}

KernelCode::~KernelCode() {
  for (CUmodule module : modules)
    if (module)
      driver().cuModuleUnload(module);
}

} // namespace hydra::runtime::cuda
