// The post-processors of tokenizer files, for single texts.
#include "runtime/text/PostProcessor.h"

#include "runtime/text/Normalizers.h"

#include <map>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

class Reader {
public:
  explicit Reader(int64_t limit) : limit(limit) {}

  void read(const Value &description, int depth) {
    if (depth > kMostNested)
      description.fail("is nested more than {} deep", kMostNested);
    Fields fields(description);
    const Value type = fields.need("type");
    const std::string_view name = type.text();
    if (name == "Sequence") {
      const Value list = fields.need("processors");
      for (size_t i = 0; i < list.size(); ++i)
        read(list[i], depth + 1);
    } else if (name == "TemplateProcessing") {
      readTemplate(fields);
    } else if (name == "BertProcessing" || name == "RobertaProcessing") {
      // The name of a token, and its id.
      const auto pair = [&](const char *key) {
        const Value value = fields.need(key);
        if (!value.isList() || value.size() != 2)
          value.fail("is no pair of a token and its id");
        value[0].text();
        return static_cast<int32_t>(value[1].integer(limit));
      };
      put({{pair("cls")}, {pair("sep")}});
      if (name == "RobertaProcessing")
        readOffsets(fields);
    } else if (name == "ByteLevel") {
      readOffsets(fields);
      fields.flag("use_regex", true);
    } else {
      type.fail("is '{}', a post-processor that is not supported", support::shown(name));
    }
    fields.finish();
  }

  Surroundings take() { return std::move(around); }

private:
  /// About offsets of tokens in the text, which nobody asks for.
  static void readOffsets(Fields &fields) {
    fields.flag("trim_offsets", true);
    fields.flag("add_prefix_space", true);
  }

  /// Outside of what is there already.
  void put(const Surroundings &more) {
    around.before.insert(around.before.begin(), more.before.begin(), more.before.end());
    around.behind.insert(around.behind.end(), more.behind.begin(), more.behind.end());
  }

  void readTemplate(Fields &fields) {
    std::map<std::string, std::vector<int32_t>, std::less<>> special;
    const Value tokens = fields.need("special_tokens");
    for (const auto &[name, json] : tokens.object().items()) {
      Fields token(tokens.member(support::shown(name), json));
      token.find("id");
      token.find("tokens");
      const Value ids = token.need("ids");
      token.finish();
      for (size_t i = 0; i < ids.size(); ++i)
        special[name].push_back(static_cast<int32_t>(ids[i].integer(limit)));
    }
    Surroundings more;
    bool seen = false;
    const Value single = fields.need("single");
    for (size_t i = 0; i < single.size(); ++i) {
      Fields piece(single[i]);
      if (const std::optional<Value> token = piece.find("SpecialToken")) {
        Fields about(*token);
        about.find("type_id");
        const Value id = about.need("id");
        about.finish();
        const auto found = special.find(id.text());
        if (found == special.end())
          id.fail("is '{}', which is not among special_tokens", support::shown(id.text()));
        std::vector<int32_t> &side = seen ? more.behind : more.before;
        side.insert(side.end(), found->second.begin(), found->second.end());
      } else if (const std::optional<Value> sequence = piece.find("Sequence")) {
        Fields about(*sequence);
        about.find("type_id");
        if (about.text("id") != "A" || seen)
          sequence->fail("must be there once, with the id A");
        about.finish();
        seen = true;
      }
      piece.finish();
    }
    if (!seen)
      single.fail("has no Sequence");
    fields.find("pair"); // for two texts, which nobody encodes together
    put(more);
  }

  int64_t limit;
  Surroundings around;
};

} // namespace

Surroundings hydra::text::readPostProcessor(const Value &description, int64_t limit) {
  Reader reader(limit);
  reader.read(description, 0);
  return reader.take();
}
