// Scales of columns of weights that lie in a unit, of which each rank has a piece.
#include "passes/precision/ColumnScales.h"

#include "dialects/hydra/Build.h"

#include <numeric>
#include <set>

using namespace mlir;

namespace hydra {

ColumnScales::ColumnScales(int64_t piece, int64_t ranks, ArrayRef<Weight> weights)
    : piece(piece), ranks(ranks), weights(weights) {
  std::set<int64_t> ends{piece};
  for (const Weight &weight : weights)
    for (const int64_t bound : {weight.start, weight.end})
      if (bound % piece != 0)
        ends.insert(bound % piece);
  int64_t first = 0;
  for (const int64_t end : ends) {
    addInterval(first, end);
    first = end;
  }
}

void ColumnScales::addInterval(int64_t first, int64_t end) {
  const int64_t size = end - first;
  int64_t period = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (const std::optional<size_t> weight = weightOf(rank, first)) {
      const int64_t columns = std::min(weights[*weight].columns, size);
      period = period == 0 ? columns : std::min(std::lcm(period, columns), size);
    }
  intervals.push_back({first, size, period, found()});
}

int64_t ColumnScales::found() const {
  return intervals.empty() ? 0 : intervals.back().offset + intervals.back().period;
}

int64_t ColumnScales::parts() const {
  int64_t parts = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Interval &interval : intervals)
      parts += weightOf(rank, interval.first).has_value();
  return parts;
}

std::optional<size_t> ColumnScales::weightOf(int64_t rank, int64_t first) const {
  const int64_t place = rank * piece + first;
  for (auto [i, weight] : llvm::enumerate(weights))
    if (weight.start <= place && place < weight.end)
      return i;
  return std::nullopt;
}

int64_t ColumnScales::columnOf(int64_t rank, int64_t first, const Weight &weight) const {
  return (rank * piece + first - weight.start) % weight.columns;
}

static Value zeros(OpBuilder &b, Location loc, Value like, int64_t size) {
  return build::constant(b, loc, build::typeOf(like).clone({size}), 0.0);
}

Value ColumnScales::largest(OpBuilder &b, Location loc, Value piece) const {
  SmallVector<Value> parts;
  for (const Interval &interval : intervals) {
    if (interval.period == 0)
      continue;
    const int64_t rows = interval.size / interval.period, body = rows * interval.period,
                  rest = interval.size - body;
    auto magnitudes = [&](int64_t first, int64_t size, ArrayRef<int64_t> shape) {
      Value x = build::reshape(b, loc, build::partOf(b, loc, piece, 0, first, size), shape);
      return MaxOp::create(b, loc, x, NegOp::create(b, loc, x)).getResult();
    };
    Value largest =
        rows == 1 ? magnitudes(interval.first, body, {body})
                  : build::largest(b, loc,
                                   magnitudes(interval.first, body, {rows, interval.period}), {0});
    if (rest > 0) {
      Value last = magnitudes(interval.first + body, rest, {rest});
      last = build::concat(b, loc, {last, zeros(b, loc, last, interval.period - rest)}, 0);
      largest = MaxOp::create(b, loc, largest, last);
    }
    parts.push_back(largest);
  }
  return build::concat(b, loc, parts, 0);
}

Value ColumnScales::ofColumns(OpBuilder &b, Location loc, Value all, size_t weight) const {
  const Weight &own = weights[weight];
  SmallVector<Value> parts;
  int64_t size = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Interval &interval : intervals) {
      if (weightOf(rank, interval.first) != weight)
        continue;
      const int64_t before = columnOf(rank, interval.first, own);
      const int64_t end = llvm::alignTo(before + interval.period, own.columns);
      if (before > 0)
        parts.push_back(zeros(b, loc, all, before));
      parts.push_back(
          build::partOf(b, loc, all, 0, rank * found() + interval.offset, interval.period));
      if (end > before + interval.period)
        parts.push_back(zeros(b, loc, all, end - before - interval.period));
      size += end;
    }
  Value largest = build::concat(b, loc, parts, 0);
  if (size == own.columns)
    return largest;
  return build::largest(b, loc, build::reshape(b, loc, largest, {size / own.columns, own.columns}),
                        {0});
}

Value ColumnScales::ofRanks(OpBuilder &b, Location loc, ArrayRef<Value> scales) const {
  // Each as often as the longest period has it.
  SmallVector<int64_t> rows(weights.size(), 1);
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Interval &interval : intervals)
      if (const std::optional<size_t> i = weightOf(rank, interval.first)) {
        const int64_t before = columnOf(rank, interval.first, weights[*i]);
        rows[*i] = std::max<int64_t>(rows[*i],
                                     llvm::alignTo(before + interval.period, weights[*i].columns) /
                                         weights[*i].columns);
      }
  SmallVector<Value> repeated;
  for (auto [weight, scale, count] : llvm::zip_equal(weights, scales, rows)) {
    Value row = build::reshape(b, loc, scale, {1, weight.columns});
    repeated.push_back(build::reshape(
        b, loc, build::broadcast(b, loc, row, {count, weight.columns}), {count * weight.columns}));
  }
  SmallVector<Value> parts;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Interval &interval : intervals) {
      if (interval.period == 0)
        continue;
      const std::optional<size_t> i = weightOf(rank, interval.first);
      parts.push_back(
          i ? build::partOf(b, loc, repeated[*i], 0, columnOf(rank, interval.first, weights[*i]),
                            interval.period)
            : build::constant(b, loc, RankedTensorType::get({interval.period}, b.getF32Type()),
                              1.0));
    }
  return build::reshape(b, loc, build::concat(b, loc, parts, 0), {ranks, found()});
}

Value ColumnScales::quantize(OpBuilder &b, Location loc, Value piece, Value scale,
                             Type format) const {
  SmallVector<Value> parts;
  auto add = [&](int64_t first, ArrayRef<int64_t> shape, Value by) {
    const int64_t size = productOf(shape);
    Value x = build::reshape(b, loc, build::partOf(b, loc, piece, 0, first, size), shape);
    x = QuantizeOp::create(b, loc, x, by, TypeAttr::get(format), UnitAttr());
    parts.push_back(build::reshape(b, loc, x, {size}));
  };
  for (const Interval &interval : intervals) {
    if (interval.period == 0) {
      add(interval.first, {interval.size},
          build::constant(b, loc, RankedTensorType::get({}, b.getF32Type()), 1.0));
      continue;
    }
    const int64_t rows = interval.size / interval.period, body = rows * interval.period,
                  rest = interval.size - body;
    Value own = build::partOf(b, loc, scale, 0, interval.offset, interval.period);
    if (rows == 1)
      add(interval.first, {body}, own);
    else
      add(interval.first, {rows, interval.period},
          build::broadcast(b, loc, build::reshape(b, loc, own, {1, interval.period}),
                           {rows, interval.period}));
    if (rest > 0)
      add(interval.first + body, {rest}, build::partOf(b, loc, own, 0, 0, rest));
  }
  return build::concat(b, loc, parts, 0);
}

} // namespace hydra
