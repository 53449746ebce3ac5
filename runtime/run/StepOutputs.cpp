// Outputs are read after each run, before the next one has their bytes.
#include "runtime/run/StepOutputs.h"

#include "runtime/support/DType.h"
#include "runtime/support/OutputNames.h"

#include <algorithm>
#include <functional>
#include <numeric>

using hydra::support::kAppliedOutput;
using hydra::support::kGradNormOutput;
using hydra::support::kLossLabelsOutput;
using hydra::support::kLossOutput;
using hydra::support::kLossSumOutput;
using namespace hydra::runtime;
using namespace hydra::planfile;

namespace {

constexpr int64_t kMostNumbers = 4096;

int64_t numbersIn(const Tensor &tensor) {
  return std::accumulate(tensor.shape()->begin(), tensor.shape()->end(), int64_t{1},
                         std::multiplies());
}

} // namespace

bool StepOutputs::tells(const Plan &plan, const Output &output) {
  const std::string_view name = output.name()->string_view();
  const Tensor &tensor = *plan.tensors()->Get(output.tensor());
  return name != kLossOutput && name != kGradNormOutput && name != kAppliedOutput &&
         name != kLossSumOutput && name != kLossLabelsOutput && output.gradient_of() < 0 &&
         output.batch_dimension() < 0 && tensor.shape()->size() <= 2 &&
         numbersIn(tensor) <= kMostNumbers;
}

void StepOutputs::clear() {
  sums.clear();
  ofUpdate.clear();
  runs = 0;
  divided = false;
}

void StepOutputs::add(Executor &executor, const Program &program) {
  ++runs;
  addTo(sums, executor, program);
}

void StepOutputs::addUpdate(Executor &executor, const Program &program) {
  addTo(ofUpdate, executor, program);
}

void StepOutputs::addTo(std::vector<StepOutput> &to, Executor &executor, const Program &program) {
  size_t next = 0;
  for (const Output *output : *program.outputs()) {
    if (!tells(plan, *output))
      continue;
    const Tensor &tensor = *plan.tensors()->Get(output->tensor());
    const auto count = static_cast<size_t>(numbersIn(tensor));
    if (next == to.size())
      to.push_back({output->name()->str(),
                    {tensor.shape()->begin(), tensor.shape()->end()},
                    std::vector<double>(count)});
    const support::DType dtype = dtypeOf(tensor);
    std::vector<std::byte> bytes(count * support::byteSize(dtype));
    executor.read(output->tensor(), bytes);
    std::vector<double> values(count);
    support::toDoubles(dtype, bytes, values);
    // Floats in f32, as ranks add up theirs.
    const bool rounds = support::isFloat(dtype);
    std::ranges::transform(to[next].values, values, to[next].values.begin(),
                           [&](double sum, double value) {
                             return rounds ? double{static_cast<float>(sum + value)} : sum + value;
                           });
    ++next;
  }
}

const std::vector<StepOutput> &StepOutputs::means() {
  if (divided)
    return sums;
  for (StepOutput &one : sums)
    for (double &value : one.values)
      value /= static_cast<double>(runs);
  sums.insert(sums.end(), ofUpdate.begin(), ofUpdate.end());
  divided = true;
  return sums;
}
