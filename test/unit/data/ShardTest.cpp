// Shards and their manifests: what is written is read, and what is damaged is found.
#include "runtime/data/Rows.h"
#include "test/unit/data/DataFolder.h"

#include <array>

using namespace hydra::data;
using hydra::support::InputFile;

namespace {

class ShardTest : public DataFolder {
protected:
  /// Three documents, of which the second begins with a prompt.
  std::filesystem::path small(const ShardKind &kind) const {
    const std::filesystem::path path = folder / "small";
    ShardWriter writer(path, kind);
    const auto last = static_cast<int32_t>(kind.vocabulary - 1);
    writer.write(std::array{1, last, 3});
    writer.endDocument();
    writer.write(std::array{4, 5, 6, 7, 8, 9, 10}, true);
    writer.write(std::array{11, 12});
    writer.endDocument();
    writer.write(std::array{0});
    writer.endDocument();
    writer.commit();
    return path;
  }
};

TEST_F(ShardTest, HoldsTokensDocumentsAndPrompts) {
  for (const uint64_t vocabulary : {256, 65536, 70000}) {
    const ShardKind kind{vocabulary, 77, 3};
    const InputFile file(small(kind));
    const Shard shard(file);
    const uint32_t width = vocabulary == 256 ? 1 : vocabulary == 65536 ? 2 : 4;
    EXPECT_EQ(shard.header().width, width);
    EXPECT_EQ(shard.header().kind, kind);
    EXPECT_EQ(shard.header().documents, 3u);
    EXPECT_EQ(shard.ends(), (std::vector<uint64_t>{3, 12, 13}));
    std::vector<int32_t> tokens(13), labels(11);
    shard.read(0, tokens, vocabulary);
    EXPECT_EQ(tokens, (std::vector<int32_t>{1, static_cast<int32_t>(vocabulary - 1), 3, 4, 5, 6, 7,
                                            8, 9, 10, 11, 12, 0}));
    shard.readLabels(2, labels, vocabulary);
    EXPECT_EQ(labels,
              (std::vector<int32_t>{3, -100, -100, -100, -100, -100, -100, -100, 11, 12, 0}));
    shard.verify();
    EXPECT_EQ(errorOf([&] { shard.read(0, tokens, vocabulary - 1); }),
              fmt::format("{}: token 1 is {}; expected an id in [0, {})", file.name(),
                          vocabulary - 1, vocabulary - 1));
  }
}

TEST_F(ShardTest, EveryDamagedByteIsFound) {
  const std::string whole = read(small({70000, 77, 3}));
  const auto verify = [&](const std::string &bytes) {
    const std::filesystem::path path = write("damaged", bytes);
    return errorOf([&] {
      const InputFile file(path);
      Shard(file).verify();
    });
  };
  EXPECT_EQ(verify(whole), "no error");
  const size_t gap = sizeof(ShardHeader) + 13 * 4; // up to a multiple of 8
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    if (i < gap || i >= gap + 4)
      EXPECT_NE(verify(bytes), "no error") << i;
  }
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(verify(whole.substr(0, size)), "no error") << size;
  EXPECT_NE(verify(whole + '\0').find("bytes; its header says"), std::string::npos);
}

