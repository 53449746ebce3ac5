// Pictures of a program as SVG, for documents. They are readable in dark and in light.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "tools/hydra-inspect/Trace.h"

#include <string>

namespace hydra::inspect {

/// The transient segment over the program's predicted time (over its blocks where nothing is
/// predicted): addresses up, colours by category, the peak marked.
std::string memoryPicture(const planfile::Plan &plan, const planfile::Program &program);

/// Steps by stream, colours by class, phases above: predicted, or as measured.
std::string schedulePicture(const planfile::Plan &plan, const planfile::Program &program,
                            const MeasuredProgram *measured);

} // namespace hydra::inspect
