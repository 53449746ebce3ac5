// Steps and calls, and the files they leave.
#include "runtime/run/Session.h"

#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"

#include <array>
#include <cmath>
#include <set>
#include <span>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;

Session::Session(const PlanFile &file, Executor &executor, const SessionOptions &options)
    : file(file), executor(executor), options(options),
      given(options.inputs ? std::make_unique<GivenTensors>(*options.inputs) : nullptr),
      scalars(file.plan(), options.scalars),
      trainPlan(file.plan().header()->mode()->string_view() == "train") {
  const Plan &plan = file.plan();
  if (!trainPlan)
    parts.push_back(makePart(0, false));
  else if (plan.accumulation() == 1)
    parts.push_back(makePart(programNamed("train"), true));
  else {
    parts.push_back(makePart(programNamed("accumulate"), true));
    parts.push_back(makePart(programNamed("apply"), false));
  }
  if (trainPlan)
    eval = makePart(programNamed("eval"), true);
  if (given) {
    std::set<std::string, std::less<>> known;
    for (const Variable *variable : *plan.variables())
      known.insert(variable->name()->str());
    for (const Program *program : *plan.programs())
      for (const Input *input : *program->inputs())
        known.insert(input->name()->str());
    given->checkNames(known);
  }
  setVariables(file, executor, given.get(), options.seed);
}

uint32_t Session::programNamed(std::string_view name) const {
  const auto &programs = *file.plan().programs();
  for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i)
    if (programs.Get(i)->name()->string_view() == name)
      return i;
  fail("{}: a train plan, but it has no program {}", file.origin(), name);
}

Session::Part Session::makePart(uint32_t index, bool needsLoss) {
  const Plan &plan = file.plan();
  const Program &program = *plan.programs()->Get(index);
  int64_t loss = -1;
  for (const Output *output : *program.outputs()) {
    if (output->name()->string_view() == "loss" &&
        plan.tensors()->Get(output->tensor())->shape()->size() == 0)
      loss = output->tensor();
  }
  if (needsLoss && loss < 0)
    fail("{}: program {} has no scalar output loss", file.origin(), program.name()->string_view());
  return {index, given ? Batch(plan, program, *given) : Batch(plan, program, options.seed), loss};
}

uint64_t Session::tokens() const {
  const Plan &plan = file.plan();
  return tokensPerRun(plan, *plan.programs()->Get(parts[0].program)) * plan.accumulation();
}

double Session::runPart(Part &part, uint64_t draw) {
  part.batch.advance(draw);
  part.batch.write(executor);
  executor.run(part.program);
  return part.loss < 0 ? 0.0 : readScalar(static_cast<uint32_t>(part.loss));
}

double Session::readScalar(uint32_t tensor) const {
  const support::DType dtype = dtypeOf(*file.plan().tensors()->Get(tensor));
  std::array<std::byte, 8> bytes;
  const std::span<std::byte> used = std::span(bytes).first(support::byteSize(dtype));
  executor.read(tensor, used);
  double value = 0.0;
  support::toDoubles(dtype, used, std::span(&value, 1));
  return value;
}

std::vector<std::pair<std::string, double>> Session::scalarOutputs() const {
  std::vector<std::pair<std::string, double>> values;
  for (const Output *output : *file.plan().programs()->Get(parts[0].program)->outputs())
    if (file.plan().tensors()->Get(output->tensor())->shape()->size() == 0)
      values.emplace_back(output->name()->str(), readScalar(output->tensor()));
  return values;
}

std::string Session::note() const {
  if (!given)
    return fmt::format("no --inputs: random tokens and initial parameters of seed {}",
                       options.seed);
  for (const Variable *variable : *file.plan().variables()) {
    if (variable->kind() == VariableKind::param && !given->has(variable->name()->string_view()))
      return fmt::format("{} has no parameters: initial ones of seed {}", given->path(),
                         options.seed);
  }
  return {};
}

double Session::advance() {
  scalars.write(executor, step);
  const uint64_t runs = file.plan().accumulation();
  double loss = 0.0;
  for (uint64_t i = 0; i < runs; ++i)
    loss += runPart(parts[0], static_cast<uint64_t>(step) * runs + i);
  if (parts.size() > 1)
    runPart(parts[1], 0);
  loss /= static_cast<double>(runs);
  ++step;
  if (trainPlan && !std::isfinite(loss))
    fail("step {}: the loss is {}", step, loss);
  return trainPlan ? loss : 0.0;
}

double Session::evaluate() {
  scalars.write(executor, step);
  return runPart(*eval, static_cast<uint64_t>(step) * file.plan().accumulation());
}

SessionOutputs::SessionOutputs(const std::filesystem::path &path, const Session &session,
                               int64_t lossCount)
    : session(session) {
  const Plan &plan = session.file.plan();
  std::vector<support::TensorInfo> infos;
  if (session.trains()) {
    infos.push_back({"losses", support::DType::F32, {lossCount}});
    for (const Variable *variable : *plan.variables())
      entries.push_back({variable->name()->str(), variable->tensor()});
  } else {
    for (const Output *output : *plan.programs()->Get(session.parts[0].program)->outputs())
      entries.push_back({output->name()->str(), output->tensor()});
  }
  for (const Entry &entry : entries) {
    const Tensor &tensor = *plan.tensors()->Get(entry.tensor);
    infos.push_back({entry.name, dtypeOf(tensor), shapeOf(tensor)});
  }
  writer = std::make_unique<support::SafetensorsWriter>(path, infos);
}

void SessionOutputs::write(const std::vector<double> &losses) {
  if (session.trains()) {
    const std::vector<float> rounded(losses.begin(), losses.end());
    writer->append("losses", std::as_bytes(std::span(rounded)));
  }
  std::vector<std::byte> bytes;
  for (const Entry &entry : entries) {
    bytes.resize(denseBytes(*session.file.plan().tensors()->Get(entry.tensor)));
    session.executor.read(entry.tensor, bytes);
    writer->append(entry.name, bytes);
  }
  writer->commit();
}
