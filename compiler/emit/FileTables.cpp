// Numbering tensors, files and places in the model.
#include "compiler/emit/FileTables.h"

#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/NumberFormats.h"

using namespace mlir;

namespace hydra {

int32_t layerOf(Location loc) {
  int32_t layer = -1;
  loc->walk([&](Location l) {
    if (ScopeAttr scope = scopeOf(l)) {
      scope.getPath().rsplit('.').second.getAsInteger(10, layer);
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return layer;
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
  entry->category = fileWord<planfile::Category>(place.buffer.getCategory());
  entry->layer = layerOf(place.buffer.getLoc());
  entry->location = location(place.buffer.getLoc());
  entry->buffer = buffers.try_emplace(place.buffer, buffers.size() + 1).first->second;
  file.tensors.push_back(std::move(entry));
  return it->second;
}

} // namespace hydra
