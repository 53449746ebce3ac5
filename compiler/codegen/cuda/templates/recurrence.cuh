// Diagonal linear recurrences with complex states (runtime/calls/RecurrenceCall.h): rows are cut into segments. What each
// segment adds to the state is computed for all at once, then folded into the state in front of each; from there all work
// on at once. A thread has some states of a channel in registers and goes over the tokens of a segment, whose numbers it
// asks for early; threads side by side have the channel's other states, then the next channel.
//
// Backward the same goes over dy from the ends of rows: with G_t = dy_t + q k_(t+1) G_(t+1), g_t is conj(c G_t) and dx_t
// the sum over n of Re(c G_t). Gradients of parameters go forward, beside it: with e_t = k_t (q e_(t-1) + h_(t-1)) from 0,
// the derivative of h_t by q within a segment, a segment of L tokens has dq = conj(c (sum over t of dy_t e_t + e_L q k_(L+1)
// G_(L+1))) and dc = conj(sum over t of dy_t h_t). So no state is kept for backward, and nothing is exchanged but tokens and
// sums over the states of a channel.
//
// Multiply-adds of a token and state: 2.5 for what segments add, 6 for y or dx, 12 for gradients of parameters. Traffic: x
// and dy twice each, y or dx once. Limit: arithmetic.

struct Complex {
  float re, im;
};
__device__ __forceinline__ Complex times(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ Complex times(float a, Complex b) { return {a * b.re, a * b.im}; }
/// a b + c.
__device__ __forceinline__ Complex timesPlus(Complex a, Complex b, Complex c) {
  return {a.re * b.re + (c.re - a.im * b.im), a.re * b.im + (a.im * b.re + c.im)};
}
__device__ __forceinline__ Complex timesPlus(float a, Complex b, Complex c) {
  return {a * b.re + c.re, a * b.im + c.im};
}
template <int Count> __device__ __forceinline__ void clear(Complex (&x)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i)
    x[i] = {0.0f, 0.0f};
}
/// The state behind a token whose number is x.
__device__ __forceinline__ Complex nextState(Complex q, Complex h, float x) {
  return {q.re * h.re + (x - q.im * h.im), q.re * h.im + q.im * h.re};
}

/// The parameters of a recurrence, [D, N] each.
struct RecurrenceTerms {
  const float *qRe, *qIm, *cRe, *cIm;
};

constexpr int kRecurrenceThreads = 64; // of a block that goes over tokens

/// B rows of S tokens and D channels with N states each, in segments of Length tokens, and Lanes threads for a channel of
/// one. Wide: four parameters can be read at once.
template <int B, int S, int D, int N, int Lanes, int Length, bool Begins, bool Wide> struct Recurrence {
  static constexpr int kBatch = B, kTokens = S, kChannels = D, kOfChannel = N, kLanes = Lanes, kLength = Length;
  static constexpr bool kBegins = Begins;
  static constexpr int kStates = (N + Lanes - 1) / Lanes; // of a thread
  static constexpr int kSegments = (S + Length - 1) / Length;
  static constexpr int64 kPlaces = int64(D) * Lanes;  // threads of a segment
  static constexpr int64 kNumbers = kStates * kPlaces; // states of a segment, with those that pad a channel's

  bool exists;
  int batch, segment, channel, lane;

  __device__ __forceinline__ explicit Recurrence(unsigned block) {
    constexpr int64 kAll = int64(B) * kSegments * kPlaces;
    int64 thread = int64(block) * kRecurrenceThreads + threadIdx.x;
    exists = kAll % kRecurrenceThreads == 0 || thread < kAll;
    if (!exists) // works beside the others, for nothing
      thread %= Lanes;
    lane = thread % Lanes;
    thread /= Lanes;
    channel = thread % D;
    thread /= D;
    segment = thread % kSegments;
    batch = thread / kSegments;
  }

  /// Of a segment in [B, segments].
  __device__ __forceinline__ int64 part() const { return int64(batch) * kSegments + segment; }
  /// Of this thread's state k in [states of a thread, D, Lanes].
  __device__ __forceinline__ int64 place(int k) const { return k * kPlaces + channel * Lanes + lane; }

  /// The token of a step; Back: the last one comes first.
  template <bool Back> __device__ __forceinline__ int token(int step) const {
    return segment * Length + (Back ? Length - 1 - step : step);
  }
  static __device__ __forceinline__ bool isKnown(int token) { return S % Length == 0 || token < S; }
  __device__ __forceinline__ int64 row(int token) const { return int64(batch) * S + token; }
  /// What a step's token has in [B, S, Numbers], zero behind the last one.
  template <bool Back, int Numbers> __device__ __forceinline__ float number(const float *x, int step, int place) const {
    const int t = token<Back>(step);
    return isKnown(t) ? x[row(t) * Numbers + place] : 0.0f;
  }

  /// Parameters of this thread's states, zeros where it has none.
  __device__ __forceinline__ void read(Complex (&to)[kStates], const float *re, const float *im) const {
    clear(to);
    const int64 first = int64(channel) * N + lane * kStates;
    if constexpr (Wide && N % kStates == 0 && kStates % 4 == 0) {
      if (lane * kStates < N)
#pragma unroll
        for (int k = 0; k < kStates; k += 4) {
          const float4 x = *reinterpret_cast<const float4 *>(re + first + k);
          const float4 y = *reinterpret_cast<const float4 *>(im + first + k);
          to[k] = {x.x, y.x};
          to[k + 1] = {x.y, y.y};
          to[k + 2] = {x.z, y.z};
          to[k + 3] = {x.w, y.w};
        }
    } else {
#pragma unroll
      for (int k = 0; k < kStates; ++k)
        if (lane * kStates + k < N)
          to[k] = {re[first + k], im[first + k]};
    }
  }
  /// Of the folded states [B, segments, states of a thread, D, Lanes], those next to this segment.
  __device__ __forceinline__ void readNext(Complex (&h)[kStates], const Complex *folded) const {
#pragma unroll
    for (int k = 0; k < kStates; ++k)
      h[k] = kSegments > 1 ? folded[part() * kNumbers + place(k)] : Complex{0.0f, 0.0f};
  }
};

