// Numbers of one plan's tables become those of the other's.
#include "compiler/emit/SafeForm.h"

#include "runtime/support/DType.h"
#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace hydra::planfile;
using hydra::support::fail;

namespace hydra {

namespace {

/// Tensors of the persistent and the host segment begin at multiples of this many bytes.
constexpr uint64_t kAlignment = 256;

/// What is added to a plan, and how messages and names tell it from what is there.
struct AddedForm {
  std::string suffix, flag, called, its; ///< the last: called beside the plan
  OptimizationT *without;                ///< null: the safe form
};

uint64_t sizeOf(const TensorT &tensor) {
  // The two enums are one list: see PlanFile.cpp.
  return support::byteSize(static_cast<support::DType>(tensor.dtype));
}

/// Where the last byte of a tensor ends.
uint64_t endOf(const TensorT &tensor) {
  uint64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    last += static_cast<uint64_t>((tensor.shape[i] - 1) * tensor.strides[i]);
  return tensor.offset + (last + 1) * sizeOf(tensor);
}

std::string typeText(const PlanT &plan, const VariableT &variable) {
  const TensorT &tensor = *plan.tensors[variable.tensor];
  return fmt::format("{} [{}]", EnumNameDType(tensor.dtype),
                     fmt::join(variable.member ? variable.member->shape : tensor.shape, ", "));
}

std::string unitText(const PlanT &plan, const VariableT &variable) {
  if (!variable.member)
    return "a tensor of its own";
  return fmt::format("at element {} of a unit of which a rank has {}", variable.member->offset,
                     fmt::join(plan.tensors[variable.tensor]->shape, " x "));
}

std::string cutText(const PlanT &plan, const VariableT &variable) {
  std::vector<std::string> axes;
  if (variable.member)
    for (const uint32_t axis : variable.member->axes)
      axes.push_back(plan.mesh[axis]->name);
  return axes.empty() ? "whole on every rank" : fmt::format("cut along {}", fmt::join(axes, ", "));
}

std::string segmentText(const PlanT &plan, const VariableT &variable) {
  return fmt::format("in the {} segment",
                     EnumNameSegmentKind(plan.tensors[variable.tensor]->segment));
}

std::string stridesText(const PlanT &plan, const VariableT &variable) {
  return fmt::format("with strides [{}]", fmt::join(plan.tensors[variable.tensor]->strides, ", "));
}

/// Type and shape of a variable of two plans, and where they do not tell the two apart, the first
/// thing that does.
std::pair<std::string, std::string> differenceText(const PlanT &onePlan, const VariableT &one,
                                                   const PlanT &otherPlan, const VariableT &other) {
  const std::string type = typeText(onePlan, one);
  if (const std::string otherType = typeText(otherPlan, other); type != otherType)
    return {type, otherType};
  const auto roleText = [](const PlanT &, const VariableT &variable) {
    return fmt::format("of role {}", EnumNameVariableRole(variable.role));
  };
  const auto frozenText = [](const PlanT &, const VariableT &variable) -> std::string {
    return variable.frozen ? "frozen" : "not frozen";
  };
  using Aspect = std::string (*)(const PlanT &, const VariableT &);
  for (const Aspect aspect :
       {Aspect(roleText), Aspect(frozenText), segmentText, cutText, unitText, stridesText}) {
    const std::string here = aspect(onePlan, one), there = aspect(otherPlan, other);
    if (here != there)
      return {fmt::format("{}, {},", type, here), fmt::format("{}, {},", type, there)};
  }
  return {type, type};
}

bool sameLayout(const TensorT &a, const TensorT &b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides &&
         a.segment == b.segment;
}

/// Whether one form may have it alone: what follows variables or lives within a step, and numbers
/// of how it is trained. All others both forms have to go on with.
bool isOfForm(const VariableT &variable) {
  return variable.role == planfile::VariableRole::copy ||
         variable.role == planfile::VariableRole::derived ||
         variable.role == planfile::VariableRole::step_sum ||
         variable.role == planfile::VariableRole::loss_scaling ||
         variable.role == planfile::VariableRole::amax_history;
}

/// Whether it makes variables that one form has alone. It runs whichever is used.
bool derives(const ProgramT &program) { return program.role == planfile::ProgramRole::derive; }

class Joining {
public:
  /// `safe` is the form that is added, whichever it is.
  Joining(PlanT &fast, PlanT &safe, AddedForm form)
      : fast(fast), safe(safe), form(std::move(form)) {}

