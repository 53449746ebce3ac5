// Standard output that may fail.
#include "runtime/run/StandardOutput.h"

#include "runtime/support/Error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

void hydra::runtime::say(const std::string &text) {
  static bool failed = false;
  if (failed)
    return;
  failed =
      std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0;
  if (failed)
    std::fprintf(stderr,
                 "hydra-run: cannot write to standard output: %s; the run goes on without it\n",
                 support::errnoText(errno).c_str());
}

void hydra::runtime::print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    hydra::support::fail("cannot write to standard output: {}", hydra::support::errnoText(errno));
}

void hydra::runtime::silenceStandardOutput() {
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing < 0 || ::dup2(nothing, STDOUT_FILENO) < 0)
    support::fail("cannot open /dev/null: {}", support::errnoText(errno));
  ::close(nothing);
}
