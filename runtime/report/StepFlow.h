// Who makes the bytes that a step reads, and who reads those that it writes.
#pragma once

#include "runtime/plan/Accesses.h"
#include "runtime/plan/PlanFile.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace hydra::report {

/// The steps of a program in their order, those inside of loops and switches once. Bytes are those
/// of one buffer: where another one has the same place at another time, nothing flows.
class StepFlow {
public:
  StepFlow(const planfile::Plan &plan, const planfile::Program &program);

  struct Node {
    const planfile::Step *step;
    runtime::LoopNest loops;
    uint32_t loopBegin, loopEnd; ///< the steps of the innermost loop around it; 0, 0 for none
    std::vector<std::pair<const planfile::Switch *, uint32_t>>
        cases; ///< around it, outermost first

    /// Whether a run that comes to one does not come to the other, as they are in cases of a
    /// switch.
    bool excludes(const Node &other) const;
    /// Whether every run that comes to the other comes to this one.
    bool isSureFor(const Node &other) const;
  };
  const std::vector<Node> &nodes() const { return list; }

  /// Those that read what step `node` writes into the tensor, in their order, up to who overwrites
  /// all of it; in a loop also those of the next iteration. Who adds to it reads it.
  std::vector<uint32_t> readers(uint32_t node, uint32_t tensor) const;
  /// The last ones that wrote what step `node` reads from the tensor, the nearest first.
  std::vector<uint32_t> writers(uint32_t node, uint32_t tensor) const;

  /// Whether the program reads the tensor's bytes after its last step: an output, or what is kept.
  bool outlives(uint32_t tensor) const;
  /// Whether somebody reads the tensor's bytes behind step `node`, apart from it.
  bool isReadBehind(uint32_t node, uint32_t tensor) const { return !readers(node, tensor).empty(); }

private:
  using Blocks = flatbuffers::Vector<flatbuffers::Offset<planfile::Block>>;

  /// `around`: the loops and cases.
  void collect(const Blocks &blocks, Node &around);
  bool meets(uint32_t a, const runtime::ByteRange &range, uint32_t b,
             const runtime::LoopNest &loops) const;

  const planfile::Plan &plan;
  const planfile::Program &program;
  std::vector<Node> list;
};

} // namespace hydra::report
