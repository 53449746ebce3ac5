// HEAD, and what it refers to.
#include "runtime/support/GitRevision.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <system_error>

namespace hydra::support {

namespace fs = std::filesystem;

namespace {

std::string firstLine(const fs::path &path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

bool isRevision(const std::string &text) {
  constexpr size_t sha1 = 40, sha256 = 64;
  return (text.size() == sha1 || text.size() == sha256) &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The repository's folder: a directory, or where a file of that name says (a work tree).
fs::path repositoryAt(const fs::path &git) {
  constexpr std::string_view link = "gitdir: ";
  if (const std::string line = firstLine(git); line.starts_with(link)) {
    const fs::path target = line.substr(link.size());
    return target.is_absolute() ? target : git.parent_path() / target;
  }
  return git;
}

std::optional<std::string> revisionOf(const fs::path &repository) {
  constexpr std::string_view reference = "ref: ";
  const std::string head = firstLine(repository / "HEAD");
  if (isRevision(head))
    return head;
  if (!head.starts_with(reference))
    return std::nullopt;
  const std::string name = head.substr(reference.size());
  // A work tree has only a HEAD of its own.
  const std::string common = firstLine(repository / "commondir");
  const fs::path references = common.empty() ? repository : repository / common;
  if (const std::string revision = firstLine(references / name); isRevision(revision))
    return revision;
  std::ifstream packed(references / "packed-refs");
  for (std::string line; std::getline(packed, line);)
    if (const size_t space = line.find(' ');
        space != std::string::npos && line.compare(space + 1, std::string::npos, name) == 0 &&
        isRevision(line.substr(0, space)))
      return line.substr(0, space);
  return std::nullopt;
}

} // namespace

std::optional<std::string> gitRevision(const fs::path &file) {
  std::error_code code;
  fs::path folder = fs::canonical(file, code);
  if (code)
    return std::nullopt;
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (fs::exists(folder / ".git", code))
      return revisionOf(repositoryAt(folder / ".git"));
  }
  return std::nullopt;
}

} // namespace hydra::support
