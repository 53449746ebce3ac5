// From the plan dialect to the tables of a plan file.
#include "compiler/emit/EmitPlan.h"

#include "compiler/Backends.h"
#include "compiler/emit/Actions.h"
#include "compiler/emit/FileTables.h"
#include "runtime/report/PlanTimes.h"
#include "runtime/support/StreamTimeline.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace hydra {

namespace {

planfile::ScheduleKind scheduleOf(plan::ScalarSource source) {
  switch (source) {
  case plan::ScalarSource::constant:
    return planfile::ScheduleKind::constant;
  case plan::ScalarSource::step:
    return planfile::ScheduleKind::step;
  case plan::ScalarSource::draw_low:
    return planfile::ScheduleKind::draw_low;
  case plan::ScalarSource::draw_high:
    return planfile::ScheduleKind::draw_high;
  case plan::ScalarSource::micro_batch:
    return planfile::ScheduleKind::micro_batch;
  }
  llvm_unreachable("every source");
}

class PlanEmitter {
public:
  PlanEmitter(plan::PlanModuleOp module, const EmitOptions &options)
      : module(module), options(options), file(std::make_unique<planfile::PlanT>()),
        tables(*file, options.modelFile), actions(module, backend().fileKind(), *file, kernels) {}

  FailureOr<std::unique_ptr<planfile::PlanT>> run() {
    emitHeader();
    if (failed(emitSegments()))
      return failure();
    emitCode();
    for (Operation &op : module.getBody().front()) {
      auto variable = dyn_cast<plan::VariableOp>(op);
      if (variable && failed(emitVariable(variable)))
        return failure();
      if (auto scalar = dyn_cast<plan::ScalarOp>(op))
        emitScalar(scalar);
      if (auto axis = dyn_cast<plan::MeshAxisOp>(op))
        emitMeshAxis(axis);
    }
    for (auto program : module.getBody().getOps<plan::ProgramOp>())
      emitProgram(program);
    linkVariables();
    file->accumulation = options.accumulation;
    emitTotal();
    emitPhases();
    if (!sound || !tables.isComplete())
      return failure();
    if (options.target.measured)
      report::predictTimes(*file, *options.target.measured);
    return std::move(file);
  }

private:
  const TargetBackend &backend() const { return backendOf(options.target); }

  static std::unique_ptr<planfile::KeyValueT> keyValue(StringRef key, StringRef value) {
    auto entry = std::make_unique<planfile::KeyValueT>();
    entry->key = key.str();
    entry->value = value.str();
    return entry;
  }

  void emitHeader() {
    auto header = std::make_unique<planfile::HeaderT>();
    header->producer = options.producer;
    header->model_file = options.modelFile;
    header->model = module.getSymName().str();
    header->precision = options.precision;
    header->mode = modeName(options.mode).str();
    if (DictionaryAttr bound = module.getBoundAttr()) {
      if (auto preset = bound.getAs<StringAttr>("preset"))
        header->preset = preset.str();
      if (auto symbols = bound.getAs<DictionaryAttr>("symbols"))
        for (NamedAttribute a : symbols) {
          std::string text;
          llvm::raw_string_ostream os(text);
          if (auto choice = dyn_cast<StringAttr>(a.getValue()))
            os << choice.getValue();
          else if (auto real = dyn_cast<FloatAttr>(a.getValue()))
            os << llvm::format("%.17g", real.getValueAsDouble());
          else if (auto flag = dyn_cast<BoolAttr>(a.getValue()))
            os << (flag.getValue() ? "true" : "false");
          else
            os << cast<IntegerAttr>(a.getValue()).getInt();
          header->symbols.push_back(keyValue(a.getName(), text));
        }
    }
    for (auto &[key, value] : options.options)
      header->options.push_back(keyValue(key, value));
    header->passes = options.passes;
    file->header = std::move(header);
    file->target = std::make_unique<planfile::TargetT>();
    file->target->name = options.target.name;
    file->target->kind = backend().fileKind();
    if (file->target->kind == planfile::TargetKind::cuda)
      file->target->sm_arch = options.target.code;
    file->target->multiprocessors = static_cast<uint32_t>(options.target.multiprocessors);
    file->target->early_launch = is_contained(options.target.features, kEarlyLaunch);
    file->target->block_shared_bytes = options.target.blockSharedBytes;
    file->target->peak_flops = options.target.peakFlops;
    file->target->overlap = options.target.links.overlap;
    file->target->own_copy_tail = options.target.links.ownCopyTail;
    file->target->cpu_features = options.code.cpuFeatures;
  }

