// Describes every library call of a plan, which checks it.
#include "runtime/calls/CheckCalls.h"

#include "runtime/calls/AttentionCall.h"
#include "runtime/calls/MatmulCall.h"
#include "runtime/calls/MoveCalls.h"

#include <map>

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
  static const std::map<std::string_view, void (*)(const CallSite &)> functions = {
      {"matmul", [](const CallSite &s) { describeMatmul(s); }},
      {"attention", [](const CallSite &s) { describeAttention(s); }},
      {"attention_grad", checkAttentionGrad},
      {"embedding_grad", [](const CallSite &s) { describeEmbeddingGrad(s); }},
      {"copy", [](const CallSite &s) { describeCopy(s); }},
      {"fill", [](const CallSite &s) { describeFill(s); }},
      {"compact", [](const CallSite &s) { describeCompact(s); }},
      {"nothing", [](const CallSite &) {}}};
  const auto found = functions.find(site.attributes.function());
  if (found == functions.end())
    site.fail("no such function");
  found->second(site);
}

void checkStep(const Plan &plan, const Step &step) {
  const uint32_t alternatives = step.alternatives() ? step.alternatives()->size() : 0;
  const bool call = step.action_as_LibraryCall() != nullptr;
  if (call && alternatives == 0)
    checkCall(CallSite(plan, step));
  for (uint32_t i = 0; i < alternatives; ++i)
    if (call || i > 0) // the first alternative to a launch is the launch
      checkCall(CallSite(plan, step, i));
}

void checkBlocks(const Plan &plan, const BlockList &blocks) {
  for (const Block *block : blocks) {
    if (const Step *step = block->node_as_Step()) {
      checkStep(plan, *step);
    } else if (const Loop *loop = block->node_as_Loop()) {
      checkBlocks(plan, *loop->blocks());
    } else {
      for (const Case *one : *block->node_as_Switch()->cases())
        checkBlocks(plan, *one->blocks());
    }
  }
}

} // namespace

void hydra::runtime::checkCalls(const Plan &plan) {
  for (const Program *program : *plan.programs())
    checkBlocks(plan, *program->blocks());
}
