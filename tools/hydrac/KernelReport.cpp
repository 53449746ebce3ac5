// Launches of a plan beside what their kernels take.
#include "tools/hydrac/KernelReport.h"

#include "runtime/plan/PlanFile.h"
#include "runtime/report/PlanNodes.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace hydra {

using nlohmann::ordered_json;
using namespace planfile;
using report::bytesText;
using report::countText;

void AssemblerVerdict::add(const PlanT &plan, const CompiledKernels &code) {
  for (const auto &kernel : plan.kernels)
    kernels.push_back(code.kernels.find(kernel->name)->second.resources.value());
  llvm::append_range(warnings, code.warnings);
}

void AssemblerVerdict::add(const AssemblerVerdict &other) {
  llvm::append_range(kernels, other.kernels);
  llvm::append_range(warnings, other.warnings);
}

namespace {

bool isBad(const KernelResources &kernel) { return kernel.spills() || !kernel.warnings.empty(); }

struct Launched {
  uint32_t kernel = 0;
  uint64_t launches = 0; ///< of a run
};

/// The kernels of a program, those that are bad first, else as they are first launched.
std::vector<Launched> launchedBy(const Plan &plan, const Program &program,
                                 const AssemblerVerdict &verdict) {
  std::vector<Launched> found;
  std::map<uint32_t, size_t> places;
  const auto add = [&](uint32_t kernel, double times) {
    const auto [place, isNew] = places.try_emplace(kernel, found.size());
    if (isNew)
      found.push_back({.kernel = kernel});
    found[place->second].launches += static_cast<uint64_t>(std::llround(times));
  };
  for (const report::PlanNode &node : report::nodesOf(plan, program)) {
    if (const Step *step = node.block->node_as_Step()) {
      if (const Launch *launch = step->action_as_Launch())
        add(launch->kernel(), node.times);
    } else if (const Switch *choice = node.block->node_as_Switch(); choice && choice->kernel() >= 0)
      add(static_cast<uint32_t>(choice->kernel()), node.times);
  }
  std::vector<Launched> sorted;
  for (const bool bad : {true, false})
    for (const Launched &one : found)
      if (isBad(verdict.kernels[one.kernel]) == bad)
        sorted.push_back(one);
  return sorted;
}

/// How often a step of the run, behind all phases, runs a program; 0: never.
uint64_t runsOfStep(const Plan &plan, uint32_t number) {
  const std::optional<uint32_t> main = runtime::mainTrainingProgram(plan);
  const planfile::ProgramRole role = plan.programs()->Get(number)->role();
  if (!main)
    return 0;
  if (number == *main || (role == planfile::ProgramRole::count && number + 1 == *main))
    return plan.accumulation();
  return role == planfile::ProgramRole::apply ? 1 : 0;
}

uint64_t launchesOf(const std::vector<Launched> &kernels) {
  uint64_t launches = 0;
  for (const Launched &one : kernels)
    launches += one.launches;
  return launches;
}

std::string titleOf(const Program &program, const std::vector<Launched> &kernels, uint64_t runs) {
  return fmt::format("program {}: {} kernels, {} launches {}", program.name()->string_view(),
                     kernels.size(), countText(launchesOf(kernels) * std::max<uint64_t>(runs, 1)),
                     runs == 0   ? "a run"
                     : runs == 1 ? "a step"
                                 : fmt::format("a step, in {} runs", runs));
}

report::Table tableOf(const Plan &plan, const AssemblerVerdict &verdict,
                      const std::vector<Launched> &kernels, uint64_t runs) {
  report::Table table(1);
  table.add({"kernel", "launches", "threads", "registers", "stack", "spill stores", "spill loads",
             "static shared", "dynamic shared", ""});
  for (const Launched &one : kernels) {
    const Kernel &kernel = *plan.kernels()->Get(one.kernel);
    const KernelResources &takes = verdict.kernels[one.kernel];
    std::string note = takes.spills() ? "spills" : "";
    if (!takes.warnings.empty())
      note += note.empty() ? "warning" : ", warning";
    table.add({kernel.name()->str(), countText(one.launches * std::max<uint64_t>(runs, 1)),
               fmt::format("{}", kernel.block()->x()), fmt::format("{}", takes.registers),
               bytesText(takes.stackBytes), bytesText(takes.spillStores),
               bytesText(takes.spillLoads), bytesText(takes.sharedBytes),
               bytesText(kernel.shared_bytes()), note});
  }
  return table;
}

/// Of all kernels of a plan, each once.
struct Sums {
  size_t kernels = 0, spilling = 0, warned = 0, warnings = 0;
  uint64_t spillStores = 0, spillLoads = 0;

