// Diagonal linear recurrences with complex states (runtime/calls/RecurrenceCall.h): rows are cut into segments. What each
// segment adds to the state is computed for all at once, then folded into the state in front of each, one after the other;
// from there all work on at once. A lane is a state of a channel; lanes of a channel lie side by side in a warp, and a
// block has the tokens of its channels in shared memory.

struct Complex {
  float re, im;
};
__device__ __forceinline__ Complex times(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ Complex times(float a, Complex b) { return {a * b.re, a * b.im}; }
__device__ __forceinline__ Complex conjugate(Complex a) { return {a.re, -a.im}; }

/// The parameters of a recurrence, [D, N] each.
struct RecurrenceTerms {
  const float *qRe, *qIm, *cRe, *cIm;
};

constexpr int kRecurrenceTile = 32; // tokens
/// Tokens of a tile that begin anew have 0, others 1.
typedef float RecurrenceKept[kRecurrenceTile];

/// B rows of S tokens and D channels with N states each, in segments of Tiles tiles.
template <int B, int S, int D, int N, int Tiles, bool Begins> struct Recurrence {
  static constexpr int kWidth = N <= 1 ? 1 : N <= 2 ? 2 : N <= 4 ? 4 : N <= 8 ? 8 : N <= 16 ? 16 : 32; // lanes of a channel
  static constexpr int kGroups = (N + kWidth - 1) / kWidth;                                           // states of a lane
  static constexpr int kChannels = 256 / kWidth < 32 ? 256 / kWidth : 32;
  static constexpr int kThreads = kWidth * kChannels;
  static constexpr int kRow = kChannels + 32 / kWidth; // of a tile: no two lanes of a warp meet in a bank
  static constexpr int kLength = Tiles * kRecurrenceTile;
  static constexpr int kSegments = (S + kLength - 1) / kLength;
  static constexpr int kAcross = (D + kChannels - 1) / kChannels; // blocks of a segment

  struct Tile {
    float x[kRecurrenceTile * kRow];
  };

  int64 batch;
  int segment, channel, lane, firstChannel;

  __device__ __forceinline__ explicit Recurrence(unsigned block)
      : batch(block / kAcross / kSegments), segment(block / kAcross % kSegments), lane(threadIdx.x % kWidth),
        firstChannel(block % kAcross * kChannels) {
    channel = firstChannel + threadIdx.x / kWidth;
  }

  __device__ __forceinline__ int firstToken(int tile) const { return (segment * Tiles + tile) * kRecurrenceTile; }
  __device__ __forceinline__ bool exists(int group) const { return channel < D && group * kWidth + lane < N; }
  /// Of a state in [D, N].
  __device__ __forceinline__ int place(int group) const { return channel * N + group * kWidth + lane; }
  /// The same in [B, segments, D, N].
  __device__ __forceinline__ int64 placeInSegments(int group) const {
    return (batch * kSegments + segment) * (D * N) + place(group);
  }
  /// Of a token of this lane's channel in a tile.
  static __device__ __forceinline__ int inTile(int token) { return token * kRow + threadIdx.x / kWidth; }

  /// Copies the numbers of channels and tokens, zeros where there are none.
  __device__ __forceinline__ void load(Tile &tile, const float *x, int first) const {
    for (int i = threadIdx.x; i < kRecurrenceTile * kChannels; i += kThreads) {
      const int t = i / kChannels, c = i % kChannels;
      const bool known = first + t < S && firstChannel + c < D;
      copyNumber(tile.x + t * kRow + c, known ? x + (batch * S + first + t) * D + firstChannel + c : x, known);
    }
  }
  /// All of a segment, tile 0 first.
  __device__ __forceinline__ void load(Tile (&tiles)[Tiles], RecurrenceKept (&kept)[Tiles], const float *x,
                                       const float *begins) const {
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
      load(tiles[i], x, firstToken(i));
      const int token = firstToken(i) + threadIdx.x;
      if (Begins && threadIdx.x < kRecurrenceTile)
        kept[i][threadIdx.x] = token < S && begins[batch * S + token] > 0.0f ? 0.0f : 1.0f;
    }
    commitCopies();
  }
  __device__ __forceinline__ void store(float *y, const Tile &tile, int first) const {
    for (int i = threadIdx.x; i < kRecurrenceTile * kChannels; i += kThreads) {
      const int t = i / kChannels, c = i % kChannels;
      if (first + t < S && firstChannel + c < D)
        y[(batch * S + first + t) * D + firstChannel + c] = tile.x[t * kRow + c];
    }
  }

  __device__ __forceinline__ Complex read(const float *re, const float *im, int group) const {
    return exists(group) ? Complex{re[place(group)], im[place(group)]} : Complex{0.0f, 0.0f};
  }
  __device__ __forceinline__ Complex q(const RecurrenceTerms &terms, int group) const {
    return read(terms.qRe, terms.qIm, group);
  }
  __device__ __forceinline__ Complex c(const RecurrenceTerms &terms, int group) const {
    return read(terms.cRe, terms.cIm, group);
  }
  /// Of the folded states, or of their gradients, the one next to this segment.
  __device__ __forceinline__ Complex next(const Complex *folded, int group) const {
    return kSegments > 1 && exists(group) ? folded[placeInSegments(group)] : Complex{0.0f, 0.0f};
  }

  /// The sums over the lanes of a channel of kWidth tokens: a lane gets that of the token that has its number.
  template <int Half = kWidth / 2> __device__ __forceinline__ float sumOverLanes(float (&v)[kWidth]) const {
    if constexpr (Half == 0) {
      return v[0];
    } else {
      const bool upper = lane & Half;
#pragma unroll
      for (int j = 0; j < Half; ++j) {
        const float low = v[j], high = v[j + Half];
        v[j] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, Half);
      }
      return sumOverLanes<Half / 2>(v);
    }
  }
};

