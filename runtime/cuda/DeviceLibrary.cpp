// From a step's arguments and attributes to what NVIDIA's libraries are asked for.
#include "runtime/cuda/DeviceLibrary.h"

#include "runtime/cpu/MatmulCall.h"

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

using Key = std::vector<int64_t>;

Key keyOf(const MatmulSpec &spec, bool reduced, int64_t algorithm, int64_t multiprocessors) {
  Key key = {spec.m,  spec.n,    spec.k,          spec.hasBias, spec.accumulate,
             reduced, algorithm, multiprocessors, spec.gelu,    spec.savesSums};
  key.insert(key.end(), spec.batch.begin(), spec.batch.end());
  for (const MatmulOperand *m : {&spec.a, &spec.b, &spec.c}) {
    key.insert(key.end(), {static_cast<int64_t>(m->dtype), m->rowStride, m->columnStride});
    key.insert(key.end(), m->batchStrides.begin(), m->batchStrides.end());
  }
  return key;
}

/// The strides of an argument [batch, rows, heads, width] in bf16.
AttentionSpec::Strides stridesOf(const CallSite &site, size_t index, std::string_view name) {
  const TensorShape shape = site.tensor(index, name, 4, DType::BF16);
  if (shape.strides[3] != 1 && shape.sizes[3] != 1)
    site.fail("argument {} ({}) has no dense last dimension", index, name);
  return {shape.strides[0], shape.strides[1], shape.strides[2]};
}

AttentionSpec describeAttention(const CallSite &site, CudnnAttention::Pass pass) {
  const bool backward = pass == CudnnAttention::Pass::Backward;
  const size_t first = backward ? 1 : 0;
  const TensorShape q = site.tensor(first, "q", 4), k = site.tensor(first + 1, "k", 4),
                    v = site.tensor(first + 2, "v", 4);
  AttentionSpec spec;
  spec.batch = q.sizes[0];
  spec.queries = q.sizes[1];
  spec.heads = q.sizes[2];
  spec.width = q.sizes[3];
  spec.keys = k.sizes[1];
  spec.keyHeads = k.sizes[2];
  spec.valueWidth = v.sizes[3];
  spec.scale = site.attributes.real("scale");
  spec.causal = site.attributes.flag("causal", false);
  spec.q = stridesOf(site, first, "q");
  spec.k = stridesOf(site, first + 1, "k");
  spec.v = stridesOf(site, first + 2, "v");
  spec.o = stridesOf(site, first + 3, "o");
  if (backward) {
    spec.dO = stridesOf(site, 0, "dO");
    spec.dq = stridesOf(site, 6, "dq");
    spec.dk = stridesOf(site, 7, "dk");
    spec.dv = stridesOf(site, 8, "dv");
  }
  if (backward || pass == CudnnAttention::Pass::ForwardSaving) {
    const TensorShape lse = site.tensor(first + 4, "lse", 3, DType::F32);
    if (!lse.isDense())
      site.fail("argument {} (lse) is not dense", first + 4);
  }
  return spec;
}

Key keyOf(const AttentionSpec &spec, CudnnAttention::Pass pass) {
  Key key = {spec.batch,  spec.queries,    spec.keys,
             spec.heads,  spec.keyHeads,   spec.width,
             spec.causal, spec.valueWidth, static_cast<int>(pass)};
  key.push_back(std::bit_cast<int64_t>(spec.scale));
  for (const AttentionSpec::Strides *s :
       {&spec.q, &spec.k, &spec.v, &spec.o, &spec.dO, &spec.dq, &spec.dk, &spec.dv})
    key.insert(key.end(), s->begin(), s->end());
  return key;
}

} // namespace

CublasLt &DeviceLibrary::products() {
  if (!cublas)
    cublas = std::make_unique<CublasLt>();
  return *cublas;
}

std::string DeviceLibrary::versions() const {
  std::string text = fmt::format("cuBLASLt {}", cublas ? cublas->version() : 0);
  return cudnn ? fmt::format("{}, cuDNN {}", text, Cudnn::version()) : text;
}

const DeviceCall &DeviceLibrary::keep(const std::string &function, Key key,
                                      const std::function<std::unique_ptr<DeviceCall>()> &make) {
  std::unique_ptr<DeviceCall> &call = calls[{function, std::move(key)}];
  if (!call)
    call = make();
  return *call;
}

const DeviceCall &DeviceLibrary::prepareMatmul(const CallSite &site) {
  const MatmulSpec spec = describeMatmul(site);
  const bool reduced = site.attributes.flag("reduced_reduction", false);
  const int64_t algorithm = site.attributes.integer("algorithm", 0);
  const int64_t multiprocessors = site.attributes.integer("multiprocessors", 0);
  return keep("matmul", keyOf(spec, reduced, algorithm, multiprocessors), [&] {
    return std::make_unique<CudaMatmul>(products(), spec, reduced, algorithm, multiprocessors);
  });
}

const DeviceCall &DeviceLibrary::prepareAttention(const CallSite &site, bool backward) {
  using Pass = CudnnAttention::Pass;
  const Pass pass = backward                        ? Pass::Backward
                    : site.argumentCount(4, 5) == 5 ? Pass::ForwardSaving
                                                    : Pass::Forward;
  if (backward)
    site.argumentCount(10, 10);
  if (!cudnn)
    cudnn = std::make_unique<Cudnn>();
  const AttentionSpec spec = describeAttention(site, pass);
  return keep("attention", keyOf(spec, pass),
              [&] { return std::make_unique<CudnnAttention>(*cudnn, spec, pass); });
}

const DeviceCall &DeviceLibrary::prepare(const CallSite &site) {
  static const std::map<std::string_view, const DeviceCall &(*)(DeviceLibrary &, const CallSite &)>
      functions = {{"matmul",
                    [](DeviceLibrary &l, const CallSite &s) -> const DeviceCall & {
                      return l.prepareMatmul(s);
                    }},
                   {"attention",
                    [](DeviceLibrary &l, const CallSite &s) -> const DeviceCall & {
                      return l.prepareAttention(s, /*backward=*/false);
                    }},
                   {"attention_grad",
                    [](DeviceLibrary &l, const CallSite &s) -> const DeviceCall & {
                      return l.prepareAttention(s, /*backward=*/true);
                    }},
                   {"nothing", [](DeviceLibrary &, const CallSite &) -> const DeviceCall & {
                      static const Nothing nothing;
                      return nothing;
                    }}};
  const auto found = functions.find(site.attributes.function());
  if (found == functions.end())
    site.fail("this function does not run on CUDA");
  return found->second(*this, site);
}

} // namespace hydra::runtime::cuda
