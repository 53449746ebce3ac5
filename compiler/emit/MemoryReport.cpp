// What a placed plan needs of memory.
#include "compiler/emit/MemoryReport.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace hydra {

namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

int64_t bytesOf(plan::BufferOp buffer) {
  return plan::extentBytes(cast<MemRefType>(buffer.getType()));
}

/// Sums of buffer sizes by category, in name order.
std::map<std::string, int64_t> byCategory(Operation *scope, bool nested) {
  std::map<std::string, int64_t> sums;
  auto add = [&](plan::BufferOp buffer) { sums[buffer.getCategory().str()] += bytesOf(buffer); };
  if (nested)
    scope->walk(add);
  else
    for (auto buffer : scope->getRegion(0).getOps<plan::BufferOp>())
      add(buffer);
  return sums;
}

} // namespace

void printMemoryReport(plan::PlanModuleOp module, bool json, llvm::raw_ostream &os) {
  int64_t persistent = module.getPersistentBytes().value_or(0);
  int64_t transient = module.getTransientBytes().value_or(0);
  if (json) {
    llvm::json::OStream out(os, 2);
    out.object([&] {
      out.attribute("arena_bytes", persistent + transient);
      out.attribute("persistent_bytes", persistent);
      out.attribute("transient_bytes", transient);
      out.attributeObject("persistent", [&] {
        for (auto &[category, bytes] : byCategory(module, false))
          out.attribute(category, bytes);
      });
      out.attributeArray("programs", [&] {
        for (auto program : module.getBody().getOps<plan::ProgramOp>())
          out.object([&] {
            out.attribute("name", program.getSymName());
            out.attribute("peak_bytes", int64_t(program.getTransientBytes().value_or(0)));
            out.attribute("live_bytes", int64_t(program.getLiveBytes().value_or(0)));
            out.attributeObject("buffers", [&] {
              for (auto &[category, bytes] : byCategory(program, true))
                out.attribute(category, bytes);
            });
          });
      });
    });
    os << '\n';
    return;
  }
  os << llvm::formatv("arena       {0,10:F1} MiB = persistent {1:F1} + transient {2:F1}\n",
                      mib(persistent + transient), mib(persistent), mib(transient));
  for (auto &[category, bytes] : byCategory(module, false))
    os << llvm::formatv("  {0,-18} {1,10:F1} MiB\n", category, mib(bytes));
  for (auto program : module.getBody().getOps<plan::ProgramOp>()) {
    int64_t peak = program.getTransientBytes().value_or(0), live = program.getLiveBytes().value_or(0);
    os << llvm::formatv("program {0,-12} peak {1,10:F1} MiB, live {2,10:F1} MiB, fragmentation "
                        "{3:F2}%\n",
                        program.getSymName(), mib(peak), mib(live),
                        live ? 100.0 * (peak - live) / live : 0.0);
    for (auto &[category, bytes] : byCategory(program, true))
      os << llvm::formatv("  {0,-18} {1,10:F1} MiB in all\n", category, mib(bytes));
  }
}

} // namespace hydra
