// Where the tensors of a loop's kernel lie: which of a slice are in shared memory, and how.
#pragma once

#include "compiler/codegen/cuda/LoopSteps.h"
#include "compiler/codegen/cuda/SharedArena.h"

#include "llvm/ADT/MapVector.h"

namespace hydra::cuda {

/// Elements between rows in shared memory.
constexpr int64_t kLoopPad = 8;

constexpr int64_t kLoopThreads = 512, kLoopWarps = kLoopThreads / 32; // as in templates/loop.cuh

/// Bytes of shared memory for a reduction of rows that warps share: a float of each.
constexpr int64_t kReductionScratch = kLoopWarps * static_cast<int64_t>(sizeof(float));

/// A slice's chunk of a sequence that is copied to shared memory for every iteration, or back.
struct LoopTile {
  mlir::Value value;
  unsigned sliced = 0;
  bool read = false;    ///< before steps write it: copied to shared memory
  bool written = false; ///< copied back
  bool used = false;    ///< by steps that read it
  bool ofMatmul = false;
  size_t lastReader = 0, lastWriter = 0; ///< steps
  llvm::SmallVector<int64_t> strides;    ///< of all dimensions; of sliced ones 0
  int64_t bytes = 0, begin = 0;
  std::optional<int64_t> odd; ///< where the chunks of every other iteration begin, if apart
};

/// A slice's part of a buffer in shared memory. Rows of `row` elements lie `kLoopPad` elements
/// further apart than they are long, so that a column of them meets all banks; row 0: dense.
struct LoopBuffer {
  int64_t begin = 0, bytes = 0, row = 0;

  int64_t at(int64_t element) const {
    return row ? element / row * (row + kLoopPad) + element % row : element;
  }
  llvm::SmallVector<int64_t> strides(mlir::MemRefType type) const;
};

/// A matrix [rows, columns] of f32 that is carried in registers, in the pieces that the warps of a
/// block add products to.
struct LoopRegisters {
  int64_t rows = 0, columns = 0;
};

/// Keeps carried matrices that only matmuls add to, and groups read number by number, in registers,
/// where there are enough. Gives other buffers of which every slice has its own part a place in
/// shared memory: those that are carried for the whole loop, those of an iteration as long as they
/// live; between the two come the chunks that matmuls read, and last all others, and room for next
/// chunks beside the present ones, first for those of matmuls.
class LoopPlacement {
public:
  /// `mostShared`: bytes of shared memory that a block can have.
  LoopPlacement(plan::LoopOp loop, llvm::ArrayRef<LoopStep> steps, int64_t mostShared);

  /// Bytes of shared memory in all.
  int64_t sharedBytes() const { return arena.bytes(); }
  /// Chunks of sequences there, by value.
  const llvm::MapVector<mlir::Value, LoopTile> &chunks() const { return tiles; }
  /// Where the barrier lies that fetches of chunks end at.
  int64_t fetchBarrier() const { return barrier; }
  /// Chunks that steps read, for which there was no room.
  llvm::ArrayRef<LoopTile> chunksOutside() const { return left; }
  /// Carried buffers in registers.
  const llvm::MapVector<mlir::Operation *, LoopRegisters> &registers() const { return held; }
  /// Buffers there that are carried from one iteration to the next.
  llvm::ArrayRef<plan::BufferOp> carriedBuffers() const { return carried; }

  /// Null where a value is no chunk, or a buffer is not in shared memory.
  const LoopTile *chunkOf(mlir::Value value) const;
  const LoopBuffer *sharedForm(mlir::Operation *buffer) const;
  bool isShared(mlir::Value value) const;
  /// Whether two buffers have bytes of shared memory in common, one after the other.
  bool shareBytes(mlir::Operation *a, mlir::Operation *b) const;

  /// Whether a thread has a whole row of a group, instead of lanes that share it: rows are short,
  /// and those side by side lie side by side.
  bool hasRowOfThread(const LoopStep &step) const;

  /// How many warps share each row of a group, a power of two: several where rows are long and a
  /// slice has fewer of them than a block has warps.
  int64_t warpsOfRow(const LoopStep &step) const;
  /// Where such warps reduce, kReductionScratch for each reduction.
  int64_t reductionScratch() const { return scratch; }

  /// The strides of a value where it lies now.
  llvm::SmallVector<int64_t> stridesOf(mlir::Value value) const;
  /// Bytes by which every slice's rows are aligned: the first element, and those that lie any
  /// stride but that of the last dimensions `inner` further.
  int64_t alignmentOf(mlir::Value value, unsigned inner) const;
  /// The same where the plan has put it.
  static int64_t outsideAlignment(mlir::Value value, unsigned inner);

private:
  using Views = llvm::SmallVector<std::pair<mlir::Value, unsigned>>;

  /// What steps of the loop use of a buffer of which every slice has its own part.
  struct Part {
    plan::BufferOp buffer;
    int64_t first = 0, last = 0; ///< steps that use it
    bool carried = false;        ///< from one iteration to the next
    Views views;
    LoopBuffer form; ///< in shared memory
  };

  /// Of all buffers that steps write.
  std::vector<Part> findParts();
  llvm::SmallVector<LoopTile> findChunks();
  LoopBuffer formOf(plan::BufferOp buffer, const Views &views) const;
  std::optional<LoopRegisters> registersOf(plan::BufferOp buffer) const;
  /// Takes out those that are carried in registers instead.
  void holdInRegisters(std::vector<Part> &parts);
  /// Gives places to those that are carried, or to the others, while there is room.
  void placeParts(llvm::ArrayRef<Part> parts, bool ofCarried);
  /// The same to chunks that matmuls read, or to the others.
  void placeChunks(llvm::MutableArrayRef<LoopTile> chunks, bool ofMatmuls);
  /// The same to chunks of the next iteration, which are copied while steps of this one run.
  void placeNextChunks();
  void place();

  plan::LoopOp loop;
  llvm::ArrayRef<LoopStep> steps;
  int64_t slices, barrier = 0, scratch = 0;
  SharedArena arena;
  llvm::MapVector<mlir::Value, LoopTile> tiles;
  llvm::SmallVector<LoopTile> left;
  llvm::MapVector<mlir::Operation *, LoopRegisters> held;
  llvm::DenseMap<mlir::Operation *, LoopBuffer> inShared;
  llvm::SmallVector<plan::BufferOp> carried;
};

} // namespace hydra::cuda
