// Statements one behind the other, and expressions by what they are made of.
#include "runtime/text/Jinja.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace hydra::text::jinja {

using support::fail;
using support::shown;

namespace {

constexpr unsigned kDeepestCall = 16; // of macros by macros

/// What raise_exception throws.
struct Raised {};

using Scope = std::map<std::string, Value, std::less<>>;

class Rendering {
public:
  explicit Rendering(const Surroundings &around) : around(around) {
    Scope &global = scopes.emplace_back();
    std::vector<Value> messages;
    messages.reserve(around.messages.size());
    for (const Message &message : around.messages)
      messages.emplace_back(
          store.dictionary({{"role", message.role}, {"content", message.content}}));
    global["messages"] = store.list(std::move(messages));
    for (const auto &[name, value] : around.values)
      global[name] = value;
    for (const std::string_view name : kFunctions)
      global[std::string(name)] = Function{name};
  }

  std::string run(const Syntax &syntax) {
    scopes.emplace_back();
    run(syntax.body);
    return std::move(out);
  }

private:
  enum class Flow { on, leaveLoop, nextInLoop };
  static constexpr size_t kOuter = 2; // scopes: the surroundings, the template
  static constexpr std::array<std::string_view, 5> kFunctions = {"namespace", "range", "dict",
                                                                 "raise_exception", "strftime_now"};

  // Statements.

  Flow run(const Block &block) {
    for (const Statement *statement : block)
      if (const Flow flow = run(*statement); flow != Flow::on)
        return flow;
    return Flow::on;
  }

  Flow run(const Statement &statement) {
    store.spend(1);
    switch (statement.kind) {
    case Statement::Kind::text:
      say(statement.names[0]);
      return Flow::on;
    case Statement::Kind::print:
      print(*statement.value);
      return Flow::on;
    case Statement::Kind::branches:
      for (size_t i = 0; i < statement.blocks.size(); ++i)
        if (!statement.conditions[i] || isTrue(valueOf(*statement.conditions[i])))
          return run(statement.blocks[i]);
      return Flow::on;
    case Statement::Kind::loop:
      return loop(statement);
    case Statement::Kind::set:
      assign(statement.names, valueOf(*statement.value));
      return Flow::on;
    case Statement::Kind::setMember:
      setMember(statement);
      return Flow::on;
    case Statement::Kind::setText:
      scopes.back()[statement.names[0]] = said(statement.blocks[0]);
      return Flow::on;
    case Statement::Kind::macro:
      scopes.back()[statement.names[0]] = Function{statement.names[0], &statement};
      return Flow::on;
    case Statement::Kind::block:
      return run(statement.blocks[0]);
    case Statement::Kind::leaveLoop:
      return Flow::leaveLoop;
    case Statement::Kind::nextInLoop:
      return Flow::nextInLoop;
    }
    return Flow::on;
  }

  void print(const Expression &expression) {
    const Value value = valueOf(expression);
    const bool nothing = is<Undefined>(value) && expression.kind == Expression::Kind::conditional;
    if (!nothing) // of an `if` without `else`
      say(textOf(value));
  }

  void say(const std::string &text) {
    store.spend(text.size());
    out += text;
  }

  /// What a block says, which goes nowhere else; what it names is its own.
  std::string said(const Block &block) {
    std::string before = std::exchange(out, "");
    scopes.emplace_back();
    run(block);
    scopes.pop_back();
    std::swap(before, out);
    return before;
  }

  void assign(const std::vector<std::string> &names, Value value) {
    if (names.size() == 1) {
      scopes.back()[names[0]] = std::move(value);
      return;
    }
    std::vector<Value> parts = itemsOf(value, store);
    if (parts.size() != names.size())
      fail("{} names are given {} values", names.size(), parts.size());
    for (size_t i = 0; i < names.size(); ++i)
      scopes.back()[names[i]] = std::move(parts[i]);
  }

  void setMember(const Statement &statement) {
    Value value = valueOf(*statement.value);
    const Value *const found = find(statement.names[0]);
    const auto *const space = found ? std::get_if<Dictionary *>(found) : nullptr;
    if (!space || !(*space)->isNamespace)
      fail("a member of {}, which is no namespace, is set", shown(statement.names[0]));
    auto &members = (*space)->members;
    store.spend(members.size());
    const auto member =
        std::ranges::find(members, statement.names[1], &std::pair<std::string, Value>::first);
    if (member == members.end())
      members.emplace_back(statement.names[1], std::move(value));
    else
      member->second = std::move(value);
  }

