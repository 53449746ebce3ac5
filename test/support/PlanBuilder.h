// Small plans written by hand, for tests of the loader, the executors and the tools.
#pragma once

#include "runtime/plan/Actions.h"
#include "runtime/plan/PlanFile.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hydra::test {

using Blocks = std::vector<std::unique_ptr<planfile::BlockT>>;

inline planfile::Arg reads(uint32_t tensor) { return {planfile::Access::read, tensor}; }
inline planfile::Arg writes(uint32_t tensor) { return {planfile::Access::write, tensor}; }
inline planfile::Arg updates(uint32_t tensor) { return {planfile::Access::read_write, tensor}; }

/// A block that launches kernel `kernel`.
inline std::unique_ptr<planfile::BlockT> launch(std::string name, uint32_t kernel, int64_t rows,
                                                int64_t grain, std::vector<planfile::Arg> args) {
  planfile::LaunchT action;
  action.kernel = kernel;
  action.rows = rows;
  action.grain = grain;
  planfile::StepT step;
  step.name = std::move(name);
  step.action.Set(action);
  step.args = std::move(args);
  auto block = std::make_unique<planfile::BlockT>();
  block->node.Set(std::move(step));
  return block;
}

/// A block with this action, such as MatmulT.
template <typename Table>
std::unique_ptr<planfile::BlockT> call(Table action, std::vector<planfile::Arg> args) {
  planfile::StepT step;
  step.action.Set(std::move(action));
  step.name = runtime::wordOf(step.action.type);
  step.args = std::move(args);
  auto block = std::make_unique<planfile::BlockT>();
  block->node.Set(std::move(step));
  return block;
}

/// A block of this name for tests in which it does not matter what a step does.
inline std::unique_ptr<planfile::BlockT> step(std::string name, std::vector<planfile::Arg> args) {
  auto block = call(planfile::CopyT(), std::move(args));
  block->node.AsStep()->name = std::move(name);
  return block;
}

inline std::unique_ptr<planfile::BlockT>
loop(uint64_t count, std::vector<planfile::LoopStride> strides, Blocks body) {
  planfile::LoopT node;
  node.count = count;
  node.strides = std::move(strides);
  node.blocks = std::move(body);
  auto block = std::make_unique<planfile::BlockT>();
  block->node.Set(std::move(node));
  return block;
}

inline std::unique_ptr<planfile::BlockT> choose(uint32_t selector, std::vector<Blocks> cases) {
  planfile::SwitchT node;
  node.selector = selector;
  for (Blocks &blocks : cases) {
    node.cases.push_back(std::make_unique<planfile::CaseT>());
    node.cases.back()->blocks = std::move(blocks);
  }
  auto block = std::make_unique<planfile::BlockT>();
  block->node.Set(std::move(node));
  return block;
}

/// A list of blocks, which are moved from (initializer lists cannot hold unique_ptr).
template <typename... Block> Blocks blocks(Block... block) {
  Blocks result;
  (result.push_back(std::move(block)), ...);
  return result;
}
/// Grows a plan for the CPU. Every function that adds something returns its index.
class PlanBuilder {
public:
  planfile::PlanT plan;

  PlanBuilder() {
    plan.header = std::make_unique<planfile::HeaderT>();
    plan.header->producer = "PlanBuilder";
    plan.header->model_file = "model.mlir";
    plan.header->model = "test";
    plan.header->precision = "fp32";
    plan.header->mode = "train";
    plan.target = std::make_unique<planfile::TargetT>();
    plan.target->name = "any";
    plan.segments = {planfile::Segment(0, 64), planfile::Segment(0, 64), planfile::Segment(0, 64)};
    plan.files = {"model.mlir"};
    plan.locations = {planfile::Location(0, 1, 1)};
  }

  /// A dense tensor behind everything else in its segment, aligned to 64 bytes.
  uint32_t tensor(std::string name, std::vector<int64_t> shape,
                  planfile::SegmentKind segment = planfile::SegmentKind::transient,
                  planfile::DType dtype = planfile::DType::f32) {
    const uint64_t offset = (sizeOf(segment) + 63) / 64 * 64;
    return tensorAt(std::move(name), std::move(shape), segment, offset, dtype);
  }

  /// A dense tensor at an offset; the segment grows to hold it.
  uint32_t tensorAt(std::string name, std::vector<int64_t> shape, planfile::SegmentKind segment,
                    uint64_t offset, planfile::DType dtype = planfile::DType::f32) {
    std::vector<int64_t> strides(shape.size());
    int64_t elements = 1;
    for (size_t i = shape.size(); i-- > 0; elements *= shape[i])
      strides[i] = elements;
    const uint64_t end = offset + elements * bytesOf(dtype);
    planfile::Segment &entry = plan.segments[static_cast<size_t>(segment)];
    entry = planfile::Segment(std::max(entry.size(), end), entry.alignment());
    return view(std::move(name), std::move(shape), std::move(strides), segment, offset, dtype);
  }

  /// A tensor over bytes that are there already.
  uint32_t view(std::string name, std::vector<int64_t> shape, std::vector<int64_t> strides,
                planfile::SegmentKind segment, uint64_t offset,
                planfile::DType dtype = planfile::DType::f32) {
    auto entry = std::make_unique<planfile::TensorT>();
    entry->name = std::move(name);
    entry->dtype = dtype;
    entry->shape = std::move(shape);
    entry->strides = std::move(strides);
    entry->segment = segment;
    entry->offset = offset;
    plan.tensors.push_back(std::move(entry));
    return plan.tensors.size() - 1;
  }

