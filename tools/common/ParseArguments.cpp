// What CLI11 finds wrong, in one line.
#include "tools/common/ParseArguments.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/Suggest.h"

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

std::string problemText(const CLI::App &app, const CLI::ParseError &error,
                        std::span<const char *const> words) {
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty())
    return error.what();
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
