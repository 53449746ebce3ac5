// CUDA's driver, looked up when a plan asks for a GPU: one program serves machines with and
// without.
#pragma once

#include "runtime/support/Error.h"

#include <cuda.h>

#include <string>

namespace hydra::runtime::cuda {

/// The functions of libcuda that are used. `driver()` throws Error, in one line, when there is no
/// driver or it is too old.
struct Driver {
#define HYDRA_CUDA_FUNCTIONS(X)                                                                    \
  X(cuInit, cuInit)                                                                                \
  X(cuDriverGetVersion, cuDriverGetVersion)                                                        \
  X(cuGetErrorName, cuGetErrorName)                                                                \
  X(cuGetErrorString, cuGetErrorString)                                                            \
  X(cuDeviceGetCount, cuDeviceGetCount)                                                            \
  X(cuDeviceGet, cuDeviceGet)                                                                      \
  X(cuDeviceGetName, cuDeviceGetName)                                                              \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute)                                                    \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2)                                                           \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId)                                                      \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                                            \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)                                       \
  X(cuCtxSetCurrent, cuCtxSetCurrent)                                                              \
  X(cuCtxGetCurrent, cuCtxGetCurrent)                                                              \
  X(cuCtxGetDevice, cuCtxGetDevice)                                                                \
  X(cuMemGetInfo, cuMemGetInfo_v2)                                                                 \
  X(cuMemAlloc, cuMemAlloc_v2)                                                                     \
  X(cuMemFree, cuMemFree_v2)                                                                       \
  X(cuMemHostAlloc, cuMemHostAlloc)                                                                \
  X(cuMemFreeHost, cuMemFreeHost)                                                                  \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2)                                                       \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)                                                       \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2)                                                       \
  X(cuMemsetD8Async, cuMemsetD8Async)                                                              \
  X(cuModuleLoadData, cuModuleLoadData)                                                            \
  X(cuModuleUnload, cuModuleUnload)                                                                \
  X(cuModuleGetFunction, cuModuleGetFunction)                                                      \
  X(cuFuncSetAttribute, cuFuncSetAttribute)                                                        \
  X(cuLaunchKernel, cuLaunchKernel)                                                                \
  X(cuLaunchKernelEx, cuLaunchKernelEx)                                                            \
  X(cuStreamCreate, cuStreamCreate)                                                                \
  X(cuStreamDestroy, cuStreamDestroy_v2)                                                           \
  X(cuStreamWaitEvent, cuStreamWaitEvent)                                                          \
  X(cuStreamSynchronize, cuStreamSynchronize)                                                      \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2)                                                 \
  X(cuStreamEndCapture, cuStreamEndCapture)                                                        \
  X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3)                                             \
  X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2)                                     \
  X(cuGraphNodeGetType, cuGraphNodeGetType)                                                        \
  X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph)                                      \
  X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2)                       \
  X(cuGraphAddNode, cuGraphAddNode_v2)                                                             \
  X(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate)                                \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags)                                               \
  X(cuGraphLaunch, cuGraphLaunch)                                                                  \
  X(cuGraphDestroy, cuGraphDestroy)                                                                \
  X(cuGraphExecDestroy, cuGraphExecDestroy)                                                        \
  X(cuEventCreate, cuEventCreate)                                                                  \
  X(cuEventDestroy, cuEventDestroy_v2)                                                             \
  X(cuEventRecord, cuEventRecord)                                                                  \
  X(cuEventSynchronize, cuEventSynchronize)                                                        \
  X(cuEventElapsedTime, cuEventElapsedTime)
#define HYDRA_DECLARE(name, symbol) decltype(&::symbol) name = nullptr;
  HYDRA_CUDA_FUNCTIONS(HYDRA_DECLARE)
#undef HYDRA_DECLARE

  /// Throws Error: `<what>: <name of the error>, <its text>`.
  void check(CUresult status, const std::string &what) const;
};

const Driver &driver();

} // namespace hydra::runtime::cuda
