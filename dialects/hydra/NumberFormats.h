// Element types of tensors as rows of the table of number formats (runtime/support/DType.h).
#pragma once

#include "runtime/support/DType.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace hydra {

/// The row of an element type; nothing for a type that is no row.
std::optional<support::DType> formatOf(mlir::Type element);

/// The type that the table spells `irName(format)`.
mlir::Type elementType(mlir::MLIRContext *context, support::DType format);

/// Whether variables, arguments and casts of a model may have these elements: what kernels of all
/// targets compute on.
bool isModelElement(mlir::Type element);
inline constexpr llvm::StringLiteral kModelElements = "f32, bf16, f16 or i32";
inline constexpr llvm::StringLiteral kModelFloats = "f32, bf16 or f16";

/// Whether matmuls of operands of this type may be told to multiply in `format`: theirs, which
/// mixed precision then leaves, or one to which they round, and which no tensor holds.
bool canMultiplyIn(mlir::Type element, mlir::Type format);
/// What a matmul that is told to multiply in `compute` rounds an operand to as it reads it; null
/// for its own format, and for what is no factor: the third operand, which is added.
mlir::Type formatOfFactor(unsigned operand, std::optional<mlir::Type> compute);

/// Whether it is the format in which matmuls of any operands add up their products.
bool isSumFormat(mlir::Type element);

/// Whether it is a float of 16 bits: what mixed precision rounds values to.
bool isNarrowFloat(mlir::Type element);

/// Whether it is a float of 8 bits: what `hydra.quantize` makes, and nothing computes on but
/// `hydra.quantized_matmul`.
bool isEightBitFloat(mlir::Type element);
inline constexpr llvm::StringLiteral kEightBitFloats = "f8E4M3FN or f8E5M2";

/// Whether it is i8: what rows of a weight are rounded to that nothing changes, each with a scale.
/// Matmuls and lookups read it, and casts widen it.
inline bool isInt8(mlir::Type element) { return element.isSignlessInteger(8); }

/// Whether it is i4: what groups of neighbours in a row of a weight are rounded to that nothing
/// changes, each with a scale (support::quantizeGroup). No value has such elements: programs read
/// bytes of i8, each with two numbers.
inline bool isInt4(mlir::Type element) { return element.isSignlessInteger(4); }

/// Whether a parameter of these elements is held as integers, with scales beside it.
inline bool isHeldAsIntegers(mlir::Type element) { return isInt8(element) || isInt4(element); }

/// Whether it is i16: what a parameter of bf16 leaves out of a number of f32. `hydra.join_master`
/// reads it, and what moves elements.
inline bool isMasterRest(mlir::Type element) { return element.isSignlessInteger(16); }

/// At multiples of so many bytes matmuls read the scales of 8-bit operands (cuBLASLt does not run
/// with others, and does not say so before it runs).
inline constexpr int64_t kScaleBytes = 16;

} // namespace hydra
