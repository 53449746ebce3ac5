// Sums over the parts of paths: what a part takes, all parts around it take.
#include "runtime/report/ModuleReport.h"

#include "runtime/report/LiveMemory.h"
#include "runtime/report/Phases.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/PlanNodes.h"
#include "runtime/report/Units.h"

#include <map>

namespace hydra::report {

using namespace planfile;
using nlohmann::ordered_json;

namespace {

struct ModuleSums {
  double forward = 0, backward = 0, other = 0, first = 0;
  uint64_t bytes = 0;

  double seconds() const { return forward + backward + other; }
};

/// By path; that of the whole model is empty.
using Modules = std::map<std::string, ModuleSums>;

bool isForward(Phase phase) { return phase == Phase::forward || phase == Phase::loss; }

/// Calls `visit` with the path and those of all parts around it.
template <typename Visit> void forEachPart(const std::string &path, Visit visit) {
  visit(std::string());
  for (size_t end = path.find('.'); end != path.npos; end = path.find('.', end + 1))
    visit(path.substr(0, end));
  if (!path.empty())
    visit(path);
}

class ModuleReport {
public:
  ModuleReport(const Plan &plan, const Measurement &measured) : plan(plan) {
    for (const StepMeasure &one : measured.steps)
      if (one.calls > 0 || one.firstSeconds.value_or(0) > 0)
        add(one);
    for (const auto &[index, runs] : programsOfStep(plan))
      addBytes(*plan.programs()->Get(index));
  }

  Section section() const {
    Section section{"module_tree", Table(1), ordered_json::array()};
    for (const auto &[path, sums] : each)
      section.json.push_back(
          {{"path", path},
           {"depth", depthOf(path)},
           {"forward_microseconds", 1e6 * sums.forward},
           {"backward_microseconds", 1e6 * sums.backward},
           {"other_microseconds", 1e6 * sums.other},
           {"first_microseconds", hasFirst ? ordered_json(1e6 * sums.first) : ordered_json()},
           {"memory_delta_bytes", sums.bytes}});
    section.table.add({"part of the model", "forward ms", "backward ms", "other ms", "first ms",
                       "left behind forward"});
    const double least = 0.01 * merged.at("").seconds();
    for (const auto &[path, sums] : merged)
      if (sums.seconds() >= least || path.empty())
        section.table.add({nameOf(path), milliseconds(sums.forward), milliseconds(sums.backward),
                           milliseconds(sums.other), hasFirst ? milliseconds(sums.first) : "-",
                           bytesText(sums.bytes)});
    return section;
  }

private:
  void add(const StepMeasure &one) {
    const PhaseShares shares = phaseShares(*one.step);
    ModuleSums sums;
    for (const Phase phase : EnumValuesPhase()) {
      const double seconds = shares[static_cast<size_t>(phase)] * one.seconds;
      (isForward(phase)           ? sums.forward
       : phase == Phase::backward ? sums.backward
                                  : sums.other) += seconds;
    }
    hasFirst |= one.firstSeconds.has_value();
    sums.first = one.firstSeconds.value_or(0);
    addTo(one.step->path(), sums);
  }

  void addTo(int32_t path, const ModuleSums &sums) {
    const auto addSums = [&](Modules &modules) {
      return [&modules, &sums](const std::string &part) {
        ModuleSums &all = modules[part];
        all.forward += sums.forward;
        all.backward += sums.backward;
        all.other += sums.other;
        all.first += sums.first;
        all.bytes += sums.bytes;
      };
    };
    forEachPart(path < 0 ? std::string() : std::string(pathText(plan, path)), addSums(each));
    forEachPart(path < 0 ? std::string() : moduleText(plan, path), addSums(merged));
  }

  /// What is made up to the last block of the forward pass, and read behind it.
  void addBytes(const Program &program) {
    int64_t end = -1;
    for (const PlanNode &node : nodesOf(plan, program))
      if (const Step *step = node.block->node_as_Step(); step && isForward(step->phase()))
        end = node.top;
    const std::vector<const Step *> makers = makersOf(plan, program);
    for (const LivePiece &piece : liveMemory(plan, program).pieces)
      if (makers[piece.tensor] && int64_t{piece.first} <= end && int64_t{piece.last} > end) {
        ModuleSums sums;
        sums.bytes = piece.end - piece.begin;
        addTo(makers[piece.tensor]->path(), sums);
      }
  }

  static size_t depthOf(const std::string &path) {
    return path.empty() ? 0 : 1 + static_cast<size_t>(std::count(path.begin(), path.end(), '.'));
  }

  static std::string nameOf(const std::string &path) {
    if (path.empty())
      return "all";
    return std::string(2 * depthOf(path), ' ') + path.substr(path.rfind('.') + 1);
  }

  static std::string milliseconds(double seconds) {
    return seconds > 0 ? fmt::format("{:.4f}", 1e3 * seconds) : "-";
  }

  const Plan &plan;
  Modules each, merged; // the second with the layers of a stack as one
  bool hasFirst = false;
};

} // namespace

Section moduleTree(const Plan &plan, const Measurement &measured) {
  return ModuleReport(plan, measured).section();
}

} // namespace hydra::report
