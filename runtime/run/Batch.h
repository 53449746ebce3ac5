// The values of a program's inputs: given ones, checked once, or synthetic ones for each step.
#pragma once

#include "runtime/run/Executor.h"
#include "runtime/run/TensorValues.h"
#include "runtime/support/ZipfIds.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hydra::runtime {

/// Tokens and labels of any number of batches, one after the other.
class BatchSource {
public:
  virtual ~BatchSource() = default;

  /// Dense [B, S]; valid until the next call.
  struct Rows {
    std::span<const int32_t> tokens, labels;
  };
  virtual Rows next() = 0;
};

/// How ids that nobody gives are distributed over the valid ones: all alike, or by
/// support::ZipfIds.
enum class IdDistribution { uniform, zipf };

/// Such ids, as messages and checkpoints call them.
const char *randomTokensText(IdDistribution ids);

/// The inputs of one program, as the rank `rank` of the plan's mesh has them: of what ranks share
/// out, the rows that are its own. Writing them allocates nothing.
class Batch {
public:
  /// Values from `given`. Throws Error naming the tensor, and for an id that is not valid its
  /// place: `tokens[3,17] = 50999 is not in [0, 50257)`.
  Batch(const planfile::Plan &plan, const planfile::Program &program, const GivenTensors &given,
        uint32_t rank = 0);

  /// Ids drawn from the valid ones, other values from a normal distribution. Tokens and labels of
  /// one shape [.., S] read the same random text: labels[.., s] is the token after tokens[.., s].
  Batch(const planfile::Plan &plan, const planfile::Program &program, uint64_t seed,
        uint32_t rank = 0, IdDistribution ids = IdDistribution::uniform);

  /// Tokens and labels, which must be all that the program takes, from `source`, which must outlive
  /// the batch. There are none before the first `advance`.
  Batch(const planfile::Plan &plan, const planfile::Program &program, BatchSource &source);

  /// Synthetic values become those of draw number `draw`, those of a source its next ones; given
  /// ones stay.
  void advance(uint64_t draw);

  /// To the device, for the inputs of a program, which may be another one, the values of their
  /// names. Before each run: the program may reuse the bytes of its inputs.
  void write(Executor &executor, const planfile::Program &program) const;

  /// Labels of this rank's rows that count in a loss; nothing where the program takes none.
  std::optional<int64_t> countedLabels() const;

private:
  struct Entry {
    const planfile::Input *input;
    const planfile::Tensor *tensor;
    BatchPart part;
    std::vector<std::byte> values;
    bool settled = false;                              ///< values that no draw changes
    std::shared_ptr<const support::ZipfIds> zipf = {}; ///< null: ids are uniform
  };

  void drawSynthetic(uint64_t draw);

  std::vector<Entry> entries;
  BatchSource *source = nullptr;
  uint64_t seed = 0;
  bool synthetic = false;
};

/// Throws Error at the first id that the input does not allow; `values` are dense.
void checkIds(const planfile::Input &input, support::DType dtype, const std::vector<int64_t> &shape,
              const std::vector<std::byte> &values);

} // namespace hydra::runtime
