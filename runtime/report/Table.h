// Tables as aligned text or Markdown.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace hydra::report {

/// Rows of cells, padded to columns two spaces apart. The first `leftColumns` columns are aligned
/// to the left, the others to the right; nothing follows the last cell of a row.
class Table {
public:
  explicit Table(size_t leftColumns) : leftColumns(leftColumns) {}

  void add(std::vector<std::string> cells) {
    for (std::string &cell : cells) // a line of its own would be a row
      std::ranges::replace(cell, '\n', ' ');
    rows.push_back(std::move(cells));
  }
  std::string text(const std::string &indent = "  ") const;
  /// The same as Markdown, where the first row is the head.
  std::string markdown() const;

private:
  size_t leftColumns;
  std::vector<std::vector<std::string>> rows;
};

} // namespace hydra::report
