// Sampling from the scores of the last token.
#include "runtime/run/Generate.h"

#include "runtime/run/TensorValues.h"
#include "runtime/support/Error.h"
#include "runtime/support/Philox.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

/// The program of role `generate`, usually `logits`: tokens [B, S] in, scores [B, S, V] out.
struct ScoreProgram {
  uint32_t index = 0;
  const Input *input = nullptr;
  const Tensor *tokens = nullptr, *scores = nullptr;
  uint32_t scoresIndex = 0;
  int64_t length = 0, vocabulary = 0;
};

ScoreProgram findScores(const PlanFile &file) {
  const Plan &plan = file.plan();
  const auto &programs = *plan.programs();
  for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i) {
    const Program &program = *programs.Get(i);
    if (program.role() != ProgramRole::generate)
      continue;
    ScoreProgram found{.index = i};
    for (const Input *input : *program.inputs())
      if (input->kind() == InputKind::tokens && program.inputs()->size() == 1)
        found.input = input;
    for (const Output *output : *program.outputs())
      if (output->name()->string_view() == "logits")
        found.scoresIndex = output->tensor(), found.scores = plan.tensors()->Get(output->tensor());
    if (!found.input || !found.scores)
      fail("{}: program logits must take tokens alone and return logits", file.origin());
    found.tokens = plan.tensors()->Get(found.input->tensor());
    const std::vector<int64_t> in = shapeOf(*found.tokens), out = shapeOf(*found.scores);
    if (in.size() != 2 || out.size() != 3 || out[0] != in[0] || out[1] != in[1])
      fail("{}: program logits maps tokens {} to logits {}; expected [B, S] to [B, S, V]",
           file.origin(), support::shapeText(in), support::shapeText(out));
    found.length = in[1];
    found.vocabulary = out[2];
    return found;
  }
  fail("{} has no program logits, which generating text needs", file.origin());
}

/// The token that `u` in [0, 1) picks from scores.
int32_t choose(const std::vector<double> &scores, const GenerateOptions &options, double u) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](int32_t a, int32_t b) {
    const double x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (options.temperature == 0)
    return *std::min_element(order.begin(), order.end(), better);
  const size_t kept =
      options.topK > 0 ? std::min(order.size(), static_cast<size_t>(options.topK)) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), order.end(),
                    better);
  order.resize(kept);
  const double largest = scores[static_cast<size_t>(order[0])];
  std::vector<double> sums;
  double sum = 0;
  for (const int32_t token : order)
    sums.push_back(sum +=
                   std::exp((scores[static_cast<size_t>(token)] - largest) / options.temperature));
  const auto place = std::upper_bound(sums.begin(), sums.end(), u * sum);
  return order[std::min(static_cast<size_t>(place - sums.begin()), order.size() - 1)];
}

} // namespace

void hydra::runtime::generate(const PlanFile &file, Executor &executor,
                              std::vector<int32_t> context, const GenerateOptions &options,
                              const std::function<void(int32_t)> &emit) {
  const ScoreProgram program = findScores(file);
  if (context.empty())
    fail("the prompt is empty; expected at least one token");
  for (size_t i = 0; i < context.size(); ++i)
    if (context[i] < 0 || context[i] >= program.input->limit())
      fail("token {} of the prompt is {}; the model knows ids in [0, {})", i, context[i],
           program.input->limit());

  std::vector<int32_t> window(static_cast<size_t>(elementsOf(*program.tokens)));
  std::vector<std::byte> bytes(denseBytes(*program.scores));
  std::vector<double> scores(static_cast<size_t>(program.vocabulary));
  const support::DType dtype = dtypeOf(*program.scores);
  for (int64_t i = 0; i < options.tokens; ++i) {
    const size_t used = std::min(context.size(), static_cast<size_t>(program.length));
    // The model is causal: what stands behind the last token does not matter.
    std::copy(context.end() - static_cast<ptrdiff_t>(used), context.end(), window.begin());
    executor.write(program.input->tensor(), std::as_bytes(std::span(window)));
    executor.run(program.index);
    executor.read(program.scoresIndex, bytes);
    const size_t row = scores.size() * support::byteSize(dtype);
    support::toDoubles(dtype, std::span(bytes).subspan((used - 1) * row, row), scores);
    if (const auto bad =
            std::find_if(scores.begin(), scores.end(), [](double x) { return !std::isfinite(x); });
        bad != scores.end())
      fail("token {}: the score of id {} is {}", i, bad - scores.begin(), *bad);
    const support::Philox random(options.seed, "generate", static_cast<uint64_t>(i));
    context.push_back(choose(scores, options, random.uniform53(0)));
    emit(context.back());
  }
}
