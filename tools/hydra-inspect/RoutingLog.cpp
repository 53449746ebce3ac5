// Lines of a log, then means over them.
#include "tools/hydra-inspect/RoutingLog.h"

#include "runtime/report/Table.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-inspect/LogLines.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace hydra::inspect {

using nlohmann::ordered_json;
using report::Table;
using Json = nlohmann::json;

namespace {

double sum(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<RoutedBlock> blocksOf(const Json &outputs) {
  std::vector<RoutedBlock> blocks;
  for (size_t i = 0; i < outputs.at("rows").size(); ++i) {
    RoutedBlock block;
    outputs.at("rows").at(i).get_to(block.rows);
    outputs.at("depths").at(i).get_to(block.depths);
    block.mean = outputs.at("mod_mean").at(i).at(0).get<double>();
    block.deviation = outputs.at("mod_std").at(i).at(0).get<double>();
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// Nothing where the step tells nothing of routers.
bool readStep(const Json &line, RoutedStep &step) {
  if (!line.contains("outputs") || !line.at("outputs").contains("rows"))
    return false;
  const Json &outputs = line.at("outputs");
  step.step = line.at("step").get<int64_t>();
  const auto loss = line.find("loss"); // none, or null: of the router nothing can be told either
  if (loss == line.end() || loss->is_null())
    return false;
  step.loss = loss->get<double>();
  step.milliseconds = line.at("step_ms").get<double>();
  for (const char *part : {"ce", "aux", "ponder"})
    if (outputs.contains(part))
      step.parts[part] = outputs.at(part).get<double>();
  step.blocks = blocksOf(outputs);
  return true;
}

/// Computed rows over those of all tokens in all recursions.
double computedPart(const std::vector<RoutedBlock> &blocks) {
  double rows = 0, total = 0;
  for (const RoutedBlock &block : blocks) {
    rows += sum(block.rows);
    total += sum(block.depths) * double(block.rows.size());
  }
  return total > 0 ? rows / total : 0;
}

class RoutingReport {
public:
  explicit RoutingReport(const RoutingLog &log) : log(log), means(log.steps.front().blocks) {
    for (size_t i = 1; i < log.steps.size(); ++i)
      for (size_t b = 0; b < means.size(); ++b)
        add(means[b], log.steps[i].blocks.at(b));
    const double n = double(log.steps.size());
    for (RoutedBlock &block : means) {
      block.mean /= n;
      block.deviation /= n;
      for (std::vector<double> *list : {&block.depths, &block.rows})
        for (double &value : *list)
          value /= n;
    }
  }

  std::string headline() const {
    return fmt::format("{}: {} steps to step {}, {:.3f} ms each; mor = {}, mod = {}, target {}",
                       log.file, log.steps.size(), log.steps.back().step, milliseconds(),
                       symbol("mor"), symbol("mod"), symbol("kappa"));
  }

  Table blocks() const {
    Table table(2);
    table.add({"block", "mode", "P mean", "P std", "target", "rows", "of", "savings", "mean depth",
               "computed", "tokens of each depth", "rows of each recursion"});
    for (size_t b = 0; b < means.size(); ++b) {
      const RoutedBlock &one = means[b];
      const double rows = sum(one.rows), total = totalOf(one);
      table.add({fmt::format("{}", b), modeOf(one), depthsOnly(one) ? "-" : number(one.mean),
                 depthsOnly(one) ? "-" : number(one.deviation),
                 depthsOnly(one) ? "-" : symbol("kappa"), fmt::format("{:.1f}", rows),
                 fmt::format("{:.0f}", total), fmt::format("{:.1f}%", savings(one)),
                 number(meanDepth(one)), number(rows / total),
                 fmt::format("{:.4g}", fmt::join(one.depths, " ")),
                 fmt::format("{:.4g}", fmt::join(one.rows, " "))});
    }
    return table;
  }

  /// At most ten steps, the first and the last among them.
  Table run() const {
    constexpr size_t shown = 10;
    Table table(0);
    table.add({"step", "loss", "ce", "aux", "ponder", "computed", "savings"});
    const size_t n = log.steps.size(), rows = std::min(n, shown);
    for (size_t i = 0; i < rows; ++i) {
      const RoutedStep &one = log.steps[rows > 1 ? i * (n - 1) / (rows - 1) : 0];
      const double computed = computedPart(one.blocks);
      table.add({fmt::format("{}", one.step), number(one.loss), part(one, "ce"), part(one, "aux"),
                 part(one, "ponder"), number(computed),
                 fmt::format("{:.1f}%", 100 * (1 - computed))});
    }
    return table;
  }

  std::string json() const {
    ordered_json json = {{"file", log.file},
                         {"mor", symbol("mor")},
                         {"mod", symbol("mod")},
                         {"target", symbol("kappa")},
                         {"steps", log.steps.size()},
                         {"step_ms", milliseconds()},
                         {"blocks", ordered_json::array()},
                         {"run", ordered_json::array()}};
    for (size_t b = 0; b < means.size(); ++b) {
      const RoutedBlock &one = means[b];
      json["blocks"].push_back({{"block", b},
                                {"mode", modeOf(one)},
                                {"mod_mean", one.mean},
                                {"mod_std", one.deviation},
                                {"rows", sum(one.rows)},
                                {"total", totalOf(one)},
                                {"computed", sum(one.rows) / totalOf(one)},
                                {"savings_percent", savings(one)},
                                {"mean_depth", meanDepth(one)},
                                {"depths", one.depths},
                                {"rows_by_recursion", one.rows}});
    }
    for (const RoutedStep &one : log.steps) {
      ordered_json step = {{"step", one.step}, {"loss", one.loss}};
      for (const auto &[name, value] : one.parts)
        step[name] = value;
      step["computed"] = computedPart(one.blocks);
      json["run"].push_back(std::move(step));
    }
    return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }

private:
  static void add(RoutedBlock &to, const RoutedBlock &one) {
    to.mean += one.mean;
    to.deviation += one.deviation;
    std::ranges::transform(to.depths, one.depths, to.depths.begin(), std::plus());
    std::ranges::transform(to.rows, one.rows, to.rows.begin(), std::plus());
  }

  std::string symbol(const std::string &name) const {
    const auto found = log.symbols.find(name);
    return found == log.symbols.end() ? "-" : found->second;
  }

  double milliseconds() const {
    double all = 0;
    for (const RoutedStep &one : log.steps)
      all += one.milliseconds;
    return all / double(log.steps.size());
  }

  /// Whether the block has no router for its feed-forward part, only for the depth.
  static bool depthsOnly(const RoutedBlock &one) { return one.mean == 0 && one.deviation == 0; }
  std::string modeOf(const RoutedBlock &one) const {
    return depthsOnly(one) ? symbol("mor") : symbol("mor") + ", " + symbol("mod");
  }
  static double totalOf(const RoutedBlock &one) {
    return sum(one.depths) * double(one.rows.size());
  }
  static double savings(const RoutedBlock &one) { return 100 * (1 - sum(one.rows) / totalOf(one)); }
  static double meanDepth(const RoutedBlock &one) {
    double depth = 0;
    for (size_t i = 0; i < one.depths.size(); ++i)
      depth += double(i) * one.depths[i];
    return depth / sum(one.depths);
  }
  static std::string number(double value) { return fmt::format("{:.4f}", value); }
  static std::string part(const RoutedStep &step, const char *name) {
    const auto found = step.parts.find(name);
    return found == step.parts.end() ? "-" : number(found->second);
  }

  const RoutingLog &log;
  std::vector<RoutedBlock> means;
};

} // namespace

RoutingLog readRoutingLog(const std::filesystem::path &path, size_t last) {
  RoutingLog log{.file = path, .symbols = {}, .steps = {}};
  std::map<int64_t, RoutedStep> steps;
  forEachLine(path, " is no log as hydra-run --log writes it", [&](const Json &line) {
    const auto event = line.at("event").get<std::string>();
    RoutedStep step;
    if (event == "start" && line.contains("symbols"))
      line.at("symbols").get_to(log.symbols);
    else if (event == "step" && readStep(line, step))
      steps[step.step] = std::move(step);
  });
  if (steps.empty())
    support::fail("{} tells nothing of routers: no step has outputs with rows",
                  support::shownPath(path));
  for (auto &[at, step] : steps)
    log.steps.push_back(std::move(step));
  if (log.steps.size() > last)
    log.steps.erase(log.steps.begin(), log.steps.end() - static_cast<ptrdiff_t>(last));
  for (const RoutedStep &step : log.steps)
    if (step.blocks.size() != log.steps.front().blocks.size())
      support::fail("{} is of models with different numbers of blocks", support::shownPath(path));
  return log;
}

std::string routingText(const RoutingLog &log) {
  const RoutingReport report(log);
  return report.headline() + "\n\n" + report.blocks().text() + "\n" + report.run().text();
}

std::string routingMarkdown(const RoutingLog &log) {
  const RoutingReport report(log);
  return report.headline() + "\n\n" + report.blocks().markdown() + "\n" + report.run().markdown();
}

std::string routingJson(const RoutingLog &log) { return RoutingReport(log).json(); }

} // namespace hydra::inspect
