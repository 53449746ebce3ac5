// Numbers and texts as JSON, with a hash of their own.
#include "runtime/run/Manifest.h"

#include "runtime/plan/Mesh.h"
#include "runtime/run/Adapter.h"
#include "runtime/run/CheckpointNames.h"
#include "runtime/run/ManifestSchedules.h"
#include "runtime/run/SafetyJson.h"
#include "runtime/run/TensorValues.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
using hydra::support::hasZeroByte;
using hydra::support::shown;
using hydra::support::shownPath;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kFormat = 3;
/// Hashed tensors as a whole, not by blocks.
constexpr int64_t kFormatOfWholeHashes = 2;
/// That, and had no count of updates.
constexpr int64_t kFormatWithoutCount = 1;
constexpr const char *kHash = "hash"; // of the rest of the manifest

/// The first dimension of what a step reads, of all its ranks and micro-batches together, where it
/// reads tokens and labels alone: into how many parts its rows are cut does not matter then.
struct StepInputs {
  explicit StepInputs(const Plan &plan) {
    const auto program = mainTrainingProgram(plan);
    if (!program)
      return;
    for (const Input *input : *plan.programs()->Get(*program)->inputs()) {
      const Tensor &tensor = *plan.tensors()->Get(input->tensor());
      const BatchPart part(plan, tensor, input->batch_dimension(), 0);
      shapes[input->name()->str()] = part.wholeShape();
      onlyRows = onlyRows && input->kind() != InputKind::values && !part.wholeShape().empty() &&
                 input->batch_dimension() <= 0;
    }
  }

  std::map<std::string, std::vector<int64_t>> shapes; // by name, of one micro-batch
  bool onlyRows = true;
};

/// Takes the micro-batches of an identity together, where they are rows.
void joinMicroBatches(const Plan &plan, json &identity) {
  const auto accumulation = identity.find("accumulation"), inputs = identity.find("input");
  if (!StepInputs(plan).onlyRows || accumulation == identity.end() ||
      !accumulation->is_number_unsigned() || inputs == identity.end() || !inputs->is_object())
    return;
  for (json &shape : *inputs)
    if (shape.is_array() && !shape.empty() && shape[0].is_number_unsigned())
      shape[0] = shape[0].get<uint64_t>() * accumulation->get<uint64_t>();
  *accumulation = uint64_t{1};
}

/// What must be equal for a run to go on with another plan.
json identityOf(const PlanFile &file) {
  const Plan &plan = file.plan();
  json symbols = json::object();
  for (const KeyValue *symbol : *plan.header()->symbols())
    symbols[symbol->key()->str()] = symbol->value()->str();
  json inputs = json::object();
  for (const auto &[name, shape] : StepInputs(plan).shapes) {
    inputs[name] = json::array();
    for (const int64_t size : shape)
      inputs[name].push_back(static_cast<uint64_t>(size));
  }
  json identity{{"model", plan.header()->model()->str()},
                {"precision", plan.header()->precision()->str()},
                {"accumulation", plan.accumulation()},
                {"symbol", symbols},
                {"input", inputs}};
  // Of what is trained alone: plans that train everything say nothing.
  const auto frozen = std::ranges::count_if(
      *plan.variables(), [](const Variable *variable) { return variable->frozen(); });
  if (frozen > 0)
    identity["frozen"] = fmt::format("{} parameters", frozen);
  if (const auto scale = adapterScaleOf(plan))
    identity["lora"] = {{"rank", scale->rank}, {"alpha", scale->alpha}};
  joinMicroBatches(plan, identity);
  return identity;
}

/// How averages of parameters are made, `ema,decay=0.999`; nothing where there are none.
std::optional<std::string> averageOf(const Plan &plan) {
  for (const KeyValue *option : *plan.header()->options())
    if (option->key()->string_view() == "average")
      return option->value()->str();
  return std::nullopt;
}

/// Averages of one kind do not go on as those of another; their numbers may change.
void checkAverage(const fs::path &directory, const PlanFile &file, const std::string &saved) {
  const std::optional<std::string> own = averageOf(file.plan());
  const auto kind = [](const std::string &text) { return text.substr(0, text.find(',')); };
  if (own && kind(*own) != kind(saved))
    fail("{}: its averages are {}, those of {} are {}; --weights begins new ones",
         shownPath(directory), shown(saved), file.origin(), shown(*own));
}

/// The numbers and texts of an object, by their paths: `symbol F`, `input tokens 0`.
void collectValues(const json &value, const std::string &path,
                   std::map<std::string, std::string> &values) {
  if (!value.is_structured()) {
    values[path] = value.dump();
    return;
  }
  for (const auto &[key, inner] : value.items()) // of an array, the keys are numbers
    collectValues(inner, path.empty() ? key : path + " " + key, values);
}

