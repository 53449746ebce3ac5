// What may be saved.
#include "runtime/run/Checkpoint.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/run/FirstValues.h"
#include "runtime/support/InputFile.h"
#include "test/unit/cpu/SharedVariables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

using namespace hydra::runtime;
using namespace hydra::test;
namespace planfile = hydra::planfile;
namespace support = hydra::support;

namespace {

/// A folder of its own, and the small plan with its first values.
class CheckpointTest : public testing::Test {
protected:
  CheckpointTest() { setVariables(file, executor, 0, nullptr, 0); }

  void write(size_t variable, std::array<float, 4> values) {
    executor.write(file.plan().variables()->Get(static_cast<uint32_t>(variable))->tensor(),
                   std::as_bytes(std::span(values)));
  }

  const PlanFile file = smallTraining().load();
  CpuExecutor executor{file, {.threads = 1}};
  const TemporaryFolder temporary;
  const std::filesystem::path &folder = temporary.path;
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

namespace {

const TrainingState kState{.step = 3, .seed = 5, .data = {}, .schedules = {}};
const char *const kName = "step-00000003";

/// What ranks save and load, and one rank alone.
class SharedCheckpoint : public SharedVariables {
protected:
  /// Values that all differ, as training leaves them.
  static void setAll(const PlanFile &file, Member &member) {
    const planfile::Plan &plan = file.plan();
    clearGaps(plan, member.executor, member.rank);
    for (const planfile::Variable *variable : *plan.variables()) {
      if (isCopy(*variable))
        continue;
      std::vector<float> values(static_cast<size_t>(elementsOf(plan, *variable)));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i) * 0.37f - static_cast<float>(variable->name()->size());
      writeVariable(plan, member.executor, *variable, member.rank,
                    std::as_bytes(std::span(values)));
    }
  }

  /// The checkpoint of all ranks, in a folder of that name.
  std::filesystem::path save(const Keeping &how, const std::string &name) {
    const PlanFile file = sharedVariables(how).load();
    onEachRank(file, [&](Member &member) {
      setAll(file, member);
      saveOf(file, member.executor, member.ranks, name);
    });
    return folder / name / kName;
  }
  void saveOf(const PlanFile &file, Executor &executor, Ranks *ranks, const std::string &name) {
    Ranks *const writers = writersOf(file.plan(), ranks);
    if (writers || !ranks || ranks->leads())
      CheckpointFolder(folder / name, 0, writers).save(file, executor, kState);
  }

  /// What was restored, or the error of each rank.
  static Values restored(const Keeping &how, const std::filesystem::path &path) {
    return valuesOf(how, [&](const PlanFile &file, Member &member) {
      Checkpoint(path, file).restore(member.executor, member.ranks);
    });
  }
};

std::string contentOf(const std::filesystem::path &path) {
  const std::vector<std::byte> bytes = support::InputFile(path).readAll();
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

size_t filesIn(const std::filesystem::path &path) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
}

/// Reads and writes fail from some moment on.
class FailingExecutor final : public Executor {
public:
  FailingExecutor(Executor &inner, const bool &fails) : inner(inner), fails(fails) {}
  double run(uint32_t program) override { return inner.run(program); }
  void write(uint32_t tensor, std::span<const std::byte> values) override {
    inner.write(tensor, values);
  }
  void read(uint32_t tensor, std::span<std::byte> values) override {
    check();
    inner.read(tensor, values);
  }
  void writeRange(uint32_t tensor, uint64_t begin, std::span<const std::byte> values) override {
    inner.writeRange(tensor, begin, values);
  }
  void readRange(uint32_t tensor, uint64_t begin, std::span<std::byte> values) override {
    check();
    inner.readRange(tensor, begin, values);
  }
  void clearRange(uint32_t tensor, uint64_t begin, uint64_t size) override {
    inner.clearRange(tensor, begin, size);
  }
  std::span<std::byte> staging(size_t bytes) override { return inner.staging(bytes); }
  void parallelFor(int64_t tasks, const std::function<void(int64_t)> &work) override {
    inner.parallelFor(tasks, work);
  }
  void setProfiling(bool on) override { inner.setProfiling(on); }
  std::vector<StepTime> stepTimes() override { return inner.stepTimes(); }
  std::vector<StepRun> timeline() override { return inner.timeline(); }
  uint64_t arenaBytes() const override { return inner.arenaBytes(); }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    return inner.describe();
  }

private:
  void check() const {
    if (fails)
      support::fail("out of order");
  }

