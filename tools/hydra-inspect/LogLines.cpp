// A file is read at once, then line by line.
#include "tools/hydra-inspect/LogLines.h"

#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"

#include <sstream>

namespace hydra::inspect {

using Json = nlohmann::json;

void forEachLine(const std::filesystem::path &path, const std::string &problem,
                 const std::function<void(const Json &)> &take) {
  const support::InputFile file(path);
  const std::vector<std::byte> bytes = file.readAll();
  std::istringstream lines(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  std::string text;
  for (size_t number = 1; std::getline(lines, text); ++number) {
    if (lines.eof() && !Json::accept(text))
      return; // cut off
    try {
      take(Json::parse(text, support::JsonGuard(fmt::format("{}: line {}", file.name(), number))));
    } catch (const Json::exception &error) {
      support::fail("{}{}: line {}: {}", file.name(), problem, number, support::jsonProblem(error));
    }
  }
}

} // namespace hydra::inspect
