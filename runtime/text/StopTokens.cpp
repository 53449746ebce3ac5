// Stop tokens in generation_config.json and tokenizer_config.json.
#include "runtime/text/StopTokens.h"

#include "runtime/support/InputFile.h"
#include "runtime/text/Fields.h"
#include "runtime/text/Vocabulary.h"

#include <algorithm>
#include <system_error>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

/// `eos_token_id`: one id, or several.
std::vector<int32_t> fromGeneration(const std::filesystem::path &path) {
  const std::string name = support::shownPath(path);
  const nlohmann::json json = parseJson(readWholeFile(path), name);
  Fields fields(Value(json, name + ": "));
  const std::optional<Value> value = fields.find("eos_token_id");
  std::vector<int32_t> ids;
  if (value && !value->isList())
    ids.push_back(static_cast<int32_t>(value->integer(kMostIds)));
  for (size_t i = 0; value && value->isList() && i < value->size(); ++i)
    ids.push_back(static_cast<int32_t>((*value)[i].integer(kMostIds)));
  return ids;
}

/// `eos_token`: a name, or an object with the name as its content.
std::vector<int32_t> fromTokenizer(const std::filesystem::path &path, const Tokenizer &tokens) {
  const std::string name = support::shownPath(path);
  const nlohmann::json json = parseJson(readWholeFile(path), name);
  Fields fields(Value(json, name + ": "));
  const std::optional<Value> value = fields.find("eos_token");
  if (!value)
    return {};
  const std::string token =
      value->isObject() ? Fields(*value).text("content") : std::string(value->text());
  const std::optional<int32_t> id = tokens.find(token);
  if (!id)
    value->fail("is '{}', which is no token", support::shown(token));
  return {*id};
}

} // namespace

std::vector<int32_t> hydra::text::readStopTokens(const std::filesystem::path &tokenizer,
                                                 const Tokenizer &tokens) {
  const std::filesystem::path generation = findBeside(tokenizer, "generation_config.json"),
                              config = findBeside(tokenizer, "tokenizer_config.json");
  std::vector<int32_t> ids;
  if (!generation.empty())
    ids = fromGeneration(generation);
  if (ids.empty() && !config.empty())
    ids = fromTokenizer(config, tokens);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::filesystem::path hydra::text::findBeside(const std::filesystem::path &tokenizer,
                                              const char *name) {
  std::error_code ignored;
  if (tokenizer.empty())
    return {};
  const std::filesystem::path path =
      (std::filesystem::is_directory(tokenizer, ignored) ? tokenizer : tokenizer.parent_path()) /
      name;
  return support::isThere(path) ? path : std::filesystem::path();
}

std::string hydra::text::readWholeFile(const std::filesystem::path &path) {
  constexpr uint64_t most = uint64_t{256} << 20;
  const support::InputFile file(path);
  if (file.size() > most)
    support::fail("{}: has {} bytes; no such file has more than {}", file.name(), file.size(),
                  most);
  std::string content(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  return content;
}
