// Rules over a plan and what its steps took.
#include "runtime/report/Advice.h"
#include "runtime/report/MeasuredRates.h"

#include "runtime/report/CopyAudit.h"
#include "runtime/report/PlanNames.h"
#include "runtime/support/Integers.h"

#include <algorithm>
#include <map>

namespace hydra::report {

using namespace planfile;
using nlohmann::ordered_json;

namespace {

constexpr double kLeastPercent = 2;
constexpr size_t kOperations = 10;
constexpr double kGood = 0.7, kFar = 0.4; // of the predicted speed
constexpr double kShortCall = 10e-6;      // seconds of a matmul that leaves a GPU idle

/// Steps of one name.
struct Operation {
  std::string name;
  const Step *longest = nullptr;
  double longestSeconds = 0, calls = 0, seconds = 0, predicted = 0;
  uint64_t blocks = 0; ///< of the longest one's launch

  double ofLimit() const { return seconds > 0 ? predicted / seconds : 0; }
};

/// What kinds of machines differ in, as far as advice goes.
struct Machine {
  bool isFed = false;       ///< runs what a host launches, and idles where that is late
  bool tensorCores = false; ///< matmuls of narrower formats than f32 are several times as fast
  bool tunes = false;       ///< --tune chooses among algorithms of its library
};

Machine machineOf(TargetKind kind) {
  switch (kind) {
  case TargetKind::cpu:
    return {};
  case TargetKind::cuda:
    return {.isFed = true, .tensorCores = true, .tunes = true};
  }
  return {}; // the verifier knows no other
}

class Adviser {
public:
  Adviser(const Plan &plan, const Measurement &measured)
      : plan(plan), measured(measured), whole(std::max(measured.wall, measured.seconds())),
        machine(machineOf(plan.target()->kind())) {}

  std::vector<Advice> run() {
    aboutStep();
    for (const Operation &one : operations())
      aboutOperation(one);
    return std::move(list);
  }

private:
  double percent(double seconds) const { return whole > 0 ? 100 * seconds / whole : 0; }

  void add(std::string tag, std::string subject, double seconds, std::string reason,
           std::string flag) {
    if (percent(seconds) > kLeastPercent)
      list.push_back({std::move(tag), std::move(subject), percent(seconds), std::move(reason),
                      std::move(flag)});
  }

  std::string_view option(std::string_view key) const {
    for (const KeyValue *one : *plan.header()->options())
      if (one->key()->string_view() == key)
        return one->value()->string_view();
    return {};
  }

  void aboutStep() {
    add("INVESTIGATE", "waiting for data", measured.data,
        "the step waits for its batches; --bench-data times the files alone", "--prefetch-threads");
    add(machine.isFed ? "INVESTIGATE" : "CHECK", "between steps", measured.idle,
        machine.isFed
            ? "the GPU runs nothing: launches, or what the host does between programs; more work "
              "a step hides it"
            : "reading inputs, the loss and the plan's own work between steps; more work a step "
              "hides it",
        machine.isFed && measured.stepByStep ? "without --no-graph" : "hydrac --batch");
    add("INVESTIGATE", "waiting for other ranks", measured.alone,
        "nothing computes beside these exchanges; micro-batches need fewer of them",
        "hydrac --accum, --reduce=bf16");
    aboutRecomputing();
    double avoidable = 0;
    for (const CopyEntry &copy : auditCopies(plan, measured))
      avoidable += copy.avoidable ? copy.seconds : 0;
    add("CHECK", "copies that need not be", avoidable,
        "the audit of copies says for each who made it, and who could do without it", "");
    if (option("O") == "0" || option("O") == "1")
      add("TIP", "all steps", whole, fmt::format("compiled with -O{}", option("O")), "hydrac -O2");
  }

  void aboutRecomputing() {
    double again = 0;
    for (const StepMeasure &one : measured.steps)
      if (passText(plan, *one.step) == "hydra-recompute")
        again += one.seconds;
    const std::string_view how = option("recompute");
    add(how == "none" || how == "light" || how.empty() ? "CHECK" : "TIP", "computing again", again,
        "the backward pass computes again what could be kept, if there is memory for it",
        "hydrac --recompute=light");
  }

  /// The ten with most time.
  std::vector<Operation> operations() const {
    std::map<std::string, Operation> byName;
    for (const StepMeasure &one : measured.steps) {
      if (one.calls == 0)
        continue;
      Operation &sum = byName[one.step->name()->str()];
      sum.name = one.step->name()->str();
      sum.calls += one.calls;
      sum.seconds += one.seconds;
      sum.predicted += 1e-6 * one.calls * limitOf(*one.step);
      if (!sum.longest || one.seconds > sum.longestSeconds) {
        sum.longest = one.step;
        sum.longestSeconds = one.seconds;
        sum.blocks = blocksOf(*one.step);
      }
    }
    std::vector<Operation> order;
    for (const auto &[name, sum] : byName)
      order.push_back(sum);
    std::sort(order.begin(), order.end(), [](const Operation &a, const Operation &b) {
      return std::pair(b.seconds, a.name) < std::pair(a.seconds, b.name);
    });
    order.resize(std::min(order.size(), kOperations));
    return order;
  }

