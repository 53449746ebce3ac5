// Live ranges byte by byte, found from the accesses of every block.
#include "runtime/report/LiveMemory.h"

#include "runtime/plan/Accesses.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace hydra::report {

using namespace planfile;
using runtime::ByteAccess;
using runtime::ByteRange;

namespace {

/// Touches of one block: inputs and outputs count as touched by the first and the last one.
struct TimedAccess {
  uint32_t block;
  bool replaces; // begins a new value
  ByteAccess access;
};

/// What a loop writes may be carried from one iteration to the next, and a switch may not write.
bool replaces(const Block &block, const ByteAccess &access) {
  return block.node_as_Step() && access.access == Access::write && access.bytes.exact &&
         access.bytes.pitch == 0;
}

class LiveRanges {
public:
  LiveRanges(const Plan &plan, const Program &program) : plan(plan) {
    const uint32_t count = program.blocks()->size();
    last = count == 0 ? 0 : count - 1;
    for (const Input *input : *program.inputs())
      add(0, input->tensor(), Access::write);
    std::vector<ByteAccess> found;
    for (uint32_t i = 0; i < count; ++i) {
      const Block &block = *program.blocks()->Get(i);
      found.clear();
      runtime::collectAccesses(plan, block, {}, found);
      // What a block reads is there before what it writes.
      for (const bool writes : {false, true}) {
        for (const ByteAccess &access : found)
          if (access.writes() == writes && access.segment == SegmentKind::transient)
            accesses.push_back({i, replaces(block, access), access});
      }
    }
    for (const Output *output : *program.outputs())
      add(last, output->tensor(), Access::read);
  }

  std::vector<LivePiece> find() {
    for (const TimedAccess &timed : accesses) {
      bounds.push_back(timed.access.bytes.begin);
      bounds.push_back(timed.access.bytes.end);
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    current.resize(bounds.size());
    for (const TimedAccess &timed : accesses) {
      const auto position = [&](uint64_t byte) {
        return std::lower_bound(bounds.begin(), bounds.end(), byte) - bounds.begin();
      };
      const size_t end = position(timed.access.bytes.end);
      for (size_t i = position(timed.access.bytes.begin); i < end; ++i)
        touch(i, timed);
    }
    for (size_t i = 0; i < current.size(); ++i)
      finish(i);
    return merged();
  }

private:
  void add(uint32_t block, uint32_t index, Access access) {
    const Tensor &tensor = *plan.tensors()->Get(index);
    if (tensor.segment() == SegmentKind::transient)
      accesses.push_back(
          {block, false, {index, tensor.segment(), access, *runtime::byteRange(tensor, {})}});
  }

  /// Bytes [bounds[i], bounds[i + 1]).
  void touch(size_t i, const TimedAccess &timed) {
    const ByteAccess &access = timed.access;
    if (current[i] && !timed.replaces && !isOther(current[i]->tensor, access.tensor)) {
      current[i]->last = timed.block;
      return;
    }
    if (current[i] && current[i]->last == timed.block && timed.block > 0)
      --current[i]->last; // written in place: count the bytes once
    finish(i);
    current[i] = LivePiece{bounds[i], bounds[i + 1], timed.block, timed.block, access.tensor};
  }

  /// Whether the second tensor is of another buffer, which has the place of the first one's.
  bool isOther(uint32_t before, uint32_t now) const {
    const uint32_t a = plan.tensors()->Get(before)->buffer(),
                   b = plan.tensors()->Get(now)->buffer();
    return a != 0 && b != 0 && a != b;
  }

  void finish(size_t i) {
    if (current[i] && current[i]->first <= current[i]->last)
      pieces.push_back(*current[i]);
    current[i].reset();
  }

  /// Joins neighbours that hold parts of one value.
  std::vector<LivePiece> merged() {
    const auto key = [](const LivePiece &piece) {
      return std::tuple(piece.first, piece.last, piece.tensor, piece.begin);
    };
    std::sort(pieces.begin(), pieces.end(),
              [&](const LivePiece &a, const LivePiece &b) { return key(a) < key(b); });
    std::vector<LivePiece> result;
    for (const LivePiece &piece : pieces) {
      if (!result.empty() && result.back().end == piece.begin &&
          result.back().first == piece.first && result.back().last == piece.last &&
          result.back().tensor == piece.tensor)
        result.back().end = piece.end;
      else
        result.push_back(piece);
    }
    return result;
  }

  const Plan &plan;
  uint32_t last = 0;
  std::vector<TimedAccess> accesses;
  std::vector<uint64_t> bounds;
  std::vector<std::optional<LivePiece>> current; // by position in bounds
  std::vector<LivePiece> pieces;
};

} // namespace

LiveMemory liveMemory(const Plan &plan, const Program &program) {
  LiveMemory memory;
  memory.blocks = std::max<uint32_t>(1, program.blocks()->size());
  memory.pieces = LiveRanges(plan, program).find();

  std::vector<int64_t> change(memory.blocks + 1);
  for (const LivePiece &piece : memory.pieces) {
    change[piece.first] += static_cast<int64_t>(piece.end - piece.begin);
    change[piece.last + 1] -= static_cast<int64_t>(piece.end - piece.begin);
  }
  int64_t live = 0;
  for (uint32_t block = 0; block < memory.blocks; ++block) {
    live += change[block];
    if (static_cast<uint64_t>(live) > memory.peakBytes) {
      memory.peakBytes = live;
      memory.peakBlock = block;
    }
  }

  std::vector<uint64_t> byTensor(plan.tensors()->size());
  for (const LivePiece &piece : memory.pieces)
    if (piece.first <= memory.peakBlock && memory.peakBlock <= piece.last)
      byTensor[piece.tensor] += piece.end - piece.begin;
  for (uint32_t i = 0; i < byTensor.size(); ++i) {
    if (byTensor[i] == 0)
      continue;
    memory.atPeak[static_cast<size_t>(plan.tensors()->Get(i)->category())] += byTensor[i];
    memory.largestAtPeak.emplace_back(i, byTensor[i]);
  }
  std::sort(memory.largestAtPeak.begin(), memory.largestAtPeak.end(),
            [](const auto &a, const auto &b) {
              return std::pair(b.second, a.first) < std::pair(a.second, b.first);
            });
  return memory;
}

namespace {

using Blocks = flatbuffers::Vector<flatbuffers::Offset<Block>>;

void collectMakers(const Blocks &blocks, std::vector<const Step *> &makers) {
  for (const Block *block : blocks) {
    if (const Step *step = block->node_as_Step()) {
      for (const Arg *arg : *step->args())
        if (arg->access() != Access::read && !makers[arg->tensor()])
          makers[arg->tensor()] = step;
    } else if (const Loop *loop = block->node_as_Loop()) {
      collectMakers(*loop->blocks(), makers);
    } else if (const Switch *choice = block->node_as_Switch()) {
      for (const Case *one : *choice->cases())
        collectMakers(*one->blocks(), makers);
    }
  }
}

} // namespace

std::vector<const Step *> makersOf(const Plan &plan, const Program &program) {
  std::vector<const Step *> makers(plan.tensors()->size());
  collectMakers(*program.blocks(), makers);
  std::map<uint32_t, std::vector<uint32_t>> written; // tensors, by their buffers
  for (uint32_t i = 0; i < makers.size(); ++i)
    if (const uint32_t buffer = plan.tensors()->Get(i)->buffer(); makers[i] && buffer != 0)
      written[buffer].push_back(i);
  std::vector<const Step *> all = makers;
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Tensor &tensor = *plan.tensors()->Get(i);
    const auto others = written.find(tensor.buffer());
    if (all[i] || others == written.end())
      continue;
    for (const uint32_t other : others->second)
      if (!all[i] && runtime::overlap(*runtime::byteRange(tensor, {}),
                                      *runtime::byteRange(*plan.tensors()->Get(other), {})))
        all[i] = makers[other];
  }
  return all;
}

