// What steps call of NVIDIA's libraries: looked up when a plan needs it, prepared once a shape.
#pragma once

#include "runtime/calls/CallSite.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/CudnnAttention.h"
#include "runtime/cuda/Cufft.h"
#include "runtime/cuda/Nccl.h"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hydra::runtime::cuda {

/// Matmul is cuBLASLt's, Fft cuFFT's, AllGather and AllToAll are NCCL's; Attention and
/// AttentionGrad are cuDNN's, which replace launches of own kernels (Alternative in plan.fbs), as
/// Nothing does.
class DeviceLibrary {
public:
  /// The function that a step calls on arguments at these addresses; equal calls are the same
  /// object. Throws Error when there is none or it does not fit.
  const DeviceCall &prepare(const CallSite &site, std::span<const CUdeviceptr> args);

  /// Where collectives are called; `ranks` must outlive this.
  void useRanks(const Nccl &all) { ranks = &all; }

  CublasLt &matmuls();

  /// Of what plans have been prepared for: `cuBLASLt 130100, cuDNN 91900`.
  std::string versions() const;

private:
  using Key = std::vector<int64_t>;
  const DeviceCall &prepareMatmul(const CallSite &site, std::span<const CUdeviceptr> args);
  const DeviceCall &prepareCollective(const CallSite &site);
  const DeviceCall &prepareFft(const CallSite &site, std::span<const CUdeviceptr> args);
  const DeviceCall &prepareAttention(const CallSite &site, bool backward);
  const DeviceCall &keep(planfile::Action action, Key key,
                         const std::function<std::unique_ptr<DeviceCall>()> &make);

  std::unique_ptr<CublasLt> cublas;
  std::unique_ptr<Cudnn> cudnn;
  bool transforms = false; ///< cuFFT has been asked for one
  const Nccl *ranks = nullptr;
  std::map<std::pair<planfile::Action, Key>, std::unique_ptr<DeviceCall>> calls;
};

} // namespace hydra::runtime::cuda
