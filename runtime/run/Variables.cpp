// Moves variables one at a time, in pieces, which all threads of the rank round in staging memory.
#include "runtime/run/Variables.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/Mesh.h"
#include "runtime/support/Error.h"
#include "runtime/support/Int4Groups.h"
#include "runtime/support/Int8Rows.h"
#include "runtime/support/Integers.h"
#include "runtime/support/Shown.h"
#include "runtime/support/SplitFloat.h"
#include "runtime/support/StreamHash.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include <xxhash.h>

using namespace hydra::runtime;
using namespace hydra::planfile;
namespace support = hydra::support;

namespace {

/// Elements that a thread takes at a time: tens of microseconds.
constexpr size_t kTask = size_t{1} << 14;

/// Adds the hashes of blocks of the bytes, which threads take.
void addBlocks(Executor &executor, std::span<const std::byte> bytes, support::StreamHash &hash) {
  constexpr size_t block = size_t{1} << 18;
  std::vector<uint64_t> hashes(support::ceilDiv(bytes.size(), block));
  executor.parallelFor(static_cast<int64_t>(hashes.size()), [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * block;
    const auto own = bytes.subspan(begin, std::min(block, bytes.size() - begin));
    hashes[static_cast<size_t>(task)] = XXH3_64bits(own.data(), own.size());
  });
  hash.add(std::as_bytes(std::span(hashes)));
}

/// The same numbers in another type, rounded to nearest.
void convert(Executor &executor, support::DType from, std::span<const std::byte> values,
             support::DType to, std::span<std::byte> out) {
  const size_t fromSize = support::byteSize(from), toSize = support::byteSize(to);
  inRanges(executor, out.size() / toSize, [&](size_t begin, size_t end) {
    support::convert(from, values.subspan(begin * fromSize, (end - begin) * fromSize), to,
                     out.subspan(begin * toSize, (end - begin) * toSize));
  });
}

/// A variable and the part of it that a rank holds.
struct Held {
  Held(const Plan &plan, const Variable &variable, uint64_t rank)
      : tensor(variable.tensor()), dtype(dtypeOf(*plan.tensors()->Get(tensor))),
        part(plan, variable, rank), dense(isDense(*plan.tensors()->Get(tensor))) {}

  /// Where element `index` begins in the tensor.
  uint64_t byteOf(int64_t index) const {
    return static_cast<uint64_t>(part.place + index - part.first) * support::byteSize(dtype);
  }
  void write(Executor &executor, int64_t first, std::span<const std::byte> values) const {
    if (dense)
      executor.writeRange(tensor, byteOf(first), values);
    else
      executor.write(tensor, values); // of all elements
  }
  /// Zeros all that the rank holds, of a dense tensor.
  void clear(Executor &executor) const {
    if (part.count > 0)
      executor.clearRange(tensor, byteOf(part.first),
                          static_cast<uint64_t>(part.count) * support::byteSize(dtype));
  }
  void read(Executor &executor, int64_t first, std::span<std::byte> values) const {
    if (dense)
      executor.readRange(tensor, byteOf(first), values);
    else
      executor.read(tensor, values);
  }

  uint32_t tensor;
  support::DType dtype;
  VariablePart part;
  bool dense;
};

/// What a rank holds of a variable, and behind it of its copies.
std::vector<Held> heldWithCopies(const Plan &plan, const Variable &variable, uint64_t rank) {
  std::vector<Held> all = {Held(plan, variable, rank)};
  for (const Variable *copy : *plan.variables())
    if (isCopy(*copy) && plan.variables()->Get(static_cast<uint32_t>(copy->owner())) == &variable)
      all.emplace_back(plan, *copy, rank);
  return all;
}

/// Staging memory of pieces of a variable: their values in its own type, and behind them the values
/// of each copy in another.
class Staged {
public:
  explicit Staged(const std::vector<Held> &all) : all(all), dtype(all.front().dtype) {}

