// Golden numbers of models.md section 11: float64 results that two implementations agree on.
#pragma once

#include <cstdint>

namespace hydra::test {

/// A parameter, its number of elements, and of its gradient the L2 norm and the first element.
struct GoldenGradient {
  const char *name;
  int64_t elements;
  double norm, first;
};

/// The loss after a number of updates.
struct GoldenLoss {
  int64_t updates;
  double loss;
};

/// What printing leaves uncertain (section 11.1).
inline constexpr double kGoldenLossTolerance = 1e-10;      // absolute
inline constexpr double kGoldenGradientTolerance = 5e-9;   // relative
inline constexpr double kGoldenTrajectoryTolerance = 6e-9; // absolute

/// CS336-ref: D=64 F=192 L=2 H=4 V=97, B=2 S=32 (sections 11.2, 11.3 and 11.5).
namespace cs336 {

inline constexpr double kLoss = 5.2639091695;
inline constexpr double kGradientNorm = 2.79133840e+00;

inline constexpr GoldenGradient kGradients[] = {
    {"tok_emb", 6208, 3.20773606e-01, -1.09447295e-03},
    {"layers.0.ln1", 64, 1.24032805e-01, 2.70399889e-03},
    {"layers.0.wq", 4096, 5.54217718e-01, -4.49532152e-03},
    {"layers.0.wk", 4096, 5.94050006e-01, 8.24039427e-03},
    {"layers.0.wv", 4096, 8.16617424e-01, -4.71290163e-03},
    {"layers.0.wo", 4096, 8.29691121e-01, 6.57531164e-03},
    {"layers.0.ln2", 64, 1.34916315e-01, -5.08800439e-03},
    {"layers.0.w1", 12288, 6.78970893e-01, -1.49787820e-04},
    {"layers.0.w2", 12288, 1.19808237e+00, -2.71587612e-03},
    {"layers.0.w3", 12288, 6.57625249e-01, -5.65793628e-04},
    {"layers.1.ln1", 64, 9.20036410e-02, -1.48685477e-02},
    {"layers.1.wq", 4096, 2.42874133e-01, 3.07190407e-03},
    {"layers.1.wk", 4096, 2.38591136e-01, 5.30260213e-03},
    {"layers.1.wv", 4096, 5.69282180e-01, -1.98512062e-03},
    {"layers.1.wo", 4096, 6.25573528e-01, -3.26729768e-03},
    {"layers.1.ln2", 64, 9.49611473e-02, 4.35379858e-03},
    {"layers.1.w1", 12288, 4.96551812e-01, 5.56079053e-04},
    {"layers.1.w2", 12288, 8.76690411e-01, -2.98968608e-03},
    {"layers.1.w3", 12288, 5.21114297e-01, 1.53362364e-03},
    {"ln_final", 64, 1.95226336e-01, 1.85279127e-02},
    {"lm_head", 6208, 1.06642694e+00, -2.02652904e-03},
};

/// AdamW with lr 1e-3, betas (0.9, 0.95), eps 1e-8, no weight decay, no clipping.
inline constexpr GoldenLoss kTrajectory[] = {
    {1, 4.64323540}, {2, 4.07707829}, {5, 2.72111591}, {10, 1.26929108}, {20, 0.24834429},
};

} // namespace cs336
} // namespace hydra::test
