// Facts from the header of a plan and from its executor.
#include "runtime/run/StartupTable.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"
#include "runtime/run/Variables.h"

using namespace hydra::report;
using namespace hydra::runtime;

std::string
hydra::runtime::startupTable(const PlanFile &file, const Executor &executor,
                             const std::vector<std::pair<std::string, std::string>> &more) {
  const planfile::Plan &plan = file.plan();
  const planfile::Header &header = *plan.header();
  std::string model = header.model()->str();
  if (header.preset() && header.preset()->size() > 0)
    model += " " + header.preset()->str();
  std::string programs;
  for (const planfile::Program *program : *plan.programs())
    programs += (programs.empty() ? "" : ", ") + program->name()->str();
  const auto segment = [&](planfile::SegmentKind kind) {
    return bytesText(plan.segments()->Get(static_cast<uint32_t>(kind))->size());
  };

  const uint64_t ranks = ranksOf(plan);
  Table table(2);
  table.add({"plan",
             fmt::format("{} ({}, {}, {})", file.origin(), header.mode()->string_view(),
                         header.precision()->string_view(), plan.target()->name()->string_view())});
  const ParameterCount parameters = countParameters(plan);
  table.add(
      {"model", fmt::format("{} from {}, {} parameters{}", model,
                            header.model_file()->string_view(), countText(parameters.all),
                            parameters.trained < parameters.all && isTrainPlan(plan)
                                ? ", of which " + countText(parameters.trained) + " are trained"
                                : "")});
  table.add({"programs", programs});
  if (plan.phases() && plan.phases()->size() > 0) {
    std::string phases;
    for (const planfile::TrainingPhase *phase : *plan.phases())
      phases += fmt::format("{} to step {}, ",
                            plan.programs()->Get(phase->program())->name()->string_view(),
                            phase->last_step());
    table.add({"phases",
               phases + "then " + plan.programs()->Get(*mainTrainingProgram(plan))->name()->str()});
  }
  if (ranks > 1)
    table.add({"ranks",
               fmt::format("{}, mesh {}; memory and device are of each", ranks, meshText(plan))});
  table.add({"memory", fmt::format("{}: {} parameters and state, {} transient",
                                   bytesText(executor.arenaBytes()),
                                   segment(planfile::SegmentKind::persistent),
                                   segment(planfile::SegmentKind::transient))});
  if (plan.segments()->Get(static_cast<uint32_t>(planfile::SegmentKind::host))->size() > 0)
    table.add({"host memory", segment(planfile::SegmentKind::host) + ": moments of the optimizer"});
  const planfile::Cost &cost = *plan.cost();
  std::string work =
      fmt::format("{:.3g} GFLOP, {} of traffic{}", double(ranks * cost.flops()) * 1e-9,
                  bytesText(ranks * cost.bytes()), ranks > 1 ? " on all ranks" : "");
  if (cost.microseconds() > 0)
    work += fmt::format(", predicted {:.3g} ms", cost.microseconds() * 1e-3);
  table.add({isTrainPlan(plan) ? "one step" : "one call", work});
  for (const auto &[name, value] : executor.describe())
    table.add({name, value});
  for (const auto &[name, value] : more)
    table.add({name, value});
  return table.text();
}
