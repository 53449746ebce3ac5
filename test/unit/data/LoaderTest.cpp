// Files of tokens, and the batches made of them.
#include "runtime/data/Loader.h"
#include "runtime/data/TokenFileWriter.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

using namespace hydra::data;
using hydra::support::Error;

namespace {

class LoaderTest : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("hydra-data-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path write(const std::string &name, const std::string &content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }

  /// Tokens `first`, `first` + 1, … with a header or without.
  template <typename T>
  std::filesystem::path numbers(const std::string &name, size_t count, T first = 0,
                                std::vector<int32_t> header = {}) const {
    std::string content;
    if (!header.empty()) {
      header.resize(256);
      content.append(reinterpret_cast<const char *>(header.data()), 1024);
    }
    for (size_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(first + i);
      content.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
    return write(name, content);
  }

  static std::string errorOf(const std::function<void()> &action) {
    try {
      action();
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder;
};

std::vector<int32_t> readAll(const TokenFiles &files) {
  std::vector<int32_t> tokens(files.tokens());
  files.read(0, tokens);
  return tokens;
}

std::unique_ptr<RowOrder> orderOf(const TokenFiles &files, uint64_t length, uint64_t seed) {
  std::vector<RowOrder::Source> sources(1);
  sources[0].rows = windowsOf(files, Split::training, length, 1);
  return std::make_unique<RowOrder>(std::move(sources), seed);
}

std::vector<BatchRows> batches(const TokenFiles &files, LoaderOptions options, uint64_t seed,
                               int count) {
  Loader loader(orderOf(files, options.length, seed), options);
  std::vector<BatchRows> found;
  for (int i = 0; i < count; ++i)
    found.push_back(loader.next());
  return found;
}

bool equal(const std::vector<BatchRows> &a, const std::vector<BatchRows> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto &x, const auto &y) {
    return x.tokens == y.tokens && x.labels == y.labels;
  });
}

} // namespace

TEST_F(LoaderTest, EveryFormatAndSeveralFilesAreOneStream) {
  const TokenFiles text({.files = {write("a.txt", "ab"), write("b.txt", "c")}});
  EXPECT_EQ(readAll(text), (std::vector<int32_t>{'a', 'b', 'c'}));
  const TokenFiles files({.files = {numbers<uint16_t>("a.bin", 3, 7),
                                    numbers<uint16_t>("b.bin", 2, 300, {20240520, 1, 2}),
                                    numbers<uint32_t>("c.bin", 2, 70000, {20240801, 7, 2})},
                          .format = Format::uint16,
                          .vocabulary = 100000});
  EXPECT_EQ(readAll(files), (std::vector<int32_t>{7, 8, 9, 300, 301, 70000, 70001}));
  std::vector<int32_t> middle(4);
  files.read(2, middle);
  EXPECT_EQ(middle, (std::vector<int32_t>{9, 300, 301, 70000}));
}

TEST_F(LoaderTest, BadFilesAreErrorsThatNameThem) {
  const auto open = [&](const std::filesystem::path &path, Format format) {
    return errorOf([&] { readAll(TokenFiles({.files = {path}, .format = format})); });
  };
  EXPECT_NE(open(folder / "none", Format::bytes).find("none: No such file"), std::string::npos);
  EXPECT_NE(open(folder, Format::bytes).find("it is a directory; expected a regular file"),
            std::string::npos);
  EXPECT_NE(open(write("e", ""), Format::bytes).find("e is empty"), std::string::npos);
  EXPECT_NE(open(write("odd", "abc"), Format::uint16).find("3 bytes of tokens are no multiple"),
            std::string::npos);
  EXPECT_NE(open(numbers<uint16_t>("v", 4, 0, {20240520, 9, 4}), Format::uint16).find("version 9"),
            std::string::npos);
  EXPECT_NE(open(numbers<uint16_t>("n", 4, 0, {20240520, 1, 5}), Format::uint16)
                .find("has 4 tokens; its header says 5"),
            std::string::npos);
  EXPECT_NE(open(numbers<uint16_t>("id", 4, 254), Format::uint16)
                .find("id: token 2 is 256; the model knows ids in [0, 256)"),
            std::string::npos);
}

TEST_F(LoaderTest, AFileThatShrinksIsAnErrorAndNoCrash) {
  const auto path = write("t", std::string(100000, 'x'));
  const TokenFiles files({.files = {path}});
  std::filesystem::resize_file(path, 10);
  std::vector<int32_t> tokens(10);
  EXPECT_NE(errorOf([&] { files.read(90000, tokens); }).find("has become shorter"),
            std::string::npos);
}

TEST_F(LoaderTest, TheLastTenthIsNeverTrainedOn) {
  const TokenFiles files(
      {.files = {numbers<uint16_t>("t", 1000)}, .format = Format::uint16, .vocabulary = 1000});
  const Windows training = Windows::of(files, Split::training, 9, 1),
                heldOut = Windows::of(files, Split::heldOut, 9, 1);
  EXPECT_EQ(training.count, 99u); // of 900 tokens
  EXPECT_EQ(heldOut.begin, 900u);
  EXPECT_EQ(heldOut.count, 11u);
  std::multiset<int32_t> firsts;
  for (const BatchRows &batch : batches(files, {.batch = 3, .length = 9}, 4, 33))
    for (size_t row = 0; row < 3; ++row) {
      firsts.insert(batch.tokens[row * 9]);
      for (size_t i = 0; i < 9; ++i) {
        EXPECT_EQ(batch.labels[row * 9 + i], batch.tokens[row * 9 + i] + 1);
        EXPECT_LT(batch.labels[row * 9 + i], 900);
      }
    }
  EXPECT_EQ(firsts.size(), 99u); // an epoch: every window once
  EXPECT_EQ(std::set<int32_t>(firsts.begin(), firsts.end()).size(), 99u);
}

TEST_F(LoaderTest, TooLittleTextIsAnError) {
  const TokenFiles files({.files = {write("t", "0123456789")}});
  EXPECT_EQ(errorOf([&] { Windows::of(files, Split::training, 9, 1); }),
            "the data has 10 tokens; of the 9 to train on not even 1 window of 10 can be made");
  EXPECT_EQ(errorOf([&] { Windows::of(files, Split::heldOut, 1, 2); }),
            "the data has 10 tokens; of the 1 held out not even 2 windows of 2 can be made");
}

TEST_F(LoaderTest, BatchesDependOnSeedAndNumberAlone) {
  const TokenFiles files(
      {.files = {numbers<uint16_t>("t", 5000)}, .format = Format::uint16, .vocabulary = 5000});
  const LoaderOptions options{.batch = 4, .length = 16};
  const std::vector<BatchRows> whole = batches(files, options, 11, 200); // more than two epochs
  for (const int threads : {0, 1, 2, 7})
    for (const int ahead : {0, 1, 3, 8}) {
      LoaderOptions other = options;
      other.threads = threads;
      other.ahead = ahead;
      EXPECT_TRUE(equal(batches(files, other, 11, 200), whole)) << threads << ' ' << ahead;
      other.first = 150;
      EXPECT_TRUE(equal(batches(files, other, 11, 50), {whole.begin() + 150, whole.end()}))
          << threads << ' ' << ahead;
    }
  LoaderOptions other = options;
  EXPECT_FALSE(equal(batches(files, other, 12, 200), whole));
  // Epochs differ in their order.
  const size_t epoch = Windows::of(files, Split::training, 16, 1).count / 4;
  EXPECT_NE(whole[0].tokens, whole[epoch].tokens);
}

TEST_F(LoaderTest, PartsOfBatchesAreTheirRows) {
  const TokenFiles files(
      {.files = {numbers<uint16_t>("t", 5000)}, .format = Format::uint16, .vocabulary = 5000});
  const LoaderOptions options{.batch = 12, .length = 16};
  const std::vector<BatchRows> whole = batches(files, options, 11, 60); // more than one epoch
  for (const uint64_t parts : {1, 2, 3, 4, 12}) {
    std::vector<BatchRows> joined(whole.size());
    for (uint64_t part = 0; part < parts; ++part) {
      LoaderOptions own = options;
      own.parts = parts;
      own.part = part;
      const std::vector<BatchRows> rows = batches(files, own, 11, 60);
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].tokens.size(), 12 / parts * 16);
        joined[i].tokens.insert(joined[i].tokens.end(), rows[i].tokens.begin(),
                                rows[i].tokens.end());
        joined[i].labels.insert(joined[i].labels.end(), rows[i].labels.begin(),
                                rows[i].labels.end());
      }
    }
    EXPECT_TRUE(equal(joined, whole)) << parts;
  }
}

