// What groups emit through RowEmitter, evaluated in float64.
#pragma once

#include "compiler/reference/Interpreter.h"

namespace hydra::test {

/// The outputs and updates of a program whose groups are evaluated by their emission, everything
/// else by its reference.
TensorMap interpretEmission(EntryOp program, const TensorMap &values);

} // namespace hydra::test
