// The rules for a plan's code.
#include "runtime/plan/CodeVerifier.h"

#include "runtime/support/KernelArguments.h"

namespace hydra::runtime {

using namespace planfile;

namespace {

class CodeVerifier {
public:
  CodeVerifier(const Plan &plan, const Path &root) : plan(plan), root(root) {}

  void verify() {
    checkBlobs();
    checkKernels();
  }

private:
  bool onCPU() const { return plan.target()->kind() == TargetKind::cpu; }

  void checkBlobs() {
    for (flatbuffers::uoffset_t i = 0; i < plan.blobs()->size(); ++i) {
      const Path path(root, "blobs", i);
      const Blob &blob = *plan.blobs()->Get(i);
      checkEnum(path, "kind", blob.kind());
      if ((blob.kind() == BlobKind::native) != onCPU())
        failAt(Path(path, "kind"), "{} code does not run on target {}",
               EnumNameBlobKind(blob.kind()), EnumNameTargetKind(plan.target()->kind()));
      if (blob.data()->size() == 0)
        failAt(Path(path, "data"), "is empty");
    }
  }

  void checkGrid(const Path &path, const Kernel &kernel) {
    const Dim3 &grid = *kernel.grid();
    const Dim3 &block = *kernel.block();
    const uint64_t threads = uint64_t{block.x()} * block.y() * block.z();
    if (onCPU()) {
      if (grid.x() | grid.y() | grid.z() | block.x() | block.y() | block.z() |
          kernel.shared_bytes() | (kernel.instances() - 1))
        failAt(path, "has a grid, but the target is the CPU");
      return;
    }
    // The limits of every architecture since sm_30.
    constexpr uint32_t maxX = 0x7fffffff, maxYZ = 0xffff;
    if (grid.x() < 1 || grid.x() > maxX || grid.y() < 1 || grid.y() > maxYZ || grid.z() < 1 ||
        grid.z() > maxYZ)
      failAt(Path(path, "grid"), "[{}, {}, {}] is no grid; expected 1 to [{}, {}, {}]", grid.x(),
             grid.y(), grid.z(), maxX, maxYZ, maxYZ);
    if (block.x() < 1 || block.x() > 1024 || block.y() < 1 || block.y() > 1024 || block.z() < 1 ||
        block.z() > 64 || threads > 1024) {
      failAt(Path(path, "block"),
             "[{}, {}, {}] is no thread block; expected 1 to [1024, 1024, 64] "
             "and at most 1024 threads",
             block.x(), block.y(), block.z());
    }
    if (kernel.instances() < 1 || (kernel.instances() > 1 && grid.y() != 1) ||
        uint64_t{kernel.instances()} * kernel.arg_count() > support::kMostKernelArguments)
      failAt(Path(path, "instances"), "{} lists of {} arguments do not fit into a launch",
             kernel.instances(), kernel.arg_count());
    if (const uint64_t most = plan.target()->block_shared_bytes(); kernel.shared_bytes() > most)
      failAt(Path(path, "shared_bytes"), "{} is more than the {} of the target",
             kernel.shared_bytes(), most);
  }

  void checkKernels() {
    const auto &blobs = *plan.blobs();
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < plan.kernels()->size(); ++i) {
      const Path path(root, "kernels", i);
      const Kernel &kernel = *plan.kernels()->Get(i);
      names.add(path, "name", *kernel.name());
      if (kernel.symbol()->size() == 0)
        failAt(Path(path, "symbol"), "is empty");
      checkIndex(Path(path, "blob"), "blob", kernel.blob(), blobs);
      checkOptionalIndex(Path(path, "ptx"), "blob", kernel.ptx(), blobs);
      if (kernel.ptx() >= 0 && blobs.Get(kernel.ptx())->kind() != BlobKind::ptx)
        failAt(Path(path, "ptx"), "blob {} is no ptx", kernel.ptx());
      checkGrid(path, kernel);
    }
  }

  const Plan &plan;
  const Path &root;
};

} // namespace

void verifyCode(const Plan &plan, const Path &root) { CodeVerifier(plan, root).verify(); }

} // namespace hydra::runtime
