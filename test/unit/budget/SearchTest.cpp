// The search finds settings that are as fast as the fastest that fit, by few trials.
#include "tools/hydrac/BudgetSearch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace hydra::budget {
namespace {

/// A machine on which choices cost and save something by themselves, and a little in each other's
/// company: the second choice is of layers that are replayed, which have nothing to gain from the
/// first.
class World {
public:
  explicit World(unsigned seed) : random(seed) {
    levels = {3, layers, 3, 3, 2};
    for (size_t i = 0; i < levels.size(); ++i) {
      std::vector<double> cost{0}, forward{0}, end{0};
      for (int level = 1; level < levels[i]; ++level) {
        const double share = i == 1 ? double(level) / (layers - 1) : 1;
        cost.push_back(i == 1 ? 20 * share : cost.back() + draw(0.2, 4));
        forward.push_back(i == 1 ? 10 * share : forward.back() + draw(0, 3));
        end.push_back(i == 1 ? 0.3 * share : end.back() + draw(0, 2));
      }
      costs.push_back(cost);
      forwards.push_back(forward);
      ends.push_back(end);
    }
  }

  Space space() const {
    Space space;
    for (size_t i = 0; i < levels.size(); ++i)
      space.choices.push_back({levels[i], i == 1, 0});
    space.exists = [](const Point &point) { return point[0] != 1 || point[1] == 0; };
    return space;
  }

  Trial trial(const Point &point) const {
    double time = 100, forward = 40, end = 38;
    for (size_t i = 0; i < point.size(); ++i) {
      const auto level = static_cast<size_t>(point[i]);
      const double kept = i == 0 ? 1 - double(point[1]) / (layers - 1) : 1;
      time += costs[i][level];
      forward -= kept * forwards[i][level];
      end -= ends[i][level];
    }
    Trial trial{.microseconds = time, .bytes = 0, .parts = {}};
    for (const double part : {forward, end})
      trial.parts.push_back(static_cast<uint64_t>(part * 1e6));
    trial.bytes = *std::max_element(trial.parts.begin(), trial.parts.end()) + 12'345; // gaps
    for (uint64_t &part : trial.parts)
      part += 12'345;
    if (mute)
      trial.parts = {trial.bytes};
    return trial;
  }

  std::vector<Trial> tryOut(const std::vector<Point> &points) {
    std::vector<Trial> trials;
    for (const Point &point : points) {
      EXPECT_TRUE(seen.insert(point).second) << "tried twice";
      trials.push_back(trial(point));
    }
    return trials;
  }

  /// The time of the fastest point that fits, by trying all; infinite if none does.
  double bestTime(uint64_t bytes) const {
    double best = std::numeric_limits<double>::infinity();
    Point point(levels.size(), 0);
    while (true) {
      if (const Trial one = trial(point); space().exists(point) && one.bytes <= bytes)
        best = std::min(best, one.microseconds);
      size_t i = 0;
      while (i < point.size() && ++point[i] == levels[i])
        point[i++] = 0;
      if (i == point.size())
        return best;
    }
  }

  std::set<Point> seen;
  bool mute = false; ///< does not say which part of a step needs what

private:
  double draw(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  }

