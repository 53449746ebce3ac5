// Programs with caches, and programs without.
#include "runtime/run/NextScores.h"

#include "runtime/run/TensorValues.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

using namespace hydra::planfile;
using hydra::support::fail;
namespace support = hydra::support;

namespace hydra::runtime {

namespace {

/// A program that takes tokens [B, S] and returns scores [B, ..., V].
struct ScoreProgram {
  uint32_t index = 0;
  const Input *tokens = nullptr, *position = nullptr;
  uint32_t scores = 0;
  std::optional<uint32_t> best, top; // of programs that find them
  std::vector<int64_t> shape;        // of the tokens
  std::vector<int64_t> scoreShape;
  support::DType dtype = support::DType::F32;

  int64_t length() const { return shape[1]; }
};

/// Rows of scores, of the type that the program gives, as doubles.
class ScoreReader {
public:
  ScoreReader(const PlanFile &file, Executor &executor) : file(file), executor(executor) {}

  void read(const ScoreProgram &program) {
    bytes.resize(denseBytes(*file.plan().tensors()->Get(program.scores)));
    executor.read(program.scores, bytes);
  }
  /// Row `row`; throws Error where a score is no number.
  void give(const ScoreProgram &program, size_t row, Sequence &text) const {
    text.scores.resize(static_cast<size_t>(program.scoreShape.back()));
    const size_t size = text.scores.size() * support::byteSize(program.dtype);
    support::toDoubles(program.dtype, std::span(bytes).subspan(row * size, size), text.scores);
    const auto bad = std::ranges::find_if(text.scores, [](double x) { return !std::isfinite(x); });
    if (bad != text.scores.end())
      fail("behind {} tokens the score of id {} is {}", text.tokens.size(),
           bad - text.scores.begin(), *bad);
  }

private:
  const PlanFile &file;
  Executor &executor;
  std::vector<std::byte> bytes;
};

/// Of a program that takes tokens and, where it reads on, positions. Throws Error for another.
ScoreProgram scoreProgram(const PlanFile &file, uint32_t index, bool readsOn) {
  const Plan &plan = file.plan();
  const Program &program = *plan.programs()->Get(index);
  const std::string name = support::shown(program.name()->string_view());
  ScoreProgram found;
  found.index = index;
  for (const Input *input : *program.inputs())
    (input->kind() == InputKind::tokens ? found.tokens : found.position) = input;
  const Tensor *scores = nullptr;
  const auto &outputs = *program.outputs();
  const auto scoresAt = [&](const Output &output) {
    found.scores = output.tensor();
    scores = plan.tensors()->Get(output.tensor());
  };
  if (!readsOn) {
    for (const Output *output : outputs)
      if (output->name()->string_view() == "logits")
        scoresAt(*output);
  } else if (outputs.size() > 0) { // scores, and where they are found the best id and its score
    scoresAt(*outputs[0]);
    if (outputs.size() == 3)
      found.best = outputs[1]->tensor(), found.top = outputs[2]->tensor();
  }
  if (!found.tokens || !scores || program.inputs()->size() != (readsOn ? 2u : 1u))
    fail("{}: program {} must take tokens{} and return logits", file.origin(), name,
         readsOn ? " and positions" : " alone");
  found.shape = shapeOf(*plan.tensors()->Get(found.tokens->tensor()));
  found.scoreShape = shapeOf(*scores);
  found.dtype = dtypeOf(*scores);
  const std::vector<int64_t> &in = found.shape, &out = found.scoreShape;
  if (in.size() != 2 || out.size() != 3 || out[0] != in[0] || out[1] != (readsOn ? 1 : in[1]))
    fail("{}: program {} maps tokens {} to logits {}; expected [B, S] to [B, {}, V]", file.origin(),
         name, support::shapeText(in), support::shapeText(out), readsOn ? "1" : "S");
  if (!readsOn)
    return found;
  const std::vector<int64_t> batch = {in[0]};
  const auto isNumbers = [&](uint32_t tensor) {
    const Tensor &one = *plan.tensors()->Get(tensor);
    return shapeOf(one) == batch && dtypeOf(one) == support::DType::F32;
  };
  if (!isNumbers(found.position->tensor()))
    fail("{}: program {} takes positions that are not f32 {}", file.origin(), name,
         support::shapeText(batch));
  if (found.best && (!isNumbers(*found.best) || !isNumbers(*found.top)))
    fail("{}: program {} returns best ids and scores that are not f32 {}", file.origin(), name,
         support::shapeText(batch));
  return found;
}

void setBest(Sequence &text) {
  text.best = static_cast<int32_t>(std::ranges::max_element(text.scores) - text.scores.begin());
}

/// All tokens of the window again for every one that is added. The model is causal: what stands
/// behind the last token does not matter.
class WindowScores final : public NextScores {
public:
  WindowScores(const PlanFile &file, Executor &executor, uint32_t index)
      : executor(executor), program(scoreProgram(file, index, false)), reader(file, executor),
        window(static_cast<size_t>(program.shape[0] * program.length())) {}

  size_t sequences() const override { return static_cast<size_t>(program.shape[0]); }
  int64_t limit() const override { return program.tokens->limit(); }
  int64_t context() const override { return 0; }

