// hydra-bucket-collectives: sums over ranks that are ready at about the same time become one.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_BUCKETCOLLECTIVES
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-bucket-collectives";

/// Puts the sums over ranks of one program into buckets.
class Buckets {
public:
  Buckets(Block &block, uint64_t most) : block(block), most(most) {}

  /// Buckets of two sums or more, and sums in them; sums that became a part of one over the whole.
  unsigned made = 0, taken = 0, joined = 0;

  void run() {
    while (joinSlices()) { // sums over one axis, then those of them over the next
    }
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto reduce = dyn_cast<AllReduceOp>(op); reduce && placeBehind(reduce))
        continue;
      for (Value operand : op.getOperands())
        if (auto it = bucketOf.find(operand); it != bucketOf.end())
          close(it->second);
      if (auto reduce = dyn_cast<AllReduceOp>(op))
        place({reduce, reduce});
    }
    while (!open.empty())
      close(open.begin()->first);
  }

private:
  /// Sums in one type, of one type of elements, over one axis, and then over another one or none.
  using Key = std::tuple<Attribute, Type, Attribute, Attribute>;
  struct Sum {
    AllReduceOp first;
    AllReduceOp last; ///< of the first, over another axis; or the first itself
  };
  struct Bucket {
    SmallVector<Sum> sums;
    uint64_t bytes = 0;
  };

  /// Sums of slices that make up a value (the gradients of weights that one matmul takes side by
  /// side) become slices of one sum: they then are exchanged where they were made.
  bool joinSlices() {
    const unsigned before = joined;
    llvm::MapVector<std::pair<Value, Attribute>, SmallVector<AllReduceOp>> bySource;
    for (auto reduce : block.getOps<AllReduceOp>())
      if (SliceOp slice = reduce.getX().getDefiningOp<SliceOp>(); slice && !reduce.getStart())
        bySource[{slice.getX(), reduce.getOverAttr()}].push_back(reduce);
    llvm::SmallDenseSet<Value> gone; // sums that have become slices; those of their slices are next
    for (auto &[key, reduces] : bySource)
      if (!gone.contains(key.first) && makeUp(key.first, reduces)) {
        AllReduceOp first = reduces.front();
        OpBuilder b(first);
        Value sum =
            AllReduceOp::create(b, madeBy(kPass, first.getLoc()), key.first, Value(),
                                first.getOverAttr(), first.getRanksAttr(), first.getSumAttr());
        for (AllReduceOp reduce : reduces) {
          auto slice = reduce.getX().getDefiningOp<SliceOp>();
          // Where it is used, for that closes the bucket that the sum will be in.
          b.setInsertionPoint(firstUser(reduce));
          reduce.getY().replaceAllUsesWith(
              SliceOp::create(b, madeBy(kPass, reduce.getLoc()), sum, slice.getAxisAttr(),
                              slice.getStartAttr(), slice.getSizeAttr()));
          gone.insert(reduce.getY());
          reduce.erase();
          if (slice.use_empty())
            slice.erase();
        }
        joined += reduces.size();
      }
    return joined > before;
  }

  Operation *firstUser(AllReduceOp reduce) {
    Operation *first = block.getTerminator();
    for (Operation *user : reduce.getY().getUsers())
      if (Operation *at = block.findAncestorOpInBlock(*user); at->isBeforeInBlock(first))
        first = at;
    return first;
  }

  /// Whether the slices that are summed up cover a value, each element of it once.
  static bool makeUp(Value whole, ArrayRef<AllReduceOp> reduces) {
    auto sliceOf = [](AllReduceOp reduce) { return reduce.getX().getDefiningOp<SliceOp>(); };
    SmallVector<AllReduceOp> order(reduces);
    llvm::sort(order, [&](AllReduceOp a, AllReduceOp b) {
      return sliceOf(a).getStart() < sliceOf(b).getStart();
    });
    const int64_t axis = sliceOf(order.front()).getAxis();
    int64_t end = 0;
    for (AllReduceOp reduce : order) {
      SliceOp slice = sliceOf(reduce);
      if (slice.getAxis() != axis || slice.getStart() != end)
        return false;
      end += slice.getSize();
    }
    return end == build::shapeOf(whole)[axis];
  }

  void place(Sum sum) {
    AllReduceOp first = sum.first;
    const Attribute then = sum.last == first ? Attribute() : sum.last.getOverAttr();
    const Key key{first.getOverAttr(), build::typeOf(first.getX()).getElementType(),
                  first.getSumAttr(), then};
    const uint64_t bytes = bytesFor(first);
    if (auto it = open.find(key); it != open.end() && it->second.bytes + bytes > most)
      close(key);
    Bucket &bucket = open[key];
    bucket.sums.push_back(sum);
    bucket.bytes += bytes;
    bucketOf[sum.last.getY()] = key;
  }

  static uint64_t bytesFor(AllReduceOp sum) {
    return static_cast<uint64_t>(bytesOf(sum.getX().getType()));
  }

  /// Where what is summed up over an axis is summed up over another one, both go into one bucket:
  /// whether that is so.
  bool placeBehind(AllReduceOp next) {
    auto first = next.getX().getDefiningOp<AllReduceOp>();
    auto known = first ? bucketOf.find(first.getY()) : bucketOf.end();
    if (known == bucketOf.end() || !first.getY().hasOneUse() || first.getStart() ||
        next.getStart() || next.getSum())
      return false;
    Bucket &bucket = open[known->second];
    llvm::erase_if(bucket.sums, [&](const Sum &sum) { return sum.last == first; });
    bucket.bytes -= bytesFor(first);
    bucketOf.erase(known);
    place({first, next});
    return true;
  }

  /// Nothing has used a sum of the bucket yet: they are taken together where the last one is.
  void close(const Key key) {
    auto it = open.find(key);
    if (it == open.end())
      return;
    Bucket bucket = std::move(it->second);
    open.erase(it);
    for (Sum sum : bucket.sums)
      bucketOf.erase(sum.last.getY());
    if (bucket.sums.size() < 2)
      return;
    ++made;
    taken += bucket.sums.size();
    join(bucket);
  }

  static void join(Bucket &bucket) {
    Sum last = bucket.sums.back();
    OpBuilder b(last.last);
    Location loc = madeBy(kPass, last.last.getLoc());
    SmallVector<Value> parts;
    for (Sum sum : bucket.sums) {
      Value x = begun(b, sum.first);
      parts.push_back(build::reshape(b, madeBy(kPass, sum.first.getLoc()), x,
                                     {build::typeOf(x).getNumElements()}));
    }
    Value all = ConcatOp::create(b, loc, parts, b.getI64IntegerAttr(0));
    Value sums = AllReduceOp::create(b, loc, all, Value(), last.first.getOverAttr(),
                                     last.first.getRanksAttr(), last.first.getSumAttr());
    if (last.last != last.first)
      sums = AllReduceOp::create(b, loc, sums, Value(), last.last.getOverAttr(),
                                 last.last.getRanksAttr(), TypeAttr());
    int64_t start = 0;
    for (auto [reduce, end] : bucket.sums) {
      const int64_t size = build::typeOf(reduce.getX()).getNumElements();
      Value own = SliceOp::create(b, madeBy(kPass, reduce.getLoc()), sums, b.getI64IntegerAttr(0),
                                  b.getI64IntegerAttr(start), b.getI64IntegerAttr(size));
      start += size;
      own = build::reshape(b, madeBy(kPass, reduce.getLoc()), own, build::shapeOf(reduce.getX()));
      if (reduce.getSum() && reduce.getStart())
        own = AddOp::create(b, madeBy(kPass, reduce.getLoc()), reduce.getStart(), own);
      end.getY().replaceAllUsesWith(own);
      if (end != reduce)
        end.erase();
      reduce.erase();
    }
  }

  /// What a rank adds: on the first one, to what the sum begins with, unless that would be rounded.
  static Value begun(OpBuilder &b, AllReduceOp reduce) {
    Value x = reduce.getX();
    if (!reduce.getStart() || reduce.getSum())
      return x;
    return build::onFirstRank(
        b, madeBy(kPass, reduce.getLoc()), reduce.getOverAttr(), reduce.getRanks(),
        AddOp::create(b, madeBy(kPass, reduce.getLoc()), reduce.getStart(), x), x);
  }

  Block &block;
  uint64_t most; ///< bytes of a bucket
  llvm::MapVector<Key, Bucket> open;
  DenseMap<Value, Key> bucketOf; ///< by sum, while its bucket is open
};

struct BucketCollectives : impl::BucketCollectivesBase<BucketCollectives> {
  using BucketCollectivesBase::BucketCollectivesBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      Buckets work(entry.getBody().front(), bytes);
      work.run();
      buckets += work.made;
      sums += work.taken;
      joined += work.joined;
    }
  }
};

} // namespace
} // namespace hydra
