// Tensors go to a GPU that takes its time, and arrive as they were when they were written: by a
// driver without a GPU, which is linked in place of the machine's.
#include "runtime/cuda/Transfers.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/run/FirstValues.h"
#include "test/support/PlanBuilder.h"
#include "test/unit/cuda/driver/FakeDriver.h"
#include "test/unit/cuda/driver/OnFakeDriver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::test;
namespace planfile = hydra::planfile;
namespace support = hydra::support;
using planfile::SegmentKind;

namespace {

constexpr size_t kHalf = Executor::kStagingBytes;
constexpr size_t kSmall = size_t{4} << 20; // what Transfers takes without waiting

/// A dense tensor and a strided one on a device, and what they are to be.
class Tensors {
public:
  explicit Tensors(uint64_t seed)
      : file(plan()), device(file, 0, false), memory(segmentBytes(), "tensors"),
        expected(segmentBytes(), std::byte{0}), random(seed), noise(kHalf + (size_t{8} << 20)) {
    for (size_t i = 0; i + 8 <= noise.size(); i += 8) {
      const uint64_t word = random();
      std::memcpy(noise.data() + i, &word, 8);
    }
    transfers.emplace(device);
    device.upload(memory.get(), expected);
  }

  /// Mostly what nobody waits for, so that much is under way.
  void doSomething() {
    switch (random() % 32) {
    case 0:
      return write(pageable(anySize()));
    case 1:
      return writeStrided();
    case 2:
      return readRange();
    case 3:
      return wait();
    default:
      break;
    }
    switch (random() % 4) {
    case 0:
      return write(pageable(random() % (kSmall / 4)));
    case 1:
      return clear();
    default:
      return stage(anySize());
    }
  }

  /// Writes memory of so many bytes, and parts of it to one place or several.
  void stage(size_t bytes) {
    const std::span<std::byte> values = transfers->staged(bytes);
    fill(values);
    for (uint64_t parts = random() % 3 + 1; parts > 0; --parts) {
      const size_t begin = random() % (values.size() + 1);
      write(values.subspan(begin, random() % (values.size() - begin + 1)));
    }
    write(values);
  }

  void expectAll() {
    std::vector<std::byte> found(expected.size());
    device.download(memory.get(), found);
    EXPECT_TRUE(found == expected);
    std::vector<std::byte> rows(kRows * kColumns);
    transfers->read(strided(), addressOf(strided()), rows);
    for (size_t row = 0; row < kRows; ++row)
      EXPECT_TRUE(std::equal(rows.begin() + static_cast<ptrdiff_t>(row * kColumns),
                             rows.begin() + static_cast<ptrdiff_t>((row + 1) * kColumns),
                             placeOfRow(row)));
  }

private:
  static constexpr size_t kDenseBytes = 3 * kHalf + 100, kRows = 37, kColumns = 50, kPitch = 64;

  static PlanFile plan() {
    PlanBuilder builder = forGpu();
    builder.tensor("dense", {int64_t{kDenseBytes}}, SegmentKind::persistent, planfile::DType::u8);
    const uint32_t rows =
        builder.tensor("rows", {kRows, kPitch}, SegmentKind::persistent, planfile::DType::u8);
    const uint64_t offset = builder.plan.tensors[rows]->offset;
    builder.view("strided", {kRows, kColumns}, {kPitch, 1}, SegmentKind::persistent, offset,
                 planfile::DType::u8);
    return loaded(std::move(builder));
  }
  size_t segmentBytes() const { return file.plan().segments()->Get(0)->size(); }
  const planfile::Tensor &dense() const { return *file.plan().tensors()->Get(0); }
  const planfile::Tensor &strided() const { return *file.plan().tensors()->Get(2); }
  CUdeviceptr addressOf(const planfile::Tensor &tensor) const {
    return memory.get() + tensor.offset();
  }
  std::vector<std::byte>::iterator placeOfRow(size_t row) {
    return expected.begin() + static_cast<ptrdiff_t>(strided().offset() + row * kPitch);
  }

  /// Often a limit of something.
  size_t anySize() {
    constexpr std::array limits = {size_t{0}, size_t{1},  size_t{64}, kSmall,
                                   kHalf / 2, kHalf - 64, kHalf,      kHalf + kSmall};
    if (random() % 2 == 0)
      return random() % (size_t{1} << (random() % 26));
    const size_t limit = limits[random() % limits.size()];
    return limit == 0 ? limit : limit + random() % 3 - 1;
  }
  size_t placeFor(size_t bytes) { return random() % (kDenseBytes - bytes + 1); }

