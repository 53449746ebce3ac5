// The rules of models.md, section 3.10.
#include "runtime/run/StepPolicies.h"

#include "runtime/support/Error.h"
#include "runtime/support/LossLimit.h"
#include "runtime/support/Shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

using namespace hydra::runtime;
using hydra::support::fail;
using hydra::support::kLossLimit;
using hydra::support::shown;

namespace {

// What is kept, by its name in checkpoints.
constexpr const char *kNorm = "norm_mean";       // of the gradients of the steps before
constexpr const char *kUsual = "filter_mean";    // of the loss, where it is above its limit of that
constexpr const char *kLoss = "loss_mean";       // for spikes
constexpr const char *kSlowUntil = "slow_until"; // the first step that has its whole rate again
constexpr const char *kShort = "loss_short";     // two means of the loss, one slower
constexpr const char *kLong = "loss_long";
constexpr const char *kRises = "loss_rises";         // how often the fast one was well above
constexpr const char *kEvaluated = "evaluated_step"; // steps before the last measurement
constexpr const char *kStartMean = "start_mean";     // of the loss, for an early start
constexpr const char *kPhaseMean = "phase_mean";     // of the loss, for the end of a phase
constexpr const char *kSaved = "steps_saved";        // by phases that ended early

/// The same of one of them, from 1 on.
std::string savedBy(int64_t phase) { return fmt::format("{}.{}", kSaved, phase); }

/// The mean that counts the newest value by a share.
double moved(std::optional<double> mean, double value, double share) {
  return mean ? (1 - share) * *mean + share * value : value;
}

} // namespace

StepPolicies::StepPolicies(const PolicyFlags &flags, const SavedPolicies *saved,
                           const Scalars &scalars, std::vector<int64_t> phases)
    : phases(std::move(phases)) {
  if (saved)
    kept = *saved;
  for (const auto &[name, text] : flags)
    kept.flags[name] = text;
  policies = parsePolicies(kept.flags);
  // What is off begins anew when it is on again.
  if (!policies.clip)
    kept.numbers.erase(kNorm);
  if (!policies.filter)
    kept.numbers.erase(kUsual);
  if (!policies.spike)
    for (const char *name : {kLoss, kSlowUntil})
      kept.numbers.erase(name);
  if (policies.cooldown == Cooldown::off)
    for (const char *name : {kShort, kLong, kRises, kEvaluated})
      kept.numbers.erase(name);
  if (!policies.early)
    kept.numbers.erase(kStartMean);
  if (policies.ends.empty()) // what is behind a phase stays behind it
    kept.numbers.erase(kPhaseMean);
  if (policies.clip && !scalars.value("clip", 0))
    fail("--dynamic-clip: the plan does not clip; compile it without --no-clip");
  if (policies.filter && !scalars.value(kLossLimit, 0))
    fail(
        "--batch-filter: the plan has no limit of the loss; hydrac --batch-filter makes plans that "
        "do");
  if (policies.cooldown != Cooldown::off && !scalars.endOfDecay())
    fail("--cooldown is for a wsd schedule of the learning rate with a last step");
  if (policies.early && !scalars.waits(policies.early->scalar))
    fail("--start-early: {} has no schedule that begins after some steps; --scalar {}=VALUE,after="
         "STEPS makes one",
         shown(policies.early->scalar), shown(policies.early->scalar));
  if (const auto count = static_cast<int64_t>(this->phases.size());
      !policies.ends.empty() && policies.ends.rbegin()->first > count)
    fail("--end-phase: there is no phase {}; the plan has {}{}", policies.ends.rbegin()->first,
         count == 0 ? "none" : fmt::format("{}", count),
         count == 0 ? ", and hydrac --phase makes them" : "");
}

