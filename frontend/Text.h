// Pieces of model text: numbers, and lines of columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hydra::frontend {

/// A literal of the model language, which reads back as the same number: `1.0e-5`, `0.25`, `5.0e5`.
std::string realText(double value);

/// A name of which every byte that is no letter, digit or one of `._-` is `_`; `model` instead of
/// none.
std::string plainName(std::string_view name);

/// `@llama` or, where it is no identifier, `@"Llama-3.2-1B"`; of a plain name.
std::string symbolText(std::string_view name);

/// Words with commas between them.
std::string joined(const std::vector<std::string> &words, std::string_view between = ", ");

/// Rows of cells, each column as wide as its widest cell; the last one is not padded. Every line
/// begins with `indent`.
std::string table(const std::vector<std::vector<std::string>> &rows, std::string_view indent);

} // namespace hydra::frontend
