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
#include <utility>

using hydra::planfile::Plan;
using hydra::planfile::Program;
using nlohmann::ordered_json;

namespace hydra::runtime {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFastSteps = 10, kSafeSteps = 2; // that are tried; the first of both warms up
constexpr double kLossTolerance = 1e-2, kNormTolerance = 5e-2; // relative: models.md, section 6
constexpr int kDigits = 12;                                    // of a configuration

/// What plan and device are called, such as `NVIDIA H200 (sm_90)`.
std::string deviceName(const Executor &executor) {
  for (const auto &[name, value] : executor.describe())
    if (name == "device") { // `cuda:0, ...`, where the number is of no matter
      const size_t comma = value.find(", ");
      return comma == value.npos ? value : value.substr(comma + 2);
    }
  return "";
}

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
  const auto hash = file.bytes().subspan(24, 8); // that of the file, in its prologue
  const std::string device = deviceName(executor);
  const uint64_t both =
      XXH3_64bits_withSeed(device.data(), device.size(), XXH3_64bits(hash.data(), hash.size()));
  return fmt::format("{:016x}", both).substr(0, kDigits);
}

bool hasFallenBack(const std::optional<SafetyState> &state, const std::string &configuration) {
  return state && state->configuration == configuration &&
         (state->status == SafetyStatus::failed || state->status == SafetyStatus::fallback);
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
    pretests = LineFile(*setup.pretests, "the record of pretests", /*append=*/session.steps() > 0);
}

void SafetyGuard::begin() {
  if (setup.safeForm) {
    monitor.disable(session.steps(), "--safe");
  } else if (!monitor.isSafe()) {
    const Clock::time_point begin = Clock::now();
    const std::string problem = agreed(ranks, pretest());
    monitor.pretested(session.steps(), problem);
    record(problem, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  session.useSafeForm(monitor.isSafe());
  session.noteSafety(monitor.state());
  log.safety(session.steps(), monitor.state(), file.plan());
  tell();
}

SafetyGuard::Form SafetyGuard::tryForm(bool safeForm, int steps) {
  session.useSafeForm(safeForm);
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
  for (const Program *program : *plan.programs())
    if (program->safe() >= 0) {
      const Program &own =
          safeForm ? *plan.programs()->Get(static_cast<uint32_t>(program->safe())) : *program;
      form.bytes = std::max(form.bytes, own.transient_bytes());
    }
  form.bytes +=
      plan.segments()->Get(static_cast<uint32_t>(planfile::SegmentKind::persistent))->size();
  return form;
}

/// Why the form that is fast is not as the safe one; empty where it is.
std::string SafetyGuard::difference() const {
  if (!isClose(fast.trial.loss, safe.trial.loss, kLossTolerance))
    return fmt::format("the loss is {:g}, and {:g} in the safe form; they may differ by {:g} of it",
                       fast.trial.loss, safe.trial.loss, kLossTolerance);
  const std::optional<double> norm = fast.trial.gradientNorm, other = safe.trial.gradientNorm;
  if (norm && other && std::isfinite(*norm) && !isClose(*norm, *other, kNormTolerance))
    return fmt::format(
        "the gradient norm is {:g}, and {:g} in the safe form; they may differ by {:g} of it",
        *norm, *other, kNormTolerance);
  return "";
}

/// Tries both forms; returns what is wrong with the fast one.
std::string SafetyGuard::pretest() {
  safe = tryForm(true, kSafeSteps);
  try {
    fast = tryForm(false, kFastSteps);
  } catch (const RunEnded &) {
    throw;
  } catch (const support::Error &error) {
    if (ranks) // the others would wait
      throw;
    fast.problem = error.what();
  }
  return fast.problem.empty() ? difference() : fast.problem;
}

void SafetyGuard::record(const std::string &problem, double milliseconds) {
  const Plan &plan = file.plan();
  const auto norm = [](const Form &form) {
    return form.trial.gradientNorm ? fmt::format("{:g}", *form.trial.gradientNorm) : "none";
  };
  const auto formText = [&](const Form &form) {
    return fmt::format("loss {:.6f}, gradient norm {}, {:.1f} ms, {}", form.trial.loss, norm(form),
                       form.seconds * 1e3, report::bytesText(form.bytes));
  };
  say(fmt::format("pretest {} after {} steps\n  fast: {}\n  safe: {}",
                  problem.empty() ? "passed" : "failed", session.steps(), formText(fast),
                  formText(safe)));
  if (!pretests.isOpen())
    return;
  const int capability = capabilityOf(plan);
  const auto formJson = [](const Form &form) {
    return ordered_json{{"loss", form.trial.loss},
                        {"grad_norm", form.trial.gradientNorm
                                          ? ordered_json(*form.trial.gradientNorm)
                                          : ordered_json()},
                        {"step_ms", form.seconds * 1e3},
                        {"memory_bytes", form.bytes}};
  };
  std::string version;
  for (const auto &[name, value] : executor.describe())
    if (name == "driver")
      version = value;
  std::string model = plan.header()->model()->str();
  if (plan.header()->preset() && plan.header()->preset()->size() > 0)
    model += " " + plan.header()->preset()->str();
  ordered_json results = ordered_json::array();
  if (plan.optimizations())
    for (const planfile::Optimization *one : *plan.optimizations())
      results.push_back({{"optimization", one->name()->str()},
                         {"status", problem.empty() ? "passed" : "failed"},
                         {"time_ms", milliseconds},
                         {"error_message", problem}});
  const size_t count = results.size();
  ordered_json line{{"timestamp", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                                              fmt::gmtime(std::chrono::system_clock::to_time_t(
                                                  std::chrono::system_clock::now())))},
                    {"step", session.steps()},
                    {"model_size", model},
                    {"model_params", countParameters(plan).all},
                    {"checkpoint_path",
                     setup.checkpoint ? ordered_json(setup.checkpoint->string()) : ordered_json()},
                    {"config_hash", monitor.state().configuration},
                    {"gpu_name", deviceName(executor)},
                    {"gpu_arch", architectureOf(capability)},
                    {"compute_capability", {capability / 10, capability % 10}},
                    {"cuda_version", version},
                    {"runtime_version", fmt::format("plan format {}", kPlanVersion)},
                    {"results", results},
                    {"kernel_config", {{"target", plan.target()->name()->str()}}},
                    {"fast", formJson(fast)},
                    {"safe", formJson(safe)},
                    {"passed_count", problem.empty() ? count : 0},
                    {"failed_count", problem.empty() ? 0 : count},
                    {"skipped_count", 0},
                    {"total_time_ms", milliseconds}};
  pretests.write(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void SafetyGuard::watch(const StepReport &report) {
  if (!monitor.watches())
    return;
  const SafetyObservation own{.step = report.step,
                              .loss = report.loss,
                              .gradientNorm = report.gradientNorm,
                              .tokensPerSecond = double(report.tokens) / report.seconds};
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
    session.useSafeForm(true);
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
  say(report::safetyTable(standing).text() + "  " + report::anomaliesText(state.anomalies));
}

} // namespace hydra::runtime
