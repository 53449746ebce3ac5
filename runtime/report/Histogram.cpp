// Intervals of equal width.
#include "runtime/report/Histogram.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace hydra::report {

std::optional<Histogram> histogramOf(std::span<const double> numbers) {
  std::vector<double> finite;
  std::ranges::copy_if(numbers, std::back_inserter(finite),
                       [](double x) { return std::isfinite(x); });
  if (finite.empty())
    return std::nullopt;
  Histogram histogram;
  const auto [least, largest] = std::ranges::minmax(finite);
  histogram.min = least;
  histogram.max = largest;
  constexpr size_t most = 30; // as many as TensorBoard shows
  const size_t intervals = largest > least ? std::min(finite.size(), most) : 1;
  histogram.counts.resize(intervals);
  for (size_t i = 1; i < intervals; ++i) {
    // Not by the width, which may be more than any number. Where the two differ by some last bits
    // alone, rounding must not put limits out of order.
    const double part = double(i) / double(intervals),
                 before = i > 1 ? histogram.limits.back() : least;
    histogram.limits.push_back(std::clamp(least * (1 - part) + largest * part, before, largest));
  }
  histogram.limits.push_back(largest);
  for (const double x : finite) {
    const auto at = std::ranges::upper_bound(histogram.limits, x);
    const auto i = static_cast<size_t>(at - histogram.limits.begin());
    ++histogram.counts[std::min(i, intervals - 1)];
    histogram.sum += x;
    histogram.sumOfSquares += x * x;
  }
  histogram.count = double(finite.size());
  return histogram;
}

std::optional<Histogram> histogramOfCounts(std::span<const double> counts, double first) {
  Histogram histogram;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double count = counts[i], number = first + double(i);
    if (!(count >= 0) || std::isinf(count))
      return std::nullopt;
    histogram.limits.push_back(number + 0.5);
    histogram.counts.push_back(count);
    if (count == 0)
      continue;
    if (histogram.count == 0)
      histogram.min = number;
    histogram.max = number;
    histogram.count += count;
    histogram.sum += count * number;
    histogram.sumOfSquares += count * number * number;
  }
  return histogram.count > 0 ? std::optional(std::move(histogram)) : std::nullopt;
}

} // namespace hydra::report
