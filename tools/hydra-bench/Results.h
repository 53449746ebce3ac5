// Rows that were measured, in a file that is written anew after each: what was interrupted goes on.
#pragma once

#include "tools/hydra-bench/Measure.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hydra::bench {

class Results {
public:
  /// Of no file nothing is kept. What the file has is taken over, unless `again` says that all is
  /// to be measured anew. Throws Error when it is something else than such a file, or was made by
  /// other programs.
  Results(std::optional<std::filesystem::path> file, const Definition &definition,
          const Programs &programs, bool again);

  /// The row of the case if it was measured before, in the same way.
  const Json *find(const Case &one) const;
  /// Adds what was measured, and writes the file.
  void add(const Case &one, Json row);
  /// Of the cases, in their order, those that were measured.
  std::vector<Json> rowsOf(const std::vector<Case> &cases) const;

private:
  /// What a row depends on.
  Json identityOf(const Case &one) const;

  std::optional<std::filesystem::path> file;
  const Definition &definition;
  Json head;
  std::vector<Json> rows;
};

/// What -o wrote. Throws Error where it is none.
Json readResults(const std::filesystem::path &path);

/// A comparison with what was measured before.
struct Comparison {
  std::string markdown;
  size_t worse = 0; ///< rows that are slower by more than the threshold, or no longer measured
};

/// Rows beside those of results read before, from a file of that name, by their axes. Throws Error
/// when none is in both.
Comparison compare(const Definition &definition, const std::vector<Json> &rows, const Json &before,
                   const std::string &name);

} // namespace hydra::bench
