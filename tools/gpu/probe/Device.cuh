// Every call checked; a captured graph; the matmul that transfers have to share the GPU with.
#pragma once

#include "tools/gpu/probe/Kernels.cuh"

#include <cublasLt.h>
#include <cuda.h>
#include <nccl.h>

#include <functional>
#include <string>

constexpr size_t MiB = 1 << 20;

[[noreturn]] inline void fail(const char *call, const char *file, int line,
                              const std::string &what) {
  const char *name = strrchr(file, '/');
  throw std::runtime_error(std::string(name ? name + 1 : file) + ":" + std::to_string(line) + ": " +
                           call + ": " + what);
}
inline std::string errorOf(cudaError_t status) {
  return status == cudaSuccess ? "" : cudaGetErrorString(status);
}
inline std::string errorOf(CUresult status) {
  return status == CUDA_SUCCESS ? "" : "CUresult " + std::to_string(status);
}
inline std::string errorOf(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "" : cublasLtGetStatusString(status);
}
inline std::string errorOf(ncclResult_t status) {
  return status == ncclSuccess
             ? ""
             : std::string(ncclGetErrorString(status)) + "; " + ncclGetLastError(nullptr);
}
#define CHECK(call)                                                                                \
  do {                                                                                             \
    if (std::string what = errorOf(call); !what.empty())                                           \
      fail(#call, __FILE__, __LINE__, what);                                                       \
  } while (false)

class Graph {
public:
  Graph(cudaStream_t stream, const std::function<void()> &enqueue) {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  Graph(const Graph &) = delete;
  ~Graph() {
    if (cudaGraphExecDestroy(executable) != cudaSuccess)
      fprintf(stderr, "link-probe: a graph could not be destroyed\n");
  }
  void launch(cudaStream_t stream) const { CHECK(cudaGraphLaunch(executable, stream)); }

private:
  cudaGraphExec_t executable;
};

/// D = A' B of 8192 x 8192 x 8192, bf16 with f32 sums: 1.1 TFLOP.
class Matmul {
public:
  explicit Matmul(int rank) {
    constexpr int n = 8192;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    CHECK(cublasLtCreate(&handle));
    CHECK(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                         sizeof transposed));
    CHECK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, n, n, n));
    for (int i = 0; i < 3; ++i) {
      CHECK(cudaMalloc(&matrices[i], size_t(n) * n * sizeof(__nv_bfloat16)));
      fillSummands<<<1024, 256>>>(matrices[i], size_t(n) * n, 17 + i, rank);
      CHECK(cudaGetLastError());
    }
    CHECK(cudaMalloc(&workspace, workspaceBytes));
    CHECK(cudaDeviceSynchronize());
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspaceBytes, sizeof workspaceBytes));
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, description, layout, layout, layout, layout,
                                         preference, 1, &choice, &found));
    if (found == 0)
      throw std::runtime_error("cuBLASLt has no algorithm for a bf16 matmul of 8192^3");
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
  }
  void operator()(cudaStream_t stream) const {
    const float one = 1, zero = 0;
    CHECK(cublasLtMatmul(handle, description, &one, matrices[0], layout, matrices[1], layout, &zero,
                         matrices[2], layout, matrices[2], layout, &choice.algo, workspace,
                         workspaceBytes, stream));
  }

private:
  static constexpr size_t workspaceBytes = 32 * MiB;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t description;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulHeuristicResult_t choice;
  __nv_bfloat16 *matrices[3];
  void *workspace;
};
