// Plans on the time line that their streams and events allow.
#include "runtime/report/PredictedTime.h"

#include "runtime/plan/Actions.h"
#include "runtime/plan/EarlyStart.h"
#include "runtime/report/MeasuredRates.h"
#include "runtime/support/StreamOrder.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

namespace hydra::report {

using namespace planfile;

namespace {

bool isExchange(const Block &block) {
  const Step *step = block.node_as_Step();
  return step && exchangeOf(*step).kind != Action::NONE;
}

/// Of an exchange.
support::Link linkOf(const Plan &plan, const Block &block) {
  const Step *step = block.node_as_Step();
  if (!step || step->action_type() != Action::Transfer)
    return support::Link::Ranks;
  const Tensor &to = *plan.tensors()->Get(step->args()->Get(1)->tensor());
  return to.segment() == SegmentKind::host ? support::Link::ToHost : support::Link::ToDevice;
}

ExchangeSum &sumOf(std::vector<ExchangeSum> &sums, const ExchangeSum &one) {
  const auto key = [](const ExchangeSum &sum) { return std::pair(sum.kind, sum.axis); };
  const auto at =
      std::lower_bound(sums.begin(), sums.end(), one,
                       [&](const ExchangeSum &a, const ExchangeSum &b) { return key(a) < key(b); });
  if (at != sums.end() && key(*at) == key(one))
    return *at;
  return *sums.insert(at, {.kind = one.kind, .axis = one.axis});
}

void addSum(std::vector<ExchangeSum> &sums, const ExchangeSum &one, double times) {
  ExchangeSum &sum = sumOf(sums, one);
  sum.calls += times * one.calls;
  sum.wireBytes += times * one.wireBytes;
  sum.microseconds += times * one.microseconds;
  sum.alone += times * one.alone;
  sum.exposed += times * one.exposed;
  sum.ownCopy += times * one.ownCopy;
}

/// Times of a block in microseconds: what the rates allow, and what is predicted; that again, times
/// the part of the device that is occupied meanwhile.
struct Sums {
  double limit = 0, microseconds = 0, launches = 0, occupied = 0;

  void add(const Sums &other, double times) {
    limit += times * other.limit;
    microseconds += times * other.microseconds;
    launches += times * other.launches;
    occupied += times * other.occupied;
  }
};

/// A loop as often as it runs, a switch as the mean of its cases: which of them runs, numbers
/// decide.
Sums sumsOf(const Plan &plan, const Block &block);

Sums sumsOf(const Plan &plan, const flatbuffers::Vector<flatbuffers::Offset<Block>> &list) {
  Sums sums;
  for (const Block *block : list)
    sums.add(sumsOf(plan, *block), 1);
  return sums;
}

Sums sumsOf(const Plan &plan, const Block &block) {
  Sums sums;
  if (const Step *step = block.node_as_Step()) {
    const double time = step->cost()->microseconds();
    return {limitOf(*step), time, 1, shareOf(plan, *step) * time};
  }
  if (const Loop *loop = block.node_as_Loop())
    sums.add(sumsOf(plan, *loop->blocks()), double(loop->count()));
  if (const Switch *choice = block.node_as_Switch())
    for (const Case *one : *choice->cases())
      sums.add(sumsOf(plan, *one->blocks()), 1.0 / choice->cases()->size());
  return sums;
}

/// Counts the launches that begin before the one in front of them has ended, so that nothing is
/// between them.
class EarlyStarts {
public:
  EarlyStarts(const Plan &plan, const Program &program)
      : order(streamsOf(program)), last(streamsOf(program)), has(plan.target()->early_launch()) {}

  /// Those of the next block of the program.
  double of(const Block &block) {
    if (!has)
      return 0;
    const uint32_t stream = block.stream();
    const bool waits = block.waits() && block.waits()->size() > 0;
    if (waits)
      for (const uint32_t event : *block.waits())
        order.wait(stream, event);
    const double early = countIn(block, last[stream], waits, order.isAlone(stream));
    order.add(stream);
    if (block.signals() >= 0)
      order.signal(stream, static_cast<uint32_t>(block.signals()));
    return early;
  }

private:
  static size_t streamsOf(const Program &program) {
    uint32_t most = 0;
    for (const Block *block : *program.blocks())
      most = std::max(most, block->stream());
    return size_t{most} + 1;
  }

