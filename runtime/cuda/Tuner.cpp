// Candidates, their times, and whether they repeat their bits.
#include "runtime/cuda/Tuner.h"

#include "runtime/calls/MatmulCall.h"
#include "runtime/plan/TensorBytes.h"
#include "runtime/report/Table.h"
#include "runtime/support/DType.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>

namespace hydra::runtime::cuda {

using namespace hydra::planfile;
using support::fail;

void fillRandomly(const Device &device, CUdeviceptr to, size_t size) {
  std::vector<uint16_t> numbers(size_t{8} << 20);
  uint64_t state = 1;
  for (uint16_t &x : numbers) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = support::bf16FromDouble(double(int64_t(state) >> 11) * 0x1p-52);
  }
  const auto bytes = std::as_bytes(std::span(numbers));
  for (size_t at = 0; at < size; at += bytes.size())
    device.upload(to + at, bytes.first(std::min(bytes.size(), size - at)));
  device.wait("cannot fill GPU memory");
}

double medianMicroseconds(const Device &device, const std::function<void()> &run) {
  constexpr int runs = 10, rounds = 5;
  const Event begin, end;
  run();
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    begin.record(device.stream);
    for (int i = 0; i < runs; ++i)
      run();
    end.record(device.stream);
    device.wait("cannot time a step");
    times.push_back(1e6 * end.secondsSince(begin) / runs);
  }
  std::sort(times.begin(), times.end());
  return times[rounds / 2];
}

bool Tuner::repeats(const DeviceCall &call, const Node &node, CUdeviceptr scratch) {
  std::array<std::vector<std::byte>, 2> results;
  for (std::vector<std::byte> &bytes : results) {
    for (const bool running : {false, true}) {
      if (running)
        call.run(node.args, scratch, device.stream);
      for (flatbuffers::uoffset_t i = 0; i < node.step->args()->size(); ++i) {
        const Arg &arg = *node.step->args()->Get(i);
        if (arg.access() == Access::read)
          continue;
        const size_t size = extentBytes(*plan.tensors()->Get(arg.tensor()));
        if (!running) {
          driver().check(driver().cuMemsetD8Async(node.args[i], 0, size, device.stream),
                         "cannot clear a result");
          continue;
        }
        bytes.resize(bytes.size() + size);
        device.download(node.args[i], std::span(bytes).last(size));
      }
    }
  }
  return results[0] == results[1];
}

Tuner::Tuned Tuner::tuneMatmul(const Node &node) {
  constexpr int64_t candidates = 12;
  const CallSite site(plan, *node.step);
  const MatmulSpec spec = describeMatmul(site);
  const MatmulAlignment alignment = MatmulAlignment::of(spec, node.args);
  const auto &call = site.as<planfile::Matmul>();
  const auto matmul = [&](int64_t algorithm) {
    return CudaMatmul(library.matmuls(), spec, alignment, call.reduced_reduction(), algorithm,
                      call.multiprocessors());
  };
  std::vector<std::pair<double, int64_t>> times;
  const DeviceMemory scratch(matmul(0).workspaceBytes(), "the library's matmul");
  std::string refused;
  for (int64_t i = 0; i < candidates; ++i) {
    try {
      const CudaMatmul candidate = matmul(i);
      times.emplace_back(
          medianMicroseconds(device,
                             [&] { candidate.run(node.args, scratch.get(), device.stream); }),
          i);
    } catch (const NoSuchAlgorithm &) {
      break;
    } catch (const support::Error &error) {
      refused = error.what();
    }
  }
  if (times.empty())
    fail("{}: no algorithm runs: {}", support::shown(node.step->name()->string_view()), refused);
  Tuned choice{.name = fmt::format("matmul {} x {} x {}", spec.m, spec.n, spec.k),
               .chosen = "algorithm 0",
               .guessed = times[0].first,
               .best = times[0].first};
  std::sort(times.begin(), times.end());
  for (const auto &[microseconds, algorithm] : times)
    if (algorithm == 0 ||
        (microseconds < choice.guessed && repeats(matmul(algorithm), node, scratch.get()))) {
      choice.number = algorithm;
      choice.chosen = fmt::format("algorithm {}", algorithm);
      choice.best = microseconds;
      break;
    }
  return choice;
}

