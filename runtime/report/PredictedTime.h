// How long a step of several ranks should take, and how much of it is waiting for exchanges.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/support/StreamTimeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hydra::report {

/// What ranks exchange by collectives of one kind along one axis of the mesh, or device and host by
/// transfers. Bytes are those that one rank sends, or that transfers move; times are microseconds:
/// `alone` those in which nothing computes, `exposed` those by which the step would be shorter
/// without, `ownCopy` those in which own pieces are copied, a part of both.
struct ExchangeSum {
  planfile::Action kind = planfile::Action::NONE;
  uint32_t axis = 0;
  double calls = 0, wireBytes = 0, microseconds = 0, alone = 0, exposed = 0, ownCopy = 0;

  /// Bytes that a rank sends in a second; 0 where it took no time.
  double bandwidth() const { return microseconds > 0 ? 1e6 * wireBytes / microseconds : 0; }
};

/// A collective of a program.
struct ExchangeStep {
  const planfile::Step *step = nullptr;
  double microseconds = 0, exposed = 0;
};

/// A run of a program, or a step that runs several; in microseconds. `compute` is what it would
/// take if exchanges cost nothing, `total - compute = exposed` what they add, `wire` what they
/// take.
struct PredictedTime {
  double total = 0, compute = 0, wire = 0, exposed = 0;
  std::vector<ExchangeSum> exchanges; ///< by kind, then by axis
  std::vector<ExchangeStep> steps;    ///< in the order of programs and blocks

  double wireBytes() const;
  /// Adds what another program takes that often.
  void add(const PredictedTime &other, double times);
};

/// A block with everything inside it: a loop as often as it runs, a switch as its longest case.
double predictedMicroseconds(const planfile::Block &block);
/// The sum of blocks.
double predictedMicroseconds(const flatbuffers::Vector<flatbuffers::Offset<planfile::Block>> &list);

/// When the blocks of the program's own list run.
support::StreamTimeline predictedTimeline(const planfile::Plan &plan,
                                          const planfile::Program &program);
support::StreamTimeline predictedTimeline(const planfile::Plan &plan,
                                          const planfile::Program &program,
                                          const planfile::Sharing *sharing);

/// Blocks wait for streams and events as the plan has them (support/StreamTimeline.h). Of a switch
/// the case that takes longest counts; where steps were measured, the mean of all cases.
PredictedTime predictedTime(const planfile::Plan &plan, const planfile::Program &program);
PredictedTime predictedTime(const planfile::Plan &plan, const planfile::Program &program,
                            const planfile::Sharing *sharing); ///< instead of the target's

/// One optimizer step of the run with all its micro-batches, in a plan that trains; else a run of
/// the first program.
PredictedTime predictedStep(const planfile::Plan &plan);
PredictedTime predictedStep(const planfile::Plan &plan, const planfile::Sharing *sharing);

/// The exchange of a step that is one, with its bytes and no times; `kind` is NONE of any other
/// step.
ExchangeSum exchangeOf(const planfile::Step &step);

/// What is at the other end: an axis of the mesh, or `host`.
std::string exchangeAxis(const planfile::Plan &plan, const ExchangeSum &exchange);

/// `all_gather of data`, `transfer with host`.
std::string exchangeName(const planfile::Plan &plan, const ExchangeSum &exchange);

} // namespace hydra::report
