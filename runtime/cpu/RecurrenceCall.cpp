// Linear recurrences on the CPU: a task has 16 channels, of a sequence forward, of all of them
// backward, and goes over tokens in order.
//
// Backward a sequence is gone over twice: forward, where the states in front of each 32 tokens are
// kept, and from its end, where those of 32 tokens are computed again. Traffic: x twice, dy and dx
// once. Arithmetic: 12 N a number forward, 40 N backward.
#include "runtime/calls/RecurrenceCall.h"
#include "runtime/cpu/Library.h"
#include "runtime/support/CpuLevel.h"
#include "runtime/support/Integers.h"

#include <algorithm>
#include <utility>

#pragma STDC FP_CONTRACT OFF

using namespace hydra::runtime;
namespace support = hydra::support;

namespace {

constexpr int64_t kChannels = 16, kTokens = 32;

/// A number of each channel of a task.
struct Numbers {
  float of[kChannels];
};
struct ComplexNumbers {
  Numbers re, im;
};

/// The first `channels` of a row of numbers, `stride` from one to the next, and zeros.
[[gnu::always_inline]] inline Numbers load(const float *from, int64_t channels,
                                           int64_t stride = 1) {
  Numbers numbers = {};
  for (int64_t i = 0; i < channels; ++i)
    numbers.of[i] = from[i * stride];
  return numbers;
}
[[gnu::always_inline]] inline void store(float *to, const Numbers &numbers, int64_t channels,
                                         int64_t stride = 1) {
  for (int64_t i = 0; i < channels; ++i)
    to[i * stride] = numbers.of[i];
}

/// Arguments behind dy.
struct Operands {
  const float *x, *qRe, *qIm, *cRe, *cIm, *begins;

  Operands(char *const *args, bool hasBegins)
      : x(number(args, 0)), qRe(number(args, 1)), qIm(number(args, 2)), cRe(number(args, 3)),
        cIm(number(args, 4)), begins(hasBegins ? number(args, 5) : nullptr) {}

private:
  static const float *number(char *const *args, int i) {
    return reinterpret_cast<const float *>(args[i]);
  }
};

/// Where a task's channels are.
struct Place {
  int64_t batch, channel, channels;
};

/// What a task works with: parameters and states of its channels, N each.
struct Memory {
  ComplexNumbers *q, *c, *h;       ///< [N]
  ComplexNumbers *g, *dq, *dc;     ///< [N], backward
  ComplexNumbers *fronts, *before; ///< [blocks, N] and [kTokens, N], backward

  Memory(std::byte *base, const LinearRecurrenceSpec &spec) {
    auto *next = reinterpret_cast<ComplexNumbers *>(base);
    const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
    const int64_t n = spec.states;
    q = take(n), c = take(n), h = take(n), g = take(n), dq = take(n), dc = take(n);
    before = take(kTokens * n);
    fronts = next;
  }
  static size_t bytes(const LinearRecurrenceSpec &spec) {
    const int64_t fronts = spec.backward ? support::ceilDiv(spec.tokens, kTokens) : 0;
    return static_cast<size_t>((6 + kTokens + fronts) * spec.states) * sizeof(ComplexNumbers);
  }

