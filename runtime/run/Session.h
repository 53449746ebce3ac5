// What hydra-run does with a plan: one call on given values, or training steps.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/ranks/Ranks.h"
#include "runtime/run/Batch.h"
#include "runtime/run/Checkpoint.h"
#include "runtime/run/Executor.h"
#include "runtime/run/GatheredValues.h"
#include "runtime/run/Scalars.h"
#include "runtime/run/StepBatches.h"
#include "runtime/run/StepOutputs.h"
#include "runtime/run/StepPolicies.h"
#include "runtime/run/TensorValues.h"
#include "runtime/run/TextSource.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// Text that is measured, beside what is held out of the text that is trained on.
struct EvaluationSet {
  std::string name;
  TextSource *text = nullptr; // of a whole text; it outlives the session
};

/// Steps in a row that may change nothing, since they are not finite, unless a run says otherwise.
inline constexpr int64_t kMostBadSteps = 32;

struct SessionOptions {
  std::optional<std::filesystem::path> inputs;   // safetensors: inputs, and parameters and state
  std::optional<std::filesystem::path> weights;  // safetensors: parameters
  std::optional<std::filesystem::path> adapter;  // values of adapters beside them
  std::optional<std::filesystem::path> averages; // safetensors: of parameters, to be used instead
  std::optional<uint64_t> seed;                  // of initial values and random batches; default 0
  IdDistribution ids = IdDistribution::uniform;  // of random batches
  std::map<std::string, ScheduleChange> scalars; // by name: what differs from the plan
  PolicyFlags policies = {};                     // see StepPolicies
  int64_t steps = 0;                             // of the whole run, where schedules may end
  TextSource *text = nullptr;                    // where tokens come from; it outlives the session
  std::vector<EvaluationSet> evaluationSets;     // measured as well
  int64_t maxBadSteps = kMostBadSteps;
  const Checkpoint *resume = nullptr; // where to begin
  Ranks *ranks = nullptr;             // of a plan with a mesh
  // Or no program is run (--dry-run): what they derive is not there, nor initial values.
  bool runs = true;
};

/// Thrown out of a measurement of text by a signal that ends the run (StopSignal.h).
struct Interruption {
  int signal;
};

/// A plan on an executor, with its variables set and its inputs at hand. On several ranks each has
/// a session of its own, all make the same calls, and numbers that all ranks share in (tokens,
/// costs, losses, outputs) are those of all of them.
///
/// A plan of mode `train` makes steps: `train`, or `accumulate` several times and `apply`. Any
/// other plan makes calls of its first program.
class Session {
public:
  /// Reads the inputs and writes parameters and state. Throws Error as GivenTensors, Batch,
  /// setVariables, Scalars and Checkpoint do, when a train plan lacks a program or its loss, and
  /// when a checkpoint was made with another seed or other data.
  Session(const PlanFile &file, Executor &executor, const SessionOptions &options);

  bool trains() const { return trainPlan; }
  /// Whether variables are set: not where nothing runs and nothing is read.
  bool hasValues() const {
    return options.runs || options.resume || options.weights || options.inputs;
  }
  /// What a user must know about the origin of the values, in one line; empty when all are given.
  /// `readsBatches`: whether anything is done with batches.
  std::string note(bool readsBatches = true) const;
  /// Whether its seed decides any value, or any number that programs draw in a step. Of text the
  /// order of batches does not count.
  bool drawsValues(bool readsBatches) const;
  /// Tokens of the next step or call: phases may have shapes of their own.
  uint64_t tokens() const;
  /// What the next step or call should cost.
  planfile::Cost cost() const { return costOf(nextPart()); }
  /// How long the next steps should take together, up to step `last`, which phases differ in.
  double microsecondsUntil(int64_t last) const;

  /// Reads the batches of step `number` from files ahead of it, beside those of the step before,
  /// so that ranks can agree whether they can make it. Returns what is wrong with them, or an empty
  /// text. `advance` makes no other step then.
  std::string drawAhead(int64_t number);

