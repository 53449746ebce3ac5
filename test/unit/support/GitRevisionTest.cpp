// Repositories as git lays them out.
#include "runtime/support/GitRevision.h"

#include <gtest/gtest.h>

#include <fstream>
#include <unistd.h>

using hydra::support::gitRevision;
namespace fs = std::filesystem;

namespace {

class GitRevisionTest : public testing::Test {
protected:
  GitRevisionTest()
      : folder(fs::temp_directory_path() / ("git-revision-" + std::to_string(::getpid()))) {
    write("models/model.mlir", "");
  }
  ~GitRevisionTest() override { fs::remove_all(folder); }

  void write(const fs::path &path, const std::string &text) const {
    fs::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << text;
  }
  std::optional<std::string> revision() const { return gitRevision(folder / "models/model.mlir"); }

  const fs::path folder;
  const std::string commit = "0123456789abcdef0123456789abcdef01234567";
};

TEST_F(GitRevisionTest, OfABranchOfAPackedOneAndOfNone) {
  write(".git/HEAD", "ref: refs/heads/main\n");
  EXPECT_EQ(revision(), std::nullopt) << "nothing is committed";
  write(".git/packed-refs", "# pack-refs with: peeled\n" + commit + " refs/heads/main\n");
  EXPECT_EQ(revision(), commit);
  const std::string other(40, 'a');
  write(".git/refs/heads/main", other + "\n");
  EXPECT_EQ(revision(), other) << "newer than what is packed";
  write(".git/HEAD", commit + "\n");
  EXPECT_EQ(revision(), commit);
}

TEST_F(GitRevisionTest, OfAWorkTree) {
  write("repository/worktrees/tree/HEAD", "ref: refs/heads/topic\n");
  write("repository/worktrees/tree/commondir", "../..\n");
  write("repository/refs/heads/topic", commit + "\n");
  write(".git", "gitdir: " + (folder / "repository/worktrees/tree").string() + "\n");
  EXPECT_EQ(revision(), commit);
}

TEST_F(GitRevisionTest, WhatIsNoRepositoryHasNone) {
  write(".git/HEAD", "something else\n");
  EXPECT_EQ(revision(), std::nullopt);
  EXPECT_EQ(gitRevision(folder / "absent"), std::nullopt);
}

} // namespace
