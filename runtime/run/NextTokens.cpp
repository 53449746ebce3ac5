// Programs with caches, and programs without.
#include "runtime/run/NextTokens.h"

#include "runtime/run/TensorValues.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

using namespace hydra::planfile;
using hydra::support::fail;
namespace support = hydra::support;

namespace hydra::runtime {

namespace {

/// A tensor of a program as it is expected to be.
struct Wanted {
  support::DType dtype;
  std::vector<int64_t> shape;
};

/// A program that takes tokens [B, S].
class TokenProgram {
public:
  TokenProgram(const PlanFile &file, uint32_t index)
      : index(index), file(&file), program(file.plan().programs()->Get(index)) {
    for (const Input *input : *program->inputs())
      if (input->kind() == InputKind::tokens)
        tokens = input;
    if (!tokens)
      fail("{}: program {} takes no tokens", file.origin(), name());
    shape = shapeOf(*file.plan().tensors()->Get(tokens->tensor()));
    if (shape.size() != 2)
      fail("{}: program {} takes tokens {}; expected [B, S]", file.origin(), name(),
           support::shapeText(shape));
  }

  uint32_t index;
  const Input *tokens = nullptr;
  std::vector<int64_t> shape; // of the tokens

  int64_t batch() const { return shape[0]; }
  int64_t length() const { return shape[1]; }
  std::string name() const { return support::shown(program->name()->string_view()); }

  void expectInputs(size_t count) const {
    if (program->inputs()->size() != count)
      fail("{}: program {} has {} inputs; expected {}", file->origin(), name(),
           program->inputs()->size(), count);
  }
  uint32_t input(std::string_view which, const Wanted &wanted) const {
    return tensorOf(*program->inputs(), which, wanted);
  }
  uint32_t output(std::string_view which, const Wanted &wanted) const {
    return tensorOf(*program->outputs(), which, wanted);
  }
  /// Of any type.
  uint32_t output(std::string_view which) const { return find(*program->outputs(), which); }

private:
  template <typename List> uint32_t find(const List &list, std::string_view which) const {
    for (const auto *one : list)
      if (one->name()->string_view() == which)
        return one->tensor();
    fail("{}: program {} has no {}, which generating text needs", file->origin(), name(), which);
  }
  template <typename List>
  uint32_t tensorOf(const List &list, std::string_view which, const Wanted &wanted) const {
    const uint32_t number = find(list, which);
    const Tensor &found = *file->plan().tensors()->Get(number);
    if (shapeOf(found) != wanted.shape || dtypeOf(found) != wanted.dtype)
      fail("{}: program {} has {} {} {}; expected {} {}", file->origin(), name(), which,
           support::irName(dtypeOf(found)), support::shapeText(shapeOf(found)),
           support::irName(wanted.dtype), support::shapeText(wanted.shape));
    return number;
  }

  const PlanFile *file;
  const Program *program;
};

/// What was drawn for a text; throws Error where a score is no number.
void setNext(Sequence &text, int32_t token, int64_t limit) {
  if (token < 0)
    fail("behind {} tokens the score of id {} is NaN or infinite", text.tokens.size(), -1 - token);
  if (token >= limit)
    fail("behind {} tokens id {} is drawn; the model knows ids in [0, {})", text.tokens.size(),
         token, limit);
  text.next = token;
}

/// All tokens of the window again for every one that is added. The model is causal: what stands
/// behind the last token does not matter. Draws on the host.
class WindowTokens final : public NextTokens {
public:
  WindowTokens(const PlanFile &file, Executor &executor, uint32_t index,
               const SamplingOptions &sampling, uint64_t seed)
      : executor(executor), program(file, index), settings(sampling.settings()), seed(seed),
        window(static_cast<size_t>(program.batch() * program.length())) {
    program.expectInputs(1);
    scores = program.output("logits");
    const Tensor &tensor = *file.plan().tensors()->Get(scores);
    dtype = dtypeOf(tensor);
    const std::vector<int64_t> out = shapeOf(tensor);
    if (out.size() != 3 || out[0] != program.batch() || out[1] != program.length())
      fail("{}: program {} maps tokens {} to logits {}; expected [B, S] to [B, S, V]",
           file.origin(), program.name(), support::shapeText(program.shape),
           support::shapeText(out));
    bytes.resize(denseBytes(tensor));
    const auto ids = static_cast<size_t>(out[2]);
    row.resize(ids);
    exact.resize(ids);
    keys.resize(ids);
    seen.resize(static_cast<size_t>(support::seenWords(out[2])));
  }

  size_t sequences() const override { return static_cast<size_t>(program.batch()); }
  int64_t limit() const override { return program.tokens->limit(); }
  int64_t context() const override { return 0; }

  void read(std::span<Sequence> texts) override {
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
    executor.read(scores, bytes);
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i].read = texts[i].tokens.size();
      if (!texts[i].ended)
        draw(texts[i], i * length + used[i] - 1);
    }
  }

private:
  void draw(Sequence &text, size_t at) {
    const size_t size = row.size() * support::byteSize(dtype);
    support::toDoubles(dtype, std::span(bytes).subspan(at * size, size), exact);
    std::ranges::transform(exact, row.begin(), [](double x) { return static_cast<float>(x); });
    std::ranges::fill(seen, 0);
    for (const int32_t id : text.tokens)
      support::markSeen(seen, static_cast<int64_t>(row.size()), id);
    const auto random = support::SamplingDraw::of(seed, text.number, text.drawn);
    setNext(text, support::sampleToken(row, seen, settings, random.bits(), keys), limit());
  }

