// Sums times, FLOPs and bytes of steps over the groups of each table.
#include "runtime/run/ProfileTable.h"

#include "runtime/plan/Actions.h"
#include "runtime/plan/Mesh.h"
#include "runtime/report/MeasuredRates.h"
#include "runtime/report/Phases.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"
#include "runtime/run/ChromeTrace.h"
#include "runtime/run/Mispredictions.h"
#include "runtime/run/ProfileSections.h"
#include "runtime/support/Error.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

using namespace hydra::report;
using namespace hydra::runtime;
using namespace hydra::planfile;
using nlohmann::ordered_json;

namespace {

/// Totals of one group; costs count once for each call.
struct Sums {
  uint64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0, predicted = 0, limit = 0;

  /// A part of a step's time and cost.
  void add(const StepTime &time, double part = 1) {
    const double calls = part * static_cast<double>(time.calls);
    this->calls += time.calls;
    seconds += part * time.seconds;
    flops += calls * static_cast<double>(time.step->cost()->flops());
    bytes += calls * static_cast<double>(time.step->cost()->bytes());
    predicted += calls * time.step->cost()->microseconds() * 1e-6;
    limit += calls * limitOf(*time.step) * 1e-6;
  }
};

using Group = std::pair<std::string, Sums>;

void addTo(PhaseShares &seconds, const StepTime &time) {
  const PhaseShares shares = phaseShares(*time.step);
  for (size_t i = 0; i < shares.size(); ++i)
    seconds[i] += shares[i] * time.seconds;
}

/// By phase, of which a step may be in several; in their order.
std::vector<Group> groupByPhase(std::span<const StepTime> times) {
  std::vector<Group> groups;
  for (const Phase phase : EnumValuesPhase()) {
    Sums sums;
    for (const StepTime &time : times)
      if (const double part = phaseShares(*time.step)[static_cast<size_t>(phase)];
          part > 0 && time.calls > 0)
        sums.add(time, part);
    if (sums.calls > 0)
      groups.emplace_back(EnumNamePhase(phase), sums);
  }
  return groups;
}

/// Groups by name, the longest first.
template <typename NameOf>
std::vector<Group> groupBy(std::span<const StepTime> times, NameOf nameOf) {
  std::map<std::string, Sums> sums;
  for (const StepTime &time : times)
    if (time.calls > 0)
      sums[nameOf(*time.step)].add(time);
  std::vector<Group> groups(sums.begin(), sums.end());
  std::sort(groups.begin(), groups.end(), [](const Group &a, const Group &b) {
    return a.second.seconds != b.second.seconds ? a.second.seconds > b.second.seconds
                                                : a.first < b.first;
  });
  return groups;
}

/// Exchanges of one kind along one axis: as predicted for one step, and as measured in all runs.
struct ExchangeTimes {
  ExchangeSum predicted;
  double calls = 0, wireBytes = 0, seconds = 0;
  std::optional<double> alone; ///< seconds; nothing without a time line
};

std::vector<ExchangeTimes> exchangeTimes(const Plan &plan, const Profile &profile) {
  std::map<std::pair<Action, uint32_t>, ExchangeTimes> found;
  for (const ExchangeSum &sum : predictedStep(plan).exchanges)
    found[{sum.kind, sum.axis}].predicted = sum;
  for (const StepTime &time : profile.times) {
    const ExchangeSum one = exchangeOf(*time.step);
    if (one.kind == Action::NONE || time.calls == 0)
      continue;
    ExchangeTimes &times = found[{one.kind, one.axis}];
    times.predicted.kind = one.kind;
    times.predicted.axis = one.axis;
    times.calls += double(time.calls);
    times.wireBytes += double(time.calls) * one.wireBytes;
    times.seconds += time.seconds;
  }
  const std::vector<double> alone = secondsAlone(profile.timeline);
  for (size_t i = 0; i < alone.size(); ++i)
    if (const ExchangeSum one = exchangeOf(*profile.timeline[i].step); one.kind != Action::NONE) {
      std::optional<double> &sum = found[{one.kind, one.axis}].alone;
      sum = sum.value_or(0) + alone[i];
    }
  std::vector<ExchangeTimes> list;
  for (const auto &[key, times] : found)
    if (times.calls > 0)
      list.push_back(times);
  return list;
}

class Writer {
public:
  Writer(const PlanFile &file, const Profile &profile)
      : plan(file.plan()), times(profile.times), runs(profile.runs),
        wallSeconds(profile.wallSeconds), exchanges(exchangeTimes(plan, profile)),
        sections(profileSections(file, profile)) {
    for (const StepTime &time : times)
      total.add(time);
  }

