// Which preset a document is shown with, and for which batch.
#include "tools/hydra-lsp/Configuration.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace hydra::lsp {

std::string Configuration::give(StringRef name, StringRef value) {
  auto number = [&](int64_t &out) -> std::string {
    int64_t read = 0;
    if (value.getAsInteger(10, read) || read < 1)
      return (name + " is '" + value + "'; expected a positive integer").str();
    out = read;
    return "";
  };
  if (name == "batch")
    return number(batch);
  if (name == "seq")
    return number(seq);
  if (name == "preset") {
    preset = value.str();
    return "";
  }
  if (name == "set") {
    for (StringRef setting : llvm::split(value, ','))
      if (!setting.empty())
        settings.push_back(setting.str());
    return "";
  }
  if (name == "routing") {
    if (value != "dynamic" && value != "masked" && value != "static")
      return ("routing is '" + value + "'; expected dynamic, masked or static").str();
    routing = value == "dynamic"  ? Routing::Dynamic
              : value == "masked" ? Routing::Masked
                                  : Routing::Static;
    return "";
  }
  return ("unknown setting '" + name + "'; expected preset, set, batch, seq or routing").str();
}

std::string Configuration::readFlag(StringRef flag) {
  const auto [name, value] = flag.split('=');
  if (!name.starts_with("--") || value.empty()) {
    return ("'" + flag +
            "' is not a flag; expected --preset=NAME, --set=NAME=VALUE,…, --batch=B, --seq=S or "
            "--routing=HOW")
        .str();
  }
  return give(name.drop_front(2), value);
}

std::string Configuration::read(const json::Object &given) {
  std::string problems;
  auto note = [&](const std::string &problem) {
    if (!problem.empty())
      problems += (problems.empty() ? "" : "; ") + problem;
  };
  for (const auto &[key, value] : given) {
    const StringRef name = key;
    if (std::optional<StringRef> text = value.getAsString(); text && !text->empty())
      note(give(name, *text));
    else if (std::optional<int64_t> number = value.getAsInteger())
      note(give(name, std::to_string(*number)));
    else if (const json::Array *list = value.getAsArray(); list && name == "set") {
      for (const json::Value &setting : *list)
        note(give(name, setting.getAsString().value_or("")));
    } else if (!text && !value.getAsNull()) { // what is empty says nothing
      note(("setting '" + name + "' is neither text nor an integer").str());
    }
  }
  return problems;
}

/// Takes over the flags of the first comment that has the mark.
static void readComment(const Names &names, Configuration &configuration, size_t &begin,
                        size_t &end, std::vector<ConfigurationProblem> &problems) {
  const StringRef text = names.source().str();
  for (const Token &token : names.allTokens()) {
    StringRef comment = names.textOf(token);
    if (token.kind != TokenKind::Comment ||
        !comment.drop_front(2).ltrim().starts_with(kCommentMark))
      continue;
    begin = token.begin;
    end = token.end;
    SmallVector<StringRef> flags;
    comment.split(kCommentMark).second.split(flags, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef flag : flags) {
      if (std::string problem = configuration.readFlag(flag.trim()); !problem.empty()) {
        const auto at = static_cast<size_t>(flag.data() - text.data());
        problems.push_back({at, at + flag.size(), problem});
      }
    }
    return;
  }
}

Choice choiceFor(const Names &names, Configuration configuration) {
  Choice choice;
  const std::string asked = configuration.preset;
  configuration.preset.clear();
  size_t begin = 0, end = 0;
  readComment(names, configuration, begin, end, choice.problems);
  const bool commented = !configuration.preset.empty();
  if (!commented)
    configuration.preset = asked;

  std::vector<std::string> presets;
  const Name *model = nullptr;
  for (const Name &name : names.allNames()) {
    if (name.kind == NameKind::Preset)
      presets.push_back(name.name.str());
    else if (name.kind == NameKind::Model)
      model = &name;
  }
  std::string &preset = configuration.preset;
  if (!commented && presets.empty()) // the editor means models that have it
    preset.clear();
  if (!preset.empty() && !llvm::is_contained(presets, preset)) {
    if (!commented && model) {
      begin = names.allTokens()[model->token].begin;
      end = names.allTokens()[model->token].end;
    }
    choice.problems.push_back(
        {begin, end,
         "there is no preset '" + preset + "'; " +
             (presets.empty() ? "the model has none"
                              : "shown with '" + presets.front() + "' of " + join(presets, ", "))});
    preset.clear();
  }
  if (preset.empty() && !presets.empty())
    preset = presets.front();
  choice.binding.preset = preset;
  choice.binding.settings = std::move(configuration.settings);
  choice.binding.batch = configuration.batch;
  choice.binding.seq = configuration.seq;
  choice.binding.routing = configuration.routing;
  return choice;
}

} // namespace hydra::lsp
