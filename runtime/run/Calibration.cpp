// Medians of steps that run alone; what runs side by side is fitted to whole steps.
#include "runtime/run/Calibration.h"

#include "runtime/report/PlanTimes.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/report/Table.h"
#include "runtime/run/Bench.h"
#include "runtime/run/Session.h"
#include "runtime/support/Error.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/ZeroByte.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>

using namespace hydra::runtime;
using namespace hydra::planfile;
using namespace hydra::report;

namespace {

constexpr int kWarmUp = 3;
constexpr double kWarmUpSeconds = 0.1; // until clocks are those of work that goes on

void warmUp(Session &session) {
  double seconds = 0;
  for (int i = 0; i < kWarmUp || seconds < kWarmUpSeconds; ++i)
    seconds += timeSteps(session, 1).front();
}

double medianOf(const std::vector<double> &values) { return spreadOf(values).median; }

/// Microseconds of one call of each step: the median over runs of the program.
std::unordered_map<const Step *, double> callTimes(const std::vector<StepRun> &timeline,
                                                   const std::vector<StepTime> &times) {
  std::unordered_map<const Step *, std::map<uint32_t, double>> byRun;
  for (const StepRun &run : timeline)
    byRun[run.step][run.run] += 1e6 * (run.end - run.begin);
  std::unordered_map<const Step *, double> calls; // in a loop, a step is in several places
  for (const StepTime &time : times)
    calls[time.step] += double(time.calls);
  std::unordered_map<const Step *, double> result;
  for (const auto &[step, runs] : byRun) {
    std::vector<double> sums;
    for (const auto &[run, sum] : runs)
      sums.push_back(sum);
    result[step] = medianOf(sums) * double(sums.size()) / std::max(1.0, calls[step]);
  }
  return result;
}

/// Microseconds between runs of steps that follow each other, the mean.
double gapOf(const std::vector<StepRun> &timeline) {
  double idle = 0, count = 0;
  for (size_t i = 1; i < timeline.size(); ++i) {
    const StepRun &before = timeline[i - 1], &run = timeline[i];
    if (run.run != before.run || run.program != before.program)
      continue;
    idle += std::max(0.0, 1e6 * (run.begin - before.end));
    ++count;
  }
  return count > 0 ? idle / count : 0;
}

} // namespace

void Calibration::add(const PlanFile &file, const MakeExecutor &makeExecutor, int repeats) {
  double seconds = 0;
  {
    const std::unique_ptr<Executor> executor = makeExecutor(file, /*alone=*/false);
    Session session(file, *executor, {});
    warmUp(session);
    seconds = medianOf(timeSteps(session, repeats));
  }
  addSteps(file, *makeExecutor(file, /*alone=*/true), repeats);
  wholes.back().microseconds = 1e6 * seconds;
}

void Calibration::addSteps(const PlanFile &file, Executor &executor, int repeats) {
  Session session(file, executor, {});
  warmUp(session);
  executor.setProfiling(true);
  timeSteps(session, repeats);
  const std::vector<StepRun> timeline = executor.timeline();
  const auto times = callTimes(timeline, executor.stepTimes());
  gaps.push_back(gapOf(timeline));
  const std::vector<PlacedStep> all = stepsOf(file.plan());
  std::shared_ptr<PlanT> plan(file.plan().UnPack());
  bool isFixed = true;
  setTimes(*plan, [&](size_t number, const StepWork &work) {
    isFixed &= !all[number].conditional; // which case runs, and how often, depends on numbers
    const auto found = times.find(all[number].step);
    if (found == times.end() || found->second <= 0 || all[number].conditional)
      return work.limit;
    if (work.limit > 0) {
      Times &same = steps[work.kind][work.sizes];
      same.limits.push_back(work.limitOfAll());
      same.microseconds.push_back(found->second);
    }
    return found->second;
  });
  auto packed = std::make_shared<PackedPlan>(*plan);
  wholes.push_back({file.origin(), std::move(plan), std::move(packed), isFixed, 0});
}

