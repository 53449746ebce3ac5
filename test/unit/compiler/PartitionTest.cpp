// Programs partitioned over ranks compute what they compute of the whole batch: all families and
// random programs, on two, three and four ranks; and what ranks add up is what micro-batches add
// up, bit for bit.
#include "test/support/Compile.h"
#include "test/support/RandomProgram.h"

#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace hydra;
using namespace hydra::test;
using mlir::ModuleOp;
using mlir::OwningOpRef;

namespace {

using Settings = std::vector<std::string>;
using Mesh = std::vector<std::string>;

/// One more of each that is drawn for a test.
RefTensor drawn(const TensorMap &values, llvm::StringRef name) { return values.lookup(name); }

/// The same up to the order of sums.
void expectClose(const TensorMap &found, const TensorMap &wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (auto &[name, tensor] : wanted) {
    const RefTensor other = drawn(found, name);
    ASSERT_EQ(other.shape, tensor.shape) << name.str();
    for (int64_t i = 0; i < tensor.size(); ++i)
      ASSERT_NEAR(other.data[i], tensor.data[i], tolerance * (1.0 + std::abs(tensor.data[i])))
          << name.str() << "[" << i << "]";
  }
}

void expectSame(const TensorMap &found, const TensorMap &wanted, const char *pass) {
  for (auto &[name, tensor] : wanted)
    EXPECT_TRUE(sameBits(drawn(found, name), tensor)) << pass << " changes " << name.str();
}

/// A model on its way to programs of ranks.
class Model {
public:
  /// From a file, or from text if `binding` is of a random program.
  Model(OwningOpRef<ModuleOp> parsed, Compiler &compiler, BindingOptions binding, Mode mode,
        int64_t accumulation = 1, bool clip = true)
      : Model(std::move(parsed), compiler, [&](mlir::OpPassManager &passes) {
          const std::vector<std::string> trained{"loss"};
          buildForwardPipeline(passes, binding, {},
                               hasBackward(mode) ? trained : std::vector<std::string>());
          buildTrainingPipeline(passes, mode, trained, accumulation, clip);
        }) {}
  /// By these passes.
  Model(OwningOpRef<ModuleOp> parsed, Compiler &compiler,
        llvm::function_ref<void(mlir::OpPassManager &)> build)
      : compiler(compiler), module(std::move(parsed)) {
    ready = module && compiler.run(*module, build);
    EXPECT_TRUE(ready) << compiler.takeDiagnostics();
  }

  void partition() {
    ready = ready && compiler.run(*module, createPartition());
    EXPECT_TRUE(ready) << compiler.takeDiagnostics() << textOf(*module);
    if (ready) { // what is printed can be read
      const std::string text = textOf(*module);
      OwningOpRef<ModuleOp> again = compiler.parse(text);
      ASSERT_TRUE(again) << compiler.takeDiagnostics();
      EXPECT_EQ(textOf(*again), text);
    }
  }

  /// Sums over ranks in buckets, and as exchanges and adds: the same bits.
  void lower(const TensorMap &values) {
    if (!ready)
      return;
    const TensorMap before = run(values);
    ready = compiler.run(*module, createBucketCollectives({.bytes = 2000}));
    expectSame(run(values), before, "hydra-bucket-collectives");
    lowerCollectives();
    EXPECT_EQ(count<AllReduceOp>() + count<ReduceScatterOp>(), 0u);
    expectSame(run(values), before, "hydra-lower-collectives");
  }

  /// Gathers over several axes as one over each: the same bits.
  void splitGathers(const TensorMap &values) {
    if (!ready)
      return;
    const TensorMap before = run(values);
    const unsigned wide = wideGathers(), all = count<AllGatherOp>();
    ready = compiler.run(*module, createSplitGathers());
    EXPECT_TRUE(ready) << compiler.takeDiagnostics() << textOf(*module);
    EXPECT_EQ(wideGathers(), 0u);
    EXPECT_EQ(count<AllGatherOp>(), all + wide); // of two axes each
    module->walk([](RankOp rank) { EXPECT_EQ(MeshAttr::axesOf(rank.getOver()).size(), 1u); });
    expectSame(run(values), before, "hydra-split-gathers");
  }

  /// Over several axes.
  unsigned wideGathers() {
    return llvm::count_if(program().getBody().getOps<AllGatherOp>(), [](AllGatherOp gather) {
      return MeshAttr::axesOf(gather.getOver()).size() > 1;
    });
  }

  /// In slices of some rows.
  void lowerCollectives() {
    ready =
        ready &&
        compiler.run(*module, createLowerCollectives({.latencyBytes = 100, .sliceBytes = 16384}));
    EXPECT_TRUE(ready) << compiler.takeDiagnostics() << textOf(*module);
  }

  /// Gradients that are sent in fewer bits: the same numbers where the oracle rounds none.
  void roundGradients(const TensorMap &values) {
    if (!ready)
      return;
    const TensorMap before = run(values);
    ready = compiler.run(*module, createRoundGradients());
    EXPECT_TRUE(ready) << compiler.takeDiagnostics() << textOf(*module);
    unsigned rounded = 0;
    program().walk([&](AllReduceOp sum) { rounded += sum.getSum().has_value(); });
    program().walk([&](ReduceScatterOp sum) { rounded += sum.getSum().has_value(); });
    EXPECT_GT(rounded, 0u);
    expectSame(run(values), before, "hydra-round-gradients");
  }

  EntryOp program(llvm::StringRef name = "loss") { return programOf(*module, name); }

  TensorMap run(const TensorMap &values, llvm::StringRef name = "loss") {
    if (!ready)
      return {};
    llvm::FailureOr<TensorMap> results = interpretBatch(program(name), values);
    EXPECT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    return succeeded(results) ? *results : TensorMap();
  }