/// What Ahead tokens of a segment have in [B, S, Numbers], for all lanes of a channel: each asks for a part, and gives it
/// to the others when its turn comes.
template <typename R, int Ahead, bool Back, int Numbers> struct RecurrenceNumbers {
  static constexpr int kLanes = R::kLanes;
  static_assert(Ahead % kLanes == 0);
  float own[Ahead / kLanes];

  /// Asks for the numbers of as many steps as there are lanes.
  __device__ __forceinline__ void load(const R &at, const float *x, int step, int j) {
    own[j / kLanes] = at.template number<Back, Numbers>(x, step + at.lane, Numbers > 1 ? at.channel : 0);
  }
  __device__ __forceinline__ float operator[](int j) const {
    return kLanes == 1 ? own[j] : __shfl_sync(0xffffffffu, own[j / kLanes], j % kLanes, kLanes);
  }
};

/// The tokens of a segment, Ahead of which are known or asked for: their numbers of this thread's channel, and which of
/// the Ahead at hand begin anew.
template <typename R, int Ahead, bool Back> struct RecurrenceTokens {
  static constexpr int kLanes = R::kLanes;
  static_assert(Ahead <= 32 && R::kLength % Ahead == 0);
  RecurrenceNumbers<R, Ahead, Back, R::kChannels> numbers;
  RecurrenceNumbers<R, Ahead, Back, 1> flags; // of the tokens behind those at hand
  uint32 fresh;                               // a bit each

  __device__ __forceinline__ RecurrenceTokens(const R &at, const float *x, const float *begins) : fresh(0) {
#pragma unroll
    for (int j = 0; j < Ahead; j += kLanes) {
      numbers.load(at, x, j, j);
      if (R::kBegins)
        flags.load(at, begins, j, j);
    }
  }
  /// Goes on to those from `step` on.
  __device__ __forceinline__ void take(const R &at, const float *begins, int step) {
    if constexpr (R::kBegins) {
      fresh = 0;
#pragma unroll
      for (int j = 0; j < Ahead; j += kLanes) {
        fresh |= flags.own[j / kLanes] > 0.0f ? 1u << j : 0u;
        if (step + Ahead < R::kLength)
          flags.load(at, begins, step + Ahead + j, j);
      }
      fresh <<= at.lane;
#pragma unroll
      for (int other = 1; other < kLanes; other *= 2)
        fresh |= __shfl_xor_sync(0xffffffffu, fresh, other);
    }
  }
  /// Behind token j of those from `step` on: asks for what lies Ahead behind, when all lanes' numbers have been used.
  __device__ __forceinline__ void advance(const R &at, const float *x, int step, int j) {
    if ((j + 1) % kLanes == 0 && step + Ahead < R::kLength)
      numbers.load(at, x, step + Ahead + j + 1 - kLanes, j);
  }
  __device__ __forceinline__ float number(int j) const { return numbers[j]; }
  __device__ __forceinline__ bool begins(int j) const { return fresh & 1u << j; }
  /// Whether any of the Count tokens from j on does.
  template <int Count> __device__ __forceinline__ bool anyBegins(int j) const {
    return fresh & ((1u << Count) - 1) << j;
  }
};
/// For how many tokens a thread asks ahead: `Least`, or one for each lane. More hide memory's latency for little
/// arithmetic; where there is much, longer code costs more than it gains.
template <typename R, int Least> constexpr int kRecurrenceAhead = Least > R::kLanes ? Least : R::kLanes;

