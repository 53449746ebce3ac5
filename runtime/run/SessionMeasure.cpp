// Losses of text that is not trained on.
#include "runtime/run/Session.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fmt/format.h>

using namespace hydra::runtime;

void Session::drawMeasured(Part &part, uint64_t number) {
  if (!options.ranks)
    return drawInputs(part, number);
  std::string problem;
  try {
    drawInputs(part, number);
  } catch (const support::Error &error) {
    problem = error.what();
  }
  options.ranks->decide(problem);
}

std::string Session::evaluatingProgram() const {
  return support::shown(file.plan().programs()->Get(eval->program)->name()->string_view());
}

double Session::evaluate() {
  if (options.text)
    return measure(*eval, *options.text, "held-out loss");
  scalars.write(executor, step);
  drawInputs(*eval, nextBatch());
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
  double sum = 0.0;
  for (uint64_t i = 0; i < batches; ++i) {
    drawMeasured(part, i);
    sum += runPart(part, 0);
  }
  const double loss = sum / static_cast<double>(batches);
  checkFinite(what, loss);
  return loss;
}

std::vector<Session::Measured> Session::measuredTexts() const {
  std::vector<Measured> texts;
  if (options.text)
    texts.push_back({"", options.text, options.text->heldOutBatches()});
  for (const EvaluationSet &set : options.evaluationSets)
    texts.push_back({set.name, set.text, set.text->heldOutBatches()});
  return texts;
}
