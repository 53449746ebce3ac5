// The text of a document, and its places as editors and as MLIR count them.
#include "tools/hydra-lsp/Text.h"

#include <algorithm>

using llvm::StringRef;

namespace hydra::lsp {

/// Whether a byte of UTF-8 continues a character.
static bool continues(char byte) { return (byte & 0xc0) == 0x80; }
/// The UTF-16 code units of the character that begins with a byte.
static int unitsOf(char byte) { return static_cast<unsigned char>(byte) >= 0xf0 ? 2 : 1; }

static constexpr size_t kStride = 256;

Text::Text(std::string given) : content(std::move(given)), lines{0}, newlines{0} {
  size_t before = 0;
  for (size_t i = 0; i < content.size(); ++i) {
    if (i % kStride == 0)
      units.push_back(before);
    before += continues(content[i]) ? 0 : unitsOf(content[i]);
    const bool newline = content[i] == '\n';
    if (newline)
      newlines.push_back(i + 1);
    if (newline || (content[i] == '\r' && (i + 1 == content.size() || content[i + 1] != '\n')))
      lines.push_back(i + 1);
  }
  units.push_back(before); // where no byte may be
}

size_t Text::unitsUntil(size_t offset) const {
  size_t sum = units[offset / kStride];
  for (size_t i = offset / kStride * kStride; i < offset; ++i)
    sum += continues(content[i]) ? 0 : unitsOf(content[i]);
  return sum;
}

size_t Text::endOf(size_t line) const {
  size_t end = line + 1 < lines.size() ? lines[line + 1] : content.size();
  while (end > lines[line] && (content[end - 1] == '\n' || content[end - 1] == '\r'))
    --end;
  return end;
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
  const size_t begin = lines[position.line], end = endOf(position.line);
  const size_t wanted = unitsUntil(begin) + std::max(position.character, 0);
  // The last place that is known to be in front, then each character.
  auto behind = std::upper_bound(units.begin() + begin / kStride + 1,
                                 units.begin() + end / kStride + 1, wanted);
  size_t at = std::max(begin, static_cast<size_t>(behind - units.begin() - 1) * kStride);
  while (at < end && continues(content[at]))
    ++at;
  size_t sum = unitsUntil(at);
  while (at < end) {
    sum += unitsOf(content[at]);
    if (sum > wanted)
      break;
    for (++at; at < end && continues(content[at]);)
      ++at;
  }
  return at;
}

Position Text::positionOf(size_t offset) const {
  const size_t line = lineOf(lines, std::min(offset, content.size()));
  const size_t units = unitsUntil(std::min(offset, endOf(line))) - unitsUntil(lines[line]);
  return {static_cast<int>(line), static_cast<int>(units)};
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
  const size_t line = lineOf(lines, std::min(offset, content.size()));
  return str().slice(lines[line], endOf(line));
}

std::string Text::replaced(Range range, StringRef by) const {
  const size_t begin = offsetOf(range.start), end = std::max(begin, offsetOf(range.end));
  return (str().take_front(begin) + by + str().drop_front(end)).str();
}

} // namespace hydra::lsp
