// Settings: what is printed is read again, what is drawn is what hydrac takes, and which passes are
// exact.
#include "test/fuzz/differential/Setting.h"

#include "runtime/support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

#include <set>

namespace hydra::test {

TEST(Setting, IsReadAsItIsPrinted) {
  SettingRange ofText;
  ofText.modes = {Mode::Generate};
  ofText.int8 = ofText.int4 = true;
  ofText.parameters = {"e", "w0", "w1"};
  SettingRange ofRanks;
  ofRanks.batch = 12;
  ofRanks.parameters = {"w"};
  ofRanks.linearWeights = {"w"};
  for (const SettingRange &range : {SettingRange(), ofText, ofRanks}) {
    for (uint64_t number = 0; number < 200; ++number)
      for (const Setting &setting : drawSettings(number, 2, range))
        EXPECT_EQ(Setting::parse(setting.text()), setting) << setting.text();
    for (const Setting &setting : allSettings(range))
      EXPECT_EQ(Setting::parse(setting.text()), setting) << setting.text();
  }
  EXPECT_THROW(Setting::parse("--mode=grad --disable-pass=hydra-bind"), support::Error);
  EXPECT_THROW(Setting::parse("--recompute=all"), support::Error);
  EXPECT_THROW(Setting::parse("--average=mean"), support::Error);
  EXPECT_THROW(Setting::parse("--lora=rank=0,alpha=1,targets=w"), support::Error);
  EXPECT_THROW(Setting::parse("--target=abacus"), support::Error);
}

TEST(Setting, DrawsLeaveOutEveryPassAndReachEveryFlag) {
  std::set<std::string> left, words;
  SettingRange range;
  range.batch = 12; // which ranks can share
  range.parameters = {"v", "w"};
  range.linearWeights = {"v", "w"};
  for (uint64_t number = 0; number < 3200; ++number)
    for (const Setting &setting : drawSettings(number, 2, range)) {
      left.insert(setting.disabled.begin(), setting.disabled.end());
      for (const char *word : {"-O0",
                               "-O1",
                               "--mode=train",
                               "--mode=forward",
                               "--recompute=none",
                               "--recompute=rowwise,every=2",
                               "--recompute=layers=1",
                               "--rounded-copies=layer",
                               "--scan-checkpoint=2",
                               "--ce-chunk=5",
                               "--attention=naive",
                               "--precision=bf16",
                               "--precision=pure_bf16",
                               "--accum=2",
                               "--no-clip",
                               "--clip=0.5",
                               "--threads=2",
                               "--plain-code",
                               "--mesh=data:3",
                               "--mesh=node:2,data:2",
                               "--shard=zero1",
                               "--shard=fsdp",
                               "--shard-levels=2",
                               "--offload=optimizer",
                               "--reduce=bf16",
                               "--accum-exchange=last",
                               "--exchange-bytes=0",
                               "--mesh=node:2,data:3",
                               "--whole-below=64",
                               "--reshard=auto",
                               "--reshard=never",
                               "--offload-least=128",
                               "--norm-spike=0.5",
                               "--group-norms",
                               "--batch-filter",
                               "--average=ema,decay=0.5",
                               "--average=swa,from=2",
                               "--layer-precision=*:",
                               "--layer-precision=*w",
                               "--fp8-format=e4m3",
                               "--fp8-keep=default",
                               "--fp8-keep=*w",
                               "--fp8-least=",
                               "--fp8-amax-history=",
                               "--freeze=*w",
                               "--lora=rank=1,alpha=0.75,targets=*w",
                               "--lora=rank=2,alpha=1,targets=*w,*v",
                               "--logits=bf16",
                               "--eval-batch=24",
                               "--mesh=data:6",
                               "--mesh=node:3,data:2"})
        if (setting.text().find(word) != std::string::npos)
          words.insert(word);
    }
  EXPECT_EQ(words.size(), 51u);
  for (const PassEntry &pass : pipelinePasses()) {
    const bool onlyCuda =
        pass.name == "hydra-add-products" || pass.name == "hydra-fuse-loops" ||
        pass.name == "hydra-fuse-epilogues" || pass.name == "hydra-batch-launches" ||
        pass.name == "hydra-batch-copies" || pass.name == "hydra-overlap-collectives" ||
        pass.name == "hydra-fuse-operands" || pass.name == "hydra-fuse-updates" ||
        pass.name == "hydra-fuse-rotations" || pass.name == "hydra-fill-idle" ||
        pass.name == "hydra-assign-streams";
    if (!pass.required && !onlyCuda)
      EXPECT_TRUE(left.contains(pass.name)) << pass.name;
  }
}

TEST(Setting, DrawsOfTextHoldWeightsInIntegers) {
  SettingRange range;
  range.modes = {Mode::Generate};
  range.parameters = {"w1"};
  const auto drawn = [&](const char *word) {
    for (uint64_t number = 0; number < 200; ++number)
      for (const Setting &setting : drawSettings(number, 2, range))
        if (setting.text().find(word) != std::string::npos)
          return true;
    return false;
  };
  EXPECT_FALSE(drawn("--weight-format=int8"));
  range.int8 = true;
  EXPECT_TRUE(drawn("--weight-format=int8"));
  EXPECT_TRUE(drawn("--weight-format=int8 --weight-keep=*w1"));
  EXPECT_TRUE(drawn("--precision=bf16"));
  EXPECT_FALSE(drawn("--precision=tf32 --weight-format=int8"));
  EXPECT_FALSE(drawn("--weight-format=int4"));
  range.int4 = true;
  EXPECT_TRUE(drawn("--weight-format=int4"));
  EXPECT_TRUE(drawn("--weight-format=int8"));
}

TEST(Setting, BitsAreThoseOfNumericsChangingPasses) {
  EXPECT_TRUE(llvm::is_contained(numericsChangingPasses("cpu"), "hydra-fuse-qkv"));
  EXPECT_TRUE(llvm::is_contained(numericsChangingPasses("cpu"), "hydra-skip-rows"));
  EXPECT_FALSE(llvm::is_contained(numericsChangingPasses("cpu"), "hydra-assign-layouts"));
  EXPECT_TRUE(llvm::is_contained(numericsChangingPasses("h200"), "hydra-assign-layouts"));
  EXPECT_FALSE(llvm::is_contained(numericsChangingPasses("h200"), "hydra-plan-memory"));
  const auto key = [](const std::string &text) { return Setting::parse(text).bitsKey(); };
  EXPECT_EQ(key("--disable-pass=hydra-schedule,hydra-join-weight-gradients --threads=2"),
            key("--recompute=none --disable-pass=hydra-join-weight-gradients"));
  EXPECT_NE(key("--disable-pass=hydra-schedule"), key(""));
  EXPECT_EQ(key("--precision=bf16 --rounded-copies=layer"), key("--precision=bf16"));
  EXPECT_EQ(key("--mode=train --offload=optimizer"), key("--mode=train"));
  EXPECT_NE(key("--disable-pass=hydra-fuse-qkv"), key(""));
  EXPECT_NE(key("--precision=bf16"), key(""));
  EXPECT_EQ(key("--mode=train --mesh=data:2 --exchange-bytes=0"),
            key("--mode=train --mesh=data:2"));
  EXPECT_NE(key("--mode=train --accum=2 --mesh=data:2 --accum-exchange=last"),
            key("--mode=train --accum=2 --mesh=data:2"));
  EXPECT_EQ(key("--mode=train --mesh=data:2 --shard=fsdp --reshard=never"),
            key("--mode=train --mesh=data:2 --shard=fsdp"));
  EXPECT_NE(key("--mode=train --average=swa,from=1"), key("--mode=train"));
  EXPECT_NE(key("--mode=generate --weight-format=int8"), key("--mode=generate"));
  EXPECT_NE(key("-O0"), key(""));
  const std::string exact =
      " --disable-pass=hydra-raise-attention,hydra-raise-linear-ce,hydra-fuse-qkv,"
      "hydra-fuse-gate-up,hydra-fuse-siblings,hydra-skip-rows,hydra-join-weight-gradients";
  EXPECT_EQ(key("-O0"), key("-O2" + exact));
}

TEST(Setting, DrawsOfPlansThatNothingRunsHaveRanksAndPlainCode) {
  SettingRange range;
  range.target = "h200";
  range.batch = 4;
  unsigned plain = 0, meshes = 0;
  for (const bool compileOnly : {false, true}) {
    range.compileOnly = compileOnly;
    plain = meshes = 0;
    for (uint64_t number = 0; number < 200; ++number)
      for (const Setting &setting : drawSettings(number, 2, range)) {
        EXPECT_EQ(Setting::parse(setting.text()), setting) << setting.text();
        plain += setting.plainCode;
        meshes += !setting.mesh.empty();
      }
    if (!compileOnly) {
      EXPECT_EQ(plain, 0u);
      EXPECT_EQ(meshes, 0u);
    }
  }
  EXPECT_GT(plain, 380u);
  EXPECT_GT(meshes, 100u);
}

} // namespace hydra::test
