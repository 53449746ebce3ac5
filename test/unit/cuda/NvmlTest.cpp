// What a GPU tells while it is watched, by functions that need none, and by a library that has some
// of them.
#include "runtime/cuda/Nvml.h"

#include "runtime/support/SharedLibrary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace hydra::runtime;
using namespace hydra::runtime::cuda;
using namespace std::chrono_literals;

namespace {

using Texts = std::vector<std::string>;
using Counts = std::map<std::string, uint64_t>;

constexpr Nvml::Status kNotSupported = 3, kNoPermission = 4, kNotFound = 6;
constexpr auto kNever = std::chrono::hours(1); // longer than any test

/// What the functions below say next.
struct Gpu {
  Nvml::Status begins = Nvml::kSuccess, power = Nvml::kSuccess;
  unsigned split = 0;
  std::atomic<unsigned> megahertz = 1000; ///< more by 10 each time
  unsigned long long millijoules = 5000;
  unsigned long long bits = 0;
  int begun = 0;
} gpu;

Nvml functions() {
  Nvml nvml;
  nvml.found = true;
  nvml.init = [] {
    gpu.begun += gpu.begins == Nvml::kSuccess;
    return gpu.begins;
  };
  nvml.shutdown = [] {
    --gpu.begun;
    return Nvml::kSuccess;
  };
  nvml.errorString = [](Nvml::Status status) {
    return status == kNoPermission ? "Insufficient Permissions" : "Not Supported";
  };
  nvml.deviceByBus = [](const char *bus, Nvml::Device **device) {
    *device = reinterpret_cast<Nvml::Device *>(&gpu);
    return std::string(bus) == "0000:3b:00.0" ? Nvml::kSuccess : kNotFound;
  };
  nvml.migMode = [](Nvml::Device *, unsigned *current, unsigned *) {
    *current = gpu.split;
    return Nvml::kSuccess;
  };
  nvml.clock = [](Nvml::Device *device, int which, unsigned *megahertz) {
    EXPECT_EQ(device, reinterpret_cast<Nvml::Device *>(&gpu));
    EXPECT_EQ(which, 1);
    *megahertz = gpu.megahertz += 10;
    return Nvml::kSuccess;
  };
  nvml.power = [](Nvml::Device *, unsigned *milliwatts) {
    *milliwatts = 650500;
    return gpu.power;
  };
  nvml.energy = [](Nvml::Device *, unsigned long long *millijoules) {
    *millijoules = gpu.millijoules;
    return Nvml::kSuccess;
  };
  nvml.temperature = [](Nvml::Device *, int sensor, unsigned *celsius) {
    EXPECT_EQ(sensor, 0);
    *celsius = 61;
    return Nvml::kSuccess;
  };
  nvml.clockReasons = [](Nvml::Device *, unsigned long long *bits) {
    *bits = gpu.bits;
    return Nvml::kSuccess;
  };
  return nvml;
}

class NvmlTest : public testing::Test {
protected:
  void SetUp() override {
    gpu.begins = gpu.power = Nvml::kSuccess;
    gpu.split = 0;
    gpu.megahertz = 1000;
    gpu.millijoules = 5000;
    gpu.bits = 0;
  }
  void TearDown() override { EXPECT_EQ(gpu.begun, 0); }

  static std::unique_ptr<DeviceWatch> watch(const Nvml &nvml,
                                            std::chrono::milliseconds interval = kNever) {
    return watchGpu(nvml, "0000:3b:00.0", interval);
  }
  /// Of a watch that sees nothing.
  static Texts whyNot(const Nvml &nvml, const std::string &bus = "0000:3b:00.0") {
    const auto watch = watchGpu(nvml, bus, kNever);
    watch->begin();
    const DeviceReadings readings = watch->end();
    EXPECT_EQ(readings.samples, 0U);
    EXPECT_TRUE(readings.megahertz.empty());
    EXPECT_FALSE(readings.joules || readings.throttled);
    return readings.unknown;
  }
};

} // namespace

TEST_F(NvmlTest, ShortStepsHaveASampleOfBeginningAndEnd) {
  const auto watched = watch(functions());
  for (int run = 0; run < 2; ++run) { // the second begins anew
    gpu.megahertz = 1000;
    gpu.bits = run == 0 ? 0x4 : 0;
    watched->begin();
    gpu.millijoules += 1234;
    const DeviceReadings readings = watched->end();
    EXPECT_EQ(readings.samples, 2U);
    EXPECT_EQ(readings.megahertz, (std::vector<double>{1010, 1020}));
    EXPECT_EQ(readings.watts, (std::vector<double>{650.5, 650.5}));
    EXPECT_EQ(readings.celsius, (std::vector<double>{61, 61}));
    EXPECT_DOUBLE_EQ(readings.joules.value_or(0), 1.234);
    EXPECT_EQ(readings.throttled, run == 0 ? Counts({{"power cap", 2}}) : Counts());
    EXPECT_GT(readings.seconds, 0);
    EXPECT_EQ(readings.unknown, Texts());
  }
}

