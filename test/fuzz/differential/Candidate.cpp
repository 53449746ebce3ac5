// What hydrac and hydra-run do, in this process.
#include "test/fuzz/differential/Candidate.h"

#include "compiler/Backends.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "compiler/driver/ModelOptions.h"
#include "compiler/emit/EmitPlan.h"
#include "dialects/hydra/Reference.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/run/FirstValues.h"
#include "runtime/run/TensorValues.h"
#include "runtime/support/Error.h"
#include "runtime/support/Int4Groups.h"
#include "test/fuzz/differential/DataFlow.h"
#include "test/support/LocalRanks.h"
#include "test/support/Random.h"

#include "mlir/IR/Verifier.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace hydra::test {

namespace {

/// What was seen of the program behind passes.
struct Watched {
  std::string flow;          ///< what createDataFlowCheck says
  std::string pass, invalid; ///< of a pass that failed: what the verifier says of what it left
};

class VerifierCheck final : public PassInstrumentation {
public:
  explicit VerifierCheck(Watched &watched) : watched(watched) {}

  void runAfterPassFailed(Pass *pass, Operation *root) override {
    watched.pass = pass->getArgument().str();
    const ScopedDiagnosticHandler handler(root->getContext(), [&](Diagnostic &diagnostic) {
      if (watched.invalid.empty())
        watched.invalid = diagnostic.str();
      return success();
    });
    (void)verify(root);
  }

private:
  Watched &watched;
};

/// What is wrong with what a pass left; empty where nothing is. A pass that refuses a model may
/// leave what does not verify, but has said why itself.
std::string brokenText(const Watched &watched, StringRef refusal) {
  if (!watched.invalid.empty() && refusal.ends_with(watched.invalid))
    return fmt::format("{} leaves what does not verify: {}", watched.pass, refusal.str());
  return watched.flow;
}

/// The program after all passes up to a phase, and their names.
OwningOpRef<ModuleOp> runPasses(Compiler &compiler, const Case &source, const Setting &setting,
                                CompilePhase until, std::vector<std::string> &names,
                                Watched *watched = nullptr) {
  OwningOpRef<ModuleOp> module = compiler.parse(source.source.text, source.name);
  if (!module)
    return nullptr;
  CompileOptions options = setting.compileOptions();
  options.binding = source.source.binding;
  options.binding.mesh = setting.meshAxes();
  options.binding.programs = programsOf(modelOf(*module), setting);
  options.until = until;
  if (!compiler.run(*module, [&](PassManager &passes) {
        names = buildPlanPipeline(passes, options);
        if (watched) {
          passes.addInstrumentation(createDataFlowCheck(watched->flow));
          passes.addInstrumentation(std::make_unique<VerifierCheck>(*watched));
        }
      }))
    return nullptr;
  return module;
}

FailureOr<std::vector<std::byte>> compile(Compiler &compiler, const Case &source,
                                          const Setting &setting, Watched *watched) {
  EmitOptions emit;
  OwningOpRef<ModuleOp> module =
      runPasses(compiler, source, setting, CompilePhase::Plan, emit.passes, watched);
  if (!module)
    return failure();
  auto planModule = *module->getOps<plan::PlanModuleOp>().begin();
  emit.producer = "hydra-differential";
  emit.modelFile = source.name;
  emit.precision = setting.precision;
  emit.mode = setting.mode;
  emit.target = Target::named(setting.target);
  emit.context = setting.mode == Mode::Generate ? static_cast<uint64_t>(setting.context) : 0;
  emit.accumulation = setting.mode == Mode::Train ? static_cast<uint32_t>(setting.accumulation) : 1;
  static cpu::ObjectCache objects;
  FailureOr<CompiledKernels> kernels = backendOf(emit.target)
                                           .compileKernels(planModule, emit.target,
                                                           {.cache = {},
                                                            .optimised = !setting.plainCode,
                                                            .objects = &objects,
                                                            .onlyTexts = setting.plainCode});
  if (failed(kernels))
    return failure();
  emit.code = std::move(*kernels);
  auto plan = emitPlan(planModule, emit);
  if (failed(plan))
    return failure();
  return runtime::encodePlan(**plan);
}

std::vector<std::byte> bytesOf(support::DType dtype, const RefTensor &values) {
  std::vector<std::byte> bytes(values.data.size() * support::byteSize(dtype));
  support::fromDoubles(dtype, values.data, bytes);
  return bytes;
}

/// Copies equal pieces of a dimension between a tensor and its part `rank` of `ranks`.
template <typename Whole, typename Part>
void copyPart(Whole &whole, Part &part, int dimension, uint64_t rank, bool out) {
  int64_t runs = 1, run = 1, length = 1;
  for (size_t d = 0; d < part.shape.size(); ++d)
    (d < static_cast<size_t>(dimension) ? runs : run) *= part.shape[d];
  length = run / part.shape[dimension] * whole.shape[dimension];
  for (int64_t i = 0; i < runs; ++i) {
    auto *inWhole = whole.data.data() + i * length + static_cast<int64_t>(rank) * run;
    auto *inPart = part.data.data() + i * run;
    if (out)
      std::copy_n(inWhole, run, inPart);
    else
      std::copy_n(inPart, run, inWhole);
  }
}

RefTensor partOf(const RefTensor &whole, int dimension, uint64_t rank, uint64_t ranks) {
  if (dimension < 0)
    return whole;
  llvm::SmallVector<int64_t> shape(whole.shape);
  shape[dimension] /= static_cast<int64_t>(ranks);
  RefTensor part(shape), source = whole;
  copyPart(source, part, dimension, rank, /*out=*/true);
  return part;
}

/// A plan on an executor, given and asked for tensors by name.
class Machine {
public:
  /// `ranks`: null where the plan is for one.
  Machine(const runtime::PlanFile &file, const Setting &setting, runtime::Communicator *ranks)
      : plan(file.plan()), rank(ranks ? ranks->rank() : 0),
        executor(makeExecutor(file, setting, ranks)) {}

