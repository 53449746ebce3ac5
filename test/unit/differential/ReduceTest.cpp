// The reducer, on models of which a test on their text says what is to be kept.
#include "test/fuzz/differential/Reduce.h"

#include "test/fuzz/differential/Oracle.h"

#include <gtest/gtest.h>

namespace hydra::test {

namespace {

/// Whether the model still has a derivative, and its text all of these words.
ReduceQuestions keeping(std::vector<std::string> words, std::map<std::string, std::string> types) {
  const auto shows = [words](const std::string &text) {
    for (const std::string &word : words)
      if (text.find(word) == std::string::npos)
        return false;
    Compiler compiler;
    mlir::OwningOpRef<mlir::ModuleOp> module = compiler.parse(text);
    return module && compiler.run(*module, [](mlir::OpPassManager &passes) {
      passes.addPass(bindPass({}));
      passes.addPass(createDifferentiate()); // of a number
    });
  };
  return {shows, [types](const std::string &) { return types; }};
}

} // namespace

TEST(Reduce, KeepsTheProductAndWhatItNeeds) {
  const std::string text = R"(// comment
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.param @a [33, 8] init = uniform(0.5)
  hydra.param @b [8, 17] init = ones
  hydra.param @c [17] init = zeros
  hydra.entry @loss(%x: [33, 8] f32) {
    %a = hydra.use @a
    %b = hydra.use @b
    %c = hydra.use @c
    %v = hydra.tanh %a
    %u = hydra.add %v, %x
    %s = hydra.softmax %u
    %m = hydra.matmul %s, %b
    %n = hydra.add %m, %c
    %o = hydra.sin %n
    %p = hydra.reshape %o shape = [17, 33]
    %l = hydra.sum %p axes = [0, 1]
    hydra.return loss = %l, other = %n
  }
}
)";
  const std::string reduced = reduceText(text, keeping({"hydra.matmul"}, {{"%a", "[33, 8] f32"},
                                                                          {"%v", "[33, 8] f32"},
                                                                          {"%u", "[33, 8] f32"},
                                                                          {"%s", "[33, 8] f32"},
                                                                          {"%m", "[33, 17] f32"},
                                                                          {"%n", "[33, 17] f32"},
                                                                          {"%o", "[33, 17] f32"},
                                                                          {"%p", "[17, 33] f32"},
                                                                          {"%b", "[8, 17] f32"}}));
  EXPECT_EQ(reduced, R"(hydra.model @m version 1 {
  hydra.param @a [1, 1] init = normal(1.0)
  hydra.param @b [1, 1] init = normal(1.0)
  hydra.entry @loss() {
    %a = hydra.use @a
    %b = hydra.use @b
    %m = hydra.matmul %a, %b
    %loss0 = hydra.sum %m axes = [0, 1]
    hydra.return loss = %loss0
  }
}
)");
}

TEST(Reduce, TakesCarriedValuesAndResultsOutOfScans) {
  const std::string text = R"(hydra.model @m version 1 {
  hydra.param @x [2, 12, 3] init = normal(1.0)
  hydra.param @s [2, 3] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %s = hydra.use @s
    %y, %z, %e, %f = hydra.scan axis = 1 chunk = 4 over(%c = %x) carry(%a = %s, %b = %s) {
      %t = hydra.exp %c
      %m = hydra.sum %t axes = [1]
      %n = hydra.add %m, %a
      %o = hydra.mul %b, %n
      hydra.yield %t, %c, %n, %o
    }
    %sy = hydra.sum %y axes = [0, 1, 2]
    %sz = hydra.sum %z axes = [0, 1, 2]
    %se = hydra.sum %e axes = [0, 1]
    %sf = hydra.sum %f axes = [0, 1]
    %p = hydra.mul %sy, %se
    %q = hydra.add %p, %sz
    %l = hydra.sub %q, %sf
    hydra.return loss = %l
  }
}
)";
  const std::string reduced =
      reduceText(text, keeping({"hydra.scan", "carry("}, {{"%x", "[2, 12, 3] f32"},
                                                          {"%s", "[2, 3] f32"},
                                                          {"%y", "[2, 12, 3] f32"},
                                                          {"%z", "[2, 12, 3] f32"},
                                                          {"%e", "[2, 3] f32"},
                                                          {"%f", "[2, 3] f32"},
                                                          {"%sy", "[] f32"},
                                                          {"%sz", "[] f32"},
                                                          {"%se", "[] f32"},
                                                          {"%sf", "[] f32"},
                                                          {"%p", "[] f32"},
                                                          {"%q", "[] f32"},
                                                          {"%l", "[] f32"}}));
  EXPECT_EQ(reduced, R"(hydra.model @m version 1 {
  hydra.param @x [1, 1, 1] init = normal(1.0)
  hydra.param @s [1, 1] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %s = hydra.use @s
    %y, %e = hydra.scan axis = 1 chunk = 1 over(%c = %x) carry(%a = %s) {
      %m = hydra.sum %c axes = [1]
      hydra.yield %c, %m
    }
    %loss0 = hydra.sum %y axes = [0, 1, 2]
    hydra.return loss = %loss0
  }
}
)");
}

} // namespace hydra::test
