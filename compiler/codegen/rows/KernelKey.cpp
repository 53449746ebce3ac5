// Keys and symbols of generated kernels.
#include "compiler/codegen/rows/KernelKey.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace hydra::rows {

void addNumbers(std::string &key, ArrayRef<int64_t> numbers) {
  raw_string_ostream os(key);
  os << '[';
  interleaveComma(numbers, os);
  os << ']';
}

std::string combineKey(int64_t parts, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                       RowType type) {
  std::string key =
      "combine " + std::to_string(parts) + ' ' + std::to_string(static_cast<int>(type));
  addNumbers(key, shape);
  addNumbers(key, strides);
  return key;
}

std::string symbolOf(StringRef key, uint64_t others) {
  return "hydra_" + utohexstr(xxh3_64bits(key) + others, /*LowerCase=*/true, 16);
}

} // namespace hydra::rows
