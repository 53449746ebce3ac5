// libFuzzer: no bytes whatsoever make the safetensors reader do more than throw a one-line Error,
// and the tensors it accepts lie inside the buffer and convert.
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"

#include <cstdlib>
#include <string_view>

using namespace hydra::support;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::span<const std::byte> buffer = std::as_bytes(std::span(data, size));
  try {
    const Safetensors file = Safetensors::parse(buffer, "input");
    size_t total = 0;
    for (const TensorView &tensor : file.tensors()) {
      std::vector<double> values(tensor.bytes.size() / byteSize(tensor.dtype));
      toDoubles(tensor.dtype, tensor.bytes, values);
      total += tensor.bytes.size();
      if (file.find(tensor.name) != &tensor)
        std::abort();
    }
    if (total > size)
      std::abort();
  } catch (const Error &error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos)
      std::abort();
  }
  return 0;
}
