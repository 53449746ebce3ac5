// The plan dialect: its operations, and who must come before whom.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/Roofline.h"
#include "runtime/support/StreamTimeline.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/plan/Lowering.h"

#include "dialects/plan/PlanDialect.h.inc"
#include "dialects/plan/PlanEnums.h.inc"

namespace hydra::plan {

using ::hydra::Category;

/// How a step uses an argument.
enum Access : int64_t { kRead = 0, kWrite = 1, kUpdate = 2 };

} // namespace hydra::plan

#include "dialects/plan/PlanInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace hydra::plan {

/// The `plan.buffer` behind views, and the first element's distance from its start.
struct Place {
  BufferOp buffer;
  int64_t bytes = 0;
};
Place placeOf(mlir::Value v);

/// Whether two values are the same elements of a buffer, under one name or two.
bool sameElements(mlir::Value a, mlir::Value b);

/// Bytes (a power of two, at most 256) by which the first element is aligned, wherever loops move
/// it. Buffers without an offset yet count as aligned.
int64_t alignmentOf(mlir::Value buffer);

/// Strides of a buffer's type, in elements.
llvm::SmallVector<int64_t> stridesOf(mlir::MemRefType type);
/// Bytes from the first element to the end of the last.
int64_t extentBytes(mlir::MemRefType type);
/// A memref type with these strides (the identity layout where they are dense).
mlir::MemRefType bufferType(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides,
                            mlir::Type element);

} // namespace hydra::plan
