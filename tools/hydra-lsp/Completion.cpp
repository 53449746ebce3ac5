// What can stand at a place of a model.
#include "tools/hydra-lsp/Completion.h"

#include "dialects/hydra/Hydra.h"
#include "tools/hydra-lsp/Configuration.h"
#include "tools/hydra-lsp/OperationDocs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using llvm::lsp::CompletionItem;
using llvm::lsp::CompletionItemKind;
using llvm::lsp::MarkupContent;
using llvm::lsp::MarkupKind;
using llvm::lsp::TextEdit;

namespace hydra::lsp {

namespace {

/// Words of the language that no operation has.
constexpr StringLiteral kFunctions[] = {"ceil", "floor", "round", "real",    "sqrt",
                                        "exp",  "log",   "logit", "sigmoid", "pow",
                                        "min",  "max",   "clamp", "select"};
constexpr StringLiteral kInits[] = {"zeros",        "ones",    "constant", "normal",
                                    "trunc_normal", "uniform", "shuffle"};
constexpr StringLiteral kElements[] = {"f32", "bf16", "f16", "i32"};

class Completion {
public:
  Completion(const Names &names, size_t offset)
      : names(names), text(names.source()), offset(offset) {
    begin = offset;
    while (begin > 0 && isPart(text.str()[begin - 1]))
      --begin;
    if (begin > 0 && (text.str()[begin - 1] == '%' || text.str()[begin - 1] == '@' ||
                      text.str()[begin - 1] == '"'))
      --begin;
    if (begin > 0 && begin < offset && text.str()[begin] == '"' && text.str()[begin - 1] == '@')
      --begin;
    token = names.tokenBefore(begin);
  }

  std::vector<CompletionItem> run() {
    const StringRef line = text.lineAt(offset);
    const StringRef before(line.data(), text.str().data() + offset - line.data());
    if (size_t comment = before.find("//"); comment != StringRef::npos) {
      if (before.drop_front(comment).contains(kCommentMark))
        addFlags(before);
      return std::move(items);
    }
    const StringRef written = text.str().slice(begin, offset);
    if (written.starts_with("%"))
      addValues();
    else if (written.starts_with("@"))
      addSymbols();
    else if (written.starts_with("\""))
      return {};
    else if (written.starts_with("hydra.") || beginsStatement())
      addStatements();
    else
      addWords();
    return std::move(items);
  }

private:
  static bool isPart(char c) { return isAlnum(c) || c == '_' || c == '.' || c == '$'; }

  /// At the beginning of a line, or behind the `=` of results.
  bool beginsStatement() const {
    const StringRef line = text.lineAt(begin);
    const StringRef before = StringRef(line.data(), text.str().data() + begin - line.data()).trim();
    return before.empty() || before == "{" || before == "}" ||
           (before.starts_with("%") && before.ends_with("=") && !before.contains("("));
  }

  CompletionItem &add(const Twine &label, CompletionItemKind kind, const Twine &detail = "") {
    CompletionItem item(label, kind);
    item.detail = detail.str();
    item.textEdit = TextEdit{text.rangeOf(begin, offset), item.label};
    item.filterText = item.label;
    items.push_back(std::move(item));
    return items.back();
  }

  void addOperation(const OperationDoc &doc, StringRef prefix) {
    CompletionItem &item = add(prefix + doc.name, CompletionItemKind::Function, doc.summary);
    if (!doc.description.empty())
      item.documentation = MarkupContent{MarkupKind::Markdown, doc.description};
  }

  void addStatements() {
    for (const auto &doc : operationDocs())
      addOperation(doc.second, "hydra.");
  }

  /// The line that declares a name, as far as anyone reads.
  std::string lineOf(const Name &name) const {
    constexpr size_t kMostBytes = 200;
    const StringRef line = text.lineAt(names.allTokens()[name.token].begin);
    return json::fixUTF8(line.trim().take_front(kMostBytes));
  }

  void addValues() {
    StringSet<> seen;
    for (const Name *name : names.known(names.scopeAt(begin))) {
      if (name->kind == NameKind::Value && names.allTokens()[name->token].begin < begin &&
          seen.insert(name->name).second) {
        add("%" + name->name, CompletionItemKind::Variable,
            name->isArgument ? "argument" : lineOf(*name));
      }
    }
  }

  /// `name` as it is written behind `@`.
  static std::string written(StringRef name) {
    const bool word = !name.empty() && (isAlpha(name[0]) || name[0] == '_') &&
                      llvm::all_of(name, [](char c) { return isPart(c); });
    return word ? "@" + name.str() : "@\"" + name.str() + "\"";
  }

  void addSymbols() {
    const StringRef behind = token == kNone ? "" : names.textOf(names.allTokens()[token]);
    const unsigned keyword = behind == "=" ? names.previous(token) : kNone;
    const bool group = keyword != kNone && names.textOf(names.allTokens()[keyword]) == "group";
    StringSet<> seen;
    for (const Name &name : names.allNames()) {
      const bool fits = group                    ? name.kind == NameKind::Group
                        : behind == "hydra.for"  ? name.kind == NameKind::Stack
                        : behind == "hydra.call" ? name.kind == NameKind::Definition
                        : behind == "hydra.use"
                            ? name.kind == NameKind::Parameter || name.kind == NameKind::State
                            : name.kind == NameKind::Parameter || name.kind == NameKind::State ||
                                  name.kind == NameKind::Definition;
      if (!fits || !seen.insert(name.name).second)
        continue;
      add(written(name.name),
          name.kind == NameKind::Definition ? CompletionItemKind::Function
                                            : CompletionItemKind::Field,
          lineOf(name));
    }
  }

