// Exchanges in two levels, by the shape of the mesh.
#include "compiler/TwoLevel.h"

#include "runtime/support/Error.h"

#include <fmt/ranges.h>

#include <optional>

namespace hydra {

namespace {

struct Axis {
  std::string name;
  int64_t size = 0;
};

/// Nothing where an axis cannot be read, or has no ranks: binding says so.
std::optional<std::vector<Axis>> readAxes(const std::vector<std::string> &texts) {
  constexpr int64_t most = 65536; // as of a mesh
  std::vector<Axis> axes;
  int64_t ranks = 1;
  for (llvm::StringRef text : texts) {
    auto [name, size] = text.split(':');
    Axis axis{name.str()};
    if (size.getAsInteger(10, axis.size) || axis.size < 1 || axis.size > most ||
        (ranks *= axis.size) > most)
      return std::nullopt;
    axes.push_back(std::move(axis));
  }
  return axes;
}

/// An axis along which some ranks share a node, and some do not.
struct Crossing {
  size_t axis = 0;
  RankGroup group; ///< along it
  int64_t inside = 0;
  int64_t across = 0; ///< times `inside` the size of the axis; 0: nodes do not divide it

  RankGroup insideGroup() const { return {inside, group.stride, group.world}; }
  RankGroup acrossGroup() const { return {across, group.stride * inside, group.world}; }
};

/// There is one at most: axes inside of it lie in a node, and along those outside of it each rank
/// is on a node of its own.
std::optional<Crossing> findCrossing(const std::vector<Axis> &axes, int64_t nodeRanks) {
  int64_t world = 1;
  for (const Axis &axis : axes)
    world *= axis.size;
  if (world <= nodeRanks)
    return std::nullopt;
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t end = stride * axes[i].size;
    if (stride % nodeRanks == 0)
      return std::nullopt;
    if (nodeRanks % end != 0) {
      Crossing crossing{.axis = i, .group = {axes[i].size, stride, world}};
      if (nodeRanks % stride == 0 && end % nodeRanks == 0) {
        crossing.inside = nodeRanks / stride;
        crossing.across = end / nodeRanks;
      }
      return crossing;
    }
    stride = end;
  }
  return std::nullopt;
}

/// Of a sum of so many bytes, which ranks exchange in pieces and gather; parameters that are cut
/// are gathered, and their gradients exchanged, in pieces of that size too.
double sumSeconds(const Links &links, const RankGroup &group, double bytes) {
  const auto ranks = static_cast<double>(group.ranks);
  return 2 * links.seconds(group, static_cast<uint64_t>(bytes * (ranks - 1) / ranks));
}

bool isFaster(const Target &target, const Crossing &crossing) {
  const auto bytes = static_cast<double>(target.bucketBytes());
  const Links &links = target.links;
  return sumSeconds(links, crossing.insideGroup(), bytes) +
             sumSeconds(links, crossing.acrossGroup(),
                        bytes / static_cast<double>(crossing.inside)) <
         sumSeconds(links, crossing.group, bytes);
}

} // namespace

void factorAtNodes(CompileOptions &compile) {
  std::vector<std::string> &mesh = compile.binding.mesh;
  const std::optional<std::vector<Axis>> axes = readAxes(mesh);
  if (mesh.empty() || !axes)
    return;
  Links &links = compile.target.links;
  const bool isGiven = compile.nodeRanks > 0, isKnown = links.nodeRanks > 0;
  if (isGiven && isKnown)
    links.nodeRanks = compile.nodeRanks;
  if (compile.twoLevel == TwoLevel::Never) {
    compile.nodeRanks = 0;
    return;
  }
  const int64_t nodeRanks = isGiven ? compile.nodeRanks : links.nodeRanks;
  const bool isAsked = compile.twoLevel == TwoLevel::Always;
  if (nodeRanks == 0) {
    if (isAsked)
      support::fail("--two-level=always: {} does not say how many ranks share a node; expected "
                    "--node-ranks=N",
                    compile.target.name);
    return;
  }
  const std::optional<Crossing> crossing = findCrossing(*axes, nodeRanks);
  if (!crossing)
    return;
  const Axis &axis = (*axes)[crossing->axis];
  if (crossing->across == 0) {
    if (isGiven || isAsked)
      support::fail("--mesh={}: nodes of {} ranks do not divide axis '{}'; expected another size, "
                    "or another --node-ranks",
                    fmt::join(mesh, ","), nodeRanks, axis.name);
    return;
  }
  const bool exchanges = hasBackward(compile.mode) || compile.sharding != Sharding::Ddp;
  const bool isBetter = isKnown && exchanges && isFaster(compile.target, *crossing);
  if (!isAsked && !isBetter) {
    compile.nodeRanks = 0;
    return;
  }
  if (crossing->axis + 1 == mesh.size()) // shards stay N-ths of all its ranks
    compile.shardLevels = 2;
  const auto place = mesh.begin() + static_cast<ptrdiff_t>(crossing->axis);
  *place = fmt::format("{}:{}", axis.name, crossing->inside);
  mesh.insert(place, fmt::format("{}.node:{}", axis.name, crossing->across));
  compile.nodeRanks = nodeRanks;
}

} // namespace hydra
