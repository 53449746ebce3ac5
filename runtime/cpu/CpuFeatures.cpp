// Reads /proc/cpuinfo, and asks the processor itself: some systems leave features out of that file
// that programs may use.
#include "runtime/cpu/CpuFeatures.h"

#include "runtime/support/Error.h"

#include <array>
#include <cpuid.h>
#include <cstdint>
#include <fstream>
#include <sstream>

using namespace hydra::runtime;

namespace {

enum class Register : uint8_t { Ebx, Ecx };

/// Registers that the system must save for programs to use a feature.
enum class Registers : uint8_t { Any, Ymm, Zmm };

struct Feature {
  const char *name; ///< as /proc/cpuinfo spells it
  uint32_t leaf;
  Register place;
  uint32_t bit;
  Registers saved = Registers::Any;
};

/// What plans may ask for: compiler/codegen/cpu/CpuTarget.cpp.
constexpr std::array kFeatures = {
    Feature{"ssse3", 1, Register::Ecx, 9},
    Feature{"fma", 1, Register::Ecx, 12, Registers::Ymm},
    Feature{"cx16", 1, Register::Ecx, 13},
    Feature{"sse4_1", 1, Register::Ecx, 19},
    Feature{"sse4_2", 1, Register::Ecx, 20},
    Feature{"movbe", 1, Register::Ecx, 22},
    Feature{"popcnt", 1, Register::Ecx, 23},
    Feature{"xsave", 1, Register::Ecx, 26},
    Feature{"avx", 1, Register::Ecx, 28, Registers::Ymm},
    Feature{"f16c", 1, Register::Ecx, 29, Registers::Ymm},
    Feature{"bmi1", 7, Register::Ebx, 3},
    Feature{"avx2", 7, Register::Ebx, 5, Registers::Ymm},
    Feature{"bmi2", 7, Register::Ebx, 8},
    Feature{"avx512f", 7, Register::Ebx, 16, Registers::Zmm},
    Feature{"avx512dq", 7, Register::Ebx, 17, Registers::Zmm},
    Feature{"avx512cd", 7, Register::Ebx, 28, Registers::Zmm},
    Feature{"avx512bw", 7, Register::Ebx, 30, Registers::Zmm},
    Feature{"avx512vl", 7, Register::Ebx, 31, Registers::Zmm},
    Feature{"lahf_lm", 0x80000001, Register::Ecx, 0},
    Feature{"abm", 0x80000001, Register::Ecx, 5},
};

/// Whether the system saves these registers when it switches between programs.
bool isSaved(Registers registers) {
  constexpr uint32_t osxsave = 1u << 27;
  constexpr uint64_t ymm = 0x6, zmm = 0xe6; // of XCR0: SSE and AVX; and masks, both parts of ZMM
  if (registers == Registers::Any)
    return true;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & osxsave))
    return false;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const uint64_t wanted = registers == Registers::Ymm ? ymm : zmm;
  return ((uint64_t{high} << 32 | low) & wanted) == wanted;
}

bool isOffered(const Feature &feature) {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(feature.leaf, 0, &eax, &ebx, &ecx, &edx))
    return false;
  const uint32_t word = feature.place == Register::Ebx ? ebx : ecx;
  return (word >> feature.bit & 1) && isSaved(feature.saved);
}

} // namespace

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
      info.features.insert(flag);
  }
  if (info.model.empty())
    support::fail("cannot read the processor's name from /proc/cpuinfo");
  for (const Feature &feature : kFeatures)
    if (isOffered(feature))
      info.features.insert(feature.name);
  return info;
}
