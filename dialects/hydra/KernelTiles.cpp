// Which sizes kernels have, by name.
#include "dialects/hydra/KernelTiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace hydra {

namespace {

enum class Grid { Multiples, Powers }; ///< of what numbers are: of the least one, of two

struct Size {
  StringLiteral name;
  int64_t least, most;
  Grid grid;
};

constexpr StringLiteral kWidth = "width";

constexpr Size kAttentionSizes[] = {{kWidth, 1, 1 << 16, Grid::Multiples},
                                    {"rows", 64, 192, Grid::Multiples},
                                    {"tile", 32, 128, Grid::Powers},
                                    {"stages", 2, 16, Grid::Multiples}};
constexpr Size kFewRowsSizes[] = {{"depth", 256, 4096, Grid::Multiples},
                                  {"stages", 2, 16, Grid::Multiples},
                                  {"warps", 1, 16, Grid::Multiples}};
constexpr Size kRowSizes[] = {{"threads", 32, 1024, Grid::Powers},
                              {"long_threads", 64, 1024, Grid::Powers}};

constexpr struct {
  StringLiteral kernel;
  ArrayRef<Size> sizes;
} kKernels[] = {{kAttentionForward, kAttentionSizes},
                {kAttentionQueryGradients, kAttentionSizes},
                {kAttentionKeyGradients, kAttentionSizes},
                {kFewRowsMatmul, kFewRowsSizes},
                {kRowKernels, kRowSizes}};

std::string numbersOf(const Size &size) {
  if (size.grid == Grid::Powers)
    return ("a power of 2 from " + Twine(size.least) + " to " + Twine(size.most)).str();
  const bool step = size.least > 2;
  return ((step ? "a multiple of " + std::to_string(size.least) : std::string("an integer")) +
          " from " + Twine(size.least) + " to " + Twine(size.most))
      .str();
}

bool has(const Size &size, int64_t value) {
  if (value < size.least || value > size.most)
    return false;
  if (size.grid == Grid::Powers)
    return isPowerOf2_64(static_cast<uint64_t>(value));
  return size.least <= 2 || value % size.least == 0;
}

} // namespace

std::optional<KernelTiles> KernelTiles::parse(StringRef text, std::string &problem) {
  const auto fail = [&](const Twine &reason) {
    problem = reason.str();
    return std::nullopt;
  };
  KernelTiles tiles;
  auto [kernel, settings] = text.split(':');
  const auto *known = find_if(kKernels, [&](const auto &one) { return one.kernel == kernel; });
  if (known == std::end(kKernels)) {
    const auto names = map_range(kKernels, [](const auto &one) { return one.kernel; });
    return fail("there is no kernel '" + kernel + "'; known are " + join(names, ", "));
  }
  tiles.kernel = kernel.str();
  SmallVector<StringRef> parts;
  settings.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, number] = part.split('=');
    const auto *size = find_if(known->sizes, [&](const Size &one) { return one.name == name; });
    if (size == known->sizes.end()) {
      const auto names = map_range(known->sizes, [](const Size &one) { return one.name; });
      return fail("'" + name + "' is no size of " + kernel + "; expected " + join(names, ", "));
    }
    int64_t value = 0;
    if (number.getAsInteger(10, value) || !has(*size, value))
      return fail(name + " is '" + number + "', not " + numbersOf(*size));
    if (name == kWidth ? tiles.width != 0 : tiles.sizes.contains(name.str()))
      return fail("'" + name + "' is given twice");
    (name == kWidth ? tiles.width : tiles.sizes[name.str()]) = value;
  }
  if (tiles.sizes.empty())
    return fail("of " + kernel + " only the width is given");
  return tiles;
}

std::string KernelTiles::text() const {
  std::string text = kernel;
  char separator = ':';
  const auto add = [&](StringRef name, int64_t value) {
    text += (Twine(separator) + name + "=" + Twine(value)).str();
    separator = ',';
  };
  if (width != 0)
    add(kWidth, width);
  for (const auto &[name, value] : sizes)
    add(name, value);
  return text;
}

} // namespace hydra
