// The flags of hydra-run, with their help.
#include "tools/hydra-run/Options.h"

#include "runtime/cpu/ThreadPool.h"
#include "runtime/run/TextSource.h"
#include "runtime/support/Error.h"
#include "runtime/support/NormSpike.h"
#include "runtime/text/ChatTemplate.h"
#include "tools/common/ParseArguments.h"
#include "tools/hydra-run/CommandLine.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

using namespace hydra;

namespace {

constexpr const char *kExamples =
    "Examples:\n"
    "  hydra-run plan.fb --data text.txt --steps 1000 --save run --save-every 200\n"
    "  hydra-run plan.fb --data text.txt --steps 2000 --save run --resume auto\n"
    "  hydra-run plan.fb --resume run --generate 'ROMEO:' --tokens 300 --temperature 0.8\n"
    "  hydra-run text.fb --weights model.safetensors --tokenizer model --chat --tokens 500\n"
    "  hydra-run plan.fb --data text.txt --tokenizer model/tokenizer.json --steps 1000\n"
    "  hydra-run plan.fb --data tokens.bin --steps 5000 --lr 3e-4 --schedule cosine --warmup 200\n"
    "  hydra-run grad.fb --inputs in.safetensors --outputs out.safetensors\n"
    "  hydra-run plan.fb --bench --profile=table";

/// A check that help does not spell out.
CLI::Validator quiet(CLI::Validator validator) { return validator.description(""); }

CLI::Validator integerFrom(int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 40;
  return quiet(CLI::Range(least, kMost));
}

const CLI::Validator fromOne = integerFrom(1), fromZero = integerFrom(0);

/// A finite number for which `holds` is true.
CLI::Validator numberThat(bool (*holds)(double), const char *expected) {
  return CLI::Validator(
      [=](const std::string &text) {
        double value = 0;
        const bool good =
            CLI::detail::lexical_cast(text, value) && std::isfinite(value) && holds(value);
        return good ? std::string() : fmt::format("'{}' is not {}", text, expected);
      },
      "");
}

const CLI::Validator nonNegative = numberThat([](double x) { return x >= 0; }, "a number from 0"),
                     positive = numberThat([](double x) { return x > 0; }, "a number above 0");

/// What values of flags are called in help.
void nameValues(CLI::App &app) {
  constexpr std::pair<const char *, const char *> kNames[] = {{"plan", "PLAN"},
                                                              {"--inputs", "FILE"},
                                                              {"--outputs", "FILE"},
                                                              {"--save", "DIR"},
                                                              {"--resume", "DIR|auto"},
                                                              {"--weights", "FILE"},
                                                              {"--adapter", "DIR|FILE"},
                                                              {"--export", "FILE"},
                                                              {"--run", "DIR"},
                                                              {"--log", "FILE"},
                                                              {"--csv", "FILE"},
                                                              {"--eval-data", "NAME=PATH"},
                                                              {"--max-bad-steps", "N"},
                                                              {"--safety-window", "N"},
                                                              {"--tensorboard", "DIR"},
                                                              {"--steps", "N"},
                                                              {"--seed", "N"},
                                                              {"--eval-every", "N"},
                                                              {"--eval-batches", "N"},
                                                              {"--sample-every", "N"},
                                                              {"--save-every", "N"},
                                                              {"--keep", "N"},
                                                              {"--log-every", "N"},
                                                              {"--prefetch-threads", "N"},
                                                              {"--threads", "N"},
                                                              {"--ranks", "N"},
                                                              {"--gpus", "N"},
                                                              {"--rank-timeout", "SECONDS"},
                                                              {"--warmup", "N"},
                                                              {"--stable", "N"},
                                                              {"--schedule-steps", "N"},
                                                              {"--tokens", "N"},
                                                              {"--top-k", "K"},
                                                              {"--top-p", "P"},
                                                              {"--min-p", "P"},
                                                              {"--repetition-penalty", "R"},
                                                              {"--stop-token", "ID"},
                                                              {"--bench", "N"},
                                                              {"--bench-warmup", "N"},
                                                              {"--bench-json", "FILE"},
                                                              {"--bench-data", "N"},
                                                              {"--lr", "RATE"},
                                                              {"--min-lr", "RATE"},
                                                              {"--clip", "NORM"},
                                                              {"--norm-spike", "NORM"},
                                                              {"--dynamic-clip", "SETTING"},
                                                              {"--loss-spike", "SETTING"},
                                                              {"--cooldown", "off|eval|train"},
                                                              {"--start-early", "SETTING"},
                                                              {"--end-phase", "SETTING"},
                                                              {"--temperature", "T"},
                                                              {"--data", "FILE"},
                                                              {"--mix", "SOURCE"},
                                                              {"--generate", "PROMPT"},
                                                              {"--chat-template", "NAME"},
                                                              {"--system", "TEXT"},
                                                              {"--tokenizer", "KIND|FILE"},
                                                              {"--schedule", "KIND"},
                                                              {"--profile", "FORM"},
                                                              {"--profile-steps", "RANGE"},
                                                              {"--device", "NAME"},
                                                              {"--calibrate", "PLAN"},
                                                              {"--target-base", "NAME|FILE"},
                                                              {"-o", "FILE"}};
  for (const auto &[flag, name] : kNames)
    app.get_option(flag)->type_name(name);
}

void addData(CLI::App &app, RunOptions &options) {
  app.add_option("--data", options.data,
                 "text, token files or shards to train on; the last 10% of the tokens are held "
                 "out and never trained on. Shards are what hydra-data writes: files, their "
                 "manifest, or the folder of both. Token files hold little-endian uint16 or uint32 "
                 "numbers, with llm.c's header or without")
      ->group("Data");
  app.add_option("--mix", options.mix,
                 "several sources instead of --data, each NAME=PATH[,weight=W]: of all rows "
                 "that are trained on, a source has a share by its weight (default 1). Or a file "
                 "of JSON: {\"NAME\": {\"path\": PATH, \"weight\": W}, ...}")
      ->excludes("--data")
      ->group("Data");
  app.add_option("--eval-data", options.evalData,
                 "further text that the loss is measured on, all of it, whenever the held-out loss "
                 "is: NAME=PATH; repeatable")
      ->group("Data");
  app.add_flag("--packed", options.packed,
               "fill rows with whole documents of shards, for models with packed=true")
      ->group("Data");
  app.add_option("--tokenizer", options.tokenizer,
                 "what --data holds: bytes (text, each byte a token), uint16 or uint32 (tokens; "
                 "a file with a header says it itself), or the file of a tokenizer, "
                 "tokenizer.json, for text that it encodes. For --generate: bytes, ids, or the "
                 "file; for --chat: bytes or the file")
      ->check(quiet(CLI::Validator(
          [](std::string &kind) {
            return runtime::isTokenKind(kind) || CLI::ExistingPath(kind).empty()
                       ? std::string()
                       : "'" + kind + "' is neither bytes, uint16, uint32 or ids nor a file";
          },
          "KIND")))
      ->group("Data");
  app.add_option("--prefetch-threads", options.prefetchThreads, "threads that read batches ahead")
      ->check(quiet(CLI::Range(1, 64)))
      ->capture_default_str()
      ->group("Data");
  app.add_option("--inputs", options.inputs,
                 "safetensors with the program's inputs, and with parameters and state (all of "
                 "them, or none: then they are initialised); every step gets the same values")
      ->excludes("--data")
      ->excludes("--mix")
      ->group("Data");
  app.add_option("--outputs", options.outputs,
                 "safetensors to write: the program's outputs; for a train plan losses [N+1], "
                 "parameters and state")
      ->group("Data");
}

void addTraining(CLI::App &app, RunOptions &options) {
  app.add_option("--steps", options.steps,
                 "train plans: number of the last step, counted from the beginning of the run "
                 "also when it is resumed")
      ->check(fromOne)
      ->group("Training");
  app.add_option("--seed", options.seed,
                 "of initial parameters, the order of the data, random tokens, and generated text "
                 "(default: 0; when resuming, that of the checkpoint)")
      ->group("Training");
  app.add_option("--eval-every", options.evalEvery,
                 "steps between measurements of the held-out loss (default: only at the end)")
      ->check(fromOne)
      ->group("Training");
  app.add_option("--eval-batches", options.evalBatches,
                 "held-out batches of one measurement (default: all)")
      ->check(fromOne)
      ->group("Training");

  app.add_flag("--eval-only", options.evalOnly,
               "measure the loss of what --data holds out, and of --eval-data, and end")
      ->excludes("--steps")
      ->group("Training");
  app.add_option(
         "--max-bad-steps", options.maxBadSteps,
         "steps in a row whose loss or gradients are not finite, and which therefore change "
         "nothing: the last one ends the run")
      ->check(fromOne)
      ->capture_default_str()
      ->group("Training");
  const char *guard = "Plans with a safe form (hydrac --safe)";
  app.add_flag(
         "--safe", options.safe,
         "use the safe form alone (default: it is compared with before the first step, and used "
         "when the loss, gradients or a comparison are not as they should be)")
      ->group(guard);
  app.add_option(
         "--safety-window", options.safetyWindow,
         "steps behind a comparison in which losses and gradients are watched (default: 100)")
      ->check(fromOne)
      ->group(guard);
  app.add_flag("--safety-throughput", options.safetyThroughput,
               "steps that are much slower than those before count as well; results then depend on "
               "how busy the machine is (default: they are only reported)")
      ->group(guard);

  const auto schedule = [&](const char *flag, auto member, const std::string &help) {
    using Value =
        typename std::remove_reference_t<decltype(options.schedules["lr"].*member)>::value_type;
    return app
        .add_option_function<Value>(
            flag, [&options, member](const Value &v) { options.schedules["lr"].*member = v; }, help)
        ->group("Learning rate (default: what the plan says)");
  };
  using Change = runtime::ScheduleChange;
  schedule("--lr", &Change::peak, "the largest learning rate")->check(nonNegative);
  using Kind = planfile::ScheduleKind;
  app.add_option_function<std::string>(
         "--schedule",
         [&options](const std::string &name) {
           const auto &names = planfile::EnumNamesScheduleKind();
           for (const Kind kind : planfile::EnumValuesScheduleKind())
             if (name == names[static_cast<size_t>(kind)])
               options.schedules["lr"].kind = kind;
         },
         "constant; linear (constant after a warm-up); cosine (falls to --min-lr); wsd (stays for "
         "--stable steps, then falls)")
      ->check(CLI::IsMember({"constant", "linear", "cosine", "wsd"}))
      ->group("Learning rate (default: what the plan says)");
  schedule("--min-lr", &Change::floor, "where cosine and wsd end")->check(nonNegative);
  schedule("--warmup", &Change::warmup, "steps of linear warm-up")->check(fromZero);
  schedule("--stable", &Change::stable,
           "wsd: steps at the largest rate (85% of those after the "
           "warm-up if nobody says)")
      ->check(fromZero);
  schedule("--schedule-steps", &Change::total,
           "last step of cosine and wsd (--steps if nobody says)")
      ->check(fromOne);
  app.add_option(
         "--scalar", options.scalars,
         "NAME=VALUE[,after=STEPS][,over=STEPS][,levels=N]: a number that the model takes every "
         "step; 0 for so many steps, then VALUE, over so many steps by so many levels; "
         "repeatable (default: what the plan says)")
      ->group("Training");
  app.add_option_function<double>(
         "--clip", [&options](const double &v) { options.schedules["clip"].peak = v; },
         "bound of the global norm of gradients")
      ->check(positive)
      ->group("Training");
  app.add_option_function<double>(
         "--norm-spike",
         [&options](const double &v) { options.schedules[support::kNormSpike].peak = v; },
         "plans of hydrac --norm-spike: steps whose gradients have a larger norm have half their "
         "learning rate; 0: none (default: what the plan says)")
      ->check(nonNegative)
      ->group("Training");
}

void addPolicies(CLI::App &app, RunOptions &options) {
  const auto add = [&](const char *name, const std::string &help) {
    app.add_option_function<std::string>(
           fmt::format("--{}", name),
           [&options, name](const std::string &text) { options.policies[name] = text; }, help)
        ->check(quiet(CLI::Validator(
            [name](std::string &text) {
              try {
                runtime::parsePolicies({{name, text}});
                return std::string();
              } catch (const support::Error &error) {
                return std::string(error.what()).substr(std::string_view(name).size() + 4);
              }
            },
            "")))
        ->group("Steps that follow from others (default: as the checkpoint of --resume, or off)");
  };
  add("dynamic-clip", "FACTOR[,min=NORM][,max=NORM]: the bound of the global norm of gradients is "
                      "FACTOR times a running mean of the norm, of which the newest is a "
                      "twentieth; the first one is --clip");
  add("loss-spike", "FACTOR[,steps=N][,rate=PART]: a loss above FACTOR times its running mean "
                    "multiplies the learning rate of the next N (100) steps by PART (0.5)");
  add("cooldown", "eval or train: a wsd schedule decays early, behind half of its steps, when the "
                  "held-out loss of --eval-every, or that of every 100th step, has risen three "
                  "times: a fast mean of it is 5% above a slow one");
  add("start-early", "NAME,below=LOSS[,from=STEP][,over=STEPS]: a --scalar that waits "
                     "(after=STEPS) begins when the running mean of the loss, of which the newest "
                     "is a twentieth, is below LOSS, not before STEP, and rises over STEPS");
  add("end-phase", "PHASE,below=LOSS[,from=STEP]: that phase of hydrac --phase, from 1, ends when "
                   "such a mean of the loss is below LOSS, not before STEP; what follows it comes "
                   "as many steps earlier. Several are separated by ';'");
}

void addRanks(CLI::App &app, RunOptions &options) {
  const char *group = "Several ranks (plans of hydrac --mesh)";
  app.add_option("--ranks", options.ranks,
                 "run so many processes on this machine, as the mesh of the plan has ranks; not "
                 "needed under torchrun, mpirun and srun")
      ->check(quiet(CLI::Range(1u, 1u << 16)))
      ->group(group);
  app.add_option("--gpus", options.gpus,
                 "the same for a plan for GPUs: a process for each of the first N GPUs")
      ->check(quiet(CLI::Range(1u, 1u << 10)))
      ->excludes("--ranks")
      ->group(group);
  app.add_option("--rank-timeout", options.rankTimeout,
                 "how long a rank may be silent, or all wait for each other, before the run ends "
                 "(default: 60, or 20 times the predicted step if that is more)")
      ->check(positive)
      ->group(group);
}

void addCheckpoints(CLI::App &app, RunOptions &options) {
  const char *group = "Checkpoints and weights";
  CLI::Option *run =
      app.add_option("--run", options.run,
                     "directory of a run: the plan, what it was started with and on which machine, "
                     "logs and checkpoints, as --save, --log, --csv and --tensorboard write them")
          ->group(group);
  app.add_option("--save", options.save,
                 "folder for checkpoints; one is saved at the end, when SIGINT (Ctrl-C), SIGTERM "
                 "or SIGHUP ends the run, and when something beside the training fails")
      ->excludes(run)
      ->group(group);
  app.add_option("--save-every", options.saveEvery, "steps between checkpoints")
      ->check(fromOne)
      ->group(group);
  app.add_option("--keep", options.keep, "checkpoints that remain in the folder")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->capture_default_str()
      ->group(group);
  app.add_option("--resume", options.resume,
                 "a checkpoint, a folder of them (its newest), a directory of --run (the flags of "
                 "that run count where no others are given), or auto: the newest in the folder "
                 "of --save, or a new run if there is none")
      ->excludes("--inputs")
      ->group(group);
  CLI::Option *weights =
      app.add_option("--weights", options.weights,
                     "safetensors with all parameters, a checkpoint or a folder of them (its "
                     "newest), instead of initial parameters")
          ->excludes("--inputs")
          ->excludes("--resume")
          ->group(group);
  app.add_option("--adapter", options.adapter,
                 "what a plan of hydrac --lora adds to the parameters of --weights: a directory as "
                 "PEFT writes it, or its safetensors (default: what --weights has of it, or "
                 "initial values)")
      ->needs(weights)
      ->group(group);
  app.add_flag("--average", options.average,
               "use the averages of parameters, as plans of hydrac --average keep them, that the "
               "checkpoint of --resume or --weights has")
      ->group(group);
  app.add_option("--export", options.exportTo,
                 "safetensors to write at the end: the parameters alone")
      ->group(group);
}

void addReports(CLI::App &app, RunOptions &options) {
  const char *group = "Reports";
  app.add_option("--log", options.log,
                 "JSON lines to write: every step, held-out losses, checkpoints; a resumed run "
                 "appends")
      ->group(group);
  app.add_option("--csv", options.csv,
                 "table to write, a row for every step; a resumed run appends")
      ->group(group);
  app.add_option("--tensorboard", options.tensorboard, "directory for TensorBoard event files")
      ->group(group);
  app.add_option("--log-every", options.logEvery,
                 "steps between lines of progress where it is not a terminal (default: 1 up to 100 "
                 "steps, then 10)")
      ->check(fromOne)
      ->group(group);
  app.add_flag("--plot", options.plot, "print the curve of the losses at the end")->group(group);
  app.add_flag(fmt::format("--bench{{{}}}", kDefaultRepeats), options.bench,
               fmt::format("time N steps or calls (default {})", kDefaultRepeats))
      ->check(quiet(CLI::Range(1, kMostRepeats)))
      ->excludes("--steps")
      ->excludes("--outputs")
      ->group(group);
  app.add_option("--bench-warmup", options.benchWarmup,
                 "steps or calls that warm up before --bench or --profile times any")
      ->check(quiet(CLI::Range(0, kMostRepeats)))
      ->capture_default_str()
      ->group(group);
  app.add_option("--bench-json", options.benchJson,
                 "write what --bench measured: seconds of every step, those that warm up as well")
      ->needs("--bench")
      ->group(group);
  app.add_flag("--bench-data{200}", options.benchData,
               "time N batches of --data alone (default 200), without the model")
      ->check(quiet(CLI::Range(1, 1 << 30)))
      ->group(group);
  app.add_option(
         "--profile", options.profile,
         "where the time goes: table, the same as markdown or (with nothing else on the standard "
         "output) json, or FILE.json with a time line of every step for chrome://tracing")
      ->check(quiet(CLI::Validator(
          [](std::string &form) {
            return form == "table" || form == "markdown" || form == "json" ||
                           form.ends_with(".json")
                       ? std::string()
                       : "'" + form +
                             "' is neither table, markdown or json nor the name of a .json file";
          },
          "FORM")))
      ->excludes("--outputs")
      ->group(group);
  app.add_option(
         "--profile-steps", options.profileSteps,
         "which steps of a training run --profile is of, which otherwise makes steps of its "
         "own: FIRST..LAST")
      ->check(quiet(CLI::Validator(
          [](std::string &text) {
            return parseStepRange(text).first > 0
                       ? std::string()
                       : "'" + text + "' is no range of steps such as 5..24";
          },
          "RANGE")))
      ->needs("--profile")
      ->excludes("--bench")
      ->group(group);
  auto *tune = app.add_flag("--tune", options.tune,
                            "CUDA: measure the library's algorithms for every matmul, and cuDNN's "
                            "attention beside the own, and write a plan with the fastest to -o")
                   ->group(group);
  auto *calibrate =
      app.add_option("--calibrate", options.calibrationPlans,
                     "measure how long the steps of this plan, and of others that are named here, "
                     "take on this machine, and write the description of a target with these "
                     "rates to -o, for hydrac --target=FILE.json")
          ->expected(0, CLI::detail::expected_max_vector_size)
          ->excludes(tune)
          ->group(group);
  app.add_option("--target-base", options.targetBase,
                 "--calibrate: a target, or FILE.json, whose description is completed (default: "
                 "that of the plan)")
      ->needs(calibrate)
      ->group(group);
  auto *output = app.add_option("-o", options.output,
                                "where --tune writes the plan, or --calibrate the description")
                     ->group(group);
  tune->needs(output);
  calibrate->needs(output);
  app.add_flag("--allow-nondeterministic", options.allowNondeterministic,
               "--tune may choose what gives other bits in every run")
      ->needs(tune)
      ->group(group);
  app.add_flag("--dry-run", options.dryRun,
               "check everything, run nothing: the code in a plan for a CPU is not even loaded")
      ->excludes(tune)
      ->excludes(calibrate)
      ->group(group);
}

void addGeneration(CLI::App &app, RunOptions &options) {
  const char *group = "Generating text";
  CLI::Option *generate =
      app.add_option("--generate", options.prompts,
                     "text to continue by the trained model of --resume or "
                     "--weights, or by the one trained here; repeatable where the "
                     "plan reads several sequences at a time")
          ->allow_extra_args(false)
          ->group(group);
  app.add_option(
         "--sample-every", options.sampleEvery,
         "also continue the texts of --generate while it trains, behind every N steps; they "
         "go to --log and --tensorboard, too (default: only at the end)")
      ->check(fromOne)
      ->needs(generate)
      ->group(group);
  CLI::Option *chat =
      app.add_flag(
             "--chat", options.chat,
             "talk with a model that learned to: each line of the standard input is answered; "
             "/exit or its end ends the conversation, Ctrl-C an answer")
          ->excludes(generate)
          ->group(group);
  app.add_option(
         "--chat-template", options.chatTemplate,
         fmt::format("how the model expects a conversation: {} (default: what is known of the "
                     "tokenizer's chat_template)",
                     text::chatTemplateNames()))
      ->needs(chat)
      ->group(group);
  app.add_option("--system", options.system, "what the model is told before the conversation")
      ->needs(chat)
      ->group(group);
  const auto add = [&](const char *name, auto &value, const char *text) {
    return app.add_option(name, value, text)
        ->each([&options, name](const std::string &) { options.choices.emplace_back(name); })
        ->group(group);
  };
  runtime::GenerateOptions &defaults = options.generate;
  runtime::SamplingOptions &choice = defaults.sampling;
  add("--tokens", defaults.tokens, "tokens to add, or of an answer")
      ->check(fromOne)
      ->capture_default_str();
  add("--temperature", choice.temperature, "divides the scores; 0: always the most probable token")
      ->check(nonNegative)
      ->capture_default_str();
  add("--top-k", choice.topK, "choose among the K most probable tokens (default: all)")
      ->check(fromOne);
  add("--top-p", choice.topP,
      "choose among the most probable tokens that have this probability together (default: all)")
      ->check(numberThat([](double p) { return p > 0 && p <= 1; }, "a probability above 0"));
  add("--min-p", choice.minP,
      "leave out tokens with less than this part of the most probable one's probability (default: "
      "none)")
      ->check(numberThat([](double p) { return p >= 0 && p <= 1; }, "a number from 0 to 1"));
  add("--repetition-penalty", choice.repetitionPenalty,
      "divides the scores of tokens that the text has, those below 0 are multiplied (default: 1)")
      ->check(numberThat([](double p) { return p > 0; }, "a number above 0"));
  add("--stop-token", defaults.stop,
      "the id of a token in front of which the text ends; repeatable (default: what the tokenizer "
      "says)")
      ->check(fromZero)
      ->allow_extra_args(false);
  app.callback([&app, &options] { // needs() knows no "or"
    options.calibrate = app.count("--calibrate") > 0;
    if (!options.output.empty() && !options.tune && !options.calibrate)
      throw CLI::RequiresError("-o", "--tune or --calibrate");
    for (const char *flag : {"--log", "--csv", "--tensorboard"})
      if (options.run && app.count(flag) > 0)
        throw CLI::ExcludesError("--run", flag);
    if (!options.save && !options.run)
      for (const char *flag : {"--save-every", "--keep"})
        if (app.count(flag) > 0)
          throw CLI::RequiresError(flag, "--save or --run");
    if (!options.choices.empty() && !options.writesText())
      throw CLI::RequiresError(options.choices[0], "--generate or --chat");
  });
}

} // namespace

