// Tables of plans that were compared.
#include "tools/hydrac/BudgetReport.h"

#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace hydra {

using budget::Point;
using budget::Trial;
using report::bytesText;

namespace {

/// Trials, the fastest first.
std::vector<std::pair<Point, Trial>> sorted(const budget::Search &search) {
  std::vector<std::pair<Point, Trial>> plans(search.trials().begin(), search.trials().end());
  std::sort(plans.begin(), plans.end(), [](const auto &a, const auto &b) {
    return std::tuple(a.second.microseconds, a.second.bytes, a.first) <
           std::tuple(b.second.microseconds, b.second.bytes, b.first);
  });
  return plans;
}

Point fastestOf(const BudgetOutcome &outcome) { return outcome.settings.space().fastest(); }

/// Trials that differ from the fastest plan in one choice, in the order of choices and levels; with
/// that choice.
std::vector<std::pair<size_t, Point>> singlesOf(const BudgetOutcome &outcome) {
  std::vector<std::pair<size_t, Point>> singles;
  for (const auto &[point, trial] : outcome.search.trials()) {
    const size_t others =
        size_t(std::count_if(point.begin(), point.end(), [](int l) { return l > 0; }));
    if (others == 1)
      singles.emplace_back(std::find_if(point.begin(), point.end(), [](int l) { return l > 0; }) -
                               point.begin(),
                           point);
  }
  std::sort(singles.begin(), singles.end());
  return singles;
}

std::string difference(uint64_t bytes, uint64_t base) {
  if (bytes == base)
    return "-";
  return bytes > base ? "+" + bytesText(bytes - base) : "-" + bytesText(base - bytes);
}

std::string milliseconds(double microseconds) { return fmt::format("{:.4g}", microseconds * 1e-3); }

bool isIn(const std::vector<Point> &points, const Point &point) {
  return std::find(points.begin(), points.end(), point) != points.end();
}

std::string headline(const BudgetOutcome &outcome) {
  const auto &trials = outcome.search.trials();
  const Trial &fastest = trials.at(fastestOf(outcome));
  if (!outcome.chosen) {
    const Trial &least = trials.at(outcome.search.front().back());
    return fmt::format("{} there may be, at least {} are needed: nothing fits",
                       bytesText(outcome.bytes), bytesText(least.bytes));
  }
  const Trial &chosen = trials.at(*outcome.chosen);
  const double slower = chosen.microseconds / std::max(fastest.microseconds, 1e-9) - 1;
  return fmt::format("{} there may be: {} takes {} and {} ms, {}", bytesText(outcome.bytes),
                     outcome.settings.flags(*outcome.chosen), bytesText(chosen.bytes),
                     milliseconds(chosen.microseconds),
                     *outcome.chosen == fastestOf(outcome)
                         ? std::string("the fastest of all")
                         : fmt::format("{:.1f}% more than the fastest of all", 100 * slower));
}

report::Table choicesTable(const BudgetOutcome &outcome) {
  const auto &trials = outcome.search.trials();
  const Point fastest = fastestOf(outcome);
  const Trial &base = trials.at(fastest);
  report::Table table(1);
  table.add({"each choice by itself", "ms on " + outcome.target, "memory", "changes"});
  table.add({outcome.settings.text(fastest), milliseconds(base.microseconds), bytesText(base.bytes),
             "-"});
  for (const auto &[choice, point] : singlesOf(outcome)) {
    const Trial &trial = trials.at(point);
    table.add({outcome.settings.text(point),
               fmt::format("{:+.4f}", (trial.microseconds - base.microseconds) * 1e-3),
               difference(trial.bytes, base.bytes), outcome.settings.changes(choice)});
  }
  return table;
}

report::Table plansTable(const BudgetOutcome &outcome) {
  const std::vector<Point> front = outcome.search.front();
  report::Table table(1);
  table.add({"plans", "ms on " + outcome.target, "memory", ""});
  for (const auto &[point, trial] : sorted(outcome.search)) {
    std::string note;
    if (outcome.chosen == point)
      note = "chosen";
    else if (trial.bytes > outcome.bytes)
      note = "does not fit";
    if (isIn(front, point))
      note += note.empty() ? "front" : ", front";
    table.add({outcome.settings.text(point), milliseconds(trial.microseconds),
               bytesText(trial.bytes), note});
  }
  return table;
}

std::string escaped(const std::string &text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

/// A scale of one axis of the picture, from a little below the least value to a little above the
/// largest.
struct Axis {
  Axis(std::vector<double> values, double from, double to) : from(from), to(to) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double room = std::max(*high - *low, 1e-3 * *high) * 0.06;
    least = std::max(0.0, *low - room);
    most = *high + room;
  }
  double at(double value) const { return from + (value - least) / (most - least) * (to - from); }

  /// Round values, about as many as asked for.
  std::vector<double> marks(double count) const {
    const double rough = (most - least) / count, ten = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough > 5 * ten   ? 10 * ten
                        : rough > 2 * ten ? 5 * ten
                        : rough > ten     ? 2 * ten
                                          : ten;
    std::vector<double> values;
    for (double value = std::ceil(least / step) * step; value <= most; value += step)
      values.push_back(value);
    return values;
  }

  double from, to, least = 0, most = 1;
};

/// Memory across, time up.
class Picture {
public:
  explicit Picture(const BudgetOutcome &outcome)
      : outcome(outcome), plans(sorted(outcome.search)),
        memory(valuesOf([](const Trial &trial) { return gibibytes(trial.bytes); },
                        gibibytes(outcome.bytes)),
               kLeft, kLeft + kWidth),
        time(valuesOf([](const Trial &trial) { return trial.microseconds * 1e-3; }, {}),
             kTop + kHeight, kTop) {}

