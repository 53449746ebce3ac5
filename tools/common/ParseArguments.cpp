// What CLI11 finds wrong, in one line.
#include "tools/common/ParseArguments.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

using namespace hydra;

namespace {

/// Levenshtein's distance.
size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string unknownText(const CLI::App &app, std::string argument) {
  argument = argument.substr(0, argument.find('='));
  if (!argument.starts_with("-"))
    return fmt::format("'{}' was not expected; --help shows how to call", argument);
  std::string nearest;
  size_t distance = 4; // further ones are no help
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      if (const size_t d = editDistance(argument, "--" + name); d < distance)
        distance = d, nearest = "--" + name;
  return fmt::format("unknown flag '{}'; {}", argument,
                     nearest.empty() ? "--help lists the known ones"
                                     : fmt::format("did you mean '{}'?", nearest));
}

} // namespace

std::optional<int> hydra::parseArguments(CLI::App &app, int argc, const char *const *argv,
                                         const char *program) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    const std::vector<std::string> unknown = app.remaining();
    const std::string text = unknown.empty() ? error.what() : unknownText(app, unknown[0]);
    std::fprintf(stderr, "%s: %s\n", program, support::oneLine(text).c_str());
    return 1;
  }
}
