// The small matrices that `hydrac --lora` trains, as files of their own.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/TensorValues.h"
#include "runtime/run/Variables.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Whether a parameter is one of them.
inline bool isAdapter(const planfile::Variable &variable) { return variable.adapter() != nullptr; }

/// By what their products are multiplied: alpha / rank.
struct AdapterScale {
  int64_t rank = 0;
  double alpha = 0.0;
};
/// That of the plan's adapters; nullopt for a plan without.
std::optional<AdapterScale> adapterScaleOf(const planfile::Plan &plan);

/// What the metadata of a file of Hydra's says of its adapters, as JSON under this key.
inline constexpr const char *kLoraKey = "lora";
std::string textOf(const AdapterScale &scale);
/// Throws Error where a file's adapters were trained with other numbers than those of the plan.
void checkScale(const GivenTensors &given, const AdapterScale &scale);

/// All adapters of a plan, from a directory as PEFT writes it (adapter_config.json,
/// adapter_model.safetensors), or a safetensors file with their names there or here. A file that
/// does not say of which rank and alpha it is goes by the adapter_config.json beside it, if any.
class AdapterFile {
public:
  /// Throws Error for a plan without adapters, a file that lacks one of them, holds anything else,
  /// or names it both ways, and for a configuration of other numbers or of what is not supported.
  AdapterFile(const std::filesystem::path &path, const PlanFile &file);

  const GivenTensors &tensors() const { return given; }
  /// What the file has of an adapter of the plan. Plan and this must outlive the result.
  ElementSource valuesOf(const planfile::Plan &plan, const planfile::Variable &variable) const;

private:
  void findTrunk(const planfile::Plan &plan);
  /// What the file calls an adapter where it has PEFT's names: one tensor, or of experts one for
  /// each slice along the first dimension.
  std::vector<std::string> tensorsOf(const planfile::Plan &plan,
                                     const planfile::Variable &variable) const;

  GivenTensors given;
  /// `model.`, which all modules of a trunk have in a model with a head, and weights of a trunk
  /// alone lack: what the plan's names have in front of those of the file, or the file's in front
  /// of those of the plan. Which word that is, the names show; empty where they are the same.
  std::string trunk;
};

} // namespace hydra::runtime
