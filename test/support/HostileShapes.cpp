// Random reductions, and operations that only move elements, in every form.
#include "test/support/HostileWriter.h"

#include <algorithm>

namespace hydra::test::hostile {

bool Writer::reducing() {
  std::optional<Value> x = anyOfRank(1, std::max<size_t>(mostRank, 5));
  if (!x)
    return false;
  std::string name = random.pick<std::string>({"sum", "sum", "mean", "reduce_max"});
  if (name == "reduce_max" && !x->hasClearOrder())
    name = "mean";
  std::vector<bool> mask(x->rank(), false);
  const double share = random.pick<double>({0.1, 0.5, 1.0});
  for (size_t i = 0; i < mask.size(); ++i)
    mask[i] = random.chance(share);
  mask[static_cast<size_t>(random.below(static_cast<int64_t>(mask.size())))] = true;
  tame(reduce(name, *x, mask, random.chance(0.4)));
  return true;
}

/// All divisors of n.
static std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> list;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0)
      list.push_back(d);
  return list;
}

bool Writer::reshaping() {
  const std::optional<Value> found = movable(0);
  const Value x = found ? *found : any();
  Shape shape = x.shape;
  const int64_t rank = static_cast<int64_t>(x.rank());
  switch (random.below(6)) {
  case 0: // a unit dimension more; where there can be many, as a rule several
    if (x.rank() >= mostRank)
      return false;
    do
      shape.insert(shape.begin() + random.below(static_cast<int64_t>(shape.size()) + 1), Dim(1));
    while (mostRank > 4 && shape.size() < mostRank && random.chance(0.8));
    break;
  case 1: { // a unit dimension less
    auto one = std::find_if(shape.begin(), shape.end(), [](const Dim &d) { return d.isOne(); });
    if (one == shape.end())
      return false;
    shape.erase(one);
    break;
  }
  case 2: { // neighbours as one
    if (rank < 2)
      return false;
    const size_t i = static_cast<size_t>(random.below(rank - 1));
    shape[i] = product(shape[i], shape[i + 1]);
    shape.erase(shape.begin() + static_cast<int64_t>(i) + 1);
    break;
  }
  case 3: { // one as two
    if (rank < 1 || x.rank() >= std::max<size_t>(mostRank, 5))
      return false;
    const size_t i = static_cast<size_t>(random.below(rank));
    if (!shape[i].isNumber())
      return false;
    const int64_t outer = random.pick(divisors(shape[i].size));
    shape.insert(shape.begin() + static_cast<int64_t>(i) + 1, Dim(shape[i].size / outer));
    shape[i] = Dim(outer);
    break;
  }
  case 4: { // a long row
    Dim all(1);
    for (const Dim &d : shape)
      all = product(all, d);
    shape = {all};
    break;
  }
  default: { // any other factors
    if (!allNumbers(shape))
      return false;
    int64_t rest = elementsOf(shape);
    shape.clear();
    for (int64_t n = random.below(static_cast<int64_t>(mostRank)); n > 0; --n) {
      const int64_t d = random.pick(divisors(rest));
      shape.push_back(Dim(d));
      rest /= d;
    }
    if (rest > 1 || random.chance(0.3))
      shape.push_back(Dim(rest));
    break;
  }
  }
  if (!canWrite(shape))
    return false;
  const Value y = reshape(x, shape);
  if (random.chance(0.1) && canWrite(x.shape))
    reshape(y, x.shape);
  return true;
}

