// Attention as a graph of cuDNN's operations, for which the library has fused kernels.
#include "runtime/cuda/CudnnAttention.h"

#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"
#include "runtime/support/SharedLibrary.h"

#include <cudnn_graph.h>

#include <limits>
#include <map>
#include <vector>

namespace hydra::runtime::cuda {

using support::fail;
using support::SharedLibrary;

#define HYDRA_CUDNN_FUNCTIONS(X)                                                                   \
  X(cudnnCreate)                                                                                   \
  X(cudnnDestroy)                                                                                  \
  X(cudnnSetStream)                                                                                \
  X(cudnnGetVersion)                                                                               \
  X(cudnnGetErrorString)                                                                           \
  X(cudnnBackendCreateDescriptor)                                                                  \
  X(cudnnBackendDestroyDescriptor)                                                                 \
  X(cudnnBackendSetAttribute)                                                                      \
  X(cudnnBackendGetAttribute)                                                                      \
  X(cudnnBackendFinalize)                                                                          \
  X(cudnnBackendExecute)

struct Cudnn::Library {
  HYDRA_CUDNN_FUNCTIONS(HYDRA_DECLARE_FUNCTION)

  Library() {
    // The kernels are in libraries of their own that this one loads.
    const SharedLibrary library({"libcudnn_graph.so.9"});
    if (!library)
      fail("cannot find cuDNN 9 (libcudnn_graph.so.9), which this plan has chosen for attention");
    HYDRA_CUDNN_FUNCTIONS(HYDRA_LOAD_FUNCTION)
    constexpr size_t oldest = 90600; // which clears its accumulators itself
    if (cudnnGetVersion() < oldest)
      fail("cuDNN is version {}; expected {} or newer", cudnnGetVersion(), oldest);
  }

  void check(cudnnStatus_t status, const char *what) const {
    if (status != CUDNN_STATUS_SUCCESS)
      fail("cuDNN: {}: {}", what, cudnnGetErrorString(status));
  }
};

namespace {

const Cudnn::Library &dnn() {
  static const Cudnn::Library library;
  return library;
}

/// One of the library's objects.
class Descriptor {
public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    dnn().check(dnn().cudnnBackendCreateDescriptor(type, &descriptor), "descriptor");
  }
  ~Descriptor() {
    if (descriptor)
      dnn().cudnnBackendDestroyDescriptor(descriptor);
  }
  Descriptor(Descriptor &&other) noexcept : descriptor(std::exchange(other.descriptor, nullptr)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void *values) {
    dnn().check(dnn().cudnnBackendSetAttribute(descriptor, name, type, count, values), "attribute");
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t> &values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, bool value) {
    set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor &value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor);
  }
  void finish() { dnn().check(tryToFinish(), "graph"); }
  cudnnStatus_t tryToFinish() { return dnn().cudnnBackendFinalize(descriptor); }
  cudnnBackendDescriptor_t get() const { return descriptor; }

private:
  cudnnBackendDescriptor_t descriptor = nullptr;
};

using Sizes = std::vector<int64_t>;

/// A tensor of the graph: in memory, a number, or (`isVirtual`) only between operations.
struct Tensor {
  Descriptor descriptor{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
  Sizes sizes, strides;
  int64_t number;
};

/// The operations of one attention, and where their tensors lie.
class Graph {
public:
  explicit Graph(cudnnDataType_t element) : element(element) {}

  const cudnnDataType_t element; ///< of what is in memory, but for statistics

