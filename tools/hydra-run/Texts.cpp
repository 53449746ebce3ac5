// Flags that name text.
#include "tools/hydra-run/Texts.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>

using namespace hydra;
using support::fail;
using support::shown;

namespace {

/// The sources of --mix.
std::vector<runtime::MixedSource> mixtureOf(const RunOptions &options) {
  if (options.mix.size() == 1 && options.mix[0].find('=') == std::string::npos)
    return runtime::readMixture(options.mix[0]);
  std::vector<runtime::MixedSource> sources;
  for (const std::string &source : options.mix)
    sources.push_back(runtime::parseMixedSource(source));
  return sources;
}

} // namespace

std::vector<runtime::EvaluationSet> Texts::evaluationSets() const {
  std::vector<runtime::EvaluationSet> all;
  for (size_t i = 0; i < sets.size(); ++i)
    all.push_back({names[i], sets[i].get()});
  return all;
}

Texts hydra::openTexts(const RunOptions &options, const runtime::PlanFile &file,
                       const text::Tokenizer *tokenizer, uint64_t seed, uint32_t rank) {
  const runtime::TextOptions usual;
  const int threads = options.prefetchThreads.value_or(usual.threads),
            ahead = options.prefetchBatches.value_or(usual.ahead);
  const runtime::TextOptions common{.files = {},
                                    .mixture = {},
                                    .packed = options.packed,
                                    .tokenizer = options.tokenizer,
                                    .encoder = tokenizer,
                                    .seed = seed,
                                    .threads = ahead > 0 ? threads : 0,
                                    .ahead = ahead,
                                    .evalBatches = options.evalBatches,
                                    .rank = rank};
  Texts texts;
  if (options.readsText()) {
    runtime::TextOptions how = common;
    how.files = {options.data.begin(), options.data.end()};
    how.mixture = mixtureOf(options);
    texts.training = std::make_unique<runtime::TextSource>(file.plan(), how);
  }
  for (const std::string &set : options.evalData) {
    const size_t equals = set.find('=');
    const std::string name = set.substr(0, equals);
    if (equals == std::string::npos || name.empty() || equals + 1 == set.size())
      fail("--eval-data {}: expected NAME=PATH", shown(set));
    if (std::ranges::find(texts.names, name) != texts.names.end())
      fail("--eval-data: two sets have the name '{}'", shown(name));
    if (name == "held_out" || name == "held out")
      fail("--eval-data: '{}' is what logs and reports call the part of --data that is held out",
           name);
    runtime::TextOptions how = common;
    how.files = {set.substr(equals + 1)};
    how.whole = true;
    try {
      texts.sets.push_back(std::make_unique<runtime::TextSource>(file.plan(), how));
    } catch (const support::Error &error) {
      fail("--eval-data {}: {}", shown(name), error.what());
    }
    texts.names.push_back(name);
  }
  return texts;
}
