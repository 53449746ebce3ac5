// Rows of blocks by the time at which they should begin.
#include "runtime/report/ScheduleReport.h"

#include "runtime/report/MeasuredRates.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/PlanNodes.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/report/Table.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

using namespace hydra::planfile;
using nlohmann::ordered_json;

namespace hydra::report {

namespace {

/// The program's own blocks, the first to begin first.
std::vector<PlanNode> orderOf(const Plan &plan, const Program &program) {
  std::vector<PlanNode> order = nodesOf(plan, program);
  std::erase_if(order, [](const PlanNode &node) { return node.depth > 0; });
  std::ranges::stable_sort(order, {}, &PlanNode::begin);
  return order;
}

std::string nameOf(const Block &block) {
  if (const Step *step = block.node_as_Step())
    return step->name()->str();
  const Loop *loop = block.node_as_Loop();
  return loop ? fmt::format("loop, {} times", loop->count()) : "switch";
}

std::string micros(double time) { return fmt::format("{:.1f}", time); }

const char *measuredText(const Plan &plan) {
  const flatbuffers::String *measured = plan.target()->measured();
  return measured ? measured->c_str() : nullptr;
}

std::string titleOf(const Plan &plan, const Program &program) {
  const char *measured = measuredText(plan);
  return fmt::format("program {}: {:.4f} ms on {}, {}\n", program.name()->string_view(),
                     predictedTime(plan, program).total * 1e-3,
                     plan.target()->name()->string_view(),
                     measured ? fmt::format("by steps measured on {}", measured)
                              : "by the rates that its description allows");
}

/// What is predicted of a step that is an exchange.
void addExchange(ordered_json &row, const Step &step, const support::BlockSpan &span) {
  const ExchangeSum exchange = exchangeOf(step);
  if (exchange.kind == Action::NONE)
    return;
  row["wire_bytes"] = exchange.wireBytes;
  row["own_copy_microseconds"] = step.own_copy_microseconds();
  row["nothing_beside_microseconds"] = span.alone;
  row["exposed_microseconds"] = span.exposed;
}

} // namespace

std::string scheduleText(const Plan &plan) {
  std::string text;
  for (const Program *program : *plan.programs()) {
    Table table(3);
    table.add({"step", "module", "class", "block", "stream", "begin us", "end us", "alone us",
               "limit us"});
    for (const PlanNode &node : orderOf(plan, *program)) {
      const Step *step = node.block->node_as_Step();
      table.add({nameOf(*node.block), step ? std::string(pathText(plan, step->path())) : "-",
                 step ? EnumNameOpClass(step->op_class()) : "-", node.place,
                 fmt::format("{}", node.block->stream()), micros(node.begin), micros(node.end),
                 micros(predictedMicroseconds(*node.block)), step ? micros(limitOf(*step)) : "-"});
    }
    text += (text.empty() ? "" : "\n") + titleOf(plan, *program) + table.text();
  }
  return text;
}

std::string scheduleJson(const Plan &plan) {
  const char *measured = measuredText(plan);
  ordered_json json{{"target", plan.target()->name()->str()},
                    {"measured", measured ? ordered_json(measured) : ordered_json()},
                    {"step_microseconds", predictedStep(plan).total},
                    {"programs", ordered_json::array()}};
  for (const Program *program : *plan.programs()) {
    const support::StreamTimeline timeline = predictedTimeline(plan, *program);
    ordered_json steps = ordered_json::array();
    for (const PlanNode &node : orderOf(plan, *program)) {
      ordered_json row{{"place", node.place},
                       {"stream", node.block->stream()},
                       {"begin", node.begin},
                       {"end", node.end},
                       {"alone_microseconds", predictedMicroseconds(*node.block)},
                       {"name", nameOf(*node.block)}};
      if (const Step *step = node.block->node_as_Step()) {
        row["limit_microseconds"] = limitOf(*step);
        row["class"] = EnumNameOpClass(step->op_class());
        row["phase"] = EnumNamePhase(step->phase());
        row["path"] = std::string(pathText(plan, step->path()));
        addExchange(row, *step, timeline.blocks[node.top]);
      }
      steps.push_back(std::move(row));
    }
    json["programs"].push_back({{"name", program->name()->str()},
                                {"microseconds", predictedTime(plan, *program).total},
                                {"steps", std::move(steps)}});
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace hydra::report
