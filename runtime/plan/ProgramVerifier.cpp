// The recursive walk over the blocks of a program.
#include "runtime/plan/ProgramVerifier.h"

#include "runtime/plan/Accesses.h"
#include "runtime/plan/Actions.h"
#include "runtime/plan/OrderVerifier.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanVerifier.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

namespace hydra::runtime {

using namespace planfile;

namespace {

constexpr uint32_t kMaxStreams = 64;
constexpr uint64_t kMaxLoopCount = uint64_t{1} << 32;
constexpr int64_t kMaxLoopStride = int64_t{1} << 48;

/// Whether two elements of a tensor may have the same address. Strides that nest are the only ones
/// it knows to be free of that.
bool elementsOverlap(const Tensor &tensor) {
  std::vector<std::pair<uint64_t, uint64_t>> dims; // stride, size
  for (flatbuffers::uoffset_t i = 0; i < tensor.shape()->size(); ++i)
    if (tensor.shape()->Get(i) > 1)
      dims.emplace_back(tensor.strides()->Get(i), tensor.shape()->Get(i));
  std::sort(dims.begin(), dims.end());
  uint64_t reach = 1;
  for (const auto &[stride, size] : dims) {
    if (stride < reach)
      return true;
    reach += stride * (size - 1);
  }
  return false;
}

class ProgramVerifier {
public:
  ProgramVerifier(const Plan &plan, const Program &program, const Path &path)
      : plan(plan), program(program), path(path) {}

  void verify() {
    checkCost(path, *program.cost());
    checkSizes();
    checkInputs();
    checkOutputs();
    if (program.streams() < 1 || program.streams() > kMaxStreams)
      failAt(Path(path, "streams"), "{} is no number of streams; expected 1 to {}",
             program.streams(), kMaxStreams);
    constexpr uint64_t kMostPositions = 1 << 24; // f32 counts as far
    if (const bool readsOn = program.role() == ProgramRole::decode;
        readsOn != (program.context() > 0) || program.context() >= kMostPositions)
      failAt(Path(path, "context"), "{} is no number of tokens for the role {}", program.context(),
             EnumNameProgramRole(program.role()));
    checkBlocks(path, *program.blocks(), 1);
  }

private:
  void checkCost(const Path &owner, const Cost &cost) {
    if (!std::isfinite(cost.microseconds()) || cost.microseconds() < 0)
      failAt(Path(owner, "cost"), "{} us is no time", cost.microseconds());
  }

  void checkSizes() {
    const uint64_t segment =
        plan.segments()->Get(static_cast<uint32_t>(SegmentKind::transient))->size();
    if (program.transient_bytes() > segment)
      failAt(Path(path, "transient_bytes"), "{} bytes are more than the transient segment has ({})",
             program.transient_bytes(), segment);
    if (program.live_bytes() > program.transient_bytes())
      failAt(Path(path, "live_bytes"), "{} bytes are more than transient_bytes ({})",
             program.live_bytes(), program.transient_bytes());
  }

  const Tensor &tensorAt(const Path &at, uint32_t index) {
    checkIndex(at, "tensor", index, *plan.tensors());
    return *plan.tensors()->Get(index);
  }

  /// Checks a tensor that the program touches under the present loops, and gives its bytes.
  ByteRange touch(const Path &at, uint32_t index, Access access, bool byTransfer = false) {
    const Tensor &tensor = tensorAt(at, index);
    const auto name = tensor.name()->string_view();
    if (tensor.segment() == SegmentKind::host && !byTransfer)
      failAt(at, "{} is in the host's memory, which only transfers touch", name);
    if (access != Access::read && elementsOverlap(tensor))
      failAt(at, "{} is written, but its strides give two elements the same bytes", name);
    const auto range = byteRange(tensor, shiftsOf(index, loops));
    const Segment &segment = *plan.segments()->Get(static_cast<uint32_t>(tensor.segment()));
    if (!range || range->end > segment.size())
      failAt(at, "{} leaves the {} segment of {} bytes in some iteration of its loops", name,
             EnumNameSegmentKind(tensor.segment()), segment.size());
    if (tensor.segment() == SegmentKind::transient && range->end > program.transient_bytes())
      failAt(at, "{} reaches beyond transient_bytes ({}) of the program", name,
             program.transient_bytes());
    return *range;
  }

