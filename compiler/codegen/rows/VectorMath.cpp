// Polynomials are minimax for the relative error, fitted by the Remez algorithm at 40 digits.
#include "compiler/codegen/rows/VectorMath.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

#include <cmath>
#include <vector>

using namespace llvm;

namespace hydra {

VectorMath::VectorMath(IRBuilderBase &builder)
    : b(builder),
      level(b.GetInsertBlock()->getParent()->getFnAttribute("target-cpu").getValueAsString()) {}

//===-- Building blocks ---------------------------------------------------------------------===//

Value *VectorMath::like(Value *x, double value) { return ConstantFP::get(x->getType(), value); }

Type *VectorMath::intsLike(Value *x) { return x->getType()->getWithNewType(b.getInt32Ty()); }

Value *VectorMath::likeInt(Value *x, uint32_t value) {
  return ConstantInt::get(intsLike(x), value);
}

Value *VectorMath::fma(Value *x, Value *y, Value *z) {
  return b.CreateIntrinsic(Intrinsic::fma, {x->getType()}, {x, y, z});
}

Value *VectorMath::polynomial(Value *x, ArrayRef<double> c) {
  Value *sum = like(x, c.back());
  for (double term : llvm::reverse(c.drop_back()))
    sum = fma(sum, x, like(x, term));
  return sum;
}

Value *VectorMath::abs(Value *x) { return b.CreateUnaryIntrinsic(Intrinsic::fabs, x); }

Value *VectorMath::max(Value *x, Value *y) { return choose(b.CreateFCmpOLT(x, y), x, y); }
Value *VectorMath::min(Value *x, Value *y) { return choose(b.CreateFCmpOLT(y, x), x, y); }

/// A comparison with nan is false, which leaves x.
Value *VectorMath::choose(Value *second, Value *x, Value *y) {
  return b.CreateSelect(b.CreateFCmpUNO(y, y), y, b.CreateSelect(second, y, x));
}

Value *VectorMath::mulHigh(Value *x, Value *y) {
  Type *wide = x->getType()->getWithNewType(b.getInt64Ty());
  Value *product = b.CreateMul(b.CreateZExt(x, wide), b.CreateZExt(y, wide));
  return b.CreateTrunc(b.CreateLShr(product, 32), x->getType());
}

Value *VectorMath::sqrt(Value *x) { return b.CreateUnaryIntrinsic(Intrinsic::sqrt, x); }
Value *VectorMath::rsqrt(Value *x) { return b.CreateFDiv(like(x, 1.0), sqrt(x)); }

Value *VectorMath::unary(RowUnary f, Value *x) {
  switch (f) {
  case RowUnary::Neg:
    return x->getType()->isFPOrFPVectorTy() ? b.CreateFNeg(x) : b.CreateNeg(x);
  case RowUnary::Exp:
    return exp(x);
  case RowUnary::Log:
    return log(x);
  case RowUnary::Sqrt:
    return sqrt(x);
  case RowUnary::Rsqrt:
    return rsqrt(x);
  case RowUnary::Tanh:
    return tanh(x);
  case RowUnary::Erf:
    return erf(x);
  case RowUnary::Sigmoid:
    return sigmoid(x);
  case RowUnary::Sin:
  case RowUnary::Cos: {
    const SinCos both = sinCos(smallAngle(x));
    return b.CreateFPTrunc(f == RowUnary::Sin ? both.sin : both.cos, x->getType());
  }
  case RowUnary::PowerOfTwo:
    return powerOfTwo(x);
  case RowUnary::Bits:
    return bits(x);
  case RowUnary::OfBits:
    return b.CreateBitCast(x, x->getType()->getWithNewType(b.getFloatTy()));
  }
  llvm_unreachable("thirteen functions");
}

//===-- exp, sigmoid, tanh, erf -------------------------------------------------------------===//

/// x = n ln 2 + r with |r| <= ln 2 / 2;  e^r = 1 + (r + r² q(r)), |error| < 3.3e-9;  n reaches from
/// -151 to 128.
Value *VectorMath::exp(Value *x) {
  // Beyond these the result is 0 or inf already; the comparisons keep nans.
  x = max(min(x, like(x, 89.0)), like(x, -104.5));
  // Adding 3 * 2^22 rounds to an integer, which then stands in the low bits.
  Value *magic = like(x, 0x1.8p23);
  Value *shifted = fma(x, like(x, 0x1.715476p0), magic);
  Value *n = b.CreateFSub(shifted, magic);
  Value *r = fma(n, like(x, -0x1.62e400p-1), x); // 15 bits of ln 2: n times it is exact
  r = fma(n, like(x, -0x1.7f7d1cp-20), r);
  Value *q = polynomial(r, {0.49999993050401564908, 0.16666514790378814506, 0.041668456859090650757,
                            0.0083694189359274890238, 0.0013813140977857858802});
  Value *p = b.CreateFAdd(fma(b.CreateFMul(r, r), q, r), like(x, 1.0));
  return scale(p, n, shifted);
}

/// p 2^n for |n| < 300, rounded once; `shifted` is n + 3 * 2^22, whose low bits are n.
Value *VectorMath::scale(Value *p, Value *n, Value *shifted) {
  if (level == "x86-64-v4" && p->getType()->isVectorTy()) {
    Value *all = b.getInt16(-1), *currentRounding = b.getInt32(4);
    return b.CreateIntrinsic(Intrinsic::x86_avx512_mask_scalef_ps_512, ArrayRef<Type *>(),
                             {p, n, p, all, currentRounding});
  }
  // In two steps, of which the first is exact. All but the low bits drop out of the shifts.
  Value *first = b.CreateAShr(bits(shifted), likeInt(p, 1));
  auto power = [&](Value *e) { // 2^e for a normal exponent
    Value *biased = b.CreateAdd(b.CreateShl(e, likeInt(p, 23)), likeInt(p, 0x3f800000));
    return b.CreateBitCast(biased, p->getType());
  };
  return b.CreateFMul(b.CreateFMul(p, power(first)), power(b.CreateSub(bits(shifted), first)));
}

/// With e = e^-|x|: 1 / (1 + e) for x >= 0, else e / (1 + e), which keeps small results exact.
Value *VectorMath::sigmoid(Value *x) {
  Value *one = like(x, 1.0);
  Value *e = exp(b.CreateFNeg(abs(x)));
  Value *top = b.CreateSelect(b.CreateFCmpOLT(x, like(x, 0.0)), e, one);
  return b.CreateFDiv(top, b.CreateFAdd(one, e));
}

/// |x| < 0.625: x + x z P(z) with z = x²; else 1 - 2 / (e^2|x| + 1) with the sign of x.
Value *VectorMath::tanh(Value *x) {
  Value *z = b.CreateFMul(x, x);
  Value *p =
      polynomial(z, {-0.33333279547399571679, 0.13331373443028767688, -0.053733695176227890753,
                     0.020618619713158315504, -0.0056812786375015285514});
  Value *small = fma(b.CreateFMul(x, z), p, x);
  Value *magnitude = abs(x);
  Value *e = exp(b.CreateFAdd(magnitude, magnitude));
  Value *one = like(x, 1.0);
  Value *large = b.CreateFSub(one, b.CreateFDiv(like(x, 2.0), b.CreateFAdd(e, one)));
  large = b.CreateBinaryIntrinsic(Intrinsic::copysign, large, x);
  return b.CreateSelect(b.CreateFCmpOLT(magnitude, like(x, 0.625)), small, large);
}

/// |x| <= 0.9277: x + x P(x²); else 1 - e^-(|x| + |x| Q(|x|)) with the sign of x.
Value *VectorMath::erf(Value *x) {
  Value *z = b.CreateFMul(x, x);
  Value *p = polynomial(z, {0x1.06eba8p-3, -0x1.812700p-2, 0x1.ce1c44p-4, -0x1.b691b2p-6,
                            0x1.471a58p-8, -0x1.38e000p-11});
  Value *small = fma(p, x, x);
  Value *magnitude = abs(x);
  // The two highest pairs of coefficients together, for one step less in the chain.
  Value *top = fma(like(x, -0x1.22p-16), magnitude, like(x, 0x1.91cfb2p-12));
  Value *next = fma(like(x, -0x1.fd1438p-9), magnitude, like(x, 0x1.8d6342p-6));
  Value *q = fma(top, z, next);
  for (double term : {-0x1.b55cb8p-4, -0x1.450aa0p-1, -0x1.079d0cp-3})
    q = fma(q, magnitude, like(x, term));
  q = fma(q, magnitude, b.CreateFNeg(magnitude));
  Value *large = b.CreateFSub(like(x, 1.0), exp(q));
  large = b.CreateBinaryIntrinsic(Intrinsic::copysign, large, x);
  return b.CreateSelect(b.CreateFCmpOGT(magnitude, like(x, 0.927734375)), large, small);
}

//===-- log ---------------------------------------------------------------------------------===//

/// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt 2);  log(1 + f) = f - f²/2 + f³ P(f).
Value *VectorMath::log(Value *x) {
  // Denormals are scaled into the normal range.
  Value *tiny = b.CreateFCmpOLT(x, like(x, 0x1p-126));
  Value *scaled = b.CreateSelect(tiny, b.CreateFMul(x, like(x, 0x1p23)), x);
  Value *shift = b.CreateSelect(tiny, like(x, -23.0), like(x, 0.0));
  // Subtracting the bits of sqrt(1/2) leaves e in the exponent field.
  Value *offset = b.CreateSub(bits(scaled), likeInt(x, 0x3f3504f3));
  Value *e =
      b.CreateFAdd(b.CreateSIToFP(b.CreateAShr(offset, likeInt(x, 23)), x->getType()), shift);
  Value *mantissa =
      b.CreateAdd(b.CreateAnd(offset, likeInt(x, 0x007fffff)), likeInt(x, 0x3f3504f3));
  Value *f = b.CreateFSub(b.CreateBitCast(mantissa, x->getType()), like(x, 1.0));
  Value *p =
      polynomial(f, {0.33333331592224719566, -0.25000849983190376864, 0.20001271094650234223,
                     -0.16622285540783003004, 0.14199827275925380627, -0.13169347603335161777,
                     0.12780693994754534445, -0.076336828300285263054});
  Value *square = b.CreateFMul(f, f);
  Value *low = b.CreateFMul(b.CreateFMul(square, f), p);
  low = fma(e, like(x, 0x1.7f7d1cp-20), low);
  low = fma(square, like(x, -0.5), low);
  Value *result = fma(e, like(x, 0x1.62e400p-1), b.CreateFAdd(f, low));
  // 0, inf, negative numbers and nans.
  Value *isInf = b.CreateFCmpOEQ(x, like(x, std::numeric_limits<double>::infinity()));
  result = b.CreateSelect(isInf, x, result);
  result =
      b.CreateSelect(b.CreateFCmpULT(x, like(x, 0.0)), ConstantFP::getNaN(x->getType()), result);
  return b.CreateSelect(b.CreateFCmpOEQ(x, like(x, 0.0)),
                        ConstantFP::getInfinity(x->getType(), /*Negative=*/true), result);
}

//===-- sin and cos of doubles --------------------------------------------------------------===//

/// x = k pi/2 + r with |r| <= pi/4; pi/2 in two parts. The quadrant k mod 4 swaps and negates.
VectorMath::SinCos VectorMath::sinCos(Value *x) {
  Value *magic = like(x, 0x1.8p52);
  Value *shifted = fma(x, like(x, 0x1.45f306dc9c883p-1), magic);
  Value *k = b.CreateFSub(shifted, magic);
  Value *r = fma(k, like(x, -0x1.921fb54442d18p0), x);
  r = fma(k, like(x, -0x1.1a62633145c07p-54), r);
  Value *z = b.CreateFMul(r, r);
  Value *sinTail = polynomial(z, {-0.16666666666666629938, 0.0083333333333218680805,
                                  -0.00019841269829352265046, 2.755731352794627389e-6,
                                  -2.5050731589732913598e-8, 1.5895212502665392421e-10});
  Value *cosTail = polynomial(z, {0.041666666666666595432, -0.0013888888888873387308,
                                  0.000024801587289001583865, -2.7557314208050959469e-7,
                                  2.0875702978798593293e-9, -1.1358564237937076628e-11});
  Value *sin = fma(b.CreateFMul(r, z), sinTail, r);
  Value *cos = fma(z, fma(z, cosTail, like(x, -0.5)), like(x, 1.0));

  Type *ints = x->getType()->getWithNewType(b.getInt64Ty());
  Value *quadrant = b.CreateBitCast(shifted, ints); // its low bits
  auto bit = [&](Value *v, uint64_t mask) {
    return b.CreateICmpNE(b.CreateAnd(v, ConstantInt::get(ints, mask)), ConstantInt::get(ints, 0));
  };
  Value *odd = bit(quadrant, 1);
  Value *sinSwapped = b.CreateSelect(odd, cos, sin);
  Value *cosSwapped = b.CreateSelect(odd, sin, cos);
  Value *sinNegative = bit(quadrant, 2);
  Value *cosNegative = bit(b.CreateAdd(quadrant, ConstantInt::get(ints, 1)), 2);
  return {b.CreateSelect(sinNegative, b.CreateFNeg(sinSwapped), sinSwapped),
          b.CreateSelect(cosNegative, b.CreateFNeg(cosSwapped), cosSwapped)};
}

/// 2^e 2/pi mod 4 for e = 0 … 104, as sums of two doubles: the quarter turns that floats beyond
/// 2^24, whole numbers of 24 bits times 2^e, go around. From the bits of 2/pi behind its point.
static std::vector<double> quarterTurns(unsigned part) {
  constexpr uint32_t bits[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599,
                               0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a};
  auto bitAt = [&](int i) { return i < 0 ? 0 : bits[i / 32] >> (31 - i % 32) & 1; };
  std::vector<double> values;
  for (int e = 0; e <= 104; ++e) {
    double value = 0.0; // 53 bits of weights 2, 1, 1/2 …, or the 53 behind them
    for (int i = 0; i < 53; ++i)
      value += std::ldexp(bitAt(e - 2 + 53 * part + i), 1 - 53 * part - i);
    values.push_back(value);
  }
  return values;
}

Value *VectorMath::lookUp(ArrayRef<double> table, StringRef name, Value *index) {
  constexpr unsigned kGlobalMemory = 1; // of NVPTX; of others the same as any
  Module *module = b.GetInsertBlock()->getModule();
  const std::string full = (b.GetInsertBlock()->getParent()->getName() + "_" + name).str();
  GlobalVariable *global = module->getNamedGlobal(full);
  if (!global) {
    Constant *values = ConstantDataArray::get(b.getContext(), table);
    global = new GlobalVariable(*module, values->getType(), /*isConstant=*/true,
                                GlobalValue::InternalLinkage, values, full, nullptr,
                                GlobalValue::NotThreadLocal,
                                module->getTargetTriple().isNVPTX() ? kGlobalMemory : 0);
    global->setAlignment(Align(8));
  }
  Value *address = b.CreateGEP(b.getDoubleTy(), global, index);
  auto *vector = dyn_cast<VectorType>(index->getType());
  return vector ? b.CreateMaskedGather(VectorType::get(b.getDoubleTy(), vector->getElementCount()),
                                       address, Align(8))
                : static_cast<Value *>(b.CreateLoad(b.getDoubleTy(), address));
}

Value *VectorMath::smallAngle(Value *x) {
  Value *wide = b.CreateFPExt(x, x->getType()->getWithNewType(b.getDoubleTy()));
  // x = m 2^e, with a whole m, where it is large; then x 2/pi = m (high + low) modulo 4.
  Value *exponent = b.CreateAnd(b.CreateLShr(bits(x), likeInt(x, 23)), likeInt(x, 0xff));
  Value *e = b.CreateIntrinsic(Intrinsic::usub_sat, {intsLike(x)}, {exponent, likeInt(x, 150)});
  e = b.CreateIntrinsic(Intrinsic::umin, {intsLike(x)}, {e, likeInt(x, 104)});
  Type *longs = wide->getType()->getWithNewType(b.getInt64Ty());
  Value *wideE = b.CreateZExt(e, longs);
  Value *power = b.CreateShl(b.CreateSub(ConstantInt::get(longs, 1023), wideE),
                             ConstantInt::get(longs, 52)); // the bits of 2^-e
  Value *m = b.CreateFMul(wide, b.CreateBitCast(power, wide->getType()));
  Value *high = lookUp(quarterTurns(0), "quarter_turns", e),
        *low = lookUp(quarterTurns(1), "quarter_turns_low", e);
  Value *turns = b.CreateFMul(m, high);
  Value *rest = fma(m, low, fma(m, high, b.CreateFNeg(turns)));
  auto nearestWhole = [&](Value *v) { // adding 3 * 2^51 rounds
    Value *magic = like(v, 0x1.8p52);
    return b.CreateFSub(b.CreateFAdd(v, magic), magic);
  };
  Value *rounds =
      b.CreateFMul(nearestWhole(b.CreateFMul(turns, like(turns, 0.25))), like(turns, 4.0));
  Value *angle = b.CreateFMul(b.CreateFAdd(b.CreateFSub(turns, rounds), rest),
                              like(turns, 0x1.921fb54442d18p0));
  Value *isLarge = b.CreateFCmpOGE(abs(x), like(x, 0x1p24));
  return b.CreateSelect(isLarge, angle, wide);
}

Value *VectorMath::powerOfTwo(Value *x) {
  Value *power = b.CreateBitCast(b.CreateAnd(bits(x), likeInt(x, 0x7f800000)), x->getType());
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, power);
}

