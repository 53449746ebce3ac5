// Dense values of plan tensors on the host: the parts of ranks, and their origin in a safetensors
// file.
// file.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/TensorBytes.h"
#include "runtime/support/Safetensors.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime {

std::vector<int64_t> shapeOf(const planfile::Tensor &tensor);

/// How the tensor of an input or output, of which each rank may have its part of the batch, lies in
/// the whole: in blocks of equal size, one of each rank in turn.
class BatchPart {
public:
  /// `dimension`: batch_dimension of the input or output, -1 where each rank has all of it.
  BatchPart(const planfile::Plan &plan, const planfile::Tensor &tensor, int32_t dimension,
            uint32_t rank);

  bool isPart() const { return ranks > 1; }
  /// Of all ranks' parts together.
  const std::vector<int64_t> &wholeShape() const { return whole; }
  int64_t wholeElements() const { return elements * ranks; }
  /// Where element `index` of this part is in the whole.
  int64_t wholeIndex(int64_t index) const {
    return (index / block * ranks + rank) * block + index % block;
  }
  /// This rank's part of dense bytes of the whole.
  std::vector<std::byte> cut(std::vector<std::byte> bytes) const;
  /// The whole from the parts of all ranks.
  std::vector<std::byte> join(const std::vector<std::vector<std::byte>> &parts) const;

private:
  std::vector<int64_t> whole;
  int64_t elements, block, ranks = 1, rank = 0;
};

/// A safetensors file whose tensors carry the names of a plan's inputs and variables.
class GivenTensors {
public:
  explicit GivenTensors(const std::filesystem::path &path);

  bool has(std::string_view name) const { return file.find(name) != nullptr; }
  /// Of all of its tensors.
  std::vector<std::string_view> names() const;
  /// The format of a tensor; nullopt if there is none of that name.
  std::optional<support::DType> formatOf(std::string_view name) const {
    const support::TensorPlace *tensor = file.find(name);
    return tensor ? std::optional(tensor->dtype) : std::nullopt;
  }
  /// What the file says of itself.
  const support::SafetensorsMetadata &metadata() const { return file.metadata(); }
  /// As messages quote it.
  const std::string &path() const { return file.name(); }

  /// Throws Error, naming it, if the file has a tensor that is not in `known`.
  void checkNames(const std::set<std::string, std::less<>> &known) const;

  /// Tensor `name` in the dtype of `target`: between floating types rounded to nearest, between
  /// integer types exact. Throws Error, naming the tensor, when it is missing or misshapen, or when
  /// one side is floating and the other integer, or when it cannot be read.
  std::vector<std::byte> values(std::string_view name, const planfile::Tensor &target) const {
    return values(name, dtypeOf(target), shapeOf(target));
  }
  std::vector<std::byte> values(std::string_view name, support::DType dtype,
                                const std::vector<int64_t> &shape) const;
  /// The same of elements `first` and on, in row-major order, as many as there is room for in
  /// `out`.
  void read(std::string_view name, support::DType dtype, const std::vector<int64_t> &shape,
            int64_t first, std::span<std::byte> out) const;

private:
  support::SafetensorsFile file;
};

} // namespace hydra::runtime