  void checkIds(const Path &at, const Input &input) {
    const Tensor &tensor = *plan.tensors()->Get(input.tensor());
    if (!support::isInteger(dtypeOf(tensor)))
      failAt(Path(at, "tensor"), "{} holds {} elements; expected an integer type",
             tensor.name()->string_view(), EnumNameDType(tensor.dtype()));
    if (input.limit() < 1)
      failAt(Path(at, "limit"), "{} leaves no valid id; expected 1 or more", input.limit());
    if (input.kind() == InputKind::labels && input.ignored() >= 0 &&
        input.ignored() < input.limit())
      failAt(Path(at, "ignored"), "{} is a valid label as well (limit {})", input.ignored(),
             input.limit());
  }

  void checkInputs() {
    const auto &inputs = *program.inputs();
    Names names;
    std::vector<ByteRange> ranges[2];
    std::vector<flatbuffers::uoffset_t> positions[2];
    for (flatbuffers::uoffset_t i = 0; i < inputs.size(); ++i) {
      const Path at(path, "inputs", i);
      const Input &input = *inputs.Get(i);
      names.add(at, "name", *input.name());
      checkEnum(at, "kind", input.kind());
      const ByteRange range = touch(Path(at, "tensor"), input.tensor(), Access::write);
      if (input.kind() != InputKind::values)
        checkIds(at, input);
      checkBatch(at, input.batch_dimension(), input.tensor());
      const auto segment = static_cast<size_t>(plan.tensors()->Get(input.tensor())->segment());
      ranges[segment].push_back(range);
      positions[segment].push_back(i);
    }
    for (size_t segment = 0; segment < 2; ++segment) {
      if (const auto found = findOverlap(ranges[segment]))
        failAt(Path(path, "inputs", positions[segment][found->second]),
               "shares bytes with inputs[{}]", positions[segment][found->first]);
    }
  }

  void checkBatch(const Path &owner, int32_t dimension, uint32_t tensor) {
    const auto rank = static_cast<int32_t>(plan.tensors()->Get(tensor)->shape()->size());
    if (dimension < -1 || dimension >= rank)
      failAt(Path(owner, "batch_dimension"), "{} is no dimension of a tensor of rank {}", dimension,
             rank);
  }

  void checkOutputs() {
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < program.outputs()->size(); ++i) {
      const Path at(path, "outputs", i);
      const Output &output = *program.outputs()->Get(i);
      names.add(at, "name", *output.name());
      touch(Path(at, "tensor"), output.tensor(), Access::read);
      checkBatch(at, output.batch_dimension(), output.tensor());
    }
  }

  void checkBlocks(const Path &owner, const BlockList &blocks, unsigned depth) {
    if (depth > kMaxBlockDepth)
      failAt(Path(owner, "blocks"), "are nested deeper than {}", kMaxBlockDepth);
    const uint32_t list = ++lists;
    for (flatbuffers::uoffset_t i = 0; i < blocks.size(); ++i) {
      const Path at(owner, "blocks", i);
      const Block &block = *blocks.Get(i);
      checkWaits(at, block, list);
      checkUnion(at, "node", block.node_type());
      if (const Step *step = block.node_as_Step()) {
        checkStep(Path(at, "step"), *step);
        checkCollective(Path(at, "step"), *step, block.stream(), depth);
      } else if (const Loop *loop = block.node_as_Loop())
        checkLoop(Path(at, "loop"), *loop, depth);
      else
        checkSwitch(Path(at, "switch"), *block.node_as_Switch(), depth);
      checkSignal(at, block, list);
    }
    verifyOrder(plan, blocks, loops, owner);
  }