//===-- Types -------------------------------------------------------------------------------===//

Value *VectorMath::roundTo(RowType type, Value *x) {
  if (type == RowType::F16)
    return b.CreateFPExt(b.CreateFPTrunc(x, x->getType()->getWithNewType(b.getHalfTy())),
                         x->getType());
  if (isEightBit(type))
    return roundToEight(type, x);
  if (type == RowType::I8) { // adding 3 * 2^22 rounds to a whole number; nan becomes the least
    Value *magic = like(x, 0x1.8p23);
    Value *whole = b.CreateFSub(b.CreateFAdd(x, magic), magic);
    whole = b.CreateSelect(b.CreateFCmpOGT(x, like(x, 127.0)), like(x, 127.0), whole);
    return b.CreateSelect(b.CreateFCmpULT(x, like(x, -128.0)), like(x, -128.0), whole);
  }
  Value *u = bits(x);
  Value *odd = b.CreateAnd(b.CreateLShr(u, likeInt(x, 16)), likeInt(x, 1));
  Value *rounded = b.CreateAdd(u, b.CreateAdd(odd, likeInt(x, 0x7fff)));
  Value *isNan = b.CreateFCmpUNO(x, x);
  rounded = b.CreateSelect(isNan, b.CreateOr(u, likeInt(x, 0x00400000)), rounded);
  return b.CreateBitCast(b.CreateAnd(rounded, likeInt(x, 0xffff0000)), x->getType());
}

