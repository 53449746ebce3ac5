// CUDA C++ of a group inside another kernel. In a loop's: the lanes of a warp for each row, or for
// several short ones. In front of a matmul of few rows, or of attention over slots: teams of warps
// for each row.
#include "compiler/codegen/cuda/GroupText.h"

#include "compiler/codegen/cuda/LoopPlacement.h"
#include "compiler/codegen/cuda/NodeText.h"
#include "compiler/codegen/cuda/StepLauncher.h"
#include "dialects/hydra/RowForms.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

using Kind = RowNode::Kind;

constexpr int64_t kWarp = 32;
/// Numbers of a lane that are kept until several turns store them.
constexpr int64_t kMostKept = 16;
/// Columns of a row that a thread of a team holds until they are reduced.
constexpr int64_t kMostOfTeam = 32;

/// Reductions of a group by teams: each has shared memory of its own, beside what a kernel has.
constexpr int64_t kMostReductions = 8;

/// Threads that share a row, if a team has all of its rows at once or as many as it has warps.
int64_t threadsOfRow(const Team &team, int64_t rows) {
  return std::max<int64_t>(kWarp, team.threads / static_cast<int64_t>(llvm::PowerOf2Ceil(rows)));
}

/// Whether a node is what all numbers of a row make together, or that rounded.
bool isOfRow(const RowProgram &program, const RowNode &node) {
  return node.kind == Kind::Reduce ||
         (node.kind == Kind::Cast && program.nodes[node.inputs[0]].kind == Kind::Reduce);
}

