// hydra-shard: parameters lie behind one another in vectors, of which each rank has a piece.
#include "dialects/hydra/Build.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SHARD
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-shard";

/// Elements of a row of a unit: what a kernel works on at a time.
constexpr int64_t kRow = 1024;
/// Parameters begin at multiples of 256 bytes, in formats of two bytes too.
constexpr int64_t kAlignment = 128;

int64_t elementsOf(ParamOp param) { return param.getBoundType().getNumElements(); }

/// Where a parameter lies: in the vector of a unit.
struct Place {
  ParamOp unit;
  int64_t offset = 0;
};

/// Parameters that are to lie side by side: those that the model joins, or one alone.
using Neighbours = SmallVector<ParamOp, 3>;

/// Forms units, and lets programs read parameters out of them.
class Sharder {
public:
  Sharder(ModelOp model, StringAttr over, int64_t ranks, int64_t wholeBelow, bool frozenWhole)
      : model(model), over(over), ranks(ranks), wholeBelow(wholeBelow), frozenWhole(frozenWhole) {}

  unsigned units = 0, parameters = 0;

  void run() {
    findUses();
    // What shares a unit is needed at about the same time, updated alike, and rounded alike.
    SmallVector<SmallVector<Neighbours>> lists;
    for (const Neighbours &neighbours : findNeighbours()) {
      ParamOp first = neighbours.front();
      auto *it = llvm::find_if(lists, [&](ArrayRef<Neighbours> list) {
        ParamOp other = list.front().front();
        return first.getElement() && sharesUnit(first, other);
      });
      if (it == lists.end())
        it = &lists.emplace_back();
      it->push_back(neighbours);
    }
    for (ArrayRef<Neighbours> list : lists)
      formUnit(list);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      readFromUnits(entry);
    for (ParamOp param : llvm::make_first_range(places))
      param.erase();
  }

private:
  //===-- What can be cut -------------------------------------------------------------------===//

  void findUses() {
    model.walk([&](UseOp use) {
      if (auto param = dyn_cast<ParamOp>(use.lookup()))
        uses[param].push_back(use);
    });
  }

