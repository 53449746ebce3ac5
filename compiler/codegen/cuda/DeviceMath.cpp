// Functions of the special function unit.
#include "compiler/codegen/cuda/DeviceMath.h"

#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace hydra::cuda {

Value *DeviceMath::assembly(const char *text, Value *x) {
  auto *type = FunctionType::get(b.getFloatTy(), {b.getFloatTy()}, false);
  return b.CreateCall(InlineAsm::get(type, text, "=f,f", /*hasSideEffects=*/false), {x});
}

Value *DeviceMath::choose(const char *instruction, Value *x, Value *y) {
  auto *type = FunctionType::get(b.getFloatTy(), {b.getFloatTy(), b.getFloatTy()}, false);
  return b.CreateCall(InlineAsm::get(type, std::string(instruction) + " $0, $1, $2;", "=f,f,f",
                                     /*hasSideEffects=*/false),
                      {x, y});
}

Value *DeviceMath::exp(Value *x) {
  return assembly("ex2.approx.ftz.f32 $0, $1;",
                  b.CreateFMul(x, ConstantFP::get(x->getType(), 0x1.715476p0)));
}

Value *DeviceMath::reciprocal(Value *x) { return assembly("rcp.approx.ftz.f32 $0, $1;", x); }

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
  const bool eight = isEightBit(to) && convertsEight();
  if (from == to || (to != RowType::BF16 && !eight))
    return exact.convert(x, from, to);
  x = exact.convert(x, from, RowType::F32);
  // Two bf16 at a time take one of many units, one by itself one of few. Zero in the lower half,
  // and the pair is the rounded number itself.
  Value *rounded =
      eight ? fromEight(toEight(x, to), to)
            : b.CreateBitCast(toPair(x, ConstantFP::get(b.getFloatTy(), 0.0)), b.getFloatTy());
  roundedValues[rounded] = {x, to};
  return rounded;
}

Value *DeviceMath::toPair(Value *high, Value *low) {
  auto *function = FunctionType::get(b.getInt32Ty(), {b.getFloatTy(), b.getFloatTy()}, false);
  return b.CreateCall(InlineAsm::get(function, "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f",
                                     /*hasSideEffects=*/false),
                      {high, low});
}

Value *DeviceMath::fromMemory(Value *raw, RowType type) {
  return isEightBit(type) && convertsEight() ? fromEight(raw, type) : exact.fromMemory(raw, type);
}

Value *DeviceMath::sourceOf(Value *x, RowType type) const {
  const Rounded rounded = roundedValues.lookup(x);
  return rounded.type == type ? rounded.source : nullptr;
}

Value *DeviceMath::toMemory(Value *x, RowType type) {
  Value *source = sourceOf(x, type);
  if (isEightBit(type) && convertsEight())
    return toEight(source ? source : x, type);
  if (type == RowType::BF16 && source) // neighbours are converted in pairs then
    return b.CreateBitCast(b.CreateFPTrunc(source, b.getBFloatTy()), b.getInt16Ty());
  return exact.toMemory(x, type);
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
