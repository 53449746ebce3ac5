// Lines of `ptxas KIND : TEXT`. Those of a function stand side by side: `Compiling entry function
// 'F'` of a kernel, `Function properties for F`, `S bytes stack frame, A bytes spill stores, B
// bytes spill loads`, `Used R registers, …, N bytes smem`.
#include "compiler/codegen/cuda/AssemblerLog.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <optional>

using namespace llvm;

namespace hydra::cuda {

/// The number in front of a word; nothing where there is none.
static std::optional<uint32_t> numberBefore(StringRef line, StringRef word) {
  const size_t at = line.find(word);
  if (at == StringRef::npos)
    return std::nullopt;
  const StringRef before = line.take_front(at).rtrim();
  const size_t digits = before.find_last_not_of("0123456789");
  uint32_t number = 0;
  if (before.drop_front(digits + 1).getAsInteger(10, number)) // npos + 1 is 0
    return std::nullopt;
  return number;
}

/// What stands in quotes behind a word, as in `in function 'F'`.
static StringRef quotedAfter(StringRef line, StringRef word) {
  const StringRef behind = line.split(word).second.ltrim();
  return behind.starts_with("'") ? behind.drop_front().split('\'').first : "";
}

static std::string spillText(StringRef function, const KernelResources &takes) {
  return ("function '" + function + "' spills: " + Twine(takes.spillStores) + " bytes stored, " +
          Twine(takes.spillLoads) + " bytes loaded")
      .str();
}

namespace {

class Reader {
public:
  AssemblerLog read(StringRef log) {
    SmallVector<StringRef> lines;
    log.split(lines, '\n');
    for (const StringRef line : lines)
      add(line.trim());
    AssemblerLog result;
    for (auto &[name, warning] : warnings) {
      if (entries.contains(name))
        functions[name].warnings.push_back(warning);
      else
        result.warnings.push_back(warning);
    }
    for (auto &function : functions) {
      if (entries.contains(function.first()))
        result.kernels[function.first()] = std::move(function.second);
      else if (function.second.spills())
        result.warnings.push_back(spillText(function.first(), function.second));
    }
    llvm::sort(result.warnings); // maps have no order
    return result;
  }

private:
  void add(StringRef line) {
    if (!line.consume_front("ptxas"))
      return readNumbers(line);
    auto [kind, text] = line.split(':');
    text = text.trim();
    if (kind.trim() == "warning" || text.starts_with("(C"))
      return addWarning(text);
    if (const StringRef entry = quotedAfter(text, "Compiling entry function"); !entry.empty()) {
      entries.insert(entry);
      current = entry;
    } else if (text.consume_front("Function properties for ")) {
      current = text.trim();
    } else {
      readNumbers(line);
    }
  }

  void addWarning(StringRef text) {
    StringRef name = quotedAfter(text, "function");
    const std::pair<std::string, std::string> warning(name, text);
    if (!llvm::is_contained(warnings, warning))
      warnings.push_back(warning);
  }

  void readNumbers(StringRef line) {
    if (current.empty())
      return;
    KernelResources &function = functions[current];
    for (auto [word, number] : {std::pair(StringRef("bytes stack frame"), &function.stackBytes),
                                std::pair(StringRef("bytes spill stores"), &function.spillStores),
                                std::pair(StringRef("bytes spill loads"), &function.spillLoads),
                                std::pair(StringRef("registers"), &function.registers),
                                std::pair(StringRef("bytes smem"), &function.sharedBytes)})
      if (const std::optional<uint32_t> found = numberBefore(line, word))
        *number = *found;
  }

  StringMap<KernelResources> functions;
  StringSet<> entries; ///< those that are kernels
  StringRef current;
  std::vector<std::pair<std::string, std::string>> warnings; ///< with the function, if one is named
};

} // namespace

AssemblerLog readAssemblerLog(StringRef log) { return Reader().read(log); }

} // namespace hydra::cuda
