// A function for each precedence, the loosest first.
#include "runtime/text/JinjaExpressions.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>

namespace hydra::text::jinja {

using support::fail;
using support::shown;
using Kind = Expression::Kind;

Deeper::Deeper(unsigned &depth) : depth(depth) {
  if (++depth > kDeepest)
    fail("it nests more than {} deep", kDeepest);
}

void ExpressionParser::begin(const std::vector<Token> &words) {
  tokens = &words;
  at = 0;
}

void ExpressionParser::finish() const {
  if (now().kind != Token::Kind::end)
    fail("a tag goes on with {}", shown(now().text));
}

bool ExpressionParser::sees(std::string_view word) const {
  return (now().kind == Token::Kind::sign || now().kind == Token::Kind::name) && now().text == word;
}

bool ExpressionParser::takes(std::string_view word) {
  const bool here = sees(word);
  at += here ? 1 : 0;
  return here;
}

void ExpressionParser::want(std::string_view word) {
  if (!takes(word))
    fail("a tag has {} where {} is expected", shown(now().text), word);
}

std::string ExpressionParser::name() {
  if (now().kind != Token::Kind::name)
    fail("a tag has {} where a name is expected", shown(now().text));
  return (*tokens)[at++].text;
}

const Expression *ExpressionParser::expression() {
  const Deeper deeper(nesting);
  const Expression *value = either();
  while (takes("if")) {
    const Expression *condition = either();
    value = make({.kind = Kind::conditional,
                  .parts = {value, condition, takes("else") ? expression() : nullptr}});
  }
  return value;
}

const Expression *ExpressionParser::make(Expression expression) {
  unsigned depth = 0;
  const auto look = [&](const Expression *part) {
    if (part)
      depth = std::max(depth, depths.at(part));
  };
  std::ranges::for_each(expression.parts, look);
  for (const Argument &argument : expression.arguments)
    look(argument.value);
  if (depth >= kDeepest)
    fail("an expression nests more than {} deep", kDeepest);
  const Expression *made = &syntax.expressions.emplace_back(std::move(expression));
  depths[made] = depth + 1;
  return made;
}

const Expression *ExpressionParser::tuple(const Expression *first) {
  if (!sees(","))
    return first;
  Expression list{.kind = Kind::list, .parts = {first}};
  while (takes(",") && now().kind != Token::Kind::end && !sees(")"))
    list.parts.push_back(expression());
  return make(std::move(list));
}

const Expression *ExpressionParser::either() {
  const Expression *value = both();
  while (takes("or"))
    value = make({.kind = Kind::either, .parts = {value, both()}});
  return value;
}

const Expression *ExpressionParser::both() {
  const Expression *value = opposite();
  while (takes("and"))
    value = make({.kind = Kind::both, .parts = {value, opposite()}});
  return value;
}

const Expression *ExpressionParser::opposite() {
  const Deeper deeper(nesting);
  return takes("not") ? make({.kind = Kind::opposite, .parts = {opposite()}}) : comparison();
}

std::string ExpressionParser::sign(std::initializer_list<std::string_view> signs) {
  for (const std::string_view sign : signs)
    if (takes(sign))
      return std::string(sign);
  return "";
}

std::string ExpressionParser::comparisonSign() {
  if (sees("not") && (*tokens)[at + 1].kind == Token::Kind::name &&
      (*tokens)[at + 1].text == "in") {
    at += 2;
    return "not in";
  }
  return sign({"==", "!=", "<=", ">=", "<", ">", "in"});
}

const Expression *ExpressionParser::comparison() {
  const Expression *value = sum();
  const std::string first = comparisonSign();
  if (first.empty())
    return value;
  const Expression *right = sum();
  value = make({.kind = Kind::comparison, .text = first, .parts = {value, right}});
  for (std::string next; !(next = comparisonSign()).empty();) { // a < b < c
    const Expression *last = sum();
    const Expression *further =
        make({.kind = Kind::comparison, .text = next, .parts = {right, last}});
    value = make({.kind = Kind::both, .parts = {value, further}});
    right = last;
  }
  return value;
}

const Expression *ExpressionParser::sum() {
  const Expression *value = joined();
  for (std::string next; !(next = sign({"+", "-"})).empty();)
    value = make({.kind = Kind::arithmetic, .text = next, .parts = {value, joined()}});
  return value;
}

const Expression *ExpressionParser::joined() {
  const Expression *value = product();
  while (takes("~"))
    value = make({.kind = Kind::arithmetic, .text = "~", .parts = {value, product()}});
  return value;
}

const Expression *ExpressionParser::product() {
  const Expression *value = signedValue(/*filters=*/true);
  for (std::string next; !(next = sign({"**", "*", "//", "/", "%"})).empty();)
    value = make({.kind = Kind::arithmetic, .text = next, .parts = {value, signedValue(true)}});
  return value;
}

const Expression *ExpressionParser::signedValue(bool filters) {
  const Deeper deeper(nesting);
  const Expression *value = takes("-")
                                ? make({.kind = Kind::negative, .parts = {signedValue(false)}})
                                : behind(primary());
  return filters ? filtered(value) : value;
}

const Expression *ExpressionParser::filtered(const Expression *value) {
  for (;;)
    if (takes("|")) {
      Expression filter{.kind = Kind::filter, .text = name(), .parts = {value}};
      if (takes("("))
        filter.arguments = arguments();
      value = make(std::move(filter));
    } else if (takes("is")) {
      value = test(value);
    } else {
      return value;
    }
}

const Expression *ExpressionParser::test(const Expression *value) {
  const bool opposite = takes("not");
  Expression test{.kind = Kind::test, .text = name(), .parts = {value}};
  const Token &next = now();
  if (takes("("))
    test.arguments = arguments();
  else if (next.kind == Token::Kind::text || next.kind == Token::Kind::integer || sees("[") ||
           sees("{") ||
           (next.kind == Token::Kind::name && !sees("else") && !sees("or") && !sees("and") &&
            !sees("is") && !sees("if") && !sees("not") && !sees("in") && !sees("recursive")))
    test.arguments.push_back({.value = behind(primary())});
  const Expression *result = make(std::move(test));
  return opposite ? make({.kind = Kind::opposite, .parts = {result}}) : result;
}

std::vector<Argument> ExpressionParser::arguments() {
  std::vector<Argument> list;
  while (!takes(")")) {
    if (!list.empty()) {
      want(",");
      if (takes(")"))
        break;
    }
    Argument &argument = list.emplace_back();
    const bool named = now().kind == Token::Kind::name &&
                       (*tokens)[at + 1].kind == Token::Kind::sign && (*tokens)[at + 1].text == "=";
    if (named) {
      argument.name = name();
      want("=");
    } else if (list.size() > 1 && !list[list.size() - 2].name.empty()) {
      fail("an argument without a name stands behind one with a name");
    }
    argument.value = expression();
  }
  return list;
}

const Expression *ExpressionParser::behind(const Expression *value) {
  for (;;)
    if (takes(".")) {
      value = make({.kind = Kind::attribute, .text = name(), .parts = {value}});
    } else if (takes("[")) {
      value = subscript(value);
    } else if (takes("(")) {
      Expression call{.kind = Kind::call, .parts = {value}};
      call.arguments = arguments();
      value = make(std::move(call));
    } else {
      return value;
    }
}

const Expression *ExpressionParser::subscript(const Expression *value) {
  Expression slice{.kind = Kind::slice, .parts = {value, nullptr, nullptr, nullptr}};
  size_t part = 1;
  while (!sees("]"))
    if (takes(":")) {
      if (++part > 3)
        fail("a slice has more than three parts");
    } else if (slice.parts[part]) {
      fail("a slice has {} behind a part of it", shown(now().text));
    } else {
      slice.parts[part] = expression();
    }
  want("]");
  if (part > 1)
    return make(std::move(slice));
  if (!slice.parts[1])
    fail("there is nothing between [ and ]");
  return make({.kind = Kind::item, .parts = {value, slice.parts[1]}});
}

const Expression *ExpressionParser::primary() {
  const Token &token = now();
  if (token.kind == Token::Kind::text) {
    std::string said;
    while (now().kind == Token::Kind::text) // one behind the other are one
      said += (*tokens)[at++].text;
    return make({.value = std::move(said)});
  }
  if (token.kind == Token::Kind::integer) {
    ++at;
    return make({.value = token.number});
  }
  if (token.kind == Token::Kind::name)
    return named(name());
  if (takes("(")) {
    if (takes(")"))
      return make({.kind = Kind::list});
    const Expression *value = assigned();
    want(")");
    return value;
  }
  if (takes("["))
    return list();
  want("{");
  return dictionary();
}

const Expression *ExpressionParser::named(std::string word) {
  if (word == "true" || word == "True")
    return make({.value = true});
  if (word == "false" || word == "False")
    return make({.value = false});
  if (word == "none" || word == "None")
    return make({.value = None()});
  return make({.kind = Kind::name, .text = std::move(word)});
}

const Expression *ExpressionParser::list() {
  Expression list{.kind = Kind::list};
  while (!takes("]")) {
    if (!list.parts.empty()) {
      want(",");
      if (takes("]"))
        break;
    }
    list.parts.push_back(expression());
  }
  return make(std::move(list));
}

const Expression *ExpressionParser::dictionary() {
  Expression pairs{.kind = Kind::dictionary};
  while (!takes("}")) {
    if (!pairs.parts.empty()) {
      want(",");
      if (takes("}"))
        break;
    }
    pairs.parts.push_back(expression());
    want(":");
    pairs.parts.push_back(expression());
  }
  return make(std::move(pairs));
}

} // namespace hydra::text::jinja
