// Batches of windows of text: shuffled, read ahead by threads, the same for the same seed.
#pragma once

#include "runtime/data/TokenFiles.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace hydra::data {

/// The windows of a stream of tokens: window i holds tokens [begin + i * length, ...] and, one
/// ahead, their labels. The last tenth of the tokens is held out.
struct Windows {
  uint64_t begin = 0;  // first token
  uint64_t count = 0;  // windows
  uint64_t length = 0; // S; a window takes S + 1 tokens, and shares one with the next

  /// Throws Error when the part that is trained on, or the held-out one, has too few tokens for
  /// `atLeast` windows.
  static Windows training(const TokenFiles &files, uint64_t length, uint64_t atLeast);
  static Windows heldOut(const TokenFiles &files, uint64_t length, uint64_t atLeast);
};

/// One batch, or the part of it that is read: dense [B / parts, S] each.
struct BatchRows {
  std::vector<int32_t> tokens, labels;
};

/// Window `index` of `windows` into row `row` of `batch`.
void readWindow(const TokenFiles &files, const Windows &windows, uint64_t index, size_t row,
                BatchRows &batch);

/// Element `index` of a permutation of [0, count) that seed and epoch choose. Needs no memory: a
/// Feistel network over the next power of four, iterated until it hits the range.
uint64_t shuffled(uint64_t index, uint64_t count, uint64_t seed, uint64_t epoch);

struct LoaderOptions {
  uint64_t batch = 1;  // B
  uint64_t parts = 1;  // equal parts of the rows of a batch, ...
  uint64_t part = 0;   // and which of them is read; parts divides B
  uint64_t length = 1; // S
  uint64_t seed = 0;   // of the order of windows
  uint64_t first = 0;  // number of the first batch
  int threads = 4;
  int ring = 8; // batches that are ready or being read
};

/// Endless training batches. Batch k holds windows k * B .. k * B + B - 1 of the epochs, each a
/// shuffled pass over all windows; it depends on the files, the seed and k alone, so that a run can
/// begin at any k and with any number of threads. Who reads one of several parts gets rows
/// part * B / parts and following of every batch.
class Loader {
public:
  /// Starts reading. `files` must outlive the loader.
  Loader(const TokenFiles &files, const LoaderOptions &options);
  /// Waits for the threads, not for their batches.
  ~Loader();
  Loader(const Loader &) = delete;
  Loader &operator=(const Loader &) = delete;

  /// The next batch; valid until the next call. Allocates nothing. Throws the Error that reading it
  /// met.
  const BatchRows &next();

  /// Batches that are ready now, of `ring`.
  int ready() const;
  const LoaderOptions &options() const { return settings; }

private:
  struct Slot {
    BatchRows rows;
    uint64_t batch = 0;
    bool full = false;
    std::exception_ptr error;
  };

  void work(const std::stop_token &stop);
  void fill(Slot &slot) const;

  const TokenFiles &files;
  LoaderOptions settings;
  Windows windows;
  mutable std::mutex mutex;
  std::condition_variable_any changed;
  std::vector<Slot> slots;     // batch k is in slot k % ring
  uint64_t claimed, delivered; // next batch for a thread; next one for the caller
  bool holding = false;        // the caller still reads batch delivered - 1
  std::vector<std::jthread> threads;
};

/// The loader alone (report R17): tokens a second, mean, deviation, p50 and p99 of the
/// milliseconds of a batch, and how full the ring was, over `batches` batches. With one line of
/// JSON behind the table.
std::string benchLoader(Loader &loader, int batches);

} // namespace hydra::data
