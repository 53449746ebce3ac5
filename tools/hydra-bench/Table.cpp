// Cells are numbers until the last moment, so that columns can be made of others.
#include "tools/hydra-bench/Table.h"

#include "runtime/report/Table.h"
#include "runtime/support/Error.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>

namespace hydra::bench {

using support::fail;
using support::shown;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Cell {
  double number = kNone;
  std::string text; ///< instead of a number
};

/// Whether a step of a profile is what `{"class": "gemm", "not_phase": "optimizer"}` says.
bool isOf(const Json &step, const Json &filter) {
  for (const auto &[key, value] : filter.items()) {
    const bool negative = key.starts_with("not_");
    if ((step.value(negative ? key.substr(4) : key, Json()) == value) == negative)
      return false;
  }
  return true;
}

double sumOf(const Json &profile, const Json &filter) {
  double sum = 0;
  for (const Json &step : profile.at("steps"))
    if (isOf(step, filter))
      sum += step.at("us").get<double>();
  return sum;
}

Cell topOf(const Json &profile, const Json &filter, const Json &whole) {
  struct Sum {
    double microseconds = 0, calls = 0;
  };
  std::map<std::string, Sum> byName;
  for (const Json &step : profile.at("steps"))
    if (isOf(step, filter)) {
      Sum &sum = byName[step.at("name")];
      sum.microseconds += step.at("us").get<double>();
      sum.calls += step.at("calls").get<double>();
    }
  if (byName.empty())
    return {};
  const auto &[name, sum] = *std::ranges::max_element(
      byName, {}, [](const auto &one) { return one.second.microseconds; });
  const double share = 100 * sum.microseconds / std::max(sumOf(profile, whole), 1e-9);
  return {kNone, fmt::format("{} {:.1f}%, {:.3f} ms in {:g}", name, share, 1e-3 * sum.microseconds,
                             sum.calls)};
}

class TableWriter {
public:
  TableWriter(const Definition &definition, const Json &json, const std::vector<Json> &all)
      : definition(definition), json(json), all(all) {
    for (const char *name : {"rows", "columns"})
      if (!json.is_object() || !json.contains(name) || !json[name].is_array())
        fail("{}: a table has no list of '{}'", definition.file.string(), name);
    for (const Json &name : json["rows"])
      if (!name.is_string() || std::ranges::find(definition.axes, name.get<std::string>(),
                                                 &Axis::name) == definition.axes.end())
        fail("{}: 'rows' of a table names {}, which is no axis", definition.file.string(),
             shown(name.dump()));
  }

  TableText write(const char *none) {
    TableText text{.title = json.value("title", ""), .rows = {{}}, .texts = json["rows"].size()};
    for (const Json &axis : json["rows"])
      text.rows[0].push_back(axis);
    for (const Json &column : json["columns"]) {
      check(column, std::span(text.rows[0]).subspan(json["rows"].size()));
      text.rows[0].push_back(titleOf(column));
      if (column.contains("axis") && text.texts + 1 == text.rows[0].size())
        ++text.texts;
    }
    std::vector<Json> lines; // combinations in the order of the first row of each
    for (const Json &row : all) {
      Json line = Json::object();
      for (const Json &axis : json["rows"])
        line[axis.get<std::string>()] = row.at("axes").at(axis.get<std::string>());
      if (std::ranges::find(lines, line) == lines.end())
        lines.push_back(std::move(line));
    }
    for (const Json &line : lines)
      text.rows.push_back(write(line, none));
    return text;
  }

private:
  std::string titleOf(const Json &column) const {
    if (!column.is_object() || !column.contains("title") || !column["title"].is_string())
      fail("{}: a column has no 'title'", definition.file.string());
    return column["title"];
  }