  std::string text() {
    drawGrid();
    if (isInside(gibibytes(outcome.bytes)))
      drawBudget();
    drawFront();
    for (const auto &[point, trial] : plans)
      drawPlan(point, trial);
    return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img">)"
                       "\n<title>{}</title>\n<style>\n{}</style>\n{}</svg>\n",
                       kLeft + kWidth + kRight, kTop + kHeight + kAxis, escaped(outcome.title),
                       kStyle, body);
  }

private:
  static constexpr double kLeft = 66, kTop = 34, kWidth = 560, kHeight = 300, kRight = 20,
                          kAxis = 40;
  static constexpr const char *kStyle =
      "svg{background:#fff}text{font:12px ui-monospace,monospace;fill:#1b1f24}.grid{stroke:#8884}"
      ".budget{stroke:#d55e00;stroke-dasharray:5 "
      "4}.front{fill:none;stroke:#0072b2;stroke-width:1.5}"
      ".plan{fill:#999}.best{fill:#0072b2}.chosen{fill:#d55e00}\n"
      "@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}"
      ".front{stroke:#56b4e9}.best{fill:#56b4e9}}\n";

  static double gibibytes(uint64_t bytes) { return double(bytes) / 0x1p30; }

  /// Of all plans; the budget is shown where it is not far from them.
  std::vector<double> valuesOf(const std::function<double(const Trial &)> &of,
                               std::optional<double> also) const {
    std::vector<double> values;
    for (const auto &[point, trial] : plans)
      values.push_back(of(trial));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (also && *also > *low * 0.5 && *also < *high * 1.5)
      values.push_back(*also);
    return values;
  }

  bool isInside(double value) const { return value >= memory.least && value <= memory.most; }

  template <typename... Args> void add(fmt::format_string<Args...> format, Args &&...args) {
    body += fmt::format(format, std::forward<Args>(args)...);
    body += '\n';
  }

