// Number formats: one table of sizes, names and rounding, and conversion of bytes to and from
// double.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hydra::support {

enum class DType : uint8_t {
  F64,
  F32,
  BF16,
  F16,
  I64,
  I32,
  I16,
  I8,
  U8,
  U16,
  U32,
  Bool,
  E4M3,
  E5M2,
  TF32,
};

/// A row of the table. What else is to be known of a format follows from it.
struct NumberFormat {
  enum class Kind : uint8_t { Float, Signed, Unsigned, Bool };
  /// What becomes of a number beyond the largest one.
  enum class Overflow : uint8_t { None, Infinity, Largest };

  DType dtype;
  Kind kind;
  uint8_t bytes;                ///< of one element in memory and in files
  uint8_t exponent, mantissa;   ///< bits of a float; a sign comes before them
  Overflow overflow;            ///< when a number is rounded to it
  bool stored;                  ///< tensors may hold it; else it is only multiplied in
  std::string_view ir;          ///< `f32`, `bf16`, `i32`, `ui8`, `i1`
  std::string_view safetensors; ///< `F32`, `BF16`, `I32`, `U8`, `BOOL`; empty: no file has it
  std::string_view cuda;        ///< the type in kernels' templates; empty: none
};

const NumberFormat &formatOf(DType dtype);

/// All rows, in the order of the enum.
std::span<const NumberFormat> numberFormats();

/// Bytes of one element in memory and in files (a bool takes one byte).
size_t byteSize(DType dtype);
std::string_view irName(DType dtype);
std::string_view safetensorsName(DType dtype);

/// Neighbours along each dimension of a block of 8-bit numbers that share a scale, and how many
/// blocks there are along a dimension of so many; the last may have fewer.
inline constexpr int64_t kScaleBlock = 128;
constexpr int64_t scaleBlocks(int64_t size) {
  return size / kScaleBlock + (size % kScaleBlock != 0 ? 1 : 0);
}

/// Rows of a matmul up to which executors multiply a weight of i8 as it lies: what a sweep over it
/// keeps in registers. For more it is widened first.
inline constexpr int64_t kMostInt8Rows = 16;

inline bool isFloat(DType dtype) { return formatOf(dtype).kind == NumberFormat::Kind::Float; }
/// Signed or unsigned, and no bool.
bool isInteger(DType dtype);

/// Nothing for a name that no stored format has.
std::optional<DType> dtypeFromSafetensorsName(std::string_view name);

/// Half the distance of 1 to the next number: the largest relative error of rounding a number of
/// the format's normal range to nearest. Of floats.
double roundingUnit(DType dtype);

/// The smallest number above 0: half of it is the largest error of rounding a subnormal one. Of
/// floats.
double smallestNumber(DType dtype);

/// The largest number that is not infinite. Of floats.
double largestNumber(DType dtype);

/// The number of the format nearest to `value`, ties to even: one rounding, subnormals kept. NaN
/// stays NaN. Integers and f64 are left as they are.
double rounded(DType dtype, double value);

/// The 16-bit pattern nearest to `value`, ties to even. One rounding, also from double; a float
/// argument converts exactly. Overflow gives infinity; NaN stays NaN with its sign.
uint16_t bf16FromDouble(double value);
uint16_t f16FromDouble(double value);

/// The number with 10 bits behind the point that is nearest, ties to even; NaN stays NaN.
inline float tf32FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t nearest = (bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t{0x1fff};
  return value == value ? std::bit_cast<float>(nearest) : value;
}

/// The value of a 16-bit pattern, exact.
float bf16ToFloat(uint16_t bits);
float f16ToFloat(uint16_t bits);

/// out[i] = element i of `bytes`, which need not be aligned. Exact except for i64 beyond 2^53; a
/// bool is 0 or 1. Throws Error unless bytes.size() == out.size() * byteSize(dtype).
void toDoubles(DType dtype, std::span<const std::byte> bytes, std::span<double> out);

/// Element i of `bytes` (need not be aligned) = values[i], rounded to nearest even for floating
/// dtypes. Throws Error when the sizes differ, or a value is no number of an integer dtype.
void fromDoubles(DType dtype, std::span<const double> values, std::span<std::byte> bytes);

/// Element i of `out` = element i of `bytes` in another format, as by toDoubles and fromDoubles.
/// Throws Error as they do.
void convert(DType from, std::span<const std::byte> bytes, DType to, std::span<std::byte> out);

/// The first element of `bytes` that is infinite or NaN; nothing for integer dtypes. The size must
/// be a multiple of an element's.
std::optional<size_t> firstNotFinite(DType dtype, std::span<const std::byte> bytes);

} // namespace hydra::support