/// The state behind a token whose number is x.
__device__ __forceinline__ Complex nextState(Complex q, Complex h, float x) {
  return {q.re * h.re + (x - q.im * h.im), q.re * h.im + q.im * h.re};
}

/// The state behind a tile; with `kept`, of tokens that begin anew.
template <typename R, bool Begins>
__device__ __forceinline__ Complex behindTile(Complex h, Complex q, const typename R::Tile &tile,
                                              const RecurrenceKept &kept) {
#pragma unroll 8
  for (int t = 0; t < kRecurrenceTile; ++t)
    h = nextState(q, Begins ? times(kept[t], h) : h, tile.x[R::inTile(t)]);
  return h;
}

/// What segments add to the states behind them, and whether states go through them at all.
template <int B, int S, int D, int N, int Tiles, bool Begins>
__device__ void recurrenceSegments(unsigned block, const float *x, RecurrenceTerms terms, const float *begins,
                                   Complex *added, float *through) {
  using R = Recurrence<B, S, D, N, Tiles, Begins>;
  __shared__ typename R::Tile tiles[Tiles];
  __shared__ RecurrenceKept kept[Tiles];
  const R at(block);
  at.load(tiles, kept, x, begins);
  waitForCopies<0>();
  __syncthreads();
#pragma unroll
  for (int group = 0; group < R::kGroups; ++group) {
    const Complex q = at.q(terms, group);
    Complex h = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < Tiles; ++i)
      h = behindTile<R, Begins>(h, q, tiles[i], kept[i]);
    if (at.exists(group))
      added[at.placeInSegments(group)] = h;
  }
  if (Begins && at.firstChannel == 0 && threadIdx.x == 0) {
    float all = 1.0f;
    for (int i = 0; i < Tiles; ++i)
      for (int t = 0; t < kRecurrenceTile; ++t)
        all *= kept[i][t];
    through[at.batch * R::kSegments + at.segment] = all;
  }
}

/// The same of gradients, which go from the end of a row to its beginning: what segments add to those of the states in
/// front of them.
template <int B, int S, int D, int N, int Tiles, bool Begins>
__device__ void recurrenceSegmentsBack(unsigned block, const float *dy, RecurrenceTerms terms, const float *begins,
                                       Complex *added) {
  using R = Recurrence<B, S, D, N, Tiles, Begins>;
  __shared__ typename R::Tile tiles[Tiles];
  __shared__ RecurrenceKept kept[Tiles];
  const R at(block);
  at.load(tiles, kept, dy, begins);
  waitForCopies<0>();
  __syncthreads();
#pragma unroll
  for (int group = 0; group < R::kGroups; ++group) {
    const Complex q = conjugate(at.q(terms, group)), c = conjugate(at.c(terms, group));
    Complex g = {0.0f, 0.0f};
#pragma unroll
    for (int i = Tiles - 1; i >= 0; --i)
#pragma unroll 8
      for (int t = kRecurrenceTile - 1; t >= 0; --t) {
        const float d = tiles[i].x[R::inTile(t)];
        g = times(q, {g.re + c.re * d, g.im + c.im * d});
        if (Begins)
          g = times(kept[i][t], g);
      }
    if (at.exists(group))
      added[at.placeInSegments(group)] = g;
  }
}

