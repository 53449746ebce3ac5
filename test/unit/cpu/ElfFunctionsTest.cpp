// The functions of a shared object: all of them, and of a damaged one an error or some.
#include "runtime/cpu/ElfFunctions.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace hydra::runtime;
using hydra::support::Error;

namespace {

std::vector<std::byte> testKernels() {
  return hydra::support::InputFile(HYDRA_TEST_KERNELS).readAll();
}

} // namespace

TEST(ElfFunctions, AreThoseThatAreExported) {
  const auto functions = exportedFunctions(testKernels(), "kernels");
  for (const char *name : {"scale_rows", "add_scalar", "count", "sgd", "half_square"})
    EXPECT_TRUE(functions.contains(name)) << name;
  EXPECT_FALSE(functions.contains("memcpy")) << "which it takes from others";
  EXPECT_FALSE(functions.contains("leaveTrace")) << "which is its own";
}

TEST(ElfFunctions, DamagedObjectsAreErrorsOrHaveOthers) {
  const std::vector<std::byte> whole = testKernels();
  for (size_t size = 0; size < whole.size(); size += 1 + size / 50) {
    try {
      exportedFunctions(std::span(whole).first(size), "kernels");
    } catch (const Error &error) {
      EXPECT_EQ(std::string(error.what()).rfind("kernels: its code does not load: ", 0), 0u);
    }
  }
  // Every byte of the headers, and of the tables behind them.
  const size_t tables = std::min<size_t>(whole.size(), 2048);
  for (size_t i = 0; i < tables; ++i)
    for (const unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> damaged = whole;
      damaged[i] = std::byte{value};
      try {
        exportedFunctions(damaged, "kernels");
      } catch (const Error &) { // all that may come
      }
    }
}
