// Element types of tensors as rows of the table of number formats.
#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hydra {

using support::DType;

Type elementType(MLIRContext *context, DType format) {
  switch (format) {
  case DType::F64:
    return Float64Type::get(context);
  case DType::F32:
    return Float32Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::I64:
  case DType::I32:
  case DType::I16:
  case DType::I8:
    return IntegerType::get(context, 8 * support::byteSize(format));
  case DType::U8:
  case DType::U16:
  case DType::U32:
    return IntegerType::get(context, 8 * support::byteSize(format), IntegerType::Unsigned);
  case DType::Bool:
    return IntegerType::get(context, 1);
  case DType::E4M3:
    return Float8E4M3FNType::get(context);
  case DType::E5M2:
    return Float8E5M2Type::get(context);
  case DType::TF32:
    return FloatTF32Type::get(context);
  }
  llvm_unreachable("a number format");
}

std::optional<DType> formatOf(Type element) {
  for (const support::NumberFormat &format : support::numberFormats())
    if (elementType(element.getContext(), format.dtype) == element)
      return format.dtype;
  return std::nullopt;
}

bool isModelElement(Type element) {
  return element.isF32() || isNarrowFloat(element) || element.isInteger(32);
}

bool canMultiplyIn(Type element, Type format) {
  return element.isF32() && (format.isF32() || format.isTF32());
}

Type formatOfFactor(unsigned operand, std::optional<Type> compute) {
  return operand < 2 && compute && !compute->isF32() ? *compute : Type();
}

bool isSumFormat(Type element) { return element.isF32(); }

bool isNarrowFloat(Type element) { return element.isBF16() || element.isF16(); }

bool isEightBitFloat(Type element) { return isa<Float8E4M3FNType, Float8E5M2Type>(element); }

} // namespace hydra
