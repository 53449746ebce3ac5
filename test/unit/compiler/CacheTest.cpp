// Programs that read on, through the oracle: however sequences are cut into calls, every token has
// the scores that the whole sequence gives it.
#include "passes/Passes.h"
#include "test/support/Compile.h"
#include "test/support/RandomText.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace hydra;
using namespace hydra::test;

namespace {

using Settings = std::vector<std::string>;

constexpr int64_t kContext = 40, kVocabulary = 97;

/// A model bound to numbers, as programs of one or more entries.
class Programs {
public:
  Programs(const std::string &model, const Settings &settings, std::vector<std::string> programs,
           int64_t batch) {
    module = model.find('\n') == std::string::npos
                 ? compiler.parseFile(sourcePath("models/" + model + ".mlir"))
                 : compiler.parse(model);
    BindingOptions binding;
    binding.settings = settings;
    if (model.find('\n') == std::string::npos)
      binding.preset = "tiny";
    binding.batch = batch;
    binding.programs = std::move(programs);
    bound = module && compiler.run(*module, [&](mlir::OpPassManager &passes) {
      BindOptions bind = bindOptions(binding);
      bind.context = kContext;
      passes.addPass(createBind(bind));
      passes.addPass(createUnrollLayers());
      CacheOptions cache;
      cache.context = kContext;
      passes.addPass(createCache(cache));
    });
  }

  std::string diagnostics() { return compiler.takeDiagnostics(); }

  TensorMap initial() {
    llvm::FailureOr<TensorMap> values = initialValues(modelOf(*module), /*seed=*/7);
    EXPECT_TRUE(succeeded(values)) << diagnostics();
    for (EntryOp entry : modelOf(*module).getBody().getOps<EntryOp>())
      for (unsigned i = 0; i < entry.getBody().getNumArguments(); ++i)
        if (const std::optional<double> value = entry.getDefault(i))
          (*values)[llvm::cast<mlir::StringAttr>(entry.getArgNames()[i]).getValue()] =
              scalar(*value);
    return *values;
  }

  /// Results of a program; state takes its new values.
  TensorMap run(const std::string &program, TensorMap &values) {
    EntryOp entry = programOf(*module, program);
    llvm::FailureOr<TensorMap> results = interpret(entry, values);
    EXPECT_TRUE(succeeded(results)) << diagnostics();
    if (failed(results))
      return {};
    for (auto symbol : entry.getReturn().getUpdated().getAsRange<mlir::FlatSymbolRefAttr>())
      values[symbol.getValue()] = results->lookup(symbol.getValue());
    return *results;
  }

  std::vector<std::string> states() {
    std::vector<std::string> names;
    for (StateOp state : modelOf(*module).getBody().getOps<StateOp>())
      names.push_back(state.getSymName().str());
    return names;
  }