/// Puts the state in front of each segment, or (`Back`) the gradient of the one behind it, where that had what it adds.
/// A thread for each state of each row.
template <int B, int S, int D, int N, int Tiles, bool Begins, bool Back>
__device__ void recurrenceFold(const float *qRe, const float *qIm, const float *through, Complex *states, int64 thread) {
  using R = Recurrence<B, S, D, N, Tiles, Begins>;
  constexpr int kTogether = 16;
  if (thread >= int64(B) * (D * N))
    return;
  const int64 batch = thread / (D * N), place = thread % (D * N);
  Complex power = {1.0f, 0.0f}, square = {qRe[place], Back ? -qIm[place] : qIm[place]};
#pragma unroll
  for (int rest = R::kLength; rest > 0; rest >>= 1) {
    if (rest & 1)
      power = times(power, square);
    square = times(square, square);
  }
  Complex *own = states + batch * R::kSegments * (D * N) + place;
  Complex h = {0.0f, 0.0f};
  for (int first = 0; first < R::kSegments; first += kTogether) {
    Complex added[kTogether];
    float kept[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i < R::kSegments) {
        const int segment = Back ? R::kSegments - 1 - first - i : first + i;
        added[i] = own[int64(segment) * (D * N)];
        if (Begins)
          kept[i] = through[batch * R::kSegments + segment];
      }
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i < R::kSegments) {
        own[int64(Back ? R::kSegments - 1 - first - i : first + i) * (D * N)] = h;
        const Complex turned = times(power, Begins ? times(kept[i], h) : h);
        h = {turned.re + added[i].re, turned.im + added[i].im};
      }
  }
}

template <int B, int S, int D, int N, int Tiles, bool Begins>
__device__ void recurrenceForward(const float *x, RecurrenceTerms terms, const float *begins, const Complex *front,
                                  float *y) {
  using R = Recurrence<B, S, D, N, Tiles, Begins>;
  __shared__ typename R::Tile inputs[Tiles], results;
  __shared__ RecurrenceKept kept[Tiles];
  const R at(blockIdx.x);
  at.load(inputs, kept, x, begins);
  Complex h[R::kGroups];
#pragma unroll
  for (int group = 0; group < R::kGroups; ++group)
    h[group] = at.next(front, group);
  waitForCopies<0>();
#pragma unroll 1
  for (int i = 0; i < Tiles; ++i) {
    __syncthreads();
    for (int block = 0; block < kRecurrenceTile; block += R::kWidth) {
      float v[R::kWidth] = {};
#pragma unroll
      for (int group = 0; group < R::kGroups; ++group) {
        const Complex q = at.q(terms, group), c = at.c(terms, group);
#pragma unroll
        for (int j = 0; j < R::kWidth; ++j) {
          const int t = block + j;
          h[group] = nextState(q, Begins ? times(kept[i][t], h[group]) : h[group], inputs[i].x[R::inTile(t)]);
          v[j] += c.re * h[group].re - c.im * h[group].im;
        }
      }
      const float sum = at.sumOverLanes(v);
      results.x[R::inTile(block + at.lane)] = sum;
    }
    __syncthreads();
    at.store(y, results, at.firstToken(i));
  }
}

