// Whose content each byte holds: a program run over buffers' numbers instead of values.
//
// A map from disjoint intervals of the transient segment to the buffer that wrote them last. A read
// must find its own buffer in all of its bytes. What a write with gaps leaves out counts as
// written, since no other buffer has a place there. The body of a loop is taken twice: once from
// what comes before it, once from what its own end leaves behind. Of a switch every case starts
// from the same content, and the last one, which works on all rows, is what remains; in a case a
// write of some rows stands for one of the whole buffer, since launches name whole tensors there
// and stop at the rows of the case.
#include "runtime/plan/ContentVerifier.h"

#include "runtime/plan/Accesses.h"
#include "runtime/plan/OrderVerifier.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace hydra::runtime {

using namespace planfile;

namespace {

/// By first byte; intervals are disjoint and not empty.
struct Owned {
  uint64_t end;
  uint32_t buffer;
};
using Contents = std::map<uint64_t, Owned>;

class ContentVerifier {
public:
  ContentVerifier(const Plan &plan, const Program &program, const Path &path)
      : plan(plan), program(program), path(path) {}

  void verify() {
    for (const Input *input : *program.inputs())
      write(accessOf(input->tensor(), Access::write));
    visit(path, *program.blocks());
    for (flatbuffers::uoffset_t i = 0; i < program.outputs()->size(); ++i)
      read(Path(Path(path, "outputs", i), "tensor"),
           accessOf(program.outputs()->Get(i)->tensor(), Access::read));
  }

private:
  struct Extent {
    uint64_t begin, end;
  };

  const Tensor &tensorOf(const ByteAccess &access) const {
    return *plan.tensors()->Get(access.tensor);
  }

  ByteAccess accessOf(uint32_t index, Access access) const {
    const Tensor &tensor = *plan.tensors()->Get(index);
    return {index, tensor.segment(), access, *byteRange(tensor, shiftsOf(index, loops))};
  }

  bool isChecked(const ByteAccess &access) const {
    return access.segment == SegmentKind::transient && tensorOf(access).buffer() != 0;
  }

  //---- Contents --------------------------------------------------------------------------------

  void split(uint64_t byte) {
    const auto behind = contents.upper_bound(byte);
    if (behind == contents.begin())
      return;
    const auto before = std::prev(behind);
    if (before->first == byte || before->second.end <= byte)
      return;
    contents.emplace_hint(behind, byte, before->second);
    before->second.end = byte;
  }

  void write(const ByteAccess &access) {
    if (!isChecked(access))
      return;
    const Extent whole = switches ? extents.at(tensorOf(access).buffer()) : Extent{UINT64_MAX, 0};
    const uint64_t begin = std::min(access.bytes.begin, whole.begin),
                   end = std::max(access.bytes.end, whole.end);
    split(begin);
    split(end);
    contents.erase(contents.lower_bound(begin), contents.lower_bound(end));
    contents.emplace(begin, Owned{end, tensorOf(access).buffer()});
  }

  void read(const Path &at, const ByteAccess &access) {
    if (!isChecked(access) || !access.bytes.exact)
      return;
    const auto check = [&](uint64_t begin, uint64_t end, uint32_t owner) {
      if (begin < end && owner != tensorOf(access).buffer() &&
          overlap(access.bytes, ByteRange{begin, end}))
        fail(at, access, std::max(begin, access.bytes.begin), owner);
    };
    uint64_t reached = access.bytes.begin;
    auto next = contents.upper_bound(reached);
    if (next != contents.begin() && std::prev(next)->second.end > reached)
      --next;
    for (; next != contents.end() && next->first < access.bytes.end; ++next) {
      check(reached, next->first, 0);
      check(std::max(next->first, access.bytes.begin), std::min(next->second.end, access.bytes.end),
            next->second.buffer);
      reached = next->second.end;
    }
    check(reached, access.bytes.end, 0);
  }

  [[noreturn]] void fail(const Path &at, const ByteAccess &access, uint64_t byte,
                         uint32_t owner) const {
    const auto name = tensorOf(access).name()->string_view();
    if (owner == 0)
      failAt(at, "reads {}, but nothing has written byte {} of the transient segment", name, byte);
    failAt(at, "needs {}, but byte {} of the transient segment holds {}", name, byte,
           nameOfBuffer(owner));
  }

  std::string_view nameOfBuffer(uint32_t buffer) const {
    for (const Tensor *tensor : *plan.tensors())
      if (tensor->buffer() == buffer)
        return tensor->name()->string_view();
    return "another buffer";
  }

  //---- Blocks ----------------------------------------------------------------------------------

  void visit(const Path &owner, const BlockList &blocks) {
    for (flatbuffers::uoffset_t i = 0; i < blocks.size(); ++i) {
      const Path at(owner, "blocks", i);
      if (const Step *step = blocks.Get(i)->node_as_Step())
        visitStep(Path(at, "step"), *step, *blocks.Get(i));
      else if (const Loop *loop = blocks.Get(i)->node_as_Loop())
        visitLoop(Path(at, "loop"), *loop);
      else
        visitSwitch(Path(at, "switch"), *blocks.Get(i)->node_as_Switch());
    }
  }

  void visitLoop(const Path &at, const Loop &loop) {
    loops.push_back(&loop);
    for (uint64_t round = 0; round < std::min<uint64_t>(loop.count(), 2); ++round)
      visit(at, *loop.blocks());
    loops.pop_back();
  }

  void visitSwitch(const Path &at, const Switch &choice) {
    read(Path(at, "selector"), accessOf(choice.selector(), Access::read));
    const Contents before = contents;
    findExtents();
    ++switches;
    for (flatbuffers::uoffset_t i = 0; i < choice.cases()->size(); ++i) {
      contents = before;
      visit(Path(at, "cases", i), *choice.cases()->Get(i)->blocks());
    }
    --switches;
  }

