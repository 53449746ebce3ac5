// Words in groups, and the groups of two command lines as one.
#include "tools/hydra-run/CommandLine.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/ranks/World.h"
#include "runtime/run/Checkpoint.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>

using namespace hydra;

namespace {

/// The words of a command line, flag by flag; what the parser will refuse may be in any place.
Arguments groupsOf(const CLI::App &app, const std::vector<std::string> &words) {
  Arguments groups;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    if (!word.starts_with("-") || word.size() == 1) {
      groups.push_back({"plan", {word}});
      continue;
    }
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    std::vector<std::string> values;
    const CLI::Option *const option = app.get_option_no_throw(flag);
    if (equals != std::string::npos)
      values.push_back(word.substr(equals + 1));
    else if (option && option->get_items_expected_max() > 0) {
      // One value, whatever it looks like; of several those that are no flags.
      const auto most = static_cast<size_t>(option->get_items_expected_max());
      for (; values.size() < most && i + 1 < words.size(); ++i) {
        if (!values.empty() && (words[i + 1].starts_with("-") || !option->get_allow_extra_args()))
          break;
        values.emplace_back(words[i + 1]);
      }
    }
    groups.emplace_back(flag, std::move(values));
  }
  return groups;
}

/// Whether a command line wants something else of a run than to go on with it.
bool isOtherJob(const Arguments &now) {
  constexpr std::array kJobs = {"--generate",   "--chat",    "--eval-only", "--bench",
                                "--bench-data", "--profile", "--export"};
  return std::ranges::none_of(now, [](const auto &group) { return group.first == "--steps"; }) &&
         std::ranges::any_of(now, [&](const auto &group) {
           return std::ranges::find(kJobs, group.first) != kJobs.end();
         });
}

bool has(const Arguments &all, const std::string &flag) {
  return std::ranges::any_of(all, [&](const auto &group) { return group.first == flag; });
}

/// What such a job takes of the run's flags: what it reads, and where it runs.
bool isForOtherJobs(const std::string &flag, const Arguments &now) {
  const auto isOneOf = [](const std::string &name, std::initializer_list<std::string_view> flags) {
    return std::ranges::find(flags, name) != flags.end();
  };
  const bool makesSteps = has(now, "--bench") || has(now, "--profile"),
             measures = has(now, "--eval-only"),
             readsText = makesSteps || measures || has(now, "--bench-data"),
             writesText = has(now, "--generate") || has(now, "--chat");
  if (flag == "--ids")
    return makesSteps;
  if (flag == "--tokenizer")
    return readsText || writesText;
  if (isOneOf(flag, {"--eval-data", "--eval-batches"}))
    return measures;
  if (isOneOf(flag, {"--data", "--mix", "--packed", "--prefetch-threads", "--prefetch-batches"}))
    return readsText;
  if (isOneOf(flag, {"--device", "--threads"}))
    return !has(now, "--bench-data"); // which runs no step
  return isOneOf(flag, {"--ranks", "--gpus"});
}

bool isOfRanks(const std::string &flag) { return flag == "--ranks" || flag == "--gpus"; }

/// How many ranks a command line asks for beside its flags: those that somebody has started, or
/// those of a plan that it names.
std::optional<uint64_t> ranksBeside(const Arguments &now) {
  if (const runtime::World world = runtime::worldFromEnvironment(); world.size > 1)
    return world.size;
  const auto plan = std::ranges::find(now, "plan", &Arguments::value_type::first);
  if (plan == now.end() || plan->second.size() != 1)
    return std::nullopt;
  return runtime::ranksOf(runtime::PlanFile::read(plan->second.front()).plan());
}

/// Whether a flag of a run says how many ranks there are, where a command line that goes on with it
/// elsewhere says something else.
bool isOfOtherRanks(const Arguments::value_type &group, const Arguments &now) {
  if (!isOfRanks(group.first))
    return false;
  if (has(now, "--ranks") || has(now, "--gpus"))
    return true;
  const std::optional<uint64_t> ranks = ranksBeside(now);
  return ranks && group.second != std::vector{std::to_string(*ranks)};
}

