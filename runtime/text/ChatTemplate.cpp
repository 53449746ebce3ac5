// Turns as text.
#include "runtime/text/ChatTemplate.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/Fields.h"
#include "runtime/text/StopTokens.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>
#include <ctime>

using namespace hydra::text;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%d %b %Y", &parts)};
}

/// A token that tokenizer_config.json names: a text, or an object with it as its content.
std::string tokenInConfig(const std::filesystem::path &tokenizer, const std::string &key) {
  const std::filesystem::path path = findBeside(tokenizer, "tokenizer_config.json");
  if (path.empty())
    fail("the template needs {}, which tokenizer_config.json beside the tokenizer says", key);
  const std::string name = support::shownPath(path);
  const nlohmann::json json = parseJson(readWholeFile(path), name);
  const Value value = Fields(Value(json, name + ": ")).need(key);
  return value.isObject() ? Fields(value).text("content") : std::string(value.text());
}

void checkUtf8(std::string_view said) {
  if (const size_t bad = findInvalidUtf8(said); bad != std::string_view::npos)
    fail("byte {} of '{}' is no UTF-8", bad, support::shown(said));
}

/// The names of tokens that a piece may have: what is in angles or brackets.
std::vector<std::string> namesIn(std::string_view piece) {
  std::vector<std::string> names;
  for (size_t at = 0; at < piece.size(); ++at) {
    if (piece[at] != '<' && piece[at] != '[')
      continue;
    const size_t end = piece.find(piece[at] == '<' ? '>' : ']', at);
    if (end != std::string_view::npos)
      names.emplace_back(piece.substr(at, end + 1 - at));
  }
  return names;
}

} // namespace

std::string hydra::text::chatTemplateNames() {
  std::string names;
  for (const ChatForm &form : chatForms())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", form.name);
  return names;
}

ChatTemplate::ChatTemplate(std::string_view given, const Tokenizer &tokenizer,
                           const std::filesystem::path &where)
    : tokenizer(&tokenizer) {
  const auto forms = chatForms();
  const auto found = std::ranges::find(forms, given, &ChatForm::name);
  if (found == forms.end())
    fail("--chat-template: '{}' is none of {}", support::shown(given), chatTemplateNames());
  form = &*found;
  const std::array pieces = {form->begin,        form->systemBefore, form->systemBehind,
                             form->noSystem,     form->userBefore,   form->userBehind,
                             form->answerBefore, form->answerEnd,    form->answerBehind};
  const auto needs = [&](std::string_view word) {
    return std::ranges::any_of(
        pieces, [&](std::string_view piece) { return piece.find(word) != std::string_view::npos; });
  };
  const auto named = [&](const std::string &key) {
    std::string token = tokenInConfig(where, key);
    if (!tokenizer.find(token))
      fail("--chat-template: {} is '{}', which is no token of the tokenizer", key,
           support::shown(token));
    return token;
  };
  if (needs("{bos}"))
    bos = named("bos_token");
  if (needs("{eos}"))
    eos = named("eos_token");
  for (const std::string_view piece : pieces)
    for (const std::string &token : namesIn(filled(piece)))
      if (const std::optional<int32_t> id = tokenizer.find(token))
        controls.push_back(*id);
  const std::string name = filled(form->answerEnd);
  const std::vector<int32_t> ids = tokenizer.encode(name, Around::nothing);
  if (ids.size() != 1)
    fail("--chat-template: {} ends answers with '{}', which is no token of the tokenizer",
         form->name, name == "\n" ? "\\n" : support::shown(name));
  end = ids[0];
  stops = tokenizer.stopIds();
  if (std::ranges::find(stops, end) == stops.end())
    stops.push_back(end);
}

std::string ChatTemplate::filled(std::string_view piece) const {
  std::string text(piece);
  replaceAll(text, "{bos}", bos);
  replaceAll(text, "{eos}", eos);
  if (text.find("{date}") != std::string::npos)
    replaceAll(text, "{date}", today());
  return text;
}

ChatText ChatTemplate::joined(const std::vector<ChatPart> &parts) const {
  ChatText all;
  for (const ChatPart &part : parts) {
    const size_t begin = all.text.size();
    all.text += part.said ? std::string(part.text) : filled(part.text);
    if (part.said)
      all.typed.push_back({begin, all.text.size()});
  }
  return all;
}

ChatText ChatTemplate::first(std::string_view said,
                             const std::optional<std::string> &system) const {
  if (system)
    checkUtf8(*system);
  checkUtf8(said);
  return joined(firstTurn(*form, said, system));
}

ChatText ChatTemplate::next(std::string_view said) const {
  checkUtf8(said);
  return joined(nextTurn(*form, said));
}

std::vector<int32_t> ChatTemplate::encode(const ChatText &text) const {
  return tokenizer->encodeTyped(text.text, text.typed, controls);
}
