// Batches of windows of text: shuffled, read ahead by threads or when they are asked for, the same
// for the same seed.
#pragma once

#include "runtime/data/RowOrder.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hydra::data {

struct LoaderOptions {
  uint64_t batch = 1;  // B
  uint64_t parts = 1;  // equal parts of the rows of a batch, ...
  uint64_t part = 0;   // and which of them is read; parts divides B
  uint64_t length = 1; // S
  uint64_t first = 0;  // number of the first batch
  int threads = 4;     // that read ahead; 0: a batch is read when it is asked for, by who asks
  int ahead = 8; // batches that are ready or being read beside that of the caller; not of 0 threads
};

/// Endless training batches. Batch k holds rows k * B .. k * B + B - 1 of an order; it depends on
/// that and k alone, so that a run can begin at any k, with any number of threads and of batches
/// ahead. Who reads one of several parts gets rows part * B / parts and following of every batch.
class Loader {
public:
  /// Starts reading. Throws Error where there is no memory for so many batches, or no thread.
  Loader(std::unique_ptr<const RowOrder> order, const LoaderOptions &options);
  /// Waits for the threads, not for their batches.
  ~Loader();
  Loader(const Loader &) = delete;
  Loader &operator=(const Loader &) = delete;

  /// The next batch; valid until the next call. Allocates nothing. Throws the Error that reading it
  /// met.
  const BatchRows &next();

  /// Batches that are ready now, of `ahead`.
  int ready() const;
  const LoaderOptions &options() const { return settings; }
  const RowOrder &rows() const { return *order; }

private:
  struct Slot {
    BatchRows rows;
    uint64_t batch = 0;
    bool full = false;
    std::exception_ptr error;
  };

  void reserve();
  void startThreads();
  void work(const std::stop_token &stop);
  void awaitBatch(Slot &slot);
  void fill(Slot &slot) const;

  std::unique_ptr<const RowOrder> order;
  LoaderOptions settings;
  mutable std::mutex mutex;
  std::condition_variable_any changed;
  std::vector<Slot> slots;     // batch k is in slot k % slots; the caller still reads delivered - 1
  uint64_t claimed, delivered; // next batch for a thread; next one for the caller
  std::vector<std::jthread> threads;
};

/// The loader alone (report R17): tokens a second, mean, deviation, p50 and p99 of the
/// milliseconds of a batch, and how full the ring was, over `batches` batches. With one line of
/// JSON behind the table.
std::string benchLoader(Loader &loader, int batches);

} // namespace hydra::data
