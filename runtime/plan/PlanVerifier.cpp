// The order in which a plan is verified, and the rules for its programs together.
#include "runtime/plan/PlanVerifier.h"

#include "runtime/plan/CodeVerifier.h"
#include "runtime/plan/ContentVerifier.h"
#include "runtime/plan/DataVerifier.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/ProgramVerifier.h"
#include "runtime/plan/VerifyPath.h"
#include "runtime/support/OutputNames.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace hydra::runtime {

using namespace planfile;

namespace {

class PlanVerifier {
public:
  PlanVerifier(const Plan &plan, std::string_view origin) : plan(plan), root(origin) {}

  void verify() {
    checkHeader();
    checkTarget();
    checkLocations();
    verifyData(plan, root);
    verifyCode(plan, root);
    checkPrograms();
  }

private:
  bool onCPU() const { return plan.target()->kind() == TargetKind::cpu; }

  void checkHeader() {
    const Path path(root, "header");
    const std::string_view mode = plan.header()->mode()->string_view();
    if (!planModeNamed(mode))
      failAt(Path(path, "mode"), "{} is no mode; expected generate, forward, grad or train", mode);
  }

  void checkTarget() {
    const Path path(root, "target");
    checkEnum(path, "kind", plan.target()->kind());
    const flatbuffers::String *arch = plan.target()->sm_arch();
    if (!onCPU() && (!arch || arch->string_view().substr(0, 3) != "sm_"))
      failAt(Path(path, "sm_arch"), "{} is no GPU architecture; expected one such as sm_90a",
             arch ? arch->string_view() : "(nothing)");
    checkNotNegative(path, "peak_flops", plan.target()->peak_flops());
    checkNotNegative(path, "overlap", plan.target()->overlap());
    checkNotNegative(path, "own_copy_tail", plan.target()->own_copy_tail());
    if (const Sharing *sharing = plan.target()->sharing())
      checkSharing(Path(path, "sharing"), *sharing);
  }

  /// What predictions wait for comes to an end.
  static void checkSharing(const Path &path, const Sharing &sharing) {
    checkNotNegative(path, "exclusive", sharing.exclusive());
    checkNotNegative(path, "gap_microseconds", sharing.gap_microseconds());
    checkNotNegative(path, "run_microseconds", sharing.run_microseconds());
    checkNotNegative(path, "input_microseconds", sharing.input_microseconds());
  }

  void checkLocations() {
    const auto &locations = *plan.locations();
    for (flatbuffers::uoffset_t i = 0; i < locations.size(); ++i) {
      const Path path(root, "locations", i);
      const Location &location = *locations.Get(i);
      checkIndex(Path(path, "file"), "file", location.file(), *plan.files());
      if (location.line() == 0 || location.column() == 0)
        failAt(path, "{}:{} is no place in a file; lines and columns count from 1", location.line(),
               location.column());
    }
  }

  void checkPrograms() {
    const auto &programs = *plan.programs();
    if (programs.size() == 0)
      failAt(Path(root, "programs"), "is empty; expected at least one program");
    Names names;
    for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i) {
      const Path path(root, "programs", i);
      names.add(path, "name", *programs.Get(i)->name());
      checkEnum(path, "role", programs.Get(i)->role());
      checkGradients(path, *programs.Get(i));
      if (programs.Get(i)->role() == ProgramRole::derive && programs.Get(i)->inputs()->size() > 0)
        failAt(Path(path, "inputs"), "are given to a program of role derive; expected none");
      verifyProgram(plan, *programs.Get(i), path);
      verifyContents(plan, *programs.Get(i), path);
    }
    // Programs are compared by what they are given, so all of that is verified first.
    for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i)
      checkSafeForm(Path(root, "programs", i), *programs.Get(i));
    const Path path(root, "accumulation");
    if (plan.accumulation() < 1)
      failAt(path, "0 runs make no step; expected 1 or more");
    const auto has = [&](ProgramRole role) {
      return std::any_of(programs.begin(), programs.end(),
                         [&](const Program *program) { return program->role() == role; });
    };
    if (plan.accumulation() > 1 && !(has(ProgramRole::accumulate) && has(ProgramRole::apply)))
      failAt(path, "{} needs the programs accumulate and apply", plan.accumulation());
    checkCounting();
    checkPhases();
    checkOptimizations();
  }

  void checkGradients(const Path &program, const Program &entry) {
    for (flatbuffers::uoffset_t i = 0; i < entry.outputs()->size(); ++i) {
      const Path output(program, "outputs", i), path(output, "gradient_of");
      const int32_t of = entry.outputs()->Get(i)->gradient_of();
      checkOptionalIndex(path, "variable", of, *plan.variables());
      if (of >= 0 &&
          plan.variables()->Get(static_cast<uint32_t>(of))->role() != VariableRole::parameter)
        failAt(path, "variable {} is no parameter", of);
    }
  }

  /// What runs in the place of a program takes what it takes, and gives what it gives.
  void checkSafeForm(const Path &program, const Program &fast) {
    const Path path(program, "safe");
    checkOptionalIndex(path, "program", fast.safe(), *plan.programs());
    if (fast.safe() >= 0)
      checkForm(path, fast, *plan.programs()->Get(static_cast<uint32_t>(fast.safe())));
  }

  /// Every program that has a safe form, or none, is there without an optimisation.
  void checkOptimizations() {
    if (!plan.optimizations())
      return;
    std::vector<const Program *> whole;
    for (const Program *program : *plan.programs())
      if (program->safe() >= 0)
        whole.push_back(program);
    for (flatbuffers::uoffset_t i = 0; i < plan.optimizations()->size(); ++i) {
      const auto *without = plan.optimizations()->Get(i)->programs();
      if (!without || without->size() == 0)
        continue;
      const Path one(root, "optimizations", i);
      if (without->size() != whole.size())
        failAt(Path(one, "programs"), "{} are given; expected as many as have a safe form, {}",
               without->size(), whole.size());
      for (flatbuffers::uoffset_t j = 0; j < without->size(); ++j) {
        const Path path(one, "programs", j);
        checkIndex(path, "program", without->Get(j), *plan.programs());
        checkForm(path, *whole[j], *plan.programs()->Get(without->Get(j)));
      }
    }
  }

  void checkForm(const Path &path, const Program &fast, const Program &form) {
    const auto fits = [&](const auto &x, const auto &y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const auto *a, const auto *b) {
        return isSameInput(*a, *b) && hasSameShape(*a, *b);
      });
    };
    // A norm that nothing clips is found for a loss scale alone, which one of them may not have.
    const auto given = [](const Program &program) {
      std::vector<std::string_view> names;
      for (const Output *output : *program.outputs())
        if (output->name()->string_view() != support::kGradNormOutput)
          names.push_back(output->name()->string_view());
      return names;
    };
    if (form.role() != ProgramRole::custom || !fits(*fast.inputs(), *form.inputs()) ||
        given(fast) != given(form))
      failAt(path, "{} has another role than custom, or other inputs or outputs than {}",
             form.name()->string_view(), fast.name()->string_view());
  }

  /// Programs that count stand before who uses their sums, and take nothing else.
  void checkCounting() {
    const auto &programs = *plan.programs();
    for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i) {
      const Program &counter = *programs.Get(i);
      if (counter.role() != ProgramRole::count)
        continue;
      const Path path(root, "programs", i);
      if (i + 1 == programs.size() || programs.Get(i + 1)->role() != ProgramRole::accumulate)
        failAt(path, "counts for no program of role accumulate behind it");
      const auto &there = *programs.Get(i + 1)->inputs();
      for (flatbuffers::uoffset_t k = 0; k < counter.inputs()->size(); ++k) {
        const Input &input = *counter.inputs()->Get(k);
        if (std::none_of(there.begin(), there.end(), [&](const Input *other) {
              return isSameInput(input, *other) && hasSameShape(input, *other);
            }))
          failAt(Path(path, "inputs", k), "{} is no input of the program {}",
                 input.name()->string_view(), programs.Get(i + 1)->name()->string_view());
      }
    }
  }

  bool isSameInput(const Input &x, const Input &y) const {
    const Tensor &s = *plan.tensors()->Get(x.tensor()), &t = *plan.tensors()->Get(y.tensor());
    return x.name()->string_view() == y.name()->string_view() && x.kind() == y.kind() &&
           x.limit() == y.limit() && x.ignored() == y.ignored() && s.dtype() == t.dtype() &&
           s.shape()->size() == t.shape()->size();
  }
  bool hasSameShape(const Input &x, const Input &y) const {
    return std::ranges::equal(*plan.tensors()->Get(x.tensor())->shape(),
                              *plan.tensors()->Get(y.tensor())->shape());
  }

  void checkPhases() {
    if (!plan.phases() || plan.phases()->size() == 0)
      return;
    uint64_t last = 0;
    for (flatbuffers::uoffset_t i = 0; i < plan.phases()->size(); ++i) {
      const Path path(root, "phases", i);
      const planfile::TrainingPhase &phase = *plan.phases()->Get(i);
      checkIndex(Path(path, "program"), "program", phase.program(), *plan.programs());
      checkStepCount(path, "last_step", static_cast<int64_t>(phase.last_step()));
      if (phase.last_step() <= last)
        failAt(Path(path, "last_step"), "{} is not behind step {}", phase.last_step(), last);
      last = phase.last_step();
    }
    const std::optional<uint32_t> main = mainTrainingProgram(plan);
    if (!main)
      failAt(Path(root, "phases"), "need the program {}",
             plan.accumulation() > 1 ? "accumulate" : "train");
    const Program &train = *plan.programs()->Get(*main);
    for (flatbuffers::uoffset_t i = 0; i < plan.phases()->size(); ++i) {
      const Path path(root, "phases", i);
      const Program &program = *plan.programs()->Get(plan.phases()->Get(i)->program());
      if (program.role() != train.role())
        failAt(Path(path, "program"), "{} has the role {}; expected {}",
               program.name()->string_view(), EnumNameProgramRole(program.role()),
               EnumNameProgramRole(train.role()));
      if (!sameInputs(program, train))
        failAt(Path(path, "program"), "has other inputs than the program {}",
               train.name()->string_view());
    }
  }

  /// Whether two programs take the same values, if not as many of them.
  bool sameInputs(const Program &a, const Program &b) const {
    const auto same = [&](const Input *x, const Input *y) { return isSameInput(*x, *y); };
    return std::equal(a.inputs()->begin(), a.inputs()->end(), b.inputs()->begin(),
                      b.inputs()->end(), same);
  }

  const Plan &plan;
  const Path root;
};

} // namespace

void verifyPlan(const Plan &plan, std::string_view origin) { PlanVerifier(plan, origin).verify(); }

} // namespace hydra::runtime
