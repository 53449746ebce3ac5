// Opens safetensors files, checking every claim of the header before a tensor is handed out.
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

/// Text from the file as messages quote it: long ones are cut.
std::string shown(std::string_view text) {
  constexpr size_t longest = 200;
  return text.size() <= longest ? std::string(text) : fmt::format("{}...", text.substr(0, longest));
}

struct Header {
  json document;
  std::vector<std::string> names; // of the top level, in the order of the file
};

/// Parses the JSON text. The callback sees every key as it is read: a finished document would only
/// hold the last of several equal ones.
Header parseHeader(std::string_view text, const std::string &origin) {
  if (text.empty() || text.front() != '{')
    fail("{}: the header starts with '{}'; expected '{{'", origin, text.substr(0, 1));
  // The JSON library takes a NUL for the end of the text and would ignore what follows.
  if (const size_t nul = text.find('\0'); nul != text.npos)
    fail("{}: the header has a zero byte at {}; expected JSON text", origin, nul);
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
    fail("{}: the header is not valid JSON: {}", origin, shown(error.what()));
  }
  return header;
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
    fail("{}: dtype is '{}'; expected one of F64, F32, BF16, F16, I64, I32, I16, I8, U8, U16, "
         "U32, BOOL",
         where, shown(name));
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
void checkTiling(const std::vector<TensorView> &tensors, std::span<const std::byte> data,
                 const std::string &origin) {
  std::vector<std::tuple<uint64_t, uint64_t, size_t>> order; // begin, end, position in the header
  for (const TensorView &tensor : tensors) {
    const auto begin = static_cast<uint64_t>(tensor.bytes.data() - data.data());
    order.emplace_back(begin, begin + tensor.bytes.size(), order.size());
  }
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
  if (expected != data.size())
    fail("{}: {} bytes follow the last tensor; expected none", origin, data.size() - expected);
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
  if (bytes.size() < kLengthBytes)
    fail("{}: {} bytes; expected at least the {} of the header length", origin, bytes.size(),
         kLengthBytes);
  uint64_t headerSize = 0;
  std::memcpy(&headerSize, bytes.data(), kLengthBytes);
  if (headerSize > kMaxSafetensorsHeader)
    fail("{}: the header length is {}; expected at most {} (not a safetensors file?)", origin,
         headerSize, kMaxSafetensorsHeader);
  if (headerSize > bytes.size() - kLengthBytes)
    fail("{}: the header length is {} but {} bytes follow it (truncated file?)", origin, headerSize,
         bytes.size() - kLengthBytes);
  const auto *text = reinterpret_cast<const char *>(bytes.data() + kLengthBytes);
  const Header header = parseHeader({text, headerSize}, origin);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + headerSize);

  Safetensors result;
  for (const std::string &name : header.names) {
    const json &entry = header.document.at(name);
    if (name == kMetadataKey) {
      result.strings = readMetadata(entry, origin);
      continue;
    }
    const std::string where = fmt::format("{}: tensor '{}'", origin, shown(name));
    const EntryReader reader(entry, where);
    TensorView tensor{{name, reader.dtype(), reader.shape()}, {}};
    const auto [begin, end] = reader.offsets(data.size());
    const std::optional<uint64_t> size = byteSize(tensor);
    if (!size)
      fail("{}: the size of shape {} does not fit 64 bits", where, shown(shapeText(tensor.shape)));
    if (*size != end - begin)
      fail("{}: data_offsets [{}, {}] hold {} bytes; expected {} for {} {}", where, begin, end,
           end - begin, *size, safetensorsName(tensor.dtype), shown(shapeText(tensor.shape)));
    tensor.bytes = data.subspan(begin, end - begin);
    result.index.emplace(name, result.list.size());
    result.list.push_back(std::move(tensor));
  }
  checkTiling(result.list, data, origin);
  result.origin = std::move(origin);
  return result;
}

Safetensors Safetensors::open(const std::filesystem::path &path) {
  auto failWith = [&](const char *action, int code) {
    fail("{}: failed to {}: {}", path.string(), action, errnoText(code));
  };
  struct Descriptor {
    int number;
    ~Descriptor() { ::close(number); }
  };
  // Non-blocking, so that a pipe is refused below instead of waited for.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0)
    failWith("open", errno);
  const Descriptor descriptor{number};
  struct stat status;
  if (::fstat(number, &status) != 0)
    failWith("examine", errno);
  if (!S_ISREG(status.st_mode))
    fail("{}: not a regular file; expected a safetensors file", path.string());
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) // which mmap refuses
    return parse({}, path.string());
  void *address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, number, 0);
  if (address == MAP_FAILED)
    failWith("map", errno);
  std::shared_ptr<const void> mapping(address, [size](void *start) { ::munmap(start, size); });
  Safetensors result = parse({static_cast<const std::byte *>(address), size}, path.string());
  result.mapping = std::move(mapping);
  return result;
}

const TensorView *Safetensors::find(std::string_view name) const {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &list[found->second];
}

const TensorView &Safetensors::get(std::string_view name) const {
  if (const TensorView *tensor = find(name))
    return *tensor;
  fail("{}: has no tensor '{}' among its {}", origin, name, list.size());
}

} // namespace hydra::support
