// A process that works on one version of a document, so that nothing a text makes the compiler do
// (run for minutes, take all memory, crash) is more than an answer that is missing.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hydra::lsp {

/// What the process has of its parent: messages, as many bytes as one likes.
class WorkerPipe {
public:
  WorkerPipe(int in, int out) : in(in), out(out) {}
  /// Waits for a message; nullopt: there are no more.
  std::optional<std::string> read() const;
  void write(llvm::StringRef message) const;

private:
  int in, out;
};

class Worker {
public:
  using Clock = std::chrono::steady_clock;
  /// A process may take that long for an answer.
  static constexpr std::chrono::seconds kMostTime{10};

  /// Starts a process, a copy of this one, which runs `work` and ends. Null where there can be
  /// none.
  static std::unique_ptr<Worker> start(llvm::function_ref<void(WorkerPipe &)> work);
  /// Ends the process.
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// What to wait at until there is something to read.
  int descriptor() const { return out; }
  /// Asks for one more answer; one is expected from the beginning.
  void send(llvm::StringRef message);
  /// The answers that are there, whole ones. To be called when `descriptor` is readable.
  std::vector<std::string> receive();
  /// Whether the process has ended, or its time is up.
  bool isLost() const;
  /// When its time is up; nullopt while no answer is expected.
  std::optional<Clock::time_point> deadline() const;

private:
  Worker(int pid, int in, int out);

  int pid, in, out;
  bool ended = false;
  size_t expected = 1;
  Clock::time_point since = Clock::now();
  std::string received, unsent;
  void flush();
};

} // namespace hydra::lsp
