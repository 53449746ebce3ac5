// Libraries looked up by name: the first that is there, its functions, and what it lacks.
#include "runtime/support/SharedLibrary.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

using hydra::support::Error;
using hydra::support::SharedLibrary;

namespace {

TEST(SharedLibrary, TakesTheFirstThatIsThere) {
  const SharedLibrary library({"libhydra-none.so.1", "libm.so.6"});
  ASSERT_TRUE(library);
  double (*power)(double, double) = nullptr;
  library.load(power, "pow");
  EXPECT_EQ(power(3.0, 4.0), 81.0);
}

TEST(SharedLibrary, MayNotBeThere) {
  EXPECT_FALSE(SharedLibrary({"libhydra-none.so.1", "libhydra-none.so.2"}));
}

TEST(SharedLibrary, SaysWhichFunctionIsMissing) {
  const SharedLibrary library({"libm.so.6"});
  ASSERT_TRUE(library);
  void (*function)() = nullptr;
  EXPECT_FALSE(library.find(function, "hydraNone"));
  EXPECT_EQ(function, nullptr);
  try {
    library.load(function, "hydraNone");
    FAIL() << "expected an error";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "libm.so.6 has no hydraNone");
  }
}

} // namespace
