// What --recompute=auto chooses beside the flags, and how a user would ask for it.
#pragma once

#include "tools/hydrac/BudgetSearch.h"
#include "tools/hydrac/Options.h"

namespace hydra {

/// What is not set stays as the flags have it.
struct Setting {
  Recomputation recompute = Recomputation::None;
  int64_t replayLayers =
      0; ///< of which light or rowwise recomputation is the rest; kAllLayers: all
  std::optional<RoundedCopies> roundedCopies;
  std::optional<int64_t> ceChunk, scanCheckpoint;
  std::optional<Resharding> resharding;
  std::optional<Offload> offload;
  std::optional<int64_t> gatherAhead, exchangeBytes; ///< of trials; a plan has the most that fits
  bool latePlacement = false;         ///< without hydra-place-optimizer
  int64_t split = 1;                  ///< micro-batches that each one becomes
};
inline constexpr int64_t kAllLayers = std::numeric_limits<int64_t>::max();

void apply(const Setting &setting, CompileOptions &compile);

/// The most that a rank receives in one exchange of what it adds up, in bytes; 0: it adds up
/// nothing.
uint64_t largestSum(const planfile::Plan &plan);

/// The words of --recompute, --rounded-copies and --reshard.
std::string recomputeText(const CompileOptions &compile);
std::string roundedCopiesText(RoundedCopies copies);
std::string reshardingText(Resharding resharding);

/// What is there to choose for a model: of the choices that the flags leave open those that the
/// fastest plan has a use for.
class SettingChoices {
public:
  /// `fastest` is the plan of `fastestSetting`; `compile` is what the flags say.
  SettingChoices(const HydracOptions &options, CompileOptions compile,
                 const planfile::Plan &fastest);

  static Setting fastestSetting(const HydracOptions &options, const CompileOptions &compile);

  budget::Space space() const;
  Setting at(const budget::Point &point) const;
  /// The flags that ask for it: `--recompute=light --ce-chunk=512`.
  std::string flags(const budget::Point &point) const;
  /// The same with what no flag says.
  std::string text(const budget::Point &point) const;

  /// What a choice changes of results: `nothing`, or `order of sums`.
  const std::string &changes(size_t choice) const { return choices[choice].changes; }

private:
  struct Choice {
    std::string changes;
    int levels = 1;
    bool even = false;
    std::function<void(Setting &, int)> set; ///< to a level from 1
    bool last = false, takes = false;        ///< as budget::Choice has them
  };
  void addRecomputation(const planfile::Plan &fastest);
  void addRoundedCopies();
  void addLossChunks(const planfile::Plan &fastest);
  void addScans(const planfile::Plan &fastest);
  void addPlacement();
  void addResharding();
  void addExchanges(const planfile::Plan &fastest);
  void addSplits();
  void addOffload(const planfile::Plan &fastest);

  const HydracOptions &options;
  const CompileOptions compile;
  std::vector<Choice> choices;
};

} // namespace hydra
