// Turns a schedule of row-wise operations into a function in LLVM IR:
//
//   void symbol(char *const *args, int64_t begin, int64_t end)
//
// on the rows [begin, end) of one grain. Arguments: inputs, results that are not sums over rows,
// then for each sum a buffer [grains, columns] of f32 whose row begin / grain the call writes.
//
// Limits: memory traffic for streaming groups. A row that is swept more than once must come from
// the cache the second time (up to about 200,000 columns).
// In place: a result may lie on the input it replaces, element by element: of each chunk all inputs
// are loaded before any result is stored, and stores happen in the last sweep of a row only.
// Results that are the same in all rows are written by the grain at row 0 and must not lie on
// inputs.
#pragma once

#include "compiler/codegen/cpu/Rotary.h"

#include <map>

namespace hydra::cpu {

class RowCodegen {
public:
  /// Emits into an empty function.
  RowCodegen(llvm::Function *function, const RowSchedule &schedule, int64_t grain);
  void emit();

private:
  using Kind = RowNode::Kind;

  /// A chunk and the values of nodes in it.
  struct Tile {
    Chunk chunk;
    std::vector<llvm::Value *> values;
  };
  /// Neighbouring chunks.
  struct Block {
    llvm::Value *column; ///< of its first chunk
    int64_t chunks;
    llvm::Value *lastMask = nullptr; ///< of its last chunk
  };

  // RowCodegen.cpp: the loops.
  void emitEntry();
  void emitFixedResults();
  llvm::Value *canStream();
  void emitBody();
  void emitRow(llvm::Value *row);
  void emitSweep(unsigned number);
  void emitFlat();
  void finishSums();
  /// Visits [0, columns) in blocks of `unroll` chunks, carrying values.
  Values forColumns(int64_t unroll, Values carried,
                    llvm::function_ref<Values(const Block &, llvm::ArrayRef<llvm::Value *>)> body);
  int64_t unrollOf(const Sweep &sweep) const;

  // RowBlocks.cpp: what happens to a block of columns.
  /// `accumulators`: kAccumulators vectors for each reduction of the sweep, then for each sum over
  /// rows in the flat shape.
  Values emitBlock(bool last, const Block &block, llvm::ArrayRef<llvm::Value *> accumulators);
  void prefetchNextRow(const Tile &tile);
  void storeTile(unsigned result, Tile &tile);
  void addToColumnSum(unsigned result, Tile &tile);
  llvm::Value *combine(RowReduction r, llvm::Value *x, llvm::Value *y);
  llvm::Value *identity(RowReduction r);
  llvm::Value *finishReduction(RowReduction r, llvm::ArrayRef<llvm::Value *> accumulators);

  // RowValues.cpp: the values of nodes.
  llvm::Value *evaluate(unsigned number, Tile &tile);
  llvm::Value *evaluateOne(unsigned number);
  llvm::Value *compute(const RowNode &node, llvm::ArrayRef<llvm::Value *> inputs);
  llvm::Value *index(unsigned dim, llvm::Value *position, bool fromRows);
  llvm::Value *tableRow(const RowNode &node, Tile &tile);
  llvm::Value *bufferPointer(unsigned node, const Chunk &chunk);

  const RowNode &node(unsigned number) const { return s.program.nodes[number]; }
  bool isColumnSum(const RowResult &result) const {
    return variesOverColumns(node(result.node).form);
  }

  const RowSchedule &s;
  int64_t grain;
  llvm::Function *function;
  llvm::IRBuilder<> b;
  VectorMath math;
  TensorMemory memory;

  llvm::Value *begin, *end;
  llvm::Value *row = nullptr;                ///< the current one
  const Sweep *sweep = nullptr;              ///< the current one
  bool streaming = false;                    ///< whether results that can stream do
  std::vector<llvm::Value *> inputPointers;  ///< of element 0
  std::vector<llvm::Value *> resultPointers; ///< of element 0; sums: of the grain's partial sums
  std::vector<llvm::Value *> inputRows, resultRows; ///< of column 0 of the current row
  std::vector<llvm::Value *> nextRows;              ///< as inputRows, of the next row
  std::vector<llvm::Value *> ones;     ///< by node: scalars, and values of the current row
  std::vector<llvm::Value *> buffers;  ///< rows kept between sweeps
  std::vector<llvm::Value *> rowSums;  ///< by result: accumulator of a sum of row values
  std::map<unsigned, Rotary> rotaries; ///< by node
};

/// Emits the function that adds partial sums, in order. Arguments: the parts [parts, elements] in
/// f32, and the result; a row of the function is an element of the result, in row-major order.
/// Grains begin at multiples of 16.
void emitCombine(llvm::Function *function, int64_t parts, llvm::ArrayRef<int64_t> shape,
                 llvm::ArrayRef<int64_t> strides, RowType type);

} // namespace hydra::cpu
