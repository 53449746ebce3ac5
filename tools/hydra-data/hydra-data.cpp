// hydra-data: text to shards of tokens that training reads, and what is in them.
#include "runtime/data/EncodeFiles.h"
#include "runtime/data/Manifest.h"
#include "runtime/data/TokenFiles.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StandardStreams.h"
#include "runtime/support/StopSignal.h"
#include "tools/common/ParseArguments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <thread>

using namespace hydra;
using support::fail;
using support::shownPath;

namespace {

struct Options {
  std::vector<std::string> files, paths;
  std::string tokenizer, output, format = "auto", split = "file";
  std::optional<std::string> begin, end;
  std::optional<int32_t> endId;
  std::string field = "text", prompt, response;
  const CLI::Option *fieldFlag = nullptr;
  uint64_t shardTokens = uint64_t{1} << 28;
  unsigned threads = 0;
  bool leaveOutBad = false;
};

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail("cannot write to standard output: {}", support::errnoText(errno));
}

/// Whether a file holds JSON lines, by its name: corpus.jsonl, corpus.jsonl.gz.
bool isJsonLines(const Options &options, std::filesystem::path path) {
  if (options.format != "auto")
    return options.format == "jsonl";
  if (path.extension() == ".gz" || path.extension() == ".zst")
    path = path.stem();
  constexpr std::array<std::string_view, 3> endings = {".jsonl", ".ndjson", ".json"};
  return std::ranges::find(endings, path.extension().string()) != endings.end();
}

data::TextFormat formatOf(const Options &options, const std::string &file) {
  data::TextFormat format{.jsonLines = isJsonLines(options, file),
                          .separators = {},
                          .field = options.field,
                          .prompt = options.prompt,
                          .response = options.response,
                          .leaveOutBad = options.leaveOutBad};
  constexpr std::string_view at = "at:";
  if (options.split == "line")
    format.separators = {"\n"};
  else if (options.split == "blank")
    format.separators = {"\n\n", "\n\r\n"};
  else if (options.split.starts_with(at))
    format.separators = {options.split.substr(at.size())};
  return format;
}

void checkBuild(const Options &options) {
  constexpr std::string_view at = "at:";
  if (options.split != "file" && options.split != "line" && options.split != "blank" &&
      (!options.split.starts_with(at) || options.split.size() == at.size()))
    fail("--split: '{}' is not file, line, blank or at:TEXT", support::shown(options.split));
  if (options.split != "file" &&
      std::ranges::all_of(options.files, [&](const auto &f) { return isJsonLines(options, f); }))
    fail("--split is for text: each line of JSON is a document");
  if (options.fieldFlag->count() > 0 &&
      std::ranges::none_of(options.files, [&](const auto &f) { return isJsonLines(options, f); }))
    fail("--field is for JSON lines, which no file is (--format=jsonl)");
  if (options.prompt.empty() != options.response.empty())
    fail("--prompt-field and --response-field are two parts of a document: say both");
  if (!options.prompt.empty() &&
      std::ranges::any_of(options.files, [&](const auto &f) { return !isJsonLines(options, f); }))
    fail("--prompt-field is for JSON lines, which not all files are (--format=jsonl)");
}

int32_t idOf(const text::Tokenizer &tokenizer, const Options &options, const char *flag,
             const std::string &token) {
  const std::optional<int32_t> id = tokenizer.find(token);
  if (!id)
    fail("--{}: '{}' is no token of {}", flag, support::shown(token), shownPath(options.tokenizer));
  return *id;
}

/// The tokens around documents.
struct Around {
  std::vector<int32_t> begin, end;
};

Around aroundOf(const text::Tokenizer &tokenizer, const Options &options) {
  Around around;
  if (options.begin)
    around.begin.push_back(idOf(tokenizer, options, "begin", *options.begin));
  if (options.end)
    around.end.push_back(idOf(tokenizer, options, "end", *options.end));
  if (options.endId)
    around.end.push_back(*options.endId);
  if (!around.end.empty() && around.end[0] >= tokenizer.idLimit())
    fail("--end-id: {} is no id of the tokenizer, which has those in [0, {})", around.end[0],
         tokenizer.idLimit());
  return around;
}

/// Puts tokens around documents and counts.
class Documents {
public:
  Documents(data::ShardSetWriter &to, Around with) : writer(to), around(std::move(with)) {}

