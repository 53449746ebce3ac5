// What a decoder of the family of transformers is made of: features that every architecture chooses
// from, with the numbers of one model. Families (frontend/families) fill it from a configuration;
// the ModelWriter makes a model of it. Nothing else knows both sides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hydra::frontend {

enum class NormKind { Rms, Layer };

/// Where norms stand in a block: before attention and MLP; behind them, before they are added;
/// both; or before them, which both read the same input.
enum class BlockForm { PreNorm, PostNorm, Sandwich, Parallel };

/// Which projections there are: three; one with the rows of q, then k, then v; one with those of
/// each head side by side.
enum class Projections { Separate, Stacked, PerHead };

/// Norms of queries and keys: none; of each head; of all heads together.
enum class HeadNorm { None, EachHead, AllHeads };

enum class Activation {
  Silu,
  Gelu,        ///< by the error function
  GeluTanh,    ///< by tanh
  GeluClipped, ///< by the error function, at most 10
  QuickGelu,   ///< x · sigmoid(1.702 x)
  Relu,
  Relu2, ///< squared
  Relu6, ///< at most 6
  LeakyRelu,
  Sigmoid,
  Tanh,
  Linear
};

/// Rotary positions. Pair i of `width` channels (i, i + width/2) is turned by position · f(i),
/// where f(i) is base^(-2i/width), scaled for contexts that are longer than those of training.
struct Rotary {
  enum class Scaling { None, Linear, Dynamic, Llama3, Yarn, LongRope };

  int64_t width = 0; ///< of the channels of a head, the first ones
  double base = 1.0e4;
  Scaling scaling = Scaling::None;
  double factor = 1.0;
  int64_t original = 0;           ///< positions of training
  double low = 1.0, high = 4.0;   ///< Llama3: turns within `original` between which f changes
  double fast = 32.0, slow = 1.0; ///< Yarn: the same
  bool truncate = true;           ///< Yarn: the pairs of these are whole numbers
  double attention = 1.0;         ///< Yarn, LongRope: multiplies cosines and sines
  std::vector<double> shortFactors, longFactors; ///< LongRope: f(i) is divided by
};

/// Names of tensors in files of the family, without `.weight` and `.bias`. In layers `{layer}` is
/// the number, of experts `{row}`; empty is what the architecture lacks.
struct Names {
  std::string embedding, positions, norm, head;
  std::string norm1, q, k, v, qkv, out, qNorm, kNorm, postNorm1;
  std::string norm2, router, gate, up, gateUp, down, postNorm2;
};

struct Architecture {
  std::string family; ///< of the model: `llama`
  std::string title;  ///< one sentence: what it is

  int64_t hidden = 0, inner = 0, layers = 0, heads = 0, keyHeads = 0, headWidth = 0, vocabulary = 0;
  double initStd = 0.02;

  NormKind norm = NormKind::Rms;
  double eps = 1.0e-5;
  bool normAddsOne = false; ///< the scale is 1 + weight
  BlockForm block = BlockForm::PreNorm;

  Projections projections = Projections::Separate;
  bool projectionBias = false, outBias = false;
  HeadNorm headNorm = HeadNorm::None;
  double queryScale = 0;          ///< scores are divided by its root; 0: the width of a head
  bool scaleByLayer = false;      ///< scores are also divided by the number of the layer, from 1
  std::optional<double> scoreCap; ///< scores become cap · tanh(score / cap)
  int64_t window = 0;             ///< 0: none
  std::vector<bool> slides;       ///< which layers have it; empty: all
  std::optional<Rotary> rotary;   ///< or else learned positions
  std::optional<Rotary> localRotary; ///< of layers with a window, where these have others
  int64_t positions = 0;          ///< learned ones

  bool gated = true, mlpBias = false, fusedGate = false;
  Activation activation = Activation::Silu;
  int64_t experts = 0, chosen = 0; ///< gated MLPs, of which each token has some; 0: it is one

  double embeddingScale = 1.0;    ///< 0: the root of the hidden size
  std::optional<int64_t> padding; ///< the id whose row of the table no lookup trains
  bool tied = false;
  std::optional<double> logitCap; ///< logits become cap · tanh(logit / cap)

  Names names;
  std::string prefix;      ///< of all names but the head's, which files of the trunk alone lack
  bool transposed = false; ///< projections are stored as [in, out]
  /// Endings of names that files may hold beside the weights: buffers that follow from the
  /// configuration.
  std::vector<std::string> buffers;
};

} // namespace hydra::frontend
