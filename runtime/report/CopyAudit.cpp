// What a copy is for follows from who writes its source and who reads its result.
#include "runtime/report/CopyAudit.h"

#include "runtime/plan/Actions.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/StepFlow.h"
#include "runtime/report/Units.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

namespace hydra::report {

using namespace planfile;
using nlohmann::ordered_json;

namespace {

struct Verdict {
  bool avoidable;
  std::string why;
};

bool isCopy(const Step &step) { return step.op_class() == OpClass::copy_cast; }

bool isLaunch(const Step &step) { return step.action_type() == Action::Launch; }

bool isCollective(const Step &step) { return step.op_class() == OpClass::collective; }

class CopyAudit {
public:
  CopyAudit(const Plan &plan, const Program &program)
      : plan(plan), program(program), flow(plan, program) {
    for (uint32_t i = 0; i < flow.nodes().size(); ++i)
      indices[flow.nodes()[i].step] = i;
  }

  CopyEntry entry(const StepMeasure &one) const {
    const Step &step = *one.step;
    const uint32_t node = indices.at(&step);
    const Flow ends = flowOf(node);
    const Verdict verdict = judge(node, ends);
    return {.name = step.name()->str(),
            .pass = std::string(passText(plan, step)),
            .phase = EnumNamePhase(step.phase()),
            .program = program.name()->str(),
            .module = moduleText(plan, step.path()),
            .model = locationText(plan, step.location()),
            .from = sourceText(step, ends),
            .to = namesOf(ends.readers, ends.outlives ? keptText(step) : ""),
            .why = verdict.why,
            .avoidable = verdict.avoidable,
            .steps = 1,
            .calls = one.calls,
            .bytes = one.calls * double(step.cost()->bytes()),
            .seconds = one.seconds,
            .predicted = 1e-6 * one.calls * step.cost()->microseconds()};
  }

private:
  struct Flow {
    std::vector<uint32_t> sources, readers;
    bool outlives = false, sourceIsRead = false;
  };

  const Step &stepAt(uint32_t node) const { return *flow.nodes()[node].step; }
  const Tensor &tensorOf(const Arg &arg) const { return *plan.tensors()->Get(arg.tensor()); }

  Flow flowOf(uint32_t node) const {
    Flow ends;
    for (const Arg *arg : *stepAt(node).args()) {
      if (arg->access() != Access::write) {
        const std::vector<uint32_t> found = flow.writers(node, arg->tensor());
        ends.sources.insert(ends.sources.end(), found.begin(), found.end());
        ends.sourceIsRead |= flow.outlives(arg->tensor()) || flow.isReadBehind(node, arg->tensor());
      }
      if (arg->access() != Access::read) {
        const std::vector<uint32_t> found = flow.readers(node, arg->tensor());
        ends.readers.insert(ends.readers.end(), found.begin(), found.end());
        ends.outlives |= flow.outlives(arg->tensor());
      }
    }
    return ends;
  }

  template <typename Is> bool all(const std::vector<uint32_t> &nodes, Is is) const {
    return !nodes.empty() &&
           std::ranges::all_of(nodes, [&](uint32_t node) { return is(stepAt(node)); });
  }
  template <typename Is> bool any(const std::vector<uint32_t> &nodes, Is is) const {
    return std::ranges::any_of(nodes, [&](uint32_t node) { return is(stepAt(node)); });
  }

  /// The one tensor that a step reads or writes; null if there are none or several.
  const Tensor *onlyTensor(const Step &step, bool written) const {
    const Tensor *only = nullptr;
    for (const Arg *arg : *step.args())
      if ((arg->access() != Access::read) == written) {
        if (only)
          return nullptr;
        only = &tensorOf(*arg);
      }
    return only;
  }

  Verdict judge(uint32_t node, const Flow &ends) const {
    const Step &step = stepAt(node);
    if (ends.outlives)
      return {false, "what it writes outlives the program"};
    if (ends.readers.empty())
      return {true, "nothing reads it"};
    if (any(ends.readers, isCollective) || any(ends.sources, isCollective))
      return {false, "ranks exchange what lies side by side"};
    if (step.action_type() == Action::Fill)
      return judgeFill(node, ends);
    const Tensor *source = onlyTensor(step, false), *result = onlyTensor(step, true);
    if (!source || !result)
      return {false, "it moves numbers of several values at once"};
    if (source->dtype() != result->dtype())
      return judgeCast(ends, *source, *result);
    if (all(ends.readers, isCopy))
      return {true, "only copies read it, which could read its source"};
    if (runtime::isDense(*source) && runtime::isDense(*result) &&
        shapeOf(*source) == shapeOf(*result))
      return judgeMove(node, ends, *source);
    return judgeLayout(ends, *source, *result);
  }