  void fill(std::span<std::byte> values) {
    const size_t from = random() % (noise.size() - values.size() + 1);
    std::ranges::copy(std::span(noise).subspan(from, values.size()), values.begin());
  }
  std::span<const std::byte> pageable(size_t bytes) {
    own.resize(bytes);
    fill(own);
    return own;
  }

  void write(std::span<const std::byte> values) {
    const size_t begin = placeFor(values.size());
    std::ranges::copy(values, expected.begin() + static_cast<ptrdiff_t>(begin));
    transfers->writeRange(dense(), addressOf(dense()), begin, values);
    std::ranges::fill(own, std::byte{0xEE}); // pageable memory is the caller's again
  }
  void writeStrided() {
    const std::span<const std::byte> values = pageable(kRows * kColumns);
    for (size_t row = 0; row < kRows; ++row)
      std::ranges::copy(values.subspan(row * kColumns, kColumns), placeOfRow(row));
    transfers->write(strided(), addressOf(strided()), values);
  }
  void clear() {
    const size_t bytes = std::min(kDenseBytes, anySize()), begin = placeFor(bytes);
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(begin), bytes, std::byte{0});
    transfers->clearRange(dense(), addressOf(dense()), begin, bytes);
  }
  /// Of either memory.
  void readRange() {
    const size_t bytes = anySize(), begin = placeFor(bytes);
    own.resize(bytes);
    const std::span<std::byte> values =
        random() % 2 == 0 ? transfers->staged(bytes) : std::span(own);
    transfers->readRange(dense(), addressOf(dense()), begin, values);
    EXPECT_TRUE(std::ranges::equal(values, std::span(expected).subspan(begin, bytes)));
  }
  /// As a run does.
  void wait() {
    device.wait("tensors");
    transfers->arrived();
  }
  PlanFile file;
  cuda::Device device;
  cuda::DeviceMemory memory;
  std::optional<cuda::Transfers> transfers;
  std::vector<std::byte> expected, own;
  std::mt19937_64 random;
  std::vector<std::byte> noise;
};

class Transfers : public OnFakeDriver {};

/// Everything that a plan's variables are.
std::vector<std::byte> bytesOf(const planfile::Plan &plan, Executor &executor) {
  std::vector<std::byte> all;
  for (const planfile::Variable *variable : *plan.variables())
    readVariable(plan, executor, *variable, 0, [&](int64_t, std::span<const std::byte> values) {
      all.insert(all.end(), values.begin(), values.end());
    });
  return all;
}

