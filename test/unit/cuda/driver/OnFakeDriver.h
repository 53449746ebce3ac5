// Tests of plans for a GPU on a driver without one.
#pragma once

#include "test/support/PlanBuilder.h"
#include "test/unit/cuda/driver/FakeDriver.h"

#include <gtest/gtest.h>

#include <utility>

namespace hydra::test {

inline PlanBuilder forGpu() {
  PlanBuilder builder;
  builder.plan.target->kind = planfile::TargetKind::cuda;
  builder.plan.target->name = "h100";
  builder.plan.target->sm_arch = "sm_90a";
  return builder;
}

/// With a program that does nothing.
inline runtime::PlanFile loaded(PlanBuilder builder) {
  builder.program("train", {});
  return builder.load();
}

/// Fails when something was left behind.
class OnFakeDriver : public testing::Test {
protected:
  void TearDown() override {
    EXPECT_EQ(fakeDriverState().live, 0U);
    EXPECT_EQ(fakeDriverState().faults, before.faults);
  }

private:
  const FakeDriverState before = fakeDriverState();
};

} // namespace hydra::test