std::optional<double> StepPolicies::get(const std::string &name) const {
  const auto found = kept.numbers.find(name);
  return found == kept.numbers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> StepPolicies::clipAt(int64_t step, const Scalars &scalars) const {
  const std::optional<double> mean = get(kNorm);
  // The first bound is the fixed one, if there is one.
  const double bound =
      mean ? policies.clip->factor * *mean : scalars.scheduled("clip", step).value_or(0);
  if (bound <= 0)
    return std::nullopt;
  return std::clamp(bound, policies.clip->least, policies.clip->most);
}

void StepPolicies::begin(int64_t step, Scalars &scalars) const {
  if (policies.clip)
    if (const std::optional<double> bound = clipAt(step, scalars))
      scalars.set("clip", step, *bound);
  if (const std::optional<double> usual = get(kUsual); policies.filter && usual && *usual > 0)
    scalars.set(kLossLimit, step, policies.filter->factor * *usual);
  if (policies.spike && static_cast<double>(step) < get(kSlowUntil).value_or(0))
    if (const std::optional<double> rate = scalars.scheduled("lr", step))
      scalars.set("lr", step, *rate * policies.spike->rate);
}

std::string StepPolicies::takeStep(int64_t step, double loss, std::optional<double> norm,
                                   Scalars &scalars) {
  constexpr double share = 0.05;
  if (std::isfinite(loss) && filters(step, loss, scalars))
    return "";
  if (policies.clip && norm && std::isfinite(*norm)) {
    std::optional<double> mean = get(kNorm);
    if (const double fixed = scalars.scheduled("clip", step).value_or(0); !mean && fixed > 0)
      mean = fixed / policies.clip->factor;
    kept.numbers[kNorm] = moved(mean, *norm, share);
  }
  if (!std::isfinite(loss))
    return "";
  std::string said = watchSpike(step, loss);
  constexpr int64_t pause = 100;
  const bool watches = policies.cooldown == Cooldown::train && (step + 1) % pause == 0;
  for (const std::string &more : {watches ? watchRise(step + 1, loss, scalars) : std::string(),
                                  watchStart(step, loss, scalars), watchPhase(step, loss)})
    if (!more.empty())
      said += (said.empty() ? "" : "; ") + more;
  return said;
}

bool StepPolicies::filters(int64_t step, double loss, const Scalars &scalars) {
  constexpr double share = 0.1;
  if (!policies.filter)
    return false;
  const double limit = scalars.value(kLossLimit, step).value_or(0);
  const bool above = limit > 0 && static_cast<float>(loss) > static_cast<float>(limit);
  // What is left out counts as the limit: losses that stay so large are usual some steps later.
  kept.numbers[kUsual] = moved(get(kUsual), above ? limit : loss, share);
  return above;
}

std::string StepPolicies::watchSpike(int64_t step, double loss) {
  if (!policies.spike)
    return "";
  constexpr double share = 0.1;
  const std::optional<double> mean = get(kLoss);
  kept.numbers[kLoss] = moved(mean, loss, share);
  if (!mean || *mean <= 0 || loss <= policies.spike->factor * *mean)
    return "";
  const int64_t steps = policies.spike->steps;
  kept.numbers[kSlowUntil] = static_cast<double>(step + 1 + steps);
  return fmt::format("the loss {:.6g} is above {:g} times its mean {:.6g}: the learning rate times "
                     "{:g} for {} step{}",
                     loss, policies.spike->factor, *mean, policies.spike->rate, steps,
                     steps == 1 ? "" : "s");
}

bool StepPolicies::wantsEvaluation(int64_t steps) const {
  return policies.cooldown == Cooldown::eval && steps > 0 &&
         static_cast<double>(steps) > get(kEvaluated).value_or(0);
}

std::string StepPolicies::takeEvaluation(int64_t steps, double loss, Scalars &scalars) {
  if (!wantsEvaluation(steps))
    return "";
  kept.numbers[kEvaluated] = static_cast<double>(steps);
  return watchRise(steps, loss, scalars);
}

std::string StepPolicies::watchRise(int64_t steps, double loss, Scalars &scalars) {
  constexpr double fast = 0.1, slow = 0.02, rise = 0.05, times = 3;
  const double quick = moved(get(kShort), loss, fast), steady = moved(get(kLong), loss, slow);
  kept.numbers[kShort] = quick;
  kept.numbers[kLong] = steady;
  const int64_t last = scalars.endOfDecay().value_or(0);
  if (2 * steps <= last || !scalars.isStable(steps) || steady <= 0 ||
      (quick - steady) / steady <= rise)
    return "";
  double &rises = kept.numbers[kRises];
  if (++rises < times)
    return "";
  rises = 0;
  const int64_t end = steps + std::max<int64_t>(1, (last - steps) / 2);
  scalars.decay(steps, end);
  return fmt::format(
      "the loss has risen three times, to a mean of {:.6g} from {:.6g}: the learning "
      "rate decays from here to step {}",
      quick, steady, end);
}

std::string StepPolicies::watchStart(int64_t step, double loss, Scalars &scalars) {
  constexpr double share = 0.05;
  if (!policies.early)
    return "";
  const double mean = kept.numbers[kStartMean] = moved(get(kStartMean), loss, share);
  const EarlyStart &early = *policies.early;
  if (mean >= early.when.loss || step + 1 < early.when.from ||
      !scalars.start(early.scalar, step + 1, early.over))
    return "";
  return fmt::format("the mean loss {:.6g} is below {:g}: {} begins here", mean, early.when.loss,
                     early.scalar);
}

int64_t StepPolicies::stepsSaved() const {
  // Of a checkpoint nothing is believed: no phase ends before the run begins.
  const double most = phases.empty() ? 0 : static_cast<double>(phases.back());
  return static_cast<int64_t>(std::clamp(get(kSaved).value_or(0), 0.0, most));
}

std::vector<int64_t> StepPolicies::phaseEnds() const {
  const int64_t all = stepsSaved();
  int64_t known = 0;
  for (size_t i = 0; i < phases.size(); ++i)
    known += savedIn(i);
  // Steps that an older checkpoint gives to no phase count as the first one's.
  int64_t saved = std::max<int64_t>(0, all - known), end = 0;
  std::vector<int64_t> ends;
  for (size_t i = 0; i < phases.size(); ++i) {
    saved = std::min(saved + savedIn(i), all);
    ends.push_back(end = std::max(end, phases[i] - saved));
  }
  return ends;
}

int64_t StepPolicies::savedIn(size_t phase) const {
  const double most = static_cast<double>(phases[phase]);
  return static_cast<int64_t>(
      std::clamp(get(savedBy(static_cast<int64_t>(phase) + 1)).value_or(0), 0.0, most));
}

std::string StepPolicies::watchPhase(int64_t step, double loss) {
  constexpr double share = 0.05;
  if (policies.ends.empty())
    return "";
  const double mean = kept.numbers[kPhaseMean] = moved(get(kPhaseMean), loss, share);
  const int64_t made = step + 1 + stepsSaved(); // as the plan counts
  const auto phase =
      std::ranges::find_if(phases, [&](int64_t last) { return step + stepsSaved() < last; });
  if (phase == phases.end())
    return "";
  const auto end = policies.ends.find(phase - phases.begin() + 1);
  if (end == policies.ends.end() || mean >= end->second.loss || step + 1 < end->second.from ||
      made == *phase)
    return "";
  const auto early = static_cast<double>(*phase - made);
  kept.numbers[kSaved] += early;
  kept.numbers[savedBy(end->first)] = early;
  return fmt::format("the mean loss {:.6g} is below {:g}: phase {} ends here, {} step{} early",
                     mean, end->second.loss, end->first, *phase - made,
                     *phase - made == 1 ? "" : "s");
}

std::optional<SavedPolicies> StepPolicies::save() const {
  return kept.flags.empty() ? std::nullopt : std::optional(kept);
}

PolicyFlags StepPolicies::flags() const {
  PolicyFlags on;
  for (const auto &[name, text] : kept.flags)
    if (text != "off")
      on[name] = text;
  return on;
}
