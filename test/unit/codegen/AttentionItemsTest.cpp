#include "compiler/codegen/cuda/AttentionItems.h"

#include <gmock/gmock.h>

using namespace hydra::cuda;
using testing::ElementsAre;

namespace {

TEST(AttentionItems, BlocksReadTheTilesThatTheirRowsSee) {
  const AttentionMask causal{true, 0, 0}, dense{false, 0, 0}, chunks{true, 128, 0},
      window{true, 0, 64};
  // Of three tiles of queries, two a block, the first block has one.
  EXPECT_THAT(keyTilesOf(causal, 192, 192, 2, 64), ElementsAre(1, 3));
  EXPECT_THAT(keyTilesOf(causal, 256, 256, 2, 64), ElementsAre(2, 4));
  EXPECT_THAT(keyTilesOf(causal, 256, 256, 2, 128), ElementsAre(1, 2));
  EXPECT_THAT(keyTilesOf(dense, 256, 100, 2, 64), ElementsAre(2, 2));
  EXPECT_THAT(keyTilesOf(chunks, 256, 256, 1, 64), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(keyTilesOf(window, 256, 256, 1, 64), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(queryTilesOf(causal, 256, 256, 2), ElementsAre(4, 2));
  EXPECT_THAT(queryTilesOf(causal, 200, 200, 2), ElementsAre(4, 2));
  EXPECT_THAT(queryTilesOf(dense, 100, 256, 2), ElementsAre(2, 2));
  EXPECT_THAT(queryTilesOf(chunks, 256, 256, 1), ElementsAre(2, 1, 2, 1));
  EXPECT_THAT(queryTilesOf(window, 256, 256, 1), ElementsAre(2, 2, 2, 1));
}

TEST(AttentionItems, FewHeadsOfLongItemsAreTakenInOneSection) {
  // Gradients of 4 heads of keys that 32 of queries share: a section of the cache's size has 4 of 16.
  const std::vector<int64_t> work = queryTilesOf({true, 0, 0}, 2048, 2048, 2);
  const AttentionItems items{work, 16, 132, false, 16};
  EXPECT_GT(unevenness(items, 4), 1.8);
  EXPECT_LT(unevenness(items, 1), 1.05);
  EXPECT_EQ(sectionsOf(items, 2 * 2048 * 128 * 8), 1);
}

TEST(AttentionItems, ManyItemsKeepTheirSections) {
  const std::vector<int64_t> work = keyTilesOf({true, 0, 0}, 4096, 4096, 3, 64);
  const AttentionItems items{work, 64, 132, true, static_cast<int64_t>(work.size())};
  EXPECT_LT(unevenness(items, 3), 1.05);
  EXPECT_EQ(sectionsOf(items, 2 * 4096 * 128), 3);
}

TEST(AttentionItems, EqualItemsAreAsEvenInAnySections) {
  const std::vector<int64_t> work(8, 5);
  const AttentionItems items{work, 32, 128, true, 8};
  for (int64_t sections : {1, 2, 4, 8, 32})
    EXPECT_EQ(unevenness(items, sections), 1.0);
  EXPECT_EQ(sectionsOf(items, 1), 1);
  EXPECT_EQ(sectionsOf(items, 48000000), 32) << "a head larger than the cache is a section";
}

} // namespace