TEST_F(NvmlTest, LongStepsHaveASampleWheneverTheIntervalHasPassed) {
  const auto watched = watch(functions(), 1ms);
  watched->begin();
  while (gpu.megahertz < 1100)
    std::this_thread::sleep_for(1ms);
  const DeviceReadings readings = watched->end();
  EXPECT_GE(readings.samples, 10U);
  EXPECT_EQ(readings.megahertz.size(), readings.samples);
  EXPECT_TRUE(std::ranges::is_sorted(readings.megahertz));
  EXPECT_GE(readings.seconds, 0.008);
  const unsigned last = gpu.megahertz;
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(gpu.megahertz, last) << "samples behind the end";
}

TEST_F(NvmlTest, ReasonsAreWords) {
  const auto watched = watch(functions());
  const auto reasonsOf = [&](unsigned long long bits) {
    gpu.bits = bits;
    watched->begin();
    return watched->end().throttled.value_or(Counts({{"not known", 0}}));
  };
  EXPECT_EQ(reasonsOf(0), Counts());
  EXPECT_EQ(reasonsOf(0x4), Counts({{"power cap", 2}}));
  EXPECT_EQ(reasonsOf(0x20), Counts({{"thermal limit", 2}}));
  EXPECT_EQ(reasonsOf(0x48), Counts({{"hardware slowdown", 2}, {"hardware thermal limit", 2}}));
  EXPECT_EQ(reasonsOf(0x193), Counts({{"idle", 2},
                                      {"clocks that applications set", 2},
                                      {"sync boost", 2},
                                      {"power brake", 2},
                                      {"display clock", 2}}));
  EXPECT_EQ(reasonsOf(0x8004), Counts({{"power cap", 2}, {"reason 0x8000", 2}}));
}

TEST_F(NvmlTest, WhatIsNotToldIsUnknown) {
  Nvml nvml = functions();
  nvml.energy = nullptr;
  nvml.clockReasons = nullptr;
  gpu.power = kNoPermission;
  auto watched = watch(nvml);
  watched->begin();
  DeviceReadings readings = watched->end();
  EXPECT_EQ(readings.megahertz.size(), 2U);
  EXPECT_TRUE(readings.watts.empty());
  EXPECT_FALSE(readings.joules || readings.throttled);
  EXPECT_EQ(readings.unknown,
            (Texts{"energy: this driver's NVML does not tell", "power: Insufficient Permissions",
                   "what throttles the clock: this driver's NVML does not tell"}));
  nvml = functions();
  nvml.errorString = nullptr;
  watched = watch(nvml);
  watched->begin();
  readings = watched->end();
  EXPECT_FALSE(readings.joules) << "the counter did not move";
  EXPECT_EQ(readings.unknown, Texts{"power: error 4"});
}

TEST_F(NvmlTest, GpusThatCannotBeWatchedSayWhy) {
  EXPECT_EQ(whyNot(Nvml::find("libhydra-has-no-such.so.1")),
            Texts{"there is no libnvidia-ml.so.1"});
  Nvml nvml = functions();
  nvml.init = nullptr;
  EXPECT_EQ(whyNot(nvml), Texts{"libnvidia-ml.so.1 has no nvmlInit_v2"});
  nvml = functions();
  nvml.deviceByBus = nullptr;
  EXPECT_EQ(whyNot(nvml), Texts{"libnvidia-ml.so.1 has no nvmlDeviceGetHandleByPciBusId_v2"});
  EXPECT_EQ(whyNot(functions(), "0000:5e:00.0"),
            Texts{"NVML does not know the GPU 0000:5e:00.0: Not Supported"});
  gpu.split = 1;
  EXPECT_EQ(whyNot(functions()),
            Texts{"the GPU is split into instances (MIG), and NVML tells only of all together"});
  gpu.split = 0;
  gpu.begins = kNotSupported;
  EXPECT_EQ(whyNot(functions()), Texts{"NVML does not begin: Not Supported"});
}

/// One that is left in the middle of steps, as an error in them does.
TEST_F(NvmlTest, NobodyAsksForTheEnd) { watch(functions(), 1ms)->begin(); }

TEST_F(NvmlTest, FunctionsAreFoundByTheirNames) {
  const Nvml nvml = Nvml::find(HYDRA_FAKE_NVML);
  EXPECT_TRUE(nvml.found && nvml.migMode);
  EXPECT_FALSE(nvml.energy);
  int (*begun)() = nullptr; // not ended
  ASSERT_TRUE(hydra::support::SharedLibrary({HYDRA_FAKE_NVML}).find(begun, "fakeNvmlBegun"));
  {
    const auto watched = watch(nvml);
    EXPECT_EQ(begun(), 1);
    watched->begin();
    const DeviceReadings readings = watched->end();
    EXPECT_EQ(readings.megahertz, (std::vector<double>{1410, 1410}));
    EXPECT_EQ(readings.watts, (std::vector<double>{251.5, 251.5}));
    EXPECT_EQ(readings.celsius, (std::vector<double>{57, 57}));
    EXPECT_EQ(readings.throttled, Counts({{"power cap", 2}})) << "by the name of older drivers";
    EXPECT_EQ(readings.unknown, Texts{"energy: this driver's NVML does not tell"});
  }
  EXPECT_EQ(begun(), 0);
  EXPECT_EQ(whyNot(nvml, "ffff:ff:1f.0"),
            Texts{"NVML does not know the GPU ffff:ff:1f.0: Unknown Error"});
}
