// Long names in messages.
#include "runtime/support/Shown.h"

#include <gtest/gtest.h>

using hydra::support::shown;
using hydra::support::shownPath;

TEST(Shown, WhatIsNoUtf8IsAQuestionMark) {
  EXPECT_EQ(shown("a\xff"
                  "b\xc3"),
            "a?b?");
  EXPECT_EQ(shown("\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80"), "?? ??? ????");
  EXPECT_EQ(shown("\xe2\x82\xac \xf0\x9f\x98\x80"), "\xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(shown("\xff"
                  "123456789",
                  7),
            "?12...9");
}

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
