// Chat templates as Hugging Face has them: the part of Jinja that they are written in.
#pragma once

#include "runtime/text/JinjaSyntax.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text::jinja {

struct Message {
  std::string role, content;
};

/// What is around a template: values by their names, and the functions `namespace`, `range`,
/// `dict`, `raise_exception` and `strftime_now`.
struct Surroundings {
  std::vector<Message> messages;
  std::vector<std::pair<std::string, Value>> values; // none of them a list or dictionary
  /// What `strftime_now` says for a format.
  std::string (*date)(std::string_view format) = nullptr;
};

/// What the template says, as transformers renders it; nothing where it raises an exception of its
/// own. Throws Error for what this subset leaves out or Jinja refuses, for undefined values that
/// are more than asked for, and for more work than a conversation takes.
std::optional<std::string> rendered(const Syntax &syntax, const Surroundings &surroundings);

} // namespace hydra::text::jinja
