// Tables of a sweep. A table has a line for each combination of values of the axes in `rows`; the
// others are chosen by a column's `where`, and if several rows are left the first one counts.
// Columns:
//
//   {"title": "ms", "value": "bench.median_ms", "scale": 1, "digits": 1, "where": {"mode":
//   "train"}}
//        a number of the row, by the names on the way to it (`/` between them where a name has
//        points)
//   {"title": "flags", "text": ["memory.options.O", "status"]}    words of the row, by such names,
//   one behind
//        the other
//   {"title": "gemm", "sum": {"class": "gemm"}, "of": {}}         microseconds of steps, of a
//   profile, that
//        are of the class, phase, name, line or outermost part of the model (`not_class` and so on:
//        that are not), or have that number among those that are alike in a layer: 1 is the first;
//        `of`: percent of those
//   {"title": "top", "top": {"phase": "forward"}, "of": {...}}    the step with most time, and its
//   percent
//   {"title": "speed-up", "ratio": ["fp32", "bf16"]}              of two columns to the left, by
//   their titles
//   {"title": "%", "change": ["fp32", "bf16"]}                    from the first to the second, in
//   percent
//   {"title": "preset", "axis": "preset", "names": {"small": "s"}}      where an axis should have
//   another name
//
// A number of a row that was not measured is its status (`does not fit`); what is not there is `-`.
#pragma once

#include "tools/hydra-bench/Definition.h"

#include <optional>
#include <string>
#include <vector>

namespace hydra::bench {

/// The number by the names on the way to it; nothing where there is none.
std::optional<double> numberAt(const Json &row, const std::string &path);
/// The word by such names.
std::optional<std::string> wordAt(const Json &row, const std::string &path);

struct TableText {
  std::string title;
  std::vector<std::vector<std::string>> rows; ///< the first is the head
  size_t texts = 0;                           ///< columns from the left that are no numbers
};

/// The tables of the definition. Throws Error for columns that cannot be.
std::vector<TableText> tablesOf(const Definition &definition, const std::vector<Json> &rows);

/// All tables under their headings, then a line for each row that was not measured.
std::string markdownOf(const Definition &definition, const std::vector<Json> &rows);

/// The tables with commas; what is not a number is `nan` in columns of numbers.
std::string csvOf(const Definition &definition, const std::vector<Json> &rows);

} // namespace hydra::bench
