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
  descriptor = ::memfd_create(this->name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0)
    fail("{}: no memory file for its code: {}", this->name, errnoText(errno));
  while (!object.empty()) {
    const ssize_t written = ::write(descriptor, object.data(), object.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      const int code = errno;
      close();
      fail("{}: cannot store its code in memory: {}", this->name, errnoText(code));
    }
    object = object.subspan(static_cast<size_t>(written));
  }
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle)
    return;
  const char *why = ::dlerror();
  close();
  fail("{}: its code does not load: {}", this->name,
       why ? support::shown(why, 300) : "unknown reason");
}

NativeCode::~NativeCode() { close(); }

NativeCode::NativeCode(NativeCode &&other) noexcept
    : name(std::move(other.name)), descriptor(std::exchange(other.descriptor, -1)),
      handle(std::exchange(other.handle, nullptr)) {}

void NativeCode::close() {
  if (handle)
    ::dlclose(handle);
  if (descriptor >= 0)
    ::close(descriptor);
}

KernelFunction NativeCode::function(std::string_view symbol) const {
  void *address = ::dlsym(handle, std::string(symbol).c_str());
  if (!address)
    fail("{}: its code has no symbol {}", name, support::shown(symbol));
  return reinterpret_cast<KernelFunction>(address);
}
