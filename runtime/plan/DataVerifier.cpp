// The rules for what a plan keeps in memory.
#include "runtime/plan/DataVerifier.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/MemberVerifier.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Schedule.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/support/Int4Groups.h"

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

namespace hydra::runtime {

using namespace planfile;

namespace {

constexpr uint64_t kMaxAlignment = uint64_t{2} << 20;
constexpr uint64_t kMaxElements = uint64_t{1} << 48;
constexpr uint64_t kMaxSegmentSize = uint64_t{1} << 48;
constexpr size_t kMaxRank = 8;

class DataVerifier {
public:
  DataVerifier(const Plan &plan, const Path &root) : plan(plan), root(root) {}

  void verify() {
    checkSegments();
    for (flatbuffers::uoffset_t i = 0; i < plan.tensors()->size(); ++i)
      checkTensor(Path(root, "tensors", i), *plan.tensors()->Get(i));
    checkVariables();
    checkScalars();
    checkMesh();
    verifyUnits(plan, root, kMaxElements);
    checkDisjointVariables();
  }

private:
  void checkSegments() {
    const auto &segments = *plan.segments();
    checkAligned(Path(root, "segments"), segments);
    constexpr size_t expected = static_cast<size_t>(SegmentKind::MAX) + 1;
    if (segments.size() != expected)
      failAt(Path(root, "segments"), "has {} entries; expected {}: persistent, transient, host",
             segments.size(), expected);
    for (flatbuffers::uoffset_t i = 0; i < segments.size(); ++i) {
      const Path path(root, "segments", i);
      const uint64_t alignment = segments.Get(i)->alignment();
      if (!std::has_single_bit(alignment) || alignment > kMaxAlignment)
        failAt(Path(path, "alignment"), "{} is no power of two of at most {}", alignment,
               kMaxAlignment);
      if (segments.Get(i)->size() > kMaxSegmentSize)
        failAt(Path(path, "size"), "{} bytes are more than {}", segments.Get(i)->size(),
               kMaxSegmentSize);
    }
  }

  void checkTensor(const Path &path, const Tensor &tensor) {
    if (tensor.name()->size() == 0)
      failAt(Path(path, "name"), "is empty");
    checkEnum(path, "dtype", tensor.dtype());
    if (!support::formatOf(dtypeOf(tensor)).stored)
      failAt(Path(path, "dtype"), "is {}, which no tensor holds", EnumNameDType(tensor.dtype()));
    checkEnum(path, "segment", tensor.segment());
    checkEnum(path, "category", tensor.category());
    checkOptionalIndex(Path(path, "path"), "path", tensor.path(), *plan.paths());
    checkIndex(Path(path, "location"), "location", tensor.location(), *plan.locations());
    if (tensor.layer() < -1)
      failAt(Path(path, "layer"), "{} is no layer; expected -1 or more", tensor.layer());
    const auto &shape = *tensor.shape();
    const auto &strides = *tensor.strides();
    checkAligned(Path(path, "shape"), shape);
    checkAligned(Path(path, "strides"), strides);
    if (shape.size() > kMaxRank)
      failAt(Path(path, "shape"), "has rank {}; the largest is {}", shape.size(), kMaxRank);
    if (strides.size() != shape.size())
      failAt(Path(path, "strides"), "has {} entries for a shape with {}", strides.size(),
             shape.size());
    uint64_t elements = 1;
    for (flatbuffers::uoffset_t i = 0; i < shape.size(); ++i) {
      const int64_t size = shape.Get(i);
      if (size < 1 || static_cast<uint64_t>(size) > kMaxElements / elements) {
        failAt(Path(path, "shape", i),
               "{} is no valid dimension; expected 1 or more, and at most "
               "{} elements in all",
               size, kMaxElements);
      }
      elements *= size;
      const int64_t stride = strides.Get(i);
      if (stride < 0 || static_cast<uint64_t>(stride) > kMaxElements)
        failAt(Path(path, "strides", i), "{} is no valid stride; expected 0 to {}", stride,
               kMaxElements);
    }
    if (tensor.offset() % elementSize(tensor) != 0)
      failAt(Path(path, "offset"), "{} is no multiple of the element size {}", tensor.offset(),
             elementSize(tensor));
    const Segment &segment = *plan.segments()->Get(static_cast<uint32_t>(tensor.segment()));
    if (tensor.offset() > segment.size())
      failAt(Path(path, "offset"), "{} is outside the {} segment of {} bytes", tensor.offset(),
             EnumNameSegmentKind(tensor.segment()), segment.size());
    const auto range = byteRange(tensor, {});
    if (!range || range->end > segment.size())
      failAt(path, "{} reaches beyond the {} segment of {} bytes", tensor.name()->string_view(),
             EnumNameSegmentKind(tensor.segment()), segment.size());
  }

