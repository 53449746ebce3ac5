// Files that appear complete or not at all: full disks, unwritable places, abandoned writes.
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/OutputFile.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StopSignal.h"
#include "runtime/support/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <vector>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace hydra::support;

namespace fs = std::filesystem;

namespace {

class AtomicFiles : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hydra-atomic-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  void TearDown() override { fs::remove_all(directory); }

  static std::string write(const OutputPath &path, size_t bytes = 3) {
    const std::vector<std::byte> content(bytes, std::byte{'x'});
    try {
      AtomicFile file(path);
      file.write(content);
      file.commit();
    } catch (const Error &error) {
      return error.what();
    }
    return "written";
  }

  static std::string contentsOf(const fs::path &path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  size_t filesInDirectory() const {
    return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
  }

  /// The status of a process that has done `begin` and then waits, behind these signals.
  static int statusBehind(std::initializer_list<int> signals,
                          const std::function<void(const std::function<void()> &wait)> &begin) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      // A signal comes while the child waits for it, not before: nobody would send it again.
      sigset_t held, before;
      ::sigemptyset(&held);
      for (const int number : signals)
        ::sigaddset(&held, number);
      ::sigprocmask(SIG_BLOCK, &held, &before);
      begin([&] {
        for (;; ::sigsuspend(&before)) // behind each signal that it survives
          EXPECT_EQ(::write(ends[1], "x", 1), 1);
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    for (const int number : signals) {
      char answer = 0;
      EXPECT_EQ(::read(ends[0], &answer, 1), 1);
      ::kill(child, number);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ends[0]);
    return status;
  }

  fs::path directory;
};

} // namespace

TEST_F(AtomicFiles, AppearsAtCommitAndReplacesTheOldFile) {
  const fs::path path = directory / "out";
  std::ofstream(path) << "old";
  {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span("new", 3)));
    EXPECT_EQ(contentsOf(path), "old");
    file.commit();
    EXPECT_EQ(contentsOf(path), "new");
  }
  EXPECT_EQ(contentsOf(path), "new");
  EXPECT_EQ(filesInDirectory(), 1u);
}

TEST_F(AtomicFiles, NothingRemainsWithoutCommit) {
  const fs::path path = directory / "out";
  std::ofstream(path) << "old";
  {
    AtomicFile first(path), second(path); // two at once do not meet
    first.write(std::as_bytes(std::span("new", 3)));
    EXPECT_EQ(filesInDirectory(), 3u);
  }
  EXPECT_EQ(contentsOf(path), "old");
  EXPECT_EQ(filesInDirectory(), 1u);
}

TEST_F(AtomicFiles, NothingRemainsWhenASignalEndsTheProcess) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = statusBehind({number}, [&](const auto &wait) {
      std::signal(number, SIG_DFL);
      AtomicFile first(directory / "first"), second(directory / "second");
      first.write(std::as_bytes(std::span("new", 3)));
      wait();
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_EQ(filesInDirectory(), 0u);
  }
}

