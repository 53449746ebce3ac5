// Functions that steps of a plan call by name: their interface, and the registry of them.
#pragma once

#include "runtime/calls/CallSite.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace hydra::runtime {

/// A call whose shapes, strides and attributes are settled; only addresses come with each run.
class LibraryCall {
public:
  virtual ~LibraryCall() = default;

  /// What a run needs for each worker, by shapes alone.
  virtual size_t scratchBytesPerWorker() const { return 0; }

  /// args[i] is the first byte of argument i of the step.
  virtual void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) = 0;
};

/// Prepares a call for a pool of so many threads.
using LibraryFactory =
    std::function<std::unique_ptr<LibraryCall>(const CallSite &site, unsigned threads)>;

/// Factories by the name that plans use.
class Library {
public:
  void add(std::string name, LibraryFactory factory) {
    factories[std::move(name)] = std::move(factory);
  }

  /// Throws Error, listing what there is, if no function has the name the step calls.
  std::unique_ptr<LibraryCall> prepare(const CallSite &site, unsigned threads) const;

private:
  std::map<std::string, LibraryFactory, std::less<>> factories;
};

void addMatmul(Library &library);
void addAttention(Library &library);
void addEmbedding(Library &library);
void addCopy(Library &library);
void addCompact(Library &library);

/// Everything the CPU executor offers.
Library cpuLibrary();

} // namespace hydra::runtime
