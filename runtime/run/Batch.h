// The values of a program's inputs: given ones, checked once, or synthetic ones for each step.
#pragma once

#include "runtime/run/Executor.h"
#include "runtime/run/TensorValues.h"

#include <cstdint>
#include <vector>

namespace hydra::runtime {

/// The inputs of one program. Writing them allocates nothing.
class Batch {
public:
  /// Values from `given`. Throws Error naming the tensor, and for an id that is not valid its
  /// place: `tokens[3,17] = 50999 is not in [0, 50257)`.
  Batch(const planfile::Plan &plan, const planfile::Program &program, const GivenTensors &given);

  /// Ids drawn uniformly from the valid ones, other values from a normal distribution. Tokens and
  /// labels of one shape [.., S] read the same random text: labels[.., s] is the token after
  /// tokens[.., s].
  Batch(const planfile::Plan &plan, const planfile::Program &program, uint64_t seed);

  /// Synthetic values become those of draw number `draw`; given ones stay.
  void advance(uint64_t draw);

  /// To the device. Before each run: the program may reuse the bytes of its inputs.
  void write(Executor &executor) const;

private:
  struct Entry {
    const planfile::Input *input;
    const planfile::Tensor *tensor;
    std::vector<std::byte> values;
  };

  std::vector<Entry> entries;
  uint64_t seed = 0;
  bool synthetic = false;
};

/// Throws Error at the first id that the input does not allow; `values` are dense in the dtype of
/// the tensor.
void checkIds(const planfile::Input &input, const planfile::Tensor &tensor,
              const std::vector<std::byte> &values);

/// Tokens that one run of the program reads: the elements of its first input of that kind, or 0.
uint64_t tokensPerRun(const planfile::Plan &plan, const planfile::Program &program);

} // namespace hydra::runtime
