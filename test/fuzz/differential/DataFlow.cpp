// A program run over sets of buffers instead of numbers: each element has the set that it was made
// of.
//
// A step reads all it reads before it writes anything. Loops run all of their iterations; of a
// switch only the last case does, which works on all rows and so leaves what remains.
#include "test/fuzz/differential/DataFlow.h"

#include "mlir/Pass/Pass.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <map>
#include <set>

using namespace mlir;

namespace hydra::test {

namespace {

constexpr StringLiteral kNumberAttr = "flow_number";

unsigned numberOf(plan::BufferOp buffer) {
  return buffer->getAttrOfType<IntegerAttr>(kNumberAttr).getInt();
}

/// Sets of buffers' numbers, each once; set 0 is empty.
class BufferSets {
public:
  using Set = std::set<unsigned>;
  BufferSets() { (void)keep({}); }

  const Set &operator[](unsigned set) const { return *sets[set]; }
  unsigned with(unsigned set, unsigned number) {
    Set joined = *sets[set];
    joined.insert(number);
    return keep(std::move(joined));
  }
  unsigned join(unsigned a, unsigned b) {
    if (a == b || b == 0)
      return a;
    auto [known, isNew] = joins.try_emplace(std::minmax(a, b), 0);
    if (isNew) {
      Set joined = *sets[a];
      joined.insert(sets[b]->begin(), sets[b]->end());
      known->second = keep(std::move(joined));
    }
    return known->second;
  }

private:
  unsigned keep(Set set) {
    const auto [found, isNew] = numbers.try_emplace(std::move(set), sets.size());
    if (isNew)
      sets.push_back(&found->first);
    return found->second;
  }

  std::map<Set, unsigned> numbers;
  std::vector<const Set *> sets;
  std::map<std::pair<unsigned, unsigned>, unsigned> joins;
};

/// Of each element of a buffer the set of buffers that it was made of: a set holds from its place
/// to that of the next one.
class Elements {
public:
  void assign(int64_t begin, int64_t end, unsigned set) {
    const unsigned behind = at(end);
    sets.erase(sets.lower_bound(begin), sets.upper_bound(end));
    if (at(begin) != set)
      sets[begin] = set;
    if (behind != set)
      sets[end] = behind;
  }

  /// Calls `visit` with the sets of [begin, end).
  template <typename Visit> void forEach(int64_t begin, int64_t end, Visit visit) const {
    visit(at(begin));
    for (auto next = sets.upper_bound(begin); next != sets.end() && next->first < end; ++next)
      visit(next->second);
  }

  unsigned at(int64_t element) const {
    const auto behind = sets.upper_bound(element);
    return behind == sets.begin() ? 0 : std::prev(behind)->second;
  }
  /// Where another set begins, or may.
  std::set<int64_t> places() const {
    std::set<int64_t> all{0};
    for (const auto &entry : sets)
      all.insert(entry.first);
    return all;
  }

private:
  std::map<int64_t, unsigned> sets;
};

/// What a program leaves.
struct Left {
  std::map<unsigned, Elements> results; ///< variables and outputs, by their numbers
  /// Of each buffer that is written all that the same steps write, itself too.
  std::map<unsigned, BufferSets::Set> writtenWith;
};

class ProgramFlow {
public:
  ProgramFlow(BufferSets &sets, plan::ProgramOp program) : sets(sets) {
    for (auto input : program.getBody().getOps<plan::InputOp>()) {
      write(input.getBuffer(), 0);
      const unsigned number = numberOf(plan::placeOf(input.getBuffer()).buffer);
      writtenWith[number].insert(number);
    }
    run(program.getBody().front());
    for (auto output : program.getBody().getOps<plan::OutputOp>())
      outputs.insert(plan::placeOf(output.getBuffer()).buffer);
  }

  Left left() const {
    Left left{{}, writtenWith};
    for (const auto &[op, elements] : contents)
      if (auto buffer = cast<plan::BufferOp>(op); !buffer.isTransient() || outputs.contains(buffer))
        left.results[numberOf(buffer)] = elements;
    return left;
  }

private:
  void run(Block &list) {
    for (Operation &op : list)
      if (auto loop = dyn_cast<plan::LoopOp>(op))
        run(loop);
      else if (auto choice = dyn_cast<plan::SwitchOp>(op))
        run(choice->getRegions().back().front());
      else if (auto step = dyn_cast<plan::StepInterface>(op))
        run(step);
  }

  void run(plan::LoopOp loop) {
    const auto move = [&](int64_t iterations) {
      for (auto [value, stride] : llvm::zip(loop.getMoving(), loop.getStrides()))
        moved[value] += iterations * stride;
    };
    for (int64_t i = 0; i < loop.getCount(); ++i) {
      run(loop.getBody().front());
      move(1);
    }
    move(-static_cast<int64_t>(loop.getCount()));
  }

  void run(plan::StepInterface step) {
    unsigned made = 0;
    for (auto [value, access] : llvm::zip(step.getArgs(), step.getAccesses()))
      if (access != plan::kWrite)
        made = sets.join(made, read(value));
    BufferSets::Set written;
    for (auto [value, access] : llvm::zip(step.getArgs(), step.getAccesses()))
      if (access != plan::kRead) {
        write(value, made);
        written.insert(numberOf(plan::placeOf(value).buffer));
      }
    for (const unsigned number : written)
      writtenWith[number].insert(written.begin(), written.end());
  }