/// Parameters with copies and moments, smaller and larger than what goes at once; a unit with gaps.
PlanBuilder manyVariables(PlanBuilder builder, SegmentKind moments) {
  const auto initialize = [&](uint32_t variable, planfile::InitKind kind) {
    planfile::InitializerT &init = *builder.plan.variables[variable]->initializer;
    init.kind = kind;
    init.std = init.limit = 0.5;
    init.cut = 2;
  };
  int64_t number = 0;
  for (const int64_t elements :
       {int64_t{3}, int64_t{70'001}, int64_t{1} << 20, int64_t{kHalf / 4 + 1}}) {
    const std::string name = "w" + std::to_string(number++);
    const uint32_t w = builder.variable(name, {elements});
    initialize(w, planfile::InitKind::trunc_normal);
    const uint32_t m = builder.variable(name + ".m", {elements}, static_cast<double>(number % 2),
                                        static_cast<int32_t>(w));
    builder.plan.variables[m]->tensor = builder.tensor(name + ".m", {elements}, moments);
    const uint32_t copy = builder.variable(name + ".bf16", {elements});
    builder.plan.variables[copy]->role = planfile::VariableRole::copy;
    builder.plan.variables[copy]->owner = static_cast<int32_t>(w);
    builder.plan.variables[copy]->tensor =
        builder.tensor(name + ".bf16", {elements}, SegmentKind::persistent, planfile::DType::bf16);
  }
  const uint32_t unit = builder.tensor("unit", {1000, 64}, SegmentKind::persistent);
  initialize(builder.member("first", unit, {300, 7}, 64), planfile::InitKind::uniform);
  initialize(builder.member("second", unit, {5000}, 9000), planfile::InitKind::normal);
  return builder;
}

} // namespace

TEST_F(Transfers, ArriveInAnyOrder) {
  for (uint64_t seed = 0; seed < 2; ++seed) {
    Tensors tensors(seed);
    for (int i = 0; i < 100; ++i) {
      tensors.doSomething();
      if (i % 32 == 31)
        tensors.expectAll();
    }
    tensors.expectAll();
    for (int i = 0; i < 20; ++i) // under way when it ends
      tensors.doSomething();
  }
}

/// There is NVML or not: it knows no GPU where the driver says that this one is.
TEST_F(Transfers, AGpuThatNvmlDoesNotKnowIsNotWatched) {
  const PlanFile file = loaded(forGpu());
  const auto executor = makeCudaExecutor(file, {.graph = false});
  const auto watch = executor->watch();
  ASSERT_TRUE(watch);
  watch->begin();
  const DeviceReadings readings = watch->end();
  EXPECT_EQ(readings.samples, 0U);
  EXPECT_EQ(readings.unknown.size(), 1U);
}

TEST_F(Transfers, FillHalvesToTheirEnds) {
  Tensors tensors(0);
  for (const size_t bytes : {kHalf, size_t{64}, kHalf - 64, size_t{64}, kHalf - 65, size_t{65},
                             kHalf - 1, size_t{1}, size_t{0}, kHalf + 1, kHalf, size_t{0}})
    tensors.stage(bytes);
  tensors.expectAll();
}

TEST_F(Transfers, GoOnWhileTheGpuTakesTheOtherHalf) {
  PlanBuilder builder = forGpu();
  builder.tensor("dense", {int64_t{kHalf / 4}}, SegmentKind::persistent);
  const PlanFile file = loaded(std::move(builder));
  const planfile::Tensor &tensor = *file.plan().tensors()->Get(0);
  const cuda::Device device(file, 0, false);
  const cuda::DeviceMemory memory(kHalf, "tensors");
  cuda::Transfers transfers(device);
  const auto writeFilledWith = [&](std::byte value, size_t bytes) {
    const std::span<std::byte> values = transfers.staged(bytes);
    std::ranges::fill(values, value);
    transfers.write(tensor, memory.get(), values);
  };
  for (const size_t expected : {1, 2, 2, 2}) {
    writeFilledWith(std::byte{1}, kHalf);
    EXPECT_EQ(fakeDriverState().waiting, expected);
  }
}

TEST_F(Transfers, TakeInitialValuesAsOtherExecutorsDo) {
  const PlanFile onCpu = loaded(manyVariables(PlanBuilder(), SegmentKind::persistent));
  CpuExecutor expected(onCpu, {.threads = 1});
  setVariables(onCpu, expected, 0, nullptr, 7);
  for (const SegmentKind moments : {SegmentKind::persistent, SegmentKind::host}) {
    const PlanFile file = loaded(manyVariables(forGpu(), moments));
    const auto executor = makeCudaExecutor(file, {.threads = 3});
    setVariables(file, *executor, 0, nullptr, 7);
    EXPECT_TRUE(bytesOf(file.plan(), *executor) == bytesOf(onCpu.plan(), expected));
    setVariables(file, *executor, 0, nullptr, 7);
    EXPECT_TRUE(bytesOf(file.plan(), *executor) == bytesOf(onCpu.plan(), expected));
  }
}

TEST_F(Transfers, EndWithTheRun) {
  PlanBuilder builder = forGpu();
  const auto moment = [&](const std::string &name) {
    const auto owner = static_cast<int32_t>(builder.variable(name, {1000}));
    const uint32_t made = builder.variable(name + ".m", {1000}, 0, owner);
    return builder.plan.variables[made]->tensor =
               builder.tensor(name + ".m", {1000}, SegmentKind::host);
  };
  const uint32_t from = moment("w"), to = moment("v"), slot = builder.tensor("slot", {1000});
  builder.program("train", blocks(call(planfile::TransferT(), {reads(from), writes(slot)}),
                                  call(planfile::TransferT(), {reads(slot), writes(to)})));
  const PlanFile file = builder.load();
  const auto executor = makeCudaExecutor(file, {.graph = false});
  for (const float value : {1.0F, 2.0F}) {
    const std::vector<float> values(1000, value);
    std::vector<float> found(1000);
    executor->write(from, std::as_bytes(std::span(values)));
    executor->run(0);
    executor->read(to, std::as_writable_bytes(std::span(found)));
    EXPECT_EQ(found, values);
  }
}

TEST_F(Transfers, AreForTheThreadThatLoadedThePlan) {
  PlanBuilder builder = forGpu();
  const uint32_t tensor = builder.tensor("dense", {4}, SegmentKind::persistent);
  const PlanFile file = loaded(std::move(builder));
  const auto executor = makeCudaExecutor(file, {.threads = 2});
  std::string error;
  std::thread([&] {
    try {
      executor->clearRange(tensor, 0, 16);
    } catch (const support::Error &thrown) {
      error = thrown.what();
    }
  }).join();
  EXPECT_NE(error.find("the thread has no context"), std::string::npos) << error;
}
