// Describes every step of a plan that an executor has a function for, which checks it.
#include "runtime/calls/CheckCalls.h"

#include "runtime/calls/AttentionCall.h"
#include "runtime/calls/CollectiveCall.h"
#include "runtime/calls/CountCall.h"
#include "runtime/calls/FftCall.h"
#include "runtime/calls/GroupedCalls.h"
#include "runtime/calls/MatmulCall.h"
#include "runtime/calls/MoveCalls.h"
#include "runtime/calls/RecurrenceCall.h"
#include "runtime/calls/SampleCall.h"

#include <algorithm>

using namespace hydra::runtime;
using namespace hydra::planfile;

namespace {

using BlockList = flatbuffers::Vector<flatbuffers::Offset<Block>>;

void checkAttentionGrad(const CallSite &site) {
  const AttentionGradSpec spec = describeAttentionGrad(site);
  if (site.target() == TargetKind::cpu)
    checkAttentionWorkspace(site, spec);
}

void checkCall(const CallSite &site) {
  switch (site.action.type) {
  case Action::Launch: // the verifier's
  case Action::Nothing:
    return;
  case Action::Matmul:
    describeMatmul(site);
    return;
  case Action::Attention:
    describeAttention(site);
    return;
  case Action::AttentionGrad:
    checkAttentionGrad(site);
    return;
  case Action::CachedAttention:
    describeCachedAttention(site);
    return;
  case Action::Sample:
    describeSample(site);
    return;
  case Action::EmbeddingGrad:
    describeEmbeddingGrad(site);
    return;
  case Action::Copy:
    describeCopy(site);
    return;
  case Action::Transfer:
    describeTransfer(site);
    return;
  case Action::Fill:
    describeFill(site);
    return;
  case Action::Compact:
    describeCompact(site);
    return;
  case Action::AllGather:
    describeAllGather(site);
    return;
  case Action::AllToAll:
    describeAllToAll(site);
    return;
  case Action::Route:
    describeRoute(site);
    return;
  case Action::CountExponents:
    describeCountExponents(site);
    return;
  case Action::GroupedLinear:
    describeGroupedLinear(site);
    return;
  case Action::GroupedOuter:
    describeGroupedOuter(site);
    return;
  case Action::Fft:
    describeFft(site);
    return;
  case Action::LinearRecurrence:
    describeLinearRecurrence(site);
    return;
  case Action::NONE:
    break;
  }
  site.fail("no such function");
}

void checkBlocks(const Plan &plan, const BlockList &blocks) {
  for (const Block *block : blocks) {
    if (const Step *step = block->node_as_Step()) {
      checkCalls(plan, *step);
    } else if (const Loop *loop = block->node_as_Loop()) {
      checkBlocks(plan, *loop->blocks());
    } else {
      for (const Case *one : *block->node_as_Switch()->cases())
        checkBlocks(plan, *one->blocks());
    }
  }
}

} // namespace

void hydra::runtime::checkCalls(const Plan &plan, const Step &step) {
  const uint32_t alternatives = step.alternatives() ? step.alternatives()->size() : 0;
  for (uint32_t i = 0; i < std::max<uint32_t>(1, alternatives); ++i)
    checkCall(CallSite(plan, step, i));
}

void hydra::runtime::checkCalls(const Plan &plan) {
  for (const Program *program : *plan.programs())
    checkBlocks(plan, *program->blocks());
}
