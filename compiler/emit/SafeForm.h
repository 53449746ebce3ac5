// Several plans of one model in one file: the programs of all run on the variables of the first.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>

namespace hydra {

/// Adds the programs of `safe` to `fast`, as the safe forms of its programs of the same names, with
/// their kernels, behind those of `fast` in their order, and tensors. Variables, scalars and axes
/// of the mesh are those of `fast`, by name; the transient segment is shared; what only `safe` has
/// (copies of parameters, such as rounded ones) gets bytes behind the persistent segment. Throws
/// Error when the two do not keep parameters and states alike: other types, shapes, strides, or
/// places within a unit.
void addSafeForm(planfile::PlanT &fast, planfile::PlanT safe);

/// Adds the programs of `form`, in the same way, as those without the optimization of that name,
/// alone; `plan` has a safe form and lists the optimization. Code that is there already is not
/// added once more. Throws Error where addSafeForm does; the plan is then of no more use.
void addFormWithout(planfile::PlanT &plan, planfile::PlanT form, const std::string &optimization);

} // namespace hydra
