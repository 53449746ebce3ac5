// The table of chat templates.
#include "runtime/text/ChatForms.h"

#include "runtime/text/Unicode.h"

#include <array>

using namespace hydra::text;

namespace {

using System = ChatForm::System;

/// `<|im_start|>role`, a line for each role: Qwen, SmolLM and others, which differ in what the
/// system says where nobody says it.
constexpr ChatForm chatml(std::string_view name, std::string_view noSystem) {
  return {.name = name,
          .begin = "",
          .system = System::apart,
          .systemBefore = "<|im_start|>system\n",
          .systemBehind = "<|im_end|>\n",
          .noSystem = noSystem,
          .userBefore = "<|im_start|>user\n",
          .userBehind = "<|im_end|>\n",
          .answerBefore = "<|im_start|>assistant\n",
          .answerEnd = "<|im_end|>",
          .answerBehind = "\n"};
}

/// A header and the text: Llama 3, whose later versions begin with dates.
constexpr ChatForm llama3(std::string_view name, std::string_view systemBefore,
                          std::string_view noSystem) {
  return {.name = name,
          .begin = "{bos}",
          .system = System::apart,
          .systemBefore = systemBefore,
          .systemBehind = "<|eot_id|>",
          .noSystem = noSystem,
          .userBefore = "<|start_header_id|>user<|end_header_id|>\n\n",
          .userBehind = "<|eot_id|>",
          .answerBefore = "<|start_header_id|>assistant<|end_header_id|>\n\n",
          .answerEnd = "<|eot_id|>",
          .trim = true,
          .trimSystem = true};
}

/// Instructions in brackets: Mistral, whose versions differ in spaces and in where the system text
/// is.
constexpr ChatForm mistral(std::string_view name, std::string_view before, std::string_view behind,
                           bool hasSystem) {
  return {.name = name,
          .begin = "{bos}",
          .system = hasSystem ? System::inFirstTurn : System::nowhere,
          .systemBehind = "\n\n",
          .userBefore = before,
          .userBehind = behind,
          .answerEnd = "{eos}",
          .spaced = hasSystem};
}

constexpr ChatForm gemma(std::string_view name, System system) {
  return {.name = name,
          .begin = "{bos}",
          .system = system,
          .systemBehind = "\n\n",
          .userBefore = "<start_of_turn>user\n",
          .userBehind = "<end_of_turn>\n",
          .answerBefore = "<start_of_turn>model\n",
          .answerEnd = "<end_of_turn>",
          .answerBehind = "\n",
          .trim = true};
}

constexpr auto kForms = std::to_array<ChatForm>({
    chatml("chatml", ""),
    chatml("qwen-2", "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"),
    chatml("qwen-2.5",
           "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
           "assistant.<|im_end|>\n"),
    chatml("smollm-2",
           "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
           "Face<|im_end|>\n"),
    llama3("llama-3", "<|start_header_id|>system<|end_header_id|>\n\n", ""),
    llama3("llama-3.1",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: 26 Jul 2024\n\n",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"),
    llama3("llama-3.2",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: {date}\n\n",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: {date}\n\n<|eot_id|>"),
    mistral("mistral-instruct", "[INST] ", " [/INST]", false),
    mistral("mistral-v1", " [INST] ", " [/INST]", true),
    mistral("mistral-v3", "[INST] ", "[/INST]", true),
    mistral("mistral-v3-tekken", "[INST]", "[/INST]", true),
    {.name = "mistral-v7",
     .begin = "{bos}",
     .system = System::apart,
     .systemBefore = "[SYSTEM_PROMPT] ",
     .systemBehind = "[/SYSTEM_PROMPT]",
     .userBefore = "[INST] ",
     .userBehind = "[/INST]",
     .answerEnd = "{eos}",
     .spaced = true},
    gemma("gemma", System::nowhere),
    gemma("gemma-3", System::inFirstTurn),
    {.name = "phi-3",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|system|>\n",
     .systemBehind = "<|end|>\n",
     .userBefore = "<|user|>\n",
     .userBehind = "<|end|>\n",
     .answerBefore = "<|assistant|>\n",
     .answerEnd = "<|end|>",
     .answerBehind = "\n"},
    {.name = "phi-4",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|im_start|>system<|im_sep|>",
     .systemBehind = "<|im_end|>",
     .userBefore = "<|im_start|>user<|im_sep|>",
     .userBehind = "<|im_end|>",
     .answerBefore = "<|im_start|>assistant<|im_sep|>",
     .answerEnd = "<|im_end|>"},
    {.name = "phi-4-mini",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|system|>",
     .systemBehind = "<|end|>",
     .userBefore = "<|user|>",
     .userBehind = "<|end|>",
     .answerBefore = "<|assistant|>",
     .answerEnd = "<|end|>"},
    {.name = "olmo2",
     .begin = "{bos}",
     .system = System::apart,
     .systemBefore = "<|system|>\n",
     .systemBehind = "\n",
     .userBefore = "<|user|>\n",
     .userBehind = "\n",
     .answerBefore = "<|assistant|>\n",
     .answerEnd = "{eos}",
     .answerBehind = "\n"},
    {.name = "zephyr",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|system|>\n",
     .systemBehind = "{eos}\n",
     .userBefore = "<|user|>\n",
     .userBehind = "{eos}\n",
     .answerBefore = "<|assistant|>\n",
     .answerEnd = "{eos}",
     .answerBehind = "\n"},
    // A line, and a line in answer: for models that learned nothing of the kind.
    {.name = "plain", .begin = "", .userBefore = "", .userBehind = "\n", .answerEnd = "\n"},
});

} // namespace

namespace {

void add(std::vector<ChatPart> &to, std::string_view text) { to.push_back({text, false}); }
void addSaid(std::vector<ChatPart> &to, std::string_view text, bool trim) {
  to.push_back({trim ? stripped(text) : text, true});
}
void addSystem(std::vector<ChatPart> &to, const ChatForm &form, std::string_view text) {
  add(to, form.systemBefore);
  addSaid(to, text, form.trimSystem);
  add(to, form.systemBehind);
}
void addTurn(std::vector<ChatPart> &to, const ChatForm &form, std::string_view said,
             std::optional<std::string_view> system) {
  add(to, form.userBefore);
  if (system && form.system == System::inFirstTurn)
    addSystem(to, form, *system);
  addSaid(to, said, form.trim);
  add(to, form.userBehind);
  add(to, form.answerBefore);
}

} // namespace

std::span<const ChatForm> hydra::text::chatForms() { return kForms; }

std::vector<ChatPart> hydra::text::firstTurn(const ChatForm &form, std::string_view said,
                                             std::optional<std::string_view> system) {
  std::vector<ChatPart> parts;
  add(parts, form.begin);
  if (!system)
    add(parts, form.noSystem);
  else if (form.system == System::apart)
    addSystem(parts, form, *system);
  addTurn(parts, form, said, system);
  return parts;
}

std::vector<ChatPart> hydra::text::nextTurn(const ChatForm &form, std::string_view said,
                                            std::optional<std::string_view> system) {
  std::vector<ChatPart> parts;
  add(parts, form.answerEnd);
  add(parts, form.answerBehind);
  addTurn(parts, form, said, system);
  return parts;
}