  void take(const data::EncodedChunk &chunk) {
    size_t begin = 0;
    for (const data::EncodedChunk::Part &part : chunk.parts) {
      const auto ids = std::span(chunk.ids).subspan(begin, part.end - begin);
      begin = part.end;
      if (!ids.empty() && !inside) {
        if (!around.begin.empty())
          writer.write(around.begin, part.prompt);
        inside = true;
      }
      if (!ids.empty())
        writer.write(ids, part.prompt);
      if (!part.ends || !inside)
        continue;
      if (!around.end.empty())
        writer.write(around.end, false);
      writer.endDocument();
      inside = false;
    }
    bytes += chunk.textBytes;
    leftOut += chunk.leftOut;
  }

  uint64_t bytes = 0, leftOut = 0;

private:
  data::ShardSetWriter &writer;
  Around around;
  bool inside = false; // a document
};

std::string summary(const data::Manifest &manifest) {
  return fmt::format(
      "{} tokens of uint{} in {} documents, {} shard{}", report::countText(manifest.tokens()),
      data::tokenWidth(manifest.kind.vocabulary) * 8, report::countText(manifest.documents()),
      manifest.shards.size(), manifest.shards.size() == 1 ? "" : "s");
}

void build(const Options &options) {
  checkBuild(options);
  const bool bytesAreTokens = options.tokenizer == "bytes";
  const auto tokenizer =
      bytesAreTokens ? text::makeByteTokenizer() : text::readTokenizer(options.tokenizer);
  const Around around = aroundOf(*tokenizer, options);
  data::Manifest manifest;
  manifest.tokenizer = options.tokenizer;
  manifest.kind = {static_cast<uint64_t>(tokenizer->idLimit()),
                   bytesAreTokens ? 0 : data::hashOfTokenizer(options.tokenizer),
                   around.end.empty() ? -1 : int64_t{around.end[0]}};
  std::vector<data::TextInput> inputs;
  for (const std::string &file : options.files)
    inputs.push_back({file, formatOf(options, file)});
  data::ShardSetWriter writer(options.output, manifest, options.shardTokens);
  Documents documents(writer, around);
  const int threads = static_cast<int>(
      options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency()));
  const auto begin = std::chrono::steady_clock::now();
  const support::StopSignal stop; // leaves nothing behind
  data::encodeFiles(inputs, *tokenizer, threads, [&](const data::EncodedChunk &chunk) {
    support::StopSignal::check(options.output);
    documents.take(chunk);
  });
  const data::Manifest &written = writer.commit();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (documents.leftOut > 0)
    std::fprintf(stderr, "hydra-data: left out %llu documents that cannot be read\n",
                 static_cast<unsigned long long>(documents.leftOut));
  print(fmt::format("{}: {}, {:.2f} bytes of text a token ({:.3g} MB/s)\n",
                    shownPath(options.output), summary(written),
                    double(documents.bytes) / double(written.tokens()),
                    double(documents.bytes) * 1e-6 / seconds.count()));
}

/// A path that is no manifest and no folder with one: a shard.
bool isShard(const std::filesystem::path &path) {
  std::error_code code; // whoever reads the file says what is wrong with it
  return !std::filesystem::is_directory(path, code) && path.filename() != data::kManifestName;
}

std::filesystem::path manifestOf(const std::filesystem::path &path) {
  std::error_code code;
  return std::filesystem::is_directory(path, code) ? path / data::kManifestName : path;
}

void showShard(const std::string &name, const data::ShardHeader &head) {
  print(fmt::format("{}: {} tokens of uint{} in {} documents{}, hash {:016x}\n", name,
                    report::countText(head.tokens), head.width * 8,
                    report::countText(head.documents), head.masked == 1 ? ", prompts masked" : "",
                    head.hash));
}

void showKind(const data::ShardKind &kind) {
  print(fmt::format("  vocabulary     {}\n  tokenizer      {}\n  documents end  {}\n",
                    report::countText(kind.vocabulary),
                    kind.tokenizer == 0 ? "bytes" : fmt::format("hash {:016x}", kind.tokenizer),
                    kind.end < 0 ? "without a token" : fmt::format("with token {}", kind.end)));
}

void info(const Options &options) {
  for (const std::string &path : options.paths) {
    if (isShard(path)) {
      const support::InputFile file(path);
      const data::Shard shard(file);
      showShard(file.name(), shard.header());
      showKind(shard.header().kind);
      continue;
    }
    const std::filesystem::path where = manifestOf(path);
    const data::Manifest manifest = data::readManifest(where);
    print(fmt::format("{}: {}\n", shownPath(where), summary(manifest)));
    showKind(manifest.kind);
    for (const data::Manifest::Entry &entry : manifest.shards) {
      const support::InputFile file(where.parent_path() / entry.file);
      const data::Shard shard(file);
      data::checkEntry(manifest, entry, shard, file.name());
      showShard("  " + entry.file, shard.header());
    }
  }
}

