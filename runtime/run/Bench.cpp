// Wall-clock times of whole steps.
#include "runtime/run/Bench.h"

#include "runtime/plan/Mesh.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

using namespace hydra::report;
using namespace hydra::runtime;

namespace {

/// The largest resident size of this process so far, 0 if the system does not say.
uint64_t peakResidentBytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  uint64_t kibibytes = 0;
  while (file >> word)
    if (word == "VmHWM:" && file >> kibibytes)
      return kibibytes * 1024;
  return 0;
}

/// FLOPs a second of one device, at the median.
double rateOf(const PlanFile &file, const Session &session, const std::vector<double> &seconds) {
  return double(session.cost().flops()) / spreadOf(seconds).median /
         static_cast<double>(ranksOf(file.plan()));
}

/// What readings of a device say about steps.
struct DeviceFigures {
  std::optional<double> megahertz, slowest, fastest, watts, joules, celsius; // joules of a step
  bool counted = false;                                                      // the joules
  std::optional<double> teraflopsPerGigahertz;

  DeviceFigures(const DeviceReadings &readings, double rate, size_t steps) {
    if (!readings.megahertz.empty()) {
      const Spread clock = spreadOf(readings.megahertz);
      megahertz = clock.median;
      slowest = clock.minimum;
      fastest = std::ranges::max(readings.megahertz);
      if (clock.median > 0)
        teraflopsPerGigahertz = 1e-12 * rate / (1e-3 * clock.median);
    }
    if (!readings.watts.empty())
      watts = spreadOf(readings.watts).mean;
    counted = readings.joules.has_value();
    if (counted)
      joules = *readings.joules / static_cast<double>(steps);
    else if (watts)
      joules = *watts * readings.seconds / static_cast<double>(steps);
    if (!readings.celsius.empty())
      celsius = std::ranges::max(readings.celsius);
  }
};

/// `throttled by power cap (11 of 12 samples), idle (1 of 12)`.
std::string throttleText(const DeviceReadings &readings) {
  std::string text;
  for (const auto &[reason, samples] : *readings.throttled)
    text += fmt::format("{}{} ({} of {}{})", text.empty() ? "throttled by " : ", ", reason, samples,
                        readings.samples, text.empty() ? " samples" : "");
  return text.empty() ? "not throttled" : text;
}

/// A line with what is known, and why the rest is not.
std::string deviceText(const PlanFile &file, const DeviceReadings &readings,
                       const DeviceFigures &figures) {
  std::vector<std::string> parts;
  if (figures.megahertz) {
    parts.push_back(fmt::format("{:.0f} MHz ({:.0f} to {:.0f})", *figures.megahertz,
                                *figures.slowest, *figures.fastest));
    if (figures.teraflopsPerGigahertz)
      parts.push_back(fmt::format("{:.1f} TFLOP/s per GHz", *figures.teraflopsPerGigahertz));
  }
  if (figures.watts)
    parts.push_back(fmt::format("{:.0f} W", *figures.watts));
  if (figures.joules)
    parts.push_back(fmt::format("{:.4g} J a step{}", *figures.joules,
                                figures.counted ? "" : " (power x time)"));
  if (figures.celsius)
    parts.push_back(fmt::format("{:.0f} C", *figures.celsius));
  if (readings.throttled)
    parts.push_back(throttleText(readings));
  for (const std::string &what : readings.unknown)
    parts.push_back("not known: " + what);
  return fmt::format("  device{}: {}\n", ranksOf(file.plan()) > 1 ? " of rank 0" : "",
                     fmt::join(parts, ", "));
}

/// Null where there is none.
nlohmann::ordered_json orNull(const std::optional<double> &value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

} // namespace

