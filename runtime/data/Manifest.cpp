// Manifests as JSON, and the folders that they are in.
#include "runtime/data/Manifest.h"

#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <charconv>
#include <limits>
#include <set>

using namespace hydra::data;
using hydra::support::fail;
using hydra::support::shownPath;
using nlohmann::json;
namespace support = hydra::support;

namespace {

constexpr const char *kFormat = "hydra-shards";
constexpr uint64_t kVersion = 1;

/// The members of an object, whose mistakes name the place.
class Object {
public:
  Object(const json &value, std::string place) : value(value), place(std::move(place)) {
    if (!value.is_object())
      fail("{} is no object", this->place);
  }

  const json &at(const char *key) const {
    const auto found = value.find(key);
    if (found == value.end())
      fail("{} has no '{}'", place, key);
    return *found;
  }
  uint64_t count(const char *key) const {
    const json &number = at(key);
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (!number.is_number_unsigned() || number.get<uint64_t>() > most)
      fail("{}: '{}' is no number from 0 on", place, key);
    return number.get<uint64_t>();
  }
  std::string text(const char *key) const {
    const json &word = at(key);
    if (!word.is_string())
      fail("{}: '{}' is no text", place, key);
    return word.get<std::string>();
  }
  uint64_t hash(const char *key) const {
    const std::string digits = text(key);
    constexpr int hexadecimal = 16;
    uint64_t hash = 0;
    const char *const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, hash, hexadecimal);
    if (error != std::errc() || at != end)
      fail("{}: '{}' is '{}'; expected a hash of 16 digits", place, key, support::shown(digits));
    return hash;
  }

private:
  const json &value;
  std::string place;
};

std::string hashText(uint64_t hash) { return fmt::format("{:016x}", hash); }

} // namespace

uint64_t Manifest::tokens() const {
  uint64_t sum = 0;
  for (const Entry &shard : shards)
    sum += shard.tokens;
  return sum;
}

uint64_t Manifest::documents() const {
  uint64_t sum = 0;
  for (const Entry &shard : shards)
    sum += shard.documents;
  return sum;
}

std::string hydra::data::manifestText(const Manifest &manifest) {
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  for (const Manifest::Entry &shard : manifest.shards)
    shards.push_back({{"file", shard.file},
                      {"tokens", shard.tokens},
                      {"documents", shard.documents},
                      {"hash", hashText(shard.hash)}});
  nlohmann::ordered_json all = {{"format", kFormat},
                                {"version", kVersion},
                                {"tokenizer", manifest.tokenizer},
                                {"tokenizer_hash", hashText(manifest.kind.tokenizer)},
                                {"vocabulary", manifest.kind.vocabulary},
                                {"tokens", manifest.tokens()},
                                {"documents", manifest.documents()}};
  if (manifest.kind.end >= 0)
    all["end"] = manifest.kind.end;
  all["shards"] = shards;
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Manifest hydra::data::parseManifest(std::string_view text, const std::string &name) {
  const json content = json::parse(text, support::JsonGuard(name), /*allow_exceptions=*/false);
  if (content.is_discarded() || support::hasZeroByte(text))
    fail("{}: is no JSON", name);
  const Object all(content, name);
  if (all.text("format") != kFormat)
    fail("{}: 'format' is '{}'; expected {}", name, support::shown(all.text("format")), kFormat);
  if (all.count("version") != kVersion)
    fail("{}: version {} of manifests; expected {}", name, all.count("version"), kVersion);
  Manifest manifest;
  manifest.tokenizer = all.text("tokenizer");
  manifest.kind = {all.count("vocabulary"), all.hash("tokenizer_hash"),
                   content.contains("end") ? static_cast<int64_t>(all.count("end")) : -1};
  const json &shards = all.at("shards");
  if (!shards.is_array() || shards.empty())
    fail("{}: 'shards' is no list, or has nothing in it", name);
  std::set<std::string, std::less<>> names;
  constexpr uint64_t most = uint64_t{1} << 48;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string place = fmt::format("{}: shards[{}]", name, i);
    const Object shard(shards[i], place);
    Manifest::Entry entry = {shard.text("file"), shard.count("tokens"), shard.count("documents"),
                             shard.hash("hash")};
    if (entry.file.empty() || entry.file.find('/') != std::string::npos ||
        entry.file.find('\0') != std::string::npos || entry.file == "." || entry.file == "..")
      fail("{}: 'file' is '{}'; expected a file in the folder of the manifest", place,
           support::shown(entry.file));
    if (!names.insert(entry.file).second)
      fail("{}: '{}' is there twice", place, support::shown(entry.file));
    if (entry.tokens > most || entry.documents > entry.tokens)
      fail("{}: {} tokens in {} documents", place, entry.tokens, entry.documents);
    manifest.shards.push_back(std::move(entry));
  }
  if (manifest.tokens() != all.count("tokens") || manifest.documents() != all.count("documents"))
    fail("{}: says {} tokens in {} documents; its shards have {} in {}", name, all.count("tokens"),
         all.count("documents"), manifest.tokens(), manifest.documents());
  return manifest;
}

