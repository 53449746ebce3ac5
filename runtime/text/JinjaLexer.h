// Templates of Jinja as text and tags, and the words in these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text::jinja {

struct Token {
  enum class Kind { name, text, integer, sign, end };

  Kind kind = Kind::end;
  std::string text = {}; // of a text what it says
  int64_t number = 0;
};

/// What stands outside of tags, or a tag: `{{ prints }}`, `{% says %}`.
struct Piece {
  enum class Kind { text, print, statement };

  Kind kind = Kind::text;
  std::string text = {};
  std::vector<Token> tokens = {}; // of a tag, with one of the kind `end` behind them
};

/// The pieces of valid UTF-8, with `trim_blocks` and `lstrip_blocks`, as transformers reads it;
/// comments are left out. Throws Error for a tag without an end, and what is no token.
std::vector<Piece> pieces(std::string_view source);

} // namespace hydra::text::jinja
