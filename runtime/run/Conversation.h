// A text that grows in turns: what somebody says, and what the model answers.
#pragma once

#include "runtime/run/Generate.h"
#include "runtime/run/NextTokens.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace hydra::runtime {

/// What was read stays in the caches of programs that read on: every token is read once. Without
/// them the last S tokens are read again for each.
class Conversation {
public:
  /// Throws Error when the plan has no program for it. An answer has at most `options.tokens`.
  Conversation(const PlanFile &file, Executor &executor, GenerateOptions options);

  /// How many tokens a turn may have; nothing: any number.
  std::optional<size_t> room() const;

  /// Reads a turn and hands over the tokens of its answer as they are chosen. The answer ends in
  /// front of a stop token, after as many tokens as it may have, where there is no room for another
  /// turn, or once `interrupted`. The same turns give the same answers. Throws Error for an id that
  /// the model does not know, and when a score is not finite.
  TextEnd answer(std::span<const int32_t> turn, const std::function<bool()> &interrupted,
                 const std::function<void(int32_t)> &emit);

private:
  void read(std::span<const int32_t> turn);

  GenerateOptions options;
  std::unique_ptr<NextTokens> next;
  Sequence text;
};

} // namespace hydra::runtime
