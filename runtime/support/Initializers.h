// Initial values of parameters and state: element i depends only on seed, name and i.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hydra::support {

/// How a tensor is filled. Build it by the named functions; `fill` checks the values.
struct Initializer {
  enum class Kind : uint8_t { Constant, Normal, TruncNormal, Uniform, Shuffle };

  Kind kind = Kind::Constant;
  double a = 0.0;            // value, std, std or limit
  double b = 0.0;            // cut of TruncNormal
  std::vector<double> table; // of Shuffle

  /// Every element is `value`.
  static Initializer constant(double value) { return {Kind::Constant, value, 0.0, {}}; }
  /// Mean 0, standard deviation `std`.
  static Initializer normal(double std) { return {Kind::Normal, std, 0.0, {}}; }
  /// normal(std) conditioned on |x| <= cut * std (so its own deviation is a little below std).
  static Initializer truncNormal(double std, double cut) {
    return {Kind::TruncNormal, std, cut, {}};
  }
  /// Uniform in (-limit, limit).
  static Initializer uniform(double limit) { return {Kind::Uniform, limit, 0.0, {}}; }
  /// Element i is table[perm(i)] with a random permutation; the tensor has table.size() elements.
  static Initializer shuffle(std::vector<double> table) {
    return {Kind::Shuffle, 0.0, 0.0, std::move(table)};
  }
};

/// Writes elements firstIndex, firstIndex + 1, ... of tensor `name` (row-major) to `out`. Parts
/// filled separately equal the whole. Values are double; the caller rounds to the tensor's dtype.
/// Throws Error, naming the tensor, when std, cut or limit is out of range, or a shuffle's
/// elements reach beyond its table.
void fill(const Initializer &init, uint64_t seed, std::string_view name, std::span<double> out,
          uint64_t firstIndex = 0);

/// The same, rounded to float.
void fill(const Initializer &init, uint64_t seed, std::string_view name, std::span<float> out,
          uint64_t firstIndex = 0);

} // namespace hydra::support