class GroupText {
public:
  GroupText(const RowProgram &program, int64_t sliced, bool rowOfThread = false)
      : program(program), sliced(sliced), columns(program.domain.columns()) {
    for (int64_t size : ArrayRef(program.domain.rowShape).drop_front(sliced))
      rows *= size;
    if (rowOfThread) {
      lanes = 1;
      parts = llvm::PowerOf2Ceil(columns);
      return;
    }
    // Rows that divide up evenly can share a warp.
    lanes = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(columns));
    if (rows % (kWarp / lanes) != 0)
      lanes = kWarp;
    parts = (columns + lanes - 1) / lanes;
    if (columns % (4 * kWarp) == 0)
      width = 4;
  }

  std::string write(ArrayRef<SliceTensor> inputs, ArrayRef<SliceTensor> results) {
    if (lanes == 1 && parts > 1) { // by the last warps: matmuls begin with the first
      text = formatv("for (int row = {0} - threadIdx.x; row < {1}; row += {2}) {{\n"
                     "const int lane = 0;\n",
                     kLoopThreads - 1, rows, kLoopThreads);
      return writeNodes(inputs, results);
    }
    const int64_t together = kLoopThreads / lanes, turns = rows / together;
    const std::string lane = formatv("const int lane = threadIdx.x % {0};\n", lanes);
    if (rows % together != 0) {
      text = formatv("for (int row = threadIdx.x / {0}; row < {1}; row += {2}) {{\n", lanes, rows,
                     together);
      text += lane;
      return writeNodes(inputs, results);
    }
    // As often for every warp, where rows divide up evenly.
    const int64_t atOnce = turnsAtOnce(turns);
    auto rowsOf = [&](int64_t turns, StringRef first) {
      return formatv("_Pragma(\"unroll 4\") for (int part = 0; part < {0}; ++part) {{\n"
                     "const int row = threadIdx.x / {1} + ({2}part) * {3};\n{4}",
                     turns, lanes, first, together, lane)
          .str();
    };
    if (atOnce == 1) {
      text = rowsOf(turns, "");
      return writeNodes(inputs, results);
    }
    // All that several turns store is computed before: else each would wait for the one before, of
    // which no compiler knows whether it stores what this one loads.
    text = formatv("for (int turn = 0; turn < {0}; turn += {1}) {{\n", turns, atOnce);
    const llvm::SmallSetVector<unsigned, 4> nodes = storedNodes();
    for (unsigned node : nodes)
      text += formatv("{0} kept{1}[{2}]{3};\n", numberType(program.nodes[node].type), node, atOnce,
                      variesOverColumns(node) ? formatv("[{0}]", parts).str() : "");
    text += rowsOf(atOnce, "turn + ");
    defineAll(inputs);
    for (unsigned node : nodes)
      if (variesOverColumns(node))
        forColumns(formatv("kept{0}[part][j] = n{0}[j];", node).str());
      else
        text += formatv("kept{0}[part] = n{0};\n", node);
    text += "}\n" + rowsOf(atOnce, "turn + ");
    for (unsigned node : nodes)
      text += formatv("const auto &n{0} = kept{0}[part];\n", node);
    storeAll(results);
    return text + "}\n}\n";
  }

  /// By several warps each, of which all threads of the block come here: those behind the last row
  /// load and store nothing.
  std::string writeShared(const RowSharers &sharers, ArrayRef<SliceTensor> inputs,
                          ArrayRef<SliceTensor> results) {
    lanes = sharers.warps * kWarp;
    scratch = sharers.scratch;
    shareColumns();
    text = formatv("{{ const int lane = threadIdx.x % {0}, ", lanes);
    if (rows * lanes == kLoopThreads) {
      text += formatv("row = threadIdx.x / {0};\n", lanes);
      return writeNodes(inputs, results);
    }
    text += formatv("own = threadIdx.x / {0}, row = min(own, {1});\n", lanes, rows - 1);
    own = formatv("own < {0}", rows);
    defineAll(inputs);
    text += formatv("if ({0}) {{\n", own);
    storeAll(results);
    return text + "}\n}\n";
  }

  /// By teams. A thread behind the last row computes and stores that row once more. Without
  /// reductions rows are cut into pieces, so that few numbers are held.
  std::string writeTeams(const Team &all, const TeamRows &ofBlock, ArrayRef<SliceTensor> inputs,
                         ArrayRef<SliceTensor> results) {
    team = all;
    lanes = threadsOfRow(team, ofBlock.count);
    shareColumns();
    if (program.reductions() == 0)
      pieces = std::exchange(parts, width) / width;
    const int64_t together = team.threads / lanes;
    const std::string thread = team.first == 0
                                   ? "int(threadIdx.x)"
                                   : formatv("(int(threadIdx.x) - {0})", team.first).str();
    text = formatv("_Pragma(\"unroll 1\") for (int turn = 0; turn < {0}; ++turn) {{\n"
                   "const int mine = min(turn * {1} + {5} / {2}, {3}), row = {4}, "
                   "lane = {5} % {2};\n",
                   ceilDiv(ofBlock.count, together), together, lanes, ofBlock.count - 1,
                   ofBlock.row, thread);
    if (pieces > 1)
      text +=
          formatv("_Pragma(\"unroll 4\") for (int piece = 0; piece < {0}; ++piece) {{\n", pieces);
    defineAll(inputs);
    for (auto [result, tensor] : llvm::zip(program.results, results)) {
      if (tensor.byFirstBlock)
        text += "if (blockIdx.x == 0) {\n";
      store(result, tensor);
      if (tensor.byFirstBlock)
        text += "}\n";
    }
    return text + (pieces > 1 ? "}\n}\n" : "}\n");
  }

  /// Of numbers in registers, two columns of a row at a time.
  std::string writeHeld(StringRef registers, ArrayRef<SliceTensor> results) {
    held = registers;
    width = parts = 2;
    text = formatv("_Pragma(\"unroll\") for (int i = 0; i < {0}.count; ++i) {{\n"
                   "const int row = {0}.row(i), first = {0}.column(i);\n",
                   held);
    return writeNodes({}, results);
  }

  /// Of one number.
  std::string writeLane(ArrayRef<std::string> inputs, ArrayRef<std::string> results) {
    single = true;
    numbers = inputs;
    // Where all numbers are one row, it may have more than 2^31.
    text = formatv("{{ const int64 row = lane / {0}, column = lane % {0};\n", columns);
    for (auto [i, node] : llvm::enumerate(program.nodes))
      define(i, node, {});
    yieldTo(results);
    return text + "}\n";
  }

  /// Of one number, what all share apart: that is made of nothing else. Whoever stores rounds.
  NumberText writeNumber(ArrayRef<std::string> inputs, ArrayRef<std::string> results,
                         Divisions divisions) {
    single = true;
    numbers = inputs;
    NumberText both;
    for (auto [i, node] : llvm::enumerate(program.nodes)) {
      if (isOfRow(program, node)) // is made of other numbers, too
        continue;
      const bool isShared = node.form == RowForm::Scalar;
      branchless = !isShared && divisions == Divisions::Branchless;
      define(i, node, {});
      (isShared ? both.shared : both.each) += std::exchange(text, {});
    }
    for (auto [result, variable] : llvm::zip(program.results, results)) {
      const unsigned number = largestOfRow(program, result).value_or(storedNode(result));
      both.each += formatv("{0} = {1};\n", variable, name(number));
    }
    return both;
  }

