// Diagnostics for users: one line each, where it happened first.
#include "compiler/driver/Diagnostics.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace mlir;

namespace hydra {

/// Keeps the ends of a text that is longer than `most` bytes.
static std::string abridged(StringRef text, size_t most) {
  if (text.size() <= most)
    return text.str();
  constexpr StringLiteral gap = "...";
  const size_t tail = most / 4;
  auto insideCharacter = [&](size_t i) { return (text[i] & 0xc0) == 0x80; }; // of UTF-8
  size_t head = most - tail - gap.size(), rest = text.size() - tail;
  while (head > 0 && insideCharacter(head))
    --head;
  while (rest < text.size() && insideCharacter(rest))
    ++rest;
  return (text.take_front(head) + gap + text.drop_front(rest)).str();
}

std::string asLine(StringRef text) {
  constexpr size_t kLongestWord = 80, kLongestPath = 4096, kLongestLine = 1000;
  std::string line, clean = text.str();
  for (char &c : clean)
    if (c == '\n')
      c = ' ';
    else if (llvm::isASCII(c) && !llvm::isPrint(c))
      c = '?';
  size_t paths = 0;
  SmallVector<StringRef> words;
  StringRef(clean).split(words, ' ');
  for (StringRef word : words) {
    const bool path = word.contains('/');
    const std::string shown = abridged(word, path ? kLongestPath : kLongestWord);
    line += (line.empty() ? "" : " ") + shown;
    paths += path ? shown.size() : 0;
  }
  return abridged(line, kLongestLine + paths);
}

static std::optional<FileLineColLoc> placeOf(Location loc) {
  std::optional<FileLineColLoc> place;
  loc->walk([&](Location l) {
    if (auto file = dyn_cast<FileLineColLoc>(l))
      place = file;
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

LineDiagnostics::LineDiagnostics(MLIRContext *context, bool silent)
    : handler(context, [this, silent](Diagnostic &diagnostic) {
        bool error = diagnostic.getSeverity() == DiagnosticSeverity::Error;
        if ((error && errorCount++ > 0) || silent ||
            diagnostic.getSeverity() == DiagnosticSeverity::Note ||
            diagnostic.getSeverity() == DiagnosticSeverity::Remark)
          return success();
        if (auto place = placeOf(diagnostic.getLocation())) {
          llvm::errs() << asLine(place->getFilename().getValue()) << ':';
          if (place->getLine() > 0) // 0: the whole file is meant
            llvm::errs() << place->getLine() << ':' << place->getColumn() << ':';
          llvm::errs() << ' ';
        }
        llvm::errs() << (error ? "error: " : "warning: ") << asLine(diagnostic.str()) << '\n';
        return success();
      }) {}

} // namespace hydra
