// A folder of a test's own, that goes with it.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include <cstdlib>

namespace hydra::test {

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hydra-test-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw std::runtime_error("cannot create " + name);
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::filesystem::path path;
};

} // namespace hydra::test
