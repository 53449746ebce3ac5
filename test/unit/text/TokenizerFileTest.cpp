// Tokenizer files: what is wrong with them is said in one line; streams, added tokens, stop tokens.
#include "runtime/support/Error.h"
#include "runtime/text/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

using namespace hydra::text;
using hydra::support::Error;
using nlohmann::json;

namespace {

/// Characters, with bytes for all others, and the merges `a b` and `ab c`.
json small() {
  json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"a", 3}, {"b", 4},
                     {"c", 5},     {"ab", 6},  {"abc", 7},  {"▁", 8}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocabulary[name] = 9 + byte;
  }
  return {{"version", "1.0"},
          {"added_tokens", json::array({{{"id", 1}, {"content", "<s>"}, {"special", true}},
                                        {{"id", 2}, {"content", "</s>"}, {"special", true}}})},
          {"normalizer", {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}},
          {"pre_tokenizer", nullptr},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             json::array({{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                          {{"type", "ByteFallback"}},
                          {{"type", "Fuse"}}})}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocabulary},
            {"merges", json::array({"a b", json::array({"ab", "c"})})}}}};
}

std::string base64(std::string bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  bytes.resize((bytes.size() + 2) / 3 * 3);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) { return uint32_t{static_cast<unsigned char>(bytes[i + k])}; };
    const uint32_t word = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int shift = 18; shift >= 0; shift -= 6)
      text += digits[word >> shift & 63];
  }
  return text;
}

std::string errorOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

std::string errorOf(const json &file) {
  return errorOf([&] { parseTokenizer(file.dump(), "t.json"); });
}

/// The file with a member, given as a JSON pointer, set to another value.
json with(const char *place, const json &value) {
  json file = small();
  file[json::json_pointer(place)] = value;
  return file;
}

class FolderTest : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("hydra-text-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void write(const char *name, const std::string &content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
  }
  std::filesystem::path folder;
};

} // namespace

TEST(TokenizerFile, EncodesAndDecodes) {
  const auto tokenizer = parseTokenizer(small().dump(), "t.json");
  EXPECT_EQ(tokenizer->encode("abc ab<s>é"),
            (std::vector<int32_t>{7, 8, 6, 1, 9 + 0xc3, 9 + 0xa9}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("abc ab<s>é")), "abc abé");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("abc<s>"), Specials::show), "abc<s>");
  EXPECT_EQ(tokenizer->idLimit(), 265);
  EXPECT_EQ(tokenizer->find("</s>"), 2);
  EXPECT_EQ(tokenizer->find("abc"), 7);
  EXPECT_EQ(tokenizer->find("xyz"), std::nullopt);
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{7, 100000, 3}), "abca"); // no such token
  EXPECT_EQ(errorOf([&] { tokenizer->decode(std::vector<int32_t>{-1}); }),
            "token id -1 is negative");
  EXPECT_EQ(errorOf([&] { tokenizer->encode("ab\xff"); }), "byte 2 of the text is no UTF-8");
}

TEST(TokenizerFile, WordsInAClassAndAlone) {
  const auto marked = [](const char *expression) {
    const auto tokenizer =
        parseTokenizer(with("/normalizer/pattern", {{"Regex", expression}}).dump(), "t.json");
    return tokenizer->decode(tokenizer->encode("½ a²", Around::nothing));
  };
  // What matches becomes a mark, which is decoded as a space.
  EXPECT_EQ(marked("\\w"), "    ");
  EXPECT_EQ(marked("[\\w]"), "½  ²");
  EXPECT_EQ(marked("[^\\w\\s]"), "  a ");
}

TEST(TokenizerFile, OneMarkStandsInFrontOfATextThatBeginsAsItWas) {
  const auto ids = [](const char *expression, const char *text) {
    json file = with("/normalizer/pattern", {{"Regex", expression}});
    file["normalizer"]["content"] = "a";
    file["pre_tokenizer"] = {
        {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}};
    return parseTokenizer(file.dump(), "t.json")->encode(text, Around::nothing);
  };
  EXPECT_EQ(ids("c", "cb"), (std::vector<int32_t>{8, 6}));
  EXPECT_EQ(ids("c+", "ccb"), (std::vector<int32_t>{6}));
  EXPECT_EQ(ids("c+", "bcc"), (std::vector<int32_t>{8, 4, 3}));
}

