// Queues of copies and memsets, each run as far as somebody waits for.
#include "test/unit/cuda/driver/FakeDriver.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <vector>

// The runtime asks for the first version, which headers may have renamed.
#undef cuEventElapsedTime

using hydra::test::FakeDriverState;

namespace {

using Work = std::function<void()>;

/// Work in the order in which it came.
struct Stream {
  std::deque<Work> work;
  uint64_t done = 0;

  uint64_t end() const { return done + work.size(); }
  void runTo(uint64_t position) {
    for (; done < position; ++done) {
      const Work next = std::move(work.front());
      work.pop_front();
      next();
    }
  }
};

/// A place in a stream; none where it was never recorded.
struct Event {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0;

  void wait() const {
    if (stream)
      stream->runTo(position);
  }
};

/// Memory of one kind, by its beginning, each with some behind it that nobody is to write.
class Memory {
public:
  std::byte *take(size_t bytes) {
    auto block = std::make_unique_for_overwrite<std::byte[]>(bytes + kGuard);
    std::memset(block.get(), kAny, bytes + kGuard);
    std::byte *const begin = block.get();
    blocks[begin] = {std::move(block), bytes};
    return begin;
  }
  CUresult giveBack(const void *begin) {
    const auto found = blocks.find(static_cast<const std::byte *>(begin));
    if (found == blocks.end())
      return CUDA_ERROR_INVALID_VALUE;
    const std::span guard(found->first + found->second.bytes, kGuard);
    overruns += std::ranges::count(guard, std::byte{kAny}) != kGuard;
    blocks.erase(found);
    return CUDA_SUCCESS;
  }
  size_t overrun() const { return overruns; }
  size_t count() const { return blocks.size(); }

  /// Whether one block has all of the bytes.
  bool holds(const void *from, size_t bytes) const {
    const auto *begin = static_cast<const std::byte *>(from);
    const auto next = blocks.upper_bound(begin);
    if (next == blocks.begin())
      return false;
    const auto &[first, block] = *std::prev(next);
    return begin + bytes <= first + block.bytes;
  }
  bool touches(const void *from, size_t bytes) const {
    const auto *begin = static_cast<const std::byte *>(from);
    return std::ranges::any_of(blocks, [&](const auto &entry) {
      return begin < entry.first + entry.second.bytes && entry.first < begin + bytes;
    });
  }

private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes = 0;
  };
  static constexpr int kAny = 0xA5, kGuard = 4096;

  std::map<const std::byte *, Block, std::less<>> blocks;
  size_t overruns = 0;
};

struct Gpu {
  std::mutex mutex;
  Memory device, pinned;
  std::map<CUstream, std::shared_ptr<Stream>> streams;
  std::set<Event *> events;
  size_t contexts = 0, faults = 0;
};

Gpu &gpu() {
  static Gpu instance;
  return instance;
}

thread_local CUcontext current = nullptr;

std::byte *pointerTo(CUdeviceptr address) { return reinterpret_cast<std::byte *>(address); }

/// A function of the driver that needs no context.
template <typename Body> CUresult outside(const Body &body) {
  const std::lock_guard lock(gpu().mutex);
  return body();
}

/// One that needs the thread's context.
template <typename Body> CUresult inside(const Body &body) {
  return current ? outside(body) : CUDA_ERROR_INVALID_CONTEXT;
}

/// One that adds work to a stream.
template <typename Body> CUresult enqueue(CUstream stream, const Body &body) {
  return inside([&] {
    const auto found = gpu().streams.find(stream);
    return found == gpu().streams.end() ? CUDA_ERROR_INVALID_HANDLE : body(*found->second);
  });
}

/// Does the work, if by then the memory is still there.
Work unlessGone(const Memory &memory, const void *begin, size_t bytes, Work work) {
  return [&memory, begin, bytes, work = std::move(work)] {
    if (memory.holds(begin, bytes))
      work();
    else
      ++gpu().faults;
  };
}

Work onDevice(CUdeviceptr begin, size_t bytes, Work work) {
  return unlessGone(gpu().device, pointerTo(begin), bytes, std::move(work));
}

/// A copy between the device and pageable memory of the host, or pinned memory.
bool isCopy(CUdeviceptr device, const void *host, size_t bytes) {
  return gpu().device.holds(pointerTo(device), bytes) &&
         (gpu().pinned.holds(host, bytes) || !gpu().pinned.touches(host, bytes));
}

} // namespace

