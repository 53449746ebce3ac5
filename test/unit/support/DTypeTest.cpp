// Element types: names, sizes, rounding of the 16-bit floats, conversion of bytes.
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <vector>

using namespace hydra::support;

namespace {

constexpr DType kAll[] = {DType::F64, DType::F32,  DType::BF16, DType::F16, DType::I64,
                          DType::I32, DType::I16,  DType::I8,   DType::U8,  DType::U16,
                          DType::U32, DType::Bool, DType::E4M3, DType::E5M2};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Format {
  uint16_t (*fromDouble)(double);
  float (*toFloat)(uint16_t);
  uint16_t infinity;
};
constexpr Format kBF16 = {bf16FromDouble, bf16ToFloat, 0x7f80};
constexpr Format kF16 = {f16FromDouble, f16ToFloat, 0x7c00};

/// Nearest pattern by search among the ordered non-negative values, ties to the even pattern.
/// Infinity counts as the number that would follow the largest finite one.
uint16_t nearestBySearch(const Format &format, double value) {
  const double magnitude = std::abs(value);
  auto valueOf = [&](uint32_t bits) -> double {
    if (bits < format.infinity)
      return format.toFloat(bits);
    const double largest = format.toFloat(format.infinity - 1);
    return 2 * largest - format.toFloat(format.infinity - 2);
  };
  uint32_t low = 0, high = format.infinity;
  if (magnitude >= valueOf(high))
    low = high;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (valueOf(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - valueOf(low), above = valueOf(high) - magnitude;
  const uint32_t nearest = below < above ? low : above < below ? high : low % 2 == 0 ? low : high;
  return static_cast<uint16_t>(nearest | (std::signbit(value) ? 0x8000 : 0));
}

class HalfFormats : public testing::TestWithParam<Format> {};

} // namespace

INSTANTIATE_TEST_SUITE_P(DType, HalfFormats, testing::Values(kBF16, kF16));

TEST_P(HalfFormats, EveryPatternRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = GetParam().toFloat(bits);
    if ((bits & 0x7fff) > GetParam().infinity) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      const uint16_t back = GetParam().fromDouble(value);
      ASSERT_GT(back & 0x7fff, GetParam().infinity) << bits;
      ASSERT_EQ(back & 0x8000, bits & 0x8000) << bits;
    } else {
      ASSERT_EQ(GetParam().fromDouble(value), bits);
    }
  }
}

TEST_P(HalfFormats, RoundsToNearestEven) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  for (int i = 0; i < 200'000; ++i) { // all exponents that matter, and far beyond
    const double value = std::ldexp(std::uniform_real_distribution<>(-1, 1)(random),
                                    std::uniform_int_distribution<>(-150, 140)(random));
    ASSERT_EQ(GetParam().fromDouble(value), nearestBySearch(GetParam(), value)) << value;
  }
  for (uint32_t bits = 0; bits + 1 < GetParam().infinity; ++bits) { // ties and their neighbours
    const double tie = (static_cast<double>(GetParam().toFloat(bits)) +
                        static_cast<double>(GetParam().toFloat(bits + 1))) /
                       2;
    ASSERT_EQ(GetParam().fromDouble(tie), bits + bits % 2);
    ASSERT_EQ(GetParam().fromDouble(std::nextafter(tie, 0.0)), bits);
    ASSERT_EQ(GetParam().fromDouble(std::nextafter(tie, kInfinity)), bits + 1);
    ASSERT_EQ(GetParam().fromDouble(-tie), 0x8000 | (bits + bits % 2));
  }
}

TEST_P(HalfFormats, EndsOfTheRange) {
  EXPECT_EQ(GetParam().fromDouble(kInfinity), GetParam().infinity);
  EXPECT_EQ(GetParam().fromDouble(-kInfinity), 0x8000 | GetParam().infinity);
  EXPECT_EQ(GetParam().fromDouble(1e300), GetParam().infinity);
  EXPECT_EQ(GetParam().fromDouble(-0.0), 0x8000);
  EXPECT_EQ(GetParam().fromDouble(5e-324), 0);
  EXPECT_GT(GetParam().fromDouble(std::nan("")) & 0x7fff, GetParam().infinity);
}

