// The table of element types: R25 of models.md section 7.
#include "runtime/report/PlanNames.h"
#include "runtime/report/Table.h"
#include "runtime/support/DType.h"
#include "tools/hydra-inspect/PlanJson.h"
#include "tools/hydra-inspect/PlanText.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

namespace hydra::inspect {

using namespace planfile;

namespace {

/// Element types by kind of number, in the order of first appearance.
class Kinds {
public:
  void add(const std::string &kind, const Tensor &tensor) { add(kind, report::dtypeName(tensor)); }
  void add(const std::string &kind, std::string_view format) {
    auto [entry, isNew] = types.try_emplace(kind);
    if (isNew)
      order.push_back(kind);
    entry->second.insert(std::string(format));
  }

  std::vector<std::pair<std::string, std::set<std::string>>> rows() const {
    std::vector<std::pair<std::string, std::set<std::string>>> rows;
    for (const std::string &kind : order)
      rows.emplace_back(kind, types.at(kind));
    return rows;
  }

private:
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> types;
};

bool isFloat(const Tensor &tensor) {
  return support::isFloat(static_cast<support::DType>(tensor.dtype()));
}

/// By how many dimensions the scales of an operand of 8 bits have. Matmuls that have scales have no
/// bias.
constexpr const char *kScales[] = {"scales of matmuls", "scales of rows of matmuls",
                                   "scales of blocks of matmuls"};

/// What a step reads and writes, under the name of its class.
void addStep(const Plan &plan, const Step &step, Kinds &kinds) {
  const OpClass kind = step.op_class();
  if (kind == OpClass::optimizer)
    for (const Arg *arg : *step.args())
      if (const Tensor *tensor = plan.tensors()->Get(arg->tensor());
          arg->access() == Access::read && tensor->segment() == SegmentKind::transient &&
          isFloat(*tensor) && tensor->shape()->size() > 0)
        kinds.add("gradients of parameters", *tensor);
  if (kind != OpClass::gemm && kind != OpClass::attention && kind != OpClass::norm)
    return;
  const std::string name = kind == OpClass::gemm        ? "matmuls"
                           : kind == OpClass::attention ? "attention"
                                                        : "norms";
  const std::string phase = EnumNamePhase(step.phase());
  for (uint32_t number = 0; number < step.args()->size(); ++number) {
    const Arg *arg = step.args()->Get(number);
    const Tensor &tensor = *plan.tensors()->Get(arg->tensor());
    if (!isFloat(tensor) || tensor.category() == Category::workspace)
      continue;
    const bool reads = arg->access() == Access::read;
    const std::string row = fmt::format("{} {}, {}", name, reads ? "read" : "written", phase);
    const Matmul *matmul = step.action_as_Matmul();
    const bool isScale = matmul && matmul->scaled() && number >= 2 && number < 4;
    const bool isWeightScale =
        matmul && matmul->weight_scale() && number == (matmul->bias() ? 3U : 2U);
    if (isWeightScale)
      kinds.add("scales of weights, read", tensor);
    else if (isScale)
      kinds.add(kScales[std::min<size_t>(tensor.shape()->size(), std::size(kScales) - 1)], tensor);
    else if (reads && matmul && matmul->compute() == DType::tf32)
      kinds.add(row, support::irName(support::DType::TF32));
    else
      kinds.add(row, tensor);
  }
}

void addBlocks(const Plan &plan, const flatbuffers::Vector<flatbuffers::Offset<Block>> &blocks,
               Kinds &kinds) {
  for (const Block *block : blocks) {
    if (const Step *step = block->node_as_Step())
      addStep(plan, *step, kinds);
    else if (const Loop *loop = block->node_as_Loop())
      addBlocks(plan, *loop->blocks(), kinds);
    else if (const Switch *choice = block->node_as_Switch())
      for (const Case *one : *choice->cases())
        addBlocks(plan, *one->blocks(), kinds);
  }
}

const char *kindOf(const Plan &plan, const Variable &variable) {
  switch (variable.role()) {
  case VariableRole::parameter:
    return "parameters";
  case VariableRole::rest:
    return "rests of parameters";
  case VariableRole::scale:
    return "scales of parameters";
  case VariableRole::moment:
    return "optimizer state";
  case VariableRole::average:
    return "averages of parameters";
  case VariableRole::derived:
    return variable.owner() < 0 ? "other state" : "copies of parameters";
  case VariableRole::copy:
    if (plan.variables()->Get(static_cast<uint32_t>(variable.owner()))->role() ==
        VariableRole::parameter)
      return "copies of parameters";
    return "other state";
  case VariableRole::cache:
    return "caches";
  case VariableRole::state:
  case VariableRole::gradient:
  case VariableRole::gradient_part:
  case VariableRole::update_count:
  case VariableRole::step_sum:
  case VariableRole::loss_scaling:
  case VariableRole::amax_history:
    return "other state";
  }
  return "other state";
}

Kinds kindsOf(const Plan &plan) {
  Kinds kinds;
  for (const Variable *variable : *plan.variables())
    kinds.add(kindOf(plan, *variable), *plan.tensors()->Get(variable->tensor()));
  for (const Program *program : *plan.programs())
    addBlocks(plan, *program->blocks(), kinds);
  for (const Program *program : *plan.programs())
    for (const Output *output : *program->outputs()) {
      const std::string_view name = output->name()->string_view();
      const Tensor &tensor = *plan.tensors()->Get(output->tensor());
      if (name == "loss" || name == "logits")
        kinds.add(std::string(name), tensor);
      else if (output->gradient_of() >= 0)
        kinds.add("gradients of parameters", tensor);
    }
  return kinds;
}

/// A hundredth, held in one type, added a thousand times to a sum in another.
double sumOfHundredths(support::DType term, support::DType sum) {
  const auto rounded = [](support::DType type, double x) {
    std::array<std::byte, 8> bytes{};
    const auto memory = std::span(bytes).first(support::byteSize(type));
    support::fromDoubles(type, std::span(&x, 1), memory);
    support::toDoubles(type, memory, std::span(&x, 1));
    return x;
  };
  const double hundredth = rounded(term, 0.01);
  double total = 0.0;
  for (int i = 0; i < 1000; ++i)
    total = rounded(sum, total + hundredth);
  return total;
}

struct SumExample {
  const char *name;
  support::DType term, sum;
};
constexpr SumExample kSums[] = {{"f32", support::DType::F32, support::DType::F32},
                                {"f16", support::DType::F16, support::DType::F16},
                                {"bf16", support::DType::BF16, support::DType::BF16},
                                {"f16 in f32", support::DType::F16, support::DType::F32},
                                {"bf16 in f32", support::DType::BF16, support::DType::F32}};

} // namespace

std::string precisionText(const Plan &plan) {
  std::string text = fmt::format("precision {}\n", plan.header()->precision()->string_view());
  report::Table table(2);
  for (const auto &[kind, types] : kindsOf(plan).rows())
    table.add({kind, fmt::format("{}", fmt::join(types, ", "))});
  text += table.text();
  text += "1000 times 0.01, added one by one\n";
  report::Table sums(1);
  for (const SumExample &example : kSums)
    sums.add({example.name, fmt::format("{:.4f}", sumOfHundredths(example.term, example.sum))});
  return text + sums.text();
}

void addPrecision(Json &out, const Plan &plan) {
  Json &precision = out["precision"];
  precision["policy"] = plan.header()->precision()->str();
  for (const auto &[kind, types] : kindsOf(plan).rows())
    precision["types"][kind] = types;
  for (const SumExample &example : kSums)
    precision["sum_of_1000_hundredths"][example.name] = sumOfHundredths(example.term, example.sum);
}

} // namespace hydra::inspect
