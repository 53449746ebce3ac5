// Cuts a matmul into blocks of the output and prepares one sequential oneDNN primitive for each
// of the few shapes of a block.
#include "runtime/cpu/Matmul.h"

#include "runtime/support/Error.h"

#include <dlfcn.h>
#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;
using support::fail;

namespace {

/// Tells the OpenMP runtime that oneDNN is linked with (looked up, because it is oneDNN's choice)
/// to run regions of the calling thread on that thread alone.
void makeOpenMPSequential() {
  thread_local const bool done = [] {
    using SetThreads = void (*)(int);
    if (void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
      reinterpret_cast<SetThreads>(symbol)(1);
    return true;
  }();
  (void)done;
}

const dnnl::engine &engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

dnnl::memory::data_type dataType(DType dtype, std::string_view operand) {
  switch (dtype) {
  case DType::F32:
  case DType::TF32:
    return dnnl::memory::data_type::f32;
  case DType::BF16:
    return dnnl::memory::data_type::bf16;
  default:
    fail("matmul: operand {} is {}; oneDNN is given f32 or bf16", operand, support::irName(dtype));
  }
}

/// The numbers of a format of 8 bits, by pattern.
const std::array<float, 256> &eightBitNumbers(DType dtype) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, 2> tables;
    for (const DType format : {DType::E4M3, DType::E5M2})
      for (size_t pattern = 0; pattern < 256; ++pattern) {
        const auto byte = static_cast<std::byte>(pattern);
        double value = 0.0;
        support::toDoubles(format, {&byte, 1}, {&value, 1});
        tables[format == DType::E5M2][pattern] = static_cast<float>(value);
      }
    return tables;
  }();
  return tables[dtype == DType::E5M2];
}

float widened(DType dtype, const std::byte *from, int64_t element) {
  switch (dtype) {
  case DType::F32:
    return reinterpret_cast<const float *>(from)[element];
  case DType::BF16:
    return support::bf16ToFloat(reinterpret_cast<const uint16_t *>(from)[element]);
  case DType::F16:
    return support::f16ToFloat(reinterpret_cast<const uint16_t *>(from)[element]);
  case DType::E4M3:
  case DType::E5M2:
    return eightBitNumbers(dtype)[static_cast<uint8_t>(from[element])];
  default:
    fail("matmul: elements of {}; expected floats of at most 32 bits", support::irName(dtype));
  }
}

void narrow(DType dtype, std::byte *to, int64_t element, float value) {
  switch (dtype) {
  case DType::F32:
    reinterpret_cast<float *>(to)[element] = value;
    return;
  case DType::TF32: // held as f32
    reinterpret_cast<float *>(to)[element] = support::tf32FromFloat(value);
    return;
  case DType::BF16:
    reinterpret_cast<uint16_t *>(to)[element] = support::bf16FromDouble(value);
    return;
  case DType::F16:
    reinterpret_cast<uint16_t *>(to)[element] = support::f16FromDouble(value);
    return;
  default:
    fail("matmul: elements of {}; expected f32, bf16 or f16", support::irName(dtype));
  }
}

/// Copies columns of `rows` elements into dense rows, by tiles whose lines of cache are read and
/// written once each: those of a matrix of 2^n columns share a few places of the cache.
void copyColumnsIntoRows(float *to, int64_t toRow, const float *from, int64_t fromColumn,
                         int64_t rows, int64_t columns) {
  constexpr int64_t edge = 16;
  std::array<float, edge * edge> tile;
  for (int64_t row = 0; row < rows; row += edge)
    for (int64_t column = 0; column < columns; column += edge) {
      const int64_t height = std::min(edge, rows - row), width = std::min(edge, columns - column);
      for (int64_t c = 0; c < width; ++c)
        std::copy_n(from + row + (column + c) * fromColumn, height, &tile[size_t(c * edge)]);
      for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < width; ++c)
          to[(row + r) * toRow + column + c] = tile[size_t(c * edge + r)];
    }
}