  template <typename Op> unsigned count(llvm::StringRef name = "loss") {
    return llvm::range_size(program(name).getBody().getOps<Op>());
  }

  Compiler &compiler;
  OwningOpRef<ModuleOp> module;
  bool ready = false;
};

/// Values by which an update and its clip are held: moments and numbers of a step among them.
TensorMap valuesOf(EntryOp program, uint64_t seed) {
  TensorMap values = randomValues(program, seed);
  for (auto &[name, value] : std::map<std::string, double>{
           {"lr", 0.01}, {"step", 3.0}, {"clip", 0.5}, {"micro_batch", 0.0}})
    values[name] = scalar(value);
  return values;
}

struct Family {
  const char *name, *model, *preset;
  Settings settings;
  int64_t length = 20;
};

void PrintTo(const Family &family, std::ostream *out) { *out << family.name; }

constexpr int64_t kBatch = 12; // which 2, 3 and 4 divide

BindingOptions bindingOf(const Family &family, Mesh mesh, int64_t batch = kBatch) {
  BindingOptions binding;
  binding.preset = family.preset;
  binding.settings = family.settings;
  binding.batch = batch;
  binding.seq = family.length;
  binding.programs = {"loss:loss"};
  binding.mesh = std::move(mesh);
  return binding;
}

class OfFamilies : public testing::TestWithParam<Family> {};

} // namespace

