// The rules for everything in a plan but its programs.
#include "runtime/plan/PlanVerifier.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/ContentVerifier.h"
#include "runtime/plan/MemberVerifier.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/ProgramVerifier.h"
#include "runtime/plan/Schedule.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/plan/VerifyPath.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace hydra::runtime {

using namespace planfile;

namespace {

constexpr uint64_t kMaxAlignment = uint64_t{2} << 20;
constexpr uint64_t kMaxElements = uint64_t{1} << 48;
constexpr uint64_t kMaxSegmentSize = uint64_t{1} << 48;
constexpr size_t kMaxRank = 8;

void checkFinite(const Path &owner, const char *field, double value) {
  if (!std::isfinite(value))
    failAt(Path(owner, field), "{} is not finite", value);
}

void checkNotNegative(const Path &owner, const char *field, double value) {
  checkFinite(owner, field, value);
  if (value < 0)
    failAt(Path(owner, field), "{} is negative", value);
}

void checkStepCount(const Path &owner, const char *field, int64_t value) {
  // So that sums of two do not overflow and doubles count exactly.
  constexpr int64_t largest = int64_t{1} << 52;
  if (value < 0 || value > largest)
    failAt(Path(owner, field), "{} is no number of steps; expected 0 to {}", value, largest);
}

class PlanVerifier {
public:
  PlanVerifier(const Plan &plan, std::string_view origin) : plan(plan), root(origin) {}

  void verify() {
    checkTarget();
    checkSegments();
    checkLocations();
    for (flatbuffers::uoffset_t i = 0; i < plan.tensors()->size(); ++i)
      checkTensor(Path(root, "tensors", i), *plan.tensors()->Get(i));
    checkVariables();
    checkScalars();
    checkMesh();
    verifyUnits(plan, root, kMaxElements);
    checkDisjointVariables();
    checkBlobs();
    checkKernels();
    checkPrograms();
  }

private:
  bool onCPU() const { return plan.target()->kind() == TargetKind::cpu; }

  void checkTarget() {
    const Path path(root, "target");
    checkEnum(path, "kind", plan.target()->kind());
    const flatbuffers::String *arch = plan.target()->sm_arch();
    if (!onCPU() && (!arch || arch->string_view().substr(0, 3) != "sm_"))
      failAt(Path(path, "sm_arch"), "{} is no GPU architecture; expected one such as sm_90a",
             arch ? arch->string_view() : "(nothing)");
  }

