// Sums over the tree of blocks.
#include "runtime/report/CostReport.h"

#include "runtime/plan/Actions.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/report/MeasuredRates.h"
#include "runtime/report/Phases.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>

using namespace hydra::report;
using namespace hydra::planfile;
using nlohmann::ordered_json;

namespace {

struct Sums {
  double flops = 0, bytes = 0, microseconds = 0, limit = 0;

  /// A part of a step, or the step several times.
  void add(const Step &step, double times) {
    flops += times * double(step.cost()->flops());
    bytes += times * double(step.cost()->bytes());
    microseconds += times * step.cost()->microseconds();
    limit += times * limitOf(step);
  }
  void add(const Sums &other) {
    flops += other.flops;
    bytes += other.bytes;
    microseconds += other.microseconds;
    limit += other.limit;
  }
};

using Blocks = flatbuffers::Vector<flatbuffers::Offset<Block>>;

struct Costs {
  Sums total;
  std::map<int, Sums> byPhase, byLayer, byClass; // by the values of their enums
  std::map<int, Sums> byPath;                    // by their numbers

  void add(const Blocks &blocks, double times) {
    for (const Block *block : blocks) {
      if (const Step *step = block->node_as_Step()) {
        const PhaseShares shares = phaseShares(*step);
        for (size_t k = 0; k < shares.size(); ++k)
          if (shares[k] > 0)
            byPhase[static_cast<int>(k)].add(*step, times * shares[k]);
        for (Sums *sums : {&total, &byLayer[step->layer()], &byPath[step->path()],
                           &byClass[static_cast<int>(step->op_class())]})
          sums->add(*step, times);
      } else if (const Loop *loop = block->node_as_Loop()) {
        add(*loop->blocks(), times * double(loop->count()));
      } else if (const Switch *choice = block->node_as_Switch()) {
        if (const Case *most = mostExpensive(*choice))
          add(*most->blocks(), times);
      }
    }
  }

private:
  static const Case *mostExpensive(const Switch &choice) {
    const Case *most = nullptr;
    double largest = -1;
    for (const Case *one : *choice.cases()) {
      Costs costs;
      costs.add(*one->blocks(), 1);
      if (costs.total.microseconds > largest)
        largest = costs.total.microseconds, most = one;
    }
    return most;
  }
};

std::string layerName(int layer) { return layer < 0 ? "outside" : fmt::format("layer {}", layer); }
std::string phaseName(int phase) { return EnumNamePhase(static_cast<Phase>(phase)); }
std::string className(int kind) { return EnumNameOpClass(static_cast<OpClass>(kind)); }

std::string share(double part, double whole) {
  return fmt::format("{:.1f}%", whole > 0 ? 100 * part / whole : 0.0);
}

std::vector<std::string> cellsOf(const std::string &name, const Sums &sums, const Sums &total) {
  return {name, fmt::format("{:.3f}", sums.flops * 1e-9),
          bytesText(static_cast<uint64_t>(sums.bytes)),
          fmt::format("{:.4f}", sums.microseconds * 1e-3),
          share(sums.microseconds, total.microseconds)};
}

void addRows(Table &table, const std::string &title, const std::map<int, Sums> &groups,
             std::string (*name)(int), const Sums &total) {
  table.add({title, "GFLOP", "traffic", "ms", "share"});
  for (const auto &[key, sums] : groups)
    table.add(cellsOf(name(key), sums, total));
}

/// The parts of the model in which most time goes, those of all layers as one.
void addModules(Table &table, const Plan &plan, const std::map<int, Sums> &byPath,
                const Sums &total) {
  constexpr size_t shown = 16;
  std::map<std::string, Sums> merged;
  for (const auto &[path, sums] : byPath)
    merged[moduleText(plan, path)].add(sums);
  std::vector<std::pair<std::string, Sums>> order(merged.begin(), merged.end());
  std::stable_sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return a.second.microseconds > b.second.microseconds;
  });
  table.add({"module", "GFLOP", "traffic", "ms", "share"});
  Sums rest;
  for (size_t i = 0; i < order.size(); ++i)
    if (i < shown)
      table.add(cellsOf(order[i].first, order[i].second, total));
    else
      rest.add(order[i].second);
  if (order.size() > shown)
    table.add(cellsOf(fmt::format("{} others", order.size() - shown), rest, total));
}

std::string titleOf(const Plan &plan, const Program &program, const Sums &total) {
  const std::string predicted =
      plan.target()->measured()
          ? fmt::format(", {:.4f} ms predicted", predictedTime(plan, program).total * 1e-3)
          : "";
  return fmt::format("program {}: {:.3f} GFLOP, {} of traffic, {:.4f} ms at the limit of {}{}",
                     program.name()->string_view(), total.flops * 1e-9,
                     bytesText(static_cast<uint64_t>(total.bytes)), total.limit * 1e-3,
                     plan.target()->name()->string_view(), predicted);
}

