// One event a line, written as they come: a trace can have a million.
#include "runtime/run/ChromeTrace.h"

#include "runtime/plan/PlanFile.h"
#include "runtime/report/LiveMemory.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/PlanNodes.h"
#include "runtime/support/AtomicFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace hydra::planfile;

namespace hydra::runtime {

namespace {

using Json = nlohmann::json;

constexpr int kProcess = 1;
constexpr uint32_t kPhaseRow = 1000; // rows of phases come behind those of streams
constexpr uint32_t kHostRow = 2000;

class Writer {
public:
  Writer(const std::filesystem::path &path, const PlanFile &file, const TimeLine &line)
      : plan(file.plan()), runs(line.runs), origin(beginOf(line)), out(path) {
    write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    name("process_name", 0, file.origin());
    std::map<uint32_t, bool> streams; // whether kernels ran on it
    for (const StepRun &run : runs)
      streams[run.stream] |= isKernel(run);
    for (const auto &[stream, ofDevice] : streams)
      name("thread_name", stream, ofDevice ? "stream " + std::to_string(stream) : "steps");
    for (const StepRun &run : runs)
      writeStep(run);
    writePhases();
    writeHost(line);
    writeMemory();
    write("\n]}\n");
    out.commit();
  }

private:
  void write(const std::string &text) { out.write(std::as_bytes(std::span(text))); }
  void event(const Json &json) {
    write((first ? "" : ",\n") + json.dump(-1, ' ', false, Json::error_handler_t::replace));
    first = false;
  }
  void name(const char *what, uint32_t row, const std::string &text) {
    event(
        {{"ph", "M"}, {"pid", kProcess}, {"tid", row}, {"name", what}, {"args", {{"name", text}}}});
  }
  static double micros(double seconds) { return 1e6 * seconds; }
  double since(double seconds) const { return micros(seconds - origin); }

  static double beginOf(const TimeLine &line) {
    double begin = std::numeric_limits<double>::infinity();
    for (const StepRun &run : line.runs)
      begin = std::min(begin, run.begin);
    for (const HostRun &run : line.launches)
      begin = std::min(begin, run.begin);
    for (const StepSample &sample : line.samples)
      begin = std::min(begin, sample.end - sample.wall);
    return std::isfinite(begin) ? begin : 0;
  }

  static bool isKernel(const StepRun &run) { return !run.kernel.empty(); }

  /// As PyTorch's profiler calls them.
  static const char *categoryOf(const StepRun &run) {
    if (!isKernel(run))
      return "cpu_op";
    if (run.step->op_class() == OpClass::collective)
      return "nccl";
    return run.kernel == "copy" ? "gpu_memcpy" : "kernel";
  }

  void writeStep(const StepRun &run) {
    const Step &step = *run.step;
    const Location &at = *plan.locations()->Get(step.location());
    Json args = {{"program", plan.programs()->Get(run.program)->name()->str()},
                 {"step", placesOf(run.program)[run.step]},
                 {"phase", EnumNamePhase(step.phase())},
                 {"class", EnumNameOpClass(step.op_class())},
                 {"layer", step.layer()},
                 {"path", report::pathText(plan, step.path())},
                 {"model", plan.files()->Get(at.file())->str() + ":" + std::to_string(at.line())},
                 {"flops", step.cost()->flops()},
                 {"bytes", step.cost()->bytes()},
                 {"stream", run.stream},
                 {"correlation", run.run}};
    if (isKernel(run)) {
      args["kernel"] = run.kernel;
      args["grid"] = run.grid;
      args["block"] = run.block;
    }
    if (run.copied > 0)
      args["copied"] = run.copied;
    event({{"ph", "X"},
           {"cat", categoryOf(run)},
           {"name", step.name()->str()},
           {"ts", since(run.begin)},
           {"dur", micros(run.end - run.begin)},
           {"pid", kProcess},
           {"tid", run.stream},
           {"args", std::move(args)}});
  }

  /// Where each step of a program stands in its tree of blocks.
  std::map<const Step *, std::string> &placesOf(uint32_t program) {
    auto [known, isNew] = places.try_emplace(program);
    if (isNew)
      for (const report::PlanNode &node : report::nodesOf(plan, *plan.programs()->Get(program)))
        if (const Step *step = node.block->node_as_Step())
          known->second[step] = node.place;
    return known->second;
  }

