// A machine that does not exist: everything is planned, nothing compiled.
#pragma once

#include "compiler/targets/TargetBackend.h"

namespace hydra {

const TargetBackend &nullBackend();

} // namespace hydra