  /// The tensor of a variable or scalar.
  const Tensor &persistentTensor(const Path &owner, uint32_t index) {
    const Path path(owner, "tensor");
    checkIndex(path, "tensor", index, *plan.tensors());
    const Tensor &tensor = *plan.tensors()->Get(index);
    if (tensor.segment() != SegmentKind::persistent)
      failAt(path, "{} is in the {} segment; expected the persistent one",
             tensor.name()->string_view(), EnumNameSegmentKind(tensor.segment()));
    return tensor;
  }

  /// The tensor of a variable. Moments may be in the host's memory.
  void checkVariableTensor(const Path &path, const Variable &variable) {
    const Path at(path, "tensor");
    checkIndex(at, "tensor", variable.tensor(), *plan.tensors());
    const Tensor &tensor = *plan.tensors()->Get(variable.tensor());
    if (variable.role() == VariableRole::amax_history &&
        (tensor.dtype() != DType::f32 || tensor.shape()->size() != 2))
      failAt(at, "{} is no history; expected f32 of two dimensions", tensor.name()->string_view());
    if (tensor.segment() != SegmentKind::host || variable.role() != VariableRole::moment)
      persistentTensor(path, variable.tensor());
    else if (!isDense(tensor))
      failAt(at, "{} has strides of its own; what is in the host's memory is dense",
             tensor.name()->string_view());
  }

  void checkInitializer(const Path &path, const Initializer &init, uint64_t elements) {
    checkEnum(path, "kind", init.kind());
    checkFinite(path, "value", init.value());
    checkNotNegative(path, "std", init.std());
    checkNotNegative(path, "cut", init.cut());
    checkNotNegative(path, "limit", init.limit());
    if (init.kind() == InitKind::trunc_normal && init.cut() == 0)
      failAt(Path(path, "cut"), "0 leaves no values; expected more");
    if (init.table())
      checkAligned(Path(path, "table"), *init.table());
    const uint64_t entries = init.table() ? init.table()->size() : 0;
    if (init.kind() == InitKind::shuffle && entries != elements)
      failAt(Path(path, "table"), "has {} values for a tensor with {} elements", entries, elements);
  }

  void checkCopy(const Path &path, const Variable &copy, const Variable &source) {
    const Tensor &to = persistentTensor(path, copy.tensor());
    const Tensor &from = persistentTensor(path, source.tensor());
    if (shapeOf(plan, copy) != shapeOf(plan, source))
      failAt(path, "{} has another shape", source.name()->string_view());
    // Such a parameter is written from floats, with its scale and nothing else.
    if (source.role() == VariableRole::parameter && from.dtype() == DType::i8)
      failAt(path, "{} is a parameter of i8, which has no copies", source.name()->string_view());
    if (to.dtype() == from.dtype())
      return;
    for (const Tensor *tensor : {&to, &from})
      if (tensor->dtype() != DType::f32 && tensor->dtype() != DType::bf16 &&
          tensor->dtype() != DType::f16)
        failAt(path, "{} has elements of {}; expected f32, bf16 or f16",
               tensor->name()->string_view(), EnumNameDType(tensor->dtype()));
  }

  /// Of a parameter of i8, which has one.
  void checkScale(const Path &path, const Variable &scale, const Variable &owner) {
    const Tensor &rows = persistentTensor(path, scale.tensor());
    const Tensor &integers = persistentTensor(path, owner.tensor());
    const std::vector<int64_t> shape = shapeOf(plan, owner);
    if (integers.dtype() != DType::i8 || shape.size() != 2 || owner.member())
      failAt(path, "{} is no matrix of i8", owner.name()->string_view());
    constexpr int64_t group = support::kInt4Group;
    if (!owner.packed() && (rows.dtype() != DType::f32 || scale.member() ||
                            shapeOf(plan, scale) != std::vector{shape[0]}))
      failAt(path, "{} has no number of f32 for each row of {}", scale.name()->string_view(),
             owner.name()->string_view());
    if (owner.packed() && (rows.dtype() != DType::bf16 || scale.member() || shape[1] % group != 0 ||
                           shapeOf(plan, scale) != std::vector{shape[0], shape[1] / group}))
      failAt(path, "{} has no number of bf16 for each {} numbers of a row of {}",
             scale.name()->string_view(), group, owner.name()->string_view());
    if (!isDense(rows) || !isDense(integers))
      failAt(path, "{} or {} has strides of its own; expected both dense",
             scale.name()->string_view(), owner.name()->string_view());
  }

