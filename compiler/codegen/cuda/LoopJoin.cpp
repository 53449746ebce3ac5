// Groups of a loop's kernel that become one.
#include "compiler/codegen/cuda/LoopJoin.h"

#include "compiler/codegen/cuda/StepLauncher.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

using Kind = RowNode::Kind;

/// Columns of a row up to which a lane has registers for the numbers of several groups.
constexpr int64_t kMostColumns = 256;

Operation *bufferOf(const LoopStep &step, unsigned i) { return plan::placeOf(step.args[i]).buffer; }

/// Calls `f(i, j)` for arguments of two steps in the same buffer, of which one writes; whether all
/// of them are true.
template <typename Function>
bool allShared(const LoopStep &first, const LoopStep &second, Function f) {
  for (unsigned i = 0; i < first.args.size(); ++i)
    for (unsigned j = 0; j < second.args.size(); ++j)
      if (bufferOf(first, i) == bufferOf(second, j) && (first.writes(i) || second.writes(j)) &&
          !f(i, j))
        return false;
  return true;
}

/// The number of a group's result that is argument `i`; nullopt for inputs.
std::optional<unsigned> resultOf(const LoopStep &step, unsigned i) {
  const unsigned inputs = step.program->inputs.size();
  return i < inputs ? std::nullopt : std::optional(i - inputs);
}

RowForm formOf(const LoopStep &step, unsigned i) {
  std::optional<unsigned> result = resultOf(step, i);
  return result ? step.program->results[*result].form : *step.program->inputs[i].form;
}

/// Whether an input of the type and form can take a result of `program` from registers.
bool canHandOn(const RowProgram &program, const RowResult &result, const RowInput &input) {
  const RowNode &node = program.nodes[result.node];
  return input.type == result.type && input.form == result.form && node.form == result.form &&
         (node.type == result.type || (isFloat(node.type) && isFloat(result.type)));
}

bool canJoin(const LoopStep &first, const LoopStep &second) {
  return first.program->domain == second.program->domain &&
         allShared(first, second, [&](unsigned i, unsigned j) {
           if (first.writes(i) != resultOf(first, i).has_value() ||
               second.writes(j) != resultOf(second, j).has_value())
             return false;
           // The same numbers, which belong to the same rows and so to the same warps.
           if (first.args[i] != second.args[j] || formOf(first, i) != formOf(second, j) ||
               !variesOverRows(formOf(first, i)))
             return false;
           if (!first.writes(i)) // all lanes read numbers of a row, and one stores them
             return formOf(first, i) == RowForm::Tile;
           return second.writes(j) ||
                  canHandOn(*first.program, first.program->results[*resultOf(first, i)],
                            second.program->inputs[j]);
         });
}

void addArgument(LoopStep &step, const LoopStep &from, unsigned i) {
  step.args.push_back(from.args[i]);
  step.accesses.push_back(from.accesses[i]);
  step.sliced.push_back(from.sliced[i]);
}

/// The results of the first group that the second does not write anew, and those of the second.
void addResults(LoopStep &joined, const LoopStep &first, const LoopStep &second,
                ArrayRef<unsigned> nodesOfSecond) {
  const unsigned firstInputs = first.program->inputs.size(),
                 secondInputs = second.program->inputs.size();
  for (auto [r, result] : llvm::enumerate(first.program->results)) {
    if (llvm::is_contained(ArrayRef(second.args).drop_front(secondInputs),
                           first.args[firstInputs + r]))
      continue;
    joined.program->results.push_back(result);
    addArgument(joined, first, firstInputs + r);
  }
  for (auto [r, result] : llvm::enumerate(second.program->results)) {
    joined.program->results.push_back({result.form, result.type, nodesOfSecond[result.node]});
    addArgument(joined, second, secondInputs + r);
  }
}

LoopStep join(const LoopStep &first, const LoopStep &second) {
  LoopStep joined{first.op, {}, {}, {}, *first.program};
  RowProgram &program = *joined.program;
  program.results.clear();
  const unsigned firstInputs = first.program->inputs.size();
  for (unsigned i = 0; i < firstInputs; ++i)
    addArgument(joined, first, i);
  // The node of the first group that has an input of the second in registers.
  auto handedOn = [&](unsigned input) -> std::optional<unsigned> {
    auto results = ArrayRef(first.args).drop_front(firstInputs);
    const auto *found = llvm::find(results, second.args[input]);
    if (found == results.end())
      return std::nullopt;
    const RowResult &result = first.program->results[found - results.begin()];
    if (!isNarrow(result.type) || program.nodes[result.node].type == result.type)
      return result.node;
    program.nodes.push_back({Kind::Cast, result.form, result.type, 0, 0.0, {}, {result.node}});
    return program.nodes.size() - 1;
  };
  SmallVector<unsigned> nodes; // of the second group, in both
  SmallVector<std::optional<unsigned>> inputs(second.program->inputs.size());
  for (RowNode node : second.program->nodes) {
    if (node.kind == Kind::Input) {
      if (std::optional<unsigned> known = handedOn(node.code)) {
        nodes.push_back(*known);
        continue;
      }
      std::optional<unsigned> &input = inputs[node.code];
      if (!input) {
        input = program.inputs.size();
        program.inputs.push_back(second.program->inputs[node.code]);
        addArgument(joined, second, node.code);
      }
      node.code = *input;
    }
    for (unsigned &input : node.inputs)
      input = nodes[input];
    nodes.push_back(program.nodes.size());
    program.nodes.push_back(std::move(node));
  }
  addResults(joined, first, second, nodes);
  return joined;
}

