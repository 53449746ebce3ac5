// Settings as flags, drawn at random, and all of them.
#include "test/fuzz/differential/Setting.h"

#include "compiler/Backends.h"
#include "compiler/driver/ModelOptions.h"
#include "passes/precision/Policy.h"
#include "runtime/support/Error.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include <CLI/CLI.hpp>

#include <fmt/ranges.h>

#include <algorithm>

using llvm::StringRef;

namespace hydra::test {

namespace {

/// passes/Passes.td, which says of every pass whether it is exact.
constexpr const char *kPasses =
#include "test/fuzz/differential/PassesText.inc"
    ;

/// The passes of which Passes.td says one of these.
std::vector<std::string> readPasses(std::initializer_list<StringRef> words) {
  std::vector<std::string> names;
  for (StringRef rest = kPasses; !rest.empty();) {
    auto [before, after] = rest.split(": Pass<\"");
    auto [name, body] = after.split('"');
    const size_t end = body.find(": Pass<\"");
    const StringRef description = body.take_front(end);
    if (llvm::any_of(words, [&](StringRef word) { return description.contains(word); }))
      names.push_back(name.str());
    rest = after;
  }
  return names;
}

/// Passes that can be left out, each once. `trains` and so on: those of one target and mode are
/// chosen by whether a pipeline holds them.
std::vector<std::string> optionalPasses(const Setting &setting) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager manager(&context);
  const std::vector<std::string> present = buildPlanPipeline(manager, setting.compileOptions());
  std::vector<std::string> names;
  for (const PassEntry &pass : pipelinePasses())
    if (!pass.required && llvm::is_contained(present, pass.name) &&
        !llvm::is_contained(names, pass.name))
      names.push_back(pass.name);
  return names;
}

void readRecompute(const std::string &text, CompileOptions &compile) {
  StringRef rest = text;
  (void)rest.consume_front("rowwise,");
  for (auto [word, number] : {std::pair<StringRef, int64_t *>("every=", &compile.replayEvery),
                              std::pair<StringRef, int64_t *>("layers=", &compile.replayLayers)})
    if (rest.consume_front(word)) {
      if (rest.getAsInteger(10, *number) || *number < 1)
        support::fail("--recompute is '{}'; expected {}N", text, word.str());
      compile.recompute =
          text.starts_with("rowwise") ? Recomputation::Rowwise : Recomputation::Light;
      return;
    }
  if (text != "none" && text != "light" && text != "rowwise")
    support::fail("--recompute is '{}'; expected none, light, rowwise, [rowwise,]every=N or "
                  "[rowwise,]layers=K",
                  text);
  compile.recompute = text == "none"    ? Recomputation::None
                      : text == "light" ? Recomputation::Light
                                        : Recomputation::Rowwise;
}

} // namespace

const std::vector<std::string> &numericsChangingPasses(const std::string &target) {
  static const std::vector<std::string> everywhere = readPasses({"*Numerics-changing*"});
  static const std::vector<std::string> onGpus = [] {
    std::vector<std::string> names = readPasses({"*Numerics-changing*", "*Exact on CPUs*"});
    names.insert(names.end(), {"canonicalize", "cse"}); // which shape the groups
    return names;
  }();
  return target == "cpu" ? everywhere : onGpus;
}