Manifest hydra::data::readManifest(const std::filesystem::path &path) {
  const support::InputFile file(path);
  constexpr uint64_t most = uint64_t{256} << 20;
  if (file.size() > most)
    fail("{}: has {} bytes; no manifest is as large", file.name(), file.size());
  const std::vector<std::byte> bytes = file.readAll();
  return parseManifest({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, file.name());
}

void hydra::data::checkEntry(const Manifest &manifest, const Manifest::Entry &entry,
                             const Shard &shard, const std::string &name) {
  const ShardHeader &head = shard.header();
  if (head.hash != entry.hash || head.tokens != entry.tokens || head.documents != entry.documents ||
      head.kind != manifest.kind)
    fail("{}: is not the shard that its manifest lists: {} tokens with hash {:016x}, not {} with "
         "{:016x}",
         name, head.tokens, head.hash, entry.tokens, entry.hash);
}

ShardSetWriter::ShardSetWriter(std::filesystem::path folder, Manifest describing, uint64_t each)
    : target(std::move(folder)), manifest(std::move(describing)), shardTokens(each) {
  if (!target.has_filename()) // `shards/`
    target = target.parent_path();
  std::error_code code;
  if (std::filesystem::exists(target, code))
    fail("{} exists; expected the name of a folder that is to be written", shownPath(target));
  // What is there already is another's: in containers processes have the same numbers.
  for (int number = 0; !temporary; ++number) {
    std::filesystem::path free = target;
    free += fmt::format(".{}{}.tmp", ::getpid(), number == 0 ? "" : fmt::format("-{}", number));
    if (std::filesystem::create_directory(free, code))
      temporary.emplace(support::OutputPath(free, target));
    else if (code)
      fail("cannot write {}: {}", shownPath(target), code.message());
  }
}

void ShardSetWriter::write(std::span<const int32_t> ids, bool prompt) {
  if (!shard) {
    manifest.shards.push_back({fmt::format("shard-{:05}.tokens", manifest.shards.size()), 0, 0, 0});
    shard = std::make_unique<ShardWriter>(temporary->path() / manifest.shards.back().file,
                                          manifest.kind);
  }
  shard->write(ids, prompt);
}

void ShardSetWriter::endDocument() {
  shard->endDocument();
  if (shard->tokens() >= shardTokens)
    endShard();
}

void ShardSetWriter::endShard() {
  const ShardHeader head = shard->commit();
  Manifest::Entry &entry = manifest.shards.back();
  entry = {entry.file, head.tokens, head.documents, head.hash};
  shard.reset();
}

const Manifest &ShardSetWriter::commit() {
  if (shard)
    endShard();
  if (manifest.shards.empty())
    fail("there is no text in the files");
  support::AtomicFile file(temporary->path() / kManifestName);
  const std::string text = manifestText(manifest);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  if (const std::error_code code = temporary->rename())
    fail("cannot write {}: {}", shownPath(target), code.message());
  const std::filesystem::path folder = target.parent_path();
  if (const int problem = support::syncFolder(folder.empty() ? "." : folder))
    fail("cannot sync the folder of {}: {}", shownPath(target), support::errnoText(problem));
  return manifest;
}
