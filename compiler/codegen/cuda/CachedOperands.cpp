// Which launches make queries and keys for attention over slots so that each block can make its
// own, and the text of what it does.
#include "compiler/codegen/cuda/CachedOperands.h"

#include "compiler/codegen/cuda/LoopPlacement.h"

#include "dialects/hydra/RowForms.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

// Dimensions of queries and keys.
enum : unsigned { kBatch, kCall, kHead, kColumn, kRank };

constexpr int64_t kAlignment = 16; ///< bytes, in shared memory

/// Columns of a group that are heads and what is in them, as a domain of the same numbers has them
/// whose rows are heads; `form` is the old one.
MemRefType withHeadRows(MemRefType type, const RowDomain &old, RowForm form) {
  SmallVector<int64_t> shape(type.getShape()), strides = plan::stridesOf(type);
  if (form == RowForm::Row) {
    shape = {old.rowShape[kBatch], old.rowShape[kCall], old.innerShape.front()};
    strides = {strides[kBatch], strides[kCall], 0};
  } else if (form == RowForm::Column) {
    shape = {old.rowShape[kBatch], old.rowShape[kCall], shape[0], shape[1]};
    strides = {0, 0, strides[0], strides[1]};
  }
  return plan::bufferType(shape, strides, type.getElementType());
}

std::optional<HeadGroup> headGroupOf(plan::LaunchOp launch) {
  std::optional<RowProgram> program = programOf(launch);
  if (!program)
    return std::nullopt;
  RowDomain &domain = program->domain;
  const bool headsAreColumns = domain.rowShape.size() == kHead && domain.innerShape.size() == 2;
  if (!headsAreColumns && (domain.rowShape.size() != kColumn || domain.innerShape.size() != 1))
    return std::nullopt;
  HeadGroup group{launch, *program, {}, {}};
  for (auto [i, arg] : llvm::enumerate(launch.getArgs())) {
    const std::optional<RowForm> form = formOfShape(domain, typeOf(arg).getShape());
    const bool isResult = i >= program->inputs.size();
    if (!form || (isResult && *form != RowForm::Tile))
      return std::nullopt;
    (isResult ? group.results : group.inputs)
        .push_back(headsAreColumns ? withHeadRows(typeOf(arg), domain, *form) : typeOf(arg));
  }
  if (headsAreColumns) {
    // A sum over all heads is none over one.
    if (llvm::any_of(program->nodes,
                     [](const RowNode &node) { return node.kind == RowNode::Kind::Reduce; }))
      return std::nullopt;
    RowDomain &own = group.program.domain;
    own.rowShape.push_back(own.innerShape.front());
    own.innerShape.erase(own.innerShape.begin());
  }
  return group;
}

int64_t headsOf(const HeadGroup &group) { return group.program.domain.rowShape.back(); }

ValueRange resultsOf(const HeadGroup &group) {
  plan::LaunchOp launch = group.launch;
  return launch.getArgs().drop_front(group.program.inputs.size());
}
ValueRange inputsOf(const HeadGroup &group) {
  plan::LaunchOp launch = group.launch;
  return launch.getArgs().take_front(group.program.inputs.size());
}

bool shareBuffer(Value a, Value b) { return plan::placeOf(a).buffer == plan::placeOf(b).buffer; }

/// Where a part of an operand lies in it.
struct PartPlace {
  int64_t firstHead; ///< of the part's heads the operand's first
  int64_t column;
};

std::optional<PartPlace> placeIn(Value operand, Value part) {
  const MemRefType whole = typeOf(operand), type = typeOf(part);
  if (type.getRank() != kRank || type.getElementType() != whole.getElementType())
    return std::nullopt;
  const SmallVector<int64_t> strides = plan::stridesOf(whole), own = plan::stridesOf(type);
  for (unsigned d : {kBatch, kCall})
    if (type.getDimSize(d) != whole.getDimSize(d) ||
        (type.getDimSize(d) > 1 && own[d] != strides[d]))
      return std::nullopt;
  const int64_t heads = whole.getDimSize(kHead), ofPart = type.getDimSize(kHead),
                apart = ofPart > 1 ? own[kHead] : strides[kHead];
  if ((heads > 1 && ofPart > 1 && strides[kHead] != apart) || own[kColumn] != 1 ||
      strides[kColumn] != 1)
    return std::nullopt;
  const int64_t element = elementBytes(type.getElementType()),
                bytes = plan::placeOf(part).bytes - plan::placeOf(operand).bytes;
  if (bytes % element != 0)
    return std::nullopt;
  const int64_t distance = bytes / element;
  if (distance < 0 && apart <= 0)
    return std::nullopt;
  const int64_t head = distance < 0 ? ceilDiv(-distance, apart) : 0,
                column = distance + head * apart;
  if (head + heads > ofPart || column + type.getDimSize(kColumn) > whole.getDimSize(kColumn))
    return std::nullopt;
  return PartPlace{head, column};
}

