// Column widths, then lines.
#include "runtime/report/Table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace hydra::report;

std::string Table::text(const std::string &indent) const {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      if (c == widths.size())
        widths.push_back(0);
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string line = indent;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string gap = c == 0 ? "" : "  ";
      line += c < leftColumns ? fmt::format("{}{:<{}}", gap, row[c], widths[c])
                              : fmt::format("{}{:>{}}", gap, row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Table::markdown() const {
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string line = "|";
    for (const std::string &cell : row) {
      line += ' ';
      for (const char c : cell) // a bar would begin a column
        line += c == '|' ? "\\|" : std::string(1, c);
      line += " |";
    }
    text += line + "\n";
    if (&row != &rows.front())
      continue;
    for (size_t c = 0; c < row.size(); ++c)
      text += c < leftColumns ? "|---" : "|---:";
    text += "|\n";
  }
  return text;
}
