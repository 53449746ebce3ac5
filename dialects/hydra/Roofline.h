// How long a machine takes for a step, at the limit: the cost model over the rates of a target.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hydra {

/// Whose rate the arithmetic of a step has.
enum class Arithmetic { Matmul, Attention, Other };

/// Rates of a whole device, such as well-written code reaches; in FLOP/s, bytes/s and seconds.
struct Roofline {
  double memoryBandwidth = 0; ///< read plus written
  uint64_t cacheBytes = 0;    ///< steps that move less run at cacheBandwidth
  double cacheBandwidth = 0;
  std::map<std::string, double> matmulFlops; ///< by format of the operands; f32 and bf16 are there
  std::map<std::string, double> attentionFlops;
  double vectorFlops = 0;   ///< of everything else
  double launchSeconds = 0; ///< of any step

  /// The larger of computing and moving bytes, and a launch. `format`: that of the operands.
  double seconds(Arithmetic kind, const std::string &format, uint64_t flops, uint64_t bytes) const;
};

} // namespace hydra
