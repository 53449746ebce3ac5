// Whether ranks that are to share a host do.
#include "runtime/ranks/Hosts.h"

#include "runtime/support/Shown.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

using namespace hydra::runtime;
using hydra::support::shown;

namespace {

/// Of the ranks on each host, in a row or not, the number; 0: hosts have different numbers.
uint64_t ranksOfHosts(std::span<const std::string> hosts) {
  std::map<std::string, uint64_t> counts;
  for (const std::string &host : hosts)
    ++counts[host];
  const uint64_t first = counts.begin()->second;
  return std::ranges::all_of(counts, [&](const auto &one) { return one.second == first; }) ? first
                                                                                           : 0;
}

/// The first rank that is on another host than the first of its node; as many as there are: none.
size_t firstStranger(std::span<const std::string> hosts, uint64_t nodeRanks) {
  size_t rank = 0;
  while (rank < hosts.size() && hosts[rank] == hosts[rank - rank % nodeRanks])
    ++rank;
  return rank;
}

} // namespace

std::string hydra::runtime::nodesProblem(std::span<const std::string> hosts, uint64_t nodeRanks) {
  const size_t stranger = firstStranger(hosts, nodeRanks);
  if (stranger == hosts.size())
    return "";
  const uint64_t each = ranksOfHosts(hosts);
  std::string advice = "start equally many on each, or compile it with --two-level=never";
  if (each > 0 && firstStranger(hosts, each) == hosts.size())
    advice = fmt::format("compile it with --node-ranks={}", each);
  else if (each > 0 && each % nodeRanks == 0)
    advice = "start those of a host one behind the other (mpirun --map-by slot, srun "
             "--distribution=block)";
  return fmt::format("is for nodes of {} ranks, but rank {} is on {} and rank {} on {}; {}",
                     nodeRanks, stranger - 1, shown(hosts[stranger - 1]), stranger,
                     shown(hosts[stranger]), advice);
}
