// What moves bytes between the ranks of a plan for CPUs: loaded when it is needed.
#pragma once

#include "runtime/ranks/Channel.h"
#include "runtime/ranks/Communicator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hydra::runtime {

struct NamedAxis {
  std::string name;
  uint32_t size = 1;
};

/// Connects the ranks of the mesh, outermost axis first, by Gloo; all of them call it at the same
/// time. The channel, which must outlive the result, is told what each call waits in. Throws Error
/// when the library is not beside this program, CommunicationError when ranks cannot be connected,
/// RunEnded.
std::unique_ptr<Communicator> connectRanks(std::vector<NamedAxis> mesh, Channel &channel);

} // namespace hydra::runtime
