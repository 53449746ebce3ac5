// Compiles, loads, runs and compares.
#include "test/unit/codegen/KernelRunner.h"

#include "runtime/cpu/NativeCode.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sys/mman.h>

using namespace hydra;
using namespace hydra::test;
using hydra::cpu::Strides;

cpu::CpuTarget hydra::test::testTarget() {
  const char *name = std::getenv("HYDRA_TEST_TARGET");
  return llvm::cantFail(cpu::CpuTarget::get(name ? name : "host"));
}

//===-- Tensors -----------------------------------------------------------------------------===//

Strides hydra::test::denseStrides(llvm::ArrayRef<int64_t> shape) {
  Strides strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

static int64_t elementsOf(llvm::ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape)
    n *= d;
  return n;
}

template <typename Visit> void TypedTensor::forEachOffset(Visit visit) const {
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t n = 0, end = elementsOf(shape); n < end; ++n) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      offset += index[d] * strides[d];
    visit(n, first + offset * storageBytes(type));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

TypedTensor::TypedTensor(llvm::ArrayRef<int64_t> shape, Strides layout, RowType type)
    : shape(shape), strides(std::move(layout)), type(type) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip(shape, strides))
    last += (size - 1) * stride;
  const size_t page = 4096, needed = (last + 1) * storageBytes(type), guard = 256;
  size = (needed + guard + page - 1) / page * page;
  first = size - needed;
  void *memory =
      mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(static_cast<char *>(memory) + size, page, PROT_NONE))
    throw std::runtime_error("cannot map memory");
  bytes = static_cast<char *>(memory);
  std::memset(bytes, 0x5a, size);
  isElement.assign(size, 0);
  forEachOffset(
      [&](int64_t, size_t at) { std::fill_n(isElement.begin() + at, storageBytes(type), 1); });
}

TypedTensor::~TypedTensor() { munmap(bytes, size + 4096); }

void TypedTensor::fill(const Numbers &numbers) {
  forEachOffset([&](int64_t n, size_t at) {
    const double number = roundTo(numbers[n], type);
    support::fromDoubles(formatOf(type), {&number, 1},
                         std::as_writable_bytes(std::span(&bytes[at], storageBytes(type))));
  });
}

Numbers TypedTensor::read() const {
  Numbers numbers(elementsOf(shape));
  // Of truth values the byte, which is to be 0 or 1.
  const support::DType format = type == RowType::I1 ? support::DType::U8 : formatOf(type);
  forEachOffset([&](int64_t n, size_t at) {
    support::toDoubles(format, std::as_bytes(std::span(&bytes[at], storageBytes(type))),
                       {&numbers[n], 1});
  });
  return numbers;
}

bool TypedTensor::guardsHold() const {
  for (size_t i = 0; i < size; ++i)
    if (!isElement[i] && bytes[i] != 0x5a)
      return false;
  return true;
}

//===-- Running -----------------------------------------------------------------------------===//

static llvm::SmallVector<int64_t> shapeOf(const RowDomain &domain, RowForm form) {
  llvm::SmallVector<int64_t> shape;
  if (variesOverRows(form))
    llvm::append_range(shape, domain.rowShape);
  if (variesOverColumns(form))
    llvm::append_range(shape, domain.innerShape);
  return shape;
}

