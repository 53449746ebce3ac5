// A curve of losses as text.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hydra::report {

/// Pairs of step and loss, by increasing step.
using LossCurve = std::vector<std::pair<int64_t, double>>;

/// Losses of training as `.` (the mean of the steps that share a column), held-out ones as `o`, in
/// a frame of `width` x `height` characters with the axes labelled. Empty when nothing finite is
/// given.
std::string lossPlot(const LossCurve &training, const LossCurve &heldOut, size_t width = 64,
                     size_t height = 14);

} // namespace hydra::report
