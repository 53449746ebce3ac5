// Generated CPU kernels beside the memory bandwidth of the machine, on arrays far beyond the caches.
//
//   kernel-bench [--threads=2] [--rows=16384] [--columns=2048] [--rounds=20] [--target=host]
//
// Bytes are those that a kernel must read and write once. The yardsticks are memcpy, a copy with
// streaming stores (which do not read what they overwrite) and the triad a = b + s c with ordinary
// ones. Rounds of all take turns, and each line shows its best round.
#include "compiler/codegen/cpu/CpuModule.h"
#include "dialects/hydra/RowMath.h"
#include "runtime/cpu/NativeCode.h"
#include "runtime/cpu/ThreadPool.h"

#include "mlir/IR/MLIRContext.h"
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstring>
#include <memory>
#include <sys/mman.h>

using namespace hydra;
using hydra::cpu::Strides;

static unsigned threads = 2;
static int64_t rows = 16384, columns = 2048;
static int rounds = 20;
static std::string target = "host";

namespace {

/// A tensor of floats, its pages touched by the threads that will use them.
struct Array {
  Array(int64_t size, runtime::ThreadPool &pool)
      : size(size) {
    constexpr int64_t hugePage = 1 << 21, part = 1 << 19;
    const int64_t bytes = (size * 4 + hugePage - 1) / hugePage * hugePage;
    data = static_cast<float *>(std::aligned_alloc(hugePage, bytes));
    ::madvise(data, bytes, MADV_HUGEPAGE); // as the executor's arena
    pool.parallelFor((size + part - 1) / part, [&](int64_t task, unsigned) {
      for (int64_t i = task * part; i < std::min(size, (task + 1) * part); ++i)
        data[i] = static_cast<float>((i * 7919) % 1000) * 0.002f - 0.999f;
    });
  }
  ~Array() { std::free(data); }
  int64_t size;
  float *data;
};

struct Row {
  std::string name;
  double bytes;
  std::function<void()> run;
  double best = 1e30;
};

class Bench {
public:
  Bench() : pool(threads), module(llvm::cantFail(cpu::CpuTarget::get(target))) {
    context.disableMultithreading();
  }

  using Term = RowTerm;
  struct Input {
    RowForm form;
  };

  /// Adds a kernel over [rows, columns]. `flat`: every element is a row. `inPlace[i]`: the input that
  /// result i takes over.
  void add(const std::string &name, bool flat, std::vector<RowForm> inputs,
           llvm::function_ref<std::vector<std::pair<RowTerm, RowForm>>(llvm::ArrayRef<RowTerm>)> body,
           std::vector<int> inPlace = {}) {
    RowDomain domain = flat ? RowDomain{{rows, columns}, {}} : RowDomain{{rows}, {columns}};
    std::vector<RowInput> tensors;
    for (RowForm form : inputs)
      tensors.push_back({shapeOf(domain, form), RowType::F32, form});
    RowRecorder recorder(&context, domain, tensors);
    std::vector<RowTerm> terms;
    for (size_t i = 0; i < inputs.size(); ++i)
      terms.push_back({&recorder, recorder.input(i)});
    std::vector<RowValue> values;
    std::vector<RowResult> results;
    for (auto &[value, form] : body(terms)) {
      values.push_back(value);
      results.push_back({form, RowType::F32});
    }
    RowProgram program = recorder.finish(values, results);

    const int64_t perElement = 4 * (inputs.size() + results.size());
    int64_t grain = std::max<int64_t>(1, 131072 / (perElement * domain.columns()));
    if (flat)
      grain = grain / 64 * 64; // whole vectors
    const bool sums = llvm::any_of(program.results, [&](auto &r) { return program.isSummed(r); });
    if (sums)
      grain = std::max(grain, (domain.rows() + 63) / 64);
    const int64_t grains = (domain.rows() + grain - 1) / grain;
    Launch launch{domain.rows(), grain, {}, {}};
    double bytes = 0;
    std::vector<Strides> layouts;
    auto tensor = [&](llvm::ArrayRef<int64_t> shape) {
      arrays.push_back(std::make_unique<Array>(elements(shape), pool));
      return reinterpret_cast<char *>(arrays.back()->data);
    };
    for (const RowInput &input : program.inputs) {
      launch.args.push_back(tensor(input.shape));
      layouts.push_back(dense(input.shape));
      bytes += 4.0 * elements(input.shape);
    }
    std::vector<char *> partials;
    for (auto [i, result] : llvm::enumerate(program.results)) {
      llvm::SmallVector<int64_t> shape = shapeOf(domain, result.form);
      bytes += 4.0 * elements(shape);
      if (program.isSummed(result)) {
        partials.push_back(tensor({grains, elements(shape)}));
        continue;
      }
      launch.args.push_back(i < inPlace.size() ? launch.args[inPlace[i]] : tensor(shape));
      layouts.push_back(dense(shape));
    }
    launch.args.insert(launch.args.end(), partials.begin(), partials.end());
    launch.symbol = module.add(program, layouts, grain);
    launches.push_back(std::make_unique<Launch>(std::move(launch)));
    Launch *kept = launches.back().get();
    lines.push_back({name, bytes, [this, kept] { run(*kept); }});
  }

