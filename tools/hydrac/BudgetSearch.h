// Of settings that cost time and save memory, the fastest that fit: by few trials of many.
//
// A trial (a plan without code) says the time of a step and the bytes that its parts need. Between
// trials both are estimated: what one choice costs and saves is what it costs and saves beside the
// fastest setting, and adds up; where trials of the same other choices are near, it is taken from
// those instead. What the estimate takes for the fastest that fits is tried next, until nothing
// better is left to try; then, whether one choice less would do. No clock and no number of threads
// decides: equal input, equal choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace hydra::budget {

/// A level of each choice: 0 is the fastest, the last one saves most.
using Point = std::vector<int>;

/// What the plan of a point is predicted to take.
struct Trial {
  double microseconds = 0;
  uint64_t bytes = 0;
  /// Bytes while each part of a step runs; as many parts for every trial. Choices add up in each of
  /// them; the largest decides.
  std::vector<uint64_t> parts;
};

struct Choice {
  int levels = 1;
  /// Each level costs and saves as much as the one before: of many only a few are tried.
  bool even = false;
  /// What a level above 0 must gain, as a share of the time, to be worth it.
  double margin = 0;
  /// It is made only where nothing fits without, whatever the time.
  bool last = false;
  /// It takes memory as well, so that more of it may need more.
  bool takes = false;
};

struct Space {
  std::vector<Choice> choices;
  /// Whether there is such a setting; points that differ from the fastest in one choice must be.
  std::function<bool(const Point &)> exists = [](const Point &) { return true; };

  Point fastest() const { return Point(choices.size(), 0); }
  Point thriftiest() const;
  /// The same but for choices that are made last.
  Point thriftiestWithoutLast() const;
  /// A point without choices that take memory as well.
  Point withoutTaking(Point point) const;
};

/// Tries points, in any order, and says what came out in the order given.
using TryOut = std::function<std::vector<Trial>(const std::vector<Point> &)>;

class Search {
public:
  Search(Space space, TryOut tryOut) : space(std::move(space)), tryOut(std::move(tryOut)) {}

  /// The fastest point found that takes at most so many bytes, but for margins; nothing if even
  /// what saves most does not.
  std::optional<Point> fastestWithin(uint64_t bytes);

  /// Tries every choice by itself.
  void trySingles();
  /// Tries what should be the fastest for so many amounts of memory, from the most saving to the
  /// fastest.
  void tryFront(int amounts);

  /// All trials.
  const std::map<Point, Trial> &trials() const { return tried; }
  /// Points of which no other trial is better in one and not worse in the other, from the fastest
  /// on.
  std::vector<Point> front() const;

private:
  /// What is known, or guessed, of a point.
  struct Estimate {
    double microseconds = 0;
    std::vector<double> parts;
    double bytes() const;
  };

  void measure(const std::vector<Point> &points);
  /// What a level of a choice adds to the fastest point.
  Estimate differenceOf(size_t choice, int level) const;
  Estimate additive(const Point &point) const;
  Estimate estimate(const Point &point) const;
  /// Levels of a choice that are tried by themselves.
  std::vector<int> singleLevels(size_t choice) const;
  Point single(size_t choice, int level) const;
  /// Time with what choices have to gain.
  double costOf(const Point &point, double microseconds) const;
  /// Tries what should need least of all: as it is, and without what takes memory. Whether any
  /// trial fits.
  bool fitsWith(const Point &least, uint64_t bytes);
  /// Whether a trial that saves at least as much in every choice takes more.
  bool isKnownTooLarge(const Point &point, uint64_t bytes) const;
  /// The fastest trial that fits, without last choices if there is one.
  std::optional<Point> best(uint64_t bytes) const;
  /// What to try next.
  std::vector<Point> candidates(uint64_t bytes) const;
  /// Whether a point can be better than what is known: it exists, and may fit.
  bool isOpen(const Point &point, uint64_t bytes) const;
  /// Whether a point makes a choice that is the last to be made.
  bool makesLast(const Point &point) const;
  /// From the fastest trial that fits on, tries single choices with less or nothing of them.
  void relax(uint64_t bytes);
  /// From the trial that takes least, tries one choice less, while that takes less still and
  /// nothing fits.
  void descend(uint64_t bytes);
  void forEachPoint(const std::function<void(const Point &)> &visit) const;
  /// Whether two points differ in even choices at most.
  bool isAlike(const Point &a, const Point &b) const;

  Space space;
  TryOut tryOut;
  std::map<Point, Trial> tried;
  bool last = false;                              ///< whether nothing fits without the last choices
  std::vector<std::vector<Estimate>> differences; ///< by choice and level, from the singles
};

} // namespace hydra::budget