private:
  /// Four columns side by side for each of the lanes in turn, where they divide up so.
  void shareColumns() {
    width = columns % 4 == 0 ? 4 : 1;
    parts = ceilDiv(columns, width * lanes) * width;
  }

  /// Gives variables the numbers that are stored.
  void yieldTo(ArrayRef<std::string> variables) {
    for (auto [result, variable] : llvm::zip(program.results, variables))
      text += formatv("{0} = {1};\n", variable,
                      isNarrow(result.type) ? roundedText(result.type, name(result.node))
                                            : name(result.node));
  }

  std::string writeNodes(ArrayRef<SliceTensor> inputs, ArrayRef<SliceTensor> results) {
    defineAll(inputs);
    storeAll(results);
    return text + "}\n";
  }

  void defineAll(ArrayRef<SliceTensor> inputs) {
    for (auto [i, node] : llvm::enumerate(program.nodes))
      define(i, node, inputs);
  }

  void storeAll(ArrayRef<SliceTensor> results) {
    for (auto [result, tensor] : llvm::zip(program.results, results))
      store(result, tensor);
  }

  /// The node that is stored: of one that is rounded to what the tensor has, what is rounded, since
  /// storing does that.
  unsigned storedNode(const RowResult &result) const {
    const RowNode &node = program.nodes[result.node];
    if (node.kind != Kind::Cast || !isNarrow(node.type) || node.type != result.type)
      return result.node;
    const RowNode &exact = program.nodes[node.inputs[0]];
    return isFloat(exact.type) && exact.form == node.form ? node.inputs[0] : result.node;
  }

  llvm::SmallSetVector<unsigned, 4> storedNodes() const {
    llvm::SmallSetVector<unsigned, 4> nodes;
    for (const RowResult &result : program.results)
      nodes.insert(storedNode(result));
    return nodes;
  }

  /// How many of a warp's turns are computed before the first of them stores: as many as have room
  /// for what they store.
  int64_t turnsAtOnce(int64_t turns) const {
    int64_t each = 0; // numbers of a lane
    for (unsigned node : storedNodes())
      each += variesOverColumns(node) ? parts : 1;
    int64_t atOnce = std::min<int64_t>(turns, 4);
    while (atOnce > 1 && (turns % atOnce != 0 || atOnce * each > kMostKept))
      --atOnce;
    return atOnce;
  }

  bool variesOverColumns(unsigned node) const {
    return !single && hydra::variesOverColumns(program.nodes[node].form);
  }

  std::string name(unsigned node) const {
    return formatv(variesOverColumns(node) ? "n{0}[j]" : "n{0}", node);
  }

  /// `statement` for every column that a lane has; it may use `j` and `column`.
  void forColumns(StringRef statement) {
    std::string column =
        !held.empty() ? "first + j"
        : width == 1  ? formatv("{0}lane + j * {1}", pieceText(), lanes).str()
                      : formatv("{0}lane * 4 + j / 4 * {1} + j % 4", pieceText(), 4 * lanes).str();
    text += formatv(
        "_Pragma(\"unroll\") for (int j = 0; j < {0}; ++j) {{ const int column = {1}; {2}{3} }\n",
        parts, column, guardText(), statement);
  }

  /// The same for every four columns side by side.
  void forFours(StringRef statement) {
    text += formatv("_Pragma(\"unroll\") for (int j = 0; j < {0}; j += 4) {{ const int column = "
                    "{1}lane * 4 + j * {2}; {3}{4} }\n",
                    parts, pieceText(), lanes, guardText(), statement);
  }

  /// Where the columns of a piece begin, and what holds of columns that exist.
  std::string pieceText() const {
    return pieces > 1 ? formatv("piece * {0} + ", lanes * parts).str() : "";
  }
  std::string guardText() const {
    const bool isPartial = held.empty() && columns != lanes * parts * pieces;
    std::string exists = isPartial ? formatv("column < {0}", columns).str() : "";
    if (!own.empty())
      exists = isPartial ? own + " && " + exists : own;
    return exists.empty() ? "" : "if (" + exists + ") ";
  }

  /// Whether the columns of a tensor that a lane has side by side can be moved at once.
  bool isWide(const SliceTensor &tensor, RowType type) const {
    RowForm form = *formOfShape(program.domain, tensor.type.getShape());
    return width > 1 && hydra::variesOverColumns(form) && tensor.strides.back() == 1 &&
           isFloat(type) && storageBytes(type) > 1 &&
           program.domain.innerShape.back() % width == 0 &&
           tensor.alignment >= width * storageBytes(type);
  }

  /// The address of an element: offsets of the row and the column in the tensor.
  std::string element(const SliceTensor &tensor, const std::string &index = "column") const {
    const RowDomain &domain = program.domain;
    RowForm form = *formOfShape(domain, tensor.type.getShape());
    ArrayRef<int64_t> all(tensor.strides);
    std::string row = "0", column = "0";
    if (tensor.ofBlock)
      row = formatv("mine * {0}", all.front());
    else if (variesOverRows(form))
      row = offsetText("row", ArrayRef(domain.rowShape).drop_front(sliced),
                       all.slice(sliced, domain.rowShape.size() - sliced));
    if (hydra::variesOverColumns(form))
      column = offsetText(index, domain.innerShape, all.take_back(domain.innerShape.size()));
    return formatv("{0}[{1} + {2}]", tensor.pointer, row, column);
  }

  Divisions divisions() const { return branchless ? Divisions::Branchless : Divisions::Rounded; }

  /// The number of a node, in a column or in all of a row.
  std::string valueOf(const RowNode &node, ArrayRef<SliceTensor> inputs) const {
    if (node.kind == Kind::Input)
      return single         ? numbers[node.code]
             : held.empty() ? loadedText(node.type, element(inputs[node.code]))
                            : held + ".two[i][j]";
    if (node.kind == Kind::Index)
      return coordinate(node.code);
    if (auto made = madeText(node, [&](unsigned input) { return name(input); }, divisions()))
      return *made;
    llvm_unreachable("no group inside another kernel gathers or sums over rows");
  }

  void define(unsigned number, const RowNode &node, ArrayRef<SliceTensor> inputs) {
    if (node.kind == Kind::Reduce)
      return reduce(number, node);
    if (node.kind == Kind::Rotate)
      return rotate(number, node, inputs[node.code]);
    const std::string value = valueOf(node, inputs);
    if (variesOverColumns(number)) {
      text += formatv("{0} n{1}[{2}];\n", numberType(node.type), number, parts);
      if (node.kind == Kind::Input && held.empty() && isWide(inputs[node.code], node.type))
        return forFours(
            formatv("loadFour(n{0} + j, &{1});", number, element(inputs[node.code])).str());
      forColumns(formatv("n{0}[j] = {1};", number, value).str());
    } else {
      text += formatv("const {0} n{1} = {2};\n", numberType(node.type), number, value);
    }
  }

  void reduce(unsigned number, const RowNode &node) {
    const bool max = node.code == static_cast<unsigned>(RowReduction::Max);
    std::string x = name(node.inputs[0]);
    const char *none = max ? "-INFINITY" : "0.0f";
    if (lanes == 1 && variesOverColumns(node.inputs[0])) { // each column as if a lane had it
      text += formatv("float own{0}[{1}];\n"
                      "_Pragma(\"unroll\") for (int j = 0; j < {1}; ++j) own{0}[j] = {2};\n",
                      number, parts, none);
      forColumns(formatv(max ? "own{0}[j] = larger(own{0}[j], {1});"
                             : "own{0}[j] = __fadd_rn(own{0}[j], {1});",
                         number, x)
                     .str());
      text += formatv("const float n{0} = overOwn<{1}, {2}>(own{0});\n", number,
                      max ? "true" : "false", parts);
      return;
    }
    text += formatv("float n{0} = {1};\n", number, none);
    if (variesOverColumns(node.inputs[0])) {
      forColumns(
          formatv(max ? "n{0} = larger(n{0}, {1});" : "n{0} = __fadd_rn(n{0}, {1});", number, x)
              .str());
      const char *isMax = max ? "true" : "false";
      if (scratch)
        text += formatv("n{0} = overWarps<{1}, {2}>(n{0}, reinterpret_cast<float *>(shared + "
                        "{3}));\n",
                        number, isMax, lanes / kWarp,
                        std::exchange(*scratch, *scratch + kReductionScratch));
      else if (lanes > kWarp)
        text += formatv("n{0} = overTeam<{1}, {2}, {0}, {3}, {4}, {5}>(n{0});\n", number, isMax,
                        lanes, team.threads, team.first, team.barrier);
      else
        text += formatv("n{0} = overLanes<{1}, {2}>(n{0});\n", number, isMax, lanes);
    } else { // the same number in every column
      text += formatv("n{0} = {1};\n", number,
                      max ? x : formatv("__fmul_rn({0}, {1}.0f)", x, columns).str());
    }
  }

  /// As a kernel of the group's own rotates (RowKernelEmitter::rotate): the angle in f64, its sine
  /// and cosine by the special function unit.
  void rotate(unsigned number, const RowNode &node, const SliceTensor &tensor) {
    const Rotation &r = node.rotation;
    const int64_t pairs = columns / 2;
    const std::string position = formatv("uint32({0})", name(node.inputs[0]));
    text +=
        frequenciesText(formatv("frequencies{0}", number), r, pairs) +
        formatv("const double position{0} = {1};\nfloat n{0}[{2}];\n", number,
                r.period > 0 ? formatv("{0} % {1}u", position, r.period).str() : position, parts)
            .str();
    const std::string isFirst =
                          r.halfSplit ? formatv("column < {0}", pairs).str() : "column % 2 == 0",
                      other =
                          r.halfSplit
                              ? formatv("({0} ? column + {1} : column - {1})", isFirst, pairs).str()
                              : "(column ^ 1)",
                      pair = r.halfSplit ? formatv("column % {0}", pairs).str() : "column / 2";
    forColumns(
        formatv("n{0}[j] = turned({1}, {2}, position{0} * frequencies{0}[{3}], ({4}) != {5});",
                number, loadedText(RowType::F32, element(tensor)),
                loadedText(RowType::F32, element(tensor, other)), pair, isFirst,
                r.inverse ? "true" : "false")
            .str());
  }

  /// The coordinate along a dimension of rows ++ inner.
  std::string coordinate(unsigned dim) const {
    const RowDomain &domain = program.domain;
    auto within = [](const char *index, ArrayRef<int64_t> sizes, unsigned d) {
      int64_t inner = 1;
      for (int64_t size : sizes.drop_front(d + 1))
        inner *= size;
      return formatv("{0} / {1} % {2}", index, inner, sizes[d]).str();
    };
    ArrayRef<int64_t> rowShape(domain.rowShape);
    if (dim < static_cast<unsigned>(sliced))
      return within("slice", rowShape.take_front(sliced), dim);
    if (dim < rowShape.size())
      return within("row", rowShape.drop_front(sliced), dim - sliced);
    return within("column", domain.innerShape, dim - rowShape.size());
  }

  void store(const RowResult &result, const SliceTensor &tensor) {
    const unsigned node = storedNode(result);
    std::string to = element(tensor), value = name(node);
    std::string statement = isFloat(result.type) ? formatv("assign({0}, {1});", to, value).str()
                                                 : formatv("{0} = {1};", to, value).str();
    const bool wide = isWide(tensor, result.type) && variesOverColumns(node);
    if (wide && !held.empty())
      text +=
          formatv("{{ const int column = first; storeTwo(&{0}, n{1}[0], n{1}[1]); }\n", to, node);
    else if (wide)
      forFours(formatv("storeFour(&{0}, n{1} + j);", to, node).str());
    else if (hydra::variesOverColumns(*formOfShape(program.domain, tensor.type.getShape())))
      forColumns(statement);
    else if (variesOverColumns(node)) // one column
      text += "if (lane == 0) { const int j = 0, column = 0; " + statement + " }\n";
    else
      text += "if (lane == 0) { " + statement + " }\n";
  }

  const RowProgram &program;
  const int64_t sliced, columns;
  int64_t rows = 1, lanes = kWarp; ///< of a slice; of a row
  int64_t parts, width = 1;        ///< columns of a lane, and how many side by side
  int64_t pieces = 1;              ///< of a row, one after the other
  Team team;                       ///< the threads, if warps share rows
  std::optional<int64_t> scratch;  ///< of the next reduction, if warps of a whole block do
  std::string own;                 ///< whether a thread has a row then, where some have none
  std::string held;                ///< registers of the only input
  bool single = false;             ///< one number instead of rows
  bool branchless = false;         ///< divisions and roots have no branches
  ArrayRef<std::string> numbers;   ///< its inputs
  std::string text;
};

} // namespace

