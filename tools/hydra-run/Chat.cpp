// Turns, one line each.
#include "tools/hydra-run/Chat.h"

#include "runtime/run/Conversation.h"
#include "runtime/run/StandardOutput.h"
#include "runtime/run/TextSource.h"
#include "runtime/support/Error.h"
#include "runtime/support/StopSignal.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>

namespace hydra {

using runtime::print;
using runtime::TextEnd;
using support::fail;

namespace {

class Chat {
public:
  Chat(const RunOptions &options, const runtime::PlanFile &file, runtime::Executor &executor,
       const text::Tokenizer &tokenizer, const text::ChatTemplate &shape, uint64_t seed)
      : options(options), tokenizer(tokenizer), shape(shape),
        conversation(file, executor, answersOf(options, shape, seed)),
        terminal(::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) {
    if (options.system)
      checkSystem();
  }

  int run() {
    std::string line;
    while (readLine(line) && line != "/exit") {
      const std::vector<int32_t> turn = turnOf(line);
      if (turn.empty())
        continue;
      begun = true;
      const support::StopSignal signal;
      const TextEnd end = answer(turn);
      if (const int number = support::StopSignal::received(); number != 0 && number != SIGINT)
        return 128 + number; // as shells count
      if (end == TextEnd::context || isFull()) {
        std::fprintf(
            stderr,
            "hydra-run: the conversation ends with the plan's context (hydrac --context)\n");
        return 0;
      }
    }
    return 0;
  }

private:
  static runtime::GenerateOptions answersOf(const RunOptions &options,
                                            const text::ChatTemplate &shape, uint64_t seed) {
    runtime::GenerateOptions how = options.generate;
    how.seed = seed;
    if (how.stop.empty())
      how.stop = shape.stopIds();
    else
      how.stop.push_back(shape.endId());
    return how;
  }

  void checkSystem() {
    const size_t size = shape.encode(shape.first("", options.system)).size();
    if (conversation.room() && size > *conversation.room())
      fail("--system has {} tokens with what stands around it; the plan's context is {} (hydrac "
           "--context)",
           size, *conversation.room());
  }

  bool readLine(std::string &line) const {
    if (terminal)
      print("> ");
    if (std::getline(std::cin, line)) {
      if (line.ends_with('\r'))
        line.pop_back();
      return true;
    }
    if (std::ferror(stdin) != 0)
      fail("cannot read the standard input: {}", support::errnoText(errno));
    if (terminal)
      print("\n");
    return false;
  }

  /// Whether what stands around a line leaves no room for one.
  bool isFull() const {
    const std::optional<size_t> room = conversation.room();
    return room && shape.encode(shape.next("")).size() >= *room;
  }

  /// The tokens to read for a line; none for an empty one, and for one that cannot be read, which
  /// is said.
  std::vector<int32_t> turnOf(const std::string &line) const {
    if (line.empty())
      return {};
    std::vector<int32_t> turn;
    try {
      turn = shape.encode(begun ? shape.next(line) : shape.first(line, options.system));
    } catch (const support::Error &error) {
      std::fprintf(stderr, "hydra-run: this line is left out: %s\n", error.what());
      return {};
    }
    const std::optional<size_t> room = conversation.room();
    if (!room || turn.size() <= *room)
      return turn;
    std::fprintf(
        stderr,
        "hydra-run: this line is left out: it has %zu tokens with what stands around it, and "
        "%zu are left of the plan's context (hydrac --context)\n",
        turn.size(), *room);
    return {};
  }

  TextEnd answer(const std::vector<int32_t> &turn) {
    // Behind a word the first space stands for what is between; behind a line it is said.
    const bool behindLine = tokenizer.decode(turn, text::Specials::show).ends_with('\n');
    const std::unique_ptr<text::TextStream> stream =
        behindLine ? tokenizer.streamBehind(turn) : tokenizer.stream();
    const TextEnd end = conversation.answer(
        turn, [] { return support::StopSignal::received() != 0; },
        [&](int32_t token) { print(stream->add(token)); });
    print(stream->finish() + "\n");
    return end;
  }

  const RunOptions &options;
  const text::Tokenizer &tokenizer;
  const text::ChatTemplate &shape;
  runtime::Conversation conversation;
  bool terminal;
  bool begun = false;
};

} // namespace

text::ChatTemplate chatTemplate(const RunOptions &options, const text::Tokenizer &tokenizer) {
  if (options.tokenizer == "ids")
    fail("--chat: what is said is text, and --tokenizer=ids has none");
  const std::string file = runtime::isTokenKind(options.tokenizer) ? "" : options.tokenizer;
  const text::ChatTemplate shape(options.chatTemplate.empty()
                                     ? text::findChatTemplate(file, options.system.has_value())
                                     : options.chatTemplate,
                                 tokenizer, file);
  if (options.system && !shape.takesSystem())
    fail("--system: the template {} has no place for it", shape.name());
  return shape;
}

int chat(const RunOptions &options, const runtime::PlanFile &file, runtime::Executor &executor,
         const text::Tokenizer &tokenizer, const text::ChatTemplate &shape, uint64_t seed) {
  return Chat(options, file, executor, tokenizer, shape, seed).run();
}

} // namespace hydra
