// What the routers of a model did in a training run, from its log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hydra::inspect {

/// A block of the model; means over steps.
struct RoutedBlock {
  double mean = 0, deviation = 0; ///< of the Mixture-of-Depths' probabilities; 0 where it has none
  std::vector<double> depths,
      rows; ///< tokens of each depth; rows of each recursion that are computed
};

struct RoutedStep {
  int64_t step = 0;
  double loss = 0, milliseconds = 0;
  std::map<std::string, double> parts; ///< of the loss: ce, aux, ponder
  std::vector<RoutedBlock> blocks;
};

struct RoutingLog {
  std::string file;
  std::map<std::string, std::string> symbols; ///< of the model
  std::vector<RoutedStep> steps;              ///< the last `last` that the log has
};

/// Of what hydra-run --log wrote; where a step appears twice, the later one counts. Throws Error
/// when it is no such log, or tells nothing of routers.
RoutingLog readRoutingLog(const std::filesystem::path &path, size_t last);

/// Of every block: mode, mean and deviation of the probabilities beside their target, rows that
/// were computed of all, what that saves; mean depth, tokens of each depth, rows of each recursion,
/// and what part of all recursions is computed. Then the loss and its parts along the run.
std::string routingText(const RoutingLog &log);
std::string routingMarkdown(const RoutingLog &log);
/// {"file", "mor", "mod", "target", "steps", "step_ms", "blocks": [{"block", "mode", "mod_mean",
/// "mod_std", "rows", "total", "computed", "savings_percent", "mean_depth", "depths",
/// "rows_by_recursion"}], "run": [{"step", "loss", "ce", "aux", "ponder", "computed"}]}.
std::string routingJson(const RoutingLog &log);

} // namespace hydra::inspect
