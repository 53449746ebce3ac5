// Writes safetensors files, tensor by tensor.
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"
#include "runtime/support/Shown.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>

namespace hydra::support {

namespace {

constexpr uint64_t kDataAlignment = 64;

/// A JSON string literal.
std::string quoted(const std::string &text, const std::string &path) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception &) {
    fail("cannot write {}: the name or text '{}' is not UTF-8", path, shown(text));
  }
}

/// Header length and header, padded with spaces. `sizes` are the tensors' bytes.
std::string headerOf(const std::vector<TensorInfo> &tensors, const std::vector<uint64_t> &sizes,
                     const SafetensorsMetadata &metadata, const std::string &path) {
  std::string header = "{";
  const char *separator = "";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata) {
      header += fmt::format("{}{}:{}", separator, quoted(key, path), quoted(value, path));
      separator = ",";
    }
    header += "}";
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t begin = offset;
    if (__builtin_add_overflow(offset, sizes[i], &offset))
      fail("cannot write {}: tensor '{}': the file's size does not fit 64 bits", path,
           tensors[i].name);
    header += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", separator,
                          quoted(tensors[i].name, path), safetensorsName(tensors[i].dtype),
                          fmt::join(tensors[i].shape, ","), begin, offset);
    separator = ",";
  }
  header += "}";
  const uint64_t unpadded = sizeof(uint64_t) + header.size();
  header.append((kDataAlignment - unpadded % kDataAlignment) % kDataAlignment, ' ');
  if (header.size() > kMaxSafetensorsHeader)
    fail("cannot write {}: the header has {} bytes; expected at most {}", path, header.size(),
         kMaxSafetensorsHeader);
  return header;
}

} // namespace

SafetensorsLayout::SafetensorsLayout(const std::vector<TensorInfo> &list,
                                     const SafetensorsMetadata &metadata,
                                     const std::string &shownPath) {
  std::set<std::string_view> names = {"__metadata__"};
  std::vector<uint64_t> sizes;
  for (const TensorInfo &tensor : list) {
    if (!names.insert(tensor.name).second)
      fail("cannot write {}: tensor '{}': the name is taken; expected unique names", shownPath,
           shown(tensor.name));
    const std::optional<uint64_t> size = byteSize(tensor);
    if (!size)
      fail("cannot write {}: tensor '{}': shape {} is negative or its size does not fit 64 bits",
           shownPath, shown(tensor.name), shapeText(tensor.shape));
    sizes.push_back(*size);
  }
  const std::string text = headerOf(list, sizes, metadata, shownPath);
  const uint64_t length = text.size();
  header.assign(reinterpret_cast<const char *>(&length), sizeof length);
  header += text;
  fileSize = header.size();
  for (size_t i = 0; i < list.size(); ++i) {
    tensors.push_back({list[i], fileSize, fileSize + sizes[i]});
    fileSize += sizes[i];
  }
}

SafetensorsWriter::SafetensorsWriter(const OutputPath &path, std::vector<TensorInfo> tensors,
                                     const SafetensorsMetadata &metadata)
    : shownPath(support::shownPath(path.shown)), list(std::move(tensors)) {
  const SafetensorsLayout layout(list, metadata, shownPath);
  for (const TensorPlace &tensor : layout.tensors)
    remaining.push_back(tensor.end - tensor.begin);
  file.emplace(path);
  file->write(std::as_bytes(std::span(layout.header)));
  skipFinished();
}

void SafetensorsWriter::skipFinished() {
  while (current < list.size() && remaining[current] == 0)
    ++current;
}

void SafetensorsWriter::append(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty())
    return;
  if (current == list.size())
    fail("cannot write {}: tensor '{}': all tensors have their bytes; expected none", shownPath,
         shown(name));
  if (name != list[current].name)
    fail("cannot write {}: tensor '{}' is out of order; expected '{}'", shownPath, shown(name),
         shown(list[current].name));
  if (bytes.size() > remaining[current])
    fail("cannot write {}: tensor '{}': {} bytes; expected at most {}", shownPath, shown(name),
         bytes.size(), remaining[current]);
  file->write(bytes);
  remaining[current] -= bytes.size();
  skipFinished();
}

void SafetensorsWriter::commit() {
  if (current != list.size())
    fail("cannot write {}: tensor '{}': {} bytes are missing", shownPath, shown(list[current].name),
         remaining[current]);
  file->commit();
}

void writeSafetensors(const std::filesystem::path &path, std::span<const TensorView> tensors,
                      const SafetensorsMetadata &metadata) {
  SafetensorsWriter writer(path, {tensors.begin(), tensors.end()}, metadata);
  for (const TensorView &tensor : tensors)
    writer.append(tensor.name, tensor.bytes);
  writer.commit();
}

} // namespace hydra::support