  /// One call, or one training step; returns the loss before the update (0 for a call). Throws
  /// Error when the batches of the step cannot be read, and then nothing has changed; and, with the
  /// likely cause, when a training loss or the norm of its gradients is not finite.
  ///
  /// `goesOn`: unless this throws, nothing else is done with the session or the executor before
  /// `advance` is called again, on any rank. Where it can, a device is given that step before the
  /// end of this one is waited for.
  double advance(bool goesOn = false);
  /// The first half of `advance`, where there are two: gives a device the next step, unless it has
  /// it, so that the host goes on while it runs (`hasBegun`). Throws what `advance` does.
  void begin();
  /// Whether ranks meet in front of every run, so that none waits in it for another to begin.
  void startTogether(bool on) { meets = on; }
  /// Whether a device was given the next step already, so that nothing but `advance` may follow,
  /// and `drawAhead` for the one behind it.
  bool hasBegun() const { return begun.has_value(); }
  /// Whether its programs have safe forms, by which `hydrac --safe` lets a run go on.
  bool hasSafeForm() const;
  /// From now on the programs of that form run, on the same parameters and states. The plan has it.
  void useForm(ProgramForm form);
  ProgramForm runningForm() const { return running; }
  /// A step that changes nothing, on the batches of the next one, which has the same.
  struct Trial {
    double loss = 0;
    std::optional<double> gradientNorm; // nothing where the plan computes none
    double seconds = 0;
  };
  /// Of a plan with safe forms. Throws Error when the batches cannot be read.
  Trial tryStep();
  /// For checkpoints, and at first that of the checkpoint.
  const std::optional<SafetyState> &safety() const { return guarded; }
  void noteSafety(const SafetyState &state) { guarded = state; }

  /// Whether parameters and states are those between two steps, as far as is known: not while a
  /// step has begun and failed, or gave a loss or norm that is not finite.
  bool isSound() const { return sound && !begun; }
  /// The loss of the present parameters by the program `eval`: with text, the mean over the
  /// held-out batches; otherwise on the batch of the next step. Throws Error, with the likely
  /// cause, when it is not finite, and on all ranks when one of them cannot read its batches.
  double evaluate();
  /// The program that `evaluate` runs. Of a model with an entry @eval its loss need not be what
  /// steps report: terms that only train are left out.
  std::string evaluatingProgram() const;
  /// Whether `evaluate` is about text that is never trained on.
  bool hasHeldOut() const { return options.text != nullptr; }
  /// The same over all batches of a set of SessionOptions::evaluationSets.
  double evaluateSet(size_t set);
  /// A measurement of text: the name of the set, empty for what is held out; its text; and the
  /// batches of all ranks.
  struct Measured {
    std::string name;
    const TextSource *text;
    uint64_t batches;
  };
  /// What `evaluate` measures, if it is text, and the sets behind it.
  std::vector<Measured> measuredTexts() const;
  /// An output with its numbers in row-major order.
  struct SmallOutput {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<double> values;
  };
  /// The outputs of the last call that are one number; of a plan of mode `forward` also those of at
  /// most two dimensions and 256 numbers. Only rank 0 gets those of which each rank has a part.
  std::vector<SmallOutput> smallOutputs() const;
  /// Steps made.
  int64_t steps() const { return step; }

  /// How often each source of text was gone through in the steps made; nothing without text.
  std::vector<data::Epochs> epochs() const;

  /// Seconds of the last step that were spent waiting for its batches.
  double dataSeconds() const { return waited; }
  /// The global norm before clipping in the last step; nothing when the plan does not compute it.
  std::optional<double> gradientNorm() const { return norm; }
  /// From now on what steps tell beside their loss is read.
  void readStepOutputs();
  /// What the last step told, if it is read.
  std::vector<StepOutput> stepOutputs() { return told ? told->means() : std::vector<StepOutput>(); }
  /// Of all steps of the run, those before a checkpoint as well.
  const TrainingState::Counts &counts() const { return counted; }
  /// The mean of the losses of steps made here, of which the newest counts a tenth. Not part of a
  /// checkpoint: the last bits of a loss depend on how ranks and micro-batches add it up.
  std::optional<double> lossMean() const { return meanLoss; }
  /// Of the last step.
  double lastLoss() const { return stepLoss; }
  /// Whether any label of the last step counts, on any rank. If not its loss is no loss, and
  /// neither means of losses nor policies take it.
  bool hasLabels() const { return labelled; }
  /// Why the last step changed no parameter and no state; nothing when it was applied.
  const std::optional<std::string> &refusal() const { return refused; }
  /// What the schedules say for the next step.
  const Scalars &schedules() const { return scalars; }
  /// The policies that are on, as flags have them.
  PolicyFlags policyFlags() const { return policies ? policies->flags() : PolicyFlags(); }
  /// How many steps earlier than in the plan phases end, because one did.
  int64_t stepsSaved() const { return policies ? policies->stepsSaved() : 0; }
  /// What the last step lets its policies decide, in a line; mostly nothing.
  const std::string &decision() const { return decided; }
  /// Whether a held-out loss of the present parameters is wanted by a policy, and still missing.
  bool wantsEvaluation() const { return policies && policies->wantsEvaluation(step); }
  /// Gives it to the policies; returns what they decide.
  std::string takeEvaluation(double loss) {
    return policies ? policies->takeEvaluation(step, loss, scalars) : "";
  }
  /// For a checkpoint.
  TrainingState state() const;

private:
  friend class SessionOutputs;

