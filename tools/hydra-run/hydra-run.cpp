// hydra-run: does what a plan is for.
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/run/Bench.h"
#include "runtime/run/ProfileTable.h"
#include "runtime/run/Session.h"
#include "runtime/run/StartupTable.h"
#include "runtime/support/Error.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <numeric>

using namespace hydra;

namespace {

struct Options {
  std::string plan;
  std::optional<std::string> inputs, outputs;
  int64_t steps = 0; // 0: not given
  uint64_t seed = 0;
  unsigned threads = 0;
  int bench = 0; // 0: not asked for
  std::string profile;
  bool dryRun = false;
  std::optional<double> lr, clip;
  std::string device = "cpu";

  bool repeats() const { return bench > 0 || !profile.empty(); }
};

constexpr int defaultRepeats = 20;
constexpr int warmUpSteps = 3;

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    support::fail("cannot write to standard output: {}", support::errnoText(errno));
}

void checkOptions(const Options &options, const runtime::PlanFile &file) {
  const std::string_view mode = file.plan().header()->mode()->string_view();
  if (mode != "train" && options.steps > 0 && !options.repeats())
    support::fail("--steps: {} is a {} plan, which makes one call; only train plans make steps",
                  options.plan, mode);
  if (mode == "train" && options.steps == 0 && !options.repeats() && !options.dryRun)
    support::fail("{} is a train plan: say how far to train it with --steps N, or use --bench",
                  options.plan);
}

void train(const Options &options, runtime::Session &session, runtime::SessionOutputs *outputs) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> losses;
  for (int64_t step = 1; step <= options.steps; ++step) {
    const Clock::time_point begin = Clock::now();
    losses.push_back(session.advance());
    const std::chrono::duration<double, std::milli> time = Clock::now() - begin;
    print(fmt::format("step {:>{}}  loss {:.6f}  {:.1f} ms\n", step,
                      std::to_string(options.steps).size(), losses.back(), time.count()));
  }
  losses.push_back(session.evaluate());
  print(fmt::format("after {} steps: loss {:.6f}\n", options.steps, losses.back()));
  if (outputs)
    outputs->write(losses);
}

void callOnce(runtime::Session &session, runtime::SessionOutputs *outputs) {
  session.advance();
  for (const auto &[name, value] : session.scalarOutputs())
    print(fmt::format("{} {:.8g}\n", name, value));
  if (outputs)
    outputs->write({});
}

void repeat(const Options &options, const runtime::PlanFile &file, runtime::Executor &executor,
            runtime::Session &session) {
  const int count = options.bench > 0   ? options.bench
                    : options.steps > 0 ? static_cast<int>(options.steps)
                                        : defaultRepeats;
  runtime::timeSteps(session, warmUpSteps, 0);
  if (options.bench > 0)
    print(runtime::benchText(file, session, executor, runtime::timeSteps(session, 0, count)));
  if (options.profile.empty())
    return;
  executor.setProfiling(true);
  const std::vector<double> seconds = runtime::timeSteps(session, 0, count);
  print(runtime::profileText(file, executor.stepTimes(), count,
                             std::accumulate(seconds.begin(), seconds.end(), 0.0)));
}

void run(const Options &options) {
  const auto file = runtime::PlanFile::read(options.plan);
  checkOptions(options, file);
  runtime::CpuExecutor executor(file, {.threads = options.threads, .memoryAvailable = 0});

  runtime::SessionOptions sessionOptions;
  sessionOptions.inputs = options.inputs;
  sessionOptions.seed = options.seed;
  if (options.lr)
    sessionOptions.scalars["lr"] = *options.lr;
  if (options.clip)
    sessionOptions.scalars["clip"] = *options.clip;

  const std::string table =
      runtime::startupTable(file, executor, {{"data", options.inputs.value_or("synthetic")}});
  if (options.dryRun && !options.inputs)
    return print(table);
  runtime::Session session(file, executor, sessionOptions);
  if (options.dryRun)
    return print(table);
  std::optional<runtime::SessionOutputs> outputs;
  if (options.outputs)
    outputs.emplace(*options.outputs, session, options.steps + 1);
  print(table + "\n");
  if (const std::string note = session.note(); !note.empty())
    std::fprintf(stderr, "hydra-run: %s\n", note.c_str());
  if (options.repeats())
    repeat(options, file, executor, session);
  else if (session.trains())
    train(options, session, outputs ? &*outputs : nullptr);
  else
    callOnce(session, outputs ? &*outputs : nullptr);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Runs a plan: trains, or calls its program once on given values.");
  app.add_option("plan", options.plan, "the plan, as hydrac writes it")->required();
  app.add_option("--inputs", options.inputs,
                 "safetensors with the program's inputs, and with parameters and state (all of "
                 "them, or none: then they are initialised)");
  auto *outputs = app.add_option("--outputs", options.outputs,
                                 "safetensors to write: the program's outputs; for a train plan "
                                 "losses [N+1], parameters and state");
  auto *steps = app.add_option("--steps", options.steps, "train plans: number of updates")
                    ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--seed", options.seed, "of initial parameters and synthetic tokens")
      ->capture_default_str();
  app.add_option("--lr", options.lr, "constant learning rate in place of the plan's schedule")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--clip", options.clip, "constant bound of the gradient norm")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "default: one for each usable processor")
      ->check(CLI::Range(1u, runtime::ThreadPool::maxThreads));
  app.add_option("--device", options.device, "where to run")
      ->check(CLI::IsMember({"cpu"}))
      ->capture_default_str();
  app.add_flag(fmt::format("--bench{{{}}}", defaultRepeats), options.bench,
               fmt::format("time N steps or calls (default {}) after {} that warm up",
                           defaultRepeats, warmUpSteps))
      ->check(CLI::Range(1, 1 << 30))
      ->excludes(steps)
      ->excludes(outputs);
  app.add_option("--profile", options.profile, "where the time goes, as a table")
      ->check(CLI::IsMember({"table"}))
      ->excludes(outputs);
  app.add_flag("--dry-run", options.dryRun, "load and check everything, run nothing");
  app.footer("Examples:\n"
             "  hydra-run grad.fb --inputs in.safetensors --outputs out.safetensors\n"
             "  hydra-run train.fb --inputs batch.safetensors --steps 20 --lr 1e-3\n"
             "  hydra-run train.fb --bench --profile=table");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "hydra-run: %s\n", error.what());
    return 1;
  }
  try {
    run(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-run: %s\n", error.what());
    return 1;
  }
  return 0;
}
