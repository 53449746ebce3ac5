// The flag that says in which number format weights are written.
#pragma once

#include "compiler/driver/CommandLine.h"
#include "runtime/support/DType.h"

#include <optional>

namespace hydra {

enum class WeightFormat { Keep, F32, BF16, F16 };

/// `--dtype`.
struct WeightFormatOption : ChoiceOption<WeightFormat> {
  explicit WeightFormatOption(llvm::cl::OptionCategory &category)
      : ChoiceOption<WeightFormat>(
            "dtype", llvm::cl::cat(category), llvm::cl::init(WeightFormat::Keep),
            llvm::cl::desc("number format of the weights that are written, rounded to nearest "
                           "(default: keep)"),
            llvm::cl::values(clEnumValN(WeightFormat::Keep, "keep", "as they are"),
                             clEnumValN(WeightFormat::F32, "f32", "32 bits"),
                             clEnumValN(WeightFormat::BF16, "bf16", "16 bits, 8 of them exponent"),
                             clEnumValN(WeightFormat::F16, "f16", "16 bits, 5 of them exponent"))) {
  }

  /// Nothing: the format that each tensor has.
  std::optional<support::DType> dtype() const {
    switch (getValue()) {
    case WeightFormat::Keep:
      return std::nullopt;
    case WeightFormat::F32:
      return support::DType::F32;
    case WeightFormat::BF16:
      return support::DType::BF16;
    case WeightFormat::F16:
      return support::DType::F16;
    }
    return std::nullopt;
  }
};

} // namespace hydra