  /// Elements of a piece, of which whole tasks fit into staging memory.
  int64_t most(int64_t elements) const {
    if (!std::ranges::all_of(all, &Held::dense))
      return elements;
    const size_t fit = Executor::kStagingBytes / bytesOf(kTask) * kTask;
    return std::min(kPiece, static_cast<int64_t>(std::max(fit, kTask)));
  }
  /// For a piece; what was taken before belongs to the device.
  void begin(Executor &executor, int64_t elements) {
    left = executor.staging(bytesOf(static_cast<size_t>(elements)));
  }
  /// The next values of the piece.
  std::span<std::byte> take(support::DType type, int64_t elements) {
    const size_t bytes = static_cast<size_t>(elements) * support::byteSize(type);
    const std::span<std::byte> taken = left.first(bytes);
    left = left.subspan(aligned(bytes));
    return taken;
  }

private:
  static constexpr size_t aligned(size_t bytes) { return support::roundUp(bytes, 64); }
  size_t bytesOf(size_t elements) const {
    size_t bytes = aligned(elements * support::byteSize(dtype));
    for (const Held &held : all)
      if (held.dtype != dtype)
        bytes += aligned(elements * support::byteSize(held.dtype));
    return bytes;
  }

  const std::vector<Held> &all;
  support::DType dtype;
  std::span<std::byte> left;
};

/// Elements [begin, end).
struct Elements {
  int64_t begin, end;

  bool empty() const { return begin >= end; }
  Elements of(const VariablePart &part) const {
    return {std::max(begin, part.first), std::min(end, part.end())};
  }
};

} // namespace

