// Running a plan allocates nothing: operator new is counted while a program runs.
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/run/Session.h"
#include "test/unit/cpu/SmallTraining.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

} // namespace

// The address sanitizer has allocation functions of its own; there the count stays 0.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HYDRA_OWN_NEW 0
#endif
#endif
#ifndef HYDRA_OWN_NEW
void *operator new(size_t size) {
  if (counting)
    ++allocations;
  if (void *memory = std::malloc(size))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif

using namespace hydra::runtime;
using hydra::planfile::AttentionGradT;
using hydra::planfile::AttentionT;
using hydra::planfile::CopyT;
using hydra::planfile::EmbeddingGradT;
using hydra::planfile::FillT;
using namespace hydra::test;

TEST(Allocation, TrainingStepsAllocateNothing) {
  const PlanFile file = smallTraining().load();
  CpuExecutor executor(file, {.threads = 2});
  Session session(file, executor, {});
  session.advance();
  counting = true;
  for (int i = 0; i < 3; ++i)
    session.advance();
  counting = false;
  EXPECT_EQ(allocations.exchange(0), 0);
}

TEST(Allocation, LibraryCallsAllocateNothing) {
  PlanBuilder builder;
  AttentionShape shape;
  shape.batch = 2;
  shape.queries = shape.keys = 70;
  shape.heads = 4;
  shape.kvHeads = 2;
  shape.headDim = shape.valueDim = 24;
  const auto tensor = [&](const char *name, int64_t heads) {
    return builder.tensor(name, {2, 70, heads, 24});
  };
  const uint32_t q = tensor("q", 4), k = tensor("k", 2), v = tensor("v", 2), o = tensor("o", 4),
                 dO = tensor("dO", 4), dq = tensor("dq", 4), dk = tensor("dk", 2),
                 dv = tensor("dv", 2), lse = builder.tensor("lse", {2, 4, 70});
  const uint32_t workspace =
      builder.tensor("workspace", {static_cast<int64_t>(attentionWorkspaceBytes(shape, true))},
                     hydra::planfile::SegmentKind::transient, hydra::planfile::DType::u8);
  const uint32_t ids = builder.tensor("ids", {2, 70, 4}, hydra::planfile::SegmentKind::transient,
                                      hydra::planfile::DType::i32);
  const uint32_t table = builder.tensor("table", {10, 24});
  const auto causal = [](auto action) {
    action.scale = 0.2;
    action.causal = true;
    return action;
  };
  FillT fill;
  fill.value = 3.0;
  builder.program(
      "main",
      blocks(call(fill, {writes(ids)}),
             call(causal(AttentionT()), {reads(q), reads(k), reads(v), writes(o), writes(lse)}),
             call(causal(AttentionGradT()),
                  {reads(dO), reads(q), reads(k), reads(v), reads(o), reads(lse), writes(dq),
                   writes(dk), writes(dv), writes(workspace)}),
             call(EmbeddingGradT(), {reads(ids), reads(dq), writes(table)}),
             call(CopyT(), {reads(dq), writes(q)})));
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 2});
  executor.run(0);
  counting = true;
  executor.run(0);
  counting = false;
  EXPECT_EQ(allocations.exchange(0), 0);
}
