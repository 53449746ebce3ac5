// Flags of one group of the help, and checks of their values.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <utility>

namespace hydra {

class FlagGroup {
public:
  FlagGroup(CLI::App &app, std::string title) : app(app), title(std::move(title)) {}

  /// A flag with a value, which help calls `valueName`.
  template <typename T>
  CLI::Option *option(const std::string &flag, const char *valueName, T &value,
                      const std::string &help) {
    return app.add_option(flag, value, help)->type_name(valueName)->group(title);
  }
  /// The same with a function that takes the value.
  template <typename T>
  CLI::Option *option(const std::string &flag, const char *valueName,
                      const std::function<void(const T &)> &take, const std::string &help) {
    return app.add_option_function<T>(flag, take, help)->type_name(valueName)->group(title);
  }
  /// A flag that needs no value.
  template <typename T>
  CLI::Option *flag(const std::string &flag, T &value, const std::string &help) {
    return app.add_flag(flag, value, help)->group(title);
  }

private:
  CLI::App &app;
  std::string title;
};

// Checks, which help does not spell out.

template <typename T> CLI::Validator range(T least, T most) {
  return CLI::Range(least, most).description("");
}

/// A finite number for which `holds` is true; of others it is said that they are not `expected`.
CLI::Validator numberThat(bool (*holds)(double), const char *expected);

/// A text for which `holds` is true; `mistake` is said of others.
CLI::Validator textThat(bool (*holds)(const std::string &), const char *mistake);

/// Whole numbers, and others.
extern const CLI::Validator fromOne, fromZero, nonNegative, positive;

} // namespace hydra