  LogicalResult emitSegments() {
    constexpr uint64_t kAddressable = uint64_t{1} << 47; // as of a tensor: dialects/hydra
    for (auto [size, what] :
         {std::pair(module.getPersistentBytes(), "parameters and optimizer state"),
          std::pair(module.getTransientBytes(), "activations"),
          std::pair(module.getHostBytes(), "moments on the host")}) {
      if (size.value_or(0) > kAddressable)
        return module.emitOpError() << "needs " << *size << " bytes of memory for " << what
                                    << "; a process can address 2^47";
      file->segments.emplace_back(size.value_or(0), /*alignment=*/256);
    }
    return success();
  }

  /// Plans for reports have kernels without code, of which the grid is known that the launch says.
  void emitCode() {
    const bool compiled = !options.code.blobs.empty();
    for (const planfile::BlobT &blob : options.code.blobs)
      file->blobs.push_back(std::make_unique<planfile::BlobT>(blob));
    for (auto kernel : module.getBody().getOps<plan::KernelOp>()) {
      auto entry = std::make_unique<planfile::KernelT>();
      entry->name = kernel.getSymName().str();
      entry->symbol = entry->name;
      if (compiled) {
        const KernelCode &code = options.code.kernels.find(kernel.getSymName())->second;
        entry->symbol = code.symbol;
        entry->blob = code.blob;
        entry->ptx = code.ptx;
        entry->grid = code.grid;
        entry->block = code.block;
        entry->shared_bytes = code.sharedBytes;
        entry->early = code.early;
      } else if (std::optional<ArrayRef<int64_t>> shape = kernel.getLaunch()) {
        entry->grid = planfile::Dim3((*shape)[0], (*shape)[1], (*shape)[2]);
      }
      entry->arg_count = kernel.getLayouts().size();
      entry->instances = kernel.getInstances().value_or(1);
      kernels[kernel.getSymNameAttr()] = file->kernels.size();
      file->kernels.push_back(std::move(entry));
    }
  }

  LogicalResult emitVariable(plan::VariableOp op) {
    // Parameters side by side share a buffer, which goes by all their names.
    if (!op.getMember()) {
      std::string &bufferName = tables.bufferName(op.getBuffer());
      bufferName += (bufferName.empty() ? "" : "+") + op.getName().str();
    }
    auto entry = std::make_unique<planfile::VariableT>();
    entry->name = op.getName().str();
    entry->role = fileWord<planfile::VariableRole>(op.getRole());
    entry->tensor = tables.tensor(op.getBuffer());
    if (auto member = op.getMember()) {
      entry->member = std::make_unique<planfile::MemberT>();
      entry->member->shape.assign(member->getShape().begin(), member->getShape().end());
      entry->member->offset = member->getOffset();
      entry->member->axes = axisNumbers(member->getAxis());
      nameUnit(op, entry->tensor);
    } else {
      file->tensors[entry->tensor]->name = entry->name;
    }
    auto init = initializer(op, op.getNumElements());
    if (failed(init))
      return failure();
    entry->initializer = std::move(*init);
    entry->group = op.getGroup().value_or("").str();
    entry->frozen = op.getFrozen();
    entry->packed = op.getPacked();
    if (auto adapter = op.getAdapter()) {
      entry->adapter = std::make_unique<planfile::AdapterT>();
      entry->adapter->tensor = adapter->getTensor().str();
      entry->adapter->alpha = adapter->getAlpha().getValueAsDouble();
    }
    owners.push_back(op.getOwner().value_or("").str());
    variables[op.getName()] = file->variables.size();
    file->variables.push_back(std::move(entry));
    return success();
  }

  /// The numbers of the mesh's axes that a text names; none for null.
  std::vector<uint32_t> axisNumbers(StringAttr over) {
    std::vector<uint32_t> numbers;
    if (!over)
      return numbers;
    for (StringRef name : MeshAttr::axesOf(over.getValue()))
      for (auto [i, axis] : llvm::enumerate(module.getBody().getOps<plan::MeshAxisOp>()))
        if (axis.getName() == name)
          numbers.push_back(static_cast<uint32_t>(i));
    return numbers;
  }