  Executor &executor;
  TokenProgram program;
  support::SamplingSettings settings;
  uint64_t seed;
  uint32_t scores = 0;
  support::DType dtype = support::DType::F32;
  std::vector<int32_t> window;
  std::vector<std::byte> bytes;
  std::vector<double> exact;
  std::vector<float> row;
  std::vector<uint32_t> seen, keys;
};

/// The tokens that are new, by the longest calls that they fill, and from what was kept of the
/// others.
class CachedTokens final : public NextTokens {
public:
  CachedTokens(const PlanFile &file, Executor &executor, std::span<const uint32_t> indices,
               const SamplingOptions &sampling, uint64_t seed)
      : executor(executor), seed(seed) {
    for (const uint32_t index : indices)
      calls.emplace_back(file, index);
    std::ranges::sort(calls, std::greater(), &Call::length);
    for (const Call &call : calls)
      if (call.batch() != calls[0].batch())
        fail("{}: its programs read {} and {} sequences at a time", file.origin(), calls[0].batch(),
             call.batch());
    if (calls.back().length() != 1)
      fail("{}: no program reads a single token", file.origin());
    most = static_cast<int64_t>(file.plan().programs()->Get(indices[0])->context());
    settings.assign(sequences(), sampling.settings());
    draws.resize(sequences());
    drawn.resize(sequences());
  }

  size_t sequences() const override { return static_cast<size_t>(calls[0].batch()); }
  int64_t limit() const override { return calls[0].tokens->limit(); }
  int64_t context() const override { return most; }

  void read(std::span<Sequence> texts) override {
    for (const Call &call : calls)
      while (run(call, texts)) {
      }
  }

private:
  /// A program with its other tensors.
  struct Call : TokenProgram {
    Call(const PlanFile &file, uint32_t index) : TokenProgram(file, index) {
      using support::DType;
      expectInputs(4);
      position = input("position", {DType::F32, {batch()}});
      settings = input("settings", {DType::F32, {batch(), columns<support::SamplingSettings>}});
      draw = input("draw", {DType::I32, {batch(), columns<support::SamplingDraw>}});
      token = output("token", {DType::I32, {batch()}});
    }

    uint32_t position, settings, draw, token;

  private:
    template <typename Row> static constexpr int64_t columns = sizeof(Row) / 4;
  };

  static size_t left(const Sequence &text) {
    return text.ended ? 0 : text.tokens.size() - text.read;
  }

  /// Whether a sequence had enough tokens for it.
  bool run(const Call &call, std::span<Sequence> texts) {
    const auto length = static_cast<size_t>(call.length());
    if (std::ranges::none_of(texts, [&](const Sequence &text) { return left(text) >= length; }))
      return false;
    ids.assign(sequences() * length, 0);
    positions.assign(sequences(), -1.0F); // not for these
    for (size_t i = 0; i < texts.size(); ++i) {
      Sequence &text = texts[i];
      if (left(text) < length)
        continue;
      positions[i] = static_cast<float>(text.read);
      std::copy_n(text.tokens.begin() + static_cast<ptrdiff_t>(text.read), length,
                  ids.begin() + static_cast<ptrdiff_t>(i * length));
      draws[i] = support::SamplingDraw::of(seed, text.number, text.drawn);
      text.read += length;
    }
    executor.write(call.tokens->tensor(), std::as_bytes(std::span(ids)));
    executor.write(call.position, std::as_bytes(std::span(positions)));
    executor.write(call.settings, std::as_bytes(std::span(settings)));
    executor.write(call.draw, std::as_bytes(std::span(draws)));
    executor.start(call.index, std::array{call.token}); // which comes with the end of the run
    executor.finish();
    takeDrawn(call, texts);
    return true;
  }

  /// For texts of which the call read the last token.
  void takeDrawn(const Call &call, std::span<Sequence> texts) {
    const auto isRead = [&](size_t i) { return positions[i] >= 0 && left(texts[i]) == 0; };
    bool any = false;
    for (size_t i = 0; i < texts.size(); ++i)
      any |= isRead(i);
    if (!any)
      return;
    executor.read(call.token, std::as_writable_bytes(std::span(drawn)));
    for (size_t i = 0; i < texts.size(); ++i)
      if (isRead(i))
        setNext(texts[i], drawn[i], limit());
  }

  Executor &executor;
  uint64_t seed;
  std::vector<Call> calls; // the longest first
  int64_t most = 0;
  std::vector<int32_t> ids, drawn;
  std::vector<float> positions;
  std::vector<support::SamplingSettings> settings;
  std::vector<support::SamplingDraw> draws;
};

} // namespace

std::unique_ptr<NextTokens> makeNextTokens(const PlanFile &file, Executor &executor,
                                           const SamplingOptions &sampling, uint64_t seed,
                                           ProgramForm form) {
  std::vector<uint32_t> readOn;
  std::optional<uint32_t> window;
  const auto &programs = *file.plan().programs();
  for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i)
    if (programs.Get(i)->role() == ProgramRole::decode)
      readOn.push_back(i);
    else if (programs.Get(i)->role() == ProgramRole::generate && !window)
      window = i;
  if (!readOn.empty())
    return std::make_unique<CachedTokens>(file, executor, readOn, sampling, seed);
  if (!window)
    fail("{} has no program logits, which generating text needs", file.origin());
  window = programInForm(file.plan(), *window, form).value_or(*window);
  return std::make_unique<WindowTokens>(file, executor, *window, sampling, seed);
}

} // namespace hydra::runtime
