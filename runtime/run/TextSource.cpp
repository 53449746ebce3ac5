// The data library on one side, the inputs of a plan on the other.
#include "runtime/run/TextSource.h"

#include "runtime/plan/Mesh.h"
#include "runtime/report/Units.h"
#include "runtime/run/TensorValues.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

using namespace hydra::report;
using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
namespace data = hydra::data;
namespace text = hydra::text;
namespace support = hydra::support;

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

bool takesLabels(const Plan &plan) {
  const auto program = mainTrainingProgram(plan);
  return program &&
         std::ranges::any_of(*plan.programs()->Get(*program)->inputs(),
                             [](const Input *input) { return input->kind() == InputKind::labels; });
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
  data::LoaderOptions loading{.threads = options.threads, .ahead = options.ahead};
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
  return {.files = {},
          .format = format,
          .vocabulary = vocabulary,
          .tokenizer = options.encoder,
          .tokenizerHash = options.encoder ? data::hashOfTokenizer(options.tokenizer) : 0,
          .assumed = options.tokenizer.empty()};
}

/// What the plan's model has for a symbol; null: it has no such symbol.
const KeyValue *symbolOf(const Plan &plan, std::string_view name) {
  for (const KeyValue *symbol : *plan.header()->symbols())
    if (symbol->key()->string_view() == name)
      return symbol;
  return nullptr;
}

bool isPacked(const Plan &plan) {
  const KeyValue *const packed = symbolOf(plan, "packed");
  return packed && packed->value()->string_view() == "true";
}

/// Held-out rows of several sources, in proportion to their weights, until one has no more.
std::vector<std::pair<size_t, uint64_t>> mixed(const std::vector<uint64_t> &counts,
                                               const std::vector<double> &weights) {
  const std::vector<uint64_t> shares = data::rowsOfBlock(weights);
  std::vector<std::pair<size_t, uint64_t>> order; // source, row
  std::vector<uint64_t> taken(counts.size());
  std::vector<int64_t> credit(counts.size());
  while (true) {
    for (size_t i = 0; i < shares.size(); ++i)
      credit[i] += static_cast<int64_t>(shares[i]);
    const auto next =
        static_cast<size_t>(std::max_element(credit.begin(), credit.end()) - credit.begin());
    if (taken[next] == counts[next])
      return order;
    credit[next] -= static_cast<int64_t>(data::RowOrder::kBlock);
    order.emplace_back(next, taken[next]++);
  }
}

} // namespace

class TextSource::Training : public BatchSource {
public:
  Training(std::unique_ptr<const data::RowOrder> order, const data::LoaderOptions &options)
      : loader(std::move(order), options) {}
  Rows next() override {
    const data::BatchRows &rows = loader.next();
    return {rows.tokens, rows.labels};
  }

private:
  data::Loader loader;
};

class TextSource::HeldOut : public BatchSource {
public:
  HeldOut(std::vector<std::unique_ptr<data::RowSet>> parts, const std::vector<double> &weights,
          const data::LoaderOptions &options)
      : sets(std::move(parts)), batch(options.batch), ownRows(options.batch / options.parts),
        firstRow(options.part * ownRows) {
    if (sets.size() > 1) {
      std::vector<uint64_t> counts;
      for (const auto &set : sets)
        counts.push_back(set->count());
      order = mixed(counts, weights);
    }
    count = sets.size() > 1 ? order.size() : sets[0]->count();
    if (count < batch)
      fail("--mix: of what is held out not even {} rows can be mixed in the proportion of the "
           "weights",
           batch);
    rows.tokens.resize(ownRows * options.length);
    rows.labels.resize(ownRows * options.length);
  }

  uint64_t batches() const { return count / batch; }
  void rewind() { current = 0; }