/// What of a group some of its results need.
GroupPart partOf(const HeadGroup &group, unsigned number, ArrayRef<unsigned> results) {
  const RowProgram &whole = group.program;
  GroupPart part{number, {whole.domain, whole.inputs, {}, {}}, SmallVector<unsigned>(results)};
  llvm::BitVector needed(whole.nodes.size());
  for (unsigned r : results)
    needed.set(whole.results[r].node);
  for (size_t i = whole.nodes.size(); i-- > 0;)
    if (needed.test(i))
      for (unsigned input : whole.nodes[i].inputs)
        needed.set(input);
  std::vector<unsigned> places(whole.nodes.size());
  for (unsigned i : needed.set_bits()) {
    places[i] = part.program.nodes.size();
    RowNode node = whole.nodes[i];
    for (unsigned &input : node.inputs)
      input = places[input];
    part.program.nodes.push_back(node);
  }
  for (unsigned r : results) {
    RowResult result = whole.results[r];
    result.node = places[result.node];
    part.program.results.push_back(result);
  }
  return part;
}

/// The inputs that a part reads, by their numbers.
llvm::BitVector inputsOf(const GroupPart &part) {
  llvm::BitVector read(part.program.inputs.size());
  for (const RowNode &node : part.program.nodes)
    if (node.kind == RowNode::Kind::Input || node.kind == RowNode::Kind::Rotate)
      read.set(node.code);
  return read;
}

/// How the groups make an operand: none of them may, which is no failure.
FailureOr<std::optional<ComputedOperand>> computedBy(Value operand, ArrayRef<HeadGroup> groups) {
  ComputedOperand computed;
  std::vector<SmallVector<unsigned>> kept(groups.size()); // results, of each group
  int64_t columns = 0;
  std::optional<int64_t> firstHead;
  for (auto [i, group] : llvm::enumerate(groups))
    for (auto [r, result] : llvm::enumerate(resultsOf(group))) {
      if (!shareBuffer(result, operand))
        continue;
      const std::optional<PartPlace> place = placeIn(operand, result);
      if (!place || (firstHead && *firstHead != place->firstHead))
        return failure();
      firstHead = place->firstHead;
      columns += typeOf(result).getDimSize(kColumn);
      computed.parts[result] = place->column;
      kept[i].push_back(r);
    }
  if (!firstHead)
    return std::optional<ComputedOperand>();
  if (columns != typeOf(operand).getDimSize(kColumn))
    return failure();
  computed.firstHead = *firstHead;
  // Of groups in front what those read is computed as well.
  for (size_t i = groups.size(); i-- > 0;) {
    if (kept[i].empty())
      continue;
    llvm::sort(kept[i]);
    kept[i].erase(llvm::unique(kept[i]), kept[i].end());
    GroupPart part = partOf(groups[i], i, kept[i]);
    for (unsigned n : inputsOf(part).set_bits()) {
      const Value input = inputsOf(groups[i])[n];
      for (size_t j = 0; j < groups.size(); ++j)
        for (auto [r, result] : llvm::enumerate(resultsOf(groups[j]))) {
          if (!shareBuffer(result, input))
            continue;
          if (j >= i || !plan::sameElements(result, input) || computed.parts.contains(result))
            return failure();
          kept[j].push_back(r);
        }
    }
    computed.groups.insert(computed.groups.begin(), std::move(part));
  }
  for (const GroupPart &part : computed.groups)
    if (part.program.domain.rowShape != computed.groups.front().program.domain.rowShape)
      return failure();
  return std::optional(std::move(computed));
}

/// Rows of the call that a block has of an operand, and those of its heads that share a key.
struct BlockRows {
  BlockRows(plan::CachedAttentionOp op, Value operand)
      : calls(typeOf(operand).getDimSize(kCall)),
        heads(typeOf(operand).getDimSize(kHead) / typeOf(op.getK()).getDimSize(kHead)) {}

  int64_t count() const { return calls * heads; }

  int64_t calls, heads;
};

} // namespace