  void addWords() {
    const unsigned statement = statementHere();
    const StringRef operation = names.operationOf(statement);
    const StringRef behind = token == kNone ? "" : names.textOf(names.allTokens()[token]);
    const unsigned keyword = behind == "=" ? names.previous(token) : kNone;
    const StringRef key = keyword == kNone ? "" : names.textOf(names.allTokens()[keyword]);
    if (token != kNone && names.isInSettings(token)) {
      addSettings(key);
      return;
    }
    if (key == "init")
      for (StringRef init : kInits)
        add(init, CompletionItemKind::Keyword, "initial values");
    if (operation == "group") {
      for (const auto &doc : operationDocs())
        if (doc.second.isOptimizer)
          addOperation(doc.second, "");
    }
    addNames();
    for (StringRef function : kFunctions)
      if (operation != "let" || !operationDoc(function))
        add(function, CompletionItemKind::Function, "function of numbers");
    if (operation == "let" || operation == "def") {
      for (const auto &doc : operationDocs())
        if (doc.second.results.size() == 1)
          addOperation(doc.second, "");
    }
    addAttributes(statement);
    if (key == "dtype" || key == "to" || behind == "]")
      for (StringRef element : kElements)
        add(element, CompletionItemKind::TypeParameter, "element type");
  }

  /// Of a preset, or the values of the one that is being given.
  void addSettings(StringRef key) {
    if (key == stringifyPresetSetting(PresetSetting::schedule)) {
      for (unsigned i = 0; i <= getMaxEnumValForRateSchedule(); ++i)
        add(stringifyRateSchedule(static_cast<RateSchedule>(i)), CompletionItemKind::EnumMember,
            "schedule of the learning rate");
    } else if (key.empty()) {
      for (unsigned i = 0; i <= getMaxEnumValForPresetSetting(); ++i)
        add(stringifyPresetSetting(static_cast<PresetSetting>(i)), CompletionItemKind::Property,
            "setting of the preset");
    }
  }

  /// Symbols that are known here, and what they can be.
  void addNames() {
    StringSet<> seen;
    for (const Name *name : names.known(names.scopeAt(begin)))
      if (name->kind >= NameKind::Dim && seen.insert(name->name).second)
        add(name->name, CompletionItemKind::Constant, nameKindText(name->kind));
    if (seen.empty())
      return;
    add(kLayerSymbol, CompletionItemKind::Constant, "number of the element of a stack");
    add(kContinuedSymbol, CompletionItemKind::Constant, "whether a program reads on");
    add(kLengthSymbol, CompletionItemKind::Constant, "tokens of a whole sequence");
  }

  unsigned statementHere() const {
    return token == kNone ? kNone : names.allTokens()[token].statement;
  }

  /// Of the operation, or of the function around the cursor.
  void addAttributes(unsigned statement) {
    StringRef operation = names.operationOf(statement);
    int depth = 0;
    for (unsigned i = token; i != kNone && names.allTokens()[i].statement == statement;
         i = names.previous(i)) {
      depth += names.isMark(i, ')') ? 1 : names.isMark(i, '(') ? -1 : 0;
      const unsigned word = names.previous(i);
      if (depth >= 0 || word == kNone)
        continue;
      if (names.allTokens()[word].kind == TokenKind::Symbol) {
        addParameters(word);
        return;
      }
      if (const StringRef function = names.operationAt(word); !function.empty())
        operation = function;
      break;
    }
    if (const OperationDoc *doc = operationDoc(operation))
      for (StringRef attribute : doc->attributes)
        add(attribute, CompletionItemKind::Property, "attribute of hydra." + operation);
  }

  /// Of the definition that is called.
  void addParameters(unsigned callee) {
    for (const Name *meant : names.meanings(callee)) {
      for (const Name &name : names.allNames()) {
        if (meant->kind == NameKind::Definition && name.statement == meant->statement &&
            name.isArgument && name.kind >= NameKind::Dim)
          add(name.name, CompletionItemKind::Property, "parameter of @" + meant->name);
      }
    }
  }

  /// In the comment that configures the server.
  void addFlags(StringRef before) {
    const StringRef flag = before.take_back(before.size() - (before.rfind(' ') + 1));
    const auto [name, value] = flag.split('=');
    begin = offset - (flag.contains('=') ? value.size() : flag.size());
    if (name == "--preset" && flag.contains('=')) {
      for (const Name &preset : names.allNames()) {
        if (preset.kind == NameKind::Preset)
          add(preset.name, CompletionItemKind::EnumMember, lineOf(preset));
      }
    }
    if (flag.contains('='))
      return;
    for (StringRef flag : {"--preset=", "--set=", "--batch=", "--seq=", "--routing="})
      add(flag, CompletionItemKind::Keyword);
  }

  const Names &names;
  const Text &text;
  size_t offset, begin; ///< of the cursor, and of the word in front of it
  unsigned token;       ///< in front of the word
  std::vector<CompletionItem> items;
};

} // namespace

std::vector<CompletionItem> completionsAt(const Names &names, size_t offset) {
  return Completion(names, offset).run();
}

} // namespace hydra::lsp
