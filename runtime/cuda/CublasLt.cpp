// Row-major matmuls as the column-major ones that cuBLASLt computes: cᵀ = bᵀ aᵀ.
#include "runtime/cuda/CublasLt.h"

#include "runtime/cuda/Driver.h"
#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"
#include "runtime/support/MergedBatch.h"
#include "runtime/support/SharedLibrary.h"

#include <cublasLt.h>

#include <algorithm>
#include <vector>

namespace hydra::runtime::cuda {

using support::DType;
using support::fail;
using support::SharedLibrary;

#define HYDRA_CUBLAS_FUNCTIONS(X)                                                                  \
  X(cublasLtCreate)                                                                                \
  X(cublasLtDestroy)                                                                               \
  X(cublasLtMatmul)                                                                                \
  X(cublasLtMatmulDescCreate)                                                                      \
  X(cublasLtMatmulDescDestroy)                                                                     \
  X(cublasLtMatmulDescSetAttribute)                                                                \
  X(cublasLtMatrixLayoutCreate)                                                                    \
  X(cublasLtMatrixLayoutDestroy)                                                                   \
  X(cublasLtMatrixLayoutSetAttribute)                                                              \
  X(cublasLtMatmulPreferenceCreate)                                                                \
  X(cublasLtMatmulPreferenceDestroy)                                                               \
  X(cublasLtMatmulPreferenceSetAttribute)                                                          \
  X(cublasLtMatmulAlgoGetHeuristic)                                                                \
  X(cublasLtGetVersion)                                                                            \
  X(cublasLtGetStatusString)

struct CublasLt::Library {
  HYDRA_CUBLAS_FUNCTIONS(HYDRA_DECLARE_FUNCTION)

  Library() {
    const SharedLibrary library({"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13"});
    if (!library)
      fail(
          "cannot find cuBLASLt of CUDA 13 (libcublasLt.so.13), which multiplies matrices on GPUs");
    HYDRA_CUBLAS_FUNCTIONS(HYDRA_LOAD_FUNCTION)
  }

  void check(cublasStatus_t status, const char *what) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      fail("cuBLASLt: {}: {}", what, cublasLtGetStatusString(status));
  }
};

namespace {

const CublasLt::Library &lt() {
  static const CublasLt::Library library;
  return library;
}

cudaDataType_t dataType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return CUDA_R_32F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F16:
    return CUDA_R_16F;
  case DType::E4M3:
    return CUDA_R_8F_E4M3;
  case DType::E5M2:
    return CUDA_R_8F_E5M2;
  default:
    fail("a matmul of {} has no CUDA form; expected f32, bf16, f16, f8E4M3FN or f8E5M2",
         support::irName(dtype));
  }
}

struct DestroyHandle {
  void operator()(cublasLtMatmulDesc_t handle) const { lt().cublasLtMatmulDescDestroy(handle); }
  void operator()(cublasLtMatrixLayout_t handle) const { lt().cublasLtMatrixLayoutDestroy(handle); }
  void operator()(cublasLtMatmulPreference_t handle) const {
    lt().cublasLtMatmulPreferenceDestroy(handle);
  }
};
/// Of the library's, destroyed with it.
template <typename T> using Handle = std::unique_ptr<std::remove_pointer_t<T>, DestroyHandle>;

/// A row-major [rows, columns] matrix as cuBLASLt sees it: column-major [columns, rows], or the
/// same matrix where its columns are dense.
struct Operand {
  Handle<cublasLtMatrixLayout_t> layout;
  bool transposed = false;

  Operand(const MatmulOperand &m, int64_t rows, int64_t columns, int64_t count, int64_t stride) {
    const bool rowMajor = m.columnStride == 1 || columns == 1;
    const int64_t inner = rowMajor ? columns : rows, outer = rowMajor ? rows : columns;
    int64_t leading = rowMajor ? m.rowStride : m.columnStride;
    if (outer == 1)
      leading = inner;
    if (leading < inner)
      fail("a matmul of a matrix [{}, {}] with strides [{}, {}] has no CUDA form: its rows overlap",
           rows, columns, m.rowStride, m.columnStride);
    transposed = !rowMajor;
    cublasLtMatrixLayout_t created = nullptr;
    lt().check(lt().cublasLtMatrixLayoutCreate(&created, dataType(m.dtype),
                                               static_cast<uint64_t>(inner),
                                               static_cast<uint64_t>(outer), leading),
               "matrix layout");
    layout.reset(created);
    if (count > 1) {
      const auto batches = static_cast<int32_t>(count);
      lt().check(lt().cublasLtMatrixLayoutSetAttribute(created, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                       &batches, sizeof batches),
                 "batch");
      lt().check(lt().cublasLtMatrixLayoutSetAttribute(
                     created, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                 "batch stride");
    }
  }
};

} // namespace