  /// Of a launch with a grid; else 0.
  uint64_t blocksOf(const Step &step) const {
    const Launch *launch = step.action_as_Launch();
    if (!launch)
      return 0;
    const Dim3 &grid = *plan.kernels()->Get(launch->kernel())->grid();
    const uint64_t along = launch->blocks() > 0 ? launch->blocks() : grid.x();
    return along * std::max(1u, grid.y()) * std::max(1u, grid.z());
  }

  void aboutOperation(const Operation &one) {
    const OpClass kind = one.longest->op_class();
    const std::string_view precision = plan.header()->precision()->string_view();
    const double limit = one.ofLimit();
    const bool good = measured.measured && limit >= kGood;
    const auto say = [&](const char *tag, std::string reason, std::string flag = "") {
      add(tag, one.name, one.seconds, std::move(reason), std::move(flag));
    };
    if (kind == OpClass::softmax && option("attention") == "naive")
      return say("TIP", "all scores are written and read", "hydrac --attention=flash");
    if (machine.tensorCores && kind == OpClass::gemm && precision == "fp32")
      return say("TIP", "matmuls multiply in f32, which a GPU is slow at",
                 "hydrac --precision=bf16 or tf32");
    if (good)
      return say("OPTIMIZED", fmt::format("at {:.0f}% of the predicted speed", 100 * limit));
    if (machine.isFed && kind == OpClass::gemm && one.seconds < kShortCall * one.calls)
      return say("CHECK",
                 fmt::format("{:.1f} us a call: matmuls too small for a GPU",
                             1e6 * one.seconds / one.calls),
                 "hydrac --batch");
    if (measured.measured && machine.tunes && kind == OpClass::gemm && option("tuned").empty())
      return say("TIP",
                 fmt::format("at {:.0f}% of the predicted speed with the library's first guess",
                             100 * limit),
                 "--tune");
    if (one.blocks > 0 && measured.multiprocessors > 0 && one.blocks < measured.multiprocessors)
      return say(
          "CHECK",
          fmt::format("{} blocks for {} multiprocessors", one.blocks, measured.multiprocessors),
          "hydrac --batch");
    if (one.blocks > 0 && measured.multiprocessors > 0 && tail(one.blocks) > 0.2)
      return say(
          "CHECK",
          fmt::format("{} blocks for {} multiprocessors: the last wave leaves {:.0f}% of the "
                      "GPU idle",
                      one.blocks, measured.multiprocessors, 100 * tail(one.blocks)),
          "hydrac --batch");
    if (kind == OpClass::copy_cast)
      return say("CHECK", "moves numbers and computes nothing; the audit of copies says what for");
    if (!measured.measured)
      return; // how far it is from what is predicted, only a profile says
    if (limit <= 0)
      return say("CHECK", "nothing is predicted for it");
    say(limit < kFar ? "INVESTIGATE" : "CHECK",
        fmt::format("at {:.0f}% of the predicted speed", 100 * limit));
  }

  /// What part of the device has nothing to do, over all waves, because the last one is not full;
  /// where each multiprocessor runs a block at a time.
  double tail(uint64_t blocks) const {
    const uint64_t many = measured.multiprocessors, waves = support::ceilDiv(blocks, many);
    return 1 - double(blocks) / double(waves * many);
  }

  const Plan &plan;
  const Measurement &measured;
  double whole; ///< seconds
  Machine machine;
  std::vector<Advice> list;
};

} // namespace

std::vector<Advice> adviceFor(const Plan &plan, const Measurement &measured) {
  return Adviser(plan, measured).run();
}

Section adviceSection(const Plan &plan, const Measurement &measured) {
  Section section{"advice", Table(4), ordered_json::array()};
  section.table.add({"advice", "about", "why", "flag", "of the step"});
  for (const Advice &one : adviceFor(plan, measured)) {
    section.table.add({one.tag, one.subject, one.reason, one.flag.empty() ? "-" : one.flag,
                       fmt::format("{:.1f}%", one.percent)});
    section.json.push_back({{"tag", one.tag},
                            {"subject", one.subject},
                            {"percent", one.percent},
                            {"reason", one.reason},
                            {"flag", one.flag}});
  }
  return section;
}

} // namespace hydra::report