  /// Of a parameter of bf16, which lies as it does.
  void checkRest(const Path &path, const Variable &rest, const Variable &owner) {
    const Tensor &lower = persistentTensor(path, rest.tensor());
    const Tensor &upper = persistentTensor(path, owner.tensor());
    const auto places = [](const Variable &variable) {
      const Member *member = variable.member();
      std::vector<uint32_t> axes;
      if (member && member->axes())
        axes.assign(member->axes()->begin(), member->axes()->end());
      return std::pair(member ? member->offset() : 0, axes);
    };
    if (upper.dtype() != DType::bf16)
      failAt(path, "{} is no parameter of bf16", owner.name()->string_view());
    if (lower.dtype() != DType::i16 || shapeOf(plan, rest) != shapeOf(plan, owner) ||
        !rest.member() != !owner.member() || places(rest) != places(owner))
      failAt(path, "{} has no number of i16 for each of {}", rest.name()->string_view(),
             owner.name()->string_view());
  }

  /// What a parameter leaves out is one variable, and it has no copies: they would not be written.
  void checkHalves() {
    const auto &variables = *plan.variables();
    std::vector<unsigned> rests(variables.size()), copies(variables.size());
    for (const Variable *variable : variables)
      if (variable->role() == VariableRole::rest || variable->role() == VariableRole::copy)
        ++(variable->role() == VariableRole::rest ? rests
                                                  : copies)[static_cast<size_t>(variable->owner())];
    for (flatbuffers::uoffset_t i = 0; i < variables.size(); ++i) {
      if (rests[i] > 1)
        failAt(Path(root, "variables", i), "has {} rests; expected one at most", rests[i]);
      if (rests[i] == 1 && copies[i] > 0)
        failAt(Path(root, "variables", i), "has a rest and copies; expected one of them");
    }
  }

  /// What has two numbers in each byte.
  void checkPacked(const Path &path, const Variable &variable) {
    if (!variable.packed())
      return;
    const Tensor &tensor = *plan.tensors()->Get(variable.tensor());
    if (variable.role() != VariableRole::parameter || variable.member() ||
        tensor.dtype() != DType::i8)
      failAt(path, "belongs to {}; expected a parameter of i8 by itself",
             variable.name()->string_view());
  }

  /// Integers alone say nothing of a parameter: exactly one variable is their scale.
  void checkInt8(const Path &path, uint32_t index, const Variable &variable) {
    if (variable.role() != VariableRole::parameter ||
        plan.tensors()->Get(variable.tensor())->dtype() != DType::i8)
      return;
    const auto scales = std::count_if(plan.variables()->begin(), plan.variables()->end(),
                                      [&](const Variable *scale) {
                                        return scale->role() == VariableRole::scale &&
                                               scale->owner() == static_cast<int32_t>(index);
                                      });
    if (scales != 1)
      failAt(path, "is of i8 and has {} scales; expected one", scales);
  }

  void checkVariables() {
    const auto &variables = *plan.variables();
    for (flatbuffers::uoffset_t i = 0; i < variables.size(); ++i)
      if (const Member *member = variables.Get(i)->member())
        verifyMemberShape(Path(Path(root, "variables", i), "member"), *member, kMaxElements);
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < variables.size(); ++i) {
      const Path path(root, "variables", i);
      const Variable &variable = *variables.Get(i);
      names.add(path, "name", *variable.name());
      checkEnum(path, "role", variable.role());
      checkVariableTensor(path, variable);
      checkInitializer(Path(path, "initializer"), *variable.initializer(),
                       static_cast<uint64_t>(elementsOf(plan, variable)));
      if (variable.group() && variable.role() != VariableRole::parameter)
        failAt(Path(path, "group"), "belongs to a state; only parameters have one");
      checkPacked(Path(path, "packed"), variable);
      if (variable.frozen() && variable.role() != VariableRole::parameter)
        failAt(Path(path, "frozen"), "is said of a state; only parameters are trained");
      checkAdapter(Path(path, "adapter"), variable);
      checkOwner(Path(path, "owner"), variable);
      checkMade(Path(path, "role"), variable);
      checkInt8(path, i, variable);
    }
    checkHalves();
  }

