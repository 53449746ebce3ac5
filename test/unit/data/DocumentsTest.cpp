// Documents of text and JSON lines, packed or not, in pieces or whole: the same tokens.
#include "runtime/data/EncodeFiles.h"
#include "test/unit/data/DataFolder.h"

#include <nlohmann/json.hpp>

#include <random>

using namespace hydra::data;
namespace text = hydra::text;

namespace {

class DocumentsTest : public DataFolder {
protected:
  struct Result {
    std::vector<std::string> documents; // with prompts in brackets
    uint64_t leftOut = 0;
  };

  /// The documents of a file by the tokenizer of bytes.
  Result documentsOf(const std::string &content, const TextFormat &format) {
    const auto tokenizer = text::makeByteTokenizer();
    const std::vector<TextInput> files = {{write("input", content), format}};
    Result result;
    std::string document;
    encodeFiles(files, *tokenizer, 2, [&](const EncodedChunk &chunk) {
      size_t begin = 0;
      for (const EncodedChunk::Part &part : chunk.parts) {
        const std::string piece =
            tokenizer->decode(std::span(chunk.ids).subspan(begin, part.end - begin));
        document += part.prompt ? "[" + piece + "]" : piece;
        begin = part.end;
        if (part.ends && !document.empty()) {
          result.documents.push_back(document);
          document.clear();
        }
      }
      result.leftOut += chunk.leftOut;
    });
    EXPECT_EQ(document, "");
    return result;
  }