TEST(DType, KnownHalfValues) {
  EXPECT_EQ(bf16FromDouble(1.0), 0x3f80);
  EXPECT_EQ(f16FromDouble(1.0), 0x3c00);
  EXPECT_EQ(f16FromDouble(65504.0), 0x7bff);
  EXPECT_EQ(f16FromDouble(65520.0), 0x7c00);
  EXPECT_EQ(f16FromDouble(0x1p-24), 1);
  EXPECT_EQ(f16FromDouble(0x1p-25), 0);
  EXPECT_EQ(bf16ToFloat(0xc049), -3.140625f);
  // Just above a tie in double, exactly the tie in float: rounding twice would go to even.
  EXPECT_EQ(bf16FromDouble(1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
}

/// All values of a format of one byte, by `toDoubles`.
std::vector<double> valuesOf(DType dtype) {
  std::vector<std::byte> patterns(256);
  for (size_t i = 0; i < patterns.size(); ++i)
    patterns[i] = static_cast<std::byte>(i);
  std::vector<double> values(patterns.size());
  toDoubles(dtype, patterns, values);
  return values;
}

TEST(DType, EightBitsRoundToTheNearestAndSaturate) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  for (const DType dtype : {DType::E4M3, DType::E5M2}) {
    const std::vector<double> all = valuesOf(dtype);
    double largest = 0.0;
    for (const double v : all)
      if (std::isfinite(v)) {
        EXPECT_EQ(rounded(dtype, v), v);
        largest = std::max(largest, v);
      }
    EXPECT_EQ(largest, dtype == DType::E4M3 ? 448.0 : 57344.0);
    EXPECT_EQ(largest, largestNumber(dtype));
    EXPECT_EQ(rounded(dtype, kInfinity), largest);
    EXPECT_EQ(rounded(dtype, -1e300), -largest);
    EXPECT_TRUE(std::isnan(rounded(dtype, std::nan(""))));
    for (int i = 0; i < 20'000; ++i) {
      const double value = std::ldexp(std::uniform_real_distribution<>(-1, 1)(random),
                                      std::uniform_int_distribution<>(-20, 17)(random));
      double least = kInfinity;
      for (const double v : all)
        if (std::isfinite(v))
          least = std::min(least, std::abs(v - value));
      ASSERT_EQ(std::abs(rounded(dtype, value) - value), least) << value;
    }
  }
  EXPECT_EQ(rounded(DType::E4M3, 17.0), 16.0); // ties to even
  EXPECT_EQ(rounded(DType::E4M3, 19.0), 20.0);
  EXPECT_EQ(smallestNumber(DType::E4M3), 0x1p-9);
  EXPECT_EQ(smallestNumber(DType::F16), 0x1p-24);
  EXPECT_EQ(largestNumber(DType::F16), 65504.0);
  EXPECT_EQ(largestNumber(DType::F32), 3.4028234663852886e38);
  EXPECT_EQ(roundingUnit(DType::E5M2), 0x1p-3);
}

TEST(DType, TF32IsF32WithTenBits) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  for (int i = 0; i < 100'000; ++i) {
    const auto value =
        static_cast<float>(std::ldexp(std::uniform_real_distribution<>(-1, 1)(random),
                                      std::uniform_int_distribution<>(-120, 127)(random)));
    ASSERT_EQ(tf32FromFloat(value), rounded(DType::TF32, value)) << value;
    ASSERT_LE(std::abs(tf32FromFloat(value) - value),
              std::max(roundingUnit(DType::TF32) * std::abs(value), smallestNumber(DType::TF32)));
  }
  EXPECT_EQ(tf32FromFloat(1.0f + 0x1p-11f), 1.0f);
  EXPECT_EQ(tf32FromFloat(1.0f + 0x3p-11f), 1.0f + 0x1p-9f);
  EXPECT_TRUE(std::isnan(tf32FromFloat(std::nanf(""))));
  EXPECT_FALSE(dtypeFromSafetensorsName(safetensorsName(DType::TF32))); // no tensor holds it
}

TEST(DType, NamesAndSizes) {
  std::set<std::string_view> names;
  for (const DType dtype : kAll) {
    EXPECT_TRUE(names.insert(irName(dtype)).second) << irName(dtype);
    EXPECT_EQ(dtypeFromSafetensorsName(safetensorsName(dtype)), dtype);
  }
  EXPECT_EQ(irName(DType::F32), "f32");
  EXPECT_EQ(irName(DType::Bool), "i1");
  EXPECT_EQ(safetensorsName(DType::Bool), "BOOL");
  EXPECT_EQ(byteSize(DType::F64), 8u);
  EXPECT_EQ(byteSize(DType::BF16), 2u);
  EXPECT_EQ(byteSize(DType::Bool), 1u);
  EXPECT_FALSE(dtypeFromSafetensorsName("f32"));
  EXPECT_FALSE(dtypeFromSafetensorsName(""));
}

