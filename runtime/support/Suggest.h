// "did you mean …?": the known word nearest to one that was mistyped.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hydra::support {

/// The candidate with the fewest inserted, removed or replaced characters between it and `word`;
/// empty when that is more than three, or more than a third of the word: no slip of the fingers.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// About an unknown flag of a command line: `unknown flag '--stpes'; did you mean '--steps'?`, or
/// where nothing is near `unknown flag '--zzz'; --help lists the known ones`. `word` may end in
/// `=VALUE`.
std::string unknownFlag(std::string_view word, std::span<const std::string> candidates);

} // namespace hydra::support