  /// A unit goes by its first and its last member.
  void nameUnit(plan::VariableOp op, uint32_t tensor) {
    auto [first, fresh] = firstMembers.try_emplace(tensor, op.getName().str());
    std::string name = fresh ? first->second : first->second + ".." + op.getName().str();
    tables.bufferName(op.getBuffer()) = name;
    file->tensors[tensor]->name = name;
  }

  static FailureOr<std::unique_ptr<planfile::InitializerT>> initializer(plan::VariableOp op,
                                                                        int64_t elements) {
    auto entry = std::make_unique<planfile::InitializerT>();
    InitAttr init = op.getInit();
    auto argument = [&](unsigned i) { return realValue(init.getArgs()[i]); };
    switch (init.getKind()) {
    case InitKind::zeros:
      entry->kind = planfile::InitKind::constant;
      entry->value = 0.0;
      break;
    case InitKind::ones:
      entry->kind = planfile::InitKind::constant;
      entry->value = 1.0;
      break;
    case InitKind::constant:
      entry->kind = planfile::InitKind::constant;
      entry->value = argument(0);
      break;
    case InitKind::normal:
      entry->kind = planfile::InitKind::normal;
      entry->std = argument(0);
      break;
    case InitKind::trunc_normal:
      entry->kind = planfile::InitKind::trunc_normal;
      entry->std = argument(0);
      entry->cut = argument(1);
      break;
    case InitKind::uniform:
      entry->kind = planfile::InitKind::uniform;
      entry->limit = argument(0);
      break;
    case InitKind::shuffle:
      entry->kind = planfile::InitKind::shuffle;
      auto values = shuffledValues(init, elements, [&] { return op.emitOpError(); });
      if (failed(values))
        return failure();
      entry->table = std::move(*values);
      break;
    }
    return entry;
  }

  void linkVariables() {
    for (auto [variable, owner] : llvm::zip(file->variables, owners))
      if (!owner.empty())
        variable->owner = variables.lookup(owner);
  }

  void emitScalar(plan::ScalarOp op) {
    tables.bufferName(op.getBuffer()) = op.getName().str();
    auto entry = std::make_unique<planfile::ScalarT>();
    entry->name = op.getName().str();
    entry->tensor = tables.tensor(op.getBuffer());
    entry->schedule = std::make_unique<planfile::ScheduleT>();
    entry->schedule->kind = scheduleOf(op.getSource());
    const bool counts = op.getSource() != plan::ScalarSource::constant;
    entry->schedule->peak = counts ? 0.0 : op.getValue().convertToDouble();
    entry->schedule->first = 1;
    if (auto it = options.schedules.find(entry->name); it != options.schedules.end())
      *entry->schedule = it->second;
    file->scalars.push_back(std::move(entry));
  }

  void emitMeshAxis(plan::MeshAxisOp op) {
    auto entry = std::make_unique<planfile::MeshAxisT>();
    entry->name = op.getName().str();
    entry->size = op.getSize();
    if (op.getRank()) {
      tables.bufferName(op.getRank()) = "rank." + entry->name;
      entry->rank = tables.tensor(op.getRank());
    }
    file->mesh.push_back(std::move(entry));
  }

  //===-- Programs --------------------------------------------------------------------------===//

  struct Totals {
    uint64_t flops = 0, bytes = 0;
    double microseconds = 0;

    void add(const planfile::Cost &cost, uint64_t times) {
      flops = llvm::SaturatingMultiplyAdd(times, cost.flops(), flops);
      bytes = llvm::SaturatingMultiplyAdd(times, cost.bytes(), bytes);
      microseconds += double(times) * cost.microseconds();
    }
    planfile::Cost cost() const { return {flops, bytes, microseconds}; }
  };

