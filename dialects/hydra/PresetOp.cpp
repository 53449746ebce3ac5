// hydra.preset: values of symbols under a name, and settings of training.
#include "dialects/hydra/SymbolLists.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

//===-- Settings ----------------------------------------------------------------------------===//

namespace {

/// All words of an enumeration, as messages list them.
template <typename Enum> std::string allWords(unsigned last, StringRef (*word)(Enum)) {
  std::string words;
  for (unsigned i = 0; i <= last; ++i)
    words += (i == 0 ? "" : i < last ? ", " : " or ") + word(static_cast<Enum>(i)).str();
  return words;
}

/// Whether it is an integer from `least` to `most`.
bool isInteger(Attribute value, int64_t least, int64_t most) {
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getType().isSignlessInteger(64) && // a flag has one bit
         integer.getInt() >= least && integer.getInt() <= most;
}

/// Whether it is a number from 0 that f32 holds.
bool isMagnitude(Attribute value) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return std::isfinite(static_cast<float>(real.getValueAsDouble())) &&
           real.getValueAsDouble() >= 0;
  return isInteger(value, 0, std::numeric_limits<int64_t>::max());
}

/// Says what a value of that setting must be, where this is none; empty when it is one.
std::string checkSetting(PresetSetting setting, Attribute value) {
  constexpr int64_t mostSteps = int64_t{1} << 52; // which doubles count exactly
  constexpr int64_t mostParts = std::numeric_limits<int32_t>::max();
  switch (setting) {
  case PresetSetting::batch:
  case PresetSetting::seq:
    return isInteger(value, 1, std::numeric_limits<int64_t>::max()) ? "" : "a positive integer";
  case PresetSetting::accum:
    return isInteger(value, 1, mostParts) ? "" : "an integer from 1 to 2147483647";
  case PresetSetting::clip:
  case PresetSetting::lr:
  case PresetSetting::min_lr:
    return isMagnitude(value) ? "" : "a number from 0 that f32 holds";
  case PresetSetting::schedule:
    if (auto word = dyn_cast<StringAttr>(value); word && symbolizeRateSchedule(word.getValue()))
      return "";
    return allWords(getMaxEnumValForRateSchedule(), stringifyRateSchedule);
  case PresetSetting::warmup:
  case PresetSetting::stable:
    return isInteger(value, 0, mostSteps) ? "" : "an integer from 0 to 2^52";
  case PresetSetting::schedule_steps:
    return isInteger(value, 1, mostSteps) ? "" : "an integer from 1 to 2^52";
  }
  llvm_unreachable("ten settings");
}

} // namespace

/// Settings of a rate that the preset's own schedule has no use for.
static LogicalResult verifySchedule(PresetOp preset, DictionaryAttr settings) {
  auto integer = [&](PresetSetting setting) {
    auto value = settings.getAs<IntegerAttr>(stringifyPresetSetting(setting));
    return value ? value.getInt() : 0;
  };
  auto word = settings.getAs<StringAttr>(stringifyPresetSetting(PresetSetting::schedule));
  if (!word)
    return success();
  const RateSchedule schedule = *symbolizeRateSchedule(word.getValue());
  if (schedule == RateSchedule::constant && integer(PresetSetting::warmup) > 0)
    return preset.emitOpError() << "@" << preset.getPreset()
                                << " has a setting 'warmup', but its 'schedule' is constant; "
                                   "linear stays at its peak behind one";
  if (schedule != RateSchedule::wsd && integer(PresetSetting::stable) > 0)
    return preset.emitOpError() << "@" << preset.getPreset()
                                << " has a setting 'stable', but its 'schedule' is "
                                << word.getValue() << "; expected wsd";
  return success();
}

static LogicalResult verifySettings(PresetOp preset, DictionaryAttr settings) {
  for (NamedAttribute a : settings) {
    const StringRef name = a.getName().strref();
    const std::optional<PresetSetting> setting = symbolizePresetSetting(name);
    if (!setting)
      return preset.emitOpError() << "@" << preset.getPreset() << " has the unknown setting '"
                                  << name << "'; expected "
                                  << allWords(getMaxEnumValForPresetSetting(),
                                              stringifyPresetSetting);
    if (const std::string want = checkSetting(*setting, a.getValue()); !want.empty())
      return preset.emitOpError() << "@" << preset.getPreset() << " gives the setting '" << name
                                  << "' a value that is not " << want;
  }
  const Attribute most = settings.get(stringifyPresetSetting(PresetSetting::lr)),
                  least = settings.get(stringifyPresetSetting(PresetSetting::min_lr));
  if (most && least && realValue(least) > realValue(most))
    return preset.emitOpError() << "@" << preset.getPreset()
                                << " has a setting 'min_lr' above its 'lr'";
  return verifySchedule(preset, settings);
}

//===-- Text --------------------------------------------------------------------------------===//

/// `{name = literal, …}`
static ParseResult parseLiterals(OpAsmParser &parser, DictionaryAttr &dictionary) {
  NamedAttrList values;
  auto one = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    std::string name;
    Attribute value;
    if (parseAssignment(parser, name, value, /*required=*/true))
      return failure();
    value = literal(value);
    if (!value)
      return parser.emitError(loc) << "the value of '" << name << "' is not a literal";
    if (values.get(name))
      return parser.emitError(loc) << "'" << name << "' is given twice";
    values.append(name, value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, one))
    return failure();
  dictionary = values.getDictionary(parser.getContext());
  return success();
}

static void printLiterals(OpAsmPrinter &p, DictionaryAttr dictionary) {
  p << '{';
  llvm::interleaveComma(dictionary, p, [&](NamedAttribute a) {
    p << a.getName().getValue() << " = ";
    printLiteral(p, a.getValue());
  });
  p << '}';
}

ParseResult PresetOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  DictionaryAttr values, settings;
  if (parser.parseSymbolName(name) || parseLiterals(parser, values))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("settings")) && parseLiterals(parser, settings))
    return failure();
  state.addAttribute("preset", name);
  state.addAttribute("values", values);
  if (settings)
    state.addAttribute("settings", settings);
  return success();
}

LogicalResult PresetOp::verify() {
  if (failed(verifyName(*this, getPreset())))
    return failure();
  for (NamedAttribute a : getValues())
    if (!isExpression(a.getValue()) && !isa<StringAttr>(a.getValue()))
      return emitOpError() << "the value of '" << a.getName().strref() << "' is not a literal";
  return getSettings() ? verifySettings(*this, *getSettings()) : success();
}

void PresetOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getPreset());
  p << ' ';
  printLiterals(p, getValues());
  if (getSettings()) {
    p << " settings ";
    printLiterals(p, *getSettings());
  }
}

} // namespace hydra
