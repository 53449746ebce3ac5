// Writing that never leaves half a line.
#include "runtime/run/LineFile.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

using namespace hydra::runtime;
using hydra::support::errnoText;
using hydra::support::fail;
using hydra::support::shownPath;

namespace {

void warn(const std::string &problem) {
  std::fprintf(stderr, "hydra-run: %s; training goes on without it\n",
               hydra::support::oneLine(problem).c_str());
}

/// The bytes of the whole lines that a file of `size` bytes begins with. A machine that failed may
/// have left a part of one behind them.
off_t wholeLines(const std::filesystem::path &path, off_t size) {
  constexpr off_t kPiece = 1 << 16;
  std::ifstream in(path, std::ios::binary);
  std::string piece;
  for (off_t end = size; end > 0; end -= static_cast<off_t>(piece.size())) {
    piece.resize(static_cast<size_t>(std::min(kPiece, end)));
    const off_t begin = end - static_cast<off_t>(piece.size());
    in.seekg(begin);
    if (!in.read(piece.data(), static_cast<std::streamsize>(piece.size())))
      return size; // what cannot be read stays as it is
    if (const size_t last = piece.rfind('\n'); last != piece.npos)
      return begin + static_cast<off_t>(last) + 1;
  }
  return 0;
}

/// Whether the line at a place of a file begins as ours do.
bool beginsWithOneOf(const std::filesystem::path &path, off_t place, std::string_view firsts) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(place);
  const int first = in.get();
  return first != std::ifstream::traits_type::eof() &&
         firsts.find(static_cast<char>(first)) != firsts.npos;
}

/// Of a path that cannot be opened to be written. Pipes without a reader and sockets have the same
/// error, "No such device or address".
std::string whyNotOpened(const std::filesystem::path &path, int code) {
  struct stat status = {};
  if (code != ENXIO || ::stat(path.c_str(), &status) != 0)
    return errnoText(code);
  return S_ISSOCK(status.st_mode)   ? "it is a socket; expected a file or a pipe"
         : S_ISFIFO(status.st_mode) ? "nobody reads it"
                                    : errnoText(code);
}

} // namespace

LineFile::LineFile(std::filesystem::path file, std::string kind, std::string_view firsts,
                   bool append)
    : path(std::move(file)), what(std::move(kind)) {
  const mode_t readWriteForAll = 0666; // less the umask
  // A pipe that nobody reads would be waited for without a word.
  descriptor = ::open(path.c_str(),
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                          (append ? 0 : O_TRUNC),
                      readWriteForAll);
  if (descriptor < 0) {
    const std::string why = whyNotOpened(path, errno);
    fail("cannot write {} {}: {}", what, shownPath(path), why);
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  struct stat status = {};
  ::fstat(descriptor, &status);
  if (append && S_ISREG(status.st_mode))
    if (const off_t whole = wholeLines(path, status.st_size); whole != status.st_size) {
      if (!beginsWithOneOf(path, whole, firsts)) {
        close();
        fail("cannot append to {} {}: its last line has no end, and is none of such a file", what,
             shownPath(path));
      }
      if (::ftruncate(descriptor, whole) == 0)
        status.st_size = whole;
    }
  empty = status.st_size == 0;
}

LineFile::LineFile(LineFile &&other) noexcept
    : path(std::move(other.path)), what(std::move(other.what)),
      descriptor(std::exchange(other.descriptor, -1)), empty(other.empty) {}

LineFile &LineFile::operator=(LineFile &&other) noexcept {
  if (this != &other) {
    close();
    path = std::move(other.path);
    what = std::move(other.what);
    descriptor = std::exchange(other.descriptor, -1);
    empty = other.empty;
  }
  return *this;
}

LineFile::~LineFile() { close(); }

void LineFile::close() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

void LineFile::write(const std::string &line) {
  if (descriptor < 0)
    return;
  struct stat before = {};
  ::fstat(descriptor, &before);
  const ssize_t written = ::write(descriptor, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size()))
    return;
  const int code = written < 0 ? errno : ENOSPC;
  // Half a line would spoil what a resumed run appends.
  if (written > 0 && S_ISREG(before.st_mode) && ::ftruncate(descriptor, before.st_size) != 0)
    warn(fmt::format("the last line of {} is cut", shownPath(path)));
  close();
  warn(fmt::format("cannot write {} {}: {}", what, shownPath(path), errnoText(code)));
}
