// Communicators for the axes of a mesh, and the calls over them.
#include "runtime/cuda/Nccl.h"

#include "runtime/cuda/Driver.h"
#include "runtime/plan/Mesh.h"
#include "runtime/ranks/Channel.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/SharedLibrary.h"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hydra::runtime::cuda {

using support::fail;
using support::SharedLibrary;

namespace {

#define HYDRA_NCCL_FUNCTIONS(X)                                                                    \
  X(ncclGetVersion)                                                                                \
  X(ncclGetErrorString)                                                                            \
  X(ncclGetLastError)                                                                              \
  X(ncclGetUniqueId)                                                                               \
  X(ncclCommInitRankConfig)                                                                        \
  X(ncclCommGetAsyncError)                                                                         \
  X(ncclCommDestroy)                                                                               \
  X(ncclCommAbort)                                                                                 \
  X(ncclAllGather)                                                                                 \
  X(ncclSend)                                                                                      \
  X(ncclRecv)                                                                                      \
  X(ncclGroupStart)                                                                                \
  X(ncclGroupEnd)                                                                                  \
  X(ncclMemAlloc)                                                                                  \
  X(ncclMemFree)

struct Library {
  HYDRA_NCCL_FUNCTIONS(HYDRA_DECLARE_FUNCTION)
  decltype(&::ncclAllGather) ncclAlltoAll = nullptr; // since 2.28; null: by sends and receives
#ifdef NCCL_CTA_POLICY_ZERO
  // Since 2.28 copy engines move what lies in windows; null: kernels move everything.
  decltype(&::ncclCommWindowRegister) ncclCommWindowRegister = nullptr;
  decltype(&::ncclCommWindowDeregister) ncclCommWindowDeregister = nullptr;
#endif
  int version = 0;

  Library() {
    const SharedLibrary library({"libnccl.so.2"});
    if (!library)
      fail("cannot find NCCL (libnccl.so.2), which plans for several GPUs need");
    HYDRA_NCCL_FUNCTIONS(HYDRA_LOAD_FUNCTION)
    library.find(ncclAlltoAll, "ncclAlltoAll");
    constexpr int oldest = 21900; // whose calls can be captured with others beside them
    if (ncclGetVersion(&version) != ncclSuccess || version < oldest)
      fail("NCCL is version {}; expected {} or newer", text(version), text(oldest));
#ifdef NCCL_CTA_POLICY_ZERO
    constexpr int engines = 22800;
    if (version >= engines) {
      library.find(ncclCommWindowRegister, "ncclCommWindowRegister");
      library.find(ncclCommWindowDeregister, "ncclCommWindowDeregister");
    }
#endif
  }

