// Turns of one sequence.
#include "runtime/run/Conversation.h"

#include "runtime/support/Error.h"

#include <algorithm>

using hydra::support::fail;

namespace hydra::runtime {

Conversation::Conversation(const PlanFile &file, Executor &executor, GenerateOptions how)
    : options(std::move(how)),
      next(makeNextTokens(file, executor, options.sampling, options.seed, options.form)) {}

std::optional<size_t> Conversation::room() const {
  const auto most = static_cast<size_t>(next->context());
  if (most == 0)
    return std::nullopt;
  return most - std::min(most, text.tokens.size());
}

void Conversation::read(std::span<const int32_t> turn) {
  for (const int32_t id : turn)
    if (id < 0 || id >= next->limit())
      fail("the conversation has the token id {}; the model knows ids in [0, {})", id,
           next->limit());
  text.tokens.insert(text.tokens.end(), turn.begin(), turn.end());
}

TextEnd Conversation::answer(std::span<const int32_t> turn,
                             const std::function<bool()> &interrupted,
                             const std::function<void(int32_t)> &emit) {
  read(turn);
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (room() && text.tokens.size() > static_cast<size_t>(next->context()))
      return TextEnd::context;
    next->read(std::span(&text, 1));
    if (interrupted())
      return TextEnd::interrupted;
    const int32_t token = text.next;
    ++text.drawn;
    if (std::ranges::find(options.stop, token) != options.stop.end())
      return TextEnd::stop;
    text.tokens.push_back(token);
    emit(token);
  }
  return room() && *room() == 0 ? TextEnd::context : TextEnd::tokens;
}

} // namespace hydra::runtime
