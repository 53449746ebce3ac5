// Weights under other names: which files there are, what they lack, and the bytes.
#include "frontend/Transfer.h"

#include "test/unit/frontend/FrontendFiles.h"

#include <fmt/format.h>

using namespace hydra::frontend;
using namespace hydra::support;

namespace {

const std::vector<NamedParameter> kTable = {
    {"embed", {5, 4}, "model.embed.weight"},
    {"layers.0.w", {3, 4}, "model.h.0.w.weight", /*transposed=*/true},
    {"layers.0.b", {3}, "model.h.0.w.bias"}};

std::vector<TensorInfo> stored(DType dtype = DType::F32) {
  return {{"model.embed.weight", dtype, {5, 4}},
          {"model.h.0.w.weight", dtype, {4, 3}},
          {"model.h.0.w.bias", dtype, {3}}};
}

Architecture architecture(bool tied = false) {
  Architecture a;
  a.family = "test";
  a.names.embedding = "model.embed";
  a.names.head = "head";
  a.prefix = "model.";
  a.tied = tied;
  a.buffers = {".mask"};
  return a;
}

std::string import(const Folder &folder, std::optional<DType> dtype = std::nullopt,
                   bool tied = false) {
  return problemOf(folder, [&] {
    importWeights(WeightFiles(folder.root()), architecture(tied), kTable, dtype, folder / "out");
  });
}

TEST(Transfer, TransposesAndComesBackBitForBit) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    const Folder folder;
    folder.writeTensors("model.safetensors", stored(dtype));
    EXPECT_EQ(import(folder), "");
    const Safetensors before = Safetensors::open(folder / "model.safetensors"),
                      out = Safetensors::open(folder / "out");
    const auto number = [&](const Safetensors &file, const char *name, size_t i) {
      const size_t size = byteSize(dtype);
      const auto bytes = file.get(name).bytes.subspan(i * size, size);
      return std::vector(bytes.begin(), bytes.end());
    };
    EXPECT_EQ(out.get("layers.0.w").shape, (std::vector<int64_t>{3, 4}));
    for (size_t r = 0; r < 3; ++r)
      for (size_t c = 0; c < 4; ++c)
        EXPECT_EQ(number(out, "layers.0.w", r * 4 + c),
                  number(before, "model.h.0.w.weight", c * 3 + r));
    exportWeights(SafetensorsFile(folder / "out"), kTable, {}, std::nullopt, folder / "back");
    const Safetensors back = Safetensors::open(folder / "back");
    ASSERT_EQ(back.tensors().size(), before.tensors().size());
    for (const TensorView &tensor : before.tensors()) {
      EXPECT_EQ(back.get(tensor.name).shape, tensor.shape);
      EXPECT_TRUE(std::ranges::equal(back.get(tensor.name).bytes, tensor.bytes)) << tensor.name;
    }
  }
}

TEST(Transfer, SlicesThatAreTensorsOfTheirOwnAreJoined) {
  const std::vector<NamedParameter> table = {
      {"w", {3, 2, 4}, "model.{row}.w", /*transposed=*/false, /*rows=*/3}};
  const auto stored = [](std::vector<int64_t> last, DType other) {
    return std::vector<TensorInfo>{{"model.2.w", DType::F16, std::move(last)},
                                   {"model.0.w", DType::F16, {2, 4}},
                                   {"model.1.w", other, {2, 4}}};
  };
  const auto import = [&](const Folder &folder, std::optional<DType> dtype) {
    return problemOf(folder, [&] {
      importWeights(WeightFiles(folder.root()), architecture(), table, dtype, folder / "out");
    });
  };
  const Folder folder;
  folder.writeTensors("model.safetensors", stored({2, 4}, DType::F16));
  EXPECT_EQ(import(folder, std::nullopt), "");
  const Safetensors before = Safetensors::open(folder / "model.safetensors");
  const Safetensors out = Safetensors::open(folder / "out");
  EXPECT_EQ(out.get("w").shape, (std::vector<int64_t>{3, 2, 4}));
  exportWeights(SafetensorsFile(folder / "out"), table, {}, std::nullopt, folder / "back");
  const Safetensors back = Safetensors::open(folder / "back");
  ASSERT_EQ(back.tensors().size(), 3u);
  for (int row = 0; row < 3; ++row) {
    const std::string name = fmt::format("model.{}.w", row);
    const auto bytes = before.get(name).bytes;
    EXPECT_TRUE(
        std::ranges::equal(out.get("w").bytes.subspan(row * bytes.size(), bytes.size()), bytes));
    EXPECT_EQ(back.get(name).shape, (std::vector<int64_t>{2, 4}));
    EXPECT_TRUE(std::ranges::equal(back.get(name).bytes, bytes));
  }
  const Folder misshapen, mixed;
  misshapen.writeTensors("model.safetensors", stored({2, 5}, DType::F16));
  EXPECT_EQ(import(misshapen, std::nullopt),
            "DIR/model.safetensors: tensor 'model.2.w' is [2, 5]; expected [2, 4]");
  mixed.writeTensors("model.safetensors", stored({2, 4}, DType::F32));
  EXPECT_EQ(import(mixed, std::nullopt),
            "DIR/model.safetensors: tensor 'model.1.w' is F32; expected F16, as others of the same "
            "parameter");
  EXPECT_EQ(import(mixed, DType::F32), "");
}

