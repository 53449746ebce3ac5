// Clock, power and temperature of a GPU by NVML, which comes with the driver and is looked up when
// somebody asks. What is declared here of it is what nvml.h says: its header is not in every
// toolkit.
#pragma once

#include "runtime/run/DeviceWatch.h"

#include <chrono>
#include <memory>
#include <string>

namespace hydra::runtime::cuda {

/// NVML's functions that are used; those without are null.
struct Nvml {
  struct Device; // nvmlDevice_st
  using Status = int;
  static constexpr Status kSuccess = 0;
  /// Arguments of nvmlDeviceGetClockInfo and nvmlDeviceGetTemperature.
  static constexpr int kMultiprocessorClock = 1, kGpuTemperature = 0;
  static constexpr unsigned kMigIsOn = 1;

  bool found = false; ///< the library
  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  const char *(*errorString)(Status) = nullptr;
  Status (*deviceByBus)(const char *bus, Device **) = nullptr;
  Status (*migMode)(Device *, unsigned *current, unsigned *pending) = nullptr;
  Status (*clock)(Device *, int which, unsigned *megahertz) = nullptr;
  Status (*power)(Device *, unsigned *milliwatts) = nullptr;
  Status (*energy)(Device *, unsigned long long *millijoules) = nullptr;
  Status (*temperature)(Device *, int sensor, unsigned *celsius) = nullptr;
  Status (*clockReasons)(Device *, unsigned long long *bits) = nullptr;

  /// Of a library as dlopen takes it.
  static Nvml find(const char *library = kLibrary);
  static constexpr const char *kLibrary = "libnvidia-ml.so.1";
};

/// Watches the GPU at a place on the PCI bus, such as `0000:3b:00.0`: a thread takes a sample at
/// once and then whenever `interval` has passed. Where NVML is missing, does not begin, does not
/// know the GPU, or the GPU is split into instances (whose clock and power are those of all
/// together), the readings have no samples, and one line in `unknown`.
std::unique_ptr<DeviceWatch> watchGpu(const Nvml &nvml, const std::string &bus,
                                      std::chrono::milliseconds interval);

} // namespace hydra::runtime::cuda
