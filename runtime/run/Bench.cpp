// Wall-clock times of whole steps.
#include "runtime/run/Bench.h"

#include "runtime/plan/Mesh.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

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

} // namespace

std::vector<double> hydra::runtime::timeSteps(Session &session, int count,
                                              const std::function<void(double)> &each) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds(static_cast<size_t>(count));
  for (double &time : seconds) {
    const Clock::time_point begin = Clock::now();
    session.advance();
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
                                      Executor &executor, const std::vector<double> &seconds) {
  const Spread spread = spreadOf(seconds);
  const auto milliseconds = [](double time) { return fmt::format("{:.3f}", time * 1e3); };
  Table times(0);
  times.add({"median ms", "mean", "std", "min", "tok/s", "GFLOP/s"});
  times.add({milliseconds(spread.median), milliseconds(spread.mean), milliseconds(spread.deviation),
             milliseconds(spread.minimum),
             countText(static_cast<uint64_t>(double(session.tokens()) / spread.median)),
             fmt::format("{:.1f}", double(session.cost().flops()) / spread.median * 1e-9)});
  const double rate = double(session.cost().flops()) / spread.median /
                      static_cast<double>(ranksOf(file.plan())); // of one device
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
  return fmt::format("{} {} of {}\n{}{}  peak: arena {} ({} bytes), process {}\n", seconds.size(),
                     session.trains() ? "steps" : "calls", file.origin(), times.text(), shares,
                     bytesText(executor.arenaBytes()), executor.arenaBytes(),
                     bytesText(peakResidentBytes()));
}

std::string hydra::runtime::benchJson(const PlanFile &file, const Session &session,
                                      Executor &executor, const BenchTimes &times) {
  const nlohmann::ordered_json json = {{"plan", file.origin()},
                                       {"warm_up_seconds", times.warmUp},
                                       {"step_seconds", times.steps},
                                       {"tokens", session.tokens()},
                                       {"flops", session.cost().flops()},
                                       {"predicted_microseconds", session.cost().microseconds()},
                                       {"arena_bytes", executor.arenaBytes()},
                                       {"process_bytes", peakResidentBytes()}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}