  /// `left`: the titles of the columns to the left.
  void check(const Json &column, std::span<const std::string> left) const {
    const std::string title = titleOf(column);
    const auto has = [&](const char *kind) { return column.contains(kind); };
    constexpr const char *kinds[] = {"value", "text", "sum", "top", "ratio", "change", "axis"};
    if (std::ranges::count_if(kinds, has) != 1)
      fail("{}: the column '{}' has not one of value, text, sum, top, ratio, change and axis",
           definition.file.string(), shown(title));
    if ((has("sum") || has("top")) && !definition.profile)
      fail("{}: the column '{}' needs 'profile'", definition.file.string(), shown(title));
    for (const char *kind : {"ratio", "change"})
      if (has(kind))
        checkTwo(column[kind], kind, left);
    constexpr int most = 17;
    if (const Json digits = column.value("digits", Json(1));
        !digits.is_number_integer() || digits < 0 || digits > most)
      fail("{}: the column '{}' has {} digits; expected a number from 0 to {}",
           definition.file.string(), shown(title), shown(digits.dump()), most);
    const auto checkAxis = [&](const std::string &name) {
      if (std::ranges::find(definition.axes, name, &Axis::name) == definition.axes.end())
        fail("{}: the column '{}' names the axis '{}', which there is not",
             definition.file.string(), shown(title), shown(name));
    };
    const Json where = column.value("where", Json::object());
    for (const auto &[axis, value] : where.items())
      checkAxis(axis);
    if (has("axis"))
      checkAxis(column["axis"].get<std::string>());
  }

  void checkTwo(const Json &titles, const char *kind, std::span<const std::string> left) const {
    if (!titles.is_array() || titles.size() != 2)
      fail("{}: '{}' takes two columns", definition.file.string(), kind);
    for (const Json &title : titles)
      if (!title.is_string() || std::ranges::find(left, title.get<std::string>()) == left.end())
        fail("{}: '{}' names the column {}, which is not to the left", definition.file.string(),
             kind, shown(title.dump()));
  }

  std::vector<std::string> write(const Json &line, const char *none) {
    std::vector<std::string> cells;
    for (const auto &[axis, value] : line.items())
      cells.push_back(value);
    std::map<std::string, Cell> known;
    for (const Json &column : json["columns"]) {
      const Cell cell = known[titleOf(column)] = cellOf(column, line, known);
      if (!cell.text.empty())
        cells.push_back(cell.text);
      else if (std::isnan(cell.number))
        cells.emplace_back(none);
      else
        cells.push_back(fmt::format("{:.{}f}", cell.number, column.value("digits", 1)));
    }
    return cells;
  }

  static bool isAt(const Json &row, const Json &places) {
    for (const auto &[axis, value] : places.items())
      if (row.at("axes").value(axis, Json()) != value)
        return false;
    return true;
  }

  const Json *rowOf(const Json &line, const Json &where) const {
    const auto found = std::ranges::find_if(
        all, [&](const Json &row) { return isAt(row, line) && isAt(row, where); });
    return found == all.end() ? nullptr : &*found;
  }

  Cell cellOf(const Json &column, const Json &line, const std::map<std::string, Cell> &known) {
    for (const char *kind : {"ratio", "change"})
      if (column.contains(kind))
        return ofTwo(column[kind], kind, known);
    const Json *row = rowOf(line, column.value("where", Json::object()));
    if (!row)
      return {};
    if (column.contains("axis")) {
      const std::string value = row->at("axes").value(column["axis"].get<std::string>(), "-");
      return {kNone, column.contains("names") ? column["names"].value(value, "-") : value};
    }
    if (column.contains("text")) {
      if (const std::string words = wordsOf(*row, column["text"]); !words.empty())
        return {kNone, words};
    } else if (column.contains("value")) {
      if (const std::optional<double> sum = sumOfValues(*row, column["value"]))
        return {*sum * column.value("scale", 1.0), ""};
    } else if (row->contains("profile")) {
      return ofProfile(column, (*row)["profile"]);
    }
    const std::string status = row->at("status");
    return {kNone, status == "ok" ? "" : status};
  }

  /// Of one path or several, those that are there.
  static std::string wordsOf(const Json &row, const Json &paths) {
    std::string words;
    for (const Json &path : paths.is_array() ? paths : Json::array({paths}))
      if (const std::optional<std::string> word = wordAt(row, path.get<std::string>()))
        words += (words.empty() ? "" : " ") + *word;
    return words;
  }

  /// Of one path or several; nothing where the row lacks one of them.
  static std::optional<double> sumOfValues(const Json &row, const Json &paths) {
    double sum = 0;
    for (const Json &path : paths.is_array() ? paths : Json::array({paths})) {
      const std::optional<double> number = numberAt(row, path.get<std::string>());
      if (!number)
        return std::nullopt;
      sum += *number;
    }
    return sum;
  }