/// Copies rows of `columns` elements into ones of `toType`; strides in elements.
void copyBlock(DType toType, std::byte *to, int64_t toRow, int64_t toColumn, DType fromType,
               const std::byte *from, int64_t fromRow, int64_t fromColumn, int64_t rows,
               int64_t columns) {
  const auto size = static_cast<int64_t>(support::byteSize(toType));
  if (toType == fromType && toColumn == 1 && fromColumn == 1) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(to + r * toRow * size, from + r * fromRow * size,
                  static_cast<size_t>(columns * size));
    return;
  }
  if (toType == fromType && size == 4 && toColumn == 1 && fromRow == 1) {
    copyColumnsIntoRows(reinterpret_cast<float *>(to), toRow, reinterpret_cast<const float *>(from),
                        fromColumn, rows, columns);
    return;
  }
  if (toType == DType::F32 && (fromType == DType::E4M3 || fromType == DType::E5M2)) {
    const std::array<float, 256> &numbers = eightBitNumbers(fromType);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        reinterpret_cast<float *>(to)[r * toRow + c * toColumn] =
            numbers[static_cast<uint8_t>(from[r * fromRow + c * fromColumn])];
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t source = r * fromRow + c * fromColumn, target = r * toRow + c * toColumn;
      narrow(toType, to, target, widened(fromType, from, source));
    }
  }
}

/// Multiplies dense rows by the scales of their elements, `scaleOf(row, column)`. By powers of two,
/// as all scales of programs are, that is exact, so that sums of the products are those of blocks
/// which are scaled afterwards.
template <typename ScaleOf>
void scaleElements(float *elements, int64_t rows, int64_t columns, ScaleOf scaleOf) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      *elements++ *= scaleOf(i, j);
}

/// The same matmul as c^T = b^T a^T: oneDNN wants rows of the output to be dense.
void transpose(MatmulSpec &spec) {
  for (MatmulOperand *operand : {&spec.a, &spec.b, &spec.c})
    std::swap(operand->rowStride, operand->columnStride);
  std::swap(spec.a, spec.b);
  std::swap(spec.m, spec.n);
}

/// How one dimension of the output is cut: 2^x blocks of nearly equal lengths.
struct Cut {
  int64_t length = 0, blocks = 1, granularity = 1;

  int64_t begin(int64_t block) const {
    return block == blocks ? length : length * block / blocks / granularity * granularity;
  }
  int64_t size(int64_t block) const { return begin(block + 1) - begin(block); }
};

/// Cuts the output into at most 32 blocks, by its shape alone: oneDNN adds the products of an
/// element in an order that depends on the block. Blocks of fewer than 4 MFLOP (40 us) would spend
/// their time in starting. Rows are cut first; blocks of columns are copied to and from dense ones,
/// which only a few long rows pay.
std::array<Cut, 2> cutOutput(const MatmulSpec &spec, int64_t batch) {
  constexpr int64_t wantedTasks = 32, fewTasks = 8, shortestRows = 96, shortestColumns = 192;
  constexpr double minimumFlops = 4e6;
  Cut rows{spec.m, 1, 8}, columns{spec.n, 1, 16};
  while (batch * rows.blocks * columns.blocks < wantedTasks &&
         2.0 * double(spec.m) * double(spec.n) * double(spec.k) >
             minimumFlops * 2.0 * double(rows.blocks * columns.blocks)) {
    // How often a half of the block would still hold the shortest one.
    if (rows.length / (2 * rows.blocks) / shortestRows > 0)
      rows.blocks *= 2;
    else if (batch * rows.blocks * columns.blocks < fewTasks &&
             columns.length / (2 * columns.blocks) / shortestColumns > 0)
      columns.blocks *= 2;
    else
      break;
  }
  return {rows, columns};
}

