// Checkpoints of the programs that own models come from: what says which, and what is refused.
#include "frontend/own/OwnModels.h"
#include "test/unit/frontend/FrontendFiles.h"

#include <nlohmann/json.hpp>

#include <map>

using namespace hydra::frontend;
using namespace hydra::support;
using json = nlohmann::ordered_json;

namespace {

std::map<std::string, std::string> symbolsOf(const OwnModel &model) {
  return {model.symbols.begin(), model.symbols.end()};
}

json ttt() {
  return {{"vocab_size", 97},  {"d_model", 64},           {"n_layers", 2},
          {"n_heads", 4},      {"head_dim", 16},          {"ffn_dim", 128},
          {"rms_eps", 1e-5},   {"ln_eps", 1e-5},          {"rope_theta", 5e5},
          {"b_ttt", 16},       {"eta_base", 0.5},         {"lr_gating", true},
          {"max_seq_len", 40}, {"tie_embeddings", false}, {"checkpoint_n_chunks", 8}};
}

/// What is found in a folder that holds `meta.json` with such a `cfg`.
std::string ofTtt(const json &cfg, std::optional<OwnModel> *found = nullptr) {
  const Folder folder;
  folder.write("meta.json", json{{"step", 3}, {"cfg", cfg}}.dump());
  return problemOf(folder, [&] {
    const auto model = findOwnModel(folder.root());
    if (found)
      *found = model;
  });
}

/// A file as megalodon-jax writes it.
std::string ofJax(const Folder &folder, const SafetensorsMetadata &metadata) {
  const std::vector<TensorInfo> tensors = {{"model.embed.weight", DType::F32, {2, 2}}};
  SafetensorsWriter writer(folder / "m.safetensors", tensors, metadata);
  writer.append(tensors[0].name, Folder::bytesOf(tensors[0]));
  writer.commit();
  return problemOf(folder, [&] { findOwnModel(folder / "m.safetensors"); });
}

SafetensorsMetadata jax(const json &config = json::object()) {
  return {{"format", "megalodon-jax"},
          {"format_version", "2"},
          {"rope_layout", "adjacent_pair"},
          {"normalization_storage", "plus_one"},
          {"config_json", config.dump()}};
}

} // namespace

TEST(OwnModels, TttByItsMeta) {
  std::optional<OwnModel> model;
  EXPECT_EQ(ofTtt(ttt(), &model), "");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->name, "ttt");
  auto symbols = symbolsOf(*model);
  EXPECT_EQ(symbols["D"], "64");
  EXPECT_EQ(symbols["rope"], "5.0e5");
  EXPECT_EQ(symbols["untied"], "true");
  EXPECT_EQ(symbols["per_head_lr"], "false");
  const std::string text = ownModelText(*model, "step-3");
  EXPECT_NE(text.find("\n  hydra.preset @\"step-3\" {V = 97, D = 64, H = 4, "), std::string::npos);
  EXPECT_EQ(text.rfind("//", 0), 0u); // the model's own first line
}

TEST(OwnModels, TttThatIsNone) {
  json cfg = ttt();
  cfg["head_dim"] = 8;
  EXPECT_EQ(ofTtt(cfg), "DIR/meta.json: cfg: head_dim is 8; expected d_model / n_heads");
  cfg = ttt();
  cfg["ln_eps"] = 1e-6;
  EXPECT_EQ(ofTtt(cfg), "DIR/meta.json: cfg: ln_eps is 1e-06; expected rms_eps");
  cfg = ttt();
  cfg["lr_gating"] = false;
  EXPECT_EQ(ofTtt(cfg), "DIR/meta.json: cfg: lr_gating is false; expected true");
  cfg = ttt();
  cfg["experts"] = 8;
  EXPECT_NE(ofTtt(cfg).find("experts"), std::string::npos);
  EXPECT_EQ(ofTtt(nullptr), "DIR/meta.json: has no cfg; expected the configuration of a TTT");
}

