// Communicators for the axes of a mesh, and the calls over them.
#include "runtime/cuda/Nccl.h"

#include "runtime/cuda/Driver.h"
#include "runtime/plan/Mesh.h"
#include "runtime/ranks/Channel.h"
#include "runtime/support/Error.h"

#include <dlfcn.h>
#include <nccl.h>

#include <cstring>
#include <exception>
#include <vector>

namespace hydra::runtime::cuda {

using support::fail;

namespace {

#define HYDRA_NCCL_FUNCTIONS(X)                                                                    \
  X(ncclGetVersion)                                                                                \
  X(ncclGetErrorString)                                                                            \
  X(ncclGetLastError)                                                                              \
  X(ncclGetUniqueId)                                                                               \
  X(ncclCommInitRank)                                                                              \
  X(ncclCommGetAsyncError)                                                                         \
  X(ncclCommDestroy)                                                                               \
  X(ncclCommAbort)                                                                                 \
  X(ncclAllGather)                                                                                 \
  X(ncclSend)                                                                                      \
  X(ncclRecv)                                                                                      \
  X(ncclGroupStart)                                                                                \
  X(ncclGroupEnd)

struct Library {
#define HYDRA_DECLARE(name) decltype(&::name) name = nullptr;
  HYDRA_NCCL_FUNCTIONS(HYDRA_DECLARE)
#undef HYDRA_DECLARE
  decltype(&::ncclAllGather) ncclAlltoAll = nullptr; // since 2.28; null: by sends and receives
  int version = 0;

  Library() {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      fail("cannot find NCCL (libnccl.so.2), which plans for several GPUs need");
#define HYDRA_LOAD(name)                                                                           \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name));                                  \
  if (!name)                                                                                       \
    fail("libnccl.so.2 has no " #name);
    HYDRA_NCCL_FUNCTIONS(HYDRA_LOAD)
#undef HYDRA_LOAD
    ncclAlltoAll = reinterpret_cast<decltype(ncclAlltoAll)>(dlsym(library, "ncclAlltoAll"));
    constexpr int oldest = 21900; // whose calls can be captured with others beside them
    if (ncclGetVersion(&version) != ncclSuccess || version < oldest)
      fail("NCCL is version {}; expected {} or newer", text(version), text(oldest));
  }

  static std::string text(int version) {
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

  void check(ncclResult_t status, const char *what, ncclComm_t comm = nullptr) const {
    if (status == ncclSuccess || status == ncclInProgress)
      return;
    std::string detail = ncclGetLastError(comm);
    while (!detail.empty() && detail.back() == '\n')
      detail.pop_back();
    throw CommunicationError(fmt::format("NCCL: {}: {}{}{}", what, ncclGetErrorString(status),
                                         detail.empty() ? "" : ": ",
                                         detail.substr(0, detail.find('\n'))));
  }
};

const Library &nccl() {
  static const Library library;
  return library;
}

class AllGather final : public DeviceCall {
public:
  AllGather(ncclComm_t group, uint64_t bytes) : group(group), bytes(bytes) {}

  size_t workspaceBytes() const override { return 0; }
  void run(std::span<const CUdeviceptr> args, CUdeviceptr, CUstream stream) const override {
    nccl().check(nccl().ncclAllGather(reinterpret_cast<const void *>(args[0]),
                                      reinterpret_cast<void *>(args[1]), bytes, ncclUint8, group,
                                      stream),
                 "all_gather", group);
  }

private:
  ncclComm_t group;
  uint64_t bytes;
};

class AllToAll final : public DeviceCall {
public:
  AllToAll(ncclComm_t group, uint64_t ranks, uint64_t bytes)
      : group(group), ranks(ranks), piece(bytes / ranks) {}

  size_t workspaceBytes() const override { return 0; }
  void run(std::span<const CUdeviceptr> args, CUdeviceptr, CUstream stream) const override {
    if (nccl().ncclAlltoAll) {
      nccl().check(nccl().ncclAlltoAll(reinterpret_cast<const void *>(args[0]),
                                       reinterpret_cast<void *>(args[1]), piece, ncclUint8, group,
                                       stream),
                   "all_to_all", group);
      return;
    }
    nccl().check(nccl().ncclGroupStart(), "all_to_all", group);
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const auto peer = static_cast<int>(rank);
      nccl().check(nccl().ncclSend(reinterpret_cast<const void *>(args[0] + rank * piece), piece,
                                   ncclUint8, peer, group, stream),
                   "all_to_all", group);
      nccl().check(nccl().ncclRecv(reinterpret_cast<void *>(args[1] + rank * piece), piece,
                                   ncclUint8, peer, group, stream),
                   "all_to_all", group);
    }
    nccl().check(nccl().ncclGroupEnd(), "all_to_all", group);
  }

private:
  ncclComm_t group;
  uint64_t ranks, piece;
};

} // namespace

struct Nccl::Impl {
  std::vector<ncclComm_t> groups; ///< by axis of the mesh
};

Nccl::Nccl(const planfile::Plan &plan, Channel &channel) : impl(std::make_unique<Impl>()) {
  channel.agree({{"NCCL", version()}});
  for (uint32_t axis = 0; axis < plan.mesh()->size(); ++axis) {
    const uint64_t ranks = plan.mesh()->Get(axis)->size();
    const uint64_t own = coordinateOf(plan, channel.rank(), axis);
    const uint64_t first = channel.rank() - own * strideOf(plan, axis);
    // The first rank of a group names it; the others learn the name over the channel.
    const std::string key = fmt::format("nccl {} {}", axis, first);
    ncclUniqueId id{};
    if (own == 0) {
      nccl().check(nccl().ncclGetUniqueId(&id), "cannot begin a group");
      const auto *bytes = reinterpret_cast<const std::byte *>(&id);
      channel.set(key, {bytes, bytes + sizeof id});
    } else {
      const std::vector<std::byte> bytes = channel.get(key);
      std::memcpy(&id, bytes.data(), std::min(bytes.size(), sizeof id));
    }
    ncclComm_t group = nullptr;
    channel.waitIn({.what = "connecting to the other GPUs"});
    nccl().check(nccl().ncclCommInitRank(&group, static_cast<int>(ranks), id,
                                         static_cast<int>(own)),
                 "cannot connect the GPUs");
    channel.work();
    impl->groups.push_back(group);
  }
}

Nccl::~Nccl() {
  // Where another rank is gone, waiting for it would last forever.
  const bool failed = std::uncaught_exceptions() > 0;
  for (const ncclComm_t group : impl->groups)
    if (failed)
      nccl().ncclCommAbort(group);
    else
      nccl().ncclCommDestroy(group);
}

std::unique_ptr<DeviceCall> Nccl::prepareAllGather(const CollectiveSpec &spec) const {
  return std::make_unique<AllGather>(impl->groups[spec.axis], spec.bytes);
}

std::unique_ptr<DeviceCall> Nccl::prepareAllToAll(const CollectiveSpec &spec) const {
  return std::make_unique<AllToAll>(impl->groups[spec.axis], spec.ranks, spec.bytes);
}

void Nccl::check() const {
  for (const ncclComm_t group : impl->groups) {
    ncclResult_t status = ncclSuccess;
    nccl().check(nccl().ncclCommGetAsyncError(group, &status), "cannot ask for errors", group);
    nccl().check(status, "a collective failed", group);
  }
}

std::string Nccl::version() const { return Library::text(nccl().version); }

} // namespace hydra::runtime::cuda
