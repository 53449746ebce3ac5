// What stands for cuDNN in a build without its headers.
#include "runtime/cuda/CudnnAttention.h"

#include "runtime/support/Error.h"

namespace hydra::runtime::cuda {

struct CudnnAttention::Impl {};

Cudnn::Cudnn() { support::fail("this build has no cuDNN: it was made without its headers"); }
Cudnn::~Cudnn() = default;
size_t Cudnn::version() { return 0; }

CudnnAttention::CudnnAttention(Cudnn &, const CudnnAttentionSpec &, Pass) {}
CudnnAttention::~CudnnAttention() = default;
CudnnAttention::CudnnAttention(CudnnAttention &&) noexcept = default;
size_t CudnnAttention::workspaceBytes() const { return 0; }
void CudnnAttention::run(std::span<const CUdeviceptr>, CUdeviceptr, CUstream) const {}

} // namespace hydra::runtime::cuda