/// What segments add to the states behind them, or (Back) in front of them, and whether states go through them at all.
template <typename R, bool Back>
__device__ void recurrenceSegments(unsigned block, const float *x, RecurrenceTerms terms, const float *begins,
                                   Complex *added, float *through) {
  constexpr int kAhead = kRecurrenceAhead<R, 32>;
  constexpr int kTogether = 4; // tokens: h_4 = q^4 h_0 + q^3 x_1 + q^2 x_2 + q x_3 + x_4
  const R at(block);
  Complex q[R::kStates], h[R::kStates], q2[R::kStates], q3[R::kStates], q4[R::kStates];
  clear(h);
  at.read(q, terms.qRe, terms.qIm);
#pragma unroll
  for (int k = 0; k < R::kStates; ++k) {
    q2[k] = times(q[k], q[k]);
    q3[k] = times(q2[k], q[k]);
    q4[k] = times(q2[k], q2[k]);
  }
  bool all = true;
  RecurrenceTokens<R, kAhead, Back> tokens(at, x, begins);
#pragma unroll 1
  for (int step = 0; step < R::kLength; step += kAhead) {
    tokens.take(at, begins, step);
#pragma unroll
    for (int first = 0; first < kAhead; first += kTogether) {
      float own[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        own[j] = tokens.number(first + j);
        tokens.advance(at, x, step, first + j);
      }
      const bool any = tokens.template anyBegins<kTogether>(first);
      all = all && !any;
      if (!any) {
#pragma unroll
        for (int k = 0; k < R::kStates; ++k) {
          const Complex sum = {own[3] + q[k].re * own[2] + q2[k].re * own[1] + q3[k].re * own[0],
                               q[k].im * own[2] + q2[k].im * own[1] + q3[k].im * own[0]};
          h[k] = timesPlus(q4[k], h[k], sum);
        }
      } else {
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          const bool fresh = tokens.begins(first + j);
          if (!Back && fresh)
            clear(h);
#pragma unroll
          for (int k = 0; k < R::kStates; ++k)
            h[k] = nextState(q[k], h[k], own[j]);
          if (Back && fresh)
            clear(h);
        }
      }
    }
  }
  if (!at.exists)
    return;
#pragma unroll
  for (int k = 0; k < R::kStates; ++k)
    added[at.part() * R::kNumbers + at.place(k)] = h[k];
  if (R::kBegins && !Back && at.channel == 0 && at.lane == 0)
    through[at.part()] = all ? 1.0f : 0.0f;
}

constexpr int kRecurrenceRows = 8; // warps of a block of what follows: each has a part of the segments

