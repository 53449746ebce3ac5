// The steps of a session: their runs, one behind the other on the device, and what each has left.
#include "runtime/run/BadValue.h"
#include "runtime/run/Session.h"
#include "runtime/support/Error.h"
#include "runtime/support/LossLimit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
using hydra::support::kLossLimit;

void Session::countLabels(Part &part, bool drawn) {
  const Program &program = *file.plan().programs()->Get(static_cast<uint32_t>(part.count));
  const uint64_t runs = file.plan().accumulation(), ahead = part.batches.size();
  for (uint64_t i = 0; i < runs; ++i) {
    if (i % ahead == 0 && !drawn)
      part.batches.draw(nextBatch() + i);
    sound = false;
    part.batches[i % ahead].write(executor, program);
    executor.run(static_cast<uint32_t>(part.count));
  }
}

std::string Session::drawAhead(int64_t number) {
  if (!options.text)
    return "";
  StepBatches &next = nextPart().batches, &wanted = partAt(number).batches;
  next.take(step);
  try {
    // Behind a phase that ended early no step has been read for yet.
    if (number > step && !next.areOf(step)) {
      next.draw(nextBatch());
      next.keepFor(step);
    }
    if (!wanted.areOf(number)) // for a trial of it
      wanted.drawBeside(number);
  } catch (const support::Error &error) {
    return error.what();
  }
  return "";
}

void Session::startPart(const Part &part, uint64_t batch, int64_t number) {
  part.batches[batch].write(executor, *file.plan().programs()->Get(part.program));
  if (meets && options.ranks)
    options.ranks->meet("");
  try {
    executor.start(part.program, part.read);
  } catch (const BadValue &bad) {
    if (!trainPlan)
      throw;
    fail("step {}: {}", number + 1, bad.what());
  }
}

double Session::endPart(const Part &part, double *seconds) {
  const double took = executor.finish();
  if (seconds)
    *seconds = took;
  return part.loss < 0 ? 0.0 : gathered.scalar(static_cast<uint32_t>(part.loss));
}

double Session::runPart(const Part &part, uint64_t batch) {
  startPart(part, batch, step);
  return endPart(part);
}

bool Session::leavesLabelsOut() const {
  // Drawn ids leave no label out.
  return trainPlan && (options.text ? options.text->leavesLabelsOut() : given != nullptr);
}

double Session::makeRuns(Part &part, bool drawnAhead) {
  const uint64_t runs = file.plan().accumulation(), ahead = part.batches.size();
  // In f32, one after the other: so do ranks, and what is told has the same bits.
  float loss = 0.0F;
  const bool counts = leavesLabelsOut();
  int64_t labels = 0;
  if (part.count >= 0)
    countLabels(part, drawnAhead);
  // All of them are there still.
  const bool drawn = drawnAhead || (part.count >= 0 && ahead == runs);
  const uint64_t most = executor.startsAhead(part.program) ? 1 : 0; // beside one that is started
  uint64_t inFlight = 0;
  const auto end = [&] {
    --inFlight;
    const auto added = static_cast<float>(endPart(part));
    loss = part.sumsLosses ? added : loss + added;
    if (told)
      told->add(executor, *file.plan().programs()->Get(part.program));
  };
  try {
    for (uint64_t i = 0; i < runs; ++i) {
      // Those of files all before the first run: one that cannot be read is met between two steps.
      if (i % ahead == 0 && !drawn)
        part.batches.draw(nextBatch() + i);
      sound = false;
      if (inFlight > most)
        end();
      scalars.writeMicroBatch(executor, i);
      startPart(part, i % ahead, step);
      ++inFlight;
      if (counts)
        labels += part.batches[i % ahead].countedLabels().value_or(1);
    }
    while (inFlight > 0)
      end();
  } catch (...) {
    for (; inFlight > 0; --inFlight)
      drain();
    throw;
  }
  if (parts.size() > 1) {
    runPart(parts[1], 0);
    if (told)
      told->addUpdate(executor, *file.plan().programs()->Get(parts[1].program));
  }
  labelled = !counts || anyLabel(labels);
  return double{loss} / static_cast<double>(runs);
}

bool Session::anyLabel(int64_t own) const {
  if (!options.ranks)
    return own > 0;
  const std::byte has{own > 0};
  std::byte any{0};
  for (const std::vector<std::byte> &theirs : options.ranks->gather(std::span(&has, 1)))
    any |= theirs.front();
  return options.ranks->broadcast(std::span(&any, 1)).front() != std::byte{0};
}

bool Session::beginsAhead(int64_t number) const {
  const Part &part = partOf(number);
  // Whoever reads on needs the token that a run has drawn.
  if (file.plan().programs()->Get(part.program)->role() == ProgramRole::decode)
    return false;
  return executor.startsAhead(part.program) && file.plan().accumulation() == 1 && part.count < 0 &&
         (!policies || policies->flags().empty());
}

void Session::begin() {
  if (beginError)
    std::rethrow_exception(std::exchange(beginError, nullptr));
  if (!begun && beginsAhead(step))
    beginStep(step);
}

void Session::beginStep(int64_t number) {
  Part &part = partAt(number);
  part.batches.take(number);
  if (!part.batches.areOf(number)) {
    part.batches.draw(static_cast<uint64_t>(number));
    part.batches.keepFor(number); // whoever draws for the next one does so behind it
  }
  Begun one{.part = &part};
  one.drawSeconds = part.batches.takeSeconds();
  one.drawn = Clock::now();
  if (leavesLabelsOut())
    one.labels = part.batches[0].countedLabels().value_or(1);
  scalars.write(executor, number);
  scalars.writeMicroBatch(executor, 0);
  mayHaveRun = true;
  sound = false;
  startPart(part, 0, number);
  mayHaveRun = false;
  one.started = Clock::now();
  begun = one;
}

