// Where compiled code is kept on disk, and how much of it.
//
// The time of a file is when it was used: file systems keep no time of reading that can be relied
// on. What was written since the last look is the length of one more file, to which every process
// appends a byte for each block that it writes: one look is due for all of them together, and
// appended bytes of several processes are never lost.
#include "compiler/codegen/files/CodeFolder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <tuple>
#include <vector>

using llvm::StringRef;
namespace fs = std::filesystem;

namespace hydra {

namespace {

constexpr uint64_t kBlockBytes = 4096; // that files take on disk
constexpr time_t kMostWriting = 3600;  // seconds that no process takes for a file
constexpr const char *kWritten = ".written";

uint64_t blocksOf(uint64_t bytes) { return llvm::divideCeil(bytes, kBlockBytes); }

/// Names of entries are 32 hexadecimal digits. While they are written, a point and six characters
/// follow. Whatever else is in the folder is somebody else's.
bool isEntry(StringRef name) { return name.size() == 32 && llvm::all_of(name, llvm::isHexDigit); }
bool isTemporary(StringRef name) {
  return name.size() == 39 && name[32] == '.' && isEntry(name.take_front(32));
}

struct File {
  fs::path path;
  int64_t seconds, nanoseconds;
  uint64_t blocks;
};

/// The entries of one folder. What a process has left behind that was ended while it wrote, goes.
void listEntries(const fs::path &folder, std::vector<File> &files) {
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    struct stat status{};
    if ((!isEntry(name) && !isTemporary(name)) || ::lstat(at->path().c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    if (isTemporary(name) && std::time(nullptr) - status.st_mtim.tv_sec > kMostWriting)
      ::unlink(at->path().c_str());
    else if (isEntry(name))
      files.push_back({at->path(), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                       blocksOf(static_cast<uint64_t>(status.st_size))});
  }
}

} // namespace

fs::path CodeFolder::defaultPath() {
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && fs::path(cache).is_absolute())
    return fs::path(cache) / "hydra";
  if (const char *home = std::getenv("HOME"); home && fs::path(home).is_absolute())
    return fs::path(home) / ".cache" / "hydra";
  return {};
}

void CodeFolder::noteUsed(const fs::path &file) {
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  ::utimensat(AT_FDCWD, file.c_str(), times, 0);
}

void CodeFolder::noteWritten(uint64_t bytes) const {
  const fs::path file = path / kWritten;
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  int written = ::open(file.c_str(), kFlags);
  // What is there already, nobody has counted.
  const bool isFirst = written < 0 && errno == ENOENT;
  if (isFirst)
    written = ::open(file.c_str(), kFlags | O_CREAT, 0666);
  if (written < 0)
    return;
  const llvm::scope_exit closed([&] { ::close(written); });
  const std::string marks(blocksOf(bytes), '.');
  (void)!::write(written, marks.data(), marks.size()); // a full disk: nothing more is kept anyway
  const uint64_t between = mostBytes / 16;
  const auto isDue = [&] {
    struct stat status{};
    return ::fstat(written, &status) == 0 &&
           static_cast<uint64_t>(status.st_size) > between / kBlockBytes;
  };
  if (!isFirst && !isDue())
    return;
  if (::flock(written, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return; // another one looks
  if (!isFirst && !isDue())
    return; // another one has looked
  // Once more for what the others, who leave it to this one, have written meanwhile.
  do {
    if (::ftruncate(written, 0) != 0)
      return;
    removeOldest(mostBytes - between);
  } while (isDue());
}

void CodeFolder::removeOldest(uint64_t most) const {
  std::vector<File> files;
  listEntries(path, files);
  listEntries(path / kOfLLVM, files);
  uint64_t blocks = 0;
  for (const File &file : files)
    blocks += file.blocks;
  const auto order = [](const File &file) {
    return std::tie(file.seconds, file.nanoseconds, file.path);
  };
  llvm::sort(files, [&](const File &a, const File &b) { return order(a) < order(b); });
  for (const File &file : files) {
    if (blocks <= most / kBlockBytes)
      return;
    if (::unlink(file.path.c_str()) == 0 || errno == ENOENT)
      blocks -= file.blocks;
  }
}

} // namespace hydra
