// A directory of PEFT's of the adapters in a file of Hydra's.
#include "frontend/Conversion.h"
#include "frontend/Lora.h"
#include "frontend/Transfer.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace hydra::frontend {

using support::fail;
using support::shown;

namespace {

constexpr std::string_view kWeight = ".weight";

/// The modules of a parameter's tensors, as PyTorch calls them: `model.layers.0.self_attn.q_proj`,
/// one for each expert. PEFT adapts a model with a head, whose modules have the architecture's
/// prefix whatever the files have.
std::vector<std::string> modulesOf(const NamedParameter &parameter, const Architecture *bare) {
  std::vector<std::string> modules = parameter.origins();
  for (std::string &module : modules) {
    if (module.ends_with(kWeight))
      module.resize(module.size() - kWeight.size());
    if (bare && module != bare->names.head)
      module.insert(0, bare->prefix);
  }
  return modules;
}

std::string lastPart(const std::string &module) {
  return module.substr(module.rfind('.') + 1); // npos + 1 is 0
}

/// What PEFT finds the modules by: the ends of their names where these are theirs alone, else all
/// of the names.
std::vector<std::string> targetsOf(std::span<const NamedParameter> table,
                                   const std::set<std::string> &adapted, const Architecture *bare) {
  std::set<std::string> ends;
  for (const std::string &module : adapted)
    ends.insert(lastPart(module));
  const bool alone = std::ranges::all_of(table, [&](const NamedParameter &parameter) {
    return std::ranges::all_of(modulesOf(parameter, bare), [&](const std::string &module) {
      return adapted.contains(module) || !ends.contains(lastPart(module));
    });
  });
  const std::set<std::string> &names = alone ? ends : adapted;
  return {names.begin(), names.end()};
}

nlohmann::ordered_json configOf(const Adapters &adapters, const std::vector<std::string> &targets,
                                bool transposed, const std::string &base) {
  const double alpha = adapters.alpha();
  const bool whole = alpha == static_cast<double>(static_cast<int64_t>(alpha));
  return {{"alpha_pattern", nlohmann::ordered_json::object()},
          {"auto_mapping", nullptr},
          {"base_model_name_or_path", base},
          {"bias", "none"},
          {"fan_in_fan_out", transposed},
          {"inference_mode", true},
          {"init_lora_weights", true},
          {"layers_pattern", nullptr},
          {"layers_to_transform", nullptr},
          {"lora_alpha", whole ? nlohmann::ordered_json(static_cast<int64_t>(alpha))
                               : nlohmann::ordered_json(alpha)},
          {"lora_dropout", 0.0},
          {"modules_to_save", nullptr},
          {"peft_type", "LORA"},
          {"r", adapters.rank()},
          {"rank_pattern", nlohmann::ordered_json::object()},
          {"revision", nullptr},
          {"target_modules", targets},
          {"task_type", "CAUSAL_LM"},
          {"use_dora", false},
          {"use_rslora", false}};
}

} // namespace

void exportAdapter(const support::SafetensorsFile &file, std::span<const NamedParameter> table,
                   std::span<const std::string> states, std::optional<support::DType> dtype,
                   const std::string &base, const support::OutputPath &directory,
                   const Architecture *architecture) {
  const Adapters adapters(file);
  if (!adapters.any())
    fail("{}: has no adapters; expected what a plan of hydrac --lora has trained", file.name());
  const Architecture *bare =
      architecture && lacksPrefix(*architecture, table) ? architecture : nullptr;
  std::vector<std::pair<const support::TensorPlace *, size_t>> from; // and the number of a module
  std::vector<support::TensorInfo> infos;
  std::set<std::string> adapted;
  std::set<std::string_view> known(states.begin(), states.end());
  const NamedParameter *turned = nullptr, *straight = nullptr;
  for (const NamedParameter &parameter : table) {
    known.insert(parameter.name);
    const std::optional<LowRank> low = adapters.of(parameter.name);
    if (!low)
      continue;
    if (parameter.originShape().size() != 2)
      fail("{}: adapts '{}', of which others have tensors {}; PEFT adapts matrices", file.name(),
           shown(parameter.name), support::shapeText(parameter.originShape()));
    (parameter.transposed ? turned : straight) = &parameter;
    const std::vector<std::string> modules = modulesOf(parameter, bare);
    adapted.insert(modules.begin(), modules.end());
    for (size_t number = 0; number < modules.size(); ++number)
      for (const auto &[place, part] : {std::pair(low->a, "lora_A"), std::pair(low->b, "lora_B")}) {
        from.emplace_back(place, number);
        infos.push_back({fmt::format("base_model.model.{}.{}.weight", modules[number], part),
                         dtype.value_or(place->dtype),
                         {place->shape.end() - 2, place->shape.end()}});
      }
  }
  for (const support::TensorPlace &tensor : file.tensors())
    if (!known.contains(tensor.name) && !adapters.isPart(tensor.name))
      fail("{}: tensor '{}' is no parameter or state of the model", file.name(),
           shown(tensor.name));
  if (from.empty())
    fail("{}: its adapters belong to no parameter of the model", file.name());
  if (turned && straight) // PEFT says for all of them how matrices are stored
    fail(
        "{}: adapts '{}', which others store transposed, and '{}', which they do not; PEFT has one "
        "fan_in_fan_out for all",
        file.name(), shown(turned->name), shown(straight->name));
  support::SafetensorsWriter writer(directory / "adapter_model.safetensors", infos,
                                    {{"format", "pt"}, {"lora", file.metadata().at("lora")}});
  for (size_t i = 0; i < from.size(); ++i) {
    const auto [place, number] = from[i];
    std::vector<double> numbers(static_cast<size_t>(infos[i].shape[0] * infos[i].shape[1]));
    std::vector<std::byte> held(numbers.size() * support::byteSize(place->dtype)),
        bytes(numbers.size() * support::byteSize(infos[i].dtype));
    file.read(*place, number * held.size(), held);
    support::toDoubles(place->dtype, held, numbers);
    writeNumbers(infos[i].dtype, numbers, bytes, place->name);
    writer.append(infos[i].name, bytes);
  }
  writer.commit();
  const std::string config =
      configOf(adapters, targetsOf(table, adapted, bare), turned != nullptr, base).dump(2) + "\n";
  support::AtomicFile written(directory / "adapter_config.json");
  written.write(std::as_bytes(std::span(config)));
  written.commit();
}

} // namespace hydra::frontend
