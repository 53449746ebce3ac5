// Files of adapters: names, and what their configuration says.
#include "runtime/run/Adapter.h"

#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <vector>

using namespace hydra::planfile;
using hydra::support::fail;
using hydra::support::hasZeroByte;
using hydra::support::shown;
using hydra::support::shownPath;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *kWeights = "adapter_model.safetensors", *kConfig = "adapter_config.json";

/// The file of weights that a path stands for.
fs::path weightsAt(const fs::path &path) {
  std::error_code code; // whoever reads the file says what is wrong with it
  if (!fs::is_directory(path, code))
    return path;
  if (!fs::exists(path / kWeights, code))
    fail("--adapter: {} has no {}", shownPath(path), kWeights);
  return path / kWeights;
}

/// In front of all names in files of PEFT's.
constexpr std::string_view kBase = "base_model.model.";

/// In the name of an adapter's tensor, of experts: the number of each, which has one of its own.
constexpr std::string_view kRow = "{row}";

bool hasRows(const Variable &variable) {
  return variable.adapter()->tensor()->string_view().find(kRow) != std::string_view::npos;
}

/// PEFT's names of an adapter's tensors.
std::vector<std::string> theirNames(const Plan &plan, const Variable &variable) {
  const std::string name = variable.adapter()->tensor()->str();
  if (!hasRows(variable))
    return {name};
  const size_t at = name.find(kRow);
  std::vector<std::string> names;
  const int64_t experts = hydra::runtime::shapeOf(plan, variable).front();
  for (int64_t expert = 0; expert < experts; ++expert)
    names.push_back(std::string(name).replace(at, kRow.size(), std::to_string(expert)));
  return names;
}

/// Behind the first word of a text and its dot; npos: it is one word.
size_t behindFirst(std::string_view text) {
  const size_t dot = text.find('.');
  return dot == std::string_view::npos ? dot : dot + 1;
}

/// Fields of other ways of adapting, which change what the matrices mean.
constexpr std::array<std::string_view, 14> kOff = {"use_dora",
                                                   "use_rslora",
                                                   "modules_to_save",
                                                   "rank_pattern",
                                                   "alpha_pattern",
                                                   "layer_replication",
                                                   "lora_bias",
                                                   "layers_to_transform",
                                                   "layers_pattern",
                                                   "trainable_token_indices",
                                                   "alora_invocation_tokens",
                                                   "use_qalora",
                                                   "use_bdlora",
                                                   "arrow_config"};

/// Fields that Configuration reads one by one.
constexpr std::array<std::string_view, 7> kRead = {
    "peft_type",     "r", "lora_alpha", "bias", "target_parameters", "init_lora_weights",
    "target_modules"};

/// Fields that say nothing of what adapters compute: about files, training and first values, or the
/// same as the names of tensors.
constexpr std::array<std::string_view, 18> kHarmless = {
    "auto_mapping",      "base_model_name_or_path",
    "corda_config",      "ensure_weight_tying",
    "eva_config",        "exclude_modules",
    "fan_in_fan_out",    "inference_mode",
    "loftq_config",      "lora_dropout",
    "lora_ga_config",    "megatron_config",
    "megatron_core",     "peft_version",
    "qalora_group_size", "revision",
    "runtime_config",    "task_type"};

/// A configuration of PEFT, which must mean what the plan computes.
class Configuration {
public:
  explicit Configuration(const fs::path &path) : place(shownPath(path)) {
    const hydra::support::InputFile file(path);
    constexpr uint64_t most = 1 << 20;
    if (file.size() > most)
      fail("{}: {} bytes; expected at most {}", place, file.size(), most);
    const std::vector<std::byte> bytes = file.readAll();
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    content = json::parse(text, hydra::support::JsonGuard(place), /*allow_exceptions=*/false);
    if (!content.is_object() || hasZeroByte(text))
      fail("{}: expected an object in JSON", place);
  }

