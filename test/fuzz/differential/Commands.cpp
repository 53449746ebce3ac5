// Flags, processes and the summary of all commands.
#include "test/fuzz/differential/Commands.h"

#include "runtime/support/Error.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace hydra::test {

void CommonOptions::add(CLI::App &app) {
  app.add_option("--jobs", jobs, "processes (default: one for each processor)")
      ->check(CLI::PositiveNumber);
  app.add_option("--timeout", timeout, "seconds for one setting of one program (default: 60)")
      ->check(CLI::PositiveNumber);
  app.add_option("--target", target,
                 "what hydrac compiles for: cpu, or a GPU that this machine has: h200, rtx5090, "
                 "FILE.json (default: cpu)");
  app.add_flag("--compile-only", compileOnly,
               "run nothing, and check what passes leave and what plans say: for a GPU that this "
               "machine has not");
}

WorkerOptions CommonOptions::workers() const {
  WorkerOptions options;
  options.processes = jobs;
  constexpr double kMilliseconds = 1000.0;
  options.limit = std::chrono::milliseconds(static_cast<int64_t>(timeout * kMilliseconds));
#if !__has_feature(address_sanitizer)
  if (target == "cpu" || compileOnly)
    options.memory = uint64_t{16} << 30; // a driver of GPUs reserves far more
#endif
  return options;
}

namespace {

/// The smallest program there is.
class Probe final : public CaseRunner {
public:
  using CaseRunner::CaseRunner;
  Case makeJob(uint64_t) const override {
    Case probe;
    probe.name = "probe";
    probe.source.text = R"(hydra.model @probe version 1 {
  hydra.param @w [1] init = ones
  hydra.entry @loss() {
    %w = hydra.use @w
    %loss = hydra.sum %w axes = [0]
    hydra.return loss = %loss
  }
}
)";
    return probe;
  }
  std::vector<Setting> settingsOf(uint64_t, const Case &) const override { return {setting}; }
  Setting setting;
};

} // namespace

Setting CommonOptions::parse(const std::string &text) {
  Setting setting = Setting::parse(text);
  const Setting plain;
  if (setting.target == plain.target)
    setting.target = target;
  else
    target = setting.target;
  return setting;
}

void CommonOptions::checkTarget() const {
  Probe probe(*this);
  probe.setting.target = target;
  probe.setting.plainCode = compileOnly;
  if (!probe.setting.isCuda())
    return;
  WorkerOptions one = workers();
  one.processes = 1;
  runJobs(probe, 0, 1, one, [&](const Report &report) {
    if (report.verdict.outcome != Outcome::Right)
      support::fail("--target={}: {}", target, report.verdict.detail);
  });
}

void CaseRunner::begin() {
  if (compiler)
    return;
  // Code is linked through small files, several a program: in memory where there is a folder for
  // it.
  constexpr const char *kMemory = "/dev/shm";
  if (::access(kMemory, W_OK) == 0)
    ::setenv("TMPDIR", kMemory, /*overwrite=*/0);
  compiler = std::make_unique<Compiler>();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  compiler->context.appendDialectRegistry(registry);
}

uint32_t CaseRunner::parts(uint64_t job) {
  if (!current || currentJob != job) {
    checker.reset();
    current.emplace(makeJob(job));
    settings = settingsOf(job, *current);
    checker = std::make_unique<Checker>(*compiler, *current);
    currentJob = job;
  }
  return static_cast<uint32_t>(settings.size());
}

Verdict CaseRunner::run(uint64_t job, uint32_t part) {
  parts(job);
  return options.compileOnly ? checker->checkPlan(settings[part]) : checker->check(settings[part]);
}

bool Summary::count(const Verdict &verdict) {
  ++counts[verdict.outcome];
  if (isFinding(verdict.outcome))
    return true;
  return verdict.outcome != Outcome::Right && reasons[keyOf(verdict)].count++ == 0;
}