Setting Setting::parse(const std::string &text) {
  Setting setting;
  std::string mode = "grad";
  CLI::App app;
  app.set_help_flag();
  app.add_option("--mode", mode)->check(CLI::IsMember({"generate", "forward", "grad", "train"}));
  app.add_option("--target", setting.target);
  app.add_option("-O", setting.level)->check(CLI::Range(0, 2));
  app.add_option("--disable-pass", setting.disabled)->delimiter(',');
  app.add_option("--recompute", setting.recompute);
  app.add_option("--rounded-copies", setting.roundedCopies)
      ->check(CLI::IsMember({"held", "step", "layer"}));
  app.add_flag("--split-master", setting.splitMaster);
  app.add_option("--scan-checkpoint", setting.scanCheckpoint)->check(CLI::PositiveNumber);
  app.add_option("--ce-chunk", setting.ceChunk)->check(CLI::NonNegativeNumber);
  app.add_option("--attention", setting.attention)->check(CLI::IsMember({"flash", "naive"}));
  app.add_option("--precision", setting.precision)
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "f16", "pure_bf16", "fp8"}));
  app.add_option("--logits", setting.logits)->check(CLI::IsMember({"auto", "f32"}));
  app.add_option("--layer-precision", setting.layerPrecision)->delimiter(',');
  app.add_option("--fp8-scaling", setting.fp8Scaling)
      ->check(CLI::IsMember({"tensor", "row", "block128"}));
  app.add_option("--fp8-amax", setting.fp8Amax)->check(CLI::IsMember({"current", "delayed"}));
  app.add_option("--fp8-amax-history", setting.fp8AmaxHistory)->check(CLI::Range(1, 1024));
  app.add_option("--fp8-format", setting.fp8Format)->check(CLI::IsMember({"hybrid", "e4m3"}));
  app.add_option("--fp8-keep", setting.fp8Keep);
  app.add_option("--fp8-least", setting.fp8Least)->check(CLI::PositiveNumber);
  app.add_option("--accum", setting.accumulation)->check(CLI::PositiveNumber);
  app.add_flag("--no-clip", setting.noClip);
  app.add_option("--clip", setting.clip)->check(CLI::NonNegativeNumber);
  app.add_option("--norm-spike", setting.normSpike)->check(CLI::NonNegativeNumber);
  app.add_flag("--group-norms", setting.groupNorms);
  app.add_flag("--batch-filter", setting.batchFilter);
  app.add_option("--average", setting.average);
  app.add_option("--threads", setting.threads)->check(CLI::PositiveNumber);
  app.add_option("--mesh", setting.mesh);
  app.add_option("--reduce", setting.reduce)->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--accum-exchange", setting.accumExchange)->check(CLI::IsMember({"each", "last"}));
  app.add_option("--exchange-bytes", setting.exchangeBytes)->check(CLI::NonNegativeNumber);
  app.add_option("--shard", setting.shard)->check(CLI::IsMember({"ddp", "zero1", "fsdp"}));
  app.add_option("--shard-levels", setting.shardLevels)->check(CLI::PositiveNumber);
  app.add_option("--whole-below", setting.wholeBelow)->check(CLI::NonNegativeNumber);
  app.add_option("--reshard", setting.reshard)->check(CLI::IsMember({"always", "auto", "never"}));
  app.add_option("--context", setting.context)->check(CLI::PositiveNumber);
  app.add_option("--prefill", setting.prefill)->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--weight-format", setting.weightFormat)
      ->check(CLI::IsMember({"rounded", "int8"}));
  app.add_option("--weight-keep", setting.weightKeep);
  app.add_option("--offload-least", setting.offloadLeast)->check(CLI::NonNegativeNumber);
  std::string offload = "none";
  app.add_option("--offload", offload)->check(CLI::IsMember({"none", "optimizer"}));
  app.add_flag("--plain-code", setting.plainCode);
  try {
    app.parse(text);
  } catch (const CLI::ParseError &error) {
    support::fail("setting '{}': {}", text, error.what());
  }
  setting.mode = mode == "generate"  ? Mode::Generate
                 : mode == "forward" ? Mode::Forward
                 : mode == "grad"    ? Mode::Grad
                                     : Mode::Train;
  setting.offload = offload == "optimizer";
  if (UpdateOptions update; !setting.average.empty() && !readAverage(setting.average, update))
    support::fail("setting '{}': --average is '{}'", text, setting.average);
  Target::named(setting.target);
  const std::vector<PassEntry> passes = pipelinePasses();
  for (const std::string &name : setting.disabled)
    if (llvm::none_of(passes, [&](const PassEntry &p) { return p.name == name && !p.required; }))
      support::fail("setting '{}': '{}' is no pass that can be left out", text, name);
  setting.compileOptions();
  return setting;
}

