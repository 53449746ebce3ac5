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

using Kind = NumberFormat::Kind;
using Overflow = NumberFormat::Overflow;

// e4m3 has no infinities and one NaN. Kernels convert to both 8-bit formats with saturation.
constexpr std::array kFormats = {
    NumberFormat{DType::F64, Kind::Float, 8, 11, 52, Overflow::Infinity, true, "f64", "F64", ""},
    NumberFormat{DType::F32, Kind::Float, 4, 8, 23, Overflow::Infinity, true, "f32", "F32",
                 "float"},
    NumberFormat{DType::BF16, Kind::Float, 2, 8, 7, Overflow::Infinity, true, "bf16", "BF16",
                 "bf16"},
    NumberFormat{DType::F16, Kind::Float, 2, 5, 10, Overflow::Infinity, true, "f16", "F16", "f16"},
    NumberFormat{DType::I64, Kind::Signed, 8, 0, 0, Overflow::None, true, "i64", "I64", ""},
    NumberFormat{DType::I32, Kind::Signed, 4, 0, 0, Overflow::None, true, "i32", "I32", "int"},
    NumberFormat{DType::I16, Kind::Signed, 2, 0, 0, Overflow::None, true, "i16", "I16", "int16"},
    NumberFormat{DType::I8, Kind::Signed, 1, 0, 0, Overflow::None, true, "i8", "I8", "int8"},
    NumberFormat{DType::U8, Kind::Unsigned, 1, 0, 0, Overflow::None, true, "ui8", "U8", ""},
    NumberFormat{DType::U16, Kind::Unsigned, 2, 0, 0, Overflow::None, true, "ui16", "U16", ""},
    NumberFormat{DType::U32, Kind::Unsigned, 4, 0, 0, Overflow::None, true, "ui32", "U32", ""},
    NumberFormat{DType::Bool, Kind::Bool, 1, 0, 0, Overflow::None, true, "i1", "BOOL",
                 "unsigned char"},
    NumberFormat{DType::E4M3, Kind::Float, 1, 4, 3, Overflow::Largest, true, "f8E4M3FN", "F8_E4M3",
                 "e4m3"},
    NumberFormat{DType::E5M2, Kind::Float, 1, 5, 2, Overflow::Largest, true, "f8E5M2", "F8_E5M2",
                 "e5m2"},
    NumberFormat{DType::TF32, Kind::Float, 4, 8, 10, Overflow::Infinity, false, "tf32", "", ""},
};

consteval bool rowsFollowTheEnum() {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (kFormats[i].dtype != static_cast<DType>(i))
      return false;
  return true;
}
static_assert(rowsFollowTheEnum());

/// Whether the patterns with the largest exponent are numbers, but for one NaN.
constexpr bool endsInNumbers(const NumberFormat &format) { return format.dtype == DType::E4M3; }

/// The pattern of the number of a format of at most 32 bits that is nearest to a double.
constexpr uint32_t encode(const NumberFormat &format, double value) {
  const int E = format.exponent, M = format.mantissa, bias = (1 << (E - 1)) - 1;
  const uint32_t top = ((uint32_t{1} << E) - 1) << M; // infinity, where the format has one
  const uint32_t largest = endsInNumbers(format) ? top + (1 << M) - 2 : top - 1;
  const uint32_t beyond = format.overflow == Overflow::Largest ? largest : top;
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (E + M);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (value != value) { // quiet, with the upper payload bits
    if (endsInNumbers(format))
      return sign | (top + (1 << M) - 1);
    return static_cast<uint32_t>(sign | top | 1 << (M - 1) | fraction >> (52 - M));
  }
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent > bias + 1)
    return sign | beyond;
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
  // carry out of the mantissa raises it once more.
  const uint64_t exponentField = belowNormal ? 0 : exponent + bias - 1;
  const auto pattern = static_cast<uint32_t>((exponentField << M) + kept);
  return sign | (pattern > largest ? beyond : pattern);
}

/// The value of a pattern, exact.
double decode(const NumberFormat &format, uint32_t pattern) {
  const int E = format.exponent, M = format.mantissa, bias = (1 << (E - 1)) - 1;
  const uint32_t mantissa = pattern & ((1u << M) - 1), field = pattern >> M & ((1u << E) - 1);
  const double sign = pattern >> (E + M) & 1 ? -1.0 : 1.0;
  const bool last = field == (1u << E) - 1;
  if (endsInNumbers(format) ? last && mantissa == (1u << M) - 1 : last && mantissa != 0)
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (last && !endsInNumbers(format))
    return sign * std::numeric_limits<double>::infinity();
  return field == 0 ? sign * std::ldexp(mantissa, 1 - bias - M)
                    : sign * std::ldexp(mantissa + (1u << M), static_cast<int>(field) - bias - M);
}