  Flow loop(const Statement &statement) {
    std::vector<Value> items = itemsOf(valueOf(*statement.value), store);
    if (statement.condition)
      std::erase_if(items, [&](const Value &item) {
        scopes.emplace_back();
        assign(statement.names, item);
        const bool taken = isTrue(valueOf(*statement.condition));
        scopes.pop_back();
        return !taken;
      });
    if (items.empty() && statement.blocks.size() > 1)
      return run(statement.blocks[1]);
    for (size_t i = 0; i < items.size(); ++i) {
      scopes.emplace_back();
      scopes.back()["loop"] = loopAt(items, i);
      assign(statement.names, items[i]);
      const Flow flow = run(statement.blocks[0]);
      scopes.pop_back();
      if (flow == Flow::leaveLoop)
        break;
    }
    return Flow::on;
  }

  Dictionary *loopAt(const std::vector<Value> &items, size_t i) {
    const auto index = static_cast<int64_t>(i), size = static_cast<int64_t>(items.size());
    Dictionary *const loop =
        store.dictionary({{"index", index + 1},
                          {"index0", index},
                          {"revindex", size - index},
                          {"revindex0", size - index - 1},
                          {"first", i == 0},
                          {"last", i + 1 == items.size()},
                          {"length", size},
                          {"previtem", i == 0 ? Value(Undefined()) : items[i - 1]},
                          {"nextitem", i + 1 == items.size() ? Value(Undefined()) : items[i + 1]}});
    loop->isNamespace = true; // nothing that a template goes over or prints
    return loop;
  }

  // Expressions.

  const Value *find(std::string_view name) const {
    for (size_t i = scopes.size(); i-- > 0;)
      if (i >= own || i < kOuter)
        if (const auto found = scopes[i].find(name); found != scopes[i].end())
          return &found->second;
    return nullptr;
  }

  /// None where a slice has no such part.
  Value partOf(const Expression &expression, size_t part) {
    return expression.parts[part] ? valueOf(*expression.parts[part]) : Value(None());
  }

  Value valueOf(const Expression &expression) {
    using Kind = Expression::Kind;
    store.spend(1);
    const auto part = [&](size_t i) { return valueOf(*expression.parts[i]); };
    switch (expression.kind) {
    case Kind::constant:
      return copied(expression.value);
    case Kind::name: {
      const Value *const found = find(expression.text);
      return found ? copied(*found) : Undefined();
    }
    case Kind::list: {
      std::vector<Value> items;
      items.reserve(expression.parts.size());
      for (const Expression *item : expression.parts)
        items.push_back(valueOf(*item));
      return store.list(std::move(items));
    }
    case Kind::dictionary:
      return dictionaryOf(expression);
    case Kind::attribute:
      return memberOf(part(0), expression.text);
    case Kind::item:
      return itemOf(part(0), part(1));
    case Kind::slice:
      return sliceOf(part(0), partOf(expression, 1), partOf(expression, 2), partOf(expression, 3),
                     store);
    case Kind::call:
      return call(expression);
    case Kind::filter:
      return filtered(expression.text, part(0), argumentsOf(expression), store);
    case Kind::test:
      return passes(expression.text, part(0), argumentsOf(expression), store);
    case Kind::negative:
      return arithmetic("-", int64_t{0}, part(0), store);
    case Kind::opposite:
      return !isTrue(part(0));
    case Kind::both: {
      Value first = part(0);
      return isTrue(first) ? part(1) : first;
    }
    case Kind::either: {
      Value first = part(0);
      return isTrue(first) ? first : part(1);
    }
    case Kind::arithmetic: {
      const Value left = part(0);
      return arithmetic(expression.text, left, part(1), store);
    }
    case Kind::comparison: {
      const Value left = part(0);
      return compares(expression.text, left, part(1), store);
    }
    case Kind::conditional:
      if (isTrue(part(1)))
        return part(0);
      return expression.parts[2] ? part(2) : Undefined();
    }
    return Undefined();
  }

  Value copied(const Value &value) {
    if (const auto *const text = std::get_if<std::string>(&value))
      store.spend(text->size());
    return value;
  }

