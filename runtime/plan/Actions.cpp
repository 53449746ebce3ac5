// Resolves alternatives, and lists the fields of actions for reports.
#include "runtime/plan/Actions.h"

namespace hydra::runtime {

using namespace planfile;

ActionView actionOf(const Step &step, uint32_t alternative) {
  if (step.alternatives() && alternative < step.alternatives()->size()) {
    const Alternative &other = *step.alternatives()->Get(alternative);
    if (other.action_type() != Action::NONE)
      return {other.action_type(), other.action()};
  }
  return {step.action_type(), step.action()};
}

std::string_view wordOf(Action action) {
  switch (action) {
  case Action::NONE:
    return "none";
  case Action::Launch:
    return "launch";
  case Action::Matmul:
    return "matmul";
  case Action::Attention:
    return "attention";
  case Action::AttentionGrad:
    return "attention_grad";
  case Action::CachedAttention:
    return "cached_attention";
  case Action::Sample:
    return "sample";
  case Action::EmbeddingGrad:
    return "embedding_grad";
  case Action::Copy:
    return "copy";
  case Action::Fill:
    return "fill";
  case Action::Compact:
    return "compact";
  case Action::Nothing:
    return "nothing";
  case Action::AllGather:
    return "all_gather";
  case Action::AllToAll:
    return "all_to_all";
  case Action::Transfer:
    return "transfer";
  case Action::Route:
    return "route";
  case Action::CountExponents:
    return "count_exponents";
  case Action::GroupedLinear:
    return "grouped_linear";
  case Action::GroupedOuter:
    return "grouped_outer";
  case Action::Fft:
    return "fft";
  case Action::LinearRecurrence:
    return "linear_recurrence";
  }
  return "unknown";
}

namespace {

class Fields {
public:
  std::vector<ActionField> list;

  void flag(std::string_view name, bool value) {
    if (value)
      list.emplace_back(name, value);
  }
  void integer(std::string_view name, int64_t value) {
    if (value != 0)
      list.emplace_back(name, value);
  }
  void real(std::string_view name, double value) { list.emplace_back(name, value); }
  void unlessZero(std::string_view name, double value) {
    if (value != 0.0)
      real(name, value);
  }

  template <typename Table> void attention(const Table &table) {
    real("scale", table.scale());
    unlessZero("cap", table.cap());
    flag("causal", table.causal());
    integer("chunk", table.chunk());
    integer("window", table.window());
  }
};

} // namespace

std::vector<ActionField> fieldsOf(const ActionView &action) {
  Fields fields;
  if (const auto *matmul = action.as<Matmul>()) {
    fields.flag("transpose_a", matmul->transpose_a());
    fields.flag("transpose_b", matmul->transpose_b());
    fields.flag("bias", matmul->bias());
    fields.flag("accumulate", matmul->accumulate());
    fields.flag("gelu", matmul->gelu());
    fields.flag("saves_sums", matmul->saves_sums());
    fields.flag("reduced_reduction", matmul->reduced_reduction());
    fields.flag("tf32", matmul->compute() == DType::tf32);
    fields.flag("scaled", matmul->scaled());
    fields.flag("weight_scale", matmul->weight_scale());
    fields.integer("algorithm", matmul->algorithm());
    fields.integer("multiprocessors", matmul->multiprocessors());
  } else if (const auto *linear = action.as<GroupedLinear>()) {
    fields.flag("transposed", linear->transposed());
    fields.flag("tf32", linear->compute() == DType::tf32);
  } else if (const auto *outer = action.as<GroupedOuter>()) {
    fields.flag("tf32", outer->compute() == DType::tf32);
  } else if (const auto *transform = action.as<Fft>()) {
    fields.flag("inverse", transform->inverse());
  } else if (const auto *recurrence = action.as<LinearRecurrence>()) {
    fields.flag("backward", recurrence->backward());
  } else if (const auto *attention = action.as<Attention>()) {
    fields.attention(*attention);
  } else if (const auto *gradient = action.as<AttentionGrad>()) {
    fields.attention(*gradient);
  } else if (const auto *cached = action.as<CachedAttention>()) {
    fields.real("scale", cached->scale());
    fields.unlessZero("cap", cached->cap());
    fields.integer("chunk", cached->chunk());
    fields.integer("window", cached->window());
  } else if (const auto *gather = action.as<AllGather>()) {
    fields.list.emplace_back("axis", gather->axis());
    fields.integer("wire_bytes", static_cast<int64_t>(gather->wire_bytes()));
  } else if (const auto *exchange = action.as<AllToAll>()) {
    fields.list.emplace_back("axis", exchange->axis());
    fields.integer("wire_bytes", static_cast<int64_t>(exchange->wire_bytes()));
  } else if (const auto *counting = action.as<CountExponents>()) {
    fields.list.emplace_back("first", counting->first());
    fields.flag("scaled", counting->scaled());
  } else if (const auto *fill = action.as<Fill>()) {
    fields.real("value", fill->value());
  }
  return fields.list;
}

} // namespace hydra::runtime
