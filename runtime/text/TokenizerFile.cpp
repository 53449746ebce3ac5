// The parts of a tokenizer file put together.
#include "runtime/support/InputFile.h"
#include "runtime/text/AddedTokens.h"
#include "runtime/text/Decoders.h"
#include "runtime/text/Model.h"
#include "runtime/text/Normalizers.h"
#include "runtime/text/PostProcessor.h"
#include "runtime/text/PreTokenizers.h"
#include "runtime/text/StopTokens.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

using namespace hydra::text;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

class FileTokenizer : public Tokenizer {
public:
  FileTokenizer(const nlohmann::json &json, const std::string &name) {
    Fields fields(Value(json, name + ": "));
    if (const std::optional<Value> version = fields.find("version");
        version && version->text() != "1.0")
      version->fail("is '{}'; expected 1.0", support::shown(version->text()));
    fields.find("truncation");
    fields.find("padding");
    if (const std::optional<Value> description = fields.find("normalizer"))
      normalizer = makeNormalizer(*description);
    model = makeModel(fields.need("model"));
    added = std::make_unique<AddedTokens>(fields.find("added_tokens"), normalizer.get(),
                                          model->vocabulary());
    bool lastToBytes = false;
    if (const std::optional<Value> description = fields.find("pre_tokenizer"))
      preTokenizers = makePreTokenizers(*description, lastToBytes);
    if (lastToBytes && !model->takeBytes())
      preTokenizers.push_back(makeByteCharacters());
    if (const std::optional<Value> description = fields.find("post_processor"))
      around = readPostProcessor(*description, idLimit());
    if (const std::optional<Value> description = fields.find("decoder"))
      decoders = makeDecoders(*description);
    else
      decoders.push_back(makeSpacing());
    fields.finish();
    if (idLimit() == 0)
      fields.value().fail("has no tokens");
  }

  void readStopTokens(const std::filesystem::path &path) {
    stops = hydra::text::readStopTokens(path, *this);
  }

  std::vector<int32_t> encode(std::string_view text, Around what) const override {
    checkUtf8(text);
    std::vector<int32_t> ids;
    const bool whole = what == Around::specialTokens;
    if (whole)
      ids = around.before;
    const std::vector<AddedPart> parts = added->split(text, true);
    const std::vector<std::span<const AddedPart>> jobs = jobsOf(parts);
    if (jobs.size() > 1)
      encodeTogether(text, jobs, ids);
    else
      encodeParts(text, parts, ids);
    if (whole)
      ids.insert(ids.end(), around.behind.begin(), around.behind.end());
    return ids;
  }

  std::unique_ptr<TextEncoder> encoder() const override { return std::make_unique<Encoder>(*this); }

  std::vector<int32_t> encodeTyped(std::string_view text, std::span<const TextRange> ranges,
                                   std::span<const int32_t> controls) const override {
    checkUtf8(text);
    const Typed typed{ranges, controls};
    std::vector<int32_t> ids;
    Encoding encoding(*this, ids);
    for (const AddedPart &part : added->split(text, true, typed)) {
      const std::string_view piece = text.substr(part.begin, part.end - part.begin);
      if (part.id >= 0)
        ids.push_back(part.id);
      else if (typed.overlaps(part.begin, part.end))
        encodeTypedPart(piece, part.begin, typed, encoding, ids);
      else
        encodePart(piece, part.begin == 0, {}, encoding, ids);
    }
    return ids;
  }

  std::string decode(std::span<const int32_t> ids, Specials specials) const override {
    Stream text(*this, specials, false);
    std::string all;
    for (const int32_t id : ids)
      all += text.add(id);
    return all + text.finish();
  }

  std::unique_ptr<TextStream> stream(Specials specials) const override {
    return std::make_unique<Stream>(*this, specials, true);
  }

  int64_t idLimit() const override {
    return static_cast<int64_t>(std::max(model->vocabulary().limit(), added->limit()));
  }

  std::optional<int32_t> find(std::string_view token) const override {
    if (const AddedToken *const known = added->find(token))
      return known->id;
    const int32_t id = model->vocabulary().find(token);
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  }

