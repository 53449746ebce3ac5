// A libcuda.so.1 without a GPU, for tests of what is under way when.
#pragma once

#include <cstddef>

namespace hydra::test {

/// What the driver has seen of this process.
struct FakeDriverState {
  size_t live = 0;    ///< memory, streams, events and contexts that nobody has given back
  size_t waiting = 0; ///< copies and memsets that have not begun
  size_t faults = 0;  ///< how many have found their memory gone; memory written behind its end
};

/// Its GPU begins nothing before somebody waits for it, so that memory of the host that is changed
/// too early gives wrong bytes. Memory is there with any content. Kernels and graphs are not
/// supported. Threads without a current context are refused, as the driver does.
FakeDriverState fakeDriverState();

} // namespace hydra::test
