// Which model a file describes.
#include "runtime/text/Model.h"

using namespace hydra::text;
namespace support = hydra::support;

namespace {

/// Old files do not say it: what they have does.
std::string typeOf(Fields &fields) {
  if (const std::optional<Value> type = fields.find("type"))
    return std::string(type->text());
  const auto &members = fields.value().object();
  if (members.contains("merges"))
    return "BPE";
  if (members.contains("vocab") && members["vocab"].is_array())
    return "Unigram";
  return members.contains("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

} // namespace

std::unique_ptr<Model> hydra::text::makeModel(const Value &description) {
  Fields fields(description);
  const std::string type = typeOf(fields);
  std::unique_ptr<Model> model;
  if (type == "BPE")
    model = makeBpe(fields);
  else if (type == "Unigram")
    model = makeUnigram(fields);
  else if (type == "WordPiece")
    model = makeWordPiece(fields);
  else if (type == "WordLevel")
    model = makeWordLevel(fields);
  else
    fields.need("type").fail("is '{}', a model that is not supported", support::shown(type));
  fields.finish();
  return model;
}
