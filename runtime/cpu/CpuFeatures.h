// What the processor can do, by the names of /proc/cpuinfo.
#pragma once

#include <set>
#include <string>

namespace hydra::runtime {

struct CpuInfo {
  std::string model;           // such as "AMD EPYC"
  std::set<std::string> flags; // such as avx2, fma
};

/// Of the first processor. Throws Error when /proc/cpuinfo cannot be read.
CpuInfo readCpuInfo();

} // namespace hydra::runtime
