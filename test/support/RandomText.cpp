// Lines of a model, each of which reads values that are there.
#include "test/support/RandomText.h"

#include <random>

namespace hydra::test {

std::string randomCausalModel(uint64_t seed, int64_t dimension) {
  std::mt19937 random(seed);
  auto draw = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  std::string body;
  int values = 1, others = 0; // %x0 and on [B, S, D]; all others
  auto any = [&] { return "%x" + std::to_string(draw(values)); };
  auto fresh = [&] { return "%t" + std::to_string(others++); };
  auto line = [&](const std::string &text) { body += "          " + text + "\n"; };
  auto made = [&](const std::string &text) {
    line("%x" + std::to_string(values) + " = hydra.let " + text);
    ++values;
  };
  for (int64_t i = 0, count = 3 + draw(6); i < count; ++i)
    switch (draw(17)) {
    case 0:
      made("tanh(linear(" + any() + ", @w" + std::to_string(draw(3)) + "))");
      break;
    case 1:
      made(any() + " * sigmoid(" + any() + ") + rms_norm(" + any() + ", @n, eps = 0.01)");
      break;
    case 2: { // rows before, on their own axis or another
      const std::string k = std::to_string(1 + draw(4)),
                        at = std::to_string(draw(1 + std::stoi(k)));
      if (draw(2))
        made("slice(pad(" + any() + ", axis = 1, before = " + k +
             ", after = 0), axis = 1, start = " + at + ", size = S)");
      else
        made("transpose(slice(pad(transpose(" + any() + ", [1, 2, 0]), axis = 0, before = " + k +
             ", after = 0), axis = 0, start = " + at + ", size = S), [2, 0, 1])");
      break;
    }
    case 3: { // attention
      const std::string q = fresh(), k = fresh(), v = fresh(), heads = draw(2) ? "2" : "4";
      const std::string width = std::to_string(dimension / (heads == "2" ? 2 : 4)),
                        form = draw(2) ? ", half_split" : ", period = 9";
      line(q + " = hydra.let rope(reshape(" + any() + ", [B, S, " + heads + ", " + width +
           "]), base = 50.0" + form + ")");
      line(k + " = hydra.let rope(reshape(slice(" + any() + ", axis = 2, start = 0, size = 2 * " +
           width + "), [B, S, 2, " + width + "]), base = 50.0" + form + ")");
      line(v + " = hydra.let reshape(slice(" + any() + ", axis = 2, start = 0, size = 2 * " +
           width + "), [B, S, 2, " + width + "])");
      const std::string mask = draw(3) == 0 ? ""
                               : draw(2)    ? ", window = " + std::to_string(1 + draw(12))
                                            : ", chunk = " + std::to_string(1 + draw(12));
      const std::string cap = draw(3) == 0 ? ", cap = 2.0" : "";
      made("reshape(attention(" + q + ", " + k + ", " + v + ", scale = 0.7, causal" + cap + mask +
           "), [B, S, D])");
      break;
    }
    case 4: { // everything so far
      const std::string result = fresh();
      line(result + " = hydra.prefix_scan axis = 1 over(%here = " + any() +
           ") combine(%before) { %both = hydra.let " +
           (draw(2) ? "max(%before, %here)" : "%before + %here") + " hydra.yield %both }");
      made("tanh(" + result + ")");
      break;
    }
    case 5: { // a state
      const std::string zero = fresh(), result = fresh(), end = fresh();
      line(zero + " = hydra.let broadcast(reshape(@n, [1, 1, D]), [B, 1, D])");
      line(result + ", " + end + " = hydra.scan axis = 1 chunk = 1 over(%row = " + any() +
           ") carry(%state = " + zero +
           ") { %next = hydra.let tanh(%state * 0.7 + %row) hydra.yield %next, %next }");
      made(result + " + " + any());
      break;
    }
    case 6: { // a linear recurrence: factors and terms
      const std::string factors = fresh(), products = fresh(), result = fresh();
      line(factors + " = hydra.let sigmoid(" + any() + ")");
      line(products + ", " + result + " = hydra.prefix_scan axis = 1 over(%factor = " + factors +
           ", %term = " + any() +
           ") combine(%product, %sum) { %p = hydra.let %product * %factor %s = hydra.let %sum * "
           "%factor + %term hydra.yield %p, %s }");
      made("tanh(" + result + ") + " + any());
      break;
    }
    case 7: { // several states as one
      const std::string zero = fresh(), start = fresh(), result = fresh(), end = fresh();
      line(zero + " = hydra.let broadcast(reshape(@n, [1, 1, D]), [B, 1, D])");
      line(start + " = hydra.bundle fast = " + zero + ", slow = " + zero);
      line(result + ", " + end + " = hydra.scan axis = 1 chunk = 1 over(%row = " + any() +
           ") carry(%state = " + start +
           ") { %next = hydra.let bundle(fast = tanh(%state.fast * 0.7 + %row), slow = %state.slow "
           "* 0.5 + sin(%state.fast)) %y = hydra.let %next.fast + %state.slow hydra.yield %y, "
           "%next }");
      made(result + " + " + any());
      break;
    }
    case 8: { // all tokens of a call, from the state before them
      const std::string zero = fresh(), result = fresh(), end = fresh();
      line(zero + " = hydra.let broadcast(reshape(@n, [1, 1, D]), [B, 1, D])");
      line(result + ", " + end + " = hydra.scan axis = 1 chunk = S over(%rows = " + any() +
           ") carry(%state = " + zero +
           ") { %sums = hydra.prefix_scan axis = 1 over(%here = %rows) combine(%before) { %both = "
           "hydra.let %before + %here hydra.yield %both } %y = hydra.let %sums + %state %next = "
           "hydra.let %state + sum(%rows, 1) hydra.yield %y, %next }");
      made("tanh(" + result + " * 0.3)");
      break;
    }
    case 9: { // a scan over pieces of each row
      const std::string zero = fresh(), result = fresh(), end = fresh(),
                        piece = std::to_string(2 + draw(7)); // of 8: no loop, which a batch refuses
      line(zero + " = hydra.let broadcast(reshape(@n, [1, 1, D]), [B, 1, D])");
      line(
          result + ", " + end + " = hydra.scan axis = 1 chunk = 1 over(%row = " + any() +
          ") carry(%state = " + zero +
          ") { %first = hydra.let slice(%state, axis = 2, start = 0, size = 1) %all, %last = "
          "hydra.scan axis = 2 chunk = " +
          piece +
          " over(%piece = %row, %old = %state) carry(%at = %first) { %then = hydra.let tanh(%at * "
          "0.5 + mean(%piece, 2)) %y = hydra.let %old * 0.5 + %piece * %then hydra.yield %y, %then "
          "} %next = hydra.let tanh(%all) hydra.yield %next, %next }");
      made(result + " + " + any());
      break;
    }
    case 10: // a token by itself
      made(draw(2) ? "layer_norm(" + any() + ", @n, @n, eps = 0.01)"
                   : "gelu(" + any() + " - mean(" + any() + ", 2)) * softmax(" + any() + ")");
      break;
    case 11: { // experts by the token's id, which no rounding moves
      const std::string mask = fresh(), index = fresh(), group = fresh(), place = fresh(),
                        offsets = fresh(), rows = fresh(), k = std::to_string(1 + draw(3));
      line(mask + " = hydra.let reshape(%tokens, [B * S, 1]) " + (draw(2) ? "<" : ">=") +
           " iota(axis = 1, shape = [B * S, 3]) * " + std::to_string(11 + draw(30)) + " + " +
           std::to_string(draw(20)));
      line(index + ", " + group + ", " + place + ", " + offsets + " = hydra.route " + mask +
           " k = " + k);
      line(rows + " = hydra.let take_rows(reshape(" + any() + ", [B * S, D]), " + index + ", " +
           place + ")");
      made("reshape(take_rows(tanh(grouped_linear(" + rows + ", @experts, " + offsets + ")), " +
           place + ", " + index + "), [B, S, D])");
      break;
    }
    case 12: { // layers, each with what it keeps of its own
      const std::string result = fresh();
      const bool attends = draw(2);
      line(result + " = hydra.for @layers carry(%h = " + any() + ") { " +
           (attends ? std::string("%a = hydra.let rope(reshape(linear(%h, @w), [B, S, 2, D / 2]), "
                                  "base = 50.0) %m = hydra.let reshape(attention(%a, %a, %a, scale "
                                  "= 0.5, causal, window = 3 + layer), [B, S, D])")
                    : std::string("%m = hydra.let tanh(linear(slice(pad(%h, axis = 1, before = 1, "
                                  "after = 0), axis = 1, start = 0, size = S), @w))")) +
           " %next = hydra.let rms_norm(%h + %m, @g, eps = 0.01) hydra.yield %next }");
      made(result);
      break;
    }
    case 13: // positions up to a last one, from a table
      made(any() + " + embedding(min(iota(axis = 1, shape = [B, S], positions), " +
           std::to_string(draw(30)) + "), @e)");
      break;
    case 14: // the same by another form, of which one is for calls that read on
      line("%same" + std::to_string(values) + " = hydra.let when(continued, tanh(" +
           std::string("%x") + std::to_string(values - 1) + "), tanh(%x" +
           std::to_string(values - 1) + "))");
      made("%same" + std::to_string(values) + " + " + any());
      break;
    case 15: // what training would drop
      made("dropout(" + any() + ", p = 0.5) * max(" + any() + ", 0.25)");
      break;
    default:
      made(any() + " + sin(iota(axis = 1, shape = [B, S, D], dtype = f32, positions) * 0.3)");
    }
  std::string declarations; // of what models may have: one that nothing reads is an error
  if (body.find("@experts") != std::string::npos)
    declarations += "        hydra.param @experts [3, D, D] init = normal(0.5)\n";
  if (body.find("@layers") != std::string::npos)
    declarations += "        hydra.stack @layers[3] {\n"
                    "          hydra.param @w [D, D] init = normal(0.5)\n"
                    "          hydra.param @g [D] init = normal(1.0)\n"
                    "        }\n";
  return R"(
      hydra.model @m version 1 {
        hydra.symbols dims(D = )" +
         std::to_string(dimension) + ", V = " + std::to_string(kTextVocabulary) + R"()
        hydra.param @e [V, D] init = normal(1.0)
        hydra.param @n [D] init = normal(1.0)
        hydra.param @w0 [D, D] init = normal(0.5)
        hydra.param @w1 [D, D] init = normal(0.5)
        hydra.param @w2 [D, D] init = normal(0.5)
)" + declarations +
         R"(        hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
          %x0 = hydra.let embedding(%tokens, @e)
)" + body +
         "          %logits = hydra.let linear(%x" + std::to_string(values - 1) +
         " + linear(linear(%x0 + rms_norm(%x0, @n, eps = 0.01), @w0), @w1) * 0.1 + linear(%x0, "
         "@w2), @e)\n" +
         "          hydra.return logits = %logits\n        }\n      }\n";
}

} // namespace hydra::test
