// Dense values of plan tensors on the host: their size, and their origin in a safetensors file.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/support/Safetensors.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime {

/// Shape, dtype and bytes of a plan's tensor stored densely.
std::vector<int64_t> shapeOf(const planfile::Tensor &tensor);
int64_t elementsOf(const planfile::Tensor &tensor);
size_t denseBytes(const planfile::Tensor &tensor);

/// `[3,17]` for a position in row-major order; empty for a tensor of rank 0.
std::string placeText(const planfile::Tensor &tensor, int64_t index);

/// A safetensors file whose tensors carry the names of a plan's inputs and variables.
class GivenTensors {
public:
  explicit GivenTensors(const std::filesystem::path &path);

  bool has(std::string_view name) const { return file.find(name) != nullptr; }
  /// As messages quote it.
  const std::string &path() const { return file.name(); }

  /// Throws Error, naming it, if the file has a tensor that is not in `known`.
  void checkNames(const std::set<std::string, std::less<>> &known) const;

  /// Tensor `name` in the dtype of `target`: between floating types rounded to nearest, between
  /// integer types exact. Throws Error, naming the tensor, when it is missing or misshapen, or when
  /// one side is floating and the other integer, or when it cannot be read.
  std::vector<std::byte> values(std::string_view name, const planfile::Tensor &target) const;

private:
  support::SafetensorsFile file;
};

} // namespace hydra::runtime
