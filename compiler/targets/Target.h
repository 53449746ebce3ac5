// What the compiler knows of the machine a plan is for.
#pragma once

#include "dialects/hydra/KernelTiles.h"
#include "dialects/hydra/Roofline.h"
#include "runtime/report/MeasuredRates.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hydra {

/// A description, as the JSON files beside this one have it.
struct Target : Roofline {
  std::string origin; // of the description, for errors: a file, or a built-in target
  std::string name;
  std::string kind = "cpu"; // the backend: a folder of compiler/targets
  std::string code;         // cpu: host, x86-64-v3 or x86-64-v4; cuda: sm_90a, …
  // What shapes code, and sums with it; calibration leaves it alone. 0 on CPUs.
  int64_t multiprocessors = 0;
  int64_t blockSharedBytes = 0;          // that one block can have
  int64_t multiprocessorSharedBytes = 0; // that the blocks of a multiprocessor share
  int64_t quantizedMultiple = 1; // of dimensions of its matmuls of 8-bit operands; 0: it has none
  std::vector<std::string> features; // such as wgmma (dialects/hydra/Target.h)
  uint64_t logitsBytes = 64 << 20;   // at most in memory at a time, unless --ce-chunk says
  int64_t classMultiple = 1;         // of which its library wants as many classes
  uint64_t memoryBytes = 0;
  std::map<std::string, double> loopRates; // of loops in one kernel (dialects/hydra/Target.h)
  std::vector<std::string> epilogues; // of the matmuls of its library: see hydra-fuse-epilogues
  std::vector<KernelTiles> tiles; // of its kernels, where they are not to choose; later ones win
  double peakFlops = 0; // FLOP/s of dense bf16 matmuls as the vendor has it, for MFU; 0: unknown
  /// What predictions are made from; null: the rates alone. Passes decide by the rates, so what a
  /// plan does never depends on it.
  std::shared_ptr<const report::MeasuredRates> measured;

  /// One of `names`; the levels `x86-64-v3` and `x86-64-v4` of `cpu`; or a file whose name ends in
  /// .json. Throws Error that names the file and the field.
  static Target named(const std::string &name);

  /// The names that `named` knows.
  static std::vector<std::string> names();

  /// The text of the `#hydra.target` that passes see.
  std::string attribute() const;

  /// Bytes that a rank of a node sends in the time of one more exchange; 0: unknown.
  uint64_t latencyBytes() const;
  /// Of sums that ranks make at a time, so many that beginning hardly counts; 0: unknown.
  uint64_t bucketBytes() const;
};

} // namespace hydra