  /// No file has what is derived, so a program has to make it.
  void checkMade(const Path &path, const Variable &variable) {
    const auto derives = [](const Program *program) {
      return program->role() == ProgramRole::derive;
    };
    if (variable.role() == VariableRole::derived &&
        std::none_of(plan.programs()->begin(), plan.programs()->end(), derives))
      failAt(path, "derived needs a program of role derive");
  }

  void checkAdapter(const Path &path, const Variable &variable) {
    if (!variable.adapter())
      return;
    if (variable.role() != VariableRole::parameter)
      failAt(path, "belongs to a state; only parameters have one");
    if (variable.adapter()->tensor()->size() == 0)
      failAt(Path(path, "tensor"), "is empty; expected a name");
    checkFinite(path, "alpha", variable.adapter()->alpha());
    const size_t rank = shapeOf(plan, variable).size();
    if (rank != 2 && rank != 3)
      failAt(path, "belongs to a parameter of rank {}; expected a matrix", rank);
    if (rank == 2 && variable.adapter()->tensor()->string_view().find("{row}") != std::string::npos)
      failAt(Path(path, "tensor"), "names a tensor for each of several matrices; expected one");
  }

  void checkOwner(const Path &path, const Variable &variable) {
    const auto &variables = *plan.variables();
    checkOptionalIndex(path, "variable", variable.owner(), variables);
    const Variable *owner =
        variable.owner() < 0 ? nullptr : variables.Get(static_cast<uint32_t>(variable.owner()));
    const char *role = EnumNameVariableRole(variable.role());
    switch (variable.role()) {
    case VariableRole::parameter:
    case VariableRole::state:
    case VariableRole::update_count:
    case VariableRole::step_sum:
    case VariableRole::loss_scaling:
    case VariableRole::cache:
    case VariableRole::amax_history:
      if (owner)
        failAt(path, "belongs to a variable of role {}, which has none", role);
      return;
    case VariableRole::moment:
    case VariableRole::gradient:
    case VariableRole::gradient_part:
    case VariableRole::average:
      if (!owner || owner->role() != VariableRole::parameter)
        failAt(path, "variable {} is no parameter; expected that of a {}", variable.owner(), role);
      return;
    case VariableRole::derived:
      if (owner && owner->role() != VariableRole::parameter)
        failAt(path, "variable {} is no parameter; expected that of a {}, or none",
               variable.owner(), role);
      return;
    case VariableRole::copy:
      if (!owner)
        failAt(path, "is not given; a copy needs it");
      if (owner->role() != VariableRole::parameter && owner->role() != VariableRole::state)
        failAt(path, "variable {} is neither parameter nor state", variable.owner());
      checkCopy(path, variable, *owner);
      return;
    case VariableRole::scale:
      if (!owner || owner->role() != VariableRole::parameter)
        failAt(path, "variable {} is no parameter; expected that of a {}", variable.owner(), role);
      checkScale(path, variable, *owner);
      return;
    case VariableRole::rest:
      if (!owner || owner->role() != VariableRole::parameter)
        failAt(path, "variable {} is no parameter; expected that of a {}", variable.owner(), role);
      checkRest(path, variable, *owner);
      return;
    }
  }

  void checkSchedule(const Path &path, const Schedule &schedule) {
    checkEnum(path, "kind", schedule.kind());
    checkFinite(path, "peak", schedule.peak());
    checkFinite(path, "floor", schedule.floor());
    checkStepCount(path, "warmup_steps", schedule.warmup_steps());
    if (schedule.stable_steps() != -1)
      checkStepCount(path, "stable_steps", schedule.stable_steps());
    checkStepCount(path, "total_steps", schedule.total_steps());
    checkStepCount(path, "delay_steps", schedule.delay_steps());
    checkStepCount(path, "levels", schedule.levels());
    if (schedule.delay_steps() > 0 && schedule.kind() != ScheduleKind::constant &&
        schedule.kind() != ScheduleKind::linear)
      failAt(Path(path, "delay_steps"), "{} is for constant and linear schedules only",
             schedule.delay_steps());
    if (schedule.first() != 0 && schedule.first() != 1)
      failAt(Path(path, "first"), "{} is neither 0 nor 1", schedule.first());
    const int64_t before = stepsBeforeDecay(*std::unique_ptr<ScheduleT>(schedule.UnPack()));
    if (decays(schedule.kind()) && schedule.total_steps() != 0 && schedule.total_steps() < before)
      failAt(Path(path, "total_steps"), "{} steps are fewer than the {} before the decay",
             schedule.total_steps(), before);
  }

