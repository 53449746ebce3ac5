// Levenshtein distance, one row at a time.
#include "runtime/support/Suggest.h"
#include "runtime/support/Shown.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace hydra::support {

static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  size_t best = std::min<size_t>(3, word.size() / 3) + 1;
  std::string found;
  for (const std::string &candidate : candidates) {
    if (const size_t distance = editDistance(word, candidate); distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string unknownFlag(std::string_view word, std::span<const std::string> candidates) {
  word = word.substr(0, word.find('='));
  const std::string near = nearest(word, candidates);
  return fmt::format("unknown flag '{}'; {}", shown(word),
                     near.empty() ? "--help lists the known ones"
                                  : fmt::format("did you mean '{}'?", near));
}

} // namespace hydra::support