TEST(Transfer, TransposesBeyondATile) {
  const Folder folder;
  const std::vector<NamedParameter> table = {{"w", {150, 70}, "x", true}};
  folder.writeTensors("model.safetensors", {{"x", DType::F32, {70, 150}}});
  importWeights(WeightFiles(folder.root()), architecture(), table, std::nullopt, folder / "out");
  std::vector<float> a(70 * 150), b(a.size());
  std::memcpy(a.data(), Safetensors::open(folder / "model.safetensors").get("x").bytes.data(),
              a.size() * 4);
  std::memcpy(b.data(), Safetensors::open(folder / "out").get("w").bytes.data(), b.size() * 4);
  for (size_t r = 0; r < 70; ++r)
    for (size_t c = 0; c < 150; ++c)
      ASSERT_EQ(b[c * 70 + r], a[r * 150 + c]);
}

TEST(Transfer, Converts) {
  const Folder folder;
  folder.writeTensors("model.safetensors", stored());
  EXPECT_EQ(import(folder, DType::BF16), "");
  const Safetensors out = Safetensors::open(folder / "out"),
                    before = Safetensors::open(folder / "model.safetensors");
  std::vector<double> wide(20), narrow(20);
  toDoubles(DType::F32, before.get("model.embed.weight").bytes, wide);
  ASSERT_EQ(out.get("embed").dtype, DType::BF16);
  toDoubles(DType::BF16, out.get("embed").bytes, narrow);
  for (size_t i = 0; i < wide.size(); ++i)
    EXPECT_EQ(narrow[i], rounded(DType::BF16, wide[i]));
}

TEST(Transfer, NamesWhatIsWrongAndWritesNothing) {
  const auto problem = [](const std::function<void(std::vector<TensorInfo> &)> &change,
                          bool tied = false) {
    const Folder folder;
    std::vector<TensorInfo> tensors = stored();
    change(tensors);
    folder.writeTensors("model.safetensors", tensors);
    std::string text = import(folder, std::nullopt, tied);
    EXPECT_EQ(std::filesystem::exists(folder / "out"), text.empty());
    return text;
  };
  EXPECT_EQ(problem([](auto &t) { t.erase(t.begin() + 1); }),
            "DIR: tensor 'model.h.0.w.weight' is missing; expected [4, 3]");
  EXPECT_EQ(problem([](auto &t) { t[1].shape = {3, 4}; }),
            "DIR/model.safetensors: tensor 'model.h.0.w.weight' is [3, 4]; expected [4, 3]");
  EXPECT_EQ(
      problem([](auto &t) { t[2].dtype = DType::I32; }),
      "DIR/model.safetensors: tensor 'model.h.0.w.bias' is I32; expected floating-point numbers");
  EXPECT_EQ(problem([](auto &t) { t.push_back({"model.h.1.w.bias", DType::F32, {3}}); }),
            "DIR/model.safetensors: tensor 'model.h.1.w.bias' is no weight of this model of the "
            "family test");
  EXPECT_EQ(problem([](auto &t) { t.push_back({"model.h.0.mask", DType::Bool, {3}}); }), "");
  EXPECT_EQ(
      problem([](auto &t) { t.push_back({"head.weight", DType::F32, {5, 4}}); }),
      "DIR/model.safetensors: tensor 'head.weight' is no weight of this model of the family test");
  EXPECT_EQ(
      problem([](auto &t) { t.push_back({"head.weight", DType::F32, {5, 4}}); }, /*tied=*/true),
      "DIR/model.safetensors: tensor 'head.weight' differs from 'model.embed.weight' although "
      "tie_word_embeddings is true");
}

