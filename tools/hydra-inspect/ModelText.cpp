// The file is read only if its name is given: a plan may come from anyone, and name any file.
#include "tools/hydra-inspect/ModelText.h"

#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Shown.h"

#include <algorithm>

namespace hydra::inspect {

using support::fail;

namespace {

/// The only file of the plan, or the one with the same last name.
uint32_t fileOf(const std::filesystem::path &path, const planfile::Plan &plan) {
  const auto &files = *plan.files();
  if (files.size() == 1)
    return 0;
  for (uint32_t i = 0; i < files.size(); ++i)
    if (std::filesystem::path(files.Get(i)->str()).filename() == path.filename())
      return i;
  fail("--model: the plan comes from no file that is called {}", path.filename().string());
}

} // namespace

ModelText readModelText(const std::filesystem::path &path, const planfile::Plan &plan) {
  ModelText text{.file = fileOf(path, plan), .lines = {}};
  const support::InputFile input(path);
  std::string line;
  for (const std::byte byte : input.readAll()) {
    const char c = static_cast<char>(byte);
    if (c == '\n')
      text.lines.push_back(std::exchange(line, {}));
    else if (c != '\r')
      line += c;
  }
  if (!line.empty())
    text.lines.push_back(std::move(line));
  const std::string word = "hydra.model @", name = plan.header()->model()->str(),
                    quoted = word + '"' + name + '"';
  const auto begins = [&](const std::string &line) {
    return line.find(word + name) != std::string::npos || line.find(quoted) != std::string::npos;
  };
  if (std::ranges::none_of(text.lines, begins))
    fail("--model: {} has no {}", input.name(), support::shown(word + name));
  uint32_t most = 0;
  for (const planfile::Location *location : *plan.locations())
    if (location->file() == text.file)
      most = std::max(most, location->line());
  if (most > text.lines.size())
    fail("--model: {} has {} lines, and the plan comes from line {}: this is another "
         "version of the model",
         input.name(), text.lines.size(), most);
  return text;
}

} // namespace hydra::inspect
