// Lines of a log and of pretests, then tables of them.
#include "tools/hydra-inspect/SafetyLog.h"

#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-inspect/LogLines.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace hydra::inspect {

using nlohmann::ordered_json;
using report::Table;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// What is wrong with a file that has other lines.
constexpr const char *kNoLog = ": is not what hydra-run --log writes";

/// What is no number is null in JSON.
double number(const Json &line, const char *name) {
  const Json &value = line.at(name);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

void takeStanding(const Json &line, SafetyLog &log) {
  report::SafetyStanding &standing = log.standing;
  standing.items.clear();
  for (const Json &item : line.at("optimizations"))
    standing.items.push_back({item.at("name").get<std::string>(),
                              item.at("fast").get<std::string>(),
                              item.at("safe").get<std::string>()});
  const auto without = line.value("without", std::string());
  const auto step = line.at("step").get<int64_t>();
  standing.status = line.at("status").get<std::string>();
  standing.detail = line.at("reason").get<std::string>();
  if (standing.detail.empty())
    standing.detail = fmt::format("for {} steps", step - line.value("enabled_at_step", step));
  if (standing.status == "MONITORING" || standing.status == "ENABLED")
    for (report::OptimizationItem &item : standing.items)
      if (!without.empty() && item.name == without) {
        item.status = "FAILED";
        item.detail = line.at("without_reason").get<std::string>();
      }
  if (log.changes.empty() || log.changes.back().status != standing.status)
    log.changes.push_back({step, standing.status, line.at("reason").get<std::string>()});
}

/// A run that goes on makes the steps behind its checkpoint once more.
template <typename T> void dropBehind(std::vector<T> &list, int64_t step) {
  std::erase_if(list, [&](const T &one) { return one.step > step; });
}

void readEvents(const fs::path &path, SafetyLog &log) {
  forEachLine(path, kNoLog, [&](const Json &line) {
    const auto event = line.at("event").get<std::string>();
    if (event == "start") {
      dropBehind(log.changes, line.at("step").get<int64_t>());
      dropBehind(log.anomalies, line.at("step").get<int64_t>());
    } else if (event == "safety") {
      takeStanding(line, log);
    } else if (event == "anomaly") {
      log.anomalies.push_back({line.at("step").get<int64_t>(),
                               line.at("optimization").get<std::string>(),
                               line.at("anomaly_type").get<std::string>(), number(line, "value"),
                               number(line, "threshold"), number(line, "timestamp")});
    }
  });
  for (const SafetyLog::Anomaly &anomaly : log.anomalies)
    ++log.standing.anomalies[anomaly.type];
}

SafetyLog::Form formOf(const Json &form) {
  return {number(form, "loss"), number(form, "grad_norm"), number(form, "step_ms"),
          form.at("memory_bytes").get<uint64_t>()};
}

void readPretests(const fs::path &path, SafetyLog &log) {
  std::error_code code;
  if (!fs::exists(path, code))
    return;
  forEachLine(path, kNoLog, [&](const Json &line) {
    std::string problem = line.value("error_message", std::string());
    std::vector<SafetyLog::Alone> alone;
    for (const Json &result : line.at("results")) {
      const auto message = result.at("error_message").get<std::string>();
      if (result.contains("without"))
        alone.push_back({result.at("optimization").get<std::string>(),
                         result.at("status").get<std::string>(), message,
                         formOf(result.at("without"))});
      else if (!line.contains("error_message")) // all were tried at once
        problem = message;
    }
    log.pretests.push_back(
        {line.at("timestamp").get<std::string>(), line.at("config_hash").get<std::string>(),
         line.at("gpu_name").get<std::string>(), problem, line.at("step").get<int64_t>(),
         formOf(line.at("fast")), formOf(line.at("safe")), std::move(alone)});
  });
}

} // namespace

SafetyLog readSafetyLog(const fs::path &path) {
  std::error_code code;
  const bool isRun = fs::is_directory(path, code);
  SafetyLog log;
  log.file = path.string();
  readEvents(isRun ? path / "log.jsonl" : path, log);
  if (log.changes.empty())
    support::fail("{}: tells of no safe form; hydrac --safe makes plans that have one",
                  support::shownPath(path));
  readPretests(isRun ? path / "pretests.jsonl" : fs::path(path.string() + ".pretests.jsonl"), log);
  return log;
}

