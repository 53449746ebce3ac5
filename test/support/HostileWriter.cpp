// Lines, values in reach, and the choice of what to write next.
#include "test/support/HostileWriter.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace hydra::test::hostile {

//===-- Text --------------------------------------------------------------------------------===//

static std::string inParentheses(const std::string &text) {
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

Dim product(const Dim &a, const Dim &b) {
  if (a.isNumber() && b.isNumber())
    return a.size * b.size;
  if (a.isOne())
    return b;
  if (b.isOne())
    return a;
  return {inParentheses(a.text) + " * " + inParentheses(b.text), a.size * b.size, a.last * b.last,
          a.most * b.most, std::max(a.scan, b.scan)};
}

Dim sum(const Dim &a, const Dim &b) {
  if (a.isNumber() && b.isNumber())
    return a.size + b.size;
  return {a.text + " + " + b.text, a.size + b.size, a.last + b.last, a.most + b.most,
          std::max(a.scan, b.scan)};
}

int64_t elementsOf(const Shape &shape) {
  int64_t elements = 1;
  for (const Dim &d : shape)
    elements *= d.size;
  return elements;
}

std::string textOf(const Shape &shape) {
  std::string text;
  for (const Dim &d : shape)
    text += (text.empty() ? "" : ", ") + d.text;
  return "[" + text + "]";
}

std::string listText(const std::string &name, const std::vector<int64_t> &values) {
  std::string text;
  for (const int64_t v : values)
    text += (text.empty() ? "" : ", ") + std::to_string(v);
  return name + " = [" + text + "]";
}

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

bool allNumbers(const Shape &shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim &d) { return d.isNumber(); });
}

std::optional<Shape> commonShape(const Shape &a, const Shape &b) {
  const Shape &wide = a.size() >= b.size() ? a : b, &narrow = a.size() >= b.size() ? b : a;
  Shape result = wide;
  for (size_t i = 0; i < narrow.size(); ++i) {
    Dim &d = result[wide.size() - narrow.size() + i];
    if (d.isOne())
      d = narrow[i];
    else if (!narrow[i].isOne() && !(narrow[i] == d))
      return std::nullopt;
  }
  return result;
}

std::string Writer::wordOf(Element element) const {
  switch (element) {
  case Element::F32:
    return "f32";
  case Element::Narrow:
    return narrow;
  case Element::I32:
    return "i32";
  case Element::I1:
    return "i1";
  }
  return "";
}

void Writer::line(const std::string &text) {
  ++lines;
  block().text += std::string(2 + 2 * blocks.size(), ' ') + text + "\n";
}

std::string Writer::nameList(const std::vector<Value> &values) const {
  std::string text;
  for (const Value &v : values)
    text += (text.empty() ? "%" : ", %") + v.name;
  return text;
}

