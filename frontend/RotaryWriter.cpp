// The formulas of scaled rotary positions, as arithmetic of the model language. Frequencies are
// those of transformers, and like there numbers of f32.
#include "frontend/RotaryWriter.h"

#include "frontend/Text.h"

#include <fmt/format.h>

namespace hydra::frontend {

namespace {

using enum Rotary::Scaling;

std::string rope(const std::string &value, const std::string &base) {
  return fmt::format("rope({}, base = {}, half_split)", value, base);
}

/// Lines that choose the number of each pair of channels from a list, as `%name`.
std::string chooseByPair(const std::string &name, const std::vector<double> &numbers) {
  std::vector<size_t> ends; // of runs of equal numbers, but the last
  for (size_t i = numbers.size() - 1; i-- > 0;)
    if (numbers[i] != numbers[i + 1])
      ends.push_back(i);
  std::string text, rest = realText(numbers.back());
  if (ends.empty())
    return fmt::format("    %{} = hydra.let %pair * 0.0 + {}\n", name, rest);
  for (const size_t end : ends) {
    const std::string now = end == ends.back() ? "%" + name : fmt::format("%{}{}", name, end + 1);
    text += fmt::format("    {} = hydra.let select(%pair < {}, {}, {})\n", now, end + 1,
                        realText(numbers[end]), rest);
    rest = now;
  }
  return text;
}

std::string frequencies(const ModelWords &words) {
  const Rotary &r = *words.a.rotary;
  switch (r.scaling) {
  case None:
  case Dynamic:
    return "";
  case Linear:
    return words.a.rotary->localBase ? "    %frequency = hydra.let %plain / stretch\n"
                                     : "    %frequency = hydra.let %plain / factor\n";
  case Llama3:
    return "    // A pair keeps its speed if it turns `high` times or more within the positions of "
           "training, and is\n"
           "    // slower by `factor` if it turns `low` times or less.\n"
           "    %turns = hydra.let %plain * (trained / 6.283185307179586)\n"
           "    %keeps = hydra.let min(max((%turns - low) * (1 / (high - low)), 0.0), 1.0)\n"
           "    %frequency = hydra.let %plain * (%keeps + (1.0 - %keeps) / factor)\n";
  case Yarn:
    return "    // Pairs before `first` keep their speed, and from `last` on are slower by "
           "`factor`.\n"
           "    %slows = hydra.let min(max((%pair - first) * (1 / max(last - first, 0.001)), 0.0), "
           "1.0)\n"
           "    %frequency = hydra.let %plain * (1.0 - %slows + %slows / factor)\n";
  case LongRope:
    return "    // What each pair is slower by, in contexts of up to the positions of training and "
           "in longer ones.\n" +
           chooseByPair("short", r.shortFactors) + chooseByPair("long", r.longFactors) +
           "    %slower = hydra.let when(length <= trained, %short, %long)\n"
           "    %frequency = hydra.let %plain / %slower\n";
  }
  return "";
}

/// Tables of cosines and sines.
std::string turnsDefinition(const ModelWords &words) {
  const Rotary &r = *words.a.rotary;
  const std::string width = words.turned(), base = r.localBase ? "theta" : "rope";
  const bool sharp = r.scaling == Yarn || r.scaling == LongRope;
  return fmt::format(
      "\n"
      "  // Cosine and sine of the angles [S, 1, {0} / 2] by which pairs of channels turn.\n"
      "  hydra.def @turns(){1} {{\n"
      "    %position = hydra.let when(continued, iota(axis = 1, shape = [B, S, 1, 1], dtype = f32, "
      "positions),\n"
      "                               iota(axis = 0, shape = [S, 1, 1], dtype = f32))\n"
      "    %pair = hydra.iota shape = [1, 1, {0} / 2] axis = 2 dtype = f32\n"
      "    %plain = hydra.let exp(%pair * (-2.0 * log({2}) / {0}))\n"
      "{3}"
      "    %angle = hydra.let %position * %frequency\n"
      "    %cos, %sin = hydra.let cos(%angle){4}, sin(%angle){4}\n"
      "    hydra.yield %cos, %sin\n"
      "  }}\n",
      width, r.localBase ? " reals(theta, stretch)" : "", base, frequencies(words),
      sharp ? " * sharpness" : "");
}

/// Pairs (i, i + R/2) of the first R channels by those tables.
std::string rotateByTables(const ModelWords &words) {
  const std::string width = words.turned();
  const std::string rest =
      words.partialRotary() ? "    %rest = hydra.slice %x axis = 3 start = R size = hd - R\n" : "";
  return fmt::format(
      "\n"
      "  // %x [B, S, heads, hd] with pairs (i, i + {0} / 2) of channels turned.\n"
      "  hydra.def @rotate(%x, %cos, %sin) {{\n"
      "    %a = hydra.slice %x axis = 3 start = 0 size = {0} / 2\n"
      "    %b = hydra.slice %x axis = 3 start = {0} / 2 size = {0} / 2\n"
      "{1}"
      "    %y = hydra.let concat(%a * %cos - %b * %sin, %b * %cos + %a * %sin{2}, axis = 3)\n"
      "    hydra.yield %y\n"
      "  }}\n",
      width, rest, rest.empty() ? "" : ", %rest");
}

/// The base of `hydra.rope`; with dynamic scaling it grows with the context.
std::string baseOf(const ModelWords &words) {
  if (words.a.rotary->scaling != Dynamic)
    return "rope";
  return fmt::format("rope * pow(max(factor * length / trained - factor + 1.0, 1.0), {0} / ({0} - 2.0))",
                     words.turned());
}

/// The form of one `hydra.rope`, on a part of each head or with a longer base.
std::string rotateDefinition(const ModelWords &words) {
  const std::string base = words.a.rotary->localBase ? "theta" : baseOf(words);
  const char *reals = words.a.rotary->localBase ? " reals(theta)" : "";
  if (!words.partialRotary())
    return fmt::format(
        "\n"
        "  // Rotary positions whose base grows in contexts longer than those of training.\n"
        "  hydra.def @rotate(%x){} = {}\n",
        reals, rope("%x", base));
  return fmt::format(
      "\n"
      "  // %x [B, S, heads, hd] with rotary positions on the first R channels of every head.\n"
      "  hydra.def @rotate(%x){} {{\n"
      "    %turned = hydra.slice %x axis = 3 start = 0 size = R\n"
      "    %rest = hydra.slice %x axis = 3 start = R size = hd - R\n"
      "    %y = hydra.let concat({}, %rest, axis = 3)\n"
      "    hydra.yield %y\n"
      "  }}\n",
      reals, rope("%turned", base));
}

bool isPlain(const ModelWords &words) {
  return words.a.rotary->scaling == None && !words.partialRotary();
}

} // namespace

std::string rotaryDefinitions(const ModelWords &words) {
  if (!words.a.rotary || isPlain(words))
    return "";
  return words.tabulates() ? turnsDefinition(words) + rotateByTables(words)
                           : rotateDefinition(words);
}

std::string rotaryTables(const ModelWords &words) {
  if (!words.tabulates())
    return "";
  if (!words.a.rotary->localBase)
    return "    %cos, %sin = hydra.call @turns()\n";
  return "    %full_cos, %full_sin = hydra.call @turns(theta = rope, stretch = factor)\n"
         "    %local_cos, %local_sin = hydra.call @turns(theta = local_rope, stretch = 1.0)\n";
}

std::string turned(const ModelWords &words, const std::string &value, bool local) {
  const std::string base = local ? "local_rope" : "rope";
  const bool two = words.a.rotary->localBase.has_value();
  if (words.tabulates()) {
    const char *which = !two ? "" : local ? "local_" : "full_";
    return fmt::format("@rotate({}, %{}cos, %{}sin)", value, which, which);
  }
  if (isPlain(words))
    return rope(value, base);
  return two ? fmt::format("@rotate({}, theta = {})", value, base)
             : fmt::format("@rotate({})", value);
}

} // namespace hydra::frontend
