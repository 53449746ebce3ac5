// What optimizers check of the settings that a group gives.
#pragma once

#include "dialects/hydra/Hydra.h"

#include <cmath>

namespace hydra {

/// Multiplies the learning rate of the run: the rate of a group of its own.
inline constexpr OptimizerSetting kRateScale{"lr_scale", OptimizerSetting::Kind::Number, 1.0};

/// Says what is wrong with a number, unless it is absent or still an expression; empty when nothing
/// is.
template <typename Fits>
std::string checkNumber(mlir::DictionaryAttr settings, llvm::StringRef name, Fits fits,
                        llvm::StringRef expected) {
  mlir::Attribute number = settings.get(name);
  if (!number || mlir::isa<ExprAttr>(number) || fits(realValue(number)))
    return "";
  return (name + " is " + numberText(realValue(number)) + "; expected " + expected).str();
}

/// The share of what was in a running mean.
inline std::string checkFraction(mlir::DictionaryAttr settings, llvm::StringRef name) {
  return checkNumber(
      settings, name, [](double v) { return v >= 0.0 && static_cast<float>(v) < 1.0F; },
      "a number from 0 to less than 1");
}

inline std::string checkNotNegative(mlir::DictionaryAttr settings,
                                    llvm::ArrayRef<llvm::StringRef> names) {
  for (llvm::StringRef name : names)
    if (std::string problem = checkNumber(
            settings, name,
            [](double v) { return v >= 0.0 && std::isfinite(static_cast<float>(v)); },
            "a finite number from 0");
        !problem.empty())
      return problem;
  return "";
}

} // namespace hydra