void Summary::tell(const Case &source, const Setting &setting, const Verdict &verdict) {
  if (!isFinding(verdict.outcome)) {
    reasons[keyOf(verdict)].example =
        fmt::format("{} [{}]: {}", source.name, setting.text(), verdict.detail);
    return;
  }
  std::printf("%s: %s [%s]: %s\n", nameOf(verdict.outcome), source.name.c_str(),
              setting.text().c_str(), verdict.detail.c_str());
  std::fflush(stdout);
}

std::pair<Outcome, std::string> Summary::keyOf(const Verdict &verdict) {
  // What varies has no reason of its own.
  return {verdict.outcome,
          verdict.outcome == Outcome::IllConditioned ? "" : reasonOf(verdict.detail)};
}

int Summary::print(uint64_t programs) const {
  std::vector<std::pair<uint64_t, std::string>> lines;
  for (const auto &[key, reason] : reasons)
    lines.emplace_back(reason.count, fmt::format("{:6} {}, such as {}", reason.count,
                                                 nameOf(key.first), reason.example));
  std::sort(lines.rbegin(), lines.rend());
  for (const auto &[count, line] : lines)
    std::printf("%s\n", line.c_str());
  uint64_t settings = 0, findings = 0;
  for (const auto &[outcome, count] : counts) {
    settings += count;
    findings += isFinding(outcome) ? count : 0;
  }
  const auto count = [&](Outcome outcome) {
    auto it = counts.find(outcome);
    return it == counts.end() ? 0 : it->second;
  };
  std::printf("%s\n",
              fmt::format("{} programs, {} settings, {} wrong, {} refused by executor, {} "
                          "crashes, {} hangs, {} ill-conditioned, {} refused by compiler, {} no "
                          "programs",
                          programs, settings, count(Outcome::Wrong),
                          count(Outcome::RefusedByExecutor), count(Outcome::Crashed),
                          count(Outcome::Hung), count(Outcome::IllConditioned),
                          count(Outcome::RefusedByCompiler), count(Outcome::RefusedByOracle))
                  .c_str());
  if (unexpected > 0)
    std::printf("%s\n",
                fmt::format("{} settings are not as their files expect", unexpected).c_str());
  return findings + unexpected > 0 ? 1 : 0;
}

void FileOptions::add(CLI::App &app) {
  app.add_option("--preset", binding.preset, "of the model");
  app.add_option("--set", binding.settings, "NAME=VALUE: gives a symbol a value")->delimiter(',');
  app.add_option("--batch", binding.batch, "value of the entry dimension B")
      ->check(CLI::PositiveNumber);
  app.add_option("--seq", binding.seq, "value of the entry dimension S")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "of the values (default: 1)");
}

/// What stands behind `// word:` in the comments with which a text begins.
static std::string commentOf(const std::string &text, const std::string &word) {
  for (llvm::StringRef rest = text; rest.starts_with("//"); rest = rest.split('\n').second)
    if (llvm::StringRef line = rest.split('\n').first; line.consume_front("// " + word + ":"))
      return line.trim().str();
  return {};
}

static FileOptions flagsOf(const std::string &text) {
  FileOptions flags;
  CLI::App app;
  app.set_help_flag();
  flags.add(app);
  const std::string line = commentOf(text, "flags");
  try {
    app.parse(line);
  } catch (const CLI::ParseError &error) {
    support::fail("'// flags: {}': {}", line, error.what());
  }
  return flags;
}

Case FileOptions::read(const std::string &path) const {
  Case source = readCase(path, binding, seed);
  const FileOptions own = flagsOf(source.source.text), plain;
  BindingOptions &binding = source.source.binding;
  if (binding.preset.empty())
    binding.preset = own.binding.preset;
  if (binding.settings.empty())
    binding.settings = own.binding.settings;
  if (binding.batch == 0)
    binding.batch = own.binding.batch;
  if (binding.seq == 0)
    binding.seq = own.binding.seq;
  if (seed == plain.seed)
    source.seed = own.seed;
  source.expected = commentOf(source.source.text, "expects");
  if (!source.expected.empty() && source.expected != "right" && source.expected != "refused")
    support::fail("{}: expects '{}'; expected right or refused", path, source.expected);
  return source;
}

} // namespace hydra::test
