// The data library on one side, the inputs of a plan on the other.
#include "runtime/run/TextSource.h"

#include "runtime/plan/Mesh.h"
#include "runtime/report/Units.h"
#include "runtime/run/TensorValues.h"
#include "runtime/support/Error.h"

#include <algorithm>

using namespace hydra::report;
using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
namespace data = hydra::data;
namespace text = hydra::text;

namespace {

/// The tokens that a program reads.
const Input &tokensOf(const Plan &plan, const Program &program) {
  for (const Input *input : *program.inputs())
    if (input->kind() == InputKind::tokens &&
        plan.tensors()->Get(input->tensor())->shape()->size() == 2)
      return *input;
  fail("--data: the plan is not one that trains on tokens [B, S]");
}

/// Those of a step of training, behind all phases.
const Input &trainingTokens(const Plan &plan) {
  if (const auto program = mainTrainingProgram(plan))
    return tokensOf(plan, *plan.programs()->Get(*program));
  fail("--data: the plan is not one that trains on tokens [B, S]");
}

/// Gives batches the shape of an input, and says which part of them is the rank's.
void setShape(data::LoaderOptions &loading, const Plan &plan, const Input &input, uint32_t rank) {
  const Tensor &tensor = *plan.tensors()->Get(input.tensor());
  const BatchPart part(plan, tensor, input.batch_dimension(), rank);
  if (part.isPart() && input.batch_dimension() != 0)
    fail("--data: the ranks of the plan do not share out the rows of tokens [B, S]");
  loading.batch = static_cast<uint64_t>(part.wholeShape()[0]);
  loading.length = static_cast<uint64_t>(part.wholeShape()[1]);
  loading.parts = part.isPart() ? ranksOf(plan) : 1;
  loading.part = part.isPart() ? rank : 0;
}

data::LoaderOptions loadingOf(const Plan &plan, const TextOptions &options) {
  data::LoaderOptions loading{.seed = options.seed, .threads = options.threads};
  setShape(loading, plan, trainingTokens(plan), options.rank);
  return loading;
}

data::FilesOptions filesOf(const Plan &plan, const TextOptions &options) {
  const int64_t vocabulary = trainingTokens(plan).limit();
  constexpr int64_t byteValues = 256, shortValues = 65536;
  data::Format format = data::Format::uint32;
  if (options.tokenizer == "ids")
    fail("--tokenizer=ids is for --generate; --data holds bytes, uint16, uint32 or text of a "
         "tokenizer's file");
  if (options.encoder)
    checkIds(*options.encoder, options.tokenizer, vocabulary);
  if (options.tokenizer == "bytes" || (options.tokenizer.empty() && vocabulary == byteValues))
    format = data::Format::bytes;
  else if (options.tokenizer == "uint16" ||
           (options.tokenizer.empty() && vocabulary <= shortValues))
    format = data::Format::uint16;
  return {.files = options.files,
          .format = format,
          .vocabulary = vocabulary,
          .tokenizer = options.encoder};
}

} // namespace

class TextSource::Training : public BatchSource {
public:
  Training(const data::TokenFiles &files, const data::LoaderOptions &options)
      : loader(files, options) {}
  Rows next() override {
    const data::BatchRows &rows = loader.next();
    return {rows.tokens, rows.labels};
  }

private:
  data::Loader loader;
};

class TextSource::HeldOut : public BatchSource {
public:
  HeldOut(const data::TokenFiles &files, const data::LoaderOptions &options)
      : files(files), windows(data::Windows::heldOut(files, options.length, options.batch)),
        batch(options.batch), ownRows(options.batch / options.parts),
        firstRow(options.part * ownRows) {
    rows.tokens.resize(ownRows * options.length);
    rows.labels.resize(ownRows * options.length);
  }

  uint64_t batches() const { return windows.count / batch; }
  void rewind() { current = 0; }

  Rows next() override {
    for (uint64_t row = 0; row < ownRows; ++row)
      data::readWindow(files, windows, current * batch + firstRow + row, row, rows);
    current = (current + 1) % batches();
    return {rows.tokens, rows.labels};
  }

private:
  const data::TokenFiles &files;
  data::Windows windows;
  uint64_t batch, ownRows, firstRow, current = 0;
  data::BatchRows rows;
};

bool hydra::runtime::isTokenKind(std::string_view word) {
  return word == "bytes" || word == "uint16" || word == "uint32" || word == "ids";
}

TextSource::TextSource(const Plan &plan, const TextOptions &options)
    : plan(plan), rank(options.rank), loading(loadingOf(plan, options)),
      name(options.files[0].string()), files(filesOf(plan, options)) {
  if (options.files.size() > 1)
    name += fmt::format(" and {} more", options.files.size() - 1);
  data::Windows::training(files, loading.length, 1); // refuses too little text before any work
  heldOutSource = std::make_shared<HeldOut>(files, loading);
  evalBatches = heldOutSource->batches();
  if (options.evalBatches > 0)
    evalBatches = std::min(evalBatches, static_cast<uint64_t>(options.evalBatches));
}

std::string TextSource::description() const {
  return fmt::format("{}: {} tokens, the last tenth held out ({} batches to measure)", name,
                     countText(files.tokens()), evalBatches);
}

std::string TextSource::identity() const { return files.fingerprint(); }

TextSource::~TextSource() = default;

BatchSource &TextSource::training(const Program &program, uint64_t first) {
  data::LoaderOptions options = loading;
  setShape(options, plan, tokensOf(plan, program), rank);
  options.first = first;
  return *trainingSources.emplace_back(std::make_unique<Training>(files, options));
}

BatchSource &TextSource::heldOut() { return *heldOutSource; }

void TextSource::rewindHeldOut() { heldOutSource->rewind(); }

std::string TextSource::bench(int batches) {
  data::Loader loader(files, loading);
  return data::benchLoader(loader, batches);
}
