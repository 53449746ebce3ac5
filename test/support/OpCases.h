// For every differentiable operation: random small models in all its forms.
#pragma once

#include "test/support/Random.h"
#include "test/support/SmallModel.h"

#include <functional>
#include <ostream>

namespace hydra::test {

struct OpCase {
  std::string name;                         ///< of the operation, with the form behind `_`
  std::function<SmallModel(Random &)> make; ///< shapes are random: odd, 1, different
};

/// How GoogleTest shows a case.
inline void PrintTo(const OpCase &c, std::ostream *out) { *out << c.name; }

const std::vector<OpCase> &opCases();

} // namespace hydra::test
