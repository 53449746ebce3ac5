// The code of one group of row-wise operations for a GPU thread, as it is written: what the parts
// of RowKernel share. RowKernel.cpp: shapes, rows and chunks. RowKernelValues.cpp: addresses,
// numbers, the next row, rotations. RowKernelResults.cpp: stores, sums over rows, reductions.
#pragma once

#include "compiler/codegen/cuda/DeviceMath.h"
#include "compiler/codegen/cuda/RowKernel.h"
#include "compiler/codegen/rows/Loops.h"
#include "compiler/codegen/rows/RowSchedule.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace hydra::cuda {

inline constexpr int64_t kWarp = 32;
inline constexpr unsigned kSharedMemory = 3; ///< address space

inline llvm::Value *specialRegister(llvm::IRBuilderBase &b, llvm::Intrinsic::ID id) {
  return b.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type *>(), llvm::ArrayRef<llvm::Value *>());
}

/// The addresses that a kernel was launched with: its parameters, or one row of the table that is
/// its only parameter (`byval`), the row of the block's y.
llvm::SmallVector<llvm::Value *> kernelArguments(llvm::IRBuilderBase &b, llvm::Function *function);

/// Of a vector of so many bytes: longer ones are loaded as several.
inline llvm::Align vectorAlignment(int64_t bytes) {
  return llvm::Align(std::min<int64_t>(bytes, 16));
}

/// Elements of a tensor that lie side by side, and can be loaded as vectors.
bool isVector(const rows::TensorAccess &access, int64_t width, unsigned bytes, int64_t alignment);

/// Neighbouring columns of a row (in the flat shape: elements) that one thread works on.
struct Chunk {
  llvm::Value *column; ///< first; i32, in the flat shape i64
  llvm::Value *row;    ///< i32; null in the flat shape
  llvm::Value *valid;  ///< whether they exist; null: always
  unsigned number = 0; ///< among those of the thread
  llvm::Value *place = nullptr; ///< `column`, or where a chunk would begin that does not exist
};

class RowKernelEmitter {
  // Names of LLVM that the declarations below are full of.
  using Value = llvm::Value;
  using AllocaInst = llvm::AllocaInst;
  using Function = llvm::Function;
  using RowSchedule = rows::RowSchedule;
  using Strided = rows::Strided;
  using TensorAccess = rows::TensorAccess;
  using Values = llvm::SmallVector<Value *>;
  template <typename T> using ArrayRef = llvm::ArrayRef<T>;
  template <typename T> using function_ref = llvm::function_ref<T>;

public:
  RowKernelEmitter(Function *function, const RowProgram &program, ArrayRef<Strides> layouts,
                   ArrayRef<int64_t> alignments, int64_t grain, int64_t counted,
                   const RowThreads &threads);
  LaunchShape emit();

private:
  //===-- Shape -----------------------------------------------------------------------------===//

  void chooseShape();
  /// Whether nothing in a row depends on its other columns, so that blocks can share them out.
  bool sumsColumnsAlone() const;
  void bindArguments();
  /// How many rows there are (i32).
  Value *rowsThere() { return countedRows ? countedRows : b.getInt32(s.rows); }

  /// `body` of `index` if that is below `end`, and where blocks have rows in turn of every
  /// `step`-th number behind it that is.
  void forOwn(Value *index, Value *end, int64_t step, llvm::function_ref<void(Value *)> body);

  //===-- The three shapes ------------------------------------------------------------------===//

