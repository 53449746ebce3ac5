// A file of an entry: a magic word, a hash of what follows, the sizes of both codes, the codes.
#include "compiler/codegen/cuda/KernelCache.h"

#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <array>
#include <cstdlib>
#include <cstring>

using namespace llvm;
namespace fs = std::filesystem;

namespace hydra::cuda {

namespace {

constexpr uint64_t kMagic = 0x3165686361637968; // "hycache1"

struct Header {
  uint64_t magic, hash, cubinBytes, ptxBytes;
};

} // namespace

fs::path KernelCache::defaultDirectory() {
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && fs::path(cache).is_absolute())
    return fs::path(cache) / "hydra";
  if (const char *home = std::getenv("HOME"); home && fs::path(home).is_absolute())
    return fs::path(home) / ".cache" / "hydra";
  return {};
}

fs::path KernelCache::fileOf(StringRef compiler, StringRef architecture, StringRef text) const {
  std::string key = (compiler + "\n" + architecture + "\n" + text).str();
  XXH128_hash_t hash = xxh3_128bits(arrayRefFromStringRef(key));
  return directory / formatv("{0:x-16}{1:x-16}", hash.high64, hash.low64).str();
}

std::optional<CompiledSource> KernelCache::read(const fs::path &file) const {
  auto buffer = MemoryBuffer::getFile(file.string(), /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  Header header;
  if (!buffer || (*buffer)->getBufferSize() < sizeof(header))
    return std::nullopt;
  std::memcpy(&header, (*buffer)->getBufferStart(), sizeof(header));
  ArrayRef<uint8_t> rest = arrayRefFromStringRef((*buffer)->getBuffer().drop_front(sizeof(header)));
  if (header.magic != kMagic || header.cubinBytes > rest.size() ||
      header.ptxBytes != rest.size() - header.cubinBytes || header.hash != xxh3_64bits(rest))
    return std::nullopt;
  return CompiledSource{rest.take_front(header.cubinBytes).vec(),
                        rest.drop_front(header.cubinBytes).vec()};
}

void KernelCache::write(const fs::path &file, const CompiledSource &code) const {
  std::vector<uint8_t> rest(code.cubin);
  rest.insert(rest.end(), code.ptx.begin(), code.ptx.end());
  const Header header{kMagic, xxh3_64bits(rest), code.cubin.size(), code.ptx.size()};
  try {
    fs::create_directories(directory);
    support::AtomicFile out(file);
    out.write(std::as_bytes(std::span(&header, 1)));
    out.write(std::as_bytes(std::span(rest)));
    out.commit();
  } catch (const std::exception &) {
    // A full or read-only disk: the next compilation takes as long as this one.
  }
}

Expected<CompiledSource> KernelCache::compileSource(const std::string &source,
                                                    const std::string &architecture) const {
  std::string compiler = sourceCompilerVersion();
  if (directory.empty() || compiler.empty())
    return cuda::compileSource(source, architecture);
  const fs::path file = fileOf(compiler, architecture, source);
  if (std::optional<CompiledSource> known = read(file))
    return *std::move(known);
  Expected<CompiledSource> compiled = cuda::compileSource(source, architecture);
  if (compiled)
    write(file, *compiled);
  return compiled;
}

Expected<std::optional<std::vector<uint8_t>>>
KernelCache::assemble(const std::string &ptx, const std::string &architecture) const {
  std::string compiler = assemblerVersion();
  if (directory.empty() || compiler.empty())
    return cuda::assemble(ptx, architecture);
  const fs::path file = fileOf(compiler, architecture, ptx);
  if (std::optional<CompiledSource> known = read(file))
    return std::optional(std::move(known->cubin));
  auto cubin = cuda::assemble(ptx, architecture);
  if (cubin && *cubin)
    write(file, {**cubin, {}});
  return cubin;
}

Expected<std::string> KernelCache::log(const std::string &compiler, const std::string &text,
                                       const std::string &architecture,
                                       Expected<std::string> (*make)(const std::string &,
                                                                     const std::string &)) const {
  if (directory.empty() || compiler.empty())
    return make(text, architecture);
  const fs::path file = fileOf(compiler + " log", architecture, text);
  if (std::optional<CompiledSource> known = read(file))
    return std::string(known->cubin.begin(), known->cubin.end());
  Expected<std::string> said = make(text, architecture);
  if (said)
    write(file, {{said->begin(), said->end()}, {}});
  return said;
}

Expected<std::string> KernelCache::sourceLog(const std::string &source,
                                             const std::string &architecture) const {
  return log(sourceCompilerVersion(), source, architecture, cuda::sourceLog);
}

Expected<std::string> KernelCache::assemblerLog(const std::string &ptx,
                                                const std::string &architecture) const {
  return log(assemblerVersion(), ptx, architecture, cuda::assemblerLog);
}

} // namespace hydra::cuda
