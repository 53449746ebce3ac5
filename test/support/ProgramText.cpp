// Printing of a model tree.
#include "test/support/ProgramText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

namespace hydra::test {

std::string textOf(const Shape &shape) {
  return "[" + llvm::join(llvm::map_range(shape, [](const Dim &d) { return d.text; }), ", ") + "]";
}

int64_t elementsOf(const Shape &shape) {
  int64_t n = 1;
  for (const Dim &d : shape)
    n *= d.size;
  return n;
}

Condition operator&&(const Condition &a, const Condition &b) {
  if (a.text.empty() || b.text.empty())
    return a.text.empty() ? b : a;
  return {"(" + a.text + ") and (" + b.text + ")", a.usesLayer || b.usesLayer,
          [a, b](int64_t layer) { return a.isTrue(layer) && b.isTrue(layer); }};
}

Condition operator!(const Condition &a) {
  return {"not (" + a.text + ")", a.usesLayer, [a](int64_t layer) { return !a.isTrue(layer); }};
}

namespace {

bool isWord(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Calls `visit` with every word of a text that is not the name of a value, symbol or operation.
template <typename Visit> void forEachWord(llvm::StringRef text, Visit visit) {
  for (size_t i = 0; i < text.size();) {
    if (!isWord(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && isWord(text[end]))
      ++end;
    const char before = i ? text[i - 1] : ' ';
    if (!llvm::is_contained({'%', '@', '.', '"'}, before))
      visit(i, text.slice(i, end));
    i = end;
  }
}

/// The text with the word `layer` replaced by a number.
std::string withLayer(const std::string &text, int64_t layer) {
  std::string result;
  size_t done = 0;
  forEachWord(text, [&](size_t at, llvm::StringRef word) {
    if (word != "layer")
      return;
    result += text.substr(done, at - done) + std::to_string(layer);
    done = at + word.size();
  });
  return result + text.substr(done);
}

std::string values(const std::vector<std::string> &names) {
  return llvm::join(llvm::map_range(names, [](const std::string &n) { return "%" + n; }), ", ");
}

std::string variableLine(const Variable &v, const std::string &name, const std::string &init,
                         const std::string &condition) {
  return std::string("hydra.") + (v.isState ? "state " : "param ") + name + " " + textOf(v.shape) +
         (v.dtype == "f32" ? "" : " " + v.dtype) + " init = " + init +
         (v.group.empty() ? "" : " group = @" + v.group) +
         (condition.empty() ? "" : " when " + condition) + (v.frozen ? " frozen" : "");
}

/// What is common to both forms: everything but variables, definitions and code.
class Printer {
public:
  explicit Printer(const ModelText &model) : model(model) {}

protected:
  void line(const std::string &text) { body += std::string(indent, ' ') + text + "\n"; }

  void simple(const Statement &s, const std::vector<std::string> &results,
              const std::vector<std::string> &operands) {
    std::string text = results.empty() ? "" : values(results) + " = ";
    text += "hydra." + s.op;
    if (!operands.empty())
      text += " " + values(operands);
    line(text + (s.attributes.empty() ? "" : " " + s.attributes));
  }

  void openEntry() {
    std::string arguments;
    for (const Argument &a : model.arguments)
      arguments +=
          (arguments.empty() ? "%" : ", %") + a.name + ": " + textOf(a.shape) + " " + a.dtype;
    line("hydra.entry @loss(" + arguments + ") dims(B, S) {");
    indent += 2;
  }

  template <typename NameOf> void closeEntry(NameOf nameOf) {
    std::string text = "hydra.return ";
    for (const auto &[name, value] : model.outputs)
      text += (&name == &model.outputs.front().first ? "" : ", ") + name + " = %" + nameOf(value);
    for (const auto &[name, value] : model.updates)
      text += (&name == &model.updates.front().first ? " updates(@" : ", @") + name + " = %" +
              nameOf(value);
    line(text + (model.updates.empty() ? "" : ")"));
    indent -= 2;
    line("}");
  }

  /// Puts the declarations of all symbols in front that the body needs.
  BoundText finish(int64_t batch, int64_t seq) {
    llvm::StringSet<> used;
    auto use = [&](const std::string &text) {
      forEachWord(text, [&](size_t, llvm::StringRef word) { used.insert(word); });
    };
    use(body);
    for (const std::string &group : model.groups)
      use(group);
    for (auto it = model.derived.rbegin(); it != model.derived.rend(); ++it)
      if (used.contains(it->first))
        use(it->second);

    BoundText result;
    result.binding.batch = batch;
    result.binding.seq = seq;
    std::string lists, preset, kind;
    for (const Symbol &s : model.symbols) {
      if (!used.contains(s.name))
        continue;
      const std::string own = s.given == Given::Default ? s.value : s.other;
      // Symbols of one kind share a list.
      lists += (s.kind == kind ? ", " : (kind.empty() ? " " : ") ") + s.kind + "(") + s.name;
      kind = s.kind;
      if (!own.empty())
        lists += " = " + own;
      lists += s.options;
      const std::string inPreset = s.given == Given::Preset    ? s.value
                                   : s.given == Given::Setting ? s.other
                                                               : "";
      if (!inPreset.empty())
        preset += (preset.empty() ? "" : ", ") + s.name + " = " + inPreset;
      if (s.given == Given::Setting)
        result.binding.settings.push_back(s.name + "=" + s.value);
    }
    result.text = "hydra.model @random version 1 {\n";
    if (!lists.empty())
      result.text += "  hydra.symbols" + lists + ")\n";
    for (const auto &[name, expression] : model.derived)
      if (used.contains(name))
        result.text += "  hydra.derive " + name + " = " + expression + "\n";
    if (!preset.empty()) {
      result.text += "  hydra.preset @chosen {" + preset + "}\n";
      result.binding.preset = "chosen";
    }
    for (const std::string &group : model.groups)
      result.text += "  " + group + "\n";
    result.text += body + "}\n";
    return result;
  }

  const ModelText &model;
  std::string body;
  unsigned indent = 2;
};

class TemplatePrinter : Printer {
public:
  using Printer::Printer;

  BoundText print(int64_t batch, int64_t seq) {
    for (const Variable &v : model.variables)
      line(variableLine(v, "@" + v.name, v.init, v.condition.text));
    for (const Stack &stack : model.stacks) {
      line("hydra.stack @" + stack.name + "[" + stack.count.text + "] {");
      for (const Variable &v : stack.variables)
        line("  " + variableLine(v, "@" + v.name, v.init, v.condition.text));
      line("}");
    }
    for (const Definition &d : model.definitions) {
      line("hydra.def @" + d.name + "(" + values(d.arguments) + ") {");
      block(d.body);
      line("}");
    }
    openEntry();
    for (const Statement &s : model.code)
      statement(s);
    closeEntry([](const std::string &name) { return name; });
    return finish(batch, seq);
  }

private:
  void block(const Code &code) {
    indent += 2;
    for (const Statement &s : code)
      statement(s);
    indent -= 2;
  }

  void statement(const Statement &s) {
    const std::string results = s.results.empty() ? "" : values(s.results) + " = ";
    if (s.op == "use") {
      line(results + "hydra.use @" + s.symbol);
    } else if (s.op == "call") {
      line(results + "hydra.call @" + s.symbol + "(" + values(s.operands) + ")");
    } else if (s.op == "for") {
      std::string carried;
      for (size_t i = 0; i < s.operands.size(); ++i)
        carried += (i ? ", %" : "%") + s.arguments[i] + " = %" + s.operands[i];
      line(results + "hydra.for @" + s.symbol + " carry(" + carried + ") {");
      block(s.body);
      line("}");
    } else if (s.op == "when") {
      line(results + "hydra.when " + s.condition.text + " {");
      block(s.body);
      line("} else {");
      block(s.otherwise);
      line("}");
    } else if (!arithmetic(s)) {
      simple(s, s.results, s.operands);
    }
  }

  /// Every third operation as arithmetic, some of these on values that come from a bundle.
  bool arithmetic(const Statement &s) {
    static const std::map<std::string, std::string> infix = {
        {"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}};
    const bool prefix = llvm::is_contained({"neg", "tanh", "sigmoid", "silu"}, s.op);
    if ((!prefix && !infix.count(s.op)) || !s.attributes.empty() || ++operations % 3 != 0)
      return false;
    std::vector<std::string> operands;
    for (const std::string &name : s.operands)
      operands.push_back("%" + name);
    if (operations % 2 == 0) {
      const std::string bundle = s.results.front() + "_in", field = s.results.front() + "_first";
      line("%" + bundle + " = hydra.bundle first = " + operands.front() +
           ", last = " + operands.back());
      line("%" + field + " = hydra.field %" + bundle + " name = \"first\"");
      operands = {"%" + field, "%" + bundle + ".last"};
    }
    line("%" + s.results.front() + " = hydra.let " +
         (prefix ? s.op + "(" + operands.front() + ")"
                 : operands.front() + infix.at(s.op) + operands.back()));
    return true;
  }

  unsigned operations = 0;
};

class FlatPrinter : Printer {
public:
  using Printer::Printer;

  BoundText print(int64_t batch, int64_t seq) {
    for (const Variable &v : model.variables)
      if (v.condition.isTrue(0))
        line(variableLine(v, "@" + v.name, v.init, ""));
    for (const Stack &stack : model.stacks)
      for (int64_t layer = 0; layer < stack.count.size; ++layer)
        for (const Variable &v : stack.variables)
          if (v.condition.isTrue(layer))
            line(variableLine(v, "@" + elementName(stack, layer, v.name), withLayer(v.init, layer),
                              ""));
    openEntry();
    Names names;
    for (const Argument &a : model.arguments)
      names[a.name] = a.name;
    block(model.code, names, nullptr, 0);
    closeEntry([&](const std::string &name) { return names.at(name); });
    return finish(batch, seq);
  }

private:
  using Names = std::map<std::string, std::string>;

  static std::string elementName(const Stack &stack, int64_t layer, const std::string &name) {
    return "\"" + stack.name + "." + std::to_string(layer) + "." + name + "\"";
  }

  static std::vector<std::string> look(const std::vector<std::string> &values, const Names &names) {
    std::vector<std::string> result;
    for (const std::string &value : values)
      result.push_back(names.at(value));
    return result;
  }

  std::string fresh() { return "f" + std::to_string(count++); }

  /// Writes a block out; returns what it yields.
  std::vector<std::string> block(const Code &code, Names &names, const Stack *stack,
                                 int64_t layer) {
    std::vector<std::string> yielded;
    for (const Statement &s : code) {
      if (s.op == "yield")
        return look(s.operands, names);
      std::vector<std::string> results;
      if (s.op == "for")
        results = loop(s, names);
      else if (s.op == "when")
        results = block(s.condition.isTrue(layer) ? s.body : s.otherwise, names, stack, layer);
      else if (s.op == "call")
        results = call(s, names);
      else
        results = operation(s, names, stack, layer);
      for (size_t i = 0; i < results.size(); ++i)
        names[s.results[i]] = results[i];
    }
    return {};
  }

  std::vector<std::string> loop(const Statement &s, const Names &outer) {
    const Stack &stack = *llvm::find_if(model.stacks, [&](auto &x) { return x.name == s.symbol; });
    std::vector<std::string> carried = look(s.operands, outer);
    for (int64_t layer = 0; layer < stack.count.size; ++layer) {
      Names names = outer;
      for (size_t i = 0; i < carried.size(); ++i)
        names[s.arguments[i]] = carried[i];
      carried = block(s.body, names, &stack, layer);
    }
    return carried;
  }

  std::vector<std::string> call(const Statement &s, const Names &outer) {
    const Definition &d =
        *llvm::find_if(model.definitions, [&](auto &x) { return x.name == s.symbol; });
    Names names;
    for (size_t i = 0; i < d.arguments.size(); ++i)
      names[d.arguments[i]] = outer.at(s.operands[i]);
    return block(d.body, names, nullptr, 0);
  }

  std::vector<std::string> operation(const Statement &s, const Names &names, const Stack *stack,
                                     int64_t layer) {
    std::vector<std::string> results;
    for (size_t i = 0; i < s.results.size(); ++i)
      results.push_back(fresh());
    if (s.op == "use") {
      const bool own = stack && llvm::any_of(stack->variables,
                                             [&](const Variable &v) { return v.name == s.symbol; });
      line("%" + results[0] + " = hydra.use @" +
           (own ? elementName(*stack, layer, s.symbol) : s.symbol));
      return results;
    }
    std::vector<std::string> operands = look(s.operands, names);
    for (size_t i = 0; i < s.repeated.size(); ++i)
      if (s.repeated[i]) {
        const std::string wide = fresh();
        line("%" + wide + " = hydra.broadcast %" + operands[i] + " shape = " + textOf(s.broadcast));
        operands[i] = wide;
      }
    simple(s, results, operands);
    return results;
  }

  unsigned count = 0;
};

} // namespace

BoundText printTemplate(const ModelText &model, int64_t batch, int64_t seq) {
  return TemplatePrinter(model).print(batch, seq);
}

BoundText printFlat(const ModelText &model, int64_t batch, int64_t seq) {
  return FlatPrinter(model).print(batch, seq);
}

} // namespace hydra::test
