// Estimates from trials, and which trial is next.
#include "tools/hydrac/BudgetSearch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace hydra::budget {

namespace {

/// Rounds of two trials, and by how much the estimate of a point must beat the best trial.
constexpr int kRounds = 10;
constexpr double kGain = 0.995;
/// Choices that may be given up one after the other.
constexpr int kRelaxations = 8;
/// How far above the budget what saves most may be, for less to be worth a trial.
constexpr double kNear = 1.1;

double mix(double a, double b, double share) { return a + (b - a) * share; }

} // namespace

Point Space::thriftiest() const {
  Point point;
  for (const Choice &choice : choices)
    point.push_back(choice.levels - 1);
  return point;
}

Point Space::thriftiestWithoutLast() const {
  Point point = thriftiest();
  for (size_t i = 0; i < point.size(); ++i)
    point[i] = choices[i].last ? 0 : point[i];
  return point;
}

Point Space::withoutTaking(Point point) const {
  for (size_t i = 0; i < point.size(); ++i)
    point[i] = choices[i].takes ? 0 : point[i];
  return point;
}

double Search::Estimate::bytes() const {
  return parts.empty() ? 0 : *std::max_element(parts.begin(), parts.end());
}

void Search::measure(const std::vector<Point> &points) {
  std::vector<Point> fresh;
  for (const Point &point : points)
    if (!tried.contains(point) && std::find(fresh.begin(), fresh.end(), point) == fresh.end())
      fresh.push_back(point);
  if (fresh.empty())
    return;
  const std::vector<Trial> trials = tryOut(fresh);
  for (size_t i = 0; i < fresh.size(); ++i)
    tried[fresh[i]] = trials[i];
}

Point Search::single(size_t choice, int level) const {
  Point point = space.fastest();
  point[choice] = level;
  return point;
}

std::vector<int> Search::singleLevels(size_t choice) const {
  const Choice &one = space.choices[choice];
  if (one.even && one.levels > 3)
    return {one.levels / 2, one.levels - 1};
  std::vector<int> all;
  for (int level = 1; level < one.levels; ++level)
    all.push_back(level);
  return all;
}

void Search::trySingles() {
  std::vector<Point> points{space.fastest()};
  for (size_t i = 0; i < space.choices.size(); ++i)
    for (const int level : singleLevels(i))
      points.push_back(single(i, level));
  measure(points);
  differences.clear();
  for (size_t i = 0; i < space.choices.size(); ++i) {
    std::vector<Estimate> &levels = differences.emplace_back();
    for (int level = 0; level < space.choices[i].levels; ++level)
      levels.push_back(differenceOf(i, level));
  }
}

Search::Estimate Search::differenceOf(size_t choice, int level) const {
  const Trial &base = tried.at(space.fastest());
  Estimate difference{.microseconds = 0, .parts = std::vector<double>(base.parts.size(), 0)};
  if (level == 0)
    return difference;
  int below = 0, above = space.choices[choice].levels; // levels tried, around this one
  for (const int one : singleLevels(choice)) {
    if (one <= level)
      below = one;
    if (one >= level)
      above = std::min(above, one);
  }
  const Trial &low = tried.at(single(choice, below)), &high = tried.at(single(choice, above));
  const double share = above == below ? 0 : double(level - below) / (above - below);
  difference.microseconds = mix(low.microseconds, high.microseconds, share) - base.microseconds;
  for (size_t part = 0; part < base.parts.size(); ++part)
    difference.parts[part] =
        mix(double(low.parts[part]), double(high.parts[part]), share) - double(base.parts[part]);
  return difference;
}

Search::Estimate Search::additive(const Point &point) const {
  const Trial &base = tried.at(space.fastest());
  Estimate sum{.microseconds = base.microseconds, .parts = {}};
  sum.parts.assign(base.parts.begin(), base.parts.end());
  for (size_t i = 0; i < point.size(); ++i) {
    const Estimate &difference = differences[i][size_t(point[i])];
    sum.microseconds += difference.microseconds;
    for (size_t part = 0; part < sum.parts.size(); ++part)
      sum.parts[part] += difference.parts[part];
  }
  return sum;
}

