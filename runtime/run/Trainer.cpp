// The loop over steps, and what happens between them.
#include "runtime/run/Trainer.h"

#include "runtime/plan/Mesh.h"
#include "runtime/report/LossPlot.h"
#include "runtime/run/CheckpointNames.h"
#include "runtime/run/ProfileTable.h"
#include "runtime/run/Progress.h"
#include "runtime/run/RunLog.h"
#include "runtime/run/StepProfiler.h"
#include "runtime/support/Error.h"
#include "runtime/support/NormSpike.h"
#include "runtime/support/StopSignal.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

using namespace hydra::runtime;
using hydra::support::fail;
using hydra::support::StopSignal;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Trainer {
public:
  Trainer(const PlanFile &file, Executor &executor, Session &session, const TrainOptions &options)
      : file(file), executor(executor), session(session), options(options),
        writers(writersOf(file.plan(), options.ranks)),
        progress({.firstStep = session.steps(),
                  .lastStep = options.steps,
                  .memoryBytes = executor.arenaBytes(),
                  .every = options.logEvery,
                  .live = options.live}),
        folder(openFolder()), log(leads() ? options.log : RunLogFiles(), session.steps() > 0) {
    if (leads() && (options.log.jsonLines || options.log.tensorboard))
      session.readStepOutputs();
    if (session.hasSafeForm())
      guard.emplace(file, executor, session, options.safety, options.ranks, log,
                    [this](const std::string &text) { progress.note(text); });
    if (options.save) {
      if (options.ranks)
        options.ranks->lookForCheckpoints(
            [folder = *options.save, begin = session.steps()]() -> std::optional<SavedStep> {
              const std::filesystem::path newest = newestCheckpoint(folder, begin);
              if (newest.empty())
                return {};
              return SavedStep{checkpointStep(newest).value(), newest};
            });
      signals.emplace();
      saved = session.steps();
    }
  }

  TrainResult run() {
    RunLog::Symbols symbols;
    for (const hydra::planfile::KeyValue *symbol : *file.plan().header()->symbols())
      symbols[symbol->key()->str()] = symbol->value()->str();
    log.start(file.origin(), file.plan().header()->model()->str(), session.steps(), options.steps,
              session.tokens(), symbols);
    try {
      if (session.steps() == options.steps) {
        complete();
      } else {
        if (guard)
          guard->begin();
        makeSteps();
      }
    } catch (const RunEnded &) {
      progress.finish();
      log.end(session.steps(), "error");
      throw;
    } catch (const std::exception &error) {
      progress.finish(); // what stops the run gets a line of its own
      const bool isOwn = !dynamic_cast<const CommunicationError *>(&error);
      if (options.ranks && isOwn)
        options.ranks->leave();
      saveAfter(error);
      if (writers && isOwn)
        writers->leave(); // who saved with others, needed them
      log.end(session.steps(), "error");
      throw;
    }
    reportProfile();
    if (guard)
      guard->finish();
    progress.finish();
    log.end(session.steps(), result.signal != 0 ? "signal" : "done");
    if (options.plot)
      progress.note(hydra::report::lossPlot(losses, heldOut));
    return std::move(result);
  }

private:
  bool leads() const { return !options.ranks || options.ranks->leads(); }

  /// Null where this rank saves nothing.
  std::unique_ptr<CheckpointFolder> openFolder() const {
    if (!options.save || !(leads() || writers))
      return nullptr;
    return std::make_unique<CheckpointFolder>(*options.save, session.steps(), writers);
  }

  /// A run that ended between its last checkpoint and what comes behind all steps.
  void complete() {
    if (options.ranks)
      options.ranks->noteStep(session.steps());
    progress.note(fmt::format("step {}, the last one, is in the checkpoint", session.steps()));
    if (options.save && !goesOnIn(*options.save))
      save(/*last=*/true);
    evaluate();
  }

  /// Whether the checkpoint behind which the run goes on lies in a folder, by its path: the same on
  /// all ranks.
  bool goesOnIn(const std::filesystem::path &folder) const {
    const std::optional<std::filesystem::path> &checkpoint = options.safety.checkpoint;
    const auto plain = [](const std::filesystem::path &path) {
      std::error_code code;
      const auto real = std::filesystem::weakly_canonical(std::filesystem::absolute(path), code);
      return real.has_filename() ? real : real.parent_path();
    };
    return checkpoint && plain(*checkpoint / "..") == plain(folder);
  }

  void makeSteps() {
    if (options.ranks) {
      options.ranks->noteStep(session.steps());
      vote(session.steps(), /*signal=*/0);
      collect();
    }
    // A run that was interrupted between a checkpoint and the measurement of its parameters.
    if (isDue(options.evalEvery) && session.hasHeldOut() && session.wantsEvaluation())
      evaluate();
    while (session.steps() < options.steps && result.signal == 0) {
      if (!decision.error.empty())
        throw CommonError(decision.error);
      makeStep();
      // A step that was begun is made first; one that failed to begin is what the next call throws.
      if (session.hasBegun() || !session.isSound())
        continue;
      collect();
      result.signal = stopSignal();
      const bool last = session.steps() == options.steps || result.signal != 0;
      // First of all: a measurement takes long, and may fail.
      saveIsDue |= isDue(options.saveEvery);
      // Behind a step that changed nothing the next one is saved.
      if (options.save && (last || (saveIsDue && !session.refusal())))
        save(last);
      if (last ? result.signal == 0 : isDue(options.evalEvery))
        evaluate();
      if (result.signal == 0 && isDue(options.sampleEvery))
        sample();
    }
    if (result.signal != 0 && options.save && saved != session.steps())
      save(/*last=*/true); // a measurement was interrupted
  }

  bool isDue(int64_t every) const { return isDue(every, session.steps()); }
  static bool isDue(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }

  /// Whether the next step, which a device has begun, is followed by another at once.
  bool goesOn() {
    const int64_t number = session.steps() + 1;
    const bool profiles = !options.profile.form.empty() && number <= options.profile.last;
    const bool watches = guard && guard->watches();
    if (!session.hasBegun() || number >= options.steps || watches || profiles || saveIsDue ||
        isDue(options.saveEvery, number) || isDue(options.evalEvery, number) ||
        isDue(options.sampleEvery, number))
      return false;
    if (options.ranks)
      collect();
    return stopSignal() == 0 && decision.error.empty();
  }

  // Ranks make a step if all of them do: a rank that is alone in one waits forever. What they have
  // to know for that they know of the step before it, by numbers that are the same everywhere
  // (steps, losses), or it is decided: while step k runs, each rank votes on step k + 1, and no
  // rank begins that, ahead or not, before it has the decision. One vote at a time is open, and
  // none between steps, where checkpoints, measurements and samples have votes of their own.

  /// What this rank has to say about step `number`, counted from 0.
  void vote(int64_t number, int signal) {
    const std::string problem = number < options.steps ? session.drawAhead(number) : "";
    options.ranks->post({.signal = signal, .error = problem});
    hasVoted = true;
  }
  /// On the step behind the next one, once.
  void vote() {
    if (options.ranks && !hasVoted)
      vote(session.steps() + 1, options.save ? StopSignal::received() : 0);
  }
  /// Waits for what is decided on that, once.
  void collect() {
    if (std::exchange(hasVoted, false))
      decision = options.ranks->collect();
  }

  /// The signal that ends the run in front of the step that was voted on, or 0.
  int stopSignal() const {
    if (options.ranks)
      return decision.signal;
    return options.save ? StopSignal::received() : 0;
  }

  void makeStep(bool mayGoOn = true) {
    StepReport report;
    report.tokens = session.tokens();
    report.predictedSeconds = session.cost().microseconds() * 1e-6;
    report.predictedSecondsLeft =
        session.microsecondsUntil(options.steps) * 1e-6 - report.predictedSeconds;
    report.flops = session.cost().flops();
    const bool profiles = beginProfile();
    // A step that was begun already has had the time since the one in front.
    const Clock::time_point begin = session.hasBegun() ? ended : Clock::now();
    session.begin();
    vote();
    const int64_t before = session.steps();
    std::exception_ptr ending; // of a run, by the step that was one bad one too many
    try {
      report.loss = session.advance(mayGoOn && goesOn());
    } catch (const CommonError &) {
      if (session.steps() == before || !session.refusal())
        throw;
      ending = std::current_exception();
      report.loss = session.lastLoss();
    }
    if (options.ranks)
      options.ranks->noteStep(session.steps());
    report.hasLabels = session.hasLabels();
    const std::optional<std::string> refusal = session.refusal();
    if (!refusal)
      prune();
    ended = Clock::now();
    report.seconds = std::chrono::duration<double>(ended - begin).count();
    if (session.hasBegun())
      vote(); // so that the decision is there when it is needed
    if (profiles)
      profileStep(report.seconds);
    report.dataSeconds = session.dataSeconds();
    report.step = session.steps();
    report.learningRate = session.schedules().value("lr", report.step - 1);
    report.gradientNorm = session.gradientNorm();
    const double spike =
        session.schedules().value(hydra::support::kNormSpike, report.step - 1).value_or(0);
    if (spike > 0 && report.learningRate &&
        report.gradientNorm.value_or(0) > static_cast<double>(static_cast<float>(spike)))
      *report.learningRate *= hydra::support::kNormSpikeRate;
    report.outputs = session.stepOutputs();
    report.epochs = session.epochs();
    const TrainingState::Counts &counts = session.counts();
    report.lossMean = session.lossMean();
    report.allTokens = counts.tokens;
    const double clip = session.schedules().value("clip", report.step - 1).value_or(0);
    if (clip > 0 && report.gradientNorm) {
      report.clip = clip;
      report.clipPercent = 100 * double(counts.clipped) / double(report.step);
    }
    report.peakFlops = peakFlops();
    report.memoryBytes = executor.arenaBytes();
    result.losses.push_back(report.loss);
    if (report.hasLabels)
      losses.push_back({report.step, report.loss});
    log.step(report);
    progress.step(report);
    if (refusal) {
      log.skipped(report.step, *refusal);
      progress.note(fmt::format("step {}  update skipped: {}", report.step, *refusal));
    }
    if (ending)
      std::rethrow_exception(ending);
    if (guard)
      guard->watch(report);
    noteDecision(session.decision());
  }

  void noteDecision(const std::string &decision) {
    if (decision.empty())
      return;
    log.decision(session.steps(), decision);
    progress.note(fmt::format("step {}  {}", session.steps(), decision));
  }

  /// Whether the next step is one of those that are profiled, or the first of all.
  bool beginProfile() {
    const ProfiledSteps &asked = options.profile;
    const int64_t number = session.steps() + 1;
    const bool firstOfAll = !profiler.has_value();
    if (asked.form.empty() || (!firstOfAll && (number < asked.first || number > asked.last)))
      return false;
    if (firstOfAll)
      profiler.emplace(executor, session);
    if (firstOfAll || number == asked.first)
      profiler->begin();
    return true;
  }

  void profileStep(double seconds) {
    const ProfiledSteps &asked = options.profile;
    const int64_t number = session.steps();
    if (number >= asked.first)
      profiler->add(seconds);
    if (result.losses.empty())
      profiler->takeFirst();
    if (number == asked.last || number < asked.first)
      profiler->end();
    if (number == asked.last)
      reportProfile();
  }

  /// Once.
  void reportProfile() {
    if (profiler && !profiler->samples().empty() && !std::exchange(profiled, true))
      progress.note(profileReport(options.profile.form, file, executor, *profiler,
                                  options.ranks ? options.ranks->rank() : 0));
  }

  void evaluate() {
    if (!session.hasHeldOut()) {
      result.lastEvaluation = session.evaluate();
      prune();
      progress.note(fmt::format("after {} steps: loss {:.6f} by program {}", session.steps(),
                                result.lastEvaluation, session.evaluatingProgram()));
    }
    const size_t texts = session.measuredTexts().size();
    for (size_t i = 0; i < texts; ++i) {
      EvaluationRecord record;
      try {
        record = measureText(file, session, i, options.revision);
      } catch (const Interruption &interruption) {
        result.signal = interruption.signal;
        return;
      }
      prune();
      if (record.set.empty()) {
        result.lastEvaluation = record.loss;
        heldOut.push_back({record.step, record.loss});
      }
      log.evaluation(record);
      progress.evaluation(record.step, record.set, record.loss,
                          fmt::format("{:.1f} s", record.seconds));
      if (record.set.empty() && isDue(options.evalEvery))
        noteDecision(session.takeEvaluation(record.loss));
    }
  }

  /// The signal that ends the run before more is made of what comes behind a step, or 0; the same
  /// on all ranks.
  int interruption() const {
    if (!options.ranks)
      return StopSignal::received();
    options.ranks->post({.signal = StopSignal::received(), .error = ""});
    const Vote all = options.ranks->collect();
    if (!all.error.empty())
      throw CommonError(all.error);
    return all.signal;
  }

  void sample() {
    const std::vector<TextSample> samples = options.sample([this] {
      result.signal = interruption();
      return result.signal != 0;
    });
    if (result.signal != 0)
      return; // those that are cut are no samples
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto &[prompt, text] = samples[i];
      log.sample(session.steps(), i, prompt, text);
      progress.note(fmt::format("step {}  {}{}", session.steps(), prompt, text));
    }
  }

  /// The vendor's, for 16-bit operands, of all ranks; 0 where steps have others.
  double peakFlops() const {
    const std::string_view precision = file.plan().header()->precision()->string_view();
    return precision == "fp32" || precision == "tf32"
               ? 0.0
               : file.plan().target()->peak_flops() * double(ranksOf(file.plan()));
  }

  /// What fails beside the training does not take the training with it.
  void saveAfter(const std::exception &error) {
    if (!folder)
      return;
    if (session.hasBegun())
      try {
        makeStep(/*mayGoOn=*/false);
      } catch (const std::exception &) {
        // The first error counts.
      }
    if (!session.isSound() || session.steps() == saved)
      return;
    if (writers && !dynamic_cast<const CommonError *>(&error))
      return; // the others know nothing of it
    try {
      save(true);
    } catch (const RunEnded &) {
      throw;
    } catch (const std::exception &second) {
      fail("{}; nor is there a checkpoint of step {}: {}", error.what(), session.steps(),
           second.what());
    }
  }

  void save(bool last) {
    saved = session.steps(); // or it cannot be; there is no second try
    saveIsDue = false;
    if (!folder)
      return; // rank 0 saves all
    try {
      const auto path = folder->save(file, executor, session.state());
      proven = false;
      if (options.ranks && leads())
        options.ranks->noteCheckpoint({session.steps(), path});
      log.checkpoint(session.steps(), path);
      progress.note(fmt::format("step {}  saved {}", session.steps(), path.string()));
    } catch (const NotFinite &) {
      throw; // nor will it be after further steps
    } catch (const RunEnded &) {
      throw;
    } catch (const hydra::support::Error &error) {
      if (last)
        throw;
      warn(error);
    }
  }

  /// After a loss of the parameters that were saved last is known to be finite: only then the older
  /// checkpoints may go.
  void prune() {
    if (!folder || std::exchange(proven, true))
      return;
    try {
      folder->prune(options.keep);
    } catch (const hydra::support::Error &error) {
      warn(error);
    }
  }

  void warn(const hydra::support::Error &error) {
    if (!leads())
      return; // rank 0 says so
    progress.finish();
    std::fprintf(stderr, "hydra-run: %s; training goes on\n", error.what());
  }

  const PlanFile &file;
  Executor &executor;
  Session &session;
  const TrainOptions &options;
  Ranks *const writers; // if all ranks save together
  Progress progress;
  std::unique_ptr<CheckpointFolder> folder; // before the log, which empties files of an earlier run
  RunLog log;
  std::optional<StopSignal> signals;
  Vote decision;         // on the next step, or the one behind it
  bool hasVoted = false; // and has not collected what is decided on it
  bool proven = true; // the last checkpoint is
  bool saveIsDue = false;
  int64_t saved = 0; // the step of the last checkpoint, and at first where the run begins
  Clock::time_point ended; // the last step
  TrainResult result;
  std::optional<SafetyGuard> guard; // of a plan with safe forms
  std::optional<StepProfiler> profiler;
  bool profiled = false;
  std::vector<std::pair<int64_t, double>> losses, heldOut;
};

} // namespace