  std::string text() {
    std::vector<std::string> tables;
    for (const Table &table : all())
      tables.push_back(table.text());
    return fmt::format("{}\n\n{}", headline(), fmt::join(tables, "\n"));
  }

  std::string markdown() {
    std::string text = headline() + "\n";
    for (const Table &table : all())
      text += "\n" + table.markdown();
    return text;
  }

  std::string json() {
    const auto nameOfClass = [](const Step &step) { return EnumNameOpClass(step.op_class()); };
    ordered_json json = {{"runs", runs}, {"step_microseconds", 1e6 * wallSeconds / runs}};
    json["phases"] = jsonOf(groupByPhase(times));
    json["classes"] = jsonOf(groupBy(times, nameOfClass));
    json["modules"] = jsonOf(groupBy(
        times, [this](const Step &step) { return std::string(pathText(plan, step.path())); }));
    json["functions"] =
        jsonOf(groupBy(times, [this](const Step &step) { return functionOf(step); }));
    json["mispredictions"] = ordered_json::array();
    for (const Misprediction &one : mispredictions(plan, times, runs))
      json["mispredictions"].push_back({{"name", one.name},
                                        {"module", one.module},
                                        {"calls", one.calls},
                                        {"microseconds", one.measured},
                                        {"predicted_microseconds", one.predicted}});
    json["predicted_step_microseconds"] = wholeStep(plan, 0).predicted;
    json["exchanges"] = ordered_json::array();
    for (const ExchangeTimes &one : exchanges)
      json["exchanges"].push_back(
          {{"kind", wordOf(one.predicted.kind)},
           {"axis", exchangeAxis(plan, one.predicted)},
           {"calls", one.calls / runs},
           {"wire_bytes", one.wireBytes / runs},
           {"microseconds", 1e6 * one.seconds / runs},
           {"predicted_microseconds", one.predicted.microseconds},
           {"alone_microseconds",
            one.alone ? ordered_json(1e6 * *one.alone / runs) : ordered_json()},
           {"predicted_alone_microseconds", one.predicted.alone}});
    for (const Section &section : sections)
      json[section.key] = section.json;
    return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }

private:
  std::string headline() const {
    return fmt::format("one step, mean of {}: {:.3f} ms, of which {:.3f} ms ({}) in steps of the "
                       "plan",
                       runs, wallSeconds / runs * 1e3, total.seconds / runs * 1e3,
                       share(total.seconds, wallSeconds));
  }

  std::vector<Table> all() {
    std::vector<Table> tables = {byPhase(), byClass(), byModule(), byFunction(), byStep()};
    if (const Misprediction step = wholeStep(plan, 1e6 * wallSeconds / runs); step.predicted > 0)
      tables.push_back(byError(step));
    if (!exchanges.empty())
      tables.push_back(byExchange());
    for (const Section &section : sections)
      tables.push_back(section.table);
    return tables;
  }

  ordered_json jsonOf(const std::vector<Group> &groups) const {
    ordered_json list = ordered_json::array();
    for (const auto &[name, sums] : groups)
      list.push_back({{"name", name},
                      {"calls", double(sums.calls) / runs},
                      {"microseconds", 1e6 * sums.seconds / runs},
                      {"flops", sums.flops / runs},
                      {"bytes", sums.bytes / runs},
                      {"predicted_microseconds", 1e6 * sums.predicted / runs}});
    return list;
  }

  static std::string share(double part, double whole) {
    return fmt::format("{:.1f}%", whole > 0 ? 100 * part / whole : 0.0);
  }
  static std::string rate(double amount, double seconds) {
    return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds * 1e-9) : "-";
  }
  std::string micros(double seconds) const { return fmt::format("{:.1f}", seconds / runs * 1e6); }

  /// The columns that every table has: calls, us, share, GB/s, GFLOP/s, of limit.
  std::vector<std::string> columns(const Sums &sums) const {
    return {fmt::format("{:.6g}", double(sums.calls) / runs),
            micros(sums.seconds),
            share(sums.seconds, total.seconds),
            rate(sums.bytes, sums.seconds),
            rate(sums.flops, sums.seconds),
            sums.limit > 0 ? share(sums.limit, sums.seconds) : "-"};
  }
  void add(Table &table, std::vector<std::string> cells, const std::vector<std::string> &more) {
    cells.insert(cells.end(), more.begin(), more.end());
    table.add(std::move(cells));
  }

  Table byPhase() {
    Table table(1);
    table.add({"phase", "calls", "us", "share", "GB/s", "GFLOP/s", "of limit"});
    for (const auto &[name, sums] : groupByPhase(times))
      add(table, {name}, columns(sums));
    return table;
  }

