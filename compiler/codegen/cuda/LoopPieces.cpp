// The text of copies of slices, between the places that they have in a loop's kernel.
#include "compiler/codegen/cuda/LoopPieces.h"

#include "compiler/codegen/cuda/LoopPlacement.h"
#include "compiler/codegen/cuda/StepLauncher.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

int64_t outsideWidth(Value value) {
  MemRefType type = typeOf(value);
  unsigned inner = 1; // dimensions that are one row
  while (type.getDimSize(type.getRank() - inner) == 1)
    ++inner;
  return LoopPlacement::outsideAlignment(value, inner) >= 16
             ? 16 / elementBytes(type.getElementType())
             : 1;
}

LoopPieces::LoopPieces(Value value, unsigned sliced, int64_t wide, ArrayRef<int64_t> to,
                       ArrayRef<int64_t> from) {
  MemRefType memref = typeOf(value);
  type = wide > 1 ? "uint4" : cType(memref.getElementType()).str();
  unsigned last = to.size();
  while (last > sliced && memref.getDimSize(last - 1) == 1)
    --last;
  for (unsigned d = sliced; d < to.size(); ++d) {
    const bool isLast = d + 1 == last;
    const int64_t size = memref.getDimSize(d) / (isLast ? wide : 1), by = isLast ? 1 : wide;
    if (size == 1)
      continue;
    dims += formatv(", Dim<{0}, {1}, {2}>", size, to[d] / by, from[d] / by);
    count *= size;
  }
  for (unsigned d = last; d-- > sliced;) {
    const int64_t by = d + 1 == last ? 1 : wide;
    if (memref.getDimSize(d) == 1)
      continue;
    if (to[d] != row * by || from[d] != row * by)
      break;
    row *= memref.getDimSize(d) / (d + 1 == last ? wide : 1);
  }
}

std::string LoopPieces::copy(const std::string &to, const std::string &from) const {
  return formatv("copySlice<{0}, {1}{2}>(reinterpret_cast<{0} *>({3}), reinterpret_cast<const "
                 "{0} *>({4}));\n",
                 type, count, dims, to, from);
}

std::string LoopPieces::fetchPieces(const std::string &to, const std::string &from) const {
  return formatv("fetchPieces<{0}{1}>(reinterpret_cast<uint4 *>({2}), reinterpret_cast<const "
                 "uint4 *>({3}));\n",
                 count, dims, to, from);
}

int64_t LoopPieces::turns() const { return (count + kLoopThreads - 1) / kLoopThreads; }

std::string LoopPieces::copyTurns(const std::string &to, const std::string &from, int64_t begin,
                                  int64_t end) const {
  return formatv("copyTurns<{0}, {1}, {2}, {3}{4}>(reinterpret_cast<{2} *>({5}), "
                 "reinterpret_cast<const {2} *>({6}));\n",
                 begin, end, type, count, dims, to, from);
}

std::string LoopPieces::fetchTurns(const std::string &to, const std::string &from, int64_t begin,
                                   int64_t end) const {
  return formatv("fetchTurns<{0}, {1}, {2}{3}>(reinterpret_cast<uint4 *>({4}), "
                 "reinterpret_cast<const uint4 *>({5}));\n",
                 begin, end, count, dims, to, from);
}

std::string LoopPieces::fetchRows(const std::string &to, const std::string &from,
                                  int64_t warp) const {
  const std::string places = formatv("reinterpret_cast<uint4 *>({0}), reinterpret_cast<const uint4 "
                                     "*>({1}), fetches, {2}",
                                     to, from, warp);
  if (isDense())
    return formatv("fetchWhole<{0}>({1});\n", count, places);
  return formatv("fetchRows<{0}, {1}{2}>({3});\n", row, count, dims, places);
}

std::string LoopPieces::prefetch(const std::string &from) const {
  return formatv("prefetchSlice<{0}{1}>(reinterpret_cast<const uint4 *>({2}));\n", count, dims,
                 from);
}

} // namespace hydra::cuda
