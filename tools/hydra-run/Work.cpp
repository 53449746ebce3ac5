// Training, calls and measurements, by the flags of hydra-run.
#include "tools/hydra-run/Work.h"
#include "runtime/ranks/World.h"
#include "runtime/run/Bench.h"
#include "runtime/run/ProfileTable.h"
#include "runtime/run/StandardOutput.h"
#include "runtime/run/StepProfiler.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/GitRevision.h"
#include "tools/hydra-run/RunDirectory.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <string>

using namespace hydra;
using runtime::print;
using support::fail;

namespace {

/// Where pretests are recorded: in the directory of a run, or beside a log.
std::optional<std::filesystem::path> pretestsFile(const RunOptions &options) {
  if (options.run)
    return std::filesystem::path(*options.run) / RunDirectory::kPretests;
  if (options.log)
    return *options.log + "." + RunDirectory::kPretests;
  return std::nullopt;
}

void writeText(const std::string &path, const std::string &text) {
  support::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

} // namespace

void hydra::checkTraining(const RunOptions &options, const runtime::Session &session) {
  runtime::checkSteps(session, options.steps);
  const runtime::PolicyFlags policies = session.policyFlags();
  if (const auto cooldown = policies.find("cooldown");
      cooldown != policies.end() && cooldown->second == "eval" &&
      (options.evalEvery == 0 || !session.hasHeldOut()))
    fail("--cooldown=eval needs --eval-every, and --data or --mix, of which a part is held out");
  if (options.profileSteps.empty())
    return;
  const auto [first, last] = parseStepRange(options.profileSteps);
  if (first <= session.steps() || last > options.steps)
    fail("--profile-steps={}: this run makes the steps {} to {}", options.profileSteps,
         session.steps() + 1, options.steps);
}

int hydra::train(const RunOptions &options, const runtime::PlanFile &file,
                 runtime::Executor &executor, runtime::Session &session,
                 runtime::SessionOutputs *outputs, runtime::Ranks *ranks,
                 const std::optional<runtime::Checkpoint> &checkpoint, const SampleTexts &sample,
                 const std::function<void()> &begin) {
  runtime::TrainOptions how;
  how.ranks = ranks;
  how.begin = begin;
  how.steps = options.steps;
  how.save = options.save;
  how.saveEvery = options.saveEvery;
  how.keep = options.keep;
  how.evalEvery = options.evalEvery;
  how.sampleEvery = options.sampleEvery;
  how.sample = [&](const std::function<bool()> &interrupted) {
    return sample(options.generate.tokens, interrupted);
  };
  how.log = {.jsonLines = options.log, .csv = options.csv, .tensorboard = options.tensorboard};
  how.revision = support::gitRevision(file.plan().header()->model_file()->str());
  constexpr int64_t shortRun = 100, sparse = 10;
  how.logEvery = options.logEvery > 0 ? options.logEvery : options.steps <= shortRun ? 1 : sparse;
  how.log.histogramEvery = how.logEvery;
  // mpirun gives ranks a terminal of their own, whatever its own output goes to.
  how.live = ::isatty(STDOUT_FILENO) != 0 && !runtime::readEnvironment("OMPI_COMM_WORLD_SIZE");
  how.plot = options.plot;
  if (!options.profileSteps.empty()) {
    const auto [first, last] = parseStepRange(options.profileSteps);
    how.profile = {.form = options.profile, .first = first, .last = last};
  }
  how.safety = {.countsThroughput = options.safetyThroughput,
                .safeForm = options.safe,
                .pretests = pretestsFile(options)};
  if (options.safetyWindow > 0)
    how.safety.window = options.safetyWindow;
  if (checkpoint)
    how.safety.checkpoint = checkpoint->path();
  runtime::TrainResult result = runtime::train(file, executor, session, how);
  if (result.signal != 0) {
    if (!ranks || ranks->leads())
      std::fprintf(stderr,
                   "hydra-run: stopped by signal %d after step %lld; --resume auto goes on\n",
                   result.signal, static_cast<long long>(session.steps()));
    constexpr int signalBase = 128; // as shells count
    return signalBase + result.signal;
  }
  result.losses.push_back(result.lastEvaluation);
  if (outputs)
    outputs->write(result.losses);
  return 0;
}

void hydra::callOnce(runtime::Session &session, runtime::SessionOutputs *outputs) {
  session.advance();
  for (const auto &[name, shape, values] : session.smallOutputs()) {
    print(shape.empty() ? fmt::format("{} {:.8g}\n", name, values.front())
                        : fmt::format("{} [{}]\n", name, fmt::join(shape, ", ")));
    const size_t columns = shape.empty() ? 0 : static_cast<size_t>(shape.back());
    for (size_t at = 0; columns > 0 && at < values.size(); at += columns)
      print(fmt::format("  {:.6g}\n", fmt::join(std::span(values).subspan(at, columns), " ")));
  }
  if (outputs)
    outputs->write({});
}

void hydra::repeat(const RunOptions &options, const runtime::PlanFile &file,
                   runtime::Executor &executor, runtime::Session &session, uint32_t rank) {
  const bool leads = rank == 0;
  const int count = options.bench > 0   ? options.bench
                    : options.steps > 0 ? static_cast<int>(options.steps)
                                        : kDefaultRepeats;
  runtime::StepProfiler profiler(executor, session);
  const int warmUpSteps = options.benchWarmup.value_or(kWarmUpSteps);
  const bool asksFirst = !options.profile.empty() && warmUpSteps > 0;
  const bool benches = options.bench > 0 && (options.benchJson || !options.printsJson());
  // Opened here, so that the device is as busy as ever when the measured steps begin.
  const std::unique_ptr<runtime::DeviceWatch> watch = benches && leads ? executor.watch() : nullptr;
  std::vector<double> warmUp;
  if (asksFirst) {
    profiler.begin();
    warmUp = runtime::timeSteps(session, 1);
    profiler.takeFirst();
    profiler.end();
  }
  for (const double time : runtime::timeSteps(session, warmUpSteps - (asksFirst ? 1 : 0)))
    warmUp.push_back(time);
  if (benches) {
    if (watch)
      watch->begin();
    const std::vector<double> seconds = runtime::timeSteps(session, count);
    const auto device = watch ? std::optional(watch->end()) : std::nullopt;
    if (!options.printsJson())
      print(runtime::benchText(file, session, executor, seconds, device));
    if (options.benchJson && leads)
      writeText(*options.benchJson,
                runtime::benchJson(file, session, executor, {warmUp, seconds}, device));
  }
  if (options.profile.empty())
    return;
  profiler.begin();
  runtime::timeSteps(session, count, [&](double seconds) { profiler.add(seconds); });
  print(runtime::profileReport(options.profile, file, executor, profiler, rank));
}
