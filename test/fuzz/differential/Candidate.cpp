// What hydrac and hydra-run do, in this process.
#include "test/fuzz/differential/Candidate.h"

#include "compiler/targets/TargetBackend.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "compiler/driver/ModelOptions.h"
#include "compiler/emit/EmitPlan.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/run/TensorValues.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"

using namespace mlir;

namespace hydra::test {

namespace {

/// The program after all passes up to a phase, and their names.
OwningOpRef<ModuleOp> runPasses(Compiler &compiler, const Case &source, const Setting &setting,
                                CompilePhase until, std::vector<std::string> &names) {
  OwningOpRef<ModuleOp> module = compiler.parse(source.source.text, source.name);
  if (!module)
    return nullptr;
  CompileOptions options = setting.compileOptions();
  options.binding = source.source.binding;
  options.binding.programs = programsOf(modelOf(*module), setting.mode);
  options.until = until;
  if (!compiler.run(*module,
                    [&](OpPassManager &passes) { names = buildPlanPipeline(passes, options); }))
    return nullptr;
  return module;
}

FailureOr<std::vector<std::byte>> compile(Compiler &compiler, const Case &source,
                                          const Setting &setting) {
  EmitOptions emit;
  OwningOpRef<ModuleOp> module =
      runPasses(compiler, source, setting, CompilePhase::Plan, emit.passes);
  if (!module)
    return failure();
  auto planModule = *module->getOps<plan::PlanModuleOp>().begin();
  emit.producer = "hydra-differential";
  emit.modelFile = source.name;
  emit.precision = setting.precision;
  emit.mode = modeName(setting.mode).str();
  emit.target = Target::named(setting.target);
  emit.accumulation = setting.mode == Mode::Train ? static_cast<uint32_t>(setting.accumulation) : 1;
  static cpu::ObjectCache objects;
  FailureOr<CompiledKernels> kernels =
      TargetBackend::named(emit.target.kind)
          .compileKernels(planModule, emit.target,
                          {.cache = {}, .optimised = !setting.plainCode, .objects = &objects});
  if (failed(kernels))
    return failure();
  emit.code = std::move(*kernels);
  auto plan = emitPlan(planModule, emit);
  if (failed(plan))
    return failure();
  return runtime::encodePlan(**plan);
}

std::vector<std::byte> bytesOf(const planfile::Tensor &tensor, const RefTensor &values) {
  std::vector<std::byte> bytes(runtime::denseBytes(tensor));
  support::fromDoubles(runtime::dtypeOf(tensor), values.data, bytes);
  return bytes;
}

/// A plan on an executor, given and asked for tensors by name.
class Machine {
public:
  Machine(const runtime::PlanFile &file, const Setting &setting)
      : plan(file.plan()), executor(makeExecutor(file, setting)) {}

  TensorMap run(const Work &work) {
    for (const planfile::Variable *variable : *plan.variables())
      if (!runtime::isCopy(*variable))
        runtime::writeVariable(plan, *executor, *variable,
                               bytesOf(tensorAt(variable->tensor()),
                                       valueOf(work.variables, variable->name()->str())));
    TensorMap results;
    for (const Call &call : work.calls)
      make(call, results);
    for (const planfile::Variable *variable : *plan.variables())
      if (!runtime::isCopy(*variable))
        results[variable->name()->str()] = take(variable->tensor());
    return results;
  }

private:
  static std::unique_ptr<runtime::Executor> makeExecutor(const runtime::PlanFile &file,
                                                         const Setting &setting) {
    if (setting.isCuda())
      return runtime::makeCudaExecutor(file, {.poison = true});
    return std::make_unique<runtime::CpuExecutor>(
        file, runtime::CpuOptions{.threads = setting.threads, .poison = true});
  }

  void make(const Call &call, TensorMap &results) {
    const uint32_t number = numberOf(call.program);
    for (const planfile::Scalar *scalar : *plan.scalars())
      if (auto it = call.values.find(scalar->name()->str()); it != call.values.end())
        give(scalar->tensor(), it->second);
    const planfile::Program &program = *plan.programs()->Get(number);
    for (const planfile::Input *input : *program.inputs())
      give(input->tensor(), valueOf(call.values, input->name()->str()));
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

  const planfile::Tensor &tensorAt(uint32_t index) const { return *plan.tensors()->Get(index); }

  void give(uint32_t index, const RefTensor &values) {
    executor->write(index, bytesOf(tensorAt(index), values));
  }

  RefTensor take(uint32_t index) {
    const planfile::Tensor &tensor = tensorAt(index);
    RefTensor values(runtime::shapeOf(tensor));
    std::vector<std::byte> bytes(runtime::denseBytes(tensor));
    executor->read(index, bytes);
    support::toDoubles(runtime::dtypeOf(tensor), bytes, values.data);
    return values;
  }

  const planfile::Plan &plan;
  std::unique_ptr<runtime::Executor> executor;
};

} // namespace

Candidate compileCandidate(Compiler &compiler, const Case &source, const Setting &setting) {
  Candidate candidate;
  try {
    FailureOr<std::vector<std::byte>> plan = compile(compiler, source, setting);
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
  return candidate;
}

OwningOpRef<ModuleOp> groupedModule(Compiler &compiler, const Case &source,
                                    const Setting &setting) {
  std::vector<std::string> names;
  return runPasses(compiler, source, setting, CompilePhase::Group, names);
}

std::vector<TensorMap> runCandidate(const std::vector<std::byte> &plan, const Setting &setting,
                                    const Work &work, unsigned repetitions) {
  const auto file = runtime::PlanFile::parse(plan, "plan.fb");
  Machine machine(file, setting);
  std::vector<TensorMap> results;
  for (unsigned i = 0; i < repetitions; ++i)
    results.push_back(machine.run(work));
  return results;
}

} // namespace hydra::test
