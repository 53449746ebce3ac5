// Permutations without memory, and the blocks of a mixture.
#include "runtime/data/RowOrder.h"

#include "runtime/support/Error.h"
#include "runtime/support/Philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

using namespace hydra::data;
using hydra::support::fail;

uint64_t hydra::data::shuffled(uint64_t index, uint64_t count, uint64_t seed, uint64_t epoch) {
  if (count <= 1)
    return 0;
  const int half = (std::bit_width(count - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  const support::Philox keys(seed, "shuffle", epoch);
  constexpr uint64_t rounds = 6;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t mixed = left ^ (keys.bits64(right * rounds + round) & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= count); // at most a few times: the power of four is below 4 * count
  return index;
}

std::vector<uint64_t> hydra::data::rowsOfBlock(const std::vector<double> &weights) {
  double sum = 0;
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight <= 0)
      fail("weight {} of a mixture; expected a number above 0", weight);
    sum += weight;
  }
  std::vector<uint64_t> rows;
  std::vector<std::pair<double, size_t>> remainders; // the largest first, then in their order
  uint64_t left = RowOrder::kBlock;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / sum * double(RowOrder::kBlock);
    rows.push_back(std::min(static_cast<uint64_t>(share), left));
    left -= rows.back();
    remainders.emplace_back(double(rows.back()) - share, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left)
    ++rows[remainders[i].second];
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] == 0)
      fail("weight {} of a mixture is less than one row in {}", weights[i], RowOrder::kBlock);
  return rows;
}

RowOrder::RowOrder(std::vector<Source> given, uint64_t order)
    : sources(std::move(given)), before{0}, seed(order) {
  std::vector<double> weights;
  for (const Source &source : sources)
    weights.push_back(source.weight);
  for (const uint64_t rows : rowsOfBlock(weights))
    before.push_back(before.back() + rows);
  if (sources.size() == 1)
    return;
  constexpr uint64_t blocks = 0x6d69787475726573; // a stream of random numbers of their own
  std::vector<uint32_t> taken(sources.size());
  for (uint64_t place = 0; place < kBlock; ++place) {
    const uint64_t slot = shuffled(place, kBlock, seed ^ blocks, 0);
    const auto source =
        static_cast<uint32_t>(std::ranges::upper_bound(before, slot) - before.begin() - 1);
    block.push_back({source, taken[source]++});
  }
}

void RowOrder::read(uint64_t place, size_t row, BatchRows &batch) const {
  size_t source = 0;
  uint64_t number = place, own = seed;
  if (sources.size() > 1) {
    const Slot &slot = block[place % kBlock];
    source = slot.source;
    number = place / kBlock * (before[source + 1] - before[source]) + slot.rank;
    own = seed + source;
  }
  const RowSet &rows = *sources[source].rows;
  const uint64_t count = rows.count();
  rows.read(shuffled(number % count, count, own, number / count), row, batch);
}

std::vector<Epochs> RowOrder::epochs(uint64_t rows) const {
  std::vector<Epochs> all;
  for (size_t i = 0; i < sources.size(); ++i) {
    const double share = double(before[i + 1] - before[i]) / double(kBlock);
    all.push_back({sources[i].name, double(rows) * share / double(sources[i].rows->count())});
  }
  return all;
}

double RowOrder::filled() const {
  double sum = 0;
  for (size_t i = 0; i < sources.size(); ++i)
    sum += double(before[i + 1] - before[i]) / double(kBlock) * sources[i].rows->filled();
  return sum;
}

std::string RowOrder::identity() const {
  if (sources.size() == 1)
    return "";
  std::string all;
  for (size_t i = 0; i < sources.size(); ++i)
    all += fmt::format("{}{}", i > 0 ? ":" : "", before[i + 1] - before[i]);
  return all;
}
