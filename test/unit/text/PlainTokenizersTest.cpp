// Bytes and ids: text to tokens, and back piece by piece.
#include "runtime/support/Error.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>

using namespace hydra::text;
using hydra::support::Error;

TEST(PlainTokenizers, BytesOfAnyKindComeBack) {
  const std::unique_ptr<Tokenizer> bytes = makeByteTokenizer();
  const std::string text("a\xc3\xa9\xff\x00\xf0\x9f\x92\x96\xe2\x82", 11);
  const std::vector<int32_t> ids = bytes->encode(text);
  EXPECT_EQ(ids.size(), text.size());
  EXPECT_EQ(bytes->decode(ids), text);
  EXPECT_EQ(bytes->idLimit(), 256);
  EXPECT_TRUE(bytes->stopIds().empty());
}

TEST(PlainTokenizers, BytesOfACharacterWaitForEachOther) {
  const std::unique_ptr<TextStream> stream = makeByteTokenizer()->stream();
  EXPECT_EQ(stream->add('a'), "a");
  EXPECT_EQ(stream->add(0xe2), "");
  EXPECT_EQ(stream->add(0x82), "");
  EXPECT_EQ(stream->add(0xac), "\xe2\x82\xac");
  EXPECT_EQ(stream->add(0xc3), "");
  EXPECT_EQ(stream->add('b'), "\xc3"
                              "b");
  EXPECT_EQ(stream->add(0xf0), "");
  EXPECT_EQ(stream->finish(), "\xf0");
  EXPECT_THROW(makeByteTokenizer()->stream()->add(256), Error);
}

TEST(PlainTokenizers, BytesThatAreThereAreNotRepeated) {
  const std::unique_ptr<Tokenizer> bytes = makeByteTokenizer();
  const std::unique_ptr<TextStream> stream = bytes->streamBehind(bytes->encode("a\xe2\x82"));
  EXPECT_EQ(stream->add(0xac), "\xac");
  EXPECT_EQ(stream->add('b'), "b");
  const std::unique_ptr<TextStream> other = bytes->streamBehind(bytes->encode("\xe2"));
  EXPECT_EQ(other->add('b'), "b");
  EXPECT_EQ(bytes->streamBehind(bytes->encode("\xe2"))->finish(), "");
}

TEST(PlainTokenizers, IdsAreNumbers) {
  const std::unique_ptr<Tokenizer> ids = makeIdTokenizer();
  EXPECT_EQ(ids->encode("1, 22  333"), (std::vector<int32_t>{1, 22, 333}));
  EXPECT_EQ(ids->decode(std::vector<int32_t>{7, 8}), " 7 8");
  EXPECT_THROW(ids->encode("1 x"), Error);
  EXPECT_THROW(ids->encode("99999999999"), Error);
}

TEST(Utf8, TellsWhatIsCutFromWhatIsWrong) {
  const auto kind = [](std::string_view text, size_t bytes) {
    Character found;
    const Utf8 result = readUtf8(text, found);
    EXPECT_EQ(found.bytes, bytes) << text;
    return result;
  };
  EXPECT_EQ(kind("\xf0\x9f\x92\x96x", 4), Utf8::character);
  EXPECT_EQ(kind("\xf0\x9f\x92", 3), Utf8::cut);
  EXPECT_EQ(kind("\xf0\x9fx", 2), Utf8::invalid);
  EXPECT_EQ(kind("\xed\xa0\x80", 1), Utf8::invalid); // a surrogate
  EXPECT_EQ(kind("\xf4\x90\x80\x80", 1), Utf8::invalid);
  EXPECT_EQ(kind("\xc0\xaf", 1), Utf8::invalid);
  EXPECT_EQ(kind("\x80", 1), Utf8::invalid);
  EXPECT_EQ(findInvalidUtf8("0123456789\xc3\xa9\xff"), 12u);
  EXPECT_EQ(findInvalidUtf8("0123456789\xc3\xa9"), std::string_view::npos);
}
