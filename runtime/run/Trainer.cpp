// The loop over steps, and what happens between them.
#include "runtime/run/Trainer.h"

#include "runtime/report/LossPlot.h"
#include "runtime/run/Progress.h"
#include "runtime/run/RunLog.h"
#include "runtime/run/StopSignal.h"
#include "runtime/support/Error.h"

#include <chrono>
#include <cstdio>
#include <utility>

using namespace hydra::runtime;
using hydra::support::fail;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Trainer {
public:
  Trainer(const PlanFile &file, Executor &executor, Session &session, const TrainOptions &options)
      : file(file), executor(executor), session(session), options(options),
        progress({.firstStep = session.steps(),
                  .lastStep = options.steps,
                  .memoryBytes = executor.arenaBytes(),
                  .every = options.logEvery,
                  .live = options.live}),
        log(options.log, options.tensorboard, session.steps() > 0) {
    if (options.save) {
      folder.emplace(*options.save, session.steps());
      signals.emplace();
      saved = session.steps();
    }
  }

  TrainResult run() {
    log.start(file.origin(), file.plan().header()->model()->str(), session.steps(), options.steps,
              session.tokens());
    try {
      makeSteps();
    } catch (const std::exception &error) {
      progress.finish(); // what stops the run gets a line of its own
      saveAfter(error);
      log.end(session.steps(), "error");
      throw;
    }
    progress.finish();
    log.end(session.steps(), result.signal != 0 ? "signal" : "done");
    if (options.plot)
      progress.note(hydra::report::lossPlot(losses, heldOut));
    return std::move(result);
  }

private:
  void makeSteps() {
    while (session.steps() < options.steps && result.signal == 0) {
      makeStep();
      result.signal = folder ? StopSignal::received() : 0;
      const bool last = session.steps() == options.steps || result.signal != 0;
      // First of all: a measurement takes long, and may fail.
      if (folder && (last || (isDue(options.saveEvery) && !session.refusal())))
        save(last);
      if (last ? result.signal == 0 : isDue(options.evalEvery))
        evaluate();
    }
  }

  bool isDue(int64_t every) const { return every > 0 && session.steps() % every == 0; }

  void makeStep() {
    StepReport report;
    report.tokens = session.tokens();
    report.predictedSeconds = session.cost().microseconds() * 1e-6;
    report.learningRate = session.schedules().value("lr", session.steps());
    const Clock::time_point begin = Clock::now();
    report.loss = session.advance();
    const std::optional<std::string> refusal = session.refusal();
    if (!refusal)
      prune();
    report.seconds = secondsSince(begin);
    report.dataSeconds = session.dataSeconds();
    report.step = session.steps();
    report.gradientNorm = session.gradientNorm();
    result.losses.push_back(report.loss);
    losses.push_back({report.step, report.loss});
    log.step(report);
    progress.step(report);
    if (refusal) {
      log.skipped(report.step, *refusal);
      progress.note(fmt::format("step {}  update skipped: {}", report.step, *refusal));
    }
  }

  void evaluate() {
    const Clock::time_point begin = Clock::now();
    const double loss = session.evaluate();
    prune();
    result.lastEvaluation = loss;
    if (!session.hasHeldOut())
      return progress.note(fmt::format("after {} steps: loss {:.6f}", session.steps(), loss));
    heldOut.push_back({session.steps(), loss});
    log.heldOut(session.steps(), loss);
    progress.heldOut(session.steps(), loss, secondsSince(begin));
  }

  /// What fails beside the training does not take the training with it.
  void saveAfter(const std::exception &error) {
    if (!folder || !session.isSound() || session.steps() == saved)
      return;
    try {
      save(true);
    } catch (const std::exception &second) {
      fail("{}; nor is there a checkpoint of step {}: {}", error.what(), session.steps(),
           second.what());
    }
  }

  void save(bool last) {
    saved = session.steps(); // or it cannot be; there is no second try
    try {
      const auto path = folder->save(file, executor, session.state());
      proven = false;
      log.checkpoint(session.steps(), path);
      progress.note(fmt::format("step {}  saved {}", session.steps(), path.string()));
    } catch (const NotFinite &) {
      throw; // nor will it be after further steps
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
    progress.finish();
    std::fprintf(stderr, "hydra-run: %s; training goes on\n", error.what());
  }

  const PlanFile &file;
  Executor &executor;
  Session &session;
  const TrainOptions &options;
  Progress progress;
  RunLog log;
  std::optional<CheckpointFolder> folder;
  std::optional<StopSignal> signals;
  bool proven = true; // the last checkpoint is
  int64_t saved = 0;  // the step of the last checkpoint, and at first where the run begins
  TrainResult result;
  std::vector<std::pair<int64_t, double>> losses, heldOut;
};

} // namespace

TrainResult hydra::runtime::train(const PlanFile &file, Executor &executor, Session &session,
                                  const TrainOptions &options) {
  if (session.steps() >= options.steps)
    fail("--steps {}: the checkpoint is at step {} already", options.steps, session.steps());
  Trainer trainer(file, executor, session, options);
  if (options.begin)
    options.begin();
  return trainer.run();
}
