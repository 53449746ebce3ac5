// What a template of Jinja is made of, and its parser.
#pragma once

#include "runtime/text/JinjaValue.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text::jinja {

struct Expression;

struct Argument {
  std::string name = {}; // empty: by its place
  const Expression *value = nullptr;
};

struct Expression {
  enum class Kind {
    constant,    // value
    name,        // text
    list,        // parts; of a tuple too
    dictionary,  // parts: key, value, ...
    attribute,   // parts[0].text
    item,        // parts[0][parts[1]]
    slice,       // parts[0][parts[1] : parts[2] : parts[3]], null where there is none
    call,        // parts[0](arguments)
    filter,      // parts[0] | text(arguments)
    test,        // parts[0] is text(arguments)
    negative,    // -parts[0]
    opposite,    // not parts[0]
    both,        // parts[0] and parts[1]
    either,      // parts[0] or parts[1]
    arithmetic,  // parts[0] text parts[1]
    comparison,  // parts[0] text parts[1], of which `in` and `not in` are two
    conditional, // parts[0] if parts[1] else parts[2], which may be null
  };

  Kind kind = Kind::constant;
  std::string text = {};
  Value value = {};
  std::vector<const Expression *> parts = {};
  std::vector<Argument> arguments = {};
};

struct Statement;
using Block = std::vector<const Statement *>;

struct Statement {
  enum class Kind {
    text,       // names[0]
    print,      // value
    branches,   // each value with a block; without one: always
    loop,       // over `value` as `names`, where `condition`; else blocks[1]
    set,        // names = value
    setMember,  // names[0].names[1] = value
    setText,    // names[0] = what blocks[0] says
    macro,      // names[0], its parameters, blocks[0]
    block,      // blocks[0]
    leaveLoop,  // break
    nextInLoop, // continue
  };

  Kind kind = Kind::text;
  std::vector<std::string> names = {};
  const Expression *value = nullptr, *condition = nullptr;
  std::vector<const Expression *> conditions = {}; // of branches; null: always
  std::vector<Block> blocks = {};
  std::vector<Argument> parameters = {}; // with what they are where none is given, or null
};

/// A template. Everything in it lives as long as it does.
struct Syntax {
  Block body;
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
};

/// Throws Error for what is no template, and for what this subset leaves out.
Syntax parse(std::string_view source);

} // namespace hydra::text::jinja
