// open, fstat, pread.
#include "runtime/support/InputFile.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hydra::support {

namespace {

const char *kindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a directory"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

/// Throws Error for what is no regular file.
[[noreturn]] void failAsOther(const std::string &name, mode_t mode) {
  fail("cannot read {}: it is {}; expected a regular file", name, kindOf(mode));
}

} // namespace

InputFile::InputFile(const std::filesystem::path &path) : shownPath(support::shownPath(path)) {
  // Without O_NONBLOCK, opening a pipe waits for who writes into it.
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status;
  if (descriptor < 0) {
    const int code = errno;
    // A socket cannot be opened at all.
    if (code == ENXIO && ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
      failAsOther(shownPath, status.st_mode);
    fail("cannot read {}: {}", shownPath, errnoText(code));
  }
  const int code = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (code == 0 && S_ISREG(status.st_mode)) {
    bytes = static_cast<uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor);
  if (code != 0)
    fail("cannot read {}: {}", shownPath, errnoText(code));
  failAsOther(shownPath, status.st_mode);
}

InputFile::~InputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

InputFile::InputFile(InputFile &&other) noexcept
    : shownPath(std::move(other.shownPath)), descriptor(std::exchange(other.descriptor, -1)),
      bytes(other.bytes) {}

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  // Also where the bytes asked for are still there: they may be others by now.
  struct stat status;
  bool isShorter =
      ::fstat(descriptor, &status) == 0 && static_cast<uint64_t>(status.st_size) < bytes;
  while (!isShorter && !out.empty()) {
    const ssize_t count = ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      fail("cannot read {}: {}", shownPath, errnoText(errno));
    isShorter = count == 0;
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
  if (isShorter)
    fail("{}: has become shorter than its {} bytes while in use", shownPath, bytes);
}

std::vector<std::byte> InputFile::readAll() const {
  const long pages = ::sysconf(_SC_PHYS_PAGES), pageBytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && pageBytes > 0 &&
      bytes / static_cast<uint64_t>(pageBytes) > static_cast<uint64_t>(pages))
    fail("cannot read {}: it has {} bytes, which are more than this machine's memory", name(),
         bytes);
  std::vector<std::byte> content(bytes);
  read(0, content);
  return content;
}

bool isThere(const std::filesystem::path &path) {
  std::error_code unknown;
  return std::filesystem::symlink_status(path, unknown).type() !=
         std::filesystem::file_type::not_found;
}

} // namespace hydra::support
