// The dynamic symbol table of an ELF file, found as the system's loader finds it: by the program
// headers and the dynamic section. Section headers, which loaders ignore, are ignored here.
#include "runtime/cpu/ElfFunctions.h"

#include "runtime/support/Error.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace hydra::runtime;
using hydra::support::fail;

namespace {

class ElfFile {
public:
  ElfFile(std::span<const std::byte> object, const std::string &name) : object(object), name(name) {
    const auto header = at<Elf64_Ehdr>(0);
    const bool fits = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_DYN &&
                      header.e_machine == EM_X86_64 && header.e_phentsize == sizeof(Elf64_Phdr);
    if (!fits)
      refuse("it is no shared object for x86-64");
    for (size_t i = 0; i < header.e_phnum; ++i)
      segments.push_back(at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr)));
    for (const Elf64_Phdr &segment : segments)
      if (segment.p_type == PT_DYNAMIC)
        readDynamic(segment);
    if (symbols == 0 || names == 0)
      refuse("it has no symbols");
  }

  std::set<std::string, std::less<>> functions() const {
    std::set<std::string, std::less<>> result;
    for (uint64_t i = 0, count = countSymbols(); i < count; ++i) {
      const auto symbol = loaded<Elf64_Sym>(symbols + i * sizeof(Elf64_Sym));
      if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
          ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && isCode(symbol.st_value))
        result.insert(textAt(symbol.st_name));
    }
    return result;
  }

private:
  [[noreturn]] void refuse(const char *why) const {
    fail("{}: its code does not load: {}", name, why);
  }

  /// At a byte of the file.
  template <typename T> T at(uint64_t offset) const {
    T value;
    if (object.size() < sizeof(T) || offset > object.size() - sizeof(T))
      refuse("it is cut or damaged");
    std::memcpy(&value, object.data() + offset, sizeof(T));
    return value;
  }

  /// At an address that it has once it is loaded.
  template <typename T> T loaded(uint64_t address) const { return at<T>(offsetOf(address)); }

  uint64_t offsetOf(uint64_t address) const {
    for (const Elf64_Phdr &segment : segments)
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    refuse("it is cut or damaged");
  }

  bool isCode(uint64_t address) const {
    return std::ranges::any_of(segments, [&](const Elf64_Phdr &segment) {
      return segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
             address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz;
    });
  }

  void readDynamic(const Elf64_Phdr &segment) {
    for (uint64_t i = 0; i < segment.p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = at<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
      switch (entry.d_tag) {
      case DT_NULL:
        return;
      case DT_SYMTAB:
        symbols = entry.d_un.d_ptr;
        break;
      case DT_STRTAB:
        names = entry.d_un.d_ptr;
        break;
      case DT_STRSZ:
        nameBytes = entry.d_un.d_val;
        break;
      case DT_HASH:
        hash = entry.d_un.d_ptr;
        break;
      case DT_GNU_HASH:
        gnuHash = entry.d_un.d_ptr;
        break;
      default:
        break;
      }
    }
  }

  /// The dynamic section does not say it: the tables that names are looked up by do.
  uint64_t countSymbols() const {
    if (hash != 0) // buckets, chains; a chain for each symbol
      return loaded<uint32_t>(hash + 4);
    if (gnuHash == 0)
      refuse("it has no table of its symbols");
    // Symbols without a place in the table come first; of the others, the chain of a bucket is a
    // run of consecutive ones, the last of them marked.
    const auto buckets = loaded<uint32_t>(gnuHash), first = loaded<uint32_t>(gnuHash + 4),
               words = loaded<uint32_t>(gnuHash + 8);
    const uint64_t table = gnuHash + 16 + uint64_t{words} * 8,
                   chains = table + uint64_t{buckets} * 4;
    uint64_t last = 0;
    for (uint64_t i = 0; i < buckets; ++i)
      last = std::max<uint64_t>(last, loaded<uint32_t>(table + i * 4));
    if (last < first)
      return first;
    while ((loaded<uint32_t>(chains + (last - first) * 4) & 1) == 0)
      ++last;
    return last + 1;
  }

  std::string textAt(uint64_t index) const {
    constexpr uint64_t longest = 4096;
    if (index < nameBytes) {
      const uint64_t offset = offsetOf(names + index);
      const auto text = object.subspan(std::min<uint64_t>(offset, object.size()));
      const auto part = text.first(std::min({text.size(), nameBytes - index, longest}));
      const auto end = std::ranges::find(part, std::byte{0});
      if (end != part.end())
        return {reinterpret_cast<const char *>(part.data()),
                static_cast<size_t>(end - part.begin())};
    }
    refuse("it is cut or damaged");
  }

  std::span<const std::byte> object;
  const std::string &name;
  std::vector<Elf64_Phdr> segments;
  // Addresses of tables; 0: there is none.
  uint64_t symbols = 0, names = 0, hash = 0, gnuHash = 0;
  uint64_t nameBytes = 0;
};

} // namespace

std::set<std::string, std::less<>>
hydra::runtime::exportedFunctions(std::span<const std::byte> object, const std::string &name) {
  return ElfFile(object, name).functions();
}