std::vector<double> hydra::runtime::timeSteps(Session &session, int count,
                                              const std::function<void(double)> &each) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds(static_cast<size_t>(count));
  for (double &time : seconds) {
    const Clock::time_point begin = Clock::now();
    session.advance(/*goesOn=*/!each && &time != &seconds.back());
    time = std::chrono::duration<double>(Clock::now() - begin).count();
    if (each)
      each(time);
  }
  return seconds;
}

Spread hydra::runtime::spreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  double mean = 0.0, squares = 0.0;
  for (const double value : values)
    mean += value / double(n);
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, mean,
          n > 1 ? std::sqrt(squares / double(n - 1)) : 0.0, values[0]};
}

std::string hydra::runtime::benchText(const PlanFile &file, const Session &session,
                                      Executor &executor, const std::vector<double> &seconds,
                                      const std::optional<DeviceReadings> &device) {
  const Spread spread = spreadOf(seconds);
  const auto milliseconds = [](double time) { return fmt::format("{:.3f}", time * 1e3); };
  Table times(0);
  times.add({"median ms", "mean", "std", "min", "tok/s", "GFLOP/s"});
  times.add({milliseconds(spread.median), milliseconds(spread.mean), milliseconds(spread.deviation),
             milliseconds(spread.minimum),
             countText(static_cast<uint64_t>(double(session.tokens()) / spread.median)),
             fmt::format("{:.1f}", double(session.cost().flops()) / spread.median * 1e-9)});
  const double rate = rateOf(file, session, seconds);
  std::string shares;
  // Both figures are of 16-bit operands.
  const std::string_view precision = file.plan().header()->precision()->string_view();
  if (precision != "fp32" && precision != "tf32") {
    if (const std::optional<double> measured = executor.matmulRate())
      shares += fmt::format("  {:.1f}% of the rate of an 8192^3 matmul just measured, {:.1f} "
                            "TFLOP/s\n",
                            100 * rate / *measured, 1e-12 * *measured);
    if (const double peak = file.plan().target()->peak_flops(); peak > 0)
      shares += fmt::format("  MFU {:.1f}%, of the vendor's {:.0f} TFLOP/s\n", 100 * rate / peak,
                            1e-12 * peak);
  }
  if (device)
    shares += deviceText(file, *device, DeviceFigures(*device, rate, seconds.size()));
  return fmt::format("{} {} of {}\n{}{}  peak: arena {} ({} bytes), process {}\n", seconds.size(),
                     session.trains() ? "steps" : "calls", file.origin(), times.text(), shares,
                     bytesText(executor.arenaBytes()), executor.arenaBytes(),
                     bytesText(peakResidentBytes()));
}

std::string hydra::runtime::benchJson(const PlanFile &file, const Session &session,
                                      Executor &executor, const BenchTimes &times,
                                      const std::optional<DeviceReadings> &device) {
  nlohmann::ordered_json json = {{"plan", file.origin()},
                                 {"warm_up_seconds", times.warmUp},
                                 {"step_seconds", times.steps},
                                 {"tokens", session.tokens()},
                                 {"flops", session.cost().flops()},
                                 {"predicted_microseconds", session.cost().microseconds()},
                                 {"arena_bytes", executor.arenaBytes()},
                                 {"process_bytes", peakResidentBytes()}};
  if (device) {
    const DeviceFigures figures(*device, rateOf(file, session, times.steps), times.steps.size());
    json["clock_mhz"] = orNull(figures.megahertz);
    json["clock_min_mhz"] = orNull(figures.slowest);
    json["clock_max_mhz"] = orNull(figures.fastest);
    json["tflops_per_ghz"] = orNull(figures.teraflopsPerGigahertz);
    json["watts"] = orNull(figures.watts);
    json["joules"] = orNull(figures.joules);
    json["joules_counted"] = figures.counted;
    json["celsius"] = orNull(figures.celsius);
    json["throttled"] = nullptr;
    if (device->throttled)
      json["throttled"] = *device->throttled;
    json["device_samples"] = device->samples;
    json["device_unknown"] = device->unknown;
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}
