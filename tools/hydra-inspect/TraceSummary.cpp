// Sums over events, then tables.
#include "tools/hydra-inspect/TraceSummary.h"

#include "runtime/report/Table.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/JsonGuard.h"
#include "tools/hydra-inspect/KernelClass.h"
#include "tools/hydra-inspect/TraceEvents.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hydra::inspect {

using Json = nlohmann::json;
using nlohmann::ordered_json;
using report::Table;

namespace {

/// An operation on the CPU; others that it calls lie inside of it, on the same thread.
struct HostOperation {
  size_t thread;
  double begin, end;
  std::string name, kind;
};

class Summarizer {
public:
  explicit Summarizer(const std::filesystem::path &path) : file(path) { summary.file = path; }

  TraceSummary run() {
    try {
      if (!forEachEvent(file, [this](const Json &event) { addEvent(event); }))
        failWith("it has no traceEvents");
    } catch (const Json::exception &error) {
      failWith(support::jsonProblem(error));
    }
    if (!summary.device)
      addOperations();
    if (summary.total.microseconds <= 0)
      failWith("it has no kernel and no operation that took time");
    return std::move(summary);
  }

private:
  [[noreturn]] void failWith(const std::string &why) const {
    support::fail("{} is no time line as hydra-run or PyTorch's profiler write it: {}", file.name(),
                  why);
  }

  void addEvent(const Json &event) {
    if (event.value("ph", "") != "X" || !event.contains("dur") || !event.contains("ts"))
      return;
    const auto category = event.value("cat", "");
    const bool device =
        category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset";
    if (!device && category != "cpu_op")
      return;
    const auto name = event.at("name").get<std::string>();
    const auto begin = event.at("ts").get<double>(), end = begin + event.at("dur").get<double>();
    std::string kind = category == "gpu_memcpy" || category == "gpu_memset" ? "memcpy" : "";
    if (kind.empty() && event.contains("args") && event["args"].contains("class"))
      kind = event["args"]["class"].get<std::string>(); // of hydra-run
    if (kind == "collective")
      kind = "nccl";
    if (kind.empty())
      kind = kernelClass(name);
    if (device) {
      summary.device = true;
      add(name, kind, begin, end, end - begin);
    } else {
      const std::string thread =
          event.value("pid", Json()).dump() + event.value("tid", Json()).dump();
      operations.push_back(
          {threads.try_emplace(thread, threads.size()).first->second, begin, end, name, kind});
    }
  }

  void add(const std::string &name, const std::string &kind, double begin, double end,
           double microseconds) {
    const bool first = summary.total.calls == 0;
    summary.begin = first ? begin : std::min(summary.begin, begin);
    summary.end = first ? end : std::max(summary.end, end);
    for (TraceSum *sum : {&summary.total, &summary.byClass[kind], &summary.byName[name]}) {
      ++sum->calls;
      sum->microseconds += microseconds;
    }
  }

  /// Each with the time that is not of those inside of it.
  void addOperations() {
    std::ranges::sort(operations, {}, [](const HostOperation &one) {
      return std::tuple(one.thread, one.begin, -one.end, one.name);
    });
    std::vector<std::pair<size_t, double>> open; // index, time inside
    const auto close = [&] {
      const auto &[index, inside] = open.back();
      const HostOperation &one = operations[index];
      add(one.name, one.kind, one.begin, one.end, std::max(0.0, one.end - one.begin - inside));
      open.pop_back();
    };
    for (size_t i = 0; i < operations.size(); ++i) {
      const HostOperation &one = operations[i];
      while (!open.empty() && (operations[open.back().first].thread != one.thread ||
                               operations[open.back().first].end <= one.begin))
        close();
      if (!open.empty())
        open.back().second += one.end - one.begin;
      open.emplace_back(i, 0.0);
    }
    while (!open.empty())
      close();
  }

  support::InputFile file;
  TraceSummary summary;
  std::map<std::string, size_t> threads;
  std::vector<HostOperation> operations;
};

using Sums = std::map<std::string, TraceSum>;

/// A name with what each time line has of it.
struct Row {
  std::string name;
  std::vector<TraceSum> sums;

  double most() const {
    double most = 0;
    for (const TraceSum &sum : sums)
      most = std::max(most, sum.microseconds);
    return most;
  }
};

/// All names, those with most time first.
std::vector<Row> rowsOf(const std::vector<TraceSummary> &traces, Sums TraceSummary::*member) {
  std::map<std::string, Row> byName;
  for (size_t i = 0; i < traces.size(); ++i)
    for (const auto &[name, sum] : traces[i].*member) {
      Row &row = byName[name];
      row.name = name;
      row.sums.resize(traces.size());
      row.sums[i] = sum;
    }
  std::vector<Row> rows;
  for (auto &[name, row] : byName)
    rows.push_back(std::move(row));
  std::ranges::sort(rows, {}, [](const Row &row) { return std::pair(-row.most(), row.name); });
  return rows;
}

std::string milliseconds(double microseconds) { return fmt::format("{:.3f}", 1e-3 * microseconds); }

double percentOf(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// Of a change: `-` where there was nothing.
std::string changeText(double from, double to) {
  return from > 0 ? fmt::format("{:+.1f}%", percentOf(to - from, from)) : "-";
}

class TraceTables {
public:
  TraceTables(const std::vector<TraceSummary> &traces, size_t top) : traces(traces), top(top) {}

  std::vector<std::string> headlines() const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < traces.size(); ++i) {
      const TraceSummary &one = traces[i];
      lines.push_back(fmt::format(
          "{}{}: {} {}, {} ms of {} ms", traces.size() > 1 ? (i == 0 ? "A: " : "B: ") : "",
          one.file, report::countText(one.total.calls),
          one.device ? "kernels and copies of a GPU" : "operations on the CPU",
          milliseconds(one.total.microseconds), milliseconds(one.end - one.begin)));
    }
    return lines;
  }

