// make-golden-inputs: writes the inputs and parameters of a golden reference case (models.md §11)
// as a safetensors file, whole or damaged on purpose, for lit tests.
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"
#include "test/support/GoldenFill.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

using namespace hydra::support;

namespace {

constexpr const char *kUsage =
    "usage: make-golden-inputs CASE FILE [EDIT...]\n"
    "  CASE  cs336\n"
    "  EDIT  drop=NAME          without that tensor\n"
    "        keep=NAME,NAME     without all others\n"
    "        copy=NAME:NEW      with an equal tensor of another name\n"
    "        shape=NAME:2,3     of another shape, with zeros\n"
    "        type=NAME:F32      of another type; NAME may be * for all floating-point tensors\n"
    "        value=NAME:I=X     with X as element I\n"
    "        scalar=NAME:X      with a new F64 tensor without dimensions\n"
    "        from=FILE          with all tensors of another safetensors file\n";

struct Tensor {
  std::string name;
  DType dtype = DType::F64;
  std::vector<int64_t> shape;
  std::vector<double> data;
};

bool isReal(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

int64_t elements(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (const int64_t d : shape)
    n *= d;
  return n;
}

/// A reference case: its parameters are added in the family's order.
class Case {
public:
  Case(uint64_t family, uint64_t batch, uint64_t length, uint64_t vocabulary) : family(family) {
    const hydra::test::GoldenTokens golden = hydra::test::goldenTokens(batch, length, vocabulary);
    const std::vector<int64_t> shape = {static_cast<int64_t>(batch), static_cast<int64_t>(length)};
    tensors.push_back({"tokens", DType::I32, shape, {golden.tokens.begin(), golden.tokens.end()}});
    tensors.push_back({"labels", DType::I32, shape, {golden.labels.begin(), golden.labels.end()}});
  }

  void add(std::string name, std::vector<int64_t> shape, double base, double amp) {
    Tensor tensor{std::move(name), DType::F64, std::move(shape), {}};
    tensor.data.resize(elements(tensor.shape));
    hydra::test::fillGolden(tensor.data, family, ordinal++, base, amp);
    tensors.push_back(std::move(tensor));
  }

  std::vector<Tensor> tensors;

private:
  uint64_t family;
  uint64_t ordinal = 0;
};

std::vector<Tensor> cs336() {
  constexpr int64_t D = 64, F = 192, L = 2, V = 97;
  const double fanD = std::sqrt(3.0 / D), fanF = std::sqrt(3.0 / F);
  Case c(1, 2, 32, V);
  c.add("tok_emb", {V, D}, 0.0, 1.0);
  for (int64_t layer = 0; layer < L; ++layer) {
    auto name = [&](const char *own) { return fmt::format("layers.{}.{}", layer, own); };
    c.add(name("ln1"), {D}, 1.0, 0.1);
    for (const char *matrix : {"wq", "wk", "wv", "wo"})
      c.add(name(matrix), {D, D}, 0.0, fanD);
    c.add(name("ln2"), {D}, 1.0, 0.1);
    c.add(name("w1"), {F, D}, 0.0, fanD);
    c.add(name("w2"), {D, F}, 0.0, fanF);
    c.add(name("w3"), {F, D}, 0.0, fanD);
  }
  c.add("ln_final", {D}, 1.0, 0.1);
  c.add("lm_head", {V, D}, 0.0, fanD);
  return std::move(c.tensors);
}

template <typename Number> Number number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail("'{}' is not a number", text);
  return value;
}

/// The texts before and after the first `separator`.
std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == text.npos)
    return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<std::string_view> list(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    auto [first, rest] = split(text, ',');
    parts.push_back(first);
    text = rest;
  }
  return parts;
}

Tensor &find(std::vector<Tensor> &tensors, std::string_view name) {
  for (Tensor &tensor : tensors)
    if (tensor.name == name)
      return tensor;
  fail("there is no tensor '{}'", name);
}

void append(std::vector<Tensor> &tensors, std::string_view path) {
  const Safetensors file = Safetensors::open(path);
  for (const TensorView &view : file.tensors()) {
    Tensor &tensor = tensors.emplace_back(Tensor{view.name, view.dtype, view.shape, {}});
    tensor.data.resize(elements(view.shape));
    toDoubles(view.dtype, view.bytes, tensor.data);
  }
}

void edit(std::vector<Tensor> &tensors, std::string_view text) {
  const auto [verb, what] = split(text, '=');
  const auto [name, argument] = split(what, ':');
  if (verb == "drop") {
    find(tensors, name);
    std::erase_if(tensors, [&](const Tensor &t) { return t.name == name; });
  } else if (verb == "keep") {
    const std::vector<std::string_view> names = list(what);
    std::erase_if(tensors, [&](const Tensor &t) {
      return std::find(names.begin(), names.end(), t.name) == names.end();
    });
  } else if (verb == "copy") {
    Tensor copy = find(tensors, name);
    copy.name = argument;
    tensors.push_back(std::move(copy));
  } else if (verb == "shape") {
    Tensor &tensor = find(tensors, name);
    tensor.shape.clear();
    for (const std::string_view d : list(argument))
      tensor.shape.push_back(number<int64_t>(d));
    tensor.data.assign(elements(tensor.shape), 0.0);
  } else if (verb == "type") {
    const std::optional<DType> dtype = dtypeFromSafetensorsName(argument);
    if (!dtype)
      fail("'{}' is no type", argument);
    for (Tensor &tensor : tensors) {
      if (name == "*" ? tensor.dtype != DType::F64 : &tensor != &find(tensors, name))
        continue;
      tensor.dtype = *dtype;
      if (!isReal(*dtype))
        for (double &v : tensor.data)
          v = std::trunc(v);
    }
  } else if (verb == "value") {
    const auto [index, value] = split(argument, '=');
    find(tensors, name).data.at(number<size_t>(index)) = number<double>(value);
  } else if (verb == "scalar") {
    tensors.push_back({std::string(name), DType::F64, {}, {number<double>(argument)}});
  } else if (verb == "from") {
    append(tensors, what);
  } else {
    fail("unknown edit '{}'", text);
  }
}

void write(const char *path, const std::vector<Tensor> &tensors) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const Tensor &tensor : tensors)
    infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  SafetensorsWriter writer(path, infos);
  for (const Tensor &tensor : tensors) {
    std::vector<std::byte> bytes(tensor.data.size() * byteSize(tensor.dtype));
    fromDoubles(tensor.dtype, tensor.data, bytes);
    writer.append(tensor.name, bytes);
  }
  writer.commit();
}

} // namespace

int main(int argc, char **argv) {
  try {
    if (argc < 3 || std::string_view(argv[1]) != "cs336") {
      std::fputs(kUsage, stderr);
      return 1;
    }
    std::vector<Tensor> tensors = cs336();
    for (int i = 3; i < argc; ++i)
      edit(tensors, argv[i]);
    write(argv[2], tensors);
    return 0;
  } catch (const std::exception &error) {
    fmt::print(stderr, "make-golden-inputs: {}\n", error.what());
    return 1;
  }
}
