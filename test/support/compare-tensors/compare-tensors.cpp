// compare-tensors OUT REF LIMIT [BUT]...: fails unless OUT and REF have the same tensors and their
// relative L2 distance is at most LIMIT (for a scalar: LIMIT relative to 1 or its size, whichever
// is larger). Tensors BUT are not looked at.
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace hydra::support;

namespace {

std::vector<double> valuesOf(const TensorView &tensor) {
  std::vector<double> values(tensor.bytes.size() / byteSize(tensor.dtype));
  toDoubles(tensor.dtype, tensor.bytes, values);
  return values;
}

/// Relative distance of two tensors of one shape.
double distance(const TensorView &out, const TensorView &reference) {
  if (out.shape != reference.shape)
    fail("{}: shape {}; expected {}", out.name, shapeText(out.shape), shapeText(reference.shape));
  const std::vector<double> a = valuesOf(out), b = valuesOf(reference);
  double difference = 0.0, size = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  if (a.size() == 1)
    size = std::max(size, 1.0);
  return difference == 0.0 ? 0.0 : std::sqrt(difference / size);
}

} // namespace

int main(int argc, char **argv) {
  try {
    if (argc < 4)
      fail("usage: compare-tensors OUT REF LIMIT [BUT]...");
    const auto ignored = [&](const std::string &name) {
      return std::find(argv + 4, argv + argc, name) != argv + argc;
    };
    const Safetensors out = Safetensors::open(argv[1]), reference = Safetensors::open(argv[2]);
    const double limit = std::strtod(argv[3], nullptr);
    for (const TensorView &tensor : out.tensors())
      if (ignored(tensor.name))
        continue;
      else if (const double d = distance(tensor, reference.get(tensor.name)); !(d <= limit))
        fail("{}: relative distance {:.2e}; expected at most {:.2e}", tensor.name, d, limit);
    for (const TensorView &tensor : reference.tensors())
      if (!ignored(tensor.name))
        out.get(tensor.name);
    fmt::print("{} tensors within {:.1e}\n", out.tensors().size(), limit);
    return out.tensors().empty();
  } catch (const Error &error) {
    fmt::print(stderr, "compare-tensors: {}\n", error.what());
    return 1;
  }
}