TEST_F(AtomicFiles, NothingRemainsWhenASecondSignalEndsTheProcess) {
  const int status = statusBehind({SIGTERM, SIGTERM}, [&](const auto &wait) {
    const StopSignal stop;
    AtomicFile file(directory / "out");
    wait();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(filesInDirectory(), 0u);
}

TEST_F(AtomicFiles, OfFoldersNothingRemainsEither) {
  const auto folder = [&] {
    fs::create_directory(directory / ".folder");
    return OutputPath(directory / ".folder", directory / "folder");
  };
  const int status = statusBehind({SIGINT, SIGINT}, [&](const auto &wait) {
    const StopSignal stop;
    const TemporaryFolder temporary(folder());
    constexpr int many = 1000; // more than one look at the list has
    for (int i = 0; i < many; ++i)
      write(temporary.path() / std::to_string(i));
    const AtomicFile open(temporary.path() / "open");
    wait();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_EQ(filesInDirectory(), 0u);
  {
    const TemporaryFolder abandoned(folder());
    write(abandoned.path() / "file");
  }
  EXPECT_EQ(filesInDirectory(), 0u);
  // Under its name nothing removes it.
  const int later = statusBehind({SIGINT}, [&](const auto &wait) {
    TemporaryFolder named(folder());
    write(named.path() / "file");
    fs::rename(named.path().place, named.path().shown);
    wait();
  });
  EXPECT_TRUE(WIFSIGNALED(later)) << later;
  EXPECT_EQ(contentsOf(directory / "folder" / "file"), "xxx");
  fs::remove_all(directory / "folder");
  {
    TemporaryFolder named(folder());
    write(named.path() / "file");
    EXPECT_FALSE(named.rename());
  }
  EXPECT_EQ(contentsOf(directory / "folder" / "file"), "xxx");
}

TEST_F(AtomicFiles, MessagesNameWhatWasAskedFor) {
  const fs::path hidden = directory / "hidden";
  EXPECT_EQ(write(OutputPath(hidden / "out", "asked/out")),
            "cannot write asked/out: failed to create a file in its directory: No such file or "
            "directory");
  const AtomicFile file({directory / "out", "asked"});
  try {
    const OutputFile other(file.temporaryPath(), 1);
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "cannot write asked: it has 0 bytes; expected 1");
  }
}

TEST_F(AtomicFiles, AForkedProcessLeavesThemAlone) {
  AtomicFile file(directory / "out");
  const int status = statusBehind({SIGTERM}, [&](const auto &wait) { wait(); });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(filesInDirectory(), 1u);
  file.commit();
  EXPECT_TRUE(fs::exists(directory / "out"));
}

TEST_F(AtomicFiles, SignalsThatOthersHandleStayTheirs) {
  const int status = statusBehind({}, [&](const auto &) {
    std::signal(SIGHUP, SIG_IGN); // as nohup does
    const AtomicFile file(directory / "out");
    ::_exit(std::signal(SIGHUP, SIG_DFL) == SIG_IGN ? 0 : 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(AtomicFiles, RelativePathsAndLongNames) {
  const fs::path before = fs::current_path();
  fs::current_path(directory);
  EXPECT_EQ(write("plain"), "written");
  EXPECT_EQ(write(std::string(255, 'n')), "written");
  fs::current_path(before);
  EXPECT_EQ(contentsOf(directory / "plain"), "xxx");
  EXPECT_EQ(contentsOf(directory / std::string(255, 'n')), "xxx");
}

TEST_F(AtomicFiles, FollowsLinks) {
  fs::create_directory(directory / "real");
  std::ofstream(directory / "real" / "file") << "old";
  fs::create_symlink("real/file", directory / "link");
  EXPECT_EQ(write(directory / "link"), "written");
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
  EXPECT_EQ(contentsOf(directory / "real" / "file"), "xxx");
  fs::create_symlink("nowhere", directory / "dangling");
  EXPECT_NE(write(directory / "dangling").find("No such file"), std::string::npos);
}

// The tests may run as root, whom permissions do not stop; a path through a file stops everyone.
TEST_F(AtomicFiles, UnwritablePlaces) {
  std::ofstream(directory / "file") << "old";
  const fs::path through = directory / "file" / "out";
  EXPECT_EQ(write(through), "cannot write " + through.string() +
                                ": failed to create a file in its directory: Not a directory");
  const fs::path missing = directory / "none" / "out";
  EXPECT_EQ(write(missing),
            "cannot write " + missing.string() +
                ": failed to create a file in its directory: No such file or directory");
  EXPECT_EQ(write(directory), "cannot write " + directory.string() +
                                  ": it exists and is no regular file; expected a new or regular "
                                  "file");
  const fs::path longName = directory / std::string(256, 'n');
  EXPECT_EQ(write(longName),
            "cannot write " + shownPath(longName) + ": failed to create it: File name too long");
  EXPECT_EQ(write(""), "cannot write '': expected the name of a file");
  EXPECT_EQ(write(directory / "none/"),
            "cannot write '" + (directory / "none/").string() + "': expected the name of a file");
  EXPECT_EQ(filesInDirectory(), 1u);
}

TEST_F(AtomicFiles, DevicesAreNotReplaced) {
  EXPECT_EQ(write("/dev/full"),
            "cannot write /dev/full: it exists and is no regular file; expected a new or regular "
            "file");
  struct stat status;
  ASSERT_EQ(::stat("/dev/full", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST_F(AtomicFiles, FileSizeLimit) {
  const fs::path path = directory / "out";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto oldHandler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limited{10'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  const std::string message = write(path, 20'000);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, oldHandler);
  EXPECT_EQ(message, "cannot write " + path.string() + ": failed to write: File too large");
  EXPECT_EQ(filesInDirectory(), 0u);
}

// A 64 KiB file system of its own, in a child process with its own mounts.
TEST_F(AtomicFiles, FullDisk) {
  enum ChildResult { Good, WrongMessage, FileRemains, CannotMount };
  const fs::path path = directory / "out";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool own = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!own || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=64k") != 0)
      ::_exit(CannotMount);
    if (write(path, 1'000'000) !=
        "cannot write " + path.string() + ": failed to write: No space left on device")
      ::_exit(WrongMessage);
    ::_exit(filesInDirectory() == 0 ? Good : FileRemains);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == CannotMount)
    GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_EQ(WEXITSTATUS(status), Good);
}
