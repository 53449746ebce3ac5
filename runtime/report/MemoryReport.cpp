// Live memory of each program as text, JSON and a timeline.
#include "runtime/report/MemoryReport.h"

#include "runtime/report/LiveMemory.h"
#include "runtime/report/MemoryStages.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace hydra::report;
using namespace hydra::planfile;
using nlohmann::ordered_json;

namespace {

constexpr size_t kLargest = 10;

uint64_t segmentBytes(const Plan &plan, SegmentKind kind) {
  return plan.segments()->Get(static_cast<uint32_t>(kind))->size();
}

double fragmentation(const Program &program) {
  const auto peak = double(program.transient_bytes()), live = double(program.live_bytes());
  return live > 0 ? 100 * (peak - live) / live : 0.0;
}

bool isActivation(Category category) {
  return category >= Category::act_embed && category <= Category::act_ckpt;
}

/// Bytes of activations that are live at the peak, by layer.
std::map<int, uint64_t> activationsByLayer(const Plan &plan, const LiveMemory &memory) {
  std::map<int, uint64_t> bytes;
  for (const auto &[index, size] : memory.largestAtPeak) {
    const Tensor &tensor = *plan.tensors()->Get(index);
    if (isActivation(tensor.category()))
      bytes[tensor.layer()] += size;
  }
  return bytes;
}

/// First and last block in which bytes of the tensor are live around the peak.
std::pair<uint32_t, uint32_t> liveRange(const LiveMemory &memory, uint32_t tensor) {
  std::pair<uint32_t, uint32_t> range{memory.peakBlock, memory.peakBlock};
  for (const LivePiece &piece : memory.pieces)
    if (piece.tensor == tensor && piece.first <= memory.peakBlock &&
        memory.peakBlock <= piece.last) {
      range.first = std::min(range.first, piece.first);
      range.second = std::max(range.second, piece.last);
    }
  return range;
}

uint64_t sum(const CategoryBytes &bytes) {
  uint64_t total = 0;
  for (const uint64_t part : bytes)
    total += part;
  return total;
}

/// Alignment and gaps: with it the categories are all of the memory.
uint64_t unused(const CategoryBytes &bytes, uint64_t memory) {
  return memory - std::min(memory, sum(bytes));
}

void addUnused(Table &table, const CategoryBytes &bytes, uint64_t memory) {
  if (const uint64_t rest = unused(bytes, memory); rest > 0)
    table.add({"  unused", bytesText(rest)});
}

void addCategories(Table &table, const CategoryBytes &bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      table.add({"  " + categoryName(static_cast<Category>(i)), bytesText(bytes[i])});
}

/// The largest value of each category, at any time.
CategoryBytes largestValues(const Plan &plan, const LiveMemory &memory) {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> values; // by tensor and first block
  for (const LivePiece &piece : memory.pieces)
    values[{piece.tensor, piece.first}] += piece.end - piece.begin;
  CategoryBytes largest{};
  for (const auto &[key, bytes] : values) {
    uint64_t &most = largest[static_cast<size_t>(plan.tensors()->Get(key.first)->category())];
    most = std::max(most, bytes);
  }
  return largest;
}

/// Bytes at the peak, and the largest value at any time.
void addCategories(Table &table, const CategoryBytes &bytes, const CategoryBytes &largest) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (largest[i] > 0)
      table.add({"  " + categoryName(static_cast<Category>(i)), bytesText(bytes[i]),
                 "largest " + bytesText(largest[i])});
}

ordered_json categoriesJson(const CategoryBytes &bytes) {
  ordered_json json = ordered_json::object();
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      json[categoryName(static_cast<Category>(i))] = bytes[i];
  return json;
}

/// Calls `visit(block, bytes by category)` for every block of the program.
template <typename Visit>
void forEachBlock(const Plan &plan, const LiveMemory &memory, Visit visit) {
  std::vector<std::map<size_t, int64_t>> change(memory.blocks + 1);
  for (const LivePiece &piece : memory.pieces) {
    const auto category = static_cast<size_t>(plan.tensors()->Get(piece.tensor)->category());
    change[piece.first][category] += static_cast<int64_t>(piece.end - piece.begin);
    change[piece.last + 1][category] -= static_cast<int64_t>(piece.end - piece.begin);
  }
  CategoryBytes live{};
  for (uint32_t block = 0; block < memory.blocks; ++block) {
    for (const auto &[category, bytes] : change[block])
      live[category] += static_cast<uint64_t>(bytes);
    visit(block, live);
  }
}

