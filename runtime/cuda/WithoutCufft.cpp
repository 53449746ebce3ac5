// What stands for cuFFT in a build without its headers.
#include "runtime/cuda/Cufft.h"

#include "runtime/support/Error.h"

namespace hydra::runtime::cuda {

struct CudaFft::Impl {};

CudaFft::CudaFft(const FftSpec &) {
  support::fail("this build has no cuFFT: it was made without its headers");
}
CudaFft::~CudaFft() = default;
int CudaFft::version() { return 0; }
size_t CudaFft::workspaceBytes() const { return 0; }
void CudaFft::run(std::span<const CUdeviceptr>, CUdeviceptr, CUstream) const {}

} // namespace hydra::runtime::cuda