  Value dictionaryOf(const Expression &expression) {
    std::vector<std::pair<std::string, Value>> members;
    for (size_t i = 0; i < expression.parts.size(); i += 2) {
      std::string key = asText(valueOf(*expression.parts[i]));
      if (std::ranges::find(members, key, &std::pair<std::string, Value>::first) != members.end())
        fail("a dictionary has {} twice", shown(key));
      store.spend(members.size());
      members.emplace_back(std::move(key), valueOf(*expression.parts[i + 1]));
    }
    return store.dictionary(std::move(members));
  }

  Value memberOf(const Value &value, const std::string &name) {
    const auto *const dictionary = std::get_if<Dictionary *>(&value);
    if (!dictionary)
      fail("something has no member {}", shown(name));
    store.spend((*dictionary)->members.size());
    const Value *const member = (*dictionary)->find(name);
    return member ? copied(*member) : Undefined();
  }

  Value itemOf(const Value &value, const Value &key) {
    if (is<Dictionary *>(value))
      return memberOf(value, asText(key));
    if (!is<List *>(value) && !is<std::string>(value))
      fail("something has no items");
    const std::vector<Value> items = itemsOf(value, store);
    const auto size = static_cast<int64_t>(items.size());
    const int64_t at = asInteger(key), place = at < 0 ? at + size : at;
    return place >= 0 && place < size ? items[static_cast<size_t>(place)] : Undefined();
  }

  Arguments argumentsOf(const Expression &expression) {
    Arguments arguments;
    for (const Argument &argument : expression.arguments)
      if (argument.name.empty())
        arguments.places.push_back(valueOf(*argument.value));
      else
        arguments.names.emplace_back(argument.name, valueOf(*argument.value));
    return arguments;
  }

  Value call(const Expression &expression) {
    const Expression &callee = *expression.parts[0];
    const Arguments arguments = argumentsOf(expression);
    if (callee.kind == Expression::Kind::attribute)
      return called(callee.text, valueOf(*callee.parts[0]), arguments, store);
    const Value value = valueOf(callee);
    const auto *const function = std::get_if<Function>(&value);
    if (!function)
      fail("something that is no function is called");
    return function->macro ? said(*function->macro, arguments) : call(function->name, arguments);
  }

  Value call(std::string_view name, const Arguments &arguments) {
    if (name == "raise_exception")
      throw Raised();
    if (name == "strftime_now") {
      arguments.expect(1, 1);
      return around.date(asText(arguments.get(0, "format", Undefined())));
    }
    if (name == "range")
      return range(arguments);
    if (!arguments.places.empty())
      fail("{} is given something without a name", name);
    Dictionary *const made = store.dictionary(arguments.names);
    made->isNamespace = name == "namespace";
    return made;
  }

  Value range(const Arguments &arguments) {
    arguments.expect(1, 2);
    const int64_t one = asInteger(arguments.get(0, "", Undefined()));
    const bool two = arguments.places.size() > 1;
    const int64_t begin = two ? one : 0, end = two ? asInteger(arguments.places[1]) : one;
    std::vector<Value> numbers;
    for (int64_t i = begin; i < end; ++i) {
      store.spend(1);
      numbers.emplace_back(i);
    }
    return store.list(std::move(numbers));
  }

  /// What a macro says, which knows the names around the template's loops.
  Value said(const Statement &macro, const Arguments &arguments) {
    if (++calls > kDeepestCall)
      fail("macros call each other more than {} deep", kDeepestCall);
    arguments.expect(0, macro.parameters.size());
    Scope given;
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
      const Argument &parameter = macro.parameters[i];
      given[parameter.name] = arguments.get(
          i, parameter.name, parameter.value ? valueOf(*parameter.value) : Undefined());
    }
    for (const auto &[name, value] : arguments.names)
      if (!given.contains(name))
        fail("a macro has no parameter {}", shown(name));
    const size_t before = std::exchange(own, scopes.size());
    scopes.push_back(std::move(given));
    std::string text = said(macro.blocks[0]);
    scopes.pop_back();
    own = before;
    --calls;
    return text;
  }

  const Surroundings &around;
  Store store;
  std::vector<Scope> scopes;
  size_t own = kOuter; // from which on they are those of the macro that is called
  std::string out;
  unsigned calls = 0;
};

} // namespace

std::optional<std::string> rendered(const Syntax &syntax, const Surroundings &surroundings) {
  try {
    return Rendering(surroundings).run(syntax);
  } catch (const Raised &) {
    return std::nullopt;
  }
}

} // namespace hydra::text::jinja
