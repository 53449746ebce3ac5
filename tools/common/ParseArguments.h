// Command lines of the programs that run plans: CLI11's parser, but one line per mistake.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>

namespace hydra {

/// Parses. Returns the status that the program must end with right away: 0 after `--help`, 1 after
/// one line on stderr that names the mistake, and for an unknown flag the nearest known one:
/// `hydra-run: unknown flag '--stpes'; did you mean '--steps'?`.
std::optional<int> parseArguments(CLI::App &app, int argc, const char *const *argv,
                                  const char *program);

/// The same, but throws support::Error with the line that names the mistake.
std::optional<int> parseArgumentsOrThrow(CLI::App &app, int argc, const char *const *argv,
                                         const char *program);

} // namespace hydra
