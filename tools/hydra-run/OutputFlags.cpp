// Flags of hydra-run, with their help: reports and measurements, and generated text.
#include "runtime/text/ChatTemplate.h"
#include "tools/hydra-run/Flags.h"

#include <fmt/core.h>

#include <limits>

using namespace hydra;

void hydra::addReports(CLI::App &app, RunOptions &options) {
  FlagGroup group(app, "Reports");
  group.option("--log", "FILE", options.log,
               "JSON lines to write: every step, held-out losses, checkpoints; a resumed run "
               "appends");
  group.option("--csv", "FILE", options.csv,
               "table to write, a row for every step; a resumed run appends");
  group.option("--tensorboard", "DIR", options.tensorboard,
               "directory for TensorBoard event files");
  group
      .option("--log-every", "N", options.logEvery,
              "steps between lines of progress where it is not a terminal (default: 1 up to 100 "
              "steps, then 10)")
      ->check(fromOne);
  group.flag("--plot", options.plot, "print the curve of the losses at the end");
  group
      .flag(fmt::format("--bench{{{}}}", kDefaultRepeats), options.bench,
            fmt::format("time N steps or calls (default {})", kDefaultRepeats))
      ->type_name("N")
      ->check(range(1, kMostRepeats))
      ->excludes("--steps")
      ->excludes("--outputs");
  group
      .option("--bench-warmup", "N", options.benchWarmup,
              fmt::format("steps or calls that warm up before --bench or --profile times any "
                          "(default: {})",
                          kWarmUpSteps))
      ->check(range(0, kMostRepeats));
  group
      .option("--bench-json", "FILE", options.benchJson,
              "write what --bench measured: seconds of every step, those that warm up as well")
      ->needs("--bench");
  group
      .flag("--bench-data{200}", options.benchData,
            "time N batches of --data alone (default 200), without the model")
      ->type_name("N")
      ->check(range(1, 1 << 30));
  group
      .option(
          "--profile", "FORM", options.profile,
          "where the time goes: table, the same as markdown or (with nothing else on the standard "
          "output) json, or FILE.json with a time line of every step for chrome://tracing (of ranks "
          "that of rank 0, or with a %r in the name those of all)")
      ->check(textThat(
          [](const std::string &form) {
            return form == "table" || form == "markdown" || form == "json" ||
                   form.ends_with(".json");
          },
          "is neither table, markdown or json nor the name of a .json file"))
      ->excludes("--outputs");
  group
      .option("--profile-steps", "RANGE", options.profileSteps,
              "which steps of a training run --profile is of, which otherwise makes steps of its "
              "own: FIRST..LAST")
      ->check(textThat([](const std::string &text) { return parseStepRange(text).first > 0; },
                       "is no range of steps such as 5..24"))
      ->needs("--profile")
      ->excludes("--bench");
  auto *tune = group.flag("--tune", options.tune,
                          "CUDA: measure the library's algorithms for every matmul, and cuDNN's "
                          "attention beside the own, and write a plan with the fastest to -o");
  auto *calibrate =
      group
          .option("--calibrate", "PLAN", options.calibrationPlans,
                  "measure how long the steps of this plan, and of others that are named here, "
                  "take on this machine, and write the description of a target with these "
                  "rates to -o, for hydrac --target=FILE.json")
          ->expected(0, CLI::detail::expected_max_vector_size)
          ->excludes(tune);
  group
      .option("--target-base", "NAME|FILE", options.targetBase,
              "--calibrate: a target, or FILE.json, whose description is completed (default: "
              "that of the plan)")
      ->needs(calibrate);
  auto *output = group.option("-o", "FILE", options.output,
                              "where --tune writes the plan, or --calibrate the description");
  tune->needs(output);
  calibrate->needs(output);
  group
      .flag("--allow-nondeterministic", options.allowNondeterministic,
            "--tune may choose what gives other bits in every run")
      ->needs(tune);
  group
      .flag("--dry-run", options.dryRun,
            "check everything, run nothing: the code in a plan for a CPU is not even loaded")
      ->excludes(tune)
      ->excludes(calibrate);
}

void hydra::addGeneration(CLI::App &app, RunOptions &options) {
  FlagGroup group(app, "Generating text");
  CLI::Option *generate = group
                              .option("--generate", "PROMPT", options.prompts,
                                      "text to continue by the trained model of --resume or "
                                      "--weights, or by the one trained here; repeatable where the "
                                      "plan reads several sequences at a time")
                              ->allow_extra_args(false);
  group
      .option("--sample-every", "N", options.sampleEvery,
              "also continue the texts of --generate while it trains, behind every N steps; they "
              "go to --log and --tensorboard, too (default: only at the end)")
      ->check(fromOne)
      ->needs(generate);
  CLI::Option *chat =
      group
          .flag("--chat", options.chat,
                "talk with a model that learned to: each line of the standard input is answered; "
                "/exit or its end ends the conversation, Ctrl-C an answer")
          ->excludes(generate);
  group
      .option("--chat-template", "NAME", options.chatTemplate,
              fmt::format("how the model expects a conversation: {} (default: what is known of the "
                          "tokenizer's chat_template)",
                          text::chatTemplateNames()))
      ->needs(chat);
  group
      .option("--system", "TEXT", options.system, "what the model is told before the conversation")
      ->needs(chat);
  const auto add = [&](const char *name, const char *valueName, auto &value, const char *help) {
    return group.option(name, valueName, value, help)->each([&options, name](const std::string &) {
      options.choices.emplace_back(name);
    });
  };
  runtime::GenerateOptions &defaults = options.generate;
  runtime::SamplingOptions &choice = defaults.sampling;
  add("--tokens", "N", defaults.tokens, "tokens to add, or of an answer")
      ->check(fromOne)
      ->capture_default_str();
  add("--temperature", "T", choice.temperature,
      "divides the scores; 0: always the most probable token")
      ->check(nonNegative)
      ->capture_default_str();
  add("--top-k", "K", choice.topK, "choose among the K most probable tokens (default: all)")
      ->check(fromOne);
  add("--top-p", "P", choice.topP,
      "choose among the most probable tokens that have this probability together (default: all)")
      ->check(numberThat([](double p) { return p > 0 && p <= 1; }, "a probability above 0"));
  add("--min-p", "P", choice.minP,
      "leave out tokens with less than this part of the most probable one's probability (default: "
      "none)")
      ->check(numberThat([](double p) { return p >= 0 && p <= 1; }, "a number from 0 to 1"));
  add("--repetition-penalty", "R", choice.repetitionPenalty,
      "divides the scores of tokens that the text has, those below 0 are multiplied (default: 1)")
      ->check(positive);
  add("--stop-token", "ID", defaults.stop,
      "the id of a token in front of which the text ends; repeatable (default: what the tokenizer "
      "says)")
      ->check(range(0, std::numeric_limits<int32_t>::max()))
      ->allow_extra_args(false);
}
