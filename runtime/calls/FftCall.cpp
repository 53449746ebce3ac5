// Checks of discrete Fourier transforms.
#include "runtime/calls/FftCall.h"

#include "runtime/support/Safetensors.h"

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

FftSpec hydra::runtime::describeFft(const CallSite &site) {
  site.argumentCount(2, 2);
  const bool inverse = site.as<planfile::Fft>().inverse();
  const TensorShape rows = site.tensor(inverse ? 1 : 0, "rows", -1, DType::F32),
                    spectra = site.tensor(inverse ? 0 : 1, "spectra", -1, DType::F32);
  if (rows.rank() < 1 || rows.sizes.back() < 2 || rows.sizes.back() % 2 != 0 || !rows.isDense())
    site.fail("rows have shape {}; expected a dense [..., n], n even",
              support::shapeText(rows.sizes));
  FftSpec spec;
  spec.length = rows.sizes.back();
  spec.rows = rows.elements() / spec.length;
  spec.inverse = inverse;
  std::vector<int64_t> expected = rows.sizes;
  expected.back() = spec.length / 2 + 1;
  expected.push_back(2);
  if (spectra.sizes != expected || !spectra.isDense())
    site.fail("spectra have shape {}; expected a dense {}", support::shapeText(spectra.sizes),
              support::shapeText(expected));
  return spec;
}
