// What may be saved.
#include "runtime/run/Checkpoint.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/run/Variables.h"
#include "test/unit/cpu/SmallTraining.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

using namespace hydra::runtime;
using namespace hydra::test;

namespace {

/// A folder of its own, and the small plan with its first values.
class CheckpointTest : public testing::Test {
protected:
  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / ("hydra-checkpoint-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    setVariables(file, executor, nullptr, 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void write(size_t variable, std::array<float, 4> values) {
    executor.write(file.plan().variables()->Get(static_cast<uint32_t>(variable))->tensor(),
                   std::as_bytes(std::span(values)));
  }

  const PlanFile file = smallTraining().load();
  CpuExecutor executor{file, {.threads = 1}};
  std::filesystem::path folder;
};

/// The message of the error that `fn` throws.
template <typename E, typename Fn> std::string messageOf(Fn fn) {
  try {
    fn();
  } catch (const E &error) {
    return error.what();
  }
  return "(no error)";
}

} // namespace

TEST_F(CheckpointTest, OnlyFiniteParametersAndMomentsAreSaved) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  CheckpointFolder checkpoints(folder / "run", 0);
  const auto save = [&] {
    checkpoints.save(file, executor, {.step = 1, .data = {}, .schedules = {}});
  };
  save();
  const auto saved = std::filesystem::last_write_time(folder / "run" / "step-00000001");
  write(1, {1, 1, -inf, 1});
  const std::string end = " (what was saved before stays)";
  EXPECT_EQ(messageOf<NotFinite>(save),
            "cannot save " + (folder / "run" / "step-00000001").string() +
                ": w.m[2] is -inf; expected finite parameters and states" + end);
  exportWeights(folder / "weights", file, executor); // which are finite
  write(0, {1, 1, 1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(messageOf<NotFinite>([&] { exportWeights(folder / "weights", file, executor); }),
            "cannot save " + (folder / "weights").string() +
                ": w[3] is nan; expected finite parameters and states" + end);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "run" / "step-00000001"), saved);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "run"), {}), 1);
}