  Table byClass() const { return table("class", &TraceSummary::byClass, ~size_t{0}); }
  Table byName() const {
    return table(traces[0].device ? "kernel" : "operation", &TraceSummary::byName, top);
  }

private:
  Table table(const char *what, Sums TraceSummary::*member, size_t most) const {
    Table table(1);
    const bool two = traces.size() > 1;
    if (two)
      table.add({what, "A calls", "A ms", "A %", "B calls", "B ms", "B %", "B - A ms", "change"});
    else
      table.add({what, "calls", "ms", "%", "us a call"});
    const std::vector<Row> rows = rowsOf(traces, member);
    Row rest{"", std::vector<TraceSum>(traces.size())}, all = rest;
    size_t others = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      addTo(all, rows[i]);
      if (i < most) {
        table.add(cells(rows[i]));
      } else {
        addTo(rest, rows[i]);
        ++others;
      }
    }
    rest.name = fmt::format("{} others", others);
    if (others > 0)
      table.add(cells(rest));
    all.name = "all";
    table.add(cells(all));
    return table;
  }

  static void addTo(Row &sum, const Row &row) {
    for (size_t i = 0; i < row.sums.size(); ++i) {
      sum.sums[i].calls += row.sums[i].calls;
      sum.sums[i].microseconds += row.sums[i].microseconds;
    }
  }

  std::vector<std::string> cells(const Row &row) const {
    constexpr size_t longest = 80; // names of templates have no end
    std::vector<std::string> cells = {
        row.name.size() > longest ? row.name.substr(0, longest - 3) + "..." : row.name};
    for (size_t i = 0; i < traces.size(); ++i) {
      const TraceSum &sum = row.sums[i];
      cells.push_back(report::countText(sum.calls));
      cells.push_back(milliseconds(sum.microseconds));
      cells.push_back(
          fmt::format("{:.1f}", percentOf(sum.microseconds, traces[i].total.microseconds)));
    }
    if (traces.size() > 1) {
      const double from = row.sums[0].microseconds, to = row.sums[1].microseconds;
      cells.push_back(fmt::format("{:+.3f}", 1e-3 * (to - from)));
      cells.push_back(changeText(from, to));
    } else {
      const TraceSum &sum = row.sums[0];
      cells.push_back(fmt::format("{:.1f}", sum.calls ? sum.microseconds / double(sum.calls) : 0));
    }
    return cells;
  }

  const std::vector<TraceSummary> &traces;
  size_t top;
};

ordered_json jsonOf(const std::vector<TraceSummary> &traces, Sums TraceSummary::*member) {
  ordered_json list = ordered_json::array();
  for (const Row &row : rowsOf(traces, member)) {
    ordered_json one = {{"name", row.name}, {"traces", ordered_json::array()}};
    for (size_t i = 0; i < traces.size(); ++i)
      one["traces"].push_back(
          {{"calls", row.sums[i].calls},
           {"microseconds", row.sums[i].microseconds},
           {"percent", percentOf(row.sums[i].microseconds, traces[i].total.microseconds)}});
    if (traces.size() > 1) {
      const double from = row.sums[0].microseconds, to = row.sums[1].microseconds;
      one["delta_microseconds"] = to - from;
      one["delta_percent"] = from > 0 ? ordered_json(percentOf(to - from, from)) : ordered_json();
    }
    list.push_back(std::move(one));
  }
  return list;
}

} // namespace

TraceSummary summarizeTrace(const std::filesystem::path &path) { return Summarizer(path).run(); }

std::string traceText(const std::vector<TraceSummary> &traces, size_t top) {
  const TraceTables tables(traces, top);
  std::string text;
  for (const std::string &line : tables.headlines())
    text += line + "\n";
  return text + "\n" + tables.byClass().text() + "\n" + tables.byName().text();
}

std::string traceMarkdown(const std::vector<TraceSummary> &traces, size_t top) {
  const TraceTables tables(traces, top);
  std::string text;
  for (const std::string &line : tables.headlines())
    text += line + "\n\n";
  return text + tables.byClass().markdown() + "\n" + tables.byName().markdown();
}

std::string traceJson(const std::vector<TraceSummary> &traces) {
  ordered_json json = {{"traces", ordered_json::array()}};
  for (const TraceSummary &one : traces)
    json["traces"].push_back({{"file", one.file},
                              {"device", one.device},
                              {"calls", one.total.calls},
                              {"microseconds", one.total.microseconds},
                              {"span_microseconds", one.end - one.begin}});
  json["classes"] = jsonOf(traces, &TraceSummary::byClass);
  json["names"] = jsonOf(traces, &TraceSummary::byName);
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace hydra::inspect
