// hydra-bucket-collectives: sums over ranks that are ready at about the same time become one.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_BUCKETCOLLECTIVES
#include "passes/Passes.h.inc"

namespace {

/// Puts the sums over ranks of one program into buckets.
class Buckets {
public:
  Buckets(Block &block, uint64_t most) : block(block), most(most) {}

  /// Buckets of two sums or more, and sums in them; sums that became a part of one over the whole.
  unsigned made = 0, taken = 0, joined = 0;

  void run() {
    joinSlices();
    for (Operation &op : llvm::make_early_inc_range(block)) {
      for (Value operand : op.getOperands())
        if (auto it = bucketOf.find(operand); it != bucketOf.end())
          close(it->second);
      if (auto reduce = dyn_cast<AllReduceOp>(op))
        place(reduce);
    }
    while (!open.empty())
      close(open.begin()->first);
  }

private:
  /// Sums in one type, of one type of elements, over one axis.
  using Key = std::tuple<Attribute, Type, Attribute>;
  struct Bucket {
    SmallVector<AllReduceOp> sums;
    uint64_t bytes = 0;
  };

  /// Sums of slices that make up a value (the gradients of weights that one matmul takes side by
  /// side) become slices of one sum: they then are exchanged where they were made.
  void joinSlices() {
    llvm::MapVector<std::pair<Value, Attribute>, SmallVector<AllReduceOp>> bySource;
    for (auto reduce : block.getOps<AllReduceOp>())
      if (SliceOp slice = reduce.getX().getDefiningOp<SliceOp>(); slice && !reduce.getStart())
        bySource[{slice.getX(), reduce.getOverAttr()}].push_back(reduce);
    for (auto &[key, reduces] : bySource)
      if (makeUp(key.first, reduces)) {
        AllReduceOp first = reduces.front();
        OpBuilder b(first);
        Value sum = AllReduceOp::create(b, first.getLoc(), key.first, Value(), first.getOverAttr(),
                                        first.getRanksAttr(), first.getSumAttr());
        for (AllReduceOp reduce : reduces) {
          auto slice = reduce.getX().getDefiningOp<SliceOp>();
          // Where it is used, for that closes the bucket that the sum will be in.
          b.setInsertionPoint(firstUser(reduce));
          reduce.getY().replaceAllUsesWith(
              SliceOp::create(b, reduce.getLoc(), sum, slice.getAxisAttr(), slice.getStartAttr(),
                              slice.getSizeAttr()));
          reduce.erase();
        }
        joined += reduces.size();
      }
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

  void place(AllReduceOp reduce) {
    const Key key{reduce.getOverAttr(), build::typeOf(reduce.getX()).getElementType(),
                  reduce.getSumAttr()};
    const auto bytes = static_cast<uint64_t>(bytesOf(reduce.getX().getType()));
    if (auto it = open.find(key); it != open.end() && it->second.bytes + bytes > most)
      close(key);
    Bucket &bucket = open[key];
    bucket.sums.push_back(reduce);
    bucket.bytes += bytes;
    bucketOf[reduce.getY()] = key;
  }

  /// Nothing has used a sum of the bucket yet: they are taken together where the last one is.
  void close(const Key key) {
    auto it = open.find(key);
    if (it == open.end())
      return;
    Bucket bucket = std::move(it->second);
    open.erase(it);
    for (AllReduceOp reduce : bucket.sums)
      bucketOf.erase(reduce.getY());
    if (bucket.sums.size() < 2)
      return;
    ++made;
    taken += bucket.sums.size();
    join(bucket);
  }

  static void join(Bucket &bucket) {
    AllReduceOp last = bucket.sums.back();
    OpBuilder b(last);
    Location loc = last.getLoc();
    SmallVector<Value> parts;
    for (AllReduceOp reduce : bucket.sums) {
      Value x = begun(b, reduce);
      parts.push_back(build::reshape(b, reduce.getLoc(), x, {build::typeOf(x).getNumElements()}));
    }
    Value all = ConcatOp::create(b, loc, parts, b.getI64IntegerAttr(0));
    Value sums = AllReduceOp::create(b, loc, all, Value(), last.getOverAttr(), last.getRanksAttr(),
                                     last.getSumAttr());
    int64_t start = 0;
    for (AllReduceOp reduce : bucket.sums) {
      const int64_t size = build::typeOf(reduce.getX()).getNumElements();
      Value own = SliceOp::create(b, reduce.getLoc(), sums, b.getI64IntegerAttr(0),
                                  b.getI64IntegerAttr(start), b.getI64IntegerAttr(size));
      start += size;
      own = build::reshape(b, reduce.getLoc(), own, build::shapeOf(reduce.getX()));
      if (reduce.getSum() && reduce.getStart())
        own = AddOp::create(b, reduce.getLoc(), reduce.getStart(), own);
      reduce.getY().replaceAllUsesWith(own);
      reduce.erase();
    }
  }

  /// What a rank adds: on the first one, to what the sum begins with, unless that would be rounded.
  static Value begun(OpBuilder &b, AllReduceOp reduce) {
    Value x = reduce.getX();
    if (!reduce.getStart() || reduce.getSum())
      return x;
    return build::onFirstRank(b, reduce.getLoc(), reduce.getOverAttr(), reduce.getRanks(),
                              AddOp::create(b, reduce.getLoc(), reduce.getStart(), x), x);
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
