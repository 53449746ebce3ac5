// What programs say of exceptions that end them.
#pragma once

#include <exception>
#include <new>

namespace hydra {

/// What is wrong, in words. Lives as long as the exception.
inline const char *problemOf(const std::exception &error) {
  return dynamic_cast<const std::bad_alloc *>(&error) ? "there is not enough memory" : error.what();
}

} // namespace hydra