/// How a block of an operand is given to oneDNN: where it lies, or copied.
struct BlockLayout {
  DType dtype = DType::F32; ///< tf32: rounded numbers of f32
  int64_t rowStride = 0, columnStride = 1;
  bool copied = false;
};

/// Whether oneDNN adds the products of an element in one order, whichever way dense operands lie.
/// Its kernels for AVX2 cut sums of transposed operands elsewhere, and those of one row or column
/// too.
bool hasOneOrder() { return hasBf16Matmuls(); }

/// oneDNN has one kernel for dense blocks, whose bits depend on shapes only, and others where rows
/// have gaps. So blocks with gaps are copied into dense ones, rows or columns as they lie (into
/// rows where the order of sums depends on that); `widen`: into rows of `wide`.
BlockLayout blockLayout(const MatmulOperand &operand, int64_t rows, int64_t columns, bool widen,
                        DType wide = DType::F32) {
  const bool byRows = columns == 1 || operand.columnStride == 1;
  const int64_t gapless = byRows ? columns : rows;
  const bool dense = byRows ? rows == 1 || operand.rowStride == gapless
                            : columns == 1 || operand.columnStride == gapless;
  // A column whose elements lie apart is a row of one column each.
  if (widen || byRows)
    return {widen ? wide : operand.dtype, columns, 1, widen || !dense};
  if (!hasOneOrder())
    return {operand.dtype, columns, 1, true};
  return {operand.dtype, 1, rows, !dense};
}

} // namespace

struct Matmul::Impl {
  /// One worker's memory objects; only their addresses change from call to call.
  struct Handles {
    dnnl::memory a, b, bias, c, scratch;
    std::vector<dnnl_exec_arg_t> args;
  };

  /// A primitive for blocks of one shape, and where their copies lie in the scratch, in bytes;
  /// behind them comes the primitive's own scratch.
  struct Variant {
    BlockLayout a, b, c;
    size_t atA = 0, atB = 0, atC = 0, atBias = 0, end = 0;
    dnnl::matmul primitive;
    std::vector<Handles> handles; // one a worker
  };

  Impl(const MatmulSpec &spec, unsigned threads);
  const Variant *addVariant(int64_t m, int64_t n, unsigned threads);
  void runBlock(int64_t task, unsigned worker, const void *a, const void *b, const void *bias,
                void *c, const WorkerScratch &scratch);
  /// Of a block [m, n], densely.
  void scaleSums(float *sums, int64_t firstRow, int64_t m, int64_t firstColumn, int64_t n) const;

  MatmulSpec spec;
  bool swapped = false; // the caller's a is our b
  const float *scaleA = nullptr, *scaleB = nullptr;
  int64_t batchCount = 1;
  Cut rows, columns;
  std::vector<std::unique_ptr<Variant>> variants;
  std::vector<const Variant *> variantOf; // [row block][column block]
  dnnl::stream stream{engine()};          // without state on the CPU: shared by workers
  size_t scratchBytes = 0;
};

namespace {

/// Gives dimensions of length 1 the strides that dense ones have.
void dropUnitStrides(MatmulOperand &operand, int64_t rows, int64_t columns) {
  if (columns == 1)
    operand.columnStride = 1;
  if (rows == 1)
    operand.rowStride = operand.columnStride == 1 ? columns : 1;
}

void checkStrides(const MatmulOperand &operand, int64_t rows, int64_t columns,
                  std::string_view name) {
  const bool byRows = operand.columnStride == 1 && (rows == 1 || operand.rowStride >= columns);
  const bool byColumns = operand.rowStride == 1 && (columns == 1 || operand.columnStride >= rows);
  if (!byRows && !byColumns)
    fail("matmul: operand {} [{}, {}] has strides [{}, {}]; expected one of them to be 1 and the "
         "other to be no less than the length of that dimension",
         name, rows, columns, operand.rowStride, operand.columnStride);
}

/// A block as oneDNN sees it: dense rows, or dense columns.
dnnl::memory::desc describe(const BlockLayout &block, int64_t rows, int64_t columns,
                            std::string_view name) {
  const dnnl::memory::dims strides = block.columnStride == 1 || columns == 1 || rows == 1
                                         ? dnnl::memory::dims{columns, 1}
                                         : dnnl::memory::dims{1, rows};
  return {{rows, columns}, dataType(block.dtype, name), strides};
}

} // namespace

