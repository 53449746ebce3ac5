// The library functions `attention` and `attention_grad`.
//
//   attention(q, k, v, o [, lse])
//   attention_grad(dO, q, k, v, o, lse, dq, dk, dv, workspace)
//   attributes: scale (real), causal (flag), chunk, window (integers, 0 or absent: none)
//
// q [B, S, H, hd], k [B, Sk, Hk, hd], v [B, Sk, Hk, dv], o [B, S, H, dv] in f32, any strides but a
// dense last dimension; lse [B, H, S] f32, dense; the workspace has attentionWorkspaceBytes.
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/Library.h"
#include "runtime/support/Safetensors.h"

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

Layout layoutOf(const CallSite &site, size_t index, std::string_view name,
                const std::vector<int64_t> &sizes) {
  const TensorShape shape = site.tensor(index, name, 4, DType::F32);
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

  Layouts(const CallSite &site, const AttentionShape &s, size_t firstInput, size_t output)
      : q(layoutOf(site, firstInput, "q", {s.batch, s.queries, s.heads, s.headDim})),
        k(layoutOf(site, firstInput + 1, "k", {s.batch, s.keys, s.kvHeads, s.headDim})),
        v(layoutOf(site, firstInput + 2, "v", {s.batch, s.keys, s.kvHeads, s.valueDim})),
        o(layoutOf(site, output, "o", {s.batch, s.queries, s.heads, s.valueDim})) {}
};

class AttentionCall final : public LibraryCall {
public:
  explicit AttentionCall(const CallSite &site)
      : hasLse(site.argumentCount(4, 5) == 5), shape(shapeOf(site, 0)), layouts(site, shape, 0, 3) {
    if (hasLse)
      checkLse(site, 4, shape);
  }

  size_t scratchBytesPerWorker() const override { return attentionScratchBytes(shape); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    attentionForward(shape,
                     {layouts.q.at<const float>(args[0]), layouts.k.at<const float>(args[1]),
                      layouts.v.at<const float>(args[2]), layouts.o.at<float>(args[3]),
                      hasLse ? reinterpret_cast<float *>(args[4]) : nullptr},
                     pool, scratch);
  }

private:
  bool hasLse;
  AttentionShape shape;
  Layouts layouts;
};

class AttentionGradCall final : public LibraryCall {
public:
  explicit AttentionGradCall(const CallSite &site)
      : shape((site.argumentCount(10, 10), shapeOf(site, 1))), inputs(site, shape, 1, 4),
        // dq, dk, dv are shaped as q, k, v, and dO as o.
        gradients(site, shape, 6, 0) {
    checkLse(site, 5, shape);
    const TensorShape workspace = site.tensor(9, "workspace");
    const auto bytes =
        static_cast<size_t>(workspace.elements()) * support::byteSize(workspace.dtype);
    if (!workspace.isDense() || bytes < attentionWorkspaceBytes(shape))
      site.fail("the workspace has {} bytes; expected {} of them, dense", bytes,
                attentionWorkspaceBytes(shape));
  }

  size_t scratchBytesPerWorker() const override { return attentionScratchBytes(shape); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    AttentionBackward tensors;
    tensors.dO = gradients.o.at<const float>(args[0]);
    tensors.q = inputs.q.at<const float>(args[1]);
    tensors.k = inputs.k.at<const float>(args[2]);
    tensors.v = inputs.v.at<const float>(args[3]);
    tensors.o = inputs.o.at<const float>(args[4]);
    tensors.lse = reinterpret_cast<const float *>(args[5]);
    tensors.dq = gradients.q.at<float>(args[6]);
    tensors.dk = gradients.k.at<float>(args[7]);
    tensors.dv = gradients.v.at<float>(args[8]);
    tensors.workspace = args[9];
    attentionBackward(shape, tensors, pool, scratch);
  }

private:
  AttentionShape shape;
  Layouts inputs, gradients;
};

} // namespace

void hydra::runtime::addAttention(Library &library) {
  library.add("attention",
              [](const CallSite &site) { return std::make_unique<AttentionCall>(site); });
  library.add("attention_grad",
              [](const CallSite &site) { return std::make_unique<AttentionGradCall>(site); });
}