  Rows next() override {
    for (uint64_t row = 0; row < ownRows; ++row) {
      const uint64_t place = current * batch + firstRow + row;
      const auto [set, index] = sets.size() > 1 ? order[place] : std::pair(size_t{0}, place);
      sets[set]->read(index, row, rows);
    }
    current = (current + 1) % batches();
    return {rows.tokens, rows.labels};
  }

private:
  std::vector<std::unique_ptr<data::RowSet>> sets;
  std::vector<std::pair<size_t, uint64_t>> order; // of several sets
  uint64_t count = 0, batch, ownRows, firstRow, current = 0;
  data::BatchRows rows;
};

bool hydra::runtime::isTokenKind(std::string_view word) {
  return word == "bytes" || word == "uint16" || word == "uint32" || word == "ids";
}

MixedSource hydra::runtime::parseMixedSource(const std::string &text) {
  MixedSource source;
  const size_t equals = text.find('=');
  std::string path = text.substr(std::min(text.size(), equals + 1));
  constexpr std::string_view key = ",weight=";
  if (const size_t comma = path.rfind(key); comma != std::string::npos) {
    const char *const begin = path.data() + comma + key.size(), *const end =
                                                                    path.data() + path.size();
    if (const auto [at, error] = std::from_chars(begin, end, source.weight);
        error != std::errc() || at != end || !std::isfinite(source.weight) || source.weight <= 0)
      fail("--mix {}: weight '{}' is no number above 0", support::shown(text),
           support::shown(begin));
    path.resize(comma);
  }
  source.name = text.substr(0, equals);
  if (equals == std::string::npos || source.name.empty() || path.empty())
    fail("--mix {}: expected NAME=PATH[,weight=W], or a file of JSON", support::shown(text));
  source.files.emplace_back(path);
  return source;
}