  /// From the first step of a phase in a run of a program to its last.
  void writePhases() {
    std::map<std::tuple<uint32_t, uint32_t, Phase>, std::pair<double, double>> spans;
    for (const StepRun &run : runs) {
      auto [span, isNew] =
          spans.try_emplace({run.run, run.program, run.step->phase()}, run.begin, run.end);
      span->second.second = std::max(span->second.second, run.end);
    }
    std::array<bool, static_cast<size_t>(Phase::MAX) + 1> named{};
    for (const auto &[key, span] : spans) {
      const Phase phase = std::get<Phase>(key);
      const uint32_t row = kPhaseRow + static_cast<uint32_t>(phase);
      if (!std::exchange(named[static_cast<size_t>(phase)], true))
        name("thread_name", row, std::string("phase ") + EnumNamePhase(phase));
      event({{"ph", "X"},
             {"cat", "user_annotation"},
             {"name", rangeOf(phase)},
             {"ts", since(span.first)},
             {"dur", micros(span.second - span.first)},
             {"pid", kProcess},
             {"tid", row}});
    }
  }
  std::string rangeOf(Phase phase) const {
    if (phase == Phase::forward && isForwardPlan(plan))
      return "FORWARD_INFER";
    std::string text = EnumNamePhase(phase);
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
  }

  /// Steps as a user waits for them, and the launches of graphs, each with a flow to the first that
  /// runs of it.
  void writeHost(const TimeLine &line) {
    if (line.samples.empty() && line.launches.empty())
      return;
    name("thread_name", kHostRow, "host");
    for (size_t i = 0; i < line.samples.size(); ++i) {
      const StepSample &one = line.samples[i];
      hostEvent("user_annotation", fmt::format("STEP {}", i), one.end - one.wall, one.end,
                {{"data_us", micros(one.data)}});
    }
    std::map<uint32_t, const StepRun *> first;
    for (const StepRun &run : runs)
      first.try_emplace(run.run, &run);
    for (const HostRun &one : line.launches) {
      hostEvent("cuda_driver", one.name, one.begin, one.end,
                {{"program", plan.programs()->Get(one.program)->name()->str()},
                 {"correlation", one.run}});
      const auto begun = first.find(one.run);
      if (one.run == 0 || begun == first.end())
        continue;
      flow("s", one.run, one.begin, kHostRow);
      flow("f", one.run, begun->second->begin, begun->second->stream);
    }
  }
  void hostEvent(const char *category, const std::string &text, double begin, double end,
                 Json args) {
    event({{"ph", "X"},
           {"cat", category},
           {"name", text},
           {"ts", since(begin)},
           {"dur", micros(end - begin)},
           {"pid", kProcess},
           {"tid", kHostRow},
           {"args", std::move(args)}});
  }
  void flow(const char *end, uint32_t number, double at, uint32_t row) {
    Json json = {{"ph", end},       {"cat", "ac2g"},   {"name", "ac2g"}, {"id", number},
                 {"ts", since(at)}, {"pid", kProcess}, {"tid", row}};
    if (end[0] == 'f')
      json["bp"] = "e"; // bound to what is around it, not to what follows
    event(json);
  }

  /// The transient bytes that are live when a step begins.
  void writeMemory() {
    std::map<uint32_t, std::map<const Step *, uint64_t>> liveAt; // by program
    for (const StepRun &run : runs) {
      auto [known, isNew] = liveAt.try_emplace(run.program);
      if (isNew)
        known->second = liveBytes(*plan.programs()->Get(run.program));
      if (const auto bytes = known->second.find(run.step); bytes != known->second.end())
        event({{"ph", "C"},
               {"name", "live transient bytes"},
               {"ts", since(run.begin)},
               {"pid", kProcess},
               {"args", {{"bytes", bytes->second}}}});
    }
  }
  /// Of steps that stand in the program's own list.
  std::map<const Step *, uint64_t> liveBytes(const Program &program) const {
    const report::LiveMemory memory = report::liveMemory(plan, program);
    std::vector<int64_t> change(memory.blocks + 1, 0);
    for (const report::LivePiece &piece : memory.pieces) {
      const auto bytes = static_cast<int64_t>(piece.end - piece.begin);
      change[piece.first] += bytes;
      change[std::min(piece.last + 1, memory.blocks)] -= bytes;
    }
    std::map<const Step *, uint64_t> live;
    int64_t now = 0;
    for (flatbuffers::uoffset_t i = 0; i < program.blocks()->size(); ++i) {
      now += change[i];
      if (const Step *step = program.blocks()->Get(i)->node_as_Step())
        live[step] = static_cast<uint64_t>(now);
    }
    return live;
  }

  const Plan &plan;
  bool first = true;
  std::span<const StepRun> runs;
  double origin;                                                  // of all times
  std::map<uint32_t, std::map<const Step *, std::string>> places; // by program
  support::AtomicFile out;
};

} // namespace

void writeChromeTrace(const std::filesystem::path &path, const PlanFile &file,
                      const TimeLine &line) {
  Writer(path, file, line);
}

} // namespace hydra::runtime