  bool bound = false;

private:
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

struct Case {
  std::string model;
  Settings settings = {};
  std::vector<int64_t> calls = {16, 5}; ///< tokens, besides single ones
  int64_t chunk = 1; ///< calls begin at multiples of it, or it would be another model
};

/// The best of the scores, of which those of ids in `text` are divided, or multiplied, by the
/// penalty.
int64_t bestOf(const double *scores, int64_t vocabulary, const double *text, int64_t length,
               double penalty) {
  std::vector<double> penalised(scores, scores + vocabulary);
  for (const double id : std::set<double>(text, text + length)) {
    double &score = penalised[static_cast<size_t>(id)];
    score = score > 0 ? score / penalty : score * penalty;
  }
  return std::max_element(penalised.begin(), penalised.end()) - penalised.begin();
}

/// Reads random sequences of other lengths in random calls, and compares the scores behind each
/// call with those of whole sequences, and the best ids among those that are penalised for being
/// there.
void expectSame(const Case &test, int64_t batch, uint64_t seed) {
  SCOPED_TRACE("batch " + std::to_string(batch) + ", seed " + std::to_string(seed));
  std::vector<std::string> programs = {"c1@decode:logits:S=1"};
  for (const int64_t c : test.calls)
    programs.push_back("c" + std::to_string(c) + "@decode:logits:S=" + std::to_string(c));
  Programs whole(test.model, test.settings, {"logits:logits:S=" + std::to_string(kContext)}, batch);
  Programs calls(test.model, test.settings, programs, batch);
  ASSERT_TRUE(whole.bound) << whole.diagnostics();
  ASSERT_TRUE(calls.bound) << calls.diagnostics();

  std::mt19937 random(seed);
  auto draw = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  RefTensor tokens({batch, kContext});
  for (double &token : tokens.data)
    token = static_cast<double>(draw(kVocabulary));
  TensorMap values = whole.initial();
  values["tokens"] = tokens;
  const RefTensor wanted = whole.run("logits", values).lookup("logits");
  const int64_t vocabulary = wanted.shape[2];

  values = calls.initial();
  std::vector<int64_t> read(batch, 0), length;
  for (int64_t i = 0; i < batch; ++i)
    length.push_back(i == 0 ? kContext : 1 + draw(kContext));
  std::vector<int64_t> sizes = test.calls;
  sizes.push_back(1);
  for (int64_t text = 0; text < 2; ++text) { // the second one begins anew
    std::fill(read.begin(), read.end(), 0);
    while (read[0] < length[0]) {
      const int64_t c = sizes[draw(sizes.size())];
      RefTensor given({batch, c}), position({batch});
      bool any = false;
      for (int64_t i = 0; i < batch; ++i) {
        const bool fits =
            read[i] + c <= length[i] && (c == 1 ? test.chunk == 1 : read[i] % test.chunk == 0);
        const bool active = fits && (i == 0 || draw(4) > 0);
        any |= active;
        position.data[i] = active ? static_cast<double>(read[i]) : -1.0;
        for (int64_t t = 0; t < c; ++t)
          given.data[i * c + t] = active ? tokens.data[i * kContext + read[i] + t] : 3;
      }
      if (!any && test.chunk > 1 &&
          length[0] - read[0] < *std::min_element(test.calls.begin(), test.calls.end()))
        break; // what is left fills no call
      if (!any)
        continue;
      values["tokens"] = given;
      values["position"] = position;
      RefTensor settings({batch, SampleOp::kSettings});
      for (int64_t i = 0; i < batch; ++i)
        settings.data[i * SampleOp::kSettings + 4] = draw(2) ? 1.0 : 3.0;
      values["settings"] = settings;
      values["draw"] = RefTensor({batch, SampleOp::kDraw});
      const TensorMap results = calls.run("c" + std::to_string(c), values);
      const RefTensor found = results.lookup("logits"), token = results.lookup("token");
      ASSERT_EQ(found.shape, (llvm::SmallVector<int64_t>{batch, 1, vocabulary}));
      for (int64_t i = 0; i < batch; ++i) {
        if (position.data[i] < 0) {
          ASSERT_EQ(token.data[i], 0);
          continue;
        }
        read[i] += c;
        ASSERT_EQ(static_cast<int64_t>(token.data[i]),
                  bestOf(&found.data[i * vocabulary], vocabulary, &tokens.data[i * kContext],
                         read[i], settings.data[i * SampleOp::kSettings + 4]))
            << "sequence " << i << " behind " << read[i] << " tokens, the last " << c
            << " in one call";
        for (int64_t v = 0; v < vocabulary; ++v)
          ASSERT_NEAR(found.data[i * vocabulary + v],
                      wanted.data[(i * kContext + read[i] - 1) * vocabulary + v], 1e-9)
              << "sequence " << i << " behind " << read[i] << " tokens, the last " << c
              << " in one call";
      }
    }
  }
}

} // namespace

TEST(Cache, EveryTokenHasTheScoresOfTheWholeSequence) {
  const std::vector<Case> cases = {
      {"llama"},
      {"cs336"},
      {"megalodon"},
      {"megalodon", {"ema=sequential", "swiglu=true", "scale_emb=true", "tied=true"}},
      {"hydra", {"mod=dense"}},
      {"hydra", {"mod=static"}},
      {"hydra", {"mod=dense", "mor=fixed"}},
      {"hydra", {"mod=dense", "blend=true"}},
      {"hydra", {"mod=dense", "conv=4", "use_value_shift=false"}},
      {"hydra", {"mod=dense", "conv=1", "use_rope=false"}},
      {"megalodon", {"ema=fft"}}, // programs that read on go token by token
      {"megalodon", {"attention_window=6"}},
      {"megalodon", {"prior_count=3", "rescale_nffn=true"}},
      {"deltanet"},
      {"deltanet", {"rule=additive", "tied=false"}},
      {"deltanet", {"form=tokens", "gated=false"}},
      {"ttt", {"inner=mlp", "b0=1"}},
      {"ttt", {"inner=mlp"}, {16, 32}, 16},
      {"ttt", {"b0=1"}},
      {"ttt", {"per_head_lr=true", "untied=true"}, {16, 32}, 16},
  };
  for (const Case &test : cases) {
    std::string name = test.model;
    for (const std::string &setting : test.settings)
      name += " " + setting;
    SCOPED_TRACE(name);
    for (const int64_t batch : {1, 3})
      expectSame(test, batch, 11 + batch);
  }
}

TEST(Cache, AttentionKeepsAsManyTokensAsItsMaskSees) {
  auto model = [](const std::string &mask) {
    return R"(
      hydra.model @m version 1 {
        hydra.symbols dims(D = 16, H = 4, Hk = 2, hd = 4, V = 97)
        hydra.param @e [V, D] init = normal(1.0)
        hydra.param @q [D, D] init = normal(0.5)
        hydra.param @k [Hk * hd, D] init = normal(0.5)
        hydra.param @v [Hk * hd, D] init = normal(0.5)
        hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
          %x = hydra.let embedding(%tokens, @e)
          %q, %k = hydra.let reshape(linear(%x, @q), [B, S, H, hd]), reshape(linear(%x, @k), [B, S, Hk, hd])
          %v = hydra.let reshape(linear(%x, @v), [B, S, Hk, hd])
          %r, %t = hydra.let rope(%q, base = 100.0), rope(%k, base = 100.0, half_split, period = 7)
          %o = hydra.attention %r, %t, %v scale = 0.5 causal )" +
           mask + R"(
          %logits = hydra.let linear(%x + reshape(%o, [B, S, D]), @e)
          hydra.return logits = %logits
        }
      })";
  };
  for (const char *mask :
       {"", "window = 1", "window = 6", "window = 100", "chunk = 1", "chunk = 8",
        "chunk = 5 window = 3", "chunk = 64", "cap = 2.0", "cap = 0.5 window = 6"}) {
    SCOPED_TRACE(mask);
    for (const int64_t batch : {1, 2})
      expectSame({model(mask)}, batch, 5);
  }
}

