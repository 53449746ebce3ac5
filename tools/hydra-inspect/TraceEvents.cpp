// Objects are taken as they are parsed.
#include "tools/hydra-inspect/TraceEvents.h"
#include "runtime/support/JsonGuard.h"

#include <vector>

using Json = nlohmann::json;

bool hydra::inspect::forEachEvent(const support::InputFile &file,
                                  const std::function<void(const Json &)> &take) {
  const std::vector<std::byte> bytes = file.readAll();
  const auto *begin = reinterpret_cast<const char *>(bytes.data());
  // Either {"traceEvents": [...]}, where an event is at depth 2, or [...], where it is at 1.
  const auto keep = [&](int depth, Json::parse_event_t event, Json &value) {
    if (depth > support::JsonGuard::kMostNesting) // names may be there twice: others write it, too
      support::fail("{}: brackets nest more than {} deep", file.name(),
                    support::JsonGuard::kMostNesting);
    if (event != Json::parse_event_t::object_end || depth < 1 || depth > 2)
      return true;
    take(value);
    return false;
  };
  const Json rest = Json::parse(begin, begin + bytes.size(), keep);
  return rest.is_array() || (rest.is_object() && rest.contains("traceEvents"));
}
