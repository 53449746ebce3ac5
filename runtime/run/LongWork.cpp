// Bytes, and the rate at which they go.
#include "runtime/run/LongWork.h"

#include "runtime/report/Units.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

using namespace hydra::runtime;
using namespace std::chrono_literals;
using hydra::report::bytesText;

namespace {

double secondsOf(LongWork::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

} // namespace

LongWork::LongWork(std::string what, uint64_t bytes, bool speaks)
    : what(std::move(what)), all(bytes), speaks(speaks), next(begun + 2s) {}

void LongWork::say(const std::string &how) const {
  const char *clear = ::isatty(STDERR_FILENO) ? "\r\033[K" : "";
  std::fprintf(stderr, "%shydra-run: %s: %s\n", clear, what.c_str(), how.c_str());
}

void LongWork::add(uint64_t bytes, Clock::time_point now) {
  done += bytes;
  if (!speaks || now < next)
    return;
  next = now + 5s;
  said = true;
  const auto rate = static_cast<uint64_t>(static_cast<double>(done) / secondsOf(now - begun));
  say(fmt::format("{:.0f}% of {}, {}/s",
                  100 * static_cast<double>(done) / static_cast<double>(std::max(all, done)),
                  bytesText(all), bytesText(rate)));
}

void LongWork::finish(Clock::time_point now) {
  if (said)
    say(fmt::format("{} in {:.1f} s", bytesText(done), secondsOf(now - begun)));
}