Tuner::Tuned Tuner::tuneLaunches(std::span<const Node> launches) {
  const Node &node = launches.front();
  const TensorShape q = CallSite(plan, *node.step, 1).tensor(0, "q", 4);
  Tuned choice;
  choice.name = fmt::format("{} {} x {} x {} x {}", node.step->name()->string_view(), q.sizes[0],
                            q.sizes[1], q.sizes[2], q.sizes[3]);
  choice.guessed = choice.best = medianMicroseconds(device, [&] {
    for (const Node &launch : launches)
      runNode(launch, device.stream);
  });
  try {
    const DeviceCall &call = library.prepare(CallSite(plan, *node.step, 1), node.args);
    const DeviceMemory scratch(call.workspaceBytes(), "the library's attention");
    const double microseconds =
        medianMicroseconds(device, [&] { call.run(node.args, scratch.get(), device.stream); });
    // More than one launch: sums over rows, which the library adds in the order blocks come.
    if (microseconds >= choice.best)
      choice.chosen = fmt::format("own; cuDNN {:.1f} us", microseconds);
    else if (!allowNondeterministic && launches.size() > 1)
      choice.chosen = fmt::format("own; cuDNN {:.1f} us, whose sums have no fixed order "
                                  "(--allow-nondeterministic)",
                                  microseconds);
    else if (!allowNondeterministic && !repeats(call, node, scratch.get()))
      choice.chosen = fmt::format("own; cuDNN {:.1f} us does not repeat its bits", microseconds);
    else {
      choice.number = 1;
      choice.chosen = "cuDNN";
      choice.best = microseconds;
    }
  } catch (const support::Error &error) {
    choice.chosen = fmt::format("own; {}", error.what());
  }
  return choice;
}

static void writeMatmul(StepT &step, int64_t algorithm, double guessed, double best) {
  const auto alternative = [&](int64_t number, double microseconds) {
    auto entry = std::make_unique<AlternativeT>();
    entry->description = fmt::format("cuBLASLt algorithm {}", number);
    MatmulT matmul = *step.action.AsMatmul();
    matmul.algorithm = static_cast<uint32_t>(number);
    entry->action.Set(matmul);
    entry->microseconds = microseconds;
    return entry;
  };
  step.alternatives.clear();
  step.alternatives.push_back(alternative(0, guessed));
  step.chosen = 0;
  if (algorithm != 0) {
    step.alternatives.push_back(alternative(algorithm, best));
    step.chosen = 1;
  }
}

/// Whether the alternative of a launch leaves its work to that of an earlier one.
static bool isDoneBefore(const Node &node) {
  return node.kernel && node.step->alternatives() && node.step->alternatives()->size() > 1 &&
         actionOf(*node.step, 1).as<Nothing>() != nullptr;
}

void Tuner::tune(const CudaProgram &program, const std::vector<StepT *> &steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Node &node = program.nodes[i];
    const bool matmul = steps[i] && !node.kernel && node.call;
    const bool launch = steps[i] && node.kernel && node.step->alternatives() &&
                        node.step->alternatives()->size() > 1 && !isDoneBefore(node);
    if (!matmul && !launch)
      continue;
    size_t count = 1;
    while (launch && i + count < steps.size() && isDoneBefore(program.nodes[i + count]))
      ++count;
    // Equal shapes have the same object or function.
    const void *key = matmul ? static_cast<const void *>(node.call) : node.function;
    auto [entry, isNew] = choices.try_emplace(key);
    Tuned &choice = entry->second;
    if (isNew) {
      order.push_back(key);
      choice = matmul ? tuneMatmul(node) : tuneLaunches(std::span(program.nodes).subspan(i, count));
    }
    ++choice.steps;
    if (matmul) {
      writeMatmul(*steps[i], choice.number, choice.guessed, choice.best);
      continue;
    }
    for (size_t j = i; j < i + count; ++j)
      steps[j]->chosen = static_cast<uint32_t>(choice.number);
    steps[i]->alternatives[0]->microseconds = choice.guessed;
    if (choice.number == 1)
      steps[i]->alternatives[1]->microseconds = choice.best;
  }
}

std::string Tuner::report() const {
  report::Table table(1);
  table.add({"step", "steps", "us", "tuned us", "chosen"});
  double before = 0.0, after = 0.0;
  for (const void *key : order) {
    const Tuned &choice = choices.at(key);
    table.add({choice.name, fmt::format("{}", choice.steps), fmt::format("{:.1f}", choice.guessed),
               fmt::format("{:.1f}", choice.best), choice.chosen});
    before += choice.steps * choice.guessed;
    after += choice.steps * choice.best;
  }
  return fmt::format("{}  all programs: {:.2f} ms, tuned {:.2f} ms\n", table.text(), 1e-3 * before,
                     1e-3 * after);
}

} // namespace hydra::runtime::cuda
