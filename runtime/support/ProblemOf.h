// What programs say of exceptions that end them.
#pragma once

#include <exception>
#include <new>

namespace hydra::support {

/// What every program says where there is none.
inline constexpr const char *kNoMemory = "there is not enough memory";

/// What is wrong, in words. Lives as long as the exception.
inline const char *problemOf(const std::exception &error) {
  return dynamic_cast<const std::bad_alloc *>(&error) ? kNoMemory : error.what();
}

} // namespace hydra::support