Matmul::Impl::Impl(const MatmulSpec &givenSpec, unsigned threads) : spec(givenSpec) {
  for (const MatmulOperand *operand : {&spec.a, &spec.b, &spec.c}) {
    if (operand->batchStrides.size() != spec.batch.size())
      fail("matmul: {} batch strides for {} batch dimensions", operand->batchStrides.size(),
           spec.batch.size());
  }
  for (const int64_t size : spec.batch)
    batchCount *= size;
  if (spec.m < 1 || spec.n < 1 || spec.k < 1 || batchCount < 1)
    fail("matmul: {} products of [{}, {}] and [{}, {}]; expected sizes of at least 1", batchCount,
         spec.m, spec.k, spec.k, spec.n);
  dropUnitStrides(spec.a, spec.m, spec.k);
  dropUnitStrides(spec.b, spec.k, spec.n);
  dropUnitStrides(spec.c, spec.m, spec.n);
  if (spec.c.columnStride != 1 && !spec.hasBias) {
    transpose(spec);
    swapped = true;
  }
  checkStrides(spec.a, spec.m, spec.k, "a");
  checkStrides(spec.b, spec.k, spec.n, "b");
  checkStrides(spec.c, spec.m, spec.n, "c");
  std::tie(rows, columns) = std::tuple_cat(cutOutput(spec, batchCount));
  spec.widen &= spec.a.dtype == DType::BF16;
  spec.widen |= spec.a.dtype == DType::F16 || spec.tf32 || spec.scaled();

  std::map<std::pair<int64_t, int64_t>, const Variant *> bySize;
  for (int64_t row = 0; row < rows.blocks; ++row) {
    for (int64_t column = 0; column < columns.blocks; ++column) {
      const Variant *&variant = bySize[{rows.size(row), columns.size(column)}];
      if (!variant)
        variant = addVariant(rows.size(row), columns.size(column), threads);
      variantOf.push_back(variant);
    }
  }
}