  void run() {
    checkRuns();
    addPlaces();
    addCode();
    joinScalars();
    joinVariables();
    joinMesh();
    placeTensors();
    addVariables();
    addPrograms();
    grow(SegmentKind::persistent, end);
    grow(SegmentKind::transient, safe.segments[index(SegmentKind::transient)].size());
  }

private:
  static size_t index(SegmentKind kind) { return static_cast<size_t>(kind); }

  void grow(SegmentKind kind, uint64_t size) {
    Segment &segment = fast.segments[index(kind)];
    segment = Segment(std::max(segment.size(), size), segment.alignment());
  }

  /// The programs of the plan that forms are added to, in their order.
  std::vector<ProgramT *> ownPrograms() const {
    std::vector<ProgramT *> own;
    for (const auto &program : fast.programs)
      if (!derives(*program) && (!form.without || program->safe >= 0))
        own.push_back(program.get());
    return own;
  }

  /// Both cut a step into the same micro-batches, and a run into the same phases.
  void checkRuns() const {
    std::vector<std::string> here, there;
    for (const ProgramT *program : ownPrograms())
      here.push_back(program->name);
    for (const auto &program : safe.programs)
      if (!derives(*program))
        there.push_back(program->name);
    if (fast.accumulation != safe.accumulation || here != there)
      fail("{}: the plan has the programs {}, {} {}", form.flag, fmt::join(here, ", "), form.its,
           fmt::join(there, ", "));
  }

  //===-- Places and code -------------------------------------------------------------------===//

  void addPlaces() {
    const auto numbers = [](const std::vector<std::string> &from, std::vector<std::string> &to) {
      std::vector<uint32_t> map;
      for (const std::string &text : from) {
        const auto found = std::ranges::find(to, text);
        map.push_back(static_cast<uint32_t>(found - to.begin()));
        if (found == to.end())
          to.push_back(text);
      }
      return map;
    };
    const std::vector<uint32_t> files = numbers(safe.files, fast.files);
    paths = numbers(safe.paths, fast.paths);
    passes = numbers(safe.header->passes, fast.header->passes);
    firstLocation = static_cast<uint32_t>(fast.locations.size());
    for (const Location &location : safe.locations)
      fast.locations.emplace_back(files[location.file()], location.line(), location.column());
  }

  static int32_t mapped(int32_t number, const std::vector<uint32_t> &map) {
    return number < 0 ? number : static_cast<int32_t>(map[static_cast<size_t>(number)]);
  }

  void addCode() {
    firstKernel = static_cast<uint32_t>(fast.kernels.size());
    std::vector<uint32_t> blobs;
    for (auto &blob : safe.blobs)
      blobs.push_back(addBlob(std::move(blob)));
    for (auto &kernel : safe.kernels) {
      kernel->name += form.suffix;
      if (!blobs.empty()) { // plans for reports have no code
        kernel->blob = blobs[kernel->blob];
        kernel->ptx = mapped(kernel->ptx, blobs);
      }
      fast.kernels.push_back(std::move(kernel));
    }
  }

  /// Of a form without one optimization most code is that of the plan.
  uint32_t addBlob(std::unique_ptr<BlobT> blob) {
    const auto same = [&](const auto &other) {
      return other->kind == blob->kind && other->data == blob->data;
    };
    const auto found = form.without ? std::ranges::find_if(fast.blobs, same) : fast.blobs.end();
    const auto number = static_cast<uint32_t>(found - fast.blobs.begin());
    if (found == fast.blobs.end())
      fast.blobs.push_back(std::move(blob));
    return number;
  }