CublasLt::CublasLt() {
  cublasLtHandle_t created = nullptr;
  lt().check(lt().cublasLtCreate(&created), "start");
  handle = created;
}

size_t CublasLt::version() const { return lt().cublasLtGetVersion(); }

CublasLt::~CublasLt() { lt().cublasLtDestroy(static_cast<cublasLtHandle_t>(handle)); }

namespace {

constexpr int64_t kLargestAlignment = 256;
constexpr int64_t kScaleMultiple = 4;  ///< of dimensions that scales of blocks are dense along
constexpr int64_t kBiasAlignment = 16; ///< of biases; the library checks no address of theirs

int64_t alignmentOf(CUdeviceptr address) {
  return address == 0 ? kLargestAlignment
                      : std::min(kLargestAlignment, static_cast<int64_t>(address & -address));
}

} // namespace

MatmulAlignment MatmulAlignment::of(const MatmulSpec &spec, std::span<const CUdeviceptr> args) {
  MatmulAlignment alignment{alignmentOf(args[0]), alignmentOf(args[1]),
                            alignmentOf(args[spec.result()])};
  if (spec.hasBias)
    alignment.bias = alignmentOf(args[2]);
  return alignment;
}

struct CudaMatmul::Impl {
  CublasLt &library;
  MatmulSpec spec;
  MatmulAlignment alignment;
  std::unique_ptr<Operand> a, b, c;
  Handle<cublasLtMatmulDesc_t> operation;
  cublasLtMatmulHeuristicResult_t chosen = {};
  /// Batches that one call does not cover, as element offsets of a, b, c.
  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  std::vector<Offsets> calls;

