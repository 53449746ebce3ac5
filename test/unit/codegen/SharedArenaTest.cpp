// Places in a block's shared memory.
#include "compiler/codegen/cuda/SharedArena.h"

#include <gtest/gtest.h>

namespace {

using hydra::cuda::SharedArena;

constexpr int64_t kAlignment = SharedArena::kAlignment;

TEST(SharedArenaTest, WhatIsNeededAtTheSameTimeDoesNotOverlap) {
  SharedArena arena(1024);
  EXPECT_EQ(arena.place(8), 0);
  EXPECT_EQ(arena.place(200, 0, 2), kAlignment);
  EXPECT_EQ(arena.place(100, 2, 3), 3 * kAlignment);
  EXPECT_EQ(arena.bytes(), 3 * kAlignment + 100);
}

TEST(SharedArenaTest, WhatIsNeededLaterTakesTheFirstGap) {
  SharedArena arena(1024);
  EXPECT_EQ(arena.place(128, 0, 4), 0);
  EXPECT_EQ(arena.place(128, 0, 1), 128);
  EXPECT_EQ(arena.place(128, 0, 4), 256);
  EXPECT_EQ(arena.place(256, 2, 3), 384); // the gap is too small
  EXPECT_EQ(arena.place(128, 2, 3), 128);
  EXPECT_EQ(arena.place(64), 640); // above all that is ever there
  EXPECT_EQ(arena.bytes(), 704);
}

TEST(SharedArenaTest, WhereThereIsNoRoomNothingIsTaken) {
  SharedArena arena(256);
  EXPECT_EQ(arena.place(129, 0, 1), 0);
  EXPECT_EQ(arena.place(1, 1, 2), std::nullopt);
  EXPECT_EQ(arena.bytes(), 129);
  EXPECT_EQ(arena.place(256, 2, 2), 0);
  EXPECT_EQ(arena.bytes(), 256);
}

} // namespace
