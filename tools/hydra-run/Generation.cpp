// Prompts in, text out.
#include "tools/hydra-run/Generation.h"

#include "runtime/run/Generate.h"
#include "runtime/run/StandardOutput.h"
#include "runtime/support/Error.h"
#include "runtime/text/Tokenizer.h"

#include <fmt/ranges.h>

#include <chrono>
#include <utility>

namespace hydra {

using runtime::print;
using support::fail;

namespace {

int64_t vocabularyOf(const runtime::PlanFile &file) {
  for (const planfile::Program *program : *file.plan().programs())
    for (const planfile::Input *input : *program->inputs())
      if (input->kind() == planfile::InputKind::tokens)
        return input->limit();
  return 0;
}

/// What belongs to a prompt, as far as it is known.
struct Text {
  std::unique_ptr<text::TextStream> stream;
  std::string waiting; // for the texts before it
};

runtime::GenerateOptions settingsOf(const RunOptions &options, const text::Tokenizer &tokenizer,
                                    uint64_t seed) {
  runtime::GenerateOptions how = options.generate;
  how.seed = seed;
  if (how.stop.empty())
    how.stop = tokenizer.stopIds();
  return how;
}

} // namespace

/// Throws Error for a --stop-token that the model cannot give.
static void checkStops(const RunOptions &options, const runtime::PlanFile &file) {
  for (const int32_t id : options.generate.stop)
    if (id >= vocabularyOf(file))
      fail("--stop-token: {} is no token; the model knows ids in [0, {})", id, vocabularyOf(file));
}

std::unique_ptr<text::Tokenizer> promptTokenizer(const RunOptions &options,
                                                 const runtime::PlanFile &file,
                                                 std::unique_ptr<text::Tokenizer> given) {
  checkStops(options, file);
  if (given) {
    text::checkIds(*given, options.tokenizer, vocabularyOf(file));
    return given;
  }
  if (options.tokenizer == "bytes" || (options.tokenizer.empty() && vocabularyOf(file) == 256))
    return text::makeByteTokenizer();
  if (options.tokenizer == "ids")
    return text::makeIdTokenizer();
  fail("--{}: the model has {} tokens; say with --tokenizer=bytes that they are bytes, with "
       "--tokenizer=FILE what spells them{}",
       options.chat ? "chat" : "generate", vocabularyOf(file),
       options.chat ? "" : ", or with --tokenizer=ids that the prompt is a list of ids");
}

void checkTexts(const RunOptions &options, const runtime::PlanFile &file,
                runtime::Executor &executor, const text::Tokenizer &tokenizer) {
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string &prompt : options.prompts)
    prompts.push_back(tokenizer.encode(prompt));
  runtime::GenerateOptions none = options.generate;
  none.tokens = 0;
  runtime::generate(file, executor, prompts, none, [] { return false; }, [](size_t, int32_t) {});
}

std::vector<runtime::TextSample> sampleTexts(const RunOptions &options,
                                             const runtime::PlanFile &file,
                                             runtime::Executor &executor,
                                             const text::Tokenizer &tokenizer, uint64_t seed,
                                             const std::function<bool()> &interrupted) {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<runtime::TextSample> samples;
  std::vector<std::unique_ptr<text::TextStream>> streams;
  for (const std::string &prompt : options.prompts) {
    prompts.push_back(tokenizer.encode(prompt));
    samples.push_back({prompt, ""});
    streams.push_back(tokenizer.streamBehind(prompts.back()));
  }
  runtime::generate(file, executor, prompts, settingsOf(options, tokenizer, seed), interrupted,
                    [&](size_t i, int32_t token) { samples[i].text += streams[i]->add(token); });
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i].text += streams[i]->finish();
  return samples;
}

std::string generateText(const RunOptions &options, const runtime::PlanFile &file,
                         runtime::Executor &executor, const text::Tokenizer &tokenizer,
                         uint64_t seed) {
  const runtime::GenerateOptions how = settingsOf(options, tokenizer, seed);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<Text> texts;
  for (const std::string &prompt : options.prompts) {
    prompts.push_back(tokenizer.encode(prompt));
    texts.push_back({tokenizer.streamBehind(prompts.back()), prompt});
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Clock::time_point first = begin;
  size_t added = 0;
  const std::vector<runtime::TextEnd> ends = runtime::generate(
      file, executor, prompts, how, [] { return false; },
      [&](size_t i, int32_t token) {
        if (added++ == 0)
          first = Clock::now();
        texts[i].waiting += texts[i].stream->add(token);
        if (i == 0) // the first time with its prompt: one that is refused prints nothing
          print(std::exchange(texts[0].waiting, ""));
      });
  const Clock::time_point end = Clock::now();
  for (size_t i = 0; i < texts.size(); ++i)
    print((i > 0 ? "\n" : "") + texts[i].waiting + texts[i].stream->finish() + "\n");
  std::string notes;
  // The first of each text comes with the last call for its prompt.
  if (added > prompts.size()) {
    size_t read = 0;
    for (const std::vector<int32_t> &prompt : prompts)
      read += prompt.size();
    const auto seconds = [](Clock::duration time) {
      return std::chrono::duration<double>(time).count();
    };
    const double after = seconds(end - first);
    notes += fmt::format(
        "hydra-run: {} tokens read in {:.3f} s, {} added in {:.3f} s: {:.3f} ms a token, {:.1f} "
        "tok/s\n",
        read, seconds(first - begin), added, after,
        1e3 * after * static_cast<double>(prompts.size()) /
            static_cast<double>(added - prompts.size()),
        static_cast<double>(added - prompts.size()) / after);
  }
  for (size_t i = 0; i < texts.size(); ++i)
    if (ends[i] == runtime::TextEnd::context)
      notes += fmt::format("hydra-run: {} ends with the plan's context (hydrac --context)\n",
                           texts.size() == 1 ? "the text" : fmt::format("text {}", i + 1));
  return notes;
}

std::string generationText(const RunOptions &options) {
  const runtime::GenerateOptions &how = options.generate;
  const runtime::SamplingOptions &choice = how.sampling;
  return fmt::format("{} tokens, temperature {}, top-k {}, top-p {}, min-p {}, repetition penalty "
                     "{}, stop at {}",
                     how.tokens, choice.temperature, choice.topK, choice.topP, choice.minP,
                     choice.repetitionPenalty, how.stop);
}

} // namespace hydra
