// The enums of HydraEnums.td.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectImplementation.h"

#include <optional>

#include "dialects/hydra/HydraEnums.h.inc"
