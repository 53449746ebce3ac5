// Reads, chooses, and reads what was chosen.
#include "runtime/run/Generate.h"

#include "runtime/run/NextTokens.h"
#include "runtime/support/Error.h"

#include <algorithm>

using hydra::support::fail;

namespace hydra::runtime {

namespace {

void checkPrompts(const PlanFile &file, const NextTokens &next,
                  const std::vector<std::vector<int32_t>> &prompts) {
  if (prompts.size() > next.sequences())
    fail("{}: {} prompts; the plan reads {} at a time (hydrac --batch)", file.origin(),
         prompts.size(), next.sequences());
  for (size_t p = 0; p < prompts.size(); ++p) {
    const std::vector<int32_t> &prompt = prompts[p];
    const std::string which = prompts.size() == 1 ? "the prompt" : fmt::format("prompt {}", p + 1);
    if (prompt.empty())
      fail("{} is empty; expected at least one token", which);
    if (next.context() > 0 && static_cast<int64_t>(prompt.size()) > next.context())
      fail("{} has {} tokens; the plan's context is {} (hydrac --context)", which, prompt.size(),
           next.context());
    for (size_t i = 0; i < prompt.size(); ++i)
      if (prompt[i] < 0 || prompt[i] >= next.limit())
        fail("token {} of {} is {}; the model knows ids in [0, {})", i, which, prompt[i],
             next.limit());
  }
}

} // namespace

std::vector<TextEnd> generate(const PlanFile &file, Executor &executor,
                              const std::vector<std::vector<int32_t>> &prompts,
                              const GenerateOptions &options,
                              const std::function<bool()> &interrupted,
                              const std::function<void(size_t, int32_t)> &emit) {
  const std::unique_ptr<NextTokens> next =
      makeNextTokens(file, executor, options.sampling, options.seed, options.form);
  checkPrompts(file, *next, prompts);
  std::vector<Sequence> texts(prompts.size());
  for (size_t p = 0; p < prompts.size(); ++p) {
    texts[p].tokens = prompts[p];
    texts[p].number = static_cast<uint32_t>(p);
  }
  std::vector<TextEnd> ends(prompts.size(), TextEnd::tokens);
  const auto end = [&](size_t p, TextEnd why) {
    texts[p].ended = true;
    ends[p] = why;
  };
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (std::ranges::all_of(texts, &Sequence::ended))
      break;
    if (interrupted()) {
      for (size_t p = 0; p < texts.size(); ++p)
        if (!texts[p].ended)
          end(p, TextEnd::interrupted);
      break;
    }
    next->read(texts);
    for (size_t p = 0; p < texts.size(); ++p) {
      Sequence &text = texts[p];
      if (text.ended)
        continue;
      const int32_t token = text.next;
      ++text.drawn;
      if (std::ranges::find(options.stop, token) != options.stop.end()) {
        end(p, TextEnd::stop);
        continue;
      }
      text.tokens.push_back(token);
      emit(p, token);
      if (next->context() > 0 && static_cast<int64_t>(text.tokens.size()) > next->context())
        end(p, TextEnd::context);
    }
  }
  return ends;
}

} // namespace hydra::runtime
