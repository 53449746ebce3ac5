// Which of several processes this one is, as whoever started them tells in the environment.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hydra::runtime {

/// One of `size` processes that run a plan together.
struct World {
  uint32_t rank = 0, size = 1;
  uint32_t localRank = 0;            ///< among those on its machine
  std::string address = "127.0.0.1"; ///< name or number of the machine of rank 0
  uint16_t port = 0;                 ///< where rank 0 listens
  int listener = -1;                 ///< rank 0: a socket that listens there already; -1: none
  /// Started by a program that waits for it: when that is gone, so is the run.
  bool launched = false;
  /// Says what all ranks meet where rank 0 cannot: rank 1 and the first of every machine; each, if
  /// nobody has numbered those of a machine.
  bool speaks = true;
  std::string origin; ///< who says so, as messages quote it: `WORLD_SIZE=2`
};

/// Reads an environment variable: nothing when it is not set.
using EnvironmentReader = std::function<std::optional<std::string>(const char *name)>;
std::optional<std::string> readEnvironment(const char *name);

/// The name of the variable that holds World::listener.
inline constexpr const char *kListenerVariable = "HYDRA_LISTENER";

/// Looks for torchrun's variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), else for OpenMPI's,
/// else for those of a SLURM step; the first that are there count, and without any the process is
/// alone. OpenMPI and SLURM leave the port open, and OpenMPI the address: MASTER_ADDR and
/// MASTER_PORT say it; otherwise the port follows from the number of the job, and the address is
/// that of the first machine. Throws Error when a variable is missing or is no number in range.
World worldFromEnvironment(const EnvironmentReader &read = readEnvironment);

} // namespace hydra::runtime
