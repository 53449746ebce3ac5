// What instruction-tuned models expect around what is said, family by family.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hydra::text {

/// Pieces of text, in the order in which a conversation has them. In them `{bos}` and `{eos}` stand
/// for the tokens of these names in tokenizer_config.json, `{date}` for today as `26 Jul 2024`.
struct ChatForm {
  /// Where a system text stands.
  enum class System { nowhere, apart, inFirstTurn };

  std::string_view name;
  std::string_view begin;
  System system = System::nowhere;
  std::string_view systemBefore = {}, systemBehind = {};
  std::string_view noSystem = {}; // in its place, where there is none
  std::string_view userBefore, userBehind;
  std::string_view answerBefore = {};
  std::string_view answerEnd; // the token that ends an answer
  std::string_view answerBehind = {};
  bool trim = false, trimSystem = false; // white space around what is said
  bool spaced = false; // templates have a space in front of answers, which models write themselves
};

std::span<const ChatForm> chatForms();

/// A part of a conversation: what somebody says, or what the form has around it.
struct ChatPart {
  std::string_view text;
  bool said = false;
};
/// The beginning of a conversation, up to where its first answer begins. What is said is UTF-8.
std::vector<ChatPart> firstTurn(const ChatForm &form, std::string_view said,
                                std::optional<std::string_view> system);
/// What follows an answer, up to where the next one begins. A system text is one that moves with
/// the last turn.
std::vector<ChatPart> nextTurn(const ChatForm &form, std::string_view said,
                               std::optional<std::string_view> system = std::nullopt);

} // namespace hydra::text