  Cell ofProfile(const Json &column, const Json &profile) const {
    const Json whole = column.value("of", Json::object());
    if (column.contains("top"))
      return topOf(profile, column["top"], whole);
    const double sum = sumOf(profile, column.at("sum"));
    if (!column.contains("of"))
      return {sum * column.value("scale", 1.0), ""};
    const double all = sumOf(profile, whole);
    return {all > 0 ? 100 * sum / all : kNone, ""};
  }

  static Cell ofTwo(const Json &titles, const std::string &kind,
                    const std::map<std::string, Cell> &known) {
    std::vector<double> numbers;
    for (const Json &title : titles)
      numbers.push_back(known.at(title.get<std::string>()).number);
    if (std::isnan(numbers[0]) || std::isnan(numbers[1]) || numbers[0] == 0 || numbers[1] == 0)
      return {};
    return {kind == "ratio" ? numbers[0] / numbers[1] : 100 * (numbers[1] / numbers[0] - 1), ""};
  }

  const Definition &definition;
  const Json &json;
  const std::vector<Json> &all;
};

std::vector<TableText> write(const Definition &definition, const std::vector<Json> &rows,
                             const char *none) {
  std::vector<TableText> tables;
  try {
    for (const Json &table : definition.tables)
      tables.push_back(TableWriter(definition, table, rows).write(none));
  } catch (const Json::exception &error) {
    fail("{}: a table is not what it should be: {}", definition.file.string(),
         support::jsonProblem(error));
  }
  return tables;
}

std::string csvCell(const std::string &text) {
  if (text.find_first_of(",\"\n") == std::string::npos)
    return text;
  std::string out = "\"";
  for (const char c : text)
    out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

} // namespace

/// What is there by the names on the way to it; null where nothing is.
static const Json *valueAt(const Json &row, const std::string &path) {
  const char separator = path.find('/') == std::string::npos ? '.' : '/';
  const Json *value = &row;
  size_t at = 0;
  while (at <= path.size()) {
    const size_t next = std::min(path.find(separator, at), path.size());
    const std::string name = path.substr(at, next - at);
    if (!value->is_object() || !value->contains(name))
      return nullptr;
    value = &(*value)[name];
    at = next + 1;
  }
  return value;
}

std::optional<double> numberAt(const Json &row, const std::string &path) {
  const Json *value = valueAt(row, path);
  return value && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::optional<std::string> wordAt(const Json &row, const std::string &path) {
  const Json *value = valueAt(row, path);
  return value && value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
}

std::vector<TableText> tablesOf(const Definition &definition, const std::vector<Json> &rows) {
  return write(definition, rows, "-");
}

std::string markdownOf(const Definition &definition, const std::vector<Json> &rows) {
  std::string text = "## " + definition.title + "\n";
  if (!definition.about.empty())
    text += "\n" + definition.about + "\n";
  for (const TableText &table : tablesOf(definition, rows)) {
    if (!table.title.empty())
      text += "\n### " + table.title + "\n";
    report::Table out(table.texts);
    for (const std::vector<std::string> &row : table.rows)
      out.add(row);
    text += "\n" + out.markdown();
  }
  std::string failures;
  for (const Json &row : rows)
    if (row.at("status") != "ok")
      failures += fmt::format("* {}: {}: {}\n", row.at("name").get<std::string>(),
                              row.at("status").get<std::string>(), row.value("reason", ""));
  return failures.empty() ? text : text + "\nNot measured:\n\n" + failures;
}

std::string csvOf(const Definition &definition, const std::vector<Json> &rows) {
  std::string text;
  for (TableText &table : write(definition, rows, "nan")) {
    if (!text.empty())
      text += '\n';
    for (size_t line = 0; line < table.rows.size(); ++line) {
      for (size_t i = 0; i < table.rows[line].size(); ++i) {
        std::string &cell = table.rows[line][i];
        if (cell == "does not fit" || cell == "failed")
          cell = "nan";
        text += (i > 0 ? "," : "") + csvCell(cell);
      }
      text += '\n';
    }
  }
  return text;
}

} // namespace hydra::bench
