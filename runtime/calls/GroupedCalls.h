// What the actions on rows in groups take: Route, GroupedLinear, GroupedOuter. The same on every
// target.
//
// Group e has the sorted rows offsets[e] to offsets[e + 1] - 1. Of offsets [E + 1] i32 the first is
// 0, and none is less than the one before, or more than the number of rows. They are data of the
// device: an executor that can stops where they are not so.
#pragma once

#include "runtime/calls/CallSite.h"

namespace hydra::runtime {

/// `route(mask, index, group, place, offsets)`: rows t of `mask [T, E]` (boolean) sorted by the
/// groups e that they are in, at most k (of more the first k), and by t. index, group [k T] i32:
/// row and group of a sorted one, or -1 and 0 behind the last; place [T, k] i32: where row t stands
/// in each of its groups, or -1. All dense.
struct RouteSpec {
  int64_t rows = 0, groups = 0, k = 0; ///< T, E, k
};

/// `grouped_linear(x, w, offsets, y)`: y[r] = x[r] w[e]T for each row r of group e, and 0 for rows
/// without one. x [R, K] and w [E, N, K] (transposed: [E, K, N]) in f32, bf16 or f16, y [R, N] in
/// that or f32; all dense.
///
/// `grouped_outer(a, b, offsets, c)`: c[e] = sum over rows r of group e of a[r]T b[r], or 0. a [R,
/// N] and b [R, K] alike, c [E, N, K] in that or f32; all dense.
struct GroupedSpec {
  int64_t rows = 0, groups = 0, n = 0, k = 0; ///< R, E, N, K
  support::DType operands = support::DType::F32, result = support::DType::F32;
  bool transposed = false;
  bool tf32 = false; ///< operands of f32 are rounded to tf32 first
};

/// The call that a step asks for. Throws Error when its tensors or attributes do not fit.
RouteSpec describeRoute(const CallSite &site);
GroupedSpec describeGroupedLinear(const CallSite &site);
GroupedSpec describeGroupedOuter(const CallSite &site);

} // namespace hydra::runtime
