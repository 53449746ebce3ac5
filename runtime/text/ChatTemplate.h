// Conversations as text and tokens.
#pragma once

#include "runtime/text/ChatForms.h"
#include "runtime/text/Tokenizer.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text {

/// What is to be read next in a conversation, and which parts of it somebody typed.
struct ChatText {
  std::string text;
  std::vector<TextRange> typed;
};

/// The names of all templates, in one line.
std::string chatTemplateNames();

/// What stands around the turns of a conversation with a model: what transformers'
/// apply_chat_template makes of the same turns, but that nothing which was typed becomes a token
/// that stands for no text.
class ChatTemplate {
public:
  /// The one of a name, for a tokenizer that is the file or folder `where` (empty: it has none).
  /// Throws Error where there is no such template, or the tokenizer lacks its tokens.
  ChatTemplate(std::string_view name, const Tokenizer &tokenizer,
               const std::filesystem::path &where);

  std::string_view name() const { return form->name; }
  bool takesSystem() const { return form->system != ChatForm::System::nowhere; }

  /// The beginning of a conversation up to where its first answer begins. Throws Error, as `next`
  /// does, where what is said is no UTF-8.
  ChatText first(std::string_view said, const std::optional<std::string> &system) const;
  /// What follows an answer, from the token that ends it up to where the next answer begins.
  ChatText next(std::string_view said) const;

  /// Throws Error as `Tokenizer::encodeTyped` does.
  std::vector<int32_t> encode(const ChatText &text) const;

  /// Behind which ids an answer ends: the token that ends it, and those of `Tokenizer::stopIds`.
  const std::vector<int32_t> &stopIds() const { return stops; }
  /// The token that ends it.
  int32_t endId() const { return end; }

private:
  std::string filled(std::string_view piece) const;
  ChatText joined(const std::vector<ChatPart> &parts) const;

  const ChatForm *form = nullptr;
  const Tokenizer *tokenizer;
  std::string bos, eos;
  std::vector<int32_t> controls; // tokens that the template is made of
  int32_t end = 0;
  std::vector<int32_t> stops;
};

/// The name of the template that the files beside a tokenizer say: chat_template.jinja, or
/// `chat_template` of tokenizer_config.json. It is the one that says the same in conversations, in
/// those with a system text if `system`. Throws Error where there is none, or no such one.
std::string_view findChatTemplate(const std::filesystem::path &tokenizer, bool system = false);

} // namespace hydra::text