TEST(TokenizerFile, AMarkStandsInFrontOfEachPieceOfTheFirstCharacter) {
  const auto ids = [](const json &normalizer, const json &cut, const char *text) {
    json file = with("/normalizer", normalizer);
    const json marks = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}};
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array({cut, marks})}};
    return parseTokenizer(file.dump(), "t.json")->encode(text, Around::nothing);
  };
  const auto byte = [](int value) { return 9 + value; };
  const json digits = {{"type", "Digits"}, {"individual_digits", false}};
  const json spaces = {{"type", "WhitespaceSplit"}};
  // A half is a digit, a slash and a digit then.
  EXPECT_EQ(ids({{"type", "NFKC"}}, digits, "½b1"),
            (std::vector<int32_t>{8, byte('1'), 8, byte(0xe2), byte(0x81), byte(0x84), 8, byte('2'),
                                  4, byte('1')}));
  EXPECT_EQ(ids({{"type", "Prepend"}, {"prepend", "c "}}, spaces, "ab b"),
            (std::vector<int32_t>{8, 5, 8, 6, 4}));
  EXPECT_EQ(ids({{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}, spaces, " ab b"),
            (std::vector<int32_t>{6, 4}));
}

TEST(TokenizerFile, WithoutAnUnknownTokenLongerTokensSpellACharacter) {
  json file = with("/model",
                   {{"type", "Unigram"},
                    {"vocab", json::array({json::array({"<s>", 0}), json::array({"a", -1}),
                                           json::array({"</s>", 0}), json::array({"ab", -1.5})})}});
  file.erase("added_tokens");
  file.erase("decoder");
  const auto tokenizer = parseTokenizer(file.dump(), "t.json");
  EXPECT_EQ(tokenizer->encode("aab", Around::nothing), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(errorOf([&] { tokenizer->encode("ba"); }),
            "the text holds 'b', which no token spells, and the tokenizer has no unknown token");
}

TEST(TokenizerFile, SpacesBehindATokenMayBeTokens) {
  json file = small();
  file["added_tokens"].push_back(
      {{"id", 265}, {"content", "<x>"}, {"special", true}, {"rstrip", true}});
  file["added_tokens"].push_back({{"id", 266}, {"content", "  "}, {"special", true}});
  EXPECT_EQ(parseTokenizer(file.dump(), "t.json")->encode("<x>     a", Around::nothing),
            (std::vector<int32_t>{265, 266, 266, 8, 3}));
}

// Neither takes time that grows with the square of these.
TEST(TokenizerFile, ManyMarksAndSpacesInARow) {
  constexpr size_t count = 300'000;
  const auto tokenizer = parseTokenizer(with("/normalizer", {{"type", "NFD"}}).dump(), "t.json");
  std::string marks = "a", ordered = "a";
  for (size_t i = 0; i < count; ++i) {
    marks += "\u0301\u0327";
    ordered += "\u0327";
  }
  for (size_t i = 0; i < count; ++i)
    ordered += "\u0301";
  EXPECT_TRUE(tokenizer->decode(tokenizer->encode(marks, Around::nothing)) == ordered);

  for (const char *flag : {"lstrip", "rstrip"}) {
    json spaces = small();
    spaces["added_tokens"].push_back(
        {{"id", 265}, {"content", "  "}, {"special", true}, {flag, true}});
    const auto ids = parseTokenizer(spaces.dump(), "t.json")
                         ->encode(std::string(2 * count, ' ') + "a", Around::nothing);
    EXPECT_EQ(ids.size(), count + 1) << flag;
  }
}

TEST(TokenizerFile, StreamsWholeCharacters) {
  const auto tokenizer = parseTokenizer(small().dump(), "t.json");
  const auto stream = tokenizer->stream();
  const auto byte = [](int value) { return 9 + value; };
  EXPECT_EQ(stream->add(7), "abc");
  EXPECT_EQ(stream->add(byte(0xf0)), "");
  EXPECT_EQ(stream->add(byte(0x9f)), "");
  EXPECT_EQ(stream->add(byte(0x92)), "");
  EXPECT_EQ(stream->add(byte(0x96)), "\xf0\x9f\x92\x96");
  EXPECT_EQ(stream->add(1), ""); // special
  EXPECT_EQ(stream->add(byte(0xe2)), "");
  EXPECT_EQ(stream->add(8), "\xef\xbf\xbd "); // which nothing completes any more
  EXPECT_EQ(stream->add(byte(0xe2)), "");
  EXPECT_EQ(stream->finish(), "\xef\xbf\xbd");
}

TEST(TokenizerFile, StreamsForDecodersThatLookAtTokensWaitForTheirEnds) {
  const auto tokenizer = parseTokenizer(
      with("/decoder/decoders",
           json::array({{{"type", "ByteFallback"}},
                        {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}}))
          .dump(),
      "t.json");
  const std::vector<int32_t> ids = {9 + 0xc3, 9 + 0xa9, 9 + 0xc3, 9 + 0xa9, 3};
  const auto stream = tokenizer->stream();
  std::string text;
  for (const int32_t id : ids)
    text += stream->add(id);
  EXPECT_EQ(text + stream->finish(), "éé a");
  EXPECT_EQ(tokenizer->decode(ids), "éé a");
}

TEST(TokenizerFile, LongWordsAreMergedLikeShortOnes) {
  const auto tokenizer = parseTokenizer(small().dump(), "t.json");
  std::string text;
  std::vector<int32_t> expected;
  for (int i = 0; i < 5000; ++i) {
    text += i % 3 == 0 ? "abc" : i % 3 == 1 ? "ab" : "ba";
    const std::vector<int32_t> part = i % 3 == 0   ? std::vector<int32_t>{7}
                                      : i % 3 == 1 ? std::vector<int32_t>{6}
                                                   : std::vector<int32_t>{4};
    expected.insert(expected.end(), part.begin(), part.end());
    if (i % 3 == 2) // the next word begins with `a`
      expected.push_back(3);
  }
  EXPECT_EQ(tokenizer->encode(text), expected);
}

TEST(TokenizerFile, DocumentsOfALargeTextAreEncodedTogether) {
  const auto tokenizer = parseTokenizer(small().dump(), "t.json");
  std::string text;
  std::vector<int32_t> expected;
  for (int i = 0; text.size() < (size_t{7} << 20); ++i) {
    std::string document;
    for (int j = 0; j < 2000 + i % 1000; ++j)
      document += j % 7 == 0 ? "abc " : j % 3 == 0 ? "cab" : "é b";
    const std::vector<int32_t> ids = tokenizer->encode(document, Around::nothing);
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back(2);
    text += document + "</s>";
  }
  EXPECT_EQ(tokenizer->encode(text, Around::nothing), expected);
}

TEST(TokenizerFile, StripsBothEndsOfAStream) {
  json file = small();
  file["decoder"]["decoders"].push_back(
      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 2}});
  const auto tokenizer = parseTokenizer(file.dump(), "t.json");
  const auto stream = tokenizer->stream();
  EXPECT_EQ(stream->add(8), "");
  EXPECT_EQ(stream->add(8), "");
  EXPECT_EQ(stream->add(3), " a");
  EXPECT_EQ(stream->add(8), "");
  EXPECT_EQ(stream->add(8), "");
  EXPECT_EQ(stream->add(8), " ");
  EXPECT_EQ(stream->finish(), "");
}

