// Lookup of attributes, with errors that name the step.
#include "runtime/plan/Attributes.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

namespace hydra::runtime {

using planfile::Attr;
using planfile::AttrKind;
using support::fail;
using support::shown;

namespace {

using AttrList = flatbuffers::Vector<flatbuffers::Offset<Attr>>;

const Attr *findIn(const AttrList &list, std::string_view name) {
  for (const Attr *attr : list)
    if (attr->name()->string_view() == name)
      return attr;
  return nullptr;
}

} // namespace

Attributes::Attributes(const planfile::Step &step, uint32_t number)
    : step(step), alternative(step.alternatives() && number < step.alternatives()->size()
                                  ? step.alternatives()->Get(number)
                                  : nullptr),
      call(step.action_as_LibraryCall()) {
  if (!call && !(alternative && alternative->function()))
    fail("step {} is no library call, so it has no attributes", shown(step.name()->string_view()));
}

std::string_view Attributes::function() const {
  return (call ? call->function() : alternative->function())->string_view();
}

const Attr *Attributes::find(std::string_view name, AttrKind kind, bool required) const {
  const Attr *found = nullptr;
  if (alternative)
    found = findIn(*alternative->attrs(), name);
  if (!found && call)
    found = findIn(*call->attrs(), name);
  if (!found && required)
    fail("step {}: {} needs the attribute {}", shown(step.name()->string_view()), shown(function()),
         name);
  if (found && found->kind() != kind)
    fail("step {}: attribute {} of {} is of kind {}; expected {}",
         shown(step.name()->string_view()), name, shown(function()),
         EnumNameAttrKind(found->kind()), EnumNameAttrKind(kind));
  return found;
}

bool Attributes::flag(std::string_view name, std::optional<bool> otherwise) const {
  const Attr *attr = find(name, AttrKind::flag, !otherwise);
  return attr ? attr->flag() : *otherwise;
}

int64_t Attributes::integer(std::string_view name, std::optional<int64_t> otherwise) const {
  const Attr *attr = find(name, AttrKind::integer, !otherwise);
  return attr ? attr->integer() : *otherwise;
}

double Attributes::real(std::string_view name, std::optional<double> otherwise) const {
  const Attr *attr = find(name, AttrKind::real, !otherwise);
  return attr ? attr->real() : *otherwise;
}

std::string_view Attributes::text(std::string_view name,
                                  std::optional<std::string_view> otherwise) const {
  const Attr *attr = find(name, AttrKind::text, !otherwise);
  // FlatBuffers leaves empty strings out.
  return attr ? flatbuffers::GetStringView(attr->text()) : *otherwise;
}

} // namespace hydra::runtime
