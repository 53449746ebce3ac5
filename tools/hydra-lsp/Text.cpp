// The text of a document, and its places as editors and as MLIR count them.
#include "tools/hydra-lsp/Text.h"

#include <algorithm>

using llvm::StringRef;

namespace hydra::lsp {

/// Whether a byte of UTF-8 continues a character.
static bool continues(char byte) { return (byte & 0xc0) == 0x80; }
/// The UTF-16 code units of the character that begins with a byte.
static int unitsOf(char byte) { return static_cast<unsigned char>(byte) >= 0xf0 ? 2 : 1; }

Text::Text(std::string given) : content(std::move(given)), lines{0}, newlines{0} {
  for (size_t i = 0; i < content.size(); ++i) {
    const bool newline = content[i] == '\n';
    if (newline)
      newlines.push_back(i + 1);
    if (newline || (content[i] == '\r' && (i + 1 == content.size() || content[i + 1] != '\n')))
      lines.push_back(i + 1);
  }
}

/// The last of the lines that begins at the offset or before it.
static size_t lineOf(const std::vector<size_t> &lines, size_t offset) {
  return static_cast<size_t>(std::upper_bound(lines.begin(), lines.end(), offset) - lines.begin()) -
         1;
}

size_t Text::offsetOf(Position position) const {
  if (position.line < 0)
    return 0;
  if (static_cast<size_t>(position.line) >= lines.size())
    return content.size();
  size_t at = lines[position.line];
  int units = 0;
  while (at < content.size() && content[at] != '\n' && content[at] != '\r') {
    units += unitsOf(content[at]);
    if (units > position.character)
      break;
    for (++at; at < content.size() && continues(content[at]);)
      ++at;
  }
  return at;
}

Position Text::positionOf(size_t offset) const {
  offset = std::min(offset, content.size());
  const size_t line = lineOf(lines, offset);
  int units = 0;
  for (size_t i = lines[line]; i < offset; ++i)
    units += continues(content[i]) ? 0 : unitsOf(content[i]);
  return {static_cast<int>(line), units};
}

size_t Text::offsetOfPlace(unsigned line, unsigned column) const {
  if (line == 0)
    return 0;
  if (line > newlines.size())
    return content.size();
  const size_t end = line < newlines.size() ? newlines[line] - 1 : content.size();
  return std::min(newlines[line - 1] + (column > 0 ? column - 1 : 0), end);
}

std::pair<unsigned, unsigned> Text::placeOf(size_t offset) const {
  const size_t line = lineOf(newlines, offset);
  return {static_cast<unsigned>(line) + 1, static_cast<unsigned>(offset - newlines[line]) + 1};
}

StringRef Text::lineAt(size_t offset) const {
  const size_t begin = lines[lineOf(lines, std::min(offset, content.size()))];
  return str().substr(begin).take_until([](char c) { return c == '\n' || c == '\r'; });
}

std::string Text::replaced(Range range, StringRef by) const {
  const size_t begin = offsetOf(range.start), end = std::max(begin, offsetOf(range.end));
  return (str().take_front(begin) + by + str().drop_front(end)).str();
}

} // namespace hydra::lsp