std::string Setting::text() const {
  const Setting plain;
  std::string text = "--mode=" + modeName(mode).str();
  const auto flag = [&](const std::string &name, const auto &value, const auto &usual) {
    if (value != usual)
      text += fmt::format(" --{}={}", name, value);
  };
  flag("target", target, plain.target);
  if (level != plain.level)
    text += fmt::format(" -O{}", level);
  for (const std::string &name : disabled)
    text += " --disable-pass=" + name;
  flag("recompute", recompute, plain.recompute);
  flag("rounded-copies", roundedCopies, plain.roundedCopies);
  if (splitMaster)
    text += " --split-master";
  flag("scan-checkpoint", scanCheckpoint, plain.scanCheckpoint);
  flag("ce-chunk", ceChunk, plain.ceChunk);
  flag("attention", attention, plain.attention);
  flag("precision", precision, plain.precision);
  flag("logits", logits, plain.logits);
  for (const std::string &rule : layerPrecision)
    text += " --layer-precision=" + rule;
  flag("fp8-scaling", fp8Scaling, plain.fp8Scaling);
  flag("fp8-amax", fp8Amax, plain.fp8Amax);
  flag("fp8-amax-history", fp8AmaxHistory, plain.fp8AmaxHistory);
  flag("fp8-format", fp8Format, plain.fp8Format);
  if (fp8Keep != plain.fp8Keep)
    for (const std::string &pattern : fp8Keep)
      text += " --fp8-keep=" + pattern;
  flag("fp8-least", fp8Least, plain.fp8Least);
  flag("accum", accumulation, plain.accumulation);
  if (noClip)
    text += " --no-clip";
  flag("clip", clip, plain.clip);
  flag("norm-spike", normSpike, plain.normSpike);
  if (groupNorms)
    text += " --group-norms";
  if (batchFilter)
    text += " --batch-filter";
  flag("average", average, plain.average);
  flag("threads", threads, plain.threads);
  flag("mesh", mesh, plain.mesh);
  flag("shard", shard, plain.shard);
  flag("shard-levels", shardLevels, plain.shardLevels);
  flag("whole-below", wholeBelow, plain.wholeBelow);
  flag("reshard", reshard, plain.reshard);
  flag("reduce", reduce, plain.reduce);
  flag("accum-exchange", accumExchange, plain.accumExchange);
  flag("exchange-bytes", exchangeBytes, plain.exchangeBytes);
  if (offload)
    text += " --offload=optimizer";
  flag("offload-least", offloadLeast, plain.offloadLeast);
  flag("context", context, plain.context);
  if (prefill != plain.prefill)
    text += fmt::format(" --prefill={}", fmt::join(prefill, ","));
  flag("weight-format", weightFormat, plain.weightFormat);
  for (const std::string &pattern : weightKeep)
    text += " --weight-keep=" + pattern;
  if (plainCode)
    text += " --plain-code";
  return text;
}

CompileOptions Setting::compileOptions() const {
  CompileOptions compile;
  compile.target = Target::named(target);
  compile.mode = mode;
  compile.context = context;
  compile.accumulation = accumulation;
  compile.clip = !noClip;
  compile.level = level;
  readRecompute(recompute, compile);
  compile.roundedCopies = roundedCopies == "held"    ? RoundedCopies::Held
                          : roundedCopies == "step"  ? RoundedCopies::Step
                          : roundedCopies == "layer" ? RoundedCopies::Layer
                                                     : RoundedCopies::Auto;
  compile.splitMaster = splitMaster;
  compile.scanCheckpoint = scanCheckpoint;
  compile.ceChunk = ceChunk;
  compile.precision = precision;
  compile.logits = logits == "f32" ? LogitsFormat::F32 : LogitsFormat::Auto;
  compile.layerPrecision = layerPrecision;
  compile.quantization = quantization();
  compile.attention = attention == "naive" ? AttentionForm::Naive : AttentionForm::Flash;
  for (const std::string &name : disabled)
    compile.disabled.insert(name);
  compile.binding.mesh = meshAxes();
  compile.sharding = shard == "fsdp"    ? Sharding::Fsdp
                     : shard == "zero1" ? Sharding::Zero1
                                        : Sharding::Ddp;
  compile.shardLevels = shardLevels;
  compile.resharding = reshard == "auto"    ? Resharding::Auto
                       : reshard == "never" ? Resharding::Never
                                            : Resharding::Always;
  compile.wire = reduce == "bf16" ? WireFormat::BF16 : WireFormat::F32;
  compile.update = update();
  compile.exchangeBytes = exchangeBytes;
  compile.wholeBelow = wholeBelow;
  compile.weightFormat = weightFormat == "int8" ? WeightFormat::Int8 : WeightFormat::Rounded;
  compile.weightKeep = weightKeep;
  compile.offload = offload ? Offload::Optimizer : Offload::None;
  compile.offloadLeast = offloadLeast;
  return compile;
}

QuantizationOptions Setting::quantization() const {
  QuantizationOptions all;
  all.format = fp8Format == "e4m3" ? QuantizedFormat::E4M3 : QuantizedFormat::Hybrid;
  all.amaxHistory = fp8AmaxHistory;
  all.keep = fp8Keep;
  all.least = fp8Least;
  for (const QuantizedScaling scaling : {QuantizedScaling::Row, QuantizedScaling::Block128})
    if (fp8Scaling == scalingName(scaling))
      all.scaling = scaling;
  all.amax = fp8Amax == "delayed" ? QuantizedAmax::Delayed : QuantizedAmax::Current;
  return all;
}

