// A value that a program has computed and cannot go on with.
#pragma once

#include "runtime/support/Error.h"

namespace hydra::runtime {

/// Thrown by Executor::run. It names the place in the model; whoever runs the program knows in
/// which step of the training that is.
class BadValue : public support::Error {
public:
  using Error::Error;
};

} // namespace hydra::runtime
