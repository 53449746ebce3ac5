// The actions Attention, AttentionGrad and CachedAttention.
//
//   attention(q, k, v, o [, lse])
//   attention_grad(dO, q, k, v, o, lse, dq, dk, dv, workspace)
//
// q [B, S, H, hd], k [B, Sk, Hk, hd], v [B, Sk, Hk, dv], o [B, S, H, dv], all in f32 or all in
// bf16, any strides but a dense last dimension; lse [B, H, S] f32, dense; on the CPU the workspace
// has attentionWorkspaceBytes.
//
//   cached_attention(q, k, v, position, o, keys, values)
//
// q [B, C, H, hd], k [B, C, Hk, hd], v [B, C, Hk, dv] and o [B, C, H, dv] like these; position [B]
// f32; keys [B, Hk, slots, hd] and values [B, Hk, slots, dv] of their type, dense.
#include "runtime/calls/AttentionCall.h"

#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"
#include "runtime/support/Safetensors.h"

#include <algorithm>
#include <cmath>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::ceilDiv;
using support::DType;
using support::fail;
using support::roundUp;

namespace {

AttentionLayout layoutOf(const CallSite &site, size_t index, std::string_view name, DType dtype,
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

/// The shape that q, k and v at arguments `first`, `first` + 1, `first` + 2 and the call give.
template <typename Call>
AttentionShape shapeOf(const CallSite &site, const Call &call, size_t first) {
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
  shape.scale = call.scale();
  shape.causal = call.causal();
  shape.chunk = call.chunk();
  shape.window = call.window();
  shape.cap = call.cap();
  checkAttentionShape(shape);
  return shape;
}

DType dtypeOf(const CallSite &site) {
  const DType dtype = site.tensor(0, "first").dtype;
  if (dtype != DType::F32 && dtype != DType::BF16 && dtype != DType::F16)
    site.fail("works on {}; expected f32, bf16 or f16", support::irName(dtype));
  return dtype;
}

/// The tensors q, k, v of arguments `first` and behind, and o at `output`.
template <typename Call>
void describeInputs(const CallSite &site, AttentionSpec &spec, size_t first, size_t output) {
  spec.shape = shapeOf(site, site.as<Call>(), first);
  spec.dtype = dtypeOf(site);
  const AttentionShape &s = spec.shape;
  spec.q = layoutOf(site, first, "q", spec.dtype, {s.batch, s.queries, s.heads, s.headDim});
  spec.k = layoutOf(site, first + 1, "k", spec.dtype, {s.batch, s.keys, s.kvHeads, s.headDim});
  spec.v = layoutOf(site, first + 2, "v", spec.dtype, {s.batch, s.keys, s.kvHeads, s.valueDim});
  spec.o = layoutOf(site, output, "o", spec.dtype, {s.batch, s.queries, s.heads, s.valueDim});
}

} // namespace

void hydra::runtime::checkAttentionShape(const AttentionShape &shape) {
  constexpr int64_t widest = 4096;
  const auto isPositive = [](double x) { return x > 0 && std::isfinite(static_cast<float>(x)); };
  if (shape.batch < 1 || shape.queries < 1 || shape.keys < 1)
    fail("attention: batch {}, {} queries, {} keys; expected at least 1 of each", shape.batch,
         shape.queries, shape.keys);
  if (shape.kvHeads < 1 || shape.heads < 1 || shape.heads % shape.kvHeads != 0)
    fail("attention: {} heads on {} key heads; expected a multiple", shape.heads, shape.kvHeads);
  if (shape.headDim < 1 || shape.valueDim < 1 || shape.headDim > widest || shape.valueDim > widest)
    fail("attention: widths {} and {}; expected 1 to {}", shape.headDim, shape.valueDim, widest);
  if (!isPositive(shape.scale))
    fail("attention: scale {}; expected a positive number", shape.scale);
  if (const double cap = static_cast<float>(shape.cap); // by which scores are divided
      shape.cap != 0 && !(isPositive(cap) && isPositive(shape.scale / cap)))
    fail("attention: cap {}; expected 0 (none) or a positive number", shape.cap);
  if (shape.chunk < 0 || shape.window < 0)
    fail("attention: chunk {}, window {}; expected 0 (none) or more", shape.chunk, shape.window);
}

int64_t hydra::runtime::attentionBackwardParts(const AttentionShape &shape) {
  constexpr int64_t wantedTasks = 8;
  return std::min(ceilDiv(wantedTasks, shape.batch * shape.kvHeads),
                  ceilDiv(shape.keys, attentionBlock(shape)));
}

size_t hydra::runtime::attentionWorkspaceBytes(const AttentionShape &shape, bool isF32) {
  const int64_t rows = shape.batch * shape.heads * shape.queries;
  const int64_t parts = attentionPartsWriteDq(shape, isF32) ? 0 : attentionBackwardParts(shape);
  return static_cast<size_t>(roundUp(4 * rows, 64) + 4 * parts * rows * roundUp(shape.headDim, 16));
}

bool hydra::runtime::attentionPartsWriteDq(const AttentionShape &shape, bool isF32) {
  return isF32 && attentionBackwardParts(shape) == 1 && shape.headDim % 16 == 0;
}

AttentionSpec hydra::runtime::describeAttention(const CallSite &site) {
  AttentionSpec spec;
  spec.hasLse = site.argumentCount(4, 5) == 5;
  describeInputs<planfile::Attention>(site, spec, 0, 3);
  if (spec.hasLse)
    checkLse(site, 4, spec.shape);
  return spec;
}

AttentionGradSpec hydra::runtime::describeAttentionGrad(const CallSite &site) {
  site.argumentCount(10, 10);
  AttentionGradSpec spec;
  spec.hasLse = true;
  describeInputs<planfile::AttentionGrad>(site, spec, 1, 4);
  const AttentionShape &s = spec.shape;
  spec.dO = layoutOf(site, 0, "dO", spec.dtype, {s.batch, s.queries, s.heads, s.valueDim});
  spec.dq = layoutOf(site, 6, "dq", spec.dtype, {s.batch, s.queries, s.heads, s.headDim});
  spec.dk = layoutOf(site, 7, "dk", spec.dtype, {s.batch, s.keys, s.kvHeads, s.headDim});
  spec.dv = layoutOf(site, 8, "dv", spec.dtype, {s.batch, s.keys, s.kvHeads, s.valueDim});
  checkLse(site, 5, s);
  return spec;
}

void hydra::runtime::checkAttentionWorkspace(const CallSite &site, const AttentionGradSpec &spec) {
  const TensorShape workspace = site.tensor(9, "workspace");
  const auto bytes = static_cast<size_t>(workspace.elements()) * support::byteSize(workspace.dtype);
  const size_t wanted = attentionWorkspaceBytes(spec.shape, spec.dtype == DType::F32);
  if (!workspace.isDense() || bytes < wanted)
    site.fail("the workspace has {} bytes; expected {} of them, dense", bytes, wanted);
}

CachedAttentionSpec hydra::runtime::describeCachedAttention(const CallSite &site) {
  site.argumentCount(7, 7);
  const auto &call = site.as<planfile::CachedAttention>();
  const TensorShape q = site.tensor(0, "q", 4), keys = site.tensor(5, "keys", 4),
                    values = site.tensor(6, "values", 4);
  CachedAttentionSpec spec;
  CachedAttentionShape &s = spec.shape;
  s = {q.sizes[0],      q.sizes[1],   keys.sizes[2], q.sizes[2],    keys.sizes[1], q.sizes[3],
       values.sizes[3], call.scale(), call.chunk(),  call.window(), call.cap()};
  checkAttentionShape({s.batch, s.calls, s.slots, s.heads, s.kvHeads, s.headDim, s.valueDim,
                       s.scale,
                       /*causal=*/true, s.chunk, s.window, s.cap});
  if (s.slots < s.calls)
    site.fail("{} slots for the {} tokens of a call; expected at least as many", s.slots, s.calls);
  spec.dtype = ::dtypeOf(site);
  spec.q = layoutOf(site, 0, "q", spec.dtype, {s.batch, s.calls, s.heads, s.headDim});
  spec.k = layoutOf(site, 1, "k", spec.dtype, {s.batch, s.calls, s.kvHeads, s.headDim});
  spec.v = layoutOf(site, 2, "v", spec.dtype, {s.batch, s.calls, s.kvHeads, s.valueDim});
  spec.o = layoutOf(site, 4, "o", spec.dtype, {s.batch, s.calls, s.heads, s.valueDim});
  const auto checkDense = [&](size_t index, std::string_view name, DType dtype,
                              const std::vector<int64_t> &sizes) {
    const TensorShape found = site.tensor(index, name, static_cast<int>(sizes.size()), dtype);
    if (found.sizes != sizes || !found.isDense())
      site.fail("argument {} ({}) has shape {}; expected a dense {}", index, name,
                support::shapeText(found.sizes), support::shapeText(sizes));
  };
  checkDense(3, "position", DType::F32, {s.batch});
  checkDense(5, "keys", spec.dtype, {s.batch, s.kvHeads, s.slots, s.headDim});
  checkDense(6, "values", spec.dtype, {s.batch, s.kvHeads, s.slots, s.valueDim});
  return spec;
}
