// Numbering tensors, files and places in the model.
#include "compiler/emit/FileTables.h"

#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/NumberFormats.h"

using namespace mlir;

namespace hydra {

/// The tags of a location, or of the first in it that has some; null if none has.
static ScopeAttr anyScope(Location loc) {
  ScopeAttr found;
  loc->walk([&](Location l) {
    found = scopeOf(l);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

Tags tagsOf(Location loc) {
  Tags tags;
  ScopeAttr scope = anyScope(loc);
  if (!scope)
    return tags;
  tags.phase = scope.getPhase();
  tags.path = scope.getPath();
  tags.pass = scope.getPass();
  for (StringRef rest = tags.path, part; tags.layer < 0 && !rest.empty();) {
    std::tie(part, rest) = rest.split('.');
    if (part.getAsInteger(10, tags.layer))
      tags.layer = -1;
  }
  return tags;
}

/// The format of a tensor's elements.
static std::optional<planfile::DType> dtypeOf(Type type) {
  std::optional<support::DType> format = formatOf(type);
  return format && support::formatOf(*format).stored
             ? std::optional(fileWord<planfile::DType>(*format))
             : std::nullopt;
}

uint32_t FileTables::fileIndex(StringRef name) {
  auto [it, fresh] = files.try_emplace(name, file.files.size());
  if (fresh)
    file.files.push_back(name.str());
  return it->second;
}

uint32_t FileTables::location(Location loc) {
  FileLineColLoc place;
  loc->walk([&](Location l) {
    if (auto found = dyn_cast<FileLineColLoc>(l))
      place = found;
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  std::tuple<uint32_t, uint32_t, uint32_t> key{0, 1, 1};
  if (place)
    key = {fileIndex(place.getFilename()), std::max(1u, place.getLine()),
           std::max(1u, place.getColumn())};
  else
    fileIndex(modelFile);
  auto [it, fresh] = locations.try_emplace(key, file.locations.size());
  if (fresh)
    file.locations.emplace_back(std::get<0>(key), std::get<1>(key), std::get<2>(key));
  return it->second;
}

int32_t FileTables::path(StringRef path) {
  if (path.empty())
    return -1;
  auto [it, fresh] = paths.try_emplace(path, file.paths.size());
  if (fresh)
    file.paths.push_back(path.str());
  return static_cast<int32_t>(it->second);
}

/// What the bytes of a buffer or view are for, and where that came from: of a value that took the
/// bytes of another, what it is itself.
static std::pair<Category, Location> originOf(Value value) {
  while (auto view = value.getDefiningOp<plan::ViewOp>()) {
    if (std::optional<Category> own = view.getCategory())
      return {*own, view.getLoc()};
    value = view.getSource();
  }
  auto buffer = value.getDefiningOp<plan::BufferOp>();
  return {buffer.getCategory(), buffer.getLoc()};
}

uint32_t FileTables::tensor(Value value) {
  auto [it, fresh] = tensors.try_emplace(value, file.tensors.size());
  if (!fresh)
    return it->second;
  plan::Place place = plan::placeOf(value);
  auto type = cast<MemRefType>(value.getType());
  auto entry = std::make_unique<planfile::TensorT>();
  entry->name =
      names.count(place.buffer) ? names[place.buffer] : ("t" + Twine(file.tensors.size())).str();
  std::string element;
  llvm::raw_string_ostream(element) << type.getElementType();
  entry->dtype = known(dtypeOf(type.getElementType()), value.getLoc(), "element type", element);
  entry->shape.assign(type.getShape().begin(), type.getShape().end());
  SmallVector<int64_t> strides = plan::stridesOf(type);
  entry->strides.assign(strides.begin(), strides.end());
  entry->segment = fileWord<planfile::SegmentKind>(place.buffer.getSegment());
  entry->offset = place.buffer.getOffset().value_or(0) + place.bytes;
  auto [category, made] = originOf(value);
  const Tags tags = tagsOf(made);
  entry->category = fileWord<planfile::Category>(category);
  entry->layer = tags.layer;
  entry->path = path(tags.path);
  entry->location = location(made);
  entry->buffer = buffers.try_emplace(place.buffer, buffers.size() + 1).first->second;
  file.tensors.push_back(std::move(entry));
  return it->second;
}

} // namespace hydra
