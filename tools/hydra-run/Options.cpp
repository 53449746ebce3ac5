// The command line of hydra-run: flags of the program itself, and of all together.
#include "tools/hydra-run/Options.h"

#include "runtime/cpu/ThreadPool.h"
#include "tools/common/ParseArguments.h"
#include "tools/hydra-run/CommandLine.h"
#include "tools/hydra-run/Flags.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

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

void addRanks(CLI::App &app, RunOptions &options) {
  FlagGroup group(app, "Several ranks (plans of hydrac --mesh)");
  group
      .option("--ranks", "N", options.ranks,
              "run so many processes on this machine, as the mesh of the plan has ranks; not "
              "needed under torchrun, mpirun and srun")
      ->check(range(1u, 1u << 16));
  group
      .option("--gpus", "N", options.gpus,
              "the same for a plan for GPUs: a process for each of the first N GPUs")
      ->check(range(1u, 1u << 10))
      ->excludes("--ranks");
  group
      .option("--rank-timeout", "SECONDS", options.rankTimeout,
              "how long a rank may be silent, or all wait for each other, before the run ends "
              "(default: 60, or 20 times the predicted step if that is more)")
      ->check(positive);
}

/// Throws where a flag is given beside `job` on which nothing that it does depends.
void checkAlone(const CLI::App &app, const char *job,
                std::initializer_list<std::string_view> others) {
  for (const CLI::Option *option : app.get_options())
    if (const std::string name = option->get_name();
        option->count() > 0 && name != job && std::ranges::find(others, name) == others.end())
      throw CLI::ExcludesError(job, name);
}

/// What needs() and excludes() cannot say, which know no "or".
void checkTogether(const CLI::App &app, RunOptions &options) {
  options.calibrate = app.count("--calibrate") > 0;
  // --gpus and --ranks have a line of their own.
  if (options.calibrate)
    checkAlone(app, "--calibrate",
               {"plan", "-o", "--target-base", "--device", "--threads", "--ranks", "--gpus"});
  if (options.tune)
    checkAlone(
        app, "--tune",
        {"plan", "-o", "--allow-nondeterministic", "--device", "--threads", "--ranks", "--gpus"});
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
  if (options.generate.sampling.temperature == 0)
    for (const char *flag : {"--top-k", "--top-p", "--min-p"})
      if (app.count(flag) > 0)
        throw CLI::RequiresError(flag, "a --temperature above 0");
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
  app.add_option("plan", options.plan, "the plan, as hydrac writes it")
      ->type_name("PLAN")
      ->required();
  app.add_option("--device", options.device,
                 "cpu, cuda or cuda:N (default: what the plan was compiled for)")
      ->type_name("NAME")
      ->check([](const std::string &text) {
        const bool cuda =
            text == "cuda" || (text.starts_with("cuda:") && text.size() > 5 && text.size() < 10 &&
                               text.find_first_not_of("0123456789", 5) == text.npos);
        return text == "cpu" || cuda ? std::string()
                                     : "expected cpu, cuda or cuda:N, got '" + text + "'";
      });
  CLI::Option *noGraph = app.add_flag("--no-graph{false}", options.graph,
                                      "CUDA: launch every step by itself, not a captured graph");
  CLI::Option *check =
      app.add_flag("--check", options.check,
                   "CUDA: wait after every step, so that an error names step and model line");
  app.add_option("--graph-after", options.graphAfter,
                 "CUDA: run each program N times step by step before it is captured as a graph "
                 "(default: captured at once)")
      ->type_name("N")
      ->check(range<int64_t>(1, 1 << 30))
      ->excludes(noGraph)
      ->excludes(check);
  app.add_flag("--poison", options.poison,
               "fill memory that a step must write before it reads with NaN, to find reads of "
               "unwritten memory");
  app.add_option("--threads", options.threads,
                 "default: one for each usable processor, which ranks on one machine share out")
      ->type_name("N")
      ->check(range(1u, runtime::ThreadPool::maxThreads));
  addRanks(app, options);
  addData(app, options);
  addTraining(app, options);
  addPolicies(app, options);
  addCheckpoints(app, options);
  addReports(app, options);
  addGeneration(app, options);
  app.callback([&] { checkTogether(app, options); });
  app.footer(kExamples);
  const CommandLine line(app, {argv + 1, argv + argc});
  options.given = line.arguments();
  std::vector<const char *> arguments = {argv[0]};
  for (const std::string &word : line.words())
    arguments.push_back(word.c_str());
  const std::optional<int> status =
      parseArgumentsOrThrow(app, static_cast<int>(arguments.size()), arguments.data(), "hydra-run");
  if (!status && options.run)
    RunDirectory(*options.run).setPaths(options);
  return status;
}