TEST_F(LoaderTest, TextThatATokenizerEncodesIsReadLikeItsTokens) {
  // Characters a to z, and the merge of `a` and `b`.
  nlohmann::json vocabulary, file = {{"model", {{"type", "BPE"}, {"unk_token", "a"}}}};
  for (int i = 0; i < 26; ++i)
    vocabulary[std::string(1, static_cast<char>('a' + i))] = i;
  vocabulary["ab"] = 26;
  file["model"]["vocab"] = vocabulary;
  file["model"]["merges"] = {"a b"};
  const auto tokenizer = hydra::text::parseTokenizer(file.dump(), "t.json");
  const std::filesystem::path text = write("text", "abcab"), more = write("more", "zab"),
                              tokens = folder / "tokens";
  TokenFileWriter writer(tokens, tokenizer->idLimit());
  writer.write(std::array{26, 2, 26});
  writer.write(std::array{25, 26});
  writer.commit();
  const TokenFiles encoded({.files = {text, more}, .vocabulary = 27, .tokenizer = tokenizer.get()});
  EXPECT_EQ(readAll(encoded), (std::vector<int32_t>{26, 2, 26, 25, 26}));
  // A header says that a file holds tokens.
  const TokenFiles both({.files = {tokens, text}, .vocabulary = 27, .tokenizer = tokenizer.get()});
  EXPECT_EQ(readAll(both), (std::vector<int32_t>{26, 2, 26, 25, 26, 26, 2, 26}));
  EXPECT_NE(encoded.fingerprint(), both.fingerprint());
  EXPECT_NE(errorOf([&] {
              TokenFiles({.files = {write("bad", "ab\xff")}, .tokenizer = tokenizer.get()});
            }).find("bad: byte 2 of the text is no UTF-8"),
            std::string::npos);
}

