// Settings as flags, as options of the compiler, and what their numbers depend on.
#include "test/fuzz/differential/SettingChoices.h"

#include "compiler/driver/ModelOptions.h"
#include "compiler/driver/TuningFlags.h"
#include "runtime/support/Error.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include <CLI/CLI.hpp>

#include <fmt/ranges.h>

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
  app.add_option("--logits", setting.logits)->check(CLI::IsMember({"auto", "f32", "bf16"}));
  app.add_option("--gradients", setting.gradients)->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--layer-precision", setting.layerPrecision)->delimiter(',');
  app.add_option("--fp8-scaling", setting.fp8Scaling)
      ->check(CLI::IsMember({"tensor", "row", "block128"}));
  app.add_option("--fp8-amax", setting.fp8Amax)->check(CLI::IsMember({"current", "delayed"}));
  app.add_option("--fp8-amax-history", setting.fp8AmaxHistory)->check(CLI::Range(1, 1024));
  app.add_option("--fp8-format", setting.fp8Format)->check(CLI::IsMember({"hybrid", "e4m3"}));
  app.add_option("--fp8-keep", setting.fp8Keep);
  app.add_option("--fp8-least", setting.fp8Least)->check(CLI::PositiveNumber);
  app.add_option("--freeze", setting.freeze);
  app.add_option("--lora", setting.lora);
  app.add_option("--accum", setting.accumulation)->check(CLI::PositiveNumber);
  app.add_flag("--no-clip", setting.noClip);
  app.add_option("--clip", setting.clip)->check(CLI::NonNegativeNumber);
  app.add_option("--norm-spike", setting.normSpike)->check(CLI::NonNegativeNumber);
  app.add_flag("--group-norms", setting.groupNorms);
  app.add_flag("--batch-filter", setting.batchFilter);
  app.add_option("--eval-batch", setting.evalBatch)->check(CLI::PositiveNumber);
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
      ->check(CLI::IsMember({"rounded", "int8", "int4"}));
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
  if (std::string problem; !setting.lora.empty() && !parseLora(setting.lora, problem))
    support::fail("setting '{}': --lora: {}", text, problem);
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
  flag("gradients", gradients, plain.gradients);
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
  for (const std::string &pattern : freeze)
    text += " --freeze=" + pattern;
  flag("lora", lora, plain.lora);
  flag("accum", accumulation, plain.accumulation);
  if (noClip)
    text += " --no-clip";
  flag("clip", clip, plain.clip);
  flag("norm-spike", normSpike, plain.normSpike);
  if (groupNorms)
    text += " --group-norms";
  if (batchFilter)
    text += " --batch-filter";
  flag("eval-batch", evalBatch, plain.evalBatch);
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
  compile.tuning = tuning();
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
  compile.logits = logits == "f32"    ? LogitsFormat::F32
                   : logits == "bf16" ? LogitsFormat::BF16
                                      : LogitsFormat::Auto;
  compile.gradients = gradients == "bf16" ? GradientFormat::BF16 : GradientFormat::F32;
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
  compile.weightFormat = weightFormat == "int8"   ? WeightFormat::Int8
                         : weightFormat == "int4" ? WeightFormat::Int4
                                                  : WeightFormat::Rounded;
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

TuningOptions Setting::tuning() const {
  TuningOptions options;
  options.freeze = freeze;
  std::string problem; // there is none: it has been parsed
  if (!lora.empty())
    options.lora = parseLora(lora, problem);
  return options;
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
      "{} {} {} {} {} {} {} {} {} {}", precision, logits, gradients, fmt::join(layerPrecision, ","),
      fp8Scaling, fp8Amax, fp8AmaxHistory, fp8Format, fmt::join(fp8Keep, ","), fp8Least);
  const std::string updates =
      fmt::format("{} {} {} {} {} {} {} {} {} {}", accumulation, noClip, clip, normSpike,
                  groupNorms, batchFilter, evalBatch, average, fmt::join(freeze, ","), lora);
  return fmt::format("{} {} {} {} {} {} {}", modeName(mode).str(), numbers, updates, context,
                     fmt::join(prefill, ","), weightFormat, fmt::join(weightKeep, ","));
}

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
  if (llvm::is_contained(pipeline, kJoinGradients))
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

} // namespace hydra::test
