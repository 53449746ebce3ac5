// dlopen and dlsym.
#include "runtime/support/SharedLibrary.h"

#include "runtime/support/Error.h"

#include <dlfcn.h>

namespace hydra::support {

SharedLibrary::SharedLibrary(std::initializer_list<const char *> names) : name(*names.begin()) {
  for (const char *each : names)
    if (!handle)
      handle = ::dlopen(each, RTLD_NOW | RTLD_LOCAL);
}

void *SharedLibrary::address(const char *symbol) const { return ::dlsym(handle, symbol); }

void SharedLibrary::failWithout(const char *symbol) const { fail("{} has no {}", name, symbol); }

} // namespace hydra::support
