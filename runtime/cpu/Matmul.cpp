// Cuts a product into blocks of the output and prepares one sequential oneDNN primitive for each
// of the few shapes of a block.
#include "runtime/cpu/Matmul.h"

#include "runtime/support/Error.h"

#include <dlfcn.h>
#include <dnnl.hpp>

#include <algorithm>
#include <array>
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
    return dnnl::memory::data_type::f32;
  case DType::BF16:
    return dnnl::memory::data_type::bf16;
  default:
    fail("matmul: operand {} is {}; expected f32 or bf16", operand, support::irName(dtype));
  }
}

/// Rows of `columns` elements, `to` and `from` of f32 or bf16.
void convertBlock(DType toType, std::byte *to, int64_t toRow, DType fromType, const std::byte *from,
                  int64_t fromRow, int64_t fromColumn, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t source = r * fromRow + c * fromColumn, target = r * toRow + c;
      const float value =
          fromType == DType::F32
              ? reinterpret_cast<const float *>(from)[source]
              : support::bf16ToFloat(reinterpret_cast<const uint16_t *>(from)[source]);
      if (toType == DType::F32)
        reinterpret_cast<float *>(to)[target] = value;
      else
        reinterpret_cast<uint16_t *>(to)[target] = support::bf16FromDouble(value);
    }
  }
}

/// The same product as c^T = b^T a^T: oneDNN wants rows of the output to be dense.
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

/// Cuts the output into at most 32 blocks. Blocks of fewer than 4 MFLOP (40 us) would spend their
/// time in starting. A transposed operand is repacked for each block that reads it, at a price that
/// only long blocks pay: measured on Zen 4 (k = 1536), 96 x 192 runs at 95 GFLOP/s when no operand
/// is transposed; a transposed b needs 192 rows for 103 of 110 GFLOP/s, a transposed a 384 columns
/// for 101, both of them 384 rows for 90.
std::array<Cut, 2> cutOutput(const MatmulSpec &spec, int64_t batch) {
  constexpr int64_t wantedTasks = 32;
  constexpr double minimumFlops = 4e6;
  const bool transposedA = spec.a.columnStride != 1, transposedB = spec.b.columnStride != 1;
  const int64_t shortestRows = transposedB ? (transposedA ? 384 : 192) : 96;
  const int64_t shortestColumns = transposedA && !transposedB ? 384 : 192;
  Cut rows{spec.m, 1, 8}, columns{spec.n, 1, 16};
  while (batch * rows.blocks * columns.blocks < wantedTasks &&
         2.0 * double(spec.m) * double(spec.n) * double(spec.k) >
             minimumFlops * 2.0 * double(rows.blocks * columns.blocks)) {
    // How often a half of the block would still hold the shortest one.
    const int64_t rowRoom = rows.length / (2 * rows.blocks) / shortestRows;
    const int64_t columnRoom = columns.length / (2 * columns.blocks) / shortestColumns;
    if (rowRoom == 0 && columnRoom == 0)
      break;
    (rowRoom >= columnRoom ? rows : columns).blocks *= 2;
  }
  return {rows, columns};
}

} // namespace

struct Matmul::Impl {
  /// One worker's memory objects; only their addresses change from call to call.
  struct Handles {
    dnnl::memory a, b, bias, c, scratch;
    std::vector<dnnl_exec_arg_t> args;
  };

  /// A primitive for blocks of one shape.
  struct Variant {
    dnnl::matmul primitive;
    std::vector<Handles> handles; // one a worker
  };

  Impl(const MatmulSpec &spec, unsigned threads);
  const Variant *addVariant(int64_t m, int64_t n, unsigned threads);
  dnnl::memory::desc describe(const MatmulOperand &operand, int64_t rows, int64_t columns,
                              std::string_view name) const;
  void runBlock(int64_t task, unsigned worker, const void *a, const void *b, const void *bias,
                void *c, const WorkerScratch &scratch);

  /// Where a block of the widened operands and result lies in the scratch, in bytes.
  struct WidenedBlock {
    size_t a, b, c, bias, end;
  };
  static WidenedBlock widenedBlock(int64_t m, int64_t n, int64_t k) {
    const auto bytes = [](int64_t elements) {
      return static_cast<size_t>(elements + 15) / 16 * 64;
    };
    const size_t b = bytes(m * k), c = b + bytes(k * n), bias = c + bytes(m * n);
    return {0, b, c, bias, bias + bytes(n)};
  }

  MatmulSpec spec;
  MatmulSpec computed;  // what the primitives see: dense f32 blocks where operands are widened
  bool swapped = false; // the caller's a is our b
  int64_t batchCount = 1;
  Cut rows, columns;
  std::vector<std::unique_ptr<Variant>> variants;
  std::vector<const Variant *> variantOf; // [row block][column block]
  dnnl::stream stream{engine()};          // without state on the CPU: shared by workers
  size_t scratchBytes = 0;
};