  //===-- What lives across steps -----------------------------------------------------------===//

  /// A tensor of the safe form lies where one of the plan does, or nowhere yet.
  void place(uint32_t tensor, std::optional<uint32_t> there) {
    const TensorT &own = *safe.tensors[tensor];
    Buffer &buffer = buffers[{own.segment, own.buffer}];
    buffer.end = std::max(buffer.end, endOf(own));
    buffer.begin = std::min(buffer.begin, own.offset);
    if (!there)
      return;
    const TensorT &other = *fast.tensors[*there];
    const int64_t shift = static_cast<int64_t>(other.offset) - static_cast<int64_t>(own.offset);
    if (buffer.shift && *buffer.shift != shift)
      fail("{}: '{}' does not lie beside the same parameters in {}; "
           "--disable-pass=hydra-fuse-qkv,hydra-fuse-gate-up,hydra-fuse-siblings lays each by "
           "itself{}",
           form.flag, own.name, form.called,
           form.without ? "" : ", and so do these passes as settings of --safe");
    // Kernels for a GPU read as many bytes at a time as alignment allows, and a buffer has all of
    // it.
    if (fast.target->kind == TargetKind::cuda && shift % static_cast<int64_t>(kAlignment) != 0)
      fail("{}: '{}' lies beside other parameters, and begins at no multiple of {} bytes there; "
           "--disable-pass=hydra-fuse-qkv,hydra-fuse-gate-up lays each where it does",
           form.flag, other.name, kAlignment);
    buffer.shift = shift;
    buffer.number = other.buffer;
  }

  void joinScalars() {
    for (const auto &scalar : safe.scalars) {
      const auto found = std::ranges::find(fast.scalars, scalar->name,
                                           [](const auto &other) { return other->name; });
      if (found == fast.scalars.end()) {
        place(scalar->tensor, {});
        continue;
      }
      if (!sameLayout(*safe.tensors[scalar->tensor], *fast.tensors[(*found)->tensor]))
        fail("{}: the number '{}' of a step has another type in {}", form.flag, scalar->name,
             form.called);
      place(scalar->tensor, (*found)->tensor);
    }
  }

  VariableT *fastVariable(const std::string &name) {
    const auto found = std::ranges::find(fast.variables, name,
                                         [](const auto &variable) { return variable->name; });
    return found == fast.variables.end() ? nullptr : found->get();
  }

  /// What is derived is not shared: each form makes its own of numbers that it alone may have.
  bool isAlike(const VariableT &own, const VariableT &other) const {
    if (own.role == planfile::VariableRole::derived)
      return false;
    const auto member = [](const VariableT &v) {
      return v.member ? std::tuple(v.member->shape, v.member->offset, v.member->axes)
                      : std::tuple(std::vector<int64_t>(), uint64_t{0}, std::vector<uint32_t>());
    };
    return own.role == other.role && !own.member == !other.member && member(own) == member(other) &&
           own.frozen == other.frozen &&
           sameLayout(*safe.tensors[own.tensor], *fast.tensors[other.tensor]);
  }

  void joinVariables() {
    for (const auto &own : safe.variables) {
      VariableT *other = fastVariable(own->name);
      if (other && isAlike(*own, *other)) {
        shared.insert(own->name);
        place(own->tensor, other->tensor);
        continue;
      }
      if (!isOfForm(*own)) {
        const auto [here, there] =
            other ? differenceText(fast, *other, safe, *own)
                  : std::pair<std::string, std::string>("not there", typeText(safe, *own));
        fail("{}: '{}' is {} in the plan and {} in {}, and they have to share it; "
             "what changes that are --precision, --shard, --offload and choices of the model, and "
             "with --shard passes that join projections, which --safe=O=2 keeps",
             form.flag, own->name, here, there, form.its);
      }
      if (own->role == planfile::VariableRole::copy)
        checkCopy(*own);
      place(own->tensor, {});
    }
    for (const auto &other : fast.variables)
      if (!isOfForm(*other) && std::ranges::none_of(safe.variables, [&](const auto &own) {
            return own->name == other->name;
          }))
        fail("{}: '{}' is not there in {}, which has to go on with it", form.flag, other->name,
             form.called);
  }

