// Members by units.
#include "runtime/plan/MemberVerifier.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/VariablePart.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace hydra::runtime {

using namespace planfile;

namespace {

/// Elements [begin, end) of a unit are those of a variable.
struct Place {
  uint64_t begin, end;
  uint32_t variable;
};

class UnitVerifier {
public:
  UnitVerifier(const Plan &plan, const Path &root, uint64_t mostElements)
      : plan(plan), root(root), most(mostElements) {}

  void verify() {
    for (uint32_t i = 0; i < plan.variables()->size(); ++i)
      if (plan.variables()->Get(i)->member())
        checkMember(i);
    for (auto &[tensor, places] : units)
      checkUnit(places);
  }

private:
  const Variable &variable(uint32_t index) const { return *plan.variables()->Get(index); }
  std::string_view nameOf(uint32_t index) const { return variable(index).name()->string_view(); }

  void checkMember(uint32_t index) {
    const Path owner(root, "variables", index), path(owner, "member");
    const Member &member = *variable(index).member();
    const Tensor &tensor = *plan.tensors()->Get(variable(index).tensor());
    const uint64_t piece = elementsOfDense(Path(owner, "tensor"), tensor);
    const uint64_t pieces = checkAxes(path, axesOf(variable(index)));
    if (piece > most / pieces)
      failAt(path, "{} pieces of {} elements are more than {}", pieces, piece, most);
    const auto count = static_cast<uint64_t>(elementsOf(plan, variable(index)));
    const uint64_t unit = piece * pieces;
    if (member.offset() > unit || count > unit - member.offset())
      failAt(path, "{} elements from {} on reach beyond the {} of the unit", count, member.offset(),
             unit);
    units[variable(index).tensor()].push_back({member.offset(), member.offset() + count, index});
  }

  /// Into how many pieces they cut: at most as many as there are ranks.
  uint64_t checkAxes(const Path &path, std::span<const uint32_t> axes) const {
    const uint64_t all = plan.mesh() ? plan.mesh()->size() : 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Path place(path, "axes", static_cast<int64_t>(i));
      if (axes[i] >= all)
        failAt(place, "{} is no axis of a mesh of {}", axes[i], all);
      if (std::ranges::count(axes.first(i), axes[i]) > 0)
        failAt(place, "{} is there twice", axes[i]);
    }
    return sizeOf(plan, axes);
  }

  static uint64_t elementsOfDense(const Path &path, const Tensor &tensor) {
    if (!isDense(tensor))
      failAt(path, "{} has strides of its own; a unit is dense", tensor.name()->string_view());
    uint64_t elements = 1;
    for (const int64_t size : *tensor.shape())
      elements *= static_cast<uint64_t>(size);
    return elements;
  }

  void checkUnit(std::vector<Place> &places) {
    const uint32_t first = places.front().variable;
    for (const Place &place : places)
      if (const auto axes = axesOf(variable(place.variable));
          !std::ranges::equal(axes, axesOf(variable(first))))
        failAt(Path(Path(Path(root, "variables", place.variable), "member"), "axes"),
               "[{}] is another than the [{}] of {}, in the same unit", fmt::join(axes, ", "),
               fmt::join(axesOf(variable(first)), ", "), nameOf(first));
    std::ranges::sort(places, {}, [](const Place &place) {
      return std::tuple(place.begin, place.end, place.variable);
    });
    for (size_t i = 1; i < places.size(); ++i)
      if (places[i].begin < places[i - 1].end)
        failAt(Path(Path(root, "variables", places[i].variable), "member"),
               "{} shares elements with {}", nameOf(places[i].variable),
               nameOf(places[i - 1].variable));
  }

  const Plan &plan;
  const Path &root;
  const uint64_t most;
  std::map<uint32_t, std::vector<Place>> units; // by tensor
};

} // namespace

void verifyMemberShape(const Path &member, const Member &entry, uint64_t mostElements) {
  const auto &shape = *entry.shape();
  checkAligned(Path(member, "shape"), shape);
  uint64_t elements = 1;
  for (flatbuffers::uoffset_t i = 0; i < shape.size(); ++i) {
    const int64_t size = shape.Get(i);
    if (size < 1 || static_cast<uint64_t>(size) > mostElements / elements)
      failAt(Path(member, "shape", i),
             "{} is no valid dimension; expected 1 or more, and at most {} elements in all", size,
             mostElements);
    elements *= static_cast<uint64_t>(size);
  }
}

void verifyUnits(const Plan &plan, const Path &root, uint64_t mostElements) {
  UnitVerifier(plan, root, mostElements).verify();
}

} // namespace hydra::runtime
