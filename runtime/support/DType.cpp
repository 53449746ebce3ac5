// Names, sizes and value conversions of the element types.
#include "runtime/support/DType.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace hydra::support {

static_assert(std::endian::native == std::endian::little, "files and plans are little-endian");

namespace {

struct DTypeRow {
  DType dtype;
  size_t bytes;
  std::string_view ir;
  std::string_view safetensors;
};

constexpr std::array<DTypeRow, 12> kRows = {{
    {DType::F64, 8, "f64", "F64"},
    {DType::F32, 4, "f32", "F32"},
    {DType::BF16, 2, "bf16", "BF16"},
    {DType::F16, 2, "f16", "F16"},
    {DType::I64, 8, "i64", "I64"},
    {DType::I32, 4, "i32", "I32"},
    {DType::I16, 2, "i16", "I16"},
    {DType::I8, 1, "i8", "I8"},
    {DType::U8, 1, "ui8", "U8"},
    {DType::U16, 2, "ui16", "U16"},
    {DType::U32, 4, "ui32", "U32"},
    {DType::Bool, 1, "i1", "BOOL"},
}};

consteval bool rowsFollowTheEnum() {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].dtype != static_cast<DType>(i))
      return false;
  return true;
}
static_assert(rowsFollowTheEnum());

const DTypeRow &row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

std::optional<DType> findByName(std::string_view DTypeRow::*spelling, std::string_view name) {
  for (const DTypeRow &candidate : kRows)
    if (candidate.*spelling == name)
      return candidate.dtype;
  return std::nullopt;
}

/// Rounds a double to a binary format of 1 sign, E exponent and M mantissa bits.
template <int E, int M> uint16_t narrow(double value) {
  static_assert(1 + E + M == 16);
  constexpr int bias = (1 << (E - 1)) - 1;
  constexpr uint16_t infinity = ((1 << E) - 1) << M;
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 63 << 15);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (std::isnan(value)) // quiet, with the upper payload bits
    return static_cast<uint16_t>(sign | infinity | 1 << (M - 1) | fraction >> (52 - M));
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent > bias)
    return sign | infinity;
  // The low `dropped` bits of the 53-bit significand fall away; below the normal range of the
  // target, one more for each lost power of two.
  const int belowNormal = std::max(0, 1 - bias - exponent);
  const int dropped = 52 - M + belowNormal;
  if (dropped > 53) // less than half the smallest subnormal; also zero and double's subnormals
    return sign;
  const uint64_t significand = fraction | uint64_t{1} << 52;
  const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1);
  const uint64_t half = uint64_t{1} << (dropped - 1);
  uint64_t kept = significand >> dropped;
  kept += rest > half || (rest == half && (kept & 1));
  // `kept` holds the implicit bit, so adding it raises the exponent field to its value, and a
  // carry out of the mantissa raises it once more (up to infinity).
  const uint64_t exponentField = belowNormal ? 0 : exponent + bias - 1;
  return static_cast<uint16_t>(sign | ((exponentField << M) + kept));
}

/// Calls `visit` with a value of the element type that holds `dtype` in memory (uint16_t for the
/// two 16-bit floats).
template <typename Visitor> void withStorageType(DType dtype, Visitor visit) {
  switch (dtype) {
  case DType::F64:
    return visit(double{});
  case DType::F32:
    return visit(float{});
  case DType::BF16:
  case DType::F16:
  case DType::U16:
    return visit(uint16_t{});
  case DType::I64:
    return visit(int64_t{});
  case DType::I32:
    return visit(int32_t{});
  case DType::I16:
    return visit(int16_t{});
  case DType::I8:
    return visit(int8_t{});
  case DType::U8:
    return visit(uint8_t{});
  case DType::U32:
    return visit(uint32_t{});
  case DType::Bool:
    return visit(bool{});
  }
}

