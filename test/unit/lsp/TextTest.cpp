// Places of a text as editors and as MLIR count them.
#include "tools/hydra-lsp/Text.h"

#include <gtest/gtest.h>

using namespace hydra::lsp;

namespace {

TEST(Text, CountsUtf16UnitsInLines) {
  const Text text("a𝛼b\né🙂\n");
  EXPECT_EQ(text.offsetOf({0, 0}), 0U);
  EXPECT_EQ(text.offsetOf({0, 1}), 1U);
  EXPECT_EQ(text.offsetOf({0, 3}), 5U); // behind a character of two units and four bytes
  EXPECT_EQ(text.offsetOf({1, 1}), 9U);
  EXPECT_EQ(text.offsetOf({1, 3}), 13U);
  for (size_t offset : {0, 1, 5, 6, 7, 9, 13, 14})
    EXPECT_EQ(text.offsetOf(text.positionOf(offset)), offset);
}

TEST(Text, KeepsPositionsInside) {
  const Text text("ab\ncd");
  EXPECT_EQ(text.offsetOf({0, 99}), 2U); // the end of the line
  EXPECT_EQ(text.offsetOf({9, 0}), 5U);
  EXPECT_EQ(text.offsetOf({-1, -1}), 0U);
  EXPECT_EQ(text.offsetOf({0, -1}), 0U);
  EXPECT_EQ(text.positionOf(99), Position(1, 2));
  const Text wide("🙂x");
  EXPECT_EQ(wide.offsetOf({0, 1}), 0U); // inside of a character
}

TEST(Text, KnowsTheLinesOfBoth) {
  const Text text("a\r\nb\rc\nd");
  EXPECT_EQ(text.positionOf(3), Position(1, 0)); // b
  EXPECT_EQ(text.positionOf(5), Position(2, 0)); // c
  EXPECT_EQ(text.positionOf(7), Position(3, 0)); // d
  EXPECT_EQ(text.positionOf(2), Position(0, 1)); // inside of what ends a line
  EXPECT_EQ(text.placeOf(5), std::pair(2U, 3U)); // MLIR knows "\n" alone
  EXPECT_EQ(text.offsetOfPlace(2, 3), 5U);
  EXPECT_EQ(text.offsetOfPlace(3, 1), 7U);
  EXPECT_EQ(text.offsetOfPlace(9, 9), text.str().size());
  EXPECT_EQ(text.offsetOfPlace(0, 0), 0U);
  EXPECT_EQ(text.lineAt(5), "c");
  EXPECT_EQ(text.lineAt(1), "a");
}

TEST(Text, CountsInLinesOfAnyLength) {
  // Each character, of one to four bytes, next to each of the places that are counted ahead.
  std::string content = "x\n";
  const char *const characters[] = {"a", "é", "漢", "🙂"};
  for (int i = 0; i < 2000; ++i)
    content += characters[(i * i + i / 7) % 4];
  content += "\r\n🙂";
  const Text text(content);
  int units = 0;
  for (size_t at = 2; at < content.size() - 6;) {
    const auto byte = static_cast<unsigned char>(content[at]);
    const size_t bytes = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    ASSERT_EQ(text.positionOf(at), Position(1, units)) << at;
    ASSERT_EQ(text.offsetOf({1, units}), at);
    units += bytes == 4 ? 2 : 1;
    if (bytes == 4)
      ASSERT_EQ(text.offsetOf({1, units - 1}), at); // inside of a character
    at += bytes;
  }
  EXPECT_EQ(text.offsetOf({1, units}), content.size() - 6);
  EXPECT_EQ(text.offsetOf({1, units + 1}), content.size() - 6);
  EXPECT_EQ(text.offsetOf({1, 1 << 30}), content.size() - 6);
  EXPECT_EQ(text.lineAt(1000).size(), content.size() - 8);
  EXPECT_EQ(text.offsetOf({2, 2}), content.size());
  const Text aligned(std::string(512, 'a'));
  EXPECT_EQ(aligned.offsetOf({0, 512}), 512U);
  EXPECT_EQ(aligned.positionOf(512), Position(0, 512));
}

TEST(Text, ReplacesAPart) {
  const Text text("one\ntwo\n");
  EXPECT_EQ(text.replaced({{0, 1}, {1, 1}}, "-"), "o-wo\n");
  EXPECT_EQ(text.replaced({{2, 0}, {2, 0}}, "three"), "one\ntwo\nthree");
  EXPECT_EQ(text.replaced({{1, 2}, {0, 1}}, "x"), "one\ntwxo\n"); // a range that is none
}

} // namespace
