// The registry of the CPU executor's functions.
#include "runtime/cpu/Library.h"

using namespace hydra::runtime;

std::unique_ptr<LibraryCall> Library::prepare(const CallSite &site, unsigned threads) const {
  const auto found = factories.find(site.attributes.function());
  if (found != factories.end())
    return found->second(site, threads);
  std::string known;
  for (const auto &[name, factory] : factories)
    known += (known.empty() ? "" : ", ") + name;
  site.fail("no such function on the CPU; there are {}", known);
}

Library hydra::runtime::cpuLibrary() {
  Library library;
  addMatmul(library);
  addAttention(library);
  addEmbedding(library);
  addCopy(library);
  addCompact(library);
  return library;
}
