// Everything that a column holds is a number; -1 is none. Times are microseconds, rounded to
// nanoseconds, sizes bytes.
#include "tools/hydra-inspect/PageData.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/report/LiveMemory.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/PlanNodes.h"
#include "runtime/report/Units.h"
#include "tools/hydra-inspect/Paints.h"
#include "tools/hydra-inspect/PlanText.h"

#include <fmt/ranges.h>

#include <cmath>
#include <set>
#include <unordered_map>

namespace hydra::inspect {

using namespace planfile;
using namespace report;
using Json = nlohmann::ordered_json;

namespace {

double rounded(double microseconds) { return std::round(1000 * microseconds) / 1000; }

/// Texts that columns name by number.
class Strings {
public:
  size_t operator()(std::string_view text) {
    const auto [known, isNew] = numbers.try_emplace(std::string(text), list.size());
    if (isNew)
      list.emplace_back(text);
    return known->second;
  }
  std::vector<std::string> list;

private:
  std::unordered_map<std::string, size_t> numbers;
};

/// Lists of the same length by name.
class Columns {
public:
  template <typename T> void add(const char *name, const T &value) {
    columns[name].push_back(value);
  }
  Json take() { return std::move(columns); }

private:
  Json columns = Json::object();
};

template <typename E> std::vector<std::string> namesOf(const char *(*name)(E)) {
  std::vector<std::string> names;
  for (size_t i = 0; i <= static_cast<size_t>(E::MAX); ++i)
    names.emplace_back(name(E(i)));
  return names;
}

class Writer {
public:
  Writer(const runtime::PlanFile &file, const PageExtras &extras)
      : file(file), plan(file.plan()), extras(extras) {}

  Json write() {
    Json out = {{"title", file.origin()}, {"palette", kPalette}, {"textures", kTextures}};
    out["facts"] = facts();
    out["categories"] = Json::array();
    for (size_t i = 0; i <= static_cast<size_t>(Category::MAX); ++i)
      out["categories"].push_back(categoryName(Category(i)));
    out["classes"] = namesOf<OpClass>(EnumNameOpClass);
    out["phases"] = namesOf<Phase>(EnumNamePhase);
    out["category_paints"] = paintsOfCategories(plan);
    out["class_paints"] = paintsOfClasses(plan);
    addPlaces(out);
    out["tensors"] = tensors();
    out["persistent"] = persistent();
    out["persistent_bytes"] =
        plan.segments()->Get(static_cast<uint32_t>(SegmentKind::persistent))->size();
    out["programs"] = Json::array();
    for (const Program *one : *plan.programs())
      out["programs"].push_back(program(*one));
    out["strings"] = std::move(strings.list);
    return out;
  }

private:
  Json facts() const {
    const Header &header = *plan.header();
    Json list = Json::array();
    const auto add = [&](const char *name, const std::string &value) {
      list.push_back({name, value});
    };
    add("model", fmt::format("{} from {}", header.model()->string_view(),
                             header.model_file()->string_view()));
    if (header.preset())
      add("preset", header.preset()->str());
    add("mode",
        fmt::format("{}, {}", header.mode()->string_view(), header.precision()->string_view()));
    add("target", plan.target()->name()->str());
    std::string symbols;
    for (const KeyValue *pair : *header.symbols())
      symbols += fmt::format("{}{}={}", symbols.empty() ? "" : " ", pair->key()->string_view(),
                             pair->value()->string_view());
    add("symbols", symbols);
    std::string options;
    for (const KeyValue *pair : *header.options())
      options += fmt::format("{}{}={}", options.empty() ? "" : " ", pair->key()->string_view(),
                             pair->value()->string_view());
    add("options", options);
    add("predicted",
        fmt::format("{} flops, {} of traffic, {:.1f} us", countText(plan.cost()->flops()),
                    bytesText(plan.cost()->bytes()), plan.cost()->microseconds()));
    return list;
  }

  void addPlaces(Json &out) {
    out["files"] = Json::array();
    for (uint32_t i = 0; i < plan.files()->size(); ++i) {
      Json one = {{"name", plan.files()->Get(i)->str()}};
      if (extras.model && extras.model->file == i)
        one["lines"] = extras.model->lines;
      out["files"].push_back(std::move(one));
    }
    Columns columns;
    for (const Location *location : *plan.locations()) {
      columns.add("file", location->file());
      columns.add("line", location->line());
    }
    out["locations"] = columns.take();
  }

  Json tensors() {
    Columns columns;
    for (const Tensor *tensor : *plan.tensors()) {
      columns.add("name", strings(tensor->name()->string_view()));
      columns.add("type", strings(fmt::format("{} [{}]", dtypeName(*tensor),
                                              fmt::join(shapeOf(*tensor), ", "))));
      columns.add("category", static_cast<int>(tensor->category()));
      columns.add("path", path(tensor->path()));
      columns.add("layer", tensor->layer());
      columns.add("location", tensor->location());
      columns.add("buffer", tensor->buffer());
    }
    return columns.take();
  }

  /// A part of the model as a text; -1 for none.
  int64_t path(int32_t index) {
    return index < 0 ? -1 : static_cast<int64_t>(strings(pathText(plan, index)));
  }

