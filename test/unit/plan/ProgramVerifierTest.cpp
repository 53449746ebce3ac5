// One plan per rule about programs, broken in exactly that rule.
#include "test/unit/plan/DamageCase.h"

#include <cmath>

namespace hydra::test {

using namespace planfile;

namespace {

class ProgramRules : public testing::TestWithParam<DamageCase> {};

ProgramT &train(PlanT &plan) { return *plan.programs[0]; }
StepT &step(PlanT &plan, SampleBlock block) { return *train(plan).blocks[block]->node.AsStep(); }
LoopT &outerLoop(PlanT &plan) { return *train(plan).blocks[kLoop]->node.AsLoop(); }
StepT &scale(PlanT &plan) { return *outerLoop(plan).blocks[0]->node.AsStep(); }
LoopT &innerLoop(PlanT &plan) { return *outerLoop(plan).blocks[1]->node.AsLoop(); }
SwitchT &choice(PlanT &plan) { return *innerLoop(plan).blocks[0]->node.AsSwitch(); }
void setArg(StepT &step, size_t i, Arg arg) { step.args[i] = arg; }

std::vector<DamageCase> cases() {
  return {
      {"Cost", [](PlanT &p) { train(p).cost = Cost(0, 0, -1); },
       "programs[0].cost: -1 us is no time"},
      {"TransientBytes", [](PlanT &p) { train(p).transient_bytes = 1 << 20; },
       "programs[0].transient_bytes: 1048576 bytes are more than the transient segment has (1280)"},
      {"LiveBytes", [](PlanT &p) { train(p).live_bytes = 1281; },
       "programs[0].live_bytes: 1281 bytes are more than transient_bytes (1280)"},
      {"InputNameTwice", [](PlanT &p) { train(p).inputs[1]->name = "tokens"; },
       "programs[0].inputs[1].name: tokens is given twice"},
      {"InputKind", [](PlanT &p) { train(p).inputs[1]->kind = InputKind(3); },
       "programs[0].inputs[1].kind: 3 is no value of this enum; the largest is 2"},
      {"InputTensor", [](PlanT &p) { train(p).inputs[1]->tensor = 99; },
       "programs[0].inputs[1].tensor: tensor index 99 is out of range (plan has 14 tensors)"},
      {"InputDType", [](PlanT &p) { train(p).inputs[0]->tensor = 6; },
       "programs[0].inputs[0].tensor: x holds f32 elements; expected an integer type"},
      {"InputLimit", [](PlanT &p) { train(p).inputs[0]->limit = 0; },
       "programs[0].inputs[0].limit: 0 leaves no valid id; expected 1 or more"},
      {"IgnoredLabel", [](PlanT &p) { train(p).inputs[1]->ignored = 7; },
       "programs[0].inputs[1].ignored: 7 is a valid label as well (limit 8)"},
      {"InputsOverlap", [](PlanT &p) { train(p).inputs[1]->tensor = 4; },
       "programs[0].inputs[1]: shares bytes with inputs[0]"},
      {"InputOverlapsItself", [](PlanT &p) { p.tensors[4]->strides[0] = 2; },
       "programs[0].inputs[0].tensor: tokens is written, but its strides give two elements the "
       "same "
       "bytes"},
      {"OutputNameTwice", [](PlanT &p) { train(p).outputs[1]->name = "loss"; },
       "programs[0].outputs[1].name: loss is given twice"},
      {"OutputTensor", [](PlanT &p) { train(p).outputs[1]->tensor = 14; },
       "programs[0].outputs[1].tensor: tensor index 14 is out of range (plan has 14 tensors)"},
      {"StreamsZero", [](PlanT &p) { train(p).streams = 0; },
       "programs[0].streams: 0 is no number of streams; expected 1 to 64"},
      {"StreamsMany", [](PlanT &p) { train(p).streams = 65; },
       "programs[0].streams: 65 is no number of streams; expected 1 to 64"},
      {"Stream", [](PlanT &p) { train(p).blocks[kSide]->stream = 2; },
       "programs[0].blocks[2].stream: 2 is out of range (program has 2)"},
      {"WaitUnknown", [](PlanT &p) { train(p).blocks[kSide]->waits = {0, 5}; },
       "programs[0].blocks[2].waits[1]: event 5 is not signalled earlier in the same list"},
      {"WaitBeforeSignal", [](PlanT &p) { train(p).blocks[kSide]->waits = {1}; },
       "programs[0].blocks[2].waits[0]: event 1 is not signalled earlier in the same list"},
      {"WaitInBody",
       [](PlanT &p) {
         train(p).blocks[kEmbedding]->signals = 0;
         train(p).blocks[kLoop]->signals = -1;
         outerLoop(p).blocks[0]->waits = {0};
       },
       "programs[0].blocks[1].loop.blocks[0].waits[0]: event 0 is not signalled earlier in the "
       "same "
       "list"},
      {"WaitOutsideBody",
       [](PlanT &p) {
         train(p).blocks[kLoop]->signals = -1;
         outerLoop(p).blocks[0]->signals = 0;
       },
       "programs[0].blocks[2].waits[0]: event 0 is not signalled earlier in the same list"},
      {"SignalRange", [](PlanT &p) { train(p).blocks[kLoop]->signals = 2; },
       "programs[0].blocks[1].signals: event 2 is out of range (program has 2)"},
      {"SignalNegative", [](PlanT &p) { train(p).blocks[kLoop]->signals = -2; },
       "programs[0].blocks[1].signals: event -2 is out of range (program has 2)"},
      {"SignalTwice", [](PlanT &p) { train(p).blocks[kSide]->signals = 0; },
       "programs[0].blocks[2].signals: event 0 is signalled by another block already"},

      {"LoopCountZero", [](PlanT &p) { outerLoop(p).count = 0; },
       "programs[0].blocks[1].loop.count: 0 is no number of iterations; expected 1 to 4294967296"},
      {"LoopCountHuge", [](PlanT &p) { outerLoop(p).count = ~uint64_t{0}; },
       "programs[0].blocks[1].loop.count: 18446744073709551615 is no number of iterations; "
       "expected "
       "1 to 4294967296"},
      {"LoopEmpty", [](PlanT &p) { innerLoop(p).blocks.clear(); },
       "programs[0].blocks[1].loop.blocks[1].loop.blocks: is empty; expected a body"},
      {"StrideTensor", [](PlanT &p) { innerLoop(p).strides[0] = LoopStride(20, 4); },
       "programs[0].blocks[1].loop.blocks[1].loop.strides[0].tensor: tensor index 20 is out of "
       "range "
       "(plan has 14 tensors)"},
      {"StrideOrder", [](PlanT &p) { std::swap(outerLoop(p).strides[0], outerLoop(p).strides[1]); },
       "programs[0].blocks[1].loop.strides[1].tensor: 12 does not come after 13"},
      {"StrideTwice", [](PlanT &p) { outerLoop(p).strides[1] = outerLoop(p).strides[0]; },
       "programs[0].blocks[1].loop.strides[1].tensor: 12 does not come after 12"},
      {"StrideElement", [](PlanT &p) { outerLoop(p).strides[0] = LoopStride(12, 30); },
       "programs[0].blocks[1].loop.strides[0].bytes: 30 is no multiple of the element size 4, or "
       "too "
       "large"},
      {"StrideHuge", [](PlanT &p) { outerLoop(p).strides[0] = LoopStride(12, INT64_MIN); },
       "programs[0].blocks[1].loop.strides[0].bytes: -9223372036854775808 is no multiple of the "
       "element size 4, or too large"},
      {"StrideLeavesForwards", [](PlanT &p) { outerLoop(p).count = 13; },
       "programs[0].blocks[1].loop.blocks[0].step.args[0]: x.slice leaves the transient segment of "
       "1280 bytes in some iteration of its loops"},
      {"StrideLeavesBackwards", [](PlanT &p) { outerLoop(p).strides[0] = LoopStride(12, -96); },
       "programs[0].blocks[1].loop.blocks[0].step.args[0]: x.slice leaves the transient segment of "
       "1280 bytes in some iteration of its loops"},
      {"StridesAddUp", [](PlanT &p) { innerLoop(p).count = 256; },
       "programs[0].blocks[1].loop.blocks[1].loop.blocks[0].switch.cases[0].blocks[0].step.args[0]:"
       " "
       "x.column leaves the transient segment of 1280 bytes in some iteration of its loops"},
      {"StrideOverflow",
       [](PlanT &p) {
         outerLoop(p).count = uint64_t{1} << 32;
         outerLoop(p).strides[0] = LoopStride(12, int64_t{1} << 48);
       },
       "programs[0].blocks[1].loop.blocks[0].step.args[0]: x.slice leaves the transient segment of "
       "1280 bytes in some iteration of its loops"},
      {"BeyondTransientBytes", [](PlanT &p) { train(p).transient_bytes = 1279; },
       "programs[0].blocks[3].step.args[3]: workspace reaches beyond transient_bytes (1279) of the "
       "program"},
      {"Depth",
       [](PlanT &p) {
         for (int i = 0; i < 16; ++i)
           p.programs[1]->blocks = blocks(loop(1, {}, std::move(p.programs[1]->blocks)));
       },
       "programs[1].blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks[0].loop."
       "blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks[0].loop."
       "blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks[0].loop.blocks: are "
       "nested deeper than 16"},
      {"SelectorTensor", [](PlanT &p) { choice(p).selector = 14; },
       "programs[0].blocks[1].loop.blocks[1].loop.blocks[0].switch.selector: tensor index 14 is "
       "out "
       "of range (plan has 14 tensors)"},
      {"SelectorType", [](PlanT &p) { choice(p).selector = 10; },
       "programs[0].blocks[1].loop.blocks[1].loop.blocks[0].switch.selector: loss is f32 of rank "
       "0; "
       "expected i32 of rank 0"},
      {"SelectorRank", [](PlanT &p) { choice(p).selector = 4; },
       "programs[0].blocks[1].loop.blocks[1].loop.blocks[0].switch.selector: tokens is i32 of rank "
       "2; expected i32 of rank 0"},
      {"NoCase", [](PlanT &p) { choice(p).cases.clear(); },
       "programs[0].blocks[1].loop.blocks[1].loop.blocks[0].switch.cases: is empty; expected at "
       "least one case"},

      {"Phase", [](PlanT &p) { step(p, kMatmul).phase = Phase(5); },
       "programs[0].blocks[3].step.phase: 5 is no value of this enum; the largest is 4"},
      {"OpClass", [](PlanT &p) { step(p, kMatmul).op_class = OpClass(15); },
       "programs[0].blocks[3].step.op_class: 15 is no value of this enum; the largest is 14"},
      {"Bound", [](PlanT &p) { step(p, kMatmul).bound = Bound(4); },
       "programs[0].blocks[3].step.bound: 4 is no value of this enum; the largest is 3"},
      {"StepLocation", [](PlanT &p) { step(p, kMatmul).location = 1; },
       "programs[0].blocks[3].step.location: location index 1 is out of range (plan has 1 "
       "locations)"},
      {"StepPath", [](PlanT &p) { step(p, kMatmul).path = 3; },
       "programs[0].blocks[3].step.path: path index 3 is out of range (plan has 0 paths)"},
      {"StepPass", [](PlanT &p) { step(p, kMatmul).pass = 99; },
       "programs[0].blocks[3].step.pass: pass index 99 is out of range (the header has 2)"},
      {"FewPhases", [](PlanT &p) { step(p, kMatmul).phase_flops = {1, 2}; },
       "programs[0].blocks[3].step.phase_flops: has 2 entries; expected one for each of 5 phases"},
      {"PhasesBeyond",
       [](PlanT &p) {
         step(p, kMatmul).cost = Cost(3, 0, 0);
         step(p, kMatmul).phase_flops = {1, 0, 3, 0, 0};
       },
       "programs[0].blocks[3].step.phase_flops: is more than the 3 of the step"},
      {"PhasesBelow",
       [](PlanT &p) {
         step(p, kMatmul).cost = Cost(3, 0, 0);
         step(p, kMatmul).phase_flops = {1, 0, 1, 0, 0};
       },
       "programs[0].blocks[3].step.phase_flops: is 1 less than the 3 of the step"},
      {"StepLayer", [](PlanT &p) { step(p, kMatmul).layer = -3; },
       "programs[0].blocks[3].step.layer: -3 is no layer; expected -1 or more"},
      {"StepCost", [](PlanT &p) { step(p, kMatmul).cost = Cost(0, 0, NAN); },
       "programs[0].blocks[3].step.cost: nan us is no time"},
      {"LaunchKernel", [](PlanT &p) { scale(p).action.AsLaunch()->kernel = 2; },
       "programs[0].blocks[1].loop.blocks[0].step.launch.kernel: kernel index 2 is out of range "
       "(plan has 2 kernels)"},
      {"LaunchArgs", [](PlanT &p) { scale(p).args.pop_back(); },
       "programs[0].blocks[1].loop.blocks[0].step.launch.kernel: scale takes 3 arguments, but the "
       "step has 2"},
      {"LaunchRows", [](PlanT &p) { scale(p).action.AsLaunch()->rows = 0; },
       "programs[0].blocks[1].loop.blocks[0].step.launch.rows: 0 is out of range; expected 1 to "
       "9223372036854775807"},
      {"LaunchGrain", [](PlanT &p) { scale(p).action.AsLaunch()->grain = -1; },
       "programs[0].blocks[1].loop.blocks[0].step.launch.grain: -1 is out of range; expected 1 to "
       "9223372036854775807"},
      {"NothingByItself", [](PlanT &p) { step(p, kMatmul).action.Set(NothingT()); },
       "programs[0].blocks[3].step.action: is nothing, which only takes the place of a launch"},

      {"ArgTensor", [](PlanT &p) { setArg(step(p, kMatmul), 2, writes(931)); },
       "programs[0].blocks[3].step.args[2]: tensor index 931 is out of range (plan has 14 "
       "tensors)"},
      {"ArgAccess", [](PlanT &p) { setArg(step(p, kMatmul), 2, {Access(3), 0}); },
       "programs[0].blocks[3].step.args[2].access: 3 is no value of this enum; the largest is 2"},
      {"WriteOverlapsItself", [](PlanT &p) { p.tensors[9]->strides[0] = 0; },
       "programs[0].blocks[3].step.args[2]: grad.w is written, but its strides give two elements "
       "the "
       "same bytes"},

      {"AlternativesOfLaunch",
       [](PlanT &p) { std::swap(step(p, kMatmul).alternatives, step(p, kAdamW).alternatives); },
       "programs[0].blocks[3].step.chosen: 1 is out of range (step has 0 alternatives)"},
      {"AlternativeKind",
       [](PlanT &p) {
         step(p, kMatmul).chosen = 0;
         std::swap(step(p, kMatmul).alternatives, step(p, kAdamW).alternatives);
       },
       "programs[0].blocks[4].step.alternatives: belong to a launch, which has none on the CPU"},
      {"Chosen", [](PlanT &p) { step(p, kMatmul).chosen = 2; },
       "programs[0].blocks[3].step.chosen: 2 is out of range (step has 2 alternatives)"},
      {"AlternativeOfAnotherKind",
       [](PlanT &p) { step(p, kMatmul).alternatives[1]->action.Set(CopyT()); },
       "programs[0].blocks[3].step.alternatives[1].action: is copy; expected matmul or none"},
      {"AlternativeOfACollective",
       [](PlanT &p) {
         addAxis(p, "data", 2);
         step(p, kMatmul).action.Set(AllGatherT());
         step(p, kMatmul).alternatives[0]->action.Reset();
         step(p, kMatmul).alternatives[1]->action.Set(AllGatherT());
       },
       "programs[0].blocks[3].step.alternatives[1].action: is all_gather; expected none, as of all "
       "collectives"},
      {"CollectiveInLoop",
       [](PlanT &p) {
         addAxis(p, "data", 2);
         scale(p).action.Set(AllToAllT());
       },
       "programs[0].blocks[1].loop.blocks[0].step: is a collective in a loop or switch; ranks meet "
       "outside of them"},
      {"CollectiveWithoutAMesh", [](PlanT &p) { step(p, kEmbedding).action.Set(AllGatherT()); },
       "programs[0].blocks[0].step: is a collective along axis 0 of a mesh of 0"},
      {"CollectiveAlongNoAxis",
       [](PlanT &p) {
         addAxis(p, "data", 2);
         AllToAllT exchange;
         exchange.axis = 1;
         step(p, kEmbedding).action.Set(exchange);
       },
       "programs[0].blocks[0].step: is a collective along axis 1 of a mesh of 1"},
      {"CollectivesOnTwoStreams",
       [](PlanT &p) {
         addAxis(p, "data", 2);
         step(p, kEmbedding).action.Set(AllToAllT());
         step(p, kSide).action.Set(AllGatherT());
       },
       "programs[0].blocks[2].step: is a collective along axis 0 on stream 1; others are on stream "
       "0"},
      {"BatchOfInput", [](PlanT &p) { train(p).inputs[0]->batch_dimension = 2; },
       "programs[0].inputs[0].batch_dimension: 2 is no dimension of a tensor of rank 2"},
      {"BatchOfOutput", [](PlanT &p) { train(p).outputs[0]->batch_dimension = 0; },
       "programs[0].outputs[0].batch_dimension: 0 is no dimension of a tensor of rank 0"},
      {"Limit", [](PlanT &p) { step(p, kMatmul).limit_microseconds = NAN; },
       "programs[0].blocks[3].step.limit_microseconds: nan is not finite"},
      {"OwnCopy", [](PlanT &p) { step(p, kMatmul).own_copy_microseconds = -1; },
       "programs[0].blocks[3].step.own_copy_microseconds: -1 is negative"},
      {"AlternativeTime", [](PlanT &p) { step(p, kMatmul).alternatives[0]->microseconds = NAN; },
       "programs[0].blocks[3].step.alternatives[0].microseconds: nan is not finite"},
  };
}

} // namespace

TEST_P(ProgramRules, BrokenIsRejected) { expectError(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Programs, ProgramRules, testing::ValuesIn(cases()), nameOfCase);

TEST(ProgramVerifier, KnowsWhatItCanRun) {
  const runtime::PlanFile file = samplePlan().load();
  const Block &block = *file.plan().programs()->Get(0)->blocks()->Get(kMatmul);
  const auto errorWith = [&](const uint8_t *type) {
    std::vector<std::byte> bytes(file.bytes().begin(), file.bytes().end());
    bytes[type - reinterpret_cast<const uint8_t *>(file.bytes().data())] = std::byte{99};
    runtime::sealPlan(bytes);
    try {
      runtime::PlanFile::parse(std::move(bytes), "plan.fb");
    } catch (const support::Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto typeOf = [](const auto &table, flatbuffers::voffset_t field) {
    return reinterpret_cast<const flatbuffers::Table &>(table).GetAddressOf(field);
  };
  EXPECT_EQ(errorWith(typeOf(block, Block::VT_NODE_TYPE)),
            "plan.fb: programs[0].blocks[3].node: is of no known type (99)");
  EXPECT_EQ(errorWith(typeOf(*block.node_as_Step(), Step::VT_ACTION_TYPE)),
            "plan.fb: programs[0].blocks[3].step.action: is of no known type (99)");
}

TEST(ProgramVerifier, AcceptsTheDeepestNesting) {
  PlanBuilder builder = samplePlan();
  auto &list = builder.plan.programs[1]->blocks;
  // Switches are the nodes that take most tables.
  for (int i = 0; i < 15; ++i) {
    std::vector<Blocks> one(1);
    one[0] = std::move(list);
    list = blocks(choose(7, std::move(one)));
  }
  EXPECT_EQ(errorOf(builder), "");
}

} // namespace hydra::test