// What decoders do to the first token alone, or until another follows, was done to the prompt.
TEST(TokenizerFile, GoesOnBehindAPrompt) {
  const auto behind = [](const json &decoder, std::vector<int32_t> prompt,
                         std::vector<int32_t> ids) {
    const auto tokenizer = parseTokenizer(with("/decoder", decoder).dump(), "t.json");
    const auto stream = tokenizer->streamBehind(prompt);
    std::string text;
    for (const int32_t id : ids)
      text += stream->add(id);
    return text + stream->finish();
  };
  const json metaspace = {{"type", "Metaspace"}, {"replacement", "▁"}};
  EXPECT_EQ(behind(metaspace, {1, 3}, {8, 4}), " b");
  EXPECT_EQ(behind(metaspace, {1}, {8, 4}), "b"); // nothing is in front
  json llama = small()["decoder"];
  llama["decoders"].push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  EXPECT_EQ(behind(llama, {1, 8, 3}, {8, 4}), " b");
  EXPECT_EQ(behind(llama, {1, 8, 3, 8}, {4}), "b");
  EXPECT_EQ(behind({{"type", "WordPiece"}, {"prefix", "a"}, {"cleanup", false}}, {4}, {6, 4}),
            "b b");
  EXPECT_EQ(behind(nullptr, {3}, {4}), " b");
  EXPECT_EQ(behind({{"type", "BPEDecoder"}, {"suffix", "b"}}, {3, 6}, {5, 6}), " ca");
}

