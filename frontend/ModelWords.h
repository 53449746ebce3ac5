// How the text of a model calls its sizes: which of them are symbols of their own.
#pragma once

#include "frontend/Architecture.h"

#include <string>
#include <string_view>
#include <vector>

namespace hydra::frontend {

/// Rotary positions of some layers, and how their symbols are called.
struct RotaryWords {
  const Rotary &r;
  bool two;                ///< whether other layers have others
  std::string_view prefix; ///< of the names of their symbols

  /// Whether they are tables of cosines and sines, which `hydra.rope` does not compute.
  bool tabulates() const {
    using enum Rotary::Scaling;
    return r.scaling != None && r.scaling != Dynamic;
  }
  std::string named(std::string_view symbol) const {
    return std::string(prefix) + std::string(symbol);
  }
};

struct ModelWords {
  explicit ModelWords(const Architecture &a) : a(a) {}

  const Architecture &a;

  /// Whether heads have a width that does not follow from D.
  bool ownWidth() const { return a.headWidth * a.heads != a.hidden; }
  /// Whether keys have a number of heads for themselves.
  bool groups() const { return a.projections == Projections::Separate || a.keyHeads != a.heads; }
  bool partialRotary() const { return a.rotary && a.rotary->width != a.headWidth; }
  /// Rotary positions of all layers, or of those without window and of those with one.
  std::vector<RotaryWords> rotaries() const {
    std::vector<RotaryWords> all;
    if (a.rotary)
      all.push_back({*a.rotary, a.localRotary.has_value(), ""});
    if (a.localRotary)
      all.push_back({*a.localRotary, true, "local_"});
    return all;
  }
  bool hasLayerKinds() const { return a.window > 0 && !a.slides.empty(); }

  std::string keyHeads() const { return groups() ? "Hk" : "H"; }
  /// The width of all heads, and of all key heads.
  std::string queries() const { return ownWidth() ? "Dq" : "D"; }
  std::string keys() const { return groups() ? "Dk" : queries(); }
  /// The channels of a head that rotary positions turn.
  std::string turned() const { return partialRotary() ? "R" : "hd"; }
  std::string head() const { return a.tied ? "@tok_emb" : "@lm_head"; }
  /// A matrix as an operand, with its bias if it has one.
  static std::string linear(std::string_view x, std::string_view weight, bool bias) {
    std::string text = "linear(" + std::string(x) + ", @" + std::string(weight);
    return text + (bias ? ", @" + std::string(weight) + "_b)" : ")");
  }
};

} // namespace hydra::frontend