TEST(Transfer, ATiedHeadMayBeThereTwice) {
  const Folder folder;
  std::vector<TensorInfo> tensors = stored();
  const std::vector<std::byte> table = Folder::bytesOf(tensors[0]);
  tensors.push_back({"head.weight", DType::F32, {5, 4}});
  SafetensorsWriter writer(folder / "model.safetensors", tensors);
  for (const TensorInfo &tensor : tensors)
    writer.append(tensor.name, tensor.name == "head.weight" ? table : Folder::bytesOf(tensor));
  writer.commit();
  EXPECT_EQ(import(folder, std::nullopt, /*tied=*/true), "");
}

TEST(Transfer, ModelsThatNameTheirTensors) {
  const std::vector<NamedParameter> table = {{"a", {4}, "x.a"}, {"b", {2, 3}, "x.b"}};
  const std::vector<std::string_view> buffers = {".step"};
  const auto problem = [&](std::vector<TensorInfo> tensors, const char *copy = nullptr) {
    const Folder folder;
    SafetensorsWriter writer(folder / "w.safetensors", tensors);
    for (const TensorInfo &tensor : tensors) {
      TensorInfo like = tensor;
      if (copy && tensor.name == "again")
        like.name = copy;
      writer.append(tensor.name, Folder::bytesOf(like));
    }
    writer.commit();
    std::string text = problemOf(folder, [&] {
      importWeights(WeightFiles(folder / "w.safetensors"), table, buffers, std::nullopt,
                    folder / "out");
    });
    EXPECT_EQ(std::filesystem::exists(folder / "out"), text.empty());
    if (text.empty()) {
      EXPECT_EQ(Safetensors::open(folder / "out").get("a").shape, (std::vector<int64_t>{4}));
    }
    return text;
  };
  const std::vector<TensorInfo> good = {{"x.a", DType::F32, {1, 4}},
                                        {"x.b", DType::F32, {2, 3, 1}}};
  const auto with = [&](const TensorInfo &more) {
    std::vector<TensorInfo> all = good;
    all.push_back(more);
    return all;
  };
  EXPECT_EQ(problem(good), "");
  EXPECT_EQ(problem(with({"y.step", DType::I64, {}})), "");
  EXPECT_EQ(problem(with({"again", DType::F32, {1, 4}}), "x.a"), "");
  EXPECT_EQ(problem(with({"again", DType::F32, {1, 4}})),
            "DIR/w.safetensors: tensor 'again' is no weight of this model, and no copy of one");
  EXPECT_EQ(problem(with({"again", DType::F32, {4}}), "x.a"), // of another shape
            "DIR/w.safetensors: tensor 'again' is no weight of this model, and no copy of one");
  EXPECT_EQ(problem({good[0], {"x.b", DType::F32, {3, 2}}}),
            "DIR/w.safetensors: tensor 'x.b' is [3, 2]; expected [2, 3]");
}

TEST(Transfer, FilesOfOtherKinds) {
  const Folder folder;
  for (const char *name : {"m.pt", "m.npz"}) {
    folder.write(name, "?");
    EXPECT_NE(problemOf(folder, [&] { WeightFiles{folder / name}; }).find("files are not read"),
              std::string::npos);
  }
  folder.write("model.pt", "?");
  EXPECT_EQ(problemOf(folder, [&] { WeightFiles{folder.root()}; }),
            "DIR: has neither model.safetensors nor model.safetensors.index.json; model.pt is not "
            "read");
}

TEST(Transfer, FilesOfTheTrunkLackThePrefix) {
  const Folder folder;
  folder.writeTensors("model.safetensors", {{"embed.weight", DType::F32, {5, 4}}});
  const WeightFiles weights(folder.root());
  EXPECT_TRUE(lacksPrefix(architecture(), weights));
  EXPECT_EQ(withoutPrefix(architecture()).names.embedding, "embed");
  EXPECT_EQ(withoutPrefix(architecture()).names.head, "head");
}

