// The table of chat templates.
#include "runtime/text/ChatForms.h"

#include <array>

using namespace hydra::text;

namespace {

using System = ChatForm::System;

// What no form has: a date of today, thoughts that the template begins, other separators.
constexpr std::string_view kChatmlStrangers[] = {
    "<|im_sep|>",          "strftime_now",    "|trim",
    "['content'].strip()", "content.strip()", "'<think>\\n'",
    "assistant\\n<think>", "system_message",  "default_system",
};
constexpr std::string_view kChatmlMarks[] = {"<|im_end|>\\n", "'<|im_start|>assistant\\n'"};

/// `<|im_start|>role`, a line for each role: Qwen, SmolLM and others, which differ in what the
/// system says where nobody says it.
constexpr ChatForm chatml(std::string_view name, std::string_view noSystem,
                          std::span<const std::string_view> marks) {
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
          .answerBehind = "\n",
          .marks = marks,
          .strangers = kChatmlStrangers};
}

constexpr std::string_view kQwen2[] = {
    kChatmlMarks[0], kChatmlMarks[1],
    "'<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n'"};
constexpr std::string_view kQwen25[] = {
    kChatmlMarks[0], kChatmlMarks[1],
    "'<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
    "assistant.<|im_end|>\\n'"};
constexpr std::string_view kSmolLM2[] = {
    kChatmlMarks[0], kChatmlMarks[1],
    "'<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
    "Face<|im_end|>\\n'"};

/// A header and the text: Llama 3, whose later versions begin with dates.
constexpr ChatForm llama3(std::string_view name, std::string_view systemBefore,
                          std::string_view noSystem, std::span<const std::string_view> marks,
                          std::span<const std::string_view> strangers) {
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
          .trimSystem = true,
          .marks = marks,
          .strangers = strangers};
}

constexpr std::string_view kLlama3Text = "message['content']|trim+'<|eot_id|>'";
constexpr std::string_view kLlama3Answer = "'<|start_header_id|>assistant<|end_header_id|>\\n\\n'";
constexpr std::string_view kCutoff = "'Cutting Knowledge Date: December 2023\\n'";
constexpr std::string_view kLlama3[] = {kLlama3Text, kLlama3Answer};
constexpr std::string_view kNotLlama3[] = {"Cutting Knowledge Date", "system_message",
                                           "message['content']+'<|eot_id|>'"};
constexpr std::string_view kLlama31[] = {kLlama3Text, kLlama3Answer, kCutoff,
                                         "set date_string = '26 Jul 2024'",
                                         "messages[0]['content']|trim"};
constexpr std::string_view kNotLlama31[] = {"strftime_now"};
constexpr std::string_view kLlama32[] = {kLlama3Text, kLlama3Answer, kCutoff,
                                         "strftime_now('%d %b %Y')", "messages[0]['content']|trim"};

/// Instructions in brackets: Mistral, whose versions differ in spaces and in where the system text
/// is.
constexpr ChatForm mistral(std::string_view name, std::string_view before, std::string_view behind,
                           bool hasSystem, std::span<const std::string_view> marks,
                           std::span<const std::string_view> strangers) {
  return {.name = name,
          .begin = "{bos}",
          .system = hasSystem ? System::inFirstTurn : System::nowhere,
          .systemBehind = "\n\n",
          .userBefore = before,
          .userBehind = behind,
          .answerEnd = "{eos}",
          .marks = marks,
          .strangers = strangers};
}

constexpr std::string_view kMistral[] = {"'[INST] '+message['content']+' [/INST]'",
                                         "message['content']+eos_token"};
constexpr std::string_view kNotMistral[] = {
    "<<SYS>>", "eos_token+' '", "system_message", "' '+message['content']", "|trim", ".strip()"};
constexpr std::string_view kMistralV1[] = {
    "' [INST] '+message['content']+' [/INST]'",
    "' [INST] '+system_message+'\\n\\n'+message['content']+' [/INST]'"};
constexpr std::string_view kMistralV3[] = {
    "'[INST] '+message['content']+'[/INST]'",
    "'[INST] '+system_message+'\\n\\n'+message['content']+'[/INST]'"};
constexpr std::string_view kMistralTekken[] = {
    "'[INST]'+message['content']+'[/INST]'",
    "'[INST]'+system_message+'\\n\\n'+message['content']+'[/INST]'"};
constexpr std::string_view kMistralV7[] = {
    "'[INST] '+message['content']+'[/INST]'",
    "'[SYSTEM_PROMPT] '+message['content']+'[/SYSTEM_PROMPT]'"};
constexpr std::string_view kNotMistralVersion[] = {"<<SYS>>", "default_system"};

constexpr ChatForm gemma(std::string_view name, System system,
                         std::span<const std::string_view> marks) {
  return {.name = name,
          .begin = "{bos}",
          .system = system,
          .systemBehind = "\n\n",
          .userBefore = "<start_of_turn>user\n",
          .userBehind = "<end_of_turn>\n",
          .answerBefore = "<start_of_turn>model\n",
          .answerEnd = "<end_of_turn>",
          .answerBehind = "\n",
          .trim = true,
          .marks = marks};
}

constexpr std::string_view kGemma[] = {
    "System role not supported",
    "'<start_of_turn>'+role+'\\n'+message['content']|trim+'<end_of_turn>\\n'",
    "'<start_of_turn>model\\n'"};
