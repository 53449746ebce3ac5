// Machine code that a plan carries, loaded into the process without touching the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hydra::runtime {

/// A native kernel: works on rows [begin, end); args[i] is the first byte of argument i.
using KernelFunction = void (*)(char *const *args, int64_t begin, int64_t end);

/// A shared object in memory (memfd_create and dlopen). What it leaves undefined, such as memcpy,
/// comes from the process.
class NativeCode {
public:
  /// `name` stands for it in errors and in debuggers. Throws Error when the loader refuses it.
  NativeCode(std::span<const std::byte> object, std::string name);
  ~NativeCode();
  NativeCode(NativeCode &&other) noexcept;
  NativeCode &operator=(NativeCode &&) = delete;

  /// Throws Error when there is no such symbol.
  KernelFunction function(std::string_view symbol) const;

private:
  void close();

  std::string name;
  /// Open as long as the code is loaded: the loader knows code by its path, which has this number.
  int descriptor = -1;
  void *handle = nullptr;
};

} // namespace hydra::runtime
