// The GPU that a plan runs on: its context, streams, events and memory.
#pragma once

#include "runtime/cuda/Driver.h"
#include "runtime/plan/PlanFile.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime::cuda {

/// Device memory that is given back.
class DeviceMemory {
public:
  /// Gives memory back to whoever gave it.
  using Release = void (*)(CUdeviceptr address);

  DeviceMemory() = default;
  /// Throws Error, beginning with `what`, when there is not so much.
  DeviceMemory(size_t bytes, const std::string &what);
  /// Of a library that gives memory of its own.
  DeviceMemory(CUdeviceptr address, size_t bytes, Release release)
      : address(address), bytes(bytes), release(release) {}
  ~DeviceMemory();
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    std::swap(address, other.address);
    std::swap(bytes, other.bytes);
    std::swap(release, other.release);
    return *this;
  }
  CUdeviceptr get() const { return address; }
  size_t size() const { return bytes; }

private:
  CUdeviceptr address = 0;
  size_t bytes = 0;
  Release release = nullptr; ///< null: the driver's
};

/// Memory of the host that the GPU's copy engines reach, given back.
class HostMemory {
public:
  HostMemory() = default;
  /// Zeros, which so many threads write. Throws Error, beginning with `what`, when there is not so
  /// much.
  HostMemory(size_t bytes, const std::string &what, unsigned threads = 1);
  ~HostMemory();
  HostMemory(HostMemory &&other) noexcept { *this = std::move(other); }
  HostMemory &operator=(HostMemory &&other) noexcept {
    std::swap(address, other.address);
    std::swap(bytes, other.bytes);
    return *this;
  }
  std::byte *get() const { return address; }
  size_t size() const { return bytes; }

private:
  std::byte *address = nullptr;
  size_t bytes = 0;
};

/// The GPU, made current for the thread that creates it; `ranks`: its number is that of a rank on
/// this machine. Throws Error when it is not the plan's kind.
class Device {
public:
  Device(const PlanFile &file, int number, bool ranks);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Waits for the first stream. Throws Error, beginning with `what`, when something went wrong.
  void wait(const std::string &what) const;

  /// By the first stream: uploads return before they are done, downloads when they are.
  void upload(CUdeviceptr to, std::span<const std::byte> bytes) const;
  void download(CUdeviceptr from, std::span<std::byte> bytes) const;
  /// To pinned memory; returns before it is done.
  void beginDownload(CUdeviceptr from, std::span<std::byte> bytes) const;

  /// Bytes of its memory that are free, and that there are.
  struct Memory {
    size_t free = 0, total = 0;
  };
  Memory memory() const;

  int attribute(CUdevice_attribute which) const;
  /// Such as `0000:3b:00.0`.
  std::string busId() const;

  std::vector<CUstream> streams; ///< as many as the plan's programs have at most
  CUstream stream = nullptr;     ///< the first
  std::string name, architecture;

private:
  CUdevice device = 0;
  CUcontext context = nullptr;
};

class Event {
public:
  Event();
  ~Event();
  Event(Event &&other) noexcept : event(std::exchange(other.event, nullptr)) {}
  void record(CUstream stream) const;
  void makeWait(CUstream stream) const;
  /// Until the stream has come to where it was recorded last; not at all if it never was. Throws
  /// Error, beginning with `what`, when something went wrong.
  void wait(const std::string &what = "cannot wait for an event") const;
  double secondsSince(const Event &begin) const;

private:
  CUevent event = nullptr;
};

} // namespace hydra::runtime::cuda
