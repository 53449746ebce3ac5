// Rendering of everything but the blocks of programs (StepsText.cpp).
#include "tools/hydra-inspect/PlanText.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/Schedule.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/report/LiveMemory.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/Units.h"
#include "tools/hydra-inspect/Cubin.h"

#include <fmt/ranges.h>

#include <iterator>
#include <memory>

namespace hydra::inspect {

using namespace planfile;
using namespace report;

namespace {

constexpr size_t kPictureRows = 24;
constexpr size_t kPictureColumns = 72;
constexpr size_t kLargest = 10;

template <typename... Args>
void line(std::string &out, fmt::format_string<Args...> format, Args &&...args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out += '\n';
}

std::string pairs(const flatbuffers::Vector<flatbuffers::Offset<KeyValue>> &list) {
  std::string text;
  for (const KeyValue *pair : list)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", pair->key()->string_view(),
                        pair->value()->string_view());
  return text.empty() ? "(none)" : text;
}

std::string strings(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> &list) {
  std::string text;
  for (const flatbuffers::String *string : list)
    text += (text.empty() ? "" : " ") + string->str();
  return text.empty() ? "(none)" : text;
}

std::string typeText(const Tensor &tensor, const std::vector<int64_t> &shape) {
  return fmt::format("{} [{}]", dtypeName(tensor), fmt::join(shape, ", "));
}
std::string tensorType(const Tensor &tensor) { return typeText(tensor, shapeOf(tensor)); }

/// Where a member of a unit lies.
std::string unitText(const Plan &plan, const Variable &variable) {
  const Member *member = variable.member();
  if (!member)
    return "";
  const std::span<const uint32_t> axes = runtime::axesOf(variable);
  return fmt::format("  at {} of {}{}", member->offset(), tensorName(plan, variable.tensor()),
                     axes.empty() ? "" : " over " + runtime::axesText(plan, axes));
}

std::string initializerText(const Initializer &init) {
  switch (init.kind()) {
  case InitKind::constant:
    return fmt::format("constant({})", init.value());
  case InitKind::normal:
    return fmt::format("normal({})", init.std());
  case InitKind::trunc_normal:
    return fmt::format("trunc_normal({}, {})", init.std(), init.cut());
  case InitKind::uniform:
    return fmt::format("uniform({})", init.limit());
  case InitKind::shuffle:
    return fmt::format("shuffle({} values)", init.table()->size());
  }
  return "";
}

void addCategories(std::string &out, const CategoryBytes &bytes) {
  uint64_t total = 0;
  for (const uint64_t part : bytes)
    total += part;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0) {
      line(out, "    {} {:<16} {:>10}  {:5.1f}%", categoryLetter(Category(i)),
           categoryName(Category(i)), bytesText(bytes[i]),
           100.0 * static_cast<double>(bytes[i]) / static_cast<double>(total));
    }
  }
}

void addProgramMemory(std::string &out, const Plan &plan, const Program &program) {
  const LiveMemory memory = liveMemory(plan, program);
  line(out, "\n  program {}: {} of the transient segment, {} live at the peak (block {} of {})",
       program.name()->string_view(), bytesText(program.transient_bytes()),
       bytesText(memory.peakBytes), memory.peakBlock, memory.blocks);
  addCategories(out, memory.atPeak);
  if (memory.pieces.empty())
    return;
  line(out, "    largest at the peak:");
  for (size_t i = 0; i < std::min(kLargest, memory.largestAtPeak.size()); ++i) {
    const auto &[index, bytes] = memory.largestAtPeak[i];
    const Tensor &tensor = *plan.tensors()->Get(index);
    line(out, "      {:>10}  {:<16} {}  {}", bytesText(bytes), categoryName(tensor.category()),
         tensor.name()->string_view(), locationText(plan, tensor.location()));
  }
  line(out, "    live ranges, blocks from left to right:");
  uint64_t end = 1;
  for (const LivePiece &piece : memory.pieces)
    end = std::max(end, piece.end);
  const auto picture = drawMemory(plan, memory, end, kPictureRows, kPictureColumns);
  for (size_t row = 0; row < picture.size(); ++row)
    line(out, "      {:>10} {}", bytesText(end * row / picture.size()), picture[row]);
}

} // namespace

