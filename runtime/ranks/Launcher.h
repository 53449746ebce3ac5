// Several processes of this program on this machine, and what their parent does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hydra::runtime {

/// Runs this program again as `ranks` processes, with the same arguments and the variables that
/// worldFromEnvironment reads, and waits for all of them. To be called before there is a second
/// thread.
///
/// SIGINT, SIGTERM and SIGHUP go on to all of them, each time that they come, and SIGTSTP stops
/// all. The children are process groups of their own, so that Ctrl-C reaches them once. When one
/// ends with a status other than 0, the others have some seconds to do the same before they are
/// killed. Returns the status of the first that failed, 128 and the signal for one that was killed.
/// What a rank that can still speak has not said is said here, followed by what `hint` returns
/// (such as how to resume).
///
/// Throws Error when there is no port, or a process cannot be started.
int launchRanks(uint32_t ranks, char *const *arguments, const std::function<std::string()> &hint);

} // namespace hydra::runtime
