// hydra-inspect: what is in a plan, in a time line, or in the log of a run.
#include "runtime/plan/PlanFile.h"
#include "runtime/report/Advice.h"
#include "runtime/report/CopyAudit.h"
#include "runtime/report/ModuleReport.h"
#include "runtime/report/OpRanking.h"
#include "runtime/report/ScheduleReport.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StandardStreams.h"
#include "tools/common/ParseArguments.h"
#include "tools/hydra-inspect/Page.h"
#include "tools/hydra-inspect/PageData.h"
#include "tools/hydra-inspect/Pictures.h"
#include "tools/hydra-inspect/PlanJson.h"
#include "tools/hydra-inspect/PlanText.h"
#include "tools/hydra-inspect/RoutingLog.h"
#include "tools/hydra-inspect/RunSummary.h"
#include "tools/hydra-inspect/SafetyLog.h"
#include "tools/hydra-inspect/TraceSummary.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

using namespace hydra;

namespace {

struct Options {
  std::string path;
  bool json = false, parameters = false, memory = false, kernels = false, steps = false;
  bool precision = false, predict = false, markdown = false;
  bool operations = false, modules = false, copies = false, advice = false;
  std::string html, memorySvg, scheduleSvg, model, profile, program;

  /// What is as predicted, or as --profile measured.
  bool times() const { return operations || modules || copies || advice; }
  bool everything() const {
    return !(parameters || memory || kernels || steps || precision || predict || times());
  }
  bool draws() const { return !(html.empty() && memorySvg.empty() && scheduleSvg.empty()); }
  bool prints() const { return !draws() || json || !everything(); }
};

std::vector<report::Section> sectionsOf(const Options &options, const runtime::PlanFile &file) {
  std::vector<report::Section> sections;
  if (!options.times())
    return sections;
  const planfile::Plan &plan = file.plan();
  const report::Measurement measured =
      options.profile.empty()
          ? report::predictedMeasurement(plan)
          : inspect::measurementOf(plan, inspect::readTrace(options.profile, plan));
  if (options.operations) {
    sections.push_back(report::opTimes(measured));
    sections.push_back(report::opAllocations(plan));
  }
  if (options.modules)
    sections.push_back(report::moduleTree(plan, measured));
  if (options.copies)
    sections.push_back(report::copySection(plan, measured));
  if (options.advice)
    sections.push_back(report::adviceSection(plan, measured));
  return sections;
}

std::string asText(const Options &options, const runtime::PlanFile &file) {
  const bool all = options.everything();
  std::string text;
  const auto add = [&](bool wanted, auto render) {
    if (!wanted)
      return;
    if (!text.empty())
      text += '\n';
    text += render();
  };
  add(all, [&] { return inspect::headerText(file); });
  add(all || options.parameters, [&] { return inspect::parametersText(file.plan()); });
  add(all || options.memory, [&] { return inspect::memoryText(file.plan()); });
  add(all || options.kernels, [&] { return inspect::kernelsText(file.plan()); });
  add(all || options.steps, [&] { return inspect::stepsText(file.plan()); });
  add(options.precision, [&] { return inspect::precisionText(file.plan()); });
  add(options.predict, [&] { return report::scheduleText(file.plan()); });
  for (const report::Section &section : sectionsOf(options, file))
    add(true, [&] { return options.markdown ? section.table.markdown() : section.table.text(); });
  return text;
}

std::string asJson(const Options &options, const runtime::PlanFile &file) {
  const bool all = options.everything();
  inspect::Json json;
  if (all)
    inspect::addHeader(json, file);
  if (all || options.parameters)
    inspect::addParameters(json, file.plan());
  if (all || options.memory)
    inspect::addMemory(json, file.plan());
  if (all || options.kernels)
    inspect::addKernels(json, file.plan());
  if (all || options.steps)
    inspect::addSteps(json, file.plan());
  if (options.precision)
    inspect::addPrecision(json, file.plan());
  if (options.predict)
    json["schedule"] = inspect::Json::parse(report::scheduleJson(file.plan()));
  for (const report::Section &section : sectionsOf(options, file))
    json[section.key] = section.json;
  return json.dump(1, ' ', false, inspect::Json::error_handler_t::replace) + "\n";
}

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    support::fail("cannot write to standard output: {}", support::errnoText(errno));
}

