// The table of names that a model holds: which tensor of other programs each of its parameters is.
#pragma once

#include "dialects/hydra/Hydra.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hydra::frontend {

struct NamedParameter {
  std::string name;           ///< in Hydra's files: `layers.0.wq`
  std::vector<int64_t> shape; ///< there
  std::string origin;         ///< in files of others; `{row}` in it: of each of `rows` tensors
  bool transposed = false;    ///< which have it as [columns, rows]
  int64_t rows = 0; ///< slices along the first dimension that are tensors there; 0: it is one

  /// The names of these tensors, and the shape of each.
  std::vector<std::string> origins() const;
  std::vector<int64_t> originShape() const;
};

/// The parameters of a model whose layers are unrolled, in their order. Throws support::Error for a
/// parameter without `from`, and two from one tensor.
std::vector<NamedParameter> namesOf(ModelOp model);

/// The names of its state, which files of others do not have.
std::vector<std::string> statesOf(ModelOp model);

} // namespace hydra::frontend
