// Attention, its gradients, and attention over what earlier calls kept, on the CPU.
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/CachedAttention.h"
#include "runtime/cpu/Library.h"

using namespace hydra::runtime;
namespace support = hydra::support;

namespace {

template <typename T> AttentionTensor<T> at(const AttentionLayout &layout, char *address) {
  return {reinterpret_cast<T *>(address), layout.batch, layout.row, layout.head};
}

template <typename T> class AttentionCall final : public LibraryCall {
public:
  explicit AttentionCall(const AttentionSpec &spec) : spec(spec) {}

  size_t scratchBytesPerWorker() const override { return attentionScratchBytes(spec.shape); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    const AttentionForward<T> tensors{at<const T>(spec.q, args[0]), at<const T>(spec.k, args[1]),
                                      at<const T>(spec.v, args[2]), at<T>(spec.o, args[3]),
                                      spec.hasLse ? reinterpret_cast<float *>(args[4]) : nullptr};
    attentionForward(spec.shape, tensors, pool, scratch);
  }

private:
  AttentionSpec spec;
};

template <typename T> class AttentionGradCall final : public LibraryCall {
public:
  explicit AttentionGradCall(const AttentionGradSpec &spec) : spec(spec) {}

  size_t scratchBytesPerWorker() const override { return attentionScratchBytes(spec.shape); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    AttentionBackward<T> tensors;
    tensors.dO = at<const T>(spec.dO, args[0]);
    tensors.q = at<const T>(spec.q, args[1]);
    tensors.k = at<const T>(spec.k, args[2]);
    tensors.v = at<const T>(spec.v, args[3]);
    tensors.o = at<const T>(spec.o, args[4]);
    tensors.lse = reinterpret_cast<const float *>(args[5]);
    tensors.dq = at<T>(spec.dq, args[6]);
    tensors.dk = at<T>(spec.dk, args[7]);
    tensors.dv = at<T>(spec.dv, args[8]);
    tensors.workspace = args[9];
    attentionBackward(spec.shape, tensors, pool, scratch);
  }

private:
  AttentionGradSpec spec;
};

template <typename T> class CachedAttentionCall final : public LibraryCall {
public:
  explicit CachedAttentionCall(const CachedAttentionSpec &spec) : spec(spec) {}

  size_t scratchBytesPerWorker() const override { return cachedAttentionScratchBytes(spec.shape); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    CachedAttentionTensors<T> tensors;
    tensors.q = at<const T>(spec.q, args[0]);
    tensors.k = at<const T>(spec.k, args[1]);
    tensors.v = at<const T>(spec.v, args[2]);
    tensors.position = reinterpret_cast<const float *>(args[3]);
    tensors.o = at<T>(spec.o, args[4]);
    tensors.keys = reinterpret_cast<T *>(args[5]);
    tensors.values = reinterpret_cast<T *>(args[6]);
    cachedAttention(spec.shape, tensors, pool, scratch);
  }

private:
  CachedAttentionSpec spec;
};

/// Of the element type that the description says.
template <template <typename> typename Call, typename Spec>
std::unique_ptr<LibraryCall> makeCall(const Spec &spec) {
  if (spec.dtype == support::DType::F32)
    return std::make_unique<Call<float>>(spec);
  if (spec.dtype == support::DType::BF16)
    return std::make_unique<Call<BF16>>(spec);
  return std::make_unique<Call<F16>>(spec);
}

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareAttention(const CallSite &site) {
  return makeCall<AttentionCall>(describeAttention(site));
}

std::unique_ptr<LibraryCall> hydra::runtime::prepareAttentionGrad(const CallSite &site) {
  const AttentionGradSpec spec = describeAttentionGrad(site);
  checkAttentionWorkspace(site, spec);
  return makeCall<AttentionGradCall>(spec);
}

std::unique_ptr<LibraryCall> hydra::runtime::prepareCachedAttention(const CallSite &site) {
  return makeCall<CachedAttentionCall>(describeCachedAttention(site));
}
