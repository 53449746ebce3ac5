// run.json and log.jsonl, then tables of them.
#include "tools/hydra-inspect/RunSummary.h"

#include "runtime/report/Table.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-inspect/LogLines.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace hydra::inspect {

using nlohmann::ordered_json;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *kHeldOut = "held out";
/// What is wrong with a folder that has other files.
constexpr const char *kNoRun = ": is not what hydra-run --run writes";

std::string readText(const fs::path &path) {
  const support::InputFile file(path);
  const std::vector<std::byte> bytes = file.readAll();
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::string words(const Json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void addSettings(const Json &values, const std::string &prefix, RunSummary &run) {
  for (const auto &[name, value] : values.items())
    run.settings[prefix + name] = words(value);
}

void readStarts(const fs::path &path, RunSummary &run) {
  const Json content = Json::parse(readText(path), support::JsonGuard(support::shownPath(path)));
  const Json &plan = content.at("plan");
  for (const auto &[name, value] : plan.items()) {
    if (!value.is_object())
      run.settings["plan " + name] = words(value);
    else
      addSettings(value,
                  name == "symbols"  ? "symbol "
                  : name == "phases" ? "phase "
                                     : "hydrac --",
                  run);
  }
  // Older runs say neither phases nor schedules.
  addSettings(content.value("schedules", Json::object()), "schedule ", run);
  for (const Json &argument : content.at("arguments")) {
    const auto all = argument.get<std::vector<std::string>>();
    if (all.at(0) == "plan")
      continue;
    std::string &given = run.settings["hydra-run " + all[0]]; // a flag may be given several times
    given +=
        (given.empty() ? "" : ", ") + fmt::format("{}", fmt::join(all.begin() + 1, all.end(), " "));
  }
  for (const Json &start : content.at("starts")) {
    const Json &machine = start.at("machine");
    run.starts.emplace_back(
        start.at("time").get<std::string>(),
        fmt::format("at step {} on {}, {}{}", start.at("step").get<int64_t>(),
                    machine.at("host").get<std::string>(),
                    start.at("device").value("device", start.at("device").value("gpu", "")),
                    start.at("ranks").get<int64_t>() > 1
                        ? fmt::format(", {} ranks", start.at("ranks").get<int64_t>())
                        : ""));
  }
}

RunStep stepOf(const Json &line) {
  const auto number = [&](const char *name) {
    const auto value = line.find(name);
    return value != line.end() && value->is_number() ? std::optional(value->get<double>())
                                                     : std::nullopt;
  };
  // A loss that is no number is null in JSON; without a label that counts there is none.
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  return {.loss = number("labels") == 0.0 ? none : number("loss").value_or(none),
          .milliseconds = number("step_ms").value_or(0),
          .tokensPerSecond = number("tokens_per_second").value_or(0),
          .learningRate = number("learning_rate"),
          .gradientNorm = number("grad_norm"),
          .utilization = number("mfu"),
          .tokens = static_cast<uint64_t>(number("tokens").value_or(0))};
}

void readEvents(const fs::path &path, RunSummary &run) {
  std::set<int64_t> skipped, checkpoints;
  forEachLine(path, kNoRun, [&](const Json &line) {
    const auto event = line.at("event").get<std::string>();
    const auto step = line.at("step").get<int64_t>();
    if (event == "start") {
      run.lastStep = line.at("last_step").get<int64_t>();
      run.ended.clear();
      // A run that was killed makes the steps behind its checkpoint once more.
      run.steps.erase(run.steps.upper_bound(step), run.steps.end());
      skipped.erase(skipped.upper_bound(step), skipped.end());
      checkpoints.erase(checkpoints.upper_bound(step), checkpoints.end());
      for (auto &[set, losses] : run.evaluations)
        losses.erase(losses.upper_bound(step), losses.end());
      std::erase_if(run.evaluations, [](const auto &set) { return set.second.empty(); });
    } else if (event == "step") {
      run.steps[step] = stepOf(line);
    } else if (event == "skipped") {
      skipped.insert(step);
    } else if (event == "checkpoint") {
      checkpoints.insert(step);
    } else if (event == "eval") {
      run.evaluations[line.value("set", kHeldOut)][step] =
          line.at("loss_nats").is_null() ? std::numeric_limits<double>::quiet_NaN()
                                         : line.at("loss_nats").get<double>();
    } else if (event == "end") {
      run.ended = line.at("reason").get<std::string>();
    }
  });
  run.skipped = static_cast<int64_t>(skipped.size());
  run.checkpoints.assign(checkpoints.begin(), checkpoints.end());
}

double medianOf(const RunSummary &run, const std::function<double(const RunStep &)> &value) {
  std::vector<double> values;
  for (const auto &[number, step] : run.steps)
    values.push_back(value(step));
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double bestLoss(const RunSummary &run) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto &[number, step] : run.steps)
    best = std::min(best, step.loss);
  return best;
}

/// Of those of the last hundred steps, or of all if there are fewer, that have a loss.
double lastMean(const RunSummary &run) {
  constexpr size_t most = 100;
  double sum = 0;
  size_t count = 0;
  for (auto [at, i] = std::pair(run.steps.rbegin(), size_t{0}); at != run.steps.rend() && i < most;
       ++at, ++i)
    if (std::isfinite(at->second.loss)) {
      sum += at->second.loss;
      ++count;
    }
  return sum / double(count); // of none no number
}

double seconds(const RunSummary &run) {
  return std::accumulate(run.steps.begin(), run.steps.end(), 0.0, [](double sum, const auto &step) {
    return sum + step.second.milliseconds * 1e-3;
  });
}

/// What came of a run: names and words.
std::vector<std::pair<std::string, std::string>> results(const RunSummary &run) {
  std::vector<std::pair<std::string, std::string>> rows;
  const int64_t made = run.steps.empty() ? 0 : run.steps.rbegin()->first;
  rows.emplace_back("steps", fmt::format("{} of {}{}", made, run.lastStep,
                                         run.ended.empty()     ? ", not ended"
                                         : run.ended == "done" ? ""
                                                               : ", ended by " + run.ended));
  rows.emplace_back("skipped", std::to_string(run.skipped));
  if (run.steps.empty())
    return rows;
  const RunStep &first = run.steps.begin()->second, &last = run.steps.rbegin()->second;
  rows.emplace_back("loss of the first step", fmt::format("{:.6f}", first.loss));
  rows.emplace_back("smallest loss", fmt::format("{:.6f}", bestLoss(run)));
  rows.emplace_back("mean of the last 100", fmt::format("{:.6f}", lastMean(run)));
  for (const auto &[set, losses] : run.evaluations) {
    const auto best =
        std::ranges::min_element(losses, {}, [](const auto &at) { return at.second; });
    rows.emplace_back(
        "loss of " + set + ", last",
        fmt::format("{:.6f} at step {}", losses.rbegin()->second, losses.rbegin()->first));
    rows.emplace_back("loss of " + set + ", smallest",
                      fmt::format("{:.6f} at step {}", best->second, best->first));
  }
  rows.emplace_back("tokens", report::countText(last.tokens));
  rows.emplace_back("seconds in steps", fmt::format("{:.1f}", seconds(run)));
  rows.emplace_back("ms/step, median", fmt::format("{:.3f}", medianOf(run, [](const auto &s) {
                                                     return s.milliseconds;
                                                   })));
  rows.emplace_back("tok/s, median", report::countText(static_cast<uint64_t>(medianOf(
                                         run, [](const auto &s) { return s.tokensPerSecond; }))));
  if (last.utilization)
    rows.emplace_back("MFU, median", fmt::format("{:.1f}%", 100 * medianOf(run, [](const auto &s) {
                                                              return s.utilization.value_or(0);
                                                            })));
  rows.emplace_back("checkpoints saved", std::to_string(run.checkpoints.size()));
  return rows;
}

std::string valueOf(const std::vector<std::pair<std::string, std::string>> &rows,
                    const std::string &name) {
  const auto row = std::ranges::find(rows, name, [](const auto &r) { return r.first; });
  return row == rows.end() ? "-" : row->second;
}

} // namespace

