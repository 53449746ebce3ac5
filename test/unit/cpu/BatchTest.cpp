// What ranks have of the inputs of a program: together, what one rank has.
#include "runtime/run/Batch.h"
#include "runtime/plan/Mesh.h"
#include "runtime/support/Safetensors.h"
#include "test/unit/cpu/SmallTraining.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <numeric>

using namespace hydra::test;
using namespace hydra::runtime;
namespace planfile = hydra::planfile;
namespace support = hydra::support;

namespace {

/// Keeps what is written to it.
class Recorder final : public Executor {
public:
  double run(uint32_t) override { return 0; }
  void write(uint32_t tensor, std::span<const std::byte> values) override {
    written[tensor] = {values.begin(), values.end()};
  }
  void read(uint32_t, std::span<std::byte>) override {}
  void writeRange(uint32_t, uint64_t, std::span<const std::byte>) override {}
  void readRange(uint32_t, uint64_t, std::span<std::byte>) override {}
  void clearRange(uint32_t, uint64_t, uint64_t) override {}
  std::span<std::byte> staging(size_t) override { return {}; }
  void parallelFor(int64_t, const std::function<void(int64_t)> &) override {}
  void setProfiling(bool) override {}
  std::vector<StepTime> stepTimes() override { return {}; }
  std::vector<StepRun> timeline() override { return {}; }
  uint64_t arenaBytes() const override { return 0; }
  std::vector<std::pair<std::string, std::string>> describe() const override { return {}; }

  std::map<uint32_t, std::vector<std::byte>> written;
};

/// The program takes `ids` [4, 6] and `values` [3, 4, 5] of all ranks, cut along dimension 0 and 1.
PlanFile planFor(uint32_t ranks) {
  using namespace planfile;
  hydra::test::PlanBuilder builder = smallTraining();
  if (ranks > 1) {
    auto axis = std::make_unique<MeshAxisT>();
    axis->name = "data";
    axis->size = ranks;
    builder.plan.mesh.push_back(std::move(axis));
  }
  const int64_t n = ranks;
  const uint32_t ids =
      builder.tensor("ids", {4 / n, 6}, SegmentKind::transient, planfile::DType::i32);
  const uint32_t labels =
      builder.tensor("next", {4 / n, 6}, SegmentKind::transient, planfile::DType::i32);
  const uint32_t values = builder.tensor("values", {3, 4 / n, 5});
  ProgramT &program = builder.program("other", {});
  builder.input(program, "ids", InputKind::tokens, ids, 100);
  builder.input(program, "next", InputKind::labels, labels, 100);
  builder.input(program, "values", InputKind::values, values);
  for (auto &input : program.inputs)
    input->batch_dimension = ranks == 1 ? -1 : input->name == "values" ? 1 : 0;
  return PlanFile::parse(encodePlan(builder.plan), "test");
}

const planfile::Program &programOf(const PlanFile &file) {
  return *file.plan().programs()->Get(file.plan().programs()->size() - 1);
}

/// What each rank has of each input, by name.
std::vector<std::map<std::string, std::vector<std::byte>>>
written(const PlanFile &file, uint32_t ranks, const std::function<Batch(uint32_t rank)> &make) {
  std::vector<std::map<std::string, std::vector<std::byte>>> all(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Recorder recorder;
    make(rank).write(recorder, programOf(file));
    for (const planfile::Input *input : *programOf(file).inputs())
      all[rank][input->name()->str()] = recorder.written.at(input->tensor());
  }
  return all;
}

void expectPartsOfTheWhole(const std::function<Batch(const PlanFile &, uint32_t rank)> &make) {
  const PlanFile one = planFor(1);
  const auto whole = written(one, 1, [&](uint32_t) { return make(one, 0); })[0];
  for (const uint32_t ranks : {2, 4}) {
    const PlanFile file = planFor(ranks);
    const auto parts = written(file, ranks, [&](uint32_t rank) { return make(file, rank); });
    for (const planfile::Input *input : *programOf(file).inputs()) {
      const std::string name = input->name()->str();
      const BatchPart part(file.plan(), *file.plan().tensors()->Get(input->tensor()),
                           input->batch_dimension(), 0);
      std::vector<std::vector<std::byte>> own;
      for (const auto &values : parts)
        own.push_back(values.at(name));
      EXPECT_EQ(part.join(own), whole.at(name)) << name << " on " << ranks << " ranks";
    }
  }
}

} // namespace

TEST(Batch, SyntheticValuesOfRanksAreRowsOfThoseOfOne) {
  expectPartsOfTheWhole([](const PlanFile &file, uint32_t rank) {
    Batch batch(file.plan(), programOf(file), 7, rank);
    batch.advance(3);
    return batch;
  });
}

TEST(Batch, GivenValuesAreWholeAndCut) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("batch-{}", ::getpid());
  std::vector<int32_t> ids(24);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> values(60);
  std::iota(values.begin(), values.end(), 0.5f);
  const std::vector<support::TensorView> tensors = {
      {{"ids", support::DType::I32, {4, 6}}, std::as_bytes(std::span(ids))},
      {{"next", support::DType::I32, {4, 6}}, std::as_bytes(std::span(ids))},
      {{"values", support::DType::F32, {3, 4, 5}}, std::as_bytes(std::span(values))}};
  support::writeSafetensors(path, tensors);
  expectPartsOfTheWhole([&](const PlanFile &file, uint32_t rank) {
    return Batch(file.plan(), programOf(file), GivenTensors(path), rank);
  });
  std::filesystem::remove(path);
}

TEST(Batch, ATokenMayBeANumber) {
  using namespace planfile;
  hydra::test::PlanBuilder builder = smallTraining();
  const uint32_t id = builder.tensor("id", {}, SegmentKind::transient, planfile::DType::i32);
  const uint32_t value = builder.tensor("value", {});
  ProgramT &program = builder.program("decode", {});
  program.context = 8;
  builder.input(program, "id", InputKind::tokens, id, 100);
  builder.input(program, "value", InputKind::values, value);
  const PlanFile file = PlanFile::parse(encodePlan(builder.plan), "test");
  const auto values =
      written(file, 1, [&](uint32_t) { return Batch(file.plan(), programOf(file), 7, 0); })[0];
  EXPECT_EQ(values.at("id").size(), 4u);
  EXPECT_EQ(values.at("value").size(), 4u);
}

TEST(Batch, TokensAreOfAllRanks) {
  for (const uint32_t ranks : {1, 2, 4}) {
    const PlanFile file = planFor(ranks);
    EXPECT_EQ(tokensPerRun(file.plan(), programOf(file)), 24u) << ranks;
  }
}
