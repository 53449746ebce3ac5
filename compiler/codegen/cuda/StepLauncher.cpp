// Kernels by their text, and launches that wait and signal as the step did.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "compiler/codegen/rows/RecordGroup.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/BufferUsers.h"
#include "dialects/plan/KernelExpansion.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace hydra::cuda {

StringRef cType(Type element) {
  const StringRef type = support::formatOf(*formatOf(element)).cuda;
  if (type.empty())
    llvm::report_fatal_error("no kernel has elements of this type");
  return type;
}

std::string doubleText(double x) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17e", x);
  return text;
}

std::string numberText(double x) { return doubleText(x) + "f"; }

std::optional<RowProgram> programOf(plan::LaunchOp launch) {
  auto kernel = launch->getParentOfType<plan::PlanModuleOp>().lookupSymbol<plan::KernelOp>(
      launch.getKernelAttr());
  auto groups = kernel.getBody().getOps<FusedOp>();
  if (groups.empty() || launch.getLimit() || launch.getSubstitute())
    return std::nullopt;
  FailureOr<RowProgram> program = recordRows(*groups.begin());
  if (failed(program) ||
      program->inputs.size() + program->results.size() != launch.getArgs().size())
    return std::nullopt;
  return std::move(*program);
}

bool isNeverWritten(Value buffer) {
  plan::BufferOp root = plan::placeOf(buffer).buffer;
  // Memory of other transient buffers had other numbers before.
  if (root.isTransient() && llvm::none_of(root->getUsers(), llvm::IsaPred<plan::InputOp>))
    return false;
  return llvm::none_of(plan::usersOf(root.getBuffer()), [&](Operation *user) {
    if (isa<plan::LoopOp>(user)) // its body may
      return true;
    auto step = dyn_cast<plan::StepInterface>(user);
    return step &&
           llvm::any_of(llvm::zip(step.getArgs(), step.getAccesses()), [&](const auto &use) {
             const auto [arg, access] = use;
             return access != plan::kRead && plan::placeOf(arg).buffer == root;
           });
  });
}

std::string Arguments::add(Value value, int64_t how) {
  types.push_back((how == plan::kRead ? "const " : "") +
                  cType(typeOf(value).getElementType()).str() + " *");
  values.push_back(value);
  access.push_back(how);
  return "a" + std::to_string(values.size() - 1);
}

void StepLauncher::begin(plan::StepInterface of) {
  step = of;
  last = nullptr;
  taken.clear();
  stepFlops = remainingFlops = of.getFlops();
  stepBytes = remainingBytes = of.getBytes();
  b.setInsertionPoint(of);
}

void StepLauncher::finish() {
  if (!last)
    return;
  last.setSignals(step.getSignalled());
  step->erase();
  for (plan::StepInterface other : taken)
    other->erase();
}

void StepLauncher::take(ArrayRef<plan::StepInterface> others) {
  for (plan::StepInterface other : others) {
    stepFlops = remainingFlops += other.getFlops();
    stepBytes = remainingBytes += other.getBytes();
    taken.push_back(other);
  }
}

void StepLauncher::setWork(int64_t flops, int64_t bytes) {
  remainingFlops = flops;
  remainingBytes = bytes;
}

void StepLauncher::launch(StringRef name, ArrayRef<StringRef> parameters, StringRef body,
                          const LaunchShape &shape, ArrayRef<Value> args, ArrayRef<int64_t> access,
                          Waits waits) {
  std::string text = "(";
  for (auto [i, parameter] : llvm::enumerate(parameters))
    text += (Twine(i ? ", " : "") + parameter + " a" + Twine(i)).str();
  text += (") { " + body + " }").str();
  plan::KernelOp own =
      kernel(step.getLoc(), name, text, shape,
             llvm::map_to_vector(args, [](Value v) { return v.getType(); }), waits);
  // The first waits for what the step waits for; the last signals what it signals.
  last = plan::LaunchOp::create(b, step.getLoc(), own.getSymName(), args, access,
                                std::exchange(remainingFlops, 0), std::exchange(remainingBytes, 0),
                                step.getOpClass(), name, step.getStreamNumber(),
                                last ? ArrayRef<int64_t>() : step.getAwaited(), -1, IntegerAttr(),
                                plan::SubstituteAttr(), DenseI64ArrayAttr());
}