  void emitFlat();
  void emitTiles();
  void emitRows();
  /// One row by one team.
  void emitRow(Value *row, ArrayRef<AllocaInst *> sums);
  /// The reductions of one sweep, but for those that an earlier sweep did.
  void reduceRow(Value *row, ArrayRef<unsigned> reductions);
  /// Of a maximum over x: the sum over exp(x - maximum), which rows that are read again from memory
  /// compute in the sweep of the maximum, relative to the maximum so far (Milakov and Gimelshein,
  /// arXiv:1805.02867).
  std::optional<unsigned> exponentialsOf(unsigned maximum) const;
  /// What exponents are relative to: 0 where all numbers are -infinity.
  Value *finiteBase(Value *maximum);
  Value *exponential(Value *x, Value *base);
  void accumulateExponentials(AllocaInst *maximum, AllocaInst *sum, unsigned tile,
                              const Chunk &chunk);
  /// Runs the body for every chunk of the row that is this thread's.
  void forChunks(Value *row, function_ref<void(const Chunk &)> body);
  /// Chunks of a thread, a team apart, whose code stands side by side.
  int64_t unroll() const;
  /// For each sweep over a row the values of columns that it needs, those for the results last.
  std::vector<llvm::SmallVector<unsigned>> wantedOfSweeps() const;
  /// The inputs that these values are made of.
  std::set<unsigned> tileInputsOf(llvm::ArrayRef<unsigned> wanted) const;
  /// Gives inputs that are read more than once a place in shared memory, if all of them have room.
  void holdInputs();
  /// The numbers of a chunk of such an input: in the first sweep from memory, with a copy to that
  /// place, then from there.
  Values heldChunk(unsigned input, const Chunk &chunk);
  /// A comparison that is true in one column of a row at most, whose number is a row value.
  struct OneColumn {
    unsigned node, column;
  };
  std::vector<OneColumn> oneColumnNodes() const;
  /// Runs the body for `unroll()` chunks from number `first` on: twice, one of which is for groups
  /// without such a column, nearly all, and has constants instead of the comparisons.
  void withoutOneColumns(Value *first, function_ref<void()> body);
  /// The k-th chunk of those that this thread has in registers.
  Chunk keptChunk(Value *row, int64_t k);
  /// A thread without a chunk computes the first one again and stores nothing.
  Chunk chunkOf(Value *row, Value *index, unsigned number, bool guarded);
  void enterRow(Value *row);
  bool isGathered(unsigned input) const;

  //===-- Addresses -------------------------------------------------------------------------===//

  /// Offset in elements (i64) of a position in dimensions that count it in row-major order.
  Value *offsetOf(const Strided &dims, Value *position);
  Value *elementPointer(Value *base, Value *offset, RowType type);
  Value *plus(Value *column, int64_t n);
  Value *loadOne(Value *pointer, RowType type);
  /// Two numbers that lie in one word: an instruction each.
  std::array<Value *, 2> pairOfBf16(Value *word);
  /// A chunk of a dense input, as one word of memory, and its numbers.
  Value *loadVector(Value *pointer, RowType type);
  Values numbersOf(Value *vector, RowType type);
  /// The numbers of a chunk.
  Values loadChunk(Value *row, const TensorAccess &access, RowType type, int64_t alignment,
                   Value *column);

  //===-- Values ----------------------------------------------------------------------------===//

  /// A value of the row (or of everything).
  Value *evaluateRow(unsigned number);
  /// The values of a chunk.
  Values evaluateTile(unsigned number, const Chunk &chunk);
  Values computeTile(unsigned number, const Chunk &chunk);
  /// Of each node, the last of the loads behind the first `made` that its values of the chunk wait
  /// for, counted in the order of their issue; 0: none.
  std::vector<unsigned> lastLoads(const Chunk &chunk, unsigned made) const;
  /// A value without columns.
  Value *evaluate(unsigned number);
  Value *compute(const RowNode &node, ArrayRef<Value *> in);
  Value *binary(RowBinary f, Value *x, Value *y, bool real);
  Value *compare(Predicate p, Value *x, Value *y, bool real, bool truth);
  /// Coordinate along dimension `dim` of a position within dimensions of these sizes.
  Value *coordinateWithin(ArrayRef<int64_t> sizes, unsigned dim, Value *position);
  Value *rowCoordinate(unsigned dim);
  Value *coordinate(unsigned dim, const Chunk &chunk, int64_t v);

  //===-- The next row ----------------------------------------------------------------------===//

  /// A chunk of an input as it lies in memory, in variables that live in registers. Numbers are
  /// made of it only when they are used: before that nothing waits for the load.
  struct ComingChunk {
    std::vector<AllocaInst *> words; ///< 32 bits each; else `numbers`
    std::vector<AllocaInst *> numbers;
  };
  /// Starts loading the tiles of a row: while one row is summed, the next one is on its way.
  void prefetch(Value *row);
  void prefetchChunk(ComingChunk &to, Value *base, unsigned input, Value *column);
  void keepIn(AllocaInst *&memory, Value *value);
  Value *valueIn(AllocaInst *memory) { return b.CreateLoad(memory->getAllocatedType(), memory); }
  void takePrefetched();

  //===-- Rotation --------------------------------------------------------------------------===//

  /// RowEmitter.h says what it means; angles in f64, as on the CPU.
  Values rotate(const RowNode &node, const Chunk &chunk);
  /// base^(-2i/hd) for each pair i. In global memory: threads of a warp read different ones, which
  /// constant memory serves one after the other.
  Value *frequencyTable(const Rotation &r, int64_t pairs);

