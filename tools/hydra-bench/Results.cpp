// A row is known by everything that it depends on: flags, model, and how it was measured.
#include "tools/hydra-bench/Results.h"

#include "runtime/report/Table.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StreamHash.h"
#include "runtime/support/ZeroByte.h"
#include "tools/hydra-bench/Table.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>

namespace hydra::bench {

using support::fail;

namespace {

std::string hashOf(const std::filesystem::path &path) {
  support::StreamHash hash;
  hash.add(support::InputFile(path).readAll());
  return fmt::format("{:016x}", hash.value());
}

std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown";
  size_t count = 0;
  while (std::getline(file, line))
    if (line.starts_with("model name")) {
      name = line.substr(line.find(':') + 2);
      ++count;
    }
  return fmt::format("{} x {}", count, name);
}

/// Whether a row has what is said of each: its name, its axes, and what was measured or predicted,
/// or why nothing was.
bool isRow(const Json &row) {
  try {
    row.at("name").get_ref<const std::string &>();
    const bool measured = row.at("status").get_ref<const std::string &>() == "ok";
    if (!measured)
      row.at("reason").get_ref<const std::string &>();
    else if (row.contains("bench"))
      row.at("bench").at("median_ms").get<double>();
    else
      row.at("cost").at("step").at("microseconds").get<double>();
    return row.at("axes").is_object();
  } catch (const Json::exception &) {
    return false;
  }
}

} // namespace

Json readResults(const std::filesystem::path &path) {
  const support::InputFile input(path);
  const std::vector<std::byte> bytes = input.readAll();
  const auto *begin = reinterpret_cast<const char *>(bytes.data());
  const Json json =
      Json::parse(begin, begin + bytes.size(), support::JsonGuard(input.name()), false);
  if (support::hasZeroByte(bytes) || !json.is_object() || !json.contains("rows") ||
      !json["rows"].is_array() || !std::ranges::all_of(json["rows"], isRow) ||
      !json.contains("programs") || !json.contains("title") || !json["title"].is_string())
    fail("{} has no results of hydra-bench", input.name());
  return json;
}

namespace {

std::string numberText(const std::optional<double> &number) {
  return number ? fmt::format("{:.3f}", *number) : "-";
}

} // namespace

Results::Results(std::optional<std::filesystem::path> file, const Definition &definition,
                 const Programs &programs, bool again)
    : file(std::move(file)), definition(definition) {
  Json made = {{"hydrac", hashOf(programs.hydrac)}};
  if (definition.steps > 0)
    made["hydra-run"] = hashOf(programs.run);
  head = {{"title", definition.title}, {"machine", machine()}, {"programs", made}};
  std::error_code absent;
  if (!this->file || again || !std::filesystem::exists(*this->file, absent))
    return;
  const Json before = readResults(*this->file);
  if (before.value("title", "") != definition.title)
    fail("{} has results of another sweep, '{}'; --again measures all anew, or choose another -o",
         support::shownPath(*this->file), support::shown(before.value("title", "")));
  for (const char *name : {"machine", "programs"})
    if (before.value(name, Json()) != head[name])
      fail("{} was measured {}; --again measures all anew", support::shownPath(*this->file),
           name == std::string("machine") ? "on another machine" : "with other programs");
  for (const Json &row : before["rows"])
    rows.push_back(row);
}

Json Results::identityOf(const Case &one) const {
  Json identity = {{"model", one.model.filename().string()}, {"hydrac", one.hydrac}};
  std::error_code absent;
  if (std::filesystem::is_regular_file(one.model, absent))
    identity["model_hash"] = hashOf(one.model);
  if (definition.steps > 0) {
    identity["hydra-run"] = one.run;
    identity["steps"] = definition.steps;
    identity["warm_up"] = definition.warmUp;
    identity["profile"] = definition.profile;
  }
  return identity;
}

const Json *Results::find(const Case &one) const {
  const Json identity = identityOf(one);
  const auto found = std::ranges::find_if(rows, [&](const Json &row) {
    return row.value("axes", Json()) == one.axes && row.value("made_with", Json()) == identity;
  });
  return found == rows.end() ? nullptr : &*found;
}

void Results::add(const Case &one, Json row) {
  std::erase_if(rows, [&](const Json &old) { return old.value("axes", Json()) == one.axes; });
  row["made_with"] = identityOf(one);
  rows.push_back(std::move(row));
  if (!file)
    return;
  Json all = head;
  all["rows"] = rows;
  const std::string text = all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  support::AtomicFile out(*file);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

std::vector<Json> Results::rowsOf(const std::vector<Case> &cases) const {
  std::vector<Json> list;
  for (const Case &one : cases)
    if (const Json *row = find(one))
      list.push_back(*row);
  return list;
}

Comparison compare(const Definition &definition, const std::vector<Json> &rows, const Json &before,
                   const std::string &name) {
  Comparison comparison;
  report::Table table(1);
  table.add({"row", "before", "now", "change", ""});
  size_t known = 0;
  for (const Json &row : rows) {
    const auto old = std::ranges::find_if(
        before["rows"], [&](const Json &one) { return one.value("axes", Json()) == row["axes"]; });
    const std::optional<double> now = numberAt(row, definition.compare);
    const std::optional<double> then =
        old == before["rows"].end() ? std::nullopt : numberAt(*old, definition.compare);
    known += then.has_value();
    std::string change = "-", verdict = then ? "" : "new";
    if (then && !now) {
      verdict = row["status"];
      ++comparison.worse;
    } else if (then && *then > 0) {
      const double percent = 100 * (*now / *then - 1);
      change = fmt::format("{:+.1f}%", percent);
      if (std::abs(percent) > definition.threshold)
        verdict = percent > 0 ? "worse" : "better";
      comparison.worse += percent > definition.threshold;
    }
    table.add({row["name"], numberText(then), numberText(now), change, verdict});
  }
  if (known == 0)
    fail("--baseline: {} has '{}' of none of these rows", name, definition.compare);
  comparison.markdown = fmt::format("\n### Compared with {}: {}, worse above {:g}%\n\n{}", name,
                                    definition.compare, definition.threshold, table.markdown());
  return comparison;
}

} // namespace hydra::bench
