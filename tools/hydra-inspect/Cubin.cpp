// Sections of an ELF file, every offset checked. Numbers of kernels are in `.nv.info`: entries of a
// format byte, an attribute byte and 16 bits of value or size (as `cuobjdump -elf` shows them).
#include "tools/hydra-inspect/Cubin.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace hydra::inspect {

namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint16_t kCudaMachine = 190; // EM_CUDA
constexpr uint8_t kSized = 0x04;       // a format: 16 bits of size, then as many bytes
constexpr uint8_t kFrameSize = 0x11, kRegisters = 0x2f; // attributes: symbol, number

template <typename T> std::optional<T> read(Bytes bytes, uint64_t offset) {
  T value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    return std::nullopt;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

Bytes part(Bytes bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset)
    return {};
  return bytes.subspan(offset, size);
}

std::string_view textAt(Bytes strings, uint64_t offset) {
  if (offset >= strings.size())
    return {};
  const auto *begin = reinterpret_cast<const char *>(strings.data() + offset);
  return {begin, ::strnlen(begin, strings.size() - offset)};
}

/// The sections that matter.
struct Sections {
  Bytes symbols, symbolNames;
  std::vector<Bytes> infos;
};

Sections sectionsOf(Bytes file) {
  Sections found;
  const auto head = read<Elf64_Ehdr>(file, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_machine != kCudaMachine)
    return found;
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < head->e_shnum; ++i)
    if (const auto section = read<Elf64_Shdr>(file, head->e_shoff + i * sizeof(Elf64_Shdr)))
      sections.push_back(*section);
  const auto bytesOf = [&](uint64_t number) {
    return number < sections.size()
               ? part(file, sections[number].sh_offset, sections[number].sh_size)
               : Bytes();
  };
  const Bytes names = bytesOf(head->e_shstrndx);
  for (size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].sh_type == SHT_SYMTAB) {
      found.symbols = bytesOf(i);
      found.symbolNames = bytesOf(sections[i].sh_link);
    }
    if (textAt(names, sections[i].sh_name) == ".nv.info")
      found.infos.push_back(bytesOf(i));
  }
  return found;
}

using BySymbol = std::map<std::string, KernelResources, std::less<>>;

BySymbol resourcesOf(Bytes cubin) {
  const Sections sections = sectionsOf(cubin);
  BySymbol resources;
  for (const Bytes info : sections.infos) {
    uint64_t at = 0;
    while (const auto format = read<uint8_t>(info, at)) {
      const auto attribute = read<uint8_t>(info, at + 1);
      const auto size = read<uint16_t>(info, at + 2);
      if (!attribute || !size)
        break;
      at += 4;
      if (*format != kSized)
        continue;
      const auto symbol = read<uint32_t>(info, at), number = read<uint32_t>(info, at + 4);
      at += *size;
      if (!symbol || !number || (*attribute != kFrameSize && *attribute != kRegisters))
        continue;
      const auto entry = read<Elf64_Sym>(sections.symbols, uint64_t{*symbol} * sizeof(Elf64_Sym));
      const std::string_view name = entry ? textAt(sections.symbolNames, entry->st_name) : "";
      if (name.empty())
        continue;
      KernelResources &kernel = resources[std::string(name)];
      (*attribute == kFrameSize ? kernel.stackBytes : kernel.registers) = *number;
    }
  }
  return resources;
}

} // namespace

std::vector<std::optional<KernelResources>> resourcesOf(const planfile::Plan &plan) {
  std::map<uint32_t, BySymbol> byBlob;
  std::vector<std::optional<KernelResources>> resources;
  for (const planfile::Kernel *kernel : *plan.kernels()) {
    auto [known, isNew] = byBlob.try_emplace(kernel->blob());
    if (isNew) {
      const auto &data = *plan.blobs()->Get(kernel->blob())->data();
      known->second = resourcesOf({data.data(), data.size()});
    }
    const auto found = known->second.find(kernel->symbol()->string_view());
    resources.push_back(found == known->second.end() ? std::nullopt : std::optional(found->second));
  }
  return resources;
}

} // namespace hydra::inspect
