// Text and token files as the batches of a plan.
#pragma once

#include "runtime/data/Loader.h"
#include "runtime/data/TokenFiles.h"
#include "runtime/run/Batch.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime {

/// Whether a word says what tokens are: bytes, uint16, uint32 or ids. All others are files.
bool isTokenKind(std::string_view word);

/// One source of a mixture.
struct MixedSource {
  std::string name;
  std::vector<std::filesystem::path> files = {};
  double weight = 1;
};

/// A source as a flag says it, `NAME=PATH[,weight=W]`. Throws Error.
MixedSource parseMixedSource(const std::string &text);
/// The sources of a file of JSON: `{"NAME": {"path": PATH or [PATH, ...], "weight": W}, ...}`,
/// where paths begin at the folder of the file. Throws Error.
std::vector<MixedSource> readMixture(const std::filesystem::path &path);

struct TextOptions {
  std::vector<std::filesystem::path> files; // of the only source, where `mixture` is empty
  std::vector<MixedSource> mixture;
  bool packed = false;   // rows of whole documents
  bool whole = false;    // nothing is trained on: all of it is measured
  std::string tokenizer; // bytes, uint16 or uint32; empty: bytes for a vocabulary of 256, else
                         // uint16 where it is enough. Another one: the name of `encoder`
  const text::Tokenizer *encoder = nullptr; // of text files, while they are opened
  uint64_t seed = 0;                        // of the order of windows
  int threads = 4;                          // that read ahead; 0: none, the step reads its batch
  int ahead = 8;                            // batches that they keep ready
  int64_t evalBatches = 0;                  // of one measurement of the held-out loss; 0: all
  uint32_t rank = 0; // of those of the plan's mesh: which rows of each batch are read
};

/// What a train plan is trained on, and the part of it that is held out; or text that is only
/// measured.
class TextSource {
public:
  /// Takes batch size, length and vocabulary from the plan's program `train` or `accumulate`.
  /// Throws Error as the data library does, when there is not one held-out batch, and when the
  /// plan, which must outlive it, is not trained on tokens [B, S].
  TextSource(const planfile::Plan &plan, const TextOptions &options);
  ~TextSource();

  /// Names of the sources.
  std::string name() const;
  /// Bytes of text that a token stands for, where all stand for as many.
  std::optional<double> bytesPerToken() const;
  /// In words, for the start-up table.
  std::string description() const;
  /// What tells this text from another, for checkpoints.
  std::string identity() const;

  /// Not of text that is only measured: training batches in the shape that a program reads, from
  /// number `first` on, without end.
  std::unique_ptr<BatchSource> training(const planfile::Program &program, uint64_t first);

  /// The held-out batches in their order, and again; there are `heldOutBatches` of them.
  BatchSource &heldOut();
  void rewindHeldOut();
  uint64_t heldOutBatches() const { return evalBatches; }
  /// Rows of a batch, of all ranks, and tokens of a row.
  uint64_t batchRows() const { return loading.batch; }
  uint64_t rowTokens() const { return loading.length; }

  /// Whether labels may be left out of the loss: of prompts, and at ends of packed documents.
  bool leavesLabelsOut() const;

  /// The loader alone: see data::benchLoader.
  std::string bench(int batches);

  /// So many batches of what a program reads.
  struct Trained {
    const planfile::Program *program;
    uint64_t batches;
  };
  /// How often each source was gone through in all of them.
  std::vector<data::Epochs> epochs(std::span<const Trained> parts);

private:
  class Training;
  class HeldOut;

  struct Source {
    std::string name;
    double weight;
    std::unique_ptr<data::TokenFiles> files;
  };

  void addSource(const MixedSource &source, const data::FilesOptions &how);
  void checkEnds() const;
  std::unique_ptr<data::RowSet> rowsOf(const Source &source, data::Split split, uint64_t length,
                                       uint64_t atLeast) const;
  std::unique_ptr<data::RowOrder> orderOf(uint64_t length) const;
  std::shared_ptr<HeldOut> makeHeldOut() const;

  const planfile::Plan &plan;
  TextOptions options;
  data::LoaderOptions loading;
  std::vector<Source> sources;
  bool readsBytes = false;                   // files that are no shards: each byte is a token
  std::unique_ptr<data::RowOrder> mainOrder; // of steps behind all phases; null if `whole`
  /// By the tokens of a row: which part of each source is gone through in a row of a run.
  std::map<uint64_t, std::vector<data::Epochs>> passesOfRow;
  uint64_t evalBatches = 0;
  std::shared_ptr<HeldOut> heldOutSource;
};

} // namespace hydra::runtime