std::string changeText(uint64_t from, uint64_t to) {
  return to < from ? "-" + bytesText(from - to) : "+" + bytesText(to - from);
}

/// What is live behind each part of a run, with what the model keeps.
Table stagesTable(const Plan &plan, const Program &program, const LiveMemory &memory) {
  Table table(1);
  table.add({"live behind", "block", "bytes", "change", "peak"});
  uint64_t before = 0;
  for (const MemoryStage &stage : memoryStages(plan, program, memory)) {
    table.add({stage.name, stage.block < 0 ? "-" : fmt::format("{}", stage.block),
               bytesText(stage.live), changeText(before, stage.live), bytesText(stage.peak)});
    before = stage.live;
  }
  return table;
}

ordered_json stagesJson(const Plan &plan, const Program &program, const LiveMemory &memory) {
  ordered_json json = ordered_json::array();
  int64_t before = 0;
  for (const MemoryStage &stage : memoryStages(plan, program, memory)) {
    const auto live = static_cast<int64_t>(stage.live);
    json.push_back({{"stage", stage.name},
                    {"block", stage.block},
                    {"live_bytes", live},
                    {"change_bytes", live - before},
                    {"peak_bytes", stage.peak}});
    before = live;
  }
  return json;
}

} // namespace

std::string hydra::report::memoryReportText(const Plan &plan) {
  const uint64_t persistent = segmentBytes(plan, SegmentKind::persistent),
                 transient = segmentBytes(plan, SegmentKind::transient);
  std::string text = fmt::format("arena {} ({} bytes): {} persistent, {} transient\n",
                                 bytesText(persistent + transient), persistent + transient,
                                 bytesText(persistent), bytesText(transient));
  if (const uint64_t host = segmentBytes(plan, SegmentKind::host); host > 0)
    text += fmt::format("host {} ({} bytes): moments of the optimizer\n", bytesText(host), host);
  Table kept(1);
  addCategories(kept, persistentMemory(plan));
  addUnused(kept, persistentMemory(plan), persistent);
  text += kept.text("");
  for (const Program *program : *plan.programs()) {
    const LiveMemory memory = liveMemory(plan, *program);
    text += fmt::format("program {}: peak {}, live {}, fragmentation {:.2f}%, in block {} of {}\n",
                        program->name()->string_view(), bytesText(program->transient_bytes()),
                        bytesText(program->live_bytes()), fragmentation(*program), memory.peakBlock,
                        memory.blocks);
    Table table(1);
    addCategories(table, memory.atPeak, largestValues(plan, memory));
    addUnused(table, memory.atPeak, program->transient_bytes());
    for (const auto &[layer, bytes] : activationsByLayer(plan, memory))
      table.add({layer < 0 ? "  activations outside layers"
                           : fmt::format("  activations of layer {}", layer),
                 bytesText(bytes)});
    text += table.text("");
    const std::vector<const Step *> makers = makersOf(plan, *program);
    text += stagesTable(plan, *program, memory).text();
    Table largest(8);
    largest.add({"largest at the peak", "category", "made by", "phase", "pass", "module", "blocks",
                 "model", "bytes"});
    for (size_t i = 0; i < std::min(kLargest, memory.largestAtPeak.size()); ++i) {
      const auto &[index, bytes] = memory.largestAtPeak[i];
      const Tensor &tensor = *plan.tensors()->Get(index);
      const auto [first, last] = liveRange(memory, index);
      const Step *maker = makers[index];
      largest.add({tensor.name()->str(), categoryName(tensor.category()),
                   maker ? maker->name()->str() : "input",
                   maker ? EnumNamePhase(maker->phase()) : "-",
                   maker ? std::string(passText(plan, *maker)) : "-",
                   std::string(pathText(plan, tensor.path())), fmt::format("{}-{}", first, last),
                   locationText(plan, tensor.location()), bytesText(bytes)});
    }
    text += largest.text();
  }
  return text;
}

