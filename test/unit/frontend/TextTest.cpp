// Numbers, names and conditions as model text.
#include "frontend/Text.h"
#include "frontend/LayerPattern.h"

#include <gtest/gtest.h>

#include <random>

using namespace hydra::frontend;

namespace {

TEST(Text, RealsHaveAPointAndReadBack) {
  EXPECT_EQ(realText(1e-5), "1.0e-5");
  EXPECT_EQ(realText(0.02), "0.02");
  EXPECT_EQ(realText(10000.0), "1.0e4");
  EXPECT_EQ(realText(500000.0), "5.0e5");
  EXPECT_EQ(realText(1000000.0), "1.0e6");
  EXPECT_EQ(realText(8.0), "8.0");
  EXPECT_EQ(realText(10500.0), "10500.0");
  EXPECT_EQ(realText(1e22), "1.0e22");
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::exp(std::uniform_real_distribution<>(-40, 40)(random));
    const std::string text = realText(value);
    EXPECT_EQ(std::stod(text), value) << text;
    EXPECT_NE(text.find('.'), std::string::npos) << text;
  }
}

TEST(Text, SymbolsAreQuotedWhereTheyAreNoIdentifiers) {
  EXPECT_EQ(symbolText("tiny"), "@tiny");
  EXPECT_EQ(symbolText("Llama-3.2-1B"), "@\"Llama-3.2-1B\"");
  EXPECT_EQ(symbolText("124M"), "@\"124M\"");
}

TEST(Text, PlainNamesHaveNothingToQuote) {
  EXPECT_EQ(plainName("Llama-3.2-1B"), "Llama-3.2-1B");
  EXPECT_EQ(plainName("a \"b\"\n\\\xc3\xa4"), "a__b_____");
  EXPECT_EQ(plainName(""), "model");
}

TEST(Text, TablesAlignTheirColumns) {
  EXPECT_EQ(table({{"a", "bcd", "e"}, {"fg", "h", "ij"}}, "  "), "  a  bcd e\n  fg h   ij\n");
}

/// Whether a condition made by layerCondition holds of a layer.
bool holds(const std::string &condition, int64_t layer) {
  if (condition.starts_with("layer < "))
    return layer < std::stoll(condition.substr(8));
  if (condition.starts_with("layer >= "))
    return layer >= std::stoll(condition.substr(9));
  int64_t left = layer;
  if (condition.starts_with("layer - "))
    left = layer % std::stoll(condition.substr(8));
  for (size_t at = condition.find("== "); at != std::string::npos;
       at = condition.find("== ", at + 1))
    if (left == std::stoll(condition.substr(at + 3)))
      return true;
  return false;
}

TEST(LayerPattern, SaysWhichLayers) {
  EXPECT_EQ(layerCondition({false, true, true}), "layer >= 1");
  EXPECT_EQ(layerCondition({true, true, false}), "layer < 2");
  EXPECT_EQ(layerCondition({false, true, false, true}), "layer - 2 * floor(layer / 2.0) == 1");
  EXPECT_EQ(layerCondition({false, false, true, false}), "layer == 2");
}

TEST(LayerPattern, HoldsOfThoseLayersAlone) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::vector<bool> layers(2 + random() % 30);
    const size_t period = 1 + random() % layers.size();
    for (size_t j = 0; j < layers.size(); ++j)
      layers[j] = j < period ? random() % 3 == 0 : layers[j - period];
    const auto count = std::count(layers.begin(), layers.end(), true);
    if (count == 0 || count == static_cast<ptrdiff_t>(layers.size()))
      continue;
    const std::string condition = layerCondition(layers);
    for (size_t j = 0; j < layers.size(); ++j)
      EXPECT_EQ(holds(condition, static_cast<int64_t>(j)), layers[j]) << condition << " at " << j;
  }
}

} // namespace