  Impl(CublasLt &library, const MatmulSpec &given, const MatmulAlignment &base, bool reduced,
       int64_t algorithm, int64_t multiprocessors)
      : library(library), spec(given), alignment(base) {
    if (spec.c.columnStride != 1 && spec.n > 1) {
      if (spec.c.rowStride != 1 || spec.hasBias)
        fail("a matmul whose result has strides [{}, {}] has no CUDA form", spec.c.rowStride,
             spec.c.columnStride);
      for (MatmulOperand *m : {&spec.a, &spec.b, &spec.c})
        std::swap(m->rowStride, m->columnStride);
      std::swap(spec.a, spec.b);
      std::swap(alignment.a, alignment.b);
      std::swap(spec.m, spec.n);
      swapped = true;
    }
    // The innermost batch dimension goes into one call; more of them where their strides merge.
    const support::MergedBatch merged = support::mergeBatch(
        spec.batch, {spec.a.batchStrides, spec.b.batchStrides, spec.c.batchStrides});
    calls.resize(1);
    for (size_t d = 0; d < merged.outer; ++d) {
      std::vector<Offsets> more;
      for (const Offsets &at : calls)
        for (int64_t i = 0; i < spec.batch[d]; ++i)
          more.push_back({at.a + i * spec.a.batchStrides[d], at.b + i * spec.b.batchStrides[d],
                          at.c + i * spec.c.batchStrides[d]});
      calls = std::move(more);
    }
    const auto keep = [](int64_t &least, const MatmulOperand &matrix, int64_t element) {
      least = std::min(
          least, alignmentOf(static_cast<CUdeviceptr>(element) * support::byteSize(matrix.dtype)));
    };
    for (const Offsets &at : calls) {
      keep(alignment.a, spec.a, at.a);
      keep(alignment.b, spec.b, at.b);
      keep(alignment.c, spec.c, at.c);
    }
    a = std::make_unique<Operand>(spec.a, spec.m, spec.k, merged.count, merged.strides[0]);
    b = std::make_unique<Operand>(spec.b, spec.k, spec.n, merged.count, merged.strides[1]);
    c = std::make_unique<Operand>(spec.c, spec.m, spec.n, merged.count, merged.strides[2]);
    cublasLtMatmulDesc_t created = nullptr;
    lt().check(
        lt().cublasLtMatmulDescCreate(
            &created, spec.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "description");
    operation.reset(created);
    set(CUBLASLT_MATMUL_DESC_TRANSA, b->transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, a->transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue());
    if (spec.hasBias)
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, dataType(spec.c.dtype));
    if (spec.savesSums)
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, spec.c.rowStride);
    if (spec.scaling == MatmulScales::Rows || spec.scaling == MatmulScales::Blocks) {
      // The library's a is our b.
      set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scaleMode(spec.b, spec.n));
      set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scaleMode(spec.a, spec.m));
      // The library knows algorithms only where there are vectors; run() says which.
      const void *somewhere = reinterpret_cast<const void *>(uintptr_t{kLargestAlignment});
      for (auto attribute :
           {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
        set(attribute, somewhere);
    }
    if (multiprocessors > 0)
      set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<int32_t>(multiprocessors));
    choose(reduced, algorithm);
  }

  /// Bytes of the bias if it has to be copied to where the library can read it.
  size_t stagedBiasBytes() const {
    return spec.hasBias && alignment.bias < kBiasAlignment
               ? static_cast<size_t>(spec.n) * support::byteSize(spec.c.dtype)
               : 0;
  }

  cublasLtEpilogue_t epilogue() const {
    if (!spec.gelu)
      return spec.hasBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    if (swapped || calls.size() > 1)
      fail("a batched matmul with gelu has no CUDA form");
    if (spec.savesSums)
      return spec.hasBias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return spec.hasBias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }

  /// How the library is to read scales that are several. Those of blocks lie as they lie for it: of
  /// one row each, all rows of a block of the sum densely; of 128 rows, those along the sum, in
  /// fours.
  cublasLtMatmulMatrixScale_t scaleMode(const MatmulOperand &operand, int64_t rows) const {
    if (spec.scaling == MatmulScales::Rows)
      return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    if (rows % kScaleMultiple != 0)
      fail("a matmul with scales of blocks has no CUDA form for {} rows of an operand; expected a "
           "multiple of {}",
           rows, kScaleMultiple);
    if (!operand.scales.ofManyRows)
      return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    const int64_t blocks = support::scaleBlocks(spec.k),
                  wanted = support::roundUp(blocks, kScaleMultiple);
    if (operand.scales.stride != wanted && rows > support::kScaleBlock)
      fail("a matmul whose scales of {} blocks lie {} apart has no CUDA form; expected {}", blocks,
           operand.scales.stride, wanted);
    return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  }

  template <typename T> void set(cublasLtMatmulDescAttributes_t attribute, const T &value) const {
    lt().check(
        lt().cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value),
        "attribute");
  }

  void choose(bool reduced, int64_t algorithm) {
    cublasLtMatmulPreference_t preference = nullptr;
    lt().check(lt().cublasLtMatmulPreferenceCreate(&preference), "preference");
    const Handle<cublasLtMatmulPreference_t> destroyed(preference);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
      lt().check(
          lt().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{CublasLt::kWorkspaceBytes});
    // Parts of a split sum are added in f32 unless the plan says otherwise.
    const uint32_t schemes = reduced ? uint32_t{CUBLASLT_REDUCTION_SCHEME_MASK}
                                     : uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE};
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    const auto aligned = [&](cublasLtMatmulPreferenceAttributes_t attribute, int64_t bytes) {
      prefer(attribute, static_cast<uint32_t>(bytes));
    };
    aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment.b);
    aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment.a);
    aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment.c);
    aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment.c);
    int found = 0;
    std::vector<cublasLtMatmulHeuristicResult_t> guesses(static_cast<size_t>(algorithm) + 1);
    const auto guess = [&](std::span<cublasLtMatmulHeuristicResult_t> best, int &count) {
      return lt().cublasLtMatmulAlgoGetHeuristic(
          static_cast<cublasLtHandle_t>(library.handle), operation.get(), b->layout.get(),
          a->layout.get(), c->layout.get(), c->layout.get(), preference,
          static_cast<int>(best.size()), best.data(), &count);
    };
    const cublasStatus_t status = guess(guesses, found);
    if (status == CUBLAS_STATUS_SUCCESS && found > 0 && found <= algorithm)
      throw NoSuchAlgorithm(
          fmt::format("cuBLASLt has {} algorithms for this matmul; the plan asks for number {}",
                      found, algorithm));
    chosen = guesses.back();
    if (status != CUBLAS_STATUS_SUCCESS || found == 0)
      fail("cuBLASLt has no algorithm for [{}, {}] times [{}, {}] of {}{} into {}", spec.m, spec.k,
           spec.k, spec.n, support::irName(spec.a.dtype),
           spec.hasBias                           ? " with a bias"
           : spec.scaling == MatmulScales::Rows   ? " with scales of rows"
           : spec.scaling == MatmulScales::Blocks ? " with scales of blocks"
                                                  : "",
           support::irName(spec.c.dtype));
    // Blocks that count who takes which tile need the counter filled before each call, which takes
    // longer than it gains. Of algorithms without workspace the first was as fast for all shapes
    // that were measured.
    if (algorithm == 0 && chosen.workspaceSize > 0 && chosen.workspaceSize <= kCounterBytes) {
      prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{0});
      cublasLtMatmulHeuristicResult_t without = {};
      if (guess({&without, 1}, found) == CUBLAS_STATUS_SUCCESS && found > 0)
        chosen = without;
    }
  }

  /// A workspace of so few bytes at most holds no sums of parts.
  static constexpr size_t kCounterBytes = 64;
  bool swapped = false;
};

