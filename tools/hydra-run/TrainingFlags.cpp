// Flags of hydra-run, with their help: what a run reads, how it trains, and what it keeps.
#include "runtime/run/Session.h"
#include "runtime/run/TextSource.h"
#include "runtime/support/Error.h"
#include "runtime/support/NormSpike.h"
#include "tools/hydra-run/Flags.h"

#include <fmt/core.h>

#include <charconv>
#include <type_traits>

using namespace hydra;

void hydra::addData(CLI::App &app, RunOptions &options) {
  FlagGroup group(app, "Data");
  group.option("--data", "FILE", options.data,
               "text, token files or shards to train on; the last 10% of the tokens are held "
               "out and never trained on. Shards are what hydra-data writes: files, their "
               "manifest, or the folder of both. Token files hold little-endian uint16 or uint32 "
               "numbers, with llm.c's header or without");
  group
      .option("--mix", "SOURCE", options.mix,
              "several sources instead of --data, each NAME=PATH[,weight=W]: of all rows "
              "that are trained on, a source has a share by its weight (default 1). Or a file "
              "of JSON: {\"NAME\": {\"path\": PATH, \"weight\": W}, ...}")
      ->excludes("--data");
  group.option("--eval-data", "NAME=PATH", options.evalData,
               "further text that the loss is measured on, all whole batches of it, whenever the "
               "held-out loss is: NAME=PATH; repeatable");
  group.flag("--packed", options.packed,
             "fill rows with whole documents of shards, for models with packed=true");
  group
      .option("--tokenizer", "KIND|FILE", options.tokenizer,
              "what --data holds: bytes (text, each byte a token), uint16 or uint32 (tokens; "
              "a file with a header says it itself), or the file of a tokenizer, "
              "tokenizer.json, for text that it encodes. For --generate: bytes, ids, or the "
              "file; for --chat: bytes or the file")
      ->check(textThat(
          [](const std::string &kind) {
            return runtime::isTokenKind(kind) || CLI::ExistingPath(kind).empty();
          },
          "is neither bytes, uint16, uint32 or ids nor a file"));
  group
      .option("--prefetch-threads", "N", options.prefetchThreads,
              "threads that read batches ahead; 0: the step reads its batch itself (default: 4)")
      ->check(range(0, 64));
  group
      .option("--prefetch-batches", "N", options.prefetchBatches,
              "batches that they keep ready beside that of the step, of each phase; 0: as "
              "--prefetch-threads=0 (default: 8)")
      ->check(range(0, 1024));
  group
      .option("--inputs", "FILE", options.inputs,
              "safetensors with the program's inputs, and with parameters and state (all of "
              "them, or none: then they are initialised); every step gets the same values")
      ->excludes("--data")
      ->excludes("--mix");
  group
      .option<std::string>(
          "--ids", "KIND",
          [&options](const std::string &kind) {
            options.ids =
                kind == "zipf" ? runtime::IdDistribution::zipf : runtime::IdDistribution::uniform;
          },
          "which random tokens there are without --data, --mix and --inputs: uniform, or zipf "
          "(token k, from 0, with a probability in proportion to 1 / (k + 1)) (default: uniform)")
      ->check(CLI::IsMember({"uniform", "zipf"}))
      ->excludes("--data")
      ->excludes("--mix")
      ->excludes("--inputs");
  group.option(
      "--outputs", "FILE", options.outputs,
      "safetensors to write: the program's outputs; for a train plan losses [N+1] (of N steps, "
      "and what program eval gives after the last), parameters and state");
}

