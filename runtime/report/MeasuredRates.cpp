// Interpolation between measured steps.
#include "runtime/report/MeasuredRates.h"

#include "runtime/support/Error.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

using nlohmann::json;

namespace hydra::report {

namespace {

constexpr size_t kMatmulSizes = 4, kOtherSizes = 2;
/// Steps that count; the nearest.
constexpr size_t kNeighbours = 6;
/// Sizes that differ by less of a factor of two are as good as equal.
constexpr double kNear = 0.05;
/// What a step does for a byte tells more about it than how many bytes there are.
constexpr double kIntensityWeight = 4;

double squareDistance(const std::vector<double> &a, const std::vector<double> &b) {
  double square = kNear * kNear;
  for (size_t i = 0; i < a.size(); ++i) {
    const double weight = a.size() == kOtherSizes && i == 1 ? kIntensityWeight : 1;
    const double apart = weight * std::log2(a[i] / b[i]);
    square += apart * apart;
  }
  return square;
}

[[noreturn]] void refuse(const std::string &origin, const std::string &field, const json &value,
                         const std::string &expected) {
  support::fail("{}: field 'measured.{}' is {}; expected {}", origin, field, value.dump(),
                expected);
}

double numberOf(const std::string &origin, const std::string &field, const json &value,
                double most) {
  if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > most)
    refuse(origin, field, value, fmt::format("a number from 0 to {}", most));
  return value;
}

MeasuredStep stepOf(const std::string &origin, const std::string &kind, const json &row) {
  constexpr double most = 1e18;
  const std::string field = "steps." + kind;
  const size_t sizes = sizesOf(kind), columns = sizes + 2;
  if (!row.is_array() || row.size() != columns)
    refuse(origin, field, row, fmt::format("{} sizes, the limit, and what was measured", sizes));
  MeasuredStep step;
  for (size_t i = 0; i < columns; ++i) {
    const double value = numberOf(origin, field, row[i], most);
    if (value <= 0)
      refuse(origin, field, row, "numbers above 0");
    if (i < sizes)
      step.sizes.push_back(value);
    else
      (i == sizes ? step.limit : step.microseconds) = value;
  }
  return step;
}

} // namespace

size_t sizesOf(std::string_view kind) {
  return kind.starts_with("matmul.") ? kMatmulSizes : kOtherSizes;
}

double MeasuredRates::microseconds(const StepWork &work) const {
  const auto found = steps.find(work.kind);
  if (found == steps.end() || found->second.empty() || work.limit <= 0)
    return work.limit;
  std::vector<std::pair<double, const MeasuredStep *>> near;
  for (const MeasuredStep &step : found->second)
    near.emplace_back(squareDistance(work.sizes, step.sizes), &step);
  const size_t count = std::min(kNeighbours, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  double sum = 0, weights = 0;
  for (const auto &[square, step] : std::span(near).first(count)) {
    const double weight = 1 / (square * square);
    sum += weight * std::log(step->microseconds / step->limit);
    weights += weight;
  }
  return work.limitOfAll() * std::exp(sum / weights);
}

std::string MeasuredRates::text(size_t indent) const {
  const std::string in(indent, ' ');
  std::string kinds;
  for (const auto &[kind, list] : steps) {
    std::string rows;
    for (const MeasuredStep &step : list)
      rows += fmt::format("{}\n{}    [{:.6g}, {:.4g}, {:.4g}]", rows.empty() ? "" : ",", in,
                          fmt::join(step.sizes, ", "), step.limit, step.microseconds);
    kinds += fmt::format("{}\n{}   {}: [{}\n{}   ]", kinds.empty() ? "" : ",", in,
                         json(kind).dump(), rows, in);
  }
  return fmt::format("{{\n{0}  \"about\": {1},\n{0}  \"exclusive\": {2:.4g},\n"
                     "{0}  \"gap_microseconds\": {3:.4g},\n{0}  \"run_microseconds\": {4:.4g},\n"
                     "{0}  \"input_microseconds\": {5:.4g},\n{0}  \"steps\": {{{6}\n{0}  }}\n{0}}}",
                     in, json(about).dump(), sharing.exclusive(), sharing.gap_microseconds(),
                     sharing.run_microseconds(), sharing.input_microseconds(), kinds);
}

MeasuredRates MeasuredRates::parse(const std::string &text, const std::string &origin) {
  const json content = json::parse(text);
  const std::vector<std::string> fields = {
      "about", "exclusive", "gap_microseconds", "run_microseconds", "input_microseconds", "steps"};
  if (!content.is_object() || content.size() != fields.size() ||
      !std::ranges::all_of(fields, [&](const auto &field) { return content.contains(field); }))
    support::fail("{}: field 'measured' must have {}", origin, fmt::join(fields, ", "));
  MeasuredRates rates;
  if (!content["about"].is_string())
    refuse(origin, "about", content["about"], "a text");
  rates.about = content["about"];
  constexpr double longest = 1e9;
  const auto number = [&](const char *field, double most) {
    return numberOf(origin, field, content[field], most);
  };
  rates.sharing =
      planfile::Sharing(number("exclusive", 1), number("gap_microseconds", longest),
                        number("run_microseconds", longest), number("input_microseconds", longest));
  if (!content["steps"].is_object())
    refuse(origin, "steps", content["steps"], "lists by kind");
  for (const auto &[kind, rows] : content["steps"].items()) {
    if (!rows.is_array() || rows.empty())
      refuse(origin, "steps." + kind, rows, "a list of measured steps");
    for (const json &row : rows)
      rates.steps[kind].push_back(stepOf(origin, kind, row));
  }
  return rates;
}

} // namespace hydra::report
