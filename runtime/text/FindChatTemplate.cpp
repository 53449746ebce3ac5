// Which template the files beside a tokenizer say.
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/ChatTemplate.h"
#include "runtime/text/Fields.h"
#include "runtime/text/StopTokens.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

using namespace hydra::text;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

/// A template in one of the many ways to write it: quotes are `'`, line breaks `\n`, members of
/// messages are in brackets, no spaces stand around `+` and `|`, and texts that are added are one.
std::string simplified(std::string text) {
  replaceAll(text, "\"", "'");
  replaceAll(text, "\n", "\\n");
  for (const char *field : {"content", "role"})
    replaceAll(text, fmt::format("message.{}", field), fmt::format("message['{}']", field));
  replaceAll(text, "~", "+");
  for (const char *sign : {"+", "|"})
    for (const auto &spaced : {fmt::format(" {}", sign), fmt::format("{} ", sign)})
      while (text.find(spaced) != std::string::npos)
        replaceAll(text, spaced, sign);
  for (const char *between : {"' }}{{ '", "'}}{{'", "' }}{{'", "'}}{{ '", "' }}{{- '", "' -}}{{ '"})
    replaceAll(text, between, "'+'");
  replaceAll(text, "'+'", "");
  return text;
}

/// Whether the simplified template says other things where nobody gives a system text: a text that
/// follows what begins one.
bool saysOtherSystem(const ChatForm &form, const std::string &text) {
  std::string before(form.systemBefore), said(form.noSystem);
  replaceAll(before, "\n", "\\n");
  replaceAll(said, "\n", "\\n");
  if (before.empty())
    return false;
  for (size_t at = 0; (at = text.find(before, at)) != std::string::npos; at += before.size())
    if (!text.substr(at + before.size()).starts_with("'") &&
        !text.substr(at).starts_with(said + "'"))
      return true;
  return false;
}

std::string_view wordAt(std::string_view text) {
  size_t size = 0;
  while (size < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[size])) != 0 || text[size] == '_'))
    ++size;
  return text.substr(0, size);
}

bool isOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// Whether what follows a member of a message makes another text of it: a filter, a method or a
/// part other than those by which templates look for tools and thoughts.
bool changesMember(std::string_view rest) {
  if (rest.starts_with('|'))
    return !isOneOf(wordAt(rest.substr(1)), {"trim", "length", "tojson", "string", "list", "safe"});
  if (rest.starts_with('.'))
    return !isOneOf(wordAt(rest.substr(1)),
                    {"split", "startswith", "endswith", "strip", "get", "items"});
  return rest.starts_with('[') && rest.substr(0, rest.find(']')).find(':') != rest.npos;
}

/// Whether the simplified template says what is in no conversation, leaves turns out, or changes
/// what is said.
bool saysMore(const ChatForm &form, const std::string &text) {
  const std::string_view all = text;
  const auto eachBehind = [&](std::string_view what, const auto &is) {
    for (size_t at = 0; (at = all.find(what, at)) != all.npos;)
      if (at += what.size(); is(all.substr(at)))
        return true;
    return false;
  };
  const auto letter = [](std::string_view rest) {
    return !rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0])) != 0;
  };
  for (const std::string_view member : {"['content']", ".content", "['role']", ".role"})
    if (eachBehind(member, changesMember))
      return true;
  if (eachBehind("messages[", [](std::string_view rest) {
        const std::string_view part = rest.substr(0, rest.find(']'));
        return part.find(':') != part.npos && !isOneOf(part, {"1:", "::-1"});
      }))
    return true;
  // Messages are a list that the caller gives, or what is behind its first one.
  for (const std::string_view more : {"]+messages", "messages+[", "messages="})
    if (all.find(more) != all.npos)
      return true;
  if (eachBehind("messages|", [](std::string_view rest) { return wordAt(rest) != "length"; }))
    return true;
  // A name for a text of the template's own.
  if (eachBehind("set ", [&](std::string_view rest) {
        const std::string_view name = wordAt(rest);
        rest.remove_prefix(name.size());
        rest.remove_prefix(std::min(rest.find_first_not_of(" ="), rest.size()));
        return rest.starts_with('\'') && letter(rest.substr(1)) &&
               !isOneOf(name, {"date_string", "role"});
      }))
    return true;
  const bool tools = all.find("tools") != all.npos,
             thinks = all.find("enable_thinking") != all.npos;
  for (const std::string_view tag : {"{{ '", "{{- '", "{{'", "{{-'"})
    if (eachBehind(tag, [&](std::string_view rest) {
          return (letter(rest) && !tools) || (rest.starts_with("<think>") && !thinks) ||
                 rest.starts_with("<s>") || rest.starts_with("<bos>") ||
                 rest.starts_with("<|begin_of_text|>");
        }))
      return true;
  // What stands behind every turn.
  std::string end(form.userBehind);
  replaceAll(end, "\n", "\\n");
  if (end.starts_with('<') &&
      eachBehind(end, [](std::string_view rest) { return rest.starts_with("\\n"); }))
    return true;
  for (const std::string_view behind : {"{{ '\\n' }}{% endfor", "{{'\\n'}}{% endfor",
                                        "{{ eos_token }}{% endfor", "{{eos_token}}{% endfor"})
    if (all.find(behind) != all.npos)
      return true;
  return all.find("assistant\\n<think>") != all.npos && form.name != "plain" && !thinks;
}

