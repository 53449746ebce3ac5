// Flags of the safe form, and what it differs in.
#include "tools/hydrac/SafeForm.h"

#include "compiler/driver/ModelOptions.h"
#include "passes/precision/Policy.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <map>
#include <set>

using namespace llvm;

namespace hydra {

namespace {

/// In which parameters of frozen matrices are held where --precision rounds them.
constexpr StringLiteral kHoldingPass = "hydra-hold-rounded";
constexpr StringLiteral kRoutingPass = "hydra-skip-rows";

/// Whether f32 matmuls go with the types that variables have in the plan.
bool canWiden(ModelOp source, const CompileOptions &compile) {
  const PrecisionPolicy &policy = *precisionPolicy(compile.precision);
  if (!policy.holdsValues())
    return true;
  bool freezes = compile.tuning.any(); // frozen matrices are held rounded
  source.walk([&](ParamOp param) { freezes |= param.getFrozen(); });
  // And with zero1 every rank has the rounded copies of what others update.
  return !policy.everywhere && !freezes && compile.sharding != Sharding::Zero1;
}

template <typename T>
T choiceOf(StringRef setting, StringRef value, std::initializer_list<std::pair<StringRef, T>> all) {
  std::string words;
  for (const auto &[word, choice] : all) {
    if (word == value)
      return choice;
    words += (words.empty() ? "" : ", ") + word.str();
  }
  support::fail("--safe: {} is not one of {}", setting.str(), words);
}

/// Applies one setting. Throws Error for one that is none; what no flag has this name, is a choice
/// or flag of the model, of which hydra-bind knows whether it has it.
void applySetting(StringRef setting, CompileOptions &compile) {
  const auto [name, value] = setting.split('=');
  if (name.empty() || value.empty())
    support::fail("--safe: '{}' is no setting; expected NAME=VALUE, such as attention=flash",
                  setting.str());
  if (name == "O") {
    compile.level = choiceOf<int64_t>(setting, value, {{"0", 0}, {"1", 1}, {"2", 2}});
  } else if (name == "attention") {
    compile.attention = choiceOf<AttentionForm>(
        setting, value, {{"flash", AttentionForm::Flash}, {"naive", AttentionForm::Naive}});
  } else if (name == "routing") {
    compile.binding.routing = choiceOf<Routing>(
        setting, value,
        {{"dynamic", Routing::Dynamic}, {"masked", Routing::Masked}, {"static", Routing::Static}});
  } else if (name == "reduce") {
    compile.wire = choiceOf<WireFormat>(setting, value,
                                        {{"f32", WireFormat::F32}, {"bf16", WireFormat::BF16}});
  } else if (name == "logits") {
    compile.logits = choiceOf<LogitsFormat>(
        setting, value,
        {{"auto", LogitsFormat::Auto}, {"f32", LogitsFormat::F32}, {"bf16", LogitsFormat::BF16}});
  } else if (name == "gradients") {
    compile.gradients = choiceOf<GradientFormat>(
        setting, value, {{"f32", GradientFormat::F32}, {"bf16", GradientFormat::BF16}});
  } else if (name == "precision") {
    if (!precisionPolicy(value))
      support::fail("--safe: {} is none of {}", setting.str(), precisionPolicyNames());
    compile.precision = value.str();
  } else if (name == "disable-pass") {
    checkCanBeLeftOut("--safe: disable-pass", value.str());
    compile.disabled.insert(value);
  } else {
    compile.binding.settings.push_back(setting.str());
  }
}

void applySettings(const HydracOptions &options, CompileOptions &compile) {
  SmallVector<StringRef> settings;
  StringRef(options.safe.getValue()).split(settings, ',', -1, /*KeepEmpty=*/!options.safe.empty());
  for (StringRef setting : settings)
    applySetting(setting, compile);
}

/// Whether a step in these blocks is as asked.
bool any(const std::vector<std::unique_ptr<planfile::BlockT>> &blocks,
         function_ref<bool(const planfile::BlockT &)> is) {
  return any_of(blocks, [&](const auto &block) {
    if (is(*block))
      return true;
    if (const planfile::LoopT *loop = block->node.AsLoop())
      return any(loop->blocks, is);
    if (const planfile::SwitchT *choice = block->node.AsSwitch())
      return any_of(choice->cases, [&](const auto &one) { return any(one->blocks, is); });
    return false;
  });
}

bool anyStep(const planfile::PlanT &plan, function_ref<bool(const planfile::BlockT &)> is) {
  return any_of(plan.programs, [&](const auto &program) { return any(program->blocks, is); });
}

bool isAttention(const planfile::BlockT &block) {
  const planfile::StepT *step = block.node.AsStep();
  return step && step->op_class == planfile::OpClass::attention;
}

} // namespace

std::string tilesText(const CompileOptions &compile) {
  std::string text;
  for (const KernelTiles &tiles : compile.target.tiles)
    text += (text.empty() ? "" : " ") + tiles.text();
  return text.empty() ? "none" : text;
}

CompileOptions safeOptions(const HydracOptions &options, ModelOp source, CompileOptions compile) {
  if (options.impliesSafeForm()) {
    compile.logits = roundsLogits(compile) ? LogitsFormat::BF16 : LogitsFormat::F32;
    compile.precision = "bf16"; // which policies of 8 bits are, but for their matmuls
    compile.quantization = QuantizationOptions();
    return compile;
  }
  compile.level = std::min<int64_t>(compile.level, 1);
  compile.attention = AttentionForm::Naive;
  if (compile.binding.routing == Routing::Dynamic)
    compile.binding.routing = Routing::Masked;
  compile.wire = WireFormat::F32;
  compile.reducedReduction = false;
  compile.logits = LogitsFormat::F32;
  compile.gradients = GradientFormat::F32;
  compile.sideMultiprocessors = 0;
  compile.target.tiles.clear();
  if (canWiden(source, compile))
    compile.precision = "fp32";
  applySettings(options, compile);
  if (compile.gradients == GradientFormat::BF16 &&
      !precisionPolicy(compile.precision)->narrowsGradients())
    support::fail("--safe: gradients=bf16 needs precision=bf16 or fp8");
  checkRate(compile);
  compile.kept.insert(kHoldingPass);
  return compile;
}

void checkSafe(const HydracOptions &options) {
  if (!isGiven(options.safe) || options.safe == "off")
    return;
  if (options.compile.mode != Mode::Train)
    support::fail("--safe is for --mode=train, whose steps a run can make in another way");
  if (options.explain || isGiven(options.until))
    support::fail("--safe and --{} exclude each other: a safe form is of a whole plan",
                  options.explain ? "explain" : "compile-to");
  CompileOptions trial = options.compile;
  applySettings(options, trial);
}

/// What a flag decides, in which the two forms may differ.
struct FlagItem {
  StringLiteral name;
  std::string (*text)(const CompileOptions &compile);
  void (*take)(CompileOptions &fast, const CompileOptions &safe);
  bool (*isUsed)(const planfile::PlanT &plan); ///< null: by every plan
};

static std::string onOff(bool on) { return on ? "on" : "off"; }

static const FlagItem kFlagItems[] = {
    {"attention",
     [](const CompileOptions &c) -> std::string {
       return c.attention == AttentionForm::Naive ? "naive" : "flash";
     },
     [](CompileOptions &fast, const CompileOptions &safe) { fast.attention = safe.attention; },
     [](const planfile::PlanT &plan) { return anyStep(plan, isAttention); }},
    {"precision", [](const CompileOptions &c) { return c.precision; },
     [](CompileOptions &fast, const CompileOptions &safe) {
       fast.precision = safe.precision;
       fast.quantization = safe.quantization;
       // Only sums of bf16 products can be rounded.
       fast.reducedReduction &= precisionPolicy(safe.precision)->format == support::DType::BF16;
       if (precisionPolicy(safe.precision)->format != support::DType::BF16) {
         fast.logits = LogitsFormat::Auto;
         fast.gradients = GradientFormat::F32;
       }
     },
     nullptr},
    {"routing", [](const CompileOptions &c) { return routingName(c.binding.routing).str(); },
     [](CompileOptions &fast, const CompileOptions &safe) {
       fast.binding.routing = safe.binding.routing;
     },
     [](const planfile::PlanT &plan) {
       return anyStep(plan, [](const auto &block) { return block.node.AsSwitch() != nullptr; });
     }},
    {"reduce",
     [](const CompileOptions &c) -> std::string {
       return c.wire == WireFormat::BF16 ? "bf16" : "f32";
     },
     [](CompileOptions &fast, const CompileOptions &safe) { fast.wire = safe.wire; }, nullptr},
    {"bf16-reduced-precision-reduction",
     [](const CompileOptions &c) { return onOff(c.reducedReduction); },
     [](CompileOptions &fast, const CompileOptions &safe) {
       fast.reducedReduction = safe.reducedReduction;
     },
     nullptr},
    {"logits",
     [](const CompileOptions &c) -> std::string { return roundsLogits(c) ? "bf16" : "f32"; },
     [](CompileOptions &fast, const CompileOptions &safe) { fast.logits = safe.logits; }, nullptr},
    {"gradients",
     [](const CompileOptions &c) -> std::string {
       return c.gradients == GradientFormat::BF16 ? "bf16" : "f32";
     },
     [](CompileOptions &fast, const CompileOptions &safe) { fast.gradients = safe.gradients; },
     nullptr},
    {"side-multiprocessors",
     [](const CompileOptions &c) { return std::to_string(c.sideMultiprocessors); },
     [](CompileOptions &fast, const CompileOptions &safe) {
       fast.sideMultiprocessors = safe.sideMultiprocessors;
     },
     nullptr},
    {"kernel-tiles", tilesText,
     [](CompileOptions &fast, const CompileOptions &safe) {
       fast.target.tiles = safe.target.tiles;
     },
     nullptr},
};

Optimizations optimizationsOf(const Lowered &fast, const Lowered &safe) {
  Optimizations all;
  const auto add = [&](StringRef name, StringRef here, StringRef there) {
    if (here == there)
      return;
    all.push_back(std::make_unique<planfile::OptimizationT>());
    all.back()->name = name.str();
    all.back()->fast = here.str();
    all.back()->safe = there.str();
  };
  const CompileOptions &f = fast.compile, &s = safe.compile;
  for (const FlagItem &item : kFlagItems)
    if (!item.isUsed || item.isUsed(*fast.outline))
      add(item.name, item.text(f), item.text(s));
  std::map<std::string, std::string> symbols;
  for (const auto &symbol : safe.outline->header->symbols)
    symbols[symbol->key] = symbol->value;
  for (const auto &symbol : fast.outline->header->symbols)
    add(symbol->key, symbol->value, symbols[symbol->key]);
  const std::vector<std::string> without = optionalPasses(s);
  std::set<std::string> seen = {kRoutingPass.str()};
  for (const std::string &pass : optionalPasses(f))
    if (!is_contained(without, pass) && seen.insert(pass).second)
      add(pass, "on", "off");
  return all;
}

bool isPass(const planfile::OptimizationT &optimization) {
  return any_of(pipelinePasses(),
                [&](const PassEntry &pass) { return pass.name == optimization.name; });
}

CompileOptions withoutOptimization(CompileOptions fast, const CompileOptions &safe,
                                   const planfile::OptimizationT &optimization) {
  const auto *flag =
      find_if(kFlagItems, [&](const FlagItem &item) { return item.name == optimization.name; });
  if (flag != std::end(kFlagItems)) {
    flag->take(fast, safe);
  } else if (isPass(optimization)) {
    fast.disabled.insert(optimization.name);
    for (KernelTiles &tiles : fast.target.tiles)
      tiles.required = false; // the pass may make the kernel
  } else {                    // a choice or flag of the model; what is set last counts
    fast.binding.settings.push_back(optimization.name + "=" + optimization.safe);
  }
  return fast;
}

static SmallVector<StringRef> pretestNames(const HydracOptions &options) {
  SmallVector<StringRef> names;
  StringRef(options.pretests.getValue()).split(names, ',');
  return names;
}

void checkPretests(const HydracOptions &options) {
  if (isGiven(options.pretests) && !options.hasSafeForm())
    support::fail("--pretests needs a safe form, which the plan is compared with; expected --safe");
  if (isGiven(options.pretests) && is_contained(pretestNames(options), ""))
    support::fail("--pretests is '{}'; expected all, or names of optimizations, such as attention",
                  options.pretests.getValue());
}

Asked isAsked(const HydracOptions &options, const planfile::OptimizationT &optimization) {
  if (!isGiven(options.pretests))
    return Asked::No;
  if (options.pretests == "all")
    return Asked::WithAll;
  return is_contained(pretestNames(options), optimization.name) ? Asked::ByName : Asked::No;
}

void checkPretestNames(const HydracOptions &options, const Optimizations &optimizations) {
  if (!isGiven(options.pretests) || options.pretests == "all")
    return;
  std::string known;
  for (const auto &one : optimizations)
    known += (known.empty() ? "" : ", ") + one->name;
  for (StringRef name : pretestNames(options))
    if (none_of(optimizations, [&](const auto &one) { return one->name == name; }))
      support::fail("--pretests: '{}' is nothing that the plan does in another way than its safe "
                    "form; that is {}",
                    name.str(), known.empty() ? "nothing" : known);
}

} // namespace hydra
