// The record of a run: what is in event files, and what happens when the disk is full.
#include "runtime/run/RunLog.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

using namespace hydra::runtime;

namespace {

class RunLogTest : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("hydra-log-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
};

/// No file may grow beyond so many bytes: writing then fails as on a full disk.
class SmallDisk {
public:
  explicit SmallDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    handler = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
  SmallDisk(const SmallDisk &) = delete;
  SmallDisk &operator=(const SmallDisk &) = delete;

private:
  rlimit before = {};
  void (*handler)(int);
};

} // namespace

TEST_F(RunLogTest, AFullDiskCostsALineAndTheRestOfTheRecord) {
  RunLog log({.jsonLines = folder / "log.jsonl", .tensorboard = folder / "events"}, false);
  testing::internal::CaptureStderr();
  {
    const SmallDisk disk(1000);
    log.start("plan\xff.fb", "model", 0, 100, 10);
    for (int64_t step = 1; step <= 100; ++step)
      log.step({.step = step, .loss = 1.0, .seconds = 1.0, .learningRate = {}, .gradientNorm = {}});
    log.end(100, "done");
  }
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 2) << warnings;
  EXPECT_NE(warnings.find("cannot write the log " + (folder / "log.jsonl").string() +
                          ": No space left on device; training goes on without it\n"),
            std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("events.out.tfevents"), std::string::npos) << warnings;
  std::ifstream in(folder / "log.jsonl");
  const std::string lines((std::istreambuf_iterator<char>(in)), {});
  EXPECT_GT(lines.size(), 500u);
  EXPECT_EQ(lines.back(), '\n') << "half a line remains";
}

TEST_F(RunLogTest, IsGoneOnWithBehindItsLastWholeLine) {
  const std::filesystem::path path = folder / "log.jsonl";
  const auto appendedTo = [&](const std::string &before) {
    std::ofstream(path, std::ios::binary) << before;
    RunLog({.jsonLines = path}, true).skipped(3, "why");
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string line = R"({"event":"skipped","step":3,"reason":"why"})"
                           "\n";
  EXPECT_EQ(appendedTo("whole\n"), "whole\n" + line);
  EXPECT_EQ(appendedTo("whole\n{\"event\":\"st"), "whole\n" + line);
  const std::string longPart = "{" + std::string(200'000, 'x');
  EXPECT_EQ(appendedTo("whole\n" + longPart), "whole\n" + line);
  EXPECT_EQ(appendedTo(longPart), line);
  EXPECT_EQ(appendedTo(""), line);
}

TEST_F(RunLogTest, KeepsThePartOfALineThatIsNoneOfALog) {
  const std::filesystem::path path = folder / "log.jsonl";
  for (const std::string &text : {std::string("a note"), "whole\n" + std::string(200'000, 'x')}) {
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_THROW(RunLog({.jsonLines = path}, true), hydra::support::Error);
    std::ifstream in(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
  }
}

TEST_F(RunLogTest, ListsAreHistogramsOfSomeSteps) {
  {
    RunLog log({.tensorboard = folder / "events", .histogramEvery = 2}, false);
    for (int64_t step = 1; step <= 4; ++step)
      log.step({.step = step,
                .loss = 1.0,
                .seconds = 1.0,
                .learningRate = {},
                .gradientNorm = {},
                .outputs = {{"depths", {2, 3}, {1, 2, 3, 0, 0, 0}},
                            {"mean_depth", {2, 1}, {1.5, 0.5}},
                            {"grad_histogram.slow", {2}, {1, 7}},
                            {"ce", {}, {2.0}}}});
    log.sample(4, 0, "To be\n", "or \xff not");
  }
  std::string events;
  for (const auto &file : std::filesystem::directory_iterator(folder / "events")) {
    std::ifstream in(file.path(), std::ios::binary);
    events.append(std::istreambuf_iterator<char>(in), {});
  }
  const auto timesOf = [&](const std::string &text) {
    size_t times = 0;
    for (size_t at = events.find(text); at != events.npos; at = events.find(text, at + 1))
      ++times;
    return times;
  };
  EXPECT_EQ(timesOf("train/ce"), 4u);
  EXPECT_EQ(timesOf("train/depths/0"), 2u);
  EXPECT_EQ(timesOf("train/depths/1"), 0u) << "it counts nothing";
  EXPECT_EQ(timesOf("train/mean_depth"), 2u);
  EXPECT_EQ(timesOf("train/grad_histogram.slow"), 2u);
  EXPECT_EQ(timesOf("    To be\n    or \xef\xbf\xbd not"), 1u);
}

TEST_F(RunLogTest, WhatCannotBeOpenedIsRefused) {
  EXPECT_THROW(RunLog({.jsonLines = folder / "absent" / "log"}, false), hydra::support::Error);
  EXPECT_THROW(RunLog({.csv = folder / "absent" / "table"}, false), hydra::support::Error);
  EXPECT_THROW(RunLog({.tensorboard = "/dev/null/events"}, false), hydra::support::Error);
}