bool Search::isAlike(const Point &a, const Point &b) const {
  for (size_t i = 0; i < a.size(); ++i)
    if (!space.choices[i].even && a[i] != b[i])
      return false;
  return true;
}

/// From the nearest trial that differs in even choices alone, by what the singles say of these.
Search::Estimate Search::estimate(const Point &point) const {
  Estimate sum = additive(point);
  const auto distance = [&](const Point &other) {
    int levels = 0;
    for (size_t i = 0; i < point.size(); ++i)
      levels += std::abs(point[i] - other[i]);
    return levels;
  };
  // One below and one above: between them both can only be mixed.
  const Point *below = nullptr, *above = nullptr;
  for (const auto &[other, trial] : tried) {
    if (!isAlike(point, other))
      continue;
    const bool saves = other >= point;
    const Point *&nearest = saves ? above : below;
    if (!nearest || distance(other) < distance(*nearest))
      nearest = &other;
  }
  std::vector<std::pair<const Point *, double>> anchors; // with their weights
  if (below && above) {
    const double all = distance(*below) + distance(*above);
    anchors = {{below, all > 0 ? distance(*above) / all : 1},
               {above, all > 0 ? distance(*below) / all : 0}};
  } else if (below || above) {
    // On one side alone: the farther, the less it says.
    const Point *only = below ? below : above;
    int levels = 1;
    for (const Choice &choice : space.choices)
      levels += choice.even ? choice.levels : 0;
    anchors = {{only, 1 - double(distance(*only)) / levels}};
  }
  if (anchors.empty())
    return sum;
  for (const auto &[anchor, weight] : anchors) {
    const Estimate there = additive(*anchor);
    const Trial &trial = tried.at(*anchor);
    sum.microseconds += weight * (trial.microseconds - there.microseconds);
    for (size_t part = 0; part < sum.parts.size(); ++part)
      sum.parts[part] += weight * (double(trial.parts[part]) - there.parts[part]);
  }
  return sum;
}

bool Search::isKnownTooLarge(const Point &point, uint64_t bytes) const {
  return std::any_of(tried.begin(), tried.end(), [&](const auto &one) {
    if (one.second.bytes <= bytes)
      return false;
    for (size_t i = 0; i < point.size(); ++i)
      if (one.first[i] < point[i] || (space.choices[i].takes && one.first[i] > point[i]))
        return false;
    return true;
  });
}

double Search::costOf(const Point &point, double microseconds) const {
  double margin = 1;
  for (size_t i = 0; i < point.size(); ++i)
    if (point[i] > 0)
      margin += space.choices[i].margin;
  return microseconds * margin;
}

std::optional<Point> Search::best(uint64_t bytes) const {
  std::optional<Point> found;
  const auto key = [&](const Point &point) {
    return std::pair(makesLast(point), costOf(point, tried.at(point).microseconds));
  };
  for (const auto &[point, trial] : tried)
    if (trial.bytes <= bytes && (!found || key(point) < key(*found)))
      found = point;
  return found;
}

bool Search::makesLast(const Point &point) const {
  for (size_t i = 0; i < point.size(); ++i)
    if (space.choices[i].last && point[i] > 0)
      return true;
  return false;
}

void Search::forEachPoint(const std::function<void(const Point &)> &visit) const {
  Point point = space.fastest();
  while (true) {
    if (space.exists(point))
      visit(point);
    size_t i = 0;
    while (i < point.size() && ++point[i] == space.choices[i].levels)
      point[i++] = 0;
    if (i == point.size())
      return;
  }
}

/// Two, of different levels where one can: the second is not what the first one's result decides.
std::vector<Point> Search::candidates(uint64_t bytes) const {
  const std::optional<Point> found = best(bytes);
  const double bound = found ? kGain * costOf(*found, tried.at(*found).microseconds)
                             : std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, Point>> all;
  forEachPoint([&](const Point &point) {
    if (!isOpen(point, bytes))
      return;
    const Estimate guess = estimate(point);
    const double cost = costOf(point, guess.microseconds);
    if (cost < bound && guess.bytes() <= double(bytes))
      all.emplace_back(cost, point);
  });
  if (all.empty())
    return {};
  std::sort(all.begin(), all.end());
  std::vector<Point> next{all.front().second};
  for (const auto &[cost, point] : all)
    if (!isAlike(point, next.front())) {
      next.push_back(point);
      break;
    }
  return next;
}