void checkSizes(DType dtype, size_t bytes, size_t elements) {
  if (bytes % byteSize(dtype) != 0 || bytes / byteSize(dtype) != elements)
    fail("{} bytes of {}; expected {} elements of {} bytes", bytes, irName(dtype), elements,
         byteSize(dtype));
}

/// True when `value` is one of the integers of T. The bounds are powers of two, hence exact.
template <typename T> bool isIntegerOf(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value == 0.0 || value == 1.0;
  } else {
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double low = std::is_signed_v<T> ? -limit : 0.0;
    return value >= low && value < limit && value == std::trunc(value);
  }
}

/// The first element all of whose exponent's bits are set. Blocks are looked through without
/// branches, so that a vector goes at once.
template <typename Bits>
std::optional<size_t> firstWithBits(Bits exponent, std::span<const std::byte> bytes) {
  constexpr size_t block = 4096;
  const size_t count = bytes.size() / sizeof(Bits);
  const auto isSpecial = [&](size_t i) {
    Bits element;
    std::memcpy(&element, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    return (element & exponent) == exponent;
  };
  for (size_t begin = 0; begin < count; begin += block) {
    const size_t end = std::min(begin + block, count);
    bool any = false;
    for (size_t i = begin; i < end; ++i)
      any |= isSpecial(i);
    for (size_t i = begin; any && i < end; ++i)
      if (isSpecial(i))
        return i;
  }
  return std::nullopt;
}

} // namespace

size_t byteSize(DType dtype) { return row(dtype).bytes; }
std::string_view irName(DType dtype) { return row(dtype).ir; }
std::string_view safetensorsName(DType dtype) { return row(dtype).safetensors; }

std::optional<DType> dtypeFromIRName(std::string_view name) {
  return findByName(&DTypeRow::ir, name);
}

std::optional<DType> dtypeFromSafetensorsName(std::string_view name) {
  return findByName(&DTypeRow::safetensors, name);
}

uint16_t bf16FromDouble(double value) { return narrow<8, 7>(value); }
uint16_t f16FromDouble(double value) { return narrow<5, 10>(value); }

float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float f16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t exponent = bits >> 10 & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) { // zero and subnormals: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t field = exponent == 31 ? 255 : exponent + 127 - 15;
  return std::bit_cast<float>(sign | field << 23 | mantissa << 13);
}

void toDoubles(DType dtype, std::span<const std::byte> bytes, std::span<double> out) {
  checkSizes(dtype, bytes.size(), out.size());
  withStorageType(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        out[i] = bytes[i] != std::byte{0};
      } else {
        T element;
        std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
        out[i] = dtype == DType::BF16  ? bf16ToFloat(element)
                 : dtype == DType::F16 ? f16ToFloat(element)
                                       : static_cast<double>(element);
      }
    }
  });
}

void fromDoubles(DType dtype, std::span<const double> values, std::span<std::byte> bytes) {
  checkSizes(dtype, bytes.size(), values.size());
  withStorageType(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < values.size(); ++i) {
      T element;
      if (dtype == DType::BF16) {
        element = bf16FromDouble(values[i]);
      } else if (dtype == DType::F16) {
        element = f16FromDouble(values[i]);
      } else {
        if (!std::is_floating_point_v<T> && !isIntegerOf<T>(values[i]))
          fail("element {} is {}; expected a number of type {}", i, values[i], irName(dtype));
        element = static_cast<T>(values[i]);
      }
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
}

std::optional<size_t> firstNotFinite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
  case DType::F64:
    return firstWithBits<uint64_t>(0x7ff0'0000'0000'0000, bytes);
  case DType::F32:
    return firstWithBits<uint32_t>(0x7f80'0000, bytes);
  case DType::BF16:
    return firstWithBits<uint16_t>(0x7f80, bytes);
  case DType::F16:
    return firstWithBits<uint16_t>(0x7c00, bytes);
  default:
    return std::nullopt;
  }
}

} // namespace hydra::support