CudaMatmul::CudaMatmul(CublasLt &library, const MatmulSpec &spec, const MatmulAlignment &alignment,
                       bool reduced, int64_t algorithm, int64_t multiprocessors)
    : impl(std::make_unique<Impl>(library, spec, alignment, reduced, algorithm, multiprocessors)) {}
CudaMatmul::~CudaMatmul() = default;
CudaMatmul::CudaMatmul(CudaMatmul &&) noexcept = default;

size_t CudaMatmul::workspaceBytes() const {
  return CublasLt::kWorkspaceBytes + impl->stagedBiasBytes();
}

void CudaMatmul::run(std::span<const CUdeviceptr> args, CUdeviceptr workspace,
                     CUstream stream) const {
  const Impl &m = *impl;
  CUdeviceptr a = args[0], b = args[1];
  const size_t result = m.spec.result();
  const CUdeviceptr c = args[result];
  CUdeviceptr scaleA = 0, scaleB = 0;
  if (m.spec.scaled()) {
    scaleA = args[m.spec.scales()];
    scaleB = args[m.spec.scales() + 1];
  }
  if (m.swapped) {
    std::swap(a, b);
    std::swap(scaleA, scaleB);
  }
  if (m.spec.scaled()) { // of the library's a, which is our b
    m.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, reinterpret_cast<const void *>(scaleB));
    m.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, reinterpret_cast<const void *>(scaleA));
  }
  if (m.spec.hasBias) {
    CUdeviceptr bias = args[2];
    if (const size_t bytes = m.stagedBiasBytes(); bytes > 0) {
      bias = workspace + CublasLt::kWorkspaceBytes;
      driver().check(driver().cuMemcpyDtoDAsync(bias, args[2], bytes, stream),
                     "cannot copy a bias");
    }
    m.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void *>(bias));
  }
  if (m.spec.savesSums)
    m.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, reinterpret_cast<void *>(args[result + 1]));
  const float one = 1.0f, beta = m.spec.accumulate ? 1.0f : 0.0f;
  const auto at = [](CUdeviceptr base, DType dtype, int64_t element) {
    return reinterpret_cast<void *>(base +
                                    static_cast<CUdeviceptr>(element) * support::byteSize(dtype));
  };
  for (const Impl::Offsets &offset : m.calls) {
    void *to = at(c, m.spec.c.dtype, offset.c);
    lt().check(
        lt().cublasLtMatmul(static_cast<cublasLtHandle_t>(m.library.handle), m.operation.get(),
                            &one, at(b, m.spec.b.dtype, offset.b), m.b->layout.get(),
                            at(a, m.spec.a.dtype, offset.a), m.a->layout.get(), &beta, to,
                            m.c->layout.get(), to, m.c->layout.get(), &m.chosen.algo,
                            reinterpret_cast<void *>(workspace), CublasLt::kWorkspaceBytes, stream),
        "product");
  }
}

} // namespace hydra::runtime::cuda
