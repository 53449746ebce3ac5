// A process that works on one version of a document.
#include "tools/hydra-lsp/Worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>

#if defined(__SANITIZE_ADDRESS__)
#define HYDRA_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HYDRA_ADDRESS_SANITIZER
#endif
#endif

namespace hydra::lsp {

namespace {

/// Reads or writes all bytes; false where there is nobody at the other end.
template <typename Byte, typename Transfer>
bool transferAll(Byte *bytes, size_t count, Transfer transfer) {
  while (count > 0) {
    const ssize_t done = transfer(bytes, count);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return false;
    bytes += done;
    count -= static_cast<size_t>(done);
  }
  return true;
}

/// A message behind its length.
std::string framed(llvm::StringRef message) {
  const auto size = static_cast<uint64_t>(message.size());
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return frame + message.str();
}

/// More memory than any model of the tree takes; a runaway text is stopped before the machine
/// swaps.
void limitMemory() {
#ifndef HYDRA_ADDRESS_SANITIZER // which reserves more than any limit
  constexpr rlim_t kMostBytes = rlim_t{4} << 30;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_max > kMostBytes) {
    limit.rlim_cur = kMostBytes;
    ::setrlimit(RLIMIT_AS, &limit);
  }
#endif
  const rlimit none{0, 0}; // nobody wants to know what was in it
  ::setrlimit(RLIMIT_CORE, &none);
}

} // namespace

std::optional<std::string> WorkerPipe::read() const {
  auto get = [&](char *bytes, size_t count) { return ::read(in, bytes, count); };
  uint64_t size = 0;
  if (!transferAll(reinterpret_cast<char *>(&size), sizeof size, get))
    return std::nullopt;
  std::string message(size, '\0');
  if (!transferAll(message.data(), size, get))
    return std::nullopt;
  return message;
}

void WorkerPipe::write(llvm::StringRef message) const {
  const std::string frame = framed(message);
  transferAll(frame.data(), frame.size(),
              [&](const char *bytes, size_t count) { return ::write(out, bytes, count); });
}

Worker::Worker(int pid, int in, int out) : pid(pid), in(in), out(out) {
  ::fcntl(in, F_SETFL, O_NONBLOCK);
  ::fcntl(out, F_SETFL, O_NONBLOCK);
}

std::unique_ptr<Worker> Worker::start(llvm::function_ref<void(WorkerPipe &)> work) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0)
    return nullptr;
  if (::pipe2(from, O_CLOEXEC) != 0) {
    ::close(to[0]);
    ::close(to[1]);
    return nullptr;
  }
  const int parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) // it has ended already
      ::_exit(0);
    ::close(to[1]);
    ::close(from[0]);
    // What the editor says is for the server alone.
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    ::open("/dev/null", O_RDWR);
    ::dup2(STDIN_FILENO, STDOUT_FILENO);
    limitMemory();
    std::set_terminate([] { ::_exit(1); }); // no memory: the parent sees that there is no answer
    WorkerPipe pipe(to[0], from[1]);
    work(pipe);
    ::_exit(0);
  }
  ::close(to[0]);
  ::close(from[1]);
  if (pid < 0) {
    ::close(to[1]);
    ::close(from[0]);
    return nullptr;
  }
  return std::unique_ptr<Worker>(new Worker(pid, to[1], from[0]));
}

Worker::~Worker() {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR)
    ;
  ::close(in);
  ::close(out);
}

void Worker::send(llvm::StringRef message) {
  if (expected++ == 0)
    since = Clock::now();
  unsent += framed(message);
  flush();
}

void Worker::flush() {
  while (!unsent.empty()) {
    const ssize_t done = ::write(in, unsent.data(), unsent.size());
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0 && errno != EAGAIN)
      ended = true;
    if (done <= 0)
      return;
    unsent.erase(0, static_cast<size_t>(done));
  }
}

std::vector<std::string> Worker::receive() {
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(out, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno == EAGAIN)
      break;
    if (got <= 0) {
      ended = true;
      break;
    }
    received.append(buffer, static_cast<size_t>(got));
  }
  std::vector<std::string> messages;
  uint64_t size = 0;
  while (received.size() >= sizeof size) {
    std::memcpy(&size, received.data(), sizeof size);
    if (received.size() - sizeof size < size)
      break;
    messages.push_back(received.substr(sizeof size, size));
    received.erase(0, sizeof size + size);
    expected -= expected > 0;
    since = Clock::now();
  }
  flush();
  return messages;
}

std::optional<Worker::Clock::time_point> Worker::deadline() const {
  return expected == 0 ? std::nullopt : std::optional(since + kMostTime);
}

bool Worker::isLost() const { return ended || (expected > 0 && Clock::now() >= since + kMostTime); }

} // namespace hydra::lsp
