// The flags that say what of a model is trained.
#include "compiler/driver/TuningFlags.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;

namespace hydra {

std::optional<TuningOptions::Lora> parseLora(StringRef text, std::string &problem) {
  TuningOptions::Lora lora;
  bool inTargets = false;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  auto fail = [&](const Twine &reason) {
    problem = reason.str();
    return std::nullopt;
  };
  StringSet<> given;
  for (StringRef part : parts) {
    if (inTargets && !part.contains('=')) {
      lora.targets.push_back(part.str());
      continue;
    }
    auto [key, value] = part.split('=');
    if (!given.insert(key).second)
      return fail("'" + key + "' is given twice");
    inTargets = key == "targets";
    constexpr int64_t mostRank = 1 << 20;
    if (key == "rank") {
      if (value.getAsInteger(10, lora.rank) || lora.rank < 1 || lora.rank > mostRank)
        return fail("rank is '" + value + "', no integer from 1 to " + Twine(mostRank));
    } else if (key == "alpha") {
      if (value.getAsDouble(lora.alpha) || !(lora.alpha > 0) ||
          !std::isfinite(static_cast<float>(lora.alpha)))
        return fail("alpha is '" + value + "', no number above 0");
    } else if (inTargets) {
      lora.targets.push_back(value.str());
    } else if (key == "dropout") {
      return fail("dropout is not supported");
    } else {
      return fail("'" + key + "' is none of these");
    }
  }
  if (llvm::is_contained(lora.targets, ""))
    return fail("a target is empty");
  for (StringRef key : {"rank", "alpha", "targets"})
    if (!given.contains(key))
      return fail("there is no " + key);
  return lora;
}

bool TuningFlags::LoraParser::parse(cl::Option &option, StringRef, StringRef text,
                                    std::string &value) {
  std::string problem;
  if (!parseLora(text, problem))
    return rejectValue(option, text, "rank=R,alpha=A,targets=PATTERN[,PATTERN]...; " + problem);
  value = text.str();
  return false;
}

TuningFlags::TuningFlags(TuningOptions &tuning, cl::OptionCategory &category)
    : freeze(
          "freeze", cl::value_desc("PATTERN"), cl::cat(category), cl::location(tuning.freeze),
          cl::desc(
              "parameters that are not trained, by their names: layers.*.wq, tok_emb; * stands for "
              "any characters; repeatable (default: none but those that the model freezes)")),
      lora("lora", cl::value_desc("rank=R,alpha=A,targets=PATTERN[,PATTERN]..."), cl::cat(category),
           cl::callback([&tuning](const std::string &text) {
             std::string problem; // there is none: it has been parsed
             tuning.lora = parseLora(text, problem);
           }),
           cl::desc("train nothing but, for each matrix that a pattern names, two small ones whose "
                    "product, times A / R, is added to it (default: none)")) {}

} // namespace hydra
