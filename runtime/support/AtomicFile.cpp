// The temporary file, its sync and its rename, with every system call checked.
#include "runtime/support/AtomicFile.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace hydra::support {

namespace {

std::filesystem::path directoryOf(const std::filesystem::path &path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

} // namespace

AtomicFile::AtomicFile(const OutputPath &path) : shown(path.shown), target(path.place) {
  struct stat status;
  if (::lstat(target.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    std::error_code code;
    target = std::filesystem::canonical(path.place, code);
    if (code)
      failWith("follow the link", code.value());
  }
  // A rename would replace a device or pipe (/dev/null!) by a file.
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (!exists && errno == ENAMETOOLONG) // which only the rename would find
    failWith("create it", errno);
  if (exists && !S_ISREG(status.st_mode))
    fail("cannot write {}: it exists and is no regular file; expected a new or regular file",
         shownPath(shown));
  if (!target.has_filename())
    fail("cannot write '{}': expected the name of a file", shownPath(shown));
  const mode_t readWriteForAll = 0666; // less the umask
  for (unsigned attempt = 0;; ++attempt) {
    temporary = directoryOf(target) / fmt::format(".hydra-{}-{}.tmp", ::getpid(), attempt);
    descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, readWriteForAll);
    if (descriptor >= 0)
      break;
    if (errno != EEXIST && errno != EINTR)
      failWith("create a file in its directory", errno);
  }
  removal.emplace(temporary.c_str());
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  ::close(descriptor);
  ::unlink(temporary.c_str());
}

void AtomicFile::failWith(const char *action, int code) const {
  fail("cannot write {}: failed to {}: {}", shownPath(shown), action, errnoText(code));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR)
      failWith("write", errno);
    if (written > 0)
      bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::resize(uint64_t size) {
  if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0)
    failWith("resize", errno);
}

void AtomicFile::commit() {
  if (::fsync(descriptor) != 0)
    failWith("sync", errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    failWith("rename the finished file", errno);
  removal.reset();
  const int file = descriptor;
  descriptor = -1;
  if (::close(file) != 0)
    failWith("close", errno);
  if (const int code = syncFolder(directoryOf(target)))
    failWith("sync its directory", code);
}

int syncFolder(const std::filesystem::path &folder) {
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return errno;
  const int code = ::fsync(directory) == 0 ? 0 : errno;
  ::close(directory);
  return code == EINVAL ? 0 : code; // the file system has no sync of directories
}

} // namespace hydra::support
