// Rows in groups: which templates sort and multiply them, and how many blocks that takes.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

/// As in templates/grouped.cuh.
constexpr int64_t kSide = 128, kPlainSide = 64, kThreads = 256;
constexpr int64_t kSharedBytes = 4 * 2 * 128 * (32 + 8) * 2;

std::string flag(bool set) { return set ? "true" : "false"; }

/// Whether a factor has rows of 16-byte pieces of 16-bit numbers.
bool isTiled(Value factor) {
  MemRefType type = typeOf(factor);
  return isNarrowFloat(type.getElementType()) && type.getShape().back() % 8 == 0 &&
         plan::alignmentOf(factor) >= 16;
}

/// How many tiles of that height rows in groups, and those without one, have at most.
int64_t mostTiles(int64_t rows, int64_t groups, int64_t height) {
  return std::min(rows, (rows + (groups + 1) * (height - 1)) / height);
}

SmallVector<std::string> parameterTypes(Value operand, Value result) {
  const std::string in = ("const " + cType(typeOf(operand).getElementType()) + " *").str();
  return {in, in, "const int *", (cType(typeOf(result).getElementType()) + " *").str()};
}

void launchGrouped(StepLauncher &launcher, StringRef name, const std::string &body,
                   const LaunchShape &shape, ArrayRef<Value> args) {
  const SmallVector<std::string> types = parameterTypes(args[0], args[3]);
  launcher.launch(name, SmallVector<StringRef>(types.begin(), types.end()), body, shape, args,
                  {plan::kRead, plan::kRead, plan::kRead, plan::kWrite});
}

} // namespace

void expandRoute(StepLauncher &launcher, plan::RouteOp op) {
  ArrayRef<int64_t> mask = typeOf(op.getMask()).getShape();
  const int64_t k = typeOf(op.getPlace()).getDimSize(1);
  Value groups = plan::BufferOp::create(
      launcher.b, op.getLoc(), MemRefType::get({mask[0], k}, launcher.b.getI32Type()),
      plan::Segment::transient, plan::Category::workspace, IntegerAttr());
  const std::string sizes = llvm::formatv("<{0}, {1}, {2}>", mask[0], mask[1], k).str();
  launcher.launch("list_groups", {"const unsigned char *", "int *"},
                  "listGroups" + sizes + "(a0, a1);", {ceilDiv(mask[0], 256), 1, 1, 256, 0},
                  {op.getMask(), groups}, {plan::kRead, plan::kWrite});
  launcher.launch("route", {"const int *", "int *", "int *", "int *", "int *"},
                  "routeRows" + sizes + "(a0, a1, a2, a3, a4);", {mask[1], 1, 1, 1024, 0},
                  {groups, op.getIndex(), op.getGroup(), op.getPlace(), op.getOffsets()},
                  {plan::kRead, plan::kWrite, plan::kWrite, plan::kWrite, plan::kWrite});
}

void expandGroupedLinear(StepLauncher &launcher, plan::GroupedLinearOp op) {
  const int64_t rows = typeOf(op.getX()).getDimSize(0), k = typeOf(op.getX()).getDimSize(1);
  const int64_t groups = typeOf(op.getW()).getDimSize(0), n = typeOf(op.getY()).getDimSize(1);
  const bool tiled =
      isTiled(op.getX()) && isTiled(op.getW()) && n % 8 == 0 && plan::alignmentOf(op.getY()) >= 16;
  const int64_t side = tiled ? kSide : kPlainSide;
  std::string body = llvm::formatv("groupedLinear{0}<{1}, {2}, {3}, {4}, {5}", tiled ? "" : "Plain",
                                   rows, groups, n, k, flag(op.getTransposed()))
                         .str();
  if (!tiled)
    body += ", " + flag(op.getCompute().has_value());
  launchGrouped(
      launcher, "grouped_linear", body + ">(a0, a1, a2, a3);",
      {ceilDiv(n, side) * mostTiles(rows, groups, side), 1, 1, kThreads, tiled ? kSharedBytes : 0},
      {op.getX(), op.getW(), op.getOffsets(), op.getY()});
}

void expandGroupedOuter(StepLauncher &launcher, plan::GroupedOuterOp op) {
  const int64_t rows = typeOf(op.getA()).getDimSize(0), n = typeOf(op.getA()).getDimSize(1);
  const int64_t groups = typeOf(op.getC()).getDimSize(0), k = typeOf(op.getB()).getDimSize(1);
  const bool tiled = isTiled(op.getA()) && isTiled(op.getB()) && plan::alignmentOf(op.getC()) >= 16;
  const int64_t side = tiled ? kSide : kPlainSide;
  std::string body =
      llvm::formatv("groupedOuter{0}<{1}, {2}, {3}, {4}", tiled ? "" : "Plain", rows, groups, n, k)
          .str();
  if (!tiled)
    body += ", " + flag(op.getCompute().has_value());
  launchGrouped(launcher, "grouped_outer", body + ">(a0, a1, a2, a3);",
                {ceilDiv(k, side), ceilDiv(n, side), groups, kThreads, tiled ? kSharedBytes : 0},
                {op.getA(), op.getB(), op.getOffsets(), op.getC()});
}

} // namespace hydra::cuda
