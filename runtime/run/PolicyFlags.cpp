// A value, then settings by their names.
#include "runtime/run/PolicyFlags.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

using namespace hydra::runtime;
using hydra::support::fail;
using hydra::support::shown;

namespace {

constexpr int64_t kMostSteps = int64_t{1} << 40;

/// `VALUE[,name=value]...` of one flag, setting by setting.
class Words {
public:
  Words(std::string flag, const std::string &text, const char *form)
      : flag(std::move(flag)), text(text), form(form), rest(this->text) {}

  /// The first word, which is the value itself.
  std::string_view take() {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (word.empty() || comma + 1 == rest.size())
      refuse();
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    return word;
  }
  bool empty() const { return rest.empty(); }

  /// The next setting: its name, and behind `=` what `value` then is.
  std::string_view takeName() {
    const std::string_view word = take();
    const size_t equals = word.find('=');
    if (equals == word.npos)
      refuse();
    value = word.substr(equals + 1);
    return word.substr(0, equals);
  }
  double number(std::string_view digits, double least) {
    double result = 0;
    read(digits, result);
    if (!std::isfinite(result) || result < least)
      refuse();
    return result;
  }
  double number(double least) { return number(value, least); }
  int64_t steps(int64_t least) { return whole(value, least); }
  int64_t whole(std::string_view digits, int64_t least) {
    int64_t result = 0;
    read(digits, result);
    if (result < least || result > kMostSteps)
      refuse();
    return result;
  }

  [[noreturn]] void refuse() const { fail("--{}: '{}' is not {}", flag, shown(text), form); }

private:
  template <typename Number> void read(std::string_view digits, Number &number) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size())
      refuse();
  }

  const std::string flag, text;
  const char *const form;
  std::string_view rest, value;
};

DynamicClip dynamicClip(Words words) {
  DynamicClip clip;
  clip.factor = words.number(words.take(), 0);
  while (!words.empty()) {
    const std::string_view name = words.takeName();
    if (name != "min" && name != "max")
      words.refuse();
    (name == "min" ? clip.least : clip.most) = words.number(0);
  }
  if (clip.factor == 0 || clip.most == 0 || clip.least > clip.most)
    words.refuse();
  return clip;
}

BatchFilter batchFilter(Words words) {
  const BatchFilter filter{.factor = words.number(words.take(), 1)};
  if (!words.empty())
    words.refuse();
  return filter;
}

LossSpike lossSpike(Words words) {
  LossSpike spike;
  spike.factor = words.number(words.take(), 1);
  while (!words.empty()) {
    const std::string_view name = words.takeName();
    if (name == "steps")
      spike.steps = words.steps(1);
    else if (name == "rate" && (spike.rate = words.number(0)) <= 1)
      continue;
    else
      words.refuse();
  }
  return spike;
}

/// `below=LOSS[,from=STEP]` in any order, and where there is a place for it `over=STEPS`.
LowLoss lowLoss(Words &words, std::optional<int64_t> *over = nullptr) {
  LowLoss when;
  bool below = false;
  while (!words.empty()) {
    const std::string_view name = words.takeName();
    if (name == "below") {
      when.loss = words.number(std::numeric_limits<double>::lowest());
      below = true;
    } else if (name == "from") {
      when.from = words.steps(0);
    } else if (over && name == "over") {
      *over = words.steps(0);
    } else {
      words.refuse();
    }
  }
  if (!below)
    words.refuse();
  return when;
}

EarlyStart earlyStart(Words words) {
  EarlyStart early;
  early.scalar = words.take();
  early.when = lowLoss(words, &early.over);
  return early;
}

std::map<int64_t, LowLoss> earlyEnds(const std::string &name, const std::string &text) {
  std::map<int64_t, LowLoss> ends;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    Words words(name, text.substr(begin, end - begin),
                "off or PHASE,below=LOSS[,from=STEP], such as 1,below=5,from=3000, or several with "
                "';' between them");
    const int64_t phase = words.whole(words.take(), 1);
    if (!ends.try_emplace(phase, lowLoss(words)).second)
      words.refuse();
    begin = end + 1;
  }
  return ends;
}

} // namespace

Policies hydra::runtime::parsePolicies(const PolicyFlags &flags) {
  Policies policies;
  for (const auto &[name, text] : flags) {
    const bool off = text == "off";
    if (name == "dynamic-clip") {
      const Words words(name, text, "off or FACTOR[,min=NORM][,max=NORM], such as 2,min=50");
      policies.clip = off ? std::nullopt : std::optional(dynamicClip(words));
    } else if (name == "batch-filter") {
      const Words words(name, text, "off or FACTOR, which is at least 1, such as 2.5");
      policies.filter = off ? std::nullopt : std::optional(batchFilter(words));
    } else if (name == "loss-spike") {
      const Words words(name, text,
                        "off or FACTOR[,steps=N][,rate=PART], FACTOR at least 1 and PART at most "
                        "1, such as 2,steps=100");
      policies.spike = off ? std::nullopt : std::optional(lossSpike(words));
    } else if (name == "start-early") {
      const Words words(name, text,
                        "off or NAME,below=LOSS[,from=STEP][,over=STEPS], such as "
                        "s,below=5,from=3000");
      policies.early = off ? std::nullopt : std::optional(earlyStart(words));
    } else if (name == "end-phase") {
      policies.ends = off ? std::map<int64_t, LowLoss>() : earlyEnds(name, text);
    } else if (name == "cooldown") {
      if (!off && text != "eval" && text != "train")
        fail("--cooldown: '{}' is not off, eval or train", shown(text));
      policies.cooldown = off ? Cooldown::off : text == "eval" ? Cooldown::eval : Cooldown::train;
    } else {
      fail("there is no flag --{}", shown(name));
    }
  }
  return policies;
}