  Executor &inner;
  const bool &fails;
};

/// As formats 1 and 2 had them: a hash of each tensor as a whole, none of the file.
void makeOlder(const std::filesystem::path &checkpoint, int format) {
  std::string manifest = contentOf(checkpoint / "checkpoint.json");
  manifest = std::regex_replace(manifest, std::regex("\n  \"hash\": \"[0-9a-f]+\",?"), "");
  manifest = std::regex_replace(manifest, std::regex("\"format\": 3"),
                                "\"format\": " + std::to_string(format));
  for (const char *name : {"model.safetensors", "optimizer.safetensors"}) {
    const auto file = support::Safetensors::open(checkpoint / name);
    for (const support::TensorView &tensor : file.tensors())
      manifest = std::regex_replace(
          manifest, std::regex("(\"" + tensor.name + "\"): \"[0-9a-f]+\""),
          fmt::format("$1: \"{:016x}\"", XXH3_64bits(tensor.bytes.data(), tensor.bytes.size())));
  }
  std::ofstream(checkpoint / "checkpoint.json") << manifest;
}

} // namespace

TEST_P(SharedCheckpoint, HasTheBytesOfOneRankAlone) {
  const std::filesystem::path alone = save(keepings().front(), "alone");
  const std::filesystem::path ours = save(GetParam(), "ours");
  for (const char *name : {"model.safetensors", "optimizer.safetensors", "checkpoint.json"})
    EXPECT_TRUE(contentOf(ours / name) == contentOf(alone / name)) << name;
  EXPECT_EQ(filesIn(ours), 3u);
  EXPECT_EQ(filesIn(folder / "ours"), 1u);
}

TEST_P(SharedCheckpoint, IsRestoredWhoeverSavedIt) {
  const Values expected = valuesOf(keepings().front(), setAll);
  EXPECT_EQ(restored(GetParam(), save(keepings().front(), "alone")), expected);
  EXPECT_EQ(restored(keepings().front(), save(GetParam(), "ours")), expected);
  for (const Keeping &other : keepings())
    if (other.name == "FsdpOnFour" || other.name == "Zero1") {
      EXPECT_EQ(restored(other, folder / "ours" / kName), expected) << other.name;
    }
}

TEST_P(SharedCheckpoint, OfOlderFormatsIsRestored) {
  const Values expected = valuesOf(keepings().front(), setAll);
  const std::filesystem::path path = save(keepings().front(), "alone");
  for (const int format : {2, 1}) {
    makeOlder(path, format);
    EXPECT_EQ(restored(GetParam(), path), expected) << format;
    std::string manifest = contentOf(path / "checkpoint.json");
    std::ofstream(path / "checkpoint.json")
        << std::regex_replace(manifest, std::regex("\"format\": 2"), "\"format\": 3");
  }
}

TEST_P(SharedCheckpoint, ThatIsDamagedIsRefused) {
  const std::filesystem::path path = save(GetParam(), "ours");
  const PlanFile file = sharedVariables(GetParam()).load();
  const auto size =
      static_cast<std::streamoff>(std::filesystem::file_size(path / "model.safetensors"));
  const std::string expected = "model.safetensors: tensor large is damaged: its hash is ";
  for (const std::streamoff fromEnd : {std::streamoff{130} * 517 * 4 / 2, size - 2000}) {
    const auto flip = [&] {
      std::fstream bytes(path / "model.safetensors",
                         std::ios::in | std::ios::out | std::ios::binary);
      bytes.seekg(size - fromEnd);
      const char old = static_cast<char>(bytes.get());
      bytes.seekp(size - fromEnd);
      bytes.put(static_cast<char>(old ^ 64));
    };
    flip();
    std::vector<std::string> errors(GetParam().ranks());
    const auto restore = [&](Member &member) {
      errors[member.rank] = messageOf<support::Error>(
          [&] { Checkpoint(path, file).restore(member.executor, member.ranks); });
    };
    onEachRank(file, restore);
    for (const std::string &error : errors)
      EXPECT_NE(error.find(expected), std::string::npos) << error;
    flip();
  }
}