TEST_P(OfFamilies, AreThoseOfTheWholeBatch) {
  Compiler compiler;
  for (const Mode mode : {Mode::Grad, Mode::Train}) {
    const std::string path = sourcePath(std::string("models/") + GetParam().model + ".mlir");
    Model whole(compiler.parseFile(path), compiler, bindingOf(GetParam(), {}), mode);
    ASSERT_TRUE(whole.ready);
    const TensorMap values = valuesOf(whole.program(), 11), wanted = whole.run(values);
    for (const Mesh &mesh :
         {Mesh{"data:2"}, Mesh{"data:3"}, Mesh{"data:4"}, Mesh{"replica:2", "data:3"}}) {
      SCOPED_TRACE(mesh.back());
      Model ranks(compiler.parseFile(path), compiler, bindingOf(GetParam(), mesh), mode);
      ranks.partition();
      ASSERT_TRUE(ranks.ready);
      // Nothing but sums goes over the wire.
      EXPECT_EQ(ranks.count<AllGatherOp>(), 0u);
      EXPECT_EQ(ranks.count<AllToAllOp>(), 0u);
      EXPECT_EQ(ranks.count<ReduceScatterOp>(), 0u);
      EXPECT_GT(ranks.count<AllReduceOp>(), 0u);
      expectClose(ranks.run(values), wanted, 1e-9);
      if (mesh.back() == "data:2")
        ranks.roundGradients(values);
      ranks.lower(values);
      if (HasFailure())
        return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Partitions, OfFamilies,
    testing::Values(
        Family{"CS336", "cs336", "tiny", {}}, Family{"Llama", "llama", "tiny", {}},
        Family{"GPT2", "gpt2", "tiny", {}}, Family{"GPT2Dropout", "gpt2", "tiny", {"dropout=0.2"}},
        Family{"MegalodonDropout", "megalodon", "ref", {"dropout=0.2", "hidden_dropout=0.1"}},
        Family{"GPT2AttentionDropout", "gpt2", "tiny", {"attention_dropout=0.2"}},
        Family{
            "GPT2PackedAttentionDropout", "gpt2", "tiny", {"packed=true", "attention_dropout=0.2"}},
        Family{"MegalodonDropkey", "megalodon", "ref", {"attention_dropout=0.1", "dropkey=0.3"}},
        Family{"TTT", "ttt", "ref", {}}, Family{"TTTLong", "ttt", "ref", {}, 144},
        Family{"Megalodon", "megalodon", "ref", {}},
        Family{"MegalodonRecurrence", "megalodon", "ref", {"ema=sequential"}},
        Family{"MegalodonTransforms", "megalodon", "ref", {"ema=fft"}},
        Family{"HydraTopK", "hydra", "ref", {}},
        Family{"HydraFixed", "hydra", "ref", {"mor=fixed", "mod=dense"}},
        Family{"HydraDynamic", "hydra", "ref", {"mod=dense"}},
        Family{"HydraBlend", "hydra", "ref", {"mod=dense", "blend=true"}},
        Family{"HydraStatic", "hydra", "ref", {"mor=static", "mod=static"}},
        Family{"HydraAdvantage", "hydra", "ref", {"advantage=true"}}),
    [](const auto &info) { return std::string(info.param.name); });

namespace {

/// A step over so many micro-batches of neighbouring rows, on as many ranks as `mesh` has:
/// parameters and state after it.
TensorMap stepOver(Model &model, const TensorMap &whole, int64_t batches) {
  TensorMap values = whole;
  ModelOp root = modelOf(*model.module);
  const auto isCleared = [](StateOp state) {
    return state.getRole() == VariableRole::gradient || state.getRole() == VariableRole::step_sum ||
           state.isPart();
  };
  for (StateOp state : root.getBody().getOps<StateOp>()) {
    if (FlatUnitAttr unit = unitOf(state); unit && isCleared(state))
      for (MemberAttr member : unit.getMembers())
        values[memberName(state, member)] = RefTensor(member.getShape());
    else if (isCleared(state))
      values[state.getSymName()] = RefTensor(state.getBoundType().getShape());
    else if (state.getRole() == VariableRole::copy)
      values[state.getSymName()] = whole.lookup(*state.getOwner());
  }
  const auto give = [&](TensorMap results, EntryOp program) {
    for (llvm::StringRef name :
         program.getReturn().getOutputNames().getAsValueRange<mlir::StringAttr>())
      results.erase(name);
    for (auto &[name, tensor] : results) // of a unit its members
      values[name] = tensor;
  };
  for (const char *name : {"count", "accumulate"})
    for (int64_t i = 0; i < batches; ++i) {
      for (const char *input : {"tokens", "labels"}) {
        const RefTensor all = whole.lookup(input);
        RefTensor part({all.shape[0] / batches, all.shape[1]});
        std::copy_n(all.data.begin() + i * part.size(), part.size(), part.data.begin());
        values[input] = part;
      }
      values["micro_batch"] = scalar(static_cast<double>(i));
      give(model.run(values, name), model.program(name));
    }
  give(model.run(values, "apply"), model.program("apply"));
  TensorMap after;
  for (ParamOp param : root.getBody().getOps<ParamOp>()) {
    if (FlatUnitAttr unit = param.getUnitAttr())
      for (MemberAttr member : unit.getMembers())
        after[member.getName()] = values.lookup(member.getName());
    else
      after[param.getSymName()] = values.lookup(param.getSymName());
  }
  return after;
}

} // namespace

//===-- Shards ------------------------------------------------------------------------------===//

namespace {

struct Cut {
  const char *name;
  Family family;
  int64_t wholeBelow;
};
void PrintTo(const Cut &cut, std::ostream *out) { *out << cut.name; }

class OfCutParameters : public testing::TestWithParam<Cut> {};

/// A mesh, and along how many of its axes parameters are cut.
struct CutMesh {
  Mesh mesh;
  int64_t levels = 1;

  std::string text() const {
    std::string text;
    for (const std::string &axis : mesh)
      text += axis + " ";
    return text + "in " + std::to_string(levels);
  }
  bool isPair() const { return mesh == Mesh{"data:2"}; }
};

std::vector<CutMesh> cutMeshes() {
  return {{Mesh{"data:2"}},
          {Mesh{"data:3"}},
          {Mesh{"data:4"}},
          {Mesh{"replica:2", "data:3"}},
          {Mesh{"node:2", "data:3"}, 2},
          {Mesh{"node:3", "data:2"}, 2}};
}

/// With its parameters in units, forward to where `hydra-optimizer` has run.
Model cutModel(Compiler &compiler, const std::string &path, const BindingOptions &binding,
               int64_t wholeBelow, int64_t accumulation, bool clip,
               AccumExchange exchange = AccumExchange::Each, int64_t levels = 1) {
  return Model(compiler.parseFile(path), compiler, [&](mlir::OpPassManager &passes) {
    buildForwardPipeline(passes, binding);
    passes.addPass(createFuseQKV());
    if (!binding.mesh.empty())
      passes.addPass(createShard({.wholeBelow = wholeBelow, .levels = levels}));
    buildTrainingPipeline(passes, Mode::Train, {"loss"}, accumulation, clip,
                          /*scaleLoss=*/false, {.exchange = exchange});
  });
}

} // namespace

TEST_P(OfCutParameters, AreThoseOfTheWholeBatch) {
  Compiler compiler;
  const auto &[name, family, wholeBelow] = GetParam();
  const std::string path = sourcePath(std::string("models/") + family.model + ".mlir");
  Model whole = cutModel(compiler, path, bindingOf(family, {}), 0, 1, true);
  ASSERT_TRUE(whole.ready);
  const TensorMap values = valuesOf(whole.program(), 11), wanted = whole.run(values);
  for (const CutMesh &cut : cutMeshes()) {
    SCOPED_TRACE(cut.text());
    for (const bool keeps : {false, true}) {
      Model ranks = cutModel(compiler, path, bindingOf(family, cut.mesh), wholeBelow, 1, true,
                             AccumExchange::Each, cut.levels);
      ASSERT_TRUE(ranks.ready);
      expectClose(ranks.run(values), wanted, 1e-12); // the norm adds up squares in another order
      ranks.partition();
      ASSERT_TRUE(ranks.ready);
      EXPECT_EQ(ranks.count<AllToAllOp>(), 0u);
      EXPECT_GT(ranks.count<AllGatherOp>(), 0u);
      EXPECT_EQ(ranks.wideGathers() > 0, cut.levels > 1);
      EXPECT_GT(ranks.count<ReduceScatterOp>(), 0u);
      EXPECT_EQ(ranks.count<ShardOp>(), 0u);
      const TensorMap after = ranks.run(values);
      expectClose(after, wanted, 1e-9);
      TensorMap given = values;
      if (keeps) {
        ASSERT_TRUE(compiler.run(*ranks.module, createKeepGathered()));
        ModelOp root = modelOf(*ranks.module);
        unsigned kept = 0;
        for (StateOp state : root.getBody().getOps<StateOp>())
          if (state.getRole() == VariableRole::copy && unitOf(state)) {
            EXPECT_EQ(unitOf(state).getPieces(), 1);
            ++kept;
            for (MemberAttr member : unitOf(state).getMembers())
              given[memberName(state, member)] = values.lookup(member.getName());
          }
        EXPECT_GT(kept, 0u);
      } else {
        ASSERT_TRUE(compiler.run(*ranks.module, createReshard({.between = 1})));
        EXPECT_GT(ranks.count<AllGatherOp>(), 1u);
      }
      TensorMap again = ranks.run(given);
      for (auto &[name, tensor] : after)
        EXPECT_TRUE(sameBits(tensor, again.lookup(name))) << name.str();
      if (cut.isPair())
        ranks.roundGradients(given);
      ranks.lower(given);
      ranks.splitGathers(given);
      if (HasFailure())
        return;
    }
  }
}

// One chain of adds inside of a node, and one of what comes out across: the bits of ranks that keep
// all parameters, with as many micro-batches.
TEST(Partition, AddsUpInTwoLevelsWhateverIsCut) {
  Compiler compiler;
  constexpr int64_t batches = 2;
  const Family family{"CS336", "cs336", "tiny", {}};
  const std::string path = sourcePath("models/cs336.mlir");
  TensorMap values, wanted;
  for (const auto &[wholeBelow, levels] :
       {std::pair{int64_t{1} << 40, int64_t{1}}, std::pair{int64_t{0}, int64_t{1}},
        std::pair{int64_t{0}, int64_t{2}}}) {
    SCOPED_TRACE(levels);
    Model ranks = cutModel(compiler, path, bindingOf(family, Mesh{"node:2", "data:3"}), wholeBelow,
                           batches, /*clip=*/false, AccumExchange::Each, levels);
    ranks.partition();
    ASSERT_TRUE(ranks.ready);
    if (values.empty()) {
      Model whole = cutModel(compiler, path, bindingOf(family, {}, batches * kBatch), 0, 1,
                             /*clip=*/false);
      ASSERT_TRUE(whole.ready);
      values = valuesOf(whole.program(), 11);
    }
    const TensorMap after = stepOver(ranks, values, batches);
    if (wanted.empty())
      wanted = after;
    expectSame(after, wanted, "hydra-shard");
    ranks.lowerCollectives();
    expectSame(stepOver(ranks, values, batches), wanted, "hydra-lower-collectives");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shards, OfCutParameters,
    testing::Values(
        Cut{"CS336", {"CS336", "cs336", "tiny", {}}, 0},
        Cut{"CS336Large", {"CS336", "cs336", "tiny", {}}, 2000},
        Cut{"Llama", {"Llama", "llama", "tiny", {}}, 0},
        Cut{"GPT2", {"GPT2", "gpt2", "tiny", {}}, 0}, Cut{"TTT", {"TTT", "ttt", "ref", {}}, 0},
        Cut{"TTTLong", {"TTTLong", "ttt", "ref", {}, 144}, 0},
        Cut{"Megalodon", {"Megalodon", "megalodon", "ref", {}}, 0},
        Cut{"HydraTopK", {"HydraTopK", "hydra", "ref", {}}, 0},
        Cut{"HydraFixed", {"HydraFixed", "hydra", "ref", {"mor=fixed", "mod=dense"}}, 100}),
    [](const auto &info) { return std::string(info.param.name); });

//===-- Weights in 8 bits -------------------------------------------------------------------===//

namespace {

/// Llama with all matmuls of linear layers in 8 bits, its parameters in units.
Model quantizedModel(Compiler &compiler, const BindingOptions &binding, QuantizedAmax amax,
                     int64_t levels, QuantizedScaling scaling = QuantizedScaling::Tensor) {
  QuantizationOptions quantization;
  quantization.scaling = scaling;
  quantization.keep = {"none"};
  quantization.least = 1;
  quantization.amax = amax;
  return Model(compiler.parseFile(sourcePath("models/llama.mlir")), compiler,
               [&](mlir::OpPassManager &passes) {
                 buildForwardPipeline(passes, binding);
                 passes.addPass(createSelectQuantized(selectQuantizedOptions(quantization)));
                 passes.addPass(createShard({.wholeBelow = 0, .levels = levels}));
                 buildTrainingPipeline(passes, Mode::Train, {"loss"}, /*accumulation=*/1,
                                       /*clip=*/true);
                 passes.addPass(createPartition());
                 passes.addPass(createMixedPrecision({.policy = "fp8"}));
                 passes.addPass(createQuantizeMatmuls(
                     quantizeMatmulsOptions(quantization, /*accumulation=*/1)));
               });
}

/// What is remembered of operands: of some of them nothing.
void addHistory(Model &model, TensorMap &values) {
  for (StateOp state : modelOf(*model.module).getBody().getOps<StateOp>())
    if (state.getRole() == VariableRole::amax_history) {
      RefTensor history(state.getBoundType().getShape());
      for (int64_t i = 0; i < history.size(); ++i)
        history.data[i] = static_cast<double>(i % 5) / 4.0;
      values[state.getSymName()] = history;
    }
}

/// With what a program derives of them.
TensorMap derived(Model &model, const TensorMap &values) {
  TensorMap all = values;
  for (auto &[name, tensor] : model.run(values, "derive"))
    all[name] = tensor;
  return all;
}

/// With what ranks keep of whole units, which has the values of members.
TensorMap withCopies(Model &model, const TensorMap &values) {
  TensorMap all = values;
  for (StateOp state : modelOf(*model.module).getBody().getOps<StateOp>())
    if (state.getRole() == VariableRole::copy && unitOf(state))
      for (MemberAttr member : unitOf(state).getMembers())
        all[memberName(state, member)] = values.lookup(member.getName());
  return all;
}

unsigned eightBitGathers(Model &model) {
  unsigned count = 0;
  model.program().walk([&](AllGatherOp gather) {
    auto type = llvm::cast<mlir::RankedTensorType>(gather.getY().getType());
    count += llvm::isa<mlir::Float8E4M3FNType>(type.getElementType());
  });
  return count;
}

} // namespace

TEST(QuantizedUnits, AreGatheredToTheSameBits) {
  Compiler compiler;
  const Family family{"Llama", "llama", "tiny", {}};
  Model whole = cutModel(compiler, sourcePath("models/llama.mlir"), bindingOf(family, {}), 0, 1,
                         /*clip=*/true);
  ASSERT_TRUE(whole.ready);
  for (const QuantizedAmax amax : {QuantizedAmax::Current, QuantizedAmax::Delayed})
    for (const CutMesh &cut : cutMeshes()) {
      SCOPED_TRACE(cut.text());
      TensorMap values = valuesOf(whole.program(), 11);
      Model ranks = quantizedModel(compiler, bindingOf(family, cut.mesh), amax, cut.levels);
      ASSERT_TRUE(ranks.ready);
      addHistory(ranks, values);
      const TensorMap before = ranks.run(values);
      EXPECT_EQ(eightBitGathers(ranks), 0u);
      ASSERT_TRUE(compiler.run(*ranks.module, createGatherQuantized()))
          << compiler.takeDiagnostics();
      EXPECT_GT(eightBitGathers(ranks), 0u);
      expectSame(ranks.run(values), before, "hydra-gather-quantized");
      if (amax == QuantizedAmax::Delayed) {
        ASSERT_TRUE(compiler.run(*ranks.module, createKeepQuantized()))
            << compiler.takeDiagnostics();
        values = derived(ranks, values);
        expectSame(ranks.run(values), before, "hydra-keep-quantized");
        ASSERT_TRUE(compiler.run(*ranks.module, createKeepGathered()))
            << compiler.takeDiagnostics();
        values = derived(ranks, withCopies(ranks, values));
        expectSame(ranks.run(values), before, "hydra-keep-gathered");
      }
      ranks.lower(values);
      ranks.splitGathers(values);
      if (HasFailure())
        return;
    }
}

// Pieces that end within rows and blocks, of weights smaller than a block too.
TEST(QuantizedUnits, AreGatheredWithScalesOfRowsAndBlocks) {
  Compiler compiler;
  const Family family{"Llama", "llama", "tiny", {}};
  Model whole = cutModel(compiler, sourcePath("models/llama.mlir"), bindingOf(family, {}), 0, 1,
                         /*clip=*/true);
  ASSERT_TRUE(whole.ready);
  const TensorMap values = valuesOf(whole.program(), 11);
  for (const QuantizedScaling scaling : {QuantizedScaling::Row, QuantizedScaling::Block128})
    for (const CutMesh &cut : cutMeshes()) {
      SCOPED_TRACE(cut.text());
      Model ranks = quantizedModel(compiler, bindingOf(family, cut.mesh), QuantizedAmax::Current,
                                   cut.levels, scaling);
      ASSERT_TRUE(ranks.ready);
      const TensorMap before = ranks.run(values);
      EXPECT_EQ(eightBitGathers(ranks), 0u);
      ASSERT_TRUE(compiler.run(*ranks.module, createGatherQuantized({.between = 1})))
          << compiler.takeDiagnostics();
      EXPECT_GT(eightBitGathers(ranks), 0u);
      expectSame(ranks.run(values), before, "hydra-gather-quantized");
      ASSERT_TRUE(compiler.run(*ranks.module, createReshard({.between = 1})))
          << compiler.takeDiagnostics();
      expectSame(ranks.run(values), before, "hydra-reshard");
      ranks.lower(values);
      ranks.splitGathers(values);
      if (HasFailure())
        return;
    }
}

// What is a part of a mean is scaled where the mean is taken, and not again where it is moved.
TEST(Partition, ScalesMeansOnce) {
  const char *text = R"(hydra.model @m version 1 {
  hydra.param @w [3] init = normal(1.0)
  hydra.entry @loss(%x: [B, 5, 3] f32) dims(B) {
    %mean = hydra.mean %x axes = [-3]
    %turned = hydra.transpose %mean order = [1, 0]
    %part = hydra.mean %turned axes = [0, 1]
    %w = hydra.use @w
    %own = hydra.sum %w axes = [0]
    %loss = hydra.add %part, %own
    hydra.return loss = %loss
  }
})";
  Compiler compiler;
  BindingOptions binding;
  binding.batch = kBatch;
  binding.programs = {"loss:loss"};
  Model whole(compiler.parse(text), compiler, binding, Mode::Grad);
  ASSERT_TRUE(whole.ready);
  const TensorMap values = valuesOf(whole.program(), 3);
  binding.mesh = {"data:3"};
  Model ranks(compiler.parse(text), compiler, binding, Mode::Grad);
  ranks.partition();
  expectClose(ranks.run(values), whole.run(values), 1e-12);
}

// One chain of adds, accumulator first, then ranks in order: N ranks times M micro-batches have the
// bits of N M micro-batches on one rank.
TEST(Partition, RanksAddUpAsMicroBatchesDo) {
  Compiler compiler;
  for (const Family &family :
       {Family{"CS336", "cs336", "tiny", {}}, Family{"TTT", "ttt", "ref", {}},
        Family{"GPT2Dropout", "gpt2", "tiny", {"dropout=0.2", "attention_dropout=0.2"}}}) {
    SCOPED_TRACE(family.name);
    const std::string path = sourcePath(std::string("models/") + family.model + ".mlir");
    constexpr int64_t batch = 4;
    Model alone(compiler.parseFile(path), compiler, bindingOf(family, {}, batch / 4), Mode::Train,
                /*accumulation=*/4, /*clip=*/false);
    Model four(compiler.parseFile(path), compiler, bindingOf(family, {"data:4"}, batch),
               Mode::Train,
               /*accumulation=*/1, /*clip=*/false);
    Model both(compiler.parseFile(path), compiler, bindingOf(family, {"data:2"}, batch / 2),
               Mode::Train, /*accumulation=*/2, /*clip=*/false);
    TensorMap values = valuesOf(four.program(), 5);
    four.partition();
    both.partition();
    ASSERT_TRUE(alone.ready && four.ready && both.ready);
    const TensorMap wanted = stepOver(alone, values, 4), mixed = stepOver(both, values, 2),
                    onRanks = four.run(values);
    for (auto &[name, tensor] : wanted) {
      EXPECT_TRUE(sameBits(tensor, mixed.lookup(name))) << name.str() << " on 2 ranks";
      EXPECT_TRUE(sameBits(tensor, onRanks.lookup(name))) << name.str() << " on 4 ranks";
    }
  }
}

// What each rank has added up over its micro-batches is exchanged once, by the update: the sums in
// another order, whether parameters are cut or whole, on one axis or two, in slices or not.
TEST(Partition, ExchangesOnceWhatMicroBatchesAddUp) {
  Compiler compiler;
  constexpr int64_t batches = 2;
  for (const Family &family :
       {Family{"CS336", "cs336", "tiny", {}}, Family{"TTT", "ttt", "ref", {}},
        Family{"Megalodon", "megalodon", "ref", {}}}) {
    SCOPED_TRACE(family.name);
    const std::string path = sourcePath(std::string("models/") + family.model + ".mlir");
    Model whole =
        cutModel(compiler, path, bindingOf(family, {}, batches * kBatch), 0, 1, /*clip=*/true);
    ASSERT_TRUE(whole.ready);
    const TensorMap values = valuesOf(whole.program(), 11), wanted = whole.run(values);
    for (const CutMesh &cut : cutMeshes())
      for (const int64_t wholeBelow : {int64_t{0}, int64_t{1} << 40}) {
        SCOPED_TRACE(cut.text() + (wholeBelow ? ", whole" : ", cut"));
        Model ranks = cutModel(compiler, path, bindingOf(family, cut.mesh), wholeBelow, batches,
                               /*clip=*/true, AccumExchange::Last, cut.levels);
        ranks.partition();
        ASSERT_TRUE(ranks.ready);
        // Losses and counts of labels are numbers; nothing else is summed up before the update.
        EXPECT_EQ(ranks.count<ReduceScatterOp>("accumulate"), 0u);
        ranks.program("accumulate").walk([](AllReduceOp sum) {
          EXPECT_EQ(llvm::cast<mlir::RankedTensorType>(sum.getType()).getNumElements(), 1);
        });
        EXPECT_GT(ranks.count<ReduceScatterOp>("apply") + ranks.count<AllReduceOp>("apply"), 0u);
        const TensorMap after = stepOver(ranks, values, batches);
        for (auto &[name, tensor] : after) {
          const RefTensor other = wanted.lookup(name);
          ASSERT_EQ(tensor.shape, other.shape) << name.str();
          for (int64_t i = 0; i < tensor.size(); ++i)
            ASSERT_NEAR(tensor.data[i], other.data[i], 1e-9) << name.str() << "[" << i << "]";
        }
        ranks.lowerCollectives();
        expectSame(stepOver(ranks, values, batches), after, "hydra-lower-collectives");
        if (HasFailure())
          return;
      }
  }
}

namespace {

struct LoopCase {
  const char *name, *code;
  bool exchanges = false; ///< more than sums
};

/// In `@loss(%x [B, S, 9], %t [S, B, 9])` with a parameter `@w [9]`: code that makes `%y`.
const LoopCase kLoops[] = {
    {"a sum over the batch is carried, and its parts are joined", R"(
    %zero = hydra.constant value = 0.0 shape = [1, 9]
    %y0, %total = hydra.scan axis = 0 chunk = 1 over(%row = %t) carry(%sum = %zero) {
      %next = hydra.let %sum + reshape(sum(tanh(%row * @w), [0, 1]), [1, 9])
      hydra.yield %next, %next
    }
    %y = hydra.let reshape(tanh(%y0) * %total, [S, 1, 9]))"},
    {"a mean over the batch is used in the loop", R"(
    %mean = hydra.let mean(%x * @w, [0, 1])
    %zero = hydra.constant value = 0.0 shape = [B, 1, 9]
    %y = hydra.scan axis = 1 chunk = 1 over(%row = %x) carry(%h = %zero) {
      %next = hydra.let tanh(%h + %row * sin(%mean))
      hydra.yield %next
    })"},
    {"one loop in another, rows carried from a parameter", R"(
    %first = hydra.let reshape(broadcast(@w, [B, 9]), [B, 1, 9])
    %start = hydra.constant value = 0.25 shape = [B, 1, 1]
    %y = hydra.scan axis = 1 chunk = 1 over(%row = %x) carry(%h = %first) {
      %u = hydra.let tanh(%h + %row)
      %z, %last = hydra.scan axis = 2 chunk = 1 over(%c = %u) carry(%a = %start) {
        %n = hydra.let sin(%a * 0.5 + %c)
        hydra.yield %n, %n
      }
      %next = hydra.let %z * @w + %last
      hydra.yield %next
    })"},
    {"what is the same comes in beside rows", R"(
    %table = hydra.let sin(iota(axis = 0, shape = [S, 1, 9], dtype = f32)) + @w
    %zero = hydra.constant value = 0.0 shape = [1, B, 9]
    %z, %end = hydra.scan axis = 0 chunk = 1 over(%row = %t, %entry = %table) carry(%h = %zero) {
      %next = hydra.let %h * 0.5 + %row * %entry
      %part = hydra.let %entry * @w
      hydra.yield %part, %next
    }
    %y = hydra.let %z + tanh(sum(%end, [0, 1])))"},
    {"a scan over the batch", R"(
    %zero = hydra.constant value = 0.0 shape = [1, S, 9]
    %y = hydra.scan axis = 0 chunk = 1 over(%row = %x) carry(%h = %zero) {
      %next = hydra.let tanh(%h + %row * @w)
      hydra.yield %next
    })",
     true},
};

} // namespace

