// The words of the plan dialect are those of plan files, in the same order.
#include "compiler/Pipelines.h"
#include "dialects/plan/Plan.h"
#include "passes/CountedNumbers.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/plan_generated.h"

#include <gtest/gtest.h>

using namespace hydra;

namespace {

/// `act.norm` is `act_norm` in a schema.
std::string fileSpelling(llvm::StringRef word) {
  std::string text = word.str();
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}

template <typename Word, typename FileWord, size_t N>
void expectSame(llvm::StringRef (*wordOf)(Word), uint64_t largest, const FileWord (&words)[N],
                const char *const *names) {
  ASSERT_EQ(largest + 1, N);
  for (size_t i = 0; i < N; ++i) {
    EXPECT_EQ(static_cast<size_t>(words[i]), i);
    EXPECT_EQ(fileSpelling(wordOf(static_cast<Word>(i))), names[i]);
  }
}

} // namespace

TEST(PlanWords, AreThoseOfPlanFiles) {
  using namespace planfile;
  expectSame(hydra::stringifyOpClass, hydra::getMaxEnumValForOpClass(), EnumValuesOpClass(),
             EnumNamesOpClass());
  expectSame(hydra::stringifyPhase, hydra::getMaxEnumValForPhase(), EnumValuesPhase(),
             EnumNamesPhase());
  expectSame(hydra::stringifyCategory, hydra::getMaxEnumValForCategory(), EnumValuesCategory(),
             EnumNamesCategory());
  expectSame(plan::stringifySegment, plan::getMaxEnumValForSegment(), EnumValuesSegmentKind(),
             EnumNamesSegmentKind());
  expectSame(plan::stringifyInputKind, plan::getMaxEnumValForInputKind(), EnumValuesInputKind(),
             EnumNamesInputKind());
  expectSame(plan::stringifyBound, plan::getMaxEnumValForBound(), EnumValuesBound(),
             EnumNamesBound());
  expectSame(hydra::stringifyVariableRole, hydra::getMaxEnumValForVariableRole(),
             EnumValuesVariableRole(), EnumNamesVariableRole());
  expectSame(hydra::stringifyProgramRole, hydra::getMaxEnumValForProgramRole(),
             EnumValuesProgramRole(), EnumNamesProgramRole());
}

TEST(PlanWords, SayWhereCountedNumbersComeFrom) {
  for (llvm::StringRef name : {kStepNumber, kDrawLow, kDrawHigh, kMicroBatch})
    EXPECT_TRUE(plan::symbolizeScalarSource(name)) << name.str();
}

TEST(PlanWords, NameModesAsRunsKnowThem) {
  using runtime::PlanMode;
  EXPECT_EQ(runtime::planModeNamed(modeName(Mode::Generate)), PlanMode::generate);
  EXPECT_EQ(runtime::planModeNamed(modeName(Mode::Forward)), PlanMode::forward);
  EXPECT_EQ(runtime::planModeNamed(modeName(Mode::Grad)), PlanMode::grad);
  EXPECT_EQ(runtime::planModeNamed(modeName(Mode::Train)), PlanMode::train);
  EXPECT_EQ(runtime::planModeNamed("sleep"), std::nullopt);
}

TEST(PlanWords, SayAlikeHowAnArgumentIsUsed) {
  EXPECT_EQ(static_cast<int>(planfile::Access::read), plan::kRead);
  EXPECT_EQ(static_cast<int>(planfile::Access::write), plan::kWrite);
  EXPECT_EQ(static_cast<int>(planfile::Access::read_write), plan::kUpdate);
}
