// Aligned anonymous mappings, and what /proc and /sys say about memory.
#include "runtime/cpu/Arena.h"

#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

using namespace hydra::report;
using namespace hydra::runtime;
using hydra::support::errnoText;
using hydra::support::fail;

namespace {

constexpr uint64_t hugePage = uint64_t{2} << 20;

/// The number behind `key` in a file of lines `key value`; without a key, the first word.
std::optional<uint64_t> numberIn(const std::filesystem::path &path, const std::string &key = {}) {
  std::ifstream file(path);
  std::string word;
  uint64_t value = 0;
  if (key.empty())
    return file >> value ? std::optional(value) : std::nullopt; // "max" is no number
  while (file >> word)
    if (word == key)
      return file >> value ? std::optional(value) : std::nullopt;
  return std::nullopt;
}

/// What the memory controllers (cgroup v2) of this process and those above leave.
uint64_t leftByControlGroups() {
  uint64_t left = INT64_MAX;
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::/"))
      continue;
    const std::filesystem::path root = "/sys/fs/cgroup";
    for (std::filesystem::path group = line.substr(4);; group = group.parent_path()) {
      const std::filesystem::path folder = root / group;
      const auto limit = numberIn(folder / "memory.max");
      const auto used = numberIn(folder / "memory.current");
      if (limit && used) {
        // Cached files count as used, but give way.
        const uint64_t cached = numberIn(folder / "memory.stat", "inactive_file").value_or(0);
        const uint64_t kept = *used - std::min(*used, cached);
        left = std::min(left, *limit - std::min(*limit, kept));
      }
      if (group.empty())
        break;
    }
  }
  return left;
}

} // namespace

Arena::Arena(uint64_t bytes) : bytes(bytes) {
  if (bytes == 0)
    return;
  mappedBytes = hydra::support::roundUp(bytes, hugePage) + hugePage;
  mapping =
      ::mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    mapping = nullptr;
    fail("the system refuses {} of memory: {}", bytesText(bytes), errnoText(errno));
  }
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  start = static_cast<char *>(mapping) + (hugePage - address % hugePage) % hugePage;
  ::madvise(start, mappedBytes - hugePage, MADV_HUGEPAGE); // a hint; small pages work as well
}

Arena::~Arena() {
  if (mapping)
    ::munmap(mapping, mappedBytes);
}

Arena::Arena(Arena &&other) noexcept { *this = std::move(other); }

Arena &Arena::operator=(Arena &&other) noexcept {
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  std::swap(mapping, other.mapping);
  std::swap(mappedBytes, other.mappedBytes);
  return *this;
}

uint64_t hydra::runtime::availableMemory() {
  const auto kibibytes = numberIn("/proc/meminfo", "MemAvailable:");
  const uint64_t system = kibibytes ? *kibibytes * 1024 : INT64_MAX;
  return std::min(system, leftByControlGroups());
}
