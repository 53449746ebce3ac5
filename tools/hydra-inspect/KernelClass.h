// The kind of work of a kernel that only its name is known of.
#pragma once

#include <string>
#include <string_view>

namespace hydra::inspect {

/// gemm, attention, softmax, norm, elementwise, copy_cast, reduce, gather_scatter, conv, fft, scan,
/// optimizer, loss, nccl, memcpy or other: of a kernel as CUDA calls it (of cuBLAS, cuDNN, NCCL,
/// PyTorch, Triton), or of an operation of PyTorch such as `aten::addmm`.
std::string kernelClass(std::string_view name);

} // namespace hydra::inspect