  void emitProgram(plan::ProgramOp program) {
    auto entry = std::make_unique<planfile::ProgramT>();
    entry->name = program.getSymName().str();
    entry->role = fileWord<planfile::ProgramRole>(program.getRole());
    if (entry->role == planfile::ProgramRole::decode)
      entry->context = options.context;
    entry->streams = program.getStreams();
    events = 0;
    program.walk([&](plan::BlockInterface block) {
      events = std::max<uint32_t>(events, block.getSignalled() + 1);
    });
    entry->events = events;
    Totals totals;
    for (Operation &op : program.getBody().front()) {
      if (auto input = dyn_cast<plan::InputOp>(op)) {
        tables.bufferName(input.getBuffer()) = input.getName().str();
        auto i = std::make_unique<planfile::InputT>();
        i->name = input.getName().str();
        i->kind = fileWord<planfile::InputKind>(input.getKind());
        i->tensor = tables.tensor(input.getBuffer());
        i->limit = input.getLimit();
        i->batch_dimension = input.getBatch().value_or(-1);
        entry->inputs.push_back(std::move(i));
      } else if (auto output = dyn_cast<plan::OutputOp>(op)) {
        auto o = std::make_unique<planfile::OutputT>();
        o->name = output.getName().str();
        o->tensor = tables.tensor(output.getBuffer());
        o->batch_dimension = output.getBatch().value_or(-1);
        if (auto parameter = output.getGradientOf())
          o->gradient_of = variables.lookup(*parameter);
        entry->outputs.push_back(std::move(o));
      }
    }
    std::vector<support::TimedBlock> timeline;
    entry->blocks = blocks(program.getBody().front(), totals, &timeline);
    if (llvm::any_of(timeline, [](const support::TimedBlock &block) { return block.exchange; }))
      totals.microseconds =
          support::predictTimeline(timeline, {.overlap = options.target.links.overlap,
                                              .copyTail = options.target.links.ownCopyTail})
              .total;
    entry->cost = totals.cost();
    entry->transient_bytes = program.getTransientBytes().value_or(0);
    entry->live_bytes = program.getLiveBytes().value_or(0);
    programTotals.push_back(totals);
    file->programs.push_back(std::move(entry));
  }

  /// The blocks of a list; `timeline`: to which they are added with their times.
  std::vector<std::unique_ptr<planfile::BlockT>>
  blocks(Block &list, Totals &totals, std::vector<support::TimedBlock> *timeline = nullptr) {
    std::vector<std::unique_ptr<planfile::BlockT>> result;
    for (Operation &op : list) {
      auto block = dyn_cast<plan::BlockInterface>(op);
      if (!block)
        continue;
      auto entry = std::make_unique<planfile::BlockT>();
      entry->stream = block.getStreamNumber();
      entry->waits.assign(block.getAwaited().begin(), block.getAwaited().end());
      entry->signals = block.getSignalled();
      Totals own;
      if (auto step = dyn_cast<plan::StepInterface>(op)) {
        entry->node.Set(std::move(*stepOf(step, own)));
      } else if (auto loop = dyn_cast<plan::LoopOp>(op)) {
        planfile::LoopT node;
        node.count = loop.getCount();
        for (auto [value, bytes] : llvm::zip(loop.getMoving(), loop.getStrides()))
          node.strides.emplace_back(tables.tensor(value), bytes);
        llvm::sort(node.strides,
                   [](const auto &a, const auto &b) { return a.tensor() < b.tensor(); });
        Totals once;
        node.blocks = blocks(loop.getBody().front(), once);
        own.add(once.cost(), loop.getCount());
        entry->node.Set(std::move(node));
      } else if (auto choice = dyn_cast<plan::SwitchOp>(op)) {
        planfile::SwitchT node;
        node.selector = tables.tensor(choice.getSelector());
        node.divisor = choice.getDivisor();
        if (choice.getKernelAttr())
          node.kernel = kernels.lookup(choice.getKernelAttr().getAttr());
        Totals most;
        for (Region &region : choice.getCases()) {
          Totals one;
          node.cases.push_back(std::make_unique<planfile::CaseT>());
          node.cases.back()->blocks = blocks(region.front(), one);
          if (one.microseconds > most.microseconds)
            most = one;
        }
        own = most;
        entry->node.Set(std::move(node));
      }
      totals.add(own.cost(), 1);
      if (timeline) {
        auto step = dyn_cast<plan::StepInterface>(op);
        const std::optional<support::Link> link = step ? step.getLink() : std::nullopt;
        timeline->push_back({entry->stream, entry->waits, entry->signals, own.microseconds,
                             link.has_value(), link.value_or(support::Link::Ranks)});
        if (step)
          timeline->back().ownCopy = ownCopyMicroseconds(step);
      }
      result.push_back(std::move(entry));
    }
    return result;
  }

  /// How long a collective copies the rank's own piece.
  double ownCopyMicroseconds(plan::StepInterface step) const {
    const RankGroup group = step.group();
    const uint64_t sent = step.getSentBytes();
    return 1e6 *
           std::min(options.target.links.ownCopySeconds(group, sent), step.seconds(options.target));
  }

