// hydra-run: does what a plan is for.
#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Schedule.h"
#include "runtime/ranks/Channel.h"
#include "runtime/ranks/HeldSignal.h"
#include "runtime/ranks/Launcher.h"
#include "runtime/ranks/Plugin.h"
#include "runtime/ranks/World.h"
#include "runtime/run/CheckpointNames.h"
#include "runtime/run/Session.h"
#include "runtime/run/StandardOutput.h"
#include "runtime/run/StartupTable.h"
#include "runtime/run/Variables.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StandardStreams.h"
#include "tools/hydra-run/Agreement.h"
#include "tools/hydra-run/Calibrate.h"
#include "tools/hydra-run/Chat.h"
#include "tools/hydra-run/Devices.h"
#include "tools/hydra-run/Generation.h"
#include "tools/hydra-run/GivenFiles.h"
#include "tools/hydra-run/Options.h"
#include "tools/hydra-run/RunDirectory.h"
#include "tools/hydra-run/Texts.h"
#include "tools/hydra-run/Work.h"

#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>

using namespace hydra;
using runtime::print;
using support::fail;
namespace fs = std::filesystem;

namespace {

/// That of the file that --tokenizer names; null if it says what tokens are.
std::unique_ptr<text::Tokenizer> readTokenizer(const RunOptions &options) {
  if (options.tokenizer.empty() || runtime::isTokenKind(options.tokenizer))
    return nullptr;
  return text::readTokenizer(options.tokenizer);
}

std::string dataText(const RunOptions &options, const runtime::TextSource *text) {
  return text ? text->description()
         : options.inputs
             ? *options.inputs
             : runtime::randomTokensText(options.ids.value_or(runtime::IdDistribution::uniform));
}

std::vector<runtime::NamedAxis> meshOf(const runtime::PlanFile &file) {
  std::vector<runtime::NamedAxis> mesh;
  for (const planfile::MeshAxis *axis : *file.plan().mesh())
    mesh.push_back({axis->name()->str(), axis->size()});
  return mesh;
}

/// What the flags say about the scalars of the plan. Throws Error.
std::map<std::string, runtime::ScheduleChange> scheduleChanges(const RunOptions &options) {
  auto changes = options.schedules;
  for (const auto &[name, schedule] : runtime::parseSchedules(options.scalars))
    changes[name].whole = schedule;
  return changes;
}

/// In which form is computed what is not training: that of the checkpoint, as far as plan and
/// device are those that it was made with.
runtime::ProgramForm formToGoOn(const RunOptions &options, const runtime::PlanFile &file,
                                const runtime::Executor &executor, const runtime::Session &session,
                                runtime::Channel *channel) {
  const runtime::ProgramForm own =
      options.safe ? runtime::ProgramForm::safe
                   : runtime::formToRun(session.safety(),
                                        runtime::safetyConfiguration(file, executor), file.plan());
  if (!channel) // on several ranks rank 0 decides
    return own;
  runtime::ProgramForm first = own;
  const std::vector<std::byte> answer = channel->broadcast(std::as_bytes(std::span(&own, 1)));
  std::memcpy(&first, answer.data(), std::min(answer.size(), sizeof(first)));
  return first;
}

/// One line for each number of a step that goes on in another way than the checkpoint was made
/// with, or that only one of plan and checkpoint has; of those that are always 0 nothing follows.
void noteOtherSchedules(const runtime::TrainingState &saved, const runtime::Session &session) {
  const std::string zero = runtime::scheduleText({});
  std::set<std::string> present;
  for (const auto &[name, now] : session.schedules().describe()) {
    present.insert(name);
    const auto before = saved.schedules.find(name);
    if (before != saved.schedules.end() && before->second != now)
      std::fprintf(stderr, "hydra-run: %s is %s now; the checkpoint was made with %s\n",
                   name.c_str(), now.c_str(), before->second.c_str());
    else if (before == saved.schedules.end() && now != zero)
      std::fprintf(stderr, "hydra-run: %s is %s now; the checkpoint was made without it\n",
                   name.c_str(), now.c_str());
  }
  for (const auto &[name, before] : saved.schedules)
    if (!present.contains(name) && before != zero)
      std::fprintf(stderr, "hydra-run: the plan has no %s; the checkpoint was made with %s\n",
                   support::shown(name).c_str(), support::shown(before).c_str());
}

/// One line for each number of which the plan says something else than the one before it, which
/// does not count.
void noteSchedulesOfPlan(const runtime::PlanFile &file, const runtime::TrainingState &saved) {
  for (const planfile::Scalar *scalar : *file.plan().scalars()) {
    const std::string name = scalar->name()->str();
    const std::string inPlan = runtime::scheduleText(runtime::unpacked(*scalar->schedule()));
    if (!saved.scalars || !saved.scalars->scalars.contains(name) ||
        saved.scalars->scalars.at(name).plan == inPlan)
      continue;
    std::fprintf(stderr,
                 "hydra-run: %s goes on as in the checkpoint; what the plan says, %s, is for runs "
                 "that begin\n",
                 name.c_str(), inPlan.c_str());
  }
}

bool onlyGenerates(const RunOptions &options) {
  return options.writesText() && options.steps == 0 && !options.repeats();
}

/// `texts`, `checkpoint` and `channel` outlive the session.
runtime::SessionOptions
sessionOptions(const RunOptions &options,
               const std::map<std::string, runtime::ScheduleChange> &changes, const Texts &texts,
               const runtime::Checkpoint *checkpoint, runtime::Channel *channel) {
  const GivenFiles files = givenFiles(options, checkpoint);
  return {.inputs = options.inputs,
          .weights = files.weights,
          .adapter = checkpoint ? std::nullopt : options.adapter,
          .averages = files.averages,
          // Of a finished run only the sampling has a seed to choose.
          .seed = checkpoint && onlyGenerates(options) ? std::nullopt : options.seed,
          .ids = options.ids.value_or(runtime::IdDistribution::uniform),
          .scalars = changes,
          .policies = options.policies,
          .steps = options.steps,
          .text = texts.training.get(),
          .evaluationSets = texts.evaluationSets(),
          .maxBadSteps = options.maxBadSteps.value_or(runtime::kMostBadSteps),
          .resume = checkpoint,
          .ranks = channel,
          .runs = !options.dryRun};
}

/// Rows of the start-up table on how a session trains and where it begins.
void describe(const runtime::Session &session, const runtime::Checkpoint *checkpoint,
              std::vector<std::pair<std::string, std::string>> &rows) {
  for (const auto &row : session.schedules().describe())
    rows.push_back(row);
  for (const auto &[flag, setting] : session.policyFlags())
    rows.emplace_back(flag, setting);
  if (const int64_t saved = session.stepsSaved(); saved > 0)
    rows.emplace_back("phases end", fmt::format("{} step{} earlier than in the plan", saved,
                                                saved == 1 ? "" : "s"));
  if (checkpoint)
    rows.emplace_back("resumes",
                      fmt::format("{} at step {}{}", checkpoint->path().string(),
                                  checkpoint->state().step,
                                  checkpoint->leavesAverages() ? ", without its averages" : ""));
}

/// Throws Error where a file that is written at the end could not be, before hours of training.
void tryOutputs(const RunOptions &options) {
  std::vector<std::string> paths = {options.exportTo.value_or(""), options.benchJson.value_or(""),
                                    options.outputs.value_or("")};
  if (options.profile.ends_with(".json"))
    paths.push_back(options.profile);
  for (const std::string &path : paths)
    if (!path.empty())
      const support::AtomicFile trial(path); // leaves nothing
}

/// Throws Error where a folder could be neither made nor written into. Makes nothing.
void tryFolder(const fs::path &folder) {
  std::error_code code;
  fs::path place = fs::absolute(folder, code);
  while (!fs::exists(place, code) && place.has_relative_path())
    place = place.parent_path();
  if (::access((place / "").c_str(), W_OK | X_OK) != 0) // the slash: no file
    fail("cannot write into the folder {}: {}", support::shownPath(folder),
         support::errnoText(errno));
}

/// Throws Error where lines could not be added to a file, be it there or not. Makes nothing.
void tryLines(const fs::path &file, const char *kind) {
  std::error_code code;
  const bool there = fs::exists(file, code);
  if (fs::is_directory(file, code))
    fail("cannot write {} {}: {}", kind, support::shownPath(file), support::errnoText(EISDIR));
  const fs::path place = there ? file : fs::absolute(file, code).parent_path() / "";
  if (::access(place.c_str(), there ? W_OK : W_OK | X_OK) != 0)
    fail("cannot write {} {}: {}", kind, support::shownPath(file), support::errnoText(errno));
}

/// For a call that only checks: throws Error where the run, which would begin at `step`, could not
/// begin to write.
void tryRunOutputs(const RunOptions &options, int64_t step) {
  if (options.run) {
    RunDirectory(*options.run).check(options.resume.has_value());
    tryFolder(*options.run);
  } else {
    if (options.tensorboard)
      tryFolder(*options.tensorboard);
    if (options.log)
      tryLines(*options.log, "the log");
    if (options.csv)
      tryLines(*options.csv, "the table");
  }
  if (options.save) {
    tryFolder(*options.save);
    runtime::checkNoLaterCheckpoint(*options.save, step);
  }
}

/// As one of several ranks, with the channel to the others, or alone.
int run(const RunOptions &options, runtime::Channel *channel, uint32_t localRank) {
  const bool leads = !channel || channel->leads();
  const auto changes = scheduleChanges(options);
  const auto file = runtime::PlanFile::read(options.plan);
  const uint64_t ranks = channel ? channel->size() : 1;
  checkRanks(file, ranks);
  if (channel) {
    channel->setLimit(rankLimit(options, &file));
    agreeOnFlags(options, file, *channel);
    agreeOnHosts(file, *channel);
  }
  if (options.tune) {
    if (channel)
      fail("--tune: {} is for several ranks; a plan for one rank can be tuned", file.origin());
    tune(options, file);
    return 0;
  }
  const std::vector<std::string> notes = checkOptions(options, file, ranks);
  const auto sayNotes = [&] { // once nothing is wrong
    for (const std::string &note : notes)
      if (leads)
        std::fprintf(stderr, "hydra-run: %s\n", note.c_str());
  };
  if (leads)
    tryOutputs(options);
  const std::optional<RunDirectory> directory = options.run && leads && !options.dryRun
                                                    ? std::optional<RunDirectory>(*options.run)
                                                    : std::nullopt;
  if (directory)
    directory->open(options.resume.has_value());
  const std::optional<runtime::Checkpoint> checkpoint = findCheckpoint(options, file);
  if (channel) // before they read it together
    channel->agree(
        {{"as its first step", std::to_string(checkpoint ? checkpoint->state().step : 0)}});
  const uint64_t seed = options.seed.value_or(checkpoint ? checkpoint->state().seed : 0);
  std::unique_ptr<text::Tokenizer> tokenizer = readTokenizer(options);
  const Texts texts =
      openTexts(options, file, tokenizer.get(), seed, channel ? channel->rank() : 0);
  if (options.benchData > 0) {
    sayNotes();
    print(texts.training->bench(options.benchData));
    return 0;
  }
  if (options.writesText())
    tokenizer = promptTokenizer(options, file, std::move(tokenizer));
  std::optional<text::ChatTemplate> shape;
  if (options.chat)
    shape.emplace(chatTemplate(options, *tokenizer));
  std::unique_ptr<runtime::Communicator> communicator;
  const bool onCpu = file.plan().target()->kind() == planfile::TargetKind::cpu;
  if (channel && onCpu && !options.dryRun)
    communicator = runtime::connectRanks(meshOf(file), *channel);
  const std::unique_ptr<runtime::Executor> loaded =
      makeExecutor(options, file, channel, communicator.get(), localRank);
  runtime::Executor &executor = *loaded;

  std::vector<std::pair<std::string, std::string>> rows = {
      {"data", dataText(options, texts.training.get())}};
  runtime::Session session(
      file, executor,
      sessionOptions(options, changes, texts, checkpoint ? &*checkpoint : nullptr, channel));
  if (channel)
    agreeOnBegin(file, executor, session, seed, *channel);
  if (channel && leads && checkpoint)
    channel->noteCheckpoint({checkpoint->state().step, checkpoint->path()});
  if (checkpoint && leads) {
    noteOtherSchedules(checkpoint->state(), session);
    noteSchedulesOfPlan(file, checkpoint->state());
  }
  describe(session, checkpoint ? &*checkpoint : nullptr, rows);
  const std::string table = runtime::startupTable(file, executor, rows);
  const bool trains = session.trains() && options.steps > 0 && !options.repeats();
  if (trains)
    checkTraining(options, session);
  const bool readsBatches = trains || options.repeats() || options.evalOnly || !session.trains();
  const bool ordersText = texts.training && (trains || options.repeats());
  const bool compared = checkpoint && !onlyGenerates(options); // with the checkpoint's
  if (options.seed && !compared && !options.drawsTokens() && !ordersText &&
      !session.drawsValues(readsBatches && !onlyGenerates(options)))
    fail("--seed is of use only with what is drawn: initial parameters, random tokens, the order "
         "of text that is trained on, dropout, or text with a --temperature above 0");
  if (options.writesText()) // what is wrong with it is said before what comes before it
    checkTexts(options, file, executor, *tokenizer);
  if (options.dryRun) {
    if (leads)
      tryRunOutputs(options, session.steps());
    sayNotes();
    print(table);
    return 0;
  }
  std::optional<runtime::SessionOutputs> outputs;
  if (options.outputs)
    outputs.emplace(*options.outputs, session, options.steps - session.steps() + 1);
  // Else a guard decides.
  if (!trains && session.hasSafeForm())
    session.useForm(formToGoOn(options, file, executor, session, channel));
  const auto sayWhatRuns = [&] {
    sayNotes();
    if (directory)
      directory->write(file, {.options = &options,
                              .step = session.steps(),
                              .ranks = runtime::ranksOf(file.plan()),
                              .schedules = session.schedules().describe(),
                              .facts = executor.describe()});
    if (trains)
      runtime::say(table + "\n");
    else if (!onlyGenerates(options) && !options.printsJson())
      print(table + "\n");
    if (const std::string note = session.note(readsBatches && !onlyGenerates(options));
        leads && !note.empty())
      std::fprintf(stderr, "hydra-run: %s\n", note.c_str());
  };
  if (!trains)
    sayWhatRuns();
  const auto sample = [&](int64_t tokens, const std::function<bool()> &interrupted) {
    RunOptions sampling = options;
    sampling.generate.tokens = tokens;
    sampling.generate.form = session.runningForm();
    return sampleTexts(sampling, file, executor, *tokenizer, seed, interrupted);
  };
  int status = 0;
  if (options.repeats())
    repeat(options, file, executor, session, channel ? channel->rank() : 0);
  else if (options.evalOnly)
    status = evaluateOnly(options, file, session, leads);
  else if (!session.trains())
    callOnce(session, outputs ? &*outputs : nullptr);
  else if (trains)
    status = train(options, file, executor, session, outputs ? &*outputs : nullptr, channel,
                   checkpoint, sample, sayWhatRuns);
  runtime::Ranks *const writers = runtime::writersOf(file.plan(), channel);
  if (status == 0 && options.exportTo && (leads || writers))
    runtime::exportWeights(*options.exportTo, file, executor, writers);
  RunOptions writing = options;
  writing.generate.form = session.runningForm();
  if (status == 0 && !options.prompts.empty()) {
    const std::string notes = generateText(writing, file, executor, *tokenizer, seed);
    if (leads)
      std::fputs(notes.c_str(), stderr);
  }
  if (status == 0 && shape)
    status = chat(writing, file, executor, *tokenizer, *shape, seed);
  return status;
}

/// As one of the ranks of the world.
int runAsRank(const RunOptions &options, const runtime::World &world) {
  const runtime::HeldSignal held;
  runtime::Channel channel(world, rankLimit(options, nullptr));
  try {
    if (!channel.leads())
      runtime::silenceStandardOutput();
    const int status = run(options, &channel, world.localRank);
    channel.finish();
    return status;
  } catch (const std::exception &error) {
    if (const std::string line = channel.end(error); !line.empty())
      std::fprintf(stderr, "hydra-run: %s\n", line.c_str());
    return 1;
  }
}

/// Of several ranks most likely all have the same wrong flags: those that meet at once say it once.
/// Returns the line that this process has to print.
std::string lineOfMistake(const std::exception &mistake) {
  constexpr std::chrono::seconds kMeeting{2};
  runtime::World world = runtime::worldFromEnvironment();
  world.speaks = true; // of a mistake that the others may not have
  if (world.size > 1)
    try {
      const runtime::HeldSignal held;
      runtime::Channel channel(world, kMeeting);
      return channel.end(mistake);
    } catch (const runtime::RunEnded &) {
      return ""; // another rank has said why
    } catch (const support::Error &) {
      // They did not meet.
    }
  return support::problemOf(mistake);
}

/// By --ranks or --gpus; 0: by neither.
uint32_t processesAskedFor(const RunOptions &options) {
  return std::max(options.ranks, options.gpus);
}
const char *processesFlag(const RunOptions &options) { return options.gpus > 0 ? "gpus" : "ranks"; }

/// Throws Error where there are, or are asked for, other processes than the flags go with.
void checkProcesses(const RunOptions &options) {
  const runtime::World world = runtime::worldFromEnvironment();
  const uint32_t ranks = processesAskedFor(options), most = std::max(world.size, ranks);
  if (options.chat && most > 1)
    fail("--chat is for one process, which reads the standard input; there are {}", most);
  if (options.calibrate && most > 1)
    fail("--calibrate is for one process; there are {}", most);
  if (world.size > 1 && ranks > 0 && ranks != world.size)
    fail("--{0}={1}, but {2} in the environment: the processes are there already; leave --{0} away",
         processesFlag(options), ranks, world.origin);
}

/// As parseOptions, but prints what is wrong.
std::optional<int> readOptions(int argc, char **argv, RunOptions &options) {
  try {
    const std::optional<int> status = parseOptions(argc, argv, options);
    if (!status)
      checkProcesses(options);
    return status;
  } catch (const std::exception &mistake) {
    if (const std::string line = lineOfMistake(mistake); !line.empty())
      std::fprintf(stderr, "hydra-run: %s\n", line.c_str());
    return 1;
  }
}

/// One GPU is asked for.
void checkGpus(const RunOptions &options) {
  const auto file = runtime::PlanFile::read(options.plan);
  if (file.plan().target()->kind() != planfile::TargetKind::cuda)
    fail("--gpus: {} is a plan for {}", file.origin(),
         support::shown(file.plan().target()->name()->string_view()));
}

/// Alone, as a rank that somebody has started, or as the parent of ranks on this machine.
int start(const RunOptions &options, char **arguments) {
  const runtime::World world = runtime::worldFromEnvironment();
  const uint32_t ranks = processesAskedFor(options);
  if (options.calibrate) {
    calibrate(options);
    return 0;
  }
  if (world.size > 1)
    return runAsRank(options, world);
  if (ranks <= 1) {
    if (options.gpus > 0)
      checkGpus(options);
    return run(options, nullptr, 0);
  }
  {
    const auto file = runtime::PlanFile::read(options.plan);
    checkRanks(file, ranks);
    const bool gpus = file.plan().target()->kind() == planfile::TargetKind::cuda;
    if (gpus != (options.gpus > 0))
      fail("--{}: {} is a plan for {}; run it with --{}={}", processesFlag(options), file.origin(),
           support::shown(file.plan().target()->name()->string_view()), gpus ? "gpus" : "ranks",
           ranks);
  }
  return runtime::launchRanks(ranks, arguments, [&]() -> std::string {
    if (!options.save)
      return "";
    const fs::path newest = runtime::newestCheckpoint(*options.save, 0);
    return newest.empty() ? "; there is no checkpoint" : "; resume from " + newest.string();
  });
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  support::ignoreFileSizeSignal();
  std::signal(SIGPIPE, SIG_IGN); // a reader that has gone is then an error of writing
  try {
    RunOptions options;
    if (const std::optional<int> status = readOptions(argc, argv, options))
      return *status;
    return start(options, argv);
  } catch (const runtime::RunEnded &) {
    return 1; // another rank has said why
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-run: %s\n", support::problemOf(error));
    return 1;
  }
}
