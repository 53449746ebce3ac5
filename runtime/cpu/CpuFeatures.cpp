// Reads /proc/cpuinfo: flags there are those that the system has enabled too.
#include "runtime/cpu/CpuFeatures.h"

#include "runtime/support/Error.h"

#include <fstream>
#include <sstream>

using namespace hydra::runtime;

CpuInfo hydra::runtime::readCpuInfo() {
  std::ifstream file("/proc/cpuinfo");
  CpuInfo info;
  std::string line;
  while (std::getline(file, line) && !line.empty()) { // processors are separated by empty lines
    const size_t colon = line.find(':');
    if (colon == std::string::npos)
      continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t:", colon) + 1);
    std::istringstream words(line.substr(colon + 1));
    if (key == "model name")
      std::getline(words >> std::ws, info.model);
    for (std::string flag; key == "flags" && words >> flag;)
      info.flags.insert(flag);
  }
  if (info.flags.empty())
    support::fail("cannot read the processor's features from /proc/cpuinfo");
  return info;
}
