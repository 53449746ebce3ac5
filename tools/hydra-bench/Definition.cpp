// Every member is read by name; one that nobody knows is an error.
#include "tools/hydra-bench/Definition.h"

#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "runtime/support/Suggest.h"
#include "runtime/support/ZeroByte.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <type_traits>

namespace hydra::bench {

using support::fail;
using support::shown;

namespace {

/// The members of an object, each of which somebody must take.
class Members {
public:
  Members(const Json &object, std::string place) : place(std::move(place)) {
    if (!object.is_object())
      fail("{}: this is {}; expected an object", this->place, object.type_name());
    for (const auto &[name, value] : object.items())
      left.emplace(name, &value);
  }

  const Json *take(const std::string &name) {
    known.push_back(name);
    const auto found = left.find(name);
    if (found == left.end())
      return nullptr;
    const Json *value = found->second;
    left.erase(found);
    return value;
  }

  template <typename T> void take(const std::string &name, T &out, const char *what) {
    const Json *value = take(name);
    if (!value)
      return;
    const auto refuse = [&] {
      fail("{}: '{}' is {}; expected {}", place, name, shown(value->dump()), what);
    };
    if (std::is_integral_v<T> && !std::is_same_v<T, bool> && !value->is_number_integer())
      refuse();
    try {
      out = value->get<T>();
    } catch (const Json::exception &) {
      refuse();
    }
  }

  void end() const {
    if (left.empty())
      return;
    const std::string &name = left.begin()->first;
    const std::string near = support::nearest(name, known);
    fail("{}: there is no member '{}'{}", place, shown(name),
         near.empty() ? "" : "; did you mean '" + near + "'?");
  }