UpdateOptions Setting::update() const {
  UpdateOptions options;
  if (!average.empty())
    readAverage(average, options); // it has been parsed
  options.normSpike = normSpike > 0;
  options.groupNorms = groupNorms;
  options.batchFilter = batchFilter;
  options.exchange = accumExchange == "last" ? AccumExchange::Last : AccumExchange::Each;
  return options;
}

std::vector<std::string> Setting::meshAxes() const {
  std::vector<std::string> axes;
  for (StringRef rest = mesh; !rest.empty();) {
    auto [axis, others] = rest.split(',');
    axes.push_back(axis.str());
    rest = others;
  }
  return axes;
}

std::string Setting::oracleKey() const {
  const std::string numbers = fmt::format(
      "{} {} {} {} {} {} {} {} {}", precision, logits, fmt::join(layerPrecision, ","), fp8Scaling,
      fp8Amax, fp8AmaxHistory, fp8Format, fmt::join(fp8Keep, ","), fp8Least);
  const std::string updates = fmt::format("{} {} {} {} {} {} {}", accumulation, noClip, clip,
                                          normSpike, groupNorms, batchFilter, average);
  return fmt::format("{} {} {} {} {} {} {}", modeName(mode).str(), numbers, updates, context,
                     fmt::join(prefill, ","), weightFormat, fmt::join(weightKeep, ","));
}

/// What it can join depends on what exact passes in front of it have left.
constexpr llvm::StringLiteral kJoin = "hydra-join-weight-gradients";

std::string Setting::bitsKey() const {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager manager(&context);
  std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {}", oracleKey(), target, scanCheckpoint, ceChunk,
                  attention, mesh, shard, shardLevels, wholeBelow, reduce, accumExchange);
  const std::vector<std::string> pipeline = buildPlanPipeline(manager, compileOptions());
  for (const std::string &name : pipeline)
    if (llvm::is_contained(numericsChangingPasses(target), name))
      key += " " + name;
  if (llvm::is_contained(pipeline, kJoin))
    key += fmt::format(" joined {} {}", recompute, fmt::join(disabled, ","));
  if (target !=
      "cpu") { // required passes have a lesser form below -O2, and where they are left out
    key += fmt::format(" -O{} {} {}", level, recompute, roundedCopies);
    for (const std::string &name : disabled)
      if (llvm::is_contained(numericsChangingPasses(target), name))
        key += " without " + name;
  }
  return key;
}

namespace {

/// Meshes that the batch can be dealt out to.
std::vector<std::string> meshesOf(const SettingRange &range) {
  std::vector<std::string> meshes;
  if (range.target != "cpu" || range.batch == 0)
    return meshes;
  for (const auto &[ranks, mesh] : {std::pair<int64_t, const char *>(2, "data:2"),
                                    {3, "data:3"},
                                    {4, "data:4"},
                                    {4, "node:2,data:2"},
                                    {6, "node:2,data:3"}})
    if (range.batch % ranks == 0)
      meshes.emplace_back(mesh);
  return meshes;
}

/// Over how many of their axes ranks can share out.
std::vector<int64_t> levelsOf(const std::string &mesh, StringRef shard) {
  return shard != "ddp" && StringRef(mesh).contains(',') ? std::vector<int64_t>{1, 2}
                                                         : std::vector<int64_t>{1};
}

/// Whether it matters for numbers which parameters a matmul reads: a history of scales has a row
/// for each operand, and where some are joined with one that stays in bf16, or is small, all of
/// them stay.
bool tellsOperandsApart(const Setting &setting) {
  const Setting plain;
  return setting.precision == "fp8" &&
         (setting.fp8Amax == "delayed" || setting.fp8Keep != plain.fp8Keep ||
          setting.fp8Least != plain.fp8Least);
}

/// Operands of the oracle are the model's own: what makes other matmuls of them is left out, and
/// what makes a history is not.
void keepOperands(Setting &setting) {
  if (!tellsOperandsApart(setting))
    return;
  if (setting.fp8Amax == "delayed")
    std::erase(setting.disabled, "hydra-quantize-matmuls");
  const std::vector<std::string> optional = optionalPasses(setting);
  for (const char *name :
       {"hydra-fuse-qkv", "hydra-fuse-gate-up", "hydra-fuse-siblings", "hydra-raise-linear-ce"})
    if (llvm::is_contained(optional, name) && !llvm::is_contained(setting.disabled, name))
      setting.disabled.emplace_back(name);
}

/// Whether a target multiplies integers by rows in the precision.
bool multipliesInt8(const Setting &setting) {
  const support::DType format = precisionPolicy(setting.precision)->format;
  const bool narrow = backendOf(Target::named(setting.target)).wants().narrowInt8Rows;
  return format != support::DType::TF32 && !(narrow && format == support::DType::F32);
}

class Draw {
public:
  Draw(uint64_t number, const SettingRange &range) : number(number), random(number), range(range) {}