  /// A parameter, or with `momentOf` a state that is a moment; initialised to `value`.
  uint32_t variable(std::string name, std::vector<int64_t> shape, double value = 0,
                    int32_t momentOf = -1) {
    auto entry = std::make_unique<planfile::VariableT>();
    entry->name = name;
    entry->role = momentOf < 0 ? planfile::VariableRole::parameter : planfile::VariableRole::moment;
    entry->tensor = tensor(std::move(name), std::move(shape), planfile::SegmentKind::persistent);
    plan.tensors[entry->tensor]->category =
        momentOf < 0 ? planfile::Category::param : planfile::Category::opt_state;
    entry->initializer = std::make_unique<planfile::InitializerT>();
    entry->initializer->value = value;
    entry->owner = momentOf;
    plan.variables.push_back(std::move(entry));
    return plan.variables.size() - 1;
  }

  /// A parameter, or with `momentOf` a moment, that is a member of the unit in `tensor`.
  uint32_t member(std::string name, uint32_t tensor, std::vector<int64_t> shape, uint64_t offset,
                  std::vector<uint32_t> axes = {}, double value = 0, int32_t momentOf = -1) {
    auto entry = std::make_unique<planfile::VariableT>();
    entry->name = std::move(name);
    entry->role = momentOf < 0 ? planfile::VariableRole::parameter : planfile::VariableRole::moment;
    entry->tensor = tensor;
    entry->initializer = std::make_unique<planfile::InitializerT>();
    entry->initializer->value = value;
    entry->owner = momentOf;
    entry->member = std::make_unique<planfile::MemberT>();
    entry->member->shape = std::move(shape);
    entry->member->offset = offset;
    entry->member->axes = std::move(axes);
    plan.variables.push_back(std::move(entry));
    return plan.variables.size() - 1;
  }

  /// An axis of the mesh, within those before.
  uint32_t axis(std::string name, uint32_t size, int32_t rank = -1) {
    auto entry = std::make_unique<planfile::MeshAxisT>();
    entry->name = std::move(name);
    entry->size = size;
    entry->rank = rank;
    plan.mesh.push_back(std::move(entry));
    return plan.mesh.size() - 1;
  }

  /// A scalar with a constant schedule.
  uint32_t scalar(std::string name, double value, planfile::DType dtype = planfile::DType::f32) {
    auto entry = std::make_unique<planfile::ScalarT>();
    entry->name = name;
    entry->tensor = tensor(std::move(name), {}, planfile::SegmentKind::persistent, dtype);
    entry->schedule = std::make_unique<planfile::ScheduleT>();
    entry->schedule->peak = value;
    plan.scalars.push_back(std::move(entry));
    return plan.scalars.size() - 1;
  }

  /// An argument: a scalar's tensor.
  planfile::Arg readsScalar(uint32_t scalar) const { return reads(plan.scalars[scalar]->tensor); }

  /// A native kernel; `code` is the shared object, of which nothing but an executor takes notice.
  uint32_t kernel(std::string symbol, uint32_t argCount, std::vector<uint8_t> code = {0x7f}) {
    auto blob = std::make_unique<planfile::BlobT>();
    blob->data = std::move(code);
    plan.blobs.push_back(std::move(blob));
    auto entry = std::make_unique<planfile::KernelT>();
    entry->name = symbol;
    entry->symbol = std::move(symbol);
    entry->blob = plan.blobs.size() - 1;
    entry->arg_count = argCount;
    plan.kernels.push_back(std::move(entry));
    return plan.kernels.size() - 1;
  }

  /// Call after all tensors are there: the program may use the whole transient segment. Its role is
  /// that of the name.
  planfile::ProgramT &program(std::string name, Blocks body) {
    auto entry = std::make_unique<planfile::ProgramT>();
    entry->role = roleOf(name);
    entry->name = std::move(name);
    entry->blocks = std::move(body);
    entry->transient_bytes = sizeOf(planfile::SegmentKind::transient);
    plan.programs.push_back(std::move(entry));
    return *plan.programs.back();
  }

  void input(planfile::ProgramT &program, std::string name, planfile::InputKind kind,
             uint32_t tensor, int64_t limit = 0) {
    auto entry = std::make_unique<planfile::InputT>();
    entry->name = std::move(name);
    entry->kind = kind;
    entry->tensor = tensor;
    entry->limit = limit;
    program.inputs.push_back(std::move(entry));
  }

  void output(planfile::ProgramT &program, std::string name, uint32_t tensor) {
    auto entry = std::make_unique<planfile::OutputT>();
    entry->name = std::move(name);
    entry->tensor = tensor;
    program.outputs.push_back(std::move(entry));
  }

  /// The loaded plan; throws what the loader says.
  runtime::PlanFile load() const {
    return runtime::PlanFile::parse(runtime::encodePlan(plan), "plan.fb");
  }

private:
  static planfile::ProgramRole roleOf(std::string_view name) {
    if (name == "logits")
      return planfile::ProgramRole::generate;
    for (const planfile::ProgramRole role : planfile::EnumValuesProgramRole())
      if (planfile::EnumNameProgramRole(role) == name)
        return role;
    return planfile::ProgramRole::custom;
  }
  uint64_t sizeOf(planfile::SegmentKind segment) const {
    return plan.segments[static_cast<size_t>(segment)].size();
  }
  static uint64_t bytesOf(planfile::DType dtype) {
    return support::byteSize(static_cast<support::DType>(dtype));
  }
};

} // namespace hydra::test