  void addCopyAndTriad() {
    const int64_t n = rows * columns;
    float *a = newArray(n), *b = newArray(n), *c = newArray(n);
    lines.push_back({"memcpy", 8.0 * n, [=, this] {
                       inParts(n, [=](int64_t i, int64_t size) {
                         std::memcpy(a + i, b + i, size * 4);
                       });
                     }});
    lines.push_back({"copy", 8.0 * n, [=, this] {
                       inParts(n, [=](int64_t i, int64_t size) {
                         using Vector = float __attribute__((vector_size(16)));
                         for (int64_t j = i; j < i + size; j += 4)
                           __builtin_nontemporal_store(*reinterpret_cast<Vector *>(b + j),
                                                       reinterpret_cast<Vector *>(a + j));
                       });
                     }});
    lines.push_back({"triad", 12.0 * n, [=, this] {
                       inParts(n, [=](int64_t i, int64_t size) {
                         for (int64_t j = i; j < i + size; ++j)
                           a[j] = b[j] + 1.5f * c[j];
                       });
                     }});
  }

  void measure() {
    std::vector<uint8_t> object = llvm::cantFail(module.link());
    runtime::NativeCode code(std::as_bytes(std::span(object)), "kernels");
    for (auto &launch : launches)
      launch->function = code.function(launch->symbol);
    for (int round = 0; round < rounds; ++round)
      for (Row &line : lines) {
        auto start = std::chrono::steady_clock::now();
        line.run();
        std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        line.best = std::min(line.best, seconds.count());
      }
    std::printf("%u threads, [%ld, %ld] f32, best of %d rounds\n\n", threads,
                rows, columns, rounds);
    std::printf("%-16s %9s %8s %12s %12s\n", "", "ms", "GB/s", "of copy", "of triad");
    auto speed = [](const Row &line) { return line.bytes / line.best * 1e-9; };
    for (const Row &line : lines)
      std::printf("%-16s %9.2f %8.1f %11.0f%% %11.0f%%\n", line.name.c_str(), line.best * 1e3,
                  speed(line), 100 * speed(line) / speed(lines[1]),
                  100 * speed(line) / speed(lines[2]));
  }

private:
  struct Launch {
    int64_t count, grain;
    std::vector<char *> args;
    std::string symbol;
    runtime::KernelFunction function = nullptr;
  };

  void run(const Launch &launch) {
    const int64_t grains = (launch.count + launch.grain - 1) / launch.grain;
    pool.parallelFor(grains, [&](int64_t g, unsigned) {
      launch.function(launch.args.data(), g * launch.grain,
                      std::min(launch.count, (g + 1) * launch.grain));
    });
  }

  void inParts(int64_t n, llvm::function_ref<void(int64_t, int64_t)> body) {
    // Parts as large as an array are what memcpy needs to choose streaming stores.
    const int64_t part = (n / threads + 63) / 64 * 64;
    pool.parallelFor(threads, [&](int64_t task, unsigned) {
      body(task * part, std::min(part, n - task * part));
    });
  }