namespace hydra::runtime {

void inRanges(Executor &executor, size_t elements,
              const std::function<void(size_t begin, size_t end)> &work) {
  executor.parallelFor(static_cast<int64_t>(support::ceilDiv(elements, kTask)), [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * kTask;
    work(begin, std::min(begin + kTask, elements));
  });
}

bool isCopy(const Variable &variable) { return variable.role() == VariableRole::copy; }

bool followsOthers(const Variable &variable) {
  return isCopy(variable) || variable.role() == VariableRole::derived ||
         variable.role() == VariableRole::scale || variable.role() == VariableRole::rest;
}

bool isSaved(const Variable &variable) {
  return !followsOthers(variable) && variable.role() != VariableRole::step_sum &&
         variable.role() != VariableRole::gradient_part && variable.role() != VariableRole::cache;
}

bool isInCheckpoint(const Variable &variable) {
  return isSaved(variable) && variable.role() != VariableRole::gradient;
}

std::vector<const Variable *>
variablesByName(const Plan &plan, const std::function<bool(const Variable &)> &isWanted) {
  std::vector<const Variable *> variables;
  std::ranges::copy_if(*plan.variables(), std::back_inserter(variables),
                       [&](const Variable *variable) { return isWanted(*variable); });
  std::ranges::sort(variables, {},
                    [](const Variable *variable) { return variable->name()->string_view(); });
  return variables;
}

const Variable *restOf(const Plan &plan, const Variable &variable) {
  if (variable.role() != VariableRole::parameter)
    return nullptr;
  const auto rest = std::ranges::find_if(*plan.variables(), [&](const Variable *rest) {
    return rest->role() == VariableRole::rest &&
           plan.variables()->Get(static_cast<uint32_t>(rest->owner())) == &variable;
  });
  return rest == plan.variables()->end() ? nullptr : *rest;
}

support::DType dtypeOf(const Plan &plan, const Variable &variable) {
  const support::DType held = dtypeOf(*plan.tensors()->Get(variable.tensor()));
  return held == support::DType::BF16 && restOf(plan, variable) ? support::DType::F32 : held;
}

bool isInt8(const Plan &plan, const Variable &variable) {
  return variable.role() == VariableRole::parameter &&
         dtypeOf(plan, variable) == support::DType::I8;
}

support::DType givenDtypeOf(const Plan &plan, const Variable &variable) {
  return isInt8(plan, variable) ? support::DType::F32 : dtypeOf(plan, variable);
}

namespace {

const Variable &scaleOf(const Plan &plan, const Variable &parameter) {
  return **std::ranges::find_if(*plan.variables(), [&](const Variable *variable) {
    return variable->role() == VariableRole::scale &&
           plan.variables()->Get(static_cast<uint32_t>(variable->owner())) == &parameter;
  });
}

/// A row of numbers as integers, and its scales.
void roundRow(std::span<const float> row, std::span<int8_t> integers, std::span<float> scales) {
  scales[0] = support::quantizeRow(row, integers);
}
void roundRow(std::span<const float> row, std::span<int8_t> bytes, std::span<uint16_t> scales) {
  constexpr auto numbersOf = static_cast<size_t>(support::kInt4Group),
                 bytesOf = static_cast<size_t>(support::kInt4Bytes);
  for (size_t i = 0; i < scales.size(); ++i)
    scales[i] = support::quantizeGroup(row.subspan(i * numbersOf, numbersOf),
                                       bytes.subspan(i * bytesOf, bytesOf));
}

/// Rows as integers, and their scales; as many at a time as a piece has. Every rank has all of such
/// a parameter. `Scale` is the type of a scale.
template <typename Scale>
void writeRounded(const Plan &plan, Executor &executor, const Variable &variable, uint64_t rank,
                  const ElementSource &source) {
  const Held integers(plan, variable, rank), scales(plan, scaleOf(plan, variable), rank);
  const std::vector<int64_t> shape = shapeOf(plan, variable);
  const int64_t rows = shape[0], columns = shape[1], most = std::max<int64_t>(1, kPiece / columns);
  const int64_t rowBytes = elementsOf(*plan.tensors()->Get(variable.tensor())) / rows,
                rowScales = elementsOf(plan, scaleOf(plan, variable)) / rows;
  std::vector<float> given;
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t count = std::min(most, rows - first);
    given.resize(static_cast<size_t>(count * columns));
    source(first * columns, std::as_writable_bytes(std::span(given)));
    // The integers begin where the scales end, which are aligned to more.
    const size_t ofScales = static_cast<size_t>(count * rowScales) * sizeof(Scale);
    const std::span<std::byte> staged =
        executor.staging(ofScales + static_cast<size_t>(count * rowBytes));
    executor.parallelFor(count, [&](int64_t row) {
      const std::span<const float> numbers = given;
      roundRow(numbers.subspan(static_cast<size_t>(row * columns), static_cast<size_t>(columns)),
               std::span(reinterpret_cast<int8_t *>(staged.data() + ofScales) + row * rowBytes,
                         static_cast<size_t>(rowBytes)),
               std::span(reinterpret_cast<Scale *>(staged.data()) + row * rowScales,
                         static_cast<size_t>(rowScales)));
    });
    scales.write(executor, first * rowScales, staged.first(ofScales));
    integers.write(executor, first * rowBytes, staged.subspan(ofScales));
  }
}

void writeIntegers(const Plan &plan, Executor &executor, const Variable &variable, uint64_t rank,
                   const ElementSource &source) {
  const auto write = variable.packed() ? writeRounded<uint16_t> : writeRounded<float>;
  write(plan, executor, variable, rank, source);
}

/// A parameter in two halves, of which a rank holds the same part.
struct Halves {
  Halves(const Plan &plan, const Variable &variable, const Variable &rest, uint64_t rank)
      : high(plan, variable, rank), rest(plan, rest, rank) {}

  /// Elements of a piece.
  int64_t most() const {
    return high.dense && rest.dense
               ? std::min(kPiece, static_cast<int64_t>(Executor::kStagingBytes / sizeof(float)))
               : std::max<int64_t>(1, high.part.count);
  }

  /// Staging memory of the halves of so many elements.
  struct Piece {
    Piece(Executor &executor, int64_t elements)
        : bytes(executor.staging(static_cast<size_t>(elements) * sizeof(float))) {}

    std::span<std::byte> high() const { return bytes.first(bytes.size() / 2); }
    std::span<std::byte> rest() const { return bytes.subspan(bytes.size() / 2); }
    std::span<uint16_t> highs() const {
      return {reinterpret_cast<uint16_t *>(high().data()), high().size() / 2};
    }
    std::span<int16_t> rests() const {
      return {reinterpret_cast<int16_t *>(rest().data()), rest().size() / 2};
    }

    std::span<std::byte> bytes;
  };