void hydra::addTraining(CLI::App &app, RunOptions &options) {
  FlagGroup group(app, "Training");
  group
      .option("--steps", "N", options.steps,
              "train plans: number of the last step, counted from the beginning of the run "
              "also when it is resumed")
      ->check(fromOne);
  group
      .option("--seed", "N", options.seed,
              "of initial parameters, the order of the data, random tokens, and generated text "
              "(default: 0; when resuming, that of the checkpoint)")
      ->check(textThat( // a number would wrap around below 0, and stop at the largest one
          [](const std::string &text) {
            uint64_t seed = 0;
            const char *end = text.data() + text.size();
            return std::from_chars(text.data(), end, seed) == std::from_chars_result{end, {}};
          },
          "is no integer from 0 to 2^64-1"));
  group
      .option("--eval-every", "N", options.evalEvery,
              "steps between measurements of the held-out loss (default: only at the end)")
      ->check(fromOne);
  group
      .option("--eval-batches", "N", options.evalBatches,
              "batches of each text in one measurement (default: all)")
      ->check(fromOne);
  group
      .flag("--eval-only", options.evalOnly,
            "measure the loss of what --data holds out, and of --eval-data, and end")
      ->excludes("--steps");
  group
      .option("--max-bad-steps", "N", options.maxBadSteps,
              fmt::format("steps in a row whose loss or gradients are not finite, and which "
                          "therefore change nothing: the last one ends the run (default: {})",
                          runtime::kMostBadSteps))
      ->check(fromOne);
  FlagGroup safety(app, "Plans with a safe form (hydrac --safe)");
  safety.flag(
      "--safe", options.safe,
      "use the safe form alone (default: it is compared with before the first step, and used "
      "when the loss, gradients or a comparison are not as they should be)");
  safety
      .option("--safety-window", "N", options.safetyWindow,
              "steps behind a comparison in which losses and gradients are watched (default: 100)")
      ->check(fromOne);
  safety.flag("--safety-throughput", options.safetyThroughput,
              "steps that are much slower than those before count as well; results then depend on "
              "how busy the machine is (default: they are only reported)");

  FlagGroup rate(app, "Learning rate (default: what the plan says)");
  const auto schedule = [&](const char *flag, const char *valueName, auto member,
                            const char *help) {
    using Value =
        typename std::remove_reference_t<decltype(options.schedules["lr"].*member)>::value_type;
    return rate.option<Value>(
        flag, valueName,
        [&options, member](const Value &v) { options.schedules["lr"].*member = v; }, help);
  };
  using Change = runtime::ScheduleChange;
  schedule("--lr", "RATE", &Change::peak, "the largest learning rate")->check(nonNegative);
  using Kind = planfile::ScheduleKind;
  rate.option<std::string>(
          "--schedule", "KIND",
          [&options](const std::string &name) {
            const auto &names = planfile::EnumNamesScheduleKind();
            for (const Kind kind : planfile::EnumValuesScheduleKind())
              if (name == names[static_cast<size_t>(kind)])
                options.schedules["lr"].kind = kind;
          },
          "constant; linear (constant after a warm-up); cosine (falls to --min-lr); wsd (stays for "
          "--stable steps, then falls)")
      ->check(CLI::IsMember({"constant", "linear", "cosine", "wsd"}));
  schedule("--min-lr", "RATE", &Change::floor, "where cosine and wsd end")->check(nonNegative);
  schedule("--warmup", "N", &Change::warmup, "steps of linear warm-up")->check(fromZero);
  schedule("--stable", "N", &Change::stable,
           "wsd: steps at the largest rate (85% of those after the warm-up if nobody says)")
      ->check(fromZero);
  schedule("--schedule-steps", "N", &Change::total,
           "last step of cosine and wsd (--steps if nobody says)")
      ->check(fromOne);

  group.option(
      "--scalar", "TEXT", options.scalars,
      "NAME=VALUE[,after=STEPS][,over=STEPS][,levels=N]: a number that the model takes every "
      "step; 0 for so many steps, then VALUE, over so many steps by so many levels; "
      "repeatable (default: what the plan says)");
  group
      .option<double>(
          "--clip", "NORM", [&options](const double &v) { options.schedules["clip"].peak = v; },
          "bound of the global norm of gradients; 0: none (default: what the plan says)")
      ->check(nonNegative);
  group
      .option<double>(
          "--norm-spike", "NORM",
          [&options](const double &v) { options.schedules[support::kNormSpike].peak = v; },
          "plans of hydrac --norm-spike: steps whose gradients have a larger norm have half their "
          "learning rate; 0: none (default: what the plan says)")
      ->check(nonNegative);
}