  static std::string text(int version) {
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

  void check(ncclResult_t status, const std::string &what, ncclComm_t comm = nullptr) const {
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

/// A barrier of ranks on a stream: an all-gather of a byte of each, by kernels.
///
/// Copy engines write into memory of other ranks. NCCL synchronises ranks before and behind that,
/// but in a captured graph (2.28) runs had other bits, in 16 of 34 runs, as if a rank's memory had
/// been written before it was there; with a barrier in front none had (docs/laboratory.md). Between
/// two barriers nobody writes into the memory of a rank that is not there yet, and everybody has
/// written before a rank goes on.
struct Barrier {
  ncclComm_t group = nullptr;
  CUdeviceptr bytes = 0; ///< one of each rank

  void wait(CUstream stream) const {
    nccl().check(nccl().ncclAllGather(reinterpret_cast<const void *>(bytes),
                                      reinterpret_cast<void *>(bytes + kReceived), 1, ncclUint8,
                                      group, stream),
                 "barrier", group);
  }
  static constexpr uint64_t kReceived = 256; ///< from where on the bytes of all ranks lie
};

/// What moves the bytes of a collective, and the barrier before and behind it that copy engines
/// need.
struct Mover {
  ncclComm_t group = nullptr;
  std::optional<Barrier> barrier;

  template <typename Collective> void run(CUstream stream, Collective &&collective) const {
    if (barrier)
      barrier->wait(stream);
    collective();
    if (barrier)
      barrier->wait(stream);
  }
};

class AllGather final : public DeviceCall {
public:
  AllGather(const Mover &mover, uint64_t bytes) : mover(mover), bytes(bytes) {}

  size_t workspaceBytes() const override { return 0; }
  void run(std::span<const CUdeviceptr> args, CUdeviceptr, CUstream stream) const override {
    mover.run(stream, [&] {
      nccl().check(nccl().ncclAllGather(reinterpret_cast<const void *>(args[0]),
                                        reinterpret_cast<void *>(args[1]), bytes, ncclUint8,
                                        mover.group, stream),
                   "all_gather", mover.group);
    });
  }

private:
  Mover mover;
  uint64_t bytes;
};

class AllToAll final : public DeviceCall {
public:
  AllToAll(const Mover &mover, uint64_t ranks, uint64_t bytes)
      : mover(mover), ranks(ranks), piece(bytes / ranks) {}

  size_t workspaceBytes() const override { return 0; }
  void run(std::span<const CUdeviceptr> args, CUdeviceptr, CUstream stream) const override {
    mover.run(stream, [&] { exchange(args, stream); });
  }

private:
  void exchange(std::span<const CUdeviceptr> args, CUstream stream) const {
    const ncclComm_t group = mover.group;
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

  Mover mover;
  uint64_t ranks, piece;
};

/// Two ranks that have one GPU would be told so by NCCL in its own words.
void checkThatEachHasOne(Channel &channel) {
  CUdevice device = 0;
  CUuuid uuid{};
  driver().check(driver().cuCtxGetDevice(&device), "cannot ask for the GPU");
  driver().check(driver().cuDeviceGetUuid(&uuid, device), "cannot ask the GPU for its number");
  const std::string own = std::string(uuid.bytes, sizeof uuid.bytes) + channel.name();
  std::map<std::string, std::string> owners; // by GPU
  std::string problem;
  for (const std::vector<std::byte> &piece : channel.gather(std::as_bytes(std::span(own)))) {
    const std::string text(reinterpret_cast<const char *>(piece.data()), piece.size());
    const std::string name = text.substr(sizeof uuid.bytes);
    const auto [owner, isNew] = owners.try_emplace(text.substr(0, sizeof uuid.bytes), name);
    if (!isNew && problem.empty())
      problem =
          fmt::format("{} and {} have the same GPU; each needs one, that CUDA_VISIBLE_DEVICES "
                      "lets it see",
                      owner->second, name);
  }
  channel.decide(problem);
}

} // namespace

struct Nccl::Impl {
  /// The ranks along one axis of the mesh.
  struct Group {
    ncclComm_t byKernels = nullptr;
    ncclComm_t byEngines = nullptr; ///< null where NCCL has none
    DeviceMemory barrier;           ///< the bytes of one

    Mover forBytes(uint64_t bytes) const {
      if (!byEngines || bytes < kEngineBytes)
        return {byKernels, std::nullopt};
      return {byEngines, Barrier{byKernels, barrier.get()}};
    }
  };

  template <typename Function> void forEachComm(Function &&function) const {
    for (const Group &group : groups)
      for (const ncclComm_t comm : {group.byKernels, group.byEngines})
        if (comm)
          function(comm);
  }

  std::vector<Group> groups; ///< by axis of the mesh
#ifdef NCCL_CTA_POLICY_ZERO
  std::vector<std::pair<ncclComm_t, ncclWindow_t>> windows;
#endif
};

namespace {

/// A communicator of the ranks along an axis; the first of them names it, and the others learn the
/// name over the channel.
ncclComm_t connect(Channel &channel, const std::string &key, uint64_t own, uint64_t ranks,
                   const ncclConfig_t &wanted) {
  ncclUniqueId id{};
  if (own == 0) {
    nccl().check(nccl().ncclGetUniqueId(&id), "cannot begin a group");
    const auto *bytes = reinterpret_cast<const std::byte *>(&id);
    channel.set(key, {bytes, bytes + sizeof id});
  } else {
    const std::vector<std::byte> bytes = channel.get(key);
    std::memcpy(&id, bytes.data(), std::min(bytes.size(), sizeof id));
  }
  ncclConfig_t config = wanted; // NCCL may write what it chose
  ncclComm_t comm = nullptr;
  const Channel::Waiting waiting(&channel, {.what = "connecting to the other GPUs"});
  nccl().check(nccl().ncclCommInitRankConfig(&comm, static_cast<int>(ranks), id,
                                             static_cast<int>(own), &config),
               "cannot connect the GPUs");
  return comm;
}

} // namespace

Nccl::Nccl(const planfile::Plan &plan, Channel &channel) : impl(std::make_unique<Impl>()) {
  channel.agree({{"NCCL", version()}});
  checkThatEachHasOne(channel);
  for (uint32_t axis = 0; axis < plan.mesh()->size(); ++axis) {
    const uint64_t ranks = plan.mesh()->Get(axis)->size();
    const uint64_t own = coordinateOf(plan, channel.rank(), axis);
    const uint64_t first = channel.rank() - own * strideOf(plan, axis);
    Impl::Group group;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    group.byKernels = connect(channel, fmt::format("nccl {} {}", axis, first), own, ranks, config);
#ifdef NCCL_CTA_POLICY_ZERO
    if (nccl().ncclCommWindowRegister) {
      config = NCCL_CONFIG_INITIALIZER;
      config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
      group.byEngines =
          connect(channel, fmt::format("nccl {} {} engines", axis, first), own, ranks, config);
      group.barrier = DeviceMemory(Barrier::kReceived + ranks, "memory of a barrier");
    }
#endif
    impl->groups.push_back(std::move(group));
  }
}

Nccl::~Nccl() {
  // Where another rank is gone, waiting for it would last forever.
  const bool failed = std::uncaught_exceptions() > 0;
#ifdef NCCL_CTA_POLICY_ZERO
  if (!failed)
    for (const auto &[comm, window] : impl->windows)
      nccl().ncclCommWindowDeregister(comm, window);
#endif
  impl->forEachComm([&](ncclComm_t comm) {
    if (failed)
      nccl().ncclCommAbort(comm);
    else
      nccl().ncclCommDestroy(comm);
  });
}

DeviceMemory Nccl::allocate(size_t bytes, const std::string &what) {
  if (bytes == 0)
    return {};
  void *address = nullptr;
  nccl().check(nccl().ncclMemAlloc(&address, bytes),
               fmt::format("{}: cannot take {} of GPU memory", what, report::bytesText(bytes)));
  return {reinterpret_cast<CUdeviceptr>(address), bytes,
          [](CUdeviceptr taken) { nccl().ncclMemFree(reinterpret_cast<void *>(taken)); }};
}

void Nccl::share([[maybe_unused]] const DeviceMemory &memory) {
#ifdef NCCL_CTA_POLICY_ZERO
  if (memory.size() == 0 || !nccl().ncclCommWindowRegister)
    return;
  // With copy engines alone. Where kernels of NCCL may write into windows, bits were others in
  // every run of a small model whose parameters are shared out, on one stream too; without windows,
  // or with NCCL_SYM_KERNEL=none, bits were the same.
  for (const Impl::Group &group : impl->groups) {
    if (!group.byEngines)
      continue;
    ncclWindow_t window = nullptr; // NCCL gives none where GPUs cannot reach each other's memory
    nccl().check(nccl().ncclCommWindowRegister(group.byEngines,
                                               reinterpret_cast<void *>(memory.get()),
                                               memory.size(), &window, NCCL_WIN_COLL_SYMMETRIC),
                 "cannot share memory with the other GPUs", group.byEngines);
    if (window)
      impl->windows.emplace_back(group.byEngines, window);
  }
#endif
}

std::unique_ptr<DeviceCall> Nccl::prepareAllGather(const CollectiveSpec &spec) const {
  return std::make_unique<AllGather>(impl->groups[spec.axis].forBytes(spec.bytes * spec.ranks),
                                     spec.bytes);
}

std::unique_ptr<DeviceCall> Nccl::prepareAllToAll(const CollectiveSpec &spec) const {
  return std::make_unique<AllToAll>(impl->groups[spec.axis].forBytes(spec.bytes), spec.ranks,
                                    spec.bytes);
}

void Nccl::check() const {
  impl->forEachComm([](ncclComm_t comm) {
    ncclResult_t status = ncclSuccess;
    nccl().check(nccl().ncclCommGetAsyncError(comm, &status), "cannot ask for errors", comm);
    nccl().check(status, "a collective failed", comm);
  });
}

bool Nccl::usesEngines() const {
#ifdef NCCL_CTA_POLICY_ZERO
  return std::ranges::any_of(impl->groups, [this](const Impl::Group &group) {
    return group.byEngines && std::ranges::any_of(impl->windows, [&](const auto &window) {
             return window.first == group.byEngines;
           });
  });
#else
  return false;
#endif
}

std::string Nccl::version() const { return Library::text(nccl().version); }

} // namespace hydra::runtime::cuda