CategoryBytes persistentMemory(const Plan &plan) {
  struct Entry {
    uint64_t begin, end;
    Category category;
  };
  std::vector<Entry> entries;
  for (const Tensor *tensor : *plan.tensors()) {
    if (tensor->segment() != SegmentKind::persistent)
      continue;
    const ByteRange range = *runtime::byteRange(*tensor, {});
    entries.push_back({range.begin, range.end, tensor->category()});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tuple(a.begin, b.end, a.category) < std::tuple(b.begin, a.end, b.category);
  });
  CategoryBytes bytes{};
  uint64_t reached = 0;
  for (const Entry &entry : entries) {
    const uint64_t begin = std::max(entry.begin, reached);
    if (begin >= entry.end)
      continue;
    bytes[static_cast<size_t>(entry.category)] += entry.end - begin;
    reached = entry.end;
  }
  return bytes;
}

std::vector<std::string> drawMemory(const Plan &plan, const LiveMemory &memory, uint64_t bytes,
                                    size_t rows, size_t columns) {
  columns = std::min<size_t>(columns, memory.blocks);
  std::vector<std::string> picture(rows, std::string(columns, '.'));
  // A cell shows what is live in its middle. The first cell whose middle is at or behind `value`:
  const auto cellAt = [](double value, double size, size_t cells) {
    const double cell = value / size * static_cast<double>(cells) - 0.5;
    return static_cast<size_t>(std::clamp(std::ceil(cell), 0.0, static_cast<double>(cells)));
  };
  for (const LivePiece &piece : memory.pieces) {
    const char letter = categoryLetter(plan.tensors()->Get(piece.tensor)->category());
    const double size = static_cast<double>(bytes);
    const size_t rowEnd = cellAt(static_cast<double>(piece.end), size, rows);
    const size_t columnBegin = cellAt(piece.first, memory.blocks, columns);
    const size_t columnEnd = cellAt(piece.last + 1.0, memory.blocks, columns);
    for (size_t row = cellAt(static_cast<double>(piece.begin), size, rows); row < rowEnd; ++row)
      for (size_t column = columnBegin; column < columnEnd; ++column)
        picture[row][column] = letter;
  }
  return picture;
}

char categoryLetter(Category category) {
  // In the order of the enum: param, grad, opt_state, act.*, logits, workspace, comm, other.
  constexpr char letters[] = "pgoenastmfhkdlwcx";
  static_assert(sizeof(letters) - 1 == static_cast<size_t>(Category::MAX) + 1);
  return letters[static_cast<size_t>(category)];
}

} // namespace hydra::report
