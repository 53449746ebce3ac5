// Samples of NVML beside what runs. NVML is asked only for what it knows: nothing is ever set.
#include "runtime/cuda/Nvml.h"

#include "runtime/support/SharedLibrary.h"

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace hydra::runtime::cuda {

namespace {

using Clock = std::chrono::steady_clock;

/// nvmlClocksThrottleReason... of nvml.h, which newer versions call nvmlClocksEventReason....
constexpr std::array<std::pair<unsigned long long, const char *>, 9> kReasons = {{
    {0x1, "idle"},
    {0x2, "clocks that applications set"},
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "thermal limit"},
    {0x40, "hardware thermal limit"},
    {0x80, "power brake"},
    {0x100, "display clock"},
}};

class Watch final : public DeviceWatch {
public:
  Watch(const Nvml &nvml, const std::string &bus, std::chrono::milliseconds interval)
      : nvml(nvml), interval(interval), why(open(bus)) {}

  ~Watch() override {
    stop();
    if (started && nvml.shutdown)
      nvml.shutdown();
  }

  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  void begin() override {
    stop();
    readings = {};
    problems = {};
    if (!why.empty())
      return;
    stopped = false;
    atFirst = energy();
    first = Clock::now();
    sampler = std::thread([this] { sampleUntilStopped(); });
  }

  DeviceReadings end() override {
    if (!why.empty()) {
      readings.unknown = {why};
      return readings;
    }
    readings.seconds = std::chrono::duration<double>(Clock::now() - first).count();
    stop();
    const std::optional<unsigned long long> atLast = energy();
    if (readings.samples < 2)
      sample();
    // It stands still where steps end before it is counted on.
    if (atFirst && atLast && *atLast > *atFirst)
      readings.joules = 1e-3 * static_cast<double>(*atLast - *atFirst);
    for (const auto &[what, problem] : problems)
      readings.unknown.push_back(fmt::format("{}: {}", what, problem));
    return readings;
  }

private:
  /// Why the GPU cannot be watched; else an empty text.
  std::string open(const std::string &bus) {
    if (!nvml.found)
      return fmt::format("there is no {}", Nvml::kLibrary);
    if (!nvml.init || !nvml.deviceByBus)
      return fmt::format("{} has no {}", Nvml::kLibrary,
                         nvml.init ? "nvmlDeviceGetHandleByPciBusId_v2" : "nvmlInit_v2");
    if (const Nvml::Status status = nvml.init(); status != Nvml::kSuccess)
      return fmt::format("NVML does not begin: {}", textOf(status));
    started = true;
    if (const Nvml::Status status = nvml.deviceByBus(bus.c_str(), &device);
        status != Nvml::kSuccess)
      return fmt::format("NVML does not know the GPU {}: {}", bus, textOf(status));
    unsigned current = 0, pending = 0;
    if (nvml.migMode && nvml.migMode(device, &current, &pending) == Nvml::kSuccess &&
        current == Nvml::kMigIsOn)
      return "the GPU is split into instances (MIG), and NVML tells only of all together";
    return "";
  }

  std::string textOf(Nvml::Status status) const {
    const char *const text = nvml.errorString ? nvml.errorString(status) : nullptr;
    return text ? text : fmt::format("error {}", status);
  }

  /// A number that a function of NVML gives, which may be missing; nothing, with the reason noted,
  /// where there is none.
  template <typename Number, typename Function, typename... Arguments>
  std::optional<Number> ask(const char *what, Function *function, Arguments... arguments) {
    Number number = 0;
    if (!function) {
      problems.try_emplace(what, "this driver's NVML does not tell");
      return std::nullopt;
    }
    if (const Nvml::Status status = function(device, arguments..., &number);
        status != Nvml::kSuccess) {
      problems.try_emplace(what, textOf(status));
      return std::nullopt;
    }
    return number;
  }

  /// While no thread samples, since both note problems.
  std::optional<unsigned long long> energy() {
    return ask<unsigned long long>("energy", nvml.energy);
  }

  void sample() {
    ++readings.samples;
    if (const auto number = ask<unsigned>("clock", nvml.clock, Nvml::kMultiprocessorClock))
      readings.megahertz.push_back(*number);
    if (const auto number = ask<unsigned>("power", nvml.power))
      readings.watts.push_back(1e-3 * *number);
    if (const auto number = ask<unsigned>("temperature", nvml.temperature, Nvml::kGpuTemperature))
      readings.celsius.push_back(*number);
    if (const auto bits = ask<unsigned long long>("what throttles the clock", nvml.clockReasons)) {
      if (!readings.throttled)
        readings.throttled.emplace();
      noteReasons(*bits);
    }
  }

  void noteReasons(unsigned long long bits) {
    for (const auto &[bit, word] : kReasons)
      if (bits & bit)
        ++(*readings.throttled)[word];
    for (const auto &[bit, word] : kReasons)
      bits &= ~bit;
    if (bits != 0)
      ++(*readings.throttled)[fmt::format("reason {:#x}", bits)];
  }

  void sampleUntilStopped() {
    std::unique_lock guard(lock);
    do
      sample();
    while (!wakeUp.wait_for(guard, interval, [&] { return stopped; }));
  }

  void stop() {
    if (!sampler.joinable())
      return;
    {
      const std::lock_guard guard(lock);
      stopped = true;
    }
    wakeUp.notify_one();
    sampler.join();
  }

  const Nvml nvml;
  const std::chrono::milliseconds interval;
  Nvml::Device *device = nullptr;
  bool started = false;
  const std::string why; ///< it cannot be watched; else empty

  std::thread sampler;
  std::mutex lock;
  std::condition_variable wakeUp;
  bool stopped = false;
  DeviceReadings readings;
  std::map<std::string, std::string> problems; ///< by what is not told
  Clock::time_point first;
  std::optional<unsigned long long> atFirst; ///< millijoules since the driver was loaded
};

} // namespace

Nvml Nvml::find(const char *name) {
  const support::SharedLibrary library({name});
  Nvml nvml;
  nvml.found = static_cast<bool>(library);
  if (!library)
    return nvml;
  library.find(nvml.init, "nvmlInit_v2");
  library.find(nvml.shutdown, "nvmlShutdown");
  library.find(nvml.errorString, "nvmlErrorString");
  library.find(nvml.deviceByBus, "nvmlDeviceGetHandleByPciBusId_v2");
  library.find(nvml.migMode, "nvmlDeviceGetMigMode");
  library.find(nvml.clock, "nvmlDeviceGetClockInfo");
  library.find(nvml.power, "nvmlDeviceGetPowerUsage");
  library.find(nvml.energy, "nvmlDeviceGetTotalEnergyConsumption");
  library.find(nvml.temperature, "nvmlDeviceGetTemperature");
  if (!library.find(nvml.clockReasons, "nvmlDeviceGetCurrentClocksEventReasons"))
    library.find(nvml.clockReasons, "nvmlDeviceGetCurrentClocksThrottleReasons"); // before R535
  return nvml;
}

std::unique_ptr<DeviceWatch> watchGpu(const Nvml &nvml, const std::string &bus,
                                      std::chrono::milliseconds interval) {
  return std::make_unique<Watch>(nvml, bus, interval);
}

} // namespace hydra::runtime::cuda
