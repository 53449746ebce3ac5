// The named tensors that programs start from, and where their results go.
#include "tools/hydra-interpret/Values.h"

#include "runtime/support/Error.h"
#include "runtime/support/InverseNormal.h"
#include "runtime/support/Philox.h"
#include "runtime/support/Safetensors.h"

#include "llvm/ADT/StringSet.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

using namespace mlir;
using hydra::support::fail;

namespace hydra {

static bool isInteger(const Slot &slot) { return slot.type.getElementType().isInteger(32); }

/// Of the numbers that a variable is given as: of i4 there are two in each byte that it has.
static RankedTensorType givenType(Operation *variable) {
  if (auto param = dyn_cast<ParamOp>(variable))
    return param.getBoundType().clone(intList(param.getShape()));
  return cast<StateOp>(variable).getBoundType();
}

std::vector<std::pair<std::string, RankedTensorType>> tensorsOf(Operation *variable) {
  const RankedTensorType type = givenType(variable);
  FlatUnitAttr unit = unitOf(variable);
  if (!unit)
    return {{SymbolTable::getSymbolName(variable).str(), type}};
  std::vector<std::pair<std::string, RankedTensorType>> tensors;
  for (MemberAttr member : unit.getMembers())
    tensors.emplace_back(memberName(variable, member),
                         RankedTensorType::get(member.getShape(), type.getElementType()));
  return tensors;
}

static void addSlots(Operation *variable, Slot::Kind kind, std::vector<Slot> &slots) {
  for (auto &[name, type] : tensorsOf(variable))
    slots.push_back({kind, name, type});
}

std::vector<Slot> slotsOf(ArrayRef<EntryOp> programs) {
  std::vector<Slot> slots;
  llvm::StringSet<> seen;
  for (EntryOp program : programs) {
    for (auto [i, name] :
         llvm::enumerate(program.getArgNames().getAsValueRange<StringAttr>())) {
      RankedTensorType tensor = program.batchType(i);
      const std::optional<double> value = program.getDefault(i);
      if (seen.insert(name).second)
        slots.push_back({value ? Slot::Kind::Scalar : Slot::Kind::Input, name.str(), tensor,
                         program.getIds() ? (*program.getIds())[i] : 0, value.value_or(0.0)});
    }
  }
  for (Operation &op : programs.front()->getParentOfType<ModelOp>().getBody().front()) {
    if (auto param = dyn_cast<ParamOp>(op))
      addSlots(param, Slot::Kind::Parameter, slots);
    else if (auto state = dyn_cast<StateOp>(op);
             state && state.getRole() != VariableRole::copy &&
             state.getRole() != VariableRole::derived && state.getRole() != VariableRole::scale &&
             state.getRole() != VariableRole::rest && state.getRole() != VariableRole::step_sum)
      addSlots(state, Slot::Kind::State, slots);
  }
  return slots;
}

/// "; did you mean 'x'?" for the slot with the most similar name, or nothing.
static std::string hint(ArrayRef<Slot> slots, StringRef name) {
  unsigned best = 3; // more edits than this are no slip
  StringRef nearest;
  for (const Slot &slot : slots) {
    if (unsigned distance = name.edit_distance(slot.name); distance < best) {
      best = distance;
      nearest = slot.name;
    }
  }
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest.str());
}

static std::string typeText(const Slot &slot) {
  return fmt::format("{} {}", isInteger(slot) ? "I32 or I64" : "F32 or F64",
                     support::shapeText(slot.type.getShape()));
}

/// The indices of element `i`, `[1, 7]`.
static std::string positionText(int64_t i, ArrayRef<int64_t> shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0; i /= shape[d])
    position[d] = i % shape[d];
  return support::shapeText(position);
}

static void checkIntegers(const RefTensor &values, const Slot &slot, const std::string &where) {
  constexpr double kIgnored = -100.0, kLargest = std::numeric_limits<int32_t>::max();
  const double low = slot.ids == 0 ? -kLargest : 0.0;
  const double high = slot.ids == 0 ? kLargest : static_cast<double>(std::abs(slot.ids) - 1);
  for (int64_t i = 0; i < values.size(); ++i) {
    double v = values.data[i];
    if ((v >= low && v <= high) || (slot.ids < 0 && v == kIgnored))
      continue;
    fail("{} has {:.0f} at {}; expected {:.0f} to {:.0f}{}", where, v,
         positionText(i, values.shape), low, high, slot.ids < 0 ? ", or -100 for no label" : "");
  }
}

