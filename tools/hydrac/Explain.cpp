// Compiles again without each pass and compares.
#include "tools/hydrac/Explain.h"

#include "compiler/PlanPipeline.h"
#include "compiler/driver/CommandLine.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"

#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <cmath>

using namespace hydra::report;

namespace hydra {

namespace {

struct Prediction {
  int64_t steps = 0, arena = 0, traffic = 0;
  double milliseconds = 0;
};

Prediction predictionOf(const planfile::PlanT &plan) {
  Prediction prediction;
  for (const auto &program : plan.programs)
    if (program->role != planfile::ProgramRole::derive &&
        program->role != planfile::ProgramRole::eval &&
        program->role != planfile::ProgramRole::generate &&
        program->role != planfile::ProgramRole::decode)
      prediction.steps += static_cast<int64_t>(program->blocks.size());
  for (const planfile::Segment &segment : plan.segments)
    prediction.arena += static_cast<int64_t>(segment.size());
  prediction.traffic = static_cast<int64_t>(plan.cost.bytes());
  prediction.milliseconds = plan.cost.microseconds() * 1e-3;
  return prediction;
}

std::string difference(int64_t bytes) {
  if (bytes == 0)
    return "-";
  return (bytes > 0 ? "+" : "-") + bytesText(static_cast<uint64_t>(std::abs(bytes)));
}

} // namespace

llvm::LogicalResult printExplanation(CompileWithout compile) {
  auto all = compile("");
  if (failed(all))
    return llvm::failure();
  const Prediction base = predictionOf(**all);
  Table table(1);
  const planfile::TargetT &target = *(*all)->target;
  table.add({"", "steps", "arena", "traffic",
             (target.measured.empty() ? "ms at the limit of " : "ms predicted on ") + target.name});
  table.add({"all passes", fmt::format("{}", base.steps), bytesText(uint64_t(base.arena)),
             bytesText(uint64_t(base.traffic)), fmt::format("{:.4f}", base.milliseconds)});
  llvm::StringSet<> seen;
  for (const PassEntry &pass : pipelinePasses()) {
    if (pass.required || !llvm::is_contained((*all)->header->passes, pass.name) ||
        !seen.insert(pass.name).second)
      continue;
    auto without = compile(pass.name);
    if (failed(without))
      return llvm::failure();
    const Prediction other = predictionOf(**without);
    const double slower = other.milliseconds - base.milliseconds;
    table.add({"without " + pass.name,
               other.steps == base.steps ? "-" : fmt::format("{:+}", other.steps - base.steps),
               difference(other.arena - base.arena), difference(other.traffic - base.traffic),
               std::abs(slower) < 5e-5 ? "-" : fmt::format("{:+.4f}", slower)});
  }
  printOutput(table.text(""));
  return llvm::success();
}

} // namespace hydra