Value Writer::emit(const std::string &op, const std::vector<Value> &operands,
                   const std::string &attributes, Value result) {
  result.name = fresh("v");
  // Some arithmetic is written as such, and some operands come from a bundle.
  static const std::map<std::string, std::string> infix = {
      {"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}};
  const auto sign = infix.find(op);
  const size_t number = std::stoul(result.name.substr(1));
  if (sign != infix.end() && attributes.empty() && number % 4 == 1) {
    std::string first = "%" + operands[0].name;
    if (number % 3 == 1) {
      line("%" + result.name + "_of = hydra.bundle x = " + first);
      line("%" + result.name + "_x = hydra.field %" + result.name + "_of name = \"x\"");
      first = "%" + result.name + "_x";
    }
    line("%" + result.name + " = hydra.let " + first + sign->second + "%" + operands[1].name);
  } else {
    line("%" + result.name + " = hydra." + op + (operands.empty() ? "" : " ") + nameList(operands) +
         (attributes.empty() ? "" : " ") + attributes);
  }
  remember(result);
  return result;
}

std::string Writer::bundleOf(const std::vector<Value> &values) {
  const std::string name = fresh("b");
  std::string fields;
  for (size_t i = 0; i < values.size(); ++i)
    fields += (i ? ", f" : "f") + std::to_string(i) + " = %" + values[i].name;
  line("%" + name + " = hydra.bundle " + fields);
  return name;
}

void Writer::fieldsOf(const std::string &bundle, const std::vector<Value> &values) {
  if (bundle.empty())
    return;
  for (size_t i = 0; i < values.size(); ++i)
    line("%" + values[i].name + " = hydra.field %" + bundle + " name = \"f" + std::to_string(i) +
         "\"");
}

Writer::Passed Writer::passed(const std::vector<Value> &inside, const std::vector<Value> &outside) {
  Passed result;
  if (outside.size() > 1 && random.chance(0.25)) {
    const std::string whole = bundleOf(outside);
    result.bundle = fresh("b");
    result.list = "%" + result.bundle + " = %" + whole;
    return result;
  }
  for (size_t i = 0; i < inside.size(); ++i)
    result.list += (i ? ", %" : "%") + inside[i].name + " = %" + outside[i].name;
  return result;
}

std::string Writer::listOf(const std::vector<Value> &front, const std::vector<Value> &behind,
                           const std::string &bundle) const {
  if (bundle.empty()) {
    std::vector<Value> all = front;
    all.insert(all.end(), behind.begin(), behind.end());
    return nameList(all);
  }
  return nameList(front) + (front.empty() ? "%" : ", %") + bundle;
}

void Writer::open(const std::vector<Value> &arguments) {
  Block inner;
  inner.scan = blocks.empty() ? 0 : block().scan;
  inner.stack = blocks.empty() ? -1 : block().stack;
  inner.values = arguments;
  blocks.push_back(std::move(inner));
}

std::string Writer::close() {
  std::string text = std::move(block().text);
  blocks.pop_back();
  return text;
}

std::string Writer::model(const std::string &end) const {
  std::string text = "hydra.model @hostile version 1 {\n", list;
  text += symbolLines + groupLines + variableLines;
  for (const Stack &s : stacks)
    text +=
        "  hydra.stack @" + s.name + "[" + std::to_string(s.count) + "] {\n" + s.lines + "  }\n";
  text += definitionLines;
  for (const std::string &a : arguments)
    list += (list.empty() ? "" : ", ") + a;
  const auto entry = [&](const std::string &name, const std::string &last) {
    return "  hydra.entry @" + name + "(" + list + ")" +
           (dims.empty() ? "" : " dims(" + dims + ")") + " {\n" + blocks.front().text + "    " +
           last + "\n  }\n";
  };
  text += entry("loss", end);
  if (measures)
    text += entry("eval", end.substr(0, end.find(" updates(")));
  return text + "}\n";
}

//===-- Values in reach ---------------------------------------------------------------------===//

std::vector<Value> Writer::visible() const {
  size_t first = blocks.size();
  while (--first > 0 && !blocks[first].isolated)
    ;
  std::vector<Value> values;
  for (; first < blocks.size(); ++first)
    values.insert(values.end(), blocks[first].values.begin(), blocks[first].values.end());
  return values;
}

std::optional<Value> Writer::find(const std::function<bool(const Value &)> &fits) {
  std::vector<Value> candidates;
  for (const Value &v : visible())
    if (fits(v))
      candidates.push_back(v);
  if (candidates.empty())
    return std::nullopt;
  const int64_t n = static_cast<int64_t>(candidates.size());
  return candidates[static_cast<size_t>(
      random.chance(0.5) ? n - 1 - random.below(std::min<int64_t>(n, 4)) : random.below(n))];
}

Value Writer::any() {
  const Element element = mayRound && random.chance(0.2) ? Element::Narrow : Element::F32;
  if (std::optional<Value> v = find([&](const Value &x) { return x.element == element; }))
    return *v;
  if (std::optional<Value> v = find([](const Value &x) { return x.isFloat(); }))
    return *v;
  return make(randomShape(0, 3));
}

std::optional<Value> Writer::anyOfRank(size_t least, size_t most) {
  return find([&](const Value &x) { return x.isFloat() && x.rank() >= least && x.rank() <= most; });
}

std::optional<Value> Writer::movable(size_t least) {
  const bool isFloat = random.chance(0.88);
  return find([&](const Value &v) { return v.rank() >= least && v.isFloat() == isFloat; });
}

bool Writer::canWrite(const Shape &shape) const {
  return std::all_of(shape.begin(), shape.end(),
                     [&](const Dim &d) { return d.scan == 0 || d.scan == blocks.back().scan; });
}

//===-- Sizes -------------------------------------------------------------------------------===//

static const std::vector<int64_t> kSizes = {1,  1,  1,  2,  3,  4,  5,  7,  8,  13,
                                            15, 16, 17, 30, 31, 32, 33, 64, 65, 100};

Writer::Writer(uint64_t seed) : random(seed) {
  // Few sizes in one program, so that many values fit each other.
  for (int64_t n = random.between(2, 4); n > 0; --n)
    palette.push_back(random.pick(kSizes));
  if (random.chance(0.6))
    palette.push_back(1);
  mayRound = random.chance(0.12);
  if (random.chance(0.3))
    narrow = "f16";
  if (random.chance(0.1))
    mostRank = 8;
  open({});
}

Dim Writer::dim() { return random.chance(0.9) ? random.pick(palette) : random.pick(kSizes); }

Shape Writer::randomShape(size_t least, size_t most) {
  Shape shape;
  const int64_t rank = random.between(static_cast<int64_t>(least), static_cast<int64_t>(most));
  for (int64_t i = 0; i < rank; ++i) {
    Dim d = dim();
    while (elementsOf(shape) * d.size > kMostElements)
      d = Dim(std::max<int64_t>(1, d.size / 3));
    shape.push_back(d);
  }
  return shape;
}

//===-- The choice --------------------------------------------------------------------------===//

const std::vector<Writer::Family> &Writer::families() {
  static const std::vector<Family> all = {
      {3, &Writer::unaries, Group::Plain},         {4, &Writer::arithmetic, Group::Plain},
      {1, &Writer::constants, Group::Plain},       {1.2, &Writer::integers, Group::Plain},
      {1, &Writer::picking, Group::Plain},         {0.6, &Writer::truths, Group::Plain},
      {0.8, &Writer::casting, Group::Plain},       {4, &Writer::reducing, Group::Plain},
      {2, &Writer::reshaping, Group::Plain},       {2, &Writer::transposing, Group::Plain},
      {3, &Writer::broadcasting, Group::Plain},    {2, &Writer::slicing, Group::Plain},
      {1, &Writer::padding, Group::Plain},         {1.5, &Writer::joining, Group::Plain},
      {1, &Writer::viewChain, Group::Plain},       {2.5, &Writer::linears, Group::Plain},
      {3, &Writer::matmuls, Group::Plain},         {2, &Writer::norms, Group::Plain},
      {1.5, &Writer::softmaxes, Group::Plain},     {0.7, &Writer::transforms, Group::Plain},
      {1, &Writer::ropes, Group::Plain},           {1.5, &Writer::attentions, Group::Plain},
      {1, &Writer::embeddings, Group::Plain},      {1, &Writer::losses, Group::Plain},
      {0.8, &Writer::routing, Group::Plain},       {0.8, &Writer::grouping, Group::Plain},
      {0.5, &Writer::choosing, Group::Plain},      {1, &Writer::writtenAttention, Group::Idiom},
      {1, &Writer::gating, Group::Idiom},          {1, &Writer::projecting, Group::Idiom},
      {1, &Writer::activating, Group::Idiom},      {1, &Writer::rowStatistics, Group::Idiom},
      {1, &Writer::layering, Group::Control},      {0.6, &Writer::conditions, Group::Control},
      {0.6, &Writer::calling, Group::Control},     {1, &Writer::scanning, Group::Scan},
      {0.6, &Writer::prefixScanning, Group::Scan}, {0.5, &Writer::counting, Group::Plain},
      {0.7, &Writer::recurrences, Group::Plain},
  };
  return all;
}

void Writer::chooseFamilies(double controlWeight, double scanWeight) {
  weights.clear();
  const bool idioms = random.chance(0.2);
  for (const Family &f : families()) {
    double weight = f.weight * (random.chance(0.4) ? 0.0 : random.chance(0.25) ? 3.0 : 1.0);
    switch (f.group) {
    case Group::Plain:
      if (mayRound && f.write == &Writer::casting)
        weight = 3.0;
      break;
    case Group::Idiom:
      weight *= idioms ? 10.0 : 1.0;
      break;
    case Group::Control:
      weight = f.weight * controlWeight;
      break;
    case Group::Scan:
      weight = f.weight * scanWeight;
      break;
    }
    weights.push_back(weight);
  }
}

void Writer::steps(int64_t n) {
  for (; n > 0; --n)
    step();
}

void Writer::fill(unsigned most) {
  while (lines < most)
    step();
}

void Writer::scan() {
  while (!(random.chance(0.75) ? scanning() : prefixScanning()))
    ;
}

void Writer::step() {
  constexpr size_t kMostBlocks = 4;
  constexpr unsigned kMostLines = 120;
  const std::vector<Family> &all = families();
  auto weightOf = [&](size_t i) {
    if (all[i].group != Group::Control && all[i].group != Group::Scan)
      return weights[i];
    const bool deep = blocks.size() >= kMostBlocks || lines > kMostLines;
    return deep ? 0.0 : weights[i] / static_cast<double>(blocks.size() * blocks.size());
  };
  double total = 0.0;
  for (size_t i = 0; i < all.size(); ++i)
    total += weightOf(i);
  for (int tries = 0; total > 0.0 && tries < 20; ++tries) {
    double draw = 0.5 * (random.uniform() + 1.0) * total;
    for (size_t i = 0; i < all.size(); ++i) {
      if ((draw -= weightOf(i)) >= 0.0)
        continue;
      if ((this->*all[i].write)())
        return;
      break;
    }
  }
  unaries();
}

} // namespace hydra::test::hostile
