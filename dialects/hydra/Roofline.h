// How long a machine takes for a step, at the limit: the cost model over the rates of a target.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hydra {

/// Whose rate the arithmetic of a step has.
enum class Arithmetic { Matmul, Attention, Other };

/// Ranks that meet in a collective: `ranks` of `world`, each `stride` behind the one before. All
/// groups along an axis of a mesh are alike.
struct RankGroup {
  int64_t ranks = 1, stride = 1, world = 1;
};

/// What connects ranks, each of them a device. Nodes hold equally many ranks, one behind the other.
/// Rates are the bytes/s that each rank sends and receives at a time, seconds those of the smallest
/// exchange.
struct Links {
  int64_t nodeRanks = 0; ///< that share a node; 0: nothing is known of links
  double nodeBandwidth = 0, nodeSeconds = 0;
  double networkBandwidth = 0, networkSeconds = 0;
  double overlap = 1; ///< of its rate, what computing keeps beside an exchange
  /// Read plus written, with which a device copies a rank's own piece of what copy engines
  /// exchange, while nothing computes; 0: that takes no time of its own.
  double ownCopyBandwidth = 0;

  /// Whether every such group lies in one node.
  bool inNode(const RankGroup &group) const {
    return group.world <= nodeRanks || nodeRanks % (group.ranks * group.stride) == 0;
  }
  /// Of a collective in which each rank of a group sends so many bytes to others. A group in one
  /// node has the links of the node; one that crosses nodes has, for all that it sends, the
  /// network.
  double seconds(const RankGroup &group, uint64_t wireBytes) const {
    return inNode(group) ? nodeSeconds + double(wireBytes) / nodeBandwidth
                         : networkSeconds + double(wireBytes) / networkBandwidth;
  }
  /// Of these, for the own piece of a rank, which is as large as the one that each other rank of
  /// the group gets.
  double ownCopySeconds(const RankGroup &group, uint64_t wireBytes) const {
    if (ownCopyBandwidth <= 0 || group.ranks <= 1 || !inNode(group))
      return 0;
    return 2 * double(wireBytes) / double(group.ranks - 1) / ownCopyBandwidth;
  }
};

/// Rates of a whole device, such as well-written code reaches; in FLOP/s, bytes/s and seconds.
struct Roofline {
  double memoryBandwidth = 0; ///< read plus written
  uint64_t cacheBytes = 0;    ///< steps that move less run at cacheBandwidth
  double cacheBandwidth = 0;
  std::map<std::string, double> matmulFlops; ///< by format of the operands; f32 and bf16 are there
  std::map<std::string, double> attentionFlops;
  double vectorFlops = 0;   ///< of everything else
  double launchSeconds = 0; ///< of any step
  Links links;
  double hostBandwidth =
      0; ///< to the host's memory, and as much from it at the same time; 0: unknown
  double hostSeconds = 0; ///< of the smallest transfer

  /// The larger of computing and moving bytes, and a launch. `format`: that of the operands.
  double seconds(Arithmetic kind, const std::string &format, uint64_t flops, uint64_t bytes) const;

  /// Of a collective: the larger of its time on the links and that of `bytes` in memory. Where
  /// nothing is known of links, or a rank is alone, as of a copy.
  double collectiveSeconds(const RankGroup &group, uint64_t wireBytes, uint64_t bytes) const;

  /// Of a transfer between the memories of host and device; where nothing is known of their link,
  /// as of a copy.
  double transferSeconds(uint64_t bytes) const;
};

} // namespace hydra
