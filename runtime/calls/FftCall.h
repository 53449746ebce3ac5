// What discrete Fourier transforms take, the same on every target.
#pragma once

#include "runtime/calls/CallSite.h"

#include <string>

namespace hydra::runtime {

/// `fft(x, y)`: y[k] = sum over t of x[t] exp(-2 pi i k t / n), for k up to n / 2; x [..., n] f32,
/// n even, y [..., n / 2 + 1, 2] f32 (real part, imaginary part), both dense. Imaginary parts of
/// the first and the last number are 0.
///
/// `fft(y, x)`, inverse: x[t] = sum over k below n of y[k] exp(2 pi i k t / n), where numbers
/// behind n / 2 are conjugates: n times what has these spectra. Imaginary parts of the first and
/// the last number must be 0.
///
/// On GPUs both begin at multiples of 8 bytes, as complex numbers do.
struct FftSpec {
  int64_t rows = 0, length = 0; ///< n numbers each
  bool inverse = false;
};

/// kissfft has butterflies of 2, 3, 4 and 5.
inline constexpr int64_t kissfftFactor = 5;

/// Whether all prime factors of a number are at most this.
bool hasFactorsUpTo(int64_t most, int64_t number);

/// Numbers that a transform of so many complex ones by a chirp works on: a power of two.
int64_t chirpLength(int64_t count);

/// Why the library of a target's executor (kissfft, cuFFT) has no such transform, with what it
/// takes; empty where it has one. What hydrac and executors refuse by.
std::string transformRefusal(planfile::TargetKind target, const FftSpec &spec);

/// The call that a step asks for. Throws Error when its tensors do not fit, or the library of the
/// plan's target has none.
FftSpec describeFft(const CallSite &site);

} // namespace hydra::runtime