  const std::vector<int32_t> &stopIds() const override { return stops; }

private:
  /// The way of a piece through the pre-tokenizers to the model.
  class Encoding {
  public:
    Encoding(const FileTokenizer &tokenizer, std::vector<int32_t> &ids)
        : last(*tokenizer.model, ids), stages(tokenizer.preTokenizers.size()) {
      for (size_t i = 0; i < stages.size(); ++i) {
        stages[i].preTokenizer = tokenizer.preTokenizers[i].get();
        stages[i].next = i + 1 < stages.size() ? static_cast<PieceSink *>(&stages[i + 1]) : &last;
      }
    }
    PieceSink &first() { return stages.empty() ? static_cast<PieceSink &>(last) : stages[0]; }

  private:
    struct Stage : PieceSink {
      void take(const Piece &piece) override { preTokenizer->split(piece, *next); }
      const PreTokenizer *preTokenizer = nullptr;
      PieceSink *next = nullptr;
    };
    struct Last : PieceSink {
      Last(const Model &model, std::vector<int32_t> &ids) : model(model), ids(ids) {}
      void take(const Piece &piece) override { model.encode(piece.text, cache, ids); }
      const Model &model;
      std::vector<int32_t> &ids;
      WordCache cache;
    };
    Last last;
    std::vector<Stage> stages;
  };

  class Encoder : public TextEncoder {
  public:
    explicit Encoder(const FileTokenizer &tokenizer)
        : tokenizer(tokenizer), encoding(tokenizer, own) {}
    void encode(std::string_view text, std::vector<int32_t> &ids) override {
      checkUtf8(text);
      own.clear();
      tokenizer.encodeParts(text, tokenizer.added->split(text, true), encoding, own);
      ids.insert(ids.end(), own.begin(), own.end());
    }

  private:
    const FileTokenizer &tokenizer;
    std::vector<int32_t> own; // of the text
    Encoding encoding;
  };

  void encodeParts(std::string_view text, std::span<const AddedPart> parts,
                   std::vector<int32_t> &ids) const {
    Encoding encoding(*this, ids);
    encodeParts(text, parts, encoding, ids);
  }

  void encodeParts(std::string_view text, std::span<const AddedPart> parts, Encoding &encoding,
                   std::vector<int32_t> &ids) const {
    for (const AddedPart &part : parts) {
      if (part.id >= 0)
        ids.push_back(part.id);
      else
        encodePart(text.substr(part.begin, part.end - part.begin), part.begin == 0, {}, encoding,
                   ids);
    }
  }

  static void checkUtf8(std::string_view text) {
    if (const size_t bad = findInvalidUtf8(text); bad != std::string_view::npos)
      fail("byte {} of the text is no UTF-8", bad);
  }

  /// The text at `begin` of a whole, some of which was typed.
  void encodeTypedPart(std::string_view text, size_t begin, const Typed &typed, Encoding &encoding,
                       std::vector<int32_t> &ids) const {
    std::vector<TextRange> here;
    for (const TextRange &part : typed.parts)
      if (part.end > begin && part.begin < begin + text.size())
        here.push_back({std::max(part.begin, begin) - begin, part.end - begin});
    const TextRange all{0, std::string_view::npos};
    Typed now{here, typed.controls}; // in what is left of the text by normalization
    if (normalizer) {
      if (const AddedToken *const token = added->findNormalizedControl(text, now))
        fail("the token '{}' is looked for in normalized text, which is not supported beside text "
             "that was typed",
             support::shown(token->content));
      now.parts = std::span(&all, 1);
    }
    encodePart(text, begin == 0, now, encoding, ids);
  }

  /// What a thread encodes at a time: parts of some megabytes together. Added tokens divide a text
  /// into parts that know nothing of each other.
  static std::vector<std::span<const AddedPart>> jobsOf(std::span<const AddedPart> parts) {
    constexpr size_t enough = size_t{2} << 20;
    std::vector<std::span<const AddedPart>> jobs;
    size_t first = 0;
    for (size_t i = 0; i < parts.size(); ++i)
      if (i + 1 == parts.size() || parts[i].end - parts[first].begin >= enough) {
        jobs.push_back(parts.subspan(first, i + 1 - first));
        first = i + 1;
      }
    return jobs;
  }

