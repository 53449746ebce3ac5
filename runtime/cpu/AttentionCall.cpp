// The library functions `attention` and `attention_grad`.
//
//   attention(q, k, v, o [, lse])
//   attention_grad(dO, q, k, v, o, lse, dq, dk, dv, workspace)
//   attributes: scale (real), causal (flag), chunk, window (integers, 0 or absent: none)
//
// q [B, S, H, hd], k [B, Sk, Hk, hd], v [B, Sk, Hk, dv], o [B, S, H, dv], all in f32 or all in
// bf16, any strides but a dense last dimension; lse [B, H, S] f32, dense; the workspace has
// attentionWorkspaceBytes.
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/Library.h"
#include "runtime/support/Safetensors.h"

#include <type_traits>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

/// Strides of a [batch, row, head, width] argument, to be joined with its address in each run.
struct Layout {
  int64_t batch = 0, row = 0, head = 0;

  template <typename T> AttentionTensor<T> at(char *address) const {
    return {reinterpret_cast<T *>(address), batch, row, head};
  }
};

Layout layoutOf(const CallSite &site, size_t index, std::string_view name, DType dtype,
                const std::vector<int64_t> &sizes) {
  const TensorShape shape = site.tensor(index, name, 4, dtype);
  if (shape.sizes != sizes)
    site.fail("argument {} ({}) has shape {}; expected {}", index, name,
              support::shapeText(shape.sizes), support::shapeText(sizes));
  if (shape.strides[3] != 1 && sizes[3] != 1)
    site.fail("argument {} ({}) has strides {}; expected a dense last dimension", index, name,
              support::shapeText(shape.strides));
  return {shape.strides[0], shape.strides[1], shape.strides[2]};
}

void checkLse(const CallSite &site, size_t index, const AttentionShape &shape) {
  const TensorShape lse = site.tensor(index, "lse", 3, DType::F32);
  const std::vector<int64_t> sizes{shape.batch, shape.heads, shape.queries};
  if (lse.sizes != sizes || !lse.isDense())
    site.fail("argument {} (lse) has shape {}; expected a dense {}", index,
              support::shapeText(lse.sizes), support::shapeText(sizes));
}

/// The shape that q, k and v at arguments `first`, `first` + 1, `first` + 2 and the attributes
/// give.
AttentionShape shapeOf(const CallSite &site, size_t first) {
  const TensorShape q = site.tensor(first, "q", 4), k = site.tensor(first + 1, "k", 4),
                    v = site.tensor(first + 2, "v", 4);
  AttentionShape shape;
  shape.batch = q.sizes[0];
  shape.queries = q.sizes[1];
  shape.heads = q.sizes[2];
  shape.headDim = q.sizes[3];
  shape.keys = k.sizes[1];
  shape.kvHeads = k.sizes[2];
  shape.valueDim = v.sizes[3];
  shape.scale = site.attributes.real("scale");
  shape.causal = site.attributes.flag("causal", false);
  shape.chunk = site.attributes.integer("chunk", 0);
  shape.window = site.attributes.integer("window", 0);
  checkAttentionShape(shape);
  return shape;
}

struct Layouts {
  Layout q, k, v, o;

  Layouts(const CallSite &site, const AttentionShape &s, DType dtype, size_t firstInput,
          size_t output)
      : q(layoutOf(site, firstInput, "q", dtype, {s.batch, s.queries, s.heads, s.headDim})),
        k(layoutOf(site, firstInput + 1, "k", dtype, {s.batch, s.keys, s.kvHeads, s.headDim})),
        v(layoutOf(site, firstInput + 2, "v", dtype, {s.batch, s.keys, s.kvHeads, s.valueDim})),
        o(layoutOf(site, output, "o", dtype, {s.batch, s.queries, s.heads, s.valueDim})) {}
};

DType dtypeOf(const CallSite &site) {
  const DType dtype = site.tensor(0, "first").dtype;
  if (dtype != DType::F32 && dtype != DType::BF16)
    site.fail("works on {}; expected f32 or bf16", support::irName(dtype));
  return dtype;
}

template <typename T> class AttentionCall final : public LibraryCall {
public:
  explicit AttentionCall(const CallSite &site)
      : hasLse(site.argumentCount(4, 5) == 5), shape(shapeOf(site, 0)),
        layouts(site, shape, dtypeOf(site), 0, 3) {
    if (hasLse)
      checkLse(site, 4, shape);
  }

  size_t scratchBytesPerWorker() const override { return attentionScratchBytes(shape); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    const AttentionForward<T> tensors{
        layouts.q.template at<const T>(args[0]), layouts.k.template at<const T>(args[1]),
        layouts.v.template at<const T>(args[2]), layouts.o.template at<T>(args[3]),
        hasLse ? reinterpret_cast<float *>(args[4]) : nullptr};
    attentionForward(shape, tensors, pool, scratch);
  }

private:
  bool hasLse;
  AttentionShape shape;
  Layouts layouts;
};

template <typename T> class AttentionGradCall final : public LibraryCall {
public:
  explicit AttentionGradCall(const CallSite &site)
      : shape((site.argumentCount(10, 10), shapeOf(site, 1))),
        inputs(site, shape, dtypeOf(site), 1, 4),
        // dq, dk, dv are shaped as q, k, v, and dO as o.
        gradients(site, shape, dtypeOf(site), 6, 0) {
    checkLse(site, 5, shape);
    const TensorShape workspace = site.tensor(9, "workspace");
    const auto bytes =
        static_cast<size_t>(workspace.elements()) * support::byteSize(workspace.dtype);
    if (!workspace.isDense() || bytes < attentionWorkspaceBytes(shape, isF32))
      site.fail("the workspace has {} bytes; expected {} of them, dense", bytes,
                attentionWorkspaceBytes(shape, isF32));
  }

  size_t scratchBytesPerWorker() const override { return attentionScratchBytes(shape); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    AttentionBackward<T> tensors;
    tensors.dO = gradients.o.template at<const T>(args[0]);
    tensors.q = inputs.q.template at<const T>(args[1]);
    tensors.k = inputs.k.template at<const T>(args[2]);
    tensors.v = inputs.v.template at<const T>(args[3]);
    tensors.o = inputs.o.template at<const T>(args[4]);
    tensors.lse = reinterpret_cast<const float *>(args[5]);
    tensors.dq = gradients.q.template at<T>(args[6]);
    tensors.dk = gradients.k.template at<T>(args[7]);
    tensors.dv = gradients.v.template at<T>(args[8]);
    tensors.workspace = args[9];
    attentionBackward(shape, tensors, pool, scratch);
  }

private:
  static constexpr bool isF32 = std::is_same_v<T, float>;
  AttentionShape shape;
  Layouts inputs, gradients;
};

template <template <typename> typename Call>
std::unique_ptr<LibraryCall> makeCall(const CallSite &site) {
  if (site.argumentCount(4, 10) > 0 && dtypeOf(site) == DType::F32)
    return std::make_unique<Call<float>>(site);
  return std::make_unique<Call<BF16>>(site);
}

} // namespace

void hydra::runtime::addAttention(Library &library) {
  library.add("attention", makeCall<AttentionCall>);
  library.add("attention_grad", makeCall<AttentionGradCall>);
}
