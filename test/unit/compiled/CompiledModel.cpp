// Compiling models to plans, running them, and comparing with the oracle.
#include "test/unit/compiled/CompiledModel.h"

#include "compiler/Backends.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "compiler/emit/EmitPlan.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/run/TensorValues.h"

#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace hydra::test {

static BindingOptions onlyLoss(BindingOptions binding) {
  binding.programs = {"loss:loss"};
  return binding;
}

CompiledModel::CompiledModel(std::string modelText, BindingOptions options, Mode mode,
                             std::string precision)
    : text(std::move(modelText)), binding(onlyLoss(std::move(options))), mode(mode),
      precision(std::move(precision)) {
  reference = compiler.parse(text);
  const bool ready = reference && compiler.run(*reference, [&](OpPassManager &passes) {
    buildForwardPipeline(passes, binding, {},
                         hasBackward(this->mode) ? std::vector<std::string>{"loss"}
                                                 : std::vector<std::string>());
    buildTrainingPipeline(passes, this->mode, {"loss"}, /*accumulation=*/1, /*clip=*/false);
    if (this->precision != "fp32")
      passes.addPass(createMixedPrecision({.policy = this->precision}));
  });
  EXPECT_TRUE(ready) << compiler.takeDiagnostics();
  if (!ready)
    reference = nullptr;
}

std::vector<std::byte> CompiledModel::plan(unsigned level, std::vector<std::string> disabled,
                                           bool parallel) const {
  Compiler own;
  if (parallel)
    own.context.enableMultithreading();
  DialectRegistry registry;
  registerDialects(registry);
  own.context.appendDialectRegistry(registry);

  CompileOptions options;
  options.binding = binding;
  options.mode = mode;
  options.level = level;
  options.precision = precision;
  for (const std::string &name : disabled)
    options.disabled.insert(name);
  OwningOpRef<ModuleOp> module = own.parse(text);
  EmitOptions emit;
  const bool compiled = module && own.run(*module, [&](OpPassManager &passes) {
    emit.passes = buildPlanPipeline(passes, options);
  });
  EXPECT_TRUE(compiled) << own.takeDiagnostics();
  if (!compiled)
    return {};
  auto planModule = *module->getOps<plan::PlanModuleOp>().begin();
  emit.target = Target::named("cpu");
  // With threads all is compiled again: tests compare its bytes with those of one thread.
  static cpu::ObjectCache objects;
  FailureOr<CompiledKernels> kernels =
      backendOf(emit.target)
          .compileKernels(planModule, emit.target, {.objects = parallel ? nullptr : &objects});
  EXPECT_TRUE(succeeded(kernels)) << own.takeDiagnostics();
  if (failed(kernels))
    return {};
  emit.producer = "compiled-tests";
  emit.modelFile = "test.mlir";
  emit.precision = precision;
  emit.mode = mode;
  emit.code = std::move(*kernels);
  auto plan = emitPlan(planModule, emit);
  EXPECT_TRUE(succeeded(plan)) << own.takeDiagnostics();
  return succeeded(plan) ? runtime::encodePlan(**plan) : std::vector<std::byte>();
}

void CompiledModel::drawValues(uint64_t seed) {
  if (reference)
    setValues(randomValues(programOf(*reference), seed));
}

void CompiledModel::setValues(TensorMap values) {
  inputs = std::move(values);
  for (auto &[name, tensor] : inputs) {
    Operation *variable = reference ? modelOf(*reference).lookupSymbol(name) : nullptr;
    auto param = dyn_cast_or_null<ParamOp>(variable);
    roundTo(tensor,
            param ? param.getBoundType().getElementType() : Float32Type::get(&compiler.context));
  }
}

TensorMap CompiledModel::evaluate(bool round) {
  if (!reference)
    return {};
  FailureOr<TensorMap> results = interpret(programOf(*reference), inputs, {round});
  EXPECT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
  return succeeded(results) ? std::move(*results) : TensorMap();
}

static void give(runtime::CpuExecutor &executor, const planfile::Plan &plan, uint32_t index,
                 const RefTensor &values) {
  const planfile::Tensor &tensor = *plan.tensors()->Get(index);
  std::vector<std::byte> bytes(runtime::denseBytes(tensor));
  support::fromDoubles(runtime::dtypeOf(tensor), values.data, bytes);
  executor.write(index, bytes);
}

static RefTensor take(runtime::CpuExecutor &executor, const planfile::Plan &plan, uint32_t index) {
  const planfile::Tensor &tensor = *plan.tensors()->Get(index);
  RefTensor values(runtime::shapeOf(tensor));
  std::vector<std::byte> bytes(runtime::denseBytes(tensor));
  executor.read(index, bytes);
  support::toDoubles(runtime::dtypeOf(tensor), bytes, values.data);
  return values;
}

TensorMap runPlan(const std::vector<std::byte> &bytes, const TensorMap &values, unsigned threads) {
  if (bytes.empty())
    return {};
  const auto file = runtime::PlanFile::parse(bytes, "test.fb");
  const planfile::Plan &plan = file.plan();
  runtime::CpuExecutor executor(file, {.threads = threads, .memoryAvailable = 0});
  for (const planfile::Variable *variable : *plan.variables())
    give(executor, plan, variable->tensor(), values.find(variable->name()->str())->second);
  for (const planfile::Scalar *scalar : *plan.scalars())
    give(executor, plan, scalar->tensor(), values.find(scalar->name()->str())->second);
  const planfile::Program &program = *plan.programs()->Get(0);
  for (const planfile::Input *input : *program.inputs())
    give(executor, plan, input->tensor(), values.find(input->name()->str())->second);
  executor.run(0);
  TensorMap results;
  for (const planfile::Variable *variable : *plan.variables())
    results[variable->name()->str()] = take(executor, plan, variable->tensor());
  for (const planfile::Output *output : *program.outputs())
    results[output->name()->str()] = take(executor, plan, output->tensor());
  return results;
}

void expectWithinRounding(const TensorMap &found, const TensorMap &exact, const TensorMap &rounded,
                          double ulp) {
  const double ulps = 16 * ulp;
  constexpr double zero = 1e-7; // what is left of sums that cancel to nothing
  for (auto &[name, reference] : exact) {
    const RefTensor out = found.lookup(name), low = rounded.lookup(name);
    ASSERT_EQ(out.shape, reference.shape) << name.str();
    double allowed = 0.0, scale = 0.0, worst = 0.0;
    int64_t where = 0;
    for (int64_t i = 0; i < out.size(); ++i) {
      allowed = std::max(allowed, std::abs(low.data[i] - reference.data[i]));
      scale = std::max(scale, std::abs(reference.data[i]));
      const double error = std::abs(out.data[i] - reference.data[i]);
      if (!(error <= worst)) { // a NaN is the worst of all
        worst = error;
        where = i;
      }
    }
    EXPECT_LE(worst, 2.0 * allowed + ulps * scale + zero)
        << name.str() << " element " << where << ": " << out.data[where] << ", expected "
        << reference.data[where];
  }
}

void expectSameBits(const TensorMap &found, const TensorMap &wanted) {
  EXPECT_EQ(found.size(), wanted.size());
  for (auto &[name, tensor] : wanted)
    EXPECT_TRUE(sameBits(tensor, found.lookup(name))) << name.str();
}

} // namespace hydra::test