/// Of a normal number all but the upper bits of the mantissa are rounded away; below the normal
/// range numbers are multiples of the smallest one, to which adding 3 * 2^22 times that number
/// rounds.
Value *VectorMath::roundToEight(RowType type, Value *x) {
  const support::NumberFormat &format = support::formatOf(formatOf(type));
  const uint32_t dropped = 23 - format.mantissa, half = 1u << (dropped - 1);
  const double smallest = support::smallestNumber(format.dtype),
               leastNormal = std::ldexp(smallest, format.mantissa),
               largest = support::largestNumber(format.dtype);
  Value *magnitude = abs(x);
  Value *u = bits(magnitude);
  Value *odd = b.CreateAnd(b.CreateLShr(u, likeInt(x, dropped)), likeInt(x, 1));
  Value *rounded = b.CreateAdd(u, b.CreateAdd(odd, likeInt(x, half - 1)));
  rounded = b.CreateBitCast(b.CreateAnd(rounded, likeInt(x, ~(2 * half - 1))), x->getType());
  Value *magic = like(x, 0x1.8p23 * smallest);
  Value *multiple = b.CreateFSub(b.CreateFAdd(magnitude, magic), magic);
  rounded = b.CreateSelect(b.CreateFCmpOLT(magnitude, like(x, leastNormal)), multiple, rounded);
  rounded = b.CreateSelect(b.CreateFCmpOGT(rounded, like(x, largest)), like(x, largest), rounded);
  rounded = b.CreateBinaryIntrinsic(Intrinsic::copysign, rounded, x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, rounded);
}

