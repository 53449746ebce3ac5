// What the dialect says of its operations: read from the document that mlir-tblgen makes of them.
#include "tools/hydra-lsp/OperationDocs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hydra::lsp {

namespace {

constexpr char kDocument[] =
#include "tools/hydra-lsp/OperationDocs.inc"
    ;

/// `<code>name</code>` and "| `name` |" of a table's lines.
std::string nameInRow(StringRef line) {
  if (line.consume_front("<tr><td><code>"))
    return line.split("</code>").first.str();
  if (line.consume_front("| `"))
    return line.split('`').first.str();
  return "";
}

/// Without the lines in front of the first, and behind the last, that say something.
std::string trimmed(StringRef text) { return text.trim('\n').rtrim().str(); }

void readSection(StringRef section, StringMap<OperationDoc> &docs) {
  OperationDoc doc;
  // "`hydra.linear` (::hydra::LinearOp)"
  doc.name = section.split("hydra.").second.split('`').first.str();
  section = section.split('\n').second.ltrim('\n');
  if (section.consume_front("_")) {
    StringRef summary;
    std::tie(summary, section) = section.split("_\n");
    doc.summary = summary.str();
    if (!doc.summary.empty()) // the document begins it like a sentence
      doc.summary[0] = toLower(doc.summary[0]);
  }
  StringRef description = section;
  for (StringRef end : {"\nSyntax:\n", "\nTraits:", "\nInterfaces:", "\nEffects:", "\n#### "})
    description = description.take_front(description.find(end));
  doc.description = trimmed(description);
  std::vector<std::string> *list = nullptr;
  SmallVector<StringRef> lines;
  section.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.starts_with("#### ")) {
      list = line.contains("Attributes") ? &doc.attributes
             : line.contains("Results")  ? &doc.results
                                         : nullptr;
    } else if (line.starts_with("Interfaces:")) {
      doc.isOptimizer = line.contains("`OptimizerOpInterface`");
    } else if (std::string name = nameInRow(line); list && !name.empty()) {
      list->push_back(std::move(name));
    }
  }
  if (!doc.name.empty())
    docs[doc.name] = std::move(doc);
}

} // namespace

const StringMap<OperationDoc> &operationDocs() {
  static const StringMap<OperationDoc> docs = [] {
    StringMap<OperationDoc> all;
    SmallVector<StringRef> sections;
    StringRef(kDocument).split(sections, "\n### `");
    for (StringRef section : ArrayRef(sections).drop_front())
      readSection(section, all);
    return all;
  }();
  return docs;
}

const OperationDoc *operationDoc(StringRef name) {
  auto found = operationDocs().find(name);
  return found == operationDocs().end() ? nullptr : &found->second;
}

StringRef operatorName(StringRef mark) {
  return StringSwitch<StringRef>(mark)
      .Case("+", "add")
      .Case("-", "sub")
      .Case("*", "mul")
      .Case("/", "div")
      .Cases({"<", ">", "="}, "compare")
      .Default("");
}

} // namespace hydra::lsp