TEST(Transfer, ExportsParametersAndLeavesState) {
  const Folder folder;
  folder.writeTensors("in", {{"embed", DType::F32, {5, 4}},
                             {"layers.0.w", DType::F32, {3, 4}},
                             {"layers.0.b", DType::F32, {3}},
                             {"seen", DType::F32, {1}}});
  const auto work = [&](const std::vector<std::string> &states,
                        const std::vector<NamedParameter> &table) {
    return problemOf(folder, [&] {
      exportWeights(SafetensorsFile(folder / "in"), table, states, std::nullopt, folder / "out");
    });
  };
  EXPECT_EQ(work({"seen"}, kTable), "");
  EXPECT_EQ(work({}, kTable), "DIR/in: tensor 'seen' is no parameter or state of the model");
  std::vector<NamedParameter> other = kTable;
  other[0].shape = {4, 5};
  EXPECT_EQ(work({"seen"}, other), "DIR/in: tensor 'embed' is [5, 4]; expected [4, 5]");
  other[0].name = "table";
  EXPECT_EQ(work({"seen"}, other), "DIR/in: tensor 'table' is missing; expected [4, 5]");
}

//===-- Shards ------------------------------------------------------------------------------===//

std::string open(const Folder &folder) {
  return problemOf(folder, [&] { const WeightFiles files(folder.root()); });
}

TEST(WeightFiles, ReadsShardsThatTheIndexNames) {
  const Folder folder;
  folder.writeTensors("a.safetensors", {{"x", DType::F32, {2}}});
  folder.writeTensors("b.safetensors", {{"y", DType::F32, {3}}});
  folder.write(
      "model.safetensors.index.json",
      R"({"metadata": {"total_size": 20}, "weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  const WeightFiles files(folder.root());
  ASSERT_TRUE(files.find("y"));
  EXPECT_EQ(files.find("y")->place->shape, std::vector<int64_t>{3});
  EXPECT_FALSE(files.find("z"));
}

TEST(WeightFiles, RefusesShardsElsewhere) {
  for (const char *file : {"../a.safetensors", "/etc/passwd", "..", "", "sub/a.safetensors", "."}) {
    const Folder folder;
    folder.write("model.safetensors.index.json",
                 fmt::format(R"({{"weight_map": {{"x": "{}"}}}})", file));
    EXPECT_EQ(
        open(folder),
        fmt::format("DIR/model.safetensors.index.json: tensor 'x' is in \"{}\"; expected the name "
                    "of a file beside the index",
                    file));
  }
  const Folder folder;
  folder.write("model.safetensors.index.json", R"({"weight_map": {"x": 1}})");
  EXPECT_EQ(
      open(folder),
      "DIR/model.safetensors.index.json: tensor 'x' is in 1; expected the name of a file beside "
      "the index");
}

TEST(WeightFiles, RefusesAnIndexThatDisagrees) {
  const Folder folder;
  EXPECT_EQ(open(folder), "DIR: has neither model.safetensors nor model.safetensors.index.json");
  folder.write("pytorch_model.bin", "");
  EXPECT_EQ(
      open(folder),
      "DIR: has neither model.safetensors nor model.safetensors.index.json; pytorch_model.bin is "
      "not read");
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"x": "a.safetensors", "z": "a.safetensors"}})");
  EXPECT_EQ(open(folder), "cannot read DIR/a.safetensors: No such file or directory");
  folder.writeTensors("a.safetensors", {{"x", DType::F32, {2}}});
  EXPECT_EQ(open(folder), "DIR/model.safetensors.index.json: tensor 'z' is not in a.safetensors");
  folder.writeTensors("a.safetensors",
                      {{"x", DType::F32, {2}}, {"y", DType::F32, {2}}, {"z", DType::F32, {2}}});
  EXPECT_EQ(open(folder), "DIR/a.safetensors: tensor 'y' is not in the index");
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"x": "a.safetensors", "z": "b.safetensors"}})");
  folder.writeTensors("a.safetensors", {{"x", DType::F32, {2}}, {"z", DType::F32, {2}}});
  folder.writeTensors("b.safetensors", {{"z", DType::F32, {2}}});
  EXPECT_EQ(open(folder),
            "DIR/b.safetensors: tensor 'z' is in DIR/a.safetensors too; expected it once");
  folder.write("model.safetensors.index.json", R"({"metadata": {}})");
  EXPECT_EQ(
      open(folder),
      "DIR/model.safetensors.index.json: has no weight_map; expected the file of each tensor");
  folder.writeTensors("model.safetensors", {{"x", DType::F32, {2}}});
  EXPECT_EQ(open(folder),
            "DIR: has model.safetensors and model.safetensors.index.json; expected one of them");
}

