// What linear recurrences take, the same on every target.
#pragma once

#include "runtime/calls/CallSite.h"

namespace hydra::runtime {

/// `linear_recurrence(x, q_re, q_im, c_re, c_im, [begins,] y)`: for each sequence b and channel d
/// y[b, t, d] = sum over n of Re(c[d, n] h_t), h_t = q[d, n] k_t h_(t-1) + x[b, t, d], h_(-1) = 0;
/// k_t is 0 where begins[b, t] is positive, else 1. x, y [B, S, D], q, c [D, N], begins [B, S, 1];
/// f32, dense.
///
/// Backward `(dy, x, q_re, q_im, c_re, c_im, [begins,] dx, dq_re, dq_im, dc_re, dc_im)`: with
/// g_t = conj(c) dy_t + conj(q) k_(t+1) g_(t+1): dx_t = sum over n of Re(g_t), dq = sum over b and
/// t of conj(k_t h_(t-1)) g_t, dc = sum over b and t of dy_t conj(h_t).
struct LinearRecurrenceSpec {
  int64_t batch = 0, tokens = 0, channels = 0, states = 0;
  bool begins = false, backward = false;
};

/// The call that a step asks for. Throws Error when its tensors do not fit.
LinearRecurrenceSpec describeLinearRecurrence(const CallSite &site);

} // namespace hydra::runtime