  Setting any() {
    Setting setting;
    setting.target = range.target;
    setting.mode = mode();
    setting.level = static_cast<unsigned>(random.pick<int64_t>({0, 0, 1, 2, 2, 2}));
    if (random.chance(0.3))
      setting.precision = random.pick<std::string>({"tf32", "bf16", "f16", "pure_bf16", "fp8"});
    if (setting.precision != "fp32" && setting.mode != Mode::Generate && random.chance(0.25))
      setting.logits = "f32";
    if (setting.precision == "fp8" && random.chance(0.6))
      setting.fp8Scaling = random.pick<std::string>({"row", "block128"});
    else if (setting.precision == "fp8" && setting.mode == Mode::Train && random.chance(0.5))
      setting.fp8Amax = "delayed";
    if (setting.precision == "fp8")
      drawQuantization(setting);
    if (!range.parameters.empty() && random.chance(0.15))
      drawLayerPrecision(setting);
    if (random.chance(0.2))
      setting.attention = "naive";
    if (random.chance(0.4))
      setting.ceChunk = random.between(1, 7);
    if (setting.mode == Mode::Generate) {
      setting.context = random.between(8, 40);
      setting.prefill = {random.between(2, 8)};
      if (random.chance(0.5))
        setting.prefill.push_back(random.between(9, 40));
      std::erase_if(setting.prefill, [&](int64_t n) { return n > setting.context; });
      if (range.int8 && multipliesInt8(setting) && random.chance(0.5)) {
        setting.weightFormat = "int8";
        if (!range.parameters.empty() && random.chance(0.4))
          setting.weightKeep = {"*" + random.pick(range.parameters)};
      }
    }
    if (hasBackward(setting.mode)) {
      if (random.chance(0.4))
        setting.scanCheckpoint = random.between(2, 4);
      if (setting.level == 2 && random.chance(0.5))
        setting.recompute =
            random.pick<std::string>({"none", "rowwise", "every=1", "every=2", "layers=1",
                                      "rowwise,every=1", "rowwise,every=2", "rowwise,layers=2"});
      if (setting.level == 2 && precisionPolicy(setting.precision)->roundsParameters() &&
          random.chance(0.6))
        setting.roundedCopies = setting.mode == Mode::Train
                                    ? random.pick<std::string>({"held", "step", "layer"})
                                    : random.pick<std::string>({"step", "layer"});
    }
    if (setting.mode == Mode::Train) {
      if (random.chance(0.4))
        setting.accumulation = random.between(2, 3);
      if (random.chance(0.4))
        setting.noClip = true;
      else if (random.chance(0.5))
        setting.clip = random.pick<double>({0.01, 0.5, 100.0});
      if (!setting.noClip && random.chance(0.2))
        setting.normSpike = random.pick<double>({0.01, 0.5, 100.0});
      setting.groupNorms = !setting.noClip && random.chance(0.2);
      setting.batchFilter = random.chance(0.2);
      if (random.chance(0.2))
        setting.average = random.pick<std::string>(
            {"ema,decay=0.5", "ema,decay=0.9", "swa,from=1", "swa,from=2"});
      setting.offload = random.chance(0.3);
      if (setting.offload && random.chance(0.3))
        setting.offloadLeast = 128;
    }
    if (setting.mode != Mode::Generate && (range.ranks || random.chance(0.5)))
      drawMesh(setting);
    if (!setting.mesh.empty() && hasBackward(setting.mode) && random.chance(0.3))
      setting.reduce = "bf16";
    if (!setting.mesh.empty() && setting.accumulation > 1 && random.chance(0.5))
      setting.accumExchange = "last";
    if (!setting.mesh.empty() && random.chance(0.3))
      setting.exchangeBytes = 0;
    const PrecisionPolicy &policy = *precisionPolicy(setting.precision);
    if (setting.mode == Mode::Train && policy.format == support::DType::BF16 &&
        policy.roundsParameters() && setting.shard != "zero1" && random.chance(0.4))
      setting.splitMaster = true;
    leaveOut(setting);
    if (number % 4 == 0) // then levels and passes may differ without other bits
      for (const std::string &name : numericsChangingPasses("cpu"))
        if (llvm::is_contained(optionalPasses(setting), name) && name != "hydra-nest-loops" &&
            name != "hydra-decompose-attention" && name != "hydra-split-master")
          setting.disabled.push_back(name);
    // With that pass bits are seldom comparable: bitsKey.
    if (const std::string name = kJoin.str(); random.chance(0.5) &&
                                              llvm::is_contained(optionalPasses(setting), name) &&
                                              !llvm::is_contained(setting.disabled, name))
      setting.disabled.push_back(name);
    keepOperands(setting);
    setting.threads = range.target == "cpu" && random.chance(0.5) ? 2 : 1;
    setting.plainCode = range.target == "cpu" && random.chance(0.95);
    return setting;
  }

