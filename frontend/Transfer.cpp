// Checks of names and shapes first, then bytes.
#include "frontend/Transfer.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

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

/// A tensor on its way.
struct Move {
  const SafetensorsFile *file;
  const TensorPlace *from;
  support::TensorInfo to;
  bool transposed;
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

std::vector<std::byte> convert(std::vector<std::byte> bytes, DType from, DType to) {
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
    support::fromDoubles(to, part, std::span(result).subspan(i * size, count * size));
  }
  return result;
}

void run(const std::vector<Move> &moves, const std::filesystem::path &path,
         const support::SafetensorsMetadata &metadata) {
  std::vector<support::TensorInfo> infos;
  for (const Move &move : moves)
    infos.push_back(move.to);
  support::SafetensorsWriter writer(path, infos, metadata);
  for (const Move &move : moves) {
    const TensorPlace &from = *move.from;
    if (move.transposed) {
      const std::vector<std::byte> turned =
          transpose(move.file->read(from), static_cast<uint64_t>(from.shape[0]),
                    static_cast<uint64_t>(from.shape[1]), support::byteSize(from.dtype));
      writer.append(move.to.name, convert(turned, from.dtype, move.to.dtype));
      continue;
    }
    for (uint64_t at = 0, all = from.end - from.begin; at < all; at += kPiece) {
      std::vector<std::byte> piece(std::min(kPiece, all - at));
      move.file->read(from, at, piece);
      writer.append(move.to.name, convert(std::move(piece), from.dtype, move.to.dtype));
    }
  }
  writer.commit();
}

void checkFloating(const TensorPlace &tensor, const std::string &where) {
  if (!support::isFloat(tensor.dtype))
    fail("{} is {}; expected floating-point numbers", where,
         support::safetensorsName(tensor.dtype));
}

/// Of a tied model, files may have the table a second time; then it must be the same.
void checkTiedHead(const StoredTensor &head, const StoredTensor &embedding) {
  const TensorPlace &a = *head.place, &b = *embedding.place;
  bool same = a.dtype == b.dtype && a.shape == b.shape;
  std::vector<std::byte> left, right;
  for (uint64_t at = 0, all = a.end - a.begin; same && at < all; at += kPiece) {
    left.resize(std::min(kPiece, all - at));
    right.resize(left.size());
    head.file->read(a, at, left);
    embedding.file->read(b, at, right);
    same = left == right;
  }
  if (!same)
    fail("{} differs from '{}' although tie_word_embeddings is true", head.where(), shown(b.name));
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

} // namespace

bool lacksPrefix(const Architecture &a, const WeightFiles &weights) {
  const std::string name = a.names.embedding + ".weight";
  return !a.prefix.empty() && !weights.find(name) && weights.find(name.substr(a.prefix.size()));
}

Architecture withoutPrefix(Architecture a) {
  Names &n = a.names;
  for (std::string *name :
       {&n.embedding, &n.positions, &n.norm, &n.norm1, &n.q, &n.k, &n.v, &n.qkv, &n.out, &n.qNorm,
        &n.kNorm, &n.postNorm1, &n.norm2, &n.gate, &n.up, &n.gateUp, &n.down, &n.postNorm2})
    if (name->starts_with(a.prefix))
      name->erase(0, a.prefix.size());
  a.prefix.clear();
  return a;
}

void importWeights(const WeightFiles &weights, const Architecture &architecture,
                   std::span<const NamedParameter> table, std::optional<DType> dtype,
                   const std::filesystem::path &path) {
  std::vector<Move> moves;
  std::set<std::string_view> used;
  for (const NamedParameter &parameter : table) {
    const StoredTensor *tensor = weights.find(parameter.origin);
    const std::vector<int64_t> shape = parameter.originShape();
    if (!tensor)
      fail("{}: tensor '{}' is missing; expected {}", weights.name(), shown(parameter.origin),
           shapeText(shape));
    if (tensor->place->shape != shape)
      fail("{} is {}; expected {}", tensor->where(), shown(shapeText(tensor->place->shape)),
           shapeText(shape));
    checkFloating(*tensor->place, tensor->where());
    used.insert(parameter.origin);
    moves.push_back({tensor->file,
                     tensor->place,
                     {parameter.name, dtype.value_or(tensor->place->dtype), parameter.shape},
                     parameter.transposed});
  }
  checkRest(weights, architecture, used);
  run(moves, path, {});
}

void exportWeights(const SafetensorsFile &file, std::span<const NamedParameter> table,
                   std::span<const std::string> states, std::optional<DType> dtype,
                   const std::filesystem::path &path) {
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
    known.insert(parameter.name);
    moves.push_back({&file,
                     tensor,
                     {parameter.origin, dtype.value_or(tensor->dtype), parameter.originShape()},
                     parameter.transposed});
  }
  for (const TensorPlace &tensor : file.tensors())
    if (!known.contains(tensor.name))
      fail("{}: tensor '{}' is no parameter or state of the model", file.name(),
           shown(tensor.name));
  run(moves, path, {{"format", "pt"}});
}

} // namespace hydra::frontend
