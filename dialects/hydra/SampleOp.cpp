// The choice of the next token.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "runtime/support/Integers.h"
#include "runtime/support/Philox.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace hydra {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kWordBits = 32;

/// A row of `settings`, as the description names them.
struct Settings {
  double temperature, topK, topP, minP, penalty;

  explicit Settings(const double *row)
      : temperature(row[0]), topK(row[1]), topP(row[2]), minP(row[3]), penalty(row[4]) {}
};

/// The word of a number that is i32.
uint32_t wordOf(double number) { return static_cast<uint32_t>(static_cast<int64_t>(number)); }

/// In (0, 1), of 53 bits.
double uniformOf(const double *draw) {
  const auto words = support::philox4x32({wordOf(draw[2]), 0, wordOf(draw[3]), 0},
                                         {wordOf(draw[0]), wordOf(draw[1])});
  const uint64_t bits = uint64_t{words[1]} << 32 | words[0];
  return static_cast<double>(bits >> 11 | 1) * 0x1p-53;
}

/// The ids that may be drawn, in their order.
std::vector<int64_t> keptIds(const std::vector<double> &weights, const std::vector<double> &scores,
                             const Settings &settings) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  if (settings.topK >= 1 && settings.topK < static_cast<double>(order.size()))
    order.resize(static_cast<size_t>(settings.topK));
  if (settings.topP < 1) {
    double all = 0, sum = 0;
    for (int64_t id : order)
      all += weights[id];
    size_t count = 0;
    while (count < order.size() && (count == 0 || sum < settings.topP * all))
      sum += weights[order[count++]];
    order.resize(count);
  }
  const double least = std::min(settings.minP, 1.0);
  llvm::erase_if(order, [&](int64_t id) { return weights[id] < least; });
  llvm::sort(order);
  return order;
}

/// As the description of the operation says.
int64_t sample(std::vector<double> scores, llvm::function_ref<bool(int64_t)> isSeen,
               const Settings &settings, double u) {
  for (auto [id, score] : llvm::enumerate(scores)) {
    if (isSeen(id))
      score = score > 0 ? score / settings.penalty : score * settings.penalty;
    if (!(score < kInfinity))
      return -1 - static_cast<int64_t>(id);
  }
  const auto best = std::max_element(scores.begin(), scores.end());
  if (*best == -kInfinity)
    return -1;
  if (!(settings.temperature > 0))
    return best - scores.begin();
  std::vector<double> weights;
  for (double score : scores)
    weights.push_back(std::exp((score - *best) / settings.temperature));
  const std::vector<int64_t> kept = keptIds(weights, scores, settings);
  double all = 0, sum = 0;
  for (int64_t id : kept)
    all += weights[id];
  for (int64_t id : kept)
    if ((sum += weights[id]) > u * all)
      return id;
  return kept.back();
}

} // namespace

LogicalResult SampleOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  Value scores = op.getScores(), tokens = op.getTokens(), seen = op.getSeen();
  if (failed(infer.wantRank(scores, "scores", 2)) || failed(infer.wantRank(tokens, "tokens", 2)))
    return failure();
  const int64_t batch = infer.shape(scores)[0], ids = infer.shape(scores)[1];
  if (failed(infer.wantExact(scores, "scores", {batch, ids})) ||
      failed(infer.wantInteger(tokens, "tokens")) ||
      failed(infer.wantShape(tokens, "tokens", {batch, infer.shape(tokens)[1]})) ||
      failed(infer.wantInteger(seen, "seen")) ||
      failed(infer.wantShape(seen, "seen", {batch, support::ceilDiv(ids, kWordBits)})) ||
      failed(infer.wantExact(op.getPosition(), "position", {batch})) ||
      failed(infer.wantExact(op.getSettings(), "settings", {batch, kSettings})) ||
      failed(infer.wantInteger(op.getDraw(), "draw")) ||
      failed(infer.wantShape(op.getDraw(), "draw", {batch, kDraw})))
    return failure();
  if (ids > kMostIds)
    return infer.fail("draws from " + Twine(ids) + " ids; expected at most " + Twine(kMostIds));
  types.push_back(infer.tensor({batch}, IntegerType::get(infer.context, 32)));
  types.push_back(seen.getType());
  return success();
}

LogicalResult SampleOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const RefTensor &scores = *in[0], &tokens = *in[1], &position = *in[3];
  const int64_t ids = scores.cols(), words = in[2]->cols();
  std::vector<double> &seen = out[1].data;
  seen = in[2]->data;
  for (int64_t b = 0; b < scores.rows(); ++b) {
    if (position.data[b] < 0)
      continue; // 0
    double *row = &seen[b * words];
    if (position.data[b] == 0)
      std::fill_n(row, words, 0.0);
    for (int64_t t = 0; t < tokens.cols(); ++t) {
      const auto id = static_cast<int64_t>(tokens.data[b * tokens.cols() + t]);
      if (id >= 0 && id < ids)
        row[id / kWordBits] =
            static_cast<int32_t>(wordOf(row[id / kWordBits]) | uint32_t{1} << id % kWordBits);
    }
    auto isSeen = [&](int64_t id) {
      return (wordOf(row[id / kWordBits]) >> id % kWordBits & 1) != 0;
    };
    const double *of = &scores.data[b * ids];
    out[0].data[b] = sample({of, of + ids}, isSeen, Settings(&in[4]->data[b * kSettings]),
                            uniformOf(&in[5]->data[b * kDraw]));
  }
  return success();
}

Precision SampleOp::precisionClass() { return Precision::Exact; }
bool SampleOp::takesRounded(unsigned) { return false; }
OpClass SampleOp::costClass() { return OpClass::gather_scatter; }
/// Of ids in any order: a weight of each.
int64_t SampleOp::flops() {
  constexpr int64_t kOfWeight = 16;
  return productOf({build::typeOf(getScores()).getNumElements(), kOfWeight});
}
/// Bits of ids are written where the call's tokens are.
int64_t SampleOp::bytes() {
  return operandAndResultBytes(*this) - bytesOf(getNewSeen().getType()) +
         bytesOf(getTokens().getType());
}
SmallVector<unsigned> SampleOp::overwritableOperands(unsigned result) {
  constexpr unsigned kSeen = 2;
  return result == 1 ? SmallVector<unsigned>{kSeen} : SmallVector<unsigned>{};
}

} // namespace hydra
