// The live line and the plain lines.
#include "runtime/run/Progress.h"

#include "runtime/report/Units.h"
#include "runtime/run/StandardOutput.h"

#include <fmt/core.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>

using namespace hydra::report;
using namespace hydra::runtime;

namespace {

/// `1h 02m`, `3m 07s`, `42s`.
std::string durationText(double seconds) {
  const auto total = static_cast<int64_t>(seconds + 0.5);
  const int64_t hours = total / 3600, minutes = total / 60 % 60;
  if (hours > 0)
    return fmt::format("{}h {:02}m", hours, minutes);
  if (minutes > 0)
    return fmt::format("{}m {:02}s", minutes, total % 60);
  return fmt::format("{}s", total);
}

size_t terminalWidth() {
  winsize size = {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// A step in which no label counts has none.
std::string lossText(const StepReport &report, int digits) {
  return report.hasLabels || !std::isfinite(report.loss)
             ? fmt::format("{:.{}f}", report.loss, digits)
             : "-";
}

} // namespace

std::string Progress::fields(const StepReport &report) const {
  std::string text =
      fmt::format("{:.1f} ms  {} tok/s", report.seconds * 1e3,
                  countText(static_cast<uint64_t>(double(report.tokens) / report.seconds)));
  if (report.predictedSeconds > 0)
    text += fmt::format("  {:.0f}% of limit", 100 * report.predictedSeconds / report.seconds);
  return text;
}

std::string Progress::liveText() const {
  std::string text =
      fmt::format("step {}/{}  loss {}", last.step, options.lastStep, lossText(last, 4));
  if (heldOutLoss)
    text += fmt::format("  held-out {:.4f}", *heldOutLoss);
  StepReport mean = last;
  mean.seconds = meanSeconds;
  return fmt::format("{}  {}  {}  ETA {}", text, fields(mean), bytesText(options.memoryBytes),
                     durationText(secondsLeft()));
}

double Progress::secondsLeft() const {
  return last.predictedSecondsLeft > 0 ? meanFactor * last.predictedSecondsLeft
                                       : meanSeconds * double(options.lastStep - last.step);
}

void Progress::clearLive() {
  if (liveShown)
    say("\r\033[K");
  liveShown = false;
}

void Progress::step(const StepReport &report) {
  const auto enter = [](double &mean, double value) {
    constexpr double memory = 0.9; // of the running mean
    mean = mean == 0 ? value : memory * mean + (1 - memory) * value;
  };
  enter(meanSeconds, report.seconds);
  if (report.predictedSeconds > 0)
    enter(meanFactor, report.seconds / report.predictedSeconds);
  last = report;
  if (!options.live) {
    if (report.step % options.every == 0 || report.step == options.lastStep ||
        report.step == options.firstStep + 1)
      say(fmt::format("step {:>{}}  loss {}  {}\n", report.step,
                      std::to_string(options.lastStep).size(), lossText(report, 6),
                      fields(report)));
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  constexpr std::chrono::milliseconds pause{100};
  if (liveShown && now - drawn < pause && report.step != options.lastStep)
    return;
  drawn = now;
  say("\r" + liveText().substr(0, terminalWidth() - 1) + "\033[K");
  liveShown = true;
}

void Progress::evaluation(int64_t step, const std::string &name, double loss,
                          const std::string &more) {
  if (name.empty())
    heldOutLoss = loss;
  note(fmt::format("step {}  {} {:.6f}  ({})", step,
                   name.empty() ? "held-out loss" : "loss of " + name, loss, more));
}

void Progress::note(const std::string &text) {
  clearLive();
  say(text + "\n");
}

void Progress::finish() {
  if (liveShown)
    say("\n");
  liveShown = false;
}