  unsigned read(Value value) {
    plan::BufferOp buffer = plan::placeOf(value).buffer;
    unsigned all = 0;
    if (auto found = contents.find(buffer); found != contents.end())
      forEachRun(value, [&](int64_t begin, int64_t end) {
        found->second.forEach(begin, end, [&](unsigned set) { all = sets.join(all, set); });
      });
    return sets.with(all, numberOf(buffer));
  }

  void write(Value value, unsigned set) {
    Elements &elements = contents[plan::placeOf(value).buffer];
    forEachRun(value, [&](int64_t begin, int64_t end) { elements.assign(begin, end, set); });
  }

  /// Calls `visit` with the beginnings and ends, in its buffer, of elements of a value that lie
  /// side by side.
  template <typename Visit> void forEachRun(Value value, Visit visit) const {
    const auto type = cast<MemRefType>(value.getType());
    SmallVector<std::pair<int64_t, int64_t>> steps; // stride, size
    for (auto [size, stride] : llvm::zip(type.getShape(), plan::stridesOf(type)))
      if (size > 1 && stride > 0)
        steps.emplace_back(stride, size);
    llvm::sort(steps);
    int64_t run = 1;
    size_t inside = 0; // steps that a run has
    for (; inside < steps.size() && steps[inside].first == run; ++inside)
      run *= steps[inside].second;
    const auto repeat = [&](auto &self, int64_t begin, size_t step) -> void {
      if (step == inside)
        return visit(begin, begin + run);
      const auto [stride, size] = steps[step - 1];
      for (int64_t i = 0; i < size; ++i)
        self(self, begin + i * stride, step - 1);
    };
    const int64_t bytes = plan::placeOf(value).bytes + moved.lookup(value);
    repeat(repeat, bytes / elementBytes(type.getElementType()), steps.size());
  }

  BufferSets &sets;
  llvm::DenseMap<Operation *, Elements> contents; ///< of buffers that have been written
  llvm::DenseMap<Value, int64_t> moved;           ///< by loops, in bytes
  llvm::SmallPtrSet<Operation *, 8> outputs;
  std::map<unsigned, BufferSets::Set> writtenWith;
};

class DataFlowCheck final : public PassInstrumentation {
public:
  explicit DataFlowCheck(std::string &finding) : finding(finding) {}

  void runAfterPass(Pass *pass, Operation *root) override {
    auto module = dyn_cast<ModuleOp>(root);
    if (!module || !finding.empty())
      return;
    for (auto plan : module.getOps<plan::PlanModuleOp>()) {
      present.clear();
      plan.walk([&](plan::BufferOp buffer) {
        if (!buffer->hasAttr(kNumberAttr))
          buffer->setAttr(kNumberAttr, Builder(buffer).getI64IntegerAttr(buffers++));
        present[numberOf(buffer)] = buffer;
      });
      for (auto program : plan.getBody().getOps<plan::ProgramOp>()) {
        Left now = ProgramFlow(sets, program).left(), &last = before[program.getSymName().str()];
        for (const auto &[number, elements] : last.results)
          if (present.contains(number))
            compare(number, elements, now);
        if (!finding.empty()) {
          finding += fmt::format(" behind {}, in {}", pass->getArgument().str(),
                                 program.getSymName().str());
          return;
        }
        last = std::move(now);
      }
    }
  }

private:
  void compare(unsigned number, const Elements &elements, const Left &now) {
    const auto found = now.results.find(number);
    if (found == now.results.end()) {
      finding = textOf(number) + " is not written any more";
      return;
    }
    std::set<int64_t> places = elements.places();
    places.merge(found->second.places());
    for (const int64_t place : places)
      for (const unsigned from : sets[elements.at(place)])
        if (isLost(from, number, sets[found->second.at(place)], now)) {
          finding = fmt::format("element {} of {} depends no more on {}", place, textOf(number),
                                textOf(from));
          return;
        }
  }

  /// Whether a buffer should still be among those that a result depends on. What a step writes
  /// beside something, it has at hand for that: it need not read it there.
  bool isLost(unsigned from, unsigned result, const BufferSets::Set &still, const Left &now) const {
    const auto buffer = present.find(from);
    if (buffer == present.end() || still.contains(from))
      return false;
    const auto written = now.writtenWith.find(from);
    if (written == now.writtenWith.end())
      return !plan::BufferOp(buffer->second).isTransient();
    return llvm::none_of(written->second, [&](unsigned beside) {
      return beside != from && (beside == result || still.contains(beside));
    });
  }

  /// Its type and where it comes from.
  std::string textOf(unsigned number) const {
    plan::BufferOp buffer = present.at(number);
    std::string text;
    llvm::raw_string_ostream out(text);
    out << buffer.getType();
    if (const auto place = buffer->getLoc()->findInstanceOf<FileLineColLoc>())
      out << " of line " << place.getLine();
    return text;
  }

  std::string &finding;
  BufferSets sets;
  std::map<std::string, Left> before;         ///< by program
  std::map<unsigned, plan::BufferOp> present; ///< behind the last pass
  int64_t buffers = 0;
};

} // namespace

std::unique_ptr<PassInstrumentation> createDataFlowCheck(std::string &finding) {
  return std::make_unique<DataFlowCheck>(finding);
}

} // namespace hydra::test
