// Rows sorted by groups, on the CPU: counted, then put in their places in rising order.
#include "runtime/calls/GroupedCalls.h"
#include "runtime/cpu/Library.h"

#include <algorithm>
#include <utility>
#include <vector>

using namespace hydra::runtime;

namespace {

class RouteCall final : public LibraryCall {
public:
  explicit RouteCall(const RouteSpec &spec) : spec(spec), next(static_cast<size_t>(spec.groups)) {}

  void run(char *const *args, ThreadPool &, const WorkerScratch &) override {
    const char *mask = args[0];
    const auto numbers = [&](size_t i) { return reinterpret_cast<int32_t *>(args[i]); };
    int32_t *index = numbers(1), *group = numbers(2), *place = numbers(3), *offsets = numbers(4);
    std::fill(next.begin(), next.end(), 0);
    forEachPlace(mask, [&](int64_t, int64_t, int64_t e) { ++next[static_cast<size_t>(e)]; });
    int32_t sorted = 0;
    for (int64_t e = 0; e < spec.groups; ++e) {
      offsets[e] = sorted;
      sorted += std::exchange(next[static_cast<size_t>(e)], sorted);
    }
    offsets[spec.groups] = sorted;
    const int64_t all = spec.rows * spec.k;
    std::fill(index + sorted, index + all, -1);
    std::fill(group + sorted, group + all, 0);
    std::fill(place, place + all, -1);
    forEachPlace(mask, [&](int64_t t, int64_t i, int64_t e) {
      const int32_t at = next[static_cast<size_t>(e)]++;
      index[at] = static_cast<int32_t>(t);
      group[at] = static_cast<int32_t>(e);
      place[t * spec.k + i] = at;
    });
  }

private:
  /// visit(t, i, e): e is the i-th group of row t.
  template <typename Visit> void forEachPlace(const char *mask, Visit visit) const {
    for (int64_t t = 0; t < spec.rows; ++t)
      for (int64_t e = 0, i = 0; e < spec.groups && i < spec.k; ++e)
        if (mask[t * spec.groups + e])
          visit(t, i++, e);
  }

  RouteSpec spec;
  std::vector<int32_t> next; ///< of each group: how many rows, then the place of the next one
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareRoute(const CallSite &site) {
  return std::make_unique<RouteCall>(describeRoute(site));
}