TEST_F(LoaderTest, WritesTokensInTheWidthThatTheyNeed) {
  for (const int64_t limit : {65536, 65537}) {
    TokenFileWriter writer(folder / "tokens", limit);
    const std::vector<int32_t> ids = {0, 65535, 7};
    writer.write(ids);
    writer.commit();
    EXPECT_EQ(writer.width(), limit == 65536 ? 2u : 4u);
    EXPECT_EQ(std::filesystem::file_size(folder / "tokens"), 1024 + 3 * writer.width());
    EXPECT_EQ(readAll(TokenFiles(
                  {.files = {folder / "tokens"}, .format = Format::uint16, .vocabulary = 65536})),
              ids);
  }
}

TEST_F(LoaderTest, ShufflesOfAnySizeArePermutations) {
  for (const uint64_t count : {1, 2, 3, 5, 16, 17, 255, 1000})
    for (const uint64_t epoch : {0, 1}) {
      std::set<uint64_t> seen;
      for (uint64_t i = 0; i < count; ++i)
        seen.insert(shuffled(i, count, 3, epoch));
      EXPECT_EQ(seen.size(), count);
      EXPECT_EQ(*seen.rbegin(), count - 1);
    }
}

TEST_F(LoaderTest, ErrorsReachTheCallerInTheirPlace) {
  std::string text(2000, 'a');
  text[1000] = '\xFF';
  const TokenFiles files({.files = {write("t", text)}, .vocabulary = 128});
  std::vector<int> whole; // batches in front of it
  for (const int threads : {0, 1, 4}) {
    Loader loader(orderOf(files, 10, 1), {.batch = 1, .length = 10, .threads = threads});
    int good = 0;
    const std::string error = errorOf([&] {
      for (; good < 200; ++good)
        loader.next();
    });
    EXPECT_NE(error.find("t: token 1000 is 255"), std::string::npos) << error;
    EXPECT_EQ(errorOf([&] { loader.next(); }), error);
    whole.push_back(good);
  }
  EXPECT_EQ(whole, std::vector<int>(3, whole[0]));
}

TEST_F(LoaderTest, ReadsSoManyBatchesAheadAndNoMore) {
  const TokenFiles files({.files = {write("t", std::string(5000, 'a'))}});
  for (const int ahead : {1, 4}) {
    Loader loader(orderOf(files, 10, 0), {.batch = 1, .length = 10, .threads = 3, .ahead = ahead});
    loader.next();
    while (loader.ready() < ahead)
      std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(loader.ready(), ahead);
    EXPECT_NE(benchLoader(loader, 50).find("\"report\":\"R17\",\"batches\":50"), std::string::npos);
  }
}

TEST_F(LoaderTest, WithoutThreadsABatchIsReadWhenItIsAskedFor) {
  const TokenFiles files({.files = {write("t", std::string(5000, 'a'))}});
  Loader loader(orderOf(files, 10, 1), {.batch = 2, .length = 10, .threads = 0});
  loader.next();
  EXPECT_EQ(loader.ready(), 0);
  const std::string report = benchLoader(loader, 5);
  EXPECT_NE(report.find("\"threads\":0"), std::string::npos) << report;
  EXPECT_NE(report.find("\"ring_fill\":0.000,\"ring\":0"), std::string::npos) << report;
}