/// Of e4m3: a number of three bits behind the point whose exponent is 120 less than that of f32.
/// All bits but the sign are a nan; below the normal range numbers are multiples of 2^-9.
Value *VectorMath::eightFromMemory(Value *raw) {
  Value *u = b.CreateZExt(raw, intsLike(raw));
  Type *floats = u->getType()->getWithNewType(b.getFloatTy());
  Value *magnitude = b.CreateAnd(u, likeInt(u, 0x7f));
  Value *normal = b.CreateBitCast(
      b.CreateAdd(b.CreateShl(magnitude, likeInt(u, 20)), likeInt(u, 120u << 23)), floats);
  Value *multiple =
      b.CreateFMul(b.CreateSIToFP(magnitude, floats), ConstantFP::get(floats, 0x1p-9));
  Value *value = b.CreateSelect(b.CreateICmpULT(magnitude, likeInt(u, 8)), multiple, normal);
  value = b.CreateSelect(b.CreateICmpEQ(magnitude, likeInt(u, 0x7f)), ConstantFP::getNaN(floats),
                         value);
  Value *sign = b.CreateShl(b.CreateAnd(u, likeInt(u, 0x80)), likeInt(u, 24));
  return b.CreateBitCast(b.CreateOr(bits(value), sign), floats);
}

