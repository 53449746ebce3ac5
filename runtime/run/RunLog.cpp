// One JSON object a line; scalars for TensorBoard beside.
#include "runtime/run/RunLog.h"

#include "runtime/report/TensorBoard.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

using namespace hydra::runtime;
using hydra::support::errnoText;
using hydra::support::fail;
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

/// One line; names that are no UTF-8 are made so.
std::string lineOf(const ordered_json &event) {
  return event.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

} // namespace

RunLog::RunLog(const std::optional<std::filesystem::path> &jsonLines,
               const std::optional<std::filesystem::path> &tensorboard, bool append) {
  if (tensorboard)
    events = std::make_unique<report::TensorBoardWriter>(*tensorboard);
  if (jsonLines) {
    path = *jsonLines;
    const mode_t readWriteForAll = 0666; // less the umask
    descriptor =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC),
               readWriteForAll);
    if (descriptor < 0)
      fail("cannot write the log {}: {}", support::shownPath(path), errnoText(errno));
  }
}

RunLog::~RunLog() { closeLines(); }

void RunLog::closeLines() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

void RunLog::write(const std::string &line) {
  if (descriptor < 0)
    return;
  struct stat before = {};
  ::fstat(descriptor, &before);
  const ssize_t written = ::write(descriptor, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size()))
    return;
  const int code = written < 0 ? errno : ENOSPC;
  // Half a line would spoil what a resumed run appends.
  if (written > 0 && S_ISREG(before.st_mode) && ::ftruncate(descriptor, before.st_size) != 0)
    warn(fmt::format("the last line of {} is cut", support::shownPath(path)));
  closeLines();
  warn(fmt::format("cannot write the log {}: {}", support::shownPath(path), errnoText(code)));
}

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
  const double rate = double(report.tokens) / report.seconds;
  ordered_json line{{"event", "step"}, {"step", report.step}, {"loss", report.loss}};
  if (report.learningRate)
    line["learning_rate"] = *report.learningRate;
  if (report.gradientNorm)
    line["grad_norm"] = *report.gradientNorm;
  line["step_ms"] = report.seconds * 1e3;
  line["data_ms"] = report.dataSeconds * 1e3;
  line["tokens_per_second"] = rate;
  // A source alone needs no name.
  if (report.epochs.size() == 1)
    line["epochs"] = report.epochs[0].passes;
  else
    for (const data::Epochs &epochs : report.epochs)
      line["epochs"][epochs.source] = epochs.passes;
  for (const StepOutput &output : report.outputs)
    line["outputs"][output.name] = jsonOf(output);
  write(lineOf(line));
  addEvents([&](report::TensorBoardWriter &to) {
    to.scalar("train/loss", report.step, report.loss);
    if (report.learningRate)
      to.scalar("train/learning_rate", report.step, *report.learningRate);
    if (report.gradientNorm)
      to.scalar("train/grad_norm", report.step, *report.gradientNorm);
    to.scalar("train/tokens_per_second", report.step, rate);
    for (const StepOutput &output : report.outputs)
      if (output.shape.empty())
        to.scalar("train/" + output.name, report.step, output.values.front());
  });
}

void RunLog::skipped(int64_t step, const std::string &reason) {
  write(lineOf(ordered_json{{"event", "skipped"}, {"step", step}, {"reason", reason}}));
}

void RunLog::heldOut(int64_t step, double loss) {
  write(lineOf(ordered_json{{"event", "eval"}, {"step", step}, {"held_out_loss", loss}}));
  addEvents([&](report::TensorBoardWriter &to) { to.scalar("eval/held_out_loss", step, loss); });
}

void RunLog::checkpoint(int64_t step, const std::filesystem::path &saved) {
  write(lineOf(ordered_json{{"event", "checkpoint"}, {"step", step}, {"path", saved.string()}}));
}

void RunLog::end(int64_t step, const std::string &reason) {
  write(lineOf(ordered_json{{"event", "end"}, {"step", step}, {"reason", reason}}));
}