void hydra::addPolicies(CLI::App &app, RunOptions &options) {
  FlagGroup group(app,
                  "Steps that follow from others (default: as the checkpoint of --resume, or off)");
  const auto add = [&](const char *name, const char *valueName, const char *help) {
    group
        .option<std::string>(
            fmt::format("--{}", name), valueName,
            [&options, name](const std::string &text) { options.policies[name] = text; }, help)
        ->check([name](const std::string &text) {
          try {
            runtime::parsePolicies({{name, text}});
            return std::string();
          } catch (const support::Error &error) {
            return std::string(error.what()).substr(std::string_view(name).size() + 4);
          }
        });
  };
  add("dynamic-clip", "SETTING",
      "FACTOR[,min=NORM][,max=NORM]: the bound of the global norm of gradients is "
      "FACTOR times a running mean of the norm, of which the newest is a "
      "twentieth; the first one is --clip");
  add("batch-filter", "FACTOR",
      "plans of hydrac --batch-filter: a batch whose loss is above FACTOR times its running mean, "
      "of "
      "which the newest is a tenth, changes nothing");
  add("loss-spike", "SETTING",
      "FACTOR[,steps=N][,rate=PART]: a loss above FACTOR times its running mean "
      "multiplies the learning rate of the next N (100) steps by PART (0.5)");
  add("cooldown", "off|eval|train",
      "eval or train: a wsd schedule decays early, behind half of its steps, when the "
      "held-out loss of --eval-every, or that of every 100th step, has risen three "
      "times: a fast mean of it is 5% above a slow one");
  add("start-early", "SETTING",
      "NAME,below=LOSS[,from=STEP][,over=STEPS]: a --scalar that waits "
      "(after=STEPS) begins when the running mean of the loss, of which the newest "
      "is a twentieth, is below LOSS, not before STEP, and rises over STEPS");
  add("end-phase", "SETTING",
      "PHASE,below=LOSS[,from=STEP]: that phase of hydrac --phase, from 1, ends when "
      "such a mean of the loss is below LOSS, not before STEP; what follows it comes "
      "as many steps earlier. Several are separated by ';'");
}

void hydra::addCheckpoints(CLI::App &app, RunOptions &options) {
  FlagGroup group(app, "Checkpoints and weights");
  CLI::Option *run =
      group.option("--run", "DIR", options.run,
                   "directory of a run: the plan, what it was started with and on which machine, "
                   "logs and checkpoints, as --save, --log, --csv and --tensorboard write them");
  group
      .option("--save", "DIR", options.save,
              "folder for checkpoints; one is saved at the end, when SIGINT (Ctrl-C), SIGTERM "
              "or SIGHUP ends the run, and when something beside the training fails")
      ->excludes(run);
  group.option("--save-every", "N", options.saveEvery, "steps between checkpoints")->check(fromOne);
  group.option("--keep", "N", options.keep, "checkpoints that remain in the folder")
      ->check(range(1, 1 << 20))
      ->capture_default_str();
  group
      .option("--resume", "DIR|auto", options.resume,
              "a checkpoint, a folder of them (its newest), a directory of --run (the flags of "
              "that run count where no others are given), or auto: the newest in the folder "
              "of --save, or a new run if there is none")
      ->excludes("--inputs");
  CLI::Option *weights =
      group
          .option("--weights", "FILE", options.weights,
                  "safetensors with all parameters, a checkpoint or a folder of them (its "
                  "newest), instead of initial parameters; with --resume auto those of a run that "
                  "has no checkpoint")
          ->excludes("--inputs");
  group
      .option("--adapter", "DIR|FILE", options.adapter,
              "what a plan of hydrac --lora adds to the parameters of --weights: a directory as "
              "PEFT writes it, or its safetensors (default: what --weights has of it, or "
              "initial values)")
      ->needs(weights);
  group.flag("--average", options.average,
             "use the averages of parameters, as plans of hydrac --average keep them, that the "
             "checkpoint of --resume or --weights has");
  group.option("--export", "FILE", options.exportTo,
               "safetensors to write at the end: the parameters alone");
}