  void checkKind(const hydra::runtime::AdapterScale &scale) const {
    want("peft_type", json("LORA"));
    want("r", json(scale.rank));
    if (const auto alpha = content.find("lora_alpha");
        alpha == content.end() || !alpha->is_number() || alpha->get<double>() != scale.alpha)
      reject("lora_alpha", fmt::format("{:g}, with which the plan was made", scale.alpha));
    if (const auto bias = content.find("bias"); bias != content.end())
      want("bias", json("none"));
    for (const std::string_view name : kOff)
      if (const auto value = content.find(name); value != content.end() && !isOff(*value))
        reject(name, "nothing, which is all that is supported");
    // They have the experts of a module in one pair of matrices, in an order that depends on PEFT's
    // version.
    if (const auto value = content.find("target_parameters");
        value != content.end() && !value->empty())
      reject("target_parameters",
             "nothing: each expert is a module of its own, which target_modules names");
    // As PEFT draws first values; others change the base as well.
    const auto first = content.find("init_lora_weights");
    if (first != content.end() && first->is_string() && *first != json("gaussian"))
      reject("init_lora_weights", "true, false or \"gaussian\", which leave the base as it is");
    checkRest();
  }

  /// Whether each tensor belongs to a module that is named, by its name or by the end of it, and
  /// each name to a tensor. A text is a pattern, or `all-linear`, which is not compared. `tensors`:
  /// names of the adapters' tensors, as PEFT has them.
  void checkTargets(const std::set<std::string, std::less<>> &tensors) const {
    const auto targets = content.find("target_modules");
    if (targets == content.end() || !targets->is_array())
      return;
    const auto isOf = [](const std::string &tensor, const json &target) {
      return target.is_string() &&
             ("." + tensor).find("." + target.get<std::string>() + ".lora_") != std::string::npos;
    };
    for (const std::string &tensor : tensors)
      if (tensor.find(".lora_") != std::string::npos &&
          std::ranges::none_of(*targets, [&](const json &t) { return isOf(tensor, t); }))
        reject("target_modules", fmt::format("one of {} too", shown(tensor)));
    for (const json &target : *targets)
      if (std::ranges::none_of(tensors, [&](const std::string &t) { return isOf(t, target); }))
        reject("target_modules",
               fmt::format("no {}, which the plan does not adapt", shown(target.dump())));
  }

private:
  static bool isOff(const json &value) { return value.empty() || value == json(false); }

  /// Throws Error for a field that is neither read nor known not to matter: it may be of another
  /// way of adapting.
  void checkRest() const {
    const auto isIn = [](const auto &list, const std::string &name) {
      return std::ranges::find(list, name) != list.end();
    };
    for (const auto &[name, value] : content.items())
      if (!isOff(value) && !isIn(kRead, name) && !isIn(kHarmless, name))
        fail("{}: the field '{}' is not supported; it may change what the adapters compute", place,
             shown(name));
  }

  void want(const char *name, const json &expected) const {
    if (const auto value = content.find(name); value == content.end() || *value != expected)
      reject(name, expected.dump());
  }
  [[noreturn]] void reject(std::string_view name, const std::string &expected) const {
    const auto value = content.find(name);
    fail("{}: {} is {}; expected {}", place, name,
         value == content.end() ? "missing" : shown(value->dump()), expected);
  }

  std::string place;
  json content;
};

} // namespace

