// show-tensors: prints what is in safetensors files, one line a tensor, for lit tests.
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"

#include <fmt/core.h>

#include <cmath>

using namespace hydra::support;

namespace {

/// `name type shape`, then the elements of a small tensor, or norm and first element of a large
/// one.
void show(const TensorView &tensor) {
  constexpr size_t small = 32;
  std::vector<double> values(tensor.bytes.size() / byteSize(tensor.dtype));
  toDoubles(tensor.dtype, tensor.bytes, values);
  fmt::print("{} {} {}", tensor.name, safetensorsName(tensor.dtype), shapeText(tensor.shape));
  if (values.size() <= small) {
    for (const double v : values)
      fmt::print(" {:.10f}", v);
  } else {
    double sum = 0.0;
    for (const double v : values)
      sum += v * v;
    fmt::print(" norm {:.8e} first {:.8e}", std::sqrt(sum), values.front());
  }
  fmt::print("\n");
}

} // namespace

int main(int argc, char **argv) {
  try {
    for (int i = 1; i < argc; ++i) {
      const Safetensors file = Safetensors::open(argv[i]);
      for (const TensorView &tensor : file.tensors())
        show(tensor);
    }
    return 0;
  } catch (const Error &error) {
    fmt::print(stderr, "show-tensors: {}\n", error.what());
    return 1;
  }
}
