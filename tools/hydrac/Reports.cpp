// Lists of passes, and reports of memory and cost.
#include "tools/hydrac/Reports.h"

#include "runtime/report/CostReport.h"
#include "runtime/report/MemoryReport.h"
#include "runtime/support/AtomicFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <span>

using llvm::StringRef;

namespace hydra {

void printPasses() {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::StringSet<> seen;
  for (const PassEntry &pass : pipelinePasses())
    if (seen.insert(pass.name).second)
      out << llvm::left_justify(pass.name, 24)
          << llvm::left_justify(pass.required ? "required" : "", 10) << pass.summary << '\n';
  printOutput(text);
}

void writeFile(const std::string &path, const std::string &text) {
  support::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

/// As a plan file has it.
static const planfile::Plan &packed(flatbuffers::FlatBufferBuilder &builder,
                                    const planfile::PlanT &content) {
  builder.Finish(planfile::Plan::Pack(builder, &content));
  return *flatbuffers::GetRoot<planfile::Plan>(builder.GetBufferPointer());
}

void printReports(const HydracOptions &options, const planfile::PlanT &content) {
  const std::string &timeline = options.memoryTimeline;
  if (!options.reports())
    return;
  flatbuffers::FlatBufferBuilder builder;
  const planfile::Plan &plan = packed(builder, content);
  if (isGiven(options.memoryReport))
    printOutput(options.memoryReport == "json" ? report::memoryReportJson(plan)
                                               : report::memoryReportText(plan));
  if (isGiven(options.costReport))
    printOutput(options.costReport == "json"       ? report::costJson(plan)
                : options.costReport == "markdown" ? report::costMarkdown(plan)
                                                   : report::costText(plan));
  if (!timeline.empty())
    writeFile(timeline, StringRef(timeline).ends_with(".json") ? report::memoryTimelineJson(plan)
                                                               : report::memoryTimelineCsv(plan));
}

void printKernelReport(const HydracOptions &options, const planfile::PlanT &content,
                       const AssemblerVerdict &verdict) {
  flatbuffers::FlatBufferBuilder builder;
  const planfile::Plan &plan = packed(builder, content);
  printOutput(options.kernelReport == "json"       ? kernelReportJson(plan, verdict)
              : options.kernelReport == "markdown" ? kernelReportMarkdown(plan, verdict)
                                                   : kernelReportText(plan, verdict));
}

} // namespace hydra
