// Small tokenizers of every kind against what Hugging Face's library makes of many lines
// (test/text/make-goldens.js): ids, text, and text with special tokens.
#include "runtime/text/Tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace hydra::text;

namespace {

const std::filesystem::path kFolder = HYDRA_SOURCE_DIR "/test/text/goldens";

std::string contentOf(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_TRUE(file.good()) << path;
  return content.str();
}

const std::vector<std::string> &lines() {
  static const auto all =
      nlohmann::json::parse(contentOf(kFolder / "lines.json")).get<std::vector<std::string>>();
  return all;
}

uint32_t fnv(std::string_view bytes) {
  uint32_t hash = 0x811c9dc5;
  for (const char byte : bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193;
  return (hash ^ hash >> 16) & 0xffff;
}

std::string streamed(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  const std::unique_ptr<TextStream> stream = tokenizer.stream();
  std::string text;
  for (const int32_t id : ids)
    text += stream->add(id);
  return text + stream->finish();
}

class Goldens : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(Goldens, IdsAndTexts) {
  const std::string name = GetParam();
  const std::unique_ptr<Tokenizer> tokenizer = readTokenizer(kFolder / (name + ".json"));
  std::istringstream goldens(contentOf(kFolder / (name + ".golden")));
  size_t wrong = 0;
  for (const std::string &line : lines()) {
    std::string golden;
    ASSERT_TRUE(std::getline(goldens, golden));
    const std::vector<int32_t> ids = tokenizer->encode(line);
    const std::string plain = tokenizer->decode(ids),
                      shown = tokenizer->decode(ids, Specials::show);
    std::string all = fmt::format("{}", fmt::join(ids, " "));
    (all += '\0') += plain;
    (all += '\0') += shown;
    if (fmt::format("{:04x}", fnv(all)) != golden && ++wrong <= 5)
      ADD_FAILURE() << name << ": " << nlohmann::json(line).dump() << "\n  ids "
                    << fmt::format("{}", fmt::join(ids, " ")) << "\n  text '" << plain << "'";
    // Bytes that are no text may be shown in another way while more can follow.
    if (plain.find("\xef\xbf\xbd") == std::string::npos) {
      EXPECT_EQ(streamed(*tokenizer, ids), plain);
    }
    for (const int32_t id : ids)
      EXPECT_LT(id, tokenizer->idLimit());
  }
  EXPECT_EQ(wrong, 0u);
  std::string more;
  EXPECT_FALSE(std::getline(goldens, more));
}

INSTANTIATE_TEST_SUITE_P(All, Goldens,
                         testing::Values("bert", "bytes", "cuts", "fallback", "first", "fixed",
                                         "level", "next", "pieces", "prefix", "previous", "roberta",
                                         "suffix", "unigram", "words"),
                         [](const auto &info) { return std::string(info.param); });
