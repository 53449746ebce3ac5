// Which function an action has on the CPU.
#include "runtime/cpu/Library.h"

using namespace hydra::runtime;

std::unique_ptr<LibraryCall> hydra::runtime::prepareCall(const CallSite &site,
                                                         const CallResources &resources) {
  using planfile::Action;
  switch (site.action.type) {
  case Action::Matmul:
    return prepareMatmul(site, resources.threads);
  case Action::Attention:
    return prepareAttention(site);
  case Action::AttentionGrad:
    return prepareAttentionGrad(site);
  case Action::CachedAttention:
    return prepareCachedAttention(site);
  case Action::Sample:
    return prepareSample(site);
  case Action::EmbeddingGrad:
    return prepareEmbeddingGrad(site);
  case Action::Copy:
    return prepareCopy(site);
  case Action::Transfer:
    return prepareTransfer(site);
  case Action::Fill:
    return prepareFill(site);
  case Action::Compact:
    return prepareCompact(site);
  case Action::AllGather:
    return prepareAllGather(site, resources.ranks);
  case Action::AllToAll:
    return prepareAllToAll(site, resources.ranks);
  case Action::Route:
    return prepareRoute(site);
  case Action::CountExponents:
    return prepareCountExponents(site);
  case Action::GroupedLinear:
    return prepareGroupedLinear(site, resources.threads);
  case Action::GroupedOuter:
    return prepareGroupedOuter(site, resources.threads);
  case Action::Fft:
    return prepareFft(site);
  case Action::LinearRecurrence:
    return prepareLinearRecurrence(site);
  case Action::NONE:
  case Action::Launch:
  case Action::Nothing:
    break;
  }
  site.fail("the CPU has no function for this action");
}