  std::unique_ptr<planfile::StepT> stepOf(plan::StepInterface op, Totals &totals) {
    auto step = std::make_unique<planfile::StepT>();
    step->name = op.getLabel().str();
    step->op_class = fileWord<planfile::OpClass>(op.getOpClass());
    const Tags tags = tagsOf(op.getLoc());
    step->phase = fileWord<planfile::Phase>(tags.phase);
    step->layer = tags.layer;
    step->path = tables.path(tags.path);
    step->pass = passNumber(tags.pass);
    step->location = tables.location(op.getLoc());
    if (auto launch = dyn_cast<plan::LaunchOp>(op.getOperation()); launch && launch.getPhaseFlops())
      step->phase_flops.assign(launch.getPhaseFlops()->begin(), launch.getPhaseFlops()->end());
    step->cost = planfile::Cost(op.getFlops(), op.getBytes(), 1e6 * op.seconds(options.target));
    step->bound = fileWord<planfile::Bound>(op.boundOf(options.target));
    step->own_copy_microseconds = ownCopyMicroseconds(op);
    totals.add(step->cost, 1);
    for (auto [value, access] : llvm::zip_equal(op.getArgs(), op.getAccesses()))
      step->args.emplace_back(fileWord<planfile::Access>(access), tables.tensor(value));
    step->action = actions.actionOf(op);
    step->alternatives = actions.alternativesOf(op);
    return step;
  }

  /// The number of a pass among those of the header, the last of that name; -1 for none.
  int32_t passNumber(StringRef name) const {
    for (size_t i = options.passes.size(); i-- > 0;)
      if (name == options.passes[i])
        return static_cast<int32_t>(i);
    return -1;
  }

  /// The programs that run for each batch of a training step, in the order of the plan: that of the
  /// run, then those of its phases.
  std::vector<size_t> trainingPrograms() const {
    std::vector<size_t> found;
    for (auto [i, program] : llvm::enumerate(file->programs))
      if (program->role == planfile::ProgramRole::train ||
          program->role == planfile::ProgramRole::accumulate)
        found.push_back(i);
    return found;
  }

  void emitPhases() {
    const std::vector<size_t> training = trainingPrograms();
    if (!options.phases.empty() && training.size() != options.phases.size() + 1) {
      module.emitOpError() << "has " << training.size() << " programs that train for "
                           << options.phases.size() + 1 << " parts of a run";
      sound = false;
      return;
    }
    for (auto [i, phase] : llvm::enumerate(options.phases)) {
      auto entry = std::make_unique<planfile::TrainingPhaseT>();
      entry->program = training[i + 1];
      entry->last_step = phase.lastStep;
      file->phases.push_back(std::move(entry));
    }
  }

  /// One optimizer step of the run; else the first program.
  void emitTotal() {
    Totals total;
    const std::vector<size_t> training = trainingPrograms();
    if (training.empty() && !programTotals.empty())
      total = programTotals.front();
    if (!training.empty()) {
      const size_t main = training.front();
      total.add(programTotals[main].cost(), options.accumulation);
      if (main > 0 && file->programs[main - 1]->role == planfile::ProgramRole::count)
        total.add(programTotals[main - 1].cost(), options.accumulation);
    }
    for (auto [program, totals] : llvm::zip(file->programs, programTotals))
      if (program->role == planfile::ProgramRole::apply)
        total.add(totals.cost(), 1);
    file->cost = total.cost();
  }

  bool sound = true; ///< phases and programs belong together
  plan::PlanModuleOp module;
  const EmitOptions &options;
  std::unique_ptr<planfile::PlanT> file;
  FileTables tables;
  DenseMap<Attribute, uint32_t> kernels; // by symbol
  ActionWriter actions;
  llvm::StringMap<uint32_t> variables;
  DenseMap<uint32_t, std::string> firstMembers; ///< of units, by their tensors
  std::vector<std::string> owners;              // of variables, empty where there is none
  std::vector<Totals> programTotals;
  uint32_t events = 0;
};

} // namespace

FailureOr<std::unique_ptr<planfile::PlanT>> emitPlan(plan::PlanModuleOp module,
                                                     const EmitOptions &options) {
  return PlanEmitter(module, options).run();
}

} // namespace hydra
