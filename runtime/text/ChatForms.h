// What instruction-tuned models expect around what is said, family by family.
#pragma once

#include <span>
#include <string_view>

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

  /// By what a template in a file is known, as `simplified` (FindChatTemplate.cpp) writes it: it
  /// has all of the first, none of the others.
  std::span<const std::string_view> marks = {}, strangers = {};
  std::string_view loose = {}; // what it has outside of its tags
};

std::span<const ChatForm> chatForms();

} // namespace hydra::text
