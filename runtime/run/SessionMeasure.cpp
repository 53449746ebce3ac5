// Losses of text that is not trained on.
#include "runtime/run/Session.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StopSignal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

using namespace hydra::runtime;

int Session::drawMeasured(Part &part, uint64_t number) {
  if (!options.ranks) {
    part.batches.draw(number);
    return support::StopSignal::received();
  }
  std::string problem;
  try {
    part.batches.draw(number);
  } catch (const support::Error &error) {
    problem = error.what();
  }
  options.ranks->post({.signal = support::StopSignal::received(), .error = problem});
  const Vote decision = options.ranks->collect();
  if (!decision.error.empty())
    throw CommonError(decision.error);
  return decision.signal;
}

std::string Session::evaluatingProgram() const {
  return support::shown(file.plan().programs()->Get(eval->program)->name()->string_view());
}

double Session::evaluate() {
  if (options.text)
    return measure(*eval, *options.text, "held-out loss");
  scalars.write(executor, step);
  eval->batches.draw(nextBatch());
  const double loss = runPart(*eval, 0);
  checkFinite("loss after it", loss);
  return loss;
}

double Session::evaluateSet(size_t set) {
  const EvaluationSet &measured = options.evaluationSets[set];
  return measure(measuredSets[set], *measured.text, fmt::format("loss of {}", measured.name));
}

double Session::measure(Part &part, TextSource &text, const std::string &what) {
  scalars.write(executor, step);
  text.rewindHeldOut();
  const uint64_t batches = text.heldOutBatches();
  std::vector<double> losses;
  std::vector<int64_t> labels; // that count in each of them
  for (uint64_t i = 0; i < batches; ++i) {
    if (const int signal = drawMeasured(part, i))
      throw Interruption{signal};
    losses.push_back(runPart(part, 0));
    labels.push_back(labelsOf(part));
  }
  const double loss = meanOverLabels(losses, labels, what);
  checkFinite(what, loss);
  return loss;
}

/// How many labels count in the batch that the part has run on: of all ranks' rows where the
/// program says it, which changes no mean.
int64_t Session::labelsOf(const Part &part) const {
  if (part.labels >= 0)
    return std::llround(gathered.scalar(static_cast<uint32_t>(part.labels)));
  return part.batches[0].countedLabels().value_or(1);
}

/// Batches weigh as many labels as count in them, on all ranks; where these are equally many, all
/// the same. The losses are those of all ranks already.
double Session::meanOverLabels(std::span<const double> losses, std::vector<int64_t> labels,
                               const std::string &what) const {
  if (options.ranks) {
    std::vector<int64_t> all(labels.size(), 0);
    for (const std::vector<std::byte> &part :
         options.ranks->gather(std::as_bytes(std::span(labels)))) {
      std::memcpy(labels.data(), part.data(), part.size());
      for (size_t i = 0; i < all.size(); ++i)
        all[i] += labels[i];
    }
    labels = std::move(all);
  }
  std::array<double, 2> sums{}; // of weighted losses and of weights
  if (!options.ranks || options.ranks->leads()) {
    const bool isEven = labels.front() > 0 && std::ranges::all_of(labels, [&](int64_t count) {
                          return count == labels.front();
                        });
    for (size_t i = 0; i < losses.size(); ++i) {
      const double weight = isEven ? 1.0 : static_cast<double>(labels[i]);
      if (weight > 0)
        sums[0] += weight * losses[i];
      sums[1] += weight;
    }
  }
  if (options.ranks) {
    const std::vector<std::byte> told = options.ranks->broadcast(std::as_bytes(std::span(sums)));
    std::memcpy(sums.data(), told.data(), sizeof sums);
  }
  if (sums[1] == 0)
    throw CommonError(fmt::format("{}: no label of its {} batches counts", what, losses.size()));
  return sums[0] / sums[1];
}

std::vector<Session::Measured> Session::measuredTexts() const {
  std::vector<Measured> texts;
  if (options.text)
    texts.push_back({"", options.text, options.text->heldOutBatches()});
  for (const EvaluationSet &set : options.evaluationSets)
    texts.push_back({set.name, set.text, set.text->heldOutBatches()});
  return texts;
}