  explicit Sums(const AssemblerVerdict &verdict)
      : kernels(verdict.kernels.size()), warnings(verdict.warnings.size()) {
    for (const KernelResources &kernel : verdict.kernels) {
      spilling += kernel.spills() ? 1 : 0;
      warned += kernel.warnings.empty() ? 0 : 1;
      warnings += kernel.warnings.size();
      spillStores += kernel.spillStores;
      spillLoads += kernel.spillLoads;
    }
  }
};

/// What is bad, a line each.
std::vector<std::string> badOf(const Plan &plan, const AssemblerVerdict &verdict) {
  std::vector<std::string> lines;
  for (uint32_t i = 0; i < plan.kernels()->size(); ++i) {
    const std::string_view name = plan.kernels()->Get(i)->name()->string_view();
    const KernelResources &kernel = verdict.kernels[i];
    if (kernel.spills())
      lines.push_back(fmt::format("{} spills: {} of stores, {} of loads", name,
                                  bytesText(kernel.spillStores), bytesText(kernel.spillLoads)));
    for (const std::string &warning : kernel.warnings)
      lines.push_back(fmt::format("{}: {}", name, warning));
  }
  llvm::append_range(lines, verdict.warnings);
  return lines;
}

std::string headline(const Plan &plan, const Sums &sums) {
  return fmt::format("{} kernels for {}; with spills: {}, with warnings of ptxas: {}", sums.kernels,
                     plan.target()->name()->string_view(), sums.spilling, sums.warned);
}

std::string sumsText(const Sums &sums) {
  return fmt::format("sums of all kernels: {} of spill stores, {} of spill loads, {} warnings",
                     bytesText(sums.spillStores), bytesText(sums.spillLoads), sums.warnings);
}

} // namespace

std::string kernelReportText(const Plan &plan, const AssemblerVerdict &verdict) {
  const Sums sums(verdict);
  std::string text = headline(plan, sums) + "\n";
  for (const std::string &line : badOf(plan, verdict))
    text += "  " + line + "\n";
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const Program &program = *plan.programs()->Get(i);
    const std::vector<Launched> kernels = launchedBy(plan, program, verdict);
    const uint64_t runs = runsOfStep(plan, i);
    text += titleOf(program, kernels, runs) + "\n";
    if (!kernels.empty())
      text += tableOf(plan, verdict, kernels, runs).text();
  }
  return text + sumsText(sums) + "\n";
}

std::string kernelReportMarkdown(const Plan &plan, const AssemblerVerdict &verdict) {
  const Sums sums(verdict);
  std::string text = headline(plan, sums) + "\n\n";
  const std::vector<std::string> bad = badOf(plan, verdict);
  for (const std::string &line : bad)
    text += "* " + line + "\n";
  if (!bad.empty())
    text += "\n";
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const Program &program = *plan.programs()->Get(i);
    const std::vector<Launched> kernels = launchedBy(plan, program, verdict);
    const uint64_t runs = runsOfStep(plan, i);
    text += titleOf(program, kernels, runs) + "\n\n";
    if (!kernels.empty())
      text += tableOf(plan, verdict, kernels, runs).markdown() + "\n";
  }
  return text + sumsText(sums) + "\n";
}

std::string kernelReportJson(const Plan &plan, const AssemblerVerdict &verdict) {
  ordered_json json{{"target", plan.target()->name()->str()}, {"programs", ordered_json::array()}};
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const Program &program = *plan.programs()->Get(i);
    const std::vector<Launched> kernels = launchedBy(plan, program, verdict);
    const uint64_t runs = runsOfStep(plan, i), times = std::max<uint64_t>(runs, 1);
    ordered_json one{{"name", program.name()->str()},
                     {"runs_a_step", runs},
                     {"launches", launchesOf(kernels) * times},
                     {"kernels", ordered_json::array()}};
    for (const Launched &launched : kernels) {
      const Kernel &kernel = *plan.kernels()->Get(launched.kernel);
      const KernelResources &takes = verdict.kernels[launched.kernel];
      one["kernels"].push_back({{"name", kernel.name()->str()},
                                {"launches", launched.launches * times},
                                {"threads", kernel.block()->x()},
                                {"registers", takes.registers},
                                {"stack_bytes", takes.stackBytes},
                                {"spill_store_bytes", takes.spillStores},
                                {"spill_load_bytes", takes.spillLoads},
                                {"static_shared_bytes", takes.sharedBytes},
                                {"dynamic_shared_bytes", kernel.shared_bytes()},
                                {"warnings", takes.warnings}});
    }
    json["programs"].push_back(std::move(one));
  }
  const Sums sums(verdict);
  json["warnings"] = verdict.warnings;
  json["total"] = {{"kernels", sums.kernels},
                   {"spilling", sums.spilling},
                   {"spill_store_bytes", sums.spillStores},
                   {"spill_load_bytes", sums.spillLoads},
                   {"warnings", sums.warnings}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace hydra