  void write(Executor &executor, const ElementSource &source) const {
    std::vector<float> given;
    for (int64_t at = high.part.first; at < high.part.end(); at += most()) {
      const int64_t count = std::min(most(), high.part.end() - at);
      given.resize(static_cast<size_t>(count));
      source(at, std::as_writable_bytes(std::span(given)));
      const Piece piece(executor, count);
      inRanges(executor, given.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const support::SplitFloat halves = support::splitFloat(given[i]);
          piece.highs()[i] = halves.high;
          piece.rests()[i] = halves.rest;
        }
      });
      high.write(executor, at, piece.high());
      rest.write(executor, at, piece.rest());
    }
  }

  void read(Executor &executor, const Elements &elements, const ElementSink &sink) const {
    std::vector<float> joined;
    for (int64_t at = elements.begin; at < elements.end; at += most()) {
      const int64_t count = std::min(most(), elements.end - at);
      const Piece piece(executor, count);
      high.read(executor, at, piece.high());
      rest.read(executor, at, piece.rest());
      joined.resize(static_cast<size_t>(count));
      inRanges(executor, joined.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i)
          joined[i] = support::joinFloat({piece.highs()[i], piece.rests()[i]});
      });
      sink(at, std::as_bytes(std::span(joined)));
    }
  }

  Held high, rest;
};

} // namespace

void writeVariable(const Plan &plan, Executor &executor, const Variable &variable, uint64_t rank,
                   const ElementSource &source) {
  if (isInt8(plan, variable))
    return writeIntegers(plan, executor, variable, rank, source);
  if (const Variable *rest = restOf(plan, variable))
    return Halves(plan, variable, *rest, rank).write(executor, source);
  const std::vector<Held> all = heldWithCopies(plan, variable, rank);
  const support::DType dtype = all.front().dtype;
  const size_t size = support::byteSize(dtype);
  const int64_t elements = elementsOf(plan, variable);
  Staged staged(all);
  const int64_t most = staged.most(elements);
  for (int64_t at = 0; at < elements; at += most) {
    const Elements piece{at, std::min(elements, at + most)};
    Elements needed{piece.end, piece.begin};
    for (const Held &held : all)
      if (const Elements own = piece.of(held.part); !own.empty())
        needed = {std::min(needed.begin, own.begin), std::max(needed.end, own.end)};
    if (needed.empty())
      continue;
    staged.begin(executor, needed.end - needed.begin);
    const std::span<std::byte> values = staged.take(dtype, needed.end - needed.begin);
    source(needed.begin, values);
    for (const Held &held : all) {
      const Elements own = piece.of(held.part);
      if (own.empty())
        continue;
      const auto exact = std::span<const std::byte>(values).subspan(
          static_cast<size_t>(own.begin - needed.begin) * size,
          static_cast<size_t>(own.end - own.begin) * size);
      if (held.dtype == dtype) {
        held.write(executor, own.begin, exact);
        continue;
      }
      const std::span<std::byte> rounded = staged.take(held.dtype, own.end - own.begin);
      convert(executor, dtype, exact, held.dtype, rounded);
      held.write(executor, own.begin, rounded);
    }
  }
}

void writeVariable(const Plan &plan, Executor &executor, const Variable &variable, uint64_t rank,
                   std::span<const std::byte> values) {
  const size_t size = support::byteSize(givenDtypeOf(plan, variable));
  if (const auto expected = static_cast<size_t>(elementsOf(plan, variable)) * size;
      values.size() != expected)
    support::fail("{}: {} bytes for a variable of {}",
                  support::shown(variable.name()->string_view()), values.size(), expected);
  writeVariable(plan, executor, variable, rank, [&](int64_t first, std::span<std::byte> out) {
    std::ranges::copy(values.subspan(static_cast<size_t>(first) * size, out.size()), out.begin());
  });
}

void readVariable(const Plan &plan, Executor &executor, const Variable &variable, uint64_t rank,
                  const ElementSink &sink) {
  const VariablePart part(plan, variable, rank);
  readElements(plan, executor, variable, rank, part.first, part.end(), sink);
}

