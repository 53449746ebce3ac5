// What the library function `matmul` multiplies: the same on every target.
#pragma once

#include "runtime/cpu/Library.h"
#include "runtime/cpu/Matmul.h"

namespace hydra::runtime {

/// The product that a step calls for; MatmulCall.cpp lists the shapes. Throws Error when its
/// tensors do not fit.
MatmulSpec describeMatmul(const CallSite &site);

} // namespace hydra::runtime
