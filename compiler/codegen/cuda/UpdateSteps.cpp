// Launches of matmuls whose sums are used where they are summed (templates/update_hopper.cuh).
#include "compiler/codegen/cuda/GroupText.h"
#include "compiler/codegen/cuda/NodeText.h"
#include "compiler/codegen/cuda/StepLauncher.h"
#include "compiler/codegen/cuda/UpdateMatmul.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/KernelExpansion.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

/// `{x, y, …}`, with what `textOf` makes of each.
template <typename Range, typename F> std::string listText(Range &&range, F textOf) {
  std::string text;
  for (const auto &one : range)
    text += (text.empty() ? "" : ", ") + textOf(one);
  return "{" + text + "}";
}

/// Writes the kernel of an update, and collects its arguments in the order in which the text names
/// them.
class UpdateWriter {
public:
  UpdateWriter(StepLauncher &launcher, plan::MatmulOp op, const Update &update,
               const UpdateTiles &tiles)
      : launcher(launcher), op(op), update(update), tiles(tiles),
        first(update.parts.front().launch), inputs(update.program.inputs.size()) {}

  void launch();

private:
  /// The matrices of the group as initializers: a list for each part, by its rows, of a pointer to
  /// each matrix.
  struct Pointers {
    std::string reads, wide, narrow, bytes, most, halves;
  };

  SmallVector<std::string> inputNames();
  SmallVector<std::string> resultNames() const;
  std::string sumText();
  Pointers addPointers();
  std::string pointerLists(ArrayRef<unsigned> args, unsigned firstArg, int64_t access);
  std::string addScratch();
  std::string addCounters();
  std::string tensorsText(const Pointers &pointers, const std::string &counters);
  std::string stridesText();
  StringRef typeOfResults(ArrayRef<unsigned> results, RowType none) const;
  bool isReadNext();
  void setWork();

  StepLauncher &launcher;
  plan::MatmulOp op;
  const Update &update;
  const UpdateTiles &tiles;
  plan::LaunchOp first; ///< stands for all parts in what they have alike
  unsigned inputs;      ///< of the group: results are the arguments behind them
  Arguments arguments;
  std::string scale; ///< its declaration, where operands have one
};

/// What the sum of a number of the gradient is called, in the type that the group reads.
std::string UpdateWriter::sumText() {
  std::string sum = "sum";
  if (op.getScaleA()) {
    const std::string a = arguments.add(op.getScaleA(), plan::kRead),
                      b = arguments.add(op.getScaleB(), plan::kRead);
    scale = formatv("const float scale = __fmul_rn(*{0}, *{1});\n", a, b);
    sum = "__fmul_rn(sum, scale)";
  }
  return update.type == RowType::F32 ? sum : roundedText(update.type, sum);
}

/// Expressions of the group's inputs: what all numbers share is read by its name, others are given
/// by the kernel.
SmallVector<std::string> UpdateWriter::inputNames() {
  SmallVector<std::string> names(inputs);
  for (unsigned i : update.shared)
    names[i] = loadedText(update.program.inputs[i].type,
                          "*" + arguments.add(first.getArgs()[i], plan::kRead));
  names[update.gradient] = sumText();
  for (auto [i, input] : llvm::enumerate(update.reads))
    names[input] = formatv("read[{0}]", i);
  for (auto [i, input] : llvm::enumerate(update.halves))
    names[input] = formatv(update.program.inputs[input].type == RowType::I16
                               ? "int(int16(half[{0}]))"
                               : "__uint_as_float(half[{0}] << 16)",
                           i);
  return names;
}

SmallVector<std::string> UpdateWriter::resultNames() const {
  SmallVector<std::string> names(update.program.results.size());
  const auto name = [&](ArrayRef<unsigned> results, const char *format) {
    for (auto [i, result] : llvm::enumerate(results))
      names[result] = formatv(format, i);
  };
  name(update.wide, "wide[{0}]");
  name(update.narrow, "narrow[{0}]");
  name(update.whole, "whole[{0}]");
  name(update.bytes, "byte[{0}]");
  name(update.most, "most[{0}]");
  return names;
}

/// Whether what the group makes is for later steps of the program.
bool UpdateWriter::isReadNext() {
  return llvm::all_of(update.writtenInOrder(), [&](unsigned result) {
    return plan::placeOf(first.getArgs()[inputs + result]).buffer.isTransient();
  });
}

std::string UpdateWriter::pointerLists(ArrayRef<unsigned> args, unsigned firstArg, int64_t access) {
  return listText(update.parts, [&](const Update::Part &part) {
    plan::LaunchOp launch = part.launch;
    return listText(args, [&](unsigned arg) {
      return arguments.add(launch.getArgs()[firstArg + arg], access);
    });
  });
}

UpdateWriter::Pointers UpdateWriter::addPointers() {
  SmallVector<unsigned> of16(update.narrow);
  llvm::append_range(of16, update.whole);
  Pointers pointers;
  pointers.reads = pointerLists(update.reads, 0, plan::kRead);
  pointers.wide = pointerLists(update.wide, inputs, plan::kWrite);
  pointers.narrow = pointerLists(of16, inputs, plan::kWrite);
  pointers.bytes = pointerLists(update.bytes, inputs, plan::kWrite);
  pointers.most = pointerLists(update.most, inputs, plan::kWrite);
  pointers.halves = pointerLists(update.halves, 0, plan::kRead);
  return pointers;
}