  /// By all processors; the ids are those of one thread.
  void encodeTogether(std::string_view text, std::span<const std::span<const AddedPart>> jobs,
                      std::vector<int32_t> &ids) const {
    struct Result {
      std::vector<int32_t> ids;
      std::exception_ptr error;
    };
    std::vector<Result> results(jobs.size());
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i = next++; i < jobs.size(); i = next++) {
        try {
          encodeParts(text, jobs[i], results[i].ids);
        } catch (...) {
          results[i].error = std::current_exception();
        }
      }
    };
    {
      std::vector<std::jthread> threads;
      const size_t most = std::min<size_t>(jobs.size(), std::thread::hardware_concurrency());
      try {
        while (threads.size() + 1 < most)
          threads.emplace_back(work);
      } catch (const std::system_error &) { // those that there are do it
      }
      work();
    }
    for (const Result &result : results) {
      if (result.error)
        std::rethrow_exception(result.error);
      ids.insert(ids.end(), result.ids.begin(), result.ids.end());
    }
  }

  /// A text without added tokens that are looked for before it is normalized; `typed` is about what
  /// it then is.
  void encodePart(std::string_view text, bool atBegin, const Typed &typed, Encoding &encoding,
                  std::vector<int32_t> &ids) const {
    Normalizing part{"", atBegin && !text.empty() ? firstCharacter(text).bytes : 0};
    if (normalizer) {
      part.text = text;
      normalizer->apply(part);
      text = part.text;
    }
    for (const AddedPart &piece : added->split(text, false, typed)) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        continue;
      }
      const size_t before = ids.size();
      const Piece own = Piece{text, part.fromFirst}.part(piece.begin, piece.end);
      encoding.first().take(own);
      if (!typed.parts.empty())
        checkNoControl(own.text, std::span(ids).subspan(before), typed);
    }
  }

  /// Models that are no BPE may make a token of its name themselves.
  void checkNoControl(std::string_view text, std::span<const int32_t> ids,
                      const Typed &typed) const {
    for (const int32_t id : ids)
      if (const AddedToken *const token = added->find(id);
          token && typed.isControl(*token) && text.find(token->content) != std::string_view::npos)
        fail("the text holds '{}', which the tokenizer takes for the token of that name",
             support::shown(token->content));
  }

  class Stream : public TextStream {
  public:
    Stream(const FileTokenizer &tokenizer, Specials specials, bool eager)
        : tokenizer(tokenizer), specials(specials) {
      const Decoders &decoders = tokenizer.decoders;
      runs.resize(decoders.size());
      for (size_t i = decoders.size(); i-- > 0;) {
        runs[i] = decoders[i]->start(eager);
        eager = eager && !decoders[i]->seesTokens();
      }
    }

    std::string add(int32_t id) override {
      if (id < 0)
        fail("token id {} is negative", id);
      const AddedToken *const known = tokenizer.added->find(id);
      const std::string *const name =
          known ? &tokenizer.added->nameOf(*known) : tokenizer.model->vocabulary().nameOf(id);
      if (!name || (specials == Specials::leaveOut && tokenizer.added->isSpecial(*name)))
        return "";
      std::string text;
      hand(0, *name, text);
      return text;
    }

    std::string finish() override {
      std::string text;
      for (size_t i = 0; i < runs.size(); ++i)
        runs[i]->finish([&](std::string part) { hand(i + 1, std::move(part), text); });
      return text;
    }

  private:
    void hand(size_t stage, std::string part, std::string &text) {
      if (stage == runs.size())
        text += part;
      else
        runs[stage]->take(std::move(part),
                          [&](std::string next) { hand(stage + 1, std::move(next), text); });
    }

    const FileTokenizer &tokenizer;
    Specials specials;
    std::vector<std::unique_ptr<DecoderRun>> runs;
  };

  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<AddedTokens> added;
  PreTokenizers preTokenizers;
  Surroundings around;
  Decoders decoders;
  std::vector<int32_t> stops;
};

} // namespace

std::unique_ptr<Tokenizer> hydra::text::parseTokenizer(std::string_view content,
                                                       const std::string &name) {
  return std::make_unique<FileTokenizer>(parseJson(content, name), name);
}

std::filesystem::path hydra::text::tokenizerFile(const std::filesystem::path &where) {
  std::error_code ignored;
  return std::filesystem::is_directory(where, ignored) ? where / "tokenizer.json" : where;
}

std::unique_ptr<Tokenizer> hydra::text::readTokenizer(const std::filesystem::path &where) {
  const std::filesystem::path path = tokenizerFile(where);
  const std::string content = readWholeFile(path), name = support::shownPath(path);
  auto tokenizer = std::make_unique<FileTokenizer>(parseJson(content, name), name);
  tokenizer->readStopTokens(path);
  return tokenizer;
}
