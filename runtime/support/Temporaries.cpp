// A table that a handler of signals may read at any time.
#include "runtime/support/Temporaries.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string_view>

namespace hydra::support {

namespace {

struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<const char *> path = nullptr;
  std::atomic<const char *> aside = nullptr;
};

std::array<Slot, Temporary::kMost> slots;
std::atomic<bool> ending = false;
std::atomic<pid_t> owner = 0; // a process that was forked has the table, and not the files
static_assert(std::atomic<const char *>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);

/// Removes the files that a folder lists from where it is read on. Returns whether there were any.
bool removeFiles(int folder) {
  bool any = false;
  constexpr size_t room = 4096;
  alignas(dirent64) std::array<std::byte, room> entries;
  for (;;) {
    const ssize_t bytes = ::getdents64(folder, entries.data(), entries.size());
    if (bytes <= 0)
      return any;
    for (ssize_t at = 0; at < bytes;) {
      const auto *const entry = reinterpret_cast<const dirent64 *>(entries.data() + at);
      const std::string_view name = &entry->d_name[0];
      if (name != "." && name != "..")
        any |= ::unlinkat(folder, &entry->d_name[0], 0) == 0;
      at += entry->d_reclen;
    }
  }
}

/// As a handler of signals may: by calls of the system alone.
void removeFolder(const char *path) {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return;
  // A list that shrinks while it is read may leave out names.
  while (removeFiles(folder))
    ::lseek(folder, 0, SEEK_SET);
  ::close(folder);
  ::rmdir(path);
}

/// Where nobody else has asked for a signal.
void handleSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action{};
    ::sigaction(number, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL)
      continue;
    action.sa_handler = endBySignal;
    action.sa_flags = 0;
    ::sigaction(number, &action, nullptr);
  }
}

} // namespace

Temporary::Temporary(const char *path, const char *aside) : slot(0) {
  owner = ::getpid();
  handleSignals();
  while (slot < kMost && slots[slot].taken.exchange(true))
    ++slot;
  if (slot == kMost)
    return;
  slots[slot].aside = aside;
  slots[slot].path = path;
}

Temporary::~Temporary() {
  if (slot == kMost)
    return;
  slots[slot].path = nullptr;
  // A handler on another thread may have the name in its hands: the process ends in a moment.
  while (ending)
    ::pause();
  slots[slot].taken = false;
}

void endBySignal(int number) {
  ending = true;
  if (owner == ::getpid())
    for (const Slot &one : slots)
      if (const char *const path = one.path) {
        const char *const aside = one.aside;
        if (!aside)
          ::unlink(path);
        else if (::rename(path, aside) == 0)
          removeFolder(aside);
      }
  std::signal(number, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, number);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  ::raise(number);
  constexpr int signalled = 128;
  ::_exit(signalled + number); // the first process of a container takes no default actions
}

} // namespace hydra::support