  static std::vector<int32_t> idsOf(const TextInput &file, const text::Tokenizer &tokenizer,
                                    int threads) {
    std::vector<int32_t> ids;
    encodeFiles(std::span(&file, 1), tokenizer, threads, [&](const EncodedChunk &chunk) {
      ids.insert(ids.end(), chunk.ids.begin(), chunk.ids.end());
    });
    return ids;
  }
};

using Texts = std::vector<std::string>;

TEST_F(DocumentsTest, TextIsCutAtItsSeparator) {
  EXPECT_EQ(documentsOf("\na\n\nb\n", {}).documents, (Texts{"\na\n\nb\n"}));
  EXPECT_EQ(documentsOf("", {}).documents, Texts{});
  EXPECT_EQ(documentsOf("\na\r\n\nb c", {.separators = {"\n"}}).documents, (Texts{"a", "b c"}));
  EXPECT_EQ(documentsOf("a\nb\n\n\n\n\nc\n\n", {.separators = {"\n\n"}}).documents,
            (Texts{"a\nb", "c"}));
  EXPECT_EQ(documentsOf("a\r\nb\r\n\r\nc\n\nd\r\n", {.separators = {"\n\n", "\n\r\n"}}).documents,
            (Texts{"a\r\nb", "c", "d"}));
  EXPECT_EQ(documentsOf("<e>a\n<e><e>b<e", {.separators = {"<e>"}}).documents, (Texts{"a", "b<e"}));
}

TEST_F(DocumentsTest, JsonLinesHaveFields) {
  const std::string lines = "{\"text\": \"a\\n\u00e9\", \"id\": 3}\n\n  \r\n{\"text\": \"b\"}";
  EXPECT_EQ(documentsOf(lines, {.jsonLines = true}).documents, (Texts{"a\n\u00e9", "b"}));
  const std::string turns = "{\"q\": \"who\", \"a\": \"me\"}\n{\"a\": \"you\", \"q\": \"\"}\n";
  EXPECT_EQ(documentsOf(turns, {.jsonLines = true, .prompt = "q", .response = "a"}).documents,
            (Texts{"[who]me", "[]you"}));
  const auto error = [&](const std::string &line, const TextFormat &format) {
    const std::string all = errorOf([&] { documentsOf("{\"text\": \"a\"}\n" + line, format); });
    return all.substr(std::min(all.size(), all.find("line")));
  };
  const TextFormat usual{.jsonLines = true};
  EXPECT_EQ(error("{\"text\": }", usual), "line 2: is no JSON object");
  EXPECT_EQ(error("[1]", usual), "line 2: is no JSON object");
  EXPECT_EQ(error(std::string("{\"text\": \"a\"}\0more", 18), usual), "line 2: is no JSON object");
  EXPECT_EQ(error("{\"texts\": \"a\"}", usual), "line 2: has no field 'text'");
  EXPECT_EQ(error("{\"text\": 3}", usual), "line 2: its field 'text' is no text");
  const Result rest = documentsOf("{\"text\": \"a\"}\nno\n{\"q\":\"\"}\n{\"text\": \"b\"}",
                                  {.jsonLines = true, .leaveOutBad = true});
  EXPECT_EQ(rest.documents, (Texts{"a", "b"}));
  EXPECT_EQ(rest.leftOut, 2u);
}

TEST_F(DocumentsTest, PackedFilesHoldTheSame) {
  std::string content;
  for (int i = 0; i < 200000; ++i)
    content += "line " + std::to_string(i) + "\n";
  const TextFormat lines{.separators = {"\n"}};
  const Texts expected = documentsOf(content, lines).documents;
  ASSERT_EQ(expected.size(), 200000u);
  for (const auto &pack : {gzip, zstd}) {
    const std::string whole = pack(content);
    EXPECT_EQ(documentsOf(whole, lines).documents, expected);
    // Several of them, one behind the other, as `cat` makes them.
    const size_t half = content.find("line 100000");
    EXPECT_EQ(
        documentsOf(pack(content.substr(0, half)) + pack(content.substr(half)), lines).documents,
        expected);
    for (const size_t size : {whole.size() / 2, whole.size() - 1})
      EXPECT_NE(errorOf([&] { documentsOf(whole.substr(0, size), lines); }).find("is cut off"),
                std::string::npos)
          << size;
    std::string damaged = whole;
    damaged[damaged.size() / 2] ^= 0x55;
    EXPECT_NE(errorOf([&] { documentsOf(damaged, lines); }).find("is damaged"), std::string::npos);
  }
  EXPECT_EQ(documentsOf(gzip(""), lines).documents, Texts{});
  // Zeros behind a file, as on tapes; a frame that readers skip in front of one.
  EXPECT_EQ(documentsOf(gzip("a\nb") + std::string(1024, '\0'), lines).documents, (Texts{"a", "b"}));
  EXPECT_EQ(documentsOf(gzip("a\n") + std::string(7, '\0') + gzip("b"), lines).documents,
            (Texts{"a", "b"}));
  EXPECT_EQ(
      documentsOf(std::string("\x5a\x2a\x4d\x18\x03\0\0\0abc", 11) + zstd("a\nb"), lines).documents,
      (Texts{"a", "b"}));
}

TEST_F(DocumentsTest, SeparatorsThatOverlapAreFoundFromTheFront) {
  // Wherever chunks of the file end.
  for (const size_t before : {size_t{0}, (size_t{1} << 20) - 4, (size_t{1} << 20) - 3, size_t{1} << 20}) {
    const std::string first(before + 5, 'x');
    EXPECT_EQ(documentsOf(first + "-----\nb---c", {.separators = {"---"}}).documents,
              (Texts{first, "--\nb", "c"}))
        << before;
  }
}

TEST_F(DocumentsTest, ALongDocumentHasTheTokensOfTheWhole) {
  const auto tokenizer =
      text::readTokenizer(std::filesystem::path(HYDRA_SOURCE_DIR) / "test/text/goldens/words.json");
  const std::string play =
      read(std::filesystem::path(HYDRA_SOURCE_DIR) / "data/tinyshakespeare.txt");
  std::mt19937_64 random(3);
  std::string content;
  while (content.size() < 10'000'000) {
    const size_t begin = random() % play.size();
    content += play.substr(begin, random() % 5000) + (random() % 3 == 0 ? "\u00e9 \n\n" : "");
  }
  const std::vector<int32_t> whole = tokenizer->encode(content, text::Around::nothing);
  for (const int threads : {1, 2, 5})
    EXPECT_EQ(idsOf({write("input", content), {}}, *tokenizer, threads), whole) << threads;
}

TEST_F(DocumentsTest, EncodersKnowNothingOfTextsBefore) {
  const auto tokenizer =
      text::readTokenizer(std::filesystem::path(HYDRA_SOURCE_DIR) / "test/text/goldens/words.json");
  const auto encoder = tokenizer->encoder();
  for (const std::string text : {"ROMEO: was it", "", "was it<|tool|> 3rd", "ROMEO: was it"}) {
    std::vector<int32_t> ids = {7};
    encoder->encode(text, ids);
    ids.erase(ids.begin());
    EXPECT_EQ(ids, tokenizer->encode(text, text::Around::nothing));
  }
}

TEST_F(DocumentsTest, BadTextIsNamedOrLeftOut) {
  const auto tokenizer =
      text::readTokenizer(std::filesystem::path(HYDRA_SOURCE_DIR) / "test/text/goldens/words.json");
  TextInput file{write("input", "good\nbad\xff\nfine"), {.separators = {"\n"}}};
  EXPECT_NE(errorOf([&] {
              idsOf(file, *tokenizer, 2);
            }).find("input: in the text from byte 5 on: byte 3 of the text is no UTF-8"),
            std::string::npos);
  file.format.leaveOutBad = true;
  std::vector<int32_t> expected = tokenizer->encode("good", text::Around::nothing);
  for (const int32_t id : tokenizer->encode("fine", text::Around::nothing))
    expected.push_back(id);
  EXPECT_EQ(idsOf(file, *tokenizer, 2), expected);
}

} // namespace