static RefTensor readTensor(const support::TensorView &tensor, const Slot &slot,
                            const std::string &where) {
  using support::DType;
  bool integer = tensor.dtype == DType::I32 || tensor.dtype == DType::I64;
  bool real = tensor.dtype == DType::F32 || tensor.dtype == DType::F64;
  if (isInteger(slot) ? !integer : !real)
    fail("{} is {} {}; expected {}", where, support::safetensorsName(tensor.dtype),
         support::shapeText(tensor.shape), typeText(slot));
  if (ArrayRef<int64_t>(tensor.shape) != slot.type.getShape())
    fail("{} is {}; expected {}", where, support::shapeText(tensor.shape),
         support::shapeText(slot.type.getShape()));
  RefTensor values(slot.type.getShape());
  support::toDoubles(tensor.dtype, tensor.bytes, values.data);
  if (isInteger(slot))
    checkIntegers(values, slot, where);
  return values;
}

TensorMap readTensors(const std::string &path, ArrayRef<Slot> slots) {
  const support::Safetensors file = support::Safetensors::open(path);
  TensorMap values;
  for (const support::TensorView &tensor : file.tensors()) {
    const auto *slot = llvm::find_if(slots, [&](const Slot &s) { return s.name == tensor.name; });
    if (slot == slots.end())
      fail("{}: tensor '{}' is no input, parameter or state of this program{}", path, tensor.name,
           hint(slots, tensor.name));
    values[tensor.name] =
        readTensor(tensor, *slot, fmt::format("{}: tensor '{}'", path, tensor.name));
  }
  std::string given, missing;
  for (const Slot &slot : slots) {
    bool present = values.contains(slot.name);
    if (slot.kind == Slot::Kind::Input && !present)
      fail("{}: there is no tensor '{}'; expected the input as {}", path, slot.name,
           typeText(slot));
    if (slot.kind != Slot::Kind::Parameter)
      continue;
    std::string &first = present ? given : missing;
    if (first.empty())
      first = slot.name;
  }
  if (!given.empty() && !missing.empty())
    fail("{}: there is no tensor '{}' although there is '{}'; expected all parameters or none",
         path, missing, given);
  return values;
}

void drawInputs(ArrayRef<Slot> slots, uint64_t seed, uint64_t draw, TensorMap &values) {
  const support::Philox text(seed, "tokens", draw);
  for (const Slot &slot : slots) {
    if (slot.kind != Slot::Kind::Input)
      continue;
    if (slot.ids == 0 && isInteger(slot))
      fail("the input '{}' has no synthetic values; give it with --inputs", slot.name);
    const support::Philox numbers(seed, slot.name, draw);
    RefTensor &tensor = values[slot.name] = RefTensor(slot.type.getShape());
    // Rows of length + 1 tokens; labels are one ahead.
    const int64_t length = tensor.cols(), shift = slot.ids < 0 ? 1 : 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      double u = text.uniform53(i / length * (length + 1) + i % length + shift);
      tensor.data[i] = slot.ids == 0 ? support::inverseNormalCdf(numbers.uniform53(i))
                                     : std::floor(u * static_cast<double>(std::abs(slot.ids)));
    }
  }
}

void writeTensors(const std::string &path, const NamedTensors &tensors) {
  std::vector<support::TensorView> views;
  std::vector<std::vector<int32_t>> integers;
  integers.reserve(tensors.size());
  for (auto &[name, tensor, integer] : tensors) {
    std::span<const std::byte> bytes = std::as_bytes(std::span(tensor->data));
    if (integer)
      bytes =
          std::as_bytes(std::span(integers.emplace_back(tensor->data.begin(), tensor->data.end())));
    views.push_back({{name,
                      integer ? support::DType::I32 : support::DType::F64,
                      {tensor->shape.begin(), tensor->shape.end()}},
                     bytes});
  }
  support::writeSafetensors(path, views);
}

std::string tensorsText(const NamedTensors &tensors) {
  constexpr int64_t small = 32;
  size_t nameWidth = 0, shapeWidth = 0;
  std::vector<std::string> shapes;
  for (auto &[name, tensor, integer] : tensors) {
    shapes.push_back(support::shapeText(tensor->shape));
    nameWidth = std::max(nameWidth, name.size());
    shapeWidth = std::max(shapeWidth, shapes.back().size());
  }
  std::string text;
  for (auto [pair, shape] : llvm::zip(tensors, shapes)) {
    auto &[name, tensor, integer] = pair;
    std::string values;
    if (tensor->size() <= small) {
      for (double v : tensor->data)
        values += fmt::format(" {:.10f}", v);
    } else {
      double sum = 0.0;
      for (double v : tensor->data)
        sum += v * v;
      values = fmt::format(" norm {:.8e}  first {:.8e}", std::sqrt(sum), tensor->data.front());
    }
    text += fmt::format("{:<{}}  {:<{}} {}\n", name, nameWidth, shape, shapeWidth, values);
  }
  return text;
}

} // namespace hydra
