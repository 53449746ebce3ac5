// What ranks compare before they begin.
#include "tools/hydra-run/Agreement.h"

#include "runtime/plan/Mesh.h"
#include "runtime/ranks/Hosts.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "tools/hydra-run/Generation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

using namespace hydra;
using support::fail;

void hydra::checkRanks(const runtime::PlanFile &file, uint64_t ranks) {
  const uint64_t expected = runtime::ranksOf(file.plan());
  if (ranks == expected)
    return;
  if (expected == 1)
    fail("{}: is for one rank, and there are {}; compile the model with --mesh=data:{}",
         file.origin(), ranks, ranks);
  const bool gpus = file.plan().target()->kind() == planfile::TargetKind::cuda;
  fail("{}: is for {} ranks (mesh {}), and there {} {}; run it with --{}={}, or start {} "
       "processes by torchrun, mpirun or srun",
       file.origin(), expected, runtime::meshText(file.plan()), ranks == 1 ? "is" : "are", ranks,
       gpus ? "gpus" : "ranks", expected, expected);
}

void hydra::agreeOnFlags(const RunOptions &options, const runtime::PlanFile &file,
                         runtime::Channel &channel) {
  const auto hash = file.checksum();
  const auto given = [](const auto &flag) { return flag ? "yes" : "no"; };
  channel.agree(
      {{"the plan with hash", fmt::format("{:02x}", fmt::join(hash, ""))},
       {"--steps", std::to_string(options.steps)},
       {"--eval-every", std::to_string(options.evalEvery)},
       {"--eval-batches", std::to_string(options.evalBatches)},
       {"--eval-data", fmt::format("{}", fmt::join(options.evalData, ", "))},
       {"--eval-only", given(options.evalOnly)},
       {"--max-bad-steps", std::to_string(options.maxBadSteps.value_or(runtime::kMostBadSteps))},
       {"--safe", given(options.safe)},
       {"--safety-window", std::to_string(options.safetyWindow)},
       {"--safety-throughput", given(options.safetyThroughput)},
       {"--save", given(options.save)},
       {"--save-every", std::to_string(options.saveEvery)},
       {"--outputs", given(options.outputs)},
       {"--export", given(options.exportTo)},
       {"--bench", std::to_string(options.bench)},
       {"--bench-warmup", options.benchWarmup ? std::to_string(*options.benchWarmup) : "not"},
       {"--profile", options.profile},
       {"--profile-steps", options.profileSteps},
       {"--dry-run", given(options.dryRun)},
       {"--generate", fmt::format("{}", fmt::join(options.prompts, ", "))},
       {"--sample-every", std::to_string(options.sampleEvery)},
       {"the choice of tokens", generationText(options)}});
}

void hydra::agreeOnHosts(const runtime::PlanFile &file, runtime::Channel &channel) {
  const uint64_t nodeRanks = runtime::nodeRanksOf(file.plan());
  if (nodeRanks == 0)
    return;
  const std::string own = channel.host();
  std::vector<std::string> hosts; // on rank 0, which decides
  for (const std::vector<std::byte> &name : channel.gather(std::as_bytes(std::span(own))))
    hosts.emplace_back(reinterpret_cast<const char *>(name.data()), name.size());
  std::string problem = runtime::nodesProblem(hosts, nodeRanks);
  if (!problem.empty())
    problem = fmt::format("{}: {}", file.origin(), problem);
  channel.decide(problem);
}

void hydra::agreeOnBegin(const runtime::PlanFile &file, runtime::Executor &executor,
                         const runtime::Session &session, uint64_t samplingSeed,
                         runtime::Channel &channel) {
  const runtime::TrainingState state = session.state();
  std::vector<runtime::Claim> claims = {
      {"as its data", state.data},
      {"as its seed", std::to_string(state.seed)},
      {"as the seed of texts", std::to_string(samplingSeed)},
      {"as its schedules", fmt::format("{}", fmt::join(state.schedules, ", "))},
      {"as its policies", fmt::format("{}", fmt::join(session.policyFlags(), ", "))}};
  for (const runtime::Session::Measured &measured : session.measuredTexts())
    claims.push_back(
        {measured.name.empty() ? "as what is held out" : "as the text " + measured.name,
         fmt::format("{} batches of {}", measured.batches, measured.text->identity())});
  if (session.hasValues())
    for (runtime::Claim &hash : runtime::hashesOfVariables(file, executor, channel.rank()))
      claims.push_back(std::move(hash));
  channel.agree(claims);
}

std::chrono::milliseconds hydra::rankLimit(const RunOptions &options,
                                           const runtime::PlanFile *file) {
  constexpr double least = 60, steps = 20, most = 1e7;
  double seconds = options.rankTimeout;
  if (seconds == 0)
    seconds = std::max(least, file ? steps * file->plan().cost()->microseconds() * 1e-6 : 0.0);
  return std::chrono::milliseconds(static_cast<int64_t>(std::min(seconds, most) * 1e3));
}