  void checkSegments() {
    const auto &segments = *plan.segments();
    checkAligned(Path(root, "segments"), segments);
    constexpr size_t expected = static_cast<size_t>(SegmentKind::MAX) + 1;
    if (segments.size() != expected)
      failAt(Path(root, "segments"), "has {} entries; expected {}: persistent, transient",
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

  void checkLocations() {
    const auto &locations = *plan.locations();
    for (flatbuffers::uoffset_t i = 0; i < locations.size(); ++i) {
      const Path path(root, "locations", i);
      const Location &location = *locations.Get(i);
      checkIndex(Path(path, "file"), "file", location.file(), *plan.files());
      if (location.line() == 0 || location.column() == 0)
        failAt(path, "{}:{} is no place in a file; lines and columns count from 1", location.line(),
               location.column());
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
      failAt(path, "{} is in the transient segment; expected the persistent one",
             tensor.name()->string_view());
    return tensor;
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
    if (to.dtype() == from.dtype())
      return;
    for (const Tensor *tensor : {&to, &from})
      if (tensor->dtype() != DType::f32 && tensor->dtype() != DType::bf16 &&
          tensor->dtype() != DType::f16)
        failAt(path, "{} has elements of {}; expected f32, bf16 or f16",
               tensor->name()->string_view(), EnumNameDType(tensor->dtype()));
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
      persistentTensor(path, variable.tensor());
      checkInitializer(Path(path, "initializer"), *variable.initializer(),
                       static_cast<uint64_t>(elementsOf(plan, variable)));
      if (variable.group() && variable.role() != VariableRole::parameter)
        failAt(Path(path, "group"), "belongs to a state; only parameters have one");
      checkOwner(Path(path, "owner"), variable);
    }
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
      if (owner)
        failAt(path, "belongs to a variable of role {}, which has none", role);
      return;
    case VariableRole::moment:
    case VariableRole::gradient:
      if (!owner || owner->role() != VariableRole::parameter)
        failAt(path, "variable {} is no parameter; expected that of a {}", variable.owner(), role);
      return;
    case VariableRole::copy:
      if (!owner)
        failAt(path, "is not given; a copy needs it");
      if (owner->role() != VariableRole::parameter && owner->role() != VariableRole::state)
        failAt(path, "variable {} is neither parameter nor state", variable.owner());
      checkCopy(path, variable, *owner);
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
        all.push_back(
            {"mesh", i, axis.name()->string_view(), static_cast<uint32_t>(axis.rank())});
    return all;
  }

  void checkDisjointVariables() {
    const std::vector<Lasting> all = lastingTensors();
    std::vector<ByteRange> ranges;
    for (const Lasting &one : all)
      ranges.push_back(*byteRange(*plan.tensors()->Get(one.tensor), {}));
    if (const auto found = findOverlap(ranges)) {
      const Lasting &first = all[found->first], &second = all[found->second];
      failAt(Path(root, second.field, second.index), "{} shares bytes with {}", second.name,
             first.name);
    }
  }

  void checkBlobs() {
    for (flatbuffers::uoffset_t i = 0; i < plan.blobs()->size(); ++i) {
      const Path path(root, "blobs", i);
      const Blob &blob = *plan.blobs()->Get(i);
      checkEnum(path, "kind", blob.kind());
      if ((blob.kind() == BlobKind::native) != onCPU())
        failAt(Path(path, "kind"), "{} code does not run on target {}",
               EnumNameBlobKind(blob.kind()), EnumNameTargetKind(plan.target()->kind()));
      if (blob.data()->size() == 0)
        failAt(Path(path, "data"), "is empty");
    }
  }

  void checkGrid(const Path &path, const Kernel &kernel) {
    const Dim3 &grid = *kernel.grid();
    const Dim3 &block = *kernel.block();
    const uint64_t threads = uint64_t{block.x()} * block.y() * block.z();
    if (onCPU()) {
      if (grid.x() | grid.y() | grid.z() | block.x() | block.y() | block.z() |
          kernel.shared_bytes() | (kernel.instances() - 1))
        failAt(path, "has a grid, but the target is the CPU");
      return;
    }
    // The limits of every architecture since sm_30; the shared memory of sm_90.
    constexpr uint32_t maxX = 0x7fffffff, maxYZ = 0xffff, maxShared = 227 * 1024;
    if (grid.x() < 1 || grid.x() > maxX || grid.y() < 1 || grid.y() > maxYZ || grid.z() < 1 ||
        grid.z() > maxYZ)
      failAt(Path(path, "grid"), "[{}, {}, {}] is no grid; expected 1 to [{}, {}, {}]", grid.x(),
             grid.y(), grid.z(), maxX, maxYZ, maxYZ);
    if (block.x() < 1 || block.x() > 1024 || block.y() < 1 || block.y() > 1024 || block.z() < 1 ||
        block.z() > 64 || threads > 1024) {
      failAt(Path(path, "block"),
             "[{}, {}, {}] is no thread block; expected 1 to [1024, 1024, 64] "
             "and at most 1024 threads",
             block.x(), block.y(), block.z());
    }
    constexpr uint32_t maxInstances = 512; // of one argument each, in 4 KiB of parameters
    if (kernel.instances() < 1 ||
        (kernel.instances() > 1 &&
         (grid.y() != 1 || uint64_t{kernel.instances()} * kernel.arg_count() > maxInstances)))
      failAt(Path(path, "instances"), "{} lists of {} arguments do not fit into a launch",
             kernel.instances(), kernel.arg_count());
    if (kernel.shared_bytes() > maxShared)
      failAt(Path(path, "shared_bytes"), "{} is more than {}", kernel.shared_bytes(), maxShared);
  }

  void checkKernels() {
    const auto &blobs = *plan.blobs();
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < plan.kernels()->size(); ++i) {
      const Path path(root, "kernels", i);
      const Kernel &kernel = *plan.kernels()->Get(i);
      names.add(path, "name", *kernel.name());
      if (kernel.symbol()->size() == 0)
        failAt(Path(path, "symbol"), "is empty");
      checkIndex(Path(path, "blob"), "blob", kernel.blob(), blobs);
      checkOptionalIndex(Path(path, "ptx"), "blob", kernel.ptx(), blobs);
      if (kernel.ptx() >= 0 && blobs.Get(kernel.ptx())->kind() != BlobKind::ptx)
        failAt(Path(path, "ptx"), "blob {} is no ptx", kernel.ptx());
      checkGrid(path, kernel);
    }
  }

  void checkPrograms() {
    const auto &programs = *plan.programs();
    if (programs.size() == 0)
      failAt(Path(root, "programs"), "is empty; expected at least one program");
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i) {
      const Path path(root, "programs", i);
      names.add(path, "name", *programs.Get(i)->name());
      checkEnum(path, "role", programs.Get(i)->role());
      checkGradients(path, *programs.Get(i));
      verifyProgram(plan, *programs.Get(i), path);
      verifyContents(plan, *programs.Get(i), path);
    }
    const Path path(root, "accumulation");
    if (plan.accumulation() < 1)
      failAt(path, "0 runs make no step; expected 1 or more");
    const auto has = [&](ProgramRole role) {
      return std::any_of(programs.begin(), programs.end(),
                         [&](const Program *program) { return program->role() == role; });
    };
    if (plan.accumulation() > 1 && !(has(ProgramRole::accumulate) && has(ProgramRole::apply)))
      failAt(path, "{} needs the programs accumulate and apply", plan.accumulation());
    checkCounting();
    checkPhases();
  }

