// Two plans of one model in one file: the programs of the second run on the variables of the first.
#pragma once

#include "runtime/plan/plan_generated.h"

namespace hydra {

/// Adds the programs of `safe` to `fast`, as the safe forms of its programs of the same names, with
/// their kernels and tensors. Variables, scalars and axes of the mesh are those of `fast`, by name;
/// the transient segment is shared; what only `safe` has (copies of parameters, such as rounded
/// ones) gets bytes behind the persistent segment. Throws Error when the two do not keep parameters
/// and states alike: other types, shapes, strides, or places within a unit.
void addSafeForm(planfile::PlanT &fast, planfile::PlanT safe);

} // namespace hydra