TEST_F(ShardTest, FoldersManifestsAndShardsAreTheSameData) {
  Documents documents;
  for (int32_t i = 0; i < 10; ++i)
    documents.push_back(std::vector<int32_t>(static_cast<size_t>(i + 1), i + 1));
  const std::filesystem::path set = shards("set", documents, {256, 5, 0}, 20);
  const Manifest manifest = readManifest(set / kManifestName);
  ASSERT_EQ(manifest.shards.size(), 3u); // behind 20, 24 and 21 tokens
  EXPECT_EQ(manifest.shards[0].documents, 5u);
  EXPECT_EQ(manifest.tokens(), 65u);
  const TokenFiles folders({.files = {set}}), manifests({.files = {set / kManifestName}});
  std::vector<std::filesystem::path> paths;
  for (const Manifest::Entry &entry : manifest.shards)
    paths.push_back(set / entry.file);
  const TokenFiles files({.files = paths});
  EXPECT_EQ(folders.fingerprint(), manifests.fingerprint());
  EXPECT_EQ(folders.fingerprint(), files.fingerprint());
  EXPECT_EQ(files.kind()->end, 0);
  std::vector<int32_t> tokens(65), expected;
  files.read(0, tokens);
  std::vector<uint64_t> ends;
  for (std::vector<int32_t> document : documents) {
    document.push_back(0);
    expected.insert(expected.end(), document.begin(), document.end());
    ends.push_back(expected.size());
  }
  EXPECT_EQ(tokens, expected);
  EXPECT_EQ(files.documentEnds(), ends);
  // Other content, and shards in another order, are other data.
  std::swap(paths[0], paths[1]);
  EXPECT_NE(TokenFiles({.files = paths}).fingerprint(), files.fingerprint());
  // A shard that is not the one of the manifest.
  std::filesystem::copy_file(paths[0], paths[1], std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(
      errorOf([&] { TokenFiles({.files = {set}}); }).find("is not the shard that its manifest"),
      std::string::npos);
}

TEST_F(ShardTest, WhatDoesNotFitTogetherIsRefused) {
  const std::filesystem::path a = shards("a", {{1, 2}}, {300, 5, 0}, 100),
                              b = shards("b", {{1, 2}}, {300, 6, 0}, 100);
  EXPECT_NE(errorOf([&] {
              TokenFiles({.files = {a}});
            }).find("token ids up to 299; the model knows ids in [0, 256)"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              TokenFiles({.files = {a, b}, .vocabulary = 300});
            }).find("are of different tokenizers"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              TokenFiles({.files = {a}, .vocabulary = 300, .tokenizerHash = 6});
            }).find("was made by another tokenizer than that of --tokenizer"),
            std::string::npos);
}

TEST_F(ShardTest, AFolderAppearsWholeOrNotAtAll) {
  const std::filesystem::path target = folder / "set";
  {
    ShardSetWriter writer(target, Manifest{.kind = {256, 0, -1}}, 10);
    writer.write(std::array{1, 2, 3}, false);
    writer.endDocument();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(errorOf([&] { ShardSetWriter(target, Manifest{.kind = {256, 0, -1}}, 10).commit(); }),
            "there is no text in the files");
  shards("set", {{1}}, {256, 0, -1}, 10);
  EXPECT_NE(errorOf([&] { shards("set", {{1}}, {256, 0, -1}, 10); }).find("exists; expected"),
            std::string::npos);
}

TEST_F(ShardTest, MistakesOfManifestsAreNamed) {
  const std::filesystem::path set = shards("set", {{1, 2}, {3}}, {256, 5, 0}, 2);
  const std::string text = read(set / kManifestName);
  EXPECT_EQ(manifestText(parseManifest(text, "m")), text);
  const auto errorWith = [&](const std::string &from, const std::string &to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return errorOf([&] { parseManifest(changed, "m"); });
  };
  EXPECT_EQ(errorWith("{", "["), "m: is no JSON");
  EXPECT_EQ(errorWith("hydra-shards", "other"), "m: 'format' is 'other'; expected hydra-shards");
  EXPECT_EQ(errorWith("\"version\": 1", "\"version\": 2"), "m: version 2 of manifests; expected 1");
  EXPECT_EQ(errorWith("shard-00000", "../shard"),
            "m: shards[0]: 'file' is '../shard.tokens'; expected a file in the folder of the "
            "manifest");
  EXPECT_EQ(errorWith("shard-00000", "shard-00001"),
            "m: shards[1]: 'shard-00001.tokens' is there twice");
  EXPECT_EQ(errorWith("\"tokens\": 5", "\"tokens\": 6"),
            "m: says 6 tokens in 2 documents; its shards have 5 in 2");
  EXPECT_EQ(errorWith("\"vocabulary\": 256", "\"vocabulary\": -1"),
            "m: 'vocabulary' is no number from 0 on");
}

} // namespace
