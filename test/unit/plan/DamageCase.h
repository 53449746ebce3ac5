// One broken rule: what to do to the sample plan, and what the loader must say about it.
#pragma once

#include "runtime/support/Error.h"
#include "test/support/SamplePlan.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

namespace hydra::test {

struct DamageCase {
  std::string name;
  std::function<void(planfile::PlanT &)> damage;
  std::string message;

  friend void PrintTo(const DamageCase &one, std::ostream *out) { *out << one.name; }
};

inline void addAxis(planfile::PlanT &plan, std::string name, uint32_t size, int32_t rank = -1) {
  auto axis = std::make_unique<planfile::MeshAxisT>();
  axis->name = std::move(name);
  axis->size = size;
  axis->rank = rank;
  plan.mesh.push_back(std::move(axis));
}

inline std::string nameOfCase(const testing::TestParamInfo<DamageCase> &info) {
  return info.param.name;
}

/// What the loader says; nothing if it accepts the plan.
inline std::string errorOf(const PlanBuilder &builder) {
  try {
    builder.load();
  } catch (const support::Error &error) {
    return error.what();
  }
  return "";
}

/// The error is the file's name and exactly the message.
inline void expectError(const DamageCase &one) {
  PlanBuilder builder = samplePlan();
  one.damage(builder.plan);
  EXPECT_EQ(errorOf(builder), "plan.fb: " + one.message);
}

} // namespace hydra::test
