// The position in row-major order.
#include "runtime/support/PlaceText.h"

#include <fmt/core.h>

namespace hydra::support {

std::string placeText(const std::vector<int64_t> &shape, int64_t index) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    text = fmt::format("{}{}{}", index % shape[d], text.empty() ? "" : ",", text);
    index /= shape[d];
  }
  return text.empty() ? text : "[" + text + "]";
}

} // namespace hydra::support
