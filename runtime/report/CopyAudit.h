// Every copy, cast and fill of a step: who made it, what it goes between, what it costs, and
// whether it has to be.
#pragma once

#include "runtime/report/Measurement.h"
#include "runtime/report/Section.h"

#include <string>
#include <vector>

namespace hydra::report {

/// A step that does nothing but move numbers, or several that differ in their layer alone.
struct CopyEntry {
  std::string name, pass, phase, program, module, model; ///< the last `model.mlir:12:3`
  std::string from, to; ///< operations that make what it reads and read what it makes
  std::string why;
  bool avoidable = false;
  double steps = 0, calls = 0, bytes = 0; ///< bytes of traffic in all calls
  double seconds = 0, predicted = 0;
};

/// Those of a step or call, with most time first.
std::vector<CopyEntry> auditCopies(const planfile::Plan &plan, const Measurement &measured);

/// `copies`: {"avoidable": {"calls", "bytes", "microseconds", "percent"}, "needed": {...},
/// "copies":
/// [{"name", "pass", "program", "phase", "module", "model", "from", "to", "avoidable", "why",
/// "steps", "calls", "bytes", "predicted_microseconds", "microseconds"}]}, where percent is of the
/// time of all steps; the 15 with most time in the table. Microseconds are null where nothing was
/// measured.
Section copySection(const planfile::Plan &plan, const Measurement &measured);

} // namespace hydra::report