TEST(Cache, RowsBeforeTheCallAndScansAreKept) {
  const std::string model = R"(
    hydra.model @m version 1 {
      hydra.symbols dims(D = 6, V = 97)
      hydra.param @e [V, D] init = normal(1.0)
      hydra.param @p [64, D] init = normal(1.0)
      hydra.param @first [D] init = normal(1.0)
      hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
        %at = hydra.let iota(axis = 1, shape = [B, S], positions)
        %x = hydra.let embedding(%tokens, @e) + embedding(%at, @p)
        %padded = hydra.pad %x axis = 1 before = 3 after = 0
        %third = hydra.slice %padded axis = 1 start = 0 size = S
        %second = hydra.slice %padded axis = 1 start = 1 size = S
        %turned = hydra.transpose %second order = [2, 1, 0]
        %earlier = hydra.let slice(pad(%turned, axis = 1, before = 1, after = 0), axis = 1, start = 0, size = S)
        %mixed = hydra.let %third * %x + transpose(%earlier, [2, 1, 0])
        %sums, %largest = hydra.prefix_scan axis = 1 over(%here = %mixed, %most = %x) combine(%before, %max) {
          %sum, %m = hydra.let %before + %here, max(%max, %most)
          hydra.yield %sum, %m
        }
        %start = hydra.let broadcast(reshape(@first, [1, 1, D]), [B, 1, D])
        %ys, %last = hydra.scan axis = 1 chunk = 1 over(%s = %sums) carry(%state = %start) {
          %next = hydra.let tanh(%state * 0.5 + %s * 0.1)
          hydra.yield %next, %next
        }
        %logits = hydra.let linear(%ys + %largest, @e)
        hydra.return logits = %logits
      }
    })";
  for (const int64_t batch : {1, 3})
    expectSame({model}, batch, 2);
}