  void checkWaits(const Path &at, const Block &block, uint32_t list) {
    if (block.stream() >= program.streams())
      failAt(Path(at, "stream"), "{} is out of range (program has {})", block.stream(),
             program.streams());
    const flatbuffers::uoffset_t count = block.waits() ? block.waits()->size() : 0;
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
      const auto found = signalledIn.find(block.waits()->Get(i));
      if (found == signalledIn.end() || found->second != list)
        failAt(Path(at, "waits", i), "event {} is not signalled earlier in the same list",
               block.waits()->Get(i));
    }
  }

  void checkSignal(const Path &at, const Block &block, uint32_t list) {
    const int64_t event = block.signals();
    if (event == -1)
      return;
    if (event < 0 || event >= program.events())
      failAt(Path(at, "signals"), "event {} is out of range (program has {})", event,
             program.events());
    if (!signalledIn.emplace(event, list).second)
      failAt(Path(at, "signals"), "event {} is signalled by another block already", event);
  }

  void checkLoop(const Path &at, const Loop &loop, unsigned depth) {
    if (loop.count() < 1 || loop.count() > kMaxLoopCount)
      failAt(Path(at, "count"), "{} is no number of iterations; expected 1 to {}", loop.count(),
             kMaxLoopCount);
    const auto &strides = *loop.strides();
    checkAligned(Path(at, "strides"), strides);
    for (flatbuffers::uoffset_t i = 0; i < strides.size(); ++i) {
      const Path stridePath(at, "strides", i);
      const LoopStride &stride = *strides.Get(i);
      const Tensor &tensor = tensorAt(Path(stridePath, "tensor"), stride.tensor());
      if (i > 0 && stride.tensor() <= strides.Get(i - 1)->tensor())
        failAt(Path(stridePath, "tensor"), "{} does not come after {}", stride.tensor(),
               strides.Get(i - 1)->tensor());
      if (stride.bytes() < -kMaxLoopStride || stride.bytes() > kMaxLoopStride ||
          stride.bytes() % static_cast<int64_t>(elementSize(tensor)) != 0)
        failAt(Path(stridePath, "bytes"), "{} is no multiple of the element size {}, or too large",
               stride.bytes(), elementSize(tensor));
    }
    if (loop.blocks()->size() == 0)
      failAt(Path(at, "blocks"), "is empty; expected a body");
    loops.push_back(&loop);
    checkBlocks(at, *loop.blocks(), depth + 1);
    loops.pop_back();
  }

  void checkSwitch(const Path &at, const Switch &choice, unsigned depth) {
    const Path selectorPath(at, "selector");
    touch(selectorPath, choice.selector(), Access::read);
    const Tensor &selector = *plan.tensors()->Get(choice.selector());
    if (selector.shape()->size() != 0 || selector.dtype() != DType::i32) {
      failAt(selectorPath, "{} is {} of rank {}; expected i32 of rank 0",
             selector.name()->string_view(), EnumNameDType(selector.dtype()),
             selector.shape()->size());
    }
    if (choice.divisor() < 1)
      failAt(Path(at, "divisor"), "{} divides nothing; expected at least 1", choice.divisor());
    checkOptionalIndex(Path(at, "kernel"), "kernel", choice.kernel(), *plan.kernels());
    if (choice.kernel() >= 0 && plan.target()->kind() == TargetKind::cpu)
      failAt(Path(at, "kernel"), "is given, but the target is the CPU");
    const auto &cases = *choice.cases();
    if (cases.size() == 0)
      failAt(Path(at, "cases"), "is empty; expected at least one case");
    for (flatbuffers::uoffset_t i = 0; i < cases.size(); ++i)
      checkBlocks(Path(at, "cases", i), *cases.Get(i)->blocks(), depth + 1);
  }