  void checkGradients(const Path &program, const Program &entry) {
    for (flatbuffers::uoffset_t i = 0; i < entry.outputs()->size(); ++i) {
      const Path output(program, "outputs", i), path(output, "gradient_of");
      const int32_t of = entry.outputs()->Get(i)->gradient_of();
      checkOptionalIndex(path, "variable", of, *plan.variables());
      if (of >= 0 &&
          plan.variables()->Get(static_cast<uint32_t>(of))->role() != VariableRole::parameter)
        failAt(path, "variable {} is no parameter", of);
    }
  }

  /// Programs that count stand before who uses their sums, and take nothing else.
  void checkCounting() {
    const auto &programs = *plan.programs();
    for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i) {
      const Program &counter = *programs.Get(i);
      if (counter.role() != ProgramRole::count)
        continue;
      const Path path(root, "programs", i);
      if (i + 1 == programs.size() || programs.Get(i + 1)->role() != ProgramRole::accumulate)
        failAt(path, "counts for no program of role accumulate behind it");
      const auto &there = *programs.Get(i + 1)->inputs();
      for (flatbuffers::uoffset_t k = 0; k < counter.inputs()->size(); ++k) {
        const Input &input = *counter.inputs()->Get(k);
        if (std::none_of(there.begin(), there.end(), [&](const Input *other) {
              return isSameInput(input, *other) && hasSameShape(input, *other);
            }))
          failAt(Path(path, "inputs", k), "{} is no input of the program {}",
                 input.name()->string_view(), programs.Get(i + 1)->name()->string_view());
      }
    }
  }

  bool isSameInput(const Input &x, const Input &y) const {
    const Tensor &s = *plan.tensors()->Get(x.tensor()), &t = *plan.tensors()->Get(y.tensor());
    return x.name()->string_view() == y.name()->string_view() && x.kind() == y.kind() &&
           x.limit() == y.limit() && x.ignored() == y.ignored() && s.dtype() == t.dtype() &&
           s.shape()->size() == t.shape()->size();
  }
  bool hasSameShape(const Input &x, const Input &y) const {
    return std::ranges::equal(*plan.tensors()->Get(x.tensor())->shape(),
                              *plan.tensors()->Get(y.tensor())->shape());
  }

  void checkPhases() {
    if (!plan.phases() || plan.phases()->size() == 0)
      return;
    uint64_t last = 0;
    for (flatbuffers::uoffset_t i = 0; i < plan.phases()->size(); ++i) {
      const Path path(root, "phases", i);
      const planfile::TrainingPhase &phase = *plan.phases()->Get(i);
      checkIndex(Path(path, "program"), "program", phase.program(), *plan.programs());
      checkStepCount(path, "last_step", static_cast<int64_t>(phase.last_step()));
      if (phase.last_step() <= last)
        failAt(Path(path, "last_step"), "{} is not behind step {}", phase.last_step(), last);
      last = phase.last_step();
    }
    const std::optional<uint32_t> main = mainTrainingProgram(plan);
    if (!main)
      failAt(Path(root, "phases"), "need the program {}",
             plan.accumulation() > 1 ? "accumulate" : "train");
    const Program &train = *plan.programs()->Get(*main);
    for (flatbuffers::uoffset_t i = 0; i < plan.phases()->size(); ++i) {
      const Path path(root, "phases", i);
      const Program &program = *plan.programs()->Get(plan.phases()->Get(i)->program());
      if (program.role() != train.role())
        failAt(Path(path, "program"), "{} has the role {}; expected {}",
               program.name()->string_view(), EnumNameProgramRole(program.role()),
               EnumNameProgramRole(train.role()));
      if (!sameInputs(program, train))
        failAt(Path(path, "program"), "has other inputs than the program {}",
               train.name()->string_view());
    }
  }

  /// Whether two programs take the same values, if not as many of them.
  bool sameInputs(const Program &a, const Program &b) const {
    const auto same = [&](const Input *x, const Input *y) { return isSameInput(*x, *y); };
    return std::equal(a.inputs()->begin(), a.inputs()->end(), b.inputs()->begin(),
                      b.inputs()->end(), same);
  }

  const Plan &plan;
  const Path root;
};

} // namespace

void verifyPlan(const Plan &plan, std::string_view origin) { PlanVerifier(plan, origin).verify(); }

} // namespace hydra::runtime
