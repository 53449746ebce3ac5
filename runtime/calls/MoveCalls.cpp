// Checks of the calls that move elements.
#include "runtime/calls/MoveCalls.h"

#include "runtime/support/Safetensors.h"

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

CopySpec hydra::runtime::describeCopy(const CallSite &site) {
  site.argumentCount(2, 2);
  CopySpec spec{site.tensor(0, "source"), site.tensor(1, "target")};
  if (spec.source.sizes != spec.target.sizes || spec.source.dtype != spec.target.dtype)
    site.fail("source {} of {}, target {} of {}; expected the same",
              support::shapeText(spec.source.sizes), support::irName(spec.source.dtype),
              support::shapeText(spec.target.sizes), support::irName(spec.target.dtype));
  return spec;
}

TransferSpec hydra::runtime::describeTransfer(const CallSite &site) {
  site.argumentCount(2, 2);
  const TensorShape from = site.tensor(0, "from"), to = site.tensor(1, "to");
  if (from.sizes != to.sizes || from.dtype != to.dtype || !from.isDense() || !to.isDense())
    site.fail("from is {} {}, to {} {}; expected both dense and the same",
              support::irName(from.dtype), support::shapeText(from.sizes),
              support::irName(to.dtype), support::shapeText(to.sizes));
  return {static_cast<uint64_t>(from.elements()) * support::byteSize(from.dtype),
          site.segment(1) == planfile::SegmentKind::host};
}

FillSpec hydra::runtime::describeFill(const CallSite &site) {
  site.argumentCount(1, 1);
  return {site.tensor(0, "target"), site.as<planfile::Fill>().value()};
}

EmbeddingGradSpec hydra::runtime::describeEmbeddingGrad(const CallSite &site) {
  site.argumentCount(3, 3);
  const TensorShape tokens = site.tensor(0, "tokens");
  const TensorShape dx = site.tensor(1, "dx", static_cast<int>(tokens.rank()) + 1, DType::F32);
  const TensorShape grad = site.tensor(2, "grad", 2, DType::F32);
  if (tokens.dtype != DType::I32 && tokens.dtype != DType::I64)
    site.fail("tokens are {}; expected i32 or i64", support::irName(tokens.dtype));
  std::vector<int64_t> expected = tokens.sizes;
  expected.push_back(grad.sizes[1]);
  if (dx.sizes != expected)
    site.fail("dx has shape {}; expected {}", support::shapeText(dx.sizes),
              support::shapeText(expected));
  if (!tokens.isDense() || !grad.isDense())
    site.fail("tokens and grad must be dense");
  EmbeddingGradSpec spec{tokens.elements(), grad.sizes[0], grad.sizes[1], grad.sizes[1],
                         tokens.dtype == DType::I64};
  int64_t merged = 1;
  for (size_t d = tokens.rank(); d-- > 0;) {
    if (dx.sizes[d] == 1)
      continue;
    if (merged == 1)
      spec.gradientStride = dx.strides[d];
    else if (dx.strides[d] != merged * spec.gradientStride)
      merged = 0;
    merged *= dx.sizes[d];
  }
  if (merged == 0 || (dx.strides.back() != 1 && dx.sizes.back() != 1))
    site.fail("dx has strides {}; expected rows of dense numbers at one distance",
              support::shapeText(dx.strides));
  return spec;
}

CompactSpec hydra::runtime::describeCompact(const CallSite &site) {
  site.argumentCount(4, 4);
  const TensorShape mask = site.tensor(0, "mask", 1, DType::Bool);
  for (const size_t i : {1, 2}) {
    const TensorShape numbers = site.tensor(i, i == 1 ? "index" : "place", 1, DType::I32);
    if (numbers.sizes != mask.sizes || !numbers.isDense() || !mask.isDense())
      site.fail("argument {} has shape {}; expected a dense {}", i,
                support::shapeText(numbers.sizes), support::shapeText(mask.sizes));
  }
  site.tensor(3, "count", 0, DType::I32);
  return {mask.sizes[0]};
}