Value StepLauncher::zeroCounters(int64_t count) {
  auto program = step->getParentOfType<plan::ProgramOp>();
  Value &known = counters[{program, count}];
  if (!known)
    known = createCounters(program, count);
  return known;
}

Value StepLauncher::ownCounters(int64_t count) {
  return createCounters(step->getParentOfType<plan::ProgramOp>(), count);
}

Value StepLauncher::workspace(ArrayRef<int64_t> shape, Type element) {
  return plan::BufferOp::create(b, step.getLoc(), MemRefType::get(shape, element),
                                plan::Segment::transient, plan::Category::workspace, IntegerAttr());
}

Value StepLauncher::createCounters(plan::ProgramOp program, int64_t count) {
  constexpr int64_t kFillsOfLaunch = 64; // an argument each
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&program.getBody().front());
  Value created =
      plan::BufferOp::create(b, step.getLoc(), MemRefType::get({count}, b.getI32Type()),
                             plan::Segment::transient, plan::Category::workspace, IntegerAttr());
  // Fills that stand side by side, behind all of their buffers, are one launch.
  Fills &known = fills[program];
  if (known.first)
    b.setInsertionPoint(known.first);
  known.first = plan::FillOp::create(b, step.getLoc(), created, llvm::APFloat(0.0));
  // No batch of another pass has a negative number.
  known.first->setAttr(plan::kTogetherAttr,
                       b.getI64IntegerAttr(-1 - known.count++ / kFillsOfLaunch));
  return created;
}

bool StepLauncher::fillsCounters(Operation *step) {
  auto batch = step->getAttrOfType<IntegerAttr>(plan::kTogetherAttr);
  return batch && batch.getInt() < 0;
}

plan::KernelOp StepLauncher::kernel(Location loc, StringRef name, StringRef text,
                                    const LaunchShape &shape, ArrayRef<Type> layouts, Waits waits) {
  std::string key =
      (text +
       llvm::join(llvm::map_range(ArrayRef({shape.x, shape.y, shape.z, shape.threads, shape.shared,
                                            shape.resident, shape.cluster, int64_t{shape.letsLater},
                                            static_cast<int64_t>(waits)}),
                                  [](int64_t n) { return std::to_string(n); }),
                  ","))
          .str();
  plan::KernelOp &known = kernels[key];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(*module.getBody().getOps<plan::ProgramOp>().begin());
  std::string symbol = (name + "_" + Twine(kernels.size() - 1)).str();
  known = plan::KernelOp::create(b, loc, b.getStringAttr(symbol), b.getTypeArrayAttr(layouts),
                                 b.getI64IntegerAttr(0), b.getI64IntegerAttr(0), IntegerAttr(),
                                 IntegerAttr(), StringAttr(), DenseI64ArrayAttr(), IntegerAttr());
  known.getBody().emplaceBlock();
  const auto [parameters, body] = text.split('{');
  const std::string cluster =
      shape.cluster > 1 ? "__cluster_dims__(" + std::to_string(shape.cluster) + ", 1, 1) " : "";
  std::string source = "extern \"C\" __global__ void __launch_bounds__(" +
                       std::to_string(shape.threads) + ", " + std::to_string(shape.resident) +
                       ") " + cluster + symbol + parameters.str() + "{" +
                       (shape.letsLater ? " letLaterBegin();" : "") +
                       (waits == Waits::First ? " waitForEarlier();" : "") + body.str() + "\n";
  known.setSource(source);
  known.setLaunch(ArrayRef({shape.x, shape.y, shape.z, shape.threads, shape.shared}));
  return known;
}

} // namespace hydra::cuda
