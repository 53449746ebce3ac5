// From a step's arguments and action to what NVIDIA's libraries are asked for.
#include "runtime/cuda/DeviceLibrary.h"

#include "runtime/calls/AttentionCall.h"
#include "runtime/calls/MatmulCall.h"
#include "runtime/calls/MoveCalls.h"

#include <bit>

namespace hydra::runtime::cuda {

using support::DType;

namespace {

/// What another step's function has done.
class Nothing final : public DeviceCall {
public:
  size_t workspaceBytes() const override { return 0; }
  void run(std::span<const CUdeviceptr>, CUdeviceptr, CUstream) const override {}
};

/// By a copy engine.
class Transfer final : public DeviceCall {
public:
  explicit Transfer(TransferSpec spec) : spec(spec) {}
  size_t workspaceBytes() const override { return 0; }
  void run(std::span<const CUdeviceptr> args, CUdeviceptr, CUstream stream) const override {
    const Driver &d = driver();
    if (spec.toHost)
      d.check(d.cuMemcpyDtoHAsync(reinterpret_cast<void *>(args[1]), args[0], spec.bytes, stream),
              "cannot move bytes to the host");
    else
      d.check(
          d.cuMemcpyHtoDAsync(args[1], reinterpret_cast<const void *>(args[0]), spec.bytes, stream),
          "cannot move bytes to the GPU");
  }

private:
  TransferSpec spec;
};

using Key = std::vector<int64_t>;

Key keyOf(const MatmulSpec &spec, const MatmulAlignment &alignment, bool reduced, int64_t algorithm,
          int64_t multiprocessors) {
  Key key = {spec.m,          spec.n,         spec.k,      spec.hasBias,
             spec.accumulate, reduced,        algorithm,   multiprocessors,
             spec.gelu,       spec.savesSums, alignment.a, alignment.b,
             alignment.c,     alignment.bias, spec.tf32,   static_cast<int64_t>(spec.scaling)};
  key.insert(key.end(), spec.batch.begin(), spec.batch.end());
  for (const MatmulOperand *m : {&spec.a, &spec.b, &spec.c}) {
    key.insert(key.end(), {static_cast<int64_t>(m->dtype), m->rowStride, m->columnStride,
                           m->scales.ofManyRows, m->scales.stride});
    key.insert(key.end(), m->batchStrides.begin(), m->batchStrides.end());
  }
  return key;
}

CudnnAttentionSpec describeForCudnn(const CallSite &site, CudnnAttention::Pass pass) {
  const bool backward = pass == CudnnAttention::Pass::Backward;
  const AttentionGradSpec call = backward
                                     ? describeAttentionGrad(site)
                                     : AttentionGradSpec{describeAttention(site), {}, {}, {}, {}};
  const auto strides = [](const AttentionLayout &layout) {
    return CudnnAttentionSpec::Strides{layout.batch, layout.row, layout.head};
  };
  const AttentionShape &shape = call.shape;
  if (call.dtype == DType::F32 || shape.chunk != 0 || shape.window != 0 || shape.cap != 0)
    site.fail("is not what cuDNN is asked for: 16-bit floats, no chunk, window or cap");
  CudnnAttentionSpec spec;
  spec.element = call.dtype;
  spec.batch = shape.batch;
  spec.queries = shape.queries;
  spec.heads = shape.heads;
  spec.width = shape.headDim;
  spec.keys = shape.keys;
  spec.keyHeads = shape.kvHeads;
  spec.valueWidth = shape.valueDim;
  spec.scale = shape.scale;
  spec.causal = shape.causal;
  spec.q = strides(call.q);
  spec.k = strides(call.k);
  spec.v = strides(call.v);
  spec.o = strides(call.o);
  if (backward) {
    spec.dO = strides(call.dO);
    spec.dq = strides(call.dq);
    spec.dk = strides(call.dk);
    spec.dv = strides(call.dv);
  }
  return spec;
}

Key keyOf(const CudnnAttentionSpec &spec, CudnnAttention::Pass pass) {
  Key key = {spec.batch,
             spec.queries,
             spec.keys,
             spec.heads,
             spec.keyHeads,
             spec.width,
             spec.causal,
             spec.valueWidth,
             static_cast<int>(pass),
             static_cast<int>(spec.element)};
  key.push_back(std::bit_cast<int64_t>(spec.scale));
  for (const CudnnAttentionSpec::Strides *s :
       {&spec.q, &spec.k, &spec.v, &spec.o, &spec.dO, &spec.dq, &spec.dk, &spec.dv})
    key.insert(key.end(), s->begin(), s->end());
  return key;
}

} // namespace

CublasLt &DeviceLibrary::matmuls() {
  if (!cublas)
    cublas = std::make_unique<CublasLt>();
  return *cublas;
}

std::string DeviceLibrary::versions() const {
  std::string text = fmt::format("cuBLASLt {}", cublas ? cublas->version() : 0);
  if (transforms)
    text += fmt::format(", cuFFT {}", CudaFft::version());
  return cudnn ? fmt::format("{}, cuDNN {}", text, Cudnn::version()) : text;
}

const DeviceCall &DeviceLibrary::keep(planfile::Action action, Key key,
                                      const std::function<std::unique_ptr<DeviceCall>()> &make) {
  std::unique_ptr<DeviceCall> &call = calls[{action, std::move(key)}];
  if (!call)
    call = make();
  return *call;
}

const DeviceCall &DeviceLibrary::prepareMatmul(const CallSite &site,
                                               std::span<const CUdeviceptr> args) {
  const MatmulSpec spec = describeMatmul(site);
  if (spec.scaled())
    for (size_t i = spec.scales(); i < spec.scales() + 2; ++i)
      if (args[i] % CudaMatmul::kScaleAlignment != 0)
        site.fail(
            "argument {}, a scale, begins at no multiple of {} bytes, as cuBLASLt needs it to", i,
            CudaMatmul::kScaleAlignment);
  const auto &call = site.as<planfile::Matmul>();
  const bool reduced = call.reduced_reduction();
  const int64_t algorithm = call.algorithm(), multiprocessors = call.multiprocessors();
  const MatmulAlignment alignment = MatmulAlignment::of(spec, args);
  return keep(planfile::Action::Matmul, keyOf(spec, alignment, reduced, algorithm, multiprocessors),
              [&] {
                return std::make_unique<CudaMatmul>(matmuls(), spec, alignment, reduced, algorithm,
                                                    multiprocessors);
              });
}

const DeviceCall &DeviceLibrary::prepareCollective(const CallSite &site) {
  const bool gathers = site.action.type == planfile::Action::AllGather;
  const CollectiveSpec spec = gathers ? describeAllGather(site) : describeAllToAll(site);
  if (!ranks)
    site.fail("there are no other ranks");
  return keep(site.action.type, {spec.axis, static_cast<int64_t>(spec.bytes)}, [&] {
    return gathers ? ranks->prepareAllGather(spec) : ranks->prepareAllToAll(spec);
  });
}

const DeviceCall &DeviceLibrary::prepareFft(const CallSite &site,
                                            std::span<const CUdeviceptr> args) {
  const FftSpec spec = describeFft(site);
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i] % CudaFft::kAlignment != 0)
      site.fail("argument {} begins at no multiple of {} bytes, as cuFFT needs it to", i,
                CudaFft::kAlignment);
  transforms = true;
  return keep(planfile::Action::Fft, {spec.rows, spec.length, spec.inverse},
              [&] { return std::make_unique<CudaFft>(spec); });
}