bool Writer::transposing() {
  const std::optional<Value> x = movable(random.chance(0.95) ? 2 : 0);
  if (!x)
    return false;
  std::vector<int64_t> order(x->rank());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int64_t>(i);
    std::swap(order[i], order[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
  }
  transpose(*x, order);
  return true;
}

bool Writer::broadcasting() {
  const std::optional<Value> found = movable(0);
  const Value x = found ? *found : any();
  Shape shape = x.shape;
  for (Dim &d : shape)
    if (d.isOne() && random.chance(0.7))
      d = dim();
  while (shape.size() < mostRank && random.chance(shape.size() == x.rank() ? 0.6 : 0.2))
    shape.insert(shape.begin(), dim());
  if (elementsOf(shape) > kMostElements || !canWrite(shape))
    return false;
  if (elementsOf(shape) == x.count() && random.chance(0.7)) // repeats nothing
    return false;
  broadcast(x, shape);
  return true;
}

bool Writer::slicing() {
  const std::optional<Value> x = movable(1);
  if (!x)
    return false;
  const size_t axis = static_cast<size_t>(random.below(static_cast<int64_t>(x->rank())));
  const Dim d = x->shape[axis];
  const int64_t most = d.least();
  const bool writable = d.scan == 0 || d.scan == block().scan;
  if (!d.isNumber() && writable && random.chance(0.6)) { // from the end, in terms of the symbol
    const bool last = random.chance(0.5) || most < 2;
    Value result = *x;
    result.shape[axis] =
        last ? Dim(1) : Dim(d.text + " - 1", d.size - 1, d.last - 1, d.most - 1, d.scan);
    emit("slice", {*x},
         "axis = " + std::to_string(axis) +
             " start = " + (last ? d.text + " - 1" : std::to_string(random.below(2))) +
             " size = " + result.shape[axis].text,
         result);
    return true;
  }
  const int64_t size = random.chance(0.25) ? 1 : random.between(1, most);
  int64_t start = random.between(0, most - size);
  if (random.chance(0.5))
    start = random.chance(0.5) ? 0 : most - size;
  slice(*x, axis, start, size);
  return true;
}

bool Writer::padding() {
  const std::optional<Value> x = movable(1);
  if (!x)
    return false;
  const size_t axis = static_cast<size_t>(random.below(static_cast<int64_t>(x->rank())));
  const int64_t before = random.pick<int64_t>({0, 0, 1, 2, 5}),
                after = random.pick<int64_t>({0, 0, 1, 3});
  Value result = *x;
  if (before + after > 0) {
    result.shape[axis] = sum(result.shape[axis], Dim(before + after));
    result.low = std::min(result.low, 0.0);
    result.first = std::min<int64_t>(result.first, 0);
    result.final = std::max<int64_t>(result.final, 0);
    result.distinct = false;
  }
  if (result.count() > kMostElements)
    return false;
  emit("pad", {*x},
       "axis = " + std::to_string(axis) + " before = " + std::to_string(before) +
           " after = " + std::to_string(after),
       result);
  return true;
}

bool Writer::joining() {
  const std::optional<Value> x = movable(1);
  if (!x)
    return false;
  const size_t axis = static_cast<size_t>(random.below(static_cast<int64_t>(x->rank())));
  std::vector<Value> parts = {*x};
  int64_t elements = x->count();
  for (int64_t more = random.below(4); more > 0; --more) {
    std::optional<Value> y;
    const double draw = 0.5 * (random.uniform() + 1.0);
    if (draw < 0.25)
      y = x; // once more
    else if (draw < 0.6 || !canWrite(x->shape))
      y = find([&](const Value &v) {
        if (v.rank() != x->rank() || v.element != x->element)
          return false;
        for (size_t i = 0; i < v.rank(); ++i)
          if (i != axis && !(v.shape[i] == x->shape[i]))
            return false;
        return true;
      });
    else {
      Shape shape = x->shape;
      shape[axis] = Dim(random.between(1, 5));
      if (elementsOf(shape) <= kMostElements)
        y = make(shape, x->element);
    }
    if (!y || elements + y->count() > kMostElements)
      continue;
    elements += y->count();
    parts.insert(parts.begin() + random.below(static_cast<int64_t>(parts.size()) + 1), *y);
  }
  concat(parts, axis);
  return true;
}

/// A view of a view of a view.
bool Writer::viewChain() {
  Value x = any();
  if (x.rank() == 0 || !allNumbers(x.shape))
    return false;
  for (int64_t n = random.between(2, 4); n > 0; --n) {
    const int64_t rank = static_cast<int64_t>(x.rank());
    const size_t axis = static_cast<size_t>(random.below(rank));
    const int64_t size = x.shape[axis].size;
    switch (random.below(4)) {
    case 0: {
      std::vector<int64_t> order(x.rank());
      for (size_t i = 0; i < order.size(); ++i) {
        order[i] = static_cast<int64_t>(i);
        std::swap(order[i], order[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
      }
      x = transpose(x, order);
      break;
    }
    case 1: {
      const int64_t part = random.between((size + 1) / 2, size);
      x = slice(x, axis, random.between(0, size - part), part);
      break;
    }
    case 2: {
      Shape shape = x.shape;
      if (rank > 1 && random.chance(0.6)) {
        const size_t i = static_cast<size_t>(random.below(rank - 1));
        shape[i] = product(shape[i], shape[i + 1]);
        shape.erase(shape.begin() + static_cast<int64_t>(i) + 1);
      } else {
        const int64_t outer = random.pick(divisors(size));
        shape.insert(shape.begin() + static_cast<int64_t>(axis) + 1, Dim(size / outer));
        shape[axis] = Dim(outer);
      }
      if (shape.size() <= 5)
        x = reshape(x, shape);
      break;
    }
    default: {
      Shape shape = x.shape;
      if (shape[axis].isOne())
        shape[axis] = dim();
      else if (rank < 4)
        shape.insert(shape.begin(), Dim(random.between(1, 3)));
      if (elementsOf(shape) <= kMostElements)
        x = broadcast(x, shape);
    }
    }
  }
  return true;
}

} // namespace hydra::test::hostile
