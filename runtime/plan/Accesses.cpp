// The walk over arguments, loops and cases that finds every touched byte range.
#include "runtime/plan/Accesses.h"

namespace hydra::runtime {

using namespace planfile;

namespace {

class Collector {
public:
  Collector(const Plan &plan, const LoopNest &loops, std::vector<ByteAccess> &accesses)
      : plan(plan), loops(loops), accesses(accesses) {}

  void visit(const Block &block) {
    if (const Step *step = block.node_as_Step()) {
      for (const Arg *arg : *step->args())
        add(arg->tensor(), arg->access());
    } else if (const Loop *loop = block.node_as_Loop()) {
      loops.push_back(loop);
      for (const Block *inner : *loop->blocks())
        visit(*inner);
      loops.pop_back();
    } else if (const Switch *choice = block.node_as_Switch()) {
      add(choice->selector(), Access::read);
      for (const Case *one : *choice->cases())
        for (const Block *inner : *one->blocks())
          visit(*inner);
    }
  }

private:
  void add(uint32_t index, Access access) {
    const Tensor &tensor = *plan.tensors()->Get(index);
    accesses.push_back(
        {index, tensor.segment(), access, *byteRange(tensor, shiftsOf(index, loops))});
  }

  const Plan &plan;
  LoopNest loops;
  std::vector<ByteAccess> &accesses;
};

} // namespace

std::vector<ByteStep> shiftsOf(uint32_t tensor, const LoopNest &loops) {
  std::vector<ByteStep> shifts;
  for (const Loop *loop : loops)
    if (const LoopStride *stride = loop->strides()->LookupByKey(tensor))
      shifts.push_back({loop->count(), stride->bytes()});
  return shifts;
}

void collectAccesses(const Plan &plan, const Block &block, const LoopNest &loops,
                     std::vector<ByteAccess> &accesses) {
  Collector(plan, loops, accesses).visit(block);
}

} // namespace hydra::runtime
