// From where the numbers of a plan come, and a check that no pass behind hydra-to-plan loses any of
// it.
#pragma once

#include "dialects/plan/Plan.h"

#include "mlir/Pass/PassInstrumentation.h"

#include <memory>
#include <string>

namespace hydra::test {

/// Says in `finding`, once, that an element of a variable or output no longer depends on a buffer
/// that it depended on in front of a pass and that is still written. A step's results depend on all
/// of its operands, and on what these depend on: what is computed elsewhere, stored less often or
/// in another order depends on no less for it.
///
/// Buffers have a number while it watches, as an attribute of their own.
std::unique_ptr<mlir::PassInstrumentation> createDataFlowCheck(std::string &finding);

} // namespace hydra::test
