// The file that a session leaves.
#include "runtime/plan/VariablePart.h"
#include "runtime/run/Session.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Safetensors.h"

#include <span>

using namespace hydra::runtime;
using namespace hydra::planfile;

SessionOutputs::SessionOutputs(const std::filesystem::path &path, const Session &session,
                               int64_t lossCount)
    : session(session) {
  const Plan &plan = session.file.plan();
  std::vector<support::TensorInfo> infos;
  if (session.trains()) {
    infos.push_back({"losses", support::DType::F32, {lossCount}});
    for (const Variable *variable : variablesByName(plan, isSaved))
      entries.push_back({variable->name()->str(), nullptr, variable});
  } else {
    for (const Output *output : *plan.programs()->Get(session.parts[0].program)->outputs())
      entries.push_back({output->name()->str(), output, nullptr});
  }
  for (const Entry &entry : entries) {
    if (entry.variable) {
      infos.push_back({entry.name, dtypeOf(plan, *entry.variable), shapeOf(plan, *entry.variable)});
      continue;
    }
    const Tensor &tensor = *plan.tensors()->Get(entry.output->tensor());
    const BatchPart part(plan, tensor, entry.output->batch_dimension(), session.rank());
    infos.push_back({entry.name, dtypeOf(tensor), part.wholeShape()});
  }
  if (session.rank() == 0)
    writer = std::make_unique<support::SafetensorsWriter>(path, infos);
}

void SessionOutputs::write(const std::vector<double> &losses) {
  if (session.trains() && writer) {
    const std::vector<float> rounded(losses.begin(), losses.end());
    writer->append("losses", std::as_bytes(std::span(rounded)));
  }
  for (const Entry &entry : entries) {
    if (entry.variable) {
      session.gathered.variable(*entry.variable, [&](std::span<const std::byte> bytes) {
        writer->append(entry.name, bytes);
      });
      continue;
    }
    const std::vector<std::byte> bytes = session.gathered.output(*entry.output);
    if (writer)
      writer->append(entry.name, bytes);
  }
  if (writer)
    writer->commit();
}