  /// A program, and where it leaves what a session reads: tensors of outputs, or -1.
  struct Form {
    uint32_t program;
    int64_t loss = -1, gradientNorm = -1;
    int64_t labels = -1;     ///< how many count, of a program that makes them itself
    int64_t applied = -1;    ///< that says whether a step was applied
    bool sumsLosses = false; ///< the loss is the sum of those of its step so far
    int64_t count = -1;      ///< the program that counts labels before, or -1
    std::vector<uint32_t> read = {}; ///< tensors of outputs that are read behind each run
  };
  /// The form that runs, with its inputs: of what is read from files, a batch for each of its runs
  /// in a step.
  struct Part : Form {
    std::unique_ptr<BatchSource> source; ///< its own; null: none, or one that outlives it
    StepBatches batches;
    uint64_t tokens = 0; ///< of a run of the program
    uint32_t own = 0;    ///< the program that all forms do the work of
  };

  Form formOf(uint32_t program) const;
  /// Of the program in a form, or of itself where it has none.
  Form formOf(uint32_t program, ProgramForm which) const;
  /// The part goes on in the form that runs.
  void takeForm(Part &part) const { static_cast<Form &>(part) = formOf(part.own, running); }
  using Clock = std::chrono::steady_clock;
  /// A step of one run that was started.
  struct Begun {
    Part *part;
    bool isAlone = true;              ///< not behind another
    int64_t labels = 0;               ///< of this rank that count, where they are counted
    double drawSeconds = 0;           ///< for its batch
    Clock::time_point drawn{}, started{}; ///< when that was there; and the run
  };
  /// Whether step `number` is one run of a program, which can be started ahead.
  bool beginsAhead(int64_t number) const;
  /// Starts a step of one run. Throws Error when its batch cannot be read, and then nothing has
  /// changed; and when the run cannot be started (mayHaveRun).
  void beginStep(int64_t number);
  /// The same, beside the step before; what is thrown waits for the next step.
  void beginBeside(int64_t number);
  /// Waits for a run whose results nobody wants.
  void drain();
  /// Waits for the step that was begun, if any, and forgets it: parameters are not those of `step`.
  void drainBegun();
  /// Of a step that was begun; returns the loss.
  double endStep(const Begun &now);
  /// What the step has left, whose runs have ended; returns the loss.
  double takeStep(const Part &part, double loss);
  /// The runs of a step, whose batches may be drawn already; returns the loss.
  double makeRuns(Part &part, bool drawn);
  /// Whether labels of steps may not count, so that they have to be counted.
  bool leavesLabelsOut() const;
  /// Writes the copies of variables that the form which runs has, and another that has made steps
  /// has not; and what is derived of them.
  void refreshCopies();
  /// Throws Error when there is none of that role; `name` says which one would do.
  uint32_t programOf(planfile::ProgramRole role, std::string_view name) const;
  /// Sums up the labels that count in all batches of the step. Draws them, unless they are.
  void countLabels(Part &part, bool drawn);
  /// Notes that the update of a step was refused; throws Error after too many in a row whose loss
  /// or norm is not finite.
  void noteRefusal(double loss);
  /// `runs`: of the program in a step.
  Part makePart(uint32_t program, bool needsLoss, BatchSource *source, uint64_t runs = 1);
  /// Batch `number` of what is measured or tried; throws on all ranks when one of them cannot read
  /// it.
  /// Returns the signal that has come, to any of them, or 0.
  int drawMeasured(Part &part, uint64_t number);
  /// The mean loss over the labels of a text that count. Throws CommonError where none does.
  double measure(Part &part, TextSource &text, const std::string &what);
  int64_t labelsOf(const Part &part) const;
  /// The mean of the losses of batches, of which so many labels of this rank's rows count.
  double meanOverLabels(std::span<const double> losses, std::vector<int64_t> labels,
                        const std::string &what) const;
  /// Counts a step of so many tokens that has been made.
  void count(double loss, uint64_t tokens);
  /// Whether any of the labels of a step counts, of which so many of this rank do.
  bool anyLabel(int64_t own) const;
  /// Starts the part's program on one of its batches.
  void startPart(const Part &part, uint64_t batch, int64_t number);
  /// Waits for it; returns the loss of the batch. `seconds`: what it took on the device.
  double endPart(const Part &part, double *seconds = nullptr);
  /// Both.
  double runPart(const Part &part, uint64_t batch);
  /// Throws Error, with what a user can go by, unless the value is finite: parameters that give
  /// such ones are not sound.
  void checkFinite(std::string_view what, double value);
  uint64_t seed() const { return options.seed.value_or(0); }
  /// Number of the first batch of the next step.
  uint64_t nextBatch() const;
  void makeTrainingParts();
  void setValues();
  void setFirstValues();