void verify(const Options &options) {
  for (const std::string &path : options.paths) {
    const auto begin = std::chrono::steady_clock::now();
    uint64_t bytes = 0;
    if (isShard(path)) {
      const support::InputFile file(path);
      data::Shard(file).verify();
      bytes = file.size();
    } else {
      const std::filesystem::path where = manifestOf(path);
      const data::Manifest manifest = data::readManifest(where);
      for (const data::Manifest::Entry &entry : manifest.shards) {
        const support::InputFile file(where.parent_path() / entry.file);
        const data::Shard shard(file);
        data::checkEntry(manifest, entry, shard, file.name());
        shard.verify();
        bytes += file.size();
      }
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    print(fmt::format("{}: whole, {} ({:.3g} MB/s)\n", shownPath(path), report::bytesText(bytes),
                      double(bytes) * 1e-6 / seconds.count()));
  }
}

void addBuild(CLI::App &app, Options &options) {
  app.add_option("text", options.files,
                 "files of text or JSON lines (.jsonl), as they are or packed by gzip or zstd")
      ->required();
  app.add_option("--tokenizer", options.tokenizer,
                 "tokenizer.json, or the folder that it is in; or bytes")
      ->required()
      ->type_name("FILE");
  app.add_option("-o", options.output, "folder of shards to write, which must not exist")
      ->required()
      ->type_name("DIR");
  app.add_option("--format", options.format, "what files hold (default: by their names)")
      ->check(CLI::IsMember({"auto", "text", "jsonl"}))
      ->type_name("KIND");
  app.add_option("--split", options.split,
                 "what ends a document of text: file, line, blank (an empty line), or at:TEXT "
                 "(default file)")
      ->type_name("KIND");
  CLI::Option *field =
      app.add_option("--field", options.field, "the field of a JSON line that holds the document")
          ->type_name("NAME")
          ->capture_default_str();
  options.fieldFlag = field;
  app.add_option("--prompt-field", options.prompt,
                 "a document is the text of this field, which is not trained on, and that of "
                 "--response-field")
      ->type_name("NAME")
      ->excludes(field);
  app.add_option("--response-field", options.response, "see --prompt-field")->type_name("NAME");
  app.add_option("--begin", options.begin, "a token to put in front of every document")
      ->type_name("TOKEN");
  CLI::Option *end = app.add_option("--end", options.end,
                                    "a token to put behind every document, <|endoftext|> for "
                                    "example; hydra-run --packed needs one")
                         ->type_name("TOKEN");
  app.add_option("--end-id", options.endId, "the same by its id")
      ->type_name("ID")
      ->check(CLI::Range(int64_t{0}, int64_t{std::numeric_limits<int32_t>::max()}))
      ->excludes(end);
  app.add_option("--shard-tokens", options.shardTokens,
                 "a shard ends behind the document with which it has so many")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "that encode (default: as many as processors); what they write is the same")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--leave-out-bad", options.leaveOutBad,
               "leave out documents that are no UTF-8, and lines that are no JSON objects with "
               "the fields, and say how many; without it they are errors");
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  Options options;
  CLI::App app("Makes of text shards of tokens for hydra-run --data, and looks into them.");
  app.require_subcommand(1);
  CLI::App *const building = app.add_subcommand("build", "text to shards");
  addBuild(*building, options);
  CLI::App *const verifying =
      app.add_subcommand("verify", "reads shards, folders of them or manifests, and compares all "
                                   "checksums");
  CLI::App *const showing = app.add_subcommand("info", "what shards say of themselves");
  for (CLI::App *command : {verifying, showing})
    command->add_option("path", options.paths, "shards, folders of them, manifests")->required();
  app.footer(
      "Examples:\n"
      "  hydra-data build corpus.jsonl.zst --tokenizer=model --end='<|endoftext|>' -o shards\n"
      "  hydra-data verify shards\n"
      "  hydra-run plan.fb --data shards --steps 1000");
  if (const auto status = parseArguments(app, argc, argv, "hydra-data"))
    return *status;
  support::ignoreFileSizeSignal();
  std::signal(SIGPIPE, SIG_IGN); // a reader that has gone is then an error of writing
  try {
    if (building->parsed())
      build(options);
    else if (verifying->parsed())
      verify(options);
    else
      info(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-data: %s\n", support::problemOf(error));
    return support::StopSignal::statusOfError();
  }
  return 0;
}