bool Search::isOpen(const Point &point, uint64_t bytes) const {
  return space.exists(point) && makesLast(point) == last && !tried.contains(point) &&
         !isKnownTooLarge(point, bytes);
}

/// Choices may save next to nothing beside the fastest setting, and much beside others, which no
/// sum of singles knows.
void Search::relax(uint64_t bytes) {
  for (int round = 0; round < kRelaxations; ++round) {
    const std::optional<Point> from = best(bytes);
    if (!from)
      return;
    std::vector<Point> less;
    for (size_t i = 0; i < from->size(); ++i)
      for (const int level : {space.choices[i].even ? (*from)[i] / 2 : 0, (*from)[i] - 1}) {
        Point point = *from;
        point[i] = std::max(level, 0);
        if (isOpen(point, bytes))
          less.push_back(point);
      }
    measure(less);
    if (best(bytes) == from)
      return;
  }
}

/// What saves memory by itself may need some beside other choices.
void Search::descend(uint64_t bytes) {
  while (!best(bytes)) {
    const Point from = front().back();
    std::vector<Point> less;
    for (size_t i = 0; i < from.size(); ++i)
      for (const int level : {0, from[i] - 1}) {
        Point point = from;
        point[i] = std::max(level, 0);
        if (space.exists(point))
          less.push_back(point);
      }
    measure(less);
    if (front().back() == from)
      return;
  }
}

bool Search::fitsWith(const Point &least, uint64_t bytes) {
  measure({least});
  if (tried.at(least).bytes > bytes)
    measure({space.withoutTaking(least)});
  return best(bytes).has_value();
}

std::optional<Point> Search::fastestWithin(uint64_t bytes) {
  measure({space.fastest()});
  if (tried.at(space.fastest()).bytes <= bytes)
    return space.fastest();
  bool fits = fitsWith(space.thriftiestWithoutLast(), bytes);
  last = !fits && makesLast(space.thriftiest());
  if (last)
    fits = fitsWith(space.thriftiest(), bytes);
  if (!fits) {
    if (double(tried.at(front().back()).bytes) < kNear * double(bytes))
      descend(bytes);
    return best(bytes);
  }
  trySingles();
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Point> next = candidates(bytes);
    if (next.empty())
      break;
    measure(next);
  }
  relax(bytes);
  return best(bytes);
}

void Search::tryFront(int amounts) {
  measure({space.fastest(), space.thriftiest(), space.withoutTaking(space.thriftiest())});
  trySingles();
  const double most = double(tried.at(space.fastest()).bytes);
  const double least = double(tried.at(front().back()).bytes);
  std::vector<Point> points;
  for (int i = 1; i < amounts; ++i) {
    const double bytes = mix(least, most, double(i) / amounts);
    std::optional<std::pair<double, Point>> fastest;
    forEachPoint([&](const Point &point) {
      const Estimate guess = estimate(point);
      const double cost = costOf(point, guess.microseconds);
      if (guess.bytes() <= bytes && (!fastest || cost < fastest->first))
        fastest = {cost, point};
    });
    if (fastest)
      points.push_back(fastest->second);
  }
  measure(points);
}

std::vector<Point> Search::front() const {
  std::vector<std::pair<Trial, Point>> all;
  for (const auto &[point, trial] : tried)
    all.emplace_back(trial, point);
  std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return std::tuple(a.first.microseconds, a.first.bytes, a.second) <
           std::tuple(b.first.microseconds, b.first.bytes, b.second);
  });
  std::vector<Point> best;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const auto &[trial, point] : all)
    if (trial.bytes < least) {
      least = trial.bytes;
      best.push_back(point);
    }
  return best;
}

} // namespace hydra::budget