std::string safetyText(const SafetyLog &log, bool markdown) {
  const auto textOf = [&](const Table &table) {
    return markdown ? table.markdown() : table.text();
  };
  std::string text =
      fmt::format("{}: {}\n{}", log.file, report::anomaliesText(log.standing.anomalies),
                  textOf(report::safetyTable(log.standing)));
  Table changes(3);
  changes.add({"step", "status", "reason"});
  for (const SafetyLog::Change &change : log.changes)
    changes.add({std::to_string(change.step), change.status, change.reason});
  text += "\n" + textOf(changes);
  if (!log.anomalies.empty()) {
    Table table(2);
    table.add({"step", "anomaly", "value", "limit"});
    for (const SafetyLog::Anomaly &one : log.anomalies)
      table.add({std::to_string(one.step), one.type, fmt::format("{:g}", one.value),
                 fmt::format("{:g}", one.threshold)});
    text += "\n" + textOf(table);
  }
  if (!log.pretests.empty()) {
    Table table(2);
    table.add({"pretest", "form", "step", "loss", "gradient norm", "ms", "memory", "result"});
    for (const SafetyLog::Pretest &one : log.pretests) {
      const auto row = [&](const std::string &name, const SafetyLog::Form &form,
                           const std::string &result) {
        table.add({one.time, name, std::to_string(one.step), fmt::format("{:.6f}", form.loss),
                   fmt::format("{:g}", form.gradientNorm), fmt::format("{:.3f}", form.milliseconds),
                   report::bytesText(form.bytes), result});
      };
      row("fast", one.fast, one.problem.empty() ? "passed" : "failed: " + one.problem);
      row("safe", one.safe, "");
      for (const SafetyLog::Alone &alone : one.alone)
        row("without " + alone.name, alone.without,
            alone.message.empty() ? alone.status : alone.status + ": " + alone.message);
    }
    text += "\n" + textOf(table);
  }
  return text;
}

std::string safetyLogJson(const SafetyLog &log) {
  ordered_json json{{"file", log.file},
                    {"status", log.standing.status},
                    {"detail", log.standing.detail},
                    {"optimizations", ordered_json::array()},
                    {"anomaly_counts", log.standing.anomalies},
                    {"changes", ordered_json::array()},
                    {"anomalies", ordered_json::array()},
                    {"pretests", ordered_json::array()}};
  for (const report::OptimizationItem &item : log.standing.items)
    json["optimizations"].push_back(
        {{"name", item.name}, {"fast", item.fast}, {"safe", item.safe}});
  for (const SafetyLog::Change &change : log.changes)
    json["changes"].push_back(
        {{"step", change.step}, {"status", change.status}, {"reason", change.reason}});
  for (const SafetyLog::Anomaly &one : log.anomalies)
    json["anomalies"].push_back({{"step", one.step},
                                 {"optimization", one.optimization},
                                 {"anomaly_type", one.type},
                                 {"value", one.value},
                                 {"threshold", one.threshold},
                                 {"timestamp", one.timestamp}});
  const auto formJson = [](const SafetyLog::Form &form) {
    return ordered_json{{"loss", form.loss},
                        {"grad_norm", form.gradientNorm},
                        {"step_ms", form.milliseconds},
                        {"memory_bytes", form.bytes}};
  };
  for (const SafetyLog::Pretest &one : log.pretests) {
    ordered_json results = ordered_json::array();
    for (const SafetyLog::Alone &alone : one.alone)
      results.push_back({{"optimization", alone.name},
                         {"status", alone.status},
                         {"error_message", alone.message},
                         {"without", formJson(alone.without)}});
    json["pretests"].push_back({{"timestamp", one.time},
                                {"step", one.step},
                                {"config_hash", one.configuration},
                                {"gpu_name", one.device},
                                {"error_message", one.problem},
                                {"fast", formJson(one.fast)},
                                {"safe", formJson(one.safe)},
                                {"results", std::move(results)}});
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace hydra::inspect