  /// The same but for exact passes, the level and threads; nothing where the draw finds none.
  std::optional<Setting> exactVariant(const Setting &like) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      Setting setting = changed(like);
      if (setting.bitsKey() == like.bitsKey())
        return setting;
    }
    return std::nullopt;
  }

private:
  Setting changed(const Setting &like) {
    Setting setting = like;
    if (range.target == "cpu")
      setting.level = static_cast<unsigned>(random.between(0, 2));
    if (setting.level < 2)
      setting.recompute = "light", setting.roundedCopies = "auto";
    else if (range.target == "cpu" && setting.level == 2 && hasBackward(setting.mode))
      setting.recompute = random.pick<std::string>({"light", "none", "rowwise", "every=2"});
    if (setting.mode == Mode::Train)
      setting.offload = random.chance(0.5);
    if (!setting.offload)
      setting.offloadLeast = 0;
    const std::vector<std::string> optional = optionalPasses(setting);
    for (const std::string &name : optional)
      if (!llvm::is_contained(numericsChangingPasses(range.target), name) && random.chance(0.3) &&
          !llvm::is_contained(setting.disabled, name))
        setting.disabled.push_back(name);
    dropUnused(setting);
    keepOperands(setting);
    setting.threads = range.target == "cpu" ? 3 - like.threads : 1;
    setting.plainCode = range.target == "cpu" && random.chance(0.95);
    return setting;
  }

  /// Rules that change no layer are refused.
  void drawLayerPrecision(Setting &setting) {
    const auto format = [&] { return random.pick<std::string>({":fp32", ":tf32"}); };
    if (random.chance(0.5))
      setting.layerPrecision.push_back("*" + random.pick(range.parameters) + format());
    if (setting.layerPrecision.empty() || random.chance(0.3))
      setting.layerPrecision.push_back("*" + format());
  }

  void drawQuantization(Setting &setting) {
    if (random.chance(0.3))
      setting.fp8Format = "e4m3";
    if (setting.fp8Amax == "delayed" && random.chance(0.7))
      setting.fp8AmaxHistory = random.between(1, 3);
    if (random.chance(0.4)) {
      setting.fp8Keep = {"default"};
      if (!range.parameters.empty() && random.chance(0.7))
        setting.fp8Keep = {"*" + random.pick(range.parameters)};
    }
    if (random.chance(0.2))
      setting.fp8Least = random.between(2, 8);
  }

  /// Where there are some of several axes, every second one; most of those share out along both.
  void drawMesh(Setting &setting) {
    std::vector<std::string> meshes = meshesOf(range);
    if (meshes.empty())
      return;
    const auto isFlat = [](StringRef mesh) { return !mesh.contains(','); };
    if (!llvm::all_of(meshes, isFlat) && random.chance(0.5))
      llvm::erase_if(meshes, isFlat);
    setting.mesh = random.pick(meshes);
    if (setting.mode != Mode::Grad && random.chance(0.6))
      setting.shard = random.pick<std::string>({"zero1", "fsdp", "fsdp"});
    if (setting.shard == "ddp")
      return;
    if (setting.meshAxes().size() > 1 && random.chance(0.7))
      setting.shardLevels = 2;
    if (random.chance(0.3))
      setting.wholeBelow = 64;
    if (setting.shard == "fsdp" && random.chance(0.4))
      setting.reshard = random.pick<std::string>({"auto", "never"});
  }

  Mode mode() {
    if (range.ranks && llvm::is_contained(range.modes, Mode::Train))
      return Mode::Train;
    std::vector<Mode> weighted;
    for (const Mode mode : range.modes)
      weighted.insert(weighted.end(), !hasBackward(mode) ? 1 : mode == Mode::Grad ? 3 : 2, mode);
    return random.pick(weighted);
  }

  void leaveOut(Setting &setting) {
    const std::vector<std::string> optional = optionalPasses(setting);
    if (optional.empty() || random.chance(0.25))
      return;
    // All numbers together leave out each pass; one number alone its own and perhaps more.
    setting.disabled.push_back(optional[(number + drawn++) % optional.size()]);
    const double share = random.pick<double>({0.0, 0.0, 0.0, 0.2, 0.6});
    for (const std::string &name : optional)
      if (random.chance(share) && !llvm::is_contained(setting.disabled, name))
        setting.disabled.push_back(name);
    // Few settings have this pass at all; half of them are without it.
    const std::string rare = "hydra-keep-quantized";
    if (number % 2 == 0 && llvm::is_contained(optional, rare) &&
        !llvm::is_contained(setting.disabled, rare) && setting.fp8Amax == "delayed")
      setting.disabled.push_back(rare);
    dropUnused(setting);
  }

  /// What hydrac refuses: flags for passes that are left out.
  static void dropUnused(Setting &setting) {
    const auto without = [&](const char *name) {
      return llvm::is_contained(setting.disabled, name);
    };
    if (setting.level < 2 || without("hydra-recompute"))
      setting.recompute = "light";
    if (setting.level < 2 || without("hydra-recompute") || without("hydra-keep-rounded"))
      setting.roundedCopies = "auto";
    if (without("hydra-split-master"))
      setting.splitMaster = false;
    if (without("hydra-nest-loops"))
      setting.scanCheckpoint = 1;
    if (without("hydra-decompose-attention"))
      setting.attention = "flash";
    if (without("hydra-offload-moments"))
      setting.offload = false;
    if (!setting.offload)
      setting.offloadLeast = 0;
    if (without("hydra-reshard"))
      setting.reshard = "always";
  }

  uint64_t number, drawn = 0;
  Random random;
  const SettingRange &range;
};

} // namespace

