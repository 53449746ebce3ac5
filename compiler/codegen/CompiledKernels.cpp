// Code for all kernels of a plan.
#include "compiler/codegen/CompiledKernels.h"

namespace hydra {

planfile::BlobT blobOf(planfile::BlobKind kind, std::vector<uint8_t> data) {
  planfile::BlobT blob;
  blob.kind = kind;
  blob.data = std::move(data);
  return blob;
}

} // namespace hydra
