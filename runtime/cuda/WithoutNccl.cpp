// What stands for NCCL in a build without its headers.
#include "runtime/cuda/Nccl.h"

#include "runtime/support/Error.h"

namespace hydra::runtime::cuda {

struct Nccl::Impl {};

Nccl::Nccl(const planfile::Plan &, Channel &) {
  support::fail("this build has no NCCL, which plans for several GPUs need: it was made without its "
                "headers");
}
Nccl::~Nccl() = default;
DeviceMemory Nccl::allocate(size_t bytes, const std::string &what) {
  return DeviceMemory(bytes, what);
}
void Nccl::share(const DeviceMemory &) {}
std::unique_ptr<DeviceCall> Nccl::prepareAllGather(const CollectiveSpec &) const { return {}; }
std::unique_ptr<DeviceCall> Nccl::prepareAllToAll(const CollectiveSpec &) const { return {}; }
void Nccl::check() const {}
bool Nccl::usesEngines() const { return false; }
std::string Nccl::version() const { return {}; }

} // namespace hydra::runtime::cuda
