// Which choices a model leaves, and their levels.
#include "tools/hydrac/Settings.h"

#include "compiler/Backends.h"
#include "passes/precision/Policy.h"
#include "runtime/plan/PlanFile.h"

#include <fmt/ranges.h>

#include <algorithm>

using namespace llvm;

namespace hydra {

/// What choices change of results.
static const std::string kNothing = "nothing", kSums = "order of sums";
/// Bits are worth some time.
static constexpr double kMargin = 0.01;

void apply(const Setting &setting, CompileOptions &compile) {
  const bool all = setting.replayLayers == kAllLayers;
  compile.recompute = setting.recompute == Recomputation::None && setting.replayLayers > 0
                          ? Recomputation::Light
                          : setting.recompute;
  compile.replayEvery = all ? 1 : 0;
  compile.replayLayers = all ? 0 : setting.replayLayers;
  if (setting.roundedCopies)
    compile.roundedCopies = *setting.roundedCopies;
  if (setting.ceChunk)
    compile.ceChunk = *setting.ceChunk;
  if (setting.scanCheckpoint)
    compile.scanCheckpoint = *setting.scanCheckpoint;
  if (setting.resharding)
    compile.resharding = *setting.resharding;
  if (setting.offload)
    compile.offload = *setting.offload;
  if (setting.latePlacement)
    compile.disabled.insert(kPlacementPass);
  compile.accumulation *= setting.split;
  compile.binding.batch /= setting.split;
}

std::string recomputeText(const CompileOptions &compile) {
  const std::string base = compile.recompute == Recomputation::None    ? "none"
                           : compile.recompute == Recomputation::Light ? "light"
                                                                       : "rowwise";
  if (compile.replayEvery == 0 && compile.replayLayers == 0)
    return base;
  const std::string rest = base == "rowwise" ? "rowwise," : "";
  return rest + (compile.replayEvery > 0 ? "every=" + std::to_string(compile.replayEvery)
                                         : "layers=" + std::to_string(compile.replayLayers));
}

std::string roundedCopiesText(RoundedCopies copies) {
  switch (copies) {
  case RoundedCopies::Auto:
    return "auto";
  case RoundedCopies::Held:
    return "held";
  case RoundedCopies::Step:
    return "step";
  case RoundedCopies::Layer:
    return "layer";
  }
  llvm_unreachable("four places");
}

std::string reshardingText(Resharding resharding) {
  return resharding == Resharding::Auto     ? "auto"
         : resharding == Resharding::Always ? "always"
                                            : "never";
}

static bool choosesCopies(const HydracOptions &options, const CompileOptions &compile) {
  return hasBackward(compile.mode) && !isGiven(options.roundedCopies) &&
         precisionPolicy(compile.precision)->roundsParameters();
}

static bool choosesPlacement(const HydracOptions &options, const CompileOptions &compile) {
  return compile.mode == Mode::Train && !compile.clip && compile.accumulation == 1 &&
         !options.splitBatch && !compile.disabled.contains(kPlacementPass);
}

/// Parameters are gathered before they are needed, as far as memory allows.
static bool choosesGathers(const CompileOptions &compile) {
  return compile.sharding != Sharding::Ddp && backendOf(compile.target).wants().streams &&
         !compile.disabled.contains("hydra-overlap-collectives");
}

static bool choosesResharding(const HydracOptions &options, const CompileOptions &compile) {
  return compile.sharding == Sharding::Fsdp && hasBackward(compile.mode) &&
         !isGiven(options.resharding);
}

/// What ranks add up is exchanged whole, if memory allows.
static bool choosesSlices(const HydracOptions &options, const CompileOptions &compile) {
  return !compile.binding.mesh.empty() && hasBackward(compile.mode) && options.choosesSlices();
}

uint64_t largestSum(const planfile::Plan &plan) {
  uint64_t most = 0;
  for (const planfile::Program *program : *plan.programs())
    for (const planfile::Block *block : *program->blocks()) {
      const planfile::Step *step = block->node_as_Step();
      if (!step || step->action_type() != planfile::Action::AllToAll)
        continue;
      const planfile::Tensor &received = *plan.tensors()->Get(step->args()->Get(1)->tensor());
      uint64_t bytes = support::byteSize(runtime::dtypeOf(received));
      for (const int64_t size : *received.shape())
        bytes *= static_cast<uint64_t>(size);
      most = std::max(most, bytes);
    }
  return most;
}

Setting SettingChoices::fastestSetting(const HydracOptions &options,
                                       const CompileOptions &compile) {
  Setting setting;
  if (choosesCopies(options, compile))
    setting.roundedCopies = compile.mode == Mode::Train ? RoundedCopies::Held : RoundedCopies::Step;
  setting.latePlacement = choosesPlacement(options, compile);
  if (choosesResharding(options, compile))
    setting.resharding = Resharding::Never;
  if (choosesGathers(compile))
    setting.gatherAhead = compile.gatherAhead;
  if (choosesSlices(options, compile))
    setting.exchangeBytes = 0;
  if (compile.offload == Offload::Optimizer) // what may be is not what is best
    setting.offload = Offload::None;
  return setting;
}

SettingChoices::SettingChoices(const HydracOptions &options, CompileOptions compile,
                               const planfile::Plan &fastest)
    : options(options), compile(std::move(compile)) {
  addRecomputation(fastest);
  addRoundedCopies();
  addLossChunks(fastest);
  addScans(fastest);
  addPlacement();
  addResharding();
  addExchanges(fastest);
  addSplits();
  addOffload(fastest);
}

void SettingChoices::addRecomputation(const planfile::Plan &fastest) {
  if (!hasBackward(compile.mode))
    return;
  choices.push_back({kNothing, 3, false, [](Setting &setting, int level) {
                       setting.recompute =
                           level == 1 ? Recomputation::Light : Recomputation::Rowwise;
                     }});
  int layers = 0;
  for (const planfile::Tensor *tensor : *fastest.tensors())
    layers = std::max(layers, tensor->layer() + 1);
  if (layers > 1) // the last one is never replayed
    choices.push_back({kNothing, layers, true, [layers](Setting &setting, int level) {
                         setting.replayLayers = level + 1 == layers ? kAllLayers : level;
                       }});
}

void SettingChoices::addRoundedCopies() {
  if (!choosesCopies(options, compile))
    return;
  std::vector<RoundedCopies> levels = {RoundedCopies::Step, RoundedCopies::Layer};
  if (compile.mode == Mode::Train)
    levels.insert(levels.begin(), RoundedCopies::Held);
  choices.push_back(
      {kNothing, static_cast<int>(levels.size()), false, [levels](Setting &setting, int level) {
         setting.roundedCopies = levels[static_cast<size_t>(level)];
       }});
}

/// Rows whose logits exist at a time, where they take a noticeable part of the budget.
static int64_t rowsOfLogits(const planfile::Plan &plan, uint64_t budget) {
  constexpr uint64_t part = 64;
  int64_t most = static_cast<int64_t>(budget / part / sizeof(float)), rows = 0;
  for (const planfile::Tensor *tensor : *plan.tensors()) {
    int64_t elements = 1;
    for (const int64_t size : *tensor->shape())
      elements *= size;
    if (tensor->category() != planfile::Category::logits || tensor->shape()->size() < 2 ||
        elements <= most)
      continue;
    most = elements;
    rows = elements / tensor->shape()->Get(tensor->shape()->size() - 1);
  }
  return rows;
}

void SettingChoices::addLossChunks(const planfile::Plan &fastest) {
  const int64_t rows = rowsOfLogits(fastest, options.memoryBudgetBytes());
  constexpr int64_t least = 64; // with fewer, matmuls are not worth their launches
  std::vector<int64_t> levels{0};
  for (int64_t size = rows / 4; size >= least && levels.size() < 3; size /= 4)
    levels.push_back(size);
  if (!isGiven(options.ceChunk) && levels.size() > 1)
    choices.push_back(
        {kSums, static_cast<int>(levels.size()), false, [levels](Setting &setting, int level) {
           setting.ceChunk = levels[static_cast<size_t>(level)];
         }});
}

/// Iterations of the longest loop; where loops are kernels, what would be many.
static uint64_t iterationsOf(const planfile::Plan &plan) {
  uint64_t most = 0;
  for (const planfile::Program *program : *plan.programs())
    for (const planfile::Block *block : *program->blocks())
      if (const planfile::Loop *loop = block->node_as_Loop())
        most = std::max(most, loop->count());
  return most > 0 ? most : 256;
}

/// N / K + K copies of what a scan carries are the fewest where K is the root of N.
void SettingChoices::addScans(const planfile::Plan &fastest) {
  int levels = 1;
  for (uint64_t chunks = 2; chunks * chunks <= iterationsOf(fastest); chunks *= 2)
    ++levels;
  const bool carries = std::ranges::any_of(*fastest.tensors(), [](const planfile::Tensor *tensor) {
    return tensor->category() == planfile::Category::act_state &&
           tensor->segment() == planfile::SegmentKind::transient;
  });
  if (carries && levels > 1 && hasBackward(compile.mode) && !isGiven(options.scanCheckpoint))
    choices.push_back({kSums, levels, false, [](Setting &setting, int level) {
                         setting.scanCheckpoint = int64_t{1} << level;
                       }});
}

void SettingChoices::addPlacement() {
  if (choosesPlacement(options, compile))
    choices.push_back(
        {kNothing, 2, false, [](Setting &setting, int) { setting.latePlacement = false; }});
}

void SettingChoices::addResharding() {
  if (choosesResharding(options, compile))
    choices.push_back({kNothing, 3, false, [](Setting &setting, int level) {
                         setting.resharding = level == 1 ? Resharding::Auto : Resharding::Always;
                       }});
}

/// Gradients in slices cost least; gathers that begin later, more.
void SettingChoices::addExchanges(const planfile::Plan &fastest) {
  const int64_t most = choosesGathers(compile) ? compile.gatherAhead : 0;
  const bool slices = choosesSlices(options, compile) && largestSum(fastest) > options.sliceBytes();
  const int levels = static_cast<int>(most) + (slices ? 1 : 0);
  if (levels > 0)
    choices.push_back({kNothing, levels + 1, false,
                       [most, slices, bytes = compile.exchangeBytes](Setting &setting, int level) {
                         if (slices)
                           setting.exchangeBytes = bytes;
                         if (setting.gatherAhead)
                           setting.gatherAhead = most - level + (slices ? 1 : 0);
                       }});
}

void SettingChoices::addSplits() {
  if (!options.splitBatch || compile.mode != Mode::Train)
    return;
  std::vector<int64_t> levels;
  int64_t ranks = 1;
  for (StringRef axis : compile.binding.mesh)
    if (int64_t size = 0; !axis.rsplit(':').second.getAsInteger(10, size))
      ranks *= size;
  for (int64_t count = 1; count <= compile.binding.batch; ++count)
    if (compile.binding.batch % (count * ranks) == 0)
      levels.push_back(count);
  if (levels.size() <= 1)
    return;
  choices.push_back(
      {kSums, static_cast<int>(levels.size()), false, [levels](Setting &setting, int level) {
         setting.split = levels[static_cast<size_t>(level)];
       }});
  choices.back().takes = true; // sums of gradients
}

void SettingChoices::addOffload(const planfile::Plan &fastest) {
  const bool moments = std::ranges::any_of(*fastest.variables(), [](const auto *variable) {
    return variable->role() == planfile::VariableRole::moment;
  });
  if (compile.offload != Offload::Optimizer || !moments)
    return;
  choices.push_back(
      {kNothing, 2, false, [](Setting &setting, int) { setting.offload = Offload::Optimizer; }});
  choices.back().last = true;
}

budget::Space SettingChoices::space() const {
  budget::Space space;
  for (const Choice &choice : choices)
    space.choices.push_back({.levels = choice.levels,
                             .even = choice.even,
                             .margin = choice.changes == kNothing ? 0 : kMargin,
                             .last = choice.last,
                             .takes = choice.takes});
  // Whatever is replayed, rotary positions are recomputed too: none and light are the same then.
  if (choices.size() > 1 && choices[1].even)
    space.exists = [](const budget::Point &point) { return point[0] != 1 || point[1] == 0; };
  return space;
}

Setting SettingChoices::at(const budget::Point &point) const {
  Setting setting = fastestSetting(options, compile);
  for (size_t i = 0; i < point.size(); ++i)
    if (point[i] > 0)
      choices[i].set(setting, point[i]);
  return setting;
}

std::string SettingChoices::flags(const budget::Point &point) const {
  const Setting setting = at(point);
  CompileOptions made = compile;
  apply(setting, made);
  std::string text = "--recompute=" + recomputeText(made);
  CompileOptions usual = made;
  usual.roundedCopies = compile.roundedCopies;
  if (setting.roundedCopies && roundedCopiesOf(usual) != *setting.roundedCopies)
    text += " --rounded-copies=" + roundedCopiesText(*setting.roundedCopies);
  if (setting.ceChunk)
    text += " --ce-chunk=" + std::to_string(*setting.ceChunk);
  if (setting.scanCheckpoint)
    text += " --scan-checkpoint=" + std::to_string(*setting.scanCheckpoint);
  if (setting.resharding && *setting.resharding != compile.resharding)
    text += " --reshard=" + reshardingText(*setting.resharding);
  if (setting.offload == Offload::Optimizer)
    text += " --offload=optimizer";
  if (setting.latePlacement)
    text += " --disable-pass=" + kPlacementPass.str();
  if (setting.split > 1)
    text += " --batch=" + std::to_string(made.binding.batch) +
            " --accum=" + std::to_string(made.accumulation);
  return text;
}

std::string SettingChoices::text(const budget::Point &point) const {
  const Setting setting = at(point);
  std::vector<std::string> more;
  if (setting.gatherAhead && *setting.gatherAhead < compile.gatherAhead)
    more.push_back(fmt::format("gathers {} ahead", *setting.gatherAhead));
  if (setting.exchangeBytes && *setting.exchangeBytes > 0)
    more.push_back("gradients in slices");
  return flags(point) + (more.empty() ? "" : fmt::format(" ({})", fmt::join(more, ", ")));
}

} // namespace hydra
