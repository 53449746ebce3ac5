// Chooses the shape of the loops, cuts programs into sweeps, and merges dimensions.
#include "compiler/codegen/rows/RowSchedule.h"

using namespace llvm;

namespace hydra::rows {

using Kind = RowNode::Kind;

//===-- Strides -----------------------------------------------------------------------------===//

void Strided::add(int64_t size, int64_t stride) {
  if (size == 1)
    return;
  if (!dims.empty() && dims.back().stride == size * stride)
    dims.back() = {dims.back().size * size, stride};
  else
    dims.push_back({size, stride});
}

int64_t Strided::lastOffset() const {
  int64_t offset = 0;
  for (const Dim &dim : dims)
    offset += (dim.size - 1) * dim.stride;
  return offset;
}

/// `aligned`: chunks begin at multiples of 16 columns.
static Pattern patternOf(const Strided &columns, bool aligned) {
  ArrayRef<Strided::Dim> dims = columns.dims;
  if (dims.empty())
    return Pattern::Same;
  bool single = dims.size() == 1;
  if (dims.back().stride == 1 || dims.back().stride == 0) {
    if (single)
      return dims.back().stride ? Pattern::Dense : Pattern::Same;
    if (aligned && dims.back().size % kLanes == 0)
      return Pattern::Blocks;
  }
  return Pattern::Scattered;
}

TensorAccess accessOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  TensorAccess access;
  for (auto [size, stride] : zip(shape, strides))
    access.columns.add(size, stride);
  access.pattern = patternOf(access.columns, /*aligned=*/true);
  return access;
}

namespace {

class Scheduler {
public:
  Scheduler(RowProgram &&program, ArrayRef<SmallVector<int64_t>> layouts, int64_t grain)
      : layouts(layouts), grain(grain) {
    s.program = std::move(program);
    s.rows = s.program.domain.rows();
    s.columns = s.program.domain.columns();
  }

  RowSchedule run() {
    s.flat = canBeFlat();
    if (s.flat) {
      setAccesses(/*flat=*/true);
      // Rows of one element have no better shape; others only while vectors stay whole.
      s.flat = s.columns == 1 || (allDense(s.inputs) && allDense(s.results));
    }
    if (s.flat)
      flatten();
    else
      setAccesses(/*flat=*/false);
    setLevels();
    cutSweeps();
    choosePrefetch();
    for (auto [access, result] : zip(s.results, s.program.results))
      s.streams.push_back(shouldStream(access, result));
    return std::move(s);
  }

private:
  //===-- Shape -----------------------------------------------------------------------------===//

  bool canBeFlat() const {
    for (const RowNode &node : s.program.nodes) {
      bool reduces = node.kind == Kind::Reduce || node.kind == Kind::SumRows;
      if (node.kind == Kind::Gather || node.kind == Kind::Rotate || (reduces && s.columns > 1))
        return false;
    }
    // Every element of a result is written once.
    return llvm::all_of(s.program.results, [&](const RowResult &r) {
      return s.program.isSummed(r) || r.form == RowForm::Scalar ||
             ((variesOverRows(r.form) || s.rows == 1) &&
              (variesOverColumns(r.form) || s.columns == 1));
    });
  }

  static bool allDense(ArrayRef<TensorAccess> accesses) {
    return llvm::all_of(accesses, [](const TensorAccess &a) {
      return a.pattern == Pattern::Dense || a.pattern == Pattern::Same;
    });
  }

  //===-- Accesses --------------------------------------------------------------------------===//

  /// Of a tensor of that form, whose shape may leave out the rows or the columns if there is one.
  TensorAccess access(RowForm form, ArrayRef<int64_t> strides, bool flat) const {
    const RowDomain &domain = s.program.domain;
    const size_t innerRank = domain.innerShape.size();
    const bool hasRows = variesOverRows(form) && !strides.empty() &&
                         !(form == RowForm::Tile && s.rows == 1 && strides.size() == innerRank);
    const size_t rowRank = hasRows ? domain.rowShape.size() : 0;
    const bool hasColumns = variesOverColumns(form) && strides.size() >= rowRank + innerRank;
    TensorAccess a;
    size_t next = 0;
    Strided &rows = flat ? a.columns : a.rows;
    for (int64_t size : domain.rowShape)
      rows.add(size, hasRows ? strides[next++] : 0);
    if (hasColumns)
      for (int64_t size : domain.innerShape)
        a.columns.add(size, strides[next++]);
    else if (flat)
      a.columns.add(s.columns, 0);
    a.pattern = patternOf(a.columns, !flat || grain * s.columns % kLanes == 0);
    return a;
  }