  /// The bytes that all tensors of a buffer cover.
  void findExtents() {
    if (!extents.empty())
      return;
    for (const Tensor *tensor : *plan.tensors()) {
      const ByteRange bytes = *byteRange(*tensor, {});
      Extent &extent =
          extents.try_emplace(tensor->buffer(), Extent{bytes.begin, bytes.end}).first->second;
      extent = {std::min(extent.begin, bytes.begin), std::max(extent.end, bytes.end)};
    }
  }

  /// Everything is read before anything is written, and all of it must be there in the end: a
  /// kernel still reads while it writes.
  void visitStep(const Path &at, const Step &step, const Block &block) {
    std::vector<ByteAccess> accesses;
    collectAccesses(plan, block, loops, accesses);
    const bool call = step.action_type() != Action::Launch;
    for (const ByteAccess &access : accesses)
      // What a launch reads and writes may be what its own first half makes.
      if (access.access == Access::read || (call && access.access == Access::read_write))
        read(at, access);
    for (const ByteAccess &access : accesses)
      if (access.writes())
        write(access);
    for (const ByteAccess &access : accesses)
      read(at, access);
    if (call || plan.target()->kind() == TargetKind::cpu)
      checkArguments(at, accesses, call);
    else if (const Launch *launch = step.action_as_Launch())
      checkInstances(at, accesses, plan.kernels()->Get(launch->kernel())->arg_count());
  }

  /// Arguments of one step that share bytes, one of them written: none for a library call, which
  /// takes apart what it is given in its own order; for a generated kernel only the very same
  /// elements, which it may write one by one over what it has read.
  void checkArguments(const Path &at, const std::vector<ByteAccess> &accesses, bool call) const {
    forEachShared(accesses, [&](size_t i, size_t j) {
      const bool inPlace = !call && sameElements(accesses[i], accesses[j]) &&
                           !(accesses[i].writes() && accesses[j].writes());
      if (!inPlace)
        failShared(at, accesses, i, j);
    });
  }

  /// Instances of one kernel run at the same time, so that none may touch what another one writes.
  void checkInstances(const Path &at, const std::vector<ByteAccess> &accesses, size_t each) const {
    if (each == 0 || accesses.size() <= each)
      return;
    forEachShared(accesses, [&](size_t i, size_t j) {
      if (i / each != j / each)
        failShared(at, accesses, i, j);
    });
  }

  /// Whether all loops shift two arguments alike.
  bool sameShifts(const ByteAccess &a, const ByteAccess &b) const {
    return std::all_of(loops.begin(), loops.end(), [&](const Loop *loop) {
      const LoopStride *first = loop->strides()->LookupByKey(a.tensor),
                       *second = loop->strides()->LookupByKey(b.tensor);
      return (first ? first->bytes() : 0) == (second ? second->bytes() : 0);
    });
  }

  /// Whether two arguments are the same elements, under one name or two.
  bool sameElements(const ByteAccess &a, const ByteAccess &b) const {
    if (a.tensor == b.tensor)
      return true;
    const Tensor &x = tensorOf(a), &y = tensorOf(b);
    return x.segment() == y.segment() && x.offset() == y.offset() && x.dtype() == y.dtype() &&
           std::ranges::equal(*x.shape(), *y.shape()) &&
           std::ranges::equal(*x.strides(), *y.strides()) && sameShifts(a, b);
  }

  /// Whether two arguments have bytes in common at the same time. Tensors that all loops shift
  /// alike are compared within one iteration.
  bool share(const ByteAccess &a, const ByteAccess &b) const {
    const auto together = [](const ByteRange &x, const ByteRange &y) {
      return x.exact && y.exact && overlap(x, y);
    };
    if (!tensorOf(a).buffer() || !tensorOf(b).buffer() || !together(a.bytes, b.bytes))
      return false;
    return !sameShifts(a, b) || together(*byteRange(tensorOf(a), {}), *byteRange(tensorOf(b), {}));
  }

  /// Calls `found` for pairs of accesses to the same bytes of which one at least writes.
  template <typename Found>
  void forEachShared(const std::vector<ByteAccess> &accesses, Found found) const {
    std::vector<size_t> order(accesses.size()), open;
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    const auto begin = [&](size_t i) {
      return std::pair(accesses[i].segment, accesses[i].bytes.begin);
    };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return begin(a) < begin(b); });
    for (const size_t i : order) {
      std::erase_if(open, [&](size_t j) {
        return accesses[j].segment != accesses[i].segment ||
               accesses[j].bytes.end <= accesses[i].bytes.begin;
      });
      for (const size_t j : open)
        if ((accesses[i].writes() || accesses[j].writes()) && share(accesses[i], accesses[j]))
          found(std::min(i, j), std::max(i, j));
      open.push_back(i);
    }
  }

  [[noreturn]] void failShared(const Path &at, const std::vector<ByteAccess> &accesses, size_t i,
                               size_t j) const {
    failAt(at, "arguments {} ({}) and {} ({}) share bytes, and {} is written", i,
           tensorOf(accesses[i]).name()->string_view(), j,
           tensorOf(accesses[j]).name()->string_view(), accesses[j].writes() ? j : i);
  }

  const Plan &plan;
  const Program &program;
  const Path &path;
  LoopNest loops;
  Contents contents;                            ///< of the transient segment
  std::unordered_map<uint32_t, Extent> extents; ///< of buffers; found when a switch needs them
  unsigned switches = 0;                        ///< around the current block
};

} // namespace

void verifyContents(const Plan &plan, const Program &program, const Path &path) {
  ContentVerifier(plan, program, path).verify();
}

} // namespace hydra::runtime
