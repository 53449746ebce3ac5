// fork, exec, and a loop over signals.
#include "runtime/ranks/Launcher.h"

#include "runtime/ranks/World.h"
#include "runtime/support/Error.h"

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

using namespace hydra::runtime;
using hydra::support::errnoText;
using hydra::support::fail;

namespace {

using Clock = std::chrono::steady_clock;

/// How long the others may go on after one has failed: they know it, and end by themselves.
constexpr std::chrono::milliseconds kPatience{3000}, kAfterTerm{1000};

/// Rank 0, and the one that speaks where it cannot: all others leave it to these.
constexpr ptrdiff_t kSpeakers = 2;

constexpr const char *kSelf = "/proc/self/exe";

/// The file of this program, by which lists of processes call it.
std::string programPath() {
  std::error_code code;
  const std::filesystem::path path = std::filesystem::read_symlink(kSelf, code);
  return code ? kSelf : path.string();
}

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP};

/// A socket that listens on a free port of the loopback interface. Rank 0 inherits it, so that
/// nobody takes the port meanwhile.
class Listener {
public:
  Listener() : descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto *generic = reinterpret_cast<sockaddr *>(&address);
    if (descriptor < 0 || ::bind(descriptor, generic, size) != 0 ||
        ::listen(descriptor, SOMAXCONN) != 0 || ::getsockname(descriptor, generic, &size) != 0)
      fail("--ranks: cannot listen on this machine: {}", errnoText(errno));
    number = ntohs(address.sin_port);
  }
  ~Listener() { ::close(descriptor); }
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;

  int file() const { return descriptor; }
  uint16_t port() const { return number; }

private:
  int descriptor;
  uint16_t number = 0;
};

struct Child {
  pid_t pid = -1;
  bool running = true;
};

/// The environment of a rank: this one, but for what says who it is.
std::vector<std::string> environmentOf(uint32_t rank, uint32_t ranks, const Listener &listener) {
  std::vector<std::string> own = {
      fmt::format("RANK={}", rank),
      fmt::format("WORLD_SIZE={}", ranks),
      fmt::format("LOCAL_RANK={}", rank),
      fmt::format("LOCAL_WORLD_SIZE={}", ranks),
      "MASTER_ADDR=127.0.0.1",
      fmt::format("MASTER_PORT={}", listener.port()),
      "TORCHELASTIC_USE_AGENT_STORE=",
      fmt::format("{}={}", kListenerVariable, rank == 0 ? std::to_string(listener.file()) : "")};
  const size_t added = own.size();
  for (char **variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::none_of(own.begin(), own.begin() + static_cast<ptrdiff_t>(added),
                     [&](const std::string &mine) { return mine.starts_with(name); }))
      own.emplace_back(text);
  }
  return own;
}

class Launch {
public:
  Launch(uint32_t ranks, char *const *arguments, const std::function<std::string()> &hint)
      : arguments(arguments), hint(hint) {
    sigset_t ours;
    sigemptyset(&ours);
    for (const int signal : kForwarded)
      sigaddset(&ours, signal);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, SIGTSTP);
    ::sigprocmask(SIG_BLOCK, &ours, &before);
    waited = ours;
    // A signal that is ignored does not even wait. SIGHUP is, under nohup, and stays so.
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    for (size_t i = 0; i < kForwarded.size(); ++i)
      ::sigaction(kForwarded[i], kForwarded[i] == SIGHUP ? nullptr : &usual, &actions[i]);
    try {
      const Listener listener;
      for (uint32_t rank = 0; rank < ranks; ++rank)
        start(rank, ranks, listener);
    } catch (...) {
      signalAll(SIGKILL);
      while (running() > 0)
        reap(true);
      throw;
    }
  }
  ~Launch() { ::sigprocmask(SIG_SETMASK, &before, nullptr); }
  Launch(const Launch &) = delete;
  Launch &operator=(const Launch &) = delete;

  int supervise() {
    while (running() > 0) {
      const timespec longest{.tv_sec = 0, .tv_nsec = 100'000'000};
      const int signal = ::sigtimedwait(&waited, nullptr, &longest);
      if (std::ranges::find(kForwarded, signal) != kForwarded.end()) {
        signalAll(signal);
        asked = true;
      }
      if (signal == SIGTSTP)
        pause();
      while (reap(false)) {
      }
      hurry();
    }
    tell();
    return status;
  }

