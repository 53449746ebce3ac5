// Flags of one group of the help, and checks of their values.
#include "tools/hydra-run/FlagGroup.h"

#include <fmt/core.h>

#include <cmath>

using namespace hydra;

CLI::Validator hydra::numberThat(bool (*holds)(double), const char *expected) {
  return CLI::Validator(
      [=](const std::string &text) {
        double value = 0;
        const bool good =
            CLI::detail::lexical_cast(text, value) && std::isfinite(value) && holds(value);
        return good ? std::string() : fmt::format("'{}' is not {}", text, expected);
      },
      "");
}

CLI::Validator hydra::textThat(bool (*holds)(const std::string &), const char *mistake) {
  return CLI::Validator(
      [=](const std::string &text) {
        return holds(text) ? std::string() : fmt::format("'{}' {}", text, mistake);
      },
      "");
}

static constexpr int64_t kMost = int64_t{1} << 40;

const CLI::Validator hydra::fromOne = range(int64_t{1}, kMost);
const CLI::Validator hydra::fromZero = range(int64_t{0}, kMost);
const CLI::Validator hydra::nonNegative =
    numberThat([](double x) { return x >= 0; }, "a number from 0");
const CLI::Validator hydra::positive =
    numberThat([](double x) { return x > 0; }, "a number above 0");