TEST(OwnModels, MegalodonByItsMetadata) {
  const Folder folder;
  EXPECT_EQ(ofJax(folder, jax({{"share_emb", true}, {"rope_base", 1e5}, {"swiglu", true}})), "");
  auto symbols = symbolsOf(*findOwnModel(folder / "m.safetensors"));
  EXPECT_EQ(symbols["tied"], "true");
  EXPECT_EQ(symbols["swiglu"], "true");
  EXPECT_EQ(symbols["rope"], "1.0e5");
  EXPECT_EQ(symbols["D"], "1024");
  EXPECT_FALSE(symbols.contains("first_form"));

  EXPECT_EQ(ofJax(folder, {{"format", "pt"}}), "");
  EXPECT_FALSE(findOwnModel(folder / "m.safetensors"));
  SafetensorsMetadata older = jax();
  older["format_version"] = "1";
  EXPECT_EQ(ofJax(folder, older),
            "DIR/m.safetensors: the metadata has the format_version '1'; expected 2");
  SafetensorsMetadata broken = jax();
  broken["config_json"] = "[";
  EXPECT_EQ(ofJax(folder, broken),
            "DIR/m.safetensors: the metadata has no config_json that is an object");
  broken["config_json"] = R"({"vocab_size": 5, "vocab_size": 6})";
  EXPECT_EQ(ofJax(folder, broken),
            "DIR/m.safetensors: config_json: has the field 'vocab_size' twice");
  broken["config_json"] =
      R"({"vocab_size": )" + std::string(300000, '[') + std::string(300000, ']') + "}";
  EXPECT_EQ(ofJax(folder, broken),
            "DIR/m.safetensors: config_json: brackets nest more than 64 deep");
  EXPECT_EQ(
      ofJax(folder, jax({{"attention_window", 64}})),
      "DIR/m.safetensors: config_json: attention_window is 64; expected none: attention within "
      "chunks");
  EXPECT_EQ(ofJax(folder, jax({{"rescale_nffn", true}})),
            "DIR/m.safetensors: config_json: rescale_nffn is true; expected false; anything else "
            "is not supported");
  EXPECT_EQ(ofJax(folder, jax({{"output_size", 7}})),
            "DIR/m.safetensors: config_json: output_size is 7; expected -1 or vocab_size");
  EXPECT_NE(ofJax(folder, jax({{"novelty", 1}})).find("novelty"), std::string::npos);
}

TEST(OwnModels, MegalodonByItsConfiguration) {
  const Folder folder;
  folder.write("config.json",
               R"({"model_type": "megalodon", "num_layers": 3, "share_emb": false})");
  const auto model = findOwnModel(folder.root());
  ASSERT_TRUE(model);
  auto symbols = symbolsOf(*model);
  EXPECT_EQ(symbols["L"], "3");
  EXPECT_EQ(symbols["first_form"], "true");
  EXPECT_EQ(symbols["tied"], "true");
  folder.write("config.json", R"({"model_type": "megalodon", "norm_affine": false})");
  EXPECT_EQ(problemOf(folder, [&] { findOwnModel(folder.root()); }),
            "DIR/config.json: norm_affine is false; expected true");
  folder.write("config.json",
               R"({"model_type": "megalodon", "architectures": ["MegalodonModel"]})");
  EXPECT_NE(problemOf(folder, [&] { findOwnModel(folder.root()); }).find("architectures"),
            std::string::npos);
  folder.write("config.json", R"({"model_type": "llama"})");
  EXPECT_FALSE(findOwnModel(folder.root()));
  folder.write("config.json", "{}");
  EXPECT_FALSE(findOwnModel(folder.root()));
  EXPECT_FALSE(findOwnModel(folder / "nothing"));
}

// Directories are often called as a preset of the model is.
TEST(OwnModels, PresetsHaveFreeNames) {
  OwnModel model{"ttt", {{"V", "97"}}};
  EXPECT_EQ(freePreset(model, "run-3"), "run-3");
  EXPECT_EQ(freePreset(model, "tin"), "tin");
  EXPECT_EQ(freePreset(model, "tiny"), "tiny-checkpoint");
  EXPECT_EQ(freePreset(model, "tiny-mlp"), "tiny-mlp-checkpoint");
  model.name = "megalodon";
  EXPECT_EQ(freePreset(model, "profile-train"), "profile-train-checkpoint");
}
