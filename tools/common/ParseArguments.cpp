// What CLI11 finds wrong, in one line.
#include "tools/common/ParseArguments.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/Suggest.h"

#include <cstdio>
#include <string>
#include <vector>

using namespace hydra;

namespace {

std::string problemText(const CLI::App &app, const CLI::ParseError &error) {
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty())
    return error.what();
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
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "%s: %s\n", program,
                 support::oneLine(support::shown(problemText(app, error), 300)).c_str());
    return 1;
  }
}