TEST(Partition, OfLoopsComputesWhatTheyDo) {
  for (const LoopCase &c : kLoops) {
    SCOPED_TRACE(c.name);
    const std::string text =
        "hydra.model @m version 1 {\n  hydra.param @w [9] init = normal(1.0)\n"
        "  hydra.entry @loss(%x: [B, S, 9] f32, %t: [S, B, 9] f32) dims(B, S) {" +
        std::string(c.code) +
        "\n    %loss = hydra.let sum(%y * %y, axes = [0, 1, 2])\n"
        "    hydra.return loss = %loss, y = %y\n  }\n}\n";
    BindingOptions binding;
    binding.batch = kBatch;
    binding.seq = 10;
    Compiler compiler;
    Model whole(compiler.parse(text), compiler, binding, Mode::Grad);
    ASSERT_TRUE(whole.ready) << text;
    EXPECT_GT(whole.count<LoopOp>(), 1u);
    const TensorMap values = valuesOf(whole.program(), 3), wanted = whole.run(values);
    for (const int64_t ranks : {2, 3, 4}) {
      binding.mesh = {"data:" + std::to_string(ranks)};
      Model parts(compiler.parse(text), compiler, binding, Mode::Grad);
      parts.partition();
      ASSERT_TRUE(parts.ready) << text;
      EXPECT_EQ(parts.count<AllGatherOp>() > 0, c.exchanges) << textOf(*parts.module);
      expectClose(parts.run(values), wanted, 1e-10);
    }
  }
}

