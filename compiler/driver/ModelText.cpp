// The text of a model, before anything parses it.
#include "compiler/driver/ModelText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace hydra {

std::unique_ptr<MemoryBuffer> readModelText(const std::string &path, std::string &problem) {
  sys::fs::file_status status;
  if (path != "-" && !sys::fs::status(path, status) &&
      status.type() != sys::fs::file_type::regular_file &&
      status.type() != sys::fs::file_type::directory_file) {
    problem = "it is no regular file";
    return nullptr;
  }
  // The standard input can be read once, a model more often: with fewer passes, or less memory.
  auto read = [&]() -> ErrorOr<std::unique_ptr<MemoryBuffer>> {
    if (path != "-")
      return MemoryBuffer::getFile(path, /*IsText=*/true);
    static const ErrorOr<std::unique_ptr<MemoryBuffer>> input = MemoryBuffer::getSTDIN();
    if (!input)
      return input.getError();
    return MemoryBuffer::getMemBufferCopy((*input)->getBuffer(), path);
  };
  auto text = read();
  if (!text) {
    problem = text.getError().message();
    return nullptr;
  }
  if ((*text)->getBuffer().starts_with("ML\xefR")) { // made to be trusted
    problem = "it is MLIR bytecode; expected text";
    return nullptr;
  }
  return std::move(*text);
}

namespace {

/// Walks over a text as MLIR's lexer would and keeps the brackets that are open.
class NestingCheck {
public:
  explicit NestingCheck(StringRef text) : text(text) {}

  std::optional<TextPlace> run() {
    while (at < text.size() && deepest <= kMostNesting) {
      const char c = text[at];
      if (text.substr(at).starts_with("//"))
        at = std::min(text.find('\n', at), text.size());
      else if (text.substr(at).starts_with("->"))
        at += 2;
      else if (c == '"')
        skipString();
      else if (isWord(c) || c == '#' || c == '!')
        readWord();
      else
        readMark(c);
    }
    if (deepest <= kMostNesting)
      return std::nullopt;
    StringRef before = text.take_front(at - 1);
    return TextPlace{static_cast<unsigned>(before.count('\n')) + 1,
                     static_cast<unsigned>(before.size() - (before.rfind('\n') + 1)) + 1};
  }

private:
  static bool isWord(char c) { return isAlnum(c) || c == '_' || c == '.' || c == '$'; }

  void skipString() {
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      at += text[at] == '\\';
    ++at;
    minuses = 0;
  }

  void readWord() {
    const size_t mark = isWord(text[at]) ? 0 : 1;
    StringRef word = text.substr(at, mark + text.substr(at + mark).take_while(isWord).size());
    at += word.size();
    minuses = 0;
    if (text.substr(at).starts_with("<") && opensType(word)) {
      open('<');
      return;
    }
    if (mark == 0 || word == name)
      return;
    // At the outermost level `#name = …` gives a name, up to the next one; elsewhere it is meant.
    if (brackets.empty() && text.substr(at).ltrim().starts_with("=")) {
      name = word;
      names[name] = 0;
    } else if (auto meant = names.find(word); meant != names.end()) {
      note(meant->second);
    }
  }

  /// Whether `<` behind a word opens a bracket; behind others it compares.
  static bool opensType(StringRef word) {
    return !isWord(word[0]) ||
           any_of(ArrayRef<StringRef>{"tensor", "vector", "memref", "tuple", "complex", "dense",
                                      "sparse", "array", "affine_map", "affine_set", "strided",
                                      "opaque", "fused", "dense_resource"},
                  [&](StringRef type) { return word.ends_with(type); });
  }

  void readMark(char c) {
    ++at;
    if (c == '-')
      return note(++minuses); // each is read by a call too
    if (!isSpace(c))
      minuses = 0;
    if (c == '(' || c == '[' || c == '{') {
      --at;
      open(c);
    } else if (c == ')' || c == ']' || c == '}') {
      while (!brackets.empty() && brackets.back() == '<') // it compared after all
        brackets.pop_back();
      if (!brackets.empty())
        brackets.pop_back();
    } else if (c == '>' && !brackets.empty() && brackets.back() == '<') {
      brackets.pop_back();
    }
  }

  void open(char bracket) {
    ++at;
    brackets.push_back(bracket);
    note(0);
  }

  /// So many levels are here, inside of the open brackets.
  void note(unsigned levels) {
    levels += brackets.size();
    deepest = std::max(deepest, levels);
    if (!name.empty())
      names[name] = std::max(names[name], levels);
  }

  StringRef text;
  size_t at = 0;
  std::string brackets;
  unsigned minuses = 0, deepest = 0;
  StringRef name; ///< that is being given
  StringMap<unsigned> names;
};

} // namespace

std::optional<TextPlace> findDeepNesting(StringRef text) { return NestingCheck(text).run(); }

} // namespace hydra