/// Puts the state in front of each segment, or (Back) the one behind it, where that had what it adds. 32 states a block:
/// each warp folds its segments, then those of the warps in front of it, and writes.
template <typename R, bool Back>
__device__ void recurrenceFold(unsigned block, const float *qRe, const float *qIm, const float *through, Complex *states) {
  constexpr int kEach = (R::kSegments + kRecurrenceRows - 1) / kRecurrenceRows, kTogether = kEach < 16 ? kEach : 16;
  __shared__ Complex sums[kRecurrenceRows][32], powers[kRecurrenceRows][32];
  const int column = threadIdx.x % 32, row = threadIdx.x / 32;
  const int64 thread = int64(block) * 32 + column;
  const bool exists = thread < R::kBatch * R::kNumbers;
  const int64 batch = exists ? thread / R::kNumbers : 0, place = exists ? thread % R::kNumbers : 0;
  const int channel = place % R::kPlaces / R::kLanes;
  const int n = place % R::kLanes * R::kStates + place / R::kPlaces;
  Complex power = {1.0f, 0.0f}, square = {0.0f, 0.0f}; // power: what a segment multiplies the state with
  if (n < R::kOfChannel)
    square = {qRe[channel * R::kOfChannel + n], qIm[channel * R::kOfChannel + n]};
#pragma unroll
  for (int rest = R::kLength; rest > 0; rest >>= 1) {
    if (rest & 1)
      power = times(power, square);
    square = times(square, square);
  }
  const int from = row * kEach;
  const auto exits = [&](int i) { return i < kEach && from + i < R::kSegments; };
  const auto segmentOf = [&](int i) { return batch * R::kSegments + (Back ? R::kSegments - 1 - from - i : from + i); };
  Complex added[kTogether], factors[kTogether];
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const bool known = exits(first + i);
      added[i] = known ? states[segmentOf(first + i) * R::kNumbers + place] : Complex{0.0f, 0.0f};
      factors[i] = R::kBegins && known ? times(through[segmentOf(first + i)], power) : power;
    }
  };
  Complex h = {0.0f, 0.0f}, all = {1.0f, 0.0f};
  for (int first = 0; first < kEach; first += kTogether) {
    load(first);
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (exits(first + i)) {
        h = timesPlus(factors[i], h, added[i]);
        all = times(factors[i], all);
      }
  }
  sums[row][column] = h;
  powers[row][column] = all;
  __syncthreads();
  h = {0.0f, 0.0f};
  for (int i = 0; i < row; ++i)
    h = timesPlus(powers[i][column], h, sums[i][column]);
  if (!exists)
    return;
  for (int first = 0; first < kEach; first += kTogether) {
    if (kTogether < kEach)
      load(first);
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (exits(first + i)) {
        states[segmentOf(first + i) * R::kNumbers + place] = h;
        h = timesPlus(factors[i], h, added[i]);
      }
  }
}

/// The sums over the lanes of a channel of Count numbers: Count / Lanes of them for each lane, or one that several have.
template <int Count, int Lanes> struct LaneSums {
  static constexpr int kOwn = Count > Lanes ? Count / Lanes : 1;
  static constexpr int kSharing = Lanes > Count ? Lanes / Count : 1;

  /// Leaves a lane its own in front.
  template <int Left = Count, int Half = Lanes / 2> static __device__ __forceinline__ void sum(float *v, int lane) {
    if constexpr (Half > 0 && Left > 1) {
      const bool upper = lane & Half;
#pragma unroll
      for (int j = 0; j < Left / 2; ++j) {
        const float low = v[j], high = v[j + Left / 2];
        v[j] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, Half);
      }
      sum<Left / 2, Half / 2>(v, lane);
    } else if constexpr (Half > 0) {
      v[0] += __shfl_xor_sync(0xffffffffu, v[0], Half);
      sum<1, Half / 2>(v, lane);
    }
  }
  /// The number of a lane's first.
  static __device__ __forceinline__ int first(int lane) { return lane / kSharing * kOwn; }
};

/// y of x, or (Back) dx of dy.
template <typename R, bool Back>
__device__ void recurrenceRows(unsigned block, const float *x, RecurrenceTerms terms, const float *begins,
                               const Complex *folded, float *y) {
  constexpr int kAhead = kRecurrenceAhead<R, 16>;
  constexpr int kTogether = 8; // tokens whose sums over lanes are made at once
  using Sums = LaneSums<kTogether, R::kLanes>;
  const R at(block);
  Complex q[R::kStates], c[R::kStates], h[R::kStates];
  at.read(q, terms.qRe, terms.qIm);
  at.read(c, terms.cRe, terms.cIm);
  at.readNext(h, folded);
  RecurrenceTokens<R, kAhead, Back> tokens(at, x, begins);
#pragma unroll 1
  for (int step = 0; step < R::kLength; step += kAhead) {
    tokens.take(at, begins, step);
#pragma unroll
    for (int first = 0; first < kAhead; first += kTogether) {
      float sums[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const float own = tokens.number(first + j);
        const bool fresh = tokens.begins(first + j);
        tokens.advance(at, x, step, first + j);
        if (!Back && fresh)
          clear(h);
        sums[j] = 0.0f;
#pragma unroll
        for (int k = 0; k < R::kStates; ++k) {
          h[k] = nextState(q[k], h[k], own);
          sums[j] = c[k].re * h[k].re + (sums[j] - c[k].im * h[k].im);
        }
        if (Back && fresh)
          clear(h);
      }
      Sums::sum(sums, at.lane);
      if (at.exists && at.lane % Sums::kSharing == 0)
#pragma unroll
        for (int j = 0; j < Sums::kOwn; ++j) {
          const int t = at.template token<Back>(step + first + Sums::first(at.lane) + j);
          if (R::isKnown(t))
            y[at.row(t) * R::kChannels + at.channel] = sums[j];
        }
    }
  }
}