  const Tensor &inMemory(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type) {
    const Tensor &t = tensor(sizes, strides, type, /*isVirtual=*/false);
    numbers.push_back(t.number);
    return t;
  }
  const Tensor &between(const Sizes &sizes, const Sizes &strides,
                        cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(sizes, strides, type, /*isVirtual=*/true);
  }
  const Tensor &between(const Sizes &sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return between(sizes, dense(sizes), type);
  }
  /// Like `like`, a result of an operation on it.
  const Tensor &after(const Tensor &like, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return between(like.sizes, like.strides, type);
  }
  const Tensor &scalar(float value) {
    const Tensor &t = tensor({1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, false, true);
    scalars[t.number] = value;
    return t;
  }

  static Sizes dense(const Sizes &sizes) {
    return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
  }

  const Tensor &pointwise(cudnnPointwiseMode_t mode, const Tensor &x, const Tensor *b,
                          const Tensor &y, const Tensor *condition = nullptr, int64_t axis = -1,
                          cudnnDataType_t math = CUDNN_DATA_FLOAT) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, math);
    if (axis >= 0)
      how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    how.finish();
    Descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor);
    if (b)
      op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->descriptor);
    if (condition)
      op.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, condition->descriptor);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor);
    return add(std::move(how), std::move(op), y);
  }
  const Tensor &pointwise(cudnnPointwiseMode_t mode, const Tensor &x) {
    return pointwise(mode, x, nullptr, after(x));
  }
  const Tensor &pointwise(cudnnPointwiseMode_t mode, const Tensor &x, const Tensor &b) {
    return pointwise(mode, x, &b, after(x));
  }

  const Tensor &reduce(cudnnReduceTensorOp_t operation, const Tensor &x, const Tensor &y) {
    Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finish();
    Descriptor op(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor);
    return add(std::move(how), std::move(op), y);
  }

  const Tensor &multiply(const Tensor &a, const Tensor &b, const Tensor &c) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finish();
    Descriptor op(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor);
    return add(std::move(how), std::move(op), c);
  }

  /// The same elements with the last two dimensions swapped.
  const Tensor &swapped(const Tensor &x, cudnnDataType_t type) {
    const Tensor &y = between({x.sizes[0], x.sizes[1], x.sizes[3], x.sizes[2]},
                              {x.strides[0], x.strides[1], x.strides[3], x.strides[2]}, type);
    Descriptor op(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor);
    op.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor);
    op.finish();
    operations.push_back(std::move(op));
    return y;
  }

  std::vector<Descriptor> operations;
  std::vector<int64_t> numbers; ///< of tensors in memory, in the order they were made
  std::map<int64_t, float> scalars;

private:
  const Tensor &tensor(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type,
                       bool isVirtual, bool isScalar = false) {
    constexpr int64_t alignment = 16; // bytes
    Tensor &t = *tensors.emplace_back(std::make_unique<Tensor>());
    t.sizes = sizes;
    t.strides = strides;
    t.number = static_cast<int64_t>(tensors.size());
    t.descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, t.number);
    t.descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    t.descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
    t.descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
    t.descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    t.descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, isVirtual);
    t.descriptor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, isScalar);
    t.descriptor.finish();
    return t;
  }

  const Tensor &add(Descriptor how, Descriptor op, const Tensor &result) {
    op.finish();
    settings.push_back(std::move(how));
    operations.push_back(std::move(op));
    return result;
  }

  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<Descriptor> settings;
};

/// `[batch, heads, rows, width]`, or with the last two swapped.
const Tensor &heads(Graph &g, int64_t batch, int64_t heads, int64_t rows, int64_t width,
                    const CudnnAttentionSpec::Strides &s, bool swapped = false) {
  if (swapped)
    return g.inMemory({batch, heads, width, rows}, {s[0], s[2], 1, s[1]}, g.element);
  return g.inMemory({batch, heads, rows, width}, {s[0], s[2], s[1], 1}, g.element);
}

/// Scores of keys behind the query become -infinity.
const Tensor &masked(Graph &g, const CudnnAttentionSpec &spec, const Tensor &scores) {
  if (!spec.causal)
    return scores;
  const auto index = [&](int64_t axis) -> const Tensor & {
    return g.pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr,
                       g.after(scores, CUDNN_DATA_INT32), nullptr, axis);
  };
  const Tensor &row = index(2), &column = index(3);
  const Tensor &seen =
      g.pointwise(CUDNN_POINTWISE_CMP_GE, row, &column, g.after(scores, CUDNN_DATA_BOOLEAN),
                  nullptr, -1, CUDNN_DATA_BOOLEAN);
  return g.pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores,
                     &g.scalar(-std::numeric_limits<float>::infinity()), g.after(scores), &seen);
}

