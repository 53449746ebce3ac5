// The words behind the program's name, and those of the run that they go on with.
#pragma once

#include "tools/hydra-run/RunDirectory.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace hydra {

/// A command line. With `--resume DIR`, where DIR is a run, it has the plan and the flags of that
/// run where none are given, and goes on in that directory; one that wants something else of the
/// run (a text, a measurement) takes of its flags what it reads and where it runs.
class CommandLine {
public:
  /// Throws Error when the run cannot be read.
  CommandLine(const CLI::App &app, std::vector<std::string> words);

  /// For the parser.
  const std::vector<std::string> &words() const { return all; }
  /// Without what is of this start alone, for a run to remember.
  const Arguments &arguments() const { return groups; }

private:
  std::vector<std::string> all;
  Arguments groups;
};

} // namespace hydra