TEST(Cache, RandomCausalModelsGoOn) {
  for (uint64_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) {
    const std::string model = randomCausalModel(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + model);
    for (const int64_t batch : {1, 3})
      expectSame({model}, batch, seed);
  }
}

TEST(Cache, WhatMixesTokensWithoutARuleIsRefusedWithItsLine) {
  auto expectRefused = [](const std::string &body, const std::string &part) {
    const std::string model = R"(
      hydra.model @m version 1 {
        hydra.symbols dims(D = 6, V = 97)
        hydra.param @e [V, D] init = normal(1.0)
        hydra.param @p [64, D] init = normal(1.0)
        hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
          %x = hydra.let embedding(%tokens, @e) + sum(@p, axes = [0])
)" + body + R"(
          %logits = hydra.let linear(%y, @e)
          hydra.return logits = %logits
        }
      })";
    Programs programs(model, {}, {"a@decode:logits:S=4", "b@decode:logits:S=1"}, 2);
    EXPECT_FALSE(programs.bound);
    const std::string text = programs.diagnostics();
    EXPECT_NE(text.find("test.mlir:8:"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expectRefused("%y = hydra.let %x - mean(%x, 1)",
                "'hydra.mean' op reads several tokens of a sequence together");
  expectRefused("%y = hydra.let softmax(%x) + matmul(%x, matmul(%x, %x, transpose_a))",
                "hydra.matmul");
  expectRefused("%y = hydra.let %x + slice(@p, axis = 0, start = 0, size = S)",
                "expected hydra.iota with positions");
  expectRefused("%y = hydra.let %x + iota(axis = 1, shape = [B, S, D], dtype = f32)",
                "expected hydra.iota with positions");
  expectRefused("%y = hydra.let %x + iota(axis = 1, shape = [1, S, D], dtype = f32, positions)",
                "counts positions of 2 sequences together");
  expectRefused(
      "%y = hydra.let reshape(attention(reshape(%x, [B, S, 1, D]), reshape(%x, [B, S, 1, D]), "
      "reshape(%x, [B, S, 1, D]), scale = 1.0), [B, S, D])",
      "expected causal");
  auto scanned = [](const std::string &chunk, const std::string &first, const std::string &row) {
    return "%y, %end = hydra.scan axis = 1 chunk = " + chunk +
           " over(%r = %x) carry(%sum = " + first + ") { %n = hydra.let %sum + sum(" + row +
           ", 1) hydra.yield %r, %n }";
  };
  const std::string none = "%zero", zero = "%zero = hydra.constant value = 0 shape = [B, 1, D] ";
  expectRefused(zero + scanned("3", none, "%r"), "expected chunk = 1 or chunk = S");
  expectRefused("%m = hydra.let mean(%x, 1) " + scanned("1", "%m", "%r"), "'hydra.mean'");
  expectRefused(zero + "%m = hydra.let mean(%x, 1) " + scanned("S", none, "(%r + %m)"),
                "'hydra.mean'");
  expectRefused("%y = hydra.let slice(pad(%x, axis = 1, before = 2, after = 0), axis = 1, start = "
                "0, size = S) "
                "+ reduce_max(pad(%x, axis = 1, before = 2, after = 0), axes = [1], keep)",
                "expected slices of as many as there are");
}