const Matmul::Impl::Variant *Matmul::Impl::addVariant(int64_t m, int64_t n, unsigned threads) {
  auto variant = std::make_unique<Variant>();
  const DType wide = spec.tf32 ? DType::TF32 : DType::F32;
  variant->a = blockLayout(spec.a, m, spec.k, spec.widen, wide);
  variant->b = blockLayout(spec.b, spec.k, n, spec.widen, wide);
  variant->c = blockLayout(spec.c, m, n, spec.widen && !spec.tf32); // of scaled ones the sums
  const auto place = [&](bool copied, int64_t elements) {
    const size_t at = variant->end;
    if (copied)
      variant->end += static_cast<size_t>(elements + 15) / 16 * 64;
    return at;
  };
  variant->atA = place(variant->a.copied, m * spec.k);
  variant->atB = place(variant->b.copied, spec.k * n);
  variant->atC = place(variant->c.copied, m * n);
  variant->atBias = place(spec.widen && spec.hasBias, n);

  const dnnl::memory::desc a = describe(variant->a, m, spec.k, "a");
  const dnnl::memory::desc b = describe(variant->b, spec.k, n, "b");
  const dnnl::memory::desc c = describe(variant->c, m, n, "c");
  const dnnl::memory::desc bias({1, n}, dataType(variant->c.dtype, "bias"),
                                dnnl::memory::dims{n, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (spec.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc operation =
      spec.hasBias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  const dnnl::matmul::primitive_desc description(operation, attributes, engine());
  if (std::string_view(description.impl_info_str()).starts_with("ref"))
    fail("matmul: no fast implementation on this CPU for {} inputs [{}, {}] and [{}, {}]",
         support::irName(spec.a.dtype), m, spec.k, spec.k, n);

  const dnnl::memory::desc scratch = description.scratchpad_desc();
  scratchBytes = std::max(scratchBytes, variant->end + scratch.get_size());
  variant->primitive = dnnl::matmul(description);
  for (unsigned worker = 0; worker < threads; ++worker) {
    const auto memory = [](const dnnl::memory::desc &desc) {
      return dnnl::memory(desc, engine(), DNNL_MEMORY_NONE);
    };
    Handles handles{memory(a), memory(b), {}, memory(c), memory(scratch), {}};
    handles.args = {{DNNL_ARG_SRC, handles.a.get()},
                    {DNNL_ARG_WEIGHTS, handles.b.get()},
                    {DNNL_ARG_DST, handles.c.get()},
                    {DNNL_ARG_SCRATCHPAD, handles.scratch.get()}};
    if (spec.hasBias) {
      handles.bias = memory(bias);
      handles.args.push_back({DNNL_ARG_BIAS, handles.bias.get()});
    }
    variant->handles.push_back(std::move(handles));
  }
  return variants.emplace_back(std::move(variant)).get();
}

void Matmul::Impl::runBlock(int64_t task, unsigned worker, const void *a, const void *b,
                            const void *bias, void *c, const WorkerScratch &scratch) {
  makeOpenMPSequential();
  const int64_t column = task % columns.blocks, row = task / columns.blocks % rows.blocks;
  int64_t rest = task / (columns.blocks * rows.blocks), batchA = 0, batchB = 0, batchC = 0;
  for (size_t d = spec.batch.size(); d-- > 0; rest /= spec.batch[d]) {
    const int64_t index = rest % spec.batch[d];
    batchA += index * spec.a.batchStrides[d];
    batchB += index * spec.b.batchStrides[d];
    batchC += index * spec.c.batchStrides[d];
  }
  const int64_t firstRow = rows.begin(row), firstColumn = columns.begin(column);
  const auto address = [](const void *base, DType dtype, int64_t element) {
    return const_cast<std::byte *>(static_cast<const std::byte *>(base)) +
           element * static_cast<int64_t>(support::byteSize(dtype));
  };
  const Variant &variant = *variantOf[static_cast<size_t>(row * columns.blocks + column)];
  const Handles &handles = variant.handles[worker];
  const auto setAddress = [](const dnnl::memory &memory, void *data) {
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(memory.get(), data), "set_data_handle");
  };
  const int64_t m = rows.size(row), n = columns.size(column);
  std::byte *own = scratch.of(worker);
  // The block itself, or its copy in the scratch.
  const auto copyIn = [&](const BlockLayout &block, const MatmulOperand &operand, std::byte *from,
                          size_t at, int64_t blockRows, int64_t blockColumns) {
    if (!block.copied)
      return from;
    if (block.columnStride == 1)
      copyBlock(block.dtype, own + at, block.rowStride, 1, operand.dtype, from, operand.rowStride,
                operand.columnStride, blockRows, blockColumns);
    else
      copyBlock(block.dtype, own + at, block.columnStride, 1, operand.dtype, from,
                operand.columnStride, operand.rowStride, blockColumns, blockRows);
    return own + at;
  };
  const bool ofBlocks = spec.scaling == MatmulScales::Blocks;
  std::byte *result = address(
      c, spec.c.dtype, batchC + firstRow * spec.c.rowStride + firstColumn * spec.c.columnStride);
  std::byte *blockA =
      copyIn(variant.a, spec.a, address(a, spec.a.dtype, batchA + firstRow * spec.a.rowStride),
             variant.atA, m, spec.k);
  if (ofBlocks)
    scaleElements(reinterpret_cast<float *>(blockA), m, spec.k, [&](int64_t i, int64_t l) {
      return scaleA[spec.a.scales.place(firstRow + i, l)];
    });
  std::byte *blockB = copyIn(variant.b, spec.b,
                             address(b, spec.b.dtype, batchB + firstColumn * spec.b.columnStride),
                             variant.atB, spec.k, n);
  if (ofBlocks)
    scaleElements(reinterpret_cast<float *>(blockB), spec.k, n, [&](int64_t l, int64_t j) {
      return scaleB[spec.b.scales.place(firstColumn + j, l)];
    });
  std::byte *blockC = result;
  if (variant.c.copied)
    blockC =
        spec.accumulate ? copyIn(variant.c, spec.c, result, variant.atC, m, n) : own + variant.atC;
  std::byte *blockBias = spec.hasBias ? address(bias, spec.c.dtype, firstColumn) : nullptr;
  if (spec.widen && spec.hasBias) {
    copyBlock(DType::F32, own + variant.atBias, n, 1, spec.c.dtype, blockBias, n, 1, 1, n);
    blockBias = own + variant.atBias;
  }
  setAddress(handles.a, blockA);
  setAddress(handles.b, blockB);
  setAddress(handles.c, blockC);
  setAddress(handles.scratch, own + variant.end);
  if (spec.hasBias)
    setAddress(handles.bias, blockBias);
  const dnnl_status_t status =
      dnnl_primitive_execute(variant.primitive.get(), stream.get(),
                             static_cast<int>(handles.args.size()), handles.args.data());
  if (status != dnnl_success)
    fail("matmul: oneDNN stopped with status {}", static_cast<int>(status));
  if (spec.scaled() && !ofBlocks)
    scaleSums(reinterpret_cast<float *>(blockC), firstRow, m, firstColumn, n);
  if (variant.c.copied)
    copyBlock(spec.c.dtype, result, spec.c.rowStride, spec.c.columnStride, variant.c.dtype, blockC,
              variant.c.rowStride, 1, m, n);
}

void Matmul::Impl::scaleSums(float *sums, int64_t firstRow, int64_t m, int64_t firstColumn,
                             int64_t n) const {
  const bool byRows = spec.scaling == MatmulScales::Rows;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j, ++sums)
      *sums = *sums * scaleA[byRows ? firstRow + i : 0] * scaleB[byRows ? firstColumn + j : 0];
}

bool hydra::runtime::hasBf16Matmuls() {
  static const bool has = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  return has;
}

Matmul::Matmul(const MatmulSpec &spec, unsigned threads) {
  makeOpenMPSequential();
  try {
    impl = std::make_unique<Impl>(spec, threads);
  } catch (const dnnl::error &error) {
    fail("matmul: oneDNN refuses the product of [{}, {}] and [{}, {}]: {}", spec.m, spec.k, spec.k,
         spec.n, error.what());
  }
}

Matmul::~Matmul() = default;
Matmul::Matmul(Matmul &&) noexcept = default;
Matmul &Matmul::operator=(Matmul &&) noexcept = default;

size_t Matmul::scratchBytesPerWorker() const { return impl->scratchBytes; }

int64_t Matmul::tasks() const {
  return impl->batchCount * impl->rows.blocks * impl->columns.blocks;
}

void Matmul::setScales(const float *a, const float *b) {
  impl->scaleA = impl->swapped ? b : a;
  impl->scaleB = impl->swapped ? a : b;
}

void Matmul::runTask(int64_t task, unsigned worker, const void *a, const void *b, const void *bias,
                     void *c, const WorkerScratch &scratch) const {
  if (impl->swapped)
    std::swap(a, b);
  impl->runBlock(task, worker, a, b, bias, c, scratch);
}

void Matmul::run(const void *a, const void *b, const void *bias, void *c, ThreadPool &pool,
                 const WorkerScratch &scratch) const {
  pool.parallelFor(tasks(), [&](int64_t task, unsigned worker) {
    runTask(task, worker, a, b, bias, c, scratch);
  });
}
