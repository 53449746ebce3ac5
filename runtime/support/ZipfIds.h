// Ids by Zipf's law: the frequencies of tokens in texts, of which a few are almost everywhere.
#pragma once

#include <cstdint>
#include <vector>

namespace hydra::support {

/// Ids from 0 to V - 1, of which id k has the probability 1 / ((k + 1) H), where
/// H = 1 + 1/2 + ... + 1/V: Zipf's law with the exponent 1, the most frequent id first, as most
/// tokenizers number theirs. (Zipf: "Human Behavior and the Principle of Least Effort", 1949.)
///
/// A uniform number u in (0,1) becomes the first id k with 1 + 1/2 + ... + 1/(k + 1) > u H. The
/// sums are rounded to double one by one, from 1 on, so that every machine draws the same ids.
class ZipfIds {
public:
  /// `count`: V, at least 1. Takes 12 bytes of memory for each id.
  explicit ZipfIds(uint64_t count);

  uint64_t operator()(double u) const;

private:
  std::vector<double> sums;    ///< [k]: of 1 to 1/(k + 1)
  std::vector<uint32_t> first; ///< [j]: near the id of u = j / V, where to look from
};

} // namespace hydra::support