void readElements(const Plan &plan, Executor &executor, const Variable &variable, uint64_t rank,
                  int64_t begin, int64_t end, const ElementSink &sink) {
  if (const Variable *rest = restOf(plan, variable))
    return Halves(plan, variable, *rest, rank).read(executor, {begin, end}, sink);
  const Held held(plan, variable, rank);
  const size_t size = support::byteSize(held.dtype);
  const int64_t most = held.dense
                           ? std::min(kPiece, static_cast<int64_t>(Executor::kStagingBytes / size))
                           : held.part.count;
  for (int64_t at = begin; at < end; at += most) {
    const int64_t count = std::min(most, end - at);
    const std::span<std::byte> bytes = executor.staging(static_cast<size_t>(count) * size);
    held.read(executor, at, bytes);
    sink(at, bytes);
  }
}

bool clearVariable(const Plan &plan, Executor &executor, const Variable &variable, uint64_t rank) {
  std::vector<Held> all = heldWithCopies(plan, variable, rank);
  if (const Variable *rest = restOf(plan, variable))
    all.emplace_back(plan, *rest, rank);
  if (isInt8(plan, variable) || !std::ranges::all_of(all, &Held::dense))
    return false;
  for (const Held &held : all)
    held.clear(executor);
  return true;
}

uint64_t heldBytes(const Plan &plan, const Variable &variable, uint64_t rank) {
  const auto count = static_cast<uint64_t>(VariablePart(plan, variable, rank).count);
  return variable.packed() ? count / 2 : count * support::byteSize(dtypeOf(plan, variable));
}

void clearGaps(const Plan &plan, Executor &executor, uint64_t rank) {
  std::map<uint32_t, std::vector<Elements>> units; // by tensor, places of members
  for (const Variable *variable : *plan.variables()) {
    if (!variable->member())
      continue;
    const VariablePart part(plan, *variable, rank);
    units[variable->tensor()].push_back({part.place, part.place + part.count});
  }
  for (auto &[index, places] : units) {
    const Tensor &tensor = *plan.tensors()->Get(index);
    const size_t size = support::byteSize(dtypeOf(tensor));
    const int64_t all = elementsOf(tensor);
    std::ranges::sort(places, {}, &Elements::begin);
    places.push_back({all, all});
    int64_t end = 0;
    for (const Elements &place : places) {
      if (place.begin > end)
        executor.clearRange(index, static_cast<uint64_t>(end) * size,
                            static_cast<uint64_t>(place.begin - end) * size);
      end = std::max(end, place.end);
    }
  }
}

std::vector<Claim> hashesOfVariables(const PlanFile &file, Executor &executor, uint64_t rank) {
  const Plan &plan = file.plan();
  std::map<std::vector<uint32_t>, support::StreamHash> hashes; // by the axes that cut
  for (const Variable *variable : *plan.variables())
    if (isSaved(*variable)) {
      support::StreamHash &hash = hashes[VariablePart(plan, *variable, rank).axes];
      readVariable(
          plan, executor, *variable, rank,
          [&](int64_t, std::span<const std::byte> values) { addBlocks(executor, values, hash); });
    }
  std::vector<Claim> claims;
  if (!hashes.contains({}))
    claims.push_back({"parameters and states with hash", ""});
  for (auto &[axes, hash] : hashes) {
    const std::string value = fmt::format("{:016x}", hash.value());
    if (axes.empty())
      claims.push_back({"parameters and states with hash", value});
    else
      claims.push_back({fmt::format("pieces of parameters and states over {} with hash",
                                    support::shown(axesText(plan, axes))),
                        value, coordinateOf(plan, rank, axes)});
  }
  return claims;
}

bool isFinite(const PlanFile &file, Executor &executor, const Variable &variable, uint64_t rank) {
  bool finite = true;
  readVariable(
      file.plan(), executor, variable, rank, [&](int64_t, std::span<const std::byte> values) {
        finite = finite && !support::firstNotFinite(dtypeOf(file.plan(), variable), values);
      });
  return finite;
}

ParameterCount countParameters(const Plan &plan) {
  ParameterCount count;
  for (const Variable *variable : *plan.variables())
    if (variable->role() == VariableRole::parameter) {
      const auto elements = static_cast<uint64_t>(elementsOf(plan, *variable));
      count.all += elements;
      count.trained += variable->frozen() ? 0 : elements;
    }
  return count;
}

} // namespace hydra::runtime