TEST(TokenizerFile, SaysWhichFieldIsWrong) {
  EXPECT_EQ(errorOf(with("/model/type", "Neural")),
            "t.json: model.type is 'Neural', a model that is not supported");
  EXPECT_EQ(errorOf(with("/model/merge", 1)), "t.json: model.merge is not known");
  EXPECT_EQ(errorOf(with("/model/dropout", 0.1)),
            "t.json: model.dropout is 0.1; only 0 is supported, which gives the same tokens every "
            "time");
  EXPECT_EQ(errorOf(with("/model/merges/1", "a  b")),
            "t.json: model.merges[1] is 'a  b'; expected two tokens with a space between");
  EXPECT_EQ(errorOf(with("/model/merges/1", json::array({"a", "x"}))),
            "t.json: model.merges[1] needs the token 'ax', which is not in the vocabulary");
  EXPECT_EQ(errorOf(with("/model/merges/1", 5)), "t.json: model.merges[1] is no pair of tokens");
  EXPECT_EQ(errorOf(with("/model/vocab/x", -1)),
            "t.json: model.vocab.x is -1; expected an integer in [0, 4194304)");
  EXPECT_EQ(errorOf(with("/model/vocab/x", 1e300)),
            "t.json: model.vocab.x is number; expected an integer");
  EXPECT_EQ(errorOf(with("/model/vocab/x", 4194304)),
            "t.json: model.vocab.x is 4194304; expected an integer in [0, 4194304)");
  EXPECT_EQ(errorOf(with("/model/vocab/x", 3)),
            "t.json: model.vocab.x has the id 3, which 'a' has too");
  EXPECT_EQ(errorOf(with("/model/unk_token", "[UNK]")),
            "t.json: model.unk_token is '[UNK]', which is not in the vocabulary");
  EXPECT_EQ(errorOf(with("/model", nullptr)), "t.json: has no model");
  EXPECT_EQ(errorOf(with("/model/vocab", json::array())),
            "t.json: model.vocab is array; expected an object");
  EXPECT_EQ(errorOf(with("/version", "2.0")), "t.json: version is '2.0'; expected 1.0");
  EXPECT_EQ(errorOf(with("/added_tokens/0/id", 3)),
            "t.json: added_tokens[0] gives '<s>' the id 3; in the vocabulary it has 1");
  EXPECT_EQ(errorOf(with("/added_tokens/0/content", "new")),
            "t.json: added_tokens[0] gives 'new' the id 1, which '<s>' has in the vocabulary");
  EXPECT_EQ(errorOf(with("/added_tokens/1", small()["added_tokens"][0])),
            "t.json: added_tokens[1] '<s>' with the id 1 is there twice");
  EXPECT_EQ(
      errorOf([] {
        json file = with("/normalizer/content", "");
        file["added_tokens"].push_back({{"id", 265}, {"content", "  "}});
        parseTokenizer(file.dump(), "t.json");
      }),
      "t.json: added_tokens[2] '  ' is looked for in normalized text, and normalization leaves "
      "nothing of it");
  EXPECT_EQ(errorOf(with("/added_tokens/0/lstrip", 1)),
            "t.json: added_tokens[0].lstrip is number; expected true or false");
  EXPECT_EQ(errorOf(with("/normalizer/type", "Rot13")),
            "t.json: normalizer.type is 'Rot13', a normalizer that is not supported");
  EXPECT_EQ(errorOf(with("/normalizer/pattern/String", "")),
            "t.json: normalizer.pattern.String is empty");
  EXPECT_EQ(errorOf(with("/normalizer/pattern", {{"Regex", "(a"}})),
            "t.json: normalizer.pattern.Regex is the expression '(a', which is not supported: a "
            "group is not closed at byte 2");
  EXPECT_EQ(errorOf(with("/normalizer/pattern", {{"Regex", "\\p{Nonsense}"}})),
            "t.json: normalizer.pattern.Regex is the expression '\\p{Nonsense}': unknown property "
            "after \\P or \\p");
  // Without case several letters can be one, of which PCRE2 knows nothing.
  const auto refusedFolding = [&](const char *expression) {
    const std::string error = errorOf(with("/normalizer/pattern", {{"Regex", expression}}));
    return error.find("' without case, which is '") != std::string::npos;
  };
  EXPECT_EQ(
      errorOf(with("/normalizer/pattern", {{"Regex", "(?i:aSs)"}})),
      "t.json: normalizer.pattern.Regex is the expression '(?i:aSs)', which is not supported: "
      "'ß' without case, which is 'ss' as well, at byte 8");
  for (const char *expression : {"(?i:ß)", "(?i:'st|x)", "(?i:s(?:s))", "(?i:ss)+", "(?i:[À-ÿ])",
                                 "(?i:\\x{df})", "(?i:f\\x69)", "(?i:(?-i:x)(?>FI))"})
    EXPECT_TRUE(refusedFolding(expression)) << expression;
  for (const char *expression :
       {"(?i:'s|'t|'re|'ve|'m|'ll|'d)", "ss", "(?i:s|s)", "(?i:ss?)", "(?i:s+s)", "(?i:[a-z]s)",
        "(?i:[^ß])", "(?i:(?-i:ss))", "(?i:s.s)", "(?i:s)|(?i:s)", "[ß]"})
    EXPECT_FALSE(refusedFolding(expression)) << expression;
  EXPECT_EQ(
      errorOf(with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAEAAA=="}})),
      "t.json: normalizer.precompiled_charsmap has 4 bytes, which do not hold the map that "
      "they begin with");
  EXPECT_EQ(
      errorOf(with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "A*=="}})),
      "t.json: normalizer.precompiled_charsmap is no base64 at character 1");
  // A map that leads `a` behind its texts: the root, the unit of `a`, and its value.
  std::string map(4 + 1024, '\0');
  const auto put = [&](size_t place, uint32_t number) {
    std::memcpy(&map[place], &number, sizeof number);
  };
  put(0, 1024);
  put(4, 1 << 10);
  put(4 + 4 * (1 ^ 'a'), uint32_t{(1 ^ 'a') ^ 2} << 10 | 0x100 | 'a');
  put(4 + 4 * 2, 0x80000000 + 99);
  EXPECT_EQ(errorOf(with("/normalizer",
                         {{"type", "Precompiled"}, {"precompiled_charsmap", base64(map + "x ")}})),
            "t.json: normalizer.precompiled_charsmap is broken: the map of characters leads to no "
            "text for 'a'");
  EXPECT_EQ(errorOf(with("/pre_tokenizer", {{"type", "Split"},
                                            {"pattern", {{"String", "x"}}},
                                            {"behavior", "Lost"},
                                            {"invert", false}})),
            "t.json: pre_tokenizer.behavior is 'Lost'; expected Removed, Isolated, "
            "MergedWithPrevious, MergedWithNext or Contiguous");
  EXPECT_EQ(errorOf(with("/pre_tokenizer", {{"type", "UnicodeScripts"}})),
            "t.json: pre_tokenizer.type is 'UnicodeScripts', a pre-tokenizer that is not "
            "supported");
  EXPECT_EQ(errorOf(with("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}})),
            "t.json: pre_tokenizer.replacement is 'ab'; expected one character");
  EXPECT_EQ(errorOf(with("/decoder/decoders/1/type", "CTC")),
            "t.json: decoder.decoders[1].type is 'CTC', a decoder that is not supported");
  EXPECT_EQ(errorOf(with("/post_processor", {{"type", "TemplateProcessing"},
                                             {"single", json::array()},
                                             {"special_tokens", json::object()}})),
            "t.json: post_processor.single has no Sequence");
  EXPECT_EQ(errorOf(with("/post_processor", {{"type", "BertProcessing"},
                                             {"cls", json::array({"<s>", 1})},
                                             {"sep", json::array({"</s>", 265})}})),
            "t.json: post_processor.sep[1] is 265; expected an integer in [0, 265)");
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 20; ++i)
    nested = {{"type", "Sequence"}, {"normalizers", json::array({nested})}};
  EXPECT_NE(errorOf(with("/normalizer", nested)).find("is nested more than 16 deep"),
            std::string::npos);
}

