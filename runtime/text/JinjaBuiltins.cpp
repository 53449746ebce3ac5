// Filters, tests and methods, by their names.
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/JinjaValue.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hydra::text::jinja {

using support::fail;
using support::shown;

namespace {

bool isAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Of ASCII alone.
std::string inCase(std::string_view text, bool upper) {
  if (!isAscii(text))
    fail("a text beyond ASCII changes its case");
  std::string changed(text);
  for (char &c : changed)
    if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z')
      c = static_cast<char>(c ^ 0x20);
  return changed;
}

std::string capitalized(std::string_view text) {
  return inCase(text.substr(0, 1), true) +
         inCase(text.substr(std::min<size_t>(1, text.size())), false);
}

/// Without characters at its ends: white space, or those of a set.
std::string trimmed(std::string_view text, const Value &set, bool left, bool right) {
  if (is<None>(set)) {
    text = left ? strippedLeft(text) : text;
    return std::string(right ? strippedRight(text) : text);
  }
  const std::string &characters = asText(set);
  if (!isAscii(characters))
    fail("a set of characters has some beyond ASCII");
  const size_t begin = left ? std::min(text.find_first_not_of(characters), text.size()) : 0;
  text.remove_prefix(begin);
  return std::string(right ? text.substr(0, text.find_last_not_of(characters) + 1) : text);
}

Value split(const std::string &text, const Arguments &arguments, Store &store) {
  arguments.expect(1, 2);
  const std::string separator = asText(arguments.get(0, "sep", Undefined()));
  int64_t most = asInteger(arguments.get(1, "maxsplit", int64_t{-1}));
  if (separator.empty())
    fail("split has no separator");
  std::vector<Value> parts;
  size_t at = 0;
  for (size_t found = 0; most != 0 && (found = text.find(separator, at)) != text.npos; --most) {
    parts.emplace_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.emplace_back(text.substr(at));
  store.spend(text.size() + parts.size());
  return store.list(std::move(parts));
}

std::string replaced(std::string text, const std::string &from, const std::string &to,
                     Store &store) {
  if (from.empty())
    fail("replace has nothing to replace");
  size_t count = 0;
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += from.size())
    ++count;
  store.spend(text.size() + count * to.size());
  replaceAll(text, from, to);
  return text;
}

std::string joined(const Value &value, const std::string &between, Store &store) {
  std::string text;
  bool first = true;
  for (const Value &item : itemsOf(value, store)) {
    const std::string one = textOf(item);
    store.spend(between.size() + one.size());
    (text += std::exchange(first, false) ? "" : between) += one;
  }
  return text;
}

int64_t lengthOf(const Value &value, Store &store) {
  return static_cast<int64_t>(itemsOf(value, store).size());
}

Value membersOf(const Dictionary &dictionary, bool keys, bool values, Store &store) {
  std::vector<Value> items;
  for (const auto &[name, value] : dictionary.members)
    if (keys && values)
      items.emplace_back(store.list({name, value}));
    else
      items.push_back(keys ? Value(name) : value);
  return store.list(std::move(items));
}

Value memberOf(const Value &value, const std::string &name) {
  const auto *const dictionary = std::get_if<Dictionary *>(&value);
  const Value *const member = dictionary ? (*dictionary)->find(name) : nullptr;
  return member ? *member : Undefined();
}

/// The items of which a test says the same as `wanted`: they themselves, or a member of them.
Value selected(const Value &value, const Arguments &arguments, bool ofMember, bool wanted,
               Store &store) {
  if (!arguments.names.empty() || (ofMember && arguments.places.empty()))
    fail("a filter selects by nothing");
  const size_t skip = ofMember ? 1 : 0;
  const std::string test =
      arguments.places.size() > skip ? asText(arguments.places[skip]) : std::string();
  Arguments rest;
  if (arguments.places.size() > skip + 1)
    rest.places.assign(arguments.places.begin() + static_cast<ptrdiff_t>(skip) + 1,
                       arguments.places.end());
  std::vector<Value> items;
  for (Value &item : itemsOf(value, store)) {
    const Value looked = ofMember ? memberOf(item, asText(arguments.places[0])) : item;
    if ((test.empty() ? isTrue(looked) : passes(test, looked, rest, store)) == wanted)
      items.push_back(std::move(item));
  }
  return store.list(std::move(items));
}

Value mapped(const Value &value, const Arguments &arguments, Store &store) {
  std::vector<Value> items;
  const Value attribute = arguments.get(~size_t{0}, "attribute", Undefined());
  for (const Value &item : itemsOf(value, store))
    items.push_back(is<std::string>(attribute)
                        ? memberOf(item, std::get<std::string>(attribute))
                        : filtered(asText(arguments.get(0, "", Undefined())), item, {}, store));
  return store.list(std::move(items));
}

Value ofList(std::string_view name, std::vector<Value> items, Store &store) {
  if (name == "first" || name == "last")
    return items.empty() ? Value(Undefined()) : name == "first" ? items.front() : items.back();
  if (name == "reverse")
    std::ranges::reverse(items);
  return store.list(std::move(items));
}

Value ofText(std::string_view name, const std::string &text, const Arguments &arguments,
             Store &store) {
  store.spend(text.size());
  if (name == "trim" || name == "strip" || name == "lstrip" || name == "rstrip") {
    arguments.expect(0, 1);
    return trimmed(text, arguments.get(0, "chars", None()), name != "rstrip", name != "lstrip");
  }
  if (name == "replace") {
    arguments.expect(2, 2);
    return replaced(text, asText(arguments.get(0, "old", Undefined())),
                    asText(arguments.get(1, "new", Undefined())), store);
  }
  arguments.expect(0, 0);
  return name == "capitalize" ? capitalized(text) : inCase(text, name == "upper");
}

bool isTextFilter(std::string_view name) {
  return name == "trim" || name == "replace" || name == "capitalize" || name == "upper" ||
         name == "lower";
}

} // namespace

Value filtered(std::string_view name, const Value &value, const Arguments &arguments,
               Store &store) {
  store.spend(1);
  if (name == "default" || name == "d") {
    const bool given =
        isTrue(arguments.get(1, "boolean", false)) ? isTrue(value) : !is<Undefined>(value);
    return given ? value : arguments.get(0, "default_value", std::string());
  }
  if (name == "length" || name == "count")
    return lengthOf(value, store);
  if (is<Undefined>(value))
    fail("the filter {} is given something undefined", shown(name));
  if (isTextFilter(name))
    return ofText(name, asText(value), arguments, store);
  if (name == "string" || name == "safe")
    return textOf(value);
  if (name == "int")
    return asInteger(value);
  if (name == "join")
    return joined(value, asText(arguments.get(0, "d", std::string())), store);
  if (name == "list" || name == "first" || name == "last" || name == "reverse") {
    if (name == "reverse" && is<std::string>(value))
      fail("a text is reversed");
    return ofList(name, itemsOf(value, store), store);
  }
  if (name == "items" && is<Dictionary *>(value))
    return membersOf(*std::get<Dictionary *>(value), true, true, store);
  if (name == "select" || name == "reject")
    return selected(value, arguments, false, name == "select", store);
  if (name == "selectattr" || name == "rejectattr")
    return selected(value, arguments, true, name == "selectattr", store);
  if (name == "map")
    return mapped(value, arguments, store);
  fail("the filter {} is not known", shown(name));
}

bool passes(std::string_view name, const Value &value, const Arguments &arguments, Store &store) {
  store.spend(1);
  const auto with = [&](std::string_view op) {
    arguments.expect(1, 1);
    return compares(op, value, arguments.get(0, "other", Undefined()), store);
  };
  if (name == "==" || name == "eq" || name == "equalto")
    return with("==");
  if (name == "!=" || name == "ne")
    return with("!=");
  if (name == "in")
    return with("in");
  if (name == "divisibleby") {
    arguments.expect(1, 1);
    return asInteger(arithmetic("%", value, arguments.get(0, "num", Undefined()), store)) == 0;
  }
  arguments.expect(0, 0);
  if (name == "defined" || name == "undefined")
    return is<Undefined>(value) == (name == "undefined");
  if (name == "none")
    return is<None>(value);
  const bool items = is<std::string>(value) || is<List *>(value) || is<Dictionary *>(value);
  if ((name == "iterable" || name == "sequence") && !is<Undefined>(value))
    return items;
  if (name == "string")
    return is<std::string>(value);
  if (name == "mapping")
    return is<Dictionary *>(value);
  if (name == "boolean")
    return is<bool>(value);
  if (name == "integer")
    return is<int64_t>(value);
  if (name == "number")
    return is<int64_t>(value) || is<bool>(value);
  if (name == "true" || name == "false")
    return is<bool>(value) && std::get<bool>(value) == (name == "true");
  if (name == "odd" || name == "even")
    return (asInteger(value) % 2 == 0) == (name == "even");
  fail("the test {} is not known", shown(name));
}

Value called(std::string_view method, const Value &value, const Arguments &arguments,
             Store &store) {
  store.spend(1);
  if (const auto *const text = std::get_if<std::string>(&value)) {
    constexpr std::array<std::string_view, 7> ofTexts = {"strip", "lstrip",     "rstrip", "replace",
                                                         "upper", "capitalize", "lower"};
    if (std::ranges::find(ofTexts, method) != ofTexts.end())
      return ofText(method, *text, arguments, store);
    if (method == "split")
      return split(*text, arguments, store);
    if (method == "startswith" || method == "endswith") {
      arguments.expect(1, 1);
      const std::string part = asText(arguments.get(0, "", Undefined()));
      return method == "startswith" ? text->starts_with(part) : text->ends_with(part);
    }
    if (method == "join") {
      arguments.expect(1, 1);
      return joined(arguments.get(0, "", Undefined()), *text, store);
    }
  }
  if (const auto *const dictionary = std::get_if<Dictionary *>(&value);
      dictionary && !(*dictionary)->isNamespace) {
    if (method == "get") {
      arguments.expect(1, 2);
      const Value *const member = (*dictionary)->find(asText(arguments.get(0, "", Undefined())));
      return member ? *member : arguments.get(1, "", None());
    }
    arguments.expect(0, 0);
    if (method == "items" || method == "keys" || method == "values")
      return membersOf(**dictionary, method != "values", method != "keys", store);
  }
  fail("the method {} is not known", shown(method));
}

} // namespace hydra::text::jinja
