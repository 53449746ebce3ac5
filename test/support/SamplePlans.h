// Plans that the loader accepts and that together hold everything a plan can hold: what a fuzzer
// starts from.
#pragma once

#include "test/support/SamplePlan.h"

#include <array>

namespace hydra::test {

/// The sample on four ranks, which have a unit of two variables in pieces.
inline PlanBuilder unitPlan() {
  PlanBuilder builder = samplePlan();
  const uint32_t node = builder.axis("node", 2), data = builder.axis("data", 2);
  const uint32_t unit = builder.tensor("unit", {1, 4}, planfile::SegmentKind::persistent);
  builder.member("w2", unit, {3, 3}, 0, {data, node});
  builder.member("b2", unit, {5}, 10, {data, node});
  return builder;
}

/// The first is the step's own; the others take its place.
inline void addAlternative(planfile::StepT &step, std::string description,
                           planfile::ActionUnion action = {}) {
  auto alternative = std::make_unique<planfile::AlternativeT>();
  alternative->description = std::move(description);
  alternative->action = std::move(action);
  step.alternatives.push_back(std::move(alternative));
}

/// The sample for a GPU: launches that functions can take the place of, one of several instances, a
/// switch with a kernel that sets it, code of both kinds.
inline PlanBuilder cudaPlan() {
  using namespace planfile;
  PlanBuilder builder = samplePlan();
  PlanT &plan = builder.plan;
  const uint32_t chooser = builder.kernel("choose", 3), batched = builder.kernel("batched", 2);
  makeCuda(plan);
  plan.target->name = "h200";
  plan.target->multiprocessors = 132;
  plan.target->peak_flops = 1e15;
  plan.target->overlap = 0.9;
  plan.target->measured = "steps of a GPU";
  plan.target->sharing = std::make_unique<Sharing>(0.5, 1.5, 30, 6);
  auto text = std::make_unique<BlobT>();
  text->kind = BlobKind::ptx;
  text->data = {'.', 'v'};
  plan.blobs.push_back(std::move(text));
  plan.kernels[0]->ptx = static_cast<int32_t>(plan.blobs.size() - 1);
  plan.kernels[0]->shared_bytes = 512;
  plan.kernels[1]->early = true;
  plan.kernels[batched]->instances = 3;

  LoopT &outer = *plan.programs[0]->blocks[kLoop]->node.AsLoop();
  SwitchT &choice = *outer.blocks[1]->node.AsLoop()->blocks[0]->node.AsSwitch();
  choice.kernel = static_cast<int32_t>(chooser);
  choice.divisor = 2;
  StepT &update = *plan.programs[0]->blocks[kAdamW]->node.AsStep();
  update.action.AsLaunch()->blocks = 2;
  AttentionT attention;
  attention.scale = 0.5;
  attention.causal = true;
  ActionUnion function, nothing;
  function.Set(attention);
  nothing.Set(NothingT());
  addAlternative(update, "own kernel");
  addAlternative(update, "cuDNN", std::move(function));
  update.chosen = 1;
  update.alternatives[0]->microseconds = 20;

  const uint32_t x = plan.programs[1]->inputs[0]->tensor;
  const uint32_t first = builder.tensor("first", {4}), second = builder.tensor("second", {4});
  plan.programs[0]->transient_bytes = plan.programs[1]->transient_bytes =
      plan.segments[static_cast<size_t>(SegmentKind::transient)].size();
  auto several =
      launch("batched", batched, 0, 0, {reads(x), writes(first), reads(x), writes(second)});
  addAlternative(*several->node.AsStep(), "own kernel");
  addAlternative(*several->node.AsStep(), "part of another call", std::move(nothing));
  plan.programs[1]->blocks.push_back(std::move(several));
  return builder;
}

/// A run over micro-batches on four ranks, whose first steps another program makes: every role of
/// variables and programs, every schedule, every function, collectives beside other work, moments
/// in the host's memory, and programs in their safe forms.
inline PlanBuilder trainingPlan() {
  using namespace planfile;
  PlanBuilder builder;
  PlanT &plan = builder.plan;
  plan.header->passes = {"hydra-bind", "hydra-shard"};
  auto option = std::make_unique<KeyValueT>();
  option->key = "node-ranks";
  option->value = "2";
  plan.header->options.push_back(std::move(option));
  plan.paths = {"layers.0.mlp", "layers.0.mlp.down"};
  const uint32_t place = builder.tensor("rank.data", {}, SegmentKind::persistent, DType::i32);
  builder.axis("node", 2);
  const uint32_t data = builder.axis("data", 2, static_cast<int32_t>(place));

  //---- Variables
  const auto add = [&](VariableRole role, std::vector<int64_t> shape, int32_t owner = -1,
                       DType dtype = DType::f32) {
    const uint32_t index =
        builder.variable(std::string("a ") + EnumNameVariableRole(role), std::move(shape));
    VariableT &variable = *plan.variables[index];
    variable.role = role;
    variable.owner = owner;
    plan.tensors[variable.tensor]->dtype = dtype;
    return index;
  };
  const uint32_t w = builder.variable("w", {8, 4});
  const auto owner = static_cast<int32_t>(w);
  plan.variables[w]->group = "decay";
  plan.variables[w]->initializer->kind = InitKind::normal;
  plan.variables[w]->initializer->std = 0.02;
  const uint32_t moment = add(VariableRole::moment, {8, 4}, owner);
  plan.variables[moment]->tensor = builder.tensor("w.m", {8, 4}, SegmentKind::host);
  const uint32_t gradient = add(VariableRole::gradient, {8, 4}, owner);
  add(VariableRole::gradient_part, {8, 4}, owner);
  add(VariableRole::average, {8, 4}, owner);
  const uint32_t copy = add(VariableRole::copy, {8, 4}, owner, DType::bf16);
  add(VariableRole::update_count, {}, -1, DType::i32);
  add(VariableRole::step_sum, {});
  add(VariableRole::loss_scaling, {2});
  add(VariableRole::cache, {2, 8});
  add(VariableRole::amax_history, {3, 16});
  add(VariableRole::state, {3});
  const uint32_t derived = add(VariableRole::derived, {4});
  const uint32_t integers = builder.variable("integers", {6, 16});
  plan.tensors[plan.variables[integers]->tensor]->dtype = DType::i8;
  plan.variables[integers]->frozen = true;
  add(VariableRole::scale, {6}, static_cast<int32_t>(integers));
  const uint32_t halved = builder.variable("halved", {4, 8});
  plan.tensors[plan.variables[halved]->tensor]->dtype = DType::bf16;
  add(VariableRole::rest, {4, 8}, static_cast<int32_t>(halved), DType::i16);
  const uint32_t low = builder.variable("w.lora_a", {2, 4});
  plan.variables[low]->initializer->kind = InitKind::uniform;
  plan.variables[low]->initializer->limit = 0.5;
  plan.variables[low]->adapter = std::make_unique<AdapterT>();
  plan.variables[low]->adapter->tensor = "base_model.model.w.lora_A.weight";
  plan.variables[low]->adapter->alpha = 4;
  const uint32_t unit = builder.tensor("unit", {8}, SegmentKind::persistent);
  builder.member("gain", unit, {3, 3}, 0, {data});
  builder.member("bias", unit, {5}, 10, {data});
  const uint32_t wTensor = plan.variables[w]->tensor, mTensor = plan.variables[moment]->tensor,
                 gTensor = plan.variables[gradient]->tensor;

  //---- Numbers of a step
  for (const ScheduleKind kind : EnumValuesScheduleKind()) {
    const bool counts = kind >= ScheduleKind::step;
    const uint32_t scalar =
        builder.scalar(EnumNameScheduleKind(kind), 1, counts ? DType::i32 : DType::f32);
    ScheduleT &schedule = *plan.scalars[scalar]->schedule;
    schedule.kind = kind;
    schedule.first = 1;
    if (counts)
      continue;
    schedule.warmup_steps = 10;
    schedule.stable_steps = kind == ScheduleKind::wsd ? -1 : 0;
    schedule.total_steps = 100;
    schedule.clamp = kind == ScheduleKind::cosine;
    schedule.delay_steps = kind == ScheduleKind::linear ? 5 : 0;
    schedule.levels = kind == ScheduleKind::linear ? 4 : 0;
  }

  //---- What programs work on; of those with a buffer it is known who wrote them
  const SegmentKind transient = SegmentKind::transient;
  uint32_t buffers = 0;
  const auto work = [&](std::string name, std::vector<int64_t> shape, DType dtype = DType::f32) {
    const uint32_t index = builder.tensor(std::move(name), std::move(shape), transient, dtype);
    plan.tensors[index]->buffer = ++buffers;
    return index;
  };
  const uint32_t tokens = work("tokens", {2, 4}, DType::i32),
                 labels = work("labels", {2, 4}, DType::i32), a = work("a", {2, 4}),
                 b = work("b", {2, 4}), c = work("c", {2, 4}),
                 depth = work("depth", {}, DType::i32), gathered = work("gathered", {4, 4}),
                 dealt = work("dealt", {2, 4}), slot = work("slot", {8, 4}),
                 loss = work("loss", {}), token = work("token", {2, 1}, DType::i32),
                 position = work("position", {2}), logits = work("logits", {2, 8});
  const uint32_t row = builder.view("c.row", {4}, {1}, transient, plan.tensors[c]->offset);
  plan.tensors[row]->buffer = plan.tensors[c]->buffer;
  plan.tensors[a]->layer = 0;
  plan.tensors[a]->path = 1;
  plan.tensors[gathered]->category = Category::comm;
  const uint32_t scale = builder.kernel("scale", 2), adamw = builder.kernel("adamw", 3);

  //---- Programs
  const auto functions =
      [&] { // each on the same tensors: whether it takes them is not the loader's
        return blocks(
            call(AttentionT(), {reads(a), reads(b), writes(c)}),
            call(AttentionGradT(), {reads(a), reads(b), writes(c)}),
            call(EmbeddingGradT(), {reads(tokens), reads(a), writes(c)}),
            call(CopyT(), {reads(a), writes(c)}), call(FillT(), {writes(c)}),
            call(CompactT(), {reads(a), writes(c)}), call(RouteT(), {reads(a), writes(c)}),
            call(GroupedLinearT(), {reads(a), reads(b), reads(tokens), writes(c)}),
            call(GroupedOuterT(), {reads(a), reads(b), reads(tokens), writes(c)}),
            call(FftT(), {reads(a), writes(c)}), call(CountExponentsT(), {reads(a), updates(c)}),
            call(LinearRecurrenceT(), {reads(a), reads(b), writes(c)}));
      };
  const auto accumulate = [&] {
    MatmulT product;
    product.transpose_b = true;
    auto matmul = call(product, {reads(a), reads(b), writes(c)});
    StepT &step = *matmul->node.AsStep();
    step.op_class = OpClass::gemm;
    step.phase = Phase::backward;
    step.layer = 0;
    step.path = 1;
    step.pass = 1;
    step.cost = Cost(12, 96, 2.5);
    step.limit_microseconds = 1.5;
    step.bound = Bound::compute;
    step.phase_flops = {4, 0, 8, 0, 0};
    ActionUnion other;
    product.algorithm = 7;
    other.Set(product);
    addAlternative(step, "as it is");
    addAlternative(step, "algorithm 7", std::move(other));
    step.chosen = 1;

    std::vector<Blocks> cases(2);
    cases[1] = blocks(call(FillT(), {writes(c)}));
    auto choice = choose(depth, std::move(cases));
    choice->node.AsSwitch()->divisor = 2;
    AllGatherT gather;
    gather.axis = data;
    gather.wire_bytes = 32;
    AllToAllT exchange;
    exchange.axis = data;
    Blocks body = functions();
    auto begin = hydra::test::step("embedding", {reads(tokens), reads(labels), writes(a), writes(b),
                                                 writes(depth), writes(loss)});
    begin->signals = 0;
    body.insert(body.begin(), std::move(begin));
    auto gathering = call(gather, {reads(a), writes(gathered)}),
         dealing = call(exchange, {reads(b), writes(dealt)});
    gathering->stream = dealing->stream = 1;
    gathering->waits = {0};
    dealing->signals = 1;
    body.push_back(std::move(gathering));
    body.push_back(std::move(dealing));
    body.push_back(std::move(matmul));
    body.push_back(loop(
        2, {LoopStride(row, 16)},
        blocks(launch("scale", scale, 4, 2, {updates(row), reads(wTensor)}), std::move(choice))));
    auto sum = hydra::test::step("sum", {reads(gathered), reads(dealt), updates(gTensor)});
    sum->waits = {1};
    body.push_back(std::move(sum));
    return body;
  };
  const auto program = [&](std::string name, Blocks body) -> ProgramT & {
    ProgramT &made = builder.program(std::move(name), std::move(body));
    made.streams = 2;
    made.events = 2;
    made.live_bytes = made.transient_bytes / 2;
    return made;
  };
  const auto given = [&](ProgramT &to) {
    builder.input(to, "tokens", InputKind::tokens, tokens, 8);
    builder.input(to, "labels", InputKind::labels, labels, 8);
    for (auto &input : to.inputs)
      input->batch_dimension = 0;
    builder.output(to, "loss", loss);
    builder.output(to, "grad.w", gTensor);
    to.outputs.back()->gradient_of = owner;
  };
  ProgramT &count = program("count", {});
  builder.input(count, "labels", InputKind::labels, labels, 8);
  const size_t main = plan.programs.size();
  given(program("accumulate", accumulate()));
  const auto early = static_cast<uint32_t>(plan.programs.size());
  ProgramT &first = program("accumulate.early", accumulate());
  first.role = ProgramRole::accumulate;
  given(first);
  program("apply",
          blocks(call(TransferT(), {reads(mTensor), writes(slot)}),
                 launch("adamw", adamw, 8, 8, {updates(wTensor), updates(slot), reads(gTensor)}),
                 call(TransferT(), {reads(slot), writes(mTensor)}),
                 call(CopyT(), {reads(wTensor), writes(plan.variables[copy]->tensor)})));
  program("derive", blocks(call(FillT(), {writes(plan.variables[derived]->tensor)})));
  given(program("eval", accumulate()));
  ProgramT &scores = program("logits", blocks(step("scores", {reads(token), writes(logits)})));
  builder.input(scores, "tokens", InputKind::tokens, token, 8);
  builder.output(scores, "logits", logits);
  scores.outputs.back()->batch_dimension = 0;
  ProgramT &next =
      program("decode", blocks(step("scores", {reads(token), writes(logits)}),
                               call(CachedAttentionT(), {reads(token), reads(position), writes(a)}),
                               call(SampleT(), {reads(logits), reads(position), writes(c)})));
  next.context = 8;
  builder.input(next, "tokens", InputKind::tokens, token, 8);
  builder.input(next, "position", InputKind::values, position);
  builder.output(next, "logits", logits);

  //---- Forms, and who makes which steps
  plan.programs[main]->safe = static_cast<int32_t>(plan.programs.size());
  given(program("accumulate.safe", accumulate()));
  auto optimization = std::make_unique<OptimizationT>();
  optimization->name = "attention";
  optimization->fast = "flash";
  optimization->safe = "naive";
  optimization->programs = {static_cast<uint32_t>(plan.programs.size())};
  plan.optimizations.push_back(std::move(optimization));
  given(program("accumulate.without.attention", accumulate()));
  for (size_t form = plan.programs.size() - 2; form < plan.programs.size(); ++form)
    plan.programs[form]->role = ProgramRole::custom;
  auto phase = std::make_unique<TrainingPhaseT>();
  phase->program = early;
  phase->last_step = 10;
  plan.phases.push_back(std::move(phase));
  plan.accumulation = 2;
  return builder;
}

/// All of them.
inline std::vector<PlanBuilder> samplePlans() {
  std::vector<PlanBuilder> plans;
  plans.push_back(unitPlan());
  plans.push_back(cudaPlan());
  plans.push_back(trainingPlan());
  return plans;
}

} // namespace hydra::test
