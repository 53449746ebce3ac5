// Pretest, watch, fall back.
#include "runtime/run/SafetyGuard.h"

#include "runtime/report/SafetyTable.h"
#include "runtime/report/Units.h"
#include "runtime/run/SafetyJson.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

using hydra::planfile::Plan;
using hydra::planfile::Program;
using nlohmann::ordered_json;

namespace hydra::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// That are tried; the first of each warms up.
constexpr int kFastSteps = 10, kSafeSteps = 2, kAloneSteps = 4;
constexpr double kSlower = 1.1; // times as long as without an optimization: it is told of
constexpr double kLossTolerance = 1e-2, kNormTolerance = 5e-2; // relative: models.md, section 6
constexpr int kDigits = 12;                                    // of a configuration

/// Whether the steps that are refused say what the loss may be multiplied by.
bool scalesLoss(const Plan &plan) {
  return std::ranges::any_of(*plan.variables(), [&](const planfile::Variable *variable) {
    return variable->role() == planfile::VariableRole::loss_scaling;
  });
}

SafetyState beginOf(const Session &session, const std::string &configuration) {
  SafetyState state;
  if (const auto &saved = session.safety();
      saved && saved->configuration == configuration && saved->status != SafetyStatus::disabled)
    state = *saved;
  state.configuration = configuration;
  return state;
}

/// What all ranks take from rank 0.
std::string agreed(Ranks *ranks, const std::string &text) {
  if (!ranks)
    return text;
  const std::vector<std::byte> bytes = ranks->broadcast(std::as_bytes(std::span(text)));
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

SafetyObservation agreed(Ranks *ranks, SafetyObservation seen) {
  if (!ranks)
    return seen;
  const double own[] = {seen.loss, seen.gradientNorm.value_or(0.0), seen.tokensPerSecond};
  const std::vector<std::byte> bytes = ranks->broadcast(std::as_bytes(std::span(own)));
  double first[3];
  std::memcpy(first, bytes.data(), std::min(bytes.size(), sizeof(first)));
  seen.loss = first[0];
  if (seen.gradientNorm)
    seen.gradientNorm = first[1];
  seen.tokensPerSecond = first[2];
  return seen;
}

bool isClose(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::abs(b);
}

/// Why one form is not as another, which is called `name`; empty where it is.
template <typename Form>
std::string difference(const Form &form, const Form &other, std::string_view name) {
  if (!isClose(form.trial.loss, other.trial.loss, kLossTolerance))
    return fmt::format("the loss is {:g}, and {:g} {}; they may differ by {:g} of it",
                       form.trial.loss, other.trial.loss, name, kLossTolerance);
  const std::optional<double> norm = form.trial.gradientNorm, second = other.trial.gradientNorm;
  if (norm && second && std::isfinite(*norm) && !isClose(*norm, *second, kNormTolerance))
    return fmt::format("the gradient norm is {:g}, and {:g} {}; they may differ by {:g} of it",
                       *norm, *second, name, kNormTolerance);
  return "";
}

constexpr std::string_view kInSafeForm = "in the safe form";

/// cpu, or the generation of a GPU.
const char *architectureOf(int capability) {
  constexpr int ampere = 80, ada = 89, hopper = 90, blackwell = 100;
  return capability == 0          ? "cpu"
         : capability < ampere    ? "older"
         : capability < ada       ? "ampere"
         : capability < hopper    ? "ada"
         : capability < blackwell ? "hopper"
                                  : "blackwell";
}

/// Of `sm_90a`: 90; 0 of a plan for a CPU.
int capabilityOf(const Plan &plan) {
  const std::string name = plan.target()->sm_arch() ? plan.target()->sm_arch()->str() : "";
  const size_t digit = std::min(name.size(), name.find_first_of("0123456789"));
  int capability = 0;
  std::from_chars(name.data() + digit, name.data() + name.size(), capability);
  return capability;
}

} // namespace

std::string safetyConfiguration(const PlanFile &file, const Executor &executor) {
  const auto hash = file.checksum();
  const std::string device = executor.deviceName();
  const uint64_t both =
      XXH3_64bits_withSeed(device.data(), device.size(), XXH3_64bits(hash.data(), hash.size()));
  return fmt::format("{:016x}", both).substr(0, kDigits);
}

