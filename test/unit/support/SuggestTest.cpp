// What is suggested for mistyped words.
#include "runtime/support/Suggest.h"

#include <gtest/gtest.h>

#include <vector>

using namespace hydra::support;

static const std::vector<std::string> kFlags = {"--steps", "--seed", "--device", "--dry-run"};

TEST(Suggest, FindsTheNearestWord) {
  EXPECT_EQ(nearest("--stpes", kFlags), "--steps");
  EXPECT_EQ(nearest("--sed", kFlags), "--seed");
  EXPECT_EQ(nearest("--dryrun", kFlags), "--dry-run");
  EXPECT_EQ(nearest("--steps", kFlags), "--steps");
}

TEST(Suggest, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(nearest("--frobnicate", kFlags), "");
  EXPECT_EQ(nearest("-x", kFlags), "");
  EXPECT_EQ(nearest("", kFlags), "");
  EXPECT_EQ(nearest("--steps", {}), "");
}

TEST(Suggest, NamesTheFlagWithoutItsValue) {
  EXPECT_EQ(unknownFlag("--stpes=20", kFlags), "unknown flag '--stpes'; did you mean '--steps'?");
  EXPECT_EQ(unknownFlag("--zzzzzzz", kFlags),
            "unknown flag '--zzzzzzz'; --help lists the known ones");
}