/// What a run was started with, and instead of it what is given now. Flags of several values stand
/// behind the plan, which they would take for one.
std::vector<std::string> mergedWords(const Arguments &before, const Arguments &now,
                                     const std::string &directory) {
  if (has(now, "--weights"))
    support::fail("--resume excludes --weights: the run {} has parameters",
                  support::shownPath(directory));
  const bool goesOn = !isOtherJob(now);
  const std::filesystem::path checkpoints =
      std::filesystem::path(directory) / RunDirectory::kCheckpoints;
  // Until the run has a checkpoint of its own, it begins where it began.
  const bool begins = !runtime::Checkpoint::exists(checkpoints);
  std::vector<std::string> words;
  if (!has(now, "plan"))
    words.push_back((std::filesystem::path(directory) / RunDirectory::kPlan).string());
  const auto add = [&](const auto &group) {
    const auto &[flag, values] = group;
    if (flag == "plan") {
      words.insert(words.begin(), values.begin(), values.end());
      return;
    }
    if (values.size() == 1) {
      words.push_back(flag.starts_with("--") ? flag + "=" + values[0] : flag + values[0]);
      return;
    }
    words.push_back(flag);
    words.insert(words.end(), values.begin(), values.end());
  };
  for (const auto &group : before)
    if (group.first != "plan" && group.first != "--resume" && group.first != "--run" &&
        !has(now, group.first) && (goesOn || isForOtherJobs(group.first, now)) &&
        !isOfOtherRanks(group, now))
      add(group);
  for (const auto &group : now)
    if (group.first != "--resume" && group.first != "--run")
      add(group);
  if (!goesOn) {
    words.push_back("--resume=" + checkpoints.string());
    return words;
  }
  const auto origin = std::ranges::find(before, "--resume", &Arguments::value_type::first);
  words.push_back("--run=" + directory);
  words.push_back("--resume=" + (begins && origin != before.end() && !origin->second.empty()
                                     ? origin->second.front()
                                     : "auto"));
  return words;
}

/// The directory of the run that a command line goes on with, or an empty text. Throws Error for
/// one that names another directory beside it.
std::string resumedRun(const Arguments &groups) {
  std::string directory;
  for (const auto &[flag, values] : groups)
    if (flag == "--resume" && values.size() == 1 && RunDirectory::isRun(values[0]))
      directory = values[0];
  // Two of them the parser refuses.
  if (std::ranges::count(groups, "--resume", &Arguments::value_type::first) != 1)
    return "";
  const auto run = std::ranges::find(groups, "--run", &Arguments::value_type::first);
  std::error_code code;
  if (!directory.empty() && run != groups.end() && run->second.size() == 1 &&
      !std::filesystem::equivalent(run->second[0], directory, code))
    support::fail("--run: --resume {} goes on in that directory; expected no other, or one of its "
                  "checkpoints to begin {} with",
                  support::shownPath(directory), support::shownPath(run->second[0]));
  return directory;
}

/// Without a plan `--resume` has to name the run that has one. Throws Error otherwise.
void checkNamesRun(const Arguments &groups) {
  if (has(groups, "plan") || has(groups, "--help") || has(groups, "-h"))
    return;
  for (const auto &[flag, values] : groups)
    if (flag == "--resume" && values.size() == 1 && !values[0].empty() && values[0] != "auto" &&
        !RunDirectory::isRun(values[0]))
      support::fail("--resume {}: is no directory of --run, which knows its plan; expected the "
                    "plan as well",
                    support::shownPath(values[0]));
}

/// Whether a flag is of one start of a run, and not of all: where it begins, or what is measured.
bool isOfOneStart(const Arguments::value_type &group) {
  const auto &[flag, values] = group;
  return flag == "--run" || flag.starts_with("--profile") ||
         (flag == "--resume" && values == std::vector<std::string>{"auto"});
}

} // namespace

CommandLine::CommandLine(const CLI::App &app, std::vector<std::string> words)
    : all(std::move(words)), groups(groupsOf(app, all)) {
  if (const std::string directory = resumedRun(groups); !directory.empty()) {
    all = mergedWords(RunDirectory(directory).arguments(), groups, directory);
    groups = groupsOf(app, all);
  }
  checkNamesRun(groups);
  std::erase_if(groups, isOfOneStart);
}
