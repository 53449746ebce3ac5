// Formulas over the values of a group: what `emitRows` of an operation is written in.
#pragma once

#include "dialects/hydra/RowEmitter.h"

namespace hydra {

/// A value of a group that knows its emitter, so that formulas read as such.
struct RowTerm {
  RowEmitter *emitter;
  RowValue value;

  RowTerm constant(double c) const {
    mlir::MLIRContext *context = emitter->elementType(value).getContext();
    return {emitter, emitter->constant(c, mlir::Float32Type::get(context))};
  }
  operator RowValue() const { return value; }
};

inline RowTerm apply(RowUnary f, RowTerm x) { return {x.emitter, x.emitter->unary(f, x.value)}; }
inline RowTerm apply(RowBinary f, RowTerm a, RowTerm b) {
  return {a.emitter, a.emitter->binary(f, a.value, b.value)};
}

inline RowTerm operator+(RowTerm a, RowTerm b) { return apply(RowBinary::Add, a, b); }
inline RowTerm operator-(RowTerm a, RowTerm b) { return apply(RowBinary::Sub, a, b); }
inline RowTerm operator*(RowTerm a, RowTerm b) { return apply(RowBinary::Mul, a, b); }
inline RowTerm operator/(RowTerm a, RowTerm b) { return apply(RowBinary::Div, a, b); }
inline RowTerm operator+(RowTerm a, double b) { return a + a.constant(b); }
inline RowTerm operator-(double a, RowTerm b) { return b.constant(a) - b; }
inline RowTerm operator*(RowTerm a, double b) { return a * a.constant(b); }
inline RowTerm operator/(double a, RowTerm b) { return b.constant(a) / b; }
inline RowTerm operator-(RowTerm a) { return apply(RowUnary::Neg, a); }

inline RowTerm exp(RowTerm x) { return apply(RowUnary::Exp, x); }
inline RowTerm sqrt(RowTerm x) { return apply(RowUnary::Sqrt, x); }
inline RowTerm rsqrt(RowTerm x) { return apply(RowUnary::Rsqrt, x); }
inline RowTerm tanh(RowTerm x) { return apply(RowUnary::Tanh, x); }
inline RowTerm sigmoid(RowTerm x) { return apply(RowUnary::Sigmoid, x); }
inline RowTerm max(RowTerm a, double b) { return apply(RowBinary::Max, a, a.constant(b)); }

/// Over all columns of the row.
inline RowTerm sum(RowTerm x) { return {x.emitter, x.emitter->reduce(RowReduction::Sum, x.value)}; }
inline RowTerm max(RowTerm x) { return {x.emitter, x.emitter->reduce(RowReduction::Max, x.value)}; }
inline RowTerm mean(RowTerm x) {
  return sum(x) * (1.0 / static_cast<double>(x.emitter->domain().columns()));
}
/// Over all rows, of a tile or of a row value.
inline RowTerm sumRows(RowTerm x, RowForm of) {
  return {x.emitter, x.emitter->sumRows(x.value, of)};
}

} // namespace hydra
