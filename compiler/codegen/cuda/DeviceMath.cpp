// Functions of the special function unit.
#include "compiler/codegen/cuda/DeviceMath.h"

#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace hydra::cuda {

Value *DeviceMath::assembly(const char *text, Value *x) {
  auto *type = FunctionType::get(b.getFloatTy(), {b.getFloatTy()}, false);
  return b.CreateCall(InlineAsm::get(type, text, "=f,f", /*hasSideEffects=*/false), {x});
}

Value *DeviceMath::exp(Value *x) {
  return assembly("ex2.approx.f32 $0, $1;",
                  b.CreateFMul(x, ConstantFP::get(x->getType(), 0x1.715476p0)));
}

Value *DeviceMath::reciprocal(Value *x) { return assembly("rcp.approx.f32 $0, $1;", x); }

VectorMath::SinCos DeviceMath::sinCos(Value *x) {
  auto number = [&](double value) { return ConstantFP::get(b.getDoubleTy(), value); };
  auto fma = [&](Value *p, Value *q, Value *r) {
    return b.CreateIntrinsic(Intrinsic::fma, {b.getDoubleTy()}, {p, q, r});
  };
  // Adding 3 * 2^51 rounds to an integer.
  Value *magic = number(0x1.8p52);
  Value *turns = b.CreateFSub(fma(x, number(0x1.45f306dc9c883p-3), magic), magic);
  Value *rest = fma(turns, number(-0x1.921fb54442d18p2), x);
  Value *angle = b.CreateFPTrunc(rest, b.getFloatTy());
  return {assembly("sin.approx.f32 $0, $1;", angle), assembly("cos.approx.f32 $0, $1;", angle)};
}

Value *DeviceMath::unary(RowUnary f, Value *x) {
  Value *one = x->getType()->isFloatTy() ? ConstantFP::get(x->getType(), 1.0) : nullptr;
  switch (f) {
  case RowUnary::Exp:
    return exp(x);
  case RowUnary::Sigmoid: // 1 / (1 + e^-x): for x below -88 the sum is inf and the result 0
    return reciprocal(b.CreateFAdd(one, exp(b.CreateFNeg(x))));
  default: // sine and cosine too: the unit's are off by 4e-7, near 0 as well
    return exact.unary(f, x);
  }
}

Value *DeviceMath::convert(Value *x, RowType from, RowType to) {
  if (from != to && isEightBit(to) && convertsEight())
    return fromEight(toEight(exact.convert(x, from, RowType::F32), to), to);
  if (to != RowType::BF16 || from == RowType::BF16)
    return exact.convert(x, from, to);
  // One instruction; the bits then are where toMemory looks for them.
  x = exact.convert(x, from, RowType::F32);
  Value *half = b.CreateBitCast(b.CreateFPTrunc(x, b.getBFloatTy()), b.getInt16Ty());
  Value *wide = b.CreateShl(b.CreateZExt(half, b.getInt32Ty()), b.getInt32(16));
  return b.CreateBitCast(wide, b.getFloatTy());
}

Value *DeviceMath::fromMemory(Value *raw, RowType type) {
  return isEightBit(type) && convertsEight() ? fromEight(raw, type) : exact.fromMemory(raw, type);
}
Value *DeviceMath::toMemory(Value *x, RowType type) {
  return isEightBit(type) && convertsEight() ? toEight(x, type) : exact.toMemory(x, type);
}

bool DeviceMath::convertsEight() const {
  constexpr unsigned first = 89;
  StringRef name = b.GetInsertBlock()->getParent()->getFnAttribute("target-cpu").getValueAsString();
  unsigned number = 0; // of sm_90a: 90
  return name.consume_front("sm_") && !name.consumeInteger(10, number) && number >= first;
}

/// The instructions convert two numbers at a time.
Value *DeviceMath::toEight(Value *x, RowType type) {
  auto *function = FunctionType::get(b.getInt16Ty(), {b.getFloatTy(), b.getFloatTy()}, false);
  const char *text = type == RowType::E4M3 ? "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;"
                                           : "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;";
  Value *pair = b.CreateCall(InlineAsm::get(function, text, "=h,f,f", /*hasSideEffects=*/false),
                             {ConstantFP::get(b.getFloatTy(), 0.0), x});
  return b.CreateTrunc(pair, b.getInt8Ty());
}

Value *DeviceMath::fromEight(Value *raw, RowType type) {
  auto *function = FunctionType::get(b.getInt32Ty(), {b.getInt16Ty()}, false);
  const char *text =
      type == RowType::E4M3 ? "cvt.rn.f16x2.e4m3x2 $0, $1;" : "cvt.rn.f16x2.e5m2x2 $0, $1;";
  Value *halves = b.CreateCall(InlineAsm::get(function, text, "=r,h", /*hasSideEffects=*/false),
                               {b.CreateZExt(raw, b.getInt16Ty())});
  Value *half = b.CreateBitCast(b.CreateTrunc(halves, b.getInt16Ty()), b.getHalfTy());
  return b.CreateFPExt(half, b.getFloatTy());
}

} // namespace hydra::cuda
