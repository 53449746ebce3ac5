// Programs and bodies of loops written again for one rank: part of hydra-partition.
#pragma once

#include "dialects/hydra/Hydra.h"

#include <map>
#include <string>
#include <utility>

namespace hydra {

/// What the programs of a model have in common while they are partitioned along one axis.
struct PartitionAxis {
  /// A body of loops for ranks, for arguments that lie in one way.
  struct LoopForm {
    llvm::SmallVector<Spread> arguments, results; ///< as it takes them, and gives them
    EntryOp body;
  };

  MeshAttr mesh;
  mlir::StringAttr name;
  int64_t ranks;
  int64_t exchanges = 0; ///< so far: their numbers
  unsigned reductions = 0, gathers = 0;
  std::map<std::string, LoopForm> loops = {}; ///< by body and how its operands lie

  /// How a variable lies on the ranks.
  Spread spreadOf(mlir::Operation *variable) const;
  /// Of what is cut over these axes, the rows that a rank has along this one. Axes named before it
  /// cut into larger pieces; where they are inside of it, and so have yet to cut, each of these
  /// pieces is a block.
  Spread rowsOver(llvm::StringRef over) const;
};

/// The type that one rank has of a value.
mlir::RankedTensorType localType(mlir::Type type, const Spread &spread, int64_t ranks);

/// Writes a block again for one rank.
class RankWriter {
public:
  /// What cannot be done, and where.
  struct Problem {
    mlir::Operation *op = nullptr;
    std::string text;
  };

  /// `body`: null, or the loop's body that is written.
  RankWriter(PartitionAxis &axis, mlir::OpBuilder builder, EntryOp body = {})
      : axis(axis), b(std::move(builder)), body(body) {}

  void place(mlir::Value old, mlir::Value fresh, const Spread &spread) {
    placed[old] = {fresh, spread};
  }
  Spread spreadOf(mlir::Value old) { return placed.lookup(old).spread; }

  llvm::LogicalResult write(mlir::Block &block);

  /// The value in that form, computed or exchanged where it is in another.
  mlir::Value as(mlir::Value old, const Spread &want, mlir::Operation *user);

  /// What is wrong with the block; it is to be thrown away then.
  Problem problem;
  /// Of a loop's body: the arguments that are needed in another form.
  llvm::DenseMap<unsigned, Spread> demands;

private:
  /// A value of the new program, and how it lies on the ranks.
  struct Placed {
    mlir::Value value;
    Spread spread;
  };

  llvm::LogicalResult fail(mlir::Operation *op, const llvm::Twine &text);

  llvm::LogicalResult write(mlir::Operation &op);

  /// Of an operation that gathers rows of each rank: their numbers, which are the rank's own, must
  /// serve to take rows alone.
  llvm::LogicalResult checkNumbers(mlir::Operation *op);

  /// A rank has its rows of what is cut along the axis, its part of a sum, and all of every other
  /// variable.
  llvm::LogicalResult write(UseOp use);

  /// Gives each rank its rows. A part that is added to a variable is added up from there.
  llvm::LogicalResult write(ShardOp shard);
  /// The rows that a rank has of what other axes have yet to cut into larger pieces.
  Spread rowsOf(ShardOp shard) const;

  /// Whether all that is computed from a part is linear in it until it is returned, or ranks get
  /// pieces of it, or has at most so many elements where it must be added up; as far as operands
  /// are known.
  bool isSummedSmall(mlir::Value part, int64_t most);

  /// The same of what some of its readers make of it. `unknownAreParts`: operands that are not
  /// known yet count as what leaves the sum to be made later.
  bool isSummedSmall(mlir::Value part, llvm::SmallVector<mlir::OpOperand *> readers, int64_t most,
                     bool unknownAreParts);

  /// Whether several readers of a part, as the gradient of a parameter is, in the clip or the
  /// optimizer need all of it, or make of it as many numbers that they need all of: then it is
  /// added up once, and not what each of them makes of it. What the backward pass makes of parts
  /// stays parts until there, as it does of micro-batches.
  bool isSummedOften(mlir::Value part);

  /// The same operation on these operands, with results of one rank.
  mlir::Operation *copy(mlir::Operation *op, mlir::ValueRange operands,
                        llvm::ArrayRef<Spread> results);

  /// What is the same on all ranks, plus a sum over them: adds begin with it, as they do where a
  /// device has one part after the other.
  bool startsSum(AddOp add);

  /// Whether a sum is the new value of state that is a part itself.
  static bool isUpdateOfPart(AddOp add);

  /// A loss over a part of the rows divides by the labels that count on all ranks.
  llvm::LogicalResult countLabels(mlir::Operation *old, llvm::ArrayRef<Spread> in,
                                  mlir::Operation *fresh);

  mlir::IntegerAttr ranksAttr() { return b.getI64IntegerAttr(axis.ranks); }

  mlir::Value allReduce(mlir::Value part);

  mlir::Value convert(mlir::Value old, const Placed &from, const Spread &want,
                      mlir::Operation *user);

  /// Where blocks lie behind one another in a dimension of that size, they get one of their own.
  mlir::Value apart(mlir::Value v, const Spread &rows, int64_t size);
  /// The dimension of rows where blocks are apart.
  mlir::IntegerAttr axisOf(const Spread &rows);
  /// Back to the shape that a rank's rows of a value have.
  mlir::Value merged(mlir::Value rows, mlir::Value old, const Spread &spread);

  /// Of what all ranks have: rows, or a part of a sum.
  mlir::Value ofWhole(mlir::Value whole, const Spread &want, mlir::Value old);

  /// Rows of what is the same on all ranks, computed from rows of what it is computed from; null if
  /// that cannot be.
  mlir::Value rowsOf(mlir::Value old, const Spread &want, mlir::Operation *user);

  /// In a loop ranks do not meet: what is needed in another form must be given in that form.
  mlir::Value demand(mlir::Value old, const Spread &want, mlir::Operation *user);

  bool isCarried(mlir::Value old);

  /// In place of a value in a block that is thrown away.
  mlir::Value placeholder(mlir::Value old, const Spread &want);

  llvm::LogicalResult write(LoopOp loop);

  /// Writes the body, for arguments in the forms that operands have, and again wherever it turns
  /// out to need them, or to carry them on, in another.
  llvm::LogicalResult findForm(LoopOp loop, llvm::SmallVector<Spread> in,
                               PartitionAxis::LoopForm &form);

  PartitionAxis &axis;
  mlir::OpBuilder b;
  EntryOp body;
  llvm::DenseMap<mlir::Value, Placed> placed;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Spread, mlir::Value>, 1>> converted;
  llvm::DenseMap<mlir::Value, bool> summedOften;
  llvm::DenseMap<mlir::Value, mlir::Value> counts; ///< what losses divide by, by their labels
};

} // namespace hydra
