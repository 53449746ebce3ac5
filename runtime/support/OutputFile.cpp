// open, pwrite, fsync.
#include "runtime/support/OutputFile.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hydra::support {

OutputFile::OutputFile(const OutputPath &path, uint64_t size)
    : shown(shownPath(path.shown)),
      descriptor(::open(path.place.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  if (descriptor < 0)
    failWith("open it", errno);
  struct stat status;
  const int code = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (code == 0 && S_ISREG(status.st_mode) && static_cast<uint64_t>(status.st_size) == size)
    return;
  ::close(descriptor);
  if (code != 0)
    failWith("open it", code);
  fail("cannot write {}: it has {} bytes; expected {}", shown, status.st_size, size);
}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : shown(std::move(other.shown)), descriptor(std::exchange(other.descriptor, -1)) {}

void OutputFile::failWith(const char *action, int code) const {
  fail("cannot write {}: failed to {}: {}", shown, action, errnoText(code));
}

void OutputFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR)
      failWith("write", errno);
    if (written > 0) {
      offset += static_cast<uint64_t>(written);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
}

void OutputFile::close() {
  if (::fsync(descriptor) != 0)
    failWith("sync", errno);
  if (::close(std::exchange(descriptor, -1)) != 0)
    failWith("close", errno);
}

} // namespace hydra::support