  /// Of values of the whole batch this rank's part; of results what this rank has.
  TensorMap run(const Work &work) {
    runtime::clearGaps(plan, *executor, rank);
    for (const planfile::Variable *variable : *plan.variables())
      if (!runtime::followsOthers(*variable))
        runtime::writeVariable(
            plan, *executor, *variable, rank,
            bytesOf(runtime::givenDtypeOf(plan, *variable), valuesFor(*variable, work.variables)));
    runtime::deriveVariables(plan, *executor);
    TensorMap results;
    for (const Call &call : work.calls)
      make(call, results);
    for (const planfile::Variable *variable : *plan.variables())
      if (!runtime::followsOthers(*variable))
        results[variable->name()->str()] = take(*variable);
    return results;
  }

private:
  static std::unique_ptr<runtime::Executor> makeExecutor(const runtime::PlanFile &file,
                                                         const Setting &setting,
                                                         runtime::Communicator *ranks) {
    if (setting.isCuda())
      return runtime::makeCudaExecutor(file, {.poison = true});
    return std::make_unique<runtime::CpuExecutor>(
        file, runtime::CpuOptions{.threads = setting.threads, .poison = true, .ranks = ranks});
  }

  void make(const Call &call, TensorMap &results) {
    const uint32_t number = numberOf(call.program);
    for (const planfile::Scalar *scalar : *plan.scalars())
      if (auto it = call.values.find(scalar->name()->str()); it != call.values.end())
        give(scalar->tensor(), it->second);
    const planfile::Program &program = *plan.programs()->Get(number);
    for (const planfile::Input *input : *program.inputs())
      give(input->tensor(), partOf(valueOf(call.values, input->name()->str()),
                                   input->batch_dimension(), rank, runtime::ranksOf(plan)));
    executor->run(number);
    for (const planfile::Output *output : *program.outputs())
      results[call.prefix + output->name()->str()] = take(output->tensor());
  }

  uint32_t numberOf(const std::string &name) const {
    for (uint32_t i = 0; i < plan.programs()->size(); ++i)
      if (plan.programs()->Get(i)->name()->string_view() == name)
        return i;
    support::fail("the plan has no program {}", name);
  }

  static const RefTensor &valueOf(const TensorMap &values, const std::string &name) {
    auto it = values.find(name);
    if (it == values.end())
      support::fail("the plan has a tensor {}, which the program has not", name);
    return it->second;
  }

  RefTensor valuesFor(const planfile::Variable &variable, const TensorMap &values) const {
    const RefTensor &exact = valueOf(values, variable.name()->str());
    if (RefTensor own(runtime::shapeOf(plan, variable));
        isOfOperands(variable.name()->string_view()) && own.shape != exact.shape)
      return own;
    if (!runtime::isInt8(plan, variable))
      return exact;
    // Of groups so little that no other scale has less of an error.
    return variable.packed() ? besideIntegers(exact, support::kInt4Group, 7.0, 0.05)
                             : besideIntegers(exact, exact.shape.back(), 127.0, 0.4);
  }