  //===-- Results ---------------------------------------------------------------------------===//

  void whenValid(const Chunk &chunk, function_ref<void()> body);
  /// All results that have columns, but for sums.
  void storeTiles(const Chunk &chunk);
  void storeChunk(unsigned number, ArrayRef<Value *> values, const Chunk &chunk);
  void storeAt(Value *base, const TensorAccess &access, const RowResult &result, unsigned bytes,
               unsigned number, ArrayRef<Value *> values, Value *column);
  /// Results that are one number for the row, or for everything, by one thread of the row.
  void storeRowResults(Value *isOne);

  //===-- Sums over rows --------------------------------------------------------------------===//

  bool isColumnSum(const RowResult &result) const;
  /// Whether any result has a number for each column: tiles, what is the same in all rows, sums.
  bool hasColumnResults() const;
  AllocaInst *allocate(int64_t count);
  Value *slot(AllocaInst *memory, int64_t i);
  Value *load(AllocaInst *memory, int64_t i = 0);
  void store(Value *value, AllocaInst *memory, int64_t i = 0);
  std::vector<AllocaInst *> makeSums(int64_t count);
  /// Values that are the same in all rows, before the loop over rows.
  void keepColumns();
  void addSums(ArrayRef<AllocaInst *> sums, const Chunk &chunk);
  void addColumnSums(ArrayRef<AllocaInst *> sums, const Chunk &chunk);
  Value *partialPointer(unsigned number, Value *column);
  void storeColumnSums(unsigned number, AllocaInst *sums);
  void storeScalarSum(unsigned number, Value *sum);

  //===-- Reductions ------------------------------------------------------------------------===//

  RowReduction reductionOf(unsigned node) const;
  Value *combine(RowReduction r, Value *x, Value *y);
  Value *identity(RowReduction r);
  void accumulate(RowReduction r, AllocaInst *memory, unsigned node, const Chunk &chunk);
  void barrier();
  /// Over the lanes of a team, at most a warp.
  Value *butterfly(RowReduction r, Value *x);
  /// Over the threads of a team; every thread gets the result.
  Value *reduceTeam(RowReduction r, Value *x);

  //===-- Data ------------------------------------------------------------------------------===//

  Function *function;
  RowSchedule s;
  llvm::IRBuilder<> b;
  DeviceMath math;
  int64_t grain, counted;
  RowThreads threads;
  llvm::SmallVector<int64_t> inputAlignment, resultAlignment;
  LaunchShape shape;
  bool hasReductions = false, hasSums = false, inRegisters = false;
  int64_t columns = 1, width = 1, chunks = 1; ///< elements of a row, of a chunk; chunks of a row
  int64_t team = 1, teams = 1, kept = 1; ///< threads of a row, rows of a block, chunks of a thread
  int64_t parts = 1;                     ///< blocks that share out the columns of a row
  bool takesTurns = false;               ///< blocks have rows in turn
  Value *thread = nullptr, *block = nullptr, *lane = nullptr, *inTeam = nullptr;
  Value *currentRow = nullptr, *isFirstRow = nullptr;
  Value *rowValid = nullptr;                  ///< whether there is such a row; null: always
  Value *countedRows = nullptr;               ///< rows that the device counts; null: all
  std::vector<Value *> inputs, results;       ///< arguments
  std::vector<Value *> inputRows, resultRows; ///< where the current row begins
  std::map<unsigned, Value *> scalars, rowValues;
  std::map<std::pair<unsigned, unsigned>, ComingChunk> coming; ///< input, chunk: of the next row
  std::map<std::pair<unsigned, unsigned>, Values> tiles, keptTiles; ///< node, chunk
  std::map<std::pair<unsigned, unsigned>, unsigned> loads; ///< node, chunk: which load it is
  unsigned loadsMade = 0;
  std::map<unsigned, int64_t> heldAt;    ///< input: its first byte in shared memory
  std::set<unsigned> arriving, inShared; ///< of these: by this sweep; all of the row is there
  llvm::GlobalVariable *held = nullptr;  ///< where they are
  std::vector<OneColumn> oneColumns;     ///< of rows in shared memory
  bool noneOfThem = false;               ///< of the chunks whose code is made
  std::map<std::pair<unsigned, unsigned>, Values> arrived; ///< input, chunk
};

} // namespace hydra::cuda
