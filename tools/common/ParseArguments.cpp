// What CLI11 finds wrong, in one line.
#include "tools/common/ParseArguments.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/Suggest.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace hydra;

namespace {

/// Of `--bench 3`, whose value stands behind `=` because it need not be there, what to write; empty
/// where there is none such.
std::string behindFlag(const CLI::App &app, std::span<const char *const> words) {
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string_view flag = words[i], value = words[i + 1];
    const CLI::Option *const option =
        flag.starts_with("--") ? app.get_option_no_throw(std::string(flag)) : nullptr;
    const bool mayHave =
        option && option->get_items_expected_max() == 0 && !option->get_type_name().empty();
    if (mayHave && !value.empty() && value.find_first_not_of("0123456789") == value.npos)
      return fmt::format("'{}' was not expected behind {}; its value stands behind =: {}={}",
                         support::shown(value), flag, flag, support::shown(value));
  }
  return "";
}

/// Of the options of a program, and of the command that is given, what is wrong with the first one
/// of which `problemOf` does not return an empty text.
template <typename Problem>
std::string firstProblem(const CLI::App &app, const Problem &problemOf) {
  for (const CLI::Option *option : app.get_options())
    if (std::string problem = problemOf(*option); !problem.empty())
      return problem;
  for (const CLI::App *command : app.get_subcommands())
    if (std::string problem = firstProblem(*command, problemOf); !problem.empty())
      return problem;
  return "";
}

/// A flag that has one value, or none, is given more than once. CLI11 would add up the numbers of
/// `--bench=2 --bench=3`.
std::string givenAgain(const CLI::Option &option) {
  const size_t times = option.results().size();
  if (times < 2 || option.get_items_expected_max() > 1)
    return "";
  return fmt::format("{} is given {}; expected once", option.get_name(),
                     times == 2 ? "twice" : fmt::format("{} times", times));
}

/// The name of a file or folder is empty, which would read as if the flag were not given.
std::string withoutName(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  const bool file = type.find("FILE") != std::string::npos;
  if ((!file && type.find("DIR") == std::string::npos) ||
      std::ranges::find(option.results(), "") == option.results().end())
    return "";
  return fmt::format("{} is ''; expected the name of a {}", option.get_name(),
                     file ? "file" : "folder");
}

std::string problemText(const CLI::App &app, const CLI::ParseError &error,
                        std::span<const char *const> words) {
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) {
    if (const std::string again = firstProblem(app, givenAgain); !again.empty())
      return again;
    const std::string text = error.what();
    const std::string missing = firstProblem(app, [&](const CLI::Option &option) {
      const std::string &name = option.get_name();
      return text.starts_with(name + ": ") && text.ends_with(" missing")
                 ? fmt::format("{0} needs a value: {0} {1}", name, option.get_type_name())
                 : "";
    });
    return missing.empty() ? text : missing;
  }
  if (const std::string problem = behindFlag(app, words); !problem.empty())
    return problem;
  if (!unknown[0].starts_with("-"))
    return fmt::format("'{}' was not expected; --help shows how to call",
                       support::shown(unknown[0]));
  std::vector<std::string> known;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      known.push_back("--" + name);
  return support::unknownFlag(unknown[0], known);
}

} // namespace

std::optional<int> hydra::parseArguments(CLI::App &app, int argc, const char *const *argv,
                                         const char *program) {
  try {
    app.parse(argc, argv);
    for (const auto &problemOf : {givenAgain, withoutName})
      if (const std::string problem = firstProblem(app, problemOf); !problem.empty()) {
        std::fprintf(stderr, "%s: %s\n", program, problem.c_str());
        return 1;
      }
    return std::nullopt;
  } catch (const CLI::Success &help) {
    const int status = app.exit(help);
    if (std::cout.flush())
      return status;
    std::fprintf(stderr, "%s: cannot write to standard output: %s\n", program,
                 support::errnoText(errno).c_str());
    return 1;
  } catch (const CLI::ParseError &error) {
    std::fprintf(
        stderr, "%s: %s\n", program,
        support::oneLine(
            support::shown(problemText(app, error, {argv, static_cast<size_t>(argc)}), 300))
            .c_str());
    return 1;
  }
}
