// A file of an entry: a magic word, a hash of what follows, the sizes of both codes, the codes.
#include "compiler/codegen/files/CodeFiles.h"

#include "llvm-c/Core.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace llvm;
namespace fs = std::filesystem;

namespace hydra {

namespace {

constexpr uint64_t kMagic = 0x3165686361637968; // "hycache1"

struct Header {
  uint64_t magic, hash, codeBytes, otherBytes;
};

} // namespace

fs::path CodeFiles::fileOf(StringRef key) const {
  XXH128_hash_t hash = xxh3_128bits(arrayRefFromStringRef(key));
  return folder.path / inner / formatv("{0:x-16}{1:x-16}", hash.high64, hash.low64).str();
}

std::string CodeFiles::keyOf(StringRef how, const Module &module) {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  std::string key;
  raw_string_ostream os(key);
  os << "LLVM " << major << '.' << minor << '.' << patch << '\n' << how << '\n' << module;
  return key;
}

std::optional<CodeFiles::Entry> CodeFiles::read(StringRef key) const {
  if (!areKept())
    return std::nullopt;
  const fs::path file = fileOf(key);
  std::error_code failed;
  if (!fs::is_regular_file(file, failed))
    return std::nullopt;
  // Volatile: it is read, not mapped, so that a file which gets shorter meanwhile is a damaged one.
  auto buffer = MemoryBuffer::getFile(file.string(), /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  Header header;
  if (!buffer || (*buffer)->getBufferSize() < sizeof(header))
    return std::nullopt;
  std::memcpy(&header, (*buffer)->getBufferStart(), sizeof(header));
  ArrayRef<uint8_t> rest = arrayRefFromStringRef((*buffer)->getBuffer().drop_front(sizeof(header)));
  if (header.magic != kMagic || header.codeBytes > rest.size() ||
      header.otherBytes != rest.size() - header.codeBytes || header.hash != xxh3_64bits(rest))
    return std::nullopt;
  CodeFolder::noteUsed(file);
  return Entry{rest.take_front(header.codeBytes).vec(), rest.drop_front(header.codeBytes).vec()};
}

void CodeFiles::write(StringRef key, ArrayRef<uint8_t> code, ArrayRef<uint8_t> other) const {
  if (!areKept())
    return;
  std::vector<uint8_t> rest(code);
  append_range(rest, other);
  const Header header{kMagic, xxh3_64bits(rest), code.size(), other.size()};
  std::error_code failed;
  fs::create_directories(folder.path / inner, failed);
  // A full or read-only disk: the next compilation takes as long as this one. Nothing is synced:
  // what a failure of power leaves behind has another hash.
  const std::string file = fileOf(key).string();
  Expected<sys::fs::TempFile> temporary = sys::fs::TempFile::create(file + ".%%%%%%");
  if (!temporary) {
    consumeError(temporary.takeError());
    return;
  }
  raw_fd_ostream os(temporary->FD, /*shouldClose=*/false);
  os.write(reinterpret_cast<const char *>(&header), sizeof(header));
  os.write(reinterpret_cast<const char *>(rest.data()), rest.size());
  os.flush();
  const bool isWhole = !os.has_error();
  os.clear_error();
  if (!isWhole)
    return consumeError(temporary->discard());
  if (Error problem = temporary->keep(file))
    return consumeError(std::move(problem));
  folder.noteWritten(sizeof(header) + rest.size());
}

} // namespace hydra
