// Which template the files beside a tokenizer say: the one whose conversations have the same text.
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/ChatTemplate.h"
#include "runtime/text/Fields.h"
#include "runtime/text/Jinja.h"
#include "runtime/text/StopTokens.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>

using namespace hydra::text;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

/// Turns that differ in what a template could look at: length, white space, signs, case, and
/// characters beyond ASCII.
constexpr std::array<std::string_view, 5> kSaid = {
    " Who are you? Tell me in a few words, please, and say what the others would not say: as much "
    "as you can, about your aims and about ours, and about what lies between Abc and zYX.  ",
    "And?", "\n\n 1. \"quoted\" 'text' <b>&amp;</b>\n 2. {{ x }} {% y %} C:\\n 100% #3\t\n",
    "Gr\xc3\xbc\xc3\x9f' \xe4\xbd\xa0 \xf0\x9f\x99\x82", "7"};
constexpr std::array<std::string_view, 3> kAnswers = {
    "I am One. What is it to you?", "Aha, <i>\"b\"</i> 'c':\n\n- d\n- \xc3\xa9", "No"};
constexpr std::string_view kSystem =
    " You are somebody Else: 'x', \"y\" & <z>.\n\n\xc3\x84nd so on. ";
/// More than any template counts.
constexpr size_t kMostTurns = 12;

struct Conversation {
  size_t turns;
  bool system;

  static std::string_view said(size_t turn) { return kSaid[turn % kSaid.size()]; }
  static std::string_view answer(size_t turn) { return kAnswers[turn % kAnswers.size()]; }

  std::vector<jinja::Message> messages() const {
    std::vector<jinja::Message> all;
    if (system)
      all.push_back({"system", std::string(kSystem)});
    for (size_t turn = 0; turn < turns; ++turn) {
      if (turn > 0)
        all.push_back({"assistant", std::string(answer(turn))});
      all.push_back({"user", std::string(said(turn))});
    }
    return all;
  }
};

/// Words of forms stand for themselves.
std::string dateFor(std::string_view format) {
  return format == "%d %b %Y" ? "{date}" : fmt::format("{{date of {}}}", format);
}

/// What a form says in a conversation. With `moves` the system text stands in the last turn, as it
/// does in templates of Mistral's, and here in the first; with `spaced` there is a space in front
/// of answers.
std::string textOf(const ChatForm &form, const Conversation &conversation, bool moves,
                   bool spaced) {
  std::string text;
  const auto add = [&](const std::vector<ChatPart> &parts) {
    for (const ChatPart &part : parts)
      text += part.text;
  };
  const std::optional<std::string_view> none,
      system = conversation.system ? std::optional(kSystem) : none;
  const size_t last = conversation.turns - 1;
  add(firstTurn(form, Conversation::said(0), moves && last > 0 ? none : system));
  for (size_t turn = 1; turn < conversation.turns; ++turn) {
    text += spaced ? " " : "";
    text += Conversation::answer(turn);
    add(nextTurn(form, Conversation::said(turn), moves && turn == last ? system : none));
  }
  return text;
}

/// A template of a file, and what it says in conversations.
class FoundTemplate {
public:
  explicit FoundTemplate(std::string_view text) : syntax(parsed(text)) {}

  /// Whether conversations with or without a system text are those of the form.
  bool isLike(const ChatForm &form, bool system) {
    for (size_t turns = 1; turns <= kMostTurns; ++turns)
      if (!saysAs(form, {turns, system}))
        return false;
    return true;
  }

private:
  /// Nothing where it is more than is known, and says nothing that is.
  static std::optional<jinja::Syntax> parsed(std::string_view text) {
    try {
      return jinja::parse(text);
    } catch (const support::Error &) {
      return std::nullopt;
    }
  }

  bool saysAs(const ChatForm &form, const Conversation &conversation) {
    const Said &here = said(conversation);
    if (conversation.system && form.system == ChatForm::System::nowhere)
      return here.raises;
    if (!here.text)
      return false;
    for (const bool moves : {false, true})
      for (const bool spaced : {false, true})
        if ((!spaced || form.spaced) && (!moves || form.system == ChatForm::System::inFirstTurn) &&
            *here.text == textOf(form, conversation, moves, spaced))
          return true;
    return false;
  }

  struct Said {
    std::optional<std::string> text;
    bool raises = false;
  };

  const Said &said(const Conversation &conversation) {
    std::vector<Said> &all = known[conversation.system ? 1 : 0];
    while (all.size() < conversation.turns)
      all.push_back(render({all.size() + 1, conversation.system}));
    return all[conversation.turns - 1];
  }

  Said render(const Conversation &conversation) const {
    const jinja::Surroundings around{.messages = conversation.messages(),
                                     .values = {{"add_generation_prompt", true},
                                                {"bos_token", std::string("{bos}")},
                                                {"eos_token", std::string("{eos}")},
                                                {"tools", jinja::None()},
                                                {"documents", jinja::None()}},
                                     .date = dateFor};
    try {
      std::optional<std::string> text = syntax ? rendered(*syntax, around) : std::nullopt;
      return {text, syntax && !text};
    } catch (const support::Error &) {
      return {};
    }
  }

  std::optional<jinja::Syntax> syntax;
  std::array<std::vector<Said>, 2> known; // without and with a system text
};

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

std::string_view hydra::text::findChatTemplate(const std::filesystem::path &tokenizer,
                                               bool system) {
  std::string place;
  const std::string text = readTemplate(tokenizer, place);
  if (text.empty())
    fail("--chat: nothing beside the tokenizer says how its model expects a conversation; name its "
         "template with --chat-template: {}",
         chatTemplateNames());
  FoundTemplate found(text);
  const ChatForm *like = nullptr; // without a system text
  for (const ChatForm &form : chatForms()) {
    if (form.userBefore.empty() || !found.isLike(form, false)) // no file is plain
      continue;
    if (found.isLike(form, true))
      return form.name;
    like = like ? like : &form;
  }
  if (like && system && like->system != ChatForm::System::nowhere)
    fail("--system: {} does not say it as {} does, which it is without; if that is what is meant, "
         "name it with --chat-template",
         place, like->name);
  if (!like)
    fail("{} is none of the templates that are known; if it means the same as one of them, name "
         "that with --chat-template: {}",
         place, chatTemplateNames());
  return like->name;
}
