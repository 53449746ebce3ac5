// Opens safetensors files, checking every claim of the header before a tensor is handed out.
#include "runtime/support/Error.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Safetensors.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace hydra::support {

namespace {

using nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr size_t kLengthBytes = 8;

struct Header {
  json document;
  std::vector<std::string> names; // of the top level, in the order of the file
};

/// Parses the JSON text. The callback sees every key as it is read: a finished document would only
/// hold the last of several equal ones.
Header parseHeader(std::string_view text, const std::string &origin) {
  if (text.empty() || text.front() != '{')
    fail("{}: the header starts with '{}'; expected '{{'", origin, shown(text.substr(0, 1)));
  if (const size_t zero = support::zeroByteIn(text); zero != std::string_view::npos)
    fail("{}: the header has a zero byte at {}; expected JSON text", origin, zero);
  Header header;
  std::vector<std::set<std::string>> keys; // one set per open object
  auto watch = [&](int, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    if (event == json::parse_event_t::object_end)
      keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto &key = parsed.get_ref<const std::string &>();
      if (!keys.back().insert(key).second)
        fail("{}: the header has the name '{}' twice; expected unique names", origin, shown(key));
      if (keys.size() == 1)
        header.names.push_back(key);
    }
    return true;
  };
  try {
    header.document = json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception &error) {
    fail("{}: the header is not valid JSON: {}", origin, jsonProblem(error));
  }
  return header;
}

/// The names of all formats that files have.
std::string knownDTypes() {
  std::string names;
  for (const NumberFormat &format : numberFormats())
    if (!format.safetensors.empty())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", format.safetensors);
  return names;
}

/// Reads the header entry of one tensor. `where` is "file: tensor 'name'".
class EntryReader {
public:
  EntryReader(const json &entry, std::string where) : entry(entry), where(std::move(where)) {
    if (!entry.is_object())
      fail("{}: the entry is {}; expected an object", this->where, describe(entry));
    for (const auto &[key, value] : entry.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail("{}: unknown key '{}'; expected dtype, shape and data_offsets", this->where,
             shown(key));
    }
  }

  DType dtype() const {
    const json &value = member("dtype");
    if (!value.is_string())
      fail("{}: dtype is {}; expected a string", where, describe(value));
    const auto &name = value.get_ref<const std::string &>();
    if (const std::optional<DType> dtype = dtypeFromSafetensorsName(name))
      return *dtype;
    fail("{}: dtype is '{}'; expected one of {}", where, shown(name), knownDTypes());
  }

  std::vector<int64_t> shape() const { return integers("shape"); }

  /// Begin and end in the data section of `dataSize` bytes.
  std::pair<uint64_t, uint64_t> offsets(uint64_t dataSize) const {
    const std::vector<int64_t> pair = integers("data_offsets");
    if (pair.size() != 2)
      fail("{}: data_offsets has {} numbers; expected [begin, end]", where, pair.size());
    const auto begin = static_cast<uint64_t>(pair[0]), end = static_cast<uint64_t>(pair[1]);
    if (begin > end)
      fail("{}: data_offsets [{}, {}] run backwards; expected begin <= end", where, begin, end);
    if (end > dataSize)
      fail("{}: data_offsets [{}, {}] end beyond the data; expected at most {} (truncated file?)",
           where, begin, end, dataSize);
    return {begin, end};
  }

private:
  static std::string describe(const json &value) {
    if (value.is_number())
      return value.dump();
    return fmt::format("of JSON type {}", value.type_name());
  }

  const json &member(const char *key) const {
    const auto found = entry.find(key);
    if (found == entry.end())
      fail("{}: has no {}; expected dtype, shape and data_offsets", where, key);
    return *found;
  }

  /// An array of non-negative 63-bit integers.
  std::vector<int64_t> integers(const char *key) const {
    const json &array = member(key);
    if (!array.is_array())
      fail("{}: {} is {}; expected an array", where, key, describe(array));
    std::vector<int64_t> values;
    values.reserve(array.size());
    for (const json &value : array) {
      const bool fits = value.is_number_unsigned() &&
                        value.get<uint64_t>() <= std::numeric_limits<int64_t>::max();
      if (!fits)
        fail("{}: {}[{}] is {}; expected an integer from 0 to 2^63-1", where, key, values.size(),
             describe(value));
      values.push_back(value.get<int64_t>());
    }
    return values;
  }

  const json &entry;
  std::string where;
};