  const std::string place;

private:
  std::map<std::string, const Json *> left;
  std::vector<std::string> known;
};

std::string textOf(const Json &scalar) {
  return scalar.is_string() ? scalar.get<std::string>() : scalar.dump();
}

AxisValue valueOf(const Axis &axis, const std::string &name) {
  AxisValue value;
  value.name = name;
  value.hydrac = {"--" + axis.flag + "=" + name};
  return value;
}

AxisValue readValue(const Json &json, const Axis &axis, const std::string &place) {
  if (json.is_primitive() && !json.is_null())
    return valueOf(axis, textOf(json));
  Members members(json, place);
  AxisValue value;
  members.take("name", value.name, "a text");
  if (value.name.empty())
    fail("{}: a value has no 'name'", place);
  members.take("model", value.model, "the name of a file");
  members.take("hydrac", value.hydrac, "a list of flags");
  members.take("hydra-run", value.run, "a list of flags");
  members.take("optional", value.optional, "true or false");
  members.end();
  return value;
}

std::vector<Axis> readAxes(const Json *json, const std::string &place) {
  if (!json || !json->is_object() || json->empty())
    fail("{}: 'axes' is missing, or no object with an axis", place);
  std::vector<Axis> axes;
  for (const auto &[name, content] : json->items()) {
    const std::string here = fmt::format("{}: axis '{}'", place, shown(name));
    Axis axis{.name = name, .flag = name, .values = {}};
    Json values = content;
    if (content.is_object()) {
      Members members(content, here);
      members.take("flag", axis.flag, "the name of a flag");
      members.take("values", values, "a list");
      members.end();
    }
    if (!values.is_array() || values.empty())
      fail("{}: expected a list of values", here);
    for (const Json &value : values)
      axis.values.push_back(readValue(value, axis, here));
    for (size_t i = 0; i < axis.values.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (axis.values[i].name == axis.values[k].name)
          fail("{}: there are two values '{}'", here, shown(axis.values[i].name));
    axes.push_back(std::move(axis));
  }
  return axes;
}

std::vector<std::string> namesOf(const std::vector<Axis> &axes) {
  std::vector<std::string> names;
  for (const Axis &axis : axes)
    names.push_back(axis.name);
  return names;
}

/// Whether all values are what `--axis=value` says.
bool isFlag(const Axis &axis) {
  return std::ranges::all_of(axis.values, [&](const AxisValue &value) {
    return value.hydrac == valueOf(axis, value.name).hydrac && value.run.empty();
  });
}

/// `{"mesh": "none", "reduce": "bf16"}`: axes of the definition, and values of theirs.
void checkExcept(const Json &except, const std::vector<Axis> &axes, const std::string &place) {
  if (!except.is_array())
    fail("{}: 'except' is {}; expected a list", place, except.type_name());
  for (const Json &one : except) {
    if (!one.is_object() || one.empty())
      fail("{}: 'except' has {}; expected a value by the name of an axis", place,
           shown(one.dump()));
    for (const auto &[name, value] : one.items()) {
      const auto axis = std::ranges::find(axes, name, &Axis::name);
      if (axis == axes.end() || !value.is_string())
        fail("{}: 'except' has {}, where '{}' is no axis, or has no text", place, shown(one.dump()),
             shown(name));
      if (std::ranges::find(axis->values, value.get<std::string>(), &AxisValue::name) ==
          axis->values.end())
        fail("{}: 'except' has {}, which is no value of the axis '{}'", place, shown(one.dump()),
             shown(name));
    }
  }
}

bool isExcept(const Json &axes, const Json &except) {
  return std::ranges::any_of(except, [&](const Json &one) {
    for (const auto &[name, value] : one.items())
      if (axes.at(name) != value)
        return false;
    return true;
  });
}

void append(std::vector<std::string> &list, const std::vector<std::string> &more) {
  list.insert(list.end(), more.begin(), more.end());
}

} // namespace

std::string Case::name() const {
  std::string text;
  for (const auto &[axis, value] : axes.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, value.get<std::string>());
  return text;
}

std::vector<Case> Definition::cases() const {
  std::vector<Case> cases = {
      {.axes = Json::object(), .model = model, .hydrac = hydrac, .run = run}};
  for (const Axis &axis : axes) {
    std::vector<Case> longer;
    for (const Case &one : cases)
      for (const AxisValue &value : axis.values) {
        Case next = one;
        next.axes[axis.name] = value.name;
        if (!value.model.empty())
          next.model = file.parent_path() / value.model;
        append(next.hydrac, value.hydrac);
        append(next.run, value.run);
        longer.push_back(std::move(next));
      }
    cases = std::move(longer);
  }
  std::erase_if(cases, [&](const Case &one) { return isExcept(one.axes, except); });
  return cases;
}

Definition readDefinition(const std::filesystem::path &file) {
  const support::InputFile input(file);
  const std::vector<std::byte> bytes = input.readAll();
  const auto *begin = reinterpret_cast<const char *>(bytes.data());
  if (const size_t zero = support::zeroByteIn(bytes); zero != std::string_view::npos)
    fail("{}: has a zero byte at {}; expected JSON text", input.name(), zero);
  Json json;
  try {
    json = Json::parse(begin, begin + bytes.size(), support::JsonGuard(input.name()));
  } catch (const Json::exception &error) {
    fail("{}: {}", input.name(), support::jsonProblem(error));
  }
  Members members(json, input.name());
  Definition definition;
  definition.file = file;
  std::string model;
  members.take("title", definition.title, "a text");
  members.take("about", definition.about, "a text");
  members.take("model", model, "the name of a file");
  definition.model = model.empty() ? "" : file.parent_path() / model;
  definition.axes = readAxes(members.take("axes"), input.name());
  if (const Json *except = members.take("except")) {
    checkExcept(*except, definition.axes, input.name());
    definition.except = *except;
  }
  members.take("hydrac", definition.hydrac, "a list of flags");
  members.take("hydra-run", definition.run, "a list of flags");
  members.take("steps", definition.steps, "a number of steps");
  members.take("warm_up", definition.warmUp, "a number of steps");
  members.take("profile", definition.profile, "true or false");
  members.take("threshold", definition.threshold, "percent");
  definition.compare = definition.steps > 0 ? "bench.median_ms" : "cost.step.microseconds";
  members.take("compare", definition.compare, "the name of a number");
  members.take("tables", definition.tables, "a list");
  members.end();
  if (definition.title.empty() || definition.steps < 0 || definition.warmUp < 0 ||
      definition.threshold < 0)
    fail("{}: a definition has a title, and no number below 0", input.name());
  if (definition.profile && definition.steps == 0)
    fail("{}: 'profile' needs 'steps'", input.name());
  for (const Case &one : definition.cases())
    if (one.model.empty())
      fail("{}: {} has no model", input.name(), one.name());
  return definition;
}

void choose(Definition &definition, const std::vector<std::string> &choices) {
  std::map<std::string, std::vector<AxisValue>> chosen;
  for (const std::string &choice : choices) {
    const size_t equals = choice.find('=');
    const std::string name = choice.substr(0, equals);
    const auto axis = std::ranges::find(definition.axes, name, &Axis::name);
    if (equals == std::string::npos)
      fail("--axis is '{}'; expected NAME=VALUE", shown(choice));
    if (axis == definition.axes.end())
      fail("--axis: {} has no axis '{}'; it has {}", definition.file.string(), shown(name),
           fmt::format("{}", fmt::join(namesOf(definition.axes), ", ")));
    const std::string value = choice.substr(equals + 1);
    const auto known = std::ranges::find(axis->values, value, &AxisValue::name);
    if (known == axis->values.end() && !isFlag(*axis))
      fail("--axis: the axis '{}' of {} has no value '{}'", name, definition.file.string(),
           shown(value));
    chosen[name].push_back(known == axis->values.end() ? valueOf(*axis, value) : *known);
  }
  for (Axis &axis : definition.axes) {
    if (const auto values = chosen.find(axis.name); values != chosen.end())
      axis.values = values->second;
    else
      std::erase_if(axis.values, [](const AxisValue &value) { return value.optional; });
  }
}

} // namespace hydra::bench
