// Scales of 8-bit operands that are made of the largest magnitudes of earlier steps.
#pragma once

#include "dialects/hydra/Hydra.h"

#include "llvm/ADT/MapVector.h"

namespace hydra {

/// What a matmul of 8-bit operands reads; rows of a history come in this order.
enum class OperandKind { Activation, Weight, Gradient };

/// Delayed scaling (Micikevicius et al., FP8 Formats for Deep Learning, 2022): the scale of an
/// operand is made of the largest of its largest magnitudes (amax) in the last N steps.
///
/// It is known before the operand is. So the kernel that makes the operand writes its 8 bits, and
/// no other one reads it again; and nothing waits until ranks have compared: they do it once a
/// step, when it updates, for all operands. What is beyond the largest number of the format becomes
/// that number.
///
/// There is one state `fp8_amax [operands, N]` f32, the newest step first, the same on all ranks.
/// Programs make all scales from one reduction over it when they begin, and gather what they find
/// into one vector: operands are many and what is remembered of each is small. Micro-batches of a
/// step collect theirs in `fp8_amax.step [operands]`, from which `apply` takes them.
///
/// The history has gradients of the mean over a step: those of one of N micro-batches are N times
/// as large, and are divided by N before they are remembered.
///
/// While an operand has no history (a row of zeros), its scale is that of a fixed magnitude (see
/// `assumed`): with the present one every program would wait for it, in every step, for the sake of
/// the first. A step that is refused leaves the history alone. So does an operand that was zero
/// all over, or whose largest magnitude is not finite: of it no scale can be made.
class AmaxHistory {
public:
  /// `accumulation`: micro-batches of a step.
  AmaxHistory(ModelOp model, int64_t steps, int64_t accumulation)
      : model(model), steps(steps), accumulation(static_cast<double>(accumulation)) {}

  /// A program to which delayed scales are added: one that updates, or a micro-batch of one.
  static bool isFor(EntryOp entry) {
    return entry.getStage() == ProgramStage::train || entry.getStage() == ProgramStage::accumulate;
  }

  /// A value in 8 bits, in its shape, and its scale [], a constant until `finish`.
  struct Quantized {
    mlir::Value elements, scale;
  };
  /// One more operand of a program; `magnitudes [rows]` are the largest of its rows.
  Quantized quantize(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, OperandKind kind,
                     mlir::Type format, mlir::Value magnitudes);

  /// Makes the scales of a program whose operands these are, and has it hand on what it finds.
  llvm::LogicalResult finish(EntryOp entry);

  //===-- The rules, also for who applies them elsewhere ------------------------------------===//

  /// How checkpoints name the history.
  static constexpr llvm::StringLiteral kHistory = "fp8_amax";
  /// The largest of the micro-batches of a step.
  static constexpr llvm::StringLiteral kStep = "fp8_amax.step";

  /// The scales [n] of operands of one kind, of the largest magnitudes that are remembered of each:
  /// `amax [n]`. The operands are `times` as large as what is remembered.
  static mlir::Value scales(mlir::OpBuilder &b, mlir::Location loc, mlir::Value amax,
                            OperandKind kind, mlir::Type format, double times = 1.0);
  /// Rows [n, N] of a history with what a step has found of each, `newest [n]`.
  static mlir::Value shifted(mlir::OpBuilder &b, mlir::Location loc, mlir::Value rows,
                             mlir::Value newest);
  /// A value whose infinities are NaN.
  static mlir::Value withoutInfinities(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);
  /// The row of the history that a scale of `quantize` is made of; nullopt of any other scale.
  static std::optional<int64_t> rowOf(mlir::Value scale, StateOp history);

private:
  struct Operand {
    ConstantOp scale;
    mlir::Value magnitudes, elements;
  };
  using Group = llvm::SmallVector<Operand>;

  static double assumed(OperandKind kind);
  /// How many times as large as what is remembered operands of a program are.
  double timesOf(EntryOp entry, OperandKind kind) const;
  llvm::FailureOr<StateOp> state(EntryOp entry, llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                                 VariableRole role);
  void makeScales(EntryOp entry, StateOp history);
  mlir::Value findLargest(EntryOp entry);
  llvm::LogicalResult shift(EntryOp entry, StateOp history, mlir::Value amax);
  llvm::LogicalResult checkOrder(EntryOp entry);

  ModelOp model;
  const int64_t steps;
  const double accumulation;
  /// The operands of the program in hand as they came, and of the first: kind, format and
  /// variables.
  llvm::SmallVector<std::string> order, firstOrder;
  /// Of the program in hand, by what has scales of one form; those of the same kind together.
  llvm::MapVector<std::pair<OperandKind, mlir::Type>, Group> groups;
};

} // namespace hydra
