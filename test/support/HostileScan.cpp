// Random scans and prefix scans: any axis, any chunk, any number of sequences and carried values.
#include "test/support/HostileWriter.h"

#include <algorithm>

namespace hydra::test::hostile {

/// What a value carried through that many chunks or layers is in the next one. What grows or
/// diverges over many steps could not be compared with anything.
Value Writer::stepBetween(const Value &carried, int64_t count) {
  if (random.chance(0.12))
    return carried;
  std::optional<Value> next = find([&](const Value &v) {
    return v.name != carried.name && v.shape == carried.shape && v.element == carried.element;
  });
  if (!carried.isFloat())
    return next ? *next : carried;
  if (!next || random.chance(0.25)) {
    std::optional<Value> more = find([&](const Value &v) {
      return v.name != carried.name && v.element == carried.element && v.rank() <= mostRank;
    });
    const Value number = more ? toScalar(tame(*more)) : carried;
    next = binary(random.chance(0.7) ? "add" : "mul", carried, tame(number), 2.0);
  }
  if (count <= 3 && next->size <= 4.0 && random.chance(0.5))
    return *next;
  Value bounded = unary(random.chance(0.6) ? "tanh" : "sin", *next, 0.7);
  if (count > 6 || random.chance(0.3))
    bounded = binary("mul", bounded,
                     constant(random.pick<double>({0.25, 0.5}), {}, carried.element), 0.3);
  if (count <= 20 && random.chance(0.4))
    bounded = binary("add", bounded, carried, 1.0);
  return bounded;
}

bool Writer::scanning() {
  std::optional<Value> x = find([](const Value &v) {
    return v.element != Element::I1 && v.rank() > 0 &&
           std::any_of(v.shape.begin(), v.shape.end(),
                       [](const Dim &d) { return d.scan == 0 && d.size > 1; });
  });
  if (!x || random.chance(0.4)) {
    Shape shape = randomShape(1, 3);
    const size_t axis = static_cast<size_t>(random.below(static_cast<int64_t>(shape.size())));
    shape[axis] = Dim(random.pick<int64_t>({1, 2, 5, 8, 9, 13, 16, 17, 31, 32, 64, 65, 100}));
    if (elementsOf(shape) > kMostElements)
      return false;
    x = make(shape);
  }
  std::vector<size_t> axes;
  for (size_t i = 0; i < x->rank(); ++i)
    if (x->shape[i].scan == 0 && (x->shape[i].size > 1 || random.chance(0.1)))
      axes.push_back(i);
  if (axes.empty())
    return false;
  const size_t axis = random.pick(axes);
  const Dim length = x->shape[axis];
  const int64_t n = length.size;
  const int64_t chunk =
      std::max<int64_t>(1, random.pick<int64_t>({1, 1, 2, 3, 4, n, n - 1, n / 2, n / 8, n / 8,
                                                 n / 9, n / 12, n + 1, random.between(1, n)}));
  const int64_t whole = n / chunk, rest = n % chunk, chunks = whole + (rest ? 1 : 0);
  const unsigned depth = block().scan + 1;
  Dim rows(whole ? chunk : rest);
  if (whole && (rest || random.chance(0.6)))
    rows = Dim("rows", chunk, rest ? rest : chunk, chunk, depth);

  std::vector<Value> sequences = {*x}, inits;
  for (int64_t more = random.pick<int64_t>({0, 0, 1, 2}); more > 0; --more) {
    std::optional<Value> y = find([&](const Value &v) {
      return v.element != Element::I1 && v.rank() > axis && v.shape[axis] == length;
    });
    if (random.chance(0.5) && canWrite({length})) {
      Shape shape = randomShape(axis + 1, std::max<size_t>(axis + 1, 3));
      shape[axis] = length;
      if (elementsOf(shape) <= kMostElements)
        y = make(shape);
    }
    if (y)
      sequences.push_back(*y);
  }
  for (int64_t more = random.pick<int64_t>({0, 1, 1, 1, 2, 2, 3}); more > 0; --more) {
    std::optional<Value> y =
        find([&](const Value &v) { return v.element != Element::I1 && v.count() <= 1024; });
    if (!y || random.chance(0.6)) {
      Shape shape = randomShape(0, 3);
      if (random.chance(0.4) && x->rank() > 1) { // like a row of the sequence
        shape = x->shape;
        if (random.chance(0.5))
          shape[axis] = Dim(1);
        else
          shape.erase(shape.begin() + static_cast<int64_t>(axis));
      }
      if (!canWrite(shape) || elementsOf(shape) > 1024)
        continue;
      y = make(shape);
    }
    inits.push_back(tame(*y));
  }

  std::vector<Value> inside;
  for (const Value &s : sequences) {
    Value part = s;
    part.name = fresh("c");
    part.shape[axis] = rows;
    inside.push_back(part);
  }
  for (const Value &i : inits) {
    Value part{.name = fresh("s"), .shape = i.shape, .element = i.element};
    part.size = std::max(1.5, i.size);
    part.first = -1000000;
    part.final = 1000000;
    inside.push_back(part);
  }
  const auto middle = static_cast<int64_t>(sequences.size());
  const std::vector<Value> here(inside.begin(), inside.begin() + middle),
      carried(inside.begin() + middle, inside.end());
  const Passed over = passed(here, sequences), carry = passed(carried, inits);
  open(inside);
  block().scan = depth;
  fieldsOf(over.bundle, here);
  fieldsOf(carry.bundle, carried);
  steps(random.chance(0.6) ? random.between(1, 3) : random.between(3, 8));

  std::vector<Value> yielded, results;
  auto joins = [&](const Value &v) {
    if (v.rank() <= axis || v.element == Element::I1)
      return false;
    for (size_t i = 0; i < v.rank(); ++i)
      if (i != axis && v.shape[i].scan == depth)
        return false;
    const int64_t all = v.shape[axis].size * chunks;
    return v.shape[axis].scan == (v.shape[axis].isNumber() ? 0 : v.shape[axis].scan) &&
           v.count() / v.shape[axis].size * all <= kMostElements;
  };
  for (int64_t more = inits.empty() ? random.between(1, 2) : random.pick<int64_t>({0, 1, 1, 2, 3});
       more > 0; --more)
    if (std::optional<Value> y = find(joins)) {
      Value result = *y;
      const Dim &d = y->shape[axis];
      result.shape[axis] = d == rows && !d.isNumber()
                               ? length
                               : Dim(d.size * whole + (rest ? (whole ? d.last : d.size) : 0));
      result.name = fresh("v");
      result.repeatable = result.distinct = false;
      yielded.push_back(*y);
      results.push_back(result);
    }
  if (results.empty() && inits.empty()) { // every scan has a result
    yielded.push_back(inside[0]);
    results.push_back(*x);
    results.back().name = fresh("v");
  }
  std::vector<Value> next, ends;
  for (const Value &value : carried) {
    next.push_back(stepBetween(value, chunks));
    Value end = value;
    end.name = fresh("v");
    ends.push_back(end);
  }
  const bool together = !carry.bundle.empty();
  const std::string yields = listOf(yielded, next, together ? bundleOf(next) : "");
  const std::string body = close();
  const std::string end = together ? fresh("b") : "";
  line(listOf(results, ends, end) + " = hydra.scan axis = " + std::to_string(axis) +
       " chunk = " + std::to_string(chunk) + " over(" + over.list + ")" +
       (inits.empty() ? "" : " carry(" + carry.list + ")") + " {");
  block().text += body;
  line("  hydra.yield " + yields);
  line("}");
  fieldsOf(end, ends);
  results.insert(results.end(), ends.begin(), ends.end());
  for (const Value &r : results)
    if (random.chance(0.9))
      remember(r);
  return true;
}

bool Writer::prefixScanning() {
  std::optional<Value> x = find([](const Value &v) {
    return v.element == Element::F32 && v.rank() > 0 && v.count() <= 2048 &&
           std::any_of(v.shape.begin(), v.shape.end(),
                       [](const Dim &d) { return d.scan == 0 && d.size > 1; });
  });
  if (!x || random.chance(0.3))
    x = make(randomShape(1, 3));
  std::vector<size_t> axes;
  for (size_t i = 0; i < x->rank(); ++i)
    if (x->shape[i].scan == 0)
      axes.push_back(i);
  if (axes.empty())
    return false;
  const size_t axis = random.pick(axes);
  const int64_t n = x->shape[axis].size;
  const int64_t form = random.below(8);
  std::vector<Value> sequences = {tame(*x)};
  if (form == 0 || form == 1) { // a linear recurrence: factors below 1, terms
    Value terms = tame(make(x->shape));
    sequences = {unary("sigmoid", sequences[0], 0.5), terms};
  } else if (form == 2) // kept apart
    sequences.push_back(tame(make(x->shape)));
  else if (form == 3)
    sequences[0] = unary("tanh", sequences[0], 0.6);

  std::vector<Value> before, here, inside;
  for (std::vector<Value> *list : {&before, &here})
    for (const Value &s : sequences) {
      Value part = s;
      part.name = fresh("c");
      part.shape[axis] = Dim("rows", std::max<int64_t>(1, n - 1), 1, n, block().scan + 1);
      part.repeatable = part.distinct = false;
      list->push_back(part);
      inside.push_back(part);
    }
  Shape wide = x->shape;
  wide[axis] = Dim(1);
  const std::optional<Value> outside =
      random.chance(0.3) && canWrite(wide) ? std::optional(make(wide)) : std::nullopt;
  const Passed over = passed(here, sequences);
  const bool together = !over.bundle.empty();
  const std::string earlier = together ? fresh("b") : "";
  open(inside);
  ++block().scan;
  fieldsOf(over.bundle, here);
  fieldsOf(earlier, before);
  std::vector<Value> yielded;
  switch (form) {
  case 0:
  case 1:
    yielded = {binary("mul", before[0], here[0], 0.3),
               binary("add", binary("mul", before[1], here[0], 0.5), here[1], 1.5)};
    break;
  case 2:
    yielded = {binary("add", before[0], here[0], 2.0), random.chance(0.5) ? here[1] : before[1]};
    break;
  case 3:
    yielded = {binary("mul", before[0], here[0], 0.5)};
    break;
  case 4: {
    const Value both = binary("add", unary("exp", before[0], 2.0), unary("exp", here[0], 2.0), 4.0);
    yielded = {unary("log", both, 1.5)};
    break;
  }
  case 5:
    yielded = {binary(random.chance(0.5) ? "max" : "min", before[0], here[0], 1.0)};
    break;
  default:
    yielded = {binary("add", before[0], here[0], 2.0)};
  }
  if (outside)
    yielded[0] = binary("add", yielded[0], *outside, 2.0);
  const std::string yields = listOf({}, yielded, together ? bundleOf(yielded) : "");
  const std::string body = close();
  std::vector<Value> results;
  for (const Value &s : sequences) {
    Value result = s;
    result.name = fresh("v");
    result.size = s.size * std::sqrt(static_cast<double>(n));
    result.low = -std::numeric_limits<double>::infinity();
    result.repeatable = result.distinct = false;
    results.push_back(result);
  }
  const std::string all = together ? fresh("b") : "";
  line(listOf({}, results, all) + " = hydra.prefix_scan axis = " + std::to_string(axis) + " over(" +
       over.list + ") combine(" + listOf({}, before, earlier) + ") {");
  block().text += body;
  line("  hydra.yield " + yields);
  line("}");
  fieldsOf(all, results);
  for (const Value &r : results)
    remember(r);
  for (const Value &r : results)
    tame(r);
  return true;
}

} // namespace hydra::test::hostile