  Verdict judgeFill(uint32_t node, const Flow &ends) const {
    const uint32_t first = ends.readers.front();
    const bool adds = std::ranges::any_of(
        *stepAt(first).args(), [&](const Arg *arg) { return arg->access() == Access::read_write; });
    if (!adds)
      return {false, "what nothing else writes is read"};
    const auto &nodes = flow.nodes();
    if (!nodes[first].isSureFor(nodes[node]) ||
        nodes[first].loops.size() > nodes[node].loops.size())
      return {false, "sums begin with zero: what adds first is known only while it runs"};
    return {true, "the first sum could be written instead of added"};
  }

  Verdict judgeCast(const Flow &ends, const Tensor &source, const Tensor &result) const {
    if (source.segment() == SegmentKind::persistent)
      return {false, fmt::format("rounds a parameter to {}", dtypeName(result))};
    if (all(ends.sources, isLaunch) && !ends.sourceIsRead)
      return {true, fmt::format("its producer could write {} itself", dtypeName(result))};
    return {false,
            fmt::format("both {} and {} of it are read", dtypeName(source), dtypeName(result))};
  }

  /// The same bytes at another place.
  Verdict judgeMove(uint32_t node, const Flow &ends, const Tensor &source) const {
    if (source.segment() == SegmentKind::persistent || ends.sources.empty())
      return {false, "its source is a parameter, a state or an input"};
    if (!flow.nodes()[node].loops.empty())
      return {false, "a loop carries it from one iteration to the next"};
    if (ends.sourceIsRead)
      return {false, "its source is read later as well"};
    return {true, "its producer could write there"};
  }

  Verdict judgeLayout(const Flow &ends, const Tensor &source, const Tensor &result) const {
    const bool isPart = !runtime::isDense(result); // of something larger
    if (isPart && (source.segment() == SegmentKind::persistent || ends.sources.empty()))
      return {false, "part of a larger value: its source is a parameter or an input"};
    if (isPart && ends.sourceIsRead)
      return {false, "part of a larger value: its source is read by others as well"};
    if (isPart)
      return {true, "part of a larger value: its producer could write there"};
    if (all(ends.readers, isLaunch))
      return {true, "only generated kernels read it, which could read strides"};
    for (const uint32_t reader : ends.readers)
      if (!isLaunch(stepAt(reader)))
        return {false,
                fmt::format("{} takes no such strides", stepAt(reader).name()->string_view())};
    return {false, "-"};
  }

  /// `linear, rms_norm_3 and 2 others`.
  std::string namesOf(const std::vector<uint32_t> &nodes, const std::string &more = "") const {
    constexpr size_t shown = 3;
    std::vector<std::string> names;
    std::set<std::string> known;
    for (const uint32_t node : nodes)
      if (std::string name = stepAt(node).name()->str(); known.insert(name).second)
        names.push_back(std::move(name));
    if (!more.empty())
      names.push_back(more);
    if (names.empty())
      return "-";
    std::string text;
    for (size_t i = 0; i < std::min(shown, names.size()); ++i)
      text += (i > 0 ? ", " : "") + names[i];
    return names.size() > shown ? fmt::format("{} and {} others", text, names.size() - shown)
                                : text;
  }

  std::string sourceText(const Step &step, const Flow &ends) const {
    std::string given;
    for (const Arg *arg : *step.args())
      if (arg->access() != Access::write && ends.sources.empty())
        given = tensorOf(*arg).segment() == SegmentKind::persistent ? "a parameter or state"
                                                                    : "an input";
    return namesOf(ends.sources, given);
  }

  std::string keptText(const Step &step) const {
    for (const Arg *arg : *step.args())
      if (arg->access() != Access::read && tensorOf(*arg).segment() == SegmentKind::persistent)
        return "a parameter or state";
    return "an output";
  }

