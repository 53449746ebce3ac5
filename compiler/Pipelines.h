// The default order of passes for each thing a model can be compiled to.
#pragma once

#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <optional>

namespace hydra {

enum class Mode { Generate, Forward, Grad, Train };
/// As flags and plan files have it: `generate`, `forward`, `grad`, `train`.
llvm::StringRef modeName(Mode mode);
inline bool hasBackward(Mode mode) { return mode >= Mode::Grad; }

/// What becomes of the rows that a router leaves out: work follows the number of the others, on the
/// device; all rows are worked on, to the same values; nothing is left out, by soft routing of all.
enum class Routing { Dynamic, Masked, Static };

/// What ranks cut of parameters: nothing; what their update needs; the parameters themselves.
enum class Sharding { Ddp, Zero1, Fsdp };
/// Whether a unit is gathered again for the backward pass: see `hydra-reshard`.
enum class Resharding { Auto, Always, Never };
/// What ranks send of gradients.
enum class WireFormat { F32, BF16 };
/// When, of an update from several micro-batches: in each of them, or once behind the last.
enum class AccumExchange { Each, Last };

/// What binds a model: see `hydra-bind`.
struct BindingOptions {
  std::string preset;
  std::vector<std::string> settings;  ///< NAME=VALUE
  int64_t batch = 0, seq = 0;         ///< 0: not given
  std::vector<std::string> programs;  ///< NAME:ENTRY; empty: every entry
  std::vector<std::string> mesh;      ///< NAME:SIZE, outermost first; empty: one rank
  Routing routing = Routing::Dynamic; ///< binding knows Static; Masked leaves out hydra-skip-rows
};

/// What of a model is trained: see `hydra-freeze` and `hydra-lora`.
struct TuningOptions {
  struct Lora {
    int64_t rank = 0;
    double alpha = 0.0;
    std::vector<std::string> targets; ///< patterns
  };
  std::vector<std::string> freeze; ///< patterns
  std::optional<Lora> lora;

  bool any() const { return !freeze.empty() || lora; }
};

/// What a loss holds logits in that nothing else reads. Auto: bf16 where that is what the
/// precision multiplies in, without any in 8 bits; else f32.
enum class LogitsFormat { Auto, F32, BF16 };

/// What gradients of parameters are stored in that matmuls make.
enum class GradientFormat { F32, BF16 };

/// The 8-bit formats of matmuls: e5m2 for gradients and e4m3 for the rest, or e4m3 for all.
enum class QuantizedFormat { Hybrid, E4M3 };

/// What has a scale of its own: an operand of a matmul, each of its rows, or blocks of 128
/// neighbours along the sum, in weights of as many rows.
enum class QuantizedScaling { Tensor, Row, Block128 };

/// As flags and reports spell it.
llvm::StringRef scalingName(QuantizedScaling scaling);

/// Of which step the largest magnitude is that a scale is made of: this one, or those before.
enum class QuantizedAmax { Current, Delayed };

/// What of a model is multiplied in 8 bits: see `hydra-select-quantized`.
struct QuantizationOptions {
  QuantizedFormat format = QuantizedFormat::Hybrid;
  QuantizedScaling scaling = QuantizedScaling::Tensor;
  QuantizedAmax amax = QuantizedAmax::Current;
  int64_t amaxHistory = 16;      ///< steps that delayed scales remember
  std::vector<std::string> keep; ///< patterns; empty: first and last layers, and what is in none
  int64_t least = 64;            ///< the smallest dimension of a weight
  bool strict = false;           ///< fail where nothing is
};

/// What weights are held in that nothing changes: what matmuls round them to, or integers with a
/// scale for each row or each group of neighbours (see `hydra-quantize-weights`).
enum class WeightFormat { Rounded, Int8, Int4 };

/// What an update does beside, and how it comes to its gradients: see `hydra-optimizer`.
struct UpdateOptions {
  double emaDecay = 0; ///< of averages of parameters; 0: none
  int64_t swaFrom = 0; ///< the first update in the mean of all; 0: none
  bool normSpike = false, batchFilter = false, groupNorms = false, gradHistograms = false;
  AccumExchange exchange = AccumExchange::Each;

  bool averages() const { return emaDecay > 0 || swaFrom > 0; }
};

/// What every tool is told about a model: how it is bound, extended to what, in which numbers.
struct ProgramOptions {
  BindingOptions binding;
  TuningOptions tuning;
  Mode mode = Mode::Forward;
  int64_t accumulation = 1; ///< micro-batches of an update
  UpdateOptions update;
  std::string precision = "fp32";          ///< a policy of passes/precision/Policy.h
  std::vector<std::string> layerPrecision; ///< what a user adds to it: PATTERN:FORMAT
  LogitsFormat logits = LogitsFormat::Auto;
  GradientFormat gradients = GradientFormat::F32;
  QuantizationOptions quantization;
};

/// The options of `hydra-bind`.
BindOptions bindOptions(const BindingOptions &binding);

/// The options of `hydra-optimizer`.
OptimizerOptions optimizerOptions(const std::vector<std::string> &programs, int64_t accumulation,
                                  bool clip, const UpdateOptions &update);

/// Whether the losses of a program hold logits in bf16.
bool roundsLogits(const ProgramOptions &program);

/// The options of `hydra-mixed-precision`, for a precision that asks for it.
MixedPrecisionOptions mixedPrecisionOptions(const ProgramOptions &program);

/// The options of `hydra-apply-dropout`.
ApplyDropoutOptions dropoutOptions(const std::vector<std::string> &training);

/// The options of `hydra-lora` and `hydra-freeze`.
LoraOptions loraOptions(const TuningOptions &tuning);
FreezeOptions freezeOptions(const TuningOptions &tuning);

/// The options of `hydra-select-precision`.
SelectPrecisionOptions selectPrecisionOptions(const std::vector<std::string> &rules);

/// The options of `hydra-select-quantized` and of `hydra-quantize-matmuls`.
SelectQuantizedOptions selectQuantizedOptions(const QuantizationOptions &quantization);
QuantizeMatmulsOptions quantizeMatmulsOptions(const QuantizationOptions &quantization,
                                              int64_t accumulation);

/// Binds, unrolls, says what is trained, and simplifies. The programs `training` drop what the
/// model says (`hydra-apply-dropout`), others nothing.
void buildForwardPipeline(mlir::OpPassManager &passes, const BindingOptions &binding,
                          const TuningOptions &tuning = {},
                          const std::vector<std::string> &training = {});
/// Adds the backward pass to `programs`, and for training the update; `scaleLoss`: of gradients
/// that a state has multiplied. `gradients`: what those that matmuls make are rounded to.
void buildTrainingPipeline(mlir::OpPassManager &passes, Mode mode,
                           std::vector<std::string> programs, int64_t accumulation, bool clip,
                           bool scaleLoss = false, const UpdateOptions &update = {},
                           GradientFormat gradients = GradientFormat::F32);

/// The dialects of models and plans, with the lowerings between them.
void registerDialects(mlir::DialectRegistry &registry);
/// The same and all passes by name, for tools that take pass names.
void registerEverything(mlir::DialectRegistry &registry);

} // namespace hydra