  static constexpr int layers = 48;
  std::mt19937 random;
  std::vector<int> levels;
  std::vector<std::vector<double>> costs, forwards, ends; ///< by choice and level
};

TEST(BudgetSearch, IsWithinTwoPercentOfTheFastest) {
  size_t most = 0;
  for (unsigned seed = 0; seed < 60; ++seed)
    for (const double share : {0.1, 0.3, 0.5, 0.7, 0.9}) {
      World world(seed);
      Search search(world.space(),
                    [&](const std::vector<Point> &points) { return world.tryOut(points); });
      const uint64_t least = world.trial(world.space().thriftiest()).bytes,
                     all = world.trial(world.space().fastest()).bytes;
      const auto bytes = least + static_cast<uint64_t>(share * double(all - least));
      const std::optional<Point> found = search.fastestWithin(bytes);
      ASSERT_TRUE(found);
      const Trial trial = world.trial(*found);
      EXPECT_LE(trial.bytes, bytes);
      EXPECT_LE(trial.microseconds, 1.02 * world.bestTime(bytes)) << seed << " " << share;
      most = std::max(most, world.seen.size());
    }
  EXPECT_LE(most, 30u);
}

/// What saves nothing by itself, since another part of the step needs as much, is found all the
/// same.
TEST(BudgetSearch, GivesUpWhatIsNotNeeded) {
  size_t most = 0;
  for (unsigned seed = 0; seed < 60; ++seed)
    for (const double share : {0.1, 0.3, 0.5, 0.7, 0.9}) {
      World world(seed);
      world.mute = true;
      Search search(world.space(),
                    [&](const std::vector<Point> &points) { return world.tryOut(points); });
      const uint64_t least = world.trial(world.space().thriftiest()).bytes,
                     all = world.trial(world.space().fastest()).bytes;
      const auto bytes = least + static_cast<uint64_t>(share * double(all - least));
      const std::optional<Point> found = search.fastestWithin(bytes);
      ASSERT_TRUE(found);
      EXPECT_LE(world.trial(*found).microseconds, 1.05 * world.bestTime(bytes))
          << seed << " " << share;
      most = std::max(most, world.seen.size());
    }
  EXPECT_LE(most, 60u);
}

TEST(BudgetSearch, TakesTheFastestAtOnceWhereItFits) {
  World world(1);
  Search search(world.space(),
                [&](const std::vector<Point> &points) { return world.tryOut(points); });
  EXPECT_EQ(search.fastestWithin(uint64_t{1} << 60), world.space().fastest());
  EXPECT_EQ(world.seen.size(), 1u);
}

TEST(BudgetSearch, KnowsByTwoTrialsThatNothingFits) {
  World world(1);
  Search search(world.space(),
                [&](const std::vector<Point> &points) { return world.tryOut(points); });
  EXPECT_FALSE(search.fastestWithin(1));
  EXPECT_EQ(world.seen.size(), 2u);
  EXPECT_EQ(search.front().back(), world.space().thriftiest());
}

TEST(BudgetSearch, ChoosesAmongNothing) {
  Search search(Space(), [](const std::vector<Point> &points) {
    return std::vector<Trial>(points.size(), Trial{5, 100, {100}});
  });
  EXPECT_EQ(search.fastestWithin(100), Point());
  EXPECT_FALSE(search.fastestWithin(99));
  search.tryFront(4);
  EXPECT_EQ(search.front(), std::vector<Point>{Point()});
}

/// Two choices that save the same; the faster one changes bits.
TEST(BudgetSearch, PaysAMarginForBits) {
  for (const auto &[time, level] : {std::pair<double, int>(100.5, 0), {103, 1}}) {
    Space space;
    space.choices = {{2, false, 0.01}, {2, false, 0}};
    Search search(space, [time = time](const std::vector<Point> &points) {
      std::vector<Trial> trials;
      for (const Point &point : points) {
        const uint64_t bytes = point == Point{0, 0} ? 10 : point == Point{1, 1} ? 5 : 7;
        trials.push_back({point[1] ? time + point[0] : 100.0 + 0.1 * point[0], bytes, {bytes}});
      }
      return trials;
    });
    EXPECT_EQ(search.fastestWithin(7), (Point{level, 1 - level}));
  }
}

/// However fast it is, the last choice is made where nothing fits without it, and with no more than
/// is needed then.
TEST(BudgetSearch, MakesTheLastChoiceLast) {
  for (const uint64_t budget : {7, 4, 2}) {
    Space space;
    space.choices = {{3, false, 0}, {.levels = 2, .last = true}};
    Search search(space, [](const std::vector<Point> &points) {
      std::vector<Trial> trials;
      for (const Point &point : points) {
        const auto bytes = static_cast<uint64_t>(9 - 2 * point[0] - 4 * point[1]);
        trials.push_back({100.0 + 10 * point[0] + 0.1 * point[1], bytes, {bytes}});
      }
      return trials;
    });
    EXPECT_EQ(search.fastestWithin(budget), budget == 7   ? (Point{1, 0})
                                            : budget == 4 ? (Point{1, 1})
                                                          : (Point{2, 1}));
  }
}

/// A choice that takes memory as well is left out where the rest needs less without it.
TEST(BudgetSearch, LeavesOutWhatTakesMoreThanItSaves) {
  Space space;
  space.choices = {{.levels = 3}, {.levels = 3, .takes = true}};
  Search search(space, [](const std::vector<Point> &points) {
    std::vector<Trial> trials;
    for (const Point &point : points) {
      const auto bytes = static_cast<uint64_t>(9 - 2 * point[0] + (point[1] > 0 ? 5 : 0));
      trials.push_back({100.0 + 10 * point[0] + 20 * point[1], bytes, {bytes}});
    }
    return trials;
  });
  EXPECT_EQ(search.fastestWithin(5), (Point{2, 0}));
  EXPECT_EQ(search.fastestWithin(7), (Point{1, 0}));
  EXPECT_FALSE(search.fastestWithin(4));
}

TEST(BudgetSearch, FrontHasWhatNothingBeats) {
  World world(7);
  Search search(world.space(),
                [&](const std::vector<Point> &points) { return world.tryOut(points); });
  (void)search.fastestWithin(34'000'000);
  search.tryFront(10);
  const std::vector<Point> front = search.front();
  EXPECT_GE(front.size(), 8u);
  for (size_t i = 1; i < front.size(); ++i) {
    EXPECT_GT(search.trials().at(front[i]).microseconds,
              search.trials().at(front[i - 1]).microseconds);
    EXPECT_LT(search.trials().at(front[i]).bytes, search.trials().at(front[i - 1]).bytes);
  }
  for (const auto &[point, trial] : search.trials())
    EXPECT_TRUE(std::any_of(front.begin(), front.end(), [&, &trial = trial](const Point &one) {
      return search.trials().at(one).microseconds <= trial.microseconds &&
             search.trials().at(one).bytes <= trial.bytes;
    }));
}

} // namespace
} // namespace hydra::budget
