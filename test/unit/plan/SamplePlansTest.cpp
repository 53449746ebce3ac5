// What the fuzzer of plans starts from: plans that the loader accepts, with everything a plan can
// hold.
#include "test/support/SamplePlans.h"
#include "test/unit/plan/DamageCase.h"

#include <set>

namespace hydra::test {

using namespace planfile;

namespace {

/// What a plan has, by kind.
struct Contents {
  std::set<Action> actions, alternatives;
  std::set<Node> nodes;

  void add(const std::vector<std::unique_ptr<BlockT>> &blocks) {
    for (const auto &block : blocks) {
      nodes.insert(block->node.type);
      if (const StepT *step = block->node.AsStep()) {
        actions.insert(step->action.type);
        for (const auto &alternative : step->alternatives)
          alternatives.insert(alternative->action.type);
      } else if (const LoopT *loop = block->node.AsLoop()) {
        add(loop->blocks);
      } else if (const SwitchT *choice = block->node.AsSwitch()) {
        for (const auto &one : choice->cases)
          add(one->blocks);
      }
    }
  }
};

template <typename Values> auto setOf(const Values &values) {
  return std::set<std::remove_cvref_t<decltype(values[0])>>(std::begin(values), std::end(values));
}

} // namespace

TEST(SamplePlans, AreAccepted) {
  for (const PlanBuilder &builder : samplePlans())
    EXPECT_EQ(errorOf(builder), "");
}

TEST(SamplePlans, FitIntoWhatTheFuzzerChanges) {
  constexpr size_t kMostBytes = 32768; // -max_len in test/fuzz/CMakeLists.txt
  for (const PlanBuilder &builder : samplePlans())
    EXPECT_LE(runtime::encodePlan(builder.plan).size(), kMostBytes);
}

TEST(SamplePlans, HaveEverything) {
  Contents contents;
  std::set<VariableRole> variables;
  std::set<ProgramRole> programs;
  std::set<ScheduleKind> schedules;
  std::set<SegmentKind> segments;
  std::set<TargetKind> targets;
  std::set<BlobKind> blobs;
  std::set<InputKind> inputs;
  bool member = false, adapter = false, phase = false, optimization = false, mesh = false,
       instances = false, sharing = false;
  for (const PlanBuilder &builder : samplePlans()) {
    const PlanT &plan = builder.plan;
    targets.insert(plan.target->kind);
    sharing |= plan.target->sharing != nullptr;
    for (const auto &tensor : plan.tensors)
      segments.insert(tensor->segment);
    for (const auto &variable : plan.variables) {
      variables.insert(variable->role);
      member |= variable->member && !variable->member->axes.empty();
      adapter |= variable->adapter != nullptr;
    }
    for (const auto &scalar : plan.scalars)
      schedules.insert(scalar->schedule->kind);
    for (const auto &blob : plan.blobs)
      blobs.insert(blob->kind);
    for (const auto &kernel : plan.kernels)
      instances |= kernel->instances > 1;
    for (const auto &program : plan.programs) {
      programs.insert(program->role);
      for (const auto &input : program->inputs)
        inputs.insert(input->kind);
      contents.add(program->blocks);
    }
    phase |= !plan.phases.empty();
    optimization |= !plan.optimizations.empty();
    mesh |= plan.mesh.size() > 1;
  }
  auto actions = setOf(EnumValuesAction());
  actions.erase(Action::NONE);
  actions.erase(Action::Nothing); // in the place of a launch alone
  EXPECT_EQ(contents.actions, actions);
  EXPECT_EQ(contents.alternatives,
            (std::set{Action::NONE, Action::Matmul, Action::Attention, Action::Nothing}));
  EXPECT_EQ(contents.nodes, (std::set{Node::Step, Node::Loop, Node::Switch}));
  EXPECT_EQ(variables, setOf(EnumValuesVariableRole()));
  EXPECT_EQ(programs, setOf(EnumValuesProgramRole()));
  EXPECT_EQ(schedules, setOf(EnumValuesScheduleKind()));
  EXPECT_EQ(segments, setOf(EnumValuesSegmentKind()));
  EXPECT_EQ(targets, setOf(EnumValuesTargetKind()));
  EXPECT_EQ(blobs, setOf(EnumValuesBlobKind()));
  EXPECT_EQ(inputs, setOf(EnumValuesInputKind()));
  EXPECT_TRUE(member && adapter && phase && optimization && mesh && instances && sharing);
}

} // namespace hydra::test