void describeForward(Graph &g, const CudnnAttentionSpec &s, bool saves) {
  const Tensor &q = heads(g, s.batch, s.heads, s.queries, s.width, s.q);
  const Tensor &k = heads(g, s.batch, s.keyHeads, s.keys, s.width, s.k, /*swapped=*/true);
  const Tensor &v = heads(g, s.batch, s.keyHeads, s.keys, s.valueWidth, s.v);
  const Tensor &o = heads(g, s.batch, s.heads, s.queries, s.valueWidth, s.o);
  const Sizes perRow = {s.batch, s.heads, s.queries, 1};
  const Tensor &products = g.multiply(q, k, g.between({s.batch, s.heads, s.queries, s.keys}));
  const Tensor &scores = masked(
      g, s, g.pointwise(CUDNN_POINTWISE_MUL, products, g.scalar(static_cast<float>(s.scale))));
  const Tensor &maximum = g.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, g.between(perRow));
  const Tensor &powers =
      g.pointwise(CUDNN_POINTWISE_EXP, g.pointwise(CUDNN_POINTWISE_SUB, scores, maximum));
  const Tensor &sum = g.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, g.between(perRow));
  // The library knows the graph by this result, also where nothing reads it.
  const Tensor &lse =
      saves ? g.inMemory(perRow, Graph::dense(perRow), CUDNN_DATA_FLOAT) : g.between(perRow);
  g.pointwise(CUDNN_POINTWISE_ADD, maximum, &g.pointwise(CUDNN_POINTWISE_LOG, sum), lse);
  const Tensor &weights =
      g.pointwise(CUDNN_POINTWISE_DIV, powers, &sum, g.after(powers, g.element));
  g.multiply(weights, v, o);
}

/// The gradient of keys or values: summed over the heads that share them.
void sumOfHeads(Graph &g, const CudnnAttentionSpec &s, const Tensor &left, const Tensor &right,
                const Tensor &result) {
  if (s.heads == s.keyHeads) {
    g.multiply(left, right, result);
    return;
  }
  const Tensor &each = g.between({s.batch, s.heads, s.keys, result.sizes[3]}, g.element);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.multiply(left, right, each), result);
}

/// Bytes of the workspace, before the library's own: sums of dO o, and f32 sums of dq.
size_t backwardBytes(const CudnnAttentionSpec &s) {
  return static_cast<size_t>(4 * s.batch * s.heads * s.queries * (1 + s.width));
}

void describeBackward(Graph &g, const CudnnAttentionSpec &s) {
  const Tensor &dO = heads(g, s.batch, s.heads, s.queries, s.valueWidth, s.dO);
  const Tensor &q = heads(g, s.batch, s.heads, s.queries, s.width, s.q);
  const Tensor &k = heads(g, s.batch, s.keyHeads, s.keys, s.width, s.k, /*swapped=*/true);
  const Tensor &v = heads(g, s.batch, s.keyHeads, s.keys, s.valueWidth, s.v, /*swapped=*/true);
  const Tensor &o = heads(g, s.batch, s.heads, s.queries, s.valueWidth, s.o);
  const Sizes perRow = {s.batch, s.heads, s.queries, 1};
  const Tensor &lse = g.inMemory(perRow, Graph::dense(perRow), CUDNN_DATA_FLOAT);
  const Tensor &dq = heads(g, s.batch, s.heads, s.queries, s.width, s.dq);
  const Tensor &dk = heads(g, s.batch, s.keyHeads, s.keys, s.width, s.dk);
  const Tensor &dv = heads(g, s.batch, s.keyHeads, s.keys, s.valueWidth, s.dv);
  const Tensor &delta = g.inMemory(perRow, Graph::dense(perRow), CUDNN_DATA_FLOAT);
  const Sizes queries = {s.batch, s.heads, s.queries, s.width};
  const Tensor &sums = g.inMemory(queries, Graph::dense(queries), CUDNN_DATA_FLOAT);
  const Tensor &scale = g.scalar(static_cast<float>(s.scale));
  const Sizes pairs = {s.batch, s.heads, s.queries, s.keys};

  const Tensor &both = g.pointwise(CUDNN_POINTWISE_MUL, dO, &o,
                                   g.between({s.batch, s.heads, s.queries, s.valueWidth}));
  g.pointwise(CUDNN_POINTWISE_MUL, g.reduce(CUDNN_REDUCE_TENSOR_ADD, both, g.between(perRow)),
              &g.scalar(1.0f), delta);

  const Tensor &products = g.multiply(q, k, g.between(pairs));
  const Tensor &scores = g.pointwise(CUDNN_POINTWISE_MUL, products, scale);
  const Tensor &weights =
      g.pointwise(CUDNN_POINTWISE_EXP, masked(g, s, g.pointwise(CUDNN_POINTWISE_SUB, scores, lse)));
  sumOfHeads(g, s, g.swapped(weights, g.element), dO, dv);

  const Tensor &dWeights = g.multiply(dO, v, g.between(pairs));
  const Tensor &dScores = g.pointwise(
      CUDNN_POINTWISE_MUL,
      g.pointwise(CUDNN_POINTWISE_MUL, g.pointwise(CUDNN_POINTWISE_SUB, dWeights, delta), weights),
      scale);
  sumOfHeads(g, s, g.swapped(dScores, g.element), q, dk);
  g.multiply(dScores, g.swapped(k, g.element), sums);
  g.pointwise(CUDNN_POINTWISE_IDENTITY, sums, nullptr, dq);
}

} // namespace