void write(const std::string &path, const std::string &text) {
  support::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

const planfile::Program &programOf(const Options &options, const runtime::PlanFile &file) {
  const auto &programs = *file.plan().programs();
  if (options.program.empty() && programs.size() > 0)
    return *programs.Get(0);
  for (const planfile::Program *program : programs)
    if (program->name()->string_view() == options.program)
      return *program;
  support::fail("--program: {} has no program '{}'", file.origin(),
                support::shown(options.program));
}

void check(const Options &options) {
  if (!options.profile.empty() && options.html.empty() && options.scheduleSvg.empty() &&
      !options.times())
    support::fail("--profile is of use only with --html, --schedule-svg, --operations, --modules, "
                  "--copies or --advice");
  if (options.markdown && !options.times())
    support::fail("--markdown is of use only with --operations, --modules, --copies or --advice");
  if (options.markdown && options.json)
    support::fail("--json excludes --markdown");
  if (!options.program.empty() && options.memorySvg.empty() && options.scheduleSvg.empty())
    support::fail("--program is of use only with --memory-svg or --schedule-svg");
  support::checkOutputs(
      {{"the plan", options.path}, {"--model", options.model}, {"--profile", options.profile}},
      {{"--html", options.html},
       {"--memory-svg", options.memorySvg},
       {"--schedule-svg", options.scheduleSvg}});
}

/// The page and the pictures that are asked for.
void draw(const Options &options, const runtime::PlanFile &file) {
  const planfile::Plan &plan = file.plan();
  inspect::PageExtras extras;
  if (!options.model.empty())
    extras.model = inspect::readModelText(options.model, plan);
  if (!options.profile.empty())
    extras.measured = inspect::readTrace(options.profile, plan).programs;
  if (!options.html.empty())
    write(options.html, inspect::pageOf(inspect::pageData(file, extras)));
  if (!options.memorySvg.empty())
    write(options.memorySvg, inspect::memoryPicture(plan, programOf(options, file)));
  if (options.scheduleSvg.empty())
    return;
  const planfile::Program &program = programOf(options, file);
  const auto measured = extras.measured.find(program.name()->str());
  if (!options.profile.empty() && measured == extras.measured.end())
    support::fail("--schedule-svg: {} has nothing of the program {}", options.profile,
                  program.name()->string_view());
  write(options.scheduleSvg,
        inspect::schedulePicture(plan, program,
                                 options.profile.empty() ? nullptr : &measured->second));
}

/// hydra-inspect trace A.json [B.json]: where the time of time lines goes.
int inspectTraces(int argc, char **argv) {
  std::vector<std::string> paths;
  bool json = false, markdown = false;
  size_t top = 20;
  CLI::App app("Sums up a time line by class of kernels and by kernel, or compares two.");
  app.name("hydra-inspect trace");
  app.add_option("traces", paths,
                 "what hydra-run --profile=FILE.json or PyTorch's profiler wrote; two are compared")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE");
  auto *asJson = app.add_flag("--json", json, "as JSON, with all kernels");
  app.add_flag("--markdown", markdown, "as Markdown")->excludes(asJson);
  app.add_option("--top", top, "kernels to show, those with most time")
      ->type_name("N")
      ->excludes(asJson)
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->capture_default_str();
  if (const auto status = parseArguments(app, argc, argv, "hydra-inspect trace"))
    return *status;
  std::vector<inspect::TraceSummary> traces;
  for (const std::string &path : paths)
    traces.push_back(inspect::summarizeTrace(path));
  print(json       ? inspect::traceJson(traces)
        : markdown ? inspect::traceMarkdown(traces, top)
                   : inspect::traceText(traces, top));
  return 0;
}

/// hydra-inspect routing LOG.jsonl: what routers did.
int inspectRouting(int argc, char **argv) {
  std::string path;
  bool json = false, markdown = false;
  size_t last = ~size_t{0};
  CLI::App app("Says what the routers of a model did in a training run.");
  app.name("hydra-inspect routing");
  app.add_option("log", path, "what hydra-run --log wrote")->required()->type_name("FILE");
  auto *asJson = app.add_flag("--json", json, "as JSON");
  app.add_flag("--markdown", markdown, "as Markdown")->excludes(asJson);
  app.add_option("--last", last, "how many steps, the last ones (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30).description(""));
  if (const auto status = parseArguments(app, argc, argv, "hydra-inspect routing"))
    return *status;
  const inspect::RoutingLog log = inspect::readRoutingLog(path, last);
  print(json       ? inspect::routingJson(log)
        : markdown ? inspect::routingMarkdown(log)
                   : inspect::routingText(log));
  return 0;
}

/// hydra-inspect safety LOG.jsonl|DIR: what the guard of a run did.
int inspectSafety(int argc, char **argv) {
  std::string path;
  bool json = false, markdown = false;
  CLI::App app("Says where the optimizations of a run with a safe form stand, and why.");
  app.name("hydra-inspect safety");
  app.add_option("log", path, "what hydra-run --log or --run wrote")
      ->required()
      ->type_name("FILE|DIR");
  auto *asJson = app.add_flag("--json", json, "as JSON");
  app.add_flag("--markdown", markdown, "as Markdown")->excludes(asJson);
  if (const auto status = parseArguments(app, argc, argv, "hydra-inspect safety"))
    return *status;
  const inspect::SafetyLog log = inspect::readSafetyLog(path);
  print(json ? inspect::safetyLogJson(log) : inspect::safetyText(log, markdown));
  return 0;
}

/// hydra-inspect run DIR [DIR]: what came of training runs.
int inspectRuns(int argc, char **argv) {
  std::vector<std::string> paths;
  bool json = false, markdown = false;
  CLI::App app("Sums up a training run, or compares two.");
  app.name("hydra-inspect run");
  app.add_option("runs", paths, "what hydra-run --run wrote; two are compared")
      ->required()
      ->expected(1, 2)
      ->type_name("DIR");
  auto *asJson = app.add_flag("--json", json, "as JSON, with all steps");
  app.add_flag("--markdown", markdown, "as Markdown")->excludes(asJson);
  if (const auto status = parseArguments(app, argc, argv, "hydra-inspect run"))
    return *status;
  std::vector<inspect::RunSummary> runs;
  for (const std::string &path : paths)
    runs.push_back(inspect::readRun(path));
  print(json ? inspect::runJson(runs) : inspect::runText(runs, markdown));
  return 0;
}

int inspectPlan(int argc, char **argv) {
  Options options;
  CLI::App app("Shows what is in a plan: header, parameters, memory map, kernels, steps.");
  app.add_option("plan", options.path, "the plan, as hydrac writes it")->required();
  app.add_flag("--json", options.json, "as JSON");
  app.add_flag("--parameters", options.parameters, "only parameters, states and scalars");
  app.add_flag("--memory", options.memory, "only segments, categories and live ranges");
  app.add_flag("--kernels", options.kernels, "only generated kernels");
  app.add_flag("--steps", options.steps, "only programs and their steps");
  app.add_flag("--precision", options.precision,
               "only the element types of parameters, matmuls, norms, logits, loss and gradients");
  app.add_flag("--predict", options.predict,
               "only the predicted schedule: when each step runs, on which stream");
  const char *times = "Times: as predicted, or as --profile measured";
  app.add_flag("--operations", options.operations,
               "operations by time, and by the bytes of what they make")
      ->group(times);
  app.add_flag("--modules", options.modules,
               "parts of the model: forward, backward, and what the forward pass leaves")
      ->group(times);
  app.add_flag("--copies", options.copies,
               "copies, casts and fills: who made them, between what, and whether they have to be")
      ->group(times);
  app.add_flag("--advice", options.advice, "what could be faster, and how")->group(times);
  app.add_flag("--markdown", options.markdown, "these tables as Markdown")->group(times);
  const char *pictures = "Pictures";
  auto *html = app.add_option("--html", options.html,
                              "write a page for browsers: memory and schedule over the step, and "
                              "what each line of the model costs")
                   ->type_name("FILE")
                   ->group(pictures);
  app.add_option("--memory-svg", options.memorySvg,
                 "write the memory map of a program as a picture")
      ->type_name("FILE")
      ->group(pictures);
  app.add_option("--schedule-svg", options.scheduleSvg,
                 "write the schedule of a program as a picture")
      ->type_name("FILE")
      ->group(pictures);
  app.add_option("--model", options.model,
                 "the model that the plan comes from: its text goes into the page")
      ->type_name("FILE")
      ->group(pictures)
      ->needs(html);
  app.add_option("--profile", options.profile,
                 "what hydra-run --profile=FILE.json wrote: measured beside predicted times")
      ->type_name("FILE")
      ->group(pictures);
  app.add_option("--program", options.program,
                 "of which program the pictures are (default: the first)")
      ->type_name("NAME")
      ->group(pictures);
  app.footer("Without a selection everything is shown; selections add up.\n"
             "Examples:\n"
             "  hydra-inspect plan.fb --memory\n"
             "  hydra-inspect trace before.json after.json\n"
             "  hydra-inspect routing log.jsonl\n"
             "  hydra-inspect safety log.jsonl\n"
             "  hydra-inspect run RUN OTHER-RUN\n"
             "  hydra-inspect plan.fb --html=plan.html --model=MODEL --profile=trace.json");
  if (const auto status = parseArguments(app, argc, argv, "hydra-inspect"))
    return *status;
  check(options);
  const auto file = runtime::PlanFile::read(options.path);
  if (options.draws())
    draw(options, file);
  if (options.prints())
    print(options.json ? asJson(options, file) : asText(options, file));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  support::ignoreFileSizeSignal();
  try {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command == "trace")
      return inspectTraces(argc - 1, argv + 1);
    if (command == "routing")
      return inspectRouting(argc - 1, argv + 1);
    if (command == "safety")
      return inspectSafety(argc - 1, argv + 1);
    if (command == "run")
      return inspectRuns(argc - 1, argv + 1);
    if (std::error_code code;
        std::filesystem::exists(std::filesystem::path(command) / "run.json", code))
      return inspectRuns(argc, argv);
    return inspectPlan(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-inspect: %s\n", support::problemOf(error));
    return 1;
  }
}