  const Plan &plan;
  const Program &program;
  StepFlow flow;
  std::map<const Step *, uint32_t> indices;
};

/// Those that say the same but for their layer become one.
std::vector<CopyEntry> merged(std::vector<CopyEntry> entries) {
  std::map<std::vector<std::string>, CopyEntry> groups;
  for (CopyEntry &one : entries) {
    auto [group, isNew] = groups.try_emplace({one.name, one.pass, one.phase, one.program,
                                              one.module, one.model, one.from, one.to, one.why},
                                             one);
    if (isNew)
      continue;
    CopyEntry &sum = group->second;
    sum.steps += one.steps;
    sum.calls += one.calls;
    sum.bytes += one.bytes;
    sum.seconds += one.seconds;
    sum.predicted += one.predicted;
  }
  std::vector<CopyEntry> list;
  for (auto &[key, one] : groups)
    list.push_back(std::move(one));
  std::ranges::sort(list, {}, [](const CopyEntry &one) {
    return std::tuple(-one.seconds, one.name, one.module, one.model, one.phase, one.from);
  });
  return list;
}

void addTo(CopyEntry &sum, const CopyEntry &one) {
  sum.calls += one.calls;
  sum.bytes += one.bytes;
  sum.seconds += one.seconds;
  sum.predicted += one.predicted;
}

std::string microseconds(double seconds) { return fmt::format("{:.1f}", 1e6 * seconds); }

std::string share(double part, double whole) {
  return fmt::format("{:.1f}%", whole > 0 ? 100 * part / whole : 0.0);
}

} // namespace

std::vector<CopyEntry> auditCopies(const Plan &plan, const Measurement &measured) {
  std::vector<CopyEntry> entries;
  std::map<uint32_t, CopyAudit> audits; // by program
  for (const StepMeasure &one : measured.steps) {
    if (!isCopy(*one.step) || one.calls == 0)
      continue;
    const auto [audit, isNew] =
        audits.try_emplace(one.program, plan, *plan.programs()->Get(one.program));
    entries.push_back(audit->second.entry(one));
  }
  return merged(std::move(entries));
}

Section copySection(const Plan &plan, const Measurement &measured) {
  constexpr size_t shown = 15;
  const double total = measured.seconds();
  Section section{"copies", Table(8), ordered_json::object()};
  section.table.add({"copies", "made by", "phase", "module", "from", "to", "avoidable", "why",
                     "calls", "MB", measured.measured ? "us" : "predicted us", "share"});
  const std::vector<CopyEntry> entries = auditCopies(plan, measured);
  std::array<CopyEntry, 2> sums;
  CopyEntry rest;
  ordered_json list = ordered_json::array();
  const auto row = [&](const CopyEntry &one) {
    section.table.add({one.name, one.pass, one.phase, one.module, one.from, one.to,
                       one.why.empty() ? ""
                       : one.avoidable ? "yes"
                                       : "no",
                       one.why, fmt::format("{:.6g}", one.calls),
                       fmt::format("{:.3f}", one.bytes * 1e-6), microseconds(one.seconds),
                       share(one.seconds, total)});
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    const CopyEntry &one = entries[i];
    addTo(sums[one.avoidable ? 0 : 1], one);
    if (i < shown)
      row(one);
    else
      addTo(rest, one);
    list.push_back(
        {{"name", one.name},
         {"pass", one.pass},
         {"program", one.program},
         {"phase", one.phase},
         {"module", one.module},
         {"model", one.model},
         {"from", one.from},
         {"to", one.to},
         {"avoidable", one.avoidable},
         {"why", one.why},
         {"steps", one.steps},
         {"calls", one.calls},
         {"bytes", one.bytes},
         {"predicted_microseconds", 1e6 * one.predicted},
         {"microseconds", measured.measured ? ordered_json(1e6 * one.seconds) : ordered_json()}});
  }
  if (entries.size() > shown) {
    rest.name = fmt::format("{} others", entries.size() - shown);
    row(rest);
  }
  for (size_t k = 0; k < 2; ++k) {
    sums[k].name = k == 0 ? "all avoidable" : "all needed";
    row(sums[k]);
    section.json[k == 0 ? "avoidable" : "needed"] = {
        {"calls", sums[k].calls},
        {"bytes", sums[k].bytes},
        {"microseconds", 1e6 * sums[k].seconds},
        {"percent", total > 0 ? 100 * sums[k].seconds / total : 0.0}};
  }
  section.json["copies"] = std::move(list);
  return section;
}

} // namespace hydra::report