  void read(std::span<Sequence> texts, Wanted wanted) override {
    const auto length = static_cast<size_t>(program.length());
    std::vector<size_t> used;
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<int32_t> &tokens = texts[i].tokens;
      used.push_back(std::min(tokens.size(), length));
      std::copy(tokens.end() - static_cast<ptrdiff_t>(used[i]), tokens.end(),
                window.begin() + static_cast<ptrdiff_t>(i * length));
    }
    executor.write(program.tokens->tensor(), std::as_bytes(std::span(window)));
    executor.run(program.index);
    reader.read(program);
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i].read = texts[i].tokens.size();
      if (texts[i].ended)
        continue;
      reader.give(program, i * length + used[i] - 1, texts[i]);
      if (wanted == Wanted::best)
        setBest(texts[i]);
    }
  }

private:
  Executor &executor;
  ScoreProgram program;
  ScoreReader reader;
  std::vector<int32_t> window;
};

/// The tokens that are new, by the longest calls that they fill, and from what was kept of the
/// others.
class CachedScores final : public NextScores {
public:
  CachedScores(const PlanFile &file, Executor &executor, std::span<const uint32_t> indices)
      : executor(executor), reader(file, executor) {
    for (const uint32_t index : indices)
      programs.push_back(scoreProgram(file, index, true));
    std::ranges::sort(programs, std::greater(), &ScoreProgram::length);
    for (const ScoreProgram &program : programs)
      if (program.shape[0] != programs[0].shape[0])
        fail("{}: its programs read {} and {} sequences at a time", file.origin(),
             programs[0].shape[0], program.shape[0]);
    if (programs.back().length() != 1)
      fail("{}: no program reads a single token", file.origin());
    most = static_cast<int64_t>(file.plan().programs()->Get(indices[0])->context());
  }

  size_t sequences() const override { return static_cast<size_t>(programs[0].shape[0]); }
  int64_t limit() const override { return programs[0].tokens->limit(); }
  int64_t context() const override { return most; }

  void read(std::span<Sequence> texts, Wanted wanted) override {
    for (const ScoreProgram &program : programs)
      while (call(program, texts, wanted)) {
      }
  }

private:
  static size_t left(const Sequence &text) {
    return text.ended ? 0 : text.tokens.size() - text.read;
  }

  /// Whether a sequence had enough tokens for it.
  bool call(const ScoreProgram &program, std::span<Sequence> texts, Wanted wanted) {
    const auto length = static_cast<size_t>(program.length());
    if (std::ranges::none_of(texts, [&](const Sequence &text) { return left(text) >= length; }))
      return false;
    ids.assign(sequences() * length, 0);
    positions.assign(sequences(), -1.0F); // not for these
    for (size_t i = 0; i < texts.size(); ++i) {
      if (left(texts[i]) < length)
        continue;
      positions[i] = static_cast<float>(texts[i].read);
      std::copy_n(texts[i].tokens.begin() + static_cast<ptrdiff_t>(texts[i].read), length,
                  ids.begin() + static_cast<ptrdiff_t>(i * length));
    }
    executor.write(program.tokens->tensor(), std::as_bytes(std::span(ids)));
    executor.write(program.position->tensor(), std::as_bytes(std::span(positions)));
    executor.run(program.index);
    bool ends = false; // a text's new tokens
    for (size_t i = 0; i < texts.size(); ++i)
      if (positions[i] >= 0) {
        texts[i].read += length;
        ends |= left(texts[i]) == 0;
      }
    if (!ends)
      return true;
    const bool onDevice = wanted == Wanted::best && program.best;
    if (onDevice) {
      best.resize(sequences());
      top.resize(sequences());
      executor.read(*program.best, std::as_writable_bytes(std::span(best)));
      executor.read(*program.top, std::as_writable_bytes(std::span(top)));
    } else {
      reader.read(program);
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      if (positions[i] < 0 || left(texts[i]) != 0)
        continue;
      if (onDevice)
        takeBest(program, i, texts[i]);
      else
        reader.give(program, i, texts[i]);
      if (wanted == Wanted::best && !onDevice)
        setBest(texts[i]);
    }
    return true;
  }

  void takeBest(const ScoreProgram &program, size_t i, Sequence &text) const {
    if (!std::isfinite(top[i]) || !(best[i] >= 0) || !(best[i] < static_cast<float>(limit())))
      fail("behind {} tokens the highest score is {}, of id {} of {}", text.tokens.size(), top[i],
           best[i], program.scoreShape.back());
    text.best = static_cast<int32_t>(best[i]);
  }

  Executor &executor;
  ScoreReader reader;
  std::vector<ScoreProgram> programs; // the longest calls first
  int64_t most = 0;
  std::vector<int32_t> ids;
  std::vector<float> positions, best, top;
};

} // namespace

Wanted wantedFor(const SamplingOptions &options) {
  return options.temperature == 0 && options.repetitionPenalty == 1.0 ? Wanted::best
                                                                      : Wanted::scores;
}

int32_t nextToken(const Sequence &text, const SamplingOptions &options, double u) {
  return wantedFor(options) == Wanted::best ? text.best
                                            : sample(text.scores, options, text.tokens, u);
}

std::unique_ptr<NextScores> makeNextScores(const PlanFile &file, Executor &executor) {
  std::vector<uint32_t> readOn;
  std::optional<uint32_t> window;
  const auto &programs = *file.plan().programs();
  for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i)
    if (programs.Get(i)->role() == ProgramRole::decode)
      readOn.push_back(i);
    else if (programs.Get(i)->role() == ProgramRole::generate && !window)
      window = i;
  if (!readOn.empty())
    return std::make_unique<CachedScores>(file, executor, readOn);
  if (!window)
    fail("{} has no program logits, which generating text needs", file.origin());
  return std::make_unique<WindowScores>(file, executor, *window);
}

} // namespace hydra::runtime
