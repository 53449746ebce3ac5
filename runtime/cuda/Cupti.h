// CUPTI, looked up when a profile is wanted: what ran on the GPU and when, also inside replayed
// graphs.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hydra::runtime::cuda {

/// A kernel or a copy that ran.
struct KernelRun {
  uint64_t begin, end;  // ns
  uint64_t node;        // what `noteNode` gave it; kUnknownNode for others
  uint32_t correlation; // equal for all kernels of one graph launch; 0 in cases of switches
  uint32_t stream;
  std::array<uint32_t, 3> grid, block; // 0 of copies
  std::string name;                    // of copies `copy`
  uint64_t copied = 0;                 // bytes, of copies
};

constexpr uint64_t kUnknownNode = ~uint64_t{0};

/// One at a time in a process. Must exist before the graphs that it is to see are captured.
class Cupti {
public:
  /// Null where the library is missing or does not start (`why` then says so).
  static std::unique_ptr<Cupti> load(std::string &why);
  ~Cupti();
  Cupti(const Cupti &) = delete;
  Cupti &operator=(const Cupti &) = delete;

  /// To be called before each graph that is captured and instantiated.
  void beginGraph();
  /// A node of a captured graph that is going to be instantiated: kernels that it becomes have
  /// `tag`.
  void noteNode(CUgraphNode node, uint64_t tag);

  void start();
  /// On the clock of records, ns.
  uint64_t now() const;
  /// Ends recording; what ran since `start`, by its beginning.
  std::vector<KernelRun> stop();

private:
  Cupti();
  struct Functions;
  struct State;
  std::unique_ptr<State> state;
};

} // namespace hydra::runtime::cuda
