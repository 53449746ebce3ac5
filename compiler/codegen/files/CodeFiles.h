// Compiled code on disk, found by what it was compiled from.
#pragma once

#include "compiler/codegen/files/CodeFolder.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace hydra {

/// What a compiler made of a text. A key says the text and all else that the code follows from,
/// such as the version of the compiler, so an entry is never out of date. One that cannot be read
/// is not there, one that cannot be written is not kept: files of code fail no compilation.
class CodeFiles {
public:
  /// `inner`: the folder in it that these files have, if any.
  explicit CodeFiles(CodeFolder folder, const char *inner = "")
      : folder(std::move(folder)), inner(inner) {}

  bool areKept() const { return !folder.path.empty(); }

  /// The key of what LLVM, of the version that is loaded, makes of a module. `how`: all that it
  /// follows from beside these.
  static std::string keyOf(llvm::StringRef how, const llvm::Module &module);

  /// Code of one kind, or of two that belong together.
  struct Entry {
    std::vector<uint8_t> code, other;
  };
  std::optional<Entry> read(llvm::StringRef key) const;
  void write(llvm::StringRef key, llvm::ArrayRef<uint8_t> code,
             llvm::ArrayRef<uint8_t> other = {}) const;

private:
  std::filesystem::path fileOf(llvm::StringRef key) const;

  CodeFolder folder;
  const char *inner;
};

} // namespace hydra