  /// Variables and scalars. What lies in a unit has its own part of it; but of one that ranks share
  /// out, this rank has any part, so it is shown as a whole.
  Json persistent() {
    Columns columns;
    const auto add = [&](const std::string &name, const char *role, uint32_t index, uint64_t begin,
                         uint64_t end) {
      columns.add("name", strings(name));
      columns.add("role", strings(role));
      columns.add("tensor", index);
      columns.add("begin", begin);
      columns.add("end", end);
    };
    std::set<uint32_t> shared;
    for (const Variable *variable : *plan.variables()) {
      const uint32_t index = variable->tensor();
      const Tensor &tensor = *plan.tensors()->Get(index);
      if (tensor.segment() == SegmentKind::host)
        continue; // no address of the device
      const Member *member = variable->member();
      const bool isShared = !runtime::axesOf(*variable).empty();
      if (isShared && !shared.insert(index).second)
        continue;
      runtime::ByteRange range = *runtime::byteRange(tensor, {});
      if (member && !isShared) {
        const uint64_t size = runtime::elementSize(tensor);
        range.begin += member->offset() * size;
        range.end = range.begin + uint64_t(runtime::elementsOf(plan, *variable)) * size;
      }
      add(isShared ? tensor.name()->str() : variable->name()->str(),
          EnumNameVariableRole(variable->role()), index, range.begin, range.end);
    }
    for (const Scalar *scalar : *plan.scalars()) {
      const auto range = *runtime::byteRange(*plan.tensors()->Get(scalar->tensor()), {});
      add(scalar->name()->str(), "scalar", scalar->tensor(), range.begin, range.end);
    }
    return columns.take();
  }

  Json program(const Program &program) {
    const LiveMemory memory = liveMemory(plan, program);
    const std::vector<PlanNode> nodes = nodesOf(plan, program);
    Json out = {{"name", program.name()->str()},
                {"transient_bytes", program.transient_bytes()},
                {"peak", {{"bytes", memory.peakBytes}, {"block", memory.peakBlock}}},
                {"steps", steps(nodes)},
                {"pieces", pieces(memory)}};
    const auto known = extras.measured.find(program.name()->str());
    if (known != extras.measured.end())
      out["measured"] = measured(nodes, known->second);
    return out;
  }

  Json steps(const std::vector<PlanNode> &nodes) {
    Columns columns;
    Json arguments = Json::array();
    for (const PlanNode &node : nodes) {
      const Step *step = node.block->node_as_Step();
      columns.add("name", strings(step ? step->name()->str() : wordsOf(*node.block)));
      columns.add("does", strings(step ? actionText(plan, *step) : ""));
      columns.add("place", strings(node.place));
      columns.add("class", step ? static_cast<int>(step->op_class()) : -1);
      columns.add("phase", step ? static_cast<int>(step->phase()) : -1);
      columns.add("path", step ? path(step->path()) : -1);
      columns.add("pass", step && step->pass() >= 0
                              ? static_cast<int64_t>(strings(passText(plan, *step)))
                              : int64_t{-1});
      columns.add("layer", step ? step->layer() : -1);
      columns.add("location", step ? static_cast<int64_t>(step->location()) : -1);
      columns.add("stream", node.block->stream());
      columns.add("depth", node.depth);
      columns.add("times", node.times);
      columns.add("begin", rounded(node.begin));
      columns.add("end", rounded(node.end));
      columns.add("us", step ? rounded(step->cost()->microseconds()) : 0.0);
      columns.add("flops", step ? step->cost()->flops() : 0);
      columns.add("bytes", step ? step->cost()->bytes() : 0);
      Json list = Json::array(); // a tensor, then how it is accessed
      if (step)
        for (const Arg *arg : *step->args()) {
          list.push_back(arg->tensor());
          list.push_back(static_cast<int>(arg->access()));
        }
      arguments.push_back(std::move(list));
    }
    Json out = columns.take();
    out["arguments"] = std::move(arguments);
    return out;
  }

  std::string wordsOf(const Block &block) const {
    if (const Loop *loop = block.node_as_Loop())
      return fmt::format("loop {} times", loop->count());
    return fmt::format("switch on {}", tensorName(plan, block.node_as_Switch()->selector()));
  }

  static Json pieces(const LiveMemory &memory) {
    Columns columns;
    for (const LivePiece &piece : memory.pieces) {
      columns.add("begin", piece.begin);
      columns.add("end", piece.end);
      columns.add("first", piece.first);
      columns.add("last", piece.last);
      columns.add("tensor", piece.tensor);
    }
    return columns.take();
  }

  static Json measured(const std::vector<PlanNode> &nodes, const MeasuredProgram &program) {
    std::unordered_map<std::string, size_t> numbers;
    Json microseconds = Json::array();
    for (size_t i = 0; i < nodes.size(); ++i) {
      numbers.emplace(nodes[i].place, i);
      const auto known = program.byStep.find(nodes[i].place);
      microseconds.push_back(known == program.byStep.end() ? 0.0 : rounded(known->second));
    }
    Columns spans;
    for (const MeasuredSpan &span : program.spans) {
      spans.add("step", numbers.at(span.place));
      spans.add("stream", span.stream);
      spans.add("begin", rounded(span.begin));
      spans.add("end", rounded(span.end));
    }
    return {{"runs", program.runs},
            {"microseconds", rounded(program.microseconds)},
            {"us", std::move(microseconds)},
            {"spans", spans.take()}};
  }

  const runtime::PlanFile &file;
  const Plan &plan;
  const PageExtras &extras;
  Strings strings;
};

} // namespace

Json pageData(const runtime::PlanFile &file, const PageExtras &extras) {
  return Writer(file, extras).write();
}

} // namespace hydra::inspect