namespace hydra::runtime {

std::optional<AdapterScale> adapterScaleOf(const Plan &plan) {
  const auto found = std::ranges::find_if(
      *plan.variables(), [](const Variable *variable) { return isAdapter(*variable); });
  if (found == plan.variables()->end())
    return std::nullopt;
  // A [R, K] and B [N, R], of which R is no larger than N and K; of experts, one each.
  const std::vector<int64_t> shape = shapeOf(plan, **found);
  return AdapterScale{std::min(shape[shape.size() - 2], shape.back()), found->adapter()->alpha()};
}

static json jsonOf(const AdapterScale &scale) {
  return {{"rank", scale.rank}, {"alpha", scale.alpha}};
}

std::string textOf(const AdapterScale &scale) { return jsonOf(scale).dump(); }

void checkScale(const GivenTensors &given, const AdapterScale &scale) {
  const auto said = given.metadata().find(kLoraKey);
  if (said == given.metadata().end())
    return;
  // Numbers and spaces may be written in another way. What is no JSON compares as equal to nothing
  // and as different from nothing.
  if (!(json::parse(said->second, nullptr, /*allow_exceptions=*/false) == jsonOf(scale)))
    fail("{}: has adapters of {}; expected {}, with which the plan was made", given.path(),
         shown(said->second), textOf(scale));
}

AdapterFile::AdapterFile(const fs::path &path, const PlanFile &file) : given(weightsAt(path)) {
  const std::optional<AdapterScale> scale = adapterScaleOf(file.plan());
  if (!scale)
    fail("--adapter: {} has no adapters; compile the model with --lora", file.origin());
  std::error_code code;
  const bool directory = fs::is_directory(path, code);
  const fs::path place = directory ? path / kConfig : path.parent_path() / kConfig;
  std::optional<Configuration> config;
  if (directory || (!given.metadata().contains(kLoraKey) && fs::exists(place, code))) {
    config.emplace(place);
    config->checkKind(*scale); // before names of tensors that follow from it
  }
  findTrunk(file.plan());
  std::set<std::string, std::less<>> known, tensors;
  for (const Variable *variable : *file.plan().variables())
    if (isAdapter(*variable)) {
      const std::string here = variable->name()->str();
      for (const std::string &there : tensorsOf(file.plan(), *variable)) {
        if (given.has(here) && given.has(there))
          fail("{}: has both {} and {}; expected one of them", given.path(), shown(here),
               shown(there));
        known.insert({here, there});
        tensors.insert(there);
      }
    }
  given.checkNames(known);
  checkScale(given, *scale);
  if (config)
    config->checkTargets(tensors);
}

void AdapterFile::findTrunk(const Plan &plan) {
  std::map<std::string_view, std::string_view> wordBefore; // of the file's modules, by the rest
  for (const std::string_view name : given.names())
    if (name.starts_with(kBase)) {
      const std::string_view module = name.substr(kBase.size());
      if (const size_t rest = behindFirst(module); rest != std::string_view::npos)
        wordBefore.emplace(module.substr(rest), module.substr(0, rest));
    }
  for (const Variable *variable : *plan.variables()) {
    if (!isAdapter(*variable))
      continue;
    const std::string name = theirNames(plan, *variable).front();
    if (given.has(name) || !name.starts_with(kBase))
      continue;
    const std::string_view module = std::string_view(name).substr(kBase.size());
    const size_t rest = behindFirst(module);
    if (rest != std::string_view::npos &&
        given.has(fmt::format("{}{}", kBase, module.substr(rest))))
      trunk = module.substr(0, rest);
    else if (const auto found = wordBefore.find(module); found != wordBefore.end())
      trunk = found->second;
    if (!trunk.empty())
      return;
  }
}

std::vector<std::string> AdapterFile::tensorsOf(const Plan &plan, const Variable &variable) const {
  std::vector<std::string> names = theirNames(plan, variable);
  for (std::string &name : names) {
    if (trunk.empty() || given.has(name) || !name.starts_with(kBase))
      continue;
    const std::string module = name.substr(kBase.size());
    std::string other = fmt::format("{}{}", kBase,
                                    module.starts_with(trunk) ? module.substr(trunk.size())
                                                              : fmt::format("{}{}", trunk, module));
    if (given.has(other))
      name = std::move(other);
  }
  return names;
}

ElementSource AdapterFile::valuesOf(const Plan &plan, const Variable &variable) const {
  const support::DType dtype = givenDtypeOf(plan, variable);
  std::vector<int64_t> shape = shapeOf(plan, variable);
  std::vector<std::string> names;
  if (const std::string here = variable.name()->str(); given.has(here))
    names = {here};
  else {
    names = tensorsOf(plan, variable);
    if (hasRows(variable))
      shape.erase(shape.begin());
  }
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies());
  return [this, names, dtype, shape, size](int64_t first, std::span<std::byte> out) {
    const size_t bytes = support::byteSize(dtype);
    while (!out.empty()) {
      const int64_t at = first % size;
      const auto part = out.first(std::min(out.size(), static_cast<size_t>(size - at) * bytes));
      given.read(names[static_cast<size_t>(first / size)], dtype, shape, at, part);
      first += static_cast<int64_t>(part.size() / bytes);
      out = out.subspan(part.size());
    }
  };
}

} // namespace hydra::runtime