  float *newArray(int64_t n) {
    arrays.push_back(std::make_unique<Array>(n, pool));
    return arrays.back()->data;
  }

  static llvm::SmallVector<int64_t> shapeOf(const RowDomain &domain, RowForm form) {
    llvm::SmallVector<int64_t> shape;
    if (variesOverRows(form))
      llvm::append_range(shape, domain.rowShape);
    if (variesOverColumns(form))
      llvm::append_range(shape, domain.innerShape);
    return shape;
  }

  static Strides dense(llvm::ArrayRef<int64_t> shape) {
    Strides strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * shape[i];
    return strides;
  }

  static int64_t elements(llvm::ArrayRef<int64_t> shape) {
    int64_t n = 1;
    for (int64_t d : shape)
      n *= d;
    return n;
  }

  mlir::MLIRContext context;
  runtime::ThreadPool pool;
  cpu::CpuModule module;
  std::vector<std::unique_ptr<Array>> arrays;
  std::vector<std::unique_ptr<Launch>> launches;
  std::vector<Row> lines;
};

using Results = std::vector<std::pair<RowTerm, RowForm>>;
constexpr RowForm tile = RowForm::Tile, column = RowForm::Column, row = RowForm::Row,
                  scalar = RowForm::Scalar;

} // namespace

int main(int argc, char **argv) {
  CLI::App app("generated CPU kernels beside the memory bandwidth of the machine");
  app.add_option("--threads", threads);
  app.add_option("--rows", rows);
  app.add_option("--columns", columns);
  app.add_option("--rounds", rounds);
  app.add_option("--target", target, "host, x86-64-v3 or x86-64-v4");
  CLI11_PARSE(app, argc, argv);
  Bench bench;
  bench.addCopyAndTriad();
  bench.add("rms_norm", false, {tile, column}, [](llvm::ArrayRef<RowTerm> in) -> Results {
    RowTerm r = rsqrt(mean(in[0] * in[0]) + 1e-5);
    return {{in[0] * r * in[1], tile}, {r, row}};
  });
  bench.add("rms_norm_grad", false, {tile, tile, column, row},
            [](llvm::ArrayRef<RowTerm> in) -> Results {
              RowTerm n = in[1] * in[3], h = in[0] * in[2];
              return {{in[3] * (h - n * mean(h * n)), tile}, {sumRows(in[0] * n, RowForm::Tile), column}};
            });
  bench.add("softmax", false, {tile}, [](llvm::ArrayRef<RowTerm> in) -> Results {
    RowTerm p = exp(in[0] - max(in[0]));
    return {{p * (1.0 / sum(p)), tile}};
  });
  bench.add("swiglu", true, {tile, tile}, [](llvm::ArrayRef<RowTerm> in) -> Results {
    return {{in[0] * sigmoid(in[0]) * in[1], tile}};
  });
  bench.add("swiglu_grad", true, {tile, tile, tile}, [](llvm::ArrayRef<RowTerm> in) -> Results {
    RowTerm dy = in[0], a = in[1], b = in[2], s = sigmoid(a);
    return {{dy * b * (s * (a * (1.0 - s) + 1.0)), tile}, {dy * (a * s), tile}};
  });
  bench.add(
      "adamw", true, {tile, tile, tile, tile, scalar},
      [](llvm::ArrayRef<RowTerm> in) -> Results {
        RowTerm p = in[0], g = in[3], rate = in[4] * 1e-3;
        RowTerm m = in[1] * 0.9 + g * 0.1, v = in[2] * 0.999 + g * g * 0.001;
        return {{p - p * (rate * 0.1) - rate * m / (sqrt(v) + 1e-8), tile}, {m, tile}, {v, tile}};
      },
      {0, 1, 2});
  bench.add("add", true, {tile, tile}, [](llvm::ArrayRef<RowTerm> in) -> Results {
    return {{in[0] + in[1], tile}};
  });
  bench.measure();
  return 0;
}
