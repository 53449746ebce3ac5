// hydra-bench: sweeps of plans, by prediction and by measurement.
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StandardStreams.h"
#include "tools/common/ParseArguments.h"
#include "tools/hydra-bench/Child.h"
#include "tools/hydra-bench/Results.h"
#include "tools/hydra-bench/Table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>

using namespace hydra;
using support::fail;

namespace {

struct Options {
  std::string definition;
  std::optional<std::string> out, markdown, csv, baseline, programs;
  std::vector<std::string> axes;
  std::optional<double> threshold;
  std::optional<int> steps;
  double seconds = 0;
  bool again = false, list = false;
};

/// A check whose name is not in the help.
CLI::Validator quiet(CLI::Validator check) { return check.description(""); }

/// A finite number for which `holds` is true; of others it is said that they are not `expected`.
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

constexpr int kWorse = 2, kInterrupted = 130;

void write(const std::string &path, const std::string &text) {
  support::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// Throws Error where a result could not be written, which shows before anything is measured: where
/// it would take the place of the definition or of another one, too.
void checkFiles(const Options &options) {
  const std::vector<support::NamedFile> outputs = {{"-o", options.out.value_or("")},
                                                   {"--markdown", options.markdown.value_or("")},
                                                   {"--csv", options.csv.value_or("")}};
  support::checkOutputs({{"the definition", options.definition}}, outputs);
  for (const auto &path : {options.out, options.markdown, options.csv})
    if (path)
      const support::AtomicFile trial(*path); // leaves nothing
}

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail("cannot write to standard output: {}", support::errnoText(errno));
}

bench::Programs programsOf(const Options &options) {
  const std::filesystem::path folder =
      options.programs ? std::filesystem::path(*options.programs)
                       : std::filesystem::read_symlink("/proc/self/exe").parent_path();
  bench::Programs programs{folder / "hydrac", folder / "hydra-run", options.seconds};
  std::error_code code;
  for (const auto &program : {programs.hydrac, programs.run})
    if (!std::filesystem::exists(program, code))
      fail("there is no {}; --programs=DIR says where hydrac and hydra-run are",
           support::shownPath(program));
  return programs;
}

bench::Definition definitionOf(const Options &options) {
  bench::Definition definition = bench::readDefinition(options.definition);
  if (options.steps) {
    if (definition.steps == 0)
      fail("--steps: {} asks for predictions alone", options.definition);
    definition.steps = *options.steps;
  }
  definition.threshold = options.threshold.value_or(definition.threshold);
  bench::choose(definition, options.axes);
  bench::tablesOf(definition, {}); // what is wrong with them shows before anything is measured
  return definition;
}

/// `12.3 ms`, a prediction, or why there is none.
std::string resultOf(const bench::Json &row) {
  if (row["status"] != "ok")
    return fmt::format("{}: {}", row["status"].get<std::string>(),
                       row["reason"].get<std::string>());
  if (row.contains("bench"))
    return fmt::format("{:.3f} ms", row["bench"]["median_ms"].get<double>());
  return fmt::format("{:.3f} ms predicted",
                     row["cost"]["step"]["microseconds"].get<double>() / 1e3);
}

/// Whether all cases have their row.
bool sweep(const bench::Definition &definition, const std::vector<bench::Case> &cases,
           const bench::Programs &programs, bench::Results &results) {
  const bench::ScratchFolder folder;
  bench::Measurer measurer(definition, programs);
  for (size_t i = 0; i < cases.size(); ++i) {
    const bool known = results.find(cases[i]) != nullptr;
    if (!known) {
      bench::Json row = measurer.measure(cases[i], folder.path);
      if (bench::wasInterrupted())
        return false;
      results.add(cases[i], std::move(row));
    }
    std::fprintf(stderr, "[%zu/%zu] %s: %s%s\n", i + 1, cases.size(), cases[i].name().c_str(),
                 resultOf(*results.find(cases[i])).c_str(), known ? " (before)" : "");
  }
  return true;
}

int run(const Options &options) {
  const bench::Definition definition = definitionOf(options);
  const std::vector<bench::Case> cases = definition.cases();
  if (options.list) {
    for (const bench::Case &one : cases)
      print(fmt::format("{}: hydrac {} {}\n", one.name(), one.model.string(),
                        fmt::join(one.hydrac, " ")));
    return 0;
  }
  const bench::Programs programs = programsOf(options);
  // What is wrong with it shows before hours of measuring, which may write over it.
  const bench::Json baseline =
      options.baseline ? bench::readResults(*options.baseline) : bench::Json();
  checkFiles(options);
  const auto out = options.out ? std::optional<std::filesystem::path>(*options.out) : std::nullopt;
  bench::Results results(out, definition, programs, options.again);
  bench::watchSignals();
  const bool complete = sweep(definition, cases, programs, results);
  const std::vector<bench::Json> rows = results.rowsOf(cases);
  if (!complete) {
    std::fprintf(stderr, "hydra-bench: interrupted after %zu of %zu rows%s\n", rows.size(),
                 cases.size(), out ? "; the same command goes on" : "");
    return kInterrupted;
  }
  std::string markdown = bench::markdownOf(definition, rows);
  size_t worse = 0;
  if (options.baseline) {
    const bench::Comparison comparison = bench::compare(
        definition, rows, baseline, std::filesystem::path(*options.baseline).filename().string());
    markdown += comparison.markdown;
    worse = comparison.worse;
  }
  print(markdown);
  if (options.markdown)
    write(*options.markdown, markdown);
  if (options.csv)
    write(*options.csv, bench::csvOf(definition, rows));
  if (std::ranges::none_of(rows, [](const bench::Json &row) { return row["status"] == "ok"; }))
    fail("no row could be measured");
  if (worse > 0)
    std::fprintf(stderr, "hydra-bench: %zu of %zu rows are worse than %s\n", worse, rows.size(),
                 options.baseline->c_str());
  return worse > 0 ? kWorse : 0;
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  support::ignoreFileSizeSignal();
  Options options;
  CLI::App app("Compiles and measures the rows of a sweep, and makes tables of them.");
  app.add_option("definition", options.definition, "the sweep: a JSON file as in tools/bench")
      ->required()
      ->type_name("FILE");
  CLI::Option *const out =
      app.add_option("-o", options.out,
                     "JSON with all that was measured, written after every row; a sweep that was "
                     "interrupted goes on with what is there")
          ->type_name("FILE");
  app.add_option("--markdown", options.markdown, "where the tables go, beside the standard output")
      ->type_name("FILE");
  app.add_option("--csv", options.csv, "the tables with commas")->type_name("FILE");
  app.add_option("--axis", options.axes,
                 "of this axis only this value; repeatable. An axis that is a flag of hydrac takes "
                 "any value")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--steps", options.steps, "steps to measure (default: what the definition says)")
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 1 << 30)));
  app.add_option("--timeout", options.seconds, "seconds that a row's compiler or run may take")
      ->type_name("SECONDS")
      ->check(numberThat([](double x) { return x > 0; }, "a number above 0"));
  CLI::Option *const baseline =
      app.add_option(
             "--baseline", options.baseline,
             "what -o wrote before: compare, and end with status 2 where something is worse")
          ->type_name("FILE");
  app.add_option("--threshold", options.threshold,
                 "percent by which a row may be worse (default: what the definition says)")
      ->type_name("PERCENT")
      ->check(numberThat([](double x) { return x >= 0; }, "a number from 0"))
      ->needs(baseline);
  app.add_flag("--again", options.again, "measure rows anew that -o has already")->needs(out);
  CLI::Option *const list =
      app.add_flag("--list", options.list, "print the rows with their flags, and measure nothing");
  app.add_option("--programs", options.programs,
                 "where hydrac and hydra-run are (default: beside this program)")
      ->type_name("DIR");
  for (const char *flag :
       {"-o", "--markdown", "--csv", "--steps", "--timeout", "--baseline", "--again", "--programs"})
    list->excludes(app.get_option(flag));
  app.footer("Example: hydra-bench tools/bench/cs336-time.json --axis preset=small -o small.json\n"
             "Status: 0; 1 for a mistake, or when no row could be measured; 2 when a row is worse "
             "than in --baseline.");
  if (const auto status = parseArguments(app, argc, argv, "hydra-bench"))
    return *status;
  try {
    return run(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-bench: %s\n", support::problemOf(error));
    return 1;
  }
}