std::string offsetText(const std::string &index, ArrayRef<int64_t> sizes,
                       ArrayRef<int64_t> strides) {
  std::string text;
  int64_t inner = 1, count = 1;
  for (int64_t size : sizes)
    count *= size;
  // Neighbours that lie like one dimension are one.
  SmallVector<std::pair<int64_t, int64_t>> merged; // size, stride
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    if (size == 1)
      continue;
    if (!merged.empty() && merged.back().second == size * stride)
      merged.back() = {merged.back().first * size, stride};
    else
      merged.push_back({size, stride});
  }
  for (size_t i = merged.size(); i-- > 0;) {
    auto [size, stride] = merged[i];
    std::string coordinate = index;
    if (inner > 1)
      coordinate = formatv("{0} / {1}", coordinate, inner).str();
    if (inner * size < count)
      coordinate = formatv("{0} % {1}", coordinate, size).str();
    inner *= size;
    if (stride != 0)
      text += formatv("{0}({1}) * {2}", text.empty() ? "" : " + ", coordinate, stride).str();
  }
  return text.empty() ? "0" : text;
}

std::string groupText(const RowProgram &program, int64_t sliced, const RowSharers &sharers,
                      ArrayRef<SliceTensor> inputs, ArrayRef<SliceTensor> results) {
  GroupText text(program, sliced, sharers.thread);
  return sharers.warps > 1 ? text.writeShared(sharers, inputs, results)
                           : text.write(inputs, results);
}

