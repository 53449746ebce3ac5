// What a preset says of training, for flags that are left out.
#include "tools/hydrac/PresetSettings.h"

#include "compiler/driver/Driver.h"

#include <fmt/format.h>

#include <algorithm>

using namespace mlir;

namespace hydra {

static planfile::ScheduleKind kindOf(RateSchedule schedule) {
  switch (schedule) {
  case RateSchedule::constant:
    return planfile::ScheduleKind::constant;
  case RateSchedule::linear:
    return planfile::ScheduleKind::linear;
  case RateSchedule::cosine:
    return planfile::ScheduleKind::cosine;
  case RateSchedule::wsd:
    return planfile::ScheduleKind::wsd;
  }
  llvm_unreachable("four schedules");
}

/// Whether the flag was left out, in a mode that has a use for it, and now is `value`, which the
/// model's verifier has seen.
static bool take(HydracOptions &options, PresetSetting setting, Attribute value) {
  const bool trains = options.compile.mode == Mode::Train;
  auto give = [&](auto &flag, auto given, bool wanted = true) {
    if (!trains || !wanted || isGiven(flag))
      return false;
    flag = given;
    return true;
  };
  auto integer = [&] { return cast<IntegerAttr>(value).getInt(); };
  auto dimension = [&](int64_t &size) { // 0: not given
    if (size != 0)
      return false;
    size = integer();
    return true;
  };
  switch (setting) {
  case PresetSetting::batch:
    return dimension(options.compile.binding.batch);
  case PresetSetting::seq:
    return dimension(options.compile.binding.seq);
  case PresetSetting::accum:
    return give(options.model.accum, integer());
  case PresetSetting::clip:
    return give(options.clip, realValue(value), !options.noClip);
  case PresetSetting::lr:
    return give(options.lr, realValue(value));
  case PresetSetting::min_lr:
    return give(options.minLr, realValue(value));
  case PresetSetting::schedule:
    return give(options.schedule,
                kindOf(*symbolizeRateSchedule(cast<StringAttr>(value).getValue())));
  case PresetSetting::warmup:
    return give(options.warmup, integer());
  case PresetSetting::stable:
    return give(options.stable, integer());
  case PresetSetting::schedule_steps:
    return give(options.scheduleSteps, integer());
  }
  llvm_unreachable("ten settings");
}

/// A value as a flag has it.
static std::string textOf(Attribute value) {
  if (auto word = dyn_cast<StringAttr>(value))
    return word.str();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return fmt::to_string(integer.getInt());
  return fmt::to_string(realValue(value));
}

std::string takePresetSettings(HydracOptions &options) {
  const std::string &chosen = options.compile.binding.preset;
  if (chosen.empty() || options.model.file.empty() || options.compile.mode == Mode::Generate)
    return "";
  Driver driver(options.model, /*timed=*/false, Driver::Care::Trial);
  if (failed(driver.load()))
    return "";
  std::string flags;
  for (PresetOp preset : driver.model().getBody().getOps<PresetOp>()) {
    if (preset.getPreset() != chosen || !preset.getSettings())
      continue;
    for (unsigned i = 0; i <= getMaxEnumValForPresetSetting(); ++i) {
      const auto setting = static_cast<PresetSetting>(i);
      std::string flag = stringifyPresetSetting(setting).str();
      const Attribute value = preset.getSettings()->get(flag);
      if (!value || !take(options, setting, value))
        continue;
      std::replace(flag.begin(), flag.end(), '_', '-');
      flags += fmt::format(" --{}={}", flag, textOf(value));
    }
  }
  return flags.empty() ? "" : fmt::format("preset '{}' sets{}", chosen, flags);
}

} // namespace hydra