TEST(DType, DoublesRoundTripThroughUnalignedBytes) {
  const std::vector<double> values = {0, 1, 1, 0, 1};
  for (const DType dtype : kAll) {
    std::vector<std::byte> buffer(values.size() * byteSize(dtype) + 1);
    const auto bytes = std::span(buffer).subspan(1);
    fromDoubles(dtype, values, bytes);
    std::vector<double> back(values.size());
    toDoubles(dtype, bytes, back);
    EXPECT_EQ(back, values) << irName(dtype);
  }
}

// Patterns of all kinds: NaNs of any payload, infinities, subnormals, ties and what overflows.
TEST(DType, ConvertHasTheBitsOfTheWayOverDoubles) {
  std::vector<uint32_t> patterns = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7f800001,
                                    0xffffffff, 0x7fc12345, 0x7f7fffff, 0x7f7f8000, 0x7f7f7fff,
                                    0x3f808000, 0x3f818000, 0x3f808001, 1,          0x80008000};
  std::mt19937 random(1);
  while (patterns.size() < 5000)
    patterns.push_back(static_cast<uint32_t>(random()));
  const auto floats = std::as_bytes(std::span(patterns));
  std::vector<double> doubles(patterns.size());
  toDoubles(DType::F32, floats, doubles);
  for (const DType to : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::E4M3}) {
    std::vector<std::byte> expected(patterns.size() * byteSize(to)), found(expected.size() + 1);
    fromDoubles(to, doubles, expected);
    const auto unaligned = std::span(found).subspan(1);
    convert(DType::F32, floats, to, unaligned);
    EXPECT_TRUE(std::ranges::equal(unaligned, expected)) << irName(to);
  }
  std::vector<std::byte> few(6);
  EXPECT_THROW(convert(DType::F32, floats, DType::BF16, few), Error);
}

TEST(DType, IntegerBounds) {
  auto stores = [](DType dtype, double value) {
    std::vector<std::byte> bytes(byteSize(dtype));
    try {
      fromDoubles(dtype, std::span(&value, 1), bytes);
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(irName(dtype)), std::string::npos);
      return false;
    }
    double back = 0.0;
    toDoubles(dtype, bytes, std::span(&back, 1));
    EXPECT_EQ(back, value);
    return true;
  };
  EXPECT_TRUE(stores(DType::I8, -128));
  EXPECT_FALSE(stores(DType::I8, -129));
  EXPECT_FALSE(stores(DType::I8, 128));
  EXPECT_TRUE(stores(DType::U8, 255));
  EXPECT_FALSE(stores(DType::U8, -1));
  EXPECT_TRUE(stores(DType::I16, -32768));
  EXPECT_TRUE(stores(DType::U16, 65535));
  EXPECT_TRUE(stores(DType::U32, 4294967295.0));
  EXPECT_FALSE(stores(DType::U32, 4294967296.0));
  EXPECT_TRUE(stores(DType::I32, -100));
  EXPECT_FALSE(stores(DType::I32, 0.5));
  EXPECT_TRUE(stores(DType::I64, -0x1p63));
  EXPECT_FALSE(stores(DType::I64, 0x1p63));
  EXPECT_FALSE(stores(DType::I64, std::nan("")));
  EXPECT_FALSE(stores(DType::I32, kInfinity));
  EXPECT_FALSE(stores(DType::Bool, 2));
}

TEST(DType, SizesMustAgree) {
  std::vector<std::byte> bytes(7);
  std::vector<double> values(2);
  EXPECT_THROW(toDoubles(DType::F32, bytes, values), Error);
  EXPECT_THROW(fromDoubles(DType::U8, values, bytes), Error);
}

TEST(DType, TheFirstElementThatIsNotFinite) {
  for (const DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16})
    for (const double bad : {kInfinity, -kInfinity, std::nan("")})
      for (const size_t place : {0, 4095, 4096, 9999}) {
        std::vector<double> values(10000, 6e4);
        std::vector<std::byte> bytes(values.size() * byteSize(dtype));
        fromDoubles(dtype, values, bytes);
        EXPECT_EQ(firstNotFinite(dtype, bytes), std::nullopt);
        values[place] = values.back() = bad;
        fromDoubles(dtype, values, bytes);
        EXPECT_EQ(firstNotFinite(dtype, bytes), place) << irName(dtype) << " " << bad;
      }
  const std::vector<std::byte> ones(8, std::byte{0xff});
  EXPECT_EQ(firstNotFinite(DType::I32, ones), std::nullopt);
  EXPECT_EQ(firstNotFinite(DType::BF16, {}), std::nullopt);
}
