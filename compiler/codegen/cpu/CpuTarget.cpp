// Knows the levels and what this machine offers.
#include "compiler/codegen/cpu/CpuTarget.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace hydra::cpu {

Expected<CpuTarget> CpuTarget::get(StringRef name) {
  if (name == "x86-64-v3" || name == "x86-64-v4")
    return CpuTarget{name.str(), "generic"};
  if (name != "host")
    return createStringError("unknown processor '" + name +
                             "'; expected host, x86-64-v3 or x86-64-v4");
  StringMap<bool> have = sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<const char *> features) {
    return all_of(features, [&](const char *f) { return have.lookup(f); });
  };
  if (!has({"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}))
    return createStringError("this processor lacks AVX2 or FMA; generated code needs x86-64-v3");
  bool wide = has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  return CpuTarget{wide ? "x86-64-v4" : "x86-64-v3", sys::getHostCPUName().str()};
}

std::vector<std::string> CpuTarget::features() const {
  std::vector<std::string> names = {"abm",    "avx",    "avx2",   "bmi1",  "bmi2",   "cx16",
                                    "f16c",   "fma",    "lahf_lm", "movbe", "popcnt", "sse4_1",
                                    "sse4_2", "ssse3",  "xsave"};
  if (level == "x86-64-v4")
    names.insert(names.end(), {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"});
  return names;
}

} // namespace hydra::cpu