std::string heldGroupText(const RowProgram &program, int64_t sliced, StringRef held,
                          ArrayRef<SliceTensor> results) {
  return GroupText(program, sliced).writeHeld(held, results);
}

TeamRows allRows(const RowProgram &program) { return {program.domain.rows(), "mine"}; }

bool canBeTeamText(const RowProgram &program, int64_t rows, const Team &team) {
  const bool hasText = llvm::none_of(program.nodes, [&](const RowNode &node) {
    // A row is a single head, of which the position is known.
    const bool isOneHead = program.domain.innerShape.size() == 1 && !node.inputs.empty() &&
                           !hydra::variesOverColumns(program.nodes[node.inputs[0]].form);
    return node.kind == Kind::Gather || node.kind == Kind::SumRows ||
           (node.kind == Kind::Rotate && !isOneHead);
  });
  const int64_t reductions = program.reductions(), columns = program.domain.columns();
  return hasText && reductions <= kMostReductions &&
         (reductions == 0 || columns <= kMostOfTeam * threadsOfRow(team, rows));
}

std::string teamGroupText(const RowProgram &program, const TeamRows &rows,
                          ArrayRef<SliceTensor> inputs, ArrayRef<SliceTensor> results,
                          const Team &team) {
  return GroupText(program, 0).writeTeams(team, rows, inputs, results);
}

