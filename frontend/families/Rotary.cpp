// Rotary positions of a configuration, in the form of transformers 5 (`rope_parameters`) and in the
// older one
// (`rope_theta` and `rope_scaling`).
#include "frontend/families/Common.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <cmath>

namespace hydra::frontend {

namespace {

int64_t rotaryWidth(const Config &config, int64_t headWidth, double part) {
  const double width = std::floor(static_cast<double>(headWidth) * part);
  if (part > 1.0 || width < 2.0 || std::fmod(width, 2.0) != 0.0)
    support::fail(
        "{}: rotary positions turn {} of the {} channels of a head; expected pairs of them",
        config.where(), width, headWidth);
  return static_cast<int64_t>(width);
}

void readLlama3(Config &scaling, Rotary &rotary) {
  rotary.low = scaling.positive("low_freq_factor");
  rotary.high = scaling.positive("high_freq_factor");
  if (rotary.high <= rotary.low)
    scaling.reject("high_freq_factor", fmt::format("more than low_freq_factor, {}", rotary.low));
}

/// 0.1 m ln s + 1, by which YaRN makes scores of a longer context sharper.
double yarnAttention(double factor, double scale) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

/// The number of the pair of channels, a real one, that turns so often within the positions of
/// training.
double pairOfTurns(const Rotary &rotary, double turns) {
  return static_cast<double>(rotary.width) *
         std::log(static_cast<double>(rotary.original) / (turns * 2.0 * M_PI)) /
         (2.0 * std::log(rotary.base));
}

void readYarn(Config &scaling, Rotary &rotary) {
  rotary.fast = scaling.positive("beta_fast", 32.0);
  rotary.slow = scaling.positive("beta_slow", 1.0);
  rotary.truncate = scaling.flag("truncate", true);
  const double first = pairOfTurns(rotary, rotary.fast), last = pairOfTurns(rotary, rotary.slow);
  const double low = rotary.truncate ? std::floor(first) : first,
               high = rotary.truncate ? std::ceil(last) : last;
  if (!(std::max(low, 0.0) <= std::min(high, rotary.width - 1.0)))
    scaling.reject("beta_fast", "turns of a pair of channels, more than beta_slow");
  const auto given = scaling.findPositive("attention_factor");
  const auto scale = scaling.findPositive("mscale"), all = scaling.findPositive("mscale_all_dim");
  rotary.attention = given ? *given
                     : scale && all
                         ? yarnAttention(rotary.factor, *scale) / yarnAttention(rotary.factor, *all)
                         : yarnAttention(rotary.factor, 1.0);
}

void readLongRope(Config &scaling, Rotary &rotary, int64_t maxPositions) {
  for (const auto &[field, factors] : {std::pair("short_factor", &rotary.shortFactors),
                                       std::pair("long_factor", &rotary.longFactors)}) {
    const auto list = scaling.findPositives(field);
    if (!list || list->size() != static_cast<size_t>(rotary.width / 2))
      scaling.reject(field,
                     fmt::format("{} numbers, one for each pair of channels", rotary.width / 2));
    *factors = *list;
  }
  const auto given = scaling.findPositive("attention_factor");
  // Versions of transformers differ in which of them they take.
  if (const double ratio = static_cast<double>(maxPositions) / static_cast<double>(rotary.original);
      !given && rotary.factor != ratio)
    scaling.reject("factor", fmt::format("{}, as many times the positions of training", ratio));
  rotary.attention = given ? *given
                     : rotary.factor <= 1.0
                         ? 1.0
                         : std::sqrt(1.0 + std::log(rotary.factor) /
                                               std::log(static_cast<double>(rotary.original)));
}

constexpr std::string_view kOriginal = "original_max_position_embeddings";

Rotary::Scaling readScaling(Config &scaling) {
  using enum Rotary::Scaling;
  constexpr std::pair<std::string_view, Rotary::Scaling> known[] = {
      {"default", None}, {"linear", Linear}, {"dynamic", Dynamic},  {"llama3", Llama3},
      {"yarn", Yarn},    {"su", LongRope},   {"longrope", LongRope}};
  const std::string old = scaling.text("type", "default"), type = scaling.text("rope_type", old);
  if (scaling.has("type") && old != type)
    scaling.reject("type", "that of rope_type");
  for (const auto &[name, kind] : known)
    if (name == type)
      return kind;
  scaling.reject(scaling.has("rope_type") ? "rope_type" : "type",
                 "default, linear, dynamic, llama3, yarn or longrope");
}

/// A number that a family calls by a name of its own. Some versions write the common name beside
/// it; both then say the same.
double ownOrCommon(Config &config, std::string_view own, std::string_view common,
                   double otherwise) {
  const std::optional<double> value = config.findPositive(own), other = config.findPositive(common);
  if (value && other && *value != *other)
    config.reject(common, fmt::format("{}, as {} says", *value, own));
  return value ? *value : other.value_or(otherwise);
}

} // namespace

void wantWholeHeads(const Config &config, const Rotary &rotary, int64_t headWidth) {
  if (rotary.width != headWidth)
    support::fail("{}: by partial_rotary_factor rotary positions turn {} of the {} channels of a "
                  "head; expected all of them",
                  config.where(), rotary.width, headWidth);
}

Rotary readRotaryObject(Config scaling, Rotary rotary, int64_t headWidth, int64_t maxPositions,
                        double defaultPart) {
  rotary.base = scaling.positive("rope_theta", rotary.base);
  rotary.width =
      rotaryWidth(scaling, headWidth, scaling.positive("partial_rotary_factor", defaultPart));
  constexpr std::string_view harmless[] = {"finetuned"};
  scaling.ignore(harmless);
  using enum Rotary::Scaling;
  rotary.scaling = readScaling(scaling);
  if (rotary.scaling == None) {
    scaling.finish("rotary positions");
    return rotary;
  }
  if (rotary.scaling != Linear)
    rotary.original =
        scaling.integer(kOriginal, 2, rotary.original > 0 ? rotary.original : maxPositions);
  const bool byRatio = rotary.scaling == Yarn || rotary.scaling == LongRope;
  rotary.factor = byRatio ? scaling.positive("factor", static_cast<double>(maxPositions) /
                                                           static_cast<double>(rotary.original))
                          : scaling.positive("factor");
  switch (rotary.scaling) {
  case None:
  case Linear:
    break;
  case Dynamic:
    if (rotary.original != maxPositions)
      scaling.reject(kOriginal, fmt::format("max_position_embeddings, {}", maxPositions));
    if (rotary.width < 4)
      scaling.reject("rope_type", "rotary positions of at least 4 channels for dynamic");
    break;
  case Llama3:
    readLlama3(scaling, rotary);
    break;
  case Yarn:
    readYarn(scaling, rotary);
    break;
  case LongRope:
    readLongRope(scaling, rotary, maxPositions);
    break;
  }
  scaling.finish("rotary positions");
  return rotary;
}

Rotary readRotary(Config &config, int64_t headWidth, int64_t maxPositions,
                  const RotaryFields &fields) {
  Rotary rotary;
  rotary.base = ownOrCommon(config, fields.base, "rope_theta", fields.defaultBase);
  rotary.original = config.integer(kOriginal, 2, fields.original);
  const bool hasPart = config.has(fields.part) || config.has("partial_rotary_factor");
  const double part = ownOrCommon(config, fields.part, "partial_rotary_factor", fields.defaultPart);
  std::optional<Config> now = config.findObject("rope_parameters"),
                        before = config.findObject("rope_scaling");
  if (now && before)
    config.reject("rope_scaling", "only one of rope_scaling and rope_parameters");
  if (now || before) {
    // Programs differ in which of two places they believe, and some in what stands for the outer
    // one.
    Config scaling = std::move(now ? *now : *before);
    const int64_t outer = rotary.original;
    if (const auto inner = scaling.findInteger(kOriginal, 2);
        outer > 0 && inner.value_or(outer) != outer)
      scaling.reject(kOriginal,
                     fmt::format("{}, as the field beside it or the family says", outer));
    if (const auto inner = scaling.findPositive("partial_rotary_factor");
        hasPart && inner.value_or(part) != part)
      scaling.reject("partial_rotary_factor", fmt::format("{}, as the field beside it says", part));
    rotary = readRotaryObject(std::move(scaling), rotary, headWidth, maxPositions, part);
  } else
    rotary.width = rotaryWidth(config, headWidth, part);
  if (!fields.partial)
    wantWholeHeads(config, rotary, headWidth);
  return rotary;
}

} // namespace hydra::frontend
