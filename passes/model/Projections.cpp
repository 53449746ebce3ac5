// Linear layers of one input as one layer.
#include "passes/model/Projections.h"

#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

namespace {

/// The parameter that a value reads, or null.
UseOp parameterUse(Value v) {
  auto use = v.getDefiningOp<UseOp>();
  return use && isa<ParamOp>(use.lookup()) ? use : UseOp();
}

/// Where several layers of one part of the model are: `layers.3.attn.wq+wk+wv`.
std::string joinedPath(ArrayRef<LinearOp> layers) {
  std::string path;
  for (LinearOp layer : layers) {
    StringRef own = pathOf(layer.getLoc()), parent = StringRef(path).rsplit('.').first;
    if (path.empty())
      path = own;
    else if (own.consume_front(parent) && own.consume_front(".") && !own.contains('.'))
      path += ("+" + own).str();
  }
  return path;
}

/// The values behind one another along their first axis. Parameters are read before `at`.
Value joined(OpBuilder &b, Location loc, Operation *at, ArrayRef<Value> parameters) {
  for (Value parameter : parameters) {
    Operation *use = parameter.getDefiningOp();
    if (!use->isBeforeInBlock(at))
      use->moveBefore(at);
  }
  return ConcatOp::create(b, withCategory(loc, Category::param), parameters,
                          b.getI64IntegerAttr(0));
}

/// Whether an operation passes its operands on, element by element, row by row or as views: shapes,
/// rotations, norms. Not a matmul with another weight.
bool passesOn(Operation *op) {
  auto storage = dyn_cast<StorageOpInterface>(op);
  return isa<RowWiseOpInterface, ConcatOp>(op) || (storage && storage.viewedOperand() == 0u);
}

} // namespace

Operation *attentionOf(Value v) {
  Operation *found = nullptr;
  llvm::SetVector<Value> values;
  llvm::SetVector<Operation *> sums;
  values.insert(v);
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isa<AttentionOp, CachedAttentionOp>(user)) {
        if (found && found != user)
          return nullptr;
        found = user;
      } else if (passesOn(user)) {
        values.insert(user->result_begin(), user->result_end());
        if (isa<AddOp, SubOp>(user))
          sums.insert(user);
      } else {
        return nullptr;
      }
    }
  auto ofOwn = [&](Value operand) {
    return values.contains(operand) || operand.getDefiningOp<UseOp>();
  };
  return llvm::all_of(sums, [&](Operation *sum) { return llvm::all_of(sum->getOperands(), ofOwn); })
             ? found
             : nullptr;
}

Operation *gateOf(Value v) {
  if (!v.hasOneUse())
    return nullptr;
  Operation *user = *v.user_begin();
  if (user->hasTrait<Elementwise>() && user->getNumOperands() == 1 &&
      user->getResult(0).hasOneUse())
    user = *user->getResult(0).user_begin();
  return isa<MulOp>(user) ? user : nullptr;
}

bool isAdapter(LinearOp linear) {
  UseOp use = parameterUse(linear.getW());
  return use && cast<ParamOp>(use.lookup()).getAdapter();
}

/// Linear layers of every input, in program order, whose weights and biases are parameters: those
/// that can become one layer. Inputs with a single one are left out.
static LayerGroups siblingProjections(EntryOp entry) {
  // By input, what parameters they have, and attributes: types and formats. Of joined weights a
  // gradient would be of all, also of those that are frozen.
  llvm::MapVector<std::tuple<Value, unsigned, Attribute>, SmallVector<LinearOp>> byInput;
  auto isFrozen = [](Value v) -> unsigned {
    return cast<ParamOp>(parameterUse(v).lookup()).getFrozen();
  };
  for (auto linear : entry.getBody().front().getOps<LinearOp>()) {
    const bool biased = linear.getB() != nullptr;
    if (!parameterUse(linear.getW()) || (biased && !parameterUse(linear.getB())))
      continue;
    const unsigned kind = unsigned(isAdapter(linear)) | isFrozen(linear.getW()) << 1 |
                          unsigned(biased) << 2 | (biased ? isFrozen(linear.getB()) << 3 : 0);
    byInput[{linear.getX(), kind, linear->getPropertiesAsAttribute()}].push_back(linear);
  }
  LayerGroups siblings;
  for (auto &[input, layers] : byInput)
    if (layers.size() > 1)
      siblings.push_back(layers);
  return siblings;
}

/// Replaces layers of one list of siblingProjections by one with their weights behind one another,
/// and slices of its result.
static void fuse(StringRef pass, ArrayRef<LinearOp> layers) {
  LinearOp first = layers.front();
  OpBuilder b(first);
  const Location loc = madeBy(pass, withPath(first.getLoc(), joinedPath(layers)));
  Value weight = joined(b, loc, first,
                        llvm::map_to_vector(layers, [](LinearOp l) -> Value { return l.getW(); }));
  Value bias;
  if (first.getB())
    bias = joined(b, loc, first,
                  llvm::map_to_vector(layers, [](LinearOp l) -> Value { return l.getB(); }));
  Value whole = LinearOp::create(b, loc, first.getX(), weight, bias, first.getDtypeAttr(),
                                 first.getReducedReductionAttr(), first.getComputeAttr());
  int64_t axis = build::shapeOf(whole).size() - 1, start = 0;
  for (LinearOp layer : layers) {
    int64_t size = build::shapeOf(layer.getY()).back();
    Value part = SliceOp::create(b, madeBy(pass, layer.getLoc()), whole, b.getI64IntegerAttr(axis),
                                 b.getI64IntegerAttr(start), b.getI64IntegerAttr(size));
    layer.getY().replaceAllUsesWith(part);
    start += size;
  }
  for (LinearOp layer : layers)
    layer.erase();
}

LogicalResult fuseProjections(ModuleOp module, StringRef pass, PassStatistic &fused,
                              function_ref<LayerGroups(ArrayRef<LinearOp>)> groupsOf) {
  ModelOp model = findBoundModel(module);
  if (!model)
    return failure();
  for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
    LayerGroups all = siblingProjections(entry);
    for (ArrayRef<LinearOp> siblings : all)
      for (ArrayRef<LinearOp> layers : groupsOf(siblings)) {
        if (layers.size() < 2)
          continue;
        fuse(pass, layers);
        fused += layers.size();
      }
  }
  return success();
}

} // namespace hydra