TEST(TokenizerFile, RefusesWhatIsNoJson) {
  const auto parsed = [](const std::string &content) {
    return errorOf([&] { parseTokenizer(content, "t.json"); });
  };
  const std::string whole = small().dump();
  EXPECT_EQ(parsed(whole.substr(0, 500)), "t.json: ends inside of its JSON, after 500 bytes");
  EXPECT_EQ(parsed(""), "t.json: ends inside of its JSON, after 0 bytes");
  EXPECT_EQ(parsed("{\"model\": \xff}"), "t.json: byte 10 is no UTF-8");
  EXPECT_EQ(parsed("{\"model\": oops}"), "t.json: is no JSON: a mistake at byte 11");
  EXPECT_EQ(parsed(std::string("{}\0{}", 5)), "t.json: is no JSON: a mistake at byte 3");
  EXPECT_EQ(parsed("[]"), "t.json: is array; expected an object");
  EXPECT_EQ(parsed(R"({"version": "1.0", "version": "1.0"})"),
            "t.json: has the field 'version' twice");
  EXPECT_EQ(parsed(R"({"model": {"vocab": {"a": 0, "b": 1, "a": 2}}})"),
            "t.json: has the field 'a' twice");
  EXPECT_EQ(parsed(std::string(200000, '[')),
            "t.json: ends inside of its JSON, after 200000 bytes");
}

