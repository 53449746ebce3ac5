// Output and errors come through pipes that are read together, so that neither can fill up.
#include "tools/hydra-bench/Child.h"

#include "runtime/support/Error.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

extern char **environ;

namespace hydra::bench {

using support::errnoText;
using support::fail;

namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void onSignal(int) { interrupted = 1; }

class Pipe {
public:
  Pipe() {
    std::array<int, 2> both{};
    if (::pipe2(both.data(), O_CLOEXEC) != 0)
      fail("cannot make a pipe: {}", errnoText(errno));
    readEnd = both[0];
    writeEnd = both[1];
  }
  ~Pipe() {
    close(readEnd);
    close(writeEnd);
  }
  Pipe(const Pipe &) = delete;
  Pipe &operator=(const Pipe &) = delete;

  static void close(int &end) {
    if (end >= 0)
      ::close(end);
    end = -1;
  }
  /// Takes what is there; closes the end when there is no more to come.
  void readInto(std::string &text) {
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(readEnd, buffer.data(), buffer.size());
    if (count > 0)
      text.append(buffer.data(), static_cast<size_t>(count));
    else if (count == 0 || errno != EINTR)
      close(readEnd);
  }

  int readEnd = -1, writeEnd = -1;
};

pid_t start(const std::filesystem::path &program, const std::vector<std::string> &arguments,
            const Pipe &output, const Pipe &errors) {
  std::vector<std::string> texts = {program.string()};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char *> pointers;
  for (std::string &text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.writeEnd, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.writeEnd, STDERR_FILENO);
  pid_t child = 0;
  const int code =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0)
    fail("cannot start {}: {}", program.string(), errnoText(code));
  return child;
}

} // namespace

std::string ChildResult::reason() const {
  if (late)
    return "its time was up";
  std::string text = errors;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  if (!text.empty())
    return text;
  return status > 128 ? fmt::format("ended by signal {}", status - 128)
                      : fmt::format("ended with status {}", status);
}

ChildResult runChild(const std::filesystem::path &program,
                     const std::vector<std::string> &arguments, double seconds) {
  using Clock = std::chrono::steady_clock;
  Pipe output, errors;
  const Clock::time_point begin = Clock::now();
  const pid_t child = start(program, arguments, output, errors);
  Pipe::close(output.writeEnd);
  Pipe::close(errors.writeEnd);
  ChildResult result;
  bool told = false; // that it should end
  while (output.readEnd >= 0 || errors.readEnd >= 0) {
    std::array<pollfd, 2> ends = {pollfd{output.readEnd, POLLIN, 0},
                                  pollfd{errors.readEnd, POLLIN, 0}};
    const double left = seconds - std::chrono::duration<double>(Clock::now() - begin).count();
    const double wait = std::clamp(1e3 * left, 0.0, 1e6);
    ::poll(ends.data(), ends.size(), seconds > 0 ? static_cast<int>(wait) + 1 : -1);
    if (wasInterrupted() && !std::exchange(told, true))
      ::kill(child, SIGTERM);
    if (seconds > 0 && left <= 0 && !result.late) {
      result.late = true;
      ::kill(child, SIGKILL);
    }
    if (ends[0].revents != 0)
      output.readInto(result.output);
    if (ends[1].revents != 0)
      errors.readInto(result.errors);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

void watchSignals() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
}

bool wasInterrupted() { return interrupted != 0; }

ScratchFolder::ScratchFolder()
    : path([] {
        std::error_code code;
        const std::filesystem::path place = std::filesystem::temp_directory_path(code);
        if (code)
          fail("cannot make a folder for files that are needed meanwhile: TMPDIR: {}",
               code.message());
        std::string text = (place / "hydra-bench.XXXXXX").string();
        if (!::mkdtemp(text.data()))
          fail("cannot make the folder {}: {}", text, errnoText(errno));
        return text;
      }()) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

} // namespace hydra::bench
