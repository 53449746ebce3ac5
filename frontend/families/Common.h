// What the configurations of several families have in common.
#pragma once

#include "frontend/Architecture.h"
#include "frontend/Config.h"

#include <string_view>

namespace hydra::frontend {

/// How many layers there are: no more than a model may have.
int64_t readLayers(Config &config, std::string_view field);

/// Sizes, RMS norms, a gated MLP and the tied head, by the names that Llama has given them. A
/// missing `tie_word_embeddings` is `tied`.
void readSizes(Config &config, Architecture &a, bool tied);
/// `pad_token_id`, whose row of the table transformers gives no gradient; it counts from the end
/// where it is negative. A missing one is `otherwise` where the vocabulary has that, null is none.
void readPadding(Config &config, Architecture &a, std::optional<int64_t> otherwise = std::nullopt);
/// The width of a head: `head_dim`, or the hidden size shared out among the heads.
void readHeadWidth(Config &config, Architecture &a);

Activation readActivation(Config &config, std::string_view field, std::string_view otherwise);

/// How the family calls its rotary positions, and what they are where it says nothing.
struct RotaryFields {
  std::string_view base = "rope_theta", part = "partial_rotary_factor"; ///< or names of its own
  double defaultBase = 1.0e4, defaultPart = 1.0;
  bool partial = false; ///< whether it may turn a part of each head only
  int64_t original = 0; ///< positions of training; 0: those of the configuration
};
/// From `rope_parameters`, or `rope_scaling` and the fields above. `maxPositions`: of the
/// configuration.
Rotary readRotary(Config &config, int64_t headWidth, int64_t maxPositions,
                  const RotaryFields &fields = {});
/// From one object that holds all of it.
Rotary readRotaryObject(Config scaling, Rotary rotary, int64_t headWidth, int64_t maxPositions,
                        double defaultPart);

/// Throws Error where not all channels are turned: of families that have no form for it.
void wantWholeHeads(const Config &config, const Rotary &rotary, int64_t headWidth);

/// Sets which layers have the window, from `layer_types`; false where the configuration has none.
bool readLayerTypes(Config &config, Architecture &a);

/// `model.layers.{layer}.self_attn.q_proj` and so on.
Names llamaNames();

} // namespace hydra::frontend
