// From a differentiated program to a placed plan: the passes behind `hydrac`.
#pragma once

#include "compiler/Pipelines.h"
#include "compiler/targets/Target.h"

#include "llvm/ADT/StringSet.h"

namespace hydra {

/// Where `--compile-to` stops.
enum class CompilePhase { Bind, Differentiate, Group, Place, Plan };

/// What is recomputed for the backward pass: see `hydra-recompute`.
enum class Recomputation { None, Light, Rowwise };

/// Where the rounded copies of parameters that matmuls read live: from step to step beside the
/// parameters (`hydra-keep-rounded`), from the forward pass of a step to its backward pass, or
/// where a layer reads them. Auto: held, but for rowwise recomputation.
enum class RoundedCopies { Auto, Held, Step, Layer };
inline constexpr llvm::StringLiteral kRecomputePass = "hydra-recompute";
inline constexpr llvm::StringLiteral kPlacementPass = "hydra-place-optimizer";

/// What lives in the host's memory and visits the device. Optimizer: moments
/// (`hydra-offload-moments`).
enum class Offload { None, Optimizer };
inline constexpr llvm::StringLiteral kOffloadPass = "hydra-offload-moments";

/// Flash never holds the scores; Naive writes them out (`hydra-decompose-attention`).
enum class AttentionForm { Flash, Naive };

/// Whether ranks that share a node exchange among themselves first, and then with those of other
/// nodes: see `factorAtNodes`.
enum class TwoLevel { Auto, Always, Never };

/// The first steps of a run, up to `lastStep`, made by another program than `train`.
struct TrainingPhase {
  std::string program;
  int64_t lastStep = 0;
};

struct CompileOptions : ProgramOptions {
  CompileOptions() { mode = Mode::Train; }

  std::vector<TrainingPhase> phases; ///< one after the other, before `train`
  bool clip = true;
  bool holds = false; ///< steps can be made that update nothing: see `hydra-optimizer`
  Recomputation recompute = Recomputation::Light;
  int64_t replayEvery = 0;  ///< layers from one replayed one to the next; 0: none
  int64_t replayLayers = 0; ///< replayed layers, spread evenly; 0: as replayEvery says
  RoundedCopies roundedCopies = RoundedCopies::Auto;
  bool splitMaster = false;   ///< parameters are a bf16 and the rest of their f32
  int64_t scanCheckpoint = 1; ///< chunks of scans between carried values that are kept
  Sharding sharding = Sharding::Ddp;
  Resharding resharding = Resharding::Auto;
  WireFormat wire = WireFormat::F32;
  TwoLevel twoLevel = TwoLevel::Auto;
  int64_t nodeRanks = 0;   ///< that share a node; 0: as the target has it
  int64_t shardLevels = 1; ///< innermost axes of the mesh that share out
  int64_t context = 0;     ///< Mode::Generate: the most tokens of a sequence
  WeightFormat weightFormat = WeightFormat::Rounded; ///< Mode::Generate
  std::vector<std::string> weightKeep;               ///< patterns: parameters rounded at most
  int64_t wholeBelow = 65536;                        ///< elements from which on parameters are cut
  int64_t exchangeBytes = int64_t{256} << 20; ///< a rank gets of gradients at a time; 0: no bound
  Offload offload = Offload::None;
  int64_t offloadLeast = 16384; ///< bytes from which on moments leave the device
  int64_t gatherAhead = 2;      ///< largest gathers whose bytes may wait for their readers
  AttentionForm attention = AttentionForm::Flash;
  bool reducedReduction = false; ///< partial sums may be in the type of the operands
  int64_t ceChunk = 0;           ///< rows of logits at a time; 0: by memory
  Target target = Target::named("cpu");
  int64_t sideMultiprocessors = 0; ///< see hydra-assign-streams; 0: all
  int64_t level = 2;               ///< 0: only what is needed; 1: and simplification; 2: everything
  llvm::StringSet<> disabled;      ///< pass names
  llvm::StringSet<> kept;          ///< of passes that run at every level
  CompilePhase until = CompilePhase::Plan;
};

/// What of `--rounded-copies` happens: never Auto.
RoundedCopies roundedCopiesOf(const CompileOptions &options);

/// A pass of the pipeline as `--list-passes` shows it.
struct PassEntry {
  std::string name, summary;
  bool required; ///< cannot be disabled
};

/// All passes in the order they run.
std::vector<PassEntry> pipelinePasses();

/// Of the passes that the options ask for those that could be left out: what each does alone.
std::vector<std::string> optionalPasses(const CompileOptions &options);

/// Adds the passes that the options ask for; returns the names of those added.
std::vector<std::string> buildPlanPipeline(mlir::OpPassManager &passes,
                                           const CompileOptions &options);

} // namespace hydra
