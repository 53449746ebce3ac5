// The calls of a mode, their values, and the reference interpreter over them.
#include "test/fuzz/differential/Oracle.h"

#include "passes/precision/AmaxHistory.h"
#include "passes/precision/Policy.h"
#include "runtime/plan/Schedule.h"
#include "runtime/support/Error.h"
#include "runtime/support/Int4Groups.h"
#include "runtime/support/LossLimit.h"
#include "runtime/support/NormSpike.h"
#include "test/support/Random.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace hydra::test {

namespace {

constexpr int64_t kSteps = 2; ///< of training

uint64_t seedOf(uint64_t seed, StringRef name, uint64_t number) {
  return seed ^ llvm::xxh3_64bits((name + "#" + llvm::Twine(number)).str());
}

/// An argument of a program: ids within their bounds, labels some of which are ignored, others
/// normal.
RefTensor drawInput(EntryOp program, unsigned argument, uint64_t seed) {
  auto type = cast<RankedTensorType>(program.getBody().getArgument(argument).getType());
  RefTensor tensor(type.getShape());
  Random random(seed);
  const int64_t ids = program.getIds() ? (*program.getIds())[argument] : 0;
  for (double &v : tensor.data) {
    if (isa<FloatType>(type.getElementType()))
      v = random.normal();
    else if (ids < 0 && random.chance(0.1))
      v = -100.0;
    else
      v = static_cast<double>(random.below(ids == 0 ? 3 : std::abs(ids)));
  }
  roundTo(tensor, type.getElementType());
  return tensor;
}

/// Initial values as the model says, but none of which all elements are equal: moments and weights
/// of norms would hide what is taken from the wrong place.
void vary(ModelOp model, uint64_t seed, TensorMap &variables) {
  const auto change = [&](StringRef name, InitAttr init, Type element, VariableRole role) {
    const InitKind kind = init.getKind();
    if ((kind != InitKind::zeros && kind != InitKind::ones && kind != InitKind::constant) ||
        !isa<FloatType>(element) || role == VariableRole::gradient ||
        role == VariableRole::gradient_part || role == VariableRole::step_sum ||
        role == VariableRole::loss_scaling || role == VariableRole::amax_history)
      return;
    Random random(seedOf(seed, name, 0));
    RefTensor &tensor = variables[name];
    const bool ofSquares = role == VariableRole::moment &&
                           (name.ends_with(".v") || name.ends_with(".r") || name.ends_with(".c"));
    for (double &v : tensor.data)
      v = ofSquares ? 0.01 + 0.1 * std::abs(random.uniform()) : v + 0.5 * random.uniform();
    roundTo(tensor, element);
  };
  for (Operation &op : model.getBody().front()) {
    if (auto param = dyn_cast<ParamOp>(op))
      change(param.getSymName(), param.getInit(), param.getBoundType().getElementType(),
             VariableRole::parameter);
    else if (auto state = dyn_cast<StateOp>(op))
      change(state.getSymName(), state.getInit(), state.getBoundType().getElementType(),
             state.getRole());
  }
}

/// Weights of which any number may be held as integers: rows of such up to 127, or groups of such
/// up to 7, times a power of two, which all formats of matmuls have exactly. A plan with such
/// weights in integers computes what one computes that holds them as they are, whichever it holds
/// so.
void takeFromIntegers(ModelOp model, bool ofGroups, TensorMap &variables) {
  const double most = ofGroups ? 7.0 : 127.0;
  for (auto param : model.getBody().getOps<ParamOp>()) {
    if (!isa<FloatType>(param.getBoundType().getElementType()) ||
        param.getBoundType().getRank() != 2)
      continue;
    RefTensor &weight = variables[param.getSymName()];
    const int64_t columns = ofGroups ? support::kInt4Group : weight.cols();
    if (weight.cols() % columns != 0)
      continue;
    for (int64_t first = 0; first < weight.size(); first += columns) {
      const auto row = llvm::MutableArrayRef(weight.data).slice(first, columns);
      const auto largest = std::max_element(
          row.begin(), row.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
      if (*largest == 0.0 || !std::isfinite(*largest))
        continue;
      const double scale = std::exp2(std::ceil(std::log2(std::abs(*largest) / most)));
      *largest = std::copysign(most * scale, *largest);
      for (double &v : row)
        v = scale * std::nearbyint(v / scale);
    }
  }
}

} // namespace

std::vector<std::string> programsOf(ModelOp model, const Setting &setting) {
  if (setting.mode == Mode::Grad)
    return {"loss:loss"};
  if (setting.mode == Mode::Train)
    return {"train:loss",
            (model.lookupSymbol<EntryOp>("eval") ? "eval@eval:eval" : "eval@eval:loss") +
                (setting.evalBatch ? fmt::format(":B={}", setting.evalBatch) : "")};
  std::vector<std::string> programs;
  if (setting.mode == Mode::Generate) {
    for (const int64_t tokens : setting.prefill)
      programs.push_back(fmt::format("prefill.{0}@decode:logits:S={0}", tokens));
    programs.emplace_back("decode@decode:logits:S=1");
    return programs;
  }
  for (EntryOp entry : llvm::make_filter_range(model.getBody().getOps<EntryOp>(),
                                               [](EntryOp e) { return e.isProgram(); }))
    programs.push_back((entry.getSymName() + ":" + entry.getSymName()).str());
  return programs;
}

Oracle::Oracle(Compiler &compiler, const Case &source, const Setting &setting)
    : module(compiler.parse(source.source.text, source.name)) {
  const auto hasModel = [&] { return module && llvm::hasSingleElement(module->getOps<ModelOp>()); };
  BindingOptions binding = source.source.binding;
  bool ready = hasModel();
  if (ready) {
    ModelOp model = modelOf(*module);
    auto loss = model.lookupSymbol<EntryOp>("loss");
    if (setting.mode == Mode::Train && loss && !loss.getReturn().getUpdated().empty() &&
        !model.lookupSymbol<EntryOp>("eval")) {
      problem = "--mode=train: @loss gives state new values, and there is no entry @eval";
      return;
    }
    binding.programs = programsOf(model, setting);
    const auto selectPrecision = [&](OpPassManager &passes) {
      if (!setting.layerPrecision.empty())
        passes.addPass(createSelectPrecision(selectPrecisionOptions(setting.layerPrecision)));
    };
    ready = compiler.run(*module, [&](OpPassManager &passes) {
      if (setting.mode == Mode::Generate) {
        BindOptions bind = bindOptions(binding);
        bind.context = setting.context;
        CacheOptions cache;
        cache.context = setting.context;
        cache.policy = setting.precision;
        passes.addPass(createBind(bind));
        passes.addPass(createUnrollLayers());
        if (setting.tuning().lora)
          passes.addPass(createLora(loraOptions(setting.tuning())));
        passes.addPass(createCache(cache));
        selectPrecision(passes);
        return;
      }
      const std::vector<std::string> trained{setting.mode == Mode::Train ? "train" : "loss"};
      buildForwardPipeline(passes, binding, setting.tuning(),
                           hasBackward(setting.mode) ? trained : std::vector<std::string>());
      selectPrecision(passes);
      if (precisionPolicy(setting.precision)->quantizes)
        passes.addPass(createSelectQuantized(selectQuantizedOptions(setting.quantization())));
      UpdateOptions update = setting.update();
      update.exchange = AccumExchange::Each; // the oracle is one rank
      buildTrainingPipeline(passes, setting.mode, trained, setting.accumulation, !setting.noClip,
                            precisionPolicy(setting.precision)->scalesLoss, update,
                            setting.compileOptions().gradients);
    });
  }
  if (ready && setting.precision != "fp32" &&
      !compiler.run(*module,
                    createMixedPrecision(mixedPrecisionOptions(setting.compileOptions())))) {
    precisionProblem = StringRef(compiler.takeDiagnostics()).split('\n').first;
    return;
  }
  if (ready && precisionPolicy(setting.precision)->quantizes)
    ready = compiler.run(*module, [&](OpPassManager &passes) {
      SetTargetOptions target; // which says what sizes its matmuls of 8 bits have
      target.target = Target::named(setting.target).attribute();
      passes.addPass(createSetTarget(target));
      passes.addPass(createQuantizeMatmuls(
          quantizeMatmulsOptions(setting.quantization(), setting.accumulation)));
    });
  if (ready && (ready = draw(source, setting))) {
    std::optional<TensorMap> exact = interpretWork(*module, todo, {}),
                             rounded = interpretWork(*module, todo, {.round = true});
    ready = exact && rounded;
    valuesRefused = !ready;
    if (ready) {
      exactValues = std::move(*exact);
      roundedValues = std::move(*rounded);
    }
  }
  std::string diagnostics = compiler.takeDiagnostics();
  if (!ready)
    problem = diagnostics.empty() ? "no model, and no word why"
                                  : StringRef(diagnostics).split('\n').first.str();
}

/// Temperature 0, and a penalty that changes nothing.
static RefTensor greedySettings(int64_t sequences) {
  RefTensor settings({sequences, SampleOp::kSettings});
  for (int64_t i = 0; i < sequences; ++i)
    settings.data[i * SampleOp::kSettings + 4] = 1.0;
  return settings;
}

/// Calls of several lengths, in each of which some sequences read on, some begin, and others rest.
void Oracle::drawText(const Case &source, const Setting &setting) {
  constexpr uint64_t kCalls = 8;
  Random random(seedOf(source.seed, "calls", static_cast<uint64_t>(setting.context)));
  std::vector<int64_t> sizes = setting.prefill;
  sizes.push_back(1);
  std::vector<int64_t> read(source.source.binding.batch, 0);
  for (uint64_t number = 0; number < kCalls; ++number) {
    const int64_t tokens = number == 0 ? sizes.front() : random.pick(sizes);
    Call &one = todo.calls.emplace_back();
    one.program = tokens == 1 ? "decode" : fmt::format("prefill.{}", tokens);
    one.prefix = fmt::format("{}#{}.", one.program, number);
    RefTensor position({static_cast<int64_t>(read.size())});
    for (auto [have, at] : llvm::zip(read, position.data)) {
      if (have + tokens > setting.context)
        have = 0;
      const bool rests = number > 0 && random.chance(0.2);
      at = rests ? -1.0 : static_cast<double>(have);
      have += rests ? 0 : tokens;
    }
    EntryOp entry = programOf(*module, one.program);
    for (auto [i, name] : llvm::enumerate(entry.getArgNames().getAsValueRange<StringAttr>()))
      one.values[name] = name == "position"   ? position
                         : name == "settings" ? greedySettings(position.size())
                         : name == "draw" ? RefTensor({position.size(), SampleOp::kDraw})
                                          : drawInput(entry, i, seedOf(source.seed, name, number));
  }
}

/// Numbers of a step, drawn: some steps move nothing, or have a loss above its limit.
static double rateOf(uint64_t seed, uint64_t step) {
  return Random(seedOf(seed, "lr", step)).pick<double>({0.01, 0.01, 0.01, 0.03, 0.0});
}
static double limitOf(uint64_t seed, uint64_t step) {
  constexpr double least = 0x1p-100; // no loss is near it
  return Random(seedOf(seed, "loss limit", step)).chance(0.4) ? least : 0.0;
}

/// False where a variable has no initial values.
bool Oracle::draw(const Case &source, const Setting &setting) {
  ModelOp model = modelOf(*module);
  FailureOr<TensorMap> initial = initialValues(model, source.seed);
  if (failed(initial))
    return false;
  todo.variables = std::move(*initial);
  vary(model, source.seed, todo.variables);
  if (setting.holdsIntegers())
    takeFromIntegers(model, setting.holdsInt4(), todo.variables);

  uint64_t step = 0;
  const auto call = [&](StringRef program, uint64_t batch) {
    EntryOp entry = programOf(*module, program);
    Call &one = todo.calls.emplace_back();
    one.program = program.str();
    one.prefix = setting.mode == Mode::Grad ? "" : fmt::format("{}#{}.", one.program, batch);
    for (auto [i, name] : llvm::enumerate(entry.getArgNames().getAsValueRange<StringAttr>())) {
      const std::optional<double> usual = entry.getDefault(i);
      one.values[name] =
          name == "lr"                  ? scalar(static_cast<float>(rateOf(source.seed, step)))
          : name == support::kLossLimit ? scalar(limitOf(source.seed, step))
          : name == "clip"              ? scalar(static_cast<float>(setting.clip))
          : name == support::kNormSpike ? scalar(static_cast<float>(setting.normSpike))
          : name == "draw_low"          ? scalar(runtime::drawKey(source.seed, step).low)
          : name == "draw_high"         ? scalar(runtime::drawKey(source.seed, step).high)
          : name == "micro_batch"       ? scalar(static_cast<double>(batch % setting.accumulation))
          : usual                       ? scalar(static_cast<float>(*usual))
                                        : drawInput(entry, i, seedOf(source.seed, name, batch));
    }
  };
  if (setting.mode == Mode::Generate) {
    drawText(source, setting);
    return true;
  }
  if (setting.mode != Mode::Train) {
    for (const std::string &program : programsOf(model, setting))
      call(StringRef(program).split(':').first, 0);
    return true;
  }
  for (step = 0; step < kSteps; ++step) {
    const bool parts = setting.accumulation > 1;
    if (model.lookupSymbol<EntryOp>("count"))
      for (int64_t i = 0; i < setting.accumulation; ++i)
        call("count", step * setting.accumulation + i);
    for (int64_t i = 0; i < setting.accumulation; ++i)
      call(parts ? "accumulate" : "train", step * setting.accumulation + i);
    if (parts)
      call("apply", step);
    if (step == 0)
      todo.firstStep = todo.calls.size();
  }
  call("eval", 0);
  return true;
}

bool isOfOperands(StringRef name) {
  return name == AmaxHistory::kHistory || name == AmaxHistory::kStep;
}

std::optional<TensorMap> interpretWork(ModuleOp module, const Work &work,
                                       const InterpreterOptions &options) {
  ModelOp model = modelOf(module);
  TensorMap variables, results;
  for (auto &[name, tensor] : work.variables)
    variables[name] = tensor;
  TensorMap owners(variables); // of copies: parameters, and units of them
  joinMembers(model, owners);
  for (StateOp state : model.getBody().getOps<StateOp>())
    if (state.getRole() == VariableRole::copy) {
      RefTensor copy = owners.lookup(*state.getOwner());
      roundTo(copy, state.getBoundType().getElementType());
      variables[state.getSymName()] = std::move(copy);
    } else if (isOfOperands(state.getSymName())) {
      variables[state.getSymName()] = RefTensor(state.getBoundType().getShape());
    }
  toHeldForm(model, variables);
  InterpreterOptions own = options;
  for (EntryOp entry : model.getBody().getOps<EntryOp>())
    if (entry.getStage() == ProgramStage::derive) {
      const FailureOr<TensorMap> derived = interpretBatch(entry, variables, own);
      if (failed(derived))
        return std::nullopt;
      for (auto &[name, tensor] : *derived)
        variables[name] = tensor;
    }
  for (const Call &call : work.calls) {
    auto entry = model.lookupSymbol<EntryOp>(call.program);
    TensorMap values;
    for (const TensorMap *map : {&std::as_const(variables), &call.values})
      for (auto &[name, tensor] : *map)
        values[name] = tensor;
    FailureOr<TensorMap> computed = interpretBatch(entry, values, own);
    if (failed(computed))
      return std::nullopt;
    for (StringRef name : entry.getReturn().getOutputNames().getAsValueRange<StringAttr>()) {
      results[call.prefix + name.str()] = computed->lookup(name);
      computed->erase(name);
    }
    for (auto &[name, tensor] : *computed) // updates; of a unit its members
      variables[name] = tensor;
    own.perturb += own.perturb ? 0x9e3779b97f4a7c15 : 0; // other errors in every call
  }
  toGivenForm(model, variables);
  for (auto &[name, tensor] : variables) { // but not what follows others: see followsOthers
    auto state = model.lookupSymbol<StateOp>(name);
    if (!state ||
        (state.getRole() != VariableRole::copy && state.getRole() != VariableRole::derived))
      results[name] = tensor;
  }
  return results;
}

} // namespace hydra::test
