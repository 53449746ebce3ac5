// What is left of a run on the live line.
#include "runtime/run/Progress.h"

#include <gtest/gtest.h>

#include <string>

using namespace hydra::runtime;

namespace {

TEST(Progress, TimeLeftIsThatOfStepsAsLong) {
  Progress progress({.lastStep = 101, .every = 1000});
  progress.step({.step = 1, .seconds = 0.5});
  EXPECT_NE(progress.liveText().find("ETA 50s"), std::string::npos) << progress.liveText();
}

TEST(Progress, TimeLeftFollowsPredictionsOfLaterPhases) {
  Progress progress({.lastStep = 101, .every = 1000});
  // Twice as slow as predicted: so are 100 steps that should take 1.5 s each.
  progress.step({.step = 1, .seconds = 0.5, .predictedSeconds = 0.25, .predictedSecondsLeft = 150});
  EXPECT_NE(progress.liveText().find("ETA 5m 00s"), std::string::npos) << progress.liveText();
}

} // namespace
