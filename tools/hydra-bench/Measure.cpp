// Figures are those that the programs write as JSON; lists of named things become objects, so that
// a table can ask for one of them.
#include "tools/hydra-bench/Measure.h"

#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "tools/hydra-bench/Child.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <sstream>
#include <tuple>

namespace hydra::bench {

using support::fail;

namespace {

/// A row cannot be measured; others can.
struct RowError {
  std::string status, reason;
};

Json readJson(const std::filesystem::path &path) {
  const std::vector<std::byte> bytes = support::InputFile(path).readAll();
  const auto *begin = reinterpret_cast<const char *>(bytes.data());
  return Json::parse(begin, begin + bytes.size());
}

/// Lists of objects with a name, or the name of a stage, become objects, at any depth.
Json byName(const Json &json) {
  if (json.is_object()) {
    Json out = Json::object();
    for (const auto &[name, value] : json.items())
      out[name] = byName(value);
    return out;
  }
  if (!json.is_array())
    return json;
  const auto keyOf = [](const Json &one) { return one.contains("stage") ? "stage" : "name"; };
  const bool named = !json.empty() && std::ranges::all_of(json, [&](const Json &one) {
    return one.is_object() && one.contains(keyOf(one)) && one[keyOf(one)].is_string();
  });
  Json out = named ? Json::object() : Json::array();
  for (const Json &one : json) {
    if (!named) {
      out.push_back(byName(one));
      continue;
    }
    Json rest = byName(one);
    rest.erase(keyOf(one));
    out[one[keyOf(one)].get<std::string>()] = std::move(rest);
  }
  return out;
}

/// `reason` in the words of hydrac and hydra-run.
std::string statusOf(const std::string &reason) {
  for (const char *words : {"the plan needs ", " of memory (", " of GPU memory (", "refuses "})
    if (reason.find(words) != std::string::npos && reason.find("ended by") == std::string::npos)
      return "does not fit";
  return "failed";
}

ChildResult runOrThrow(const std::filesystem::path &program,
                       const std::vector<std::string> &arguments, double seconds) {
  ChildResult result = runChild(program, arguments, seconds);
  if (result.status == 0)
    return result;
  std::string reason = result.reason();
  const std::string name = program.filename().string() + ": ";
  if (reason.starts_with(name))
    reason.erase(0, name.size());
  throw RowError{statusOf(reason), name + reason};
}

/// The number that the last of such flags says; 1 where none does.
double numberOf(const std::vector<std::string> &flags, const std::string &name) {
  double number = 1;
  for (const std::string &flag : flags)
    if (flag.starts_with(name + "="))
      number = std::strtod(flag.c_str() + name.size() + 1, nullptr);
  return number;
}

/// The line of `model.mlir:12`.
int64_t lineOf(const std::string &place) {
  return std::strtoll(place.c_str() + place.rfind(':') + 1, nullptr, 10);
}

/// The outermost part of `layers.3.mlp.down`.
std::string partOf(const std::string &path) { return path.substr(0, path.find('.')); }

/// Tells apart what one line of a model has become: matmuls of an attention that is written out.
class Order {
public:
  /// The number of a step, from 1, among those of its program with this name, class and path in
  /// the model, as they come.
  int64_t numberOf(const Json &event) {
    const Json &args = event.at("args");
    std::string alike = event.at("name").get<std::string>();
    for (const char *what : {"program", "phase", "class", "model", "path"})
      alike += "\n" + args.at(what).get<std::string>();
    std::vector<std::string> &list = steps[alike];
    const std::string &step = args.at("step").get_ref<const std::string &>();
    const auto found = std::ranges::find(list, step);
    const auto number = found - list.begin();
    if (found == list.end())
      list.push_back(step);
    return number + 1;
  }

private:
  std::map<std::string, std::vector<std::string>> steps; // by what they have in common
};

/// Of a time line: microseconds of a run by phase, class, name, line, part of the model and number
/// of the step.
Json profileOf(const Json &trace) {
  using Key = std::tuple<std::string, std::string, std::string, int64_t, std::string, int64_t>;
  std::map<Key, std::pair<double, double>> sums; // calls, microseconds
  Order order;
  std::map<double, int> runs;
  for (const Json &event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X" || !event.contains("args") || !event["args"].contains("step"))
      continue;
    const Json &args = event["args"];
    auto &[calls, microseconds] =
        sums[{args.at("phase"), args.at("class"), event.at("name").get<std::string>(),
              lineOf(args.at("model")), partOf(args.at("path")), order.numberOf(event)}];
    calls += 1;
    microseconds += event.at("dur").get<double>();
    ++runs[args.at("correlation").get<double>()];
  }
  const auto count = static_cast<double>(std::max<size_t>(runs.size(), 1));
  Json steps = Json::array();
  for (const auto &[key, sum] : sums) {
    const auto &[phase, kind, name, line, part, number] = key;
    steps.push_back({{"phase", phase},
                     {"class", kind},
                     {"name", name},
                     {"line", line},
                     {"part", part},
                     {"number", number},
                     {"calls", sum.first / count},
                     {"us", sum.second / count}});
  }
  return {{"runs", runs.size()}, {"steps", std::move(steps)}};
}

} // namespace

Json statisticsOf(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const size_t n = seconds.size();
  double mean = 0, squares = 0;
  for (const double time : seconds)
    mean += time / static_cast<double>(n);
  for (const double time : seconds)
    squares += (time - mean) * (time - mean);
  const auto rank = static_cast<size_t>(std::ceil(0.99 * static_cast<double>(n)));
  return {{"median_ms", 1e3 * (seconds[(n - 1) / 2] + seconds[n / 2]) / 2},
          {"mean_ms", 1e3 * mean},
          {"deviation_ms", n > 1 ? 1e3 * std::sqrt(squares / static_cast<double>(n - 1)) : 0.0},
          {"min_ms", 1e3 * seconds.front()},
          {"max_ms", 1e3 * seconds.back()},
          {"p99_ms", 1e3 * seconds[rank - 1]}};
}

Json Measurer::measure(const Case &one, const std::filesystem::path &folder) {
  Json row = {{"name", one.name()}, {"axes", one.axes}, {"status", "ok"}};
  try {
    compile(one, folder / "plan.fb", row);
    if (definition.steps > 0)
      run(one, folder, row);
  } catch (const RowError &error) {
    row["status"] = error.status;
    row["reason"] = error.reason;
  } catch (const Json::exception &error) {
    row["status"] = "failed";
    row["reason"] = support::jsonProblem(error);
  }
  return row;
}

void Measurer::compile(const Case &one, const std::filesystem::path &plan, Json &row) {
  std::vector<std::string> flags = {one.model.string()};
  flags.insert(flags.end(), one.hydrac.begin(), one.hydrac.end());
  flags.insert(flags.end(), {"--memory-report=json", "--cost-report=json"});
  if (definition.steps > 0)
    flags.insert(flags.end(), {"-o", plan.string()});
  if (flags != compiled) {
    compiled.clear();
    const auto begin = std::chrono::steady_clock::now();
    const ChildResult result = runOrThrow(programs.hydrac, flags, programs.seconds);
    const auto end = std::chrono::steady_clock::now();
    std::istringstream reports(result.output);
    Json memory, cost;
    reports >> memory >> cost;
    predicted = {{"compile_seconds", std::chrono::duration<double>(end - begin).count()},
                 {"tokens", numberOf(flags, "--batch") * numberOf(flags, "--seq") *
                                numberOf(flags, "--accum")},
                 {"memory", byName(memory)},
                 {"cost", byName(cost)},
                 {"program", byName(memory.at("programs").at(0))}};
    predicted["program"].update(byName(cost.at("programs").at(0)));
    const double tokens = predicted["tokens"].get<double>();
    const double microseconds = predicted["cost"]["step"]["microseconds"].get<double>();
    if (microseconds > 0)
      predicted["predicted"] = {{"tokens_per_second", 1e6 * tokens / microseconds}};
    compiled = flags;
  }
  row.update(predicted);
}

void Measurer::run(const Case &one, const std::filesystem::path &folder, Json &row) {
  const std::filesystem::path times = folder / "times.json", trace = folder / "trace.json";
  std::vector<std::string> flags = {(folder / "plan.fb").string(),
                                    fmt::format("--bench={}", definition.steps),
                                    "--bench-json=" + times.string()};
  const bool saysWarmUp = std::ranges::any_of(
      one.run, [](const std::string &flag) { return flag.starts_with("--bench-warmup"); });
  if (!saysWarmUp)
    flags.push_back(fmt::format("--bench-warmup={}", definition.warmUp));
  if (definition.profile)
    flags.push_back("--profile=" + trace.string());
  flags.insert(flags.end(), one.run.begin(), one.run.end());
  runOrThrow(programs.run, flags, programs.seconds);

  const Json json = readJson(times);
  const auto steps = json.at("step_seconds").get<std::vector<double>>();
  const auto warmUp = json.at("warm_up_seconds").get<std::vector<double>>();
  const auto sum = [](const std::vector<double> &list) {
    double total = 0;
    for (const double time : list)
      total += time;
    return total;
  };
  Json bench = statisticsOf(steps);
  bench["steps"] = steps.size();
  bench["warm_up_s"] = sum(warmUp);
  bench["total_s"] = sum(warmUp) + sum(steps);
  for (const char *name :
       {"tokens", "flops", "predicted_microseconds", "arena_bytes", "process_bytes"})
    bench[name] = json.at(name);
  // What GPUs tell of themselves; a number may be null.
  for (const char *name : {"clock_mhz", "clock_min_mhz", "clock_max_mhz", "tflops_per_ghz", "watts",
                           "joules", "celsius", "throttled"})
    if (json.contains(name) && !json.at(name).is_null())
      bench[name] = json.at(name);
  const double median = bench["median_ms"].get<double>() / 1e3;
  bench["tokens_per_second"] = json.at("tokens").get<double>() / median;
  bench["flops_per_second"] = json.at("flops").get<double>() / median;
  row["bench"] = std::move(bench);
  if (definition.profile)
    row["profile"] = profileOf(readJson(trace));
}

} // namespace hydra::bench
