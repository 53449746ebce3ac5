// The generators of hostile programs by kind.
#include "test/support/HostileProgram.h"

#include "test/support/HostileWriter.h"

namespace hydra::test {

BoundText hostileProgram(HostileKind kind, uint64_t seed) {
  hostile::Writer w(seed * 3 + static_cast<uint64_t>(kind));
  BoundText result;
  if (kind == HostileKind::Training)
    result.text = hostile::trainingModel(w, result.binding.batch, result.binding.seq);
  else
    result.text = hostile::straightModel(w, kind == HostileKind::Scan);
  return result;
}

} // namespace hydra::test
