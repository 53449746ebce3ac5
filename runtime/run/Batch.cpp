// Fills the inputs of a program on the host.
#include "runtime/run/Batch.h"

#include "runtime/support/Error.h"
#include "runtime/support/InverseNormal.h"
#include "runtime/support/Philox.h"
#include "runtime/support/PlaceText.h"
#include "runtime/support/Sampling.h"
#include "runtime/support/Shown.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

using namespace hydra::runtime;
using namespace hydra::planfile;
namespace support = hydra::support;
using support::shown;

namespace {

/// Element `index` of dense integers.
int64_t integerAt(support::DType dtype, const std::vector<std::byte> &values, size_t index) {
  const size_t size = support::byteSize(dtype);
  double value = 0;
  support::toDoubles(dtype, std::span(values).subspan(index * size, size), std::span(&value, 1));
  return static_cast<int64_t>(value);
}

/// Of programs that read on, what they are given beside tokens: a row for each sequence, which has
/// as many tokens as it can have, and of whose next one any may be drawn.
std::vector<std::byte> rowsOfSequence(std::string_view name, int64_t batch, double position,
                                      uint64_t seed) {
  std::vector<std::byte> rows;
  const auto add = [&](const auto &row) {
    const auto bytes = std::as_bytes(std::span(&row, 1));
    rows.insert(rows.end(), bytes.begin(), bytes.end());
  };
  for (int64_t i = 0; i < batch; ++i)
    if (name == "position")
      add(static_cast<float>(position));
    else if (name == "settings")
      add(support::SamplingSettings());
    else if (name == "draw")
      add(support::SamplingDraw::of(seed, static_cast<uint32_t>(i), 0));
  return rows;
}

/// How many tokens of each sequence a program reads: the last dimension of what it is given of
/// them; 1 where that is one token.
int64_t lengthOfCall(const Plan &plan, const Program &program) {
  for (const Input *input : *program.inputs())
    if (input->kind() == InputKind::tokens) {
      const std::vector<int64_t> shape = shapeOf(*plan.tensors()->Get(input->tensor()));
      return shape.empty() ? 1 : shape.back();
    }
  return 0;
}

} // namespace

void hydra::runtime::checkIds(const Input &input, support::DType dtype,
                              const std::vector<int64_t> &shape,
                              const std::vector<std::byte> &values) {
  if (input.kind() == InputKind::values)
    return;
  const auto elements = static_cast<int64_t>(values.size() / support::byteSize(dtype));
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t id = integerAt(dtype, values, static_cast<size_t>(i));
    if ((id >= 0 && id < input.limit()) ||
        (input.kind() == InputKind::labels && id == input.ignored()))
      continue;
    const std::string ignored =
        input.kind() == InputKind::labels ? fmt::format(", and not {}", input.ignored()) : "";
    support::fail("{}{} = {} is not in [0, {}){}", shown(input.name()->string_view()),
                  support::placeText(shape, i), id, input.limit(), ignored);
  }
}

Batch::Batch(const Plan &plan, const Program &program, const GivenTensors &given, uint32_t rank) {
  for (const Input *input : *program.inputs()) {
    const Tensor *tensor = plan.tensors()->Get(input->tensor());
    const BatchPart part(plan, *tensor, input->batch_dimension(), rank);
    std::vector<std::byte> values =
        given.values(input->name()->string_view(), dtypeOf(*tensor), part.wholeShape());
    checkIds(*input, dtypeOf(*tensor), part.wholeShape(), values);
    entries.push_back({input, tensor, part, part.cut(std::move(values))});
  }
}

const char *hydra::runtime::randomTokensText(IdDistribution ids) {
  return ids == IdDistribution::zipf ? "random tokens by Zipf's law" : "random tokens";
}

Batch::Batch(const Plan &plan, const Program &program, uint64_t seed, uint32_t rank,
             IdDistribution ids)
    : seed(seed), synthetic(true) {
  std::map<int64_t, std::shared_ptr<const support::ZipfIds>> laws; // by how many ids there are
  const double position =
      static_cast<double>(program.context()) - static_cast<double>(lengthOfCall(plan, program));
  for (const Input *input : *program.inputs()) {
    const Tensor *tensor = plan.tensors()->Get(input->tensor());
    Entry entry{input, tensor, BatchPart(plan, *tensor, input->batch_dimension(), rank),
                std::vector<std::byte>(denseBytes(*tensor))};
    if (program.role() == ProgramRole::decode && input->kind() == InputKind::values &&
        tensor->shape()->size() > 0) {
      std::vector<std::byte> rows =
          rowsOfSequence(input->name()->string_view(), shapeOf(*tensor).front(), position, seed);
      entry.settled = rows.size() == entry.values.size();
      if (entry.settled)
        entry.values = std::move(rows);
    }
    if (ids == IdDistribution::zipf && input->kind() != InputKind::values) {
      auto &law = laws[input->limit()];
      if (!law)
        law = std::make_shared<const support::ZipfIds>(static_cast<uint64_t>(input->limit()));
      entry.zipf = law;
    }
    entries.push_back(std::move(entry));
  }
  advance(0);
}

