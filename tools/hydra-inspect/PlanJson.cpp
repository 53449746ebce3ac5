// The fields of a plan as JSON values.
#include "tools/hydra-inspect/PlanJson.h"

#include "runtime/plan/Actions.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/report/LiveMemory.h"
#include "runtime/report/PlanNames.h"
#include "tools/hydra-inspect/Cubin.h"

namespace hydra::inspect {

using namespace planfile;
using namespace report;

namespace {

using Pairs = flatbuffers::Vector<flatbuffers::Offset<KeyValue>>;
using Strings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
using Blocks = flatbuffers::Vector<flatbuffers::Offset<Block>>;

Json toJson(const Pairs &pairs) {
  Json out = Json::object();
  for (const KeyValue *pair : pairs)
    out[pair->key()->str()] = pair->value()->str();
  return out;
}

Json toJson(const Strings &strings) {
  Json out = Json::array();
  for (const flatbuffers::String *string : strings)
    out.push_back(string->str());
  return out;
}

Json toJson(const Cost &cost) {
  return {{"flops", cost.flops()}, {"bytes", cost.bytes()}, {"microseconds", cost.microseconds()}};
}

Json toJson(const CategoryBytes &bytes) {
  Json out = Json::object();
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      out[categoryName(Category(i))] = bytes[i];
  return out;
}

void addFunction(Json &out, const runtime::ActionView &action) {
  out["function"] = std::string(runtime::wordOf(action.type));
  out["attrs"] = Json::object();
  for (const auto &[name, value] : runtime::fieldsOf(action))
    std::visit([&](auto field) { out["attrs"][std::string(name)] = field; }, value);
}

Json toJson(const Dim3 &dim) { return {dim.x(), dim.y(), dim.z()}; }

Json toJson(const Initializer &init) {
  Json out = {{"kind", EnumNameInitKind(init.kind())}};
  switch (init.kind()) {
  case InitKind::constant:
    out["value"] = init.value();
    break;
  case InitKind::normal:
    out["std"] = init.std();
    break;
  case InitKind::trunc_normal:
    out["std"] = init.std();
    out["cut"] = init.cut();
    break;
  case InitKind::uniform:
    out["limit"] = init.limit();
    break;
  case InitKind::shuffle:
    out["table"] = std::vector<double>(init.table()->begin(), init.table()->end());
    break;
  }
  return out;
}

Json toJson(const Schedule &schedule) {
  return {{"kind", EnumNameScheduleKind(schedule.kind())},
          {"peak", schedule.peak()},
          {"floor", schedule.floor()},
          {"first", schedule.first()},
          {"warmup_steps", schedule.warmup_steps()},
          {"stable_steps", schedule.stable_steps()},
          {"total_steps", schedule.total_steps()},
          {"clamp", schedule.clamp()},
          {"delay_steps", schedule.delay_steps()},
          {"levels", schedule.levels()}};
}

/// The name of something, and what its tensor is.
Json named(const flatbuffers::String &name, const Plan &plan, uint32_t index) {
  const Tensor &tensor = *plan.tensors()->Get(index);
  return {{"name", name.str()}, {"shape", shapeOf(tensor)}, {"dtype", dtypeName(tensor)}};
}

Json toJson(const Plan &plan, const Arg &arg) {
  return {{"tensor", arg.tensor()},
          {"name", tensorName(plan, arg.tensor())},
          {"access", EnumNameAccess(arg.access())}};
}

Json toJson(const Plan &plan, const Step &step) {
  Json out = {{"name", step.name()->str()}};
  if (const Launch *launch = step.action_as_Launch()) {
    out["kernel"] = plan.kernels()->Get(launch->kernel())->name()->str();
    out["rows"] = launch->rows();
    out["grain"] = launch->grain();
  } else {
    addFunction(out, {step.action_type(), step.action()});
  }
  Json args = Json::array();
  for (const Arg *arg : *step.args())
    args.push_back(toJson(plan, *arg));
  out["args"] = std::move(args);
  if (step.alternatives()) {
    for (const Alternative *one : *step.alternatives()) {
      Json alternative = {{"description", one->description()->str()}};
      if (one->action_type() != Action::NONE)
        addFunction(alternative, {one->action_type(), one->action()});
      if (one->microseconds() >= 0)
        alternative["microseconds"] = one->microseconds();
      out["alternatives"].push_back(std::move(alternative));
    }
    out["chosen"] = step.chosen();
  }
  out["phase"] = EnumNamePhase(step.phase());
  if (step.phase_flops())
    out["phase_flops"] =
        std::vector<uint64_t>(step.phase_flops()->begin(), step.phase_flops()->end());
  out["op_class"] = EnumNameOpClass(step.op_class());
  out["bound"] = EnumNameBound(step.bound());
  if (step.layer() >= 0)
    out["layer"] = step.layer();
  if (step.path() >= 0)
    out["path"] = pathText(plan, step.path());
  if (step.pass() >= 0)
    out["pass"] = passText(plan, step);
  out["location"] = locationText(plan, step.location());
  out["cost"] = toJson(*step.cost());
  return out;
}

Json toJson(const Plan &plan, const Blocks &blocks);

Json toJson(const Plan &plan, const Block &block) {
  Json out = Json::object();
  if (block.stream() != 0)
    out["stream"] = block.stream();
  if (block.waits())
    out["waits"] = std::vector<uint32_t>(block.waits()->begin(), block.waits()->end());
  if (block.signals() >= 0)
    out["signals"] = block.signals();
  if (const Step *step = block.node_as_Step()) {
    out["step"] = toJson(plan, *step);
  } else if (const Loop *loop = block.node_as_Loop()) {
    Json strides = Json::array();
    for (const LoopStride *stride : *loop->strides()) {
      strides.push_back({{"tensor", stride->tensor()},
                         {"name", tensorName(plan, stride->tensor())},
                         {"bytes", stride->bytes()}});
    }
    out["loop"] = {{"count", loop->count()},
                   {"strides", std::move(strides)},
                   {"blocks", toJson(plan, *loop->blocks())}};
  } else {
    const Switch &choice = *block.node_as_Switch();
    Json cases = Json::array();
    for (const Case *one : *choice.cases())
      cases.push_back({{"blocks", toJson(plan, *one->blocks())}});
    out["switch"] = {{"selector", tensorName(plan, choice.selector())},
                     {"divisor", choice.divisor()},
                     {"cases", std::move(cases)}};
  }
  return out;
}

Json toJson(const Plan &plan, const Blocks &blocks) {
  Json out = Json::array();
  for (const Block *block : blocks)
    out.push_back(toJson(plan, *block));
  return out;
}

Json toJson(const Plan &plan, const LiveMemory &memory) {
  Json largest = Json::array();
  for (const auto &[index, bytes] : memory.largestAtPeak)
    largest.push_back({{"name", tensorName(plan, index)}, {"bytes", bytes}});
  return {{"bytes", memory.peakBytes},
          {"block", memory.peakBlock},
          {"categories", toJson(memory.atPeak)},
          {"tensors", std::move(largest)}};
}

} // namespace

void addHeader(Json &out, const runtime::PlanFile &file) {
  const Plan &plan = file.plan();
  const Header &header = *plan.header();
  const Target &target = *plan.target();
  out["file"] = file.origin();
  out["version"] = runtime::kPlanVersion;
  out["bytes"] = file.bytes().size();
  out["header"] = {
      {"producer", header.producer()->str()},   {"model_file", header.model_file()->str()},
      {"model", header.model()->str()},         {"preset", std::string(textOf(header.preset()))},
      {"precision", header.precision()->str()}, {"mode", header.mode()->str()},
      {"symbols", toJson(*header.symbols())},   {"options", toJson(*header.options())},
      {"passes", toJson(*header.passes())}};
  out["target"] = {{"kind", EnumNameTargetKind(target.kind())},
                   {"name", target.name()->str()},
                   {"cpu_features", toJson(*target.cpu_features())}};
  if (target.sm_arch()) {
    out["target"]["sm_arch"] = target.sm_arch()->str();
    out["target"]["multiprocessors"] = target.multiprocessors();
    out["target"]["block_shared_bytes"] = target.block_shared_bytes();
  }
  out["accumulation"] = plan.accumulation();
  out["phases"] = Json::array();
  if (plan.phases())
    for (const TrainingPhase *phase : *plan.phases())
      out["phases"].push_back({{"program", plan.programs()->Get(phase->program())->name()->str()},
                               {"last_step", phase->last_step()}});
  if (plan.optimizations())
    for (const Optimization *one : *plan.optimizations()) {
      out["optimizations"].push_back({{"name", one->name()->str()},
                                      {"fast", one->fast()->str()},
                                      {"safe", one->safe()->str()}});
      if (one->programs()) // which do without it
        for (const uint32_t program : *one->programs())
          out["optimizations"].back()["programs"].push_back(
              plan.programs()->Get(program)->name()->str());
    }
  out["cost"] = toJson(*plan.cost());
}

void addParameters(Json &out, const Plan &plan) {
  Json parameters = Json::array();
  Json states = Json::array();
  Json scalars = Json::array();
  for (const Variable *variable : *plan.variables()) {
    Json entry = named(*variable->name(), plan, variable->tensor());
    if (const Member *member = variable->member()) {
      entry["shape"] = runtime::shapeOf(plan, *variable);
      entry["unit"] = {{"tensor", variable->tensor()}, {"offset", member->offset()}};
      if (const std::span<const uint32_t> axes = runtime::axesOf(*variable); !axes.empty())
        entry["unit"]["axis"] = runtime::axesText(plan, axes);
    }
    entry["initializer"] = toJson(*variable->initializer());
    if (variable->group())
      entry["group"] = variable->group()->str();
    if (variable->frozen())
      entry["frozen"] = true;
    if (variable->packed()) {
      entry["shape"] = runtime::shapeOf(plan, *variable);
      entry["packed"] = true;
    }
    if (const Adapter *adapter = variable->adapter())
      entry["adapter"] = {{"tensor", adapter->tensor()->str()}, {"alpha", adapter->alpha()}};
    entry["role"] = EnumNameVariableRole(variable->role());
    if (variable->owner() >= 0)
      entry["owner"] =
          plan.variables()->Get(static_cast<uint32_t>(variable->owner()))->name()->str();
    (variable->role() == VariableRole::parameter ? parameters : states).push_back(std::move(entry));
  }
  for (const Scalar *scalar : *plan.scalars()) {
    Json entry = named(*scalar->name(), plan, scalar->tensor());
    entry["schedule"] = toJson(*scalar->schedule());
    scalars.push_back(std::move(entry));
  }
  out["parameters"] = std::move(parameters);
  out["states"] = std::move(states);
  out["scalars"] = std::move(scalars);
}

void addMemory(Json &out, const Plan &plan) {
  Json segments = Json::array();
  for (uint32_t i = 0; i < plan.segments()->size(); ++i) {
    const Segment &segment = *plan.segments()->Get(i);
    segments.push_back({{"kind", EnumNameSegmentKind(SegmentKind(i))},
                        {"size", segment.size()},
                        {"alignment", segment.alignment()}});
  }
  segments[static_cast<size_t>(SegmentKind::persistent)]["categories"] =
      toJson(persistentMemory(plan));
  out["segments"] = std::move(segments);
  Json tensors = Json::array();
  for (const Tensor *tensor : *plan.tensors()) {
    Json entry = {
        {"name", tensor->name()->str()},
        {"shape", shapeOf(*tensor)},
        {"dtype", dtypeName(*tensor)},
        {"strides", std::vector<int64_t>(tensor->strides()->begin(), tensor->strides()->end())},
        {"segment", EnumNameSegmentKind(tensor->segment())},
        {"offset", tensor->offset()},
        {"category", categoryName(tensor->category())},
        {"location", locationText(plan, tensor->location())}};
    if (tensor->layer() >= 0)
      entry["layer"] = tensor->layer();
    if (tensor->path() >= 0)
      entry["path"] = pathText(plan, tensor->path());
    tensors.push_back(std::move(entry));
  }
  out["tensors"] = std::move(tensors);
  Json memory = Json::object();
  for (const Program *program : *plan.programs()) {
    memory[program->name()->str()] = {{"transient_bytes", program->transient_bytes()},
                                      {"live_bytes", program->live_bytes()},
                                      {"peak", toJson(plan, liveMemory(plan, *program))}};
  }
  out["memory"] = std::move(memory);
}

void addKernels(Json &out, const Plan &plan) {
  Json kernels = Json::array();
  const std::vector<std::optional<KernelResources>> resources = resourcesOf(plan);
  for (flatbuffers::uoffset_t i = 0; i < plan.kernels()->size(); ++i) {
    const Kernel *kernel = plan.kernels()->Get(i);
    const Blob &blob = *plan.blobs()->Get(kernel->blob());
    Json entry = {{"name", kernel->name()->str()},         {"symbol", kernel->symbol()->str()},
                  {"args", kernel->arg_count()},           {"blob", kernel->blob()},
                  {"kind", EnumNameBlobKind(blob.kind())}, {"bytes", blob.data()->size()}};
    if (plan.target()->kind() == TargetKind::cuda) {
      entry["grid"] = toJson(*kernel->grid());
      entry["block"] = toJson(*kernel->block());
      entry["shared_bytes"] = kernel->shared_bytes();
      entry["instances"] = kernel->instances();
      if (resources[i]) {
        entry["registers"] = resources[i]->registers;
        entry["stack_bytes"] = resources[i]->stackBytes;
      }
    }
    kernels.push_back(std::move(entry));
  }
  out["kernels"] = std::move(kernels);
}

void addSteps(Json &out, const Plan &plan) {
  Json programs = Json::array();
  for (const Program *program : *plan.programs()) {
    Json inputs = Json::array();
    for (const Input *input : *program->inputs()) {
      Json entry = named(*input->name(), plan, input->tensor());
      entry["kind"] = EnumNameInputKind(input->kind());
      if (input->kind() != InputKind::values)
        entry["limit"] = input->limit();
      if (input->kind() == InputKind::labels)
        entry["ignored"] = input->ignored();
      inputs.push_back(std::move(entry));
    }
    Json outputs = Json::array();
    for (const Output *output : *program->outputs())
      outputs.push_back(named(*output->name(), plan, output->tensor()));
    programs.push_back({{"name", program->name()->str()},
                        {"inputs", std::move(inputs)},
                        {"outputs", std::move(outputs)},
                        {"streams", program->streams()},
                        {"events", program->events()},
                        {"cost", toJson(*program->cost())},
                        {"blocks", toJson(plan, *program->blocks())}});
  }
  out["programs"] = std::move(programs);
}

} // namespace hydra::inspect
