// Sums by name, the largest first.
#include "runtime/report/OpRanking.h"

#include "runtime/report/LiveMemory.h"
#include "runtime/report/Units.h"

#include <algorithm>
#include <map>

namespace hydra::report {

using namespace planfile;
using nlohmann::ordered_json;

namespace {

std::string share(double part, double whole) {
  return fmt::format("{:.1f}%", whole > 0 ? 100 * part / whole : 0.0);
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

struct OpTime {
  std::string name;
  double calls = 0, seconds = 0, host = 0;
};

struct OpBytes {
  std::string name;
  uint64_t bytes = 0, largest = 0;
  size_t values = 0;
};

/// Of a map by name: its values, those with more first.
template <typename Value, typename More>
std::vector<Value> ranked(const std::map<std::string, Value> &byName, More more) {
  std::vector<Value> order;
  for (const auto &[name, value] : byName)
    order.push_back(value);
  std::sort(order.begin(), order.end(), [&](const Value &a, const Value &b) {
    return std::pair(more(b), a.name) < std::pair(more(a), b.name);
  });
  return order;
}

} // namespace

Section opTimes(const Measurement &measured) {
  constexpr size_t shown = 20;
  std::map<std::string, OpTime> byName;
  for (const StepMeasure &one : measured.steps) {
    if (one.calls == 0)
      continue;
    OpTime &sum = byName[one.step->name()->str()];
    sum.name = one.step->name()->str();
    sum.calls += one.calls;
    sum.seconds += one.seconds;
    sum.host += one.hostSeconds;
  }
  const double total = measured.seconds();
  Section section{"ranking", Table(2), ordered_json::array()};
  section.table.add({"rank", "operation", "ms", "share", "calls", "cpu ms"});
  OpTime rest;
  const std::vector<OpTime> order = ranked(byName, [](const OpTime &one) { return one.seconds; });
  for (size_t i = 0; i < order.size(); ++i) {
    const OpTime &one = order[i];
    section.json.push_back({{"rank", i + 1},
                            {"name", one.name},
                            {"microseconds", 1e6 * one.seconds},
                            {"percent", percent(one.seconds, total)},
                            {"calls", one.calls},
                            {"host_microseconds", 1e6 * one.host}});
    if (i < shown) {
      section.table.add({fmt::format("{}", i + 1), one.name,
                         fmt::format("{:.4f}", 1e3 * one.seconds), share(one.seconds, total),
                         fmt::format("{:.6g}", one.calls), fmt::format("{:.4f}", 1e3 * one.host)});
      continue;
    }
    rest.calls += one.calls;
    rest.seconds += one.seconds;
    rest.host += one.host;
  }
  if (order.size() > shown)
    section.table.add({"", fmt::format("{} others", order.size() - shown),
                       fmt::format("{:.4f}", 1e3 * rest.seconds), share(rest.seconds, total),
                       fmt::format("{:.6g}", rest.calls), fmt::format("{:.4f}", 1e3 * rest.host)});
  return section;
}

Section opAllocations(const Plan &plan) {
  constexpr size_t shown = 15;
  std::map<std::string, OpBytes> byName;
  uint64_t total = 0;
  for (const auto &[index, runs] : programsOfStep(plan)) {
    const Program &program = *plan.programs()->Get(index);
    const LiveMemory memory = liveMemory(plan, program);
    const std::vector<const Step *> makers = makersOf(plan, program);
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> values; // by tensor and first block
    for (const LivePiece &piece : memory.pieces)
      values[{piece.tensor, piece.first}] += piece.end - piece.begin;
    for (const auto &[key, bytes] : values) {
      const Step *maker = makers[key.first];
      const std::string name = maker ? maker->name()->str() : "input";
      OpBytes &sum = byName[name];
      sum.name = name;
      sum.bytes += bytes;
      sum.largest = std::max(sum.largest, bytes);
      ++sum.values;
      total += bytes;
    }
  }
  Section section{"allocations", Table(2), ordered_json::array()};
  section.table.add({"rank", "values made by", "bytes", "share", "values", "largest"});
  OpBytes rest;
  const std::vector<OpBytes> order = ranked(byName, [](const OpBytes &one) { return one.bytes; });
  for (size_t i = 0; i < order.size(); ++i) {
    const OpBytes &one = order[i];
    section.json.push_back({{"rank", i + 1},
                            {"name", one.name},
                            {"bytes", one.bytes},
                            {"percent", percent(double(one.bytes), double(total))},
                            {"values", one.values},
                            {"largest_bytes", one.largest}});
    if (i < shown) {
      section.table.add({fmt::format("{}", i + 1), one.name, bytesText(one.bytes),
                         share(double(one.bytes), double(total)), fmt::format("{}", one.values),
                         bytesText(one.largest)});
      continue;
    }
    rest.bytes += one.bytes;
    rest.values += one.values;
    rest.largest = std::max(rest.largest, one.largest);
  }
  if (order.size() > shown)
    section.table.add({"", fmt::format("{} others", order.size() - shown), bytesText(rest.bytes),
                       share(double(rest.bytes), double(total)), fmt::format("{}", rest.values),
                       bytesText(rest.largest)});
  return section;
}

} // namespace hydra::report