  /// Whether a parameter is read by programs alone, and updated by nothing but an optimizer that
  /// works element by element.
  bool canBeCut(ParamOp param) {
    if (param.getFrozen() && frozenWhole)
      return false;
    const StringRef name = param.getGroup().value_or("default");
    for (GroupOp group : model.getBody().getOps<GroupOp>())
      if (group.getGroup() == name && !param.getFrozen() &&
          !GroupOp::lookupOptimizer(model.getContext(), group.getOptimizer())->worksByElement())
        return false;
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto symbol : entry.getReturn().getUpdated().getAsRange<FlatSymbolRefAttr>())
        if (symbol.getAttr() == param.getSymNameAttr())
          return false;
    return !param.getUnit() && llvm::all_of(uses.lookup(param), [](UseOp use) {
      return cast<EntryOp>(use->getParentOp()).isProgram();
    });
  }

  /// All that can be cut and is worth it, in the order of the model.
  SmallVector<Neighbours> findNeighbours() {
    DenseMap<ParamOp, Neighbours> joined; // by their first one
    DenseSet<ParamOp> others;
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto concat : entry.getBody().front().getOps<ConcatOp>()) {
        Neighbours parts;
        for (Value part : concat.getParts()) {
          ParamOp param = parameterOf(part);
          if (param && !joined.contains(param) && !others.contains(param) &&
              !llvm::is_contained(parts, param))
            parts.push_back(param);
        }
        const bool together =
            parts.size() == concat.getParts().size() && parts.size() > 1 && concat.getAxis() == 0 &&
            llvm::all_of(parts, [&](ParamOp param) { return sharesUnit(param, parts.front()); });
        if (!together)
          continue;
        joined[parts.front()] = parts;
        others.insert(parts.begin() + 1, parts.end());
      }
    SmallVector<Neighbours> all;
    for (ParamOp param : model.getBody().getOps<ParamOp>()) {
      if (others.contains(param))
        continue;
      Neighbours neighbours = joined.contains(param) ? joined[param] : Neighbours{param};
      int64_t elements = 0;
      for (ParamOp each : neighbours)
        elements += elementsOf(each);
      if (elements >= wholeBelow &&
          llvm::all_of(neighbours, [&](ParamOp p) { return canBeCut(p); }))
        all.push_back(neighbours);
    }
    return all;
  }

  bool sharesUnit(ParamOp a, ParamOp b) {
    return a.getElementAttr() == b.getElementAttr() && a.getGroupAttr() == b.getGroupAttr() &&
           a.getDtype() == b.getDtype() && a.getFrozen() == b.getFrozen() &&
           isRounded(a) == isRounded(b);
  }

  /// Whether all that reads a parameter may read it rounded.
  bool isRounded(ParamOp param) {
    SmallVector<Value> work;
    for (UseOp use : uses.lookup(param))
      work.push_back(use.getValue());
    while (!work.empty())
      for (OpOperand &operand : work.pop_back_val().getUses()) {
        auto precision = dyn_cast<PrecisionOpInterface>(operand.getOwner());
        if (!precision)
          return false;
        if (precision.precisionClass() == Precision::Move)
          llvm::append_range(work, operand.getOwner()->getResults());
        else if (precision.precisionClass() != Precision::Matmul ||
                 !precision.takesRounded(operand.getOperandNumber()))
          return false;
      }
    return true;
  }

  //===-- Units -----------------------------------------------------------------------------===//

  void formUnit(ArrayRef<Neighbours> list) {
    ParamOp first = list.front().front();
    MLIRContext *context = model.getContext();
    SmallVector<MemberAttr> members;
    int64_t end = 0;
    for (const Neighbours &neighbours : list) {
      end = llvm::alignTo(end, kAlignment);
      for (ParamOp param : neighbours) {
        members.push_back(MemberAttr::get(context, param.getSymNameAttr(),
                                          param.getBoundType().getShape(), end, param.getInit(),
                                          param.getAdapterAttr()));
        places[param].offset = end;
        end += elementsOf(param);
      }
    }
    OpBuilder b(first);
    const int64_t rows = llvm::alignTo(llvm::divideCeil(end, kRow), ranks);
    auto unit = ParamOp::create(b, madeBy(kPass, first.getLoc()), b.getStringAttr(nameOf(first)),
                                b.getI64ArrayAttr({rows, kRow}), TypeAttr::get(first.getDtype()),
                                InitAttr::get(context, InitKind::zeros, {}), first.getGroupAttr(),
                                Attribute(), StringAttr(), UnitAttr(), first.getFrozenAttr(),
                                first.getElementAttr(),
                                FlatUnitAttr::get(context, over, 1, members), AdapterAttr());
    for (const Neighbours &neighbours : list)
      for (ParamOp param : neighbours)
        places[param].unit = unit;
    ++units;
    parameters += members.size();
  }

  /// `unit.layers.3`, numbered where there are several.
  std::string nameOf(ParamOp first) {
    const std::string stem = ("unit." + first.getElement().value_or(first.getSymName())).str();
    std::string name = stem;
    for (unsigned i = 1; model.lookupSymbol(name); ++i)
      name = stem + "." + std::to_string(i);
    return name;
  }

  //===-- Programs --------------------------------------------------------------------------===//

  /// Reads every unit once, right before the first of its members is used, and takes members out of
  /// it.
  void readFromUnits(EntryOp entry) {
    llvm::MapVector<ParamOp, SmallVector<UseOp>> read; // by unit
    for (auto use : entry.getBody().front().getOps<UseOp>())
      if (auto param = dyn_cast<ParamOp>(use.lookup()); param && places.contains(param))
        read[places[param].unit].push_back(use);
    for (auto &[unit, members] : read) {
      Operation *first = nullptr;
      for (UseOp use : members)
        for (Operation *user : use->getUsers())
          if (!first || user->isBeforeInBlock(first))
            first = user;
      if (!first) {
        for (UseOp use : members)
          use.erase();
        continue;
      }
      OpBuilder b(first);
      const RankedTensorType type = unit.getBoundType();
      Value rows = UseOp::create(b, madeBy(kPass, unit.getLoc()), type, unit.getSymName());
      Value flat = build::reshape(b, madeBy(kPass, unit.getLoc()), rows, {type.getNumElements()});
      readJoined(b, flat, members);
      for (UseOp use : members)
        if (!use->use_empty()) {
          auto param = cast<ParamOp>(use.lookup());
          use.getValue().replaceAllUsesWith(slice(b, madeBy(kPass, use.getLoc()), flat,
                                                  places[param].offset,
                                                  build::shapeOf(use.getValue())));
        }
      for (UseOp use : members)
        use.erase();
    }
  }

  /// Parameters that lie as the model joins them are one slice.
  void readJoined(OpBuilder &b, Value flat, ArrayRef<UseOp> members) {
    SmallVector<ConcatOp> joins;
    for (UseOp use : members)
      for (Operation *user : use->getUsers())
        if (auto concat = dyn_cast<ConcatOp>(user); concat && !llvm::is_contained(joins, concat))
          joins.push_back(concat);
    for (ConcatOp concat : joins) {
      if (concat.getAxis() != 0)
        continue;
      std::optional<int64_t> start, end;
      const bool isOne = llvm::all_of(concat.getParts(), [&](Value part) {
        auto use = part.getDefiningOp<UseOp>();
        if (!use || !llvm::is_contained(members, use))
          return false;
        auto param = cast<ParamOp>(use.lookup());
        const int64_t offset = places[param].offset;
        const bool follows = !end || *end == offset;
        start = start.value_or(offset);
        end = offset + elementsOf(param);
        return follows;
      });
      if (!isOne)
        continue;
      Value whole =
          slice(b, madeBy(kPass, concat.getLoc()), flat, *start, build::shapeOf(concat.getY()));
      concat.getY().replaceAllUsesWith(whole);
      if (&*b.getInsertionPoint() == concat)
        b.setInsertionPointAfter(concat);
      concat.erase();
    }
  }

  static Value slice(OpBuilder &b, Location loc, Value flat, int64_t start,
                     ArrayRef<int64_t> shape) {
    return build::reshape(b, loc, build::slice(b, loc, flat, 0, start, productOf(shape)), shape);
  }

  ModelOp model;
  StringAttr over;
  int64_t ranks;
  int64_t wholeBelow;
  bool frozenWhole;
  DenseMap<ParamOp, SmallVector<UseOp>> uses;
  llvm::MapVector<ParamOp, Place> places; ///< of all members of units
};

struct Shard : impl::ShardBase<Shard> {
  using ShardBase::ShardBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    std::optional<MeshAttr> mesh = model.getMesh();
    if (!mesh) {
      model.emitOpError() << "@" << model.getSymName() << " has no mesh to cut parameters along";
      return signalPassFailure();
    }
    const StringAttr over = innermost(*mesh);
    Sharder work(model, over, mesh->size(over), wholeBelow, frozenWhole);
    work.run();
    units += work.units;
    parameters += work.parameters;
  }

private:
  /// Neighbouring ranks have the fastest links: they get the largest pieces, so that what goes over
  /// slower ones are pieces of these.
  StringAttr innermost(MeshAttr mesh) const {
    SmallVector<StringRef> axes;
    for (auto [name, size] :
         llvm::zip_equal(mesh.getAxes().take_back(levels), mesh.getSizes().take_back(levels)))
      if (size > 1)
        axes.insert(axes.begin(), name.getValue());
    if (axes.empty()) // all of a rank alone
      axes.push_back(mesh.getAxes().back());
    return StringAttr::get(mesh.getContext(), MeshAttr::joined(axes));
  }
};

} // namespace
} // namespace hydra
