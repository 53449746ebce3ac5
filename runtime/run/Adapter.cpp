// Files of adapters: names, and what their configuration says.
#include "runtime/run/Adapter.h"

#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
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

/// Behind the first word of a text and its dot; npos: it is one word.
size_t behindFirst(std::string_view text) {
  const size_t dot = text.find('.');
  return dot == std::string_view::npos ? dot : dot + 1;
}

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
    content = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!content.is_object() || hasZeroByte(text))
      fail("{}: expected an object in JSON", place);
  }

  /// `tensors`: names of the adapters' tensors, as PEFT has them.
  void check(const hydra::runtime::AdapterScale &scale,
             const std::set<std::string, std::less<>> &tensors) const {
    want("peft_type", json("LORA"));
    want("r", json(scale.rank));
    if (const auto alpha = content.find("lora_alpha");
        alpha == content.end() || !alpha->is_number() || alpha->get<double>() != scale.alpha)
      reject("lora_alpha", fmt::format("{:g}, with which the plan was made", scale.alpha));
    if (const auto bias = content.find("bias"); bias != content.end())
      want("bias", json("none"));
    // Other ways of adapting, which change what the matrices mean.
    static constexpr std::array kOff = {"use_dora",
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
                                        "use_qalora"};
    for (const char *name : kOff)
      if (const auto value = content.find(name);
          value != content.end() && !value->empty() && *value != json(false))
        reject(name, "nothing, which is all that is supported");
    // As PEFT draws first values; others change the base as well.
    const auto first = content.find("init_lora_weights");
    if (first != content.end() && first->is_string() && *first != json("gaussian"))
      reject("init_lora_weights", "true, false or \"gaussian\", which leave the base as it is");
    checkTargets(tensors);
  }

private:
  /// Whether each tensor belongs to a module that is named, by its name or by the end of it, and
  /// each name to a tensor. A text is a pattern, or `all-linear`, which is not compared.
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

  void want(const char *name, const json &expected) const {
    if (const auto value = content.find(name); value == content.end() || *value != expected)
      reject(name, expected.dump());
  }
  [[noreturn]] void reject(const char *name, const std::string &expected) const {
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
  // A [R, K] and B [N, R], of which R is no larger than N and K.
  const std::vector<int64_t> shape = shapeOf(plan, **found);
  return AdapterScale{*std::ranges::min_element(shape), found->adapter()->alpha()};
}

static json jsonOf(const AdapterScale &scale) {
  return {{"rank", scale.rank}, {"alpha", scale.alpha}};
}

std::string textOf(const AdapterScale &scale) { return jsonOf(scale).dump(); }

void checkScale(const GivenTensors &given, const AdapterScale &scale) {
  const auto said = given.metadata().find(kLoraKey);
  if (said == given.metadata().end())
    return;
  // Numbers and spaces may be written in another way.
  if (json::parse(said->second, nullptr, /*allow_exceptions=*/false) != jsonOf(scale))
    fail("{}: has adapters of {}; expected {}, with which the plan was made", given.path(),
         shown(said->second), textOf(scale));
}

AdapterFile::AdapterFile(const fs::path &path, const PlanFile &file) : given(weightsAt(path)) {
  const std::optional<AdapterScale> scale = adapterScaleOf(file.plan());
  if (!scale)
    fail("--adapter: {} has no adapters; compile the model with --lora", file.origin());
  findTrunk(file.plan());
  std::set<std::string, std::less<>> known, tensors;
  for (const Variable *variable : *file.plan().variables())
    if (isAdapter(*variable)) {
      const std::string here = variable->name()->str(), there = tensorOf(*variable);
      if (given.has(here) && given.has(there))
        fail("{}: has both {} and {}; expected one of them", given.path(), shown(here),
             shown(there));
      known.insert({here, there});
      tensors.insert(there);
    }
  given.checkNames(known);
  checkScale(given, *scale);
  std::error_code code;
  const bool directory = fs::is_directory(path, code);
  const fs::path config = directory ? path / kConfig : path.parent_path() / kConfig;
  if (directory || (!given.metadata().contains(kLoraKey) && fs::exists(config, code)))
    Configuration(config).check(*scale, tensors);
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
    const std::string_view name = variable->adapter()->tensor()->string_view();
    if (given.has(name) || !name.starts_with(kBase))
      continue;
    const std::string_view module = name.substr(kBase.size());
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

std::string AdapterFile::tensorOf(const Variable &variable) const {
  std::string name = variable.adapter()->tensor()->str();
  if (trunk.empty() || given.has(name) || !name.starts_with(kBase))
    return name;
  const std::string module = name.substr(kBase.size());
  std::string other = fmt::format("{}{}", kBase,
                                  module.starts_with(trunk) ? module.substr(trunk.size())
                                                            : fmt::format("{}{}", trunk, module));
  return given.has(other) ? other : name;
}

std::string AdapterFile::nameOf(const Variable &variable) const {
  std::string here = variable.name()->str();
  return given.has(here) ? here : tensorOf(variable);
}

} // namespace hydra::runtime
