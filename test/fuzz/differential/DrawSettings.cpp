// Settings of one program, drawn at random.
#include "test/fuzz/differential/SettingChoices.h"

#include "passes/precision/Policy.h"
#include "test/support/Random.h"

#include <fmt/format.h>

#include <algorithm>

using llvm::StringRef;

namespace hydra::test {

namespace {

class Draw {
public:
  Draw(uint64_t number, const SettingRange &range) : number(number), random(number), range(range) {}

  Setting any() {
    Setting setting;
    setting.target = range.target;
    setting.mode = mode();
    setting.level = fusesMost() ? 2 : random.pick<int64_t>({0, 0, 1, 2, 2, 2});
    if (random.chance(range.compileOnly ? 0.7 : 0.3))
      setting.precision =
          random.pick<std::string>({"tf32", "bf16", "f16", "pure_bf16", "fp8", "fp8"});
    if (setting.precision != "fp32" && setting.mode != Mode::Generate && random.chance(0.25))
      setting.logits =
          precisionPolicy(setting.precision)->format == support::DType::BF16 && random.chance(0.5)
              ? "bf16"
              : "f32";
    if (precisionPolicy(setting.precision)->narrowsGradients() && hasBackward(setting.mode) &&
        random.chance(0.4))
      setting.gradients = "bf16";
    if (setting.precision == "fp8")
      drawQuantization(setting);
    if (!range.parameters.empty() && random.chance(0.15))
      drawLayerPrecision(setting);
    if (random.chance(0.2))
      setting.attention = "naive";
    if (random.chance(0.4))
      setting.ceChunk = random.between(1, 7);
    if (setting.mode == Mode::Generate)
      drawReading(setting);
    if (hasBackward(setting.mode))
      drawBackward(setting);
    if (setting.mode == Mode::Train)
      drawUpdates(setting);
    drawTuning(setting);
    if (setting.mode != Mode::Generate && (range.ranks || random.chance(0.5)))
      drawMesh(setting);
    if (!setting.mesh.empty())
      drawExchange(setting);
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
    if (const std::string name = kJoinGradients;
        random.chance(0.5) && llvm::is_contained(optionalPasses(setting), name) &&
        !llvm::is_contained(setting.disabled, name))
      setting.disabled.push_back(name);
    keepOperands(setting);
    setting.threads = range.target == "cpu" && random.chance(0.5) ? 2 : 1;
    setting.plainCode = drawPlainCode();
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
    setting.plainCode = drawPlainCode();
    return setting;
  }

  /// Rules that change no layer are refused.
  void drawLayerPrecision(Setting &setting) {
    const auto format = [&] { return random.pick<std::string>({":fp32", ":tf32"}); };
    if (random.chance(0.5))
      setting.layerPrecision.push_back(
          "*" + random.pick(range.linearWeights.empty() ? range.parameters : range.linearWeights) +
          format());
    if (setting.layerPrecision.empty() || random.chance(0.3))
      setting.layerPrecision.push_back("*" + format());
  }

  void drawReading(Setting &setting) {
    setting.context = random.between(8, 40);
    setting.prefill = {random.between(2, 8)};
    if (random.chance(0.5))
      setting.prefill.push_back(random.between(9, 40));
    std::erase_if(setting.prefill, [&](int64_t n) { return n > setting.context; });
    if (range.int8 && multipliesInt8(setting) && random.chance(0.5)) {
      setting.weightFormat = range.int4 && random.chance(0.5) ? "int4" : "int8";
      if (!range.parameters.empty() && random.chance(0.4))
        setting.weightKeep = {"*" + random.pick(range.parameters)};
    }
  }

  void drawBackward(Setting &setting) {
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

  void drawUpdates(Setting &setting) {
    if (random.chance(0.4))
      setting.accumulation = random.between(2, 3);
    if (random.chance(range.compileOnly ? 0.7 : 0.4))
      setting.noClip = true;
    else if (random.chance(0.5))
      setting.clip = random.pick<double>({0.01, 0.5, 100.0});
    if (!setting.noClip && random.chance(0.2))
      setting.normSpike = random.pick<double>({0.01, 0.5, 100.0});
    setting.groupNorms = !setting.noClip && random.chance(0.2);
    setting.batchFilter = random.chance(0.2);
    if (range.batch > 0 && random.chance(0.2)) // other programs have other shapes
      setting.evalBatch = range.batch * 2;
    if (random.chance(0.2))
      setting.average =
          random.pick<std::string>({"ema,decay=0.5", "ema,decay=0.9", "swa,from=1", "swa,from=2"});
    setting.offload = random.chance(0.3);
    if (setting.offload && random.chance(0.3))
      setting.offloadLeast = 128;
  }

  void drawTuning(Setting &setting) {
    if (hasBackward(setting.mode) && range.parameters.size() > 1 && random.chance(0.12))
      setting.freeze = {"*" + random.pick(range.parameters)};
    if (range.linearWeights.empty() || !random.chance(0.15))
      return;
    std::string targets = "*" + random.pick(range.linearWeights);
    if (const std::string other = "*" + random.pick(range.linearWeights);
        other != targets && random.chance(0.5))
      targets += "," + other;
    setting.lora = fmt::format("rank={},alpha={},targets={}", random.between(1, 2),
                               random.pick<std::string>({"1", "2", "0.75"}), targets);
  }

  void drawQuantization(Setting &setting) {
    if (setting.mode == Mode::Train && random.chance(0.4))
      setting.fp8Amax = "delayed";
    else if (random.chance(0.6))
      setting.fp8Scaling = random.pick<std::string>({"row", "block128"});
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

  void drawExchange(Setting &setting) {
    if (hasBackward(setting.mode) && random.chance(0.3))
      setting.reduce = "bf16";
    if (setting.accumulation > 1 && random.chance(0.5))
      setting.accumExchange = "last";
    if (random.chance(0.3))
      setting.exchangeBytes = 0;
  }

  /// Passes that fuse steps for kernels of GPUs need all that comes before them, so half of what is
  /// only compiled has it; it has more updates without a norm, and in fewer bits, for the same.
  bool fusesMost() { return range.compileOnly && random.chance(0.5); }

  /// NVRTC takes some seconds.
  bool drawPlainCode() {
    if (range.target == "cpu")
      return random.chance(0.95);
    return range.compileOnly && (random.chance(0.99) || !canHaveCode(range));
  }

  Mode mode() {
    if (range.ranks && llvm::is_contained(range.modes, Mode::Train))
      return Mode::Train;
    std::vector<Mode> weighted;
    for (const Mode mode : range.modes)
      weighted.insert(weighted.end(),
                      !hasBackward(mode)   ? 1
                      : mode == Mode::Grad ? 3
                      : range.compileOnly  ? 6
                                           : 2,
                      mode);
    return random.pick(weighted);
  }

  void leaveOut(Setting &setting) {
    const std::vector<std::string> optional = optionalPasses(setting);
    if (optional.empty() || fusesMost() || random.chance(0.25))
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

} // namespace hydra::test