void checkIdentity(const fs::path &directory, const PlanFile &file, json saved) {
  joinMicroBatches(file.plan(), saved); // older ones were saved apart
  std::map<std::string, std::string> ours, theirs;
  collectValues(identityOf(file), "", ours);
  collectValues(saved, "", theirs);
  const auto differs = [&](const std::string &name, const std::string *there,
                           const std::string *here) {
    const auto text = [](const std::string *t) { return t ? shown(*t) : "nothing"; };
    fail("{}: made by another plan: {} is {} there and {} in {}; --weights takes its parameters "
         "alone",
         shownPath(directory), shown(name), text(there), text(here), file.origin());
  };
  for (const auto &[name, value] : ours) {
    const auto there = theirs.find(name);
    if (there == theirs.end() || there->second != value)
      differs(name, there == theirs.end() ? nullptr : &there->second, &value);
  }
  for (const auto &[name, value] : theirs)
    if (!ours.contains(name))
      differs(name, &value, nullptr);
}

/// The same for the same content, however it is laid out.
std::string hashOf(const json &manifest) {
  const std::string text = manifest.dump(-1, ' ', false, json::error_handler_t::replace);
  return hashText(XXH3_64bits(text.data(), text.size()));
}

/// checkpoint.json, of which nothing is believed.
class ManifestReader {
public:
  explicit ManifestReader(fs::path from) : path(std::move(from)) {
    const hydra::support::InputFile file = opened(path);
    constexpr uint64_t most = 100'000'000;
    if (file.size() > most)
      damaged("{} bytes; expected at most {}", file.size(), most);
    const std::vector<std::byte> bytes = file.readAll();
    const auto *text = reinterpret_cast<const char *>(bytes.data());
    constexpr int deepest = 16; // nothing recursive is done to what nests without end
    const auto watch = [&](int depth, json::parse_event_t, json &) {
      if (depth > deepest)
        damaged("its objects nest more than {} deep", deepest);
      return true;
    };
    content = json::parse(text, text + bytes.size(), watch, /*allow_exceptions=*/false);
    if (!content.is_object() || hasZeroByte(bytes))
      damaged("expected an object in JSON");
    const auto hash = content.find(kHash);
    if (hash == content.end())
      return; // older ones have none
    const json found = *hash;
    content.erase(hash);
    if (found != hashOf(content))
      damaged("its hash is {}; it says {}", hashOf(content), shown(found.dump()));
  }

  int64_t integer(const char *name, int64_t least, int64_t most) const {
    const json &value = member(name);
    // Negative ones are of a type of their own.
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() ? value.get<uint64_t>() > static_cast<uint64_t>(most)
                                    : value.get<int64_t>() < least))
      damaged("{} is {}; expected an integer from {} to {}", name, shown(value.dump()), least,
              most);
    return value.get<int64_t>();
  }
  uint64_t seed() const {
    const json &value = member("seed");
    if (!value.is_number_unsigned())
      damaged("seed is {}; expected an integer from 0 to 2^64-1", shown(value.dump()));
    return value.get<uint64_t>();
  }
  std::string text(const char *name) const { return textOf(name, member(name)); }
  std::map<std::string, std::string> texts(const char *name) const {
    std::map<std::string, std::string> result;
    for (const auto &[key, value] : object(name).items())
      result[key] = textOf(fmt::format("{} of {}", name, shown(key)), value);
    return result;
  }
  /// Older ones count nothing.
  TrainingState::Counts counts() const {
    TrainingState::Counts result;
    if (!content.contains("counts"))
      return result;
    const json &all = object("counts");
    const auto count = [&](const char *name) {
      const auto value = all.find(name);
      if (value == all.end() || !value->is_number_unsigned() || value->get<uint64_t>() > INT64_MAX)
        damaged("{} of counts is {}; expected an integer from 0", name,
                value == all.end() ? "missing" : shown(value->dump()));
      return value->get<int64_t>();
    };
    result.tokens = static_cast<uint64_t>(count("tokens"));
    result.skipped = count("skipped");
    result.skippedInARow = count("skipped_in_a_row");
    result.clipped = count("clipped");
    return result;
  }
  std::optional<SavedSchedules> scalars(int64_t step) const {
    if (!content.contains("run"))
      return std::nullopt;
    std::optional<SavedSchedules> saved = schedulesOf(object("run"));
    if (!saved)
      damaged("its run has schedules that no plan has");
    saved->step = step;
    return saved;
  }
  std::optional<SavedPolicies> policies() const {
    if (!content.contains("policies"))
      return std::nullopt;
    std::optional<SavedPolicies> saved = policiesOf(object("policies"));
    if (!saved)
      damaged("its policies are no flags and numbers of any");
    return saved;
  }
  /// Only plans with safe forms have it.
  std::optional<SafetyState> safety() const {
    if (!content.contains("safety"))
      return std::nullopt;
    std::string problem;
    std::optional<SafetyState> state = safetyFrom(object("safety"), problem);
    if (!state)
      damaged("safety: {}", problem);
    return state;
  }
  /// Nothing in those of plans without averages, and in older ones.
  std::optional<std::string> average() const {
    return content.contains("average") ? std::optional(text("average")) : std::nullopt;
  }
  const json &object(const char *name) const {
    const json &value = member(name);
    if (!value.is_object())
      damaged("{} is {}; expected an object", name, shown(value.dump()));
    return value;
  }

  template <typename... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> format, Args &&...args) const {
    fail("{} is damaged: {}{}", shownPath(path), fmt::format(format, std::forward<Args>(args)...),
         olderCheckpointText(path.parent_path()));
  }

