// The normalizer of SentencePiece: a map of characters, compiled to a double array.
#include "runtime/text/Normalizers.h"

#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

/// Throws Error unless the text is base64, with its padding.
std::string decodeBase64(const Value &value) {
  const std::string_view text = value.text();
  const auto digit = [](char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
  };
  if (text.size() % 4 != 0)
    value.fail("is no base64: it has {} characters", text.size());
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t word = 0;
    int padding = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const bool pads = text[i] == '=' && i + 2 >= text.size();
      const int value6 = pads ? 0 : digit(text[i]);
      if (value6 < 0 || (padding > 0 && !pads))
        value.fail("is no base64 at character {}", i);
      padding += pads ? 1 : 0;
      word = word << 6 | static_cast<uint32_t>(value6);
    }
    for (int i = 0; i < 3 - padding; ++i)
      bytes.push_back(static_cast<char>(word >> (16 - 8 * i)));
  }
  return bytes;
}

/// The map: bytes of the double array as a number of 32 bits, the double array (units of 32 bits,
/// as Darts-clone has them), and all texts that characters become, each with a zero behind it.
class Precompiled : public Normalizer {
public:
  explicit Precompiled(const Value &value) {
    const std::string bytes = decodeBase64(value);
    uint32_t size = 0;
    if (bytes.size() >= sizeof size)
      std::memcpy(&size, bytes.data(), sizeof size);
    if (bytes.size() < sizeof size || size > bytes.size() - sizeof size || size == 0 ||
        size % sizeof(uint32_t) != 0)
      value.fail("has {} bytes, which do not hold the map that they begin with", bytes.size());
    units.resize(size / sizeof(uint32_t));
    std::memcpy(units.data(), bytes.data() + sizeof size, size);
    texts = bytes.substr(sizeof size + size);
    if (findInvalidUtf8(texts) != std::string_view::npos)
      value.fail("maps to what is no UTF-8");
    constexpr char last = 0x7f;
    try { // what is wrong behind ASCII is said when it is used
      for (char c = 0; c < last; ++c)
        ascii[static_cast<size_t>(c)] = find(std::string_view(&c, 1));
      ascii[last] = find(std::string_view(&last, 1));
    } catch (const support::Error &error) {
      value.fail("is broken: {}", error.what());
    }
  }

  void apply(Normalizing &part) const override {
    // The map is asked for whole grapheme clusters first, where these are short. It answers for the
    // shortest beginning of them that it knows.
    constexpr size_t shortCluster = 6;
    const std::string_view text = part.text;
    std::string out;
    out.reserve(text.size());
    size_t at = 0, first = 0;
    // Of a cluster with more than the first character of the text, one character is what comes
    // from that. What is dropped in front leaves its place to the next.
    const auto written = [&](size_t begin, size_t end, size_t before) {
      const bool counts = part.fromFirst > 0 && (begin < part.fromFirst || before == 0);
      if (!counts || out.size() == before)
        return;
      first = end <= part.fromFirst
                  ? out.size()
                  : before + firstCharacter(std::string_view(out).substr(before)).bytes;
    };
    while (at < text.size()) {
      // Two characters of ASCII are clusters of their own, unless they end a line.
      const auto plain = [&](size_t i) {
        return i >= text.size() || (static_cast<unsigned char>(text[i]) < 0x80 && text[i] != '\r');
      };
      if (plain(at) && plain(at + 1)) {
        const std::optional<std::string_view> &mapped = ascii[static_cast<size_t>(text[at])];
        const size_t before = out.size();
        out += mapped ? *mapped : text.substr(at, 1);
        written(at, at + 1, before);
        ++at;
        continue;
      }
      const std::string_view cluster = text.substr(at, firstCluster(text.substr(at)));
      at += cluster.size();
      if (cluster.size() < shortCluster) {
        if (const auto mapped = find(cluster)) {
          const size_t before = out.size();
          out += *mapped;
          written(at - cluster.size(), at, before);
          continue;
        }
      }
      for (std::string_view rest = cluster; !rest.empty();) {
        const std::string_view c = rest.substr(0, firstCharacter(rest).bytes);
        const size_t begin = at - rest.size(), before = out.size();
        out += find(c).value_or(c);
        written(begin, begin + c.size(), before);
        rest.remove_prefix(c.size());
      }
    }
    part = {std::move(out), first};
  }

private:
  /// What the shortest beginning of `key` in the map becomes. Throws Error where the map is broken.
  std::optional<std::string_view> find(std::string_view key) const {
    const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); };
    size_t node = offset(units[0]);
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units.size())
        return std::nullopt;
      const uint32_t unit = units[node];
      if ((unit & 0x800000ff) != byte)
        return std::nullopt;
      node ^= offset(unit);
      if ((unit & 0x100) != 0) {
        const size_t begin = node < units.size() ? units[node] & 0x7fffffff : texts.size();
        if (begin >= texts.size() || (static_cast<unsigned char>(texts[begin]) & 0xc0) == 0x80)
          support::fail("the map of characters leads to no text for '{}'", support::shown(key));
        const std::string_view rest = std::string_view(texts).substr(begin);
        return rest.substr(0, rest.find('\0'));
      }
    }
    return std::nullopt;
  }

  std::vector<uint32_t> units;
  std::string texts;
  std::array<std::optional<std::string_view>, 128> ascii;
};

} // namespace

std::unique_ptr<Normalizer> hydra::text::makePrecompiled(Fields &fields) {
  return std::make_unique<Precompiled>(fields.need("precompiled_charsmap"));
}