  Table byClass() {
    Table table(1);
    table.add({"class", "calls", "us", "share", "GB/s", "GFLOP/s", "of limit", "predicted us"});
    const auto row = [&](const std::string &name, const Sums &sums) {
      std::vector<std::string> cells{name};
      const std::vector<std::string> numbers = columns(sums);
      cells.insert(cells.end(), numbers.begin(), numbers.end());
      add(table, std::move(cells), {sums.predicted > 0 ? micros(sums.predicted) : "-"});
    };
    for (const auto &[name, sums] :
         groupBy(times, [](const Step &step) { return EnumNameOpClass(step.op_class()); }))
      row(name, sums);
    row("all", total);
    return table;
  }

  /// The parts of the model in which most time goes, those of all layers as one; by phase.
  Table byModule() {
    constexpr size_t shown = 20;
    std::map<std::string, PhaseShares> seconds; // in each phase
    for (const StepTime &time : times)
      if (time.calls > 0)
        addTo(seconds[moduleText(plan, time.step->path())], time);
    const auto sum = [](const PhaseShares &phases) {
      return std::accumulate(phases.begin(), phases.end(), 0.0);
    };
    std::vector<std::pair<std::string, PhaseShares>> order(seconds.begin(), seconds.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](const auto &a, const auto &b) { return sum(a.second) > sum(b.second); });
    Table table(1);
    std::vector<std::string> head{"module"};
    for (const Phase phase : EnumValuesPhase())
      head.push_back(fmt::format("{} us", EnumNamePhase(phase)));
    head.insert(head.end(), {"us", "share"});
    table.add(head);
    PhaseShares rest{};
    const auto row = [&](std::string name, const PhaseShares &phases) {
      std::vector<std::string> cells{std::move(name)};
      for (const double each : phases)
        cells.push_back(each > 0 ? micros(each) : "-");
      cells.insert(cells.end(), {micros(sum(phases)), share(sum(phases), total.seconds)});
      table.add(std::move(cells));
    };
    for (size_t i = 0; i < order.size(); ++i)
      if (i < shown)
        row(order[i].first, order[i].second);
      else
        std::ranges::transform(rest, order[i].second, rest.begin(), std::plus());
    if (order.size() > shown)
      row(fmt::format("{} others", order.size() - shown), rest);
    return table;
  }

  std::string functionOf(const Step &step) const {
    const ActionView action = actionOf(step);
    if (const auto *launch = action.as<Launch>())
      return plan.kernels()->Get(launch->kernel())->name()->str();
    return std::string(wordOf(action.type));
  }

  Table byFunction() {
    constexpr size_t shown = 20;
    Table table(1);
    table.add({"kernel or function", "calls", "us", "share", "GB/s", "GFLOP/s", "of limit"});
    const std::vector<Group> groups =
        groupBy(times, [this](const Step &step) { return functionOf(step); });
    Sums rest;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (i < shown) {
        add(table, {groups[i].first}, columns(groups[i].second));
        continue;
      }
      rest.calls += groups[i].second.calls;
      rest.seconds += groups[i].second.seconds;
    }
    if (groups.size() > shown)
      add(table, {fmt::format("{} others", groups.size() - shown)}, columns(rest));
    return table;
  }

  Table byStep() {
    constexpr size_t shown = 15;
    std::vector<const StepTime *> order;
    for (const StepTime &time : times)
      if (time.calls > 0)
        order.push_back(&time);
    std::sort(order.begin(), order.end(), [](const StepTime *a, const StepTime *b) {
      return a->seconds != b->seconds ? a->seconds > b->seconds : a < b;
    });
    order.resize(std::min(order.size(), shown));
    Table table(5);
    table.add({"longest steps", "program", "phase", "module", "model", "calls", "us", "share",
               "GB/s", "GFLOP/s", "of limit"});
    for (const StepTime *time : order) {
      const Step &step = *time->step;
      const Location &location = *plan.locations()->Get(step.location());
      Sums sums;
      sums.add(*time);
      add(table,
          {step.name()->str(), plan.programs()->Get(time->program)->name()->str(),
           EnumNamePhase(step.phase()), std::string(pathText(plan, step.path())),
           fmt::format("{}:{}", plan.files()->Get(location.file())->string_view(),
                       location.line())},
          columns(sums));
    }
    return table;
  }

  /// The steps whose predictions are farthest from what was measured, those of all layers as one.
  Table byError(const Misprediction &step) {
    constexpr size_t shown = 10;
    Table table(2);
    table.add({"farthest from prediction", "module", "calls", "us", "predicted us", "difference"});
    std::vector<Misprediction> order = mispredictions(plan, times, runs);
    order.resize(std::min(order.size(), shown));
    order.push_back(step);
    for (const Misprediction &one : order)
      table.add({one.name, one.module, fmt::format("{:.6g}", one.calls),
                 fmt::format("{:.1f}", one.measured), fmt::format("{:.1f}", one.predicted),
                 fmt::format("{:+.1f}", one.predicted - one.measured)});
    return table;
  }

  /// What this rank sent; times over that of the step.
  Table byExchange() {
    Table table(1);
    table.add({"exchange", "calls", "on the wire", "us", "share", "predicted us", "alone us",
               "share", "predicted us", "bus GB/s"});
    for (const ExchangeTimes &one : exchanges)
      table.add({exchangeName(plan, one.predicted), fmt::format("{:.6g}", one.calls / runs),
                 bytesText(static_cast<uint64_t>(one.wireBytes / runs)), micros(one.seconds),
                 share(one.seconds, wallSeconds), fmt::format("{:.1f}", one.predicted.microseconds),
                 one.alone ? micros(*one.alone) : "-",
                 one.alone ? share(*one.alone, wallSeconds) : "-",
                 fmt::format("{:.1f}", one.predicted.alone), rate(one.wireBytes, one.seconds)});
    return table;
  }

  const Plan &plan;
  std::span<const StepTime> times;
  int runs;
  double wallSeconds;
  std::vector<ExchangeTimes> exchanges;
  std::vector<Section> sections;
  Sums total;
};

} // namespace