TEST(TokenizerFile, AnExpressionThatNeedsTooLongIsAnError) {
  const auto tokenizer =
      parseTokenizer(with("/pre_tokenizer", {{"type", "Split"},
                                             {"pattern", {{"Regex", "(a+)+[bc]"}}},
                                             {"behavior", "Isolated"},
                                             {"invert", false}})
                         .dump(),
                     "t.json");
  EXPECT_NE(errorOf([&] {
              tokenizer->encode(std::string(400, 'a'));
            }).find("cannot be searched for behind byte 0 of the text: "),
            std::string::npos);
}

TEST(TokenizerFile, SaysThatAModelKnowsFewerIds) {
  const auto tokenizer = parseTokenizer(small().dump(), "t.json");
  EXPECT_EQ(errorOf([&] { checkIds(*tokenizer, "t.json", 256); }),
            "t.json has token ids up to 264; the model knows ids in [0, 256)");
  EXPECT_NO_THROW(checkIds(*tokenizer, "t.json", 265));
}

TEST_F(FolderTest, ReadsWhereATextEnds) {
  write("tokenizer.json", small().dump());
  EXPECT_TRUE(readTokenizer(folder)->stopIds().empty());
  write("tokenizer_config.json", R"({"eos_token": {"content": "</s>"}, "other": 1})");
  EXPECT_EQ(readTokenizer(folder)->stopIds(), std::vector<int32_t>{2});
  write("tokenizer_config.json", R"({"eos_token": "</end>"})");
  EXPECT_NE(errorOf([&] {
              readTokenizer(folder);
            }).find("tokenizer_config.json: eos_token is '</end>', which is no token"),
            std::string::npos);
  write("generation_config.json", R"({"eos_token_id": [7, 2, 7]})");
  EXPECT_EQ(readTokenizer(folder / "tokenizer.json")->stopIds(), (std::vector<int32_t>{2, 7}));
  write("generation_config.json", R"({"eos_token_id": 5})");
  EXPECT_EQ(readTokenizer(folder)->stopIds(), std::vector<int32_t>{5});
  write("generation_config.json", R"({"eos_token_id": "x"})");
  EXPECT_NE(errorOf([&] { readTokenizer(folder); }).find("eos_token_id is string"),
            std::string::npos);
  // A link that leads nowhere is no folder without the file.
  std::filesystem::remove(folder / "generation_config.json");
  std::filesystem::create_symlink("gone", folder / "generation_config.json");
  EXPECT_NE(errorOf([&] {
              readTokenizer(folder);
            }).find("generation_config.json: No such file or directory"),
            std::string::npos);
}