Value *VectorMath::eightToMemory(Value *x) {
  Value *magnitude = abs(x);
  Value *normal = b.CreateSub(b.CreateLShr(bits(magnitude), likeInt(x, 20)), likeInt(x, 120u << 3));
  Value *isSmall = b.CreateFCmpOLT(magnitude, like(x, 0x1p-6));
  // Only what is small is converted: there is no integer for all others.
  Value *multiple = b.CreateFPToSI(
      b.CreateFMul(b.CreateSelect(isSmall, magnitude, like(x, 0.0)), like(x, 0x1p9)), intsLike(x));
  Value *pattern = b.CreateSelect(isSmall, multiple, normal);
  pattern = b.CreateSelect(b.CreateFCmpUNO(x, x), likeInt(x, 0x7f), pattern);
  Value *sign = b.CreateAnd(b.CreateLShr(bits(x), likeInt(x, 24)), likeInt(x, 0x80));
  return b.CreateTrunc(b.CreateOr(pattern, sign), x->getType()->getWithNewType(b.getInt8Ty()));
}

Value *VectorMath::convert(Value *x, RowType from, RowType to) {
  if (from == to || (isNarrow(from) && to == RowType::F32))
    return x;
  if (isFloat(from)) {
    if (isNarrow(to))
      return roundTo(to, x);
    if (to == RowType::I1)
      return b.CreateFCmpUNE(x, like(x, 0.0));
    return b.CreateIntrinsic(Intrinsic::fptosi_sat, {intsLike(x), x->getType()}, {x});
  }
  if (to == RowType::I1)
    return b.CreateICmpNE(x, Constant::getNullValue(x->getType()));
  if (from == RowType::I1)
    x = b.CreateZExt(x, intsLike(x));
  if (to == RowType::I32)
    return x;
  if (to == RowType::I16)
    return b.CreateSExt(b.CreateTrunc(x, x->getType()->getWithNewType(b.getInt16Ty())),
                        x->getType());
  Value *number = b.CreateSIToFP(x, x->getType()->getWithNewType(b.getFloatTy()));
  return isNarrow(to) ? roundTo(to, number) : number;
}

