// Sums times, FLOPs and bytes of steps over the groups of each table.
#include "runtime/run/ProfileTable.h"

#include "runtime/plan/Actions.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include <algorithm>
#include <map>
#include <vector>

using namespace hydra::report;
using namespace hydra::runtime;
using namespace hydra::planfile;

namespace {

/// Totals of one group; costs count once for each call.
struct Sums {
  uint64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0, predicted = 0;

  void add(const StepTime &time) {
    const auto calls = static_cast<double>(time.calls);
    this->calls += time.calls;
    seconds += time.seconds;
    flops += calls * static_cast<double>(time.step->cost()->flops());
    bytes += calls * static_cast<double>(time.step->cost()->bytes());
    predicted += calls * time.step->cost()->microseconds() * 1e-6;
  }
};

using Group = std::pair<std::string, Sums>;

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

class Writer {
public:
  Writer(const PlanFile &file, std::span<const StepTime> times, int runs, double wallSeconds)
      : plan(file.plan()), times(times), runs(runs), wallSeconds(wallSeconds) {
    for (const StepTime &time : times)
      total.add(time);
  }

  std::string text() {
    return fmt::format("one step, mean of {}: {:.3f} ms, of which {:.3f} ms ({}) in steps of the "
                       "plan\n\n{}\n{}\n{}\n{}",
                       runs, wallSeconds / runs * 1e3, total.seconds / runs * 1e3,
                       share(total.seconds, wallSeconds), byPhase(), byClass(), byFunction(),
                       byStep());
  }

private:
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
            sums.predicted > 0 ? share(sums.predicted, sums.seconds) : "-"};
  }
  void add(Table &table, std::vector<std::string> cells, const std::vector<std::string> &more) {
    cells.insert(cells.end(), more.begin(), more.end());
    table.add(std::move(cells));
  }

  std::string byPhase() {
    Table table(1);
    table.add({"phase", "calls", "us", "share", "GB/s", "GFLOP/s", "of limit"});
    for (const auto &[name, sums] :
         groupBy(times, [](const Step &step) { return EnumNamePhase(step.phase()); }))
      add(table, {name}, columns(sums));
    return table.text();
  }

  std::string byClass() {
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
    return table.text();
  }

  std::string functionOf(const Step &step) const {
    const ActionView action = actionOf(step);
    if (const auto *launch = action.as<Launch>())
      return plan.kernels()->Get(launch->kernel())->name()->str();
    return std::string(wordOf(action.type));
  }

  std::string byFunction() {
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
    return table.text();
  }

  std::string byStep() {
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
    table.add({"longest steps", "program", "phase", "layer", "model", "calls", "us", "share",
               "GB/s", "GFLOP/s", "of limit"});
    for (const StepTime *time : order) {
      const Step &step = *time->step;
      const Location &location = *plan.locations()->Get(step.location());
      Sums sums;
      sums.add(*time);
      add(table,
          {step.name()->str(), plan.programs()->Get(time->program)->name()->str(),
           EnumNamePhase(step.phase()), step.layer() < 0 ? "-" : fmt::format("{}", step.layer()),
           fmt::format("{}:{}", plan.files()->Get(location.file())->string_view(),
                       location.line())},
          columns(sums));
    }
    return table.text();
  }

  const Plan &plan;
  std::span<const StepTime> times;
  int runs;
  double wallSeconds;
  Sums total;
};

} // namespace

std::string hydra::runtime::profileText(const PlanFile &file, std::span<const StepTime> times,
                                        int runs, double wallSeconds) {
  return Writer(file, times, runs, wallSeconds).text();
}