//===-- Several ranks -----------------------------------------------------------------------===//

std::string predictionText(const std::string &what, const PredictedTime &time) {
  return fmt::format(
      "{}: {:.4f} ms predicted; exchanges take {:.4f} ms, of which {:.4f} ms ({} of it "
      "all) are exposed",
      what, time.total * 1e-3, time.wire * 1e-3, time.exposed * 1e-3,
      share(time.exposed, time.total));
}

std::string stepName(const Plan &plan) {
  return fmt::format("{} on {} ranks, mesh {}",
                     hydra::runtime::isTrainPlan(plan) ? "one step" : "one call",
                     hydra::runtime::ranksOf(plan), hydra::runtime::meshText(plan));
}

/// Tokens that a step reads on all ranks, with all its micro-batches, or a call of a plan that does
/// not train; 0 where programs read none.
uint64_t tokensOfStep(const Plan &plan) {
  const auto &programs = *plan.programs();
  const std::optional<uint32_t> main = hydra::runtime::mainTrainingProgram(plan);
  if (programs.size() == 0)
    return 0;
  return hydra::runtime::tokensPerRun(plan, *programs.Get(main.value_or(0))) *
         (main ? plan.accumulation() : 1);
}

/// Nothing where a step reads no tokens, or takes no time.
std::optional<double> tokensPerSecond(const Plan &plan, const PredictedTime &step) {
  const auto tokens = static_cast<double>(tokensOfStep(plan));
  return tokens > 0 && step.total > 0 ? std::optional(1e6 * tokens / step.total) : std::nullopt;
}

/// Of a rank's device: what variables lie in, and what a step needs beside.
uint64_t memoryOf(const Plan &plan) {
  uint64_t bytes = 0;
  for (const SegmentKind kind : {SegmentKind::persistent, SegmentKind::transient})
    bytes += plan.segments()->Get(static_cast<uint32_t>(kind))->size();
  return bytes;
}

/// What other work hides of the time of exchanges.
double hidden(const PredictedTime &time) { return std::max(0.0, time.wire - time.exposed); }

/// In a line: what a rank sends and needs, and what all of them do.
std::string ranksText(const Plan &plan) {
  const PredictedTime step = predictedStep(plan);
  std::string text =
      fmt::format("each of {} ranks: {} on the wire, {:.4f} ms of exchanges hidden, {} of memory",
                  hydra::runtime::ranksOf(plan), bytesText(static_cast<uint64_t>(step.wireBytes())),
                  hidden(step) * 1e-3, bytesText(memoryOf(plan)));
  if (const std::optional<double> rate = tokensPerSecond(plan, step))
    text += fmt::format("; {} tokens/s of all", countText(static_cast<uint64_t>(*rate)));
  return text;
}

/// What each rank sends; of all times the share of the program's.
Table exchangeTable(const Plan &plan, const PredictedTime &time) {
  Table table(1);
  table.add({"exchange", "calls", "on the wire", "us", "share", "alone us", "exposed us", "share",
             "bus GB/s"});
  for (const ExchangeSum &sum : time.exchanges)
    table.add({exchangeName(plan, sum), fmt::format("{:.6g}", sum.calls),
               bytesText(static_cast<uint64_t>(sum.wireBytes)),
               fmt::format("{:.1f}", sum.microseconds), share(sum.microseconds, time.total),
               fmt::format("{:.1f}", sum.alone), fmt::format("{:.1f}", sum.exposed),
               share(sum.exposed, time.total), fmt::format("{:.1f}", sum.bandwidth() * 1e-9)});
  return table;
}

/// The collectives that add most to the program's time.
Table exposedTable(const Plan &plan, const PredictedTime &time) {
  constexpr size_t kShown = 3;
  std::vector<const ExchangeStep *> order;
  for (const ExchangeStep &one : time.steps)
    order.push_back(&one);
  std::sort(order.begin(), order.end(), [](const ExchangeStep *a, const ExchangeStep *b) {
    return a->exposed != b->exposed ? a->exposed > b->exposed : a < b;
  });
  order.resize(std::min(order.size(), kShown));
  Table table(4);
  table.add({"most exposed", "phase", "layer", "model", "on the wire", "us", "exposed us"});
  for (const ExchangeStep *one : order) {
    const ExchangeSum sum = exchangeOf(*one->step);
    table.add({exchangeName(plan, sum), EnumNamePhase(one->step->phase()),
               one->step->layer() < 0 ? "-" : fmt::format("{}", one->step->layer()),
               locationText(plan, one->step->location()),
               bytesText(static_cast<uint64_t>(sum.wireBytes)),
               fmt::format("{:.1f}", one->microseconds), fmt::format("{:.1f}", one->exposed)});
  }
  return table;
}

