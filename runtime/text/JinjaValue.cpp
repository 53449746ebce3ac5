// What Python does with values, as far as templates see it.
#include "runtime/text/JinjaValue.h"

#include "runtime/support/Error.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

namespace hydra::text::jinja {

using support::fail;

namespace {

constexpr uint64_t kMostWork = 4'000'000;
constexpr unsigned kDeepest = 32; // of lists in lists

unsigned depthOf(const Value &value) {
  if (const auto *const list = std::get_if<List *>(&value))
    return (*list)->depth;
  if (const auto *const dictionary = std::get_if<Dictionary *>(&value))
    return (*dictionary)->depth;
  return 0;
}

/// One more than what is in it. Of namespaces, which can be made part of themselves, nothing asks.
void deepen(unsigned &depth, const Value &part) {
  depth = std::max(depth, depthOf(part) + 1);
  if (depth > kDeepest)
    fail("lists nest more than {} deep", kDeepest);
}

/// Of True and False 1 and 0.
const int64_t *numberIn(const Value &value, int64_t &place) {
  if (const bool *const flag = std::get_if<bool>(&value))
    return &(place = *flag ? 1 : 0);
  return std::get_if<int64_t>(&value);
}

std::vector<std::string_view> charactersOf(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const size_t size = firstCharacter(text).bytes;
    found.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return found;
}

bool equal(const Value &a, const Value &b, Store &store);

bool equalLists(const std::vector<Value> &a, const std::vector<Value> &b, Store &store) {
  return std::ranges::equal(a, b,
                            [&](const Value &x, const Value &y) { return equal(x, y, store); });
}

bool equalMembers(const Dictionary &a, const Dictionary &b, Store &store) {
  if (a.isNamespace || b.isNamespace || a.members.size() != b.members.size())
    return &a == &b;
  return std::ranges::all_of(a.members, [&](const auto &member) {
    store.spend(b.members.size());
    const Value *const other = b.find(member.first);
    return other && equal(member.second, *other, store);
  });
}

bool equal(const Value &a, const Value &b, Store &store) {
  store.spend(1);
  int64_t left = 0, right = 0;
  const int64_t *const x = numberIn(a, left), *const y = numberIn(b, right);
  if (x || y)
    return x && y && *x == *y;
  if (a.index() != b.index())
    return false;
  if (const auto *const text = std::get_if<std::string>(&a)) {
    store.spend(text->size());
    return *text == std::get<std::string>(b);
  }
  if (const auto *const list = std::get_if<List *>(&a))
    return equalLists((*list)->items, std::get<List *>(b)->items, store);
  if (const auto *const dictionary = std::get_if<Dictionary *>(&a))
    return equalMembers(**dictionary, *std::get<Dictionary *>(b), store);
  return !is<Function>(a); // two that are undefined, or None
}

bool contains(const Value &all, const Value &one, Store &store) {
  if (const auto *const text = std::get_if<std::string>(&all)) {
    store.spend(text->size());
    return text->find(asText(one)) != std::string::npos;
  }
  if (const auto *const dictionary = std::get_if<Dictionary *>(&all))
    return (*dictionary)->find(asText(one)) != nullptr;
  return std::ranges::any_of(itemsOf(all, store),
                             [&](const Value &item) { return equal(item, one, store); });
}

bool isLess(const Value &a, const Value &b) {
  if (is<std::string>(a) && is<std::string>(b))
    return std::get<std::string>(a) < std::get<std::string>(b); // in UTF-8 as by characters
  return asInteger(a) < asInteger(b);
}

/// Of integers; Python's division rounds down.
int64_t calculated(char op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool fits = true;
  switch (op) {
  case '+':
    fits = !__builtin_add_overflow(a, b, &result);
    break;
  case '-':
    fits = !__builtin_sub_overflow(a, b, &result);
    break;
  case '*':
    fits = !__builtin_mul_overflow(a, b, &result);
    break;
  default: // / % of what is not 0 and not -1
    result = op == '/' ? a / b : a % b;
    if (a % b != 0 && (a < 0) != (b < 0))
      result += op == '/' ? -1 : b;
  }
  if (!fits)
    fail("{} {} {} is no integer of 64 bits", a, op, b);
  return result;
}

/// Of a slice's end that is not given, or counts from behind, the place; within [least, most].
int64_t placeOf(const Value &value, int64_t otherwise, int64_t size, int64_t least, int64_t most) {
  if (is<None>(value))
    return otherwise;
  const int64_t place = asInteger(value);
  return std::clamp(place < 0 ? std::max(place, -size - 1) + size : place, least, most);
}

} // namespace

const Value *Dictionary::find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &std::pair<std::string, Value>::first);
  return found == members.end() ? nullptr : &found->second;
}

void Store::spend(uint64_t work) {
  if (work > kMostWork - spent)
    fail("it takes more work than a template of conversations needs");
  spent += work;
}

List *Store::list(std::vector<Value> items) {
  spend(items.size() + 1);
  unsigned depth = 0;
  for (const Value &item : items)
    deepen(depth, item);
  return &lists.emplace_back(std::move(items), depth);
}