RunSummary readRun(const fs::path &directory) {
  RunSummary run;
  run.directory = directory.string();
  const fs::path file = directory / "run.json";
  try {
    readStarts(file, run);
  } catch (const Json::exception &error) {
    support::fail("{}{}: {}", support::shownPath(file), kNoRun, support::jsonProblem(error));
  }
  readEvents(directory / "log.jsonl", run);
  return run;
}

std::string runText(const std::vector<RunSummary> &runs, bool markdown) {
  const auto textOf = [&](const report::Table &table) {
    return markdown ? table.markdown() : table.text();
  };
  report::Table settings(3), starts(2), table(1);
  std::vector<std::string> head = {""};
  std::set<std::string> names;
  for (const RunSummary &run : runs) {
    head.push_back(run.directory);
    for (const auto &setting : run.settings)
      names.insert(setting.first);
    starts.add({run.starts.empty() ? "" : run.directory, ""});
    for (const auto &[time, where] : run.starts)
      starts.add({time, where});
  }
  settings.add(head);
  const auto settingOf = [](const RunSummary &run, const std::string &name) {
    const auto found = run.settings.find(name);
    return found == run.settings.end() ? std::string("-") : found->second;
  };
  bool differ = false;
  for (const std::string &name : names) {
    std::vector<std::string> row = {name};
    for (const RunSummary &run : runs)
      row.push_back(settingOf(run, name));
    if (runs.size() == 2 && row[1] == row[2])
      continue;
    differ = true;
    settings.add(row);
  }
  table.add(head);
  std::vector<std::vector<std::pair<std::string, std::string>>> all;
  std::vector<std::string> order;
  for (const RunSummary &run : runs) {
    all.push_back(results(run));
    for (const auto &[name, words] : all.back())
      if (std::ranges::find(order, name) == order.end())
        order.push_back(name);
  }
  for (const std::string &name : order) {
    std::vector<std::string> row = {name};
    for (const auto &rows : all)
      row.push_back(valueOf(rows, name));
    table.add(row);
  }
  const std::string title = runs.size() == 2 ? "settings that differ" : "settings";
  return fmt::format("{}:\n{}\nstarts:\n{}\nresults:\n{}", title,
                     differ ? textOf(settings) : "  none\n", textOf(starts), textOf(table));
}

