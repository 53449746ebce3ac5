// Tables that are looked into for every character and word of a text.
#pragma once

#include <xxhash.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return XXH3_64bits(text.data(), text.size()); }
};

/// Numbers by keys, which are any but the largest number; filled once.
class NumberTable {
public:
  void insert(uint64_t key, uint64_t value) {
    if ((count + 1) * 2 > slots.size())
      grow();
    Slot &slot = slots[place(key)];
    count += slot.key == kFree ? 1 : 0;
    slot = {key, value};
  }
  /// Null: there is none.
  const uint64_t *find(uint64_t key) const {
    if (slots.empty())
      return nullptr;
    const Slot &slot = slots[place(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Slot {
    uint64_t key = kFree, value = 0;
  };

  size_t place(uint64_t key) const {
    const size_t mask = slots.size() - 1;
    size_t at = ((key ^ key >> 31) * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (slots[at].key != key && slots[at].key != kFree)
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    constexpr size_t least = 64;
    std::vector<Slot> before(slots.empty() ? least : slots.size() * 2);
    before.swap(slots);
    for (const Slot &slot : before)
      if (slot.key != kFree)
        slots[place(slot.key)] = slot;
  }

  std::vector<Slot> slots; // a power of two of them, at most half of them taken
  size_t count = 0;
};

/// Words that were encoded, with their ids. Forgets all of them when they have become many.
class WordCache {
public:
  /// Appends the ids of the word; false: it is not known.
  bool append(std::string_view word, uint64_t hash, std::vector<int32_t> &out) const {
    if (slots.empty())
      return false;
    const Slot &slot = slots[place(word, hash)];
    if (slot.size == 0)
      return false;
    const int32_t *const first = &ids[slot.firstId];
    out.insert(out.end(), first, first + slot.count);
    return true;
  }

  /// Keeps the ids of a word that is not known; words of many bytes or ids are not kept.
  void keep(std::string_view word, uint64_t hash, const int32_t *first, size_t size) {
    if (word.size() > kMostBytes || size > kMostIds)
      return;
    if (count == kMostWords)
      forget();
    if ((count + 1) * 2 > slots.size())
      grow();
    slots[place(word, hash)] = {hash, static_cast<uint32_t>(bytes.size()),
                                static_cast<uint32_t>(ids.size()),
                                static_cast<uint16_t>(word.size()), static_cast<uint16_t>(size)};
    ++count;
    bytes.append(word);
    ids.insert(ids.end(), first, first + size);
  }

  static constexpr size_t kMostBytes = 256;

private:
  static constexpr size_t kMostWords = size_t{1} << 18, kMostIds = 1024;
  struct Slot {
    uint64_t hash = 0;
    uint32_t firstByte = 0, firstId = 0;
    uint16_t size = 0, count = 0; // bytes, 0: free; ids
  };

  size_t place(std::string_view word, uint64_t hash) const {
    const size_t mask = slots.size() - 1;
    size_t at = hash & mask;
    while (slots[at].size != 0 &&
           (slots[at].hash != hash || slots[at].size != word.size() ||
            std::memcmp(&bytes[slots[at].firstByte], word.data(), word.size()) != 0))
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    constexpr size_t least = 256;
    std::vector<Slot> before(slots.empty() ? least : slots.size() * 2);
    before.swap(slots);
    const size_t mask = slots.size() - 1;
    for (const Slot &slot : before) {
      if (slot.size == 0)
        continue;
      size_t at = slot.hash & mask;
      while (slots[at].size != 0)
        at = (at + 1) & mask;
      slots[at] = slot;
    }
  }

  void forget() {
    slots.clear();
    bytes.clear();
    ids.clear();
    count = 0;
  }

  std::vector<Slot> slots;
  size_t count = 0;
  std::string bytes;
  std::vector<int32_t> ids;
};

} // namespace hydra::text