  void drawGrid() {
    add(R"(<text x="{}" y="18">{}</text>)", kLeft, escaped(outcome.title));
    for (const double value : memory.marks(7)) {
      add(R"(<path class="grid" d="M{:.1f} {}V{}"/>)", memory.at(value), kTop, kTop + kHeight);
      add(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{:.4g} GiB</text>)", memory.at(value),
          kTop + kHeight + 18, value);
    }
    for (const double value : time.marks(6)) {
      add(R"(<path class="grid" d="M{} {:.1f}H{}"/>)", kLeft, time.at(value), kLeft + kWidth);
      add(R"(<text x="{}" y="{:.1f}" text-anchor="end">{:.4g} ms</text>)", kLeft - 6,
          time.at(value) + 4, value);
    }
  }

  void drawBudget() {
    const double x = memory.at(gibibytes(outcome.bytes));
    add(R"(<path class="budget" d="M{:.1f} {}V{}"/>)", x, kTop, kTop + kHeight);
    add(R"(<text x="{:.1f}" y="{}" text-anchor="end">budget</text>)", x - 5, kTop + kHeight - 8);
  }

  /// What is fastest in so much memory, as steps.
  void drawFront() {
    std::string path;
    for (const Point &point : outcome.search.front()) {
      const Trial &trial = outcome.search.trials().at(point);
      const double x = memory.at(gibibytes(trial.bytes)), y = time.at(trial.microseconds * 1e-3);
      path += path.empty() ? fmt::format("M{:.1f} {:.1f}H{:.1f}", kLeft + kWidth, y, x)
                           : fmt::format("V{:.1f}H{:.1f}", y, x);
    }
    add(R"(<path class="front" d="{}V{}"/>)", path, kTop);
  }

  void drawPlan(const Point &point, const Trial &trial) {
    const bool chosen = outcome.chosen == point, best = isIn(outcome.search.front(), point);
    add(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}: {} ms, {}</title></circle>)",
        chosen ? "chosen"
        : best ? "best"
               : "plan",
        memory.at(gibibytes(trial.bytes)), time.at(trial.microseconds * 1e-3), chosen ? 6 : 4,
        escaped(outcome.settings.text(point)), milliseconds(trial.microseconds),
        bytesText(trial.bytes));
  }

  const BudgetOutcome &outcome;
  std::vector<std::pair<Point, Trial>> plans;
  Axis memory, time;
  std::string body;
};

} // namespace

std::string budgetText(const BudgetOutcome &outcome, bool markdown) {
  const report::Table choices = choicesTable(outcome), plans = plansTable(outcome);
  const std::string head = headline(outcome);
  if (markdown)
    return head + "\n\n" + choices.markdown() + "\n" + plans.markdown();
  return head + "\n" + choices.text() + plans.text();
}

std::string budgetJson(const BudgetOutcome &outcome) {
  using Json = nlohmann::ordered_json;
  const auto &trials = outcome.search.trials();
  const std::vector<Point> front = outcome.search.front();
  const auto planOf = [&](const Point &point) {
    const Trial &trial = trials.at(point);
    return Json{{"flags", outcome.settings.flags(point)},
                {"microseconds", trial.microseconds},
                {"bytes", trial.bytes},
                {"fits", trial.bytes <= outcome.bytes},
                {"front", isIn(front, point)}};
  };
  const Trial &base = trials.at(fastestOf(outcome));
  Json choices = Json::array(), plans = Json::array();
  for (const auto &[choice, point] : singlesOf(outcome)) {
    const Trial &trial = trials.at(point);
    choices.push_back({{"flags", outcome.settings.flags(point)},
                       {"microseconds", trial.microseconds - base.microseconds},
                       {"bytes", int64_t(trial.bytes) - int64_t(base.bytes)},
                       {"changes", outcome.settings.changes(choice)}});
  }
  for (const auto &[point, trial] : sorted(outcome.search))
    plans.push_back(planOf(point));
  const Json all = {{"budget_bytes", outcome.bytes},
                    {"chosen", outcome.chosen ? planOf(*outcome.chosen) : Json()},
                    {"fastest", planOf(fastestOf(outcome))},
                    {"choices", choices},
                    {"plans", plans}};
  return all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string budgetSvg(const BudgetOutcome &outcome) { return Picture(outcome).text(); }

} // namespace hydra
