// Which pieces the rows of groups fall into, and what workers do with them.
#include "runtime/cpu/GroupedMatmul.h"

#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"

#include <algorithm>
#include <cstring>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

constexpr int64_t kRowTile = 128; ///< rows of grouped_linear that are multiplied together
constexpr int64_t kSumTile = 512; ///< rows of grouped_outer that are summed at once
constexpr int64_t kBand = 128;    ///< rows of a group's c that one task sums

void checkOffsets(const GroupedSpec &spec, const int32_t *offsets, std::string_view name) {
  for (int64_t e = 0; e < spec.groups; ++e)
    if ((e == 0 && offsets[0] != 0) || offsets[e + 1] < offsets[e] || offsets[e + 1] > spec.rows)
      support::fail("{}: group {} has the rows {} to {} of {}", name, e, offsets[e], offsets[e + 1],
                    spec.rows);
}

const std::byte *elementOf(const void *base, DType dtype, int64_t element) {
  return static_cast<const std::byte *>(base) +
         element * static_cast<int64_t>(support::byteSize(dtype));
}
std::byte *elementOf(void *base, DType dtype, int64_t element) {
  return const_cast<std::byte *>(elementOf(static_cast<const void *>(base), dtype, element));
}

/// A matmul with operands as the call has them.
MatmulSpec matmulOf(const GroupedSpec &spec) {
  MatmulSpec matmul;
  matmul.a.dtype = matmul.b.dtype = spec.operands;
  matmul.c.dtype = spec.result;
  matmul.tf32 = spec.tf32;
  matmul.widen = !hasBf16Matmuls();
  return matmul;
}

/// x [rows, K] by the transpose of w [N, K], or by w [K, N].
MatmulSpec linearOf(const GroupedSpec &spec, int64_t rows) {
  MatmulSpec matmul = matmulOf(spec);
  matmul.m = rows;
  matmul.n = spec.n;
  matmul.k = spec.k;
  matmul.a.rowStride = spec.k;
  matmul.b.rowStride = spec.transposed ? spec.n : 1;
  matmul.b.columnStride = spec.transposed ? 1 : spec.k;
  matmul.c.rowStride = spec.n;
  return matmul;
}

/// The transpose of a [rows, height of N] by b [rows, K], in f32.
MatmulSpec outerOf(const GroupedSpec &spec, int64_t height, int64_t rows, bool adds) {
  MatmulSpec matmul = matmulOf(spec);
  matmul.m = height;
  matmul.n = spec.k;
  matmul.k = rows;
  matmul.a.rowStride = 1;
  matmul.a.columnStride = spec.n;
  matmul.b.rowStride = spec.k;
  matmul.c.rowStride = spec.k;
  matmul.c.dtype = DType::F32;
  matmul.accumulate = adds;
  return matmul;
}

void roundTo(DType dtype, void *to, const float *from, int64_t count) {
  auto *bits = static_cast<uint16_t *>(to);
  for (int64_t i = 0; i < count; ++i)
    bits[i] =
        dtype == DType::BF16 ? support::bf16FromDouble(from[i]) : support::f16FromDouble(from[i]);
}

} // namespace

size_t RowPieces::scratchBytesPerWorker() const {
  size_t bytes = 0;
  for (const Matmul &matmul : matmuls)
    bytes = std::max(bytes, matmul.scratchBytesPerWorker());
  return bytes;
}

//===-- grouped_linear ----------------------------------------------------------------------===//

GroupedLinear::GroupedLinear(const GroupedSpec &spec, unsigned threads)
    : spec(spec),
      pieces(spec.rows, kRowTile, threads, [&](int64_t rows) { return linearOf(spec, rows); }) {
  // Whole tiles, and of each group a piece for every bit of the rest.
  constexpr int64_t kBits = 7;
  static_assert(kRowTile == 1 << kBits);
  list.reserve(static_cast<size_t>(spec.rows / kRowTile + spec.groups * kBits));
}

