// A libnccl.so.2 for GPUs of tests, which meet nobody: what a rank would get from others it gets as
// ones.
#include <cuda.h>
#include <nccl.h>

#include <cstring>

struct ncclComm {
  int ranks;
};

namespace {

ncclResult_t fill(void *to, size_t bytes, cudaStream_t stream) {
  const CUresult status = cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(to), 1, bytes,
                                          reinterpret_cast<CUstream>(stream));
  return status == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = 21900; // the oldest, which has the fewest functions
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t) { return "an error of the library of tests"; }
const char *ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::memset(id, 0, sizeof *id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId, int,
                                    ncclConfig_t *) {
  *comm = new ncclComm{ranks};
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }
ncclResult_t ncclAllGather(const void *, void *to, size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return fill(to, count * static_cast<size_t>(comm->ranks), stream); // of bytes, as all calls here
}
ncclResult_t ncclSend(const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t, int, ncclComm_t,
                      cudaStream_t stream) {
  return fill(to, count, stream);
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
ncclResult_t ncclMemAlloc(void **address, size_t bytes) {
  CUdeviceptr taken = 0;
  if (cuMemAlloc(&taken, bytes) != CUDA_SUCCESS)
    return ncclUnhandledCudaError;
  *address = reinterpret_cast<void *>(taken);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void *address) {
  return cuMemFree(reinterpret_cast<CUdeviceptr>(address)) == CUDA_SUCCESS ? ncclSuccess
                                                                           : ncclUnhandledCudaError;
}

} // extern "C"