/// Around runs and for inputs, what whole steps take longer than their steps: least squares of
/// relative errors, neither negative. Returns the sum of the squares that are left beside them.
std::pair<Sharing, double> Calibration::fitAround(double exclusive, double gap) const {
  std::vector<std::pair<Parts, double>> all; // and what was measured, of plans that count
  for (const Whole &whole : wholes) {
    const auto total = [&](double run, double input) {
      const Sharing sharing(exclusive, gap, run, input);
      return predictedStep(**whole.packed, &sharing).total;
    };
    if (!whole.isFixed)
      continue;
    const double none = total(0, 0);
    all.push_back({{none, total(1, 0) - none, total(0, 1) - none}, whole.microseconds});
  }
  double a11 = 0, a12 = 0, a22 = 0, b1 = 0, b2 = 0;
  for (const auto &[parts, measured] : all) {
    const double weight = 1 / (measured * measured), rest = measured - parts.steps;
    a11 += weight * parts.runs * parts.runs;
    a12 += weight * parts.runs * parts.inputs;
    a22 += weight * parts.inputs * parts.inputs;
    b1 += weight * parts.runs * rest;
    b2 += weight * parts.inputs * rest;
  }
  const double determinant = a11 * a22 - a12 * a12;
  double run = a11 > 0 ? std::max(0.0, b1 / a11) : 0, input = 0;
  if (determinant > 1e-9 * a11 * a22 && b1 * a22 > b2 * a12 && a11 * b2 > a12 * b1) {
    run = (b1 * a22 - b2 * a12) / determinant;
    input = (a11 * b2 - a12 * b1) / determinant;
  }
  double error = 0;
  for (const auto &[parts, measured] : all) {
    const double one = std::log((parts.steps + run * parts.runs + input * parts.inputs) / measured);
    error += one * one;
  }
  return {Sharing(exclusive, gap, run, input), error};
}

MeasuredRates Calibration::rates(std::string about) const {
  MeasuredRates rates;
  rates.about = std::move(about);
  for (const auto &[kind, all] : steps)
    for (const auto &[sizes, times] : all)
      rates.steps[kind].push_back({sizes, medianOf(times.limits), medianOf(times.microseconds)});
  constexpr int parts = 20, gapParts = 4;
  const double gap = medianOf(gaps);
  double least = HUGE_VAL;
  // As little side by side, and as little between steps, as explains what was measured.
  for (int k = 0; k <= gapParts; ++k)
    for (int i = parts; i >= 0; --i) {
      const auto [sharing, error] = fitAround(double(i) / parts, gap * k / gapParts);
      if (error < least) {
        least = error;
        rates.sharing = sharing;
      }
    }
  return rates;
}

std::string Calibration::text(const MeasuredRates &rates) const {
  Table table(1);
  table.add({"plan", "measured us", "predicted us", "error"});
  for (const Whole &whole : wholes) {
    PlanT plan(*whole.plan);
    predictTimes(plan, rates);
    const double time = plan.cost.microseconds();
    table.add({whole.name, fmt::format("{:.1f}", whole.microseconds), fmt::format("{:.1f}", time),
               fmt::format("{:+.1f}%", 100 * (time / whole.microseconds - 1))});
  }
  return table.text();
}

std::string hydra::runtime::withMeasured(const std::string &description, const MeasuredRates &rates,
                                         const std::string &origin) {
  using Json = nlohmann::json;
  const auto parsed = [&](const std::string &text) {
    const Json content = Json::parse(text, support::JsonGuard(origin), /*allow_exceptions=*/false);
    if (!content.is_object() || content.empty() || support::hasZeroByte(text))
      support::fail("{}: a target is a JSON object", origin);
    return content;
  };
  Json expected = parsed(description);
  // What people wrote stays as they wrote it. What was measured before is the last field.
  std::string text = description;
  text.resize(std::min(text.find("\"measured\""), text.rfind('}')));
  text.resize(text.find_last_not_of(" \t\r\n,") + 1);
  text += ",\n  \"measured\": " + rates.text(2) + "\n}\n";
  Json written = parsed(text);
  expected.erase("measured");
  written.erase("measured");
  if (written != expected)
    support::fail("{}: field 'measured' must be the last one", origin);
  return text;
}
