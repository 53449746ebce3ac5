// Points into a grid of characters.
#include "runtime/report/LossPlot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace hydra::report;

namespace {

/// Means over columns; NaN where a column has none.
std::vector<double> columnMeans(const LossCurve &curve, int64_t first, int64_t last, size_t width) {
  std::vector<double> sums(width, 0.0);
  std::vector<size_t> counts(width, 0);
  for (const auto &[step, loss] : curve) {
    if (!std::isfinite(loss))
      continue;
    const auto column = static_cast<size_t>(
        double(step - first) / double(std::max<int64_t>(1, last - first)) * double(width - 1));
    sums[column] += loss;
    ++counts[column];
  }
  for (size_t i = 0; i < width; ++i)
    sums[i] =
        counts[i] > 0 ? sums[i] / double(counts[i]) : std::numeric_limits<double>::quiet_NaN();
  return sums;
}

} // namespace

std::string hydra::report::lossPlot(const LossCurve &training, const LossCurve &heldOut,
                                    size_t width, size_t height) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (const LossCurve *curve : {&training, &heldOut})
    for (const auto &[step, loss] : *curve)
      first = std::min(first, step), last = std::max(last, step);
  if (training.empty() && heldOut.empty())
    return {};
  const std::vector<double> lines[] = {columnMeans(training, first, last, width),
                                       columnMeans(heldOut, first, last, width)};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const std::vector<double> &line : lines)
    for (const double loss : line)
      if (!std::isnan(loss))
        low = std::min(low, loss), high = std::max(high, loss);
  if (low > high)
    return {};
  std::vector<std::string> grid(height, std::string(width, ' '));
  const double range = high > low ? high - low : 1.0;
  for (size_t curve = 0; curve < 2; ++curve)
    for (size_t x = 0; x < width; ++x)
      if (const double loss = lines[curve][x]; !std::isnan(loss))
        grid[static_cast<size_t>((high - loss) / range * double(height - 1) + 0.5)][x] =
            ".o"[curve];

  std::string text = "  loss\n";
  for (size_t y = 0; y < height; ++y) {
    const double loss = high - range * double(y) / double(height - 1);
    std::string line = fmt::format("{:>6.3g} |{}", loss, grid[y]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string left = fmt::format("{}", first), right = fmt::format("{}", last);
  text += fmt::format("       +{}\n        {}{:>{}} step\n", std::string(width, '-'), left, right,
                      width - left.size());
  text += heldOut.empty() ? "  . training" : "  . training   o held out";
  return text;
}