void GroupedLinear::run(const void *x, const void *w, const int32_t *offsets, void *y,
                        ThreadPool &pool, const WorkerScratch &scratch) {
  checkOffsets(spec, offsets, "grouped_linear");
  list.clear();
  int64_t tasks = 0;
  for (int64_t e = 0; e < spec.groups; ++e)
    pieces.forEach(offsets[e + 1] - offsets[e], [&](const Matmul &matmul, int64_t first, int64_t) {
      list.push_back({&matmul, e, offsets[e] + first, tasks});
      tasks += matmul.tasks();
    });
  pool.parallelFor(tasks, [&](int64_t task, unsigned worker) {
    const Piece &piece = *std::prev(std::upper_bound(
        list.begin(), list.end(), task, [](int64_t t, const Piece &p) { return t < p.firstTask; }));
    piece.matmul->runTask(task - piece.firstTask, worker,
                          elementOf(x, spec.operands, piece.row * spec.k),
                          elementOf(w, spec.operands, piece.group * spec.n * spec.k), nullptr,
                          elementOf(y, spec.result, piece.row * spec.n), scratch);
  });
  const int64_t end = offsets[spec.groups];
  std::memset(elementOf(y, spec.result, end * spec.n), 0,
              static_cast<size_t>((spec.rows - end) * spec.n) * support::byteSize(spec.result));
}

//===-- grouped_outer -----------------------------------------------------------------------===//

GroupedOuter::Band GroupedOuter::makeBand(int64_t height, unsigned threads) const {
  const auto pieces = [&](bool adds) {
    return RowPieces(spec.rows, kSumTile, threads,
                     [&](int64_t rows) { return outerOf(spec, height, rows, adds); });
  };
  return {pieces(false), pieces(true)};
}

GroupedOuter::GroupedOuter(const GroupedSpec &spec, unsigned threads)
    : spec(spec), bands(support::ceilDiv(spec.n, kBand)),
      whole(makeBand(std::min(spec.n, kBand), threads)),
      last(makeBand(spec.n - (bands - 1) * kBand, threads)) {
  size_t bytes = 0;
  for (const Band *band : {&whole, &last})
    for (const RowPieces *pieces : {&band->starts, &band->adds})
      bytes = std::max(bytes, pieces->scratchBytesPerWorker());
  constexpr size_t kAlignment = 64;
  sumsAt = support::roundUp(bytes, kAlignment);
  if (spec.result != DType::F32)
    sumsBytes = static_cast<size_t>(std::min(spec.n, kBand) * spec.k) * sizeof(float);
}

void GroupedOuter::runBand(int64_t group, int64_t band, unsigned worker, const void *a,
                           const void *b, const int32_t *offsets, void *c,
                           const WorkerScratch &scratch) const {
  const Band &own = band == bands - 1 ? last : whole;
  const int64_t first = band * kBand, height = std::min(kBand, spec.n - first);
  void *to = elementOf(c, spec.result, (group * spec.n + first) * spec.k);
  const int64_t begin = offsets[group], rows = offsets[group + 1] - begin;
  if (rows == 0) {
    std::memset(to, 0, static_cast<size_t>(height * spec.k) * support::byteSize(spec.result));
    return;
  }
  void *sums = sumsBytes > 0 ? scratch.of(worker) + sumsAt : to;
  const auto add = [&](const Matmul &matmul, int64_t row) {
    for (int64_t task = 0; task < matmul.tasks(); ++task)
      matmul.runTask(task, worker, elementOf(a, spec.operands, (begin + row) * spec.n + first),
                     elementOf(b, spec.operands, (begin + row) * spec.k), nullptr, sums, scratch);
  };
  int64_t done = 0;
  own.starts.forEach(rows, [&](const Matmul &matmul, int64_t row, int64_t count) {
    if (row > 0)
      return;
    add(matmul, row);
    done = count;
  });
  own.adds.forEach(rows, [&](const Matmul &matmul, int64_t row, int64_t) {
    if (row >= done)
      add(matmul, row);
  });
  if (sumsBytes > 0)
    roundTo(spec.result, to, static_cast<const float *>(sums), height * spec.k);
}

void GroupedOuter::run(const void *a, const void *b, const int32_t *offsets, void *c,
                       ThreadPool &pool, const WorkerScratch &scratch) {
  checkOffsets(spec, offsets, "grouped_outer");
  pool.parallelFor(spec.groups * bands, [&](int64_t task, unsigned worker) {
    runBand(task / bands, task % bands, worker, a, b, offsets, c, scratch);
  });
}
