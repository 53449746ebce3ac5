// What a run says: its results, and what it says beside its work.
#pragma once

#include <string>

namespace hydra::runtime {

/// Prints to standard output, at once. When that fails (a full disk, a reader that has gone), one
/// line on standard error says so and nothing more is printed: what is said beside the work does
/// not end it.
void say(const std::string &text);

/// Prints a result to standard output, at once. Throws Error when that fails.
void print(const std::string &text);

/// Lets nothing more of this process reach standard output: ranks but the first run the same
/// program.
void silenceStandardOutput();

} // namespace hydra::runtime
