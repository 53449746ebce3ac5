// Compiled code on disk: what is kept, what goes, and what does no harm.
#include "compiler/codegen/files/CodeFiles.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <numeric>
#include <string>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace hydra;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class CodeFilesTest : public testing::Test {
protected:
  CodeFilesTest() {
    std::string text = (fs::temp_directory_path() / "hydra-code-files.XXXXXX").string();
    folder.path = ::mkdtemp(text.data());
    folder.mostBytes = kMiB;
  }
  ~CodeFilesTest() override { fs::remove_all(folder.path); }

  CodeFiles files() const { return CodeFiles(folder, CodeFolder::kOfLLVM); }
  fs::path inner() const { return folder.path / CodeFolder::kOfLLVM; }

  static std::vector<uint8_t> codeOf(int number, size_t bytes) {
    std::vector<uint8_t> code(bytes);
    std::iota(code.begin(), code.end(), static_cast<uint8_t>(number));
    return code;
  }
  /// The file of the entry, which was last used so long ago.
  fs::path write(int number, size_t bytes, std::chrono::hours ago = 0h) const {
    std::vector<fs::path> before = entries();
    files().write(std::to_string(number), codeOf(number, bytes));
    for (const fs::path &file : entries())
      if (std::find(before.begin(), before.end(), file) == before.end()) {
        fs::last_write_time(file, fs::file_time_type::clock::now() - ago);
        return file;
      }
    return {};
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> all;
    if (fs::exists(inner()))
      for (const auto &entry : fs::directory_iterator(inner()))
        all.push_back(entry.path());
    return all;
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const fs::path &file : entries()) {
      std::error_code gone;
      if (const uint64_t size = fs::file_size(file, gone); !gone)
        sum += size;
    }
    return sum;
  }

  CodeFolder folder;
};

