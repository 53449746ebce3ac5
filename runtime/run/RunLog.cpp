// One JSON object a line; scalars for TensorBoard beside.
#include "runtime/run/RunLog.h"

#include "runtime/report/TensorBoard.h"
#include "runtime/support/Error.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <utility>

using namespace hydra::runtime;
using hydra::support::fail;
using nlohmann::ordered_json;

RunLog::RunLog(const std::optional<std::filesystem::path> &jsonLines,
               const std::optional<std::filesystem::path> &tensorboard, bool append) {
  if (jsonLines) {
    path = *jsonLines;
    file.open(path, append ? std::ios::app : std::ios::trunc);
    if (!file)
      fail("cannot write the log {}: {}", path.string(), support::errnoText(errno));
  }
  if (tensorboard)
    events = std::make_unique<report::TensorBoardWriter>(*tensorboard);
}

RunLog::~RunLog() = default;

void RunLog::write(const std::string &line) {
  if (path.empty())
    return;
  errno = 0;
  file << line << '\n' << std::flush;
  if (!file)
    fail("cannot write the log {}: {}", path.string(), support::errnoText(errno));
}

void RunLog::start(const std::string &plan, const std::string &model, int64_t firstStep,
                   int64_t lastStep, uint64_t tokensPerStep) {
  write(ordered_json{{"event", "start"},
                     {"plan", plan},
                     {"model", model},
                     {"step", firstStep},
                     {"last_step", lastStep},
                     {"tokens_per_step", tokensPerStep}}
            .dump());
}

void RunLog::step(const StepReport &report) {
  const double rate = double(report.tokens) / report.seconds;
  ordered_json line{{"event", "step"}, {"step", report.step}, {"loss", report.loss}};
  if (report.learningRate)
    line["learning_rate"] = *report.learningRate;
  if (report.gradientNorm)
    line["grad_norm"] = *report.gradientNorm;
  line["step_ms"] = report.seconds * 1e3;
  line["data_ms"] = report.dataSeconds * 1e3;
  line["tokens_per_second"] = rate;
  write(line.dump());
  if (!events)
    return;
  events->scalar("train/loss", report.step, report.loss);
  if (report.learningRate)
    events->scalar("train/learning_rate", report.step, *report.learningRate);
  if (report.gradientNorm)
    events->scalar("train/grad_norm", report.step, *report.gradientNorm);
  events->scalar("train/tokens_per_second", report.step, rate);
}

void RunLog::heldOut(int64_t step, double loss) {
  write(ordered_json{{"event", "eval"}, {"step", step}, {"held_out_loss", loss}}.dump());
  if (events)
    events->scalar("eval/held_out_loss", step, loss);
}

void RunLog::checkpoint(int64_t step, const std::filesystem::path &saved) {
  write(ordered_json{{"event", "checkpoint"}, {"step", step}, {"path", saved.string()}}.dump());
}

void RunLog::end(int64_t step, const std::string &reason) {
  write(ordered_json{{"event", "end"}, {"step", step}, {"reason", reason}}.dump());
}
