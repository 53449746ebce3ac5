// Which rows batches have: whole documents side by side, and sources that are mixed.
#include "runtime/data/Loader.h"
#include "test/unit/data/DataFolder.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace hydra::data;

namespace {

class RowsTest : public DataFolder {
protected:
  /// Documents of `sizes` tokens, each of numbers that no other has.
  static Documents numbered(const std::vector<size_t> &sizes) {
    Documents documents;
    int32_t next = 1;
    for (const size_t size : sizes) {
      documents.emplace_back(size);
      for (int32_t &id : documents.back())
        id = next++;
    }
    return documents;
  }

  static BatchRows rowOf(const RowSet &rows, uint64_t index, size_t length) {
    BatchRows batch;
    batch.tokens.resize(length);
    batch.labels.resize(length);
    rows.read(index, 0, batch);
    return batch;
  }
};

constexpr ShardKind kKind{100000, 1, 0};

TEST_F(RowsTest, PackedRowsHoldEveryDocumentOnce) {
  std::mt19937_64 random(5);
  std::vector<size_t> sizes;
  for (int i = 0; i < 400; ++i)
    sizes.push_back(1 + random() % 70); // also longer than a row
  const Documents documents = numbered(sizes);
  const TokenFiles files({.files = {shards("set", documents, kKind, 3000)}, .vocabulary = 100000});
  constexpr size_t length = 32;
  std::map<int32_t, int32_t> after; // of each token, the next one in its document; 0: its end
  for (const auto &document : documents)
    for (size_t i = 0; i < document.size(); ++i)
      after[document[i]] = i + 1 < document.size() ? document[i + 1] : 0;
  std::set<int32_t> seen;
  size_t used = 0, places = 0;
  uint64_t lastTrained = 0, firstHeldOut = 100000;
  for (const Split split : {Split::training, Split::heldOut}) {
    const auto rows = packedRowsOf(files, split, length, 1);
    for (uint64_t r = 0; r < rows->count(); ++r) {
      const BatchRows row = rowOf(*rows, r, length);
      for (size_t i = 0; i < length; ++i) {
        const int32_t token = row.tokens[i];
        ++places;
        if (token == 0) { // an end, or what fills the row
          EXPECT_EQ(row.labels[i], kIgnoredLabel);
          continue;
        }
        ++used;
        EXPECT_TRUE(seen.insert(token).second) << token;
        EXPECT_EQ(row.labels[i], after.at(token));
        if (i + 1 < length) // no document but a whole row is cut
          EXPECT_EQ(row.tokens[i + 1], after.at(token));
        const auto id = static_cast<uint64_t>(token);
        if (split == Split::training)
          lastTrained = std::max(lastTrained, id);
        else
          firstHeldOut = std::min(firstHeldOut, id);
      }
    }
  }
  EXPECT_EQ(seen.size(), after.size());
  EXPECT_LT(lastTrained, firstHeldOut);
  EXPECT_GT(double(used) / double(places), 0.9);
}

TEST_F(RowsTest, PackedRowsNeedShardsWithEnds) {
  const TokenFiles text({.files = {write("text", std::string(1000, 'a'))}}),
      endless({.files = {shards("set", numbered({50}), {256, 0, -1}, 100)}});
  for (const TokenFiles *files : {&text, &endless})
    EXPECT_NE(errorOf([&] {
                packedRowsOf(*files, Split::training, 10, 1);
              }).find("are made of shards whose documents end with a token"),
              std::string::npos);
}

TEST_F(RowsTest, LabelsOfPromptsDoNotCount) {
  const std::filesystem::path path = folder / "shard";
  ShardWriter writer(path, {256, 0, 0});
  for (int i = 0; i < 30; ++i) {
    writer.write(std::array{1, 2, 3}, true);
    writer.write(std::array{4, 5, 0});
    writer.endDocument();
  }
  writer.commit();
  const TokenFiles files({.files = {path}});
  const BatchRows window = rowOf(*windowsOf(files, Split::training, 8, 1), 0, 8);
  EXPECT_EQ(window.tokens, (std::vector<int32_t>{1, 2, 3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(window.labels, (std::vector<int32_t>{-100, -100, 4, 5, 0, -100, -100, -100}));
  const BatchRows packed = rowOf(*packedRowsOf(files, Split::training, 8, 1), 0, 8);
  EXPECT_EQ(packed.tokens, (std::vector<int32_t>{1, 2, 3, 4, 5, 0, 0, 0}));
  EXPECT_EQ(packed.labels, (std::vector<int32_t>{-100, -100, 4, 5, 0, -100, -100, -100}));
}

/// Rows that say who they are: the number of a source and that of the row.
class Numbers : public RowSet {
public:
  Numbers(int32_t source, uint64_t rows) : source(source), rows(rows) {}
  uint64_t count() const override { return rows; }
  void read(uint64_t index, size_t row, BatchRows &batch) const override {
    batch.tokens[row] = source;
    batch.labels[row] = static_cast<int32_t>(index);
  }

private:
  int32_t source;
  uint64_t rows;
};

std::unique_ptr<RowOrder> mixture(uint64_t seed) {
  std::vector<RowOrder::Source> sources(3);
  const std::array<double, 3> weights = {0.5, 0.3, 0.2};
  const std::array<uint64_t, 3> rows = {1000, 50000, 7};
  for (size_t i = 0; i < 3; ++i)
    sources[i] = {std::string(1, static_cast<char>('a' + i)), weights[i],
                  std::make_unique<Numbers>(static_cast<int32_t>(i), rows[i])};
  return std::make_unique<RowOrder>(std::move(sources), seed);
}

TEST_F(RowsTest, MixturesKeepTheirWeightsAndEpochs) {
  const auto order = mixture(3);
  BatchRows rows;
  rows.tokens.resize(1);
  rows.labels.resize(1);
  std::array<uint64_t, 3> counts = {};
  std::array<std::map<int32_t, int>, 3> seen;
  for (uint64_t place = 0; place < 2 * RowOrder::kBlock; ++place) {
    order->read(place, 0, rows);
    const auto source = static_cast<size_t>(rows.tokens[0]);
    ++counts[source];
    ++seen[source][rows.labels[0]];
    if (place == 999) // long before a block is over, too
      EXPECT_NEAR(double(counts[0]), 500, 60);
  }
  EXPECT_EQ(counts, (std::array<uint64_t, 3>{65536, 39322, 26214}));
  // No row comes again before all of its source have come.
  for (size_t i = 0; i < 3; ++i) {
    const auto [least, most] = std::minmax_element(
        seen[i].begin(), seen[i].end(), [](auto &a, auto &b) { return a.second < b.second; });
    EXPECT_LE(most->second - least->second, 1) << i;
  }
  EXPECT_EQ(seen[0].size(), 1000u);
  EXPECT_EQ(seen[1].size(), 39322u);
  EXPECT_EQ(seen[2].size(), 7u);
  const std::vector<Epochs> epochs = order->epochs(2 * RowOrder::kBlock);
  EXPECT_EQ(epochs[1].source, "b");
  EXPECT_NEAR(epochs[0].passes, 65.536, 1e-9);
  EXPECT_NEAR(epochs[1].passes, 39322 / 50000.0, 1e-9);
}

TEST_F(RowsTest, SourcesOfAMixtureAreReadInWholePasses) {
  BatchRows rows;
  rows.tokens.resize(1);
  rows.labels.resize(1);
  for (const uint64_t seed : {1, 2, 3}) {
    const auto order = mixture(seed);
    constexpr std::array<size_t, 3> counts = {1000, 50000, 7};
    std::array<std::vector<int32_t>, 3> passes; // of each source the one that is not over
    std::vector<std::vector<int32_t>> small;    // those of seven rows, as they were read
    const auto isTwice = [](std::vector<int32_t> pass) {
      std::sort(pass.begin(), pass.end());
      return std::adjacent_find(pass.begin(), pass.end()) != pass.end();
    };
    for (uint64_t place = 0; place < 3 * RowOrder::kBlock + 4321; ++place) {
      order->read(place, 0, rows);
      const auto source = static_cast<size_t>(rows.tokens[0]);
      std::vector<int32_t> &pass = passes[source];
      pass.push_back(rows.labels[0]);
      if (pass.size() < counts[source])
        continue;
      ASSERT_FALSE(isTwice(pass)) << "source " << source << ", place " << place;
      if (source == 2)
        small.push_back(pass);
      pass.clear();
    }
    for (const std::vector<int32_t> &pass : passes)
      EXPECT_FALSE(isTwice(pass));
    ASSERT_GT(small.size(), 5000u);
    EXPECT_GT(std::set(small.begin(), small.end()).size(), 2000u); // of the 5040 orders
  }
}

TEST_F(RowsTest, MixedBatchesDependOnTheSeedAlone) {
  const auto batches = [](uint64_t seed, uint64_t first, int threads) {
    Loader loader(mixture(seed), {.batch = 8, .length = 1, .first = first, .threads = threads});
    std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>> all;
    for (uint64_t i = first; i < 9000; ++i) { // more than a block
      const BatchRows &rows = loader.next();
      all.emplace_back(rows.tokens, rows.labels);
    }
    return all;
  };
  const auto whole = batches(1, 0, 1);
  EXPECT_EQ(batches(1, 0, 5), whole);
  const auto late = batches(1, 8190, 3);
  EXPECT_TRUE(std::equal(late.begin(), late.end(), whole.begin() + 8190));
  EXPECT_NE(batches(2, 0, 3), whole);
}

TEST_F(RowsTest, WeightsBecomeRowsOfABlock) {
  EXPECT_EQ(rowsOfBlock({5}), (std::vector<uint64_t>{65536}));
  EXPECT_EQ(rowsOfBlock({1, 1, 1}), (std::vector<uint64_t>{21846, 21845, 21845}));
  EXPECT_EQ(rowsOfBlock({1e300, 1e300}), (std::vector<uint64_t>{32768, 32768}));
  EXPECT_EQ(errorOf([] { rowsOfBlock({1, 1e-9}); }),
            "weight 1e-09 of a mixture is less than one row in 65536");
  EXPECT_EQ(errorOf([] { rowsOfBlock({1, 0}); }),
            "weight 0 of a mixture; expected a number above 0");
  EXPECT_NE(mixture(1)->identity(), "");
}

} // namespace