/// What the plan was compiled with, by the names of flags; the last value of one given several
/// times.
static ordered_json optionsJson(const Plan &plan) {
  ordered_json options = ordered_json::object();
  for (const KeyValue *option : *plan.header()->options())
    options[option->key()->str()] = option->value()->str();
  return options;
}

std::string hydra::report::memoryReportJson(const Plan &plan) {
  const uint64_t persistent = segmentBytes(plan, SegmentKind::persistent),
                 transient = segmentBytes(plan, SegmentKind::transient);
  ordered_json json{{"arena_bytes", persistent + transient},
                    {"persistent_bytes", persistent},
                    {"transient_bytes", transient},
                    {"host_bytes", segmentBytes(plan, SegmentKind::host)},
                    {"persistent", categoriesJson(persistentMemory(plan))},
                    {"persistent_unused", unused(persistentMemory(plan), persistent)},
                    {"options", optionsJson(plan)},
                    {"programs", ordered_json::array()}};
  for (const Program *program : *plan.programs()) {
    const LiveMemory memory = liveMemory(plan, *program);
    const std::vector<const Step *> makers = makersOf(plan, *program);
    ordered_json layers = ordered_json::object(), largest = ordered_json::array();
    for (const auto &[layer, bytes] : activationsByLayer(plan, memory))
      layers[fmt::format("{}", layer)] = bytes;
    for (size_t i = 0; i < std::min(kLargest, memory.largestAtPeak.size()); ++i) {
      const auto &[index, bytes] = memory.largestAtPeak[i];
      const Tensor &tensor = *plan.tensors()->Get(index);
      const auto [first, last] = liveRange(memory, index);
      const Step *maker = makers[index];
      largest.push_back({{"name", tensor.name()->str()},
                         {"bytes", bytes},
                         {"category", categoryName(tensor.category())},
                         {"op", maker ? maker->name()->str() : "input"},
                         {"phase", maker ? EnumNamePhase(maker->phase()) : "-"},
                         {"pass", maker ? passText(plan, *maker) : "-"},
                         {"path", pathText(plan, tensor.path())},
                         {"layer", tensor.layer()},
                         {"first_block", first},
                         {"last_block", last},
                         {"model", locationText(plan, tensor.location())}});
    }
    json["programs"].push_back(
        {{"name", program->name()->str()},
         {"peak_bytes", program->transient_bytes()},
         {"live_bytes", program->live_bytes()},
         {"peak_block", memory.peakBlock},
         {"blocks", memory.blocks},
         {"at_peak", categoriesJson(memory.atPeak)},
         {"unused_at_peak", unused(memory.atPeak, program->transient_bytes())},
         {"largest_value", categoriesJson(largestValues(plan, memory))},
         {"activations_by_layer", layers},
         {"stages", stagesJson(plan, *program, memory)},
         {"largest", largest}});
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string hydra::report::memoryTimelineCsv(const Plan &plan) {
  std::string text = "program,block,live_bytes";
  for (const Category category : EnumValuesCategory())
    text += "," + categoryName(category);
  text += "\n";
  for (const Program *program : *plan.programs())
    forEachBlock(plan, liveMemory(plan, *program), [&](uint32_t block, const CategoryBytes &live) {
      text += fmt::format("{},{},{}", program->name()->string_view(), block, sum(live));
      for (const uint64_t bytes : live)
        text += fmt::format(",{}", bytes);
      text += "\n";
    });
  return text;
}

std::string hydra::report::memoryTimelineJson(const Plan &plan) {
  ordered_json json = ordered_json::array();
  for (const Program *program : *plan.programs()) {
    ordered_json blocks = ordered_json::array(), events = ordered_json::array();
    const LiveMemory memory = liveMemory(plan, *program);
    forEachBlock(plan, memory, [&](uint32_t, const CategoryBytes &live) {
      blocks.push_back({{"live_bytes", sum(live)}, {"by_category", categoriesJson(live)}});
    });
    for (const MemoryEvent &event : memoryEvents(*program, memory)) {
      const Tensor &tensor = *plan.tensors()->Get(event.tensor);
      events.push_back({{"microseconds", event.microseconds},
                        {"bytes", event.bytes},
                        {"tensor", tensor.name()->str()},
                        {"category", categoryName(tensor.category())},
                        {"path", pathText(plan, tensor.path())}});
    }
    json.push_back({{"program", program->name()->str()}, {"blocks", blocks}, {"events", events}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}
