// What `--precision` may name: which formats values are held and multiplied in.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/NumberFormats.h"

#include "llvm/ADT/StringRef.h"

#include <array>
#include <optional>
#include <string>

namespace hydra {

struct PrecisionPolicy {
  llvm::StringLiteral name;
  support::DType format;  ///< of the operands of matmuls and, if tensors can hold it, attention
  bool everywhere;        ///< parameters, their moments and the residual stream have it too
  bool scalesLoss;        ///< training multiplies the loss, lest gradients are lost in the format
  bool quantizes = false; ///< linear layers multiply 8-bit operands, made of those of the format

  /// Whether values are held in the format, and not only multiplied in it.
  bool holdsValues() const {
    return format != support::DType::F32 && support::formatOf(format).stored;
  }
  /// Whether matmuls read rounded copies of parameters.
  bool roundsParameters() const { return holdsValues() && !everywhere; }
  /// Whether gradients that matmuls make can be held in bf16 instead of f32.
  bool narrowsGradients() const { return roundsParameters() && format == support::DType::BF16; }
};

inline constexpr std::array kPrecisionPolicies = {
    PrecisionPolicy{"fp32", support::DType::F32, false, false},
    PrecisionPolicy{"tf32", support::DType::TF32, false, false},
    PrecisionPolicy{"bf16", support::DType::BF16, false, false},
    PrecisionPolicy{"f16", support::DType::F16, false, true},
    PrecisionPolicy{"pure_bf16", support::DType::BF16, true, false},
    PrecisionPolicy{"fp8", support::DType::BF16, false, false, true},
};

/// Null for a name that no policy has.
inline const PrecisionPolicy *precisionPolicy(llvm::StringRef name) {
  for (const PrecisionPolicy &policy : kPrecisionPolicies)
    if (policy.name == name)
      return &policy;
  return nullptr;
}

/// `fp32, tf32, … or fp8`.
inline std::string precisionPolicyNames() {
  std::string names;
  for (size_t i = 0; i < kPrecisionPolicies.size(); ++i)
    names += (i == 0                               ? ""
              : i + 1 == kPrecisionPolicies.size() ? " or "
                                                   : ", ") +
             kPrecisionPolicies[i].name.str();
  return names;
}

/// The class of an operation's precision.
inline Precision precisionOf(mlir::Operation *op) {
  auto precision = llvm::dyn_cast<PrecisionOpInterface>(op);
  return precision ? precision.precisionClass() : Precision::Exact;
}

/// What a user adds to a policy: layers of some parameters multiply in more bits than it says.
struct LayerPrecision {
  std::string pattern; ///< over names of parameters
  support::DType format;

  /// Reads `PATTERN:FORMAT`; nullopt for any other text.
  static std::optional<LayerPrecision> parse(llvm::StringRef text) {
    const auto [pattern, name] = text.rsplit(':');
    const PrecisionPolicy *policy = precisionPolicy(name);
    if (pattern.empty() || !policy || policy->holdsValues())
      return std::nullopt;
    return LayerPrecision{pattern.str(), policy->format};
  }
};
inline constexpr llvm::StringLiteral kLayerPrecisionSyntax = "PATTERN:fp32 or PATTERN:tf32";

} // namespace hydra