  void checkScalars() {
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < plan.scalars()->size(); ++i) {
      const Path path(root, "scalars", i);
      const Scalar &scalar = *plan.scalars()->Get(i);
      names.add(path, "name", *scalar.name());
      const Tensor &tensor = persistentTensor(path, scalar.tensor());
      if (tensor.shape()->size() != 0)
        failAt(Path(path, "tensor"), "{} has rank {}; expected 0", tensor.name()->string_view(),
               tensor.shape()->size());
      checkSchedule(Path(path, "schedule"), *scalar.schedule());
      const ScheduleKind kind = scalar.schedule()->kind();
      if (isCounted(kind) && kind != ScheduleKind::step && tensor.dtype() != DType::i32)
        failAt(Path(path, "tensor"), "{} is {}; expected i32, as numbers of kind {} are",
               tensor.name()->string_view(), EnumNameDType(tensor.dtype()),
               EnumNameScheduleKind(kind));
    }
  }

  void checkMesh() {
    if (!plan.mesh())
      return;
    constexpr uint64_t most = 65536; // as the compiler has it
    uint64_t ranks = 1;
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < plan.mesh()->size(); ++i) {
      const Path path(root, "mesh", i);
      const MeshAxis &axis = *plan.mesh()->Get(i);
      names.add(path, "name", *axis.name());
      if (axis.size() < 1 || axis.size() > most || (ranks *= axis.size()) > most)
        failAt(Path(path, "size"), "{} is no number of ranks; expected 1 to {} in all", axis.size(),
               most);
      checkOptionalIndex(Path(path, "rank"), "tensor", axis.rank(), *plan.tensors());
      if (axis.rank() < 0)
        continue;
      const Tensor &tensor = *plan.tensors()->Get(static_cast<uint32_t>(axis.rank()));
      if (tensor.segment() != SegmentKind::persistent || tensor.dtype() != DType::i32 ||
          tensor.shape()->size() != 0)
        failAt(Path(path, "rank"), "{} is no persistent i32 of rank 0",
               tensor.name()->string_view());
    }
  }

  /// What lives across steps: no two share a byte.
  struct Lasting {
    const char *field;
    flatbuffers::uoffset_t index;
    std::string_view name;
    uint32_t tensor;
  };
  std::vector<Lasting> lastingTensors() const {
    std::vector<Lasting> all;
    std::set<uint32_t> units; // of whose members verifyUnits knows
    for (flatbuffers::uoffset_t i = 0; i < plan.variables()->size(); ++i) {
      const Variable &variable = *plan.variables()->Get(i);
      if (variable.member() && !units.insert(variable.tensor()).second)
        continue;
      all.push_back({"variables", i, variable.name()->string_view(), variable.tensor()});
    }
    for (flatbuffers::uoffset_t i = 0; i < plan.scalars()->size(); ++i) {
      const Scalar &scalar = *plan.scalars()->Get(i);
      all.push_back({"scalars", i, scalar.name()->string_view(), scalar.tensor()});
    }
    for (flatbuffers::uoffset_t i = 0; plan.mesh() && i < plan.mesh()->size(); ++i)
      if (const MeshAxis &axis = *plan.mesh()->Get(i); axis.rank() >= 0)
        all.push_back({"mesh", i, axis.name()->string_view(), static_cast<uint32_t>(axis.rank())});
    return all;
  }

  void checkDisjointVariables() {
    const std::vector<Lasting> lasting = lastingTensors();
    for (const SegmentKind segment : {SegmentKind::persistent, SegmentKind::host}) {
      std::vector<Lasting> all;
      std::vector<ByteRange> ranges;
      for (const Lasting &one : lasting)
        if (const Tensor &tensor = *plan.tensors()->Get(one.tensor); tensor.segment() == segment) {
          all.push_back(one);
          ranges.push_back(*byteRange(tensor, {}));
        }
      if (const auto found = findOverlap(ranges)) {
        const Lasting &first = all[found->first], &second = all[found->second];
        failAt(Path(root, second.field, second.index), "{} shares bytes with {}", second.name,
               first.name);
      }
    }
  }

  const Plan &plan;
  const Path &root;
};

} // namespace

void verifyData(const Plan &plan, const Path &root) { DataVerifier(plan, root).verify(); }

} // namespace hydra::runtime
