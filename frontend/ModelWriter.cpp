// The parts of a model file in their order, and what stands around the layers.
#include "frontend/ModelWriter.h"

#include "frontend/BlockWriter.h"
#include "frontend/Declarations.h"
#include "frontend/RotaryWriter.h"
#include "frontend/Text.h"

#include <fmt/format.h>

namespace hydra::frontend {

/// Token ids to hidden states.
static std::string trunk(const ModelWords &words) {
  const Architecture &a = words.a;
  std::string start =
      fmt::format("embedding(%tokens, @tok_emb{})",
                  a.padding ? fmt::format(", padding = {}", *a.padding) : std::string());
  if (a.embeddingScale == 0)
    start += " * sqrt(D)";
  else if (a.embeddingScale != 1.0)
    start += " * " + realText(a.embeddingScale);
  if (a.positions > 0)
    start += " + when(continued, embedding(iota(axis = 1, shape = [B, S], positions), @pos_emb),\n"
             "                                                           slice(@pos_emb, axis = 0, start = 0, "
             "size = S))";
  return fmt::format("\n"
                     "  // Token ids to the final hidden states [B, S, D].\n"
                     "  hydra.def @trunk(%tokens) {{\n"
                     "    %start = hydra.let {}\n"
                     "{}"
                     "    %end = hydra.for @layers carry(%x = %start) {{\n"
                     "{}"
                     "    }}\n"
                     "    %final = hydra.let {}\n"
                     "    hydra.yield %final\n"
                     "  }}\n",
                     start, rotaryTables(words), blockBody(words), normed(words, "%end", "norm"));
}

static std::string entries(const ModelWords &words) {
  const std::string head = words.head(),
                    loss = "  // The mean cross entropy of every token's successor.\n",
                    scores = "  // The scores of every next token [B, S, V].\n";
  std::string definition, lossValue, logits;
  if (words.a.logitCap) {
    definition = fmt::format(
        "\n"
        "  // The scores of every next token, bounded by logit_cap * tanh(score / logit_cap).\n"
        "  hydra.def @scores(%tokens) = logit_cap * tanh(linear(@trunk(%tokens), {}) * (1 / "
        "logit_cap))\n",
        head);
    lossValue = "cross_entropy(@scores(%tokens), %labels)";
    logits = "@scores(%tokens)";
  } else {
    lossValue = fmt::format("linear_cross_entropy(@trunk(%tokens), {}, %labels)", head);
    logits = fmt::format("linear(@trunk(%tokens), {})", head);
  }
  return fmt::format("{}\n"
                     "{}"
                     "  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {{\n"
                     "    %loss = hydra.let {}\n"
                     "    hydra.return loss = %loss\n"
                     "  }}\n"
                     "\n"
                     "{}"
                     "  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {{\n"
                     "    %logits = hydra.let {}\n"
                     "    hydra.return logits = %logits\n"
                     "  }}\n",
                     definition, loss, lossValue, scores, logits);
}

std::string modelText(const Architecture &architecture, std::string_view preset) {
  const ModelWords words(architecture);
  return fmt::format("// {} of the family {}: {}.\n"
                     "// `from` is the name of a tensor in the files that it came from.\n"
                     "\n"
                     "hydra.model {} version 1 {{\n"
                     "{}{}{}{}{}"
                     "}}\n",
                     preset, architecture.family, architecture.title,
                     symbolText(architecture.family), declarations(architecture, preset),
                     rotaryDefinitions(words), blockDefinitions(words), trunk(words),
                     entries(words));
}

} // namespace hydra::frontend