std::string headerText(const runtime::PlanFile &file) {
  const Plan &plan = file.plan();
  const Header &header = *plan.header();
  const Target &target = *plan.target();
  const auto size = [&](SegmentKind kind) {
    return plan.segments()->Get(static_cast<uint32_t>(kind))->size();
  };
  std::string out;
  line(out, "{}: plan format {}, {}", file.origin(), runtime::kPlanVersion,
       bytesText(file.bytes().size()));
  line(out, "  produced by  {}", header.producer()->string_view());
  line(out, "  model        {} from {}{}", header.model()->string_view(),
       header.model_file()->string_view(),
       header.preset() ? ", preset " + header.preset()->str() : "");
  line(out, "  mode         {}, {}, accumulation {}", header.mode()->string_view(),
       header.precision()->string_view(), plan.accumulation());
  if (plan.phases())
    for (const TrainingPhase *phase : *plan.phases())
      line(out, "  phase        {} to step {}",
           plan.programs()->Get(phase->program())->name()->string_view(), phase->last_step());
  if (plan.optimizations())
    for (const Optimization *one : *plan.optimizations())
      line(out, "  optimization {}: {}, in the safe form {}{}", one->name()->string_view(),
           one->fast()->string_view(), one->safe()->string_view(),
           one->programs() && one->programs()->size() > 0 ? "; tried alone" : "");
  line(out, "  target       {} ({})", target.name()->string_view(),
       target.kind() == TargetKind::cpu ? "cpu with " + strings(*target.cpu_features())
                                        : target.sm_arch()->str());
  line(out, "  symbols      {}", pairs(*header.symbols()));
  line(out, "  options      {}", pairs(*header.options()));
  line(out, "  passes       {}", strings(*header.passes()));
  line(out, "  predicted    {} flops, {} of traffic, {:.1f} us", countText(plan.cost()->flops()),
       bytesText(plan.cost()->bytes()), plan.cost()->microseconds());
  line(out, "  memory       {}",
       bytesText(size(SegmentKind::persistent) + size(SegmentKind::transient)));
  if (size(SegmentKind::host) > 0)
    line(out, "  host memory  {}", bytesText(size(SegmentKind::host)));
  return out;
}

std::string parametersText(const Plan &plan) {
  std::string list;
  size_t params = 0;
  uint64_t elements = 0;
  for (const Variable *variable : *plan.variables()) {
    const bool isParam = variable->role() == VariableRole::parameter;
    if (isParam) {
      ++params;
      elements += static_cast<uint64_t>(runtime::elementsOf(plan, *variable));
    }
    const auto owner = [&] {
      return plan.variables()->Get(static_cast<uint32_t>(variable->owner()))->name()->str();
    };
    line(list, "  {:<12} {:<32} {:<20} {}{}{}{}{}", EnumNameVariableRole(variable->role()),
         variable->name()->string_view(),
         typeText(*plan.tensors()->Get(variable->tensor()), runtime::shapeOf(plan, *variable)),
         initializerText(*variable->initializer()), unitText(plan, *variable),
         variable->group()        ? "  group " + variable->group()->str()
         : variable->owner() >= 0 ? "  of " + owner()
                                  : "",
         variable->frozen() ? "  frozen" : "", variable->packed() ? "  two in a byte" : "");
  }
  for (const Scalar *scalar : *plan.scalars())
    line(list, "  scalar       {:<32} {:<20} {}", scalar->name()->string_view(),
         tensorType(*plan.tensors()->Get(scalar->tensor())),
         runtime::scheduleText(*std::unique_ptr<ScheduleT>(scalar->schedule()->UnPack())));
  return fmt::format("parameters: {} with {} elements; {} states; {} scalars\n", params,
                     countText(elements), plan.variables()->size() - params,
                     plan.scalars()->size()) +
         list;
}

std::string memoryText(const Plan &plan) {
  std::string out = "memory\n";
  for (uint32_t i = 0; i < plan.segments()->size(); ++i) {
    const Segment &segment = *plan.segments()->Get(i);
    if (SegmentKind(i) == SegmentKind::host && segment.size() == 0)
      continue;
    line(out, "  {} segment: {} ({} bytes, aligned to {})", EnumNameSegmentKind(SegmentKind(i)),
         bytesText(segment.size()), countText(segment.size()), segment.alignment());
    if (SegmentKind(i) == SegmentKind::persistent)
      addCategories(out, persistentMemory(plan));
  }
  for (const Program *program : *plan.programs())
    addProgramMemory(out, plan, *program);
  return out;
}

std::string kernelsText(const Plan &plan) {
  std::string out = fmt::format("kernels: {}\n", plan.kernels()->size());
  const std::vector<std::optional<KernelResources>> resources = resourcesOf(plan);
  for (flatbuffers::uoffset_t i = 0; i < plan.kernels()->size(); ++i) {
    const Kernel *kernel = plan.kernels()->Get(i);
    const Blob &blob = *plan.blobs()->Get(kernel->blob());
    std::string shape;
    if (plan.target()->kind() == TargetKind::cuda) {
      shape = fmt::format(", grid [{}, {}, {}], block [{}, {}, {}], {} shared", kernel->grid()->x(),
                          kernel->grid()->y(), kernel->grid()->z(), kernel->block()->x(),
                          kernel->block()->y(), kernel->block()->z(),
                          bytesText(kernel->shared_bytes()));
      if (kernel->instances() > 1)
        shape += fmt::format(", up to {} lists of arguments", kernel->instances());
      if (resources[i])
        shape += fmt::format(", {} registers, {} B stack", resources[i]->registers,
                             resources[i]->stackBytes);
    }
    line(out, "  {:<32} {} in {} blob {} ({}), {} arguments{}", kernel->name()->string_view(),
         kernel->symbol()->string_view(), EnumNameBlobKind(blob.kind()), kernel->blob(),
         bytesText(blob.data()->size()), kernel->arg_count(), shape);
  }
  return out;
}

} // namespace hydra::inspect
