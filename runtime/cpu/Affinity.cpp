// sched_setaffinity on the set that the process began with.
#include "runtime/cpu/Affinity.h"

#include <sched.h>

using namespace hydra::runtime;

namespace {

struct Processors {
  cpu_set_t set;

  Processors() {
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) == 0)
      CPU_SET(0, &set);
  }
};

const cpu_set_t &processors() {
  static const Processors initial;
  return initial.set;
}

} // namespace

unsigned hydra::runtime::usableProcessors() {
  return static_cast<unsigned>(CPU_COUNT(&processors()));
}

void hydra::runtime::bindToProcessor(unsigned index) {
  unsigned seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &processors()) || seen++ != index)
      continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void hydra::runtime::bindToAllProcessors() {
  const cpu_set_t &all = processors();
  ::sched_setaffinity(0, sizeof all, &all);
}
