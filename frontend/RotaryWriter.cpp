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

/// What the layers are whose positions these are, where others have others.
std::string whose(const RotaryWords &rotary) {
  return !rotary.two             ? ""
         : rotary.prefix.empty() ? ", in layers without window"
                                 : ", in layers with a window";
}

std::string frequencies(const RotaryWords &rotary) {
  const std::string factor = rotary.named("factor"), trained = rotary.named("trained"),
                    low = rotary.named("low"), high = rotary.named("high"),
                    first = rotary.named("first"), last = rotary.named("last");
  switch (rotary.r.scaling) {
  case None:
  case Dynamic:
    return "";
  case Linear:
    return fmt::format("    %frequency = hydra.let %plain / {}\n", factor);
  case Llama3:
    return fmt::format(
        "    // A pair keeps its speed if it turns `{0}` times or more within the positions of "
        "training, and is\n"
        "    // slower by `{1}` if it turns `{2}` times or less.\n"
        "    %turns = hydra.let %plain * ({3} / 6.283185307179586)\n"
        "    %keeps = hydra.let min(max((%turns - {2}) * (1 / ({0} - {2})), 0.0), 1.0)\n"
        "    %frequency = hydra.let %plain * (%keeps + (1.0 - %keeps) / {1})\n",
        high, factor, low, trained);
  case Yarn:
    return fmt::format(
        "    // Pairs before `{0}` keep their speed, and from `{1}` on are slower by `{2}`.\n"
        "    %slows = hydra.let min(max((%pair - {0}) * (1 / max({1} - {0}, 0.001)), 0.0), 1.0)\n"
        "    %frequency = hydra.let %plain * (1.0 - %slows + %slows / {2})\n",
        first, last, factor);
  case LongRope:
    return "    // What each pair is slower by, in contexts of up to the positions of training and "
           "in longer ones.\n" +
           chooseByPair("short", rotary.r.shortFactors) +
           chooseByPair("long", rotary.r.longFactors) +
           fmt::format("    %slower = hydra.let when(length <= {}, %short, %long)\n"
                       "    %frequency = hydra.let %plain / %slower\n",
                       trained);
  }
  return "";
}

/// Tables of cosines and sines.
std::string turnsDefinition(const ModelWords &words, const RotaryWords &rotary) {
  const bool sharp = rotary.r.scaling == Yarn || rotary.r.scaling == LongRope;
  return fmt::format(
      "\n"
      "  // Cosine and sine of the angles [S, 1, {0} / 2] by which pairs of channels turn{1}.\n"
      "  hydra.def @{2}() {{\n"
      "    %position = hydra.let when(continued, iota(axis = 1, shape = [B, S, 1, 1], dtype = f32, "
      "positions),\n"
      "                               iota(axis = 0, shape = [S, 1, 1], dtype = f32))\n"
      "    %pair = hydra.iota shape = [1, 1, {0} / 2] axis = 2 dtype = f32\n"
      "    %plain = hydra.let exp(%pair * (-2.0 * log({3}) / {0}))\n"
      "{4}"
      "    %angle = hydra.let %position * %frequency\n"
      "    %cos, %sin = hydra.let cos(%angle){5}, sin(%angle){5}\n"
      "    hydra.yield %cos, %sin\n"
      "  }}\n",
      words.turned(), whose(rotary), rotary.named("turns"), rotary.named("rope"),
      frequencies(rotary), sharp ? " * " + rotary.named("sharpness") : "");
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
std::string baseOf(const ModelWords &words, const RotaryWords &rotary) {
  if (rotary.r.scaling != Dynamic)
    return rotary.named("rope");
  return fmt::format("{1} * pow(max({2} * length / {3} - {2} + 1.0, 1.0), {0} / ({0} - 2.0))",
                     words.turned(), rotary.named("rope"), rotary.named("factor"),
                     rotary.named("trained"));
}

/// The definition that turns without tables; where layers differ, @rotate is the one by tables.
std::string rotateName(const RotaryWords &rotary) {
  return !rotary.two ? "rotate" : rotary.prefix.empty() ? "full_rotate" : "local_rotate";
}

/// The form of one `hydra.rope`, on a part of each head or with a longer base.
std::string rotateDefinition(const ModelWords &words, const RotaryWords &rotary) {
  const std::string base = baseOf(words, rotary);
  if (!words.partialRotary())
    return fmt::format("\n"
                       "  // Rotary positions whose base grows in contexts longer than those of "
                       "training{}.\n"
                       "  hydra.def @{}(%x) = {}\n",
                       whose(rotary), rotateName(rotary), rope("%x", base));
  return fmt::format(
      "\n"
      "  // %x [B, S, heads, hd] with rotary positions on the first R channels of every head.\n"
      "  hydra.def @{}(%x) {{\n"
      "    %turned = hydra.slice %x axis = 3 start = 0 size = R\n"
      "    %rest = hydra.slice %x axis = 3 start = R size = hd - R\n"
      "    %y = hydra.let concat({}, %rest, axis = 3)\n"
      "    hydra.yield %y\n"
      "  }}\n",
      rotateName(rotary), rope("%turned", base));
}

bool isPlain(const ModelWords &words, const RotaryWords &rotary) {
  return rotary.r.scaling == None && !words.partialRotary();
}

/// The names of the tables.
std::string tables(const RotaryWords &rotary) {
  const char *which = !rotary.two ? "" : rotary.prefix.empty() ? "full_" : "local_";
  return fmt::format("%{0}cos, %{0}sin", which);
}

} // namespace

std::string rotaryDefinitions(const ModelWords &words) {
  std::string text;
  bool byTables = false;
  for (const RotaryWords &rotary : words.rotaries()) {
    if (rotary.tabulates())
      text += turnsDefinition(words, rotary);
    else if (!isPlain(words, rotary))
      text += rotateDefinition(words, rotary);
    byTables |= rotary.tabulates();
  }
  return byTables ? text + rotateByTables(words) : text;
}

std::string rotaryTables(const ModelWords &words) {
  std::string text;
  for (const RotaryWords &rotary : words.rotaries())
    if (rotary.tabulates())
      text += fmt::format("    {} = hydra.call @{}()\n", tables(rotary), rotary.named("turns"));
  return text;
}

std::string turned(const ModelWords &words, const std::string &value, bool local) {
  const std::vector<RotaryWords> rotaries = words.rotaries();
  const RotaryWords &rotary = local ? rotaries.back() : rotaries.front();
  if (rotary.tabulates())
    return fmt::format("@rotate({}, {})", value, tables(rotary));
  if (isPlain(words, rotary))
    return rope(value, rotary.named("rope"));
  return fmt::format("@{}({})", rotateName(rotary), value);
}

} // namespace hydra::frontend