void Session::beginBeside(int64_t number) {
  try {
    beginStep(number);
    begun->isAlone = false;
  } catch (...) {
    beginError = std::current_exception();
  }
}

void Session::drain() {
  try {
    executor.finish();
  } catch (const support::Error &) {
    // What led here is said.
  }
}

void Session::drainBegun() {
  if (!std::exchange(begun, std::nullopt))
    return;
  sound = false;
  drain();
}

double Session::advance(bool goesOn) {
  begin();
  if (told)
    told->clear();
  if (!begun) {
    if (policies)
      policies->begin(step, scalars);
    scalars.write(executor, step);
    Part &part = nextPart();
    part.batches.take(step);
    const double loss = makeRuns(part, part.batches.areOf(step));
    waited = part.batches.takeSeconds();
    return takeStep(part, loss);
  }
  const Begun now = *std::exchange(begun, std::nullopt);
  waited = now.isAlone ? now.drawSeconds : 0.0;
  sound = false;
  try {
    // Not behind a step that may be one bad one too many.
    if (goesOn && counted.skippedInARow + 1 < options.maxBadSteps && beginsAhead(step + 1))
      beginBeside(step + 1);
    return endStep(now);
  } catch (...) {
    drainBegun();
    throw;
  }
}

double Session::endStep(const Begun &now) {
  double seconds = 0;
  const double loss = static_cast<float>(endPart(*now.part, &seconds));
  if (begun) { // how long the device waited for a batch that was drawn beside its run
    const std::chrono::duration<double> beside = begun->drawn - std::max(now.started, lastEnd);
    waited += std::clamp(beside.count() - seconds, 0.0, begun->drawSeconds);
  }
  lastEnd = Clock::now();
  labelled = !leavesLabelsOut() || anyLabel(now.labels);
  if (told)
    told->add(executor, *file.plan().programs()->Get(now.part->program));
  return takeStep(*now.part, loss);
}

double Session::takeStep(const Part &part, double loss) {
  stepLoss = loss;
  const Part &updating = parts.size() > 1 ? parts[1] : part;
  const int64_t normTensor = updating.gradientNorm;
  previousNorm = norm;
  norm.reset();
  if (normTensor >= 0)
    norm = gathered.scalar(static_cast<uint32_t>(normTensor));
  count(loss, tokens());
  const int64_t stepsSaved = policies ? policies->stepsSaved() : 0;
  if (policies)
    decided = labelled ? policies->takeStep(step, loss, norm, scalars) : "";
  ++step;
  refused.reset();
  if (updating.applied >= 0 && gathered.scalar(static_cast<uint32_t>(updating.applied)) == 0.0)
    noteRefusal(loss);
  else if (trainPlan) {
    counted.skippedInARow = 0;
    checkFinite("loss", loss);
    checkFinite("gradient norm", norm.value_or(0.0));
  }
  sound = !mayHaveRun;
  if (policies && policies->stepsSaved() != stepsSaved)
    makeStepParts();
  return trainPlan ? loss : 0.0;
}

void Session::count(double loss, uint64_t tokens) {
  constexpr double memory = 0.9; // of the mean
  counted.tokens += tokens;
  if (labelled && std::isfinite(loss))
    meanLoss = meanLoss ? memory * *meanLoss + (1 - memory) * loss : loss;
  if (const double clip = scalars.value("clip", step).value_or(0); clip > 0 && norm)
    counted.clipped += std::isfinite(*norm) && *norm > clip ? 1 : 0;
}

void Session::noteRefusal(double loss) {
  ++counted.skipped;
  const double limit = scalars.value(kLossLimit, step - 1).value_or(0);
  if (std::isfinite(loss) && std::isfinite(norm.value_or(0)) && limit > 0) {
    // A batch that is left out: the step itself is as good as any.
    refused = fmt::format("the loss {:.6g} is above its limit {:.6g}", loss, limit);
    counted.skippedInARow = 0;
    return;
  }
  if (norm && !std::isfinite(*norm))
    refused = fmt::format("the gradient norm is {}", *norm);
  else
    refused = fmt::format("the loss is {}", loss);
  if (++counted.skippedInARow < options.maxBadSteps)
    return;
  sound = true; // nothing has changed since the last update
  const int64_t before = counted.skippedInARow - 1;
  const std::string bad = gathered.badParameters();
  throw CommonError(fmt::format(
      "step {}: {}{}{}", step, *refused,
      before == 0 ? "; --max-bad-steps=1 allows no such step"
                  : fmt::format("; so it was in the {} step{} before, none of which was an update",
                                before, before == 1 ? "" : "s"),
      bad.empty() ? "; all parameters are as they were" : bad));
}

void Session::checkFinite(std::string_view what, double value) {
  if (std::isfinite(value))
    return;
  sound = false;
  drainBegun();
  std::string text;
  if (const std::optional<double> rate = scalars.value("lr", step - 1))
    text += fmt::format("; learning rate {:g}", *rate);
  if (previousNorm)
    text += fmt::format("; gradient norm of step {}: {:.4g}", step - 1, *previousNorm);
  const std::string bad = gathered.badParameters();
  fail("step {}: the {} is {}{}{}", step, what, value, text,
       bad.empty() ? "; all parameters are finite" : bad);
}
