// What a device tells of itself while it works: its clock, its power, how warm it is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// What was read from `begin` to `end`, a number for each sample. What the device does not tell is
/// empty, and `unknown` says why.
struct DeviceReadings {
  std::vector<double> megahertz; ///< the clock of its multiprocessors
  std::vector<double> watts;
  std::vector<double> celsius;
  std::optional<double> joules; ///< by a counter of its own, from begin to end
  double seconds = 0;           ///< from begin to end
  /// What kept the clock from being higher, in words, and in how many samples; nothing where that
  /// is not known.
  std::optional<std::map<std::string, uint64_t>> throttled;
  uint64_t samples = 0;
  std::vector<std::string> unknown; ///< such as `power: Not Supported`
};

/// Reads them beside what runs, and changes nothing.
class DeviceWatch {
public:
  virtual ~DeviceWatch() = default;

  /// Begins anew.
  virtual void begin() = 0;
  /// There is a sample at least of the beginning and of the end.
  virtual DeviceReadings end() = 0;
};

} // namespace hydra::runtime