Batch::Batch(const Plan &plan, const Program &program, BatchSource &source) : source(&source) {
  std::map<InputKind, const Input *> taken;
  for (const Input *input : *program.inputs()) {
    const Tensor *tensor = plan.tensors()->Get(input->tensor());
    // What the source would give, if the program looked it up.
    if (input->kind() == InputKind::values && dtypeOf(*tensor) == support::DType::I32 &&
        shapeOf(*tensor).size() == 2)
      support::fail("text gives tokens and labels, but program {} takes {} as integers of any "
                    "value: no embedding and no loss has them as ids; use --inputs",
                    shown(program.name()->string_view()), shown(input->name()->string_view()));
    if (input->kind() == InputKind::values || dtypeOf(*tensor) != support::DType::I32)
      support::fail("text gives tokens and labels, but program {} also takes {}; use --inputs",
                    shown(program.name()->string_view()), shown(input->name()->string_view()));
    // Which of two inputs it is meant for, nothing says.
    if (const auto [known, isFirst] = taken.try_emplace(input->kind(), input); !isFirst)
      support::fail("text gives tokens and labels, but program {} takes both {} and {} as {}; use "
                    "--inputs",
                    shown(program.name()->string_view()),
                    shown(known->second->name()->string_view()),
                    shown(input->name()->string_view()),
                    input->kind() == InputKind::tokens ? "tokens" : "labels");
    // The source gives this rank's rows already.
    entries.push_back({input, tensor, BatchPart(plan, *tensor, -1, 0),
                       std::vector<std::byte>(denseBytes(*tensor))});
  }
  const auto tokens = taken.find(InputKind::tokens), labels = taken.find(InputKind::labels);
  if (tokens == taken.end() || labels == taken.end())
    return;
  const std::vector<int64_t> has = shapeOf(*plan.tensors()->Get(labels->second->tensor())),
                             wanted = shapeOf(*plan.tensors()->Get(tokens->second->tensor()));
  if (has != wanted)
    support::fail("text gives a label for each token, but program {} takes {} [{}]; expected [{}] "
                  "as {}, or --inputs",
                  shown(program.name()->string_view()),
                  shown(labels->second->name()->string_view()), fmt::join(has, ", "),
                  fmt::join(wanted, ", "), shown(tokens->second->name()->string_view()));
}

void Batch::advance(uint64_t draw) {
  if (synthetic)
    return drawSynthetic(draw);
  if (!source || entries.empty())
    return;
  const BatchSource::Rows rows = source->next();
  for (Entry &entry : entries) {
    const std::span<const std::byte> values =
        std::as_bytes(entry.input->kind() == InputKind::tokens ? rows.tokens : rows.labels);
    if (values.size() != entry.values.size())
      support::fail("a batch has {} bytes for input {}; expected {}", values.size(),
                    shown(entry.input->name()->string_view()), entry.values.size());
    std::copy(values.begin(), values.end(), entry.values.begin());
  }
}

void Batch::drawSynthetic(uint64_t draw) {
  const support::Philox text(seed, "tokens", draw); // as hydra-interpret draws them
  for (Entry &entry : entries) {
    if (entry.settled)
      continue;
    const support::DType dtype = dtypeOf(*entry.tensor);
    if (entry.input->kind() == InputKind::values && dtype == support::DType::I32)
      support::fail("the input {} has no synthetic values; give it with --inputs",
                    shown(entry.input->name()->string_view()));
    const size_t size = support::byteSize(dtype);
    const auto elements = static_cast<uint64_t>(elementsOf(*entry.tensor));
    const std::vector<int64_t> &shape = entry.part.wholeShape();
    const uint64_t length = shape.empty() ? 1 : static_cast<uint64_t>(shape.back());
    const support::Philox numbers(seed, entry.input->name()->string_view(), draw);
    const bool isLabel = entry.input->kind() == InputKind::labels;
    for (uint64_t at = 0; at < elements; ++at) {
      // Each value is what one rank alone would draw in its place of the whole.
      const auto i = static_cast<uint64_t>(entry.part.wholeIndex(static_cast<int64_t>(at)));
      double value = 0;
      if (entry.input->kind() == InputKind::values)
        value = support::inverseNormalCdf(numbers.uniform53(i));
      else { // rows of length + 1 tokens; labels are one ahead
        const double u = text.uniform53(i / length * (length + 1) + i % length + (isLabel ? 1 : 0));
        value = entry.zipf ? static_cast<double>((*entry.zipf)(u))
                           : std::floor(u * static_cast<double>(entry.input->limit()));
      }
      support::fromDoubles(dtype, std::span(&value, 1),
                           std::span(entry.values).subspan(at * size, size));
    }
  }
}

void Batch::write(Executor &executor, const Program &program) const {
  for (const Input *input : *program.inputs())
    for (const Entry &entry : entries)
      if (entry.input->name()->string_view() == input->name()->string_view())
        executor.write(input->tensor(), entry.values);
}

std::optional<int64_t> Batch::countedLabels() const {
  std::optional<int64_t> count;
  for (const Entry &entry : entries) {
    if (entry.input->kind() != InputKind::labels)
      continue;
    const support::DType dtype = dtypeOf(*entry.tensor);
    const size_t labels = entry.values.size() / support::byteSize(dtype);
    for (size_t i = 0; i < labels; ++i)
      count = count.value_or(0) + (integerAt(dtype, entry.values, i) != entry.input->ignored());
  }
  return count;
}
