// Functions that steps of a plan call by name: their interface, and the registry of them.
#pragma once

#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"
#include "runtime/plan/Attributes.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Shape and strides of a tensor argument, in elements.
struct TensorShape {
  support::DType dtype = support::DType::F32;
  std::vector<int64_t> sizes, strides;

  size_t rank() const { return sizes.size(); }
  int64_t elements() const;
  bool isDense() const;
};

/// Where a call stands in the plan: what a factory prepares it from.
class CallSite {
public:
  CallSite(const planfile::Plan &plan, const planfile::Step &step, unsigned threads)
      : CallSite(plan, step, threads, step.chosen()) {}
  /// With an alternative of the step in place of the chosen one.
  CallSite(const planfile::Plan &plan, const planfile::Step &step, unsigned threads,
           uint32_t alternative)
      : attributes(step, alternative), threads(threads), plan(plan), step(step) {}

  const Attributes attributes;
  const unsigned threads; // of the pool that runs the call

  /// Throws Error unless the step has from `least` to `most` arguments, all of them buffers.
  size_t argumentCount(size_t least, size_t most) const;

  /// Argument `index`, called `name` in errors. Throws Error unless it has this rank (-1: any) and,
  /// if given, this dtype.
  TensorShape tensor(size_t index, std::string_view name, int rank = -1) const;
  TensorShape tensor(size_t index, std::string_view name, int rank, support::DType dtype) const;

  /// Throws Error: `step <name>: <function>: <message>`.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args &&...args) const {
    support::fail("{}: {}", place(), fmt::format(format, std::forward<Args>(args)...));
  }

private:
  std::string place() const;

  const planfile::Plan &plan;
  const planfile::Step &step;
};

using LibraryFactory = std::function<std::unique_ptr<LibraryCall>(const CallSite &site)>;

/// Factories by the name that plans use.
class Library {
public:
  void add(std::string name, LibraryFactory factory) {
    factories[std::move(name)] = std::move(factory);
  }

  /// Throws Error, listing what there is, if no function has the name the step calls.
  std::unique_ptr<LibraryCall> prepare(const CallSite &site) const;

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
