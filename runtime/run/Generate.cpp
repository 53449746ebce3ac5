// Reads, chooses, and reads what was chosen.
#include "runtime/run/Generate.h"

#include "runtime/run/NextScores.h"
#include "runtime/support/Error.h"
#include "runtime/support/Philox.h"

#include <algorithm>

using hydra::support::fail;

namespace hydra::runtime {

namespace {

void checkPrompts(const PlanFile &file, const NextScores &scores,
                  const std::vector<std::vector<int32_t>> &prompts) {
  if (prompts.size() > scores.sequences())
    fail("{}: {} prompts; the plan reads {} at a time (hydrac --batch)", file.origin(),
         prompts.size(), scores.sequences());
  for (size_t p = 0; p < prompts.size(); ++p) {
    const std::vector<int32_t> &prompt = prompts[p];
    const std::string which = prompts.size() == 1 ? "the prompt" : fmt::format("prompt {}", p + 1);
    if (prompt.empty())
      fail("{} is empty; expected at least one token", which);
    if (scores.context() > 0 && static_cast<int64_t>(prompt.size()) > scores.context())
      fail("{} has {} tokens; the plan's context is {} (hydrac --context)", which, prompt.size(),
           scores.context());
    for (size_t i = 0; i < prompt.size(); ++i)
      if (prompt[i] < 0 || prompt[i] >= scores.limit())
        fail("token {} of {} is {}; the model knows ids in [0, {})", i, which, prompt[i],
             scores.limit());
  }
}

} // namespace

std::vector<TextEnd> generate(const PlanFile &file, Executor &executor,
                              const std::vector<std::vector<int32_t>> &prompts,
                              const GenerateOptions &options,
                              const std::function<void(size_t, int32_t)> &emit) {
  const std::unique_ptr<NextScores> scores = makeNextScores(file, executor);
  checkPrompts(file, *scores, prompts);
  std::vector<Sequence> texts(prompts.size());
  for (size_t p = 0; p < prompts.size(); ++p)
    texts[p].tokens = prompts[p];
  std::vector<TextEnd> ends(prompts.size(), TextEnd::tokens);
  const auto end = [&](size_t p, TextEnd why) {
    texts[p].ended = true;
    ends[p] = why;
  };
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (std::ranges::all_of(texts, &Sequence::ended))
      break;
    scores->read(texts, wantedFor(options.sampling));
    const support::Philox random(options.seed, "generate", static_cast<uint64_t>(i));
    for (size_t p = 0; p < texts.size(); ++p) {
      Sequence &text = texts[p];
      if (text.ended)
        continue;
      const int32_t token = nextToken(text, options.sampling, random.uniform53(p));
      if (std::ranges::find(options.stop, token) != options.stop.end()) {
        end(p, TextEnd::stop);
        continue;
      }
      text.tokens.push_back(token);
      emit(p, token);
      if (scores->context() > 0 && static_cast<int64_t>(text.tokens.size()) > scores->context())
        end(p, TextEnd::context);
    }
  }
  return ends;
}

} // namespace hydra::runtime