std::optional<unsigned> largestOfRow(const RowProgram &program, const RowResult &result) {
  const RowNode &stored = program.nodes[result.node];
  const bool isRounded = stored.kind == Kind::Cast && stored.type == result.type;
  const RowNode &node = isRounded ? program.nodes[stored.inputs[0]] : stored;
  if (node.kind != Kind::Reduce || node.code != static_cast<unsigned>(RowReduction::Max) ||
      result.form != RowForm::Row || !isFloat(result.type))
    return std::nullopt;
  return node.inputs[0];
}

bool canBeNumberText(const RowProgram &program) {
  const auto isOf = [&](unsigned node) { return isOfRow(program, program.nodes[node]); };
  for (const RowResult &result : program.results)
    if (isOf(result.node) && !largestOfRow(program, result))
      return false;
  for (const RowNode &node : program.nodes)
    if (!isOfRow(program, node) && llvm::any_of(node.inputs, isOf))
      return false;
  const auto isWhole = [](RowForm form) {
    return form == RowForm::Tile || form == RowForm::Scalar;
  };
  return llvm::all_of(program.inputs,
                      [&](const RowInput &input) { return input.form && isWhole(*input.form); }) &&
         llvm::all_of(program.nodes, [](const RowNode &node) {
           switch (node.kind) {
           case Kind::Reduce: // which is a result
           case Kind::Input:
           case Kind::Constant:
           case Kind::Unary:
           case Kind::Binary:
           case Kind::Compare:
           case Kind::Select:
           case Kind::Cast:
             return true;
           default: // of rows, or of a place
             return false;
           }
         });
}

NumberText numberGroupText(const RowProgram &program, ArrayRef<std::string> inputs,
                           ArrayRef<std::string> results, Divisions divisions) {
  return GroupText(program, 0).writeNumber(inputs, results, divisions);
}

std::string laneGroupText(const RowProgram &program, ArrayRef<std::string> inputs,
                          ArrayRef<std::string> results) {
  return GroupText(program, 0).writeLane(inputs, results);
}

} // namespace hydra::cuda
