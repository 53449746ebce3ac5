// Names and scopes of texts that are models, and of those that are not yet.
#include "tools/hydra-lsp/Names.h"
#include "tools/hydra-lsp/Navigation.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>

using namespace hydra::lsp;

namespace {

/// The line, from 1, of what the word at a mark `^` behind it means; 0: nothing.
int declarationLine(std::string source) {
  const size_t mark = source.find('^');
  source.erase(mark, 1);
  const Text text(source);
  const Names names(text);
  const auto places = declarationsAt(names, mark);
  return places.empty() ? 0 : places.front().start.line + 1;
}

constexpr char kModel[] = "hydra.model @m version 1 {\n"
                          "  hydra.symbols dims(D, n = 2)\n"
                          "  hydra.param @w [D] init = ones\n"
                          "  hydra.def @f(%x, %y) dims(n) {\n"
                          "    %z = hydra.let %x * n + @w\n"
                          "    hydra.yield %z\n"
                          "  }\n"
                          "  hydra.def @g(%x) = %x + D\n"
                          "  hydra.entry @loss(%x: [B, D] f32) dims(B) {\n"
                          "    %a, %b = hydra.let @f(%x, %x, n = D), @g(%x)\n"
                          "    hydra.return loss = %b\n"
                          "  }\n"
                          "}\n";

/// The model with a mark behind one of its words.
std::string marked(const std::string &before, const std::string &word) {
  std::string source = kModel;
  size_t at = source.find(before);
  at = source.find(word, at + before.size()) + word.size();
  return source.insert(at, "^");
}

TEST(Names, FindsTheScopeOfAName) {
  EXPECT_EQ(declarationLine(marked("%z = hydra.let ", "%x")), 4);
  EXPECT_EQ(declarationLine(marked("%x * ", "n")), 4); // the parameter, not the symbol
  EXPECT_EQ(declarationLine(marked("@g(%x) = ", "%x")), 8);
  EXPECT_EQ(declarationLine(marked("%x + ", "D")), 2);
  EXPECT_EQ(declarationLine(marked("let @f(", "%x")), 9);
  EXPECT_EQ(declarationLine(marked("%x, %x, ", "n")), 4); // the definition's
  EXPECT_EQ(declarationLine(marked("n = ", "D")), 2);
  EXPECT_EQ(declarationLine(marked("return loss = ", "%b")), 10);
  EXPECT_EQ(declarationLine(marked("n + ", "@w")), 3);
  EXPECT_EQ(declarationLine(marked("return ", "loss")), 0);
}

TEST(Names, KnowsSettingsOfPresetsFromSymbols) {
  const std::string model =
      "hydra.model @m version 1 {\n"
      "  hydra.symbols dims(batch, D)\n"
      "  hydra.preset @p {batch$ = 2, D = 4} settings {batch# = 8, lr = 0.1}\n"
      "}\n";
  const auto marked = [&](char mark, char other) {
    std::string source = model;
    source.erase(source.find(other), 1);
    source[source.find(mark)] = '^';
    return source;
  };
  EXPECT_EQ(declarationLine(marked('$', '#')), 2);
  EXPECT_EQ(declarationLine(marked('#', '$')), 0);
}

TEST(Names, OutlivesHalfALine) {
  for (const std::string half :
       {"%c = ", "%c = hydra.", "%c = hydra.let linear(%a, [", "hydra.for @", "\"", "%", "((("}) {
    std::string source = marked("return loss = ", "%b");
    source.insert(source.find("    hydra.return"), "    " + half + "\n");
    EXPECT_EQ(declarationLine(source), 10) << half;
  }
}

TEST(Names, OutlivesWordsInAnyOrder) {
  // Behind the braces of another dialect no statement is open.
  const Text other("plan.kernel @k {\n  hydra.yield\n}\nplan.launch @k");
  EXPECT_EQ(Names(other).allStatements().size(), 1U);
  const char *const words[] = {"hydra.model ",
                               "hydra.symbols ",
                               "hydra.derive ",
                               "hydra.param ",
                               "hydra.def ",
                               "hydra.entry ",
                               "hydra.let ",
                               "hydra.scan ",
                               "combine",
                               "dims",
                               "@a ",
                               "%a ",
                               "{",
                               "}",
                               "(",
                               ")",
                               "[",
                               "]",
                               "=",
                               ",",
                               ":",
                               "\n",
                               "2 ",
                               "hydra.for ",
                               "a ",
                               "settings ",
                               "// ",
                               "\""};
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string source;
    for (int i = 0; i < 40; ++i)
      source += words[random() % std::size(words)];
    const Text text(source);
    const Names names(text);
    for (size_t at = 0; at <= source.size(); at += 3)
      EXPECT_LE(referencesAt(names, at, true).size(), 40U) << source;
    EXPECT_LE(outlineOf(names).size(), 40U) << source;
  }
}

TEST(Names, KnowsWhatAFieldIsOf) {
  EXPECT_EQ(declarationLine("hydra.entry @e(%s: [] f32) {\n%t = hydra.let bundle(a = %s)\n%u = "
                            "hydra.let %t.a^ + 1\n}"),
            2);
}

TEST(Names, TakesLongTexts) {
  for (const std::string piece :
       {"{ ( %a = ", "%a = hydra.let %a\n", "hydra.param @a\n", "%a, ", "@a ("}) {
    std::string source;
    for (int i = 0; i < 50000; ++i)
      source += piece;
    const Text text(source);
    const Names names(text);
    EXPECT_LE(referencesAt(names, source.find('a', source.size() / 2), true).size(), 150000U);
    EXPECT_LE(outlineOf(names).size(), 50000U);
  }
}

} // namespace
