// Standard input, output and error that the caller has closed; signals about what is written.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace hydra::support {

/// Occupies those of the descriptors 0 to 2 that are closed, so that no file which is opened later
/// gets their number and what is printed inside it. Use of such a stream still fails: it is opened
/// the other way round. To be called before anything is opened.
inline void reserveStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)
      ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY); // the lowest free number
}

/// Makes a limit on the size of files an error of writing, like a full disk, which is said in one
/// line, instead of the end of the program with its temporary files left.
inline void ignoreFileSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

} // namespace hydra::support
