// How fast batches come when nobody computes.
#include "runtime/data/Loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

std::string hydra::data::benchLoader(Loader &loader, int batches) {
  using Clock = std::chrono::steady_clock;
  constexpr int warmUp = 10;
  for (int i = 0; i < warmUp; ++i)
    loader.next();
  std::vector<double> milliseconds;
  double fill = 0;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < batches; ++i) {
    fill += loader.ready();
    const Clock::time_point before = Clock::now();
    loader.next();
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - before).count());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const LoaderOptions &options = loader.options();
  const double n = batches;
  const double mean = std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0) / n;
  double squares = 0;
  for (const double time : milliseconds)
    squares += (time - mean) * (time - mean);
  const double deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  std::sort(milliseconds.begin(), milliseconds.end());
  const auto quantile = [&](double q) {
    return milliseconds[static_cast<size_t>(q * (n - 1) + 0.5)];
  };
  const uint64_t rows = options.batch / options.parts;
  const double rate = n * double(rows * options.length) / seconds;
  return fmt::format(
      "| batches | B | S | threads | tokens/s | batch ms mean | std | p50 | p99 | ring fill |\n"
      "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
      "| {0} | {1} | {2} | {3} | {4:.4g} | {5:.4f} | {6:.4f} | {7:.4f} | {8:.4f} | {9:.2f} of {10} "
      "|\n"
      "{{\"report\":\"R17\",\"batches\":{0},\"batch\":{1},\"seq\":{2},\"threads\":{3},"
      "\"tokens_per_second\":{4:.6g},\"batch_ms_mean\":{5:.6f},\"batch_ms_std\":{6:.6f},"
      "\"batch_ms_p50\":{7:.6f},\"batch_ms_p99\":{8:.6f},\"ring_fill\":{9:.3f},\"ring\":{10}}}\n",
      batches, rows, options.length, options.threads, rate, mean, deviation, quantile(0.5),
      quantile(0.99), fill / n, options.ahead);
}
