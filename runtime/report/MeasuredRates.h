// How long steps take on a machine, interpolated from steps that were measured there.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::report {

/// A step as the cost model sees it. Steps of one kind with like sizes reach like shares of what
/// the target's rates allow.
struct StepWork {
  std::string kind;          ///< `matmul.bf16`, `attention_forward.bf16`, `norm`
  std::vector<double> sizes; ///< of a matmul rows, columns, depth and matrices; else bytes, over
                             ///< the share, and FLOPs of a byte; all above 0
  double limit = 0;          ///< microseconds that the rates allow
  double share = 1; ///< of the multiprocessors: those of a scan with fewer blocks; else 1

  /// What the rates allow for as many such blocks as there are multiprocessors, in microseconds:
  /// they take as long as fewer.
  double limitOfAll() const { return limit / share; }
};

/// What a step of a plan does.
StepWork workOf(const planfile::Plan &plan, const planfile::Step &step);

/// What the rates of the target allow for it, in microseconds.
double limitOf(const planfile::Step &step);

/// The part of the device that a step occupies: as many of its multiprocessors as the work is
/// estimated to have pieces for, or all of it, which is 1.
double shareOf(const planfile::Plan &plan, const planfile::Step &step);

/// How many sizes steps of a kind have.
size_t sizesOf(std::string_view kind);

/// A step that was measured alone.
struct MeasuredStep {
  std::vector<double> sizes;
  double limit = 0; ///< StepWork::limitOfAll
  double microseconds = 0;
};

/// The field `measured` of a target's description, {"about", "exclusive", "gap_microseconds",
/// "run_microseconds", "input_microseconds", "steps": {kind: [[size, ..., limit, microseconds],
/// ...]}}.
struct MeasuredRates {
  std::string about; ///< what was measured, and where
  planfile::Sharing sharing;
  std::map<std::string, std::vector<MeasuredStep>> steps; ///< by kind

  /// The microseconds of a step that runs alone: its limitOfAll times what is measured over that,
  /// which is interpolated between measured steps of its kind by the logarithms of their sizes. The
  /// limit itself where none of its kind was measured.
  double microseconds(const StepWork &work) const;

  /// The JSON text of the field: a line for each measured step.
  std::string text(size_t indent) const;
  /// From JSON text. Throws Error that names `origin` and the field.
  static MeasuredRates parse(const std::string &text, const std::string &origin);
};

} // namespace hydra::report