std::string runJson(const std::vector<RunSummary> &runs) {
  ordered_json all = ordered_json::array();
  for (const RunSummary &run : runs) {
    ordered_json json{{"directory", run.directory}, {"settings", run.settings}};
    for (const auto &[time, where] : run.starts)
      json["starts"].push_back({{"time", time}, {"where", where}});
    json["last_step"] = run.lastStep;
    json["ended"] = run.ended;
    json["skipped_steps"] = run.skipped;
    json["checkpoints"] = run.checkpoints;
    for (const char *array :
         {"steps", "losses", "learning_rates", "grad_norms", "tokens_per_sec", "step_times"})
      json[array] = ordered_json::array();
    for (const auto &[number, step] : run.steps) {
      const auto orNull = [](std::optional<double> value) {
        return value ? ordered_json(*value) : ordered_json();
      };
      json["steps"].push_back(number);
      json["losses"].push_back(step.loss);
      json["learning_rates"].push_back(orNull(step.learningRate));
      json["grad_norms"].push_back(orNull(step.gradientNorm));
      json["tokens_per_sec"].push_back(step.tokensPerSecond);
      json["step_times"].push_back(step.milliseconds * 1e-3);
    }
    if (!run.steps.empty()) {
      json["best_loss"] = bestLoss(run);
      json["initial_loss"] = run.steps.begin()->second.loss;
      json["final_loss"] = run.steps.rbegin()->second.loss;
      json["total_tokens"] = run.steps.rbegin()->second.tokens;
    }
    for (const auto &[set, losses] : run.evaluations)
      for (const auto &[step, loss] : losses)
        json["evaluations"][set].push_back({{"step", step}, {"loss", loss}});
    all.push_back(std::move(json));
  }
  return all.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace hydra::inspect
