// Names end in .lora_a and .lora_b; alpha and rank are in the metadata of the file.
#include "frontend/Lora.h"

#include "frontend/Conversion.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace hydra::frontend {

using support::fail;
using support::shapeText;
using support::shown;
using support::TensorPlace;

namespace {

constexpr std::string_view kA = ".lora_a", kB = ".lora_b";

std::vector<double> numbersOf(const support::SafetensorsFile &file, const TensorPlace &tensor) {
  const std::vector<std::byte> bytes = file.read(tensor);
  std::vector<double> numbers(bytes.size() / support::byteSize(tensor.dtype));
  support::toDoubles(tensor.dtype, bytes, numbers);
  return numbers;
}

} // namespace

Adapters::Adapters(const support::SafetensorsFile &file) : file(file) {
  for (const TensorPlace &tensor : file.tensors())
    if (tensor.name.ends_with(kA) &&
        file.find(tensor.name.substr(0, tensor.name.size() - kA.size())))
      ++count;
  if (count == 0)
    return;
  const auto said = file.metadata().find("lora");
  const nlohmann::json scale =
      said == file.metadata().end()
          ? nlohmann::json()
          : nlohmann::json::parse(said->second, nullptr, /*allow_exceptions=*/false);
  const bool isScale = scale.is_object() && !support::hasZeroByte(said->second) &&
                       scale.contains("rank") && scale.contains("alpha") &&
                       scale["rank"].is_number_unsigned() && scale["alpha"].is_number();
  if (!isScale || scale["rank"].get<uint64_t>() == 0 ||
      scale["rank"].get<uint64_t>() > uint64_t{1} << 20 ||
      !std::isfinite(scale["alpha"].get<double>()))
    fail("{}: has adapters, but does not say of which rank and alpha; expected them as lora in its "
         "metadata",
         file.name());
  scaleRank = scale["rank"].get<int64_t>();
  scaleAlpha = scale["alpha"].get<double>();
  for (const TensorPlace &tensor : file.tensors())
    (void)of(tensor.name); // fits
}

std::optional<LowRank> Adapters::of(std::string_view parameter) const {
  const LowRank low{file.find(std::string(parameter) + std::string(kA)),
                    file.find(std::string(parameter) + std::string(kB))};
  const TensorPlace *matrix = file.find(parameter);
  if (!matrix || (!low.a && !low.b))
    return std::nullopt;
  if (!low.a || !low.b)
    fail("{}: tensor '{}{}' is missing beside '{}'", file.name(), shown(parameter), low.a ? kB : kA,
         shown(low.a ? low.a->name : low.b->name));
  const bool isMatrix = matrix->shape.size() == 2 && support::isFloat(matrix->dtype);
  const auto check = [&](const TensorPlace &part, std::vector<int64_t> shape) {
    if (!isMatrix || part.shape != shape || !support::isFloat(part.dtype))
      fail("{}: tensor '{}' is {} {}; expected numbers that adapt '{}' {} by rank {}", file.name(),
           shown(part.name), support::safetensorsName(part.dtype), shown(shapeText(part.shape)),
           shown(parameter), shown(shapeText(matrix->shape)), scaleRank);
  };
  check(*low.a, {scaleRank, isMatrix ? matrix->shape[1] : 0});
  check(*low.b, {isMatrix ? matrix->shape[0] : 0, scaleRank});
  return low;
}

bool Adapters::isPart(std::string_view tensor) const {
  const bool named = tensor.ends_with(kA) || tensor.ends_with(kB);
  return named && of(tensor.substr(0, tensor.size() - kA.size()));
}

std::vector<std::byte> Adapters::merged(const TensorPlace &matrix, support::DType dtype) const {
  const LowRank low = *of(matrix.name);
  const std::vector<double> a = numbersOf(file, *low.a), b = numbersOf(file, *low.b);
  const auto rows = static_cast<size_t>(matrix.shape[0]),
             columns = static_cast<size_t>(matrix.shape[1]), rank = static_cast<size_t>(scaleRank);
  const double scale = scaleAlpha / static_cast<double>(scaleRank);
  const size_t from = support::byteSize(matrix.dtype), to = support::byteSize(dtype);
  std::vector<std::byte> result(rows * columns * to), bytes(columns * from);
  std::vector<double> row(columns), sum(columns);
  for (size_t n = 0; n < rows; ++n) {
    file.read(matrix, n * columns * from, bytes);
    support::toDoubles(matrix.dtype, bytes, row);
    std::ranges::fill(sum, 0.0);
    for (size_t r = 0; r < rank; ++r)
      for (size_t k = 0; k < columns; ++k)
        sum[k] += b[n * rank + r] * a[r * columns + k];
    for (size_t k = 0; k < columns; ++k)
      row[k] += scale * sum[k];
    writeNumbers(dtype, row, std::span(result).subspan(n * columns * to, columns * to),
                 matrix.name);
  }
  return result;
}

} // namespace hydra::frontend
