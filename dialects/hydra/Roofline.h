// How long a machine takes for a step, at the limit: the cost model over the rates of a target.
#pragma once

#include "runtime/support/EngineBytes.h"

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
  /// exchange, while nothing begins to compute; 0: that takes no time of its own.
  double ownCopyBandwidth = 0;
  /// That of pieces which end within a page of `kCopyPage` bytes; 0: the same.
  double ownCopyOddBandwidth = 0;
  /// Of the time of a kernel, the last part, beside which such a copy begins; 0: at once, and what
  /// computes waits.
  double ownCopyTail = 0;
  /// Of what copy engines move in a node, with barriers and own pieces; 0: as of the node.
  double engineBandwidth = 0, engineSeconds = 0;

  static constexpr uint64_t kCopyPage = 4096;

  /// Whether every such group lies in one node.
  bool inNode(const RankGroup &group) const {
    return group.world <= nodeRanks || nodeRanks % (group.ranks * group.stride) == 0;
  }
  /// Of a collective in which each rank of a group sends so many bytes to others: of the piece that
  /// each of these gets, as large as the one that a rank keeps.
  static uint64_t pieceBytes(const RankGroup &group, uint64_t wireBytes) {
    return group.ranks > 1 ? wireBytes / static_cast<uint64_t>(group.ranks - 1) : 0;
  }
  /// Whether copy engines of GPUs move it, and not kernels.
  bool byEngines(const RankGroup &group, uint64_t wireBytes) const {
    const auto ranks = static_cast<uint64_t>(group.ranks);
    return inNode(group) && pieceBytes(group, wireBytes) * ranks >= support::kEngineBytes;
  }
  /// A group in one node has the links of the node; one that crosses nodes has, for all that it
  /// sends, the network.
  double seconds(const RankGroup &group, uint64_t wireBytes) const {
    if (!inNode(group))
      return networkSeconds + double(wireBytes) / networkBandwidth;
    if (engineBandwidth > 0 && byEngines(group, wireBytes))
      return engineSeconds + double(wireBytes) / engineBandwidth;
    return nodeSeconds + double(wireBytes) / nodeBandwidth;
  }
  /// Of these, for the own piece of a rank.
  double ownCopySeconds(const RankGroup &group, uint64_t wireBytes) const {
    if (ownCopyBandwidth <= 0 || !byEngines(group, wireBytes))
      return 0;
    const uint64_t piece = pieceBytes(group, wireBytes);
    const bool odd = ownCopyOddBandwidth > 0 && piece % kCopyPage != 0;
    return 2 * double(piece) / (odd ? ownCopyOddBandwidth : ownCopyBandwidth);
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
