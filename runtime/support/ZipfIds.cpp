// The sums of 1/k, and where to look in them: a draw takes a few accesses, whatever the number of
// ids, because made-up tokens are drawn within the steps that are timed.
#include "runtime/support/ZipfIds.h"

#include <algorithm>

using namespace hydra::support;

ZipfIds::ZipfIds(uint64_t count) : sums(count), first(count) {
  double sum = 0;
  for (uint64_t k = 0; k < count; ++k)
    sums[k] = sum += 1.0 / static_cast<double>(k + 1);
  uint64_t id = 0;
  for (uint64_t j = 0; j < count; ++j) {
    const double bound = static_cast<double>(j) / static_cast<double>(count) * sum;
    while (id + 1 < count && sums[id] <= bound)
      ++id;
    first[j] = static_cast<uint32_t>(id);
  }
}

uint64_t ZipfIds::operator()(double u) const {
  const double target = u * sums.back();
  const uint64_t last = sums.size() - 1;
  const auto place = static_cast<uint64_t>(u * static_cast<double>(sums.size()));
  uint64_t id = first[std::min(place, last)];
  // Whatever rounding did to the place: the sums alone decide.
  while (id > 0 && sums[id - 1] > target)
    --id;
  while (id < last && sums[id] <= target)
    ++id;
  return id;
}
