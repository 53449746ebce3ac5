// How numbers are distributed, as counts of intervals.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace hydra::report {

/// Interval i holds the numbers from `limits[i - 1]` (the first one: from `min`) to `limits[i]`.
struct Histogram {
  std::vector<double> limits, counts;
  double min = 0, max = 0; ///< of all numbers, as far as counts tell them
  double count = 0, sum = 0, sumOfSquares = 0;
};

/// Of numbers, between their least and their largest one. What is not finite is left out; nothing
/// where nothing remains.
std::optional<Histogram> histogramOf(std::span<const double> numbers);

/// Of counted numbers: `counts[i]` times `first + i`. Nothing where all counts are 0, and where one
/// is negative or not finite, which counts are not.
std::optional<Histogram> histogramOfCounts(std::span<const double> counts, double first = 0);

} // namespace hydra::report