namespace {

constexpr uint64_t kShards = 8, kProgramsPerShard = 15;

/// Whether an argument of the entry has the batch in it otherwise than as one dimension.
bool hidesItsBatch(const std::string &text) {
  const size_t entry = text.find("hydra.entry");
  const std::string line = text.substr(entry, text.find(") dims", entry) - entry);
  for (size_t open = line.find('['); open != std::string::npos; open = line.find('[', open + 1)) {
    llvm::SmallVector<llvm::StringRef> dims;
    llvm::StringRef(line).slice(open + 1, line.find(']', open)).split(dims, ',');
    unsigned batches = 0;
    for (llvm::StringRef dim : dims) {
      dim = dim.trim();
      batches += dim == "B";
      if (dim != "B" && dim.contains('B'))
        return true;
    }
    if (batches > 1)
      return true;
  }
  return false;
}

class OfRandomPrograms : public testing::TestWithParam<uint64_t> {};

} // namespace

// What no family does, too: batches that are moved, flattened, summed over in other places, and
// gathered where there is no other way.
TEST_P(OfRandomPrograms, AreThoseOfTheWholeBatch) {
  uint64_t seed = 7000 + GetParam() * 1000;
  for (uint64_t done = 0; done < kProgramsPerShard; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomProgram program = randomProgram(seed, 12, kBatch);
    if (hidesItsBatch(program.layered.text))
      continue;
    ++done;
    Compiler compiler;
    Model whole(compiler.parse(program.layered.text), compiler, program.layered.binding,
                Mode::Grad);
    ASSERT_TRUE(whole.ready) << program.layered.text;
    const TensorMap values = valuesOf(whole.program(), seed), wanted = whole.run(values);
    for (const int64_t ranks : {2, 3, 4}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      BindingOptions binding = program.layered.binding;
      binding.mesh = {"data:" + std::to_string(ranks)};
      Model parts(compiler.parse(program.layered.text), compiler, binding, Mode::Grad);
      parts.partition();
      ASSERT_TRUE(parts.ready) << program.layered.text;
      expectClose(parts.run(values), wanted, 1e-9);
      parts.lower(values);
      if (HasFailure())
        return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Partitions, OfRandomPrograms, testing::Range<uint64_t>(0, kShards));

namespace {

/// A small program over ranks.
std::string collectiveProgram(const std::string &code, const std::string &mesh, int64_t rows) {
  return "hydra.model @m version 1 mesh " + mesh + " bound {symbols = {}} {\n" +
         "  hydra.entry @loss(%x: tensor<" + std::to_string(rows) + "x3xf32>) {\n    " + code +
         "\n    hydra.return y = %y : tensor<" + std::to_string(rows) + "x3xf32>\n  }\n}\n";
}

} // namespace

// y is linear in x: the sum over ranks of g y is that of x with the derivative of g.
TEST(Collectives, HaveTheDerivativesOfTheirSums) {
  struct Case {
    const char *name, *code;
    int64_t rows, results;
  };
  for (const Case &c :
       {Case{"all_gather", "hydra.all_gather %x axis = 0 over = \"d\" ranks = 3 number = 0", 2, 6},
        Case{"all_gather over two axes",
             "hydra.all_gather %x axis = 0 over = \"d*n\" ranks = 6 number = 0", 2, 12},
        Case{"all_to_all", "hydra.all_to_all %x axis = 0 over = \"d\" ranks = 3 number = 0", 6, 6},
        Case{"all_reduce", "hydra.all_reduce %x over = \"d\" ranks = 3", 2, 2},
        Case{"reduce_scatter", "hydra.reduce_scatter %x axis = 0 over = \"d\" ranks = 3", 6, 2}}) {
    SCOPED_TRACE(c.name);
    const std::string type = "tensor<" + std::to_string(c.rows) + "x3xf32>",
                      out = "tensor<" + std::to_string(c.results) + "x3xf32>";
    const std::string text =
        "hydra.model @m version 1 mesh <[\"n\", \"d\"], [2, 3]> bound {symbols = {}} "
        "{\n  hydra.entry @loss(%x: " +
        type + ", %g: " + out + ") {\n    %y = " + c.code + " : " + type +
        "\n    hydra.return y = %y, g = %g : " + out + ", " + out + "\n  }\n}\n";
    Compiler compiler;
    OwningOpRef<ModuleOp> module = compiler.parse(text);
    ASSERT_TRUE(module) << compiler.takeDiagnostics() << text;
    EntryOp entry = programOf(*module);
    mlir::Operation &op = entry.getBody().front().front();
    mlir::OpBuilder b(entry.getReturn());
    llvm::SmallVector<mlir::Value> gradients(op.getNumOperands());
    llvm::cast<DifferentiableOpInterface>(op).vjp(b, entry.getBody().getArgument(1), gradients);
    entry.getReturn().getValuesMutable()[1].assign(gradients[0]);
    std::vector<TensorMap> values;
    for (uint64_t rank = 0; rank < 6; ++rank)
      values.push_back(randomValues(entry, rank + 1));
    llvm::FailureOr<std::vector<TensorMap>> results = interpretRanks(entry, values);
    ASSERT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    double forward = 0.0, backward = 0.0;
    const auto product = [](const RefTensor &a, const RefTensor &b) {
      double sum = 0.0;
      EXPECT_EQ(a.shape, b.shape);
      for (int64_t i = 0; i < a.size(); ++i)
        sum += a.data[i] * b.data[i];
      return sum;
    };
    for (size_t rank = 0; rank < 6; ++rank) {
      forward += product((*results)[rank].lookup("y"), values[rank].lookup("g"));
      backward += product((*results)[rank].lookup("g"), values[rank].lookup("x"));
    }
    EXPECT_NEAR(forward, backward, 1e-12);
    EXPECT_GT(std::abs(forward), 1e-3);
  }
}

// Along either axis of a mesh of two rows of three ranks.
TEST(Collectives, GoAlongTheirAxis) {
  Compiler compiler;
  for (const auto &[axis, ranks] : {std::pair("node", 2), std::pair("gpu", 3)}) {
    const std::string code = "%y = hydra.all_reduce %x over = \"" + std::string(axis) +
                             "\" ranks = " + std::to_string(ranks) + " : tensor<1x3xf32>";
    OwningOpRef<ModuleOp> module =
        compiler.parse(collectiveProgram(code, "<[\"node\", \"gpu\"], [2, 3]>", 1));
    ASSERT_TRUE(module) << compiler.takeDiagnostics();
    std::vector<TensorMap> values(6);
    for (int64_t rank = 0; rank < 6; ++rank)
      values[rank]["x"] = RefTensor({1, 3}, std::pow(10.0, static_cast<double>(rank)));
    llvm::FailureOr<std::vector<TensorMap>> results = interpretRanks(programOf(*module), values);
    ASSERT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    for (int64_t rank = 0; rank < 6; ++rank) {
      const double found = (*results)[rank].lookup("y").data[0];
      const double wanted =
          ranks == 3 ? (rank < 3 ? 111.0 : 111000.0) : std::pow(10.0, rank % 3) * 1001.0;
      EXPECT_EQ(found, wanted) << axis << " rank " << rank;
    }
  }
}

// Over several axes as over one after the other, the last one first.
TEST(Collectives, GatherOverSeveralAxes) {
  Compiler compiler;
  const char *inside =
      R"(%a = hydra.all_gather %x axis = 0 over = "node" ranks = 2 number = 0 : tensor<1x3xf32>
    %y = hydra.all_gather %a axis = 0 over = "gpu" ranks = 3 number = 1 : tensor<2x3xf32>)";
  const char *both =
      R"(%y = hydra.all_gather %x axis = 0 over = "gpu*node" ranks = 6 number = 0 : tensor<1x3xf32>)";
  std::vector<TensorMap> values(6), found[2];
  for (int64_t rank = 0; rank < 6; ++rank)
    values[rank]["x"] = RefTensor({1, 3}, static_cast<double>(rank));
  for (const auto &[i, code] : {std::pair(0, inside), std::pair(1, both)}) {
    const std::string text =
        "hydra.model @m version 1 mesh <[\"node\", \"gpu\"], [2, 3]> bound {symbols = {}} {\n"
        "  hydra.entry @loss(%x: tensor<1x3xf32>) {\n    " +
        std::string(code) + "\n    hydra.return y = %y : tensor<6x3xf32>\n  }\n}\n";
    OwningOpRef<ModuleOp> module = compiler.parse(text);
    ASSERT_TRUE(module) << compiler.takeDiagnostics();
    llvm::FailureOr<std::vector<TensorMap>> results = interpretRanks(programOf(*module), values);
    ASSERT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    found[i] = *results;
  }
  const double ranks[] = {0, 3, 1, 4, 2, 5};
  for (int64_t rank = 0; rank < 6; ++rank) {
    EXPECT_TRUE(sameBits(found[0][rank].lookup("y"), found[1][rank].lookup("y"))) << rank;
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(found[1][rank].lookup("y").data[3 * i], ranks[i]) << i;
  }
}

TEST(Partition, WhatMustBeTheSameIsChecked) {
  Compiler compiler;
  const std::string text = R"(hydra.model @m version 1 mesh <["d"], [2]> bound {symbols = {}} {
  hydra.entry @loss(%x: tensor<2xf32>) rows <2 arguments [0] results [-1]> {
    %y = hydra.neg %x : tensor<2xf32>
    hydra.return y = %y : tensor<2xf32>
  }
})";
  OwningOpRef<ModuleOp> module = compiler.parse(text);
  ASSERT_TRUE(module) << compiler.takeDiagnostics();
  TensorMap values;
  values["x"] = RefTensor({4}, 1.0);
  EXPECT_TRUE(succeeded(interpretBatch(programOf(*module), values)));
  values["x"].data[3] = 2.0;
  EXPECT_FALSE(succeeded(interpretBatch(programOf(*module), values)));
  EXPECT_NE(compiler.takeDiagnostics().find(
                "gives 'y' other values on rank 1 than on rank 0; expected the same"),
            std::string::npos);
}
