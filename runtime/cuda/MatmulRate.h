// How fast a GPU multiplies.
#pragma once

#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Device.h"

#include <optional>

namespace hydra::runtime::cuda {

/// FLOPs a second of a large matmul of bf16 numbers by cuBLASLt, by the median of several rounds;
/// nothing where there is no memory for it.
std::optional<double> measureMatmulRate(const Device &device, CublasLt &matmuls);

} // namespace hydra::runtime::cuda