/// `sums`: what each segment of each row adds to the gradients of parameters, before the conjugates and c [B, segments, 4,
/// states of a thread, D, Lanes].
template <typename R>
__device__ void recurrenceParameters(unsigned block, const float *dy, const float *x, RecurrenceTerms terms,
                                     const float *begins, const Complex *front, const Complex *behind, float *sums) {
  constexpr int kAhead = kRecurrenceAhead<R, 8>;
  const R at(block);
  Complex q[R::kStates], h[R::kStates], e[R::kStates], dq[R::kStates], dc[R::kStates];
  clear(e);
  clear(dq);
  clear(dc);
  at.read(q, terms.qRe, terms.qIm);
  at.readNext(h, front);
  RecurrenceTokens<R, kAhead, false> tokens(at, x, begins);
  RecurrenceNumbers<R, kAhead, false, R::kChannels> gradients;
#pragma unroll
  for (int j = 0; j < kAhead; j += R::kLanes)
    gradients.load(at, dy, j, j);
#pragma unroll 1
  for (int step = 0; step < R::kLength; step += kAhead) {
    tokens.take(at, begins, step);
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const float own = tokens.number(j), d = gradients[j];
      const bool fresh = tokens.begins(j);
      tokens.advance(at, x, step, j);
      if ((j + 1) % R::kLanes == 0 && step + kAhead < R::kLength)
        gradients.load(at, dy, step + kAhead + j + 1 - R::kLanes, j);
      if (fresh) {
        clear(h);
        clear(e);
      }
#pragma unroll
      for (int k = 0; k < R::kStates; ++k) {
        e[k] = timesPlus(q[k], e[k], h[k]);
        h[k] = nextState(q[k], h[k], own);
        dq[k] = timesPlus(d, e[k], dq[k]);
        dc[k] = timesPlus(d, h[k], dc[k]);
      }
    }
  }
  if (!at.exists)
    return;
  Complex g[R::kStates];
  at.readNext(g, behind);
#pragma unroll
  for (int k = 0; k < R::kStates; ++k) {
    dq[k] = timesPlus(times(q[k], g[k]), e[k], dq[k]);
    const float all[4] = {dq[k].re, dq[k].im, dc[k].re, dc[k].im};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sums[(at.part() * 4 + i) * R::kNumbers + at.place(k)] = all[i];
  }
}

/// The gradients of parameters, summed in an order that depends on the number of segments alone. 32 states a block.
template <typename R>
__device__ void recurrenceSums(const float *sums, RecurrenceTerms terms, float *dqRe, float *dqIm, float *dcRe,
                               float *dcIm) {
  constexpr int kParts = R::kBatch * R::kSegments;
  __shared__ float rows[kRecurrenceRows][4][32];
  const int column = threadIdx.x % 32, row = threadIdx.x / 32;
  const int64 place = int64(blockIdx.x) * 32 + column;
  float all[4] = {};
  if (place < R::kNumbers)
#pragma unroll 4
    for (int part = row; part < kParts; part += kRecurrenceRows)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        all[i] += sums[(int64(part) * 4 + i) * R::kNumbers + place];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    rows[row][i][column] = all[i];
  __syncthreads();
  const int n = place % R::kLanes * R::kStates + place / R::kPlaces;
  if (row > 0 || place >= R::kNumbers || n >= R::kOfChannel)
    return;
  for (int other = 1; other < kRecurrenceRows; ++other)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      all[i] += rows[other][i][column];
  const int64 to = place % R::kPlaces / R::kLanes * R::kOfChannel + n;
  const Complex dq = times(Complex{terms.cRe[to], terms.cIm[to]}, Complex{all[0], all[1]});
  dqRe[to] = dq.re;
  dqIm[to] = -dq.im;
  dcRe[to] = all[2];
  dcIm[to] = -all[3];
}