  /// What is of each phase is all that there is.
  static void checkPhases(const Path &at, const Step &step) {
    if (!step.phase_flops())
      return;
    const Path path(at, "phase_flops");
    checkAligned(path, *step.phase_flops());
    constexpr size_t count = static_cast<size_t>(Phase::MAX) + 1;
    if (step.phase_flops()->size() != count)
      failAt(path, "has {} entries; expected one for each of {} phases", step.phase_flops()->size(),
             count);
    uint64_t left = step.cost()->flops();
    for (const uint64_t flops : *step.phase_flops()) {
      if (flops > left)
        failAt(path, "is more than the {} of the step", step.cost()->flops());
      left -= flops;
    }
    if (left > 0)
      failAt(path, "is {} less than the {} of the step", left, step.cost()->flops());
  }

  void checkStep(const Path &at, const Step &step) {
    checkEnum(at, "phase", step.phase());
    checkEnum(at, "op_class", step.op_class());
    checkEnum(at, "bound", step.bound());
    checkOptionalIndex(Path(at, "path"), "path", step.path(), *plan.paths());
    if (const auto count = static_cast<int64_t>(plan.header()->passes()->size());
        step.pass() < -1 || step.pass() >= count)
      failAt(Path(at, "pass"), "pass index {} is out of range (the header has {})", step.pass(),
             count);
    checkIndex(Path(at, "location"), "location", step.location(), *plan.locations());
    if (step.layer() < -1)
      failAt(Path(at, "layer"), "{} is no layer; expected -1 or more", step.layer());
    checkCost(at, *step.cost());
    checkNotNegative(at, "limit_microseconds", step.limit_microseconds());
    checkNotNegative(at, "own_copy_microseconds", step.own_copy_microseconds());
    checkPhases(at, step);
    checkAligned(Path(at, "args"), *step.args());
    for (flatbuffers::uoffset_t i = 0; i < step.args()->size(); ++i)
      checkArg(Path(at, "args", i), *step.args()->Get(i), step.action_type() == Action::Transfer);
    checkUnion(at, "action", step.action_type());
    if (step.action_type() == Action::Transfer)
      checkTransfer(at, step);
    if (const Launch *launch = step.action_as_Launch())
      checkLaunch(Path(at, "launch"), *launch, step.args()->size());
    else if (step.action_type() == Action::Nothing)
      failAt(Path(at, "action"), "is nothing, which only takes the place of a launch");
    checkAlternatives(at, step);
  }

  static bool isCollective(Action action) {
    return action == Action::AllGather || action == Action::AllToAll;
  }

  /// Ranks make the same calls in the same order only where the plan leaves no other.
  void checkCollective(const Path &at, const Step &step, uint32_t stream, unsigned depth) {
    uint32_t axis = 0;
    if (const AllGather *gather = step.action_as_AllGather())
      axis = gather->axis();
    else if (const AllToAll *exchange = step.action_as_AllToAll())
      axis = exchange->axis();
    else
      return;
    if (const uint32_t axes = plan.mesh() ? plan.mesh()->size() : 0; axis >= axes)
      failAt(at, "is a collective along axis {} of a mesh of {}", axis, axes);
    if (depth > 1)
      failAt(at, "is a collective in a loop or switch; ranks meet outside of them");
    if (const auto [known, isNew] = streamOfAxis.emplace(axis, stream);
        !isNew && known->second != stream)
      failAt(at, "is a collective along axis {} on stream {}; others are on stream {}", axis,
             stream, known->second);
  }

  void checkLaunch(const Path &at, const Launch &launch, size_t argCount) {
    const Path kernelPath(at, "kernel");
    checkIndex(kernelPath, "kernel", launch.kernel(), *plan.kernels());
    const Kernel &kernel = *plan.kernels()->Get(launch.kernel());
    const size_t each = kernel.arg_count(), all = each * kernel.instances();
    if (argCount != each && (each == 0 || argCount % each != 0 || argCount > all))
      failAt(kernelPath, "{} takes {} arguments, but the step has {}", kernel.name()->string_view(),
             each, argCount);
    const int64_t least = plan.target()->kind() == TargetKind::cpu ? 1 : 0;
    const int64_t most = least == 1 ? INT64_MAX : 0;
    if (launch.rows() < least || launch.rows() > most)
      failAt(Path(at, "rows"), "{} is out of range; expected {} to {}", launch.rows(), least, most);
    const uint32_t grid = kernel.grid()->x();
    if (launch.blocks() > grid)
      failAt(Path(at, "blocks"), "{} is more than the kernel's grid ({})", launch.blocks(), grid);
    if (launch.grain() < least || launch.grain() > most)
      failAt(Path(at, "grain"), "{} is out of range; expected {} to {}", launch.grain(), least,
             most);
  }