Matmul::Impl::Impl(const MatmulSpec &givenSpec, unsigned threads) : spec(givenSpec) {
  for (const MatmulOperand *operand : {&spec.a, &spec.b, &spec.c}) {
    if (operand->batchStrides.size() != spec.batch.size())
      fail("matmul: {} batch strides for {} batch dimensions", operand->batchStrides.size(),
           spec.batch.size());
  }
  if (spec.c.columnStride != 1 && spec.c.rowStride == 1 && !spec.hasBias) {
    transpose(spec);
    swapped = true;
  }
  for (const int64_t size : spec.batch)
    batchCount *= size;
  if (spec.m < 1 || spec.n < 1 || spec.k < 1 || batchCount < 1)
    fail("matmul: {} products of [{}, {}] and [{}, {}]; expected sizes of at least 1", batchCount,
         spec.m, spec.k, spec.k, spec.n);
  std::tie(rows, columns) = std::tuple_cat(cutOutput(spec, batchCount));
  spec.widen &= spec.a.dtype == DType::BF16 && spec.b.dtype == DType::BF16;
  computed = spec;

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

dnnl::memory::desc Matmul::Impl::describe(const MatmulOperand &operand, int64_t rows,
                                          int64_t columns, std::string_view name) const {
  // The stride of a dimension of length 1 is never used; give oneDNN one it recognises.
  int64_t rowStride = operand.rowStride, columnStride = operand.columnStride;
  if (columns == 1)
    columnStride = 1;
  if (rows == 1 && columnStride == 1)
    rowStride = columns;
  else if (rows == 1)
    rowStride = 1;
  const bool rowMajor = columnStride == 1 && (rowStride >= columns || rows == 1);
  const bool columnMajor = rowStride == 1 && (columnStride >= rows || columns == 1);
  if (!rowMajor && !columnMajor) {
    fail("matmul: operand {} [{}, {}] has strides [{}, {}]; expected one of them to be 1 and the "
         "other to be no less than the length of that dimension",
         name, rows, columns, operand.rowStride, operand.columnStride);
  }
  return {
      {rows, columns}, dataType(operand.dtype, name), dnnl::memory::dims{rowStride, columnStride}};
}

const Matmul::Impl::Variant *Matmul::Impl::addVariant(int64_t m, int64_t n, unsigned threads) {
  if (spec.widen) {
    computed.a = {DType::F32, {}, spec.k, 1};
    computed.b = {DType::F32, {}, n, 1};
    computed.c = {DType::F32, {}, n, 1};
  }
  const dnnl::memory::desc a = describe(computed.a, m, spec.k, "a");
  const dnnl::memory::desc b = describe(computed.b, spec.k, n, "b");
  const dnnl::memory::desc c = describe(computed.c, m, n, "c");
  const dnnl::memory::desc bias({1, n}, dataType(computed.c.dtype, "bias"),
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
  const size_t widened = spec.widen ? widenedBlock(m, n, spec.k).end : 0;
  scratchBytes = std::max(scratchBytes, widened + scratch.get_size());
  auto variant = std::make_unique<Variant>();
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
  std::byte *blockA = address(a, spec.a.dtype, batchA + firstRow * spec.a.rowStride);
  std::byte *blockB = address(b, spec.b.dtype, batchB + firstColumn * spec.b.columnStride);
  std::byte *blockC = address(
      c, spec.c.dtype, batchC + firstRow * spec.c.rowStride + firstColumn * spec.c.columnStride);
  std::byte *blockBias = spec.hasBias ? address(bias, spec.c.dtype, firstColumn) : nullptr;
  std::byte *own = scratch.of(worker), *result = blockC;
  const int64_t m = rows.size(row), n = columns.size(column);
  if (spec.widen) {
    const WidenedBlock at = widenedBlock(m, n, spec.k);
    convertBlock(DType::F32, own + at.a, spec.k, spec.a.dtype, blockA, spec.a.rowStride,
                 spec.a.columnStride, m, spec.k);
    convertBlock(DType::F32, own + at.b, n, spec.b.dtype, blockB, spec.b.rowStride,
                 spec.b.columnStride, spec.k, n);
    if (spec.accumulate)
      convertBlock(DType::F32, own + at.c, n, spec.c.dtype, blockC, spec.c.rowStride, 1, m, n);
    if (spec.hasBias) {
      convertBlock(DType::F32, own + at.bias, n, spec.c.dtype, blockBias, n, 1, 1, n);
      blockBias = own + at.bias;
    }
    blockA = own + at.a;
    blockB = own + at.b;
    blockC = own + at.c;
    own += at.end;
  }
  setAddress(handles.a, blockA);
  setAddress(handles.b, blockB);
  setAddress(handles.c, blockC);
  setAddress(handles.scratch, own);
  if (spec.hasBias)
    setAddress(handles.bias, blockBias);
  const dnnl_status_t status =
      dnnl_primitive_execute(variant.primitive.get(), stream.get(),
                             static_cast<int>(handles.args.size()), handles.args.data());
  if (status != dnnl_success)
    fail("matmul: oneDNN stopped with status {}", static_cast<int>(status));
  if (spec.widen)
    convertBlock(spec.c.dtype, result, spec.c.rowStride, DType::F32, blockC, n, 1, m, n);
}

bool hydra::runtime::hasBf16Products() {
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

void Matmul::run(const void *a, const void *b, const void *bias, void *c, ThreadPool &pool,
                 const WorkerScratch &scratch) const {
  const int64_t tasks = impl->batchCount * impl->rows.blocks * impl->columns.blocks;
  if (impl->swapped)
    std::swap(a, b);
  pool.parallelFor(tasks, [&](int64_t task, unsigned worker) {
    impl->runBlock(task, worker, a, b, bias, c, scratch);
  });
}
