// How a program is compiled and run: what the command lines of hydrac and hydra-run can say.
#pragma once

#include "compiler/PlanPipeline.h"
#include "compiler/targets/Target.h"
#include "test/support/Random.h"

#include <string>
#include <vector>

namespace hydra::test {

struct Setting {
  Mode mode = Mode::Grad;
  std::string target = "cpu";
  unsigned level = 2;
  std::vector<std::string> disabled;  ///< passes left out
  std::string recompute = "light";    ///< as hydrac's flag has it
  std::string roundedCopies = "auto"; ///< as hydrac's flag has it, or auto
  bool splitMaster = false;
  int64_t scanCheckpoint = 1, ceChunk = 0;
  std::string attention = "flash", precision = "fp32";
  std::string logits = "auto";             ///< as hydrac's flag has it
  std::string gradients = "f32";           ///< likewise
  std::vector<std::string> layerPrecision; ///< rules, as hydrac's flag has them
  std::string fp8Scaling = "tensor";       ///< of precision fp8
  std::string fp8Amax = "current";         ///< and of which steps; delayed: of programs that train
  int64_t fp8AmaxHistory = 16;             ///< and how many of those
  std::string fp8Format = "hybrid";
  std::vector<std::string> fp8Keep = {"none"}; ///< patterns: parameters that stay in bf16
  int64_t fp8Least = 1;                        ///< the smallest dimension of what does not
  std::vector<std::string> freeze;             ///< patterns: parameters that are not trained
  std::string lora;                            ///< as hydrac's flag has it; empty: none
  int64_t accumulation = 1;
  bool noClip = false;
  double clip = 0.0;      ///< the norm given to every step; 0: none
  double normSpike = 0.0; ///< the same of --norm-spike; 0: the program knows no bound
  bool groupNorms = false, batchFilter = false;
  int64_t evalBatch = 0; ///< of the measurement behind training; 0: that of the training
  std::string average;   ///< as hydrac's flag has it; empty: none
  unsigned threads = 1;
  std::string mesh;                     ///< such as data:2, or node:2,data:3; empty: one rank
  std::string shard = "ddp";            ///< what ranks share out, of parameters of any size
  int64_t shardLevels = 1;              ///< and over how many of the mesh's axes, the inner ones
  int64_t wholeBelow = 0;               ///< elements from which on
  std::string reshard = "always";       ///< of shard fsdp
  std::string reduce = "f32";           ///< what they send of gradients
  std::string accumExchange = "each";   ///< and when, of several micro-batches
  int64_t exchangeBytes = 4096;         ///< and how much at a time
  int64_t context = 32;                 ///< of text: the most tokens of a sequence
  std::vector<int64_t> prefill = {5};   ///< and how many calls read, besides one
  std::string weightFormat = "rounded"; ///< of text
  std::vector<std::string> weightKeep;  ///< patterns: parameters that --weight-format leaves alone
  bool offload = false;                 ///< moments of any size live in the host's memory
  int64_t offloadLeast = 0;             ///< or of so many bytes
  bool plainCode = false;               ///< LLVM does not improve the code; NVRTC makes none

  bool operator==(const Setting &other) const = default;

  /// Throws support::Error for what is no setting, or asks for a pass and leaves it out.
  static Setting parse(const std::string &text);
  /// The flags that differ from the default, mode first; `parse` reads it.
  std::string text() const;

  bool isCuda() const { return Target::named(target).kind == "cuda"; }
  /// Of binding the mesh alone.
  CompileOptions compileOptions() const;
  /// Of --precision=fp8; unless it says otherwise all linear layers, of any size.
  QuantizationOptions quantization() const;
  /// What of the model is trained.
  TuningOptions tuning() const;
  /// What an update does beside, and how it comes to its gradients.
  UpdateOptions update() const;
  bool holdsIntegers() const { return mode == Mode::Generate && weightFormat != "rounded"; }
  bool holdsInt4() const { return holdsIntegers() && weightFormat == "int4"; }
  /// The axes of the mesh, as BindingOptions has them.
  std::vector<std::string> meshAxes() const;
  /// What the oracle must know: settings of one key compute the same values but for rounding.
  std::string oracleKey() const;
  /// Settings of one key must give the same bits: they differ only in passes that Passes.td calls
  /// exact, in the level, in threads, and in whether LLVM improves the code.
  std::string bitsKey() const;
};

/// Which drawn settings are of interest: `mode` of those is left to the draw where it is not set.
struct SettingRange {
  std::string target = "cpu";
  std::vector<Mode> modes = {Mode::Grad, Mode::Forward, Mode::Train};
  int64_t batch = 0;  ///< of the program: ranks are those that divide it; 0: it has none
  bool ranks = false; ///< draw those of several ranks alone, which train where the modes have that
  bool compileOnly = false; ///< nothing runs: ranks may have GPUs, whose code is mostly plain
  bool int8 = false;  ///< it has weights that can be held in integers
  bool int4 = false;  ///< of 4 bits too
  std::vector<std::string> parameters = {};    ///< names, for patterns
  std::vector<std::string> linearWeights = {}; ///< of those the ones that --lora takes
};

/// Random settings for one program, the same for the same `number`. Over consecutive numbers every
/// pass is left out by turns. Most are of plain code, for time. The second of two may differ from
/// the first in exact passes alone.
std::vector<Setting> drawSettings(uint64_t number, unsigned count, const SettingRange &range);

/// All levels, every pass left out, every choice of every flag: each alone, beside defaults.
std::vector<Setting> allSettings(const SettingRange &range);

/// The passes that change bits on a target, by Passes.td: on GPUs also those that shape groups.
const std::vector<std::string> &numericsChangingPasses(const std::string &target);

} // namespace hydra::test
