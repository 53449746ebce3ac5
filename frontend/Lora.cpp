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

/// The matrix of that number of a tensor of `size` numbers each.
std::vector<double> matrixOf(const support::SafetensorsFile &file, const TensorPlace &tensor,
                             uint64_t number, size_t size) {
  std::vector<std::byte> bytes(size * support::byteSize(tensor.dtype));
  file.read(tensor, number * bytes.size(), bytes);
  std::vector<double> numbers(size);
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
  const size_t dimensions = matrix->shape.size();
  const bool hasMatrices = (dimensions == 2 || dimensions == 3) && support::isFloat(matrix->dtype);
  const auto check = [&](const TensorPlace &part, size_t dimension) {
    std::vector<int64_t> shape = matrix->shape;
    if (hasMatrices)
      shape[dimensions - 2 + dimension] = scaleRank;
    if (!hasMatrices || part.shape != shape || !support::isFloat(part.dtype))
      fail("{}: tensor '{}' is {} {}; expected numbers that adapt '{}' {} by rank {}", file.name(),
           shown(part.name), support::safetensorsName(part.dtype), shown(shapeText(part.shape)),
           shown(parameter), shown(shapeText(matrix->shape)), scaleRank);
  };
  check(*low.a, 0);
  check(*low.b, 1);
  return low;
}

bool Adapters::isPart(std::string_view tensor) const {
  const bool named = tensor.ends_with(kA) || tensor.ends_with(kB);
  return named && of(tensor.substr(0, tensor.size() - kA.size()));
}

std::vector<std::byte> Adapters::merged(const TensorPlace &weight, uint64_t number,
                                        support::DType dtype) const {
  const LowRank low = *of(weight.name);
  const auto rows = static_cast<size_t>(weight.shape[weight.shape.size() - 2]),
             columns = static_cast<size_t>(weight.shape.back()),
             rank = static_cast<size_t>(scaleRank);
  const std::vector<double> a = matrixOf(file, *low.a, number, rank * columns),
                            b = matrixOf(file, *low.b, number, rows * rank);
  const double scale = scaleAlpha / static_cast<double>(scaleRank);
  const size_t from = support::byteSize(weight.dtype), to = support::byteSize(dtype);
  std::vector<std::byte> result(rows * columns * to), bytes(columns * from);
  std::vector<double> row(columns), sum(columns);
  for (size_t n = 0; n < rows; ++n) {
    file.read(weight, (number * rows + n) * columns * from, bytes);
    support::toDoubles(weight.dtype, bytes, row);
    std::ranges::fill(sum, 0.0);
    for (size_t r = 0; r < rank; ++r)
      for (size_t k = 0; k < columns; ++k)
        sum[k] += b[n * rank + r] * a[r * columns + k];
    for (size_t k = 0; k < columns; ++k)
      row[k] += scale * sum[k];
    writeNumbers(dtype, row, std::span(result).subspan(n * columns * to, columns * to),
                 weight.name);
  }
  return result;
}

} // namespace hydra::frontend