  /// It is made anew where a run goes over to the form, from what a rank has: all of it, or the
  /// same part.
  void checkCopy(const VariableT &copy) const {
    const VariableT &owner = *safe.variables[static_cast<size_t>(copy.owner)];
    if (owner.member && !owner.member->axes.empty() &&
        (!copy.member || copy.member->axes != owner.member->axes))
      fail("{}: {} keeps '{}', a copy of '{}', of which each rank has a part; with the plan's own "
           "--precision it needs none",
           form.flag, form.called, copy.name, owner.name);
  }

  void joinMesh() {
    for (size_t i = 0; i < safe.mesh.size(); ++i) {
      const MeshAxisT &own = *safe.mesh[i], &other = *fast.mesh.at(i);
      if (own.rank < 0)
        continue;
      const auto tensor = static_cast<uint32_t>(own.rank);
      if (other.rank >= 0)
        place(tensor, static_cast<uint32_t>(other.rank));
      else
        newRanks.push_back(i);
    }
  }

  void placeTensors() {
    end = fast.segments[index(SegmentKind::persistent)].size();
    uint32_t lastBuffer = 0;
    for (const auto &tensor : fast.tensors)
      lastBuffer = std::max(lastBuffer, tensor->buffer);
    for (uint32_t i = 0; i < safe.tensors.size(); ++i)
      if (safe.tensors[i]->segment != SegmentKind::transient)
        place(i, {});
    firstTensor = static_cast<uint32_t>(fast.tensors.size());
    for (auto &tensor : safe.tensors) {
      Buffer &buffer = buffers[{tensor->segment, tensor->buffer}];
      if (tensor->segment == SegmentKind::transient) {
        buffer.shift = 0;
      } else if (!buffer.shift) {
        if (tensor->segment == SegmentKind::host)
          fail("{}: only {} keeps '{}' in the host's memory", form.flag, form.called, tensor->name);
        end = support::roundUp(end, kAlignment);
        buffer.shift = static_cast<int64_t>(end) - static_cast<int64_t>(buffer.begin);
        end += buffer.end - buffer.begin;
      }
      if (buffer.number == 0)
        buffer.number = ++lastBuffer;
      tensor->offset = static_cast<uint64_t>(static_cast<int64_t>(tensor->offset) + *buffer.shift);
      tensor->buffer = buffer.number;
      tensor->path = mapped(tensor->path, paths);
      tensor->location += firstLocation;
      fast.tensors.push_back(std::move(tensor));
    }
  }

  /// Those that are in the safe form alone.
  void addVariables() {
    for (auto &scalar : safe.scalars)
      if (std::ranges::none_of(fast.scalars,
                               [&](const auto &other) { return other->name == scalar->name; })) {
        scalar->tensor += firstTensor;
        fast.scalars.push_back(std::move(scalar));
      }
    for (const size_t axis : newRanks)
      fast.mesh[axis]->rank = safe.mesh[axis]->rank + static_cast<int32_t>(firstTensor);
    for (auto &own : safe.variables) {
      if (shared.contains(own->name))
        continue;
      if (own->owner >= 0)
        own->owner = numberOf(safe.variables[static_cast<size_t>(own->owner)]->name);
      own->tensor += firstTensor;
      if (fastVariable(own->name))
        own->name += form.suffix;
      fast.variables.push_back(std::move(own));
    }
  }