  /// `before` is the last step of the stream, if it is a kernel, and becomes that.
  static double countIn(const Block &block, const Step *&before, bool waits, bool alone) {
    if (const Step *step = block.node_as_Step()) {
      const bool kernel = step->action_type() == Action::Launch;
      const bool early = kernel && before && !waits && runtime::beginsEarly(*before, alone);
      before = kernel ? step : nullptr;
      return early ? 1 : 0;
    }
    double early = 0;
    if (const Loop *loop = block.node_as_Loop())
      for (const Block *inner : *loop->blocks())
        early +=
            double(loop->count()) * countIn(*inner, before, std::exchange(waits, false), alone);
    if (const Switch *choice = block.node_as_Switch()) {
      for (const Case *one : *choice->cases()) {
        const Step *none = nullptr;
        for (const Block *inner : *one->blocks())
          early += countIn(*inner, none, false, /*alone=*/true) / choice->cases()->size();
      }
      before = nullptr;
    }
    return early;
  }

  support::StreamOrder order;
  std::vector<const Step *> last;
  bool has;
};

double inputBytes(const Plan &plan, const Program &program) {
  double bytes = 0;
  for (const Input *input : *program.inputs()) {
    const Tensor &tensor = *plan.tensors()->Get(input->tensor());
    double elements = 1;
    for (const int64_t size : *tensor.shape())
      elements *= double(size);
    bytes += elements * double(support::byteSize(runtime::dtypeOf(tensor)));
  }
  return bytes;
}

} // namespace

double PredictedTime::wireBytes() const {
  double bytes = 0;
  for (const ExchangeSum &sum : exchanges)
    bytes += sum.wireBytes;
  return bytes;
}

void PredictedTime::add(const PredictedTime &other, double times) {
  total += times * other.total;
  compute += times * other.compute;
  wire += times * other.wire;
  exposed += times * other.exposed;
  for (const ExchangeSum &sum : other.exchanges)
    addSum(exchanges, sum, times);
  steps.insert(steps.end(), other.steps.begin(), other.steps.end());
}

double predictedMicroseconds(const Block &block) {
  if (const Step *step = block.node_as_Step())
    return step->cost()->microseconds();
  if (const Loop *loop = block.node_as_Loop())
    return double(loop->count()) * predictedMicroseconds(*loop->blocks());
  double most = 0;
  if (const Switch *choice = block.node_as_Switch())
    for (const Case *one : *choice->cases())
      most = std::max(most, predictedMicroseconds(*one->blocks()));
  return most;
}

double predictedMicroseconds(const flatbuffers::Vector<flatbuffers::Offset<Block>> &list) {
  double sum = 0;
  for (const Block *block : list)
    sum += predictedMicroseconds(*block);
  return sum;
}

support::StreamTimeline predictedTimeline(const Plan &plan, const Program &program) {
  return predictedTimeline(plan, program, plan.target()->sharing());
}

support::StreamTimeline predictedTimeline(const Plan &plan, const Program &program,
                                          const Sharing *sharing) {
  std::vector<support::TimedBlock> blocks;
  EarlyStarts early(plan, program);
  for (const Block *block : *program.blocks()) {
    support::TimedBlock timed{.stream = block->stream(),
                              .waits = {},
                              .signals = block->signals(),
                              .time = predictedMicroseconds(*block),
                              .exchange = isExchange(*block),
                              .link = linkOf(plan, *block)};
    if (const Step *step = block->node_as_Step())
      timed.ownCopy = step->own_copy_microseconds();
    if (sharing) {
      const Sums sums = sumsOf(plan, *block);
      timed.time =
          sums.microseconds + (sums.launches - early.of(*block)) * sharing->gap_microseconds();
      timed.share = sums.microseconds > 0 ? std::min(1.0, sums.occupied / sums.microseconds) : 1;
      // A launch takes time too, and keeps nobody else from computing.
      timed.use = timed.time > 0 ? std::min(timed.share, sums.limit / timed.time) : timed.share;
    }
    if (block->waits())
      timed.waits.assign(block->waits()->begin(), block->waits()->end());
    blocks.push_back(std::move(timed));
  }
  support::DeviceRules rules{.overlap = plan.target()->overlap(),
                             .copyTail = plan.target()->own_copy_tail()};
  if (sharing)
    rules.exclusive = sharing->exclusive();
  return support::predictTimeline(blocks, rules);
}

PredictedTime predictedTime(const Plan &plan, const Program &program) {
  return predictedTime(plan, program, plan.target()->sharing());
}

PredictedTime predictedTime(const Plan &plan, const Program &program, const Sharing *sharing) {
  const support::StreamTimeline timeline = predictedTimeline(plan, program, sharing);
  const double around = sharing ? sharing->run_microseconds() + sharing->input_microseconds() *
                                                                    inputBytes(plan, program) / 1024
                                : 0;
  PredictedTime time{.total = timeline.total + around,
                     .compute = timeline.total + around - timeline.exposed,
                     .wire = timeline.wire,
                     .exposed = timeline.exposed,
                     .exchanges = {},
                     .steps = {}};
  if (!sharing)
    time.compute = timeline.compute;
  for (size_t i = 0; i < timeline.blocks.size(); ++i) {
    const Block &block = *program.blocks()->Get(static_cast<uint32_t>(i));
    if (!isExchange(block))
      continue;
    const Step &step = *block.node_as_Step();
    ExchangeSum one = exchangeOf(step);
    one.microseconds = predictedMicroseconds(block);
    one.alone = timeline.blocks[i].alone;
    one.exposed = timeline.blocks[i].exposed;
    one.ownCopy = step.own_copy_microseconds();
    addSum(time.exchanges, one, 1);
    time.steps.push_back({&step, one.microseconds, one.exposed});
  }
  return time;
}

PredictedTime predictedStep(const Plan &plan) {
  return predictedStep(plan, plan.target()->sharing());
}

PredictedTime predictedStep(const Plan &plan, const Sharing *sharing) {
  const auto &programs = *plan.programs();
  PredictedTime time;
  bool trains = false;
  // Of the programs that train, the first is that of the run, and the others those of its phases.
  for (uint32_t i = 0; i < programs.size(); ++i) {
    const Program &program = *programs.Get(i);
    const ProgramRole role = program.role();
    const bool first = !trains && (role == ProgramRole::train || role == ProgramRole::accumulate);
    if (first) {
      trains = true;
      time.add(predictedTime(plan, program, sharing), plan.accumulation());
      if (i > 0 && programs.Get(i - 1)->role() == ProgramRole::count)
        time.add(predictedTime(plan, *programs.Get(i - 1), sharing), plan.accumulation());
    } else if (role == ProgramRole::apply) {
      time.add(predictedTime(plan, program, sharing), 1);
    }
  }
  if (!trains && programs.size() > 0)
    return predictedTime(plan, *programs.Get(0), sharing);
  return time;
}

ExchangeSum exchangeOf(const Step &step) {
  ExchangeSum one{.kind = step.action_type(), .calls = 1};
  if (const AllGather *gather = step.action_as_AllGather()) {
    one.axis = gather->axis();
    one.wireBytes = double(gather->wire_bytes());
  } else if (const AllToAll *exchange = step.action_as_AllToAll()) {
    one.axis = exchange->axis();
    one.wireBytes = double(exchange->wire_bytes());
  } else if (step.action_type() == Action::Transfer) {
    one.wireBytes = double(step.cost()->bytes());
  } else {
    return {};
  }
  return one;
}

std::string exchangeAxis(const Plan &plan, const ExchangeSum &exchange) {
  return exchange.kind == Action::Transfer ? "host"
                                           : plan.mesh()->Get(exchange.axis)->name()->str();
}

std::string exchangeName(const Plan &plan, const ExchangeSum &exchange) {
  return fmt::format("{} {} {}", runtime::wordOf(exchange.kind),
                     exchange.kind == Action::Transfer ? "with" : "of",
                     exchangeAxis(plan, exchange));
}

} // namespace hydra::report
