// What the JSON library lets pass, and what it calls mistakes.
#pragma once

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hydra::support {

/// For the callback of nlohmann's parse: throws Error, which begins with `place`, for a name that
/// an object has twice, of which the library takes the last, and for values that nest without end,
/// which it copies, compares and writes recursively.
class JsonGuard {
public:
  static constexpr int kMostNesting = 64;

  explicit JsonGuard(std::string place, int mostNesting = kMostNesting)
      : place(std::move(place)), mostNesting(mostNesting) {}

  template <typename Json>
  bool operator()(int depth, nlohmann::json::parse_event_t event, const Json &value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > mostNesting)
      fail("{}: brackets nest more than {} deep", place, mostNesting);
    if (event == Event::object_start)
      names.emplace_back();
    if (event == Event::object_end)
      names.pop_back();
    if (event != Event::key)
      return true;
    const auto &name = value.template get_ref<const std::string &>();
    if (!names.back().insert(name).second)
      fail("{}: has the field '{}' twice", place, shown(name));
    return true;
  }

private:
  std::string place;
  int mostNesting;
  std::vector<std::set<std::string>> names; // of the objects that are open
};

/// What nlohmann says is wrong, in one line, without its number for that.
inline std::string jsonProblem(const nlohmann::json::exception &error) {
  constexpr size_t most = 200;
  std::string_view text = error.what();
  if (text.starts_with("[json.exception."))
    text.remove_prefix(text.find("] ") + 2);
  return shown(text, most);
}

} // namespace hydra::support
