// Which processor this is, and what programs can use of it.
#pragma once

#include <set>
#include <string>

namespace hydra::runtime {

struct CpuInfo {
  std::string model;              // such as "AMD EPYC"
  std::set<std::string> features; // of those that plans may ask for, as /proc/cpuinfo spells them
};

/// Features are those that the processor has and the system lets programs use, by CPUID and XGETBV.
/// Throws Error when /proc/cpuinfo, which has the name, cannot be read.
CpuInfo readCpuInfo();

} // namespace hydra::runtime