  int32_t numberOf(const std::string &name) const {
    const auto found = std::ranges::find(fast.variables, name,
                                         [](const auto &variable) { return variable->name; });
    return static_cast<int32_t>(found - fast.variables.begin());
  }

  //===-- Programs --------------------------------------------------------------------------===//

  void addPrograms() {
    const std::vector<ProgramT *> own = ownPrograms(); // in the order of those of the form
    auto next = own.begin();
    for (std::unique_ptr<ProgramT> &program : safe.programs) {
      program->name += form.suffix;
      if (!derives(*program)) {
        program->role = planfile::ProgramRole::custom;
        const auto number = static_cast<uint32_t>(fast.programs.size());
        if (form.without)
          form.without->programs.push_back(number);
        else
          (*next++)->safe = static_cast<int32_t>(number);
      }
      for (auto &input : program->inputs)
        input->tensor += firstTensor;
      for (auto &output : program->outputs) {
        output->tensor += firstTensor;
        if (output->gradient_of >= 0)
          output->gradient_of =
              numberOf(safe.variables[static_cast<size_t>(output->gradient_of)]->name);
      }
      renumber(program->blocks);
      fast.programs.push_back(std::move(program));
    }
  }

  void renumber(std::vector<std::unique_ptr<BlockT>> &blocks) {
    for (auto &block : blocks) {
      if (StepT *step = block->node.AsStep()) {
        renumber(*step);
      } else if (LoopT *loop = block->node.AsLoop()) {
        for (LoopStride &stride : loop->strides)
          stride = LoopStride(stride.tensor() + firstTensor, stride.bytes());
        renumber(loop->blocks);
      } else if (SwitchT *choice = block->node.AsSwitch()) {
        choice->selector += firstTensor;
        if (choice->kernel >= 0)
          choice->kernel += static_cast<int32_t>(firstKernel);
        for (auto &one : choice->cases)
          renumber(one->blocks);
      }
    }
  }

  void renumber(StepT &step) {
    for (Arg &arg : step.args)
      arg = Arg(arg.access(), arg.tensor() + firstTensor);
    renumber(step.action);
    for (auto &alternative : step.alternatives)
      renumber(alternative->action);
    step.path = mapped(step.path, paths);
    step.pass = mapped(step.pass, passes);
    step.location += firstLocation;
  }

  void renumber(ActionUnion &action) const {
    if (LaunchT *launch = action.AsLaunch())
      launch->kernel += firstKernel;
  }

  /// Of the safe form: what shares bytes, and by how many they move.
  struct Buffer {
    uint64_t begin = ~uint64_t{0}, end = 0;
    std::optional<int64_t> shift;
    uint32_t number = 0; ///< in the plan; 0: not yet
  };

  PlanT &fast, &safe;
  const AddedForm form;
  std::map<std::pair<SegmentKind, uint32_t>, Buffer> buffers;
  std::set<std::string> shared; ///< variables
  std::vector<size_t> newRanks; ///< axes of the mesh that only the safe form asks for
  std::vector<uint32_t> paths, passes;
  uint32_t firstLocation = 0, firstKernel = 0, firstTensor = 0;
  uint64_t end = 0; ///< of the persistent segment
};

} // namespace

void addSafeForm(PlanT &fast, PlanT safe) {
  Joining(fast, safe,
          {.suffix = ".safe",
           .flag = "--safe",
           .called = "the safe form",
           .its = "its safe form",
           .without = nullptr})
      .run();
}

void addFormWithout(PlanT &plan, PlanT form, const std::string &optimization) {
  const auto found = std::ranges::find(plan.optimizations, optimization,
                                       [](const auto &one) { return one->name; });
  const std::string called = "the form without " + optimization;
  Joining(plan, form,
          {.suffix = ".without." + optimization,
           .flag = "--pretests=" + optimization,
           .called = called,
           .its = called,
           .without = found->get()})
      .run();
}

} // namespace hydra
