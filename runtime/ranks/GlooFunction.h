// The one function of libhydra-gloo.so, the library that knows Gloo.
#pragma once

#include "runtime/ranks/Channel.h"
#include "runtime/ranks/Communicator.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hydra::runtime {

struct GlooOptions {
  uint32_t rank = 0;
  std::vector<uint32_t> mesh; ///< sizes of the axes, outermost first
  std::string address;        ///< the number of the address to listen at
  Store *store = nullptr;     ///< where ranks find each other; used only while this is made
};

/// Throws CommunicationError when ranks cannot be connected, as the communicator's calls do.
using MakeGlooCommunicator = Communicator *(const GlooOptions &options);

} // namespace hydra::runtime

extern "C" hydra::runtime::MakeGlooCommunicator hydraMakeGlooCommunicator;