  void readParameters(const LinearRecurrenceSpec &spec, const Operands &in, const Place &at) const {
    for (int64_t n = 0; n < spec.states; ++n) {
      const int64_t place = at.channel * spec.states + n;
      const auto read = [&](const float *of) { return load(of + place, at.channels, spec.states); };
      q[n] = {read(in.qRe), read(in.qIm)};
      c[n] = {read(in.cRe), read(in.cIm)};
    }
  }
};

template <typename T>
[[gnu::always_inline]] inline T *row(const LinearRecurrenceSpec &spec, T *x, const Place &at,
                                     int64_t token) {
  return x + (at.batch * spec.tokens + token) * spec.channels + at.channel;
}

/// 0 where a token begins anew.
[[gnu::always_inline]] inline float kept(const LinearRecurrenceSpec &spec, const Operands &in,
                                         const Place &at, int64_t token) {
  return in.begins != nullptr && in.begins[at.batch * spec.tokens + token] > 0.0F ? 0.0F : 1.0F;
}

/// h = q k h + x.
[[gnu::always_inline]] inline void advance(ComplexNumbers &h, const ComplexNumbers &q, float k,
                                           const Numbers &x) {
  for (int64_t i = 0; i < kChannels; ++i) {
    const float re = k * h.re.of[i], im = k * h.im.of[i];
    h.re.of[i] = q.re.of[i] * re - q.im.of[i] * im + x.of[i];
    h.im.of[i] = q.re.of[i] * im + q.im.of[i] * re;
  }
}

[[gnu::always_inline]] inline void forward(const LinearRecurrenceSpec *spec, const Operands *in,
                                           const Memory *memory, const Place *at, float *y) {
  memory->readParameters(*spec, *in, *at);
  std::fill_n(memory->h, spec->states, ComplexNumbers{});
  for (int64_t t = 0; t < spec->tokens; ++t) {
    const Numbers x = load(row(*spec, in->x, *at, t), at->channels);
    const float k = kept(*spec, *in, *at, t);
    Numbers sum = {};
    for (int64_t n = 0; n < spec->states; ++n) {
      ComplexNumbers &h = memory->h[n];
      const ComplexNumbers &c = memory->c[n];
      advance(h, memory->q[n], k, x);
      for (int64_t i = 0; i < kChannels; ++i)
        sum.of[i] += c.re.of[i] * h.re.of[i] - c.im.of[i] * h.im.of[i];
    }
    store(row(*spec, y, *at, t), sum, at->channels);
  }
}

/// A sequence; adds to the gradients of parameters.
[[gnu::always_inline]] inline void backward(const LinearRecurrenceSpec *spec, const Operands *in,
                                            const Memory *memory, const Place *at, const float *dy,
                                            float *dx) {
  const int64_t states = spec->states;
  std::fill_n(memory->h, states, ComplexNumbers{});
  std::fill_n(memory->g, states, ComplexNumbers{});
  for (int64_t t = 0; t < spec->tokens; ++t) {
    if (t % kTokens == 0)
      std::copy_n(memory->h, states, memory->fronts + t / kTokens * states);
    const Numbers x = load(row(*spec, in->x, *at, t), at->channels);
    const float k = kept(*spec, *in, *at, t);
    for (int64_t n = 0; n < states; ++n)
      advance(memory->h[n], memory->q[n], k, x);
  }
  for (int64_t first = (spec->tokens - 1) / kTokens * kTokens; first >= 0; first -= kTokens) {
    const int64_t end = std::min(first + kTokens, spec->tokens);
    std::copy_n(memory->fronts + first / kTokens * states, states, memory->h);
    for (int64_t t = first; t < end; ++t) {
      std::copy_n(memory->h, states, memory->before + (t - first) * states);
      const Numbers x = load(row(*spec, in->x, *at, t), at->channels);
      const float k = kept(*spec, *in, *at, t);
      for (int64_t n = 0; n < states; ++n)
        advance(memory->h[n], memory->q[n], k, x);
    }
    // From here on `h` is the state behind the token.
    for (int64_t t = end; t-- > first;) {
      const Numbers d = load(row(*spec, dy, *at, t), at->channels);
      const float k = kept(*spec, *in, *at, t);
      Numbers sum = {};
      for (int64_t n = 0; n < states; ++n) {
        ComplexNumbers &g = memory->g[n], &h = memory->h[n], &dq = memory->dq[n],
                       &dc = memory->dc[n];
        const ComplexNumbers &q = memory->q[n], &c = memory->c[n],
                             &before = memory->before[(t - first) * states + n];
        for (int64_t i = 0; i < kChannels; ++i) {
          const float re = g.re.of[i] + c.re.of[i] * d.of[i],
                      im = g.im.of[i] - c.im.of[i] * d.of[i];
          sum.of[i] += re;
          dc.re.of[i] += d.of[i] * h.re.of[i];
          dc.im.of[i] -= d.of[i] * h.im.of[i];
          const float hRe = k * before.re.of[i], hIm = k * before.im.of[i];
          dq.re.of[i] += hRe * re + hIm * im;
          dq.im.of[i] += hRe * im - hIm * re;
          g.re.of[i] = k * (q.re.of[i] * re + q.im.of[i] * im);
          g.im.of[i] = k * (q.re.of[i] * im - q.im.of[i] * re);
        }
        h = before;
      }
      store(row(*spec, dx, *at, t), sum, at->channels);
    }
  }
}

class LinearRecurrenceCall final : public LibraryCall {
public:
  explicit LinearRecurrenceCall(const LinearRecurrenceSpec &spec) : spec(spec) {}

  size_t scratchBytesPerWorker() const override { return Memory::bytes(spec); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    const int64_t across = support::ceilDiv(spec.channels, kChannels);
    const auto placeOf = [&](int64_t batch, int64_t block) {
      const int64_t channel = block * kChannels;
      return Place{batch, channel, std::min(kChannels, spec.channels - channel)};
    };
    const int front = spec.backward ? 1 : 0; // x
    const Operands in(args + front, spec.begins);
    char *const *results = args + front + (spec.begins ? 6 : 5);
    const auto result = [&](int i) { return reinterpret_cast<float *>(results[i]); };
    if (!spec.backward)
      return pool.parallelFor(spec.batch * across, [&](int64_t task, unsigned worker) {
        const Memory memory(scratch.of(worker), spec);
        const Place at = placeOf(task / across, task % across);
        support::forCpuLevel<forward>(&spec, &in, &memory, &at, result(0));
      });
    pool.parallelFor(across, [&](int64_t task, unsigned worker) {
      const Memory memory(scratch.of(worker), spec);
      Place at = placeOf(0, task);
      memory.readParameters(spec, in, at);
      std::fill_n(memory.dq, spec.states, ComplexNumbers{});
      std::fill_n(memory.dc, spec.states, ComplexNumbers{});
      const auto *dy = reinterpret_cast<const float *>(args[0]);
      for (at.batch = 0; at.batch < spec.batch; ++at.batch)
        support::forCpuLevel<backward>(&spec, &in, &memory, &at, dy, result(0));
      for (int64_t n = 0; n < spec.states; ++n) {
        const auto write = [&](int i, const Numbers &numbers) {
          store(result(i) + at.channel * spec.states + n, numbers, at.channels, spec.states);
        };
        write(1, memory.dq[n].re);
        write(2, memory.dq[n].im);
        write(3, memory.dc[n].re);
        write(4, memory.dc[n].im);
      }
    });
  }

private:
  LinearRecurrenceSpec spec;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareLinearRecurrence(const CallSite &site) {
  return std::make_unique<LinearRecurrenceCall>(describeLinearRecurrence(site));
}
