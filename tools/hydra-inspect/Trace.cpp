// Spans of steps, by the runs of their programs.
#include "tools/hydra-inspect/Trace.h"

#include "runtime/report/PlanNodes.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-inspect/TraceEvents.h"

#include <algorithm>
#include <limits>

namespace hydra::inspect {

using Json = nlohmann::json;
using support::fail;
using support::shown;

namespace {

/// Name of a step by its place.
using StepNames = std::map<std::string, std::string>;

std::map<std::string, StepNames> stepsOf(const planfile::Plan &plan) {
  std::map<std::string, StepNames> steps;
  for (const planfile::Program *program : *plan.programs())
    for (const report::PlanNode &node : report::nodesOf(plan, *program))
      if (const planfile::Step *step = node.block->node_as_Step())
        steps[program->name()->str()][node.place] = step->name()->str();
  return steps;
}

class TraceReader {
public:
  TraceReader(const std::filesystem::path &path, const planfile::Plan &plan)
      : file(path), steps(stepsOf(plan)) {}

  MeasuredTrace read() {
    try {
      if (!forEachEvent(file, [this](const Json &event) { addEvent(event); }))
        failWith("it has no traceEvents");
    } catch (const Json::exception &error) {
      failWith(support::jsonProblem(error));
    }
    if (runs.empty())
      failWith("it has no steps");
    for (auto &[name, ofProgram] : runs)
      trace.programs[name] = summary(ofProgram);
    if (trace.steps > 0) {
      trace.wall /= double(trace.steps);
      trace.data /= double(trace.steps);
    }
    return std::move(trace);
  }

private:
  using Run = std::vector<MeasuredSpan>;
  using Runs = std::map<uint32_t, Run>; // by number

  [[noreturn]] void failWith(const std::string &why) const {
    fail("{} is no time line as hydra-run --profile=FILE.json writes it: {}", file.name(), why);
  }

  void addEvent(const Json &event) {
    if (event.value("ph", "") != "X" || !event.contains("args"))
      return;
    const Json &args = event.at("args");
    if (args.contains("data_us")) { // a step as a user waits for it
      ++trace.steps;
      trace.wall += event.at("dur").get<double>();
      trace.data += args.at("data_us").get<double>();
    }
    if (!args.contains("step")) // something else than a step
      return;
    const auto program = args.at("program").get<std::string>();
    MeasuredSpan span{.place = args.at("step").get<std::string>(),
                      .stream = args.at("stream").get<uint32_t>(),
                      .begin = event.at("ts").get<double>(),
                      .end = 0};
    span.end = span.begin + event.at("dur").get<double>();
    const auto known = steps.find(program);
    if (known == steps.end())
      fail("{} is of another plan: there is no program {} here", file.name(), shown(program));
    const auto step = known->second.find(span.place);
    const auto name = event.at("name").get<std::string>();
    if (step == known->second.end() || step->second != name)
      fail("{} is of another plan: step {} of {} is {} there, and {} here", file.name(),
           shown(span.place), shown(program), shown(name),
           step == known->second.end() ? "nothing" : shown(step->second));
    runs[program][args.at("correlation").get<uint32_t>()].push_back(std::move(span));
  }

  static std::pair<double, double> boundsOf(const Run &run) {
    double begin = std::numeric_limits<double>::infinity(), end = -begin;
    for (const MeasuredSpan &span : run) {
      begin = std::min(begin, span.begin);
      end = std::max(end, span.end);
    }
    return {begin, end};
  }

  static MeasuredProgram summary(Runs &ofProgram) {
    MeasuredProgram program;
    program.runs = ofProgram.size();
    std::vector<std::pair<double, Run *>> byTime;
    for (auto &[number, run] : ofProgram) {
      const auto [begin, end] = boundsOf(run);
      byTime.emplace_back(end - begin, &run);
      for (const MeasuredSpan &span : run) {
        program.byStep[span.place] += (span.end - span.begin) / double(program.runs);
        program.calls[span.place] += 1 / double(program.runs);
      }
    }
    std::ranges::sort(byTime, {}, [](const auto &one) { return one.first; });
    const auto &[time, median] = byTime[(byTime.size() - 1) / 2];
    program.microseconds = time;
    const double begin = boundsOf(*median).first;
    program.spans = std::move(*median);
    for (MeasuredSpan &span : program.spans) {
      span.begin -= begin;
      span.end -= begin;
    }
    return program;
  }

  support::InputFile file;
  std::map<std::string, StepNames> steps;
  std::map<std::string, Runs> runs; // by program
  MeasuredTrace trace;
};

} // namespace

MeasuredTrace readTrace(const std::filesystem::path &path, const planfile::Plan &plan) {
  return TraceReader(path, plan).read();
}

report::Measurement measurementOf(const planfile::Plan &plan, const MeasuredTrace &trace) {
  report::Measurement all;
  all.measured = true;
  for (const auto &[index, runs] : report::programsOfStep(plan)) {
    const planfile::Program &program = *plan.programs()->Get(index);
    const auto measured = trace.programs.find(program.name()->str());
    if (measured == trace.programs.end())
      continue;
    for (const report::PlanNode &node : report::nodesOf(plan, program)) {
      const auto time = measured->second.byStep.find(node.place);
      if (const planfile::Step *step = node.block->node_as_Step();
          step && time != measured->second.byStep.end())
        all.steps.push_back({.step = step,
                             .program = index,
                             .calls = double(runs) * measured->second.calls.at(node.place),
                             .seconds = 1e-6 * double(runs) * time->second,
                             .firstSeconds = {}});
    }
  }
  all.wall = trace.steps > 0 ? 1e-6 * trace.wall : all.seconds();
  all.data = 1e-6 * trace.data;
  return all;
}

} // namespace hydra::inspect
