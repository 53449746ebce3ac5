// Element types of tensors: sizes, names, and conversion of their bytes to and from double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hydra::support {

enum class DType : uint8_t { F64, F32, BF16, F16, I64, I32, I16, I8, U8, U16, U32, Bool };

/// Bytes of one element in memory and in files (a bool takes one byte).
size_t byteSize(DType dtype);

/// The MLIR spelling: `f32`, `bf16`, `i32`, `ui8`, `i1`.
std::string_view irName(DType dtype);

/// The safetensors spelling: `F32`, `BF16`, `I32`, `U8`, `BOOL`.
std::string_view safetensorsName(DType dtype);

/// Inverses of the two above; nothing for a name that no DType has.
std::optional<DType> dtypeFromIRName(std::string_view name);
std::optional<DType> dtypeFromSafetensorsName(std::string_view name);

/// The 16-bit pattern nearest to `value`, ties to even. One rounding, also from double; a float
/// argument converts exactly. Overflow gives infinity; NaN stays NaN with its sign.
uint16_t bf16FromDouble(double value);
uint16_t f16FromDouble(double value);

/// The value of a 16-bit pattern, exact.
float bf16ToFloat(uint16_t bits);
float f16ToFloat(uint16_t bits);

/// out[i] = element i of `bytes`, which need not be aligned. Exact except for i64 beyond 2^53; a
/// bool is 0 or 1. Throws Error unless bytes.size() == out.size() * byteSize(dtype).
void toDoubles(DType dtype, std::span<const std::byte> bytes, std::span<double> out);

/// Element i of `bytes` (need not be aligned) = values[i], rounded to nearest even for floating
/// dtypes. Throws Error when the sizes differ, or a value is no number of an integer dtype.
void fromDoubles(DType dtype, std::span<const double> values, std::span<std::byte> bytes);

/// The first element of `bytes` that is infinite or NaN; nothing for integer dtypes. The size must
/// be a multiple of an element's.
std::optional<size_t> firstNotFinite(DType dtype, std::span<const std::byte> bytes);

} // namespace hydra::support