  /// Numbers that are rounded to the given ones, of which the largest of each `columns` is `most`
  /// scales: that stays, and others are put off by up to `off` scales.
  static RefTensor besideIntegers(const RefTensor &exact, int64_t columns, double most,
                                  double off) {
    RefTensor values = exact;
    Random random(static_cast<uint64_t>(exact.size()));
    for (int64_t first = 0; first < exact.size(); first += columns) {
      const auto row = llvm::MutableArrayRef(values.data).slice(first, columns);
      double largest = 0.0;
      for (const double v : row)
        largest = std::max(largest, std::abs(v));
      for (double &v : row)
        if (std::abs(v) < largest)
          v += off * largest / most * random.uniform();
    }
    return values;
  }

  const planfile::Tensor &tensorAt(uint32_t index) const { return *plan.tensors()->Get(index); }

  void give(uint32_t index, const RefTensor &values) {
    executor->write(index, bytesOf(runtime::dtypeOf(tensorAt(index)), values));
  }

  RefTensor take(uint32_t index) {
    const planfile::Tensor &tensor = tensorAt(index);
    RefTensor values(runtime::shapeOf(tensor));
    std::vector<std::byte> bytes(runtime::denseBytes(tensor));
    executor->read(index, bytes);
    support::toDoubles(runtime::dtypeOf(tensor), bytes, values.data);
    return values;
  }

  /// The elements that this rank holds, and zeros.
  RefTensor take(const planfile::Variable &variable) {
    if (variable.packed())
      return unpackedInt4(take(variable.tensor()), take(scaleOf(variable).tensor()));
    RefTensor values(runtime::shapeOf(plan, variable));
    const support::DType dtype = runtime::dtypeOf(plan, variable);
    runtime::readVariable(
        plan, *executor, variable, rank, [&](int64_t first, std::span<const std::byte> bytes) {
          support::toDoubles(
              dtype, bytes,
              std::span(values.data).subspan(first, bytes.size() / support::byteSize(dtype)));
        });
    if (runtime::isInt8(plan, variable))
      scaleRows(values, take(scaleOf(variable).tensor()));
    return values;
  }

  /// What integers [rows, columns] stand for.
  static void scaleRows(RefTensor &integers, const RefTensor &scales) {
    const int64_t columns = integers.shape.back();
    for (int64_t i = 0; i < integers.size(); ++i)
      integers.data[i] *= scales.data[i / columns];
  }

  const planfile::Variable &scaleOf(const planfile::Variable &parameter) const {
    for (const planfile::Variable *variable : *plan.variables())
      if (variable->role() == planfile::VariableRole::scale &&
          plan.variables()->Get(static_cast<uint32_t>(variable->owner())) == &parameter)
        return *variable;
    support::fail("{} has no scale", parameter.name()->string_view());
  }

  const planfile::Plan &plan;
  const uint64_t rank;
  std::unique_ptr<runtime::Executor> executor;
};

/// Null where the name is an output's.
const planfile::Variable *variableOf(const planfile::Plan &plan, StringRef name) {
  for (const planfile::Variable *variable : *plan.variables())
    if (name == StringRef(variable->name()->string_view()))
      return variable;
  return nullptr;
}

/// From what each rank holds. Throws where ranks differ in what they both hold.
RefTensor joinedVariable(const planfile::Plan &plan, const planfile::Variable &variable,
                         const std::vector<std::vector<TensorMap>> &found, unsigned run) {
  const std::string name = variable.name()->str();
  RefTensor whole(runtime::shapeOf(plan, variable));
  std::vector<bool> known(whole.data.size());
  for (size_t rank = 0; rank < found.size(); ++rank) {
    const runtime::VariablePart part(plan, variable, rank);
    const RefTensor &theirs = found[rank][run].find(name)->second;
    for (int64_t i = part.first; i < part.end(); ++i) {
      if (known[i] &&
          std::bit_cast<uint64_t>(whole.data[i]) != std::bit_cast<uint64_t>(theirs.data[i]))
        support::fail("rank {} has another {} than a rank before it", rank, name);
      whole.data[i] = theirs.data[i];
      known[i] = true;
    }
  }
  return whole;
}

/// The results of all ranks of one run as those of the whole batch. Throws where ranks differ in
/// what must be the same.
TensorMap joined(const planfile::Plan &plan, const Work &work,
                 const std::vector<std::vector<TensorMap>> &found, unsigned run) {
  std::map<std::string, int> dimensions; // of outputs of which each rank has rows
  for (const Call &call : work.calls)
    for (const planfile::Program *program : *plan.programs())
      if (program->name()->string_view() == call.program)
        for (const planfile::Output *output : *program->outputs())
          dimensions[call.prefix + output->name()->str()] = output->batch_dimension();
  TensorMap results;
  for (const auto &[name, first] : found[0][run]) {
    const auto it = dimensions.find(name.str());
    const int dimension = it == dimensions.end() ? -1 : it->second;
    if (const planfile::Variable *variable = variableOf(plan, name);
        variable && it == dimensions.end()) {
      results[name] = joinedVariable(plan, *variable, found, run);
      continue;
    }
    if (dimension < 0) {
      for (size_t rank = 1; rank < found.size(); ++rank)
        if (!sameBits(found[rank][run].find(name)->second, first))
          support::fail("rank {} has another {} than rank 0", rank, name.str());
      results[name] = first;
      continue;
    }
    llvm::SmallVector<int64_t> shape(first.shape);
    shape[dimension] *= static_cast<int64_t>(found.size());
    RefTensor whole(shape);
    for (size_t rank = 0; rank < found.size(); ++rank) {
      RefTensor part = found[rank][run].find(name)->second;
      copyPart(whole, part, dimension, rank, /*out=*/false);
    }
    results[name] = std::move(whole);
  }
  return results;
}

} // namespace