Dictionary *Store::dictionary(std::vector<std::pair<std::string, Value>> members) {
  spend(members.size() + 1);
  unsigned depth = 0;
  for (const auto &[name, value] : members)
    deepen(depth, value);
  return &dictionaries.emplace_back(std::move(members), depth);
}

Value Arguments::get(size_t place, std::string_view name, const Value &otherwise) const {
  if (place < places.size())
    return places[place];
  const auto found = std::ranges::find(names, name, &std::pair<std::string, Value>::first);
  return found == names.end() ? otherwise : found->second;
}

void Arguments::expect(size_t least, size_t most) const {
  if (const size_t size = places.size() + names.size(); size < least || size > most)
    fail("something is given {} arguments; expected {} to {}", size, least, most);
}

bool isTrue(const Value &value) {
  int64_t place = 0;
  if (const int64_t *const number = numberIn(value, place))
    return *number != 0;
  if (const auto *const text = std::get_if<std::string>(&value))
    return !text->empty();
  if (const auto *const list = std::get_if<List *>(&value))
    return !(*list)->items.empty();
  if (const auto *const dictionary = std::get_if<Dictionary *>(&value))
    return (*dictionary)->isNamespace || !(*dictionary)->members.empty();
  return is<Function>(value);
}

std::string textOf(const Value &value) {
  if (const auto *const text = std::get_if<std::string>(&value))
    return *text;
  if (const auto *const number = std::get_if<int64_t>(&value))
    return fmt::format("{}", *number);
  fail("something that is neither text nor integer is printed");
}

const std::string &asText(const Value &value) {
  const auto *const text = std::get_if<std::string>(&value);
  if (!text)
    fail("something is no text");
  return *text;
}

int64_t asInteger(const Value &value) {
  int64_t place = 0;
  const int64_t *const number = numberIn(value, place);
  if (!number)
    fail("something is no integer");
  return *number;
}

std::vector<Value> itemsOf(const Value &value, Store &store) {
  std::vector<Value> items;
  if (const auto *const list = std::get_if<List *>(&value)) {
    for (const Value &item : (*list)->items)
      store.spend(is<std::string>(item) ? std::get<std::string>(item).size() + 1 : 1);
    return (*list)->items;
  }
  if (const auto *const text = std::get_if<std::string>(&value)) {
    store.spend(text->size());
    for (const std::string_view one : charactersOf(*text))
      items.emplace_back(std::string(one));
    return items;
  }
  if (is<Undefined>(value)) // nothing, as of tools that no message has
    return items;
  const auto *const dictionary = std::get_if<Dictionary *>(&value);
  if (!dictionary || (*dictionary)->isNamespace)
    fail("something has no items");
  for (const auto &[name, member] : (*dictionary)->members) {
    store.spend(name.size() + 1);
    items.emplace_back(name);
  }
  return items;
}

Value sliceOf(const Value &value, const Value &begin, const Value &end, const Value &step,
              Store &store) {
  if (!is<std::string>(value) && !is<List *>(value))
    fail("something that is neither text nor list has no slices");
  const std::vector<Value> items = itemsOf(value, store);
  const auto size = static_cast<int64_t>(items.size());
  const int64_t by = is<None>(step) ? 1 : asInteger(step);
  if (by == 0 || by < -size - 1)
    fail("a slice goes by {}", by);
  const bool back = by < 0;
  const int64_t least = back ? -1 : 0, most = back ? size - 1 : size;
  const int64_t first = placeOf(begin, back ? most : least, size, least, most),
                last = placeOf(end, back ? least : most, size, least, most);
  std::vector<Value> part;
  for (int64_t i = first; back ? i > last : i < last; i += std::min(by, size + 1))
    part.push_back(items[static_cast<size_t>(i)]);
  if (is<List *>(value))
    return store.list(std::move(part));
  std::string text;
  for (const Value &one : part)
    text += std::get<std::string>(one);
  return text;
}

Value arithmetic(std::string_view op, const Value &a, const Value &b, Store &store) {
  if (op == "~" || (op == "+" && is<std::string>(a) && is<std::string>(b))) {
    std::string text = textOf(a);
    text += textOf(b);
    store.spend(text.size());
    return text;
  }
  if (op == "+" && is<List *>(a) && is<List *>(b)) {
    std::vector<Value> items = itemsOf(a, store);
    for (Value &item : itemsOf(b, store))
      items.push_back(std::move(item));
    return store.list(std::move(items));
  }
  if (op == "**" || op == "/")
    fail("{} is not known", op);
  const int64_t left = asInteger(a), right = asInteger(b);
  if (right == 0 && (op == "//" || op == "%"))
    fail("something is divided by 0");
  if (right == -1 && op == "//")
    return calculated('-', 0, left);
  if (right == -1 && op == "%")
    return int64_t{0};
  return calculated(op[0], left, right);
}

bool compares(std::string_view op, const Value &a, const Value &b, Store &store) {
  if (op == "==" || op == "!=")
    return equal(a, b, store) == (op == "==");
  if (op == "in" || op == "not in")
    return contains(b, a, store) == (op == "in");
  if (op == "<")
    return isLess(a, b);
  if (op == ">")
    return isLess(b, a);
  return op == "<=" ? !isLess(b, a) : !isLess(a, b);
}

} // namespace hydra::text::jinja
