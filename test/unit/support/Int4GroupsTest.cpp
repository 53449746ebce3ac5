// Numbers in 4 bits: bytes, the best of several scales, and groups that have none.
#include "runtime/support/Int4Groups.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace hydra::support;

namespace {

/// What a group of numbers is held as.
struct Held {
  float scale;
  std::vector<float> numbers;

  explicit Held(const std::vector<float> &given) : numbers(kInt4Group) {
    std::vector<int8_t> bytes(kInt4Bytes);
    scale = bf16ToFloat(quantizeGroup(given, bytes));
    for (size_t i = 0; i < kInt4Bytes; ++i) {
      const Int4Pair pair = unpackInt4(bytes[i]);
      numbers[i] = static_cast<float>(pair.first) * scale;
      numbers[i + kInt4Bytes] = static_cast<float>(pair.second) * scale;
    }
  }
};

std::vector<float> zeros() { return std::vector<float>(kInt4Group); }

} // namespace

TEST(Int4Groups, BytesHaveTwoNumbers) {
  for (int first = -8; first < 8; ++first)
    for (int second = -8; second < 8; ++second) {
      const int8_t byte = packInt4({first, second});
      EXPECT_EQ(unpackInt4(byte).first, first);
      EXPECT_EQ(unpackInt4(byte).second, second);
      EXPECT_EQ(byte, 16 * second + first + 8);
    }
}

TEST(Int4Groups, IntegersTimesPowersOfTwoStay) {
  std::mt19937 random(3);
  for (const int most : {7, 8})
    for (int round = 0; round < 100; ++round) {
      const float scale = std::exp2(static_cast<float>(random() % 40) - 20.0F);
      std::vector<float> given = zeros();
      for (float &x : given)
        x = scale * static_cast<float>(static_cast<int>(random() % 15) - 7);
      given[random() % kInt4Group] = scale * static_cast<float>(random() % 2 ? most : -most);
      const Held held(given);
      EXPECT_EQ(held.numbers, given);
      EXPECT_EQ(std::abs(held.scale), scale);
    }
}

TEST(Int4Groups, ScalesHaveFourBitsAndTheLeastError) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  const auto errorOf = [](const std::vector<float> &given, float scale) {
    double error = 0.0;
    for (const float x : given)
      error += std::pow(std::clamp(std::nearbyint(x / scale), -8.0F, 7.0F) * scale - x, 2.0);
    return error;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<float> given = zeros();
    float largest = 0.0F;
    for (float &x : given) {
      x = normal(random);
      largest = std::max(largest, std::abs(x));
    }
    const Held held(given);
    int exponent = 0;
    const float bits = 16.0F * std::frexp(held.scale, &exponent);
    EXPECT_EQ(bits, std::nearbyint(bits)) << held.scale;
    double error = 0.0;
    for (size_t i = 0; i < given.size(); ++i)
      error += std::pow(held.numbers[i] - given[i], 2.0);
    for (int number = 8; number < 16; ++number)
      for (const int at : {-2, -1, 0, 1})
        for (const int sign : {-1, 1}) {
          const float other = std::ldexp(static_cast<float>(sign * number), exponent - 4 + at);
          if (std::abs(other) * 8.5F >= largest && std::abs(other) * 6.0F <= largest) {
            EXPECT_LE(error, 1.001 * errorOf(given, other));
          }
        }
  }
}

TEST(Int4Groups, WithoutAScaleAreZerosOrNaN) {
  std::vector<float> given = zeros();
  EXPECT_EQ(Held(given).numbers, given);
  given[3] = 2e-38F; // of which an eighth is subnormal
  EXPECT_EQ(Held(given).scale, 0.0F);
  EXPECT_EQ(Held(given).numbers, zeros());
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    given[20] = bad;
    EXPECT_TRUE(std::isnan(Held(given).scale));
    EXPECT_TRUE(std::isnan(Held(given).numbers[0]));
  }
}
