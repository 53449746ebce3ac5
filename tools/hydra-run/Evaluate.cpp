// hydra-run --eval-only.
#include "runtime/report/Table.h"
#include "runtime/run/StandardOutput.h"
#include "runtime/run/Trainer.h"
#include "runtime/support/GitRevision.h"
#include "tools/hydra-run/Texts.h"

#include <fmt/core.h>

#include <cmath>
#include <numbers>

using namespace hydra;

int hydra::evaluateOnly(const RunOptions &options, const runtime::PlanFile &file,
                        runtime::Session &session, bool leads) {
  runtime::RunLog log(
      leads ? runtime::RunLogFiles{.jsonLines = options.log, .tensorboard = options.tensorboard}
            : runtime::RunLogFiles(),
      /*append=*/true);
  const std::optional<std::string> revision =
      support::gitRevision(file.plan().header()->model_file()->str());
  report::Table table(1);
  table.add({"text", "loss", "perplexity", "bits/byte", "tokens", "seconds"});
  for (size_t i = 0; i < session.measuredTexts().size(); ++i) {
    const runtime::EvaluationRecord record = measureText(file, session, i, revision);
    log.evaluation(record);
    table.add({record.set.empty() ? "held out" : record.set, fmt::format("{:.6f}", record.loss),
               fmt::format("{:.4f}", std::exp(record.loss)),
               record.bytesPerToken
                   ? fmt::format("{:.4f}", record.loss / std::numbers::ln2 / *record.bytesPerToken)
                   : "-",
               std::to_string(record.batches * record.batch * record.length),
               fmt::format("{:.1f}", record.seconds)});
  }
  runtime::print(table.text(""));
  return 0;
}