Cudnn::Cudnn() {
  cudnnHandle_t created = nullptr;
  dnn().check(dnn().cudnnCreate(&created), "start");
  handle = created;
}
Cudnn::~Cudnn() { dnn().cudnnDestroy(static_cast<cudnnHandle_t>(handle)); }

size_t Cudnn::version() { return dnn().cudnnGetVersion(); }

struct CudnnAttention::Impl {
  cudnnHandle_t handle;
  CudnnAttentionSpec spec;
  Pass pass;
  Graph graph{spec.element == support::DType::F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16};
  Descriptor plan{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  size_t ownBytes = 0, libraryBytes = 0; ///< of workspace

  Impl(cudnnHandle_t handle, const CudnnAttentionSpec &spec, Pass pass)
      : handle(handle), spec(spec), pass(pass) {
    if (pass == Pass::Backward) {
      describeBackward(graph, spec);
      ownBytes = backwardBytes(spec);
    } else {
      describeForward(graph, spec, pass == Pass::ForwardSaving);
    }
    choose();
  }

  /// The first of the library's guesses that it can carry out.
  void choose() {
    Descriptor whole(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const Descriptor &operation : graph.operations)
      operations.push_back(operation.get());
    whole.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    whole.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<int64_t>(operations.size()), operations.data());
    whole.finish();
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    heuristics.finish();
    int64_t count = 0;
    dnn().check(dnn().cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                "kernels");
    std::vector<Descriptor> guesses;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < count; ++i)
      raw.push_back(guesses.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    int64_t found = 0;
    if (count > 0)
      dnn().check(dnn().cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &found,
                                                 raw.data()),
                  "kernels");
    for (int64_t i = 0; i < found; ++i) {
      Descriptor candidate(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      candidate.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
      candidate.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, guesses[static_cast<size_t>(i)]);
      if (candidate.tryToFinish() != CUDNN_STATUS_SUCCESS)
        continue;
      int64_t bytes = 0, one = 0;
      dnn().check(dnn().cudnnBackendGetAttribute(candidate.get(),
                                                 CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                 CUDNN_TYPE_INT64, 1, &one, &bytes),
                  "workspace");
      libraryBytes = static_cast<size_t>(bytes);
      plan = std::move(candidate);
      return;
    }
    fail("cuDNN has no kernel for attention of {} heads of width {}", spec.heads, spec.width);
  }
};

CudnnAttention::CudnnAttention(Cudnn &library, const CudnnAttentionSpec &spec, Pass pass)
    : impl(std::make_unique<Impl>(static_cast<cudnnHandle_t>(library.handle), spec, pass)) {}
CudnnAttention::~CudnnAttention() = default;
CudnnAttention::CudnnAttention(CudnnAttention &&) noexcept = default;

static size_t aligned(size_t bytes) { return support::roundUp(bytes, 256); }

size_t CudnnAttention::workspaceBytes() const {
  return aligned(impl->ownBytes) + impl->libraryBytes;
}

void CudnnAttention::run(std::span<const CUdeviceptr> args, CUdeviceptr workspace,
                         CUstream stream) const {
  const Impl &m = *impl;
  std::vector<int64_t> numbers = m.graph.numbers;
  std::vector<void *> addresses;
  for (const CUdeviceptr arg :
       args.first(m.graph.numbers.size() - (m.pass == Pass::Backward ? 2 : 0)))
    addresses.push_back(reinterpret_cast<void *>(arg));
  if (m.pass == Pass::Backward) { // delta and the sums of dq
    const auto rows = static_cast<CUdeviceptr>(m.spec.batch * m.spec.heads * m.spec.queries);
    addresses.push_back(
        reinterpret_cast<void *>(workspace + 4 * rows * static_cast<CUdeviceptr>(m.spec.width)));
    addresses.push_back(reinterpret_cast<void *>(workspace));
  }
  for (const auto &[number, value] : m.graph.scalars) {
    numbers.push_back(number);
    addresses.push_back(const_cast<float *>(&value));
  }
  void *scratch = reinterpret_cast<void *>(workspace + aligned(m.ownBytes));
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(addresses.size()), addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
  pack.finish();
  dnn().check(dnn().cudnnSetStream(m.handle, stream), "stream");
  dnn().check(dnn().cudnnBackendExecute(m.handle, m.plan.get(), pack.get()), "attention");
}

} // namespace hydra::runtime::cuda