Candidate compileCandidate(Compiler &compiler, const Case &source, const Setting &setting,
                           bool watched) {
  Candidate candidate;
  Watched seen;
  try {
    FailureOr<std::vector<std::byte>> plan =
        compile(compiler, source, setting, watched ? &seen : nullptr);
    if (succeeded(plan))
      candidate.plan = std::move(*plan);
    const std::string diagnostics = compiler.takeDiagnostics();
    const std::string first = StringRef(diagnostics).split('\n').first.str();
    (failed(plan) ? candidate.refusal : candidate.complaint) = first;
  } catch (const support::Error &error) {
    candidate.refusal = error.what();
    compiler.takeDiagnostics();
  }
  if (candidate.plan.empty() && candidate.refusal.empty())
    candidate.refusal = "a pass failed without saying why";
  candidate.broken = brokenText(seen, candidate.refusal);
  return candidate;
}

OwningOpRef<ModuleOp> groupedModule(Compiler &compiler, const Case &source,
                                    const Setting &setting) {
  std::vector<std::string> names;
  return runPasses(compiler, source, setting, CompilePhase::Group, names);
}

static std::vector<TensorMap> runPlan(const runtime::PlanFile &file, const Setting &setting,
                                      const Work &work, unsigned repetitions) {
  const uint64_t ranks = runtime::ranksOf(file.plan());
  std::vector<std::vector<TensorMap>> found(ranks); // of each rank
  const auto runAs = [&](runtime::Communicator *self) {
    Machine machine(file, setting, self);
    for (unsigned i = 0; i < repetitions; ++i)
      found[self ? self->rank() : 0].push_back(machine.run(work));
  };
  if (ranks == 1) {
    runAs(nullptr);
    return std::move(found[0]);
  }
  LocalRanks(file.plan()).run([&](runtime::Communicator &self) { runAs(&self); });
  std::vector<TensorMap> results;
  for (unsigned i = 0; i < repetitions; ++i)
    results.push_back(joined(file.plan(), work, found, i));
  return results;
}

std::vector<TensorMap> runCandidate(const std::vector<std::byte> &plan, const Setting &setting,
                                    const Work &work, unsigned repetitions) {
  return runPlan(runtime::PlanFile::parse(plan, "plan.fb"), setting, work, repetitions);
}

TensorMap runResumed(const std::vector<std::byte> &plan, const Setting &setting, const Work &work) {
  const auto file = runtime::PlanFile::parse(plan, "plan.fb");
  const size_t saved = work.firstStep;
  Work before = work, behind = work;
  before.calls.resize(saved);
  behind.calls.erase(behind.calls.begin(), behind.calls.begin() + static_cast<int64_t>(saved));
  TensorMap results = runPlan(file, setting, before, 1).front();
  for (const planfile::Variable *variable : *file.plan().variables())
    if (runtime::isInCheckpoint(*variable) && !runtime::followsOthers(*variable))
      behind.variables[variable->name()->str()] = results.lookup(variable->name()->str());
  const TensorMap rest = runPlan(file, setting, behind, 1).front();
  for (auto &[name, tensor] : rest)
    results[name] = tensor;
  return results;
}

} // namespace hydra::test
