// Checks of names and shapes first, then bytes.
#include "frontend/Transfer.h"

#include "frontend/Conversion.h"
#include "frontend/Lora.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StopSignal.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace hydra::frontend {

using support::DType;
using support::fail;
using support::SafetensorsFile;
using support::shapeText;
using support::shown;
using support::TensorPlace;

namespace {

constexpr uint64_t kPiece = uint64_t{32}
                            << 20; ///< bytes at a time; a multiple of every format's size

/// A tensor on its way, or a part of one: the bytes [begin, end) of what is read, or the next of
/// what is written.
struct Move {
  const SafetensorsFile *file;
  const TensorPlace *from;
  uint64_t begin, end;
  support::TensorInfo to;
  bool transposed;
  const Adapters *adapters = nullptr; ///< that are added to it
};

/// The elements of a matrix [rows, columns] as [columns, rows].
std::vector<std::byte> transpose(std::span<const std::byte> matrix, uint64_t rows, uint64_t columns,
                                 size_t size) {
  std::vector<std::byte> result(matrix.size());
  constexpr uint64_t kTile = 64; // of elements, whose rows stay in the cache
  for (uint64_t r0 = 0; r0 < rows; r0 += kTile)
    for (uint64_t c0 = 0; c0 < columns; c0 += kTile)
      for (uint64_t r = r0; r < std::min(rows, r0 + kTile); ++r)
        for (uint64_t c = c0; c < std::min(columns, c0 + kTile); ++c)
          std::memcpy(&result[(c * rows + r) * size], &matrix[(r * columns + c) * size], size);
  return result;
}

/// Throws Error for a number of the tensor `name` that the format cannot hold.
std::vector<std::byte> convert(std::vector<std::byte> bytes, DType from, DType to,
                               const std::string &name) {
  if (from == to)
    return bytes;
  const size_t elements = bytes.size() / support::byteSize(from), size = support::byteSize(to);
  std::vector<std::byte> result(elements * size);
  constexpr size_t kChunk = 4096;
  std::vector<double> doubles(kChunk);
  for (size_t i = 0; i < elements; i += kChunk) {
    const size_t count = std::min(kChunk, elements - i), wide = support::byteSize(from);
    const std::span<double> part = std::span(doubles).first(count);
    support::toDoubles(from, std::span(bytes).subspan(i * wide, count * wide), part);
    writeNumbers(to, part, std::span(result).subspan(i * size, count * size), name);
  }
  return result;
}

void run(const std::vector<Move> &moves, const support::OutputPath &path,
         const support::SafetensorsMetadata &metadata) {
  std::vector<support::TensorInfo> infos;
  for (const Move &move : moves)
    if (infos.empty() || infos.back().name != move.to.name)
      infos.push_back(move.to);
  support::SafetensorsWriter writer(path, infos, metadata);
  for (const Move &move : moves) {
    support::StopSignal::check(path.shown);
    const TensorPlace &from = *move.from;
    if (move.adapters && move.adapters->of(from.name)) {
      const auto rows = static_cast<uint64_t>(from.shape[from.shape.size() - 2]),
                 columns = static_cast<uint64_t>(from.shape.back()),
                 matrix = rows * columns * support::byteSize(from.dtype);
      for (uint64_t at = move.begin; at < move.end; at += matrix) {
        support::StopSignal::check(path.shown);
        std::vector<std::byte> sum = move.adapters->merged(from, at / matrix, move.to.dtype);
        if (move.transposed)
          sum = transpose(sum, rows, columns, support::byteSize(move.to.dtype));
        writer.append(move.to.name, sum);
      }
      continue;
    }
    if (move.transposed) {
      const std::vector<std::byte> turned =
          transpose(move.file->read(from), static_cast<uint64_t>(from.shape[0]),
                    static_cast<uint64_t>(from.shape[1]), support::byteSize(from.dtype));
      writer.append(move.to.name, convert(turned, from.dtype, move.to.dtype, from.name));
      continue;
    }
    for (uint64_t at = move.begin; at < move.end; at += kPiece) {
      support::StopSignal::check(path.shown);
      std::vector<std::byte> piece(std::min(kPiece, move.end - at));
      move.file->read(from, at, piece);
      writer.append(move.to.name, convert(std::move(piece), from.dtype, move.to.dtype, from.name));
    }
  }
  writer.commit();
}

void checkFloating(const TensorPlace &tensor, const std::string &where) {
  if (!support::isFloat(tensor.dtype))
    fail("{} is {}; expected floating-point numbers", where,
         support::safetensorsName(tensor.dtype));
}

/// Whether two tensors are the same, bit for bit.
bool areEqual(const StoredTensor &one, const StoredTensor &other) {
  const TensorPlace &a = *one.place, &b = *other.place;
  if (a.dtype != b.dtype || a.shape != b.shape)
    return false;
  std::vector<std::byte> left, right;
  constexpr uint64_t kFirst = 4096; // which tells most of them apart
  for (uint64_t at = 0, all = a.end - a.begin; at < all; at += left.size()) {
    left.resize(std::min(at == 0 ? kFirst : kPiece, all - at));
    right.resize(left.size());
    one.file->read(a, at, left);
    other.file->read(b, at, right);
    if (left != right)
      return false;
  }
  return true;
}

/// Of a tied model, files may have the table a second time; then it must be the same.
void checkTiedHead(const StoredTensor &head, const StoredTensor &embedding) {
  if (!areEqual(head, embedding))
    fail("{} differs from '{}' although tie_word_embeddings is true", head.where(),
         shown(embedding.place->name));
}

void checkRest(const WeightFiles &weights, const Architecture &a,
               const std::set<std::string_view> &used) {
  for (const auto &[name, tensor] : weights.tensors()) {
    if (used.contains(name) || std::ranges::any_of(a.buffers, [&](const std::string &ending) {
          return name.ends_with(ending);
        }))
      continue;
    const StoredTensor *embedding = weights.find(a.names.embedding + ".weight");
    if (!a.tied || name != a.names.head + ".weight" || !embedding)
      fail("{} is no weight of this model of the family {}", tensor.where(), a.family);
    checkTiedHead(tensor, *embedding);
  }
}

/// The adapters of a file that are to be added to its parameters. Throws Error where there are some
/// and nobody has said what to do with them, and where there are none.
Adapters adaptersToMerge(const SafetensorsFile &file, bool merge) {
  Adapters adapters(file);
  if (adapters.any() && !merge)
    fail("{}: has adapters; expected --merge, which adds them to the parameters, or --adapter, "
         "which "
         "exports them alone",
         file.name());
  if (!adapters.any() && merge)
    fail("{}: has no adapters to merge", file.name());
  return adapters;
}

/// What is neither one of the tensors that are used, nor a copy of one, nor a buffer.
void checkRest(const WeightFiles &weights, std::span<const std::string_view> buffers,
               const std::set<std::string_view> &used) {
  for (const auto &[name, tensor] : weights.tensors()) {
    const auto isCopy = [&](std::string_view other) {
      return areEqual(tensor, *weights.find(other));
    };
    const bool known =
        used.contains(name) || std::ranges::any_of(buffers, [&](std::string_view ending) {
          return name.ends_with(ending);
        });
    if (!known && !std::ranges::any_of(used, isCopy))
      fail("{} is no weight of this model, and no copy of one", tensor.where());
  }
}

std::vector<int64_t> withoutOnes(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

/// What the table asks for, in its order, with the names of the tensors that are used.
std::vector<Move> movesOf(const WeightFiles &weights, std::span<const NamedParameter> table,
                          std::optional<DType> dtype, bool mayHaveOnes,
                          std::set<std::string_view> &used) {
  std::vector<Move> moves;
  for (const NamedParameter &parameter : table) {
    const std::vector<int64_t> shape = parameter.originShape();
    std::optional<DType> format = dtype;
    for (const std::string &origin : parameter.origins()) {
      const StoredTensor *tensor = weights.find(origin);
      if (!tensor)
        fail("{}: tensor '{}' is missing; expected {}", weights.name(), shown(origin),
             shapeText(shape));
      const TensorPlace &place = *tensor->place;
      if (place.shape != shape &&
          !(mayHaveOnes && !parameter.transposed && withoutOnes(place.shape) == withoutOnes(shape)))
        fail("{} is {}; expected {}", tensor->where(), shown(shapeText(place.shape)),
             shapeText(shape));
      checkFloating(place, tensor->where());
      if (format.value_or(place.dtype) != place.dtype && !dtype)
        fail("{} is {}; expected {}, as others of the same parameter", tensor->where(),
             support::safetensorsName(place.dtype), support::safetensorsName(*format));
      format = format.value_or(place.dtype);
      used.insert(place.name);
      moves.push_back({tensor->file,
                       &place,
                       0,
                       place.end - place.begin,
                       {parameter.name, *format, parameter.shape},
                       parameter.transposed});
    }
  }
  return moves;
}

} // namespace

bool lacksPrefix(const Architecture &a, const WeightFiles &weights) {
  const std::string name = a.names.embedding + ".weight";
  return !a.prefix.empty() && !weights.find(name) && weights.find(name.substr(a.prefix.size()));
}

bool lacksPrefix(const Architecture &a, std::span<const NamedParameter> table) {
  const std::string name = a.names.embedding + ".weight";
  const auto has = [&](std::string_view origin) {
    return std::ranges::any_of(table, [&](const auto &p) { return p.origin == origin; });
  };
  return !a.prefix.empty() && !has(name) && has(name.substr(a.prefix.size()));
}

Architecture withoutPrefix(Architecture a) {
  Names &n = a.names;
  for (std::string *name : {&n.embedding, &n.positions, &n.norm, &n.norm1, &n.q, &n.k, &n.v, &n.qkv,
                            &n.out, &n.qNorm, &n.kNorm, &n.postNorm1, &n.norm2, &n.router, &n.gate,
                            &n.up, &n.gateUp, &n.down, &n.postNorm2})
    if (name->starts_with(a.prefix))
      name->erase(0, a.prefix.size());
  a.prefix.clear();
  return a;
}

void importWeights(const WeightFiles &weights, const Architecture &architecture,
                   std::span<const NamedParameter> table, std::optional<DType> dtype,
                   const std::filesystem::path &path) {
  std::set<std::string_view> used;
  const std::vector<Move> moves = movesOf(weights, table, dtype, /*mayHaveOnes=*/false, used);
  checkRest(weights, architecture, used);
  run(moves, path, {});
}

void importWeights(const WeightFiles &weights, std::span<const NamedParameter> table,
                   std::span<const std::string_view> buffers, std::optional<DType> dtype,
                   const std::filesystem::path &path) {
  std::set<std::string_view> used;
  const std::vector<Move> moves = movesOf(weights, table, dtype, /*mayHaveOnes=*/true, used);
  checkRest(weights, buffers, used);
  run(moves, path, {});
}

void exportWeights(const SafetensorsFile &file, std::span<const NamedParameter> table,
                   std::span<const std::string> states, std::optional<DType> dtype,
                   const support::OutputPath &path, bool merge) {
  const Adapters adapters = adaptersToMerge(file, merge);
  std::vector<Move> moves;
  std::set<std::string_view> known(states.begin(), states.end());
  for (const NamedParameter &parameter : table) {
    const TensorPlace *tensor = file.find(parameter.name);
    if (!tensor)
      fail("{}: tensor '{}' is missing; expected {}", file.name(), shown(parameter.name),
           shapeText(parameter.shape));
    const std::string where = fmt::format("{}: tensor '{}'", file.name(), shown(tensor->name));
    if (tensor->shape != parameter.shape)
      fail("{} is {}; expected {}", where, shown(shapeText(tensor->shape)),
           shapeText(parameter.shape));
    checkFloating(*tensor, where);
    if (parameter.rows > 0 && parameter.shape.size() == 2 && adapters.of(parameter.name))
      fail(
          "{} has adapters, and others have its rows as tensors; expected --merge alone, under its "
          "own name",
          where);
    known.insert(parameter.name);
    const std::vector<std::string> origins = parameter.origins();
    const uint64_t bytes = (tensor->end - tensor->begin) / origins.size();
    for (size_t i = 0; i < origins.size(); ++i)
      moves.push_back({&file,
                       tensor,
                       i * bytes,
                       (i + 1) * bytes,
                       {origins[i], dtype.value_or(tensor->dtype), parameter.originShape()},
                       parameter.transposed,
                       &adapters});
  }
  for (const TensorPlace &tensor : file.tensors())
    if (!known.contains(tensor.name) && !adapters.isPart(tensor.name))
      fail("{}: tensor '{}' is no parameter or state of the model", file.name(),
           shown(tensor.name));
  run(moves, path, {{"format", "pt"}});
}

void mergeWeights(const SafetensorsFile &file, std::optional<DType> dtype,
                  const std::filesystem::path &path) {
  const Adapters adapters = adaptersToMerge(file, true);
  std::vector<Move> moves;
  for (const TensorPlace &tensor : file.tensors()) {
    const DType to = support::isFloat(tensor.dtype) ? dtype.value_or(tensor.dtype) : tensor.dtype;
    if (!adapters.isPart(tensor.name))
      moves.push_back({&file,
                       &tensor,
                       0,
                       tensor.end - tensor.begin,
                       {tensor.name, to, tensor.shape},
                       false,
                       &adapters});
  }
  support::SafetensorsMetadata metadata = file.metadata();
  metadata.erase("lora");
  run(moves, path, metadata);
}

} // namespace hydra::frontend