Value *VectorMath::fromMemory(Value *raw, RowType type) {
  if (type == RowType::I1)
    return b.CreateICmpNE(raw, Constant::getNullValue(raw->getType()));
  if (type == RowType::I16)
    return b.CreateSExt(raw, intsLike(raw));
  if (type == RowType::E4M3)
    return eightFromMemory(raw);
  if (type == RowType::I8)
    return b.CreateSIToFP(raw, raw->getType()->getWithNewType(b.getFloatTy()));
  if (type == RowType::E5M2) // the upper half of f16
    return fromMemory(
        b.CreateShl(b.CreateZExt(raw, raw->getType()->getWithNewType(b.getInt16Ty())), 8),
        RowType::F16);
  if (type == RowType::F16)
    return b.CreateFPExt(b.CreateBitCast(raw, raw->getType()->getWithNewType(b.getHalfTy())),
                         raw->getType()->getWithNewType(b.getFloatTy()));
  if (type != RowType::BF16)
    return raw;
  Value *wide = b.CreateShl(b.CreateZExt(raw, intsLike(raw)), likeInt(raw, 16));
  return b.CreateBitCast(wide, wide->getType()->getWithNewType(b.getFloatTy()));
}

Value *VectorMath::toMemory(Value *x, RowType type) {
  if (type == RowType::I1)
    return b.CreateZExt(x, x->getType()->getWithNewType(b.getInt8Ty()));
  if (type == RowType::I16)
    return b.CreateTrunc(x, x->getType()->getWithNewType(b.getInt16Ty()));
  if (type == RowType::E4M3)
    return eightToMemory(x);
  if (type == RowType::I8)
    return b.CreateFPToSI(x, x->getType()->getWithNewType(b.getInt8Ty()));
  if (type == RowType::E5M2)
    return b.CreateTrunc(b.CreateLShr(toMemory(x, RowType::F16), 8),
                         x->getType()->getWithNewType(b.getInt8Ty()));
  if (type == RowType::F16)
    return b.CreateBitCast(b.CreateFPTrunc(x, x->getType()->getWithNewType(b.getHalfTy())),
                           x->getType()->getWithNewType(b.getInt16Ty()));
  if (type != RowType::BF16)
    return x;
  return b.CreateTrunc(b.CreateLShr(bits(x), likeInt(x, 16)),
                       x->getType()->getWithNewType(b.getInt16Ty()));
}

Type *VectorMath::memoryType(RowType type) {
  switch (type) {
  case RowType::F32:
    return b.getFloatTy();
  case RowType::BF16:
  case RowType::F16:
  case RowType::I16:
    return b.getInt16Ty();
  case RowType::I32:
    return b.getInt32Ty();
  case RowType::E4M3:
  case RowType::E5M2:
  case RowType::I8:
  case RowType::I1:
    return b.getInt8Ty();
  }
  llvm_unreachable("nine types");
}

Type *VectorMath::valueType(RowType type) {
  switch (type) {
  case RowType::F32:
  case RowType::BF16:
  case RowType::F16:
  case RowType::E4M3:
  case RowType::E5M2:
  case RowType::I8:
    return b.getFloatTy();
  case RowType::I16:
  case RowType::I32:
    return b.getInt32Ty();
  case RowType::I1:
    return b.getInt1Ty();
  }
  llvm_unreachable("nine types");
}

} // namespace hydra
