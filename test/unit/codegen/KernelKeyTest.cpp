// Symbols of generated kernels.
#include "compiler/codegen/rows/KernelKey.h"

#include <gtest/gtest.h>

using namespace hydra;

namespace {

struct Kernel {
  std::string key;
};

TEST(KernelKeyTest, EqualKeysAreOneKernel) {
  std::map<std::string, Kernel> kernels;
  const std::string symbol = rows::insertKernel(kernels, Kernel{"a"});
  EXPECT_EQ(rows::insertKernel(kernels, Kernel{"a"}), symbol);
  EXPECT_NE(rows::insertKernel(kernels, Kernel{"b"}), symbol);
  EXPECT_EQ(kernels.size(), 2U);
}

TEST(KernelKeyTest, OfTwoKeysWithOneHashTheSecondHasTheNextSymbol) {
  std::map<std::string, Kernel> kernels;
  kernels[rows::symbolOf("b", 0)] = {"a"};
  EXPECT_EQ(rows::insertKernel(kernels, Kernel{"b"}), rows::symbolOf("b", 1));
  EXPECT_EQ(rows::insertKernel(kernels, Kernel{"b"}), rows::symbolOf("b", 1));
  EXPECT_EQ(kernels.size(), 2U);
}

TEST(KernelKeyTest, SumsOfPartsDifferByAllThatTheirCodeDependsOn) {
  const std::string key = rows::combineKey(4, {2, 3}, {3, 1}, RowType::F32);
  EXPECT_EQ(key, rows::combineKey(4, {2, 3}, {3, 1}, RowType::F32));
  EXPECT_NE(key, rows::combineKey(5, {2, 3}, {3, 1}, RowType::F32));
  EXPECT_NE(key, rows::combineKey(4, {6}, {3, 1}, RowType::F32));
  EXPECT_NE(key, rows::combineKey(4, {2, 3}, {1, 2}, RowType::F32));
  EXPECT_NE(key, rows::combineKey(4, {2, 3}, {3, 1}, RowType::BF16));
}

} // namespace
