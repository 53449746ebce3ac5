// The options of AddressSanitizer that every instrumented executable starts with.

// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the sanitizer's.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }
