// Comparison with the oracle. Two measures say what rounding may do: how far the oracle moves when
// it rounds every result, and, where that is exceeded, how far stochastic arithmetic moves the
// operations that the plan was made of.
#include "test/fuzz/differential/Check.h"

#include "runtime/plan/PlanFile.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

namespace hydra::test {

namespace {

constexpr uint64_t kSamples = 6;         ///< evaluations in stochastic arithmetic
constexpr uint64_t kMostSamples = 60;    ///< those of a finding: some signs seldom turn
constexpr double kSpreads = 10.0;        ///< an error may be so many of their spreads
constexpr double kIllConditioned = 1e-2; ///< a spread, of the largest element
constexpr double kNothing = 1e-7; ///< what is left of sums that cancel has no scale of its own
constexpr double kBeyondDoubt = 1000.0; ///< spreads that no conditioning explains

std::string positionText(int64_t i, llvm::ArrayRef<int64_t> shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0; i /= shape[d])
    position[d] = i % shape[d];
  return shapeText(position);
}

/// Where a tensor is furthest from the oracle.
struct Difference {
  std::string tensor;
  int64_t element = 0;
  double found = 0.0, expected = 0.0, error = 0.0, allowed = 0.0, scale = 0.0;
};

/// Whether both round to the same, or are beyond what can be compared.
bool isComparable(double exact, double rounded) {
  return std::isfinite(exact) && std::isfinite(rounded);
}

Difference differenceOf(const std::string &name, const RefTensor &found, const RefTensor &exact,
                        const RefTensor &rounded, double ulp) {
  Difference d;
  d.tensor = name;
  double moved = 0.0;
  for (int64_t i = 0; i < found.size(); ++i) {
    if (!isComparable(exact.data[i], rounded.data[i]))
      continue;
    moved = std::max(moved, std::abs(rounded.data[i] - exact.data[i]));
    d.scale = std::max(d.scale, std::abs(exact.data[i]));
    const double error = std::abs(found.data[i] - exact.data[i]);
    if (!(error <= d.error)) { // a NaN is the worst of all
      d.error = std::isnan(error) ? INFINITY : error;
      d.element = i;
      d.found = found.data[i];
      d.expected = exact.data[i];
    }
  }
  constexpr double kUlps = 16.0;
  d.allowed = 2.0 * moved + kUlps * ulp * d.scale + kNothing;
  return d;
}

/// The largest difference between two results where the oracle can be compared with.
double distance(const std::string &name, const Oracle &oracle, const TensorMap &a,
                const TensorMap &b) {
  const RefTensor &exact = oracle.exact().find(name)->second,
                  &rounded = oracle.rounded().find(name)->second;
  auto one = a.find(name), other = b.find(name);
  if (one == a.end() || other == b.end() || one->second.size() != exact.size() ||
      other->second.size() != exact.size())
    return 0.0;
  double largest = 0.0;
  for (int64_t i = 0; i < exact.size(); ++i)
    if (isComparable(exact.data[i], rounded.data[i])) {
      const double off = std::abs(one->second.data[i] - other->second.data[i]);
      largest = std::isfinite(off) ? std::max(largest, off) : INFINITY;
    }
  return largest;
}

/// Why the ids that a program drew, greedily, are not those of its own highest scores; empty where
/// they are. A sequence that rests has 0.
std::string wrongChoice(const std::string &name, const RefTensor &token, const TensorMap &found) {
  const std::string prefix = name.substr(0, name.size() - llvm::StringRef("token").size());
  const RefTensor logits = found.lookup(prefix + "logits");
  const int64_t scores = logits.shape.back();
  for (int64_t i = 0; i < token.size(); ++i) {
    const auto row = llvm::ArrayRef(logits.data).slice(i * scores, scores);
    const auto highest = std::max_element(row.begin(), row.end()); // the first of several
    if (token.data[i] != 0 && token.data[i] != static_cast<double>(highest - row.begin()))
      return fmt::format("{}[{}] is {}; the highest score is {}, of {}", name, i, token.data[i],
                         highest - row.begin(), *highest);
  }
  return {};
}

std::string differentBits(const TensorMap &found, const TensorMap &wanted) {
  std::vector<std::string> names;
  for (auto &[name, tensor] : wanted)
    names.push_back(name.str());
  std::sort(names.begin(), names.end());
  for (const std::string &name : names) {
    const RefTensor a = found.lookup(name), b = wanted.lookup(name);
    if (a.shape != b.shape)
      return name + " is missing";
    for (int64_t i = 0; i < a.size(); ++i)
      if (std::memcmp(&a.data[i], &b.data[i], sizeof(double)) != 0 &&
          !(std::isnan(a.data[i]) && std::isnan(b.data[i])))
        return fmt::format("{}{} is {:.9g} and was {:.9g}", name, positionText(i, a.shape),
                           a.data[i], b.data[i]);
  }
  return {};
}

} // namespace

const char *nameOf(Outcome outcome) {
  switch (outcome) {
  case Outcome::Right:
    return "right";
  case Outcome::IllConditioned:
    return "ill-conditioned";
  case Outcome::RefusedByOracle:
    return "no program";
  case Outcome::RefusedByCompiler:
    return "refused by the compiler";
  case Outcome::Wrong:
    return "wrong";
  case Outcome::RefusedByExecutor:
    return "refused by the executor";
  case Outcome::Crashed:
    return "crashed";
  case Outcome::Hung:
    return "hung";
  }
  return "";
}

bool isFinding(Outcome outcome) { return outcome >= Outcome::Wrong; }

std::string reasonOf(const std::string &detail) {
  llvm::StringRef text = detail;
  // The place, `program 12:3:4: `.
  for (size_t at = text.find(": "); at != llvm::StringRef::npos && at > 0 &&
                                    std::isdigit(static_cast<unsigned char>(text[at - 1]));
       at = text.find(": "))
    text = text.drop_front(at + 2);
  std::string reason;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      reason += c;
    else if (reason.empty() || reason.back() != 'N')
      reason += 'N';
  }
  for (size_t at; (at = reason.find("N, N")) != std::string::npos;)
    reason.replace(at, 4, "N");
  return reason;
}

/// Whether a refusal says where in the model the reason is, or which flag to change.
static bool isExplained(llvm::StringRef refusal, llvm::StringRef model) {
  return (refusal.consume_front(model) && refusal.consume_front(":") && !refusal.empty() &&
          llvm::isDigit(refusal.front())) ||
         refusal.contains("--");
}

Verdict Checker::checkPlan(const Setting &setting) {
  const Candidate candidate = compileCandidate(compiler, source, setting, /*watched=*/true);
  if (!candidate.broken.empty())
    return {Outcome::Wrong, candidate.broken, 1.0};
  if (!candidate.complaint.empty())
    return {Outcome::Crashed, "a plan in spite of: " + candidate.complaint};
  if (candidate.plan.empty())
    return {isExplained(candidate.refusal, source.name) ? Outcome::RefusedByCompiler
                                                        : Outcome::Crashed,
            candidate.refusal};
  try {
    runtime::PlanFile::parse(candidate.plan, "plan.fb");
  } catch (const support::Error &error) {
    return {Outcome::RefusedByExecutor, error.what()};
  }
  return {};
}

Verdict Checker::check(const Setting &setting) {
  std::unique_ptr<Oracle> &oracle = oracles[setting.oracleKey()];
  if (!oracle)
    oracle = std::make_unique<Oracle>(compiler, source, setting);
  if (!oracle->precisionRefusal().empty())
    return {Outcome::RefusedByCompiler, oracle->precisionRefusal()};
  const Candidate candidate = compileCandidate(compiler, source, setting);
  if (!candidate.complaint.empty())
    return {Outcome::Crashed, "a plan in spite of: " + candidate.complaint};
  if (oracle->refusesValues() && !candidate.plan.empty())
    return checkRefusal(*oracle, setting, candidate.plan);
  if (!oracle->refusal().empty())
    return candidate.plan.empty()
               ? Verdict{Outcome::RefusedByOracle, oracle->refusal()}
               : Verdict{Outcome::Crashed, "a plan, but no oracle: " + oracle->refusal()};
  if (candidate.plan.empty())
    return {llvm::StringRef(candidate.refusal).contains("without saying why")
                ? Outcome::Crashed
                : Outcome::RefusedByCompiler,
            candidate.refusal};
  std::vector<TensorMap> runs;
  std::optional<TensorMap> resumed;
  try {
    runs = runCandidate(candidate.plan, setting, oracle->work(), 2);
    if (oracle->work().firstStep > 0)
      resumed = runResumed(candidate.plan, setting, oracle->work());
  } catch (const support::Error &error) {
    return {Outcome::RefusedByExecutor, error.what()};
  }
  Verdict verdict = compare(*oracle, setting, runs[0]);
  if (verdict.outcome == Outcome::Wrong)
    return verdict;
  if (const std::string text = differentBits(runs[1], runs[0]); !text.empty())
    return {Outcome::Wrong, "another run gives other bits: " + text, 1.0};
  if (const std::string text = resumed ? differentBits(*resumed, runs[0]) : ""; !text.empty())
    return {Outcome::Wrong, "a resumed run gives other bits: " + text, 1.0};
  auto [entry, isNew] = earlier.try_emplace(setting.bitsKey(), Earlier{setting, {}});
  if (isNew)
    entry->second.results = std::move(runs[0]);
  else if (const std::string text = differentBits(runs[0], entry->second.results); !text.empty())
    return {Outcome::Wrong,
            fmt::format("other bits than under {}: {}", entry->second.setting.text(), text), 1.0};
  return verdict;
}

Verdict Checker::checkRefusal(const Oracle &oracle, const Setting &setting,
                              const std::vector<std::byte> &plan) {
  try {
    runCandidate(plan, setting, oracle.work(), 1);
  } catch (const support::Error &error) {
    // Both say which id or label, each with places of its own, and end with what is expected.
    const size_t expected = oracle.refusal().find("is not in [");
    const bool isAlike = expected != std::string::npos &&
                         llvm::StringRef(error.what()).contains(oracle.refusal().substr(expected));
    return isAlike ? Verdict() : Verdict{Outcome::RefusedByExecutor, error.what()};
  }
  return {Outcome::IllConditioned, "runs, where the oracle ends: " + oracle.refusal()};
}

Verdict Checker::compare(const Oracle &oracle, const Setting &setting,
                         const TensorMap &found) const {
  const bool f32 = setting.precision == "fp32" && setting.reduce == "f32";
  const double ulp = f32 ? 0x1p-24 : 0x1p-12;
  // Beyond the numbers that an f32 can be nothing is promised.
  for (auto &[key, exact] : oracle.exact())
    if (llvm::any_of(exact.data, [](double v) {
          return std::isfinite(v) && std::abs(v) > std::numeric_limits<float>::max();
        }))
      return {Outcome::IllConditioned, key.str() + " leaves the range of f32"};
  std::vector<Difference> suspects;
  for (auto &[key, exact] : oracle.exact()) {
    const std::string name = key.str();
    auto it = found.find(name);
    if (it == found.end())
      return {Outcome::Wrong, name + " is missing", 1.0};
    if (it->second.shape != exact.shape && !setting.mesh.empty() && isOfOperands(name))
      continue;
    if (it->second.shape != exact.shape)
      return {Outcome::Wrong,
              fmt::format("{} is {}; expected {}", name, shapeText(it->second.shape),
                          shapeText(exact.shape)),
              1.0};
    if (llvm::StringRef(name).ends_with(".token")) { // of scores that may be next to equal
      if (const std::string text = wrongChoice(name, it->second, found); !text.empty())
        return {Outcome::Wrong, text, 1.0};
      continue;
    }
    Difference d = differenceOf(name, it->second, exact, oracle.rounded().find(name)->second, ulp);
    if (!(d.error <= d.allowed))
      suspects.push_back(std::move(d));
  }
  if (suspects.empty())
    return {};
  // How far rounding moves what the plan computes, for each of these tensors.
  const mlir::OwningOpRef<mlir::ModuleOp> grouped = groupedModule(compiler, source, setting);
  const std::optional<TensorMap> plain =
      grouped ? interpretWork(*grouped, oracle.work(), {}) : std::nullopt;
  std::vector<double> spreads(suspects.size(), 0.0);
  const auto isBeyond = [&](size_t i) {
    return !(suspects[i].error <= suspects[i].allowed + kSpreads * spreads[i]);
  };
  for (uint64_t sample = 1;
       plain && (sample <= kSamples ||
                 (sample <= kMostSamples && llvm::any_of(llvm::seq(suspects.size()), isBeyond)));
       ++sample) {
    const std::optional<TensorMap> other =
        interpretWork(*grouped, oracle.work(), {.round = true, .perturb = sample});
    for (size_t i = 0; other && i < suspects.size(); ++i)
      spreads[i] = std::max(spreads[i], distance(suspects[i].tensor, oracle, *plain, *other));
  }
  const std::string diagnostics = compiler.takeDiagnostics();
  Verdict verdict;
  double worst = 0.0;
  for (auto [d, spread] : llvm::zip(suspects, spreads)) {
    const bool within = d.error <= d.allowed + kSpreads * spread;
    const bool doubtful =
        spread > kIllConditioned * d.scale && (within || d.error <= kBeyondDoubt * spread);
    if (within && (!doubtful || d.scale < kNothing))
      continue;
    if (doubtful && verdict.outcome == Outcome::Right)
      verdict = {Outcome::IllConditioned,
                 fmt::format("{} varies by {:.2g} of {:.2g}", d.tensor, spread, d.scale)};
    const double badness = d.error / (d.scale + d.allowed);
    if (doubtful || badness <= worst)
      continue;
    worst = std::min(badness, 1e30);
    const RefTensor &exact = oracle.exact().find(d.tensor)->second;
    verdict = {
        Outcome::Wrong,
        fmt::format("{}{} is {:.9g}, expected {:.9g} (allowed {:.2g}, {})", d.tensor,
                    positionText(d.element, exact.shape), d.found, d.expected, d.allowed,
                    plain ? fmt::format("spread {:.2g}", spread)
                          : "no spread: " + llvm::StringRef(diagnostics).split('\n').first.str()),
        worst};
  }
  return verdict;
}

} // namespace hydra::test
