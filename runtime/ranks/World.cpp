// The variables of torchrun, OpenMPI and SLURM.
#include "runtime/ranks/World.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <xxhash.h>

#include <charconv>
#include <cstdlib>
#include <limits>

using namespace hydra::runtime;
using hydra::support::fail;
using hydra::support::shown;

namespace {

constexpr uint32_t kMostRanks = 1 << 20;

class Variables {
public:
  explicit Variables(const EnvironmentReader &read) : read(read) {}

  std::optional<std::string> text(const char *name) const {
    std::optional<std::string> value = read(name);
    return value && value->empty() ? std::nullopt : value;
  }
  uint32_t number(const char *name, uint32_t least, uint32_t most) const {
    const std::optional<std::string> value = text(name);
    if (!value)
      fail("the environment has no {}, but other variables of several ranks", name);
    uint32_t number = 0;
    const char *end = value->data() + value->size();
    const auto [rest, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc() || rest != end || number < least || number > most)
      fail("{}={} in the environment: expected a number from {} to {}", name, shown(*value), least,
           most);
    return number;
  }
  /// Reads what every launcher sets, by its names for them; not every one says the last.
  World world(const char *rank, const char *size, const char *localRank) const {
    World world;
    world.size = number(size, 1, kMostRanks);
    world.rank = number(rank, 0, world.size - 1);
    const bool numbered = text(localRank).has_value();
    world.localRank = numbered ? number(localRank, 0, world.size - 1) : world.rank;
    world.speaks = !numbered || world.rank == 1 || world.localRank == 0;
    world.origin = fmt::format("{}={}", size, world.size);
    return world;
  }
  /// MASTER_PORT, or one that all ranks of a job find.
  uint16_t port(const std::optional<std::string> &job) const {
    constexpr uint16_t torchrunDefault = 29500, first = 20000, count = 8000;
    if (text("MASTER_PORT"))
      return static_cast<uint16_t>(number("MASTER_PORT", 1, std::numeric_limits<uint16_t>::max()));
    if (!job)
      return torchrunDefault;
    return static_cast<uint16_t>(first + XXH3_64bits(job->data(), job->size()) % count);
  }

private:
  const EnvironmentReader &read;
};

/// The first name of a list of SLURM: `a[07-12,20],b` has a07, a08, ...
std::string firstHost(std::string_view list) {
  const size_t end = list.find_first_of(",[");
  std::string host(list.substr(0, end));
  if (end == std::string_view::npos || list[end] == ',')
    return host;
  const std::string_view inside = list.substr(end + 1);
  host += inside.substr(0, inside.find_first_of(",-]"));
  const size_t close = inside.find(']');
  if (close != std::string_view::npos) // what follows the brackets: a[1-2]-ib
    host += inside.substr(close + 1, inside.substr(close + 1).find(','));
  return host;
}

World ofTorchrun(const Variables &variables) {
  World world = variables.world("RANK", "WORLD_SIZE", "LOCAL_RANK");
  if (world.size == 1)
    return world;
  world.address = variables.text("MASTER_ADDR").value_or(world.address);
  world.port = variables.port(std::nullopt);
  world.launched = variables.text("TORCHELASTIC_RUN_ID").has_value();
  // There torchrun itself listens at MASTER_PORT.
  if (variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True")
    world.port = world.port == std::numeric_limits<uint16_t>::max()
                     ? static_cast<uint16_t>(world.port - 1)
                     : static_cast<uint16_t>(world.port + 1);
  return world;
}

World ofOpenMpi(const Variables &variables) {
  World world = variables.world("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK");
  if (world.size == 1)
    return world;
  world.launched = true;
  const std::optional<std::string> address = variables.text("MASTER_ADDR");
  if (!address && variables.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, world.size) != world.size)
    fail("the {} ranks are on several machines: say where rank 0 is, mpirun -x MASTER_ADDR=NAME",
         world.size);
  world.address = address.value_or(world.address);
  const std::optional<std::string> job = variables.text("PMIX_NAMESPACE");
  world.port = variables.port(job ? job : variables.text("OMPI_MCA_ess_base_jobid"));
  return world;
}

World ofSlurm(const Variables &variables) {
  World world = variables.world("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID");
  if (world.size == 1)
    return world;
  world.launched = true;
  std::optional<std::string> address = variables.text("MASTER_ADDR");
  if (!address) {
    const std::optional<std::string> nodes = variables.text("SLURM_STEP_NODELIST");
    if (!nodes)
      fail("the environment has no SLURM_STEP_NODELIST; say where rank 0 is with MASTER_ADDR");
    address = firstHost(*nodes);
  }
  world.address = *address;
  const std::optional<std::string> job = variables.text("SLURM_JOB_ID");
  world.port =
      variables.port(job ? std::optional(*job + "." + variables.text("SLURM_STEP_ID").value_or(""))
                         : std::nullopt);
  return world;
}

} // namespace

std::optional<std::string> hydra::runtime::readEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

World hydra::runtime::worldFromEnvironment(const EnvironmentReader &read) {
  const Variables variables(read);
  World world;
  if (variables.text("RANK") || variables.text("WORLD_SIZE"))
    world = ofTorchrun(variables);
  else if (variables.text("OMPI_COMM_WORLD_SIZE"))
    world = ofOpenMpi(variables);
  else if (variables.text("SLURM_STEP_NUM_TASKS"))
    world = ofSlurm(variables);
  if (world.size > 1 && world.rank == 0 && variables.text(kListenerVariable))
    world.listener = static_cast<int>(
        variables.number(kListenerVariable, 3, std::numeric_limits<int32_t>::max()));
  return world;
}
