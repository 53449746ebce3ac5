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

/// The option that `--log`, `--log=FILE` or `-o` names; null where a word names none.
const CLI::Option *optionNamed(const CLI::App &app, std::string_view word) {
  if (!word.starts_with("-"))
    return nullptr;
  if (const CLI::Option *option =
          app.get_option_no_throw(std::string(word.substr(0, word.find('=')))))
    return option;
  for (const CLI::App *command : app.get_subcommands())
    if (const CLI::Option *option = optionNamed(*command, word))
      return option;
  return nullptr;
}

std::string needsValue(const CLI::Option &option) {
  const bool mayHave = option.get_items_expected_max() == 0; // --bench, --bench=3
  return fmt::format("{0} needs a value: {0}{2}{1}", option.get_name(), option.get_type_name(),
                     mayHave ? "=" : " ");
}

/// A flag without its value, for which CLI11 would take the next word, be it a flag:
/// `--save= --plot`, which an empty variable of a shell makes, or `--save --plot`.
std::string withoutValue(const CLI::App &app, std::span<const char *const> words) {
  for (size_t i = 1; i < words.size() && words[i] != std::string_view("--"); ++i) {
    const std::string_view word = words[i];
    const CLI::Option *const option = optionNamed(app, word);
    if (!option || option->get_type_name().empty())
      continue;
    const size_t equals = word.find('=');
    const bool beforeFlag = equals == word.npos && option->get_items_expected_min() > 0 &&
                            i + 1 < words.size() && optionNamed(app, words[i + 1]);
    if (equals == word.size() - 1 || beforeFlag)
      return needsValue(*option);
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
  if (const std::string problem = withoutValue(app, words); !problem.empty())
    return problem;
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) {
    if (const std::string again = firstProblem(app, givenAgain); !again.empty())
      return again;
    const std::string text = error.what();
    const std::string missing = firstProblem(app, [&](const CLI::Option &option) {
      const std::string &name = option.get_name();
      return text.starts_with(name + ": ") && text.ends_with(" missing") ? needsValue(option) : "";
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

std::optional<int> hydra::parseArgumentsOrThrow(CLI::App &app, int argc, const char *const *argv,
                                                const char *program) {
  const std::span<const char *const> words{argv, static_cast<size_t>(argc)};
  try {
    app.parse(argc, argv);
    std::string problem = withoutValue(app, words);
    for (const auto &problemOf : {givenAgain, withoutName})
      if (problem.empty())
        problem = firstProblem(app, problemOf);
    if (problem.empty())
      return std::nullopt;
    throw support::Error(problem);
  } catch (const CLI::Success &help) {
    const int status = app.exit(help);
    if (std::cout.flush())
      return status;
    std::fprintf(stderr, "%s: cannot write to standard output: %s\n", program,
                 support::errnoText(errno).c_str());
    return 1;
  } catch (const CLI::ParseError &error) {
    throw support::Error(support::shown(problemText(app, error, words), 300));
  }
}

std::optional<int> hydra::parseArguments(CLI::App &app, int argc, const char *const *argv,
                                         const char *program) {
  try {
    return parseArgumentsOrThrow(app, argc, argv, program);
  } catch (const support::Error &mistake) {
    std::fprintf(stderr, "%s: %s\n", program, mistake.what());
    return 1;
  }
}