std::vector<double> hydra::runtime::secondsAlone(std::span<const StepRun> timeline) {
  std::vector<std::pair<double, double>> busy; // apart from each other, in order
  std::vector<const StepRun *> compute;
  for (const StepRun &run : timeline)
    if (exchangeOf(*run.step).kind == Action::NONE)
      compute.push_back(&run);
  std::sort(compute.begin(), compute.end(),
            [](const StepRun *a, const StepRun *b) { return a->begin < b->begin; });
  for (const StepRun *run : compute) {
    if (busy.empty() || busy.back().second < run->begin)
      busy.emplace_back(run->begin, run->end);
    else
      busy.back().second = std::max(busy.back().second, run->end);
  }
  std::vector<double> alone;
  for (const StepRun &run : timeline) {
    double seconds = 0;
    if (exchangeOf(*run.step).kind != Action::NONE) {
      seconds = run.end - run.begin;
      auto at = std::partition_point(busy.begin(), busy.end(),
                                     [&](const auto &span) { return span.second <= run.begin; });
      for (; at != busy.end() && at->first < run.end; ++at)
        seconds -= std::min(at->second, run.end) - std::max(at->first, run.begin);
    }
    alone.push_back(seconds);
  }
  return alone;
}

std::string hydra::runtime::profileText(const PlanFile &file, const Profile &profile) {
  return Writer(file, profile).text();
}

std::string hydra::runtime::profileMarkdown(const PlanFile &file, const Profile &profile) {
  return Writer(file, profile).markdown();
}

std::string hydra::runtime::profileJson(const PlanFile &file, const Profile &profile) {
  return Writer(file, profile).json();
}

namespace {

/// By which is told what ran beside what: of several ranks or streams. Empty where the device has
/// none.
std::vector<StepRun> timelineForTables(const PlanFile &file, Executor &executor) {
  if (ranksOf(file.plan()) == 1 && file.plan().target()->kind() == TargetKind::cpu)
    return {};
  try {
    return executor.timeline();
  } catch (const hydra::support::Error &) {
    return {};
  }
}

/// The name with the number of the rank for `%r`.
std::string fileOfRank(std::string name, uint32_t rank) {
  if (const size_t at = name.find("%r"); at != std::string::npos)
    name.replace(at, 2, std::to_string(rank));
  return name;
}

} // namespace

std::string hydra::runtime::profileReport(const std::string &form, const PlanFile &file,
                                          Executor &executor, StepProfiler &profiler,
                                          uint32_t rank) {
  if (form.ends_with(".json")) {
    const std::vector<StepRun> runs = executor.timeline();
    const std::vector<HostRun> launches = executor.launches();
    const std::string path = fileOfRank(form, rank);
    if (rank == 0 || path != form)
      writeChromeTrace(path, file,
                       {.runs = runs, .samples = profiler.samples(), .launches = launches});
    return "";
  }
  const std::vector<StepRun> timeline = timelineForTables(file, executor);
  const Profile profile = profiler.profile(timeline);
  return form == "json"       ? profileJson(file, profile)
         : form == "markdown" ? profileMarkdown(file, profile)
                              : profileText(file, profile);
}
