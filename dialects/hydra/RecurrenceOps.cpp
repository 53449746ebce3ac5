// Linear recurrences along rows.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

#include <complex>

using namespace mlir;

namespace hydra {

//===-- What both have in common ------------------------------------------------------------===//

/// Checks x, the parameters and, if there is one, what says where tokens begin anew.
static LogicalResult wantOperands(TypeInference &infer, Value x, ArrayRef<Value> parameters,
                                  Value begins) {
  if (failed(infer.wantFloat(x, "x")))
    return failure();
  ArrayRef<int64_t> shape = infer.shape(x);
  if (shape.size() != 3)
    return infer.fail("x is " + shapeText(shape) + "; expected [batch, tokens, channels]");
  if (failed(infer.wantExact(x, "x", shape)) || failed(infer.wantFloat(parameters[0], "q_re")))
    return failure();
  ArrayRef<int64_t> states = infer.shape(parameters[0]);
  if (states.size() != 2 || states[0] != shape[2])
    return infer.fail("q_re is " + shapeText(states) + "; expected [" + Twine(shape[2]) +
                      ", states of a channel]");
  if (states[1] > LinearRecurrenceOp::kMostStates)
    return infer.fail("a channel has " + Twine(states[1]) + " states; expected at most " +
                      Twine(LinearRecurrenceOp::kMostStates));
  constexpr StringLiteral names[] = {"q_re", "q_im", "c_re", "c_im"};
  for (auto [parameter, name] : llvm::zip(parameters, names))
    if (failed(infer.wantExact(parameter, name, states)))
      return failure();
  return begins ? infer.wantExact(begins, "begins", {shape[0], shape[1], 1}) : success();
}

namespace {

using Complex = std::complex<double>;

/// A channel of a sequence of a recurrence, for its reference.
class Row {
public:
  /// Operands from x on.
  Row(ArrayRef<const RefTensor *> in, int64_t batch, int64_t channel)
      : in(in), tokens(in[0]->shape[1]), channels(in[0]->shape[2]), batch(batch), channel(channel) {
  }

  int64_t place(int64_t token) const { return (batch * tokens + token) * channels + channel; }
  Complex q(int64_t at) const { return {in[1]->data[at], in[2]->data[at]}; }
  Complex c(int64_t at) const { return {in[3]->data[at], in[4]->data[at]}; }
  /// What is left of the state in front of a token.
  double kept(int64_t token) const {
    return in.size() > 5 && in[5]->data[batch * tokens + token] > 0.0 ? 0.0 : 1.0;
  }
  /// The state behind a token, from the one in front of it.
  Complex next(Complex h, int64_t at, int64_t token) const {
    return q(at) * (kept(token) * h) + in[0]->data[place(token)];
  }

private:
  ArrayRef<const RefTensor *> in;

public:
  const int64_t tokens, channels;

private:
  int64_t batch, channel;
};

/// Calls visit(row, place of a state in [D, N]) for all sequences, channels and states.
template <typename Visit> void forEachState(ArrayRef<const RefTensor *> in, Visit visit) {
  const int64_t states = in[1]->shape[1];
  for (int64_t batch = 0; batch < in[0]->shape[0]; ++batch)
    for (int64_t channel = 0; channel < in[0]->shape[2]; ++channel)
      for (int64_t n = 0; n < states; ++n)
        visit(Row(in, batch, channel), channel * states + n);
}

} // namespace

/// `each`: of a token and state. Forward 6 multiply-adds, 4 of the state and 2 of y; backward 20,
/// of which 8 compute states twice.
static int64_t flopsOf(Value x, Value q, int64_t each) {
  const double flops = static_cast<double>(build::typeOf(x).getNumElements()) *
                       static_cast<double>(build::shapeOf(q)[1]) * static_cast<double>(each);
  constexpr double kMost = 9.0e18;
  return static_cast<int64_t>(std::min(flops, kMost));
}

#define RECURRENCE_OP(Op, each)                                                                    \
  OpClass Op::costClass() { return OpClass::scan; }                                                \
  Precision Op::precisionClass() { return Precision::Exact; }                                      \
  bool Op::takesRounded(unsigned) { return false; }                                                \
  int64_t Op::flops() { return flopsOf(getX(), getQRe(), each); }
RECURRENCE_OP(LinearRecurrenceOp, 12)
RECURRENCE_OP(LinearRecurrenceGradOp, 40)
#undef RECURRENCE_OP

//===-- linear_recurrence -------------------------------------------------------------------===//

LogicalResult LinearRecurrenceOp::inferTypes(TypeInference &infer, Adaptor op,
                                             SmallVectorImpl<Type> &types) {
  if (failed(wantOperands(infer, op.getX(), {op.getQRe(), op.getQIm(), op.getCRe(), op.getCIm()},
                          op.getBegins())))
    return failure();
  types.push_back(infer.tensor(infer.shape(op.getX()), infer.f32()));
  return success();
}

LogicalResult LinearRecurrenceOp::evaluate(ArrayRef<const RefTensor *> in,
                                           MutableArrayRef<RefTensor> out) {
  forEachState(in, [&](const Row &row, int64_t at) {
    Complex h = 0.0;
    for (int64_t t = 0; t < row.tokens; ++t) {
      h = row.next(h, at, t);
      out[0].data[row.place(t)] += (row.c(at) * h).real();
    }
  });
  return success();
}

void LinearRecurrenceOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  auto gradients = LinearRecurrenceGradOp::create(b, getLoc(), g[0], getX(), getQRe(), getQIm(),
                                                  getCRe(), getCIm(), getBegins());
  llvm::copy(gradients->getResults(), grads.begin());
}

//===-- linear_recurrence_grad --------------------------------------------------------------===//

LogicalResult LinearRecurrenceGradOp::inferTypes(TypeInference &infer, Adaptor op,
                                                 SmallVectorImpl<Type> &types) {
  if (failed(wantOperands(infer, op.getX(), {op.getQRe(), op.getQIm(), op.getCRe(), op.getCIm()},
                          op.getBegins())) ||
      failed(infer.wantExact(op.getDy(), "dy", infer.shape(op.getX()))))
    return failure();
  types.push_back(infer.tensor(infer.shape(op.getX()), infer.f32()));
  types.append(4, infer.tensor(infer.shape(op.getQRe()), infer.f32()));
  return success();
}

LogicalResult LinearRecurrenceGradOp::evaluate(ArrayRef<const RefTensor *> in,
                                               MutableArrayRef<RefTensor> out) {
  auto addTo = [&](unsigned re, int64_t at, Complex x) {
    out[re].data[at] += x.real();
    out[re + 1].data[at] += x.imag();
  };
  forEachState(in.drop_front(), [&](const Row &row, int64_t at) {
    std::vector<Complex> h(row.tokens + 1); // h[t]: in front of token t
    for (int64_t t = 0; t < row.tokens; ++t)
      h[t + 1] = row.next(h[t], at, t);
    Complex g = 0.0;
    for (int64_t t = row.tokens; t-- > 0;) {
      const double dy = in[0]->data[row.place(t)];
      g += std::conj(row.c(at)) * dy;
      out[0].data[row.place(t)] += g.real();
      addTo(1, at, std::conj(row.kept(t) * h[t]) * g);
      addTo(3, at, dy * std::conj(h[t + 1]));
      g *= std::conj(row.q(at)) * row.kept(t);
    }
  });
  return success();
}

} // namespace hydra
