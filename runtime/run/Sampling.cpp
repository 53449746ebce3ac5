// Candidates in the order of their scores, as far as that order matters.
#include "runtime/run/Sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hydra::runtime {

namespace {

class Sampler {
public:
  Sampler(std::span<const double> given, const SamplingOptions &options,
          std::span<const int32_t> text)
      : options(options), scores(given.begin(), given.end()), order(scores.size()) {
    std::iota(order.begin(), order.end(), 0);
    if (options.repetitionPenalty == 1.0)
      return;
    std::vector<bool> seen(scores.size());
    for (const int32_t id : text)
      seen[static_cast<size_t>(id)] = true;
    for (size_t id = 0; id < scores.size(); ++id)
      if (seen[id])
        scores[id] = scores[id] > 0 ? scores[id] / options.repetitionPenalty
                                    : scores[id] * options.repetitionPenalty;
  }

  int32_t best() const {
    return static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }

  int32_t pick(double u) {
    largest = *std::max_element(scores.begin(), scores.end());
    if (options.topK > 0 && static_cast<size_t>(options.topK) < order.size()) {
      sortFirst(static_cast<size_t>(options.topK));
      order.resize(static_cast<size_t>(options.topK));
    }
    if (options.topP < 1.0)
      keepProbability();
    if (options.minP > 0.0)
      std::erase_if(order, [&](int32_t id) { return weight(id) < options.minP; });
    std::vector<double> sums;
    double sum = 0;
    for (const int32_t id : order)
      sums.push_back(sum += weight(id));
    const auto place = std::ranges::upper_bound(sums, u * sum);
    return order[std::min(static_cast<size_t>(place - sums.begin()), order.size() - 1)];
  }

private:
  /// The probability of an id over that of the best.
  double weight(int32_t id) const {
    return std::exp((scores[static_cast<size_t>(id)] - largest) / options.temperature);
  }

  void sortFirst(size_t count) {
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                      [&](int32_t a, int32_t b) {
                        const double x = scores[static_cast<size_t>(a)],
                                     y = scores[static_cast<size_t>(b)];
                        return x != y ? x > y : a < b;
                      });
  }

  /// Drops what comes behind those that have the probability together: mostly few of very many.
  void keepProbability() {
    double total = 0;
    for (const int32_t id : order)
      total += weight(id);
    for (size_t sorted = 64;; sorted *= 8) {
      sorted = std::min(sorted, order.size());
      sortFirst(sorted);
      double sum = 0;
      for (size_t i = 0; i < sorted; ++i)
        if ((sum += weight(order[i])) >= options.topP * total)
          return order.resize(i + 1);
      if (sorted == order.size())
        return;
    }
  }

  const SamplingOptions &options;
  std::vector<double> scores;
  std::vector<int32_t> order; // candidates
  double largest = 0;
};

} // namespace

int32_t sample(std::span<const double> scores, const SamplingOptions &options,
               std::span<const int32_t> text, double u) {
  if (options.temperature == 0 && options.repetitionPenalty == 1.0)
    return static_cast<int32_t>(std::ranges::max_element(scores) - scores.begin());
  Sampler sampler(scores, options, text);
  return options.temperature == 0 ? sampler.best() : sampler.pick(u);
}

} // namespace hydra::runtime