  static TensorAccess tableAccess(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
    TensorAccess a = accessOf(shape.drop_front(), strides.drop_front());
    a.rows.dims.push_back({shape[0], strides[0]});
    return a;
  }

  void setAccesses(bool flat) {
    SmallVector<bool> gathered(s.program.inputs.size());
    for (const RowNode &node : s.program.nodes)
      if (node.kind == Kind::Gather)
        gathered[node.code] = true;
    s.inputs.clear();
    s.results.clear();
    for (auto [i, input] : llvm::enumerate(s.program.inputs))
      s.inputs.push_back(gathered[i]
                             ? tableAccess(input.shape, layouts[i])
                             : access(input.form.value_or(RowForm::Tile), layouts[i], flat));
    size_t next = s.program.inputs.size();
    for (const RowResult &result : s.program.results)
      s.results.push_back(s.program.isSummed(result) ? TensorAccess()
                                                     : access(result.form, layouts[next++], flat));
  }

  /// Makes every value that varies at all one that varies by element. Over the one column of a row
  /// a reduction is the value itself.
  void flatten() {
    auto flatForm = [](RowForm f) { return f == RowForm::Scalar ? f : RowForm::Tile; };
    for (RowNode &node : s.program.nodes) {
      node.form = flatForm(node.form);
      if (node.kind == Kind::SumRows)
        node.form = RowForm::Scalar;
      if (node.kind != Kind::Reduce)
        continue;
      node.kind = Kind::Cast;
      node.form = s.program.nodes[node.inputs[0]].form;
    }
    for (RowInput &input : s.program.inputs)
      if (input.form)
        input.form = flatForm(*input.form);
    for (RowResult &result : s.program.results)
      result.form = s.program.isSummed(result) ? RowForm::Scalar : flatForm(result.form);
  }

  /// Shorter rows are left to the processor's own prefetching.
  static constexpr int64_t kPrefetchedColumns = 256;

  /// Sweeps after the first work on what is in the cache. Memory would idle unless the longest of
  /// them fetched the next row.
  void choosePrefetch() {
    if (s.sweeps.size() == 1 || s.columns < kPrefetchedColumns)
      return;
    auto later = drop_begin(s.sweeps);
    max_element(later, [](const Sweep &a, const Sweep &b) { return a.cost < b.cost; })->prefetches =
        true;
  }

  /// Results of this size are long gone from the caches when they are read; stores that bypass them
  /// save reading what is overwritten: a third of the traffic of a copy.
  static constexpr int64_t kStreamedBytes = 32 << 20;

  bool shouldStream(const TensorAccess &access, const RowResult &result) const {
    if (s.program.isSummed(result) || result.form != RowForm::Tile || !isFloat(result.type) ||
        s.rows * s.columns * storageBytes(result.type) < kStreamedBytes ||
        access.pattern != Pattern::Dense)
      return false;
    // Chunks must begin at multiples of a vector if the tensor does.
    return s.flat ? grain * s.columns % kLanes == 0
                  : s.columns % kLanes == 0 && all_of(access.rows.dims, [](const Strided::Dim &d) {
                      return d.stride % kLanes == 0;
                    });
  }

  //===-- Sweeps ----------------------------------------------------------------------------===//

  void setLevels() {
    for (const RowNode &node : s.program.nodes) {
      unsigned level = 0;
      for (unsigned input : node.inputs)
        level = std::max(level, s.level[input]);
      s.level.push_back(level + (node.kind == Kind::Reduce));
    }
    s.sweeps.resize(s.level.empty() ? 1 : 1 + *llvm::max_element(s.level));
    for (Sweep &sweep : s.sweeps)
      sweep.reads.resize(s.program.nodes.size());
    s.buffer.assign(s.program.nodes.size(), -1);
    home.assign(s.program.nodes.size(), -1);
  }

