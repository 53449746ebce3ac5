// Long names in messages.
#include "runtime/support/Shown.h"

#include <gtest/gtest.h>

using hydra::support::shown;
using hydra::support::shownPath;

TEST(Shown, LongTextLosesItsMiddle) {
  EXPECT_EQ(shown("name"), "name");
  EXPECT_EQ(shown(std::string(80, 'x')), std::string(80, 'x'));
  const std::string cut = shown(std::string(50000, 'a') + std::string(50000, 'b'));
  EXPECT_EQ(cut, std::string(40, 'a') + "..." + std::string(37, 'b'));
  EXPECT_EQ(shown("0123456789", 7), "012...9");
  EXPECT_EQ(shown("µµµµµ", 9), "µµ...µ") << "characters stay whole";
  EXPECT_EQ(shownPath(std::filesystem::path("/a/" + std::string(200, 'b'))).size(), 203u);
  EXPECT_EQ(shownPath(std::filesystem::path(std::string(5000, 'b'))).size(), 240u);
}