std::optional<ComputedOperands> computedOperands(plan::CachedAttentionOp op,
                                                 ArrayRef<plan::LaunchOp> launches) {
  // As many rows as tensor cores multiply at once, and one block for a key's head or parts of its
  // tokens: then each row is computed by few blocks.
  constexpr int64_t kMostRows = 16;
  if (BlockRows(op, op.getQ()).count() > kMostRows)
    return std::nullopt;
  ComputedOperands all;
  for (plan::LaunchOp launch : launches) {
    std::optional<HeadGroup> group = headGroupOf(launch);
    if (!group)
      return std::nullopt;
    all.groups.push_back(std::move(*group));
  }
  llvm::BitVector taken(all.groups.size());
  for (auto [value, operand] : {std::pair(op.getQ(), &all.q), std::pair(op.getK(), &all.k)}) {
    FailureOr<std::optional<ComputedOperand>> computed = computedBy(value, all.groups);
    if (failed(computed))
      return std::nullopt;
    *operand = std::move(*computed);
    if (!*operand)
      continue;
    for (const GroupPart &part : (*operand)->groups)
      taken.set(part.group);
  }
  // What blocks make for themselves is in no memory, where they read these.
  for (Value other : {op.getV(), op.getPosition()})
    for (const HeadGroup &group : all.groups)
      if (llvm::any_of(resultsOf(group), [&](Value made) { return shareBuffer(made, other); }))
        return std::nullopt;
  const auto hasText = [&](Value value, const std::optional<ComputedOperand> &operand) {
    return !operand || llvm::all_of(operand->groups, [&](const GroupPart &part) {
      return canBeTeamText(part.program, BlockRows(op, value).count(), all.teamOf(operand));
    });
  };
  return taken.all() && hasText(op.getQ(), all.q) && hasText(op.getK(), all.k)
             ? std::optional(std::move(all))
             : std::nullopt;
}

int64_t blockNumbers(plan::CachedAttentionOp op, Value operand) {
  return BlockRows(op, operand).count() * typeOf(operand).getDimSize(kColumn);
}

int64_t sharedBytesOf(const ComputedOperands &all, const ComputedOperand &operand,
                      plan::CachedAttentionOp op, Value value) {
  const auto padded = [](int64_t numbers, Type element) {
    return ceilDiv(numbers * elementBytes(element), kAlignment) * kAlignment;
  };
  int64_t bytes = padded(blockNumbers(op, value), typeOf(value).getElementType());
  for (const GroupPart &part : operand.groups)
    for (unsigned r : part.results)
      if (Value result = resultsOf(all.groups[part.group])[r]; !operand.parts.contains(result))
        bytes += padded(BlockRows(op, value).count() * typeOf(result).getDimSize(kColumn),
                        typeOf(result).getElementType());
  return bytes;
}

std::string computedText(const ComputedOperands &all, const ComputedOperand &operand,
                         const Team &team, plan::CachedAttentionOp op, Value value, StringRef name,
                         Arguments &arguments) {
  const BlockRows rows(op, value);
  const int64_t width = typeOf(value).getDimSize(kColumn);
  std::string text =
      formatv("if (threadIdx.x / {0} == {1}) {{\n", team.threads, team.first / team.threads);
  SmallVector<SliceTensor> known; // what lies between groups
  SmallVector<Value> values;
  for (const GroupPart &ofGroup : operand.groups) {
    const HeadGroup &group = all.groups[ofGroup.group];
    const llvm::BitVector read = inputsOf(ofGroup);
    SmallVector<SliceTensor> inputs, results;
    for (auto [n, value, type] : llvm::enumerate(inputsOf(group), group.inputs)) {
      const Value input = value;
      const auto *made =
          llvm::find_if(values, [&](Value other) { return plan::sameElements(other, input); });
      if (!read.test(n))
        inputs.push_back({}); // of other results
      else if (made != values.end())
        inputs.push_back(known[made - values.begin()]);
      else
        inputs.push_back({arguments.add(input, plan::kRead), type, plan::stridesOf(type),
                          LoopPlacement::outsideAlignment(input, 1)});
    }
    for (unsigned r : ofGroup.results) {
      const Value made = resultsOf(group)[r];
      const MemRefType type = group.results[r];
      const int64_t element = elementBytes(type.getElementType());
      auto part = operand.parts.find(made);
      if (part != operand.parts.end()) {
        const int64_t column = part->second;
        results.push_back({formatv("({0} + {1})", name, column),
                           type,
                           {width, 1},
                           static_cast<int64_t>(llvm::MinAlign(kAlignment, column * element)),
                           false,
                           true});
        continue;
      }
      const int64_t columns = type.getDimSize(kColumn);
      const std::string between = formatv("{0}{1}", name, known.size());
      text += formatv("__shared__ __align__({0}) {1} {2}[{3}];\n", kAlignment,
                      cType(type.getElementType()), between, rows.count() * columns);
      results.push_back({between,
                         type,
                         {columns, 1},
                         static_cast<int64_t>(llvm::MinAlign(kAlignment, columns * element)),
                         false,
                         true});
      known.push_back(results.back());
      values.push_back(made);
    }
    const int64_t heads = headsOf(group);
    if (&ofGroup != &operand.groups.front()) // which others of the team have left
      text += formatv("asm volatile(\"bar.sync {0}, {1};\" ::: \"memory\");\n", team.barrier,
                      team.threads);
    text +=
        teamGroupText(ofGroup.program,
                      {rows.count(), formatv("(int(blockIdx.z) * {0} + mine / {1}) * {2} + {3} + "
                                             "int(blockIdx.y) * {1} + mine % {1}",
                                             rows.calls, rows.heads, heads, operand.firstHead)},
                      inputs, results, team);
  }
  return text + "}\n";
}

} // namespace hydra::cuda
