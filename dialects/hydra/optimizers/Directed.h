// What updates along a direction share as operations.
#pragma once

#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowMath.h"
#include "dialects/hydra/optimizers/Settings.h"

namespace hydra::directed {

/// Operands of `hydra.muon` and `hydra.adafactor`: parameter, direction, pace, learning rate.
enum Operand : unsigned { kParameter, kDirection, kPace, kRate };

template <typename Op>
mlir::LogicalResult inferTypes(TypeInference &infer, typename Op::Adaptor op,
                               llvm::SmallVectorImpl<mlir::Type> &types) {
  if (failed(infer.wantFloat(op.getP(), "parameter")) ||
      failed(infer.wantShape(op.getDirection(), "direction", infer.shape(op.getP()))) ||
      failed(infer.wantFloat(op.getDirection(), "direction")) ||
      failed(infer.wantExact(op.getPace(), "pace", {})) ||
      failed(infer.wantExact(op.getLr(), "learning rate", {})))
    return mlir::failure();
  if (std::string problem = Op::checkSettings(llvm::cast<mlir::DictionaryAttr>(
          Op::getPropertiesAsAttr(infer.context, op.getProperties())));
      !problem.empty())
    return infer.fail(problem);
  types.push_back(op.getP().getType());
  return mlir::success();
}

/// p - scale (lr wd p + pace u).
template <typename Op>
void evaluate(Op op, llvm::ArrayRef<const RefTensor *> in, llvm::MutableArrayRef<RefTensor> out) {
  const double scale = realValue(op.getLrScaleAttr()), wd = realValue(op.getWdAttr());
  const double decay = scale * in[kRate]->data[0] * wd, pace = scale * in[kPace]->data[0];
  for (int64_t i = 0; i < in[kParameter]->size(); ++i) {
    const double p = in[kParameter]->data[i];
    out[0].data[i] = p - decay * p - pace * in[kDirection]->data[i];
  }
}

template <typename Op>
void emitRows(Op op, RowEmitter &e, llvm::ArrayRef<RowValue> in,
              llvm::MutableArrayRef<RowValue> out) {
  const RowTerm p{&e, in[kParameter]}, u{&e, in[kDirection]}, pace{&e, in[kPace]},
      lr{&e, in[kRate]};
  const double scale = realValue(op.getLrScaleAttr());
  out[0] = p - p * (lr * (scale * realValue(op.getWdAttr()))) - (pace * scale) * u;
}

/// The gradient in f32, times its scale.
inline mlir::Value gradientOf(mlir::OpBuilder &b, mlir::Location loc, const OptimizerInputs &in) {
  mlir::Value g = build::cast(b, loc, in.gradient, b.getF32Type());
  return in.scale ? MulOp::create(b, loc, build::broadcast(b, loc, in.scale, build::shapeOf(g)), g)
                  : g;
}

/// old + share (fresh - old), for a number `share []`.
inline mlir::Value blend(mlir::OpBuilder &b, mlir::Location loc, mlir::Value old, mlir::Value fresh,
                         mlir::Value share) {
  mlir::Value part = build::broadcast(b, loc, share, build::shapeOf(old));
  return AddOp::create(b, loc, old, MulOp::create(b, loc, part, SubOp::create(b, loc, fresh, old)));
}

} // namespace hydra::directed