ProgramForm formToRun(const std::optional<SafetyState> &state, const std::string &configuration,
                      const Plan &plan) {
  if (!state || state->configuration != configuration || state->status == SafetyStatus::disabled)
    return ProgramForm::own;
  if (state->status == SafetyStatus::failed || state->status == SafetyStatus::fallback)
    return ProgramForm::safe;
  if (state->without.empty())
    return ProgramForm::own;
  const std::optional<ProgramForm> form = formWithout(plan, state->without);
  if (!form)
    support::fail("the checkpoint was made without the optimization {}, and the plan has no form "
                  "without it",
                  support::shown(state->without));
  return *form;
}

SafetyGuard::SafetyGuard(const PlanFile &file, Executor &executor, Session &session,
                         const SafetySetup &setup, Ranks *ranks, RunLog &log,
                         std::function<void(const std::string &)> say)
    : file(file), executor(executor), session(session), setup(setup), ranks(ranks), log(log),
      say(std::move(say)),
      monitor({.window = setup.window,
               .countsThroughput = setup.countsThroughput,
               .scalesLoss = scalesLoss(file.plan())},
              beginOf(session, agreed(ranks, safetyConfiguration(file, executor)))) {
  if (setup.pretests && leads())
    pretests =
        LineFile(*setup.pretests, "the record of pretests", "{", /*append=*/session.steps() > 0);
}