/// Calls `visit` with a value of the element type that holds `dtype` in memory (an unsigned integer
/// for floats that C++ has not).
template <typename Visitor> void withStorageType(DType dtype, Visitor visit) {
  switch (dtype) {
  case DType::F64:
    return visit(double{});
  case DType::F32:
  case DType::TF32:
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
  case DType::E4M3:
  case DType::E5M2:
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

/// Floats to the bf16 numbers nearest to them, which have their upper bits: without branches, so
/// that a vector goes at once. Every variable that kernels read rounded goes this way.
void roundToBf16(std::span<const std::byte> floats, std::span<std::byte> out) {
  const size_t count = out.size() / sizeof(uint16_t);
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, floats.data() + i * sizeof bits, sizeof bits);
    const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16; // ties to even
    const uint32_t quiet = bits >> 16 | 0x40;
    const auto pattern =
        static_cast<uint16_t>((bits & 0x7fff'ffff) > 0x7f80'0000 ? quiet : nearest);
    std::memcpy(out.data() + i * sizeof pattern, &pattern, sizeof pattern);
  }
}

} // namespace

const NumberFormat &formatOf(DType dtype) { return kFormats[static_cast<size_t>(dtype)]; }
std::span<const NumberFormat> numberFormats() { return kFormats; }
size_t byteSize(DType dtype) { return formatOf(dtype).bytes; }
std::string_view irName(DType dtype) { return formatOf(dtype).ir; }
std::string_view safetensorsName(DType dtype) { return formatOf(dtype).safetensors; }

bool isInteger(DType dtype) {
  const Kind kind = formatOf(dtype).kind;
  return kind == Kind::Signed || kind == Kind::Unsigned;
}

std::optional<DType> dtypeFromSafetensorsName(std::string_view name) {
  for (const NumberFormat &format : kFormats)
    if (format.stored && format.safetensors == name)
      return format.dtype;
  return std::nullopt;
}

double roundingUnit(DType dtype) { return std::ldexp(1.0, -1 - formatOf(dtype).mantissa); }

double smallestNumber(DType dtype) {
  const NumberFormat &format = formatOf(dtype);
  return std::ldexp(1.0, 2 - (1 << (format.exponent - 1)) - format.mantissa);
}

double largestNumber(DType dtype) {
  const NumberFormat &format = formatOf(dtype);
  const int last = (1 << (format.exponent - 1)) - 1; // the largest exponent below infinity's
  return endsInNumbers(format) ? std::ldexp(2.0 - std::ldexp(1.0, 1 - format.mantissa), last + 1)
                               : std::ldexp(2.0 - std::ldexp(1.0, -format.mantissa), last);
}

double rounded(DType dtype, double value) {
  const NumberFormat &format = formatOf(dtype);
  if (format.kind != Kind::Float || dtype == DType::F64)
    return value;
  if (dtype == DType::F32)
    return static_cast<float>(value);
  return decode(format, encode(format, value));
}

uint16_t bf16FromDouble(double value) {
  constexpr NumberFormat format = kFormats[static_cast<size_t>(DType::BF16)];
  return static_cast<uint16_t>(encode(format, value));
}
uint16_t f16FromDouble(double value) {
  constexpr NumberFormat format = kFormats[static_cast<size_t>(DType::F16)];
  return static_cast<uint16_t>(encode(format, value));
}

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
        if constexpr (std::is_unsigned_v<T>)
          out[i] = dtype == DType::BF16  ? bf16ToFloat(element)
                   : dtype == DType::F16 ? f16ToFloat(element)
                   : isFloat(dtype)      ? decode(formatOf(dtype), element)
                                         : static_cast<double>(element);
        else
          out[i] = static_cast<double>(element);
      }
    }
  });
}

void fromDoubles(DType dtype, std::span<const double> values, std::span<std::byte> bytes) {
  checkSizes(dtype, bytes.size(), values.size());
  withStorageType(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < values.size(); ++i) {
      T element;
      if (std::is_unsigned_v<T> && isFloat(dtype)) {
        element = static_cast<T>(encode(formatOf(dtype), values[i]));
      } else {
        if (!std::is_floating_point_v<T> && !isIntegerOf<T>(values[i]))
          fail("element {} is {}; expected a number of type {}", i, values[i], irName(dtype));
        element = static_cast<T>(values[i]);
      }
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
}

void convert(DType from, std::span<const std::byte> bytes, DType to, std::span<std::byte> out) {
  const size_t fromSize = byteSize(from), toSize = byteSize(to);
  const size_t elements = out.size() / toSize;
  checkSizes(from, bytes.size(), elements);
  checkSizes(to, out.size(), elements);
  if (from == DType::F32 && to == DType::BF16)
    return roundToBf16(bytes, out);
  constexpr size_t chunk = 1024;
  std::array<double, chunk> doubles;
  for (size_t i = 0; i < elements; i += chunk) {
    const std::span<double> part = std::span(doubles).first(std::min(chunk, elements - i));
    toDoubles(from, bytes.subspan(i * fromSize, part.size() * fromSize), part);
    fromDoubles(to, part, out.subspan(i * toSize, part.size() * toSize));
  }
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
  case DType::E4M3:
    return firstWithBits<uint8_t>(0x7f, bytes);
  case DType::E5M2:
    return firstWithBits<uint8_t>(0x7c, bytes);
  case DType::TF32:
    return firstNotFinite(DType::F32, bytes);
  case DType::I64:
  case DType::I32:
  case DType::I16:
  case DType::I8:
  case DType::U8:
  case DType::U16:
  case DType::U32:
  case DType::Bool:
    return std::nullopt;
  }
  return std::nullopt;
}

} // namespace hydra::support
