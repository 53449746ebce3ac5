// Libraries that are looked up when they are used, so that programs start without them.
#pragma once

#include <initializer_list>

namespace hydra::support {

/// The first of some shared libraries that can be loaded, or none. It stays loaded as long as the
/// process runs, so functions outlive what found them.
class SharedLibrary {
public:
  /// Names as `dlopen` takes them; the first one is that of messages.
  explicit SharedLibrary(std::initializer_list<const char *> names);

  explicit operator bool() const { return handle; }

  /// A function of a library that is there; null where it has no such symbol.
  template <typename Function> Function *get(const char *symbol) const {
    return reinterpret_cast<Function *>(address(symbol));
  }

  /// The same, into a pointer of that type.
  template <typename Function> bool find(Function *&function, const char *symbol) const {
    function = get<Function>(symbol);
    return function;
  }

  /// The same; throws Error where the library has no such symbol.
  template <typename Function> void load(Function *&function, const char *symbol) const {
    if (!find(function, symbol))
      failWithout(symbol);
  }

private:
  void *address(const char *symbol) const;
  [[noreturn]] void failWithout(const char *symbol) const;

  const char *name;
  void *handle = nullptr;
};

/// For lists of functions of a C interface: `LIST(HYDRA_DECLARE_FUNCTION)` declares a pointer to
/// each, `LIST(HYDRA_LOAD_FUNCTION)` loads them from `library`.
#define HYDRA_DECLARE_FUNCTION(name) decltype(&::name) name = nullptr;
#define HYDRA_LOAD_FUNCTION(name) library.load(name, #name);

} // namespace hydra::support