  const PlanFile &file;
  Executor &executor;
  SessionOptions options;
  std::unique_ptr<GivenTensors> given;
  Scalars scalars;
  GatheredValues gathered;
  std::optional<StepPolicies> policies; // of steps
  std::string decided;
  std::string data; // what batches come from: told while the files are as they were
  bool trainPlan;
  bool drawsAdapters = false; ///< where parameters were given without
  uint32_t rank() const { return options.ranks ? options.ranks->rank() : 0; }
  /// The program of a step, or the first of two.
  const Part &partOf(int64_t number) const;
  /// Of a step of that part, with all micro-batches.
  planfile::Cost costOf(const Part &part) const;
  /// Those of steps anew, from the next step on: what follows a phase begins where that ends.
  void makeStepParts();
  Part &partAt(int64_t number) { return const_cast<Part &>(partOf(number)); }
  const Part &nextPart() const { return partOf(step); }
  Part &nextPart() { return partAt(step); }

  std::vector<Part> parts; // call; or train; or accumulate, apply
  struct EarlyPart {
    int64_t lastStep;
    Part part;
  };
  std::vector<EarlyPart> early; // instead of train at first
  std::optional<Part> eval;
  std::vector<Part> measuredSets;           // as in the options
  std::optional<double> norm, previousNorm; // of the last step, and the one before
  std::optional<StepOutputs> told;          // of the last step
  std::optional<std::string> refused;       // the last step, and why
  TrainingState::Counts counted;
  std::optional<double> meanLoss;
  bool labelled = true; // the last step
  double stepLoss = 0;  // of the last step
  double waited = 0;    // for the batches of the last step
  std::optional<Begun> begun;    // the next step
  std::exception_ptr beginError; // of the next step, where that was tried
  bool mayHaveRun = false;       // a step that was not begun, in part
  bool meets = false;            // all ranks do, in front of every run
  Clock::time_point lastEnd;     // of a step
  int64_t step = 0;
  bool sound = true;
  ProgramForm running = ProgramForm::own;
  int64_t formSince = 0;                 ///< the number of steps made when the form was chosen
  int64_t firstStep = 0;                 ///< the same when all variables and copies were written
  std::map<ProgramForm, int64_t> leftAt; ///< the same when a form ran last: its copies are of then
  std::set<ProgramForm> stepped;         ///< forms that have made steps, but for the running one
  std::optional<SafetyState> guarded;
};

/// The file that a session leaves: for a call, the outputs of its program by their names; for
/// training, `losses` and all parameters and states. Rank 0 writes it, others hand in their parts.
class SessionOutputs {
public:
  /// Opens the file, so that a path that cannot be written is known before any work. With training,
  /// `losses` will have `lossCount` values.
  SessionOutputs(const std::filesystem::path &path, const Session &session, int64_t lossCount);

  /// Reads everything from the device and puts the file in its place. `losses` as announced.
  void write(const std::vector<double> &losses);

private:
  struct Entry {
    std::string name;
    const planfile::Output *output;     ///< or
    const planfile::Variable *variable; ///< this
  };

  const Session &session;
  std::vector<Entry> entries;
  std::unique_ptr<support::SafetensorsWriter> writer; ///< of rank 0
};

} // namespace hydra::runtime