/// Where the next tag begins; npos: there is none.
size_t findTag(std::string_view text) {
  for (size_t at = 0; (at = text.find('{', at)) != std::string_view::npos; ++at)
    if (at + 1 < text.size() &&
        std::string_view("{%#").find(text[at + 1]) != std::string_view::npos)
      return at;
  return std::string_view::npos;
}

/// Where what closes the tag at the beginning begins, which is not in a text in quotes; npos:
/// nothing does.
size_t findClose(std::string_view text) {
  const std::string close{text[1] == '{' ? '}' : text[1], '}'};
  char quote = 0;
  for (size_t at = 2; at < text.size(); ++at) {
    if (quote == 0 && text.substr(at).starts_with(close))
      return at;
    if (quote != 0 && text[at] == '\\')
      ++at;
    else if (text[at] == quote)
      quote = 0;
    else if (quote == 0 && text[1] != '#' && (text[at] == '\'' || text[at] == '"'))
      quote = text[at];
  }
  return std::string_view::npos;
}

/// What a template says outside of its tags, with `trim_blocks` and `lstrip_blocks`, as
/// transformers reads it: a tag of a block or a comment takes the rest of its line with it.
std::string looseText(std::string_view text) {
  std::string loose;
  bool strips = false, block = false; // what the tag in front takes away
  for (;;) {
    const size_t tag = findTag(text);
    std::string_view piece = text.substr(0, tag);
    text.remove_prefix(piece.size());
    if (strips)
      piece = strippedLeft(piece);
    else if (block && piece.starts_with('\n'))
      piece.remove_prefix(1);
    if (text.empty())
      return loose.append(piece);
    const char kind = text[1];
    if (text.substr(2).starts_with('-'))
      piece = strippedRight(piece);
    else if (kind != '{')
      piece = piece.substr(0, piece.find_last_not_of(" \t") + 1);
    loose += piece;
    const size_t end = findClose(text);
    if (end == std::string_view::npos)
      return loose.append(text);
    strips = text[end - 1] == '-';
    block = kind != '{';
    text.remove_prefix(end + 2);
  }
}

bool isForm(const ChatForm &form, const std::string &text, const std::string &loose) {
  const auto holds = [&](std::string_view mark) { return text.find(mark) != std::string::npos; };
  return !form.marks.empty() && std::ranges::all_of(form.marks, holds) &&
         std::ranges::none_of(form.strangers, holds) &&
         holds("bos_token") == (form.begin == "{bos}") && loose == form.loose &&
         !saysOtherSystem(form, text) && !saysMore(form, text);
}

/// The one of a list of templates that is for conversations.
std::string ofList(const Value &list) {
  for (size_t i = 0; i < list.size(); ++i)
    if (Fields one(list[i]); one.text("name") == "default")
      return one.text("template");
  list.fail("has no template of the name default");
}

/// The text of the template, and in `place` where it stands; empty: there is none.
std::string readTemplate(const std::filesystem::path &tokenizer, std::string &place) {
  const std::filesystem::path own = findBeside(tokenizer, "chat_template.jinja"),
                              config = findBeside(tokenizer, "tokenizer_config.json");
  if (!own.empty()) {
    place = support::shownPath(own);
    std::string text = readWholeFile(own);
    if (const size_t bad = findInvalidUtf8(text); bad != std::string::npos)
      fail("{}: byte {} is no UTF-8", place, bad);
    return text;
  }
  if (config.empty())
    return "";
  const std::string name = support::shownPath(config);
  const nlohmann::json json = parseJson(readWholeFile(config), name);
  const std::optional<Value> value = Fields(Value(json, name + ": ")).find("chat_template");
  place = name + ": chat_template";
  return !value ? "" : value->isList() ? ofList(*value) : std::string(value->text());
}

} // namespace

std::string_view hydra::text::findChatTemplate(const std::filesystem::path &tokenizer) {
  std::string place;
  const std::string found = readTemplate(tokenizer, place);
  if (found.empty())
    fail("--chat: nothing beside the tokenizer says how its model expects a conversation; name its "
         "template with --chat-template: {}",
         chatTemplateNames());
  const std::string text = simplified(found), loose = looseText(found);
  const ChatForm *only = nullptr;
  for (const ChatForm &form : chatForms())
    if (isForm(form, text, loose)) {
      if (only)
        fail("{} could be {} or {}; say which with --chat-template", place, only->name, form.name);
      only = &form;
    }
  if (!only)
    fail("{} is none of the templates that are known; if it means the same as one of them, name "
         "that with --chat-template: {}",
         place, chatTemplateNames());
  return only->name;
}
