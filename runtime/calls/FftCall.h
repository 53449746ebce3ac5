// What discrete Fourier transforms take, the same on every target.
#pragma once

#include "runtime/calls/CallSite.h"

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

/// The call that a step asks for. Throws Error when its tensors do not fit.
FftSpec describeFft(const CallSite &site);

} // namespace hydra::runtime
