// A matmul of squares, timed.
#include "runtime/cuda/MatmulRate.h"

#include "runtime/cuda/Tuner.h"

#include <array>

namespace hydra::runtime::cuda {

std::optional<double> measureMatmulRate(const Device &device, CublasLt &matmuls) {
  constexpr int64_t size = 8192;
  constexpr size_t bytes = size * size * 2;
  if (device.memory().free < 3 * bytes + CublasLt::kWorkspaceBytes)
    return std::nullopt;
  const DeviceMemory a(bytes, "matmul"), b(bytes, "matmul"), c(bytes, "matmul"),
      scratch(CublasLt::kWorkspaceBytes, "matmul");
  for (const DeviceMemory *memory : {&a, &b})
    fillRandomly(device, memory->get(), bytes);
  const MatmulOperand operand{support::DType::BF16, {}, size, 1};
  const MatmulOperand transposed{support::DType::BF16, {}, 1, size};
  MatmulSpec spec;
  spec.m = spec.n = spec.k = size;
  spec.a = operand;
  spec.b = transposed;
  spec.c = operand;
  const CudaMatmul matmul(matmuls, spec, {}, false);
  const std::array addresses = {a.get(), b.get(), c.get()};
  const double seconds = 1e-6 * medianMicroseconds(device, [&] {
                           matmul.run(addresses, scratch.get(), device.stream);
                         });
  return 2.0 * size * size * size / seconds;
}

} // namespace hydra::runtime::cuda