void SafetyGuard::begin() {
  if (setup.safeForm) {
    monitor.disable(session.steps(), "--safe");
  } else if (!monitor.isSafe()) {
    const Clock::time_point begin = Clock::now();
    const bool isNew = monitor.state().status == SafetyStatus::pretesting;
    std::string problem = agreed(ranks, pretest());
    std::string without;
    if (monitor.state().without.empty() && (isNew || !problem.empty()))
      without = agreed(ranks, pretestAlone(problem));
    record(problem, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    if (without.empty()) {
      if (!problem.empty() && !alone.empty())
        problem += fmt::format("; none of {} optimizations alone is why", alone.size());
      monitor.pretested(session.steps(), problem);
    } else {
      const auto given = std::ranges::find(alone, without, &Alone::name);
      monitor.giveUp(session.steps(), without, given->message);
      say(fmt::format("the run goes on without {}: {}", without, given->message));
    }
  }
  session.useForm(monitor.isSafe()
                      ? ProgramForm::safe
                      : formToRun(monitor.state(), monitor.state().configuration, file.plan()));
  session.noteSafety(monitor.state());
  log.safety(session.steps(), monitor.state(), file.plan());
  tell();
}

SafetyGuard::Form SafetyGuard::tryForm(ProgramForm which, int steps) {
  session.useForm(which);
  Form form;
  for (int i = 0; i < steps; ++i) {
    form.trial = session.tryStep();
    if (i <= 1 || form.trial.seconds < form.seconds)
      form.seconds = form.trial.seconds;
    if (form.problem.empty() && !std::isfinite(form.trial.loss))
      form.problem = fmt::format("the loss of trial {} is {}", i + 1, form.trial.loss);
    // A scale of the loss that is too large makes gradients infinite, and is found that way.
    if (const std::optional<double> norm = form.trial.gradientNorm;
        form.problem.empty() && norm && !std::isfinite(*norm) && !scalesLoss(file.plan()))
      form.problem = fmt::format("the gradient norm of trial {} is {}", i + 1, *norm);
  }
  const Plan &plan = file.plan();
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    if (plan.programs()->Get(i)->safe() >= 0) {
      const Program &own = *plan.programs()->Get(programInForm(plan, i, which).value_or(i));
      form.bytes = std::max(form.bytes, own.transient_bytes());
    }
  form.bytes +=
      plan.segments()->Get(static_cast<uint32_t>(planfile::SegmentKind::persistent))->size();
  return form;
}

/// The same where what fails is the form's problem.
SafetyGuard::Form SafetyGuard::tryOrFail(ProgramForm form, int steps) {
  try {
    return tryForm(form, steps);
  } catch (const RunEnded &) {
    throw;
  } catch (const support::Error &error) {
    if (ranks) // the others would wait
      throw;
    Form failed;
    failed.problem = error.what();
    return failed;
  }
}

/// Tries the form that is to run and the safe one; returns what is wrong with the first.
std::string SafetyGuard::pretest() {
  safe = tryForm(ProgramForm::safe, kSafeSteps);
  fast =
      tryOrFail(formToRun(monitor.state(), monitor.state().configuration, file.plan()), kFastSteps);
  return fast.problem.empty() ? difference(fast, safe, kInSafeForm) : fast.problem;
}

/// Tries the plan without each optimization alone, where it has such forms; `problem`: of the plan.
/// Returns the one to be given up, or an empty name: of those that fail the one without which steps
/// are fastest.
std::string SafetyGuard::pretestAlone(const std::string &problem) {
  const Plan &plan = file.plan();
  if (plan.optimizations())
    for (const planfile::Optimization *one : *plan.optimizations()) {
      const std::optional<ProgramForm> form = formWithout(plan, one->name()->string_view());
      if (!form)
        continue;
      const Clock::time_point begin = Clock::now();
      Alone tried;
      tried.name = one->name()->str();
      tried.without = tryOrFail(*form, kAloneSteps);
      judge(tried, problem);
      tried.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      alone.push_back(std::move(tried));
    }
  const Alone *given = nullptr;
  for (const Alone &one : alone)
    if (one.status == "failed" && (!given || one.without.seconds < given->without.seconds))
      given = &one;
  return given ? given->name : "";
}

/// An optimization fails where the plan without it is as the safe form, and the plan is not; or
/// where the two differ by more than they may. Of a plan without it that is not as the safe form
/// nothing follows for it.
void SafetyGuard::judge(Alone &one, const std::string &problem) const {
  const std::string own = one.without.problem.empty() ? difference(one.without, safe, kInSafeForm)
                                                      : one.without.problem;
  const std::string apart =
      problem.empty() && own.empty() ? difference(fast, one.without, "without it") : "";
  one.status = "passed";
  if (!own.empty()) {
    one.status = problem.empty() ? "error" : "skipped";
    one.message = "without it: " + own;
  } else if (!problem.empty() || !apart.empty()) {
    one.status = "failed";
    one.message = problem.empty() ? apart : problem;
  } else if (fast.seconds > kSlower * one.without.seconds) {
    one.message = fmt::format("a step takes {:.2f} times as long as without it",
                              fast.seconds / one.without.seconds);
  }
}

std::string SafetyGuard::resultText(const Alone &one) const {
  return one.message.empty() ? one.status : one.status + ": " + one.message;
}

void SafetyGuard::tellPretest(const std::string &problem) const {
  const auto formText = [](const Form &form) {
    const std::string norm =
        form.trial.gradientNorm ? fmt::format("{:g}", *form.trial.gradientNorm) : "none";
    return fmt::format("loss {:.6f}, gradient norm {}, {:.1f} ms, {}", form.trial.loss, norm,
                       form.seconds * 1e3, report::bytesText(form.bytes));
  };
  std::string text = fmt::format("pretest {} after {} steps\n  fast: {}\n  safe: {}",
                                 problem.empty() ? "passed" : "failed", session.steps(),
                                 formText(fast), formText(safe));
  for (const Alone &one : alone)
    text += fmt::format("\n  without {}: {}; {}", one.name, formText(one.without), resultText(one));
  say(text);
}

void SafetyGuard::record(const std::string &problem, double milliseconds) {
  tellPretest(problem);
  if (!pretests.isOpen())
    return;
  const Plan &plan = file.plan();
  const int capability = capabilityOf(plan);
  const auto formJson = [](const Form &form) {
    return ordered_json{{"loss", form.trial.loss},
                        {"grad_norm", form.trial.gradientNorm
                                          ? ordered_json(*form.trial.gradientNorm)
                                          : ordered_json()},
                        {"step_ms", form.seconds * 1e3},
                        {"memory_bytes", form.bytes}};
  };
  const std::string version = executor.driverVersion();
  std::string model = plan.header()->model()->str();
  if (plan.header()->preset() && plan.header()->preset()->size() > 0)
    model += " " + plan.header()->preset()->str();
  ordered_json results = ordered_json::array();
  std::map<std::string, size_t> counts; // by status
  const auto add = [&](const std::string &name, const std::string &status, double time,
                       const std::string &message) {
    ++counts[status];
    results.push_back({{"optimization", name},
                       {"status", status},
                       {"time_ms", time},
                       {"error_message", message}});
  };
  if (plan.optimizations())
    for (const planfile::Optimization *one : *plan.optimizations()) {
      const std::string name = one->name()->str();
      const auto tried = std::ranges::find(alone, name, &Alone::name);
      if (tried != alone.end()) {
        add(name, tried->status, tried->milliseconds, tried->message);
        results.back()["without"] = formJson(tried->without);
      } else if (alone.empty()) { // all of them were tried at once
        add(name, problem.empty() ? "passed" : "failed", milliseconds, problem);
      } else {
        add(name, "skipped", 0, "it was not tried alone");
      }
    }
  ordered_json line{{"timestamp", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                                              fmt::gmtime(std::chrono::system_clock::to_time_t(
                                                  std::chrono::system_clock::now())))},
                    {"step", session.steps()},
                    {"model_size", model},
                    {"model_params", countParameters(plan).all},
                    {"checkpoint_path",
                     setup.checkpoint ? ordered_json(setup.checkpoint->string()) : ordered_json()},
                    {"config_hash", monitor.state().configuration},
                    {"gpu_name", executor.deviceName()},
                    {"gpu_arch", architectureOf(capability)},
                    {"compute_capability", {capability / 10, capability % 10}},
                    {"cuda_version", version},
                    {"runtime_version", fmt::format("plan format {}", kPlanVersion)},
                    {"error_message", problem},
                    {"results", results},
                    {"kernel_config", {{"target", plan.target()->name()->str()}}},
                    {"fast", formJson(fast)},
                    {"safe", formJson(safe)},
                    {"passed_count", counts["passed"]},
                    {"failed_count", counts["failed"] + counts["error"]},
                    {"skipped_count", counts["skipped"]},
                    {"total_time_ms", milliseconds}};
  pretests.write(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void SafetyGuard::watch(const StepReport &report) {
  if (!monitor.watches())
    return;
  const SafetyObservation own{.step = report.step,
                              .loss = report.loss,
                              .gradientNorm = report.gradientNorm,
                              .tokensPerSecond = double(report.tokens) / report.seconds,
                              .hasLabels = report.hasLabels};
  const SafetyObservation seen = agreed(ranks, own);
  for (const SafetyAnomaly &anomaly : monitor.observe(seen)) {
    log.anomaly(anomaly);
    say(fmt::format("step {}  {}: {:g}, where {:g} is the limit", anomaly.step, anomaly.type,
                    anomaly.value, anomaly.threshold));
  }
  session.noteSafety(monitor.state());
  if (monitor.watches())
    return;
  log.safety(session.steps(), monitor.state(), file.plan());
  if (monitor.isSafe()) {
    session.useForm(ProgramForm::safe);
    say(fmt::format("step {}  the safe form goes on: {}", report.step, monitor.state().reason));
  }
}

void SafetyGuard::finish() const {
  log.safety(session.steps(), monitor.state(), file.plan());
  tell();
}

/// Where all optimisations stand.
void SafetyGuard::tell() const {
  const SafetyState &state = monitor.state();
  report::SafetyStanding standing{.items = {},
                                  .status = std::string(statusName(state.status)),
                                  .detail = state.reason,
                                  .anomalies = state.anomalies};
  if (!monitor.isSafe())
    standing.detail =
        fmt::format("for {} steps", session.steps() - state.enabledAt.value_or(session.steps()));
  if (file.plan().optimizations())
    for (const planfile::Optimization *one : *file.plan().optimizations())
      standing.items.push_back({one->name()->str(), one->fast()->str(), one->safe()->str()});
  for (report::OptimizationItem &item : standing.items)
    if (!monitor.isSafe() && item.name == state.without) {
      item.status = statusName(SafetyStatus::failed);
      item.detail = state.withoutReason;
    }
  say(report::safetyTable(standing).text() + "  " + report::anomaliesText(state.anomalies));
}

} // namespace hydra::runtime