TEST(WeightFiles, RefusesATruncatedShard) {
  const Folder folder;
  folder.writeTensors("model.safetensors", stored());
  std::filesystem::resize_file(folder / "model.safetensors",
                               std::filesystem::file_size(folder / "model.safetensors") - 4);
  EXPECT_EQ(
      open(folder),
      "DIR/model.safetensors: tensor 'model.h.0.w.bias': data_offsets [128, 140] end beyond the "
      "data; expected at most 136 (truncated file?)");
}

/// Adapters of rank 1 beside a matrix [2, 2]; all their numbers are `part`.
void writeAdapters(const Folder &folder, float part) {
  const std::vector<TensorInfo> infos = {{"w", DType::F32, {2, 2}},
                                         {"w.lora_a", DType::F32, {1, 2}},
                                         {"w.lora_b", DType::F32, {2, 1}}};
  SafetensorsWriter writer(folder / "in", infos, {{"lora", R"({"alpha":2.0,"rank":1})"}});
  for (const TensorInfo &info : infos) {
    const std::vector<float> numbers(info.name == "w" ? 4 : 2, info.name == "w" ? 1.0f : part);
    writer.append(info.name, std::as_bytes(std::span(numbers)));
  }
  writer.commit();
}

TEST(Transfer, AdaptersAreNotMadeInfinite) {
  const Folder folder;
  const auto merge = [&](std::optional<DType> dtype) {
    return problemOf(folder,
                     [&] { mergeWeights(SafetensorsFile(folder / "in"), dtype, folder / "out"); });
  };
  const auto exported = [&](std::optional<DType> dtype) {
    const std::vector<NamedParameter> table = {{"w", {2, 2}, "model.w.weight"}};
    return problemOf(folder, [&] {
      exportAdapter(SafetensorsFile(folder / "in"), table, {}, dtype, "base", folder.root());
    });
  };
  writeAdapters(folder, 200.0f);
  EXPECT_EQ(merge(DType::F16), "tensor 'w' has the number 80001, which F16 cannot hold");
  EXPECT_EQ(merge(std::nullopt), "");
  EXPECT_EQ(exported(DType::F16), "");
  writeAdapters(folder, 1e30f);
  EXPECT_EQ(merge(std::nullopt), "tensor 'w' has the number 2e+60, which F32 cannot hold");
  EXPECT_EQ(exported(DType::F16), "tensor 'w.lora_a' has the number 1e+30, which F16 cannot hold");
  EXPECT_EQ(exported(std::nullopt), "");
}

// PEFT adapts a model with a head: its modules have the prefix, whatever the weights' files have.
TEST(Transfer, ModulesOfAdaptersHaveThePrefix) {
  const Folder folder;
  writeAdapters(folder, 2.0f);
  const std::vector<NamedParameter> table = {{"embed", {5, 4}, "embed.weight"},
                                             {"w", {2, 2}, "h.0.w.weight"}};
  const Architecture a = architecture();
  const auto exported = [&](const Architecture *which) {
    exportAdapter(SafetensorsFile(folder / "in"), table, {}, std::nullopt, "base", folder.root(),
                  which);
    return SafetensorsFile(folder / "adapter_model.safetensors");
  };
  EXPECT_TRUE(exported(&a).find("base_model.model.model.h.0.w.lora_A.weight"));
  EXPECT_TRUE(exported(nullptr).find("base_model.model.h.0.w.lora_A.weight"));
  EXPECT_EQ(exported(&a).metadata().at("lora"), R"({"alpha":2.0,"rank":1})");
}

} // namespace
