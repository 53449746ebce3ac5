// What the lines of a model cost once it is bound.
#include "tools/hydra-lsp/Uses.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace hydra::lsp {

/// Around an operation: its program, how often all loops but that over layers run it, and for which
/// layers it is there.
struct Uses::Frame {
  StringRef program;
  uint64_t times = 1;
  std::optional<SmallVector<int64_t>> layers;
  StringRef stack;

  uint64_t count() const {
    return llvm::SaturatingMultiply<uint64_t>(times, layers ? layers->size() : 1);
  }
  /// `layers 0 to 11`; of those that are not one behind the other the numbers.
  std::string layerText() const {
    if (!layers || layers->empty())
      return "";
    std::string text = (stack + " " + Twine(layers->front())).str();
    if (layers->size() == 1)
      return text;
    if (layers->back() - layers->front() + 1 == static_cast<int64_t>(layers->size()))
      return text + " to " + std::to_string(layers->back());
    for (int64_t layer : ArrayRef(*layers).drop_front().take_front(15))
      text += ", " + std::to_string(layer);
    return layers->size() > 16 ? text + ", …" : text;
  }
};

static Environment environmentOf(MLIRContext *context, int64_t layer) {
  Environment environment;
  environment.values[kLayerSymbol] = Builder(context).getI64IntegerAttr(layer);
  return environment;
}

static bool dependsOnLayer(Operation &op) {
  return llvm::any_of(op.getAttrs(), [](NamedAttribute a) { return hasExpr(a.getValue()); });
}

Uses::Uses(ModelOp bound) {
  for (EntryOp entry : bound.getBody().getOps<EntryOp>())
    if (entry.isProgram()) {
      Frame frame;
      frame.program = entry.getSymName();
      visit(entry.getBody().front(), frame);
    }
}

void Uses::visit(Block &block, const Frame &frame) {
  if (frame.count() == 0)
    return;
  for (BlockArgument argument : block.getArguments())
    if (std::optional<Place> place = placeOf(argument.getLoc()))
      if (auto &list = arguments[*place]; !llvm::is_contained(list, argument))
        list.push_back(argument);
  for (Operation &op : block.without_terminator()) {
    if (std::optional<Place> place = placeOf(op.getLoc()))
      add(op, *place, frame);
    if (auto loop = dyn_cast<ForOp>(op)) {
      Frame inside = frame;
      inside.times = frame.count();
      inside.stack = loop.getStack();
      auto stack = op.getParentOfType<ModelOp>().lookupSymbol<StackOp>(loop.getStackAttr());
      inside.layers = llvm::to_vector(llvm::seq<int64_t>(0, stack.getCount()));
      visit(loop.getBody().front(), inside);
    } else if (auto when = dyn_cast<WhenOp>(op)) {
      Frame taken = frame, other = frame;
      if (frame.layers) {
        auto holds = [&](int64_t layer) {
          FailureOr<Attribute> value =
              evaluate(when.getCondition(), environmentOf(op.getContext(), layer),
                       [&] { return op.emitOpError(); });
          return succeeded(value) && *value == BoolAttr::get(op.getContext(), true);
        };
        llvm::erase_if(*taken.layers, [&](int64_t layer) { return !holds(layer); });
        llvm::erase_if(*other.layers, holds);
      }
      visit(when.getThenRegion().front(), taken);
      if (!when.getElseRegion().empty())
        visit(when.getElseRegion().front(), other);
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      Frame inside = frame;
      inside.times = llvm::SaturatingMultiply<uint64_t>(frame.times, loop.getScan().getCount());
      visit(loop.getEntry().getBody().front(), inside);
    }
  }
}

void Uses::add(Operation &op, Place place, const Frame &frame) {
  Use use{.op = &op, .program = frame.program, .count = frame.count(), .layers = frame.layerText()};
  auto work = [&](Operation *one, uint64_t times) {
    auto cost = dyn_cast<CostOpInterface>(one);
    if (!cost)
      return;
    use.flops = llvm::SaturatingAdd<uint64_t>(
        use.flops, llvm::SaturatingMultiply<uint64_t>(cost.flops(), times));
    use.bytes = llvm::SaturatingAdd<uint64_t>(
        use.bytes, llvm::SaturatingMultiply<uint64_t>(cost.bytes(), times));
  };
  if (!frame.layers || !dependsOnLayer(op) || op.getNumRegions() > 0) {
    if (!dependsOnLayer(op))
      work(&op, use.count);
  } else {
    use.alike = false;
    for (int64_t layer : *frame.layers) {
      Operation *one = op.clone();
      bool known = true;
      for (NamedAttribute a : op.getAttrs())
        if (hasExpr(a.getValue())) {
          FailureOr<Attribute> value = evaluate(a.getValue(), environmentOf(op.getContext(), layer),
                                                [&] { return op.emitOpError(); });
          known &= succeeded(value);
          if (known)
            one->setAttr(a.getName(), *value);
        }
      if (known)
        work(one, frame.times);
      one->erase();
    }
  }
  std::vector<Use> &here = places[place];
  for (Place call : callPlacesOf(op.getLoc()))
    called[call].push_back({place, here.size()});
  here.push_back(std::move(use));
}

ArrayRef<Use> Uses::at(Place place) const {
  auto found = places.find(place);
  return found == places.end() ? ArrayRef<Use>() : ArrayRef<Use>(found->second);
}

SmallVector<const Use *> Uses::between(Place begin, Place end) const {
  llvm::SetVector<const Use *, SmallVector<const Use *>> list;
  for (auto at = places.lower_bound(begin); at != places.end() && at->first < end; ++at)
    for (const Use &use : at->second)
      list.insert(&use);
  for (auto at = called.lower_bound(begin); at != called.end() && at->first < end; ++at)
    for (auto [place, number] : at->second)
      list.insert(&places.at(place)[number]);
  return list.takeVector();
}

ArrayRef<Value> Uses::argumentsAt(Place place) const {
  auto found = arguments.find(place);
  return found == arguments.end() ? ArrayRef<Value>() : ArrayRef<Value>(found->second);
}

} // namespace hydra::lsp