FakeDriverState hydra::test::fakeDriverState() {
  const std::lock_guard lock(gpu().mutex);
  FakeDriverState state;
  state.live = gpu().device.count() + gpu().pinned.count() + gpu().streams.size() +
               gpu().events.size() + gpu().contexts;
  for (const auto &[handle, stream] : gpu().streams)
    state.waiting += stream->work.size();
  state.faults = gpu().faults + gpu().device.overrun() + gpu().pinned.overrun();
  return state;
}

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult, const char **name) {
  *name = "an error of the driver of tests";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult status, const char **text) {
  *text = status == CUDA_ERROR_INVALID_CONTEXT ? "the thread has no context"
          : status == CUDA_ERROR_NOT_SUPPORTED ? "not supported"
                                               : "not a valid argument";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int number) {
  *device = number;
  return number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  constexpr std::string_view own = "GPU of tests";
  const size_t count = own.copy(name, static_cast<size_t>(length) - 1);
  name[count] = '\0';
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *bus, int length, CUdevice) {
  constexpr std::string_view none = "ffff:ff:1f.0"; // where no machine has a GPU
  const size_t count = none.copy(bus, static_cast<size_t>(length) - 1);
  bus[count] = '\0';
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                   : 1;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  return outside([&] {
    ++gpu().contexts;
    *context = reinterpret_cast<CUcontext>(&gpu());
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  return outside([&] {
    --gpu().contexts;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/// To each thread it is another GPU, as it is to each rank.
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice) {
  static std::atomic<char> threads = 0;
  thread_local const char own = ++threads;
  std::memset(uuid->bytes, own, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free, size_t *total) {
  *free = *total = size_t{8} << 30;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  return inside([&] {
    *address = reinterpret_cast<CUdeviceptr>(gpu().device.take(bytes));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFree(CUdeviceptr address) {
  return inside([&] { return gpu().device.giveBack(pointerTo(address)); });
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  return inside([&] {
    *address = gpu().pinned.take(bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeHost(void *address) {
  return inside(
      [&] { return gpu().pinned.giveBack(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}

/// Pageable memory is the caller's again when this returns.
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return enqueue(stream, [&](Stream &own) {
    if (bytes == 0)
      return CUDA_SUCCESS;
    if (!isCopy(to, from, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    const auto *begin = static_cast<const std::byte *>(from);
    if (gpu().pinned.holds(from, bytes))
      own.work.push_back(unlessGone(gpu().pinned, from, bytes, onDevice(to, bytes, [=] {
                                      std::memcpy(pointerTo(to), begin, bytes);
                                    })));
    else
      own.work.push_back(onDevice(to, bytes, [=, kept = std::vector(begin, begin + bytes)] {
        std::memcpy(pointerTo(to), kept.data(), bytes);
      }));
    return CUDA_SUCCESS;
  });
}

/// Pageable memory has its content when this returns.
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return enqueue(stream, [&](Stream &own) {
    if (bytes == 0)
      return CUDA_SUCCESS;
    if (!isCopy(from, to, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    const Work copy = onDevice(from, bytes, [=] { std::memcpy(to, pointerTo(from), bytes); });
    if (gpu().pinned.holds(to, bytes)) {
      own.work.push_back(unlessGone(gpu().pinned, to, bytes, copy));
      return CUDA_SUCCESS;
    }
    own.runTo(own.end());
    copy();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  return enqueue(stream, [&](Stream &own) {
    if (!gpu().device.holds(pointerTo(to), bytes))
      return CUDA_ERROR_INVALID_VALUE;
    own.work.push_back(onDevice(to, bytes, [=] { std::memset(pointerTo(to), value, bytes); }));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  return inside([&] {
    auto made = std::make_shared<Stream>();
    *stream = reinterpret_cast<CUstream>(made.get());
    gpu().streams[*stream] = std::move(made);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy(CUstream stream) {
  return enqueue(stream, [&](Stream &own) {
    own.runTo(own.end());
    gpu().streams.erase(stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return enqueue(stream, [&](Stream &own) {
    own.work.push_back([recorded = *reinterpret_cast<Event *>(event)] { recorded.wait(); });
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return enqueue(stream, [&](Stream &own) {
    own.runTo(own.end());
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  return inside([&] {
    Event *const made = *gpu().events.insert(new Event).first;
    *event = reinterpret_cast<CUevent>(made);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent event) {
  return inside([&] {
    auto *const own = reinterpret_cast<Event *>(event);
    if (gpu().events.erase(own) == 0)
      return CUDA_ERROR_INVALID_HANDLE;
    delete own;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return enqueue(stream, [&](Stream &own) {
    *reinterpret_cast<Event *>(event) = {gpu().streams.at(stream), own.end()};
    return CUDA_SUCCESS;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return inside([&] {
    reinterpret_cast<Event *>(event)->wait();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = 0.0F;
  return CUDA_SUCCESS;
}

} // extern "C"
