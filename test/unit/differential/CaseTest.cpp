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

TEST(CaseParameters, AreThoseOfTheText) {
  Case source;
  source.source.text =
      "hydra.param @e [V, D] init = ones\nhydra.stack {\n  hydra.param @w_1 [D]\n}";
  EXPECT_EQ(source.parameters(), (std::vector<std::string>{"e", "w_1"}));
}

TEST(CaseParameters, OfLinearLayersAloneAreForAdapters) {
  Case source;
  const auto param = [&](const std::string &name) {
    source.source.text += "  hydra.param @" + name + " [2, 3] init = ones\n";
  };
  for (const char *name : {"a", "b", "c", "d", "e", "f", "aa", "gb"})
    param(name);
  source.source.text += "    %a = hydra.use @a\n    %v1 = hydra.use @a\n"
                        "    %b = hydra.use @b\n    %c = hydra.use @c\n    %d = hydra.use @d\n"
                        "    %aa = hydra.use @aa\n    %f = hydra.use @f\n"
                        "    %v2 = hydra.linear %x, %a\n    %v3 = hydra.linear %x, %v1, %v2\n"
                        "    %v4 = hydra.linear %b, %aa compute = f32\n"
                        "    %v5 = hydra.linear %x, %v2, %c\n    %v6 = hydra.add %d, %v5\n"
                        "    %v7 = hydra.let tanh(linear(%v6, @e)) + linear(%x, @gb)\n"
                        "    %v8 = hydra.grouped_linear %x, %f, %v9 transposed\n";
  EXPECT_EQ(source.parameters().size(), 8u);
  EXPECT_EQ(source.linearWeights(), (std::vector<std::string>{"a", "e", "f", "aa", "gb"}));
}

TEST(CaseOfRanks, HasABatchForThemAndTrains) {
  const SettingRange range = makeCase("ranks", 4).range("cpu");
  EXPECT_EQ(range.batch, 4);
  EXPECT_EQ(makeCase("ranks", 3).range("cpu").batch, 6);
  for (uint64_t number = 0; number < 20; ++number)
    for (const Setting &setting : drawSettings(number, 2, range)) {
      EXPECT_EQ(setting.mode, Mode::Train) << setting.text();
      EXPECT_NE(setting.mesh, "") << setting.text();
    }
}

TEST(CaseOfText, HasWeightsForIntegersWithEverySecondSeed) {
  EXPECT_FALSE(makeCase("text", 4).int8);
  EXPECT_TRUE(makeCase("text", 5).range("cpu").int8);
  EXPECT_NE(makeCase("text", 5).source.text.find("dims(D = 16, V = 97)"), std::string::npos);
  EXPECT_FALSE(makeCase("text", 5).int4);
  EXPECT_TRUE(makeCase("text", 7).range("cpu").int4);
  EXPECT_NE(makeCase("text", 7).source.text.find("dims(D = 32, V = 97)"), std::string::npos);
}

TEST(CaseOfWideRows, TrainsOrReadsOn) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Case source = makeCase("wide", seed);
    EXPECT_EQ(source.modes(), seed % 3 == 2 ? std::vector<Mode>{Mode::Generate} : kTrains);
    EXPECT_NE(source.source.binding.batch, 0);
  }
}

} // namespace hydra::test