EvaluationRecord hydra::runtime::measureText(const PlanFile &file, Session &session, size_t index,
                                             const std::optional<std::string> &revision) {
  const Clock::time_point begin = Clock::now();
  const Session::Measured measured = session.measuredTexts()[index];
  EvaluationRecord record{.set = measured.name,
                          .dataset = measured.text->name(),
                          .step = session.steps(),
                          .bytesPerToken = measured.text->bytesPerToken(),
                          .batches = measured.batches,
                          .batch = measured.text->batchRows(),
                          .length = measured.text->rowTokens(),
                          .ranks = ranksOf(file.plan()),
                          .accumulation = file.plan().accumulation(),
                          .revision = revision};
  const bool isHeldOut = session.hasHeldOut() && index == 0;
  record.loss =
      isHeldOut ? session.evaluate() : session.evaluateSet(index - (session.hasHeldOut() ? 1 : 0));
  record.seconds = secondsSince(begin);
  return record;
}

void hydra::runtime::checkSteps(const Session &session, int64_t steps) {
  if (session.steps() > steps)
    fail("--steps {}: the checkpoint is at step {} already", steps, session.steps());
}

TrainResult hydra::runtime::train(const PlanFile &file, Executor &executor, Session &session,
                                  const TrainOptions &options) {
  checkSteps(session, options.steps);
  Trainer trainer(file, executor, session, options);
  if (options.begin)
    options.begin();
  return trainer.run();
}
