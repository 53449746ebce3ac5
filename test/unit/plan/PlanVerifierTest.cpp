// One plan per rule about data and code, broken in exactly that rule.
#include "test/unit/plan/DamageCase.h"

#include <cmath>
#include <cstring>

namespace hydra::test {

using namespace planfile;

namespace {

class PlanRules : public testing::TestWithParam<DamageCase> {};

void addPhase(PlanT &plan, uint32_t program, uint64_t lastStep) {
  auto phase = std::make_unique<TrainingPhaseT>();
  phase->program = program;
  phase->last_step = lastStep;
  plan.phases.push_back(std::move(phase));
}

/// The first program has a safe form, which is the same.
void addSafeCopy(PlanT &plan) {
  auto safe = std::make_unique<ProgramT>(*plan.programs[0]);
  safe->name = "train.safe";
  safe->role = ProgramRole::custom;
  plan.programs[0]->safe = static_cast<int32_t>(plan.programs.size());
  plan.programs.push_back(std::move(safe));
}

void addWithout(PlanT &plan, std::vector<uint32_t> programs) {
  auto one = std::make_unique<OptimizationT>();
  one->name = "attention";
  one->fast = "flash";
  one->safe = "naive";
  one->programs = std::move(programs);
  plan.optimizations.push_back(std::move(one));
}

std::vector<DamageCase> cases() {
  return {
      {"Mode", [](PlanT &p) { p.header->mode = "sleep"; },
       "header.mode: sleep is no mode; expected generate, forward, grad or train"},
      {"TargetKind", [](PlanT &p) { p.target->kind = TargetKind(9); },
       "target.kind: 9 is no value of this enum; the largest is 1"},
      {"Arch", [](PlanT &p) { p.target->kind = TargetKind::cuda; },
       "target.sm_arch: (nothing) is no GPU architecture; expected one such as sm_90a"},
      {"Overlap", [](PlanT &p) { p.target->overlap = -0.5; }, "target.overlap: -0.5 is negative"},
      {"OwnCopyTail", [](PlanT &p) { p.target->own_copy_tail = -1; },
       "target.own_copy_tail: -1 is negative"},
      {"PeakFlops", [](PlanT &p) { p.target->peak_flops = INFINITY; },
       "target.peak_flops: inf is not finite"},
      {"Sharing", [](PlanT &p) { p.target->sharing = std::make_unique<Sharing>(0.5, NAN, 30, 6); },
       "target.sharing.gap_microseconds: nan is not finite"},
      {"SegmentCount", [](PlanT &p) { p.segments.emplace_back(0, 1); },
       "segments: has 4 entries; expected 3: persistent, transient, host"},
      {"Alignment", [](PlanT &p) { p.segments[1] = Segment(p.segments[1].size(), 48); },
       "segments[1].alignment: 48 is no power of two of at most 2097152"},
      {"AlignmentZero", [](PlanT &p) { p.segments[0] = Segment(p.segments[0].size(), 0); },
       "segments[0].alignment: 0 is no power of two of at most 2097152"},
      {"SegmentSize", [](PlanT &p) { p.segments[1] = Segment(~uint64_t{0}, 64); },
       "segments[1].size: 18446744073709551615 bytes are more than 281474976710656"},
      {"LocationFile", [](PlanT &p) { p.locations[0] = Location(1, 1, 1); },
       "locations[0].file: file index 1 is out of range (plan has 1 files)"},
      {"LocationLine", [](PlanT &p) { p.locations[0] = Location(0, 0, 1); },
       "locations[0]: 0:1 is no place in a file; lines and columns count from 1"},

      {"MeshAxisTwice",
       [](PlanT &p) {
         addAxis(p, "data", 2);
         addAxis(p, "data", 2);
       },
       "mesh[1].name: data is given twice"},
      {"MeshSize", [](PlanT &p) { addAxis(p, "data", 0); },
       "mesh[0].size: 0 is no number of ranks; expected 1 to 65536 in all"},
      {"MeshRanks",
       [](PlanT &p) {
         addAxis(p, "node", 512);
         addAxis(p, "data", 256);
       },
       "mesh[1].size: 256 is no number of ranks; expected 1 to 65536 in all"},
      {"MeshRank", [](PlanT &p) { addAxis(p, "data", 2, p.scalars[0]->tensor); },
       "mesh[0].rank: lr is no persistent i32 of rank 0"},
      {"MeshRankOfAVariable",
       [](PlanT &p) {
         auto tensor = std::make_unique<TensorT>(*p.tensors[p.variables[2]->tensor]);
         tensor->dtype = DType::i32;
         tensor->shape = tensor->strides = {};
         p.tensors.push_back(std::move(tensor));
         addAxis(p, "data", 2, static_cast<int32_t>(p.tensors.size() - 1));
       },
       "mesh[0]: data shares bytes with theta"},

      {"TensorName", [](PlanT &p) { p.tensors[2]->name = ""; }, "tensors[2].name: is empty"},
      {"DType", [](PlanT &p) { p.tensors[0]->dtype = DType(15); },
       "tensors[0].dtype: 15 is no value of this enum; the largest is 14"},
      {"DTypeOfNoTensor", [](PlanT &p) { p.tensors[0]->dtype = DType::tf32; },
       "tensors[0].dtype: is tf32, which no tensor holds"},
      {"TensorSegment", [](PlanT &p) { p.tensors[0]->segment = SegmentKind(3); },
       "tensors[0].segment: 3 is no value of this enum; the largest is 2"},
      {"Category", [](PlanT &p) { p.tensors[0]->category = Category(17); },
       "tensors[0].category: 17 is no value of this enum; the largest is 16"},
      {"TensorLocation", [](PlanT &p) { p.tensors[1]->location = 7; },
       "tensors[1].location: location index 7 is out of range (plan has 1 locations)"},
      {"TensorLayer", [](PlanT &p) { p.tensors[1]->layer = -2; },
       "tensors[1].layer: -2 is no layer; expected -1 or more"},
      {"Rank",
       [](PlanT &p) { p.tensors[0]->shape = p.tensors[0]->strides = std::vector<int64_t>(9, 1); },
       "tensors[0].shape: has rank 9; the largest is 8"},
      {"StrideCount", [](PlanT &p) { p.tensors[0]->strides.pop_back(); },
       "tensors[0].strides: has 1 entries for a shape with 2"},
      {"DimensionZero", [](PlanT &p) { p.tensors[0]->shape[1] = 0; },
       "tensors[0].shape[1]: 0 is no valid dimension; expected 1 or more, and at most "
       "281474976710656 elements in all"},
      {"DimensionsOverflow", [](PlanT &p) { p.tensors[0]->shape = {int64_t{1} << 40, 1 << 9}; },
       "tensors[0].shape[1]: 512 is no valid dimension; expected 1 or more, and at most "
       "281474976710656 elements in all"},
      {"StrideNegative", [](PlanT &p) { p.tensors[0]->strides[0] = -4; },
       "tensors[0].strides[0]: -4 is no valid stride; expected 0 to 281474976710656"},
      {"StrideHuge", [](PlanT &p) { p.tensors[0]->strides[0] = INT64_MAX; },
       "tensors[0].strides[0]: 9223372036854775807 is no valid stride; expected 0 to "
       "281474976710656"},
      {"OffsetAlignment", [](PlanT &p) { p.tensors[0]->offset = 2; },
       "tensors[0].offset: 2 is no multiple of the element size 4"},
      {"OffsetHuge", [](PlanT &p) { p.tensors[0]->offset = ~uint64_t{3}; },
       "tensors[0].offset: 18446744073709551612 is outside the persistent segment of 324 bytes"},
      {"TensorEnd", [](PlanT &p) { p.tensors[0]->offset = 324 - 124; },
       "tensors[0]: layers.0.w reaches beyond the persistent segment of 324 bytes"},
      {"TensorEndByStride", [](PlanT &p) { p.tensors[0]->strides[0] = int64_t{1} << 48; },
       "tensors[0]: layers.0.w reaches beyond the persistent segment of 324 bytes"},

      {"VariableNameTwice", [](PlanT &p) { p.variables[2]->name = "layers.0.w"; },
       "variables[2].name: layers.0.w is given twice"},
      {"VariableNameEmpty", [](PlanT &p) { p.variables[2]->name = ""; },
       "variables[2].name: is empty"},
      {"VariableRole", [](PlanT &p) { p.variables[2]->role = VariableRole(15); },
       "variables[2].role: 15 is no value of this enum; the largest is 14"},
      {"VariableTensor", [](PlanT &p) { p.variables[1]->tensor = 931; },
       "variables[1].tensor: tensor index 931 is out of range (plan has 14 tensors)"},
      {"VariableTransient", [](PlanT &p) { p.variables[1]->tensor = 4; },
       "variables[1].tensor: tokens is in the transient segment; expected the persistent one"},
      {"InitKind", [](PlanT &p) { p.variables[0]->initializer->kind = InitKind(5); },
       "variables[0].initializer.kind: 5 is no value of this enum; the largest is 4"},
      {"InitValue", [](PlanT &p) { p.variables[0]->initializer->value = NAN; },
       "variables[0].initializer.value: nan is not finite"},
      {"InitStd", [](PlanT &p) { p.variables[0]->initializer->std = -0.5; },
       "variables[0].initializer.std: -0.5 is negative"},
      {"InitCut", [](PlanT &p) { p.variables[0]->initializer->cut = 0; },
       "variables[0].initializer.cut: 0 leaves no values; expected more"},
      {"InitLimit", [](PlanT &p) { p.variables[0]->initializer->limit = INFINITY; },
       "variables[0].initializer.limit: inf is not finite"},
      {"InitTable", [](PlanT &p) { p.variables[2]->initializer->table.push_back(4); },
       "variables[2].initializer.table: has 4 values for a tensor with 3 elements"},
      {"GroupOfState", [](PlanT &p) { p.variables[1]->group = "decay"; },
       "variables[1].group: belongs to a state; only parameters have one"},
      {"FrozenState", [](PlanT &p) { p.variables[1]->frozen = true; },
       "variables[1].frozen: is said of a state; only parameters are trained"},
      {"AdapterOfState",
       [](PlanT &p) {
         p.variables[1]->adapter = std::make_unique<planfile::AdapterT>();
         p.variables[1]->adapter->tensor = "a";
       },
       "variables[1].adapter: belongs to a state; only parameters have one"},
      {"AdapterWithoutName",
       [](PlanT &p) { p.variables[0]->adapter = std::make_unique<planfile::AdapterT>(); },
       "variables[0].adapter.tensor: is empty; expected a name"},
      {"AdapterAlpha",
       [](PlanT &p) {
         p.variables[0]->adapter = std::make_unique<planfile::AdapterT>();
         p.variables[0]->adapter->tensor = "a";
         p.variables[0]->adapter->alpha = std::numeric_limits<double>::infinity();
       },
       "variables[0].adapter.alpha: inf is not finite"},
      {"AdapterOfNoMatrix",
       [](PlanT &p) {
         p.variables[2]->adapter = std::make_unique<planfile::AdapterT>();
         p.variables[2]->adapter->tensor = "a";
       },
       "variables[2].adapter: belongs to a parameter of rank 1; expected a matrix"},
      {"AdapterOfOneMatrixOnly",
       [](PlanT &p) {
         const uint32_t tensor = p.variables[0]->tensor;
         ASSERT_EQ(p.tensors[tensor]->shape.size(), 2u);
         p.variables[0]->adapter = std::make_unique<planfile::AdapterT>();
         p.variables[0]->adapter->tensor = "a.{row}.b";
       },
       "variables[0].adapter.tensor: names a tensor for each of several matrices; expected one"},
      {"MomentRange", [](PlanT &p) { p.variables[1]->owner = 3; },
       "variables[1].owner: variable index 3 is out of range (plan has 3 variables)"},
      {"MomentNegative", [](PlanT &p) { p.variables[1]->owner = -2; },
       "variables[1].owner: variable index -2 is out of range (plan has 3 variables)"},
      {"ParameterHasOwner", [](PlanT &p) { p.variables[2]->owner = 0; },
       "variables[2].owner: belongs to a variable of role parameter, which has none"},
      {"MomentOfState", [](PlanT &p) { p.variables[1]->owner = 1; },
       "variables[1].owner: variable 1 is no parameter; expected that of a moment"},
      {"CopyOfMoment",
       [](PlanT &p) {
         p.variables[2]->role = VariableRole::copy;
         p.variables[2]->owner = 1;
       },
       "variables[2].owner: variable 1 is neither parameter nor state"},
      {"DerivedOfMoment",
       [](PlanT &p) {
         p.variables[2]->role = VariableRole::derived;
         p.variables[2]->owner = 1;
       },
       "variables[2].owner: variable 1 is no parameter; expected that of a derived, or none"},
      {"DerivedByNoProgram", [](PlanT &p) { p.variables[2]->role = VariableRole::derived; },
       "variables[2].role: derived needs a program of role derive"},
      {"HistoryOfOneDimension", [](PlanT &p) { p.variables[2]->role = VariableRole::amax_history; },
       "variables[2].tensor: theta is no history; expected f32 of two dimensions"},
      {"ScaleOfNothing", [](PlanT &p) { p.variables[2]->role = VariableRole::scale; },
       "variables[2].owner: variable -1 is no parameter; expected that of a scale"},
      {"ScaleOfFloats",
       [](PlanT &p) {
         p.variables[2]->role = VariableRole::scale;
         p.variables[2]->owner = 0;
       },
       "variables[2].owner: layers.0.w is no matrix of i8"},
      {"IntegersWithoutScale",
       [](PlanT &p) { p.tensors[p.variables[2]->tensor]->dtype = planfile::DType::i8; },
       "variables[2]: is of i8 and has 0 scales; expected one"},
      {"PackedFloats", [](PlanT &p) { p.variables[0]->packed = true; },
       "variables[0].packed: belongs to layers.0.w; expected a parameter of i8 by itself"},
      {"ScaleOfPackedRows",
       [](PlanT &p) {
         p.tensors[p.variables[0]->tensor]->dtype = planfile::DType::i8;
         p.variables[0]->packed = true;
         p.variables[2]->role = VariableRole::scale;
         p.variables[2]->owner = 0;
       },
       "variables[2].owner: theta has no number of bf16 for each 32 numbers of a row of "
       "layers.0.w"},
      {"CopyOfIntegers",
       [](PlanT &p) {
         for (const int i : {0, 1})
           p.tensors[p.variables[i]->tensor]->dtype = planfile::DType::i8;
         p.variables[1]->role = VariableRole::copy;
         p.variables[2]->role = VariableRole::scale;
         p.variables[2]->owner = 0;
       },
       "variables[1].owner: layers.0.w is a parameter of i8, which has no copies"},
      {"RestOfNothing", [](PlanT &p) { p.variables[2]->role = VariableRole::rest; },
       "variables[2].owner: variable -1 is no parameter; expected that of a rest"},
      {"RestOfF32",
       [](PlanT &p) {
         p.variables[2]->role = VariableRole::rest;
         p.variables[2]->owner = 0;
       },
       "variables[2].owner: layers.0.w is no parameter of bf16"},
      {"RestOfAnotherType",
       [](PlanT &p) {
         p.tensors[p.variables[0]->tensor]->dtype = planfile::DType::bf16;
         p.variables[1]->role = VariableRole::rest;
       },
       "variables[1].owner: layers.0.w.m has no number of i16 for each of layers.0.w"},
      {"CopyOfNothing", [](PlanT &p) { p.variables[2]->role = VariableRole::copy; },
       "variables[2].owner: is not given; a copy needs it"},
      {"ProgramRole", [](PlanT &p) { p.programs[0]->role = ProgramRole(9); },
       "programs[0].role: 9 is no value of this enum; the largest is 8"},
      {"DerivesFromInputs", [](PlanT &p) { p.programs[0]->role = ProgramRole::derive; },
       "programs[0].inputs: are given to a program of role derive; expected none"},
      {"DecodesWithoutContext", [](PlanT &p) { p.programs[0]->role = ProgramRole::decode; },
       "programs[0].context: 0 is no number of tokens for the role decode"},
      {"ContextOfAnother", [](PlanT &p) { p.programs[0]->context = 8; },
       "programs[0].context: 8 is no number of tokens for the role train"},
      {"GradientOfState", [](PlanT &p) { p.programs[0]->outputs[0]->gradient_of = 1; },
       "programs[0].outputs[0].gradient_of: variable 1 is no parameter"},
      {"CountsForNothing", [](PlanT &p) { p.programs[0]->role = ProgramRole::count; },
       "programs[0]: counts for no program of role accumulate behind it"},
      {"VariablesOverlap", [](PlanT &p) { p.tensors[1]->offset = 124; },
       "variables[1]: layers.0.w.m shares bytes with layers.0.w"},
      {"ScalarOverlaps", [](PlanT &p) { p.tensors[3]->offset = 256; },
       "scalars[0]: lr shares bytes with theta"},

      {"ScalarNameTwice",
       [](PlanT &p) { p.scalars.push_back(std::make_unique<ScalarT>(*p.scalars[0])); },
       "scalars[1].name: lr is given twice"},
      {"ScalarTensor", [](PlanT &p) { p.scalars[0]->tensor = 14; },
       "scalars[0].tensor: tensor index 14 is out of range (plan has 14 tensors)"},
      {"ScalarRank", [](PlanT &p) { p.scalars[0]->tensor = 2; },
       "scalars[0].tensor: theta has rank 1; expected 0"},
      {"ScheduleKind", [](PlanT &p) { p.scalars[0]->schedule->kind = ScheduleKind(8); },
       "scalars[0].schedule.kind: 8 is no value of this enum; the largest is 7"},
      {"ScalarThatIsDrawn", [](PlanT &p) { p.scalars[0]->schedule->kind = ScheduleKind::draw_low; },
       "scalars[0].tensor: lr is f32; expected i32, as numbers of kind draw_low are"},
      {"ScalarThatCounts",
       [](PlanT &p) { p.scalars[0]->schedule->kind = ScheduleKind::micro_batch; },
       "scalars[0].tensor: lr is f32; expected i32, as numbers of kind micro_batch are"},
      {"SchedulePeak", [](PlanT &p) { p.scalars[0]->schedule->peak = NAN; },
       "scalars[0].schedule.peak: nan is not finite"},
      {"ScheduleFloor", [](PlanT &p) { p.scalars[0]->schedule->floor = -INFINITY; },
       "scalars[0].schedule.floor: -inf is not finite"},
      {"ScheduleWarmup", [](PlanT &p) { p.scalars[0]->schedule->warmup_steps = -1; },
       "scalars[0].schedule.warmup_steps: -1 is no number of steps; expected 0 to "
       "4503599627370496"},
      {"ScheduleStable", [](PlanT &p) { p.scalars[0]->schedule->stable_steps = INT64_MAX; },
       "scalars[0].schedule.stable_steps: 9223372036854775807 is no number of steps; expected 0 to "
       "4503599627370496"},
      {"ScheduleTotal", [](PlanT &p) { p.scalars[0]->schedule->total_steps = 9; },
       "scalars[0].schedule.total_steps: 9 steps are fewer than the 10 before the decay"},
      {"ScheduleFirst", [](PlanT &p) { p.scalars[0]->schedule->first = 2; },
       "scalars[0].schedule.first: 2 is neither 0 nor 1"},

      {"BlobKind", [](PlanT &p) { p.blobs[1]->kind = BlobKind(3); },
       "blobs[1].kind: 3 is no value of this enum; the largest is 2"},
      {"BlobTarget", [](PlanT &p) { p.blobs[1]->kind = BlobKind::cubin; },
       "blobs[1].kind: cubin code does not run on target cpu"},
      {"BlobEmpty", [](PlanT &p) { p.blobs[0]->data.clear(); }, "blobs[0].data: is empty"},
      {"KernelNameTwice", [](PlanT &p) { p.kernels[1]->name = "scale"; },
       "kernels[1].name: scale is given twice"},
      {"KernelSymbol", [](PlanT &p) { p.kernels[1]->symbol = ""; }, "kernels[1].symbol: is empty"},
      {"KernelBlob", [](PlanT &p) { p.kernels[1]->blob = 2; },
       "kernels[1].blob: blob index 2 is out of range (plan has 2 blobs)"},
      {"KernelPtxRange", [](PlanT &p) { p.kernels[1]->ptx = 2; },
       "kernels[1].ptx: blob index 2 is out of range (plan has 2 blobs)"},
      {"KernelPtxKind", [](PlanT &p) { p.kernels[1]->ptx = 0; },
       "kernels[1].ptx: blob 0 is no ptx"},
      {"GridOnCPU", [](PlanT &p) { p.kernels[0]->grid = Dim3(1, 1, 1); },
       "kernels[0]: has a grid, but the target is the CPU"},
      {"GridZero",
       [](PlanT &p) {
         makeCuda(p);
         p.kernels[0]->grid = Dim3(0, 1, 1);
       },
       "kernels[0].grid: [0, 1, 1] is no grid; expected 1 to [2147483647, 65535, 65535]"},
      {"BlockThreads",
       [](PlanT &p) {
         makeCuda(p);
         p.kernels[0]->block = Dim3(64, 32, 1);
       },
       "kernels[0].block: [64, 32, 1] is no thread block; expected 1 to [1024, 1024, 64] and at "
       "most "
       "1024 threads"},
      {"SharedBytes",
       [](PlanT &p) {
         makeCuda(p);
         p.kernels[1]->shared_bytes = 1001;
       },
       "kernels[1].shared_bytes: 1001 is more than the 1000 of the target"},
      {"AlternativeOfLaunchWithoutAction",
       [](PlanT &p) {
         makeCuda(p);
         StepT &launch = *p.programs[0]->blocks[kAdamW]->node.AsStep();
         for (const char *description : {"own kernel", "library"}) {
           launch.alternatives.push_back(std::make_unique<AlternativeT>());
           launch.alternatives.back()->description = description;
         }
       },
       "programs[0].blocks[4].step.alternatives[1].action: is none; expected a function in place "
       "of "
       "the launch"},
      {"AlternativeOfLaunchThatTransfers",
       [](PlanT &p) {
         makeCuda(p);
         StepT &launch = *p.programs[0]->blocks[kAdamW]->node.AsStep();
         for (const char *description : {"own kernel", "library"}) {
           launch.alternatives.push_back(std::make_unique<AlternativeT>());
           launch.alternatives.back()->description = description;
         }
         launch.alternatives[1]->action.Set(TransferT());
       },
       "programs[0].blocks[4].step.alternatives[1].action: is transfer; expected a function in "
       "place "
       "of "
       "the launch"},
      {"AlternativeOfLaunchThatIsACollective",
       [](PlanT &p) {
         makeCuda(p);
         addAxis(p, "data", 2);
         StepT &launch = *p.programs[0]->blocks[kAdamW]->node.AsStep();
         for (const char *description : {"own kernel", "library"}) {
           launch.alternatives.push_back(std::make_unique<AlternativeT>());
           launch.alternatives.back()->description = description;
         }
         launch.alternatives[1]->action.Set(AllGatherT());
       },
       "programs[0].blocks[4].step.alternatives[1].action: is all_gather; expected a function in "
       "place of the launch"},
      {"Instances",
       [](PlanT &p) {
         makeCuda(p);
         p.kernels[0]->instances = 513;
       },
       "kernels[0].instances: 513 lists of 3 arguments do not fit into a launch"},
      {"ManyArguments",
       [](PlanT &p) {
         makeCuda(p);
         p.kernels[0]->arg_count = 513;
       },
       "kernels[0].instances: 1 lists of 513 arguments do not fit into a launch"},
      {"InstancesOnTheCpu", [](PlanT &p) { p.kernels[0]->instances = 2; },
       "kernels[0]: has a grid, but the target is the CPU"},
      {"RowsOnCuda",
       [](PlanT &p) {
         makeCuda(p);
         p.programs[0]->blocks[kAdamW]->node.AsStep()->action.AsLaunch()->rows = 8;
       },
       "programs[0].blocks[4].step.launch.rows: 8 is out of range; expected 0 to 0"},

      {"NoProgram", [](PlanT &p) { p.programs.clear(); },
       "programs: is empty; expected at least one program"},
      {"ProgramNameTwice", [](PlanT &p) { p.programs[1]->name = "train"; },
       "programs[1].name: train is given twice"},
      {"AccumulationZero", [](PlanT &p) { p.accumulation = 0; },
       "accumulation: 0 runs make no step; expected 1 or more"},
      {"PhaseWithoutTrain",
       [](PlanT &p) {
         p.programs[0]->name = "other";
         addPhase(p, 0, 1);
       },
       "phases: need the program train"},
      {"PhaseProgram", [](PlanT &p) { addPhase(p, 9, 1); },
       "phases[0].program: program index 9 is out of range (plan has 2 programs)"},
      {"PhaseOrder",
       [](PlanT &p) {
         addPhase(p, 0, 5);
         addPhase(p, 0, 5);
       },
       "phases[1].last_step: 5 is not behind step 5"},
      {"SafeProgram", [](PlanT &p) { p.programs[0]->safe = 9; },
       "programs[0].safe: program index 9 is out of range (plan has 2 programs)"},
      {"SafeForm", [](PlanT &p) { p.programs[0]->safe = 1; },
       "programs[0].safe: eval has another role than custom, or other inputs or outputs than "
       "train"},
      {"InputOfAProgramWithASafeForm",
       [](PlanT &p) {
         addSafeCopy(p);
         p.programs[0]->inputs[0]->tensor = 99;
       },
       "programs[0].inputs[0].tensor: tensor index 99 is out of range (plan has 14 tensors)"},
      {"InputOfASafeForm",
       [](PlanT &p) {
         addSafeCopy(p);
         p.programs[2]->inputs[0]->tensor = 99;
       },
       "programs[2].inputs[0].tensor: tensor index 99 is out of range (plan has 14 tensors)"},
      {"WithoutOptimizationCount", [](PlanT &p) { addWithout(p, {1}); },
       "optimizations[0].programs: 1 are given; expected as many as have a safe form, 0"},
      {"WithoutOptimizationProgram",
       [](PlanT &p) {
         addSafeCopy(p);
         addWithout(p, {9});
       },
       "optimizations[0].programs[0]: program index 9 is out of range (plan has 3 programs)"},
      {"WithoutOptimizationForm",
       [](PlanT &p) {
         addSafeCopy(p);
         addWithout(p, {1});
       },
       "optimizations[0].programs[0]: eval has another role than custom, or other inputs or "
       "outputs than train"},
      {"AccumulationPrograms", [](PlanT &p) { p.accumulation = 4; },
       "accumulation: 4 needs the programs accumulate and apply"},
  };
}

size_t offsetIn(const runtime::PlanFile &file, const uint8_t *place) {
  return static_cast<size_t>(place - reinterpret_cast<const uint8_t *>(file.bytes().data()));
}

/// What the loader says of a plan that was damaged behind the encoder.
std::string errorOf(std::vector<std::byte> bytes) {
  runtime::sealPlan(bytes);
  try {
    runtime::PlanFile::parse(std::move(bytes), "plan.fb");
  } catch (const support::Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_P(PlanRules, BrokenIsRejected) { expectError(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Data, PlanRules, testing::ValuesIn(cases()), nameOfCase);

TEST(PlanVerifier, AcceptsTheSampleOnBothTargets) {
  PlanBuilder builder = samplePlan();
  EXPECT_EQ(errorOf(builder), "");
  makeCuda(builder.plan);
  EXPECT_EQ(errorOf(builder), "");
}

TEST(PlanVerifier, AcceptsInterleavedVariables) {
  PlanBuilder builder;
  builder.variable("gate", {4, 2});
  builder.variable("up", {4, 2});
  for (const auto &tensor : builder.plan.tensors)
    tensor->strides = {4, 1};
  builder.plan.tensors[1]->offset = 8;
  builder.program("train", {});
  EXPECT_EQ(errorOf(builder), "");
}

TEST(PlanVerifier, ElementsStandAtTheirAlignment) {
  const runtime::PlanFile file = samplePlan().load();
  const auto &table = reinterpret_cast<const flatbuffers::Table &>(*file.plan().tensors()->Get(0));
  std::vector<std::byte> bytes(file.bytes().begin(), file.bytes().end());
  bytes[offsetIn(file, table.GetAddressOf(Tensor::VT_SHAPE))] ^= std::byte{4};
  EXPECT_EQ(errorOf(std::move(bytes)),
            "plan.fb: tensors[0].shape: does not begin at a multiple of 8 bytes");
}

TEST(PlanVerifier, FlopsOfPhasesStandAtTheirAlignment) {
  PlanBuilder builder = samplePlan();
  StepT &step = *builder.plan.programs[0]->blocks[kMatmul]->node.AsStep();
  step.phase_flops = {1, 0, step.cost.flops() - 1, 0, 0};
  const runtime::PlanFile file = builder.load();
  const auto &table = reinterpret_cast<const flatbuffers::Table &>(
      *file.plan().programs()->Get(0)->blocks()->Get(kMatmul)->node_as_Step());
  std::vector<std::byte> bytes(file.bytes().begin(), file.bytes().end());
  // Behind the length, where half of the first number reads as another one: 1.
  std::byte *offset = &bytes[offsetIn(file, table.GetAddressOf(Step::VT_PHASE_FLOPS))];
  flatbuffers::WriteScalar(offset, flatbuffers::ReadScalar<flatbuffers::uoffset_t>(offset) + 4);
  EXPECT_EQ(errorOf(std::move(bytes)), "plan.fb: programs[0].blocks[3].step.phase_flops: does not "
                                       "begin at a multiple of 8 bytes");
}

TEST(PlanVerifier, AnAlternativeHasTheFieldsOfItsAction) {
  const runtime::PlanFile file = samplePlan().load();
  const Block &block = *file.plan().programs()->Get(0)->blocks()->Get(kMatmul);
  const auto *table =
      reinterpret_cast<const uint8_t *>(block.node_as_Step()->alternatives()->Get(1));
  // A vtable of its own, behind all: tables of equal layout share one.
  const uint8_t *vtable = table - flatbuffers::ReadScalar<flatbuffers::soffset_t>(table);
  const auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
  std::vector<std::byte> bytes(file.bytes().begin(), file.bytes().end());
  const size_t own = bytes.size(), place = offsetIn(file, table);
  bytes.resize(own + size);
  std::memcpy(&bytes[own], vtable, size);
  flatbuffers::WriteScalar(&bytes[own + Alternative::VT_ACTION], flatbuffers::voffset_t{0});
  flatbuffers::WriteScalar(&bytes[place], static_cast<flatbuffers::soffset_t>(place) -
                                              static_cast<flatbuffers::soffset_t>(own));
  EXPECT_EQ(errorOf(std::move(bytes)),
            "plan.fb: programs[0].blocks[3].step.alternatives[1].action: is matmul, whose fields "
            "are missing");
}

TEST(PlanVerifier, MessagesStayOnOneLine) {
  PlanBuilder builder = samplePlan();
  builder.plan.variables[0]->name = builder.plan.variables[2]->name = "two\nlines";
  EXPECT_EQ(errorOf(builder), "plan.fb: variables[2].name: two?lines is given twice");
}

} // namespace hydra::test
