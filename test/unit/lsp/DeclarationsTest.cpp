// Declarations of a model's text, and what is left of it without some of them.
#include "tools/hydra-lsp/Declarations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace hydra::lsp;

namespace {

constexpr char kModel[] = "hydra.model @m version 1 {\n"     // 1
                          "  hydra.symbols dims(D, n = 2)\n" // 2
                          "  hydra.derive h = D / n\n"       // 3
                          "  hydra.stack @s[n] {\n"          // 4
                          "    hydra.param @w [D]\n"         // 5
                          "    hydra.param @v [h]\n"         // 6
                          "  }\n"
                          "  hydra.def @f(%x) {\n" // 8
                          "    %y = hydra.for @s carry(%c = %x) {\n"
                          "      %z = hydra.let %c * @w\n"
                          "      hydra.yield %z\n"
                          "    }\n"
                          "    hydra.yield %y\n"
                          "  }\n"
                          "  hydra.def @g(%x) = @f(%x) + 1\n" // 15
                          "  hydra.entry @e(%x: [D] f32) {\n" // 16
                          "    hydra.return y = %x\n"         //
                          "  }\n"
                          "}\n";

struct Model {
  explicit Model(std::string source = kModel) : text(std::move(source)), names(text), all(names) {}

  unsigned onLine(int line) const { return all.at(text.offsetOf({line - 1, 999})); }
  std::string textOf(const llvm::BitVector &left) const { return all.without(left); }
  /// The first lines of what goes with the declarations on these lines.
  std::vector<int> goesWith(std::initializer_list<int> lines) {
    llvm::BitVector wrong(all.size());
    for (int line : lines)
      wrong.set(onLine(line));
    std::vector<int> found;
    for (unsigned i : all.dependents(wrong).set_bits())
      found.push_back(text.positionOf(all[i].begin).line + 1);
    return found;
  }

  Text text;
  Names names;
  Declarations all;
};

std::string changed(std::string text, const std::string &before, const std::string &after) {
  return text.replace(text.find(before), before.size(), after);
}

TEST(Declarations, FindsTheInnermost) {
  const Model model;
  EXPECT_EQ(model.all.size(), 8U);
  EXPECT_EQ(model.onLine(1), kNone);
  EXPECT_EQ(model.all[model.onLine(5)].stack, model.onLine(4));
  EXPECT_EQ(model.onLine(7), model.onLine(4));
  EXPECT_EQ(model.onLine(11), model.onLine(8));
  EXPECT_EQ(model.onLine(19), model.onLine(16));
  EXPECT_EQ(Model("").all.size(), 0U);
  EXPECT_EQ(Model(std::string(kModel) + kModel).all.size(), 0U);
}

TEST(Declarations, LeavesOut) {
  const Model model;
  llvm::BitVector left(model.all.size());
  left.set(model.onLine(5));
  left.set(model.onLine(8));
  const std::string rest = model.textOf(left);
  EXPECT_EQ(rest.size(), model.text.str().size());
  EXPECT_EQ(rest.find("param @w"), std::string::npos);
  EXPECT_EQ(rest.find("@f(%x) {"), std::string::npos);
  EXPECT_EQ(rest.find("@v"), model.text.str().find("@v"));
  EXPECT_EQ(rest.find("@g"), model.text.str().find("@g"));
  EXPECT_EQ(std::count(rest.begin(), rest.end(), '\n'), 19);

  const std::string behind = model.all.behind(model.onLine(5));
  EXPECT_EQ(behind.find("param @w"), std::string::npos);
  EXPECT_NE(behind.find("hydra.stack @s[n] {"), std::string::npos);
  EXPECT_NE(behind.find("@v"), std::string::npos);
  const std::string only = model.all.only(model.onLine(4), llvm::BitVector(model.all.size()));
  EXPECT_NE(only.find("param @w"), std::string::npos);
  EXPECT_EQ(only.find("@f"), std::string::npos);
}

TEST(Declarations, KnowsWhatMentionsThem) {
  Model model;
  using Lines = std::vector<int>;
  EXPECT_EQ(model.goesWith({16}), (Lines{16}));
  EXPECT_EQ(model.goesWith({3}), (Lines{3, 6}));
  EXPECT_EQ(model.goesWith({8}), (Lines{8, 15}));
  EXPECT_EQ(model.goesWith({5}), (Lines{5, 8, 15}));
  EXPECT_EQ(model.goesWith({4}), (Lines{4, 5, 6, 8, 15}));
  EXPECT_EQ(model.goesWith({2}), (Lines{2, 3, 4, 5, 6, 8, 15, 16}));
}

TEST(Declarations, KnowsWhatMeansHalfWrittenOnes) {
  using Lines = std::vector<int>;
  EXPECT_EQ(Model(changed(kModel, "hydra.param @w", "hydra.parm @w")).goesWith({5}),
            (Lines{5, 8, 15}));
  EXPECT_EQ(Model(changed(kModel, "derive h =", "derive h")).goesWith({3}), (Lines{3, 6}));
  EXPECT_EQ(Model(changed(kModel, "derive h", "deriv h")).goesWith({3}), (Lines{3, 6}));
  // What is not closed reaches no further than what it is in.
  Model open(changed(kModel, "@w [D]", "@w [D"));
  EXPECT_EQ(open.all.size(), 8U);
  EXPECT_EQ(open.goesWith({6}), (Lines{6}));
}

} // namespace