TEST_P(SharedCheckpoint, WithANumberThatIsNotFiniteIsNotWritten) {
  const PlanFile file = sharedVariables(GetParam()).load();
  const planfile::Plan &plan = file.plan();
  std::vector<std::string> errors(GetParam().ranks());
  onEachRank(file, [&](Member &member) {
    setAll(file, member);
    for (const planfile::Variable *variable : *plan.variables()) {
      if (variable->name()->string_view() != "large")
        continue;
      const VariablePart part(plan, *variable, member.rank);
      const int64_t last = elementsOf(plan, *variable) - 1;
      const float value = std::numeric_limits<float>::infinity();
      if (part.count > 0 && part.end() > last)
        member.executor.writeRange(variable->tensor(),
                                   static_cast<uint64_t>(part.place + last - part.first) * 4,
                                   std::as_bytes(std::span(&value, 1)));
    }
    errors[member.rank] =
        messageOf<NotFinite>([&] { saveOf(file, member.executor, member.ranks, "ours"); });
  });
  if (!cutsVariables(plan))
    errors.resize(1); // the others do not save
  for (const std::string &error : errors)
    EXPECT_NE(error.find("cannot save " + (folder / "ours" / kName).string() +
                         ": large[129,516] is inf; expected finite parameters"),
              std::string::npos)
        << error;
  EXPECT_EQ(filesIn(folder / "ours"), 0u);
}

TEST_P(SharedCheckpoint, ThatOneRankCannotWriteIsGivenUpByAll) {
  const PlanFile file = sharedVariables(GetParam()).load();
  if (!cutsVariables(file.plan()))
    return;
  const uint64_t second = distanceOf(file.plan(), GetParam().cut, 1); // piece
  std::vector<std::string> errors(GetParam().ranks());
  onEachRank(file, [&](Member &member) {
    setAll(file, member);
    bool fails = member.rank == second;
    FailingExecutor executor(member.executor, fails);
    CheckpointFolder checkpoints(folder / "ours", 0, member.ranks);
    errors[member.rank] = messageOf<CommonError>([&] { checkpoints.save(file, executor, kState); });
    if (member.ranks->leads())
      EXPECT_EQ(filesIn(folder / "ours"), 0u);
    fails = false;
    checkpoints.save(file, executor, kState); // the run goes on
  });
  for (const std::string &error : errors) {
    EXPECT_NE(error.find(fmt::format("rank {} (host ", second)), std::string::npos) << error;
    EXPECT_NE(error.find("out of order"), std::string::npos) << error;
  }
  EXPECT_EQ(filesIn(folder / "ours"), 1u);
  EXPECT_EQ(restored(keepings().front(), folder / "ours"), valuesOf(keepings().front(), setAll));
}

TEST_P(SharedCheckpoint, WeightsAreTheSameFile) {
  const auto write = [&](const Keeping &how, const std::string &name) {
    const PlanFile file = sharedVariables(how).load();
    onEachRank(file, [&](Member &member) {
      setAll(file, member);
      Ranks *const writers = writersOf(file.plan(), member.ranks);
      if (writers || member.rank == 0)
        exportWeights(folder / name, file, member.executor, writers);
    });
    return contentOf(folder / name);
  };
  EXPECT_TRUE(write(GetParam(), "ours") == write(keepings().front(), "alone"));
  EXPECT_EQ(filesIn(folder), 2u);
}

INSTANTIATE_TEST_SUITE_P(Keeping, SharedCheckpoint, testing::ValuesIn(keepings()), nameOfKeeping);
