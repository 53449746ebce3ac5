// The library's state.
#include "runtime/support/StreamHash.h"

#include <xxhash.h>

#include <new>

namespace hydra::support {

namespace {

XXH3_state_t *of(void *state) { return static_cast<XXH3_state_t *>(state); }

} // namespace

void StreamHash::Free::operator()(void *state) const { XXH3_freeState(of(state)); }

StreamHash::StreamHash(uint64_t seed) : state(XXH3_createState()) {
  if (!state)
    throw std::bad_alloc();
  restart(seed);
}

void StreamHash::restart(uint64_t seed) { XXH3_64bits_reset_withSeed(of(state.get()), seed); }

void StreamHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(of(state.get()), bytes.data(), bytes.size());
}

uint64_t StreamHash::value() const { return XXH3_64bits_digest(of(state.get())); }

} // namespace hydra::support