private:
  void start(uint32_t rank, uint32_t ranks, const Listener &listener) {
    std::vector<std::string> environment = environmentOf(rank, ranks, listener);
    std::vector<char *> pointers;
    for (std::string &variable : environment)
      pointers.push_back(variable.data());
    pointers.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0)
      fail("--ranks: cannot start rank {}: {}", rank, errnoText(errno));
    if (pid > 0) {
      ::setpgid(pid, pid); // the child does the same: whoever comes first
      children.push_back({pid});
      return;
    }
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM); // so that no rank outlives a launcher that was killed
    if (::getppid() != parent)
      ::_exit(1);
    if (rank == 0)
      ::fcntl(listener.file(), F_SETFD, 0);
    for (size_t i = 0; i < kForwarded.size(); ++i)
      ::sigaction(kForwarded[i], &actions[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::execve(program.c_str(), arguments, pointers.data());
    ::execve(kSelf, arguments, pointers.data()); // where the file has been replaced meanwhile
    const std::string_view problem = "hydra-run: cannot start itself again\n";
    (void)!::write(STDERR_FILENO, problem.data(), problem.size());
    ::_exit(1);
  }

  /// Ctrl-Z: all of them stop until this process goes on.
  void pause() {
    signalAll(SIGSTOP);
    ::raise(SIGSTOP);
    signalAll(SIGCONT);
  }

  size_t running() const {
    return static_cast<size_t>(
        std::ranges::count_if(children, [](const Child &child) { return child.running; }));
  }

  void signalAll(int signal) {
    for (const Child &child : children)
      if (child.running)
        ::kill(child.pid, signal);
  }

  /// Notes the end of one child; false when none has ended.
  bool reap(bool wait) {
    int state = 0;
    const pid_t pid = ::waitpid(-1, &state, wait ? 0 : WNOHANG);
    const auto child = std::ranges::find(children, pid, &Child::pid);
    if (pid <= 0 || child == children.end())
      return pid > 0;
    child->running = false;
    const bool killed = WIFSIGNALED(state);
    const int code = killed ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    if (!killed && code != 0 && child - children.begin() < kSpeakers)
      spoken = true;
    if (killed && !forced && victim.empty())
      victim = fmt::format("rank {} (pid {}) was ended by signal {} ({})", child - children.begin(),
                           pid, WTERMSIG(state), ::strsignal(WTERMSIG(state)));
    if (code != 0 && status == 0) {
      status = code;
      failedAt = Clock::now();
    }
    return true;
  }

  /// After a failure, others that do not end by themselves are ended.
  void hurry() {
    if (!failedAt)
      return;
    const Clock::duration since = Clock::now() - *failedAt;
    if (since > kPatience + kAfterTerm) {
      forced = true;
      signalAll(SIGKILL);
    } else if (since > kPatience && !std::exchange(terminated, true)) {
      forced = true;
      signalAll(SIGTERM);
    }
  }

  /// A speaker that ends by itself with another status than 0 has said why, or knows who has.
  void tell() const {
    if (!victim.empty() && !spoken && !asked)
      std::fprintf(stderr, "hydra-run: %s%s\n", victim.c_str(), hint().c_str());
  }

  char *const *arguments;
  const std::function<std::string()> &hint;
  const std::string program = programPath();
  sigset_t before{}, waited{};
  std::array<struct sigaction, kForwarded.size()> actions{}; // before
  std::vector<Child> children;                               // by rank
  int status = 0;
  std::optional<Clock::time_point> failedAt;
  std::string victim; // the first that was killed by somebody else
  bool spoken = false, asked = false, terminated = false, forced = false;
};

} // namespace

int hydra::runtime::launchRanks(uint32_t ranks, char *const *arguments,
                                const std::function<std::string()> &hint) {
  return Launch(ranks, arguments, hint).supervise();
}