std::vector<MixedSource> hydra::runtime::readMixture(const std::filesystem::path &path) {
  const support::InputFile file(path);
  constexpr uint64_t most = uint64_t{16} << 20;
  if (file.size() > most)
    fail("{}: has {} bytes; no mixture is as large", file.name(), file.size());
  const std::vector<std::byte> bytes = file.readAll();
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  std::set<std::string> names;
  support::JsonGuard guard(file.name());
  const auto watch = [&](int depth, nlohmann::ordered_json::parse_event_t event,
                         nlohmann::ordered_json &value) {
    if (event == nlohmann::ordered_json::parse_event_t::key && depth == 1 &&
        !names.insert(value.get<std::string>()).second)
      fail("{}: two sources have the name '{}'", file.name(),
           support::shown(value.get_ref<const std::string &>()));
    return guard(depth, event, value);
  };
  const auto all = nlohmann::ordered_json::parse(text, watch, false);
  if (!all.is_object() || all.empty() || support::hasZeroByte(text))
    fail("{}: is no JSON object of sources", file.name());
  std::vector<MixedSource> sources;
  for (const auto &[name, value] : all.items()) {
    if (name.empty())
      fail("{}: a source has no name", file.name());
    MixedSource source{.name = name};
    const auto add = [&](const nlohmann::ordered_json &text) {
      if (!text.is_string() || text.get_ref<const std::string &>().empty() ||
          support::hasZeroByte(text.get_ref<const std::string &>()))
        fail("{}: '{}' has a path that is no text", file.name(), support::shown(name));
      source.files.push_back(path.parent_path() / text.get<std::string>());
    };
    if (!value.is_object())
      fail("{}: '{}' is no object with path and weight", file.name(), support::shown(name));
    for (const auto &[key, member] : value.items()) {
      if (key == "path" && member.is_array())
        for (const auto &each : member)
          add(each);
      else if (key == "path")
        add(member);
      else if (key == "weight" && member.is_number() && member.get<double>() > 0)
        source.weight = member.get<double>();
      else
        fail("{}: '{}' has '{}' {}; expected path, a text or a list of them, and weight, a number "
             "above 0",
             file.name(), support::shown(name), support::shown(key),
             support::shown(member.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    }
    if (source.files.empty())
      fail("{}: '{}' has no path", file.name(), support::shown(name));
    sources.push_back(std::move(source));
  }
  return sources;
}

TextSource::TextSource(const Plan &plan, const TextOptions &given)
    : plan(plan), options(given), loading(loadingOf(plan, given)) {
  const data::FilesOptions how = filesOf(plan, options);
  readsBytes = !options.encoder && how.format == data::Format::bytes;
  std::string name = options.files.empty() ? "" : options.files[0].string();
  if (options.files.size() > 1)
    name += fmt::format(" and {} more", options.files.size() - 1);
  if (options.mixture.empty())
    addSource({.name = name, .files = options.files}, how);
  for (const MixedSource &source : options.mixture)
    addSource(source, how);
  if (options.packed && !isPacked(plan))
    fail("--packed: in the plan's model tokens attend to those of other documents of their row; "
         "compile it with --set packed=true, if its family has that");
  checkEnds();
  if (leavesLabelsOut() && !takesLabels(plan))
    fail(
        "{}: labels of prompts and behind documents do not count, but the plan's model takes none; "
        "expected one with labels [B, S]",
        options.packed ? "--packed" : support::shown(name));
  if (!options.whole)
    mainOrder = orderOf(loading.length); // refuses too little text before any work
  heldOutSource = makeHeldOut();
  evalBatches = heldOutSource->batches();
  if (options.evalBatches > 0)
    evalBatches = std::min(evalBatches, static_cast<uint64_t>(options.evalBatches));
}

void TextSource::addSource(const MixedSource &source, const data::FilesOptions &how) {
  for (const Source &other : sources)
    if (other.name == source.name)
      fail("--mix: two sources have the name '{}'", support::shown(source.name));
  data::FilesOptions own = how;
  own.files = source.files;
  sources.push_back({source.name, source.weight, std::make_unique<data::TokenFiles>(own)});
}

/// A packed model knows the ends of documents by a token, which must be that of the data.
void TextSource::checkEnds() const {
  const KeyValue *const eos = symbolOf(plan, "eos");
  for (const Source &source : sources) {
    const data::ShardKind *const kind = source.files->kind();
    if (const data::ShardKind *const first = sources[0].files->kind();
        first && kind && kind->tokenizer != first->tokenizer)
      fail("--mix: {} and {} are of different tokenizers", support::shown(sources[0].name),
           support::shown(source.name));
    if (kind && kind->end >= 0 && eos && isPacked(plan) &&
        eos->value()->string_view() != std::to_string(kind->end))
      fail("{}: documents end with token {}, those of the plan's model with {}; compile it with "
           "--set eos={}",
           support::shown(source.name), kind->end, eos->value()->string_view(), kind->end);
  }
}

std::unique_ptr<data::RowSet> TextSource::rowsOf(const Source &source, data::Split split,
                                                 uint64_t length, uint64_t atLeast) const {
  const auto make = options.packed ? data::packedRowsOf : data::windowsOf;
  try {
    return make(*source.files, split, length, atLeast);
  } catch (const support::Error &error) {
    if (sources.size() == 1)
      throw;
    fail("{}: {}", support::shown(source.name), error.what());
  }
}

std::unique_ptr<data::RowOrder> TextSource::orderOf(uint64_t length) const {
  std::vector<data::RowOrder::Source> all;
  for (const Source &source : sources)
    all.push_back({source.name, source.weight, rowsOf(source, data::Split::training, length, 1)});
  return std::make_unique<data::RowOrder>(std::move(all), options.seed);
}

std::shared_ptr<TextSource::HeldOut> TextSource::makeHeldOut() const {
  std::vector<std::unique_ptr<data::RowSet>> sets;
  std::vector<double> weights;
  const uint64_t atLeast = sources.size() == 1 ? loading.batch : 1;
  for (const Source &source : sources) {
    sets.push_back(rowsOf(source, options.whole ? data::Split::all : data::Split::heldOut,
                          loading.length, atLeast));
    weights.push_back(source.weight);
  }
  return std::make_shared<HeldOut>(std::move(sets), weights, loading);
}

std::string TextSource::name() const {
  std::string all;
  for (const Source &source : sources)
    all += (all.empty() ? "" : ", ") + source.name;
  return all;
}

std::optional<double> TextSource::bytesPerToken() const {
  // A token between documents stands for no byte of theirs.
  for (const Source &source : sources)
    if (const data::ShardKind *const kind = source.files->kind();
        kind ? kind->tokenizer != 0 || kind->end >= 0 : !readsBytes)
      return std::nullopt;
  return 1.0;
}

std::string TextSource::description() const {
  std::string all;
  for (const Source &source : sources)
    all += fmt::format("{}{}: {} tokens{}", all.empty() ? "" : "; ", support::oneLine(source.name),
                       countText(source.files->tokens()),
                       sources.size() > 1 ? fmt::format(", weight {}", source.weight) : "");
  if (options.packed)
    all += mainOrder
               ? fmt::format(", rows of whole documents, {:.1f}% full", mainOrder->filled() * 100)
               : ", rows of whole documents";
  return fmt::format("{}{} ({} batches to measure)", all,
                     options.whole ? "" : ", the last tenth held out", evalBatches);
}

std::string TextSource::identity() const {
  std::string all = sources[0].files->fingerprint();
  if (sources.size() > 1) {
    uint64_t tokens = 0;
    XXH64_hash_t hash = data::RowOrder::kRevision; // not resumed in another order
    for (const Source &source : sources) {
      const std::string own = source.files->fingerprint();
      tokens += source.files->tokens();
      hash = XXH3_64bits_withSeed(own.data(), own.size(), hash);
    }
    all = fmt::format("{} tokens, {:016x}, mixed {}", tokens, hash, mainOrder->identity());
  }
  if (options.packed)
    all += ", rows of whole documents";
  return all;
}

TextSource::~TextSource() = default;

std::unique_ptr<BatchSource> TextSource::training(const Program &program, uint64_t first) {
  data::LoaderOptions how = loading;
  setShape(how, plan, tokensOf(plan, program), options.rank);
  how.first = first;
  std::unique_ptr<data::RowOrder> order = orderOf(how.length);
  passesOfRow.try_emplace(how.length, order->epochs(1));
  return std::make_unique<Training>(std::move(order), how);
}

BatchSource &TextSource::heldOut() { return *heldOutSource; }

void TextSource::rewindHeldOut() { heldOutSource->rewind(); }

std::string TextSource::bench(int batches) {
  data::Loader loader(orderOf(loading.length), loading);
  return data::benchLoader(loader, batches);
}

bool TextSource::leavesLabelsOut() const {
  return options.packed ||
         std::ranges::any_of(sources, [](const Source &source) { return source.files->masked(); });
}

std::vector<data::Epochs> TextSource::epochs(std::span<const Trained> parts) {
  std::map<uint64_t, uint64_t> rows; // by their tokens
  for (const Trained &part : parts) {
    data::LoaderOptions shape;
    setShape(shape, plan, tokensOf(plan, *part.program), options.rank);
    rows[shape.length] += part.batches * shape.batch;
  }
  std::vector<data::Epochs> all = mainOrder->epochs(rows[loading.length]);
  for (const auto [length, count] : rows) {
    if (length == loading.length)
      continue;
    auto known = passesOfRow.find(length);
    if (known == passesOfRow.end()) // of a phase that was over when the run was resumed
      known = passesOfRow.emplace(length, orderOf(length)->epochs(1)).first;
    for (size_t i = 0; i < all.size(); ++i)
      all[i].passes += static_cast<double>(count) * known->second[i].passes;
  }
  return all;
}
