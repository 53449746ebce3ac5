// The text that a run reads.
#pragma once

#include "runtime/run/Session.h"
#include "runtime/run/TextSource.h"
#include "runtime/text/Tokenizer.h"
#include "tools/hydra-run/Options.h"

#include <memory>
#include <string>
#include <vector>

namespace hydra {

struct Texts {
  std::unique_ptr<runtime::TextSource> training; // of --data or --mix, or null
  std::vector<std::string> names;                // of the sets of --eval-data
  std::vector<std::unique_ptr<runtime::TextSource>> sets;

  /// For a session, which they outlive.
  std::vector<runtime::EvaluationSet> evaluationSets() const;
};

/// Opens what the flags name, of which `tokenizer` encodes text; null if it is not needed. Throws
/// Error as TextSource does, with the flag in front where that is --eval-data.
Texts openTexts(const RunOptions &options, const runtime::PlanFile &file,
                const text::Tokenizer *tokenizer, uint64_t seed, uint32_t rank);

/// Measures every text of a session, prints a line for each, and writes --log. The status of the
/// program.
int evaluateOnly(const RunOptions &options, const runtime::PlanFile &file,
                 runtime::Session &session, bool leads);

} // namespace hydra