TEST_F(CodeFilesTest, HoldsSoMuchAtMost) {
  for (int i = 0; i < 60; ++i) {
    write(i, 50'000, std::chrono::hours(100 - i));
    EXPECT_LE(bytes(), kMiB);
  }
  EXPECT_GT(bytes(), kMiB * 3 / 4);
  for (int i : {59, 58, 50})
    EXPECT_TRUE(files().read(std::to_string(i))) << i;
  for (int i : {0, 1, 30})
    EXPECT_FALSE(files().read(std::to_string(i))) << i;
}

TEST_F(CodeFilesTest, WhatWasReadCountsAsUsed) {
  const auto sinceUse = [](const fs::path &file) {
    return fs::file_time_type::clock::now() - fs::last_write_time(file);
  };
  const fs::path first = write(0, 300'000, 5h);
  write(1, 300'000, 4h);
  write(2, 300'000, 3h);
  EXPECT_GT(sinceUse(first), 4h);
  EXPECT_TRUE(files().read("0"));
  EXPECT_LT(sinceUse(first), 1h);
  write(3, 300'000);
  EXPECT_TRUE(files().read("0"));
  EXPECT_FALSE(files().read("1"));
  EXPECT_TRUE(files().read("2"));
  EXPECT_TRUE(files().read("3"));
}

TEST_F(CodeFilesTest, CountsWhatOtherProcessesHaveWritten) {
  // Each writes less than a look is due for.
  for (int i = 0; i < 100; ++i) {
    const pid_t process = ::fork();
    if (process == 0) {
      files().write(std::to_string(i), codeOf(i, 40'000));
      ::_exit(0);
    }
    ::waitpid(process, nullptr, 0);
  }
  EXPECT_LE(bytes(), kMiB);
}

TEST_F(CodeFilesTest, LooksAtAFolderThatNobodyHasCounted) {
  folder.mostBytes = 4 * kMiB;
  for (int i = 0; i < 40; ++i)
    write(i, 50'000, 1h);
  fs::remove(folder.path / ".written"); // as before there was a limit
  folder.mostBytes = kMiB;
  write(99, 10);
  EXPECT_LE(bytes(), kMiB);
}

TEST_F(CodeFilesTest, LeavesOtherFilesAlone) {
  fs::create_directories(inner());
  const fs::path entry = inner() / std::string(32, 'a');
  for (const fs::path &file : {folder.path / "notes.txt", inner() / (std::string(32, 'a') + ".txt"),
                               inner() / (std::string(32, 'a') + ".b"), entry})
    std::ofstream(file) << std::string(2 * kMiB, 'x');
  fs::create_directories(inner() / std::string(32, 'b') / std::string(32, 'c'));
  for (const auto &file : fs::recursive_directory_iterator(folder.path))
    fs::last_write_time(file.path(), fs::file_time_type::clock::now() - 100h);
  write(0, 10);
  EXPECT_TRUE(fs::exists(folder.path / "notes.txt"));
  EXPECT_TRUE(fs::exists(inner() / (std::string(32, 'a') + ".txt")));
  EXPECT_TRUE(fs::exists(inner() / (std::string(32, 'a') + ".b")));
  EXPECT_TRUE(fs::exists(inner() / std::string(32, 'b') / std::string(32, 'c')));
  EXPECT_FALSE(fs::exists(entry)); // which looks like one of ours
  EXPECT_TRUE(files().read("0"));
}

TEST_F(CodeFilesTest, RemovesWhatAnEndedProcessLeft) {
  fs::create_directories(inner());
  const fs::path old = inner() / (std::string(32, '0') + ".a1b2c3"),
                 fresh = inner() / (std::string(32, '1') + ".a1b2c3");
  std::ofstream(old) << "x";
  std::ofstream(fresh) << "x";
  fs::last_write_time(old, fs::file_time_type::clock::now() - 2h);
  write(0, 10);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(CodeFilesTest, DamageIsWhatIsNotThere) {
  const fs::path file = write(0, 1000);
  std::ofstream(file, std::ios::app) << "x";
  EXPECT_FALSE(files().read("0"));
  fs::resize_file(file, 10);
  EXPECT_FALSE(files().read("0"));
  fs::remove(file);
  EXPECT_FALSE(files().read("0"));
  fs::create_directory(file);
  EXPECT_FALSE(files().read("0"));
  files().write("0", codeOf(0, 1000));
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); // at which nobody waits
  EXPECT_FALSE(files().read("0"));
  files().write("0", codeOf(0, 1000));
  EXPECT_TRUE(files().read("0"));
}

TEST_F(CodeFilesTest, FoldersThatAreNoneKeepNothing) {
  fs::create_directories(folder.path / ".written"); // where bytes are counted
  for (int i = 0; i < 100; ++i)
    write(i, 1000);
  EXPECT_TRUE(files().read("99"));
  CodeFolder inFile{folder.path / "file" / "cache", kMiB};
  std::ofstream(folder.path / "file") << "x";
  CodeFiles(inFile).write("0", codeOf(0, 10));
  EXPECT_FALSE(CodeFiles(inFile).read("0"));
  EXPECT_FALSE(CodeFiles(CodeFolder{}).areKept());
}

TEST_F(CodeFilesTest, ProcessesWriteReadAndRemoveTogether) {
  constexpr int kProcesses = 4, kKeys = 60, kRounds = 400;
  std::vector<pid_t> processes;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t process = ::fork();
    if (process == 0) {
      for (int round = 0; round < kRounds; ++round) {
        const int number = (round * 7 + p * 13) % kKeys;
        const size_t size = 30'000 + 100 * static_cast<size_t>(number);
        if (const auto known = files().read(std::to_string(number))) {
          if (known->code != codeOf(number, size))
            ::_exit(1);
        } else {
          files().write(std::to_string(number), codeOf(number, size));
        }
      }
      ::_exit(0);
    }
    processes.push_back(process);
  }
  for (pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LE(bytes(), kMiB + kMiB / 4); // what was on the way while one looked
  for (const fs::path &file : entries())
    EXPECT_EQ(file.filename().string().size(), 32U) << file;
}

} // namespace
