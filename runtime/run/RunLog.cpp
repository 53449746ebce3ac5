// One JSON object a line; a row of a table, and events for TensorBoard beside.
#include "runtime/run/RunLog.h"

#include "runtime/report/TensorBoard.h"
#include "runtime/run/SafetyJson.h"
#include "runtime/support/Error.h"
#include "runtime/support/GradHistogram.h"
#include "runtime/support/Shown.h"
#include "runtime/text/Utf8.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

using namespace hydra::runtime;
using nlohmann::ordered_json;

namespace {

void warn(const std::string &problem) {
  std::fprintf(stderr, "hydra-run: %s; training goes on without it\n",
               hydra::support::oneLine(problem).c_str());
}

/// A number, a list, or a list of rows.
ordered_json jsonOf(const StepOutput &output) {
  if (output.shape.empty())
    return output.values.front();
  if (output.shape.size() == 1)
    return output.values;
  ordered_json rows = ordered_json::array();
  const auto columns = static_cast<ptrdiff_t>(output.shape[1]);
  for (auto row = output.values.begin(); row != output.values.end(); row += columns)
    rows.push_back(std::vector<double>(row, row + columns));
  return rows;
}

/// Seconds since 1970.
double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What is known of a step, by the names in all records.
std::vector<std::pair<std::string, double>> numbersOf(const StepReport &report) {
  std::vector<std::pair<std::string, double>> numbers = {{"loss", report.loss}};
  const auto add = [&](const char *name, std::optional<double> value) {
    if (value)
      numbers.emplace_back(name, *value);
  };
  add("loss_mean", report.lossMean);
  add("learning_rate", report.learningRate);
  add("grad_norm", report.gradientNorm);
  add("clip", report.clip);
  add("clip_percent", report.clipPercent);
  numbers.emplace_back("step_ms", report.seconds * 1e3);
  numbers.emplace_back("data_ms", report.dataSeconds * 1e3);
  numbers.emplace_back("tokens", double(report.allTokens));
  numbers.emplace_back("tokens_per_second", double(report.tokens) / report.seconds);
  const double rate = double(report.flops) / report.seconds;
  numbers.emplace_back("flops_per_second", rate);
  if (report.peakFlops > 0)
    numbers.emplace_back("mfu", rate / report.peakFlops);
  numbers.emplace_back("memory_bytes", double(report.memoryBytes));
  return numbers;
}

/// Of the table, behind that of the step.
constexpr std::array kColumns = {
    "loss",         "loss_mean", "learning_rate",     "grad_norm",
    "clip_percent", "tokens",    "tokens_per_second", "flops_per_second",
    "mfu",          "step_ms",   "data_ms",           "memory_bytes"};

/// A row of the table; what is not known, is empty.
std::string rowOf(const StepReport &report) {
  const auto numbers = numbersOf(report);
  std::string row = std::to_string(report.step);
  for (const char *column : kColumns) {
    row += ',';
    for (const auto &[name, value] : numbers)
      if (name == column)
        row += fmt::format("{}", value);
  }
  return row + '\n';
}

using Histograms = std::vector<std::pair<std::string, hydra::report::Histogram>>;

/// A list as histograms, with their tags: of gradients the exponents, on whose linear scale
/// TensorBoard can show them; of rows of several numbers, which count, the columns of each row; of
/// other lists the numbers.
Histograms histogramsOf(const StepOutput &output) {
  using namespace hydra;
  Histograms found;
  const auto add = [&](std::string tag, std::optional<report::Histogram> histogram) {
    if (histogram)
      found.emplace_back(std::move(tag), std::move(*histogram));
  };
  const std::span<const double> values = output.values;
  if (output.name.starts_with(support::kGradHistogram)) {
    add(output.name, report::histogramOfCounts(values, double(support::kFirstExponent)));
  } else if (output.shape.size() == 2 && output.shape[1] > 1) {
    const auto columns = static_cast<size_t>(output.shape[1]);
    for (size_t row = 0; row < static_cast<size_t>(output.shape[0]); ++row)
      add(fmt::format("{}/{}", output.name, row),
          report::histogramOfCounts(values.subspan(row * columns, columns)));
  } else {
    add(output.name, report::histogramOf(values));
  }
  return found;
}

/// Text as Markdown shows it unchanged: as a block of code. What is no UTF-8 is replaced, because
/// TensorBoard shows none of a run's texts where one has such bytes.
std::string verbatim(std::string_view text) {
  constexpr std::string_view indent = "    ";
  std::string block(indent);
  while (!text.empty()) {
    hydra::text::Character next;
    const bool valid = hydra::text::readUtf8(text, next) == hydra::text::Utf8::character;
    block += valid ? text.substr(0, next.bytes) : hydra::text::kReplacementCharacter;
    if (text.front() == '\n')
      block += indent;
    text.remove_prefix(next.bytes);
  }
  return block;
}

/// One line; names that are no UTF-8 are made so.
std::string lineOf(const ordered_json &event) {
  return event.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

} // namespace

RunLog::RunLog(const RunLogFiles &files, bool append) : histogramEvery(files.histogramEvery) {
  if (files.tensorboard)
    events = std::make_unique<report::TensorBoardWriter>(*files.tensorboard);
  if (files.jsonLines)
    lines = LineFile(*files.jsonLines, "the log", "{", append);
  if (files.csv) {
    const std::string header = fmt::format("step,{}\n", fmt::join(kColumns, ","));
    table = LineFile(*files.csv, "the table", std::string("0123456789") + header.front(), append);
    if (table.wasEmpty())
      table.write(header);
  }
}

RunLog::~RunLog() = default;

void RunLog::write(const std::string &line) { lines.write(line); }

void RunLog::addEvents(const std::function<void(report::TensorBoardWriter &)> &add) {
  if (!events)
    return;
  try {
    add(*events);
  } catch (const support::Error &error) {
    events.reset();
    warn(error.what());
  }
}

void RunLog::start(const std::string &plan, const std::string &model, int64_t firstStep,
                   int64_t lastStep, uint64_t tokensPerStep, const Symbols &symbols) {
  write(lineOf(ordered_json{{"event", "start"},
                            {"plan", plan},
                            {"model", model},
                            {"symbols", symbols},
                            {"step", firstStep},
                            {"last_step", lastStep},
                            {"tokens_per_step", tokensPerStep}}));
}

void RunLog::step(const StepReport &report) {
  const std::vector<std::pair<std::string, double>> numbers = numbersOf(report);
  ordered_json line{{"event", "step"}, {"step", report.step}};
  for (const auto &[name, value] : numbers)
    line[name] = value;
  for (const char *whole : {"tokens", "memory_bytes"})
    if (const auto number = line.find(whole); number != line.end())
      *number = static_cast<uint64_t>(number->get<double>());
  if (!report.hasLabels) // whose loss is 0, of nothing
    line["labels"] = 0;
  // A source alone needs no name.
  if (report.epochs.size() == 1)
    line["epochs"] = report.epochs[0].passes;
  else
    for (const data::Epochs &epochs : report.epochs)
      line["epochs"][epochs.source] = epochs.passes;
  for (const StepOutput &output : report.outputs)
    line["outputs"][output.name] = jsonOf(output);
  write(lineOf(line));
  if (table.isOpen())
    table.write(rowOf(report));
  addEvents([&](report::TensorBoardWriter &to) {
    for (const auto &[name, value] : numbers)
      to.scalar("train/" + name, report.step, value);
    for (const StepOutput &output : report.outputs)
      if (output.shape.empty())
        to.scalar("train/" + output.name, report.step, output.values.front());
      else if (report.step % histogramEvery == 0)
        for (const auto &[tag, histogram] : histogramsOf(output))
          to.histogram("train/" + tag, report.step, histogram);
  });
}

void RunLog::skipped(int64_t step, const std::string &reason) {
  write(lineOf(ordered_json{{"event", "skipped"}, {"step", step}, {"reason", reason}}));
}

void RunLog::decision(int64_t step, const std::string &what) {
  write(lineOf(ordered_json{{"event", "decision"}, {"step", step}, {"what", what}}));
}

void RunLog::anomaly(const SafetyAnomaly &anomaly) {
  // The two forms differ in all optimisations at once: none of them alone has been seen.
  write(lineOf(ordered_json{{"event", "anomaly"},
                            {"step", anomaly.step},
                            {"optimization", "*"},
                            {"anomaly_type", anomaly.type},
                            {"value", anomaly.value},
                            {"threshold", anomaly.threshold},
                            {"timestamp", now()}}));
}

void RunLog::safety(int64_t step, const SafetyState &state, const planfile::Plan &plan) {
  ordered_json line{{"event", "safety"}, {"step", step}};
  line.update(ordered_json(safetyJson(state)));
  line["optimizations"] = ordered_json::array();
  if (plan.optimizations())
    for (const planfile::Optimization *one : *plan.optimizations())
      line["optimizations"].push_back({{"name", one->name()->str()},
                                       {"fast", one->fast()->str()},
                                       {"safe", one->safe()->str()}});
  line["timestamp"] = now();
  write(lineOf(line));
}

void RunLog::evaluation(const EvaluationRecord &record) {
  constexpr double bitsOfNat = 1 / std::numbers::ln2;
  ordered_json line{
      {"event", "eval"}, {"time", now()}, {"step", record.step}, {"train_step", record.step}};
  if (record.set.empty())
    line["held_out_loss"] = record.loss;
  else
    line["set"] = record.set;
  line["loss_nats"] = record.loss;
  line["perplexity"] = std::exp(record.loss);
  line["log10_ppl"] = record.loss / std::numbers::ln10;
  if (record.bytesPerToken)
    line["bpb"] = record.loss * bitsOfNat / *record.bytesPerToken;
  line["eval_steps_total"] = record.batches * record.ranks;
  line["eval_steps_per_rank"] = record.batches;
  line["eval_split"] = record.set.empty() ? "held_out" : "all";
  line["dataset"] = record.dataset;
  line["seq_len"] = record.length;
  line["batch_size"] = record.batch;
  line["world_size"] = record.ranks;
  line["grad_accum_steps"] = record.accumulation;
  line["git_sha"] = record.revision ? ordered_json(*record.revision) : ordered_json();
  line["seconds"] = record.seconds;
  write(lineOf(line));
  addEvents([&](report::TensorBoardWriter &to) {
    const std::string name = "eval/" + (record.set.empty() ? "held_out" : record.set);
    to.scalar(name + "_loss", record.step, record.loss);
    to.scalar(name + "_perplexity", record.step, std::exp(record.loss));
    if (record.bytesPerToken)
      to.scalar(name + "_bpb", record.step, record.loss * bitsOfNat / *record.bytesPerToken);
  });
}

void RunLog::sample(int64_t step, size_t number, const std::string &prompt,
                    const std::string &text) {
  write(lineOf(
      ordered_json{{"event", "sample"}, {"step", step}, {"prompt", prompt}, {"text", text}}));
  addEvents([&](report::TensorBoardWriter &to) {
    to.text(fmt::format("samples/{}", number), step, verbatim(prompt + text));
  });
}

void RunLog::checkpoint(int64_t step, const std::filesystem::path &saved) {
  write(lineOf(ordered_json{{"event", "checkpoint"}, {"step", step}, {"path", saved.string()}}));
}

void RunLog::end(int64_t step, const std::string &reason) {
  write(lineOf(ordered_json{{"event", "end"}, {"step", step}, {"reason", reason}}));
}
