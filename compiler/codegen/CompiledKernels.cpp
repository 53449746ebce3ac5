// What code generators ask of a kernel.
#include "compiler/codegen/CompiledKernels.h"

#include "dialects/hydra/RowPartition.h"

using namespace mlir;

namespace hydra {

size_t stridedTensors(FusedOp group) {
  size_t tensors = group.getInputs().size();
  for (unsigned i = 0; i < group->getNumResults(); ++i)
    tensors += !sumsOverRows(group, i);
  return tensors;
}

std::vector<SmallVector<int64_t>> stridesOf(plan::KernelOp kernel, size_t count) {
  std::vector<SmallVector<int64_t>> strides;
  for (Type type : kernel.getLayouts().getAsValueRange<TypeAttr>())
    if (strides.size() < count)
      strides.push_back(plan::stridesOf(cast<MemRefType>(type)));
  return strides;
}

MemRefType combinedType(plan::KernelOp kernel) {
  return cast<MemRefType>(cast<TypeAttr>(kernel.getLayouts()[1]).getValue());
}

planfile::BlobT blobOf(planfile::BlobKind kind, std::vector<uint8_t> data) {
  planfile::BlobT blob;
  blob.kind = kind;
  blob.data = std::move(data);
  return blob;
}

} // namespace hydra