std::vector<Numbers> hydra::test::runKernel(const RowProgram &program,
                                            const std::vector<Numbers> &inputs,
                                            const RunOptions &options) {
  auto layout = [](const std::vector<Strides> &given, size_t i, llvm::ArrayRef<int64_t> shape) {
    return i < given.size() && !given[i].empty() ? given[i] : denseStrides(shape);
  };
  std::vector<std::unique_ptr<TypedTensor>> owned;
  std::vector<TypedTensor *> reads, writes;
  auto make = [&](llvm::ArrayRef<int64_t> shape, Strides strides, RowType type) {
    owned.push_back(std::make_unique<TypedTensor>(shape, std::move(strides), type));
    return owned.back().get();
  };
  std::vector<Strides> layouts;
  for (auto [i, input] : llvm::enumerate(program.inputs)) {
    reads.push_back(make(input.shape, layout(options.inputLayouts, i, input.shape), input.type));
    reads.back()->fill(inputs[i]);
    layouts.push_back(reads.back()->layout());
  }
  for (auto [i, result] : llvm::enumerate(program.results)) {
    llvm::SmallVector<int64_t> shape = shapeOf(program.domain, result.form);
    bool taken = i < options.inPlace.size() && options.inPlace[i] >= 0;
    writes.push_back(taken ? reads[options.inPlace[i]]
                           : make(shape, layout(options.resultLayouts, i, shape), result.type));
    if (!program.isSummed(result))
      layouts.push_back(writes.back()->layout());
  }

  int64_t rows = program.domain.rows();
  int64_t grain = options.grain ? options.grain : std::max<int64_t>(1, (rows + 6) / 7);
  int64_t grains = (rows + grain - 1) / grain;
  cpu::CpuModule module(testTarget());
  std::string symbol = module.add(program, layouts, grain);
  std::vector<char *> args;
  for (TypedTensor *tensor : reads)
    args.push_back(tensor->data());
  struct Sum {
    size_t result;
    TypedTensor *partial;
    std::string combine;
  };
  std::vector<Sum> sums;
  for (auto [i, result] : llvm::enumerate(program.results)) {
    if (!program.isSummed(result)) {
      args.push_back(writes[i]->data());
      continue;
    }
    llvm::SmallVector<int64_t> shape = shapeOf(program.domain, result.form);
    sums.push_back({i, make({grains, elementsOf(shape)}, {elementsOf(shape), 1}, RowType::F32),
                    module.addCombine(grains, shape, writes[i]->layout(), result.type)});
  }
  for (Sum &sum : sums)
    args.push_back(sum.partial->data());

  std::vector<uint8_t> object = llvm::cantFail(module.link());
  runtime::NativeCode code(std::as_bytes(std::span(object)), "kernels");
  runtime::KernelFunction kernel = code.function(symbol);
  for (int64_t g = 0; g < grains; ++g) {
    int64_t n = options.backwards ? grains - 1 - g : g;
    kernel(args.data(), n * grain, std::min(rows, (n + 1) * grain));
  }
  for (Sum &sum : sums) {
    char *pair[] = {sum.partial->data(), writes[sum.result]->data()};
    int64_t columns = elementsOf(shapeOf(program.domain, program.results[sum.result].form));
    for (int64_t first = 0; first < columns; first += 32)
      code.function(sum.combine)(pair, first, std::min(columns, first + 32));
  }
  std::vector<Numbers> results;
  for (TypedTensor *tensor : writes)
    results.push_back(tensor->read());
  for (auto &tensor : owned)
    EXPECT_TRUE(tensor->guardsHold()) << "wrote outside of a tensor";
  return results;
}

std::vector<Numbers> hydra::test::randomInputs(const RowProgram &program, uint64_t seed,
                                               int64_t limit) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Numbers> inputs;
  for (const RowInput &input : program.inputs) {
    Numbers numbers(elementsOf(input.shape));
    for (double &x : numbers)
      x = isFloat(input.type) ? roundTo(normal(random), input.type)
                              : static_cast<double>(random() % limit);
    inputs.push_back(std::move(numbers));
  }
  return inputs;
}

void hydra::test::expectMatches(const RowProgram &program, const std::vector<Numbers> &inputs,
                                const RunOptions &options) {
  std::vector<Numbers> exact = evaluateRows(program, inputs, false);
  std::vector<Numbers> rounded = evaluateRows(program, inputs, true);
  std::vector<Numbers> out = runKernel(program, inputs, options);
  for (size_t r = 0; r < out.size(); ++r) {
    ASSERT_EQ(out[r].size(), exact[r].size());
    double allowed = 0.0, scale = 0.0, worst = 0.0;
    size_t where = 0;
    for (size_t i = 0; i < out[r].size(); ++i) {
      allowed = std::max(allowed, std::abs(rounded[r][i] - exact[r][i]));
      scale = std::max(scale, std::abs(exact[r][i]));
      double error = std::abs(out[r][i] - exact[r][i]);
      if (!(error <= worst)) {
        worst = error;
        where = i;
      }
    }
    EXPECT_LE(worst, 2.0 * allowed + 1e-6 * scale)
        << "result " << r << " element " << where << ": " << out[r][where] << ", expected "
        << exact[r][where];
  }
}