SafetensorsMetadata readMetadata(const json &entry, const std::string &origin) {
  if (!entry.is_object())
    fail("{}: {} is of JSON type {}; expected an object", origin, kMetadataKey, entry.type_name());
  SafetensorsMetadata metadata;
  for (const auto &[key, value] : entry.items()) {
    if (!value.is_string())
      fail("{}: {} '{}' is of JSON type {}; expected a string", origin, kMetadataKey, shown(key),
           value.type_name());
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

/// Tensors must tile the data section: no overlap, no hole, nothing after the last.
void checkTiling(const std::vector<TensorPlace> &tensors, uint64_t dataSize,
                 const std::string &origin) {
  std::vector<std::tuple<uint64_t, uint64_t, size_t>> order; // begin, end, position in the header
  for (const TensorPlace &tensor : tensors)
    order.emplace_back(tensor.begin, tensor.end, order.size());
  std::sort(order.begin(), order.end());
  uint64_t expected = 0;
  for (const auto &[begin, end, position] : order) {
    if (begin != expected) {
      fail("{}: tensor '{}': data begins at {}, which {}; expected {}", origin,
           shown(tensors[position].name), begin,
           begin < expected ? "overlaps another tensor" : "leaves a hole", expected);
    }
    expected = end;
  }
  if (expected != dataSize)
    fail("{}: {} bytes follow the last tensor; expected none", origin, dataSize - expected);
}

/// The length of the header of a file of `size` bytes, whose first ones are `first`.
uint64_t headerLength(std::span<const std::byte> first, uint64_t size, const std::string &origin) {
  if (size < kLengthBytes)
    fail("{}: {} bytes; expected at least the {} of the header length", origin, size, kLengthBytes);
  uint64_t length = 0;
  std::memcpy(&length, first.data(), kLengthBytes);
  if (length > kMaxSafetensorsHeader)
    fail("{}: the header length is {}; expected at most {} (not a safetensors file?)", origin,
         length, kMaxSafetensorsHeader);
  if (length > size - kLengthBytes)
    fail("{}: the header length is {} but {} bytes follow it (truncated file?)", origin, length,
         size - kLengthBytes);
  return length;
}

struct Contents {
  std::vector<TensorPlace> tensors;
  SafetensorsMetadata metadata;
};

/// What the header says of `dataSize` bytes behind it, all of it checked.
Contents readHeader(std::string_view text, uint64_t dataSize, const std::string &origin) {
  const Header header = parseHeader(text, origin);
  Contents result;
  for (const std::string &name : header.names) {
    const json &entry = header.document.at(name);
    if (name == kMetadataKey) {
      result.metadata = readMetadata(entry, origin);
      continue;
    }
    const std::string where = fmt::format("{}: tensor '{}'", origin, shown(name));
    const EntryReader reader(entry, where);
    TensorPlace tensor{{name, reader.dtype(), reader.shape()}};
    std::tie(tensor.begin, tensor.end) = reader.offsets(dataSize);
    const std::optional<uint64_t> size = byteSize(tensor);
    if (!size)
      fail("{}: the size of shape {} does not fit 64 bits", where, shown(shapeText(tensor.shape)));
    if (*size != tensor.end - tensor.begin)
      fail("{}: data_offsets [{}, {}] hold {} bytes; expected {} for {} {}", where, tensor.begin,
           tensor.end, tensor.end - tensor.begin, *size, safetensorsName(tensor.dtype),
           shown(shapeText(tensor.shape)));
    result.tensors.push_back(std::move(tensor));
  }
  checkTiling(result.tensors, dataSize, origin);
  return result;
}

} // namespace

std::optional<uint64_t> byteSize(const TensorInfo &tensor) {
  uint64_t bytes = byteSize(tensor.dtype);
  for (const int64_t dim : tensor.shape)
    if (dim < 0 || (dim != 0 && __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)))
      return std::nullopt;
  const bool empty = std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
  return empty ? 0 : bytes;
}

std::string shapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Safetensors Safetensors::parse(std::span<const std::byte> bytes, std::string origin) {
  const uint64_t length = headerLength(bytes, bytes.size(), origin);
  const auto *text = reinterpret_cast<const char *>(bytes.data() + kLengthBytes);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  Contents contents = readHeader({text, length}, data.size(), origin);
  Safetensors result;
  result.strings = std::move(contents.metadata);
  for (TensorPlace &place : contents.tensors) {
    result.index.emplace(place.name, result.list.size());
    const uint64_t size = place.end - place.begin;
    result.list.push_back({std::move(place), data.subspan(place.begin, size)});
  }
  result.origin = std::move(origin);
  return result;
}

Safetensors Safetensors::open(const std::filesystem::path &path) {
  const InputFile file(path);
  const auto content = std::make_shared<const std::vector<std::byte>>(file.readAll());
  Safetensors result = parse(*content, file.name());
  result.storage = content;
  return result;
}

const TensorView *Safetensors::find(std::string_view name) const {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &list[found->second];
}

const TensorView &Safetensors::get(std::string_view name) const {
  if (const TensorView *tensor = find(name))
    return *tensor;
  fail("{}: has no tensor '{}' among its {}", origin, shown(name), list.size());
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path &path) : file(path) {
  std::array<std::byte, kLengthBytes> first = {};
  file.read(0, std::span(first).first(std::min<uint64_t>(file.size(), first.size())));
  const uint64_t length = headerLength(first, file.size(), file.name());
  std::string text(length, '\0');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  data = kLengthBytes + length;
  auto contents = readHeader(text, file.size() - data, file.name());
  list = std::move(contents.tensors);
  strings = std::move(contents.metadata);
  for (size_t i = 0; i < list.size(); ++i)
    index.emplace(list[i].name, i);
}

const TensorPlace *SafetensorsFile::find(std::string_view name) const {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &list[found->second];
}

std::vector<std::byte> SafetensorsFile::read(const TensorPlace &tensor) const {
  std::vector<std::byte> bytes(tensor.end - tensor.begin);
  read(tensor, 0, bytes);
  return bytes;
}

void SafetensorsFile::read(const TensorPlace &tensor, uint64_t begin,
                           std::span<std::byte> out) const {
  file.read(data + tensor.begin + begin, out);
}

} // namespace hydra::support
