// Which processor this is, and what programs can use of it.
#pragma once

#include <set>
#include <string>

namespace hydra::runtime {

struct CpuInfo {
  std::string model;              // such as "AMD EPYC"
  std::set<std::string> features; // as /proc/cpuinfo spells them: avx2, fma
};

/// Features are those of /proc/cpuinfo and, of those that plans may ask for, what programs can use
/// by CPUID and XGETBV. Throws Error when /proc/cpuinfo, which has the name, cannot be read.
CpuInfo readCpuInfo();

} // namespace hydra::runtime
