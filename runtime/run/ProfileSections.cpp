// From what an executor measured to what reports take.
#include "runtime/run/ProfileSections.h"

#include "runtime/report/Advice.h"
#include "runtime/report/CopyAudit.h"
#include "runtime/report/Hotspots.h"
#include "runtime/report/ModuleReport.h"
#include "runtime/report/OpRanking.h"
#include "runtime/report/Units.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

using namespace hydra::report;
using namespace hydra::runtime;
using namespace hydra::planfile;
using nlohmann::ordered_json;

namespace {

/// Seconds in which a step of the plan runs.
double busySeconds(const Profile &profile) {
  if (profile.timeline.empty())
    return std::accumulate(profile.times.begin(), profile.times.end(), 0.0,
                           [](double sum, const StepTime &time) { return sum + time.seconds; });
  std::vector<std::pair<double, double>> spans;
  for (const StepRun &run : profile.timeline)
    spans.emplace_back(run.begin, run.end);
  std::ranges::sort(spans);
  double busy = 0, reached = spans.front().first;
  for (const auto &[begin, end] : spans) {
    busy += std::max(0.0, end - std::max(begin, reached));
    reached = std::max(reached, end);
  }
  return busy;
}

Measurement measurementOf(const Profile &profile) {
  const double runs = profile.runs;
  std::map<const Step *, double> first;
  for (const StepTime &time : profile.first)
    first[time.step] += time.seconds;
  Measurement all{.steps = {}, .measured = true, .wall = profile.wallSeconds / runs};
  for (const StepTime &time : profile.times) {
    StepMeasure one{.step = time.step,
                    .program = time.program,
                    .calls = double(time.calls) / runs,
                    .seconds = time.seconds / runs,
                    .hostSeconds = time.hostSeconds / runs,
                    .firstSeconds = {}};
    if (!profile.first.empty())
      one.firstSeconds = first[time.step];
    all.steps.push_back(one);
  }
  for (const StepSample &sample : profile.samples)
    all.data += sample.data / runs;
  all.idle = std::max(0.0, all.wall - all.data - busySeconds(profile) / runs);
  const std::vector<double> alone = secondsAlone(profile.timeline);
  all.alone = std::accumulate(alone.begin(), alone.end(), 0.0) / runs;
  all.stepByStep = profile.stepByStep;
  all.multiprocessors = profile.multiprocessors;
  return all;
}

/// Rows of what the samples have of a part, in milliseconds.
class StepTable {
public:
  StepTable(const Profile &profile, const Measurement &measured) : profile(profile) {
    section.table.add({"part of a step", "mean ms", "std", "min", "p50", "p99", "share"});
    add("data", [](const StepSample &one) { return one.data; });
    for (const Phase phase : EnumValuesPhase())
      add(EnumNamePhase(phase),
          [phase](const StepSample &one) { return one.phases[static_cast<size_t>(phase)]; });
    addBetween(measured.idle);
    add("step", [](const StepSample &one) { return one.wall; });
    const double rate = profile.wallSeconds > 0 ? profile.tokens / profile.wallSeconds : 0;
    section.table.add({"tokens a second", countText(static_cast<uint64_t>(rate))});
    section.json["tokens_per_second"] = rate;
    section.json["parts"] = std::move(parts);
  }

  Section section{"step", Table(1), ordered_json::object()};

private:
  double meanWall() const { return profile.wallSeconds / profile.runs; }

  template <typename Value> void add(const char *name, Value value) {
    std::vector<double> values;
    for (const StepSample &one : profile.samples)
      values.push_back(1e3 * value(one));
    std::ranges::sort(values);
    const auto n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (const double one : values)
      squares += (one - mean) * (one - mean);
    const double deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
    const auto rank = [&](double part) { // the nearest
      return values[static_cast<size_t>(std::max(1.0, std::ceil(part * n))) - 1];
    };
    const double share = meanWall() > 0 ? 0.1 * mean / meanWall() : 0;
    section.table.add({name, fmt::format("{:.4f}", mean), fmt::format("{:.4f}", deviation),
                       fmt::format("{:.4f}", values.front()), fmt::format("{:.4f}", rank(0.5)),
                       fmt::format("{:.4f}", rank(0.99)), fmt::format("{:.1f}%", share)});
    parts.push_back({{"name", name},
                     {"mean_ms", mean},
                     {"deviation_ms", deviation},
                     {"min_ms", values.front()},
                     {"p50_ms", rank(0.5)},
                     {"p99_ms", rank(0.99)},
                     {"percent", share}});
  }

  void addBetween(double seconds) {
    const double share = meanWall() > 0 ? 100 * seconds / meanWall() : 0;
    section.table.add({"between", fmt::format("{:.4f}", 1e3 * seconds), "-", "-", "-", "-",
                       fmt::format("{:.1f}%", share)});
    parts.push_back({{"name", "between"}, {"mean_ms", 1e3 * seconds}, {"percent", share}});
  }

  const Profile &profile;
  ordered_json parts = ordered_json::array();
};

} // namespace

std::vector<Section> hydra::runtime::profileSections(const PlanFile &file, const Profile &profile) {
  const Plan &plan = file.plan();
  const Measurement measured = measurementOf(profile);
  std::vector<Section> sections{hotspots(plan, measured)};
  if (!profile.samples.empty())
    sections.push_back(StepTable(profile, measured).section);
  sections.push_back(opTimes(measured));
  sections.push_back(opAllocations(plan));
  sections.push_back(moduleTree(plan, measured));
  sections.push_back(copySection(plan, measured));
  sections.push_back(adviceSection(plan, measured));
  return sections;
}
