// Where most of a step's time goes, and what holds it there.
#pragma once

#include "runtime/report/Measurement.h"
#include "runtime/report/Section.h"

namespace hydra::report {

/// `hotspots`: [{"name", "module", "calls", "microseconds", "percent", "bound"}], the three
/// operations with most time, those of all layers as one, of all time in steps. `bound` is what
/// the compiler predicts most of it to go to: `exchange` between ranks or with the host, bytes in
/// the device's `memory`, arithmetic (`compute`), or the start of a step (`launch`).
Section hotspots(const planfile::Plan &plan, const Measurement &measured);

} // namespace hydra::report