/// Memory for the maps of all blocks.
std::string UpdateWriter::addScratch() {
  Value maps = launcher.workspace({tiles.scratchBytes / 4}, launcher.b.getI32Type());
  const std::string name = arguments.add(maps, plan::kWrite);
  arguments.types.back() = "unsigned char *";
  return name;
}

/// Of the largest numbers of rows: what is known of them, and how many tiles have added theirs.
std::string UpdateWriter::addCounters() {
  const int64_t runs = update.runs() * static_cast<int64_t>(update.most.size());
  if (runs == 0)
    return "nullptr, nullptr";
  const std::string found = arguments.add(launcher.zeroCounters(runs + tiles.count), plan::kUpdate);
  arguments.types.back() = "uint32 *";
  return formatv("{0}, {0} + {1}", found, runs);
}

/// Numbers between rows of each matrix; empty where all rows follow each other.
std::string UpdateWriter::stridesText() {
  SmallVector<int64_t> strides;
  for (unsigned input : update.readInOrder())
    strides.push_back(*strideOfRows(first.getArgs()[input], update.columns));
  for (unsigned result : update.writtenInOrder())
    strides.push_back(*strideOfRows(first.getArgs()[inputs + result], update.columns));
  if (llvm::all_of(strides, [&](int64_t stride) { return stride == update.columns; }))
    return "";
  return listText(strides, [](int64_t stride) { return std::to_string(stride); });
}

StringRef UpdateWriter::typeOfResults(ArrayRef<unsigned> results, RowType none) const {
  const RowType type = results.empty() ? none : update.program.results[results.front()].type;
  return support::formatOf(formatOf(type)).cuda;
}

/// The declaration of `tensors`. Its last members stand there only where tensors have more than
/// numbers of f32 in rows that follow each other.
std::string UpdateWriter::tensorsText(const Pointers &pointers, const std::string &counters) {
  const std::string strides = stridesText();
  const bool soon = isReadNext();
  const bool hasRest = !update.halves.empty() || !update.whole.empty() || !strides.empty() || soon;
  const std::string ends = listText(update.parts, [](const Update::Part &part) {
    return std::to_string(part.begin + part.rows);
  });
  std::string type =
      formatv("Tensors<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}", update.parts.size(),
              update.reads.size(), update.wide.size(), update.narrow.size(), update.bytes.size(),
              update.most.size(), update.run(), typeOfResults(update.narrow, RowType::BF16),
              typeOfResults(update.bytes, RowType::E4M3), typeOfResults(update.most, RowType::F32));
  std::string values =
      formatv("{0}, {1}, {2}, {3}, {4}, {5}, {6}", ends, pointers.reads, pointers.wide,
              pointers.narrow, pointers.bytes, pointers.most, counters);
  if (hasRest) {
    type +=
        formatv(", {0}, {1}{2}", update.halves.size(), update.whole.size(), soon ? ", true" : "");
    values += ", " + pointers.halves;
  }
  if (!strides.empty())
    values += ", " + strides;
  return "const hopper_update::" + type + "> tensors = {" + values + "};\n";
}

/// The work of the matmul and the group, but for the sums, which are neither written nor read.
void UpdateWriter::setWork() {
  const int64_t sums =
      update.rows * update.columns * elementBytes(typeOf(op.getC()).getElementType());
  launcher.setWork(launcher.flops(), std::max<int64_t>(0, launcher.bytes() - 2 * sums));
}

void UpdateWriter::launch() {
  const std::string a = arguments.add(op.getA(), plan::kRead),
                    b = arguments.add(op.getB(), plan::kRead);
  const SmallVector<std::string> names = inputNames();
  // Updates divide by roots and their eps; what else may be divided by anything.
  const NumberText text =
      numberGroupText(update.program, names, resultNames(),
                      isReadNext() ? Divisions::Rounded : Divisions::Branchless);
  const Pointers pointers = addPointers();
  const std::string scratch = addScratch();
  const std::string tensors = tensorsText(pointers, addCounters());
  const std::string call = formatv(
      "updateHopper<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}>({8}, {9}, tensors, {10}, "
      "[=](float sum, const auto &read, const auto &half, auto &wide, auto &narrow, auto &whole, "
      "auto &byte, auto &most) {{\n{11}});",
      update.rows, update.columns, update.sums, UpdateTiles::kColumns, tiles.stages, tiles.buffers,
      op.getTransposeA() ? "false" : "true", op.getTransposeB() ? "true" : "false", a, b, scratch,
      text.each);
  setWork();
  LaunchShape shape{std::min(tiles.blocks, tiles.count), 1, 1, UpdateTiles::kThreads,
                    tiles.sharedBytes};
  shape.letsLater = false; // its blocks have whole multiprocessors, for long
  launcher.launch("update_matmul",
                  SmallVector<StringRef>(arguments.types.begin(), arguments.types.end()),
                  tensors + scale + text.shared + call, shape, arguments.values, arguments.access);
  launcher.last->setAttr(plan::kExposedAttr,
                         launcher.b.getF64FloatAttr(UpdateTiles::exposedAtFullRate(update)));
}

} // namespace

void expandUpdate(StepLauncher &launcher, plan::MatmulOp op, ArrayRef<plan::LaunchOp> launches) {
  const Update update = *updateOf(op, launches);
  const UpdateTiles tiles = *UpdateTiles::of(update, launcher.target);
  for (plan::LaunchOp launch : launches)
    launcher.take(cast<plan::StepInterface>(launch.getOperation()));
  UpdateWriter(launcher, op, update, tiles).launch();
}

} // namespace hydra::cuda
