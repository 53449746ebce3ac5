// Sums over the tree of blocks.
#include "runtime/report/CostReport.h"

#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace hydra::report;
using namespace hydra::planfile;
using nlohmann::ordered_json;

namespace {

struct Sums {
  double flops = 0, bytes = 0, microseconds = 0;

  void add(const Cost &cost, double times) {
    flops += times * double(cost.flops());
    bytes += times * double(cost.bytes());
    microseconds += times * cost.microseconds();
  }
};

using Blocks = flatbuffers::Vector<flatbuffers::Offset<Block>>;

struct Costs {
  Sums total;
  std::map<int, Sums> byPhase, byLayer, byClass; // by the values of their enums

  void add(const Blocks &blocks, double times) {
    for (const Block *block : blocks) {
      if (const Step *step = block->node_as_Step()) {
        for (Sums *sums : {&total, &byPhase[static_cast<int>(step->phase())],
                           &byLayer[step->layer()], &byClass[static_cast<int>(step->op_class())]})
          sums->add(*step->cost(), times);
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

void addRows(Table &table, const std::string &title, const std::map<int, Sums> &groups,
             std::string (*name)(int), const Sums &total) {
  table.add({title, "GFLOP", "traffic", "ms", "share"});
  for (const auto &[key, sums] : groups)
    table.add(
        {name(key), fmt::format("{:.3f}", sums.flops * 1e-9),
         bytesText(static_cast<uint64_t>(sums.bytes)),
         fmt::format("{:.4f}", sums.microseconds * 1e-3),
         fmt::format("{:.1f}%",
                     total.microseconds > 0 ? 100 * sums.microseconds / total.microseconds : 0.0)});
}

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
  for (const Program *program : *plan.programs()) {
    Costs costs;
    costs.add(*program->blocks(), 1);
    text += fmt::format("program {}: {:.3f} GFLOP, {} of traffic, {:.4f} ms at the limit of {}\n",
                        program->name()->string_view(), costs.total.flops * 1e-9,
                        bytesText(static_cast<uint64_t>(costs.total.bytes)),
                        costs.total.microseconds * 1e-3, plan.target()->name()->string_view());
    Table table(1);
    addRows(table, "phase", costs.byPhase, phaseName, costs.total);
    addRows(table, "class", costs.byClass, className, costs.total);
    addRows(table, "layer", costs.byLayer, layerName, costs.total);
    text += table.text();
  }
  return text;
}

std::string hydra::report::costJson(const Plan &plan) {
  ordered_json json{{"target", plan.target()->name()->str()}, {"programs", ordered_json::array()}};
  for (const Program *program : *plan.programs()) {
    Costs costs;
    costs.add(*program->blocks(), 1);
    json["programs"].push_back({{"name", program->name()->str()},
                                {"total", jsonOf(costs.total)},
                                {"by_phase", jsonOf(costs.byPhase, phaseName)},
                                {"by_layer", jsonOf(costs.byLayer, layerName)},
                                {"by_class", jsonOf(costs.byClass, className)}});
  }
  return json.dump(1) + "\n";
}
