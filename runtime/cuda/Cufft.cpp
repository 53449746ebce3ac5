// Real transforms of many rows as one plan of cuFFT, which works in memory of ours.
#include "runtime/cuda/Cufft.h"

#include "runtime/support/Error.h"
#include "runtime/support/SharedLibrary.h"

#include <cufft.h>

namespace hydra::runtime::cuda {

using support::fail;
using support::SharedLibrary;

#define HYDRA_CUFFT_FUNCTIONS(X)                                                                   \
  X(cufftCreate)                                                                                   \
  X(cufftDestroy)                                                                                  \
  X(cufftSetAutoAllocation)                                                                        \
  X(cufftMakePlanMany64)                                                                           \
  X(cufftSetStream)                                                                                \
  X(cufftSetWorkArea)                                                                              \
  X(cufftExecR2C)                                                                                  \
  X(cufftExecC2R)                                                                                  \
  X(cufftGetVersion)

namespace {

struct Library {
  HYDRA_CUFFT_FUNCTIONS(HYDRA_DECLARE_FUNCTION)

  Library() {
    const SharedLibrary library({"libcufft.so.12", "/usr/local/cuda/lib64/libcufft.so.12"});
    if (!library)
      fail("cannot find cuFFT of CUDA 13 (libcufft.so.12), which computes this plan's transforms");
    HYDRA_CUFFT_FUNCTIONS(HYDRA_LOAD_FUNCTION)
  }

  /// The library has no texts for its errors: cufft.h lists the numbers.
  void check(cufftResult status, const char *what) const {
    if (status != CUFFT_SUCCESS)
      fail("cuFFT: {}: error {}", what, static_cast<int>(status));
  }
};

const Library &fft() {
  static const Library library;
  return library;
}

} // namespace

struct CudaFft::Impl {
  FftSpec spec;
  cufftHandle plan = 0;
  bool made = false;
  size_t bytes = 0;

  explicit Impl(const FftSpec &spec) : spec(spec) {
    fft().check(fft().cufftCreate(&plan), "plan");
    made = true;
  }
  ~Impl() {
    if (made)
      fft().cufftDestroy(plan);
  }

  /// Rows and spectra lie one behind the other: the basic layout, in which the library leaves what
  /// it reads as it is.
  void prepare() {
    fft().check(fft().cufftSetAutoAllocation(plan, 0), "workspace");
    long long length = spec.length;
    const long long spectrum = length / 2 + 1;
    fft().check(fft().cufftMakePlanMany64(plan, 1, &length, nullptr, 1,
                                          spec.inverse ? spectrum : length, nullptr, 1,
                                          spec.inverse ? length : spectrum,
                                          spec.inverse ? CUFFT_C2R : CUFFT_R2C, spec.rows, &bytes),
                "plan");
  }
};

CudaFft::CudaFft(const FftSpec &spec) : impl(std::make_unique<Impl>(spec)) { impl->prepare(); }
CudaFft::~CudaFft() = default;

int CudaFft::version() {
  int number = 0;
  fft().check(fft().cufftGetVersion(&number), "version");
  return number;
}

size_t CudaFft::workspaceBytes() const { return impl->bytes; }

void CudaFft::run(std::span<const CUdeviceptr> args, CUdeviceptr workspace, CUstream stream) const {
  fft().check(fft().cufftSetStream(impl->plan, stream), "stream");
  if (impl->bytes > 0)
    fft().check(fft().cufftSetWorkArea(impl->plan, reinterpret_cast<void *>(workspace)),
                "workspace");
  auto *real = reinterpret_cast<cufftReal *>(args[impl->spec.inverse ? 1 : 0]);
  auto *complex = reinterpret_cast<cufftComplex *>(args[impl->spec.inverse ? 0 : 1]);
  fft().check(impl->spec.inverse ? fft().cufftExecC2R(impl->plan, complex, real)
                                 : fft().cufftExecR2C(impl->plan, real, complex),
              "transform");
}

} // namespace hydra::runtime::cuda