  void cutSweeps() {
    for (auto [i, node] : llvm::enumerate(s.program.nodes)) {
      if (node.kind == Kind::Reduce)
        s.sweeps[s.level[i] - 1].reductions.push_back(i);
      if (node.form == RowForm::Row)
        s.sweeps[s.level[i]].rowNodes.push_back(i);
    }
    for (unsigned p = 0; p < s.sweeps.size(); ++p) {
      seen.assign(s.program.nodes.size(), false);
      for (unsigned node : s.sweeps[p].reductions)
        visit(s.program.nodes[node].inputs[0], p);
      if (p + 1 < s.sweeps.size())
        continue;
      for (const RowResult &result : s.program.results) {
        if (s.program.isSummed(result))
          visit(s.program.nodes[result.node].inputs[0], p);
        else if (result.form == RowForm::Tile)
          visit(result.node, p);
      }
    }
  }

  /// Rows up to this many columns may be kept: 64 KiB.
  static constexpr int64_t kKeptColumns = 16 * 1024;
  static constexpr unsigned kKeepCost = 8;

  void visit(unsigned number, unsigned p) {
    const RowNode &node = s.program.nodes[number];
    if (!variesOverColumns(node.form) || seen[number])
      return;
    seen[number] = true;
    Sweep &sweep = s.sweeps[p];
    if (home[number] >= 0) { // an earlier sweep had it
      bool worthIt = isFloat(node.type) && subtreeCost(number) >= kKeepCost &&
                     (s.buffer[number] >= 0 || s.columns * (s.buffers + 1) <= kKeptColumns);
      if (worthIt) {
        if (s.buffer[number] < 0) {
          s.buffer[number] = s.buffers++;
          s.sweeps[home[number]].keeps.push_back(number);
        }
        sweep.reads[number] = true;
        sweep.cost += 1;
        return;
      }
    } else {
      home[number] = p;
    }
    sweep.cost += costOf(node);
    for (unsigned input : node.inputs)
      visit(input, p);
  }

  /// Rough instructions for a chunk.
  static unsigned costOf(const RowNode &node) {
    switch (node.kind) {
    case Kind::Constant:
      return 0;
    case Kind::Unary:
      switch (static_cast<RowUnary>(node.code)) {
      case RowUnary::Neg:
        return 1;
      case RowUnary::Sqrt:
        return 6;
      case RowUnary::Rsqrt:
        return 12;
      case RowUnary::Exp:
        return 18;
      case RowUnary::Log:
        return 24;
      case RowUnary::Sigmoid:
        return 28;
      case RowUnary::Tanh:
      case RowUnary::Erf:
        return 40;
      case RowUnary::Sin:
      case RowUnary::Cos:
        return 60;
      case RowUnary::PowerOfTwo:
        return 3;
      case RowUnary::Bits:
      case RowUnary::OfBits:
        return 0;
      }
      llvm_unreachable("thirteen functions");
    case Kind::Binary:
      return static_cast<RowBinary>(node.code) == RowBinary::Div ? 6 : 1;
    case Kind::Cast:
      return isEightBit(node.type) ? 14 : isNarrow(node.type) ? 6 : 1;
    case Kind::Rotate:
      return 6;
    default:
      return 1;
    }
  }

  unsigned subtreeCost(unsigned number) {
    std::vector<bool> counted(s.program.nodes.size());
    unsigned cost = 0;
    auto count = [&](auto &&self, unsigned n) -> void {
      if (counted[n] || !variesOverColumns(s.program.nodes[n].form))
        return;
      counted[n] = true;
      cost += costOf(s.program.nodes[n]);
      for (unsigned input : s.program.nodes[n].inputs)
        self(self, input);
    };
    count(count, number);
    return cost;
  }

  RowSchedule s;
  ArrayRef<SmallVector<int64_t>> layouts;
  int64_t grain;
  std::vector<int> home; ///< by node: the first sweep that computes it
  std::vector<bool> seen;
};

} // namespace

bool RowSchedule::lastSweepStores() const {
  return llvm::any_of(program.results, [&](const RowResult &r) {
    return program.isSummed(r) ? variesOverColumns(program.nodes[r.node].form)
                               : r.form == RowForm::Tile;
  });
}

RowSchedule scheduleRows(RowProgram program, ArrayRef<SmallVector<int64_t>> layouts,
                         int64_t grain) {
  return Scheduler(std::move(program), layouts, grain).run();
}

} // namespace hydra::rows