  void checkArg(const Path &at, const Arg &arg, bool byTransfer) {
    checkEnum(at, "access", arg.access());
    touch(at, arg.tensor(), arg.access(), byTransfer);
  }

  /// From one side to the other.
  void checkTransfer(const Path &at, const Step &step) {
    size_t onHost = 0;
    for (const Arg *arg : *step.args())
      onHost += plan.tensors()->Get(arg->tensor())->segment() == SegmentKind::host;
    if (step.args()->size() != 2 || onHost != 1)
      failAt(Path(at, "args"), "has {} tensors, {} of them in the host's memory; expected 2 and 1",
             step.args()->size(), onHost);
  }

  void checkAlternatives(const Path &at, const Step &step) {
    const flatbuffers::uoffset_t count = step.alternatives() ? step.alternatives()->size() : 0;
    const bool ofLaunch = step.action_type() == Action::Launch;
    if (count > 0 && ofLaunch && plan.target()->kind() == TargetKind::cpu)
      failAt(Path(at, "alternatives"), "belong to a launch, which has none on the CPU");
    if (step.chosen() >= std::max<uint32_t>(1, count))
      failAt(Path(at, "chosen"), "{} is out of range (step has {} alternatives)", step.chosen(),
             count);
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
      const Path alternativePath(at, "alternatives", i);
      const Alternative &alternative = *step.alternatives()->Get(i);
      checkAlternative(Path(alternativePath, "action"), step.action_type(),
                       alternative.action_type(), ofLaunch && i > 0);
      // The FlatBuffers verifier lets a type without its table pass.
      if (alternative.action_type() != Action::NONE && !alternative.action())
        failAt(Path(alternativePath, "action"), "is {}, whose fields are missing",
               wordOf(alternative.action_type()));
      if (!std::isfinite(alternative.microseconds()))
        failAt(Path(alternativePath, "microseconds"), "{} is not finite",
               alternative.microseconds());
    }
  }

  /// What takes the place of a launch, which touches the device alone, is a function; what takes
  /// that of a function is the same with other fields. A collective has no other way: ranks, each
  /// of which measures for itself, have to make the same calls.
  void checkAlternative(const Path &at, Action own, Action other, bool inPlaceOfLaunch) {
    if (other > Action::MAX)
      failAt(at, "{} is no value of this enum; the highest is {}", static_cast<int>(other),
             static_cast<int>(Action::MAX));
    const bool fits = inPlaceOfLaunch
                          ? other != Action::NONE && other != Action::Launch &&
                                other != Action::Transfer && !isCollective(other)
                          : other == Action::NONE ||
                                (other == own && own != Action::Launch && !isCollective(own));
    if (!fits)
      failAt(at, "is {}; expected {}", wordOf(other),
             inPlaceOfLaunch     ? "a function in place of the launch"
             : isCollective(own) ? "none, as of all collectives"
                                 : fmt::format("{} or none", wordOf(own)));
  }

  const Plan &plan;
  const Program &program;
  const Path &path;
  LoopNest loops;
  uint32_t lists = 0;                                  // numbers block lists, to tell them apart
  std::unordered_map<int64_t, uint32_t> signalledIn;   // event -> list
  std::unordered_map<uint32_t, uint32_t> streamOfAxis; // of collectives
};

} // namespace

void verifyProgram(const Plan &plan, const Program &program, const Path &path) {
  ProgramVerifier(plan, program, path).verify();
}

} // namespace hydra::runtime