/// `sums`: of each segment of each row the gradients of the parameters [B, segments, 4, D, N].
template <int B, int S, int D, int N, int Tiles, bool Begins>
__device__ void recurrenceBackward(const float *dy, const float *x, RecurrenceTerms terms, const float *begins,
                                   const Complex *front, const Complex *behind, float *dx, float *sums) {
  using R = Recurrence<B, S, D, N, Tiles, Begins>;
  __shared__ typename R::Tile inputs[Tiles], gradients, results;
  __shared__ RecurrenceKept kept[Tiles];
  const R at(blockIdx.x);
  at.load(gradients, dy, at.firstToken(Tiles - 1));
  at.load(inputs, kept, x, begins);
  Complex first[R::kGroups][Tiles], g[R::kGroups]; // states in front of tiles, and the gradient of the latest
#pragma unroll
  for (int group = 0; group < R::kGroups; ++group) {
    first[group][0] = at.next(front, group);
    g[group] = at.next(behind, group);
  }
  waitForCopies<0>();
  __syncthreads();
#pragma unroll
  for (int group = 0; group < R::kGroups; ++group)
#pragma unroll
    for (int i = 1; i < Tiles; ++i)
      first[group][i] =
          behindTile<R, Begins>(first[group][i - 1], at.q(terms, group), inputs[i - 1], kept[i - 1]);
  Complex dq[R::kGroups] = {}, dc[R::kGroups] = {};
#pragma unroll
  for (int i = Tiles - 1; i >= 0; --i) {
    if (i < Tiles - 1) {
      __syncthreads();
      at.load(gradients, dy, at.firstToken(i));
      commitCopies();
      waitForCopies<0>();
      __syncthreads();
    }
#pragma unroll
    for (int group = 0; group < R::kGroups; ++group) {
      const Complex q = at.q(terms, group), c = at.c(terms, group);
      Complex before[kRecurrenceTile], h = first[group][i]; // before: what q multiplies for each token
#pragma unroll
      for (int t = 0; t < kRecurrenceTile; ++t) {
        before[t] = Begins ? times(kept[i][t], h) : h;
        h = nextState(q, before[t], inputs[i].x[R::inTile(t)]);
      }
#pragma unroll
      for (int block = kRecurrenceTile - R::kWidth; block >= 0; block -= R::kWidth) {
        float v[R::kWidth];
#pragma unroll
        for (int j = R::kWidth - 1; j >= 0; --j) {
          const int t = block + j;
          const float d = gradients.x[R::inTile(t)];
          Complex &sum = g[group];
          sum = {sum.re + c.re * d, sum.im - c.im * d};
          v[j] = sum.re;
          dc[group] = {dc[group].re + d * h.re, dc[group].im - d * h.im};
          h = before[t];
          dq[group].re += h.re * sum.re + h.im * sum.im;
          dq[group].im += h.re * sum.im - h.im * sum.re;
          sum = times(conjugate(q), sum);
          if (Begins) {
            sum = times(kept[i][t], sum);
            if (t > 0) // the state behind the token in front, which this one may not continue
              h = nextState(q, before[t - 1], inputs[i].x[R::inTile(t - 1)]);
          }
        }
        const float sum = at.sumOverLanes(v);
        float &to = results.x[R::inTile(block + at.lane)];
        to = group > 0 ? to + sum : sum;
      }
    }
    __syncthreads();
    at.store(dx, results, at.firstToken(i));
  }
  float *own = sums + (at.batch * R::kSegments + at.segment) * (4 * D * N);
#pragma unroll
  for (int group = 0; group < R::kGroups; ++group)
    if (at.exists(group)) {
      const float all[4] = {dq[group].re, dq[group].im, dc[group].re, dc[group].im};
#pragma unroll
      for (int k = 0; k < 4; ++k)
        own[k * D * N + at.place(group)] = all[k];
    }
}

/// The sum over [Parts, 4, Elements], in an order that depends on Parts alone. 32 numbers a block.
template <int Parts, int Elements>
__device__ void recurrenceSums(const float *sums, float *dqRe, float *dqIm, float *dcRe, float *dcIm) {
  constexpr int kRows = 8;
  __shared__ float rows[kRows][32];
  const int at = blockIdx.x * 32 + threadIdx.x % 32, row = threadIdx.x / 32;
  float sum = 0.0f;
  if (at < 4 * Elements)
#pragma unroll 8
    for (int part = row; part < Parts; part += kRows)
      sum += sums[int64(part) * (4 * Elements) + at];
  rows[row][threadIdx.x % 32] = sum;
  __syncthreads();
  if (row > 0 || at >= 4 * Elements)
    return;
  for (int i = 1; i < kRows; ++i)
    sum += rows[i][threadIdx.x];
  const int which = at / Elements;
  (which == 0 ? dqRe : which == 1 ? dqIm : which == 2 ? dcRe : dcIm)[at % Elements] = sum;
}