ordered_json jsonOf(const Plan &plan, const PredictedTime &time) {
  ordered_json exchanges = ordered_json::array();
  for (const ExchangeSum &sum : time.exchanges)
    exchanges.push_back({{"kind", hydra::runtime::wordOf(sum.kind)},
                         {"axis", exchangeAxis(plan, sum)},
                         {"calls", sum.calls},
                         {"wire_bytes", sum.wireBytes},
                         {"microseconds", sum.microseconds},
                         {"alone_microseconds", sum.alone},
                         {"exposed_microseconds", sum.exposed},
                         {"own_copy_microseconds", sum.ownCopy}});
  return {{"microseconds", time.total},         {"compute_microseconds", time.compute},
          {"wire_microseconds", time.wire},     {"exposed_microseconds", time.exposed},
          {"wire_bytes", time.wireBytes()},     {"exchanges", exchanges},
          {"hidden_microseconds", hidden(time)}};
}

bool hasRanks(const Plan &plan) { return plan.mesh() && plan.mesh()->size() > 0; }

ordered_json jsonOf(const Sums &sums) {
  return {{"flops", sums.flops}, {"bytes", sums.bytes}, {"microseconds", sums.microseconds}};
}

ordered_json jsonOf(const std::map<int, Sums> &groups, std::string (*name)(int)) {
  ordered_json json = ordered_json::object();
  for (const auto &[key, sums] : groups)
    json[name(key)] = jsonOf(sums);
  return json;
}

} // namespace

std::string hydra::report::costText(const Plan &plan) {
  std::string text;
  if (hasRanks(plan))
    text += predictionText(stepName(plan), predictedStep(plan)) + "\n";
  for (const Program *program : *plan.programs()) {
    Costs costs;
    costs.add(*program->blocks(), 1);
    text += titleOf(plan, *program, costs.total) + "\n";
    Table table(1);
    addRows(table, "phase", costs.byPhase, phaseName, costs.total);
    addRows(table, "class", costs.byClass, className, costs.total);
    addRows(table, "layer", costs.byLayer, layerName, costs.total);
    addModules(table, plan, costs.byPath, costs.total);
    text += table.text();
    if (const PredictedTime time = predictedTime(plan, *program); !time.exchanges.empty())
      text += predictionText("  one run", time) + "\n" + exchangeTable(plan, time).text() +
              exposedTable(plan, time).text();
  }
  if (hasRanks(plan))
    text += ranksText(plan) + "\n";
  return text;
}

std::string hydra::report::costMarkdown(const Plan &plan) {
  std::string text;
  if (hasRanks(plan))
    text += predictionText(stepName(plan), predictedStep(plan)) + "\n\n";
  for (const Program *program : *plan.programs()) {
    Costs costs;
    costs.add(*program->blocks(), 1);
    text += titleOf(plan, *program, costs.total) + "\n";
    const auto add = [&](const char *title, const std::map<int, Sums> &groups,
                         std::string (*name)(int)) {
      Table table(1);
      addRows(table, title, groups, name, costs.total);
      text += "\n" + table.markdown();
    };
    add("phase", costs.byPhase, phaseName);
    add("class", costs.byClass, className);
    add("layer", costs.byLayer, layerName);
    Table modules(1);
    addModules(modules, plan, costs.byPath, costs.total);
    text += "\n" + modules.markdown();
    if (const PredictedTime time = predictedTime(plan, *program); !time.exchanges.empty())
      text += "\n" + predictionText("one run", time) + "\n\n" +
              exchangeTable(plan, time).markdown() + "\n" + exposedTable(plan, time).markdown();
    text += "\n";
  }
  if (hasRanks(plan))
    text += ranksText(plan) + "\n";
  return text;
}

std::string hydra::report::costJson(const Plan &plan) {
  ordered_json json{{"target", plan.target()->name()->str()},
                    {"mesh", hydra::runtime::meshText(plan)},
                    {"ranks", hydra::runtime::ranksOf(plan)},
                    {"step", jsonOf(plan, predictedStep(plan))},
                    {"programs", ordered_json::array()}};
  for (const Program *program : *plan.programs()) {
    Costs costs;
    costs.add(*program->blocks(), 1);
    ordered_json one{{"name", program->name()->str()},
                     {"total", jsonOf(costs.total)},
                     {"by_phase", jsonOf(costs.byPhase, phaseName)},
                     {"by_layer", jsonOf(costs.byLayer, layerName)},
                     {"by_class", jsonOf(costs.byClass, className)},
                     {"by_module", ordered_json::object()},
                     {"predicted", jsonOf(plan, predictedTime(plan, *program))}};
    for (const auto &[path, sums] : costs.byPath)
      one["by_module"][std::string(pathText(plan, path))] = jsonOf(sums);
    json["programs"].push_back(std::move(one));
  }
  const std::optional<double> rate = tokensPerSecond(plan, predictedStep(plan));
  json["tokens"] = tokensOfStep(plan);
  json["tokens_per_second"] = rate ? ordered_json(*rate) : ordered_json();
  json["memory_bytes"] = memoryOf(plan);
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}
