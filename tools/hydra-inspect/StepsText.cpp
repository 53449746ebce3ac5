// Rendering of programs: one line per block, indented by depth.
#include "runtime/plan/Actions.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/Units.h"
#include "tools/hydra-inspect/PlanText.h"

#include <fmt/ranges.h>

#include <iterator>

namespace hydra::inspect {

using namespace planfile;
using namespace report;

namespace {

/// `matmul{transpose_b=true algorithm=3}`.
std::string functionText(const runtime::ActionView &action) {
  std::vector<std::string> texts;
  for (const auto &[name, value] : runtime::fieldsOf(action))
    texts.push_back(
        std::visit([&](auto field) { return fmt::format("{}={}", name, field); }, value));
  return fmt::format("{}{}", runtime::wordOf(action.type),
                     texts.empty() ? "" : fmt::format("{{{}}}", fmt::join(texts, " ")));
}

class StepsWriter {
public:
  explicit StepsWriter(const Plan &plan) : plan(plan) {}

  std::string write() {
    for (const Program *program : *plan.programs()) {
      if (!out.empty())
        out += '\n';
      writeProgram(*program);
    }
    return std::move(out);
  }

private:
  template <typename... Args>
  void line(size_t depth, fmt::format_string<Args...> format, Args &&...args) {
    out.append(2 * depth, ' ');
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
  }

  void writeProgram(const Program &program) {
    line(0, "program {}: {} blocks, {} streams, {} events, {} flops, {} of traffic, {:.1f} us",
         program.name()->string_view(), program.blocks()->size(), program.streams(),
         program.events(), countText(program.cost()->flops()), bytesText(program.cost()->bytes()),
         program.cost()->microseconds());
    for (const Input *input : *program.inputs()) {
      line(1, "input  {}: {}{}", input->name()->string_view(), typeOf(input->tensor()),
           input->kind() == InputKind::values
               ? ""
               : fmt::format(", {} below {}", EnumNameInputKind(input->kind()), input->limit()));
    }
    for (const Output *output : *program.outputs())
      line(1, "output {}: {}", output->name()->string_view(), typeOf(output->tensor()));
    writeBlocks(*program.blocks(), 1);
  }

  void writeBlocks(const flatbuffers::Vector<flatbuffers::Offset<Block>> &blocks, size_t depth) {
    for (uint32_t i = 0; i < blocks.size(); ++i)
      writeBlock(i, *blocks.Get(i), depth);
  }

  void writeBlock(uint32_t index, const Block &block, size_t depth) {
    const std::string order = orderOf(block);
    if (const Step *step = block.node_as_Step()) {
      line(depth, "[{}] {}{}", index, order, stepText(*step));
    } else if (const Loop *loop = block.node_as_Loop()) {
      std::string shifts;
      for (const LoopStride *stride : *loop->strides())
        shifts += fmt::format("{} {} {:+}", shifts.empty() ? "; each shifts" : ",",
                              tensorName(plan, stride->tensor()), stride->bytes());
      line(depth, "[{}] {}loop {} times{}", index, order, loop->count(), shifts);
      writeBlocks(*loop->blocks(), depth + 1);
    } else {
      const Switch &choice = *block.node_as_Switch();
      line(depth, "[{}] {}switch on {}{}", index, order, tensorName(plan, choice.selector()),
           choice.divisor() > 1 ? fmt::format(" / {}, rounded up", choice.divisor()) : "");
      for (uint32_t i = 0; i < choice.cases()->size(); ++i) {
        line(depth + 1, "case {}:", i);
        writeBlocks(*choice.cases()->Get(i)->blocks(), depth + 2);
      }
    }
  }

  /// Stream and events, where they say anything.
  static std::string orderOf(const Block &block) {
    std::string text;
    if (block.stream() != 0)
      text += fmt::format("stream {} ", block.stream());
    if (block.waits())
      for (const uint32_t event : *block.waits())
        text += fmt::format("wait {} ", event);
    if (block.signals() >= 0)
      text += fmt::format("signal {} ", block.signals());
    return text;
  }

  std::string stepText(const Step &step) {
    std::string text(step.name()->string_view());
    text += fmt::format(" = {}{}", actionText(plan, step), argsText(step));
    text += fmt::format("  {} {}", EnumNamePhase(step.phase()), EnumNameOpClass(step.op_class()));
    if (step.layer() >= 0)
      text += fmt::format(" layer {}", step.layer());
    if (step.path() >= 0)
      text += fmt::format("  {}", pathText(plan, step.path()));
    if (step.pass() >= 0)
      text += fmt::format(" by {}", passText(plan, step));
    text += fmt::format("  {} flops, {}, {:.1f} us  {}", countText(step.cost()->flops()),
                        bytesText(step.cost()->bytes()), step.cost()->microseconds(),
                        locationText(plan, step.location()));
    if (step.alternatives())
      for (uint32_t i = 0; i < step.alternatives()->size(); ++i)
        text += alternativeText(*step.alternatives()->Get(i), i == step.chosen());
    return text;
  }

  static std::string alternativeText(const Alternative &alternative, bool chosen) {
    return fmt::format("  {}{}{}{}", chosen ? "*" : "-", alternative.description()->string_view(),
                       alternative.action_type() == Action::NONE
                           ? ""
                           : ": " + functionText({alternative.action_type(), alternative.action()}),
                       alternative.microseconds() < 0
                           ? ""
                           : fmt::format(" {:.1f} us", alternative.microseconds()));
  }

  /// Arguments in order; `!` marks those written, `&` those read and written.
  std::string argsText(const Step &step) {
    std::vector<std::string> texts;
    for (const Arg *arg : *step.args()) {
      const char *mark = arg->access() == Access::write        ? "!"
                         : arg->access() == Access::read_write ? "&"
                                                               : "";
      texts.push_back(fmt::format("{}{}", mark, tensorName(plan, arg->tensor())));
    }
    return fmt::format("({})", fmt::join(texts, ", "));
  }

  std::string typeOf(uint32_t index) {
    const Tensor &tensor = *plan.tensors()->Get(index);
    return fmt::format("{} {} [{}]", tensor.name()->string_view(), dtypeName(tensor),
                       fmt::join(shapeOf(tensor), ", "));
  }

  const Plan &plan;
  std::string out;
};

} // namespace

std::string actionText(const Plan &plan, const Step &step) {
  const Launch *launch = step.action_as_Launch();
  if (!launch)
    return functionText({step.action_type(), step.action()});
  const auto name = plan.kernels()->Get(launch->kernel())->name()->string_view();
  return launch->rows() > 0
             ? fmt::format("kernel {} on {} rows by {}", name, launch->rows(), launch->grain())
             : fmt::format("kernel {}", name);
}

std::string stepsText(const Plan &plan) { return StepsWriter(plan).write(); }

} // namespace hydra::inspect
