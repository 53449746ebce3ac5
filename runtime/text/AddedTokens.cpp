// Reading and finding added tokens.
#include "runtime/text/AddedTokens.h"

#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

AddedToken readToken(const Value &value) {
  Fields fields(value);
  AddedToken token;
  token.id = static_cast<int32_t>(fields.need("id").integer(kMostIds));
  token.content = fields.text("content");
  if (token.content.empty())
    fields.need("content").fail("is empty");
  token.singleWord = fields.flag("single_word", false);
  token.stripLeft = fields.flag("lstrip", false);
  token.stripRight = fields.flag("rstrip", false);
  token.special = fields.flag("special", false);
  token.normalized = fields.flag("normalized", !token.special);
  fields.finish();
  return token;
}

size_t spacesAtEnd(std::string_view text) {
  const size_t all = text.size();
  while (!text.empty() && isWhitespace(lastCharacter(text).code))
    text.remove_suffix(lastCharacter(text).bytes);
  return all - text.size();
}

size_t spacesAtBegin(std::string_view text) {
  const size_t all = text.size();
  while (!text.empty() && isWhitespace(firstCharacter(text).code))
    text.remove_prefix(firstCharacter(text).bytes);
  return all - text.size();
}

} // namespace

bool Typed::overlaps(size_t begin, size_t end) const {
  return std::ranges::any_of(
      parts, [&](const TextRange &part) { return part.begin < end && begin < part.end; });
}

bool Typed::isControl(const AddedToken &token) const {
  return token.special || std::ranges::find(controls, token.id) != controls.end();
}

AddedTokens::AddedTokens(const std::optional<Value> &list, const Normalizer *normalizer,
                         const Vocabulary &vocabulary) {
  for (size_t i = 0; list && i < list->size(); ++i) {
    const Value value = (*list)[i];
    AddedToken token = readToken(value);
    if (const int32_t known = vocabulary.find(token.content); known >= 0 && known != token.id)
      value.fail("gives '{}' the id {}; in the vocabulary it has {}", support::shown(token.content),
                 token.id, known);
    if (const std::string *other = vocabulary.nameOf(token.id); other && *other != token.content)
      value.fail("gives '{}' the id {}, which '{}' has in the vocabulary",
                 support::shown(token.content), token.id, support::shown(*other));
    if (byId.contains(token.id) || byContent.contains(token.content))
      value.fail("'{}' with the id {} is there twice", support::shown(token.content), token.id);
    std::string name = token.content;
    if (token.normalized && normalizer) {
      Normalizing part{token.content};
      normalizer->apply(part);
      name = std::move(part.text);
      if (name.empty())
        value.fail("'{}' is looked for in normalized text, and normalization leaves nothing of it",
                   support::shown(token.content));
    }
    const size_t place = tokens.size();
    (token.normalized ? afterwards : raw).add(name, place);
    byId.emplace(token.id, place);
    byContent.emplace(token.content, place);
    idLimit = std::max(idLimit, static_cast<size_t>(token.id) + 1);
    names.push_back(std::move(name));
    tokens.push_back(std::move(token));
  }
}

const AddedToken *AddedTokens::findNormalizedControl(std::string_view text,
                                                     const Typed &typed) const {
  for (const AddedToken &token : tokens) {
    if (!token.normalized || !typed.isControl(token))
      continue;
    for (size_t at = 0; (at = text.find(token.content, at)) != std::string_view::npos; ++at)
      if (!typed.overlaps(at, at + token.content.size()))
        return &token;
  }
  return nullptr;
}

std::vector<AddedPart> AddedTokens::split(std::string_view text, bool isRaw,
                                          const Typed &typed) const {
  const Matcher &matcher = isRaw ? raw : afterwards;
  std::vector<AddedPart> parts;
  size_t done = 0, from = 0, place = 0, begin = 0, end = 0;
  size_t stripped = 0; // where the white space ends that was looked at last
  while (matcher.find(text, from, place, begin, end)) {
    from = end;
    const AddedToken &token = tokens[place];
    if (typed.overlaps(begin, end) && typed.isControl(token)) {
      from = begin + 1;
      continue;
    }
    if (token.singleWord && ((begin > 0 && isWord(lastCharacter(text.substr(0, begin)).code)) ||
                             (end < text.size() && isWord(firstCharacter(text.substr(end)).code))))
      continue;
    if (token.stripLeft)
      begin = begin > done ? begin - spacesAtEnd(text.substr(done, begin - done)) : done;
    if (token.stripRight) {
      if (end >= stripped)
        stripped = end + spacesAtBegin(text.substr(end));
      end = stripped;
    }
    if (begin > done)
      parts.push_back({done, begin, -1});
    // Spaces that the one before has taken are tokens of their own all the same, unless they would
    // be taken from it.
    if (end > begin) {
      parts.push_back({begin, end, token.id});
      done = end;
    }
  }
  if (done < text.size())
    parts.push_back({done, text.size(), -1});
  return parts;
}

const AddedToken *AddedTokens::find(int32_t id) const {
  const auto found = byId.find(id);
  return found == byId.end() ? nullptr : &tokens[found->second];
}

const AddedToken *AddedTokens::find(std::string_view content) const {
  const auto found = byContent.find(content);
  return found == byContent.end() ? nullptr : &tokens[found->second];
}

const std::string &AddedTokens::nameOf(const AddedToken &token) const {
  return names[static_cast<size_t>(&token - tokens.data())];
}

bool AddedTokens::isSpecial(std::string_view name) const {
  const AddedToken *const token = find(name);
  return token && token->special;
}

void AddedTokens::Matcher::add(std::string_view text, size_t token) {
  firstBytes[static_cast<unsigned char>(text[0])] = true;
  uint64_t node = 0;
  for (const char c : text) {
    const uint64_t key = node << 8 | static_cast<unsigned char>(c);
    if (const uint64_t *const next = children.find(key)) {
      node = *next;
    } else {
      node = nodes.size();
      nodes.push_back(-1);
      children.insert(key, node);
    }
  }
  nodes[node] = static_cast<int64_t>(token);
}

bool AddedTokens::Matcher::find(std::string_view text, size_t from, size_t &token, size_t &begin,
                                size_t &end) const {
  if (nodes.size() == 1)
    return false;
  for (begin = from; begin < text.size(); ++begin) {
    if (!firstBytes[static_cast<unsigned char>(text[begin])])
      continue;
    uint64_t node = 0;
    bool found = false;
    for (size_t i = begin; i < text.size(); ++i) {
      const uint64_t *const next = children.find(node << 8 | static_cast<unsigned char>(text[i]));
      if (!next)
        break;
      node = *next;
      if (nodes[node] >= 0) {
        token = static_cast<size_t>(nodes[node]);
        end = i + 1;
        found = true;
      }
    }
    if (found)
      return true;
  }
  return false;
}