/// Leaves out nodes that no result needs, and inputs that no node does.
void prune(LoopStep &step) {
  RowProgram &program = *step.program;
  std::vector<char> live(program.nodes.size(), false);
  for (const RowResult &result : program.results)
    live[result.node] = true;
  for (size_t i = live.size(); i-- > 0;)
    if (live[i])
      for (unsigned input : program.nodes[i].inputs)
        live[input] = true;
  LoopStep pruned{step.op, {}, {}, {}, RowProgram{program.domain, {}, {}, {}}};
  SmallVector<unsigned> renumbered(live.size());
  SmallVector<std::optional<unsigned>> inputs(program.inputs.size());
  for (auto [i, node] : llvm::enumerate(program.nodes)) {
    if (!live[i])
      continue;
    RowNode kept = node;
    if (kept.kind == Kind::Input) {
      std::optional<unsigned> &input = inputs[kept.code];
      if (!input) {
        input = pruned.program->inputs.size();
        pruned.program->inputs.push_back(program.inputs[kept.code]);
        addArgument(pruned, step, kept.code);
      }
      kept.code = *input;
    }
    for (unsigned &input : kept.inputs)
      input = renumbered[input];
    renumbered[i] = pruned.program->nodes.size();
    pruned.program->nodes.push_back(std::move(kept));
  }
  for (auto [r, result] : llvm::enumerate(program.results)) {
    pruned.program->results.push_back({result.form, result.type, renumbered[result.node]});
    addArgument(pruned, step, program.inputs.size() + r);
  }
  step = std::move(pruned);
}

class Joiner {
public:
  Joiner(plan::LoopOp loop, std::vector<LoopStep> &steps) : loop(loop), steps(steps) {}

  void run() {
    for (size_t later = 1; later < steps.size();) {
      std::optional<size_t> earlier = partnerOf(later);
      if (!earlier) {
        ++later;
        continue;
      }
      steps[*earlier] = join(steps[*earlier], steps[later]);
      steps.erase(steps.begin() + later);
    }
    for (size_t number = steps.size(); number-- > 0;)
      if (steps[number].program)
        dropUnread(number);
  }

private:
  bool isOfIteration(Value value) {
    return plan::placeOf(value).buffer->getBlock() == &loop.getBody().front();
  }

  bool canBePart(const LoopStep &step) {
    if (!step.program || step.program->domain.columns() > kMostColumns ||
        llvm::any_of(step.program->inputs, [](const RowInput &input) { return !input.form; }))
      return false;
    // A carried matrix stays in registers where groups read it alone (LoopPlacement).
    return step.program->inputs.size() != 1 || isOfIteration(step.args[0]) ||
           llvm::is_contained(loop.getMoving(), step.args[0]);
  }

  /// The nearest group in front that a group can join, if it can pass what stands between them.
  std::optional<size_t> partnerOf(size_t later) {
    if (!canBePart(steps[later]))
      return std::nullopt;
    for (size_t earlier = later; earlier-- > 0;) {
      if (canBePart(steps[earlier]) && canJoin(steps[earlier], steps[later]))
        return earlier;
      if (!allShared(steps[earlier], steps[later], [](unsigned, unsigned) { return false; }))
        return std::nullopt;
    }
    return std::nullopt;
  }

  /// Leaves out results that live within an iteration, where no step behind reads them.
  void dropUnread(size_t number) {
    LoopStep &step = steps[number];
    auto isRead = [&](Value value) {
      Operation *buffer = plan::placeOf(value).buffer;
      return llvm::any_of(ArrayRef(steps).drop_front(number + 1), [&](const LoopStep &behind) {
        for (unsigned i = 0; i < behind.args.size(); ++i)
          if (bufferOf(behind, i) == buffer && behind.reads(i))
            return true;
        return false;
      });
    };
    std::vector<RowResult> kept;
    const unsigned inputs = step.program->inputs.size();
    unsigned next = inputs; // argument of the next result that is kept
    for (auto [r, result] : llvm::enumerate(step.program->results)) {
      const unsigned i = inputs + r;
      if (isOfIteration(step.args[i]) && !isRead(step.args[i]))
        continue;
      step.args[next] = step.args[i];
      step.accesses[next] = step.accesses[i];
      step.sliced[next++] = step.sliced[i];
      kept.push_back(result);
    }
    if (kept.size() == step.program->results.size())
      return;
    if (kept.empty()) {
      steps.erase(steps.begin() + number);
      return;
    }
    step.program->results = std::move(kept);
    step.args.resize(next);
    step.accesses.resize(next);
    step.sliced.resize(next);
    prune(step);
  }

  plan::LoopOp loop;
  std::vector<LoopStep> &steps;
};

} // namespace

void joinGroups(plan::LoopOp loop, std::vector<LoopStep> &steps) { Joiner(loop, steps).run(); }

} // namespace hydra::cuda