private:
  static hydra::support::InputFile opened(const fs::path &path) {
    try {
      return hydra::support::InputFile(path);
    } catch (const hydra::support::Error &error) {
      fail("{}{}", error.what(), olderCheckpointText(path.parent_path()));
    }
  }
  const json &member(const char *name) const {
    const auto found = content.find(name);
    if (found == content.end())
      damaged("it has no {}", name);
    return *found;
  }
  std::string textOf(const std::string &name, const json &value) const {
    if (!value.is_string())
      damaged("{} is {}; expected a string", name, shown(value.dump()));
    return value.get<std::string>();
  }

  const fs::path path;
  json content;
};

int64_t formatIn(const ManifestReader &reader, const fs::path &checkpoint) {
  const int64_t format = reader.integer("format", 1, INT32_MAX);
  if (format > kFormat)
    fail("{}: checkpoint format {}; expected at most {}", shownPath(checkpoint), format, kFormat);
  return format;
}

TensorHashes hashesIn(const ManifestReader &reader, int64_t format) {
  return {reader.texts("hashes"), format <= kFormatOfWholeHashes};
}

} // namespace

int64_t hydra::runtime::sequencesOfStep(const Plan &plan) {
  const StepInputs inputs(plan);
  const int64_t batches = plan.accumulation();
  return inputs.onlyRows && !inputs.shapes.empty() ? batches * inputs.shapes.begin()->second[0]
                                                   : batches;
}

Manifest hydra::runtime::readManifest(const fs::path &checkpoint, const PlanFile &file) {
  const ManifestReader reader(checkpoint / kManifest);
  const int64_t format = formatIn(reader, checkpoint);
  checkIdentity(checkpoint, file, reader.object("plan"));
  if (const std::optional<std::string> average = reader.average())
    checkAverage(checkpoint, file, *average);
  Manifest manifest;
  manifest.leavesAverages = reader.average() && !averageOf(file.plan());
  constexpr int64_t mostSteps = int64_t{1} << 40; // as of --steps
  manifest.state.step = reader.integer("step", 0, mostSteps);
  if (const auto named = checkpointStep(checkpoint); named && *named != manifest.state.step)
    reader.damaged("step is {} in a checkpoint of step {}", manifest.state.step, *named);
  manifest.state.seed = reader.seed();
  manifest.state.data = reader.text("data");
  manifest.state.schedules = reader.texts("schedules");
  manifest.state.scalars = reader.scalars(manifest.state.step);
  manifest.state.policies = reader.policies();
  manifest.state.counts = reader.counts();
  manifest.state.safety = reader.safety();
  manifest.hashes = hashesIn(reader, format);
  manifest.countsUpdates = format > kFormatWithoutCount;
  return manifest;
}

std::optional<TensorHashes> hydra::runtime::readHashes(const fs::path &checkpoint) {
  std::error_code code;
  if (!fs::exists(checkpoint / kManifest, code))
    return std::nullopt;
  const ManifestReader reader(checkpoint / kManifest);
  return hashesIn(reader, formatIn(reader, checkpoint));
}

std::string hydra::runtime::manifestText(const PlanFile &file, const TrainingState &state,
                                         const std::map<std::string, std::string> &hashes) {
  const TrainingState::Counts &counts = state.counts;
  json counted{{"tokens", counts.tokens},
               {"skipped", static_cast<uint64_t>(counts.skipped)},
               {"skipped_in_a_row", static_cast<uint64_t>(counts.skippedInARow)},
               {"clipped", static_cast<uint64_t>(counts.clipped)}};
  json content{{"format", kFormat},
               {"step", state.step},
               {"seed", state.seed},
               {"data", state.data},
               {"schedules", state.schedules},
               {"plan", identityOf(file)},
               {"counts", counted},
               {"hashes", hashes}};
  if (const std::optional<std::string> average = averageOf(file.plan()))
    content["average"] = *average;
  if (state.scalars)
    content["run"] = jsonOf(*state.scalars);
  if (state.policies)
    content["policies"] = jsonOf(*state.policies);
  if (state.safety)
    content["safety"] = safetyJson(*state.safety);
  content[kHash] = hashOf(content);
  return content.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}
