// Files that tests of the frontend make, and what they expect to be said of them.
#pragma once

#include "runtime/support/Safetensors.h"
#include "test/support/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace hydra::frontend {

/// A directory of one test.
class Folder {
public:
  std::filesystem::path operator/(const std::string &name) const { return folder.path / name; }
  const std::filesystem::path &root() const { return folder.path; }

  void write(const std::string &name, const std::string &text) const {
    std::ofstream(folder.path / name, std::ios::binary) << text;
  }
  /// Tensors of random bytes, the same for each name.
  void writeTensors(const std::string &name,
                    const std::vector<support::TensorInfo> &tensors) const {
    support::SafetensorsWriter writer(folder.path / name, tensors);
    for (const support::TensorInfo &tensor : tensors)
      writer.append(tensor.name, bytesOf(tensor));
    writer.commit();
  }
  static std::vector<std::byte> bytesOf(const support::TensorInfo &tensor) {
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(tensor.name)));
    const size_t size = support::byteSize(tensor.dtype);
    std::vector<double> numbers(*support::byteSize(tensor) / size);
    for (double &number : numbers)
      number = support::isFloat(tensor.dtype) ? std::normal_distribution<>()(random) : 0.0;
    std::vector<std::byte> bytes(numbers.size() * size);
    support::fromDoubles(tensor.dtype, numbers, bytes);
    return bytes;
  }

private:
  test::TemporaryFolder folder;
};

/// What is thrown, with the path of the folder as DIR; empty if nothing is.
inline std::string problemOf(const Folder &folder, const std::function<void()> &work) {
  try {
    work();
  } catch (const std::exception &error) {
    std::string text = error.what();
    for (size_t at; (at = text.find(folder.root().string())) != std::string::npos;)
      text.replace(at, folder.root().string().size(), "DIR");
    return text;
  }
  return "";
}

} // namespace hydra::frontend