std::pair<int64_t, int64_t> hydra::parseStepRange(const std::string &text) {
  const size_t dots = text.find("..");
  int64_t first = 0, last = 0;
  const auto number = [](std::string_view digits, int64_t &value) {
    const char *end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, value);
    return error == std::errc() && at == end;
  };
  if (dots == text.npos || !number(std::string_view(text).substr(0, dots), first) ||
      !number(std::string_view(text).substr(dots + 2), last) || first < 1 || last < first)
    return {0, 0};
  return {first, last};
}

std::optional<int> hydra::parseOptions(int argc, char **argv, RunOptions &options) {
  CLI::App app(
      "Runs a plan of hydrac: trains a model, generates text from it, or calls its program "
      "once on given values.");
  app.add_option("plan", options.plan, "the plan, as hydrac writes it")->required();
  app.add_option("--device", options.device,
                 "cpu, cuda or cuda:N (default: what the plan was compiled for)")
      ->check([](const std::string &text) {
        const bool cuda =
            text == "cuda" || (text.starts_with("cuda:") && text.size() > 5 && text.size() < 10 &&
                               text.find_first_not_of("0123456789", 5) == text.npos);
        return text == "cpu" || cuda ? std::string()
                                     : "expected cpu, cuda or cuda:N, got '" + text + "'";
      });
  app.add_flag("--no-graph{false}", options.graph,
               "CUDA: launch every step by itself, not a captured graph");
  app.add_flag("--check", options.check,
               "CUDA: wait after every step, so that an error names step and model line");
  app.add_flag("--poison", options.poison,
               "fill memory that a step must write before it reads with NaN, to find reads of "
               "unwritten memory");
  app.add_option("--threads", options.threads,
                 "default: one for each usable processor, which ranks on one machine share out")
      ->check(quiet(CLI::Range(1u, runtime::ThreadPool::maxThreads)));
  addRanks(app, options);
  addData(app, options);
  addTraining(app, options);
  addPolicies(app, options);
  addCheckpoints(app, options);
  addReports(app, options);
  addGeneration(app, options);
  nameValues(app);
  app.footer(kExamples);
  const CommandLine line(app, {argv + 1, argv + argc});
  options.given = line.arguments();
  std::vector<const char *> arguments = {argv[0]};
  for (const std::string &word : line.words())
    arguments.push_back(word.c_str());
  const std::optional<int> status =
      parseArguments(app, static_cast<int>(arguments.size()), arguments.data(), "hydra-run");
  if (!status && options.run)
    RunDirectory(*options.run).setPaths(options);
  return status;
}
