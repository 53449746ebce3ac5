// Which matmuls and launches one kernel can be, its tiles, and the time it takes.
#include "compiler/codegen/cuda/UpdateMatmul.h"

#include "compiler/codegen/cuda/ExpandSteps.h"
#include "compiler/codegen/cuda/GroupText.h"
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/KernelExpansion.h"

#include <initializer_list>

using namespace mlir;

namespace hydra::cuda {

/// As in templates/update_hopper.cuh.
static constexpr int64_t kTileRows = 128, kPieceRows = 64, kPieceColumns = 32, kLine = 128;

static SmallVector<unsigned> joined(std::initializer_list<ArrayRef<unsigned>> lists) {
  SmallVector<unsigned> all;
  for (ArrayRef<unsigned> list : lists)
    llvm::append_range(all, list);
  return all;
}

SmallVector<unsigned> Update::readInOrder() const { return joined({reads, halves}); }

SmallVector<unsigned> Update::writtenInOrder() const {
  return joined({wide, narrow, whole, bytes});
}

size_t Update::arguments() const {
  constexpr size_t kOwn = 6;
  return kOwn + shared.size() + parts.size() * (fetched() + stored() + most.size());
}

int64_t Update::moved() const {
  return 4 * (reads.size() + wide.size()) + 2 * (halves.size() + narrow.size() + whole.size()) +
         bytes.size();
}

static bool isDense(Value value) { return typeOf(value).getLayout().isIdentity(); }

std::optional<int64_t> strideOfRows(Value value, int64_t columns) {
  if (isDense(value))
    return columns;
  const MemRefType type = typeOf(value);
  const SmallVector<int64_t> strides = plan::stridesOf(type);
  int64_t dim = type.getRank(), inside = 1;
  while (dim > 0 && inside < columns) {
    --dim;
    if (type.getDimSize(dim) > 1 && strides[dim] != inside)
      return std::nullopt;
    inside *= type.getDimSize(dim);
  }
  if (inside != columns)
    return std::nullopt;
  int64_t stride = columns, next = 0; // next: what the dimension in front has
  while (dim > 0) {
    --dim;
    if (type.getDimSize(dim) == 1)
      continue;
    if (strides[dim] <= 0)
      return std::nullopt;
    if (next == 0)
      stride = strides[dim];
    else if (strides[dim] != next)
      return std::nullopt;
    next = strides[dim] * type.getDimSize(dim);
  }
  return stride >= columns ? std::optional(stride) : std::nullopt;
}

namespace {

/// Whether the copy engine reaches the rows of a matrix: they are of 16-byte pieces.
bool hasPieces(Value matrix) {
  const MemRefType type = typeOf(matrix);
  return type.getRank() == 2 && isDense(matrix) && plan::alignmentOf(matrix) >= 16 &&
         type.getDimSize(1) * elementBytes(type.getElementType()) % 16 == 0;
}

/// The rows of the gradient that a launch reads, as the input that has the number `gradient`.
std::optional<Update::Part> partOf(plan::LaunchOp launch, Value gradient, unsigned &input) {
  const plan::Place whole = plan::placeOf(gradient);
  const int64_t number = elementBytes(typeOf(gradient).getElementType()),
                row = typeOf(gradient).getDimSize(1) * number;
  std::optional<Update::Part> part;
  for (auto [i, arg] : llvm::enumerate(launch.getArgs())) {
    const plan::Place place = plan::placeOf(arg);
    if (place.buffer != whole.buffer)
      continue;
    if (part || launch.getAccess()[i] != plan::kRead || !isDense(arg) ||
        typeOf(arg).getNumElements() * number % row != 0 || (place.bytes - whole.bytes) % row != 0)
      return std::nullopt;
    part = Update::Part{launch, (place.bytes - whole.bytes) / row,
                        typeOf(arg).getNumElements() * number / row};
    input = i;
  }
  return part;
}

/// Whether it is the type of those results, and a float; i8 is a whole number in memory.
bool isFloatOf(const Update &update, RowType type, ArrayRef<unsigned> results) {
  return isFloat(type) && type != RowType::I8 &&
         (results.empty() || update.program.results[results.front()].type == type);
}

/// Whether the rows that the group finds the largest numbers of lie in the matrix as the kernel
/// reckons: a row of a piece in one of them, and 64 rows of the matrix in whole ones.
bool hasPlacesOfRows(const Update &update) {
  return update.most.empty() ||
         (update.run() % kPieceColumns == 0 && update.columns % kPieceColumns == 0 &&
          kPieceRows * update.columns % update.run() == 0);
}

/// Sorts inputs and results of the group; false where one is of a kind that the kernel has not.
bool sortArguments(Update &update) {
  for (auto [i, input] : llvm::enumerate(update.program.inputs)) {
    if (i == update.gradient)
      continue;
    const bool isHalf = input.type == RowType::BF16 || input.type == RowType::I16;
    if (*input.form != RowForm::Tile)
      update.shared.push_back(i);
    else if (input.type != RowType::F32 && !isHalf)
      return false;
    else
      (isHalf ? update.halves : update.reads).push_back(i);
  }
  for (auto [i, result] : llvm::enumerate(update.program.results)) {
    if (largestOfRow(update.program, result)) {
      if (isEightBit(result.type) || !isFloatOf(update, result.type, update.most))
        return false;
      update.most.push_back(i);
      continue;
    }
    if (result.type == RowType::I16 && result.form == RowForm::Tile) {
      update.whole.push_back(i);
      continue;
    }
    SmallVector<unsigned> &sorted = result.type == RowType::F32 ? update.wide
                                    : isEightBit(result.type)   ? update.bytes
                                                                : update.narrow;
    if (result.form != RowForm::Tile || !isFloatOf(update, result.type, sorted))
      return false;
    sorted.push_back(i);
  }
  return update.fetched() > 0 && hasPlacesOfRows(update);
}

/// Whether the arguments of a part are where the kernel can reach them, and what all numbers share
/// is that of the first part.
bool isReachable(const Update &update, const Update::Part &part) {
  plan::LaunchOp first = update.parts.front().launch, launch = part.launch;
  const auto isMatrix = [&](unsigned arg) {
    constexpr int64_t kBytes = 16; // where the copy engine can begin
    Value value = launch.getArgs()[arg];
    const std::optional<int64_t> stride = strideOfRows(value, update.columns);
    return stride && stride == strideOfRows(first.getArgs()[arg], update.columns) &&
           *stride * elementBytes(typeOf(value).getElementType()) % kBytes == 0 &&
           plan::alignmentOf(value) >= kBytes &&
           typeOf(value).getNumElements() == part.rows * update.columns;
  };
  const unsigned results = update.program.inputs.size();
  const auto isResult = [&](unsigned result) { return isMatrix(results + result); };
  const auto hasRuns = [&](unsigned result) {
    Value value = launch.getArgs()[results + result];
    return isDense(value) &&
           typeOf(value).getNumElements() * update.run() == part.rows * update.columns;
  };
  return launch.getKernelAttr() == first.getKernelAttr() && llvm::all_of(update.reads, isMatrix) &&
         llvm::all_of(update.halves, isMatrix) && llvm::all_of(update.whole, isResult) &&
         llvm::all_of(update.wide, isResult) && llvm::all_of(update.narrow, isResult) &&
         llvm::all_of(update.bytes, isResult) && llvm::all_of(update.most, hasRuns) &&
         llvm::all_of(update.shared, [&](unsigned arg) {
           return plan::sameElements(launch.getArgs()[arg], first.getArgs()[arg]);
         });
}

/// Whether the kernel multiplies such operands: of 16 bits any, of 8 bits a b^T or a^T b^T, with a
/// scale each.
bool hasOperands(plan::MatmulOp op) {
  const MemRefType a = typeOf(op.getA()), b = typeOf(op.getB());
  if (isEightBitFloat(a.getElementType()))
    return isEightBitFloat(b.getElementType()) && op.getTransposeB() && op.getScaleA() &&
           typeOf(op.getScaleA()).getNumElements() == 1 &&
           typeOf(op.getScaleB()).getNumElements() == 1;
  return isNarrowFloat(a.getElementType()) && a.getElementType() == b.getElementType() &&
         !op.getScaleA();
}

} // namespace

std::optional<Update> updateOf(plan::MatmulOp op, ArrayRef<plan::LaunchOp> launches) {
  constexpr int64_t kNumbers = 8, kBytes = 16; // that the copy engine moves at once
  const MemRefType c = typeOf(op.getC());
  if (op.getAccumulate() || op.getGelu() || op.getBias() || op.getWeightScale() || op.getSums() ||
      op.getCompute() || launches.empty() || !hasOperands(op) ||
      !(c.getElementType().isF32() || c.getElementType().isBF16()) || c.getRank() != 2 ||
      !isDense(op.getC()) || !hasPieces(op.getA()) || !hasPieces(op.getB()) ||
      c.getDimSize(1) % kNumbers != 0)
    return std::nullopt;
  std::optional<RowProgram> program = programOf(launches.front());
  if (!program || !canBeNumberText(*program))
    return std::nullopt;
  Update update;
  update.program = std::move(*program);
  update.rows = c.getDimSize(0);
  update.columns = c.getDimSize(1);
  update.type = c.getElementType().isF32() ? RowType::F32 : RowType::BF16;
  update.sums = typeOf(op.getA()).getDimSize(op.getTransposeA() ? 0 : 1);
  update.isOfBytes = isEightBitFloat(typeOf(op.getA()).getElementType());
  for (plan::LaunchOp launch : launches) {
    unsigned input = 0;
    const std::optional<Update::Part> part = partOf(launch, op.getC(), input);
    if (!part || input >= update.program.inputs.size() ||
        (!update.parts.empty() && input != update.gradient))
      return std::nullopt;
    update.gradient = input;
    update.parts.push_back(*part);
  }
  llvm::sort(update.parts,
             [](const Update::Part &x, const Update::Part &y) { return x.begin < y.begin; });
  if (update.program.inputs[update.gradient].type != update.type || !sortArguments(update) ||
      (!update.bytes.empty() && update.columns % kBytes != 0))
    return std::nullopt;
  int64_t row = 0;
  for (const Update::Part &part : update.parts) {
    if (part.begin != row || row % kPieceRows != 0 || !isReachable(update, part))
      return std::nullopt;
    row += part.rows;
  }
  return row == update.rows && update.arguments() <= plan::kMostArguments
             ? std::optional(std::move(update))
             : std::nullopt;
}

std::optional<UpdateTiles> UpdateTiles::of(const Update &update, TargetAttr target) {
  constexpr int64_t kMap = 128, kBarrier = 8, kWarps = kThreads / 32, kGroups = 2, kTurns = 8,
                    kLeast = 2, kMostBuffers = 8;
  // A stage of 8 bits is worked on for twice as long.
  const int64_t mostStages = update.isOfBytes ? 4 : 5;
  UpdateTiles tiles;
  tiles.blocks = target.getMultiprocessors();
  if (!target.has(kWarpgroupMatmul) || tiles.blocks < 1)
    return std::nullopt;
  tiles.count = ceilDiv(update.rows, kTileRows) * ceilDiv(update.columns, kColumns);
  const int64_t stage = (kTileRows + kColumns) * kLine + 2 * kBarrier;
  const int64_t slots = std::max(update.reads.size(), update.wide.size());
  const int64_t slots16 =
      std::max(update.halves.size(), update.narrow.size() + update.whole.size());
  const int64_t number = 4 * slots + 2 * slots16 + update.bytes.size();
  const int64_t buffer = kPieceRows * kPieceColumns * number + 3 * kBarrier;
  const int64_t most = update.most.size() * kTileRows * kColumns / kPieceColumns * 4;
  const int64_t rest = kWarps * kMap + kTurns * kBarrier + kGroups * most;
  const int64_t shared = target.getBlockShared() - rest;
  tiles.stages = std::min(mostStages, (shared - kLeast * buffer) / stage);
  if (tiles.stages < kLeast)
    return std::nullopt;
  tiles.buffers = std::min(kMostBuffers, (shared - tiles.stages * stage) / buffer);
  tiles.sharedBytes = rest + tiles.stages * stage + tiles.buffers * buffer;
  const int64_t maps = 2 + update.parts.size() * (update.fetched() + update.stored());
  tiles.scratchBytes = tiles.blocks * maps * kMap;
  return tiles;
}

/// Until the first tile is multiplied maps are written, and the ring fills: as long as so many
/// launches.
static constexpr double kBegin = 4;
/// What shows of the shorter of multiplying a tile and updating another, which share a
/// multiprocessor's issue slots and its shared memory: measured with 64 to 8192 sums of 16 bits,
/// and with 2048 and 2560 of 8 (docs/laboratory.md).
static double exposed(const Update &update) { return update.isOfBytes ? 0.4 : 0.6; }
/// Of the rate of 8-bit operands: 64 x 64 sums at a time read each operand twice as often.
static constexpr double kByteRate = 0.5;

/// The block with the most tiles multiplies its first with nothing to update, and updates its last
/// with nothing to multiply. Between, one hides the other in part (`exposed`). A last turn that few
/// blocks have costs as much as a full one, so matrices of less than two tiles a block, or a little
/// more than a whole number of them, take longer.
double UpdateTiles::seconds(const Update &update, plan::MatmulOp op, const Roofline &rates) const {
  const auto numbers = static_cast<double>(kTileRows * kColumns * blocks);
  const auto bytes = static_cast<double>(update.moved());
  std::string format;
  llvm::raw_string_ostream(format) << typeOf(op.getA()).getElementType();
  const auto found = rates.matmulFlops.find(format);
  const double flops = found == rates.matmulFlops.end() ? rates.vectorFlops : found->second;
  const double rate = update.isOfBytes ? kByteRate : 1,
               multiply = 2 * numbers * static_cast<double>(update.sums) / (rate * flops),
               apply = numbers * bytes / rates.memoryBandwidth,
               both = std::max(multiply, apply) + exposed(update) * std::min(multiply, apply);
  const auto turns = static_cast<double>(ceilDiv(count, blocks));
  const int64_t operands =
      plan::extentBytes(typeOf(op.getA())) + plan::extentBytes(typeOf(op.getB()));
  const double moved =
      static_cast<double>(operands + update.moved() * update.rows * update.columns) /
      rates.memoryBandwidth;
  return kBegin * rates.launchSeconds + std::max(multiply + (turns - 1) * both + apply, moved);
}

double UpdateTiles::exposedAtFullRate(const Update &update) {
  return exposed(update) / (update.isOfBytes ? kByteRate : 1);
}

bool canUseSums(plan::MatmulOp op, ArrayRef<plan::LaunchOp> launches, TargetAttr target) {
  const std::optional<Update> update = updateOf(op, launches);
  const std::optional<UpdateTiles> tiles = update ? UpdateTiles::of(*update, target) : std::nullopt;
  if (!tiles)
    return false;
  const std::optional<Roofline> rates = rooflineOf(target);
  if (!rates)
    return true; // fewer bytes is all that is known
  double apart = cast<plan::StepInterface>(op.getOperation()).seconds(*rates);
  for (plan::LaunchOp launch : launches)
    apart += cast<plan::StepInterface>(launch.getOperation()).seconds(*rates);
  return tiles->seconds(*update, op, *rates) < apart;
}

} // namespace hydra::cuda
