// memfd_create + write + dlopen("/proc/self/fd/N").
#include "runtime/cpu/NativeCode.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

using namespace hydra::runtime;
using hydra::support::errnoText;
using hydra::support::fail;
namespace support = hydra::support;

NativeCode::NativeCode(std::span<const std::byte> object, std::string name)
    : name(std::move(name)) {
  const int descriptor = ::memfd_create(this->name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0)
    fail("{}: no memory file for its code: {}", this->name, errnoText(errno));
  while (!object.empty()) {
    const ssize_t written = ::write(descriptor, object.data(), object.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      const int code = errno;
      ::close(descriptor);
      fail("{}: cannot store its code in memory: {}", this->name, errnoText(code));
    }
    object = object.subspan(static_cast<size_t>(written));
  }
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char *why = handle ? nullptr : ::dlerror();
  ::close(descriptor);
  if (!handle)
    fail("{}: its code does not load: {}", this->name,
         why ? support::shown(why, 300) : "unknown reason");
}

NativeCode::~NativeCode() {
  if (handle)
    ::dlclose(handle);
}

NativeCode::NativeCode(NativeCode &&other) noexcept
    : name(std::move(other.name)), handle(std::exchange(other.handle, nullptr)) {}

KernelFunction NativeCode::function(std::string_view symbol) const {
  void *address = ::dlsym(handle, std::string(symbol).c_str());
  if (!address)
    fail("{}: its code has no symbol {}", name, support::shown(symbol));
  return reinterpret_cast<KernelFunction>(address);
}