std::vector<Setting> drawSettings(uint64_t number, unsigned count, const SettingRange &range) {
  Draw draw(number, range);
  std::vector<Setting> settings;
  while (settings.size() < count) {
    if (settings.size() % 2 == 1 && number % 2 == 0)
      if (const std::optional<Setting> variant = draw.exactVariant(settings.back())) {
        settings.push_back(*variant);
        continue;
      }
    settings.push_back(draw.any());
  }
  return settings;
}

std::vector<Setting> allSettings(const SettingRange &range) {
  std::vector<Setting> settings;
  for (const Mode mode : range.modes) {
    Setting plain;
    plain.mode = mode;
    plain.target = range.target;
    const auto add = [&](auto change) {
      Setting setting = plain;
      change(setting);
      settings.push_back(setting);
    };
    for (unsigned level = 0; level <= 2; ++level)
      add([&](Setting &s) { s.level = level; });
    if (range.target == "cpu") {
      add([](Setting &s) { s.threads = 2; });
      add([](Setting &s) { s.plainCode = true; });
    }
    for (const std::string &name : optionalPasses(plain))
      add([&](Setting &s) { s.disabled = {name}; });
    for (const char *precision : {"tf32", "bf16", "f16", "pure_bf16"})
      for (unsigned level = 0; level <= 2; ++level)
        add([&](Setting &s) {
          s.precision = precision;
          s.level = level;
        });
    for (unsigned level : {0u, 2u})
      add([&](Setting &s) {
        s.attention = "naive";
        s.level = level;
      });
    for (const int64_t chunk : {1, 3})
      add([&](Setting &s) { s.ceChunk = chunk; });
    if (mode == Mode::Generate && range.int8)
      for (const char *precision : {"fp32", "bf16", "f16", "pure_bf16", "fp8"})
        for (unsigned level : {0u, 2u})
          for (const bool keeps : {false, true}) {
            Setting held = plain;
            held.precision = precision;
            held.level = level;
            held.weightFormat = "int8";
            if (keeps && !range.parameters.empty())
              held.weightKeep = {"*" + range.parameters.back()};
            if (multipliesInt8(held))
              settings.push_back(held);
          }
    const std::vector<std::string> meshes =
        mode == Mode::Generate ? std::vector<std::string>() : meshesOf(range);
    for (const std::string &mesh : meshes)
      for (unsigned level : {0u, 2u})
        for (const char *shard : {"ddp", "zero1", "fsdp"})
          for (const int64_t levels : levelsOf(mesh, shard))
            if (mode != Mode::Grad || StringRef(shard) == "ddp")
              add([&](Setting &s) {
                s.mesh = mesh;
                s.level = level;
                s.shard = shard;
                s.shardLevels = levels;
              });
    if (hasBackward(mode))
      for (const std::string &mesh : meshes)
        add([&](Setting &s) {
          s.mesh = mesh;
          s.reduce = "bf16";
        });
    if (mode == Mode::Train)
      for (const std::string &mesh : meshes)
        for (const char *shard : {"ddp", "zero1", "fsdp"})
          for (const int64_t levels : levelsOf(mesh, shard))
            for (const char *reduce : {"f32", "bf16"})
              add([&](Setting &s) {
                s.mesh = mesh;
                s.shard = shard;
                s.shardLevels = levels;
                s.reduce = reduce;
                s.accumulation = 2;
                s.accumExchange = "last";
              });
    if (!hasBackward(mode))
      continue;
    for (const char *recompute : {"none", "rowwise", "every=1", "rowwise,every=2", "layers=1"})
      add([&](Setting &s) { s.recompute = recompute; });
    for (const char *copies : {"step", "layer"})
      add([&](Setting &s) {
        s.precision = "bf16";
        s.roundedCopies = copies;
      });
    for (unsigned level = 0; mode == Mode::Train && level <= 2; ++level)
      add([&](Setting &s) {
        s.precision = "bf16";
        s.splitMaster = true;
        s.level = level;
      });
    for (const int64_t chunks : {2, 3})
      add([&](Setting &s) { s.scanCheckpoint = chunks; });
    if (mode != Mode::Train)
      continue;
    for (const bool keeps : {false, true})
      for (const int64_t accumulation : {1, 2})
        add([&](Setting &s) {
          s.precision = "fp8";
          s.fp8Amax = "delayed";
          s.accumulation = accumulation;
          if (!keeps)
            s.disabled = {"hydra-keep-quantized"};
          keepOperands(s);
        });
    for (const std::string &mesh : meshes)
      for (const char *shard : {"zero1", "fsdp"})
        for (const char *amax : {"current", "delayed"})
          add([&](Setting &s) {
            s.mesh = mesh;
            s.shard = shard;
            s.shardLevels = levelsOf(mesh, shard).back();
            s.precision = "fp8";
            s.fp8Amax = amax;
            keepOperands(s);
          });
    add([](Setting &s) { s.noClip = true; });
    add([](Setting &s) { s.clip = 0.05; });
    add([](Setting &s) {
      s.normSpike = 0.05;
      s.groupNorms = s.batchFilter = true;
    });
    for (const char *average : {"ema,decay=0.5", "swa,from=2"})
      add([&](Setting &s) { s.average = average; });
    for (const std::string &mesh : meshes)
      for (const char *shard : {"zero1", "fsdp"})
        for (const double clip : {0.0, 0.05})
          for (const bool whole : {false, true})
            add([&](Setting &s) {
              s.mesh = mesh;
              s.shard = shard;
              s.shardLevels = levelsOf(mesh, shard).back();
              s.clip = clip;
              s.noClip = clip == 0.0;
              s.wholeBelow = whole ? 64 : 0;
              s.reshard = whole && s.shard == "fsdp" ? "never" : "always";
            });
    for (const char *format : {"hybrid", "e4m3"})
      for (const bool keeps : {false, true})
        add([&](Setting &s) {
          s.precision = "fp8";
          s.fp8Format = format;
          if (keeps)
            s.fp8Keep = {"default"};
          keepOperands(s);
        });
    for (const bool noClip : {false, true})
      add([&](Setting &s) {
        s.offload = true;
        s.noClip = noClip;
      });
    for (unsigned level : {0u, 2u})
      add([&](Setting &s) {
        s.accumulation = 2;
        s.level = level;
      });
  }
  return settings;
}

} // namespace hydra::test
