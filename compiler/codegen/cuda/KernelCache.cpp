// Keys of entries: which compiler, for what, the text.
#include "compiler/codegen/cuda/KernelCache.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace hydra::cuda {

static std::string keyOf(StringRef compiler, StringRef architecture, StringRef text) {
  return (compiler + "\n" + architecture + "\n" + text).str();
}

Expected<CompiledSource> KernelCache::compileSource(const std::string &source,
                                                    const std::string &architecture) const {
  std::string compiler = sourceCompilerVersion();
  if (!files.areKept() || compiler.empty())
    return cuda::compileSource(source, architecture);
  const std::string key = keyOf(compiler, architecture, source);
  if (std::optional<CodeFiles::Entry> known = files.read(key))
    return CompiledSource{std::move(known->code), std::move(known->other)};
  Expected<CompiledSource> compiled = cuda::compileSource(source, architecture);
  if (compiled)
    files.write(key, compiled->cubin, compiled->ptx);
  return compiled;
}

Expected<std::optional<std::vector<uint8_t>>>
KernelCache::assemble(const std::string &ptx, const std::string &architecture) const {
  std::string compiler = assemblerVersion();
  if (!files.areKept() || compiler.empty())
    return cuda::assemble(ptx, architecture);
  const std::string key = keyOf(compiler, architecture, ptx);
  if (std::optional<CodeFiles::Entry> known = files.read(key))
    return std::optional(std::move(known->code));
  auto cubin = cuda::assemble(ptx, architecture);
  if (cubin && *cubin)
    files.write(key, **cubin);
  return cubin;
}

Expected<std::string> KernelCache::log(const std::string &compiler, const std::string &text,
                                       const std::string &architecture,
                                       Expected<std::string> (*make)(const std::string &,
                                                                     const std::string &)) const {
  if (!files.areKept() || compiler.empty())
    return make(text, architecture);
  const std::string key = keyOf(compiler + " log", architecture, text);
  if (std::optional<CodeFiles::Entry> known = files.read(key))
    return std::string(known->code.begin(), known->code.end());
  Expected<std::string> said = make(text, architecture);
  if (said)
    files.write(key, arrayRefFromStringRef(*said));
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
