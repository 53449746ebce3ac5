// Numbers, names and columns as people write them.
#include "frontend/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace hydra::frontend {

std::string realText(double value) {
  // The fewest digits that read back, of which a large round number needs few.
  std::string text = fmt::format("{}", value);
  if (value >= 1.0e4 && std::fmod(value, 1000.0) == 0.0)
    for (int digits = 0; digits < 17; ++digits)
      if (text = fmt::format("{:.{}e}", value, digits); std::stod(text) == value)
        break;
  const size_t e = text.find('e');
  std::string mantissa = text.substr(0, e);
  if (mantissa.find('.') == std::string::npos)
    mantissa += ".0";
  return e == std::string::npos ? mantissa
                                : fmt::format("{}e{}", mantissa, std::stoi(text.substr(e + 1)));
}

static bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string plainName(std::string_view name) {
  std::string text(name.empty() ? "model" : name);
  for (char &c : text)
    if (!isWord(c) && c != '.' && c != '-')
      c = '_';
  return text;
}

std::string symbolText(std::string_view name) {
  const bool identifier = std::ranges::all_of(name, isWord) &&
                          std::isdigit(static_cast<unsigned char>(name.front())) == 0;
  return identifier ? fmt::format("@{}", name) : fmt::format("@\"{}\"", name);
}

std::string joined(const std::vector<std::string> &words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string table(const std::vector<std::vector<std::string>> &rows, std::string_view indent) {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    text += indent;
    for (size_t i = 0; i < row.size(); ++i)
      text += i + 1 < row.size() ? fmt::format("{:<{}} ", row[i], widths[i]) : row[i];
    text += '\n';
  }
  return text;
}

} // namespace hydra::frontend
