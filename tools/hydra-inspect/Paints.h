// Colours of pictures and pages.
//
// Okabe and Ito's eight, which people with any colour vision can tell apart. Of more kinds than
// that the next eight have the same colours with stripes, and the next with dots.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <array>
#include <cstddef>
#include <vector>

namespace hydra::inspect {

inline constexpr std::array<const char *, 8> kPalette = {
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"};

/// What is drawn over the colour; the page and the pictures know these words.
inline constexpr std::array<const char *, 3> kTextures = {"plain", "stripes", "dots"};

constexpr const char *colourOf(size_t paint) { return kPalette[paint % kPalette.size()]; }
constexpr const char *textureOf(size_t paint) {
  return kTextures[paint / kPalette.size() % kTextures.size()];
}

/// The paint of each category, by its number: first those of the transient segment, then the others
/// that the plan has.
std::vector<size_t> paintsOfCategories(const planfile::Plan &plan);
/// The paint of each class of steps: first those that the plan has.
std::vector<size_t> paintsOfClasses(const planfile::Plan &plan);

} // namespace hydra::inspect
