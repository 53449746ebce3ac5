// Which modes a model can be checked in.
#include "test/fuzz/differential/Case.h"

#include <gtest/gtest.h>

namespace hydra::test {

namespace {

std::vector<Mode> modesOf(std::string text) {
  Case source;
  source.source.text = std::move(text);
  return source.modes();
}

const std::vector<Mode> kTrains = {Mode::Grad, Mode::Forward, Mode::Train},
                        kDoesNot = {Mode::Grad, Mode::Forward};

} // namespace

TEST(CaseModes, AskForAGroupOfEveryParameter) {
  const std::string group = "hydra.group @slow sgd()\n", loss = "hydra.entry @loss() {}\n",
                    other = "hydra.param @a [3] init = ones\n",
                    slow = "hydra.param @b [3]\n  init = ones group = @slow\n",
                    frozen = "hydra.param @c [3] init = ones frozen\n";
  EXPECT_EQ(modesOf(group + slow + loss), kTrains);
  EXPECT_EQ(modesOf(group + slow + frozen + loss), kTrains);
  EXPECT_EQ(modesOf("hydra.group @default adamw()\n" + other + loss), kTrains);
  EXPECT_EQ(modesOf(group + slow + other + loss), kDoesNot);
  EXPECT_EQ(modesOf(other + loss), kDoesNot);
}

TEST(CaseModes, AskForAnEvaluationWhereTheLossUpdatesState) {
  const std::string model = "hydra.group @default adamw()\nhydra.param @a [3] init = ones\n"
                            "hydra.entry @loss() { hydra.return loss = %x updates(@s = %y) }\n";
  EXPECT_EQ(modesOf(model), kDoesNot);
  EXPECT_EQ(modesOf(model + "hydra.entry @eval() {}\n"), kTrains);
}

} // namespace hydra::test
