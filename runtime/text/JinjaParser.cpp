// Statements, by recursive descent.
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/JinjaExpressions.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace hydra::text::jinja {

using support::fail;
using support::shown;

namespace {

/// Pieces one behind the other; those of a block up to the tag that ends it.
class Parser {
public:
  explicit Parser(std::string_view source) : list(pieces(source)), tag(syntax) {}

  Syntax run() {
    syntax.body = block();
    if (next < list.size())
      fail("{} ends nothing", shown(word));
    return std::move(syntax);
  }

private:
  using Kind = Statement::Kind;

  /// Up to a tag that begins no statement, whose word is then `word`, and its rest in `tag`; or up
  /// to the end.
  Block block() {
    const Deeper deeper(nesting);
    Block found;
    for (; next < list.size(); ++next) {
      word.clear();
      const Piece &piece = list[next];
      if (piece.kind == Piece::Kind::text) {
        found.push_back(add({.kind = Kind::text, .names = {piece.text}}));
        continue;
      }
      tag.begin(piece.tokens);
      if (piece.kind == Piece::Kind::print) {
        found.push_back(add({.kind = Kind::print, .value = tag.assigned()}));
        tag.finish();
        continue;
      }
      word = tag.name();
      const Statement *statement = statementOf(word);
      if (!statement)
        return found;
      found.push_back(statement);
    }
    word.clear();
    return found;
  }

  const Statement *add(Statement statement) {
    return &syntax.statements.emplace_back(std::move(statement));
  }

  /// Null for a word that ends a block or begins another part of one.
  const Statement *statementOf(const std::string &begin) {
    if (begin == "if")
      return branches();
    if (begin == "for")
      return loop();
    if (begin == "set")
      return set();
    if (begin == "macro")
      return macro();
    if (begin == "generation") { // marks what a model has said
      tag.finish();
      return add({.kind = Kind::block, .blocks = {inside("endgeneration")}});
    }
    if (begin == "break" || begin == "continue") {
      tag.finish();
      if (loops == 0)
        fail("{} stands in no loop", begin);
      return add({.kind = begin == "break" ? Kind::leaveLoop : Kind::nextInLoop});
    }
    if (begin == "else" || begin == "elif" || begin.starts_with("end"))
      return nullptr;
    fail("{} is no statement that is known", shown(begin));
  }

  /// A block behind the tag of this place, up to one of these words.
  Block insideUpTo(std::initializer_list<std::string_view> ends) {
    ++next;
    Block found = block();
    if (std::ranges::find(ends, word) == ends.end())
      fail("a block has no {}", *std::prev(ends.end()));
    return found;
  }
  Block inside(std::string_view end) {
    Block found = insideUpTo({end});
    tag.finish();
    return found;
  }

  const Statement *branches() {
    Statement made{.kind = Kind::branches, .conditions = {tag.withoutIf()}};
    tag.finish();
    for (;;) {
      made.blocks.push_back(insideUpTo({"elif", "else", "endif"}));
      const std::string end = word;
      if (end == "endif" || !made.conditions.back()) {
        if (end != "endif")
          fail("a block has no endif");
        tag.finish();
        return add(std::move(made));
      }
      made.conditions.push_back(end == "elif" ? tag.withoutIf() : nullptr);
      tag.finish();
    }
  }

  const Statement *loop() {
    Statement made{.kind = Kind::loop, .names = names()};
    tag.want("in");
    made.value = tag.withoutIf();
    if (tag.takes("if"))
      made.condition = tag.expression();
    tag.finish();
    ++loops;
    made.blocks.push_back(insideUpTo({"else", "endfor"}));
    --loops;
    tag.finish();
    if (word == "else")
      made.blocks.push_back(inside("endfor"));
    return add(std::move(made));
  }

  std::vector<std::string> names() {
    const bool bracket = tag.takes("(");
    std::vector<std::string> found = {tag.name()};
    while (tag.takes(","))
      found.push_back(tag.name());
    if (bracket)
      tag.want(")");
    return found;
  }

  const Statement *set() {
    Statement made{.kind = Kind::set, .names = names()};
    if (tag.takes(".")) {
      made.kind = Kind::setMember;
      made.names.push_back(tag.name());
    }
    if (tag.takes("=")) {
      made.value = tag.assigned();
      tag.finish();
      return add(std::move(made));
    }
    tag.finish();
    if (made.kind != Kind::set || made.names.size() > 1)
      fail("set has no =");
    made.kind = Kind::setText;
    made.blocks.push_back(inside("endset"));
    return add(std::move(made));
  }

  const Statement *macro() {
    Statement made{.kind = Kind::macro, .names = {tag.name()}};
    tag.want("(");
    while (!tag.takes(")")) {
      if (!made.parameters.empty())
        tag.want(",");
      Argument &parameter = made.parameters.emplace_back(tag.name());
      if (tag.takes("="))
        parameter.value = tag.expression();
    }
    tag.finish();
    const unsigned around = std::exchange(loops, 0);
    made.blocks.push_back(inside("endmacro"));
    loops = around;
    return add(std::move(made));
  }

  Syntax syntax;
  std::vector<Piece> list;
  ExpressionParser tag;
  size_t next = 0;
  std::string word;
  unsigned nesting = 0, loops = 0;
};

} // namespace

Syntax parse(std::string_view source) { return Parser(source).run(); }

} // namespace hydra::text::jinja
