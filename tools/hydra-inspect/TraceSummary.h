// Where the time of a time line goes: by class of kernels and by kernel, of one or of two.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hydra::inspect {

struct TraceSum {
  uint64_t calls = 0;
  double microseconds = 0;
};

/// Kernels, copies and fills of a GPU; where there are none, operations on the CPU, each without
/// those that it called itself.
struct TraceSummary {
  std::string file;
  bool device = false;       ///< of a GPU
  double begin = 0, end = 0; ///< of the first and last of them, microseconds
  TraceSum total;
  std::map<std::string, TraceSum> byClass; ///< as kernelClass has them
  std::map<std::string, TraceSum> byName;
};

/// Of what hydra-run --profile=FILE.json or PyTorch's profiler wrote. Throws Error when the file is
/// something else, or nothing in it took time.
TraceSummary summarizeTrace(const std::filesystem::path &path);

/// Tables by class and, of the `top` with most time, by name. Of two time lines the second beside
/// the first with what it takes more.
std::string traceText(const std::vector<TraceSummary> &traces, size_t top);
std::string traceMarkdown(const std::vector<TraceSummary> &traces, size_t top);

/// {"traces": [{"file", "device", "calls", "microseconds", "span_microseconds"}], "classes": [...],
/// "names": [...]}, all of them: {"name", "traces": [{"calls", "microseconds", "percent"}]}, and of
/// two also {"delta_microseconds", "delta_percent"}, where null is what the first has none of.
std::string traceJson(const std::vector<TraceSummary> &traces);

} // namespace hydra::inspect
