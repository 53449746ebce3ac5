// Makes a program that shows something smaller, as long as it still shows it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

namespace hydra::test {

/// What the reducer asks about models.
struct ReduceQuestions {
  /// Whether a text still shows what is looked for.
  std::function<bool(const std::string &text)> shows;
  /// Shape and element type, as in `[2, 3] f32`, of values by name, as far as they are known.
  std::function<std::map<std::string, std::string>(const std::string &text)> types;
};

struct ReduceOptions {
  std::chrono::seconds limit{120};
};

/// The smallest text that was found by taking out statements, results, carried values, parameters
/// and attributes, by putting operands or fresh parameters in the place of values, and by smaller
/// numbers. The same for the same text unless the time is over. `text` must show it.
std::string reduceText(const std::string &text, const ReduceQuestions &questions,
                       const ReduceOptions &options = {});

} // namespace hydra::test