const DeviceCall &DeviceLibrary::prepareAttention(const CallSite &site, bool backward) {
  using Pass = CudnnAttention::Pass;
  const Pass pass = backward                        ? Pass::Backward
                    : site.argumentCount(4, 5) == 5 ? Pass::ForwardSaving
                                                    : Pass::Forward;
  if (!cudnn)
    cudnn = std::make_unique<Cudnn>();
  const CudnnAttentionSpec spec = describeForCudnn(site, pass);
  return keep(planfile::Action::Attention, keyOf(spec, pass),
              [&] { return std::make_unique<CudnnAttention>(*cudnn, spec, pass); });
}

const DeviceCall &DeviceLibrary::prepare(const CallSite &site, std::span<const CUdeviceptr> args) {
  using planfile::Action;
  switch (site.action.type) {
  case Action::Matmul:
    return prepareMatmul(site, args);
  case Action::Attention:
    return prepareAttention(site, /*backward=*/false);
  case Action::AttentionGrad:
    return prepareAttention(site, /*backward=*/true);
  case Action::AllGather:
  case Action::AllToAll:
    return prepareCollective(site);
  case Action::Fft:
    return prepareFft(site, args);
  case Action::Transfer: {
    const TransferSpec spec = describeTransfer(site);
    return keep(Action::Transfer, {static_cast<int64_t>(spec.bytes), spec.toHost},
                [&] { return std::make_unique<Transfer>(spec); });
  }
  case Action::Nothing: {
    static const Nothing nothing;
    return nothing;
  }
  case Action::NONE:
  case Action::Launch:
  case Action::CachedAttention:
  case Action::Sample:
  case Action::EmbeddingGrad:
  case Action::Copy:
  case Action::Fill:
  case Action::Compact:
  case Action::Route:
  case Action::CountExponents:
  case Action::GroupedLinear:
  case Action::GroupedOuter:
  case Action::LinearRecurrence:
    break;
  }
  site.fail("CUDA has no library's function for this action");
}

} // namespace hydra::runtime::cuda
