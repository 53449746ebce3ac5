// Settings that each have one choice of a flag beside defaults.
#include "test/fuzz/differential/SettingChoices.h"

using llvm::StringRef;

namespace hydra::test {

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
    const std::vector<std::string> integers = range.int4 ? std::vector<std::string>{"int8", "int4"}
                                              : range.int8 ? std::vector<std::string>{"int8"}
                                                           : std::vector<std::string>();
    for (const std::string &format : mode == Mode::Generate ? integers : std::vector<std::string>())
      for (const char *precision : {"fp32", "bf16", "f16", "pure_bf16", "fp8"})
        for (unsigned level : {0u, 2u})
          for (const bool keeps : {false, true}) {
            Setting held = plain;
            held.precision = precision;
            held.level = level;
            held.weightFormat = format;
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
