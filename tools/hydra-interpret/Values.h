// The named tensors that programs start from (a file, initialisers, synthetic tokens), and where
// their results go.
#pragma once

#include "compiler/reference/Interpreter.h"

#include <string>
#include <utility>
#include <vector>

namespace hydra {

/// A tensor that a program takes or its model holds.
struct Slot {
  enum class Kind { Input, Scalar, Parameter, State };
  Kind kind;
  std::string name;
  mlir::RankedTensorType type; ///< f32, bf16 or i32
  int64_t ids = 0;             ///< the bound of an integer input, as EntryOp's `ids` has it
  double value = 0;            ///< of a scalar that nobody gives
};

/// Names and types of the tensors that a parameter or state is given and returned as: itself, or of
/// a unit what lies in it.
std::vector<std::pair<std::string, mlir::RankedTensorType>> tensorsOf(mlir::Operation *variable);

/// The arguments of the programs, each name once, then parameters and state in the model's order.
/// Arguments with a default are scalars, all others inputs.
std::vector<Slot> slotsOf(llvm::ArrayRef<EntryOp> programs);

/// All tensors of a safetensors file: F32 or F64 for floating-point slots, I32 or I64 for integer
/// ones. Throws support::Error, naming file and tensor, where a tensor fits no slot, an id is out
/// of range, an input is missing, or some parameters are given and others not.
TensorMap readTensors(const std::string &path, llvm::ArrayRef<Slot> slots);

/// Fills the inputs with synthetic values: ids drawn uniformly (labels [..., S] are the ids one
/// position later of the same sequence), other reals from a normal distribution. What depends on
/// seed, `draw` and position only, as in hydra-run. Throws support::Error on integers that are no
/// ids.
void drawInputs(llvm::ArrayRef<Slot> slots, uint64_t seed, uint64_t draw, TensorMap &values);

struct NamedTensor {
  std::string name;
  const RefTensor *tensor;
  bool integer = false;
};
using NamedTensors = std::vector<NamedTensor>;

/// Writes a safetensors file of F64 tensors, I32 of integers, in that order. Throws support::Error.
void writeTensors(const std::string &path, const NamedTensors &tensors);

/// One line a tensor: name, shape, and the elements of a small one or the L2 norm and the
/// first element of a large one.
std::string tensorsText(const NamedTensors &tensors);

} // namespace hydra