constexpr std::string_view kGemma3[] = {
    "'<start_of_turn>'+role+'\\n'+(first_user_prefix if loop.first else '')",
    "first_user_prefix = messages[0]['content']+'\\n\\n'", "message['content']|trim",
    "'<end_of_turn>\\n'", "'<start_of_turn>model\\n'"};

constexpr std::string_view kPhi3[] = {"'<|user|>\\n'+message['content']+'<|end|>\\n",
                                      "'<|system|>\\n'+message['content']+'<|end|>\\n'",
                                      "'<|assistant|>\\n'"};
constexpr std::string_view kPhi4[] = {
    "'<|im_start|>user<|im_sep|>'+message['content']+'<|im_end|>",
    "'<|im_start|>system<|im_sep|>'+message['content']+'<|im_end|>'",
    "<|im_start|>assistant<|im_sep|>'"};
constexpr std::string_view kPhi4Mini[] = {"'<|'+message['role']+'|>'+message['content']+'<|end|>'",
                                          "'<|assistant|>'"};
constexpr std::string_view kOlmo2[] = {"'<|system|>\\n'+message['content']+'\\n'",
                                       "'<|user|>\\n'+message['content']+'\\n'",
                                       "'<|assistant|>\\n'+message['content']+eos_token+'\\n'"};
constexpr std::string_view kZephyr[] = {
    "'<|system|>\\n'+message['content']+eos_token", "'<|user|>\\n'+message['content']+eos_token",
    "'<|assistant|>\\n'+message['content']+eos_token", "'<|assistant|>'"};

constexpr auto kForms = std::to_array<ChatForm>({
    chatml("chatml", "", kChatmlMarks),
    chatml("qwen-2", "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n", kQwen2),
    chatml("qwen-2.5",
           "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
           "assistant.<|im_end|>\n",
           kQwen25),
    chatml("smollm-2",
           "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
           "Face<|im_end|>\n",
           kSmolLM2),
    llama3("llama-3", "<|start_header_id|>system<|end_header_id|>\n\n", "", kLlama3, kNotLlama3),
    llama3("llama-3.1",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: 26 Jul 2024\n\n",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>",
           kLlama31, kNotLlama31),
    llama3("llama-3.2",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: {date}\n\n",
           "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
           "2023\nToday Date: {date}\n\n<|eot_id|>",
           kLlama32, {}),
    mistral("mistral-instruct", "[INST] ", " [/INST]", false, kMistral, kNotMistral),
    mistral("mistral-v1", " [INST] ", " [/INST]", true, kMistralV1, kNotMistralVersion),
    mistral("mistral-v3", "[INST] ", "[/INST]", true, kMistralV3, kNotMistralVersion),
    mistral("mistral-v3-tekken", "[INST]", "[/INST]", true, kMistralTekken, kNotMistralVersion),
    {.name = "mistral-v7",
     .begin = "{bos}",
     .system = System::apart,
     .systemBefore = "[SYSTEM_PROMPT] ",
     .systemBehind = "[/SYSTEM_PROMPT]",
     .userBefore = "[INST] ",
     .userBehind = "[/INST]",
     .answerEnd = "{eos}",
     .marks = kMistralV7,
     .strangers = kNotMistralVersion},
    gemma("gemma", System::nowhere, kGemma),
    gemma("gemma-3", System::inFirstTurn, kGemma3),
    {.name = "phi-3",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|system|>\n",
     .systemBehind = "<|end|>\n",
     .userBefore = "<|user|>\n",
     .userBehind = "<|end|>\n",
     .answerBefore = "<|assistant|>\n",
     .answerEnd = "<|end|>",
     .answerBehind = "\n",
     .marks = kPhi3},
    {.name = "phi-4",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|im_start|>system<|im_sep|>",
     .systemBehind = "<|im_end|>",
     .userBefore = "<|im_start|>user<|im_sep|>",
     .userBehind = "<|im_end|>",
     .answerBefore = "<|im_start|>assistant<|im_sep|>",
     .answerEnd = "<|im_end|>",
     .marks = kPhi4},
    {.name = "phi-4-mini",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|system|>",
     .systemBehind = "<|end|>",
     .userBefore = "<|user|>",
     .userBehind = "<|end|>",
     .answerBefore = "<|assistant|>",
     .answerEnd = "<|end|>",
     .marks = kPhi4Mini},
    {.name = "olmo2",
     .begin = "{bos}",
     .system = System::apart,
     .systemBefore = "<|system|>\n",
     .systemBehind = "\n",
     .userBefore = "<|user|>\n",
     .userBehind = "\n",
     .answerBefore = "<|assistant|>\n",
     .answerEnd = "{eos}",
     .answerBehind = "\n",
     .marks = kOlmo2},
    {.name = "zephyr",
     .begin = "",
     .system = System::apart,
     .systemBefore = "<|system|>\n",
     .systemBehind = "{eos}\n",
     .userBefore = "<|user|>\n",
     .userBehind = "{eos}\n",
     .answerBefore = "<|assistant|>\n",
     .answerEnd = "{eos}",
     .answerBehind = "\n",
     .marks = kZephyr,
     .loose = "\n\n\n\n"}, // one behind each
    // A line, and a line in answer: for models that learned nothing of the kind.
    {.name = "plain", .begin = "", .userBefore = "", .userBehind = "\n", .answerEnd = "\n"},
});

} // namespace

std::span<const ChatForm> hydra::text::chatForms() { return kForms; }
