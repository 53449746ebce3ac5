// Scans with random bodies, and the same written out by hand.
#pragma once

#include "test/support/Random.h"
#include "test/support/SmallModel.h"

namespace hydra::test {

struct RandomScan {
  int64_t axis, length, width, chunk;
  std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> operations; ///< name, operands

  explicit RandomScan(Random &r)
      : axis(r.below(2)), length(r.between(1, 40)), width(r.between(1, 4)), chunk(r.between(1, 6)) {
    for (int64_t n = r.between(1, 5); n > 0; --n)
      operations.push_back({r.pick<std::string>({"add", "sub", "mul", "max", "tanh", "sin"}),
                            {r.below(100), r.below(100)}});
  }

  std::vector<int64_t> shape(int64_t rows) const {
    return axis == 0 ? std::vector<int64_t>{rows, width} : std::vector<int64_t>{width, rows};
  }

  /// Lines that make `yc` and `next` from `part` and `carry`, all names ending in `suffix`.
  std::string body(const std::string &suffix, int64_t rows) const {
    std::vector<std::string> values = {"%part" + suffix, "%carry" + suffix, "%w"};
    std::string code;
    const auto line = [&](const std::string &name, const std::string &text) {
      code += "    %" + name + suffix + " = hydra." + text + "\n";
      values.push_back("%" + name + suffix);
    };
    for (size_t i = 0; i < operations.size(); ++i) {
      const auto &[name, operands] = operations[i];
      const auto value = [&](int64_t number) {
        return values[static_cast<size_t>(number) % values.size()];
      };
      const bool unary = name == "tanh" || name == "sin";
      line("v" + std::to_string(i),
           name + " " + value(operands.first) + (unary ? "" : ", " + value(operands.second)));
    }
    // Whatever shapes these have: all of the chunk's, and a number that depends on its length.
    line("yc", "add " + values.back() + ", %part" + suffix);
    line("n", "constant value = 1.0 / " + (rows > 0 ? std::to_string(rows) : "rows"));
    line("mean", "sum %yc" + suffix + " axes = [" + std::to_string(axis) + "] keep");
    line("scaled", "mul %mean" + suffix + ", %n" + suffix);
    line("curve", "tanh %scaled" + suffix);
    line("next", "add %curve" + suffix + ", %carry" + suffix);
    return code;
  }

  std::string scan() const {
    return "    %all, %end = hydra.scan axis = " + std::to_string(axis) +
           " chunk = " + std::to_string(chunk) + " over(%part = %x) carry(%carry = %start) {\n" +
           body("", 0) + "    hydra.yield %yc, %next\n    }\n";
  }

  std::string byHand() const {
    std::string code, parts, end = "%start";
    int64_t count = 0;
    for (int64_t at = 0; at < length; at += chunk, ++count) {
      const int64_t rows = std::min(chunk, length - at);
      const std::string suffix = "_" + std::to_string(count);
      std::string chunkCode = "    %part" + suffix +
                              " = hydra.slice %x axis = " + std::to_string(axis) +
                              " start = " + std::to_string(at) + " size = " + std::to_string(rows) +
                              "\n" + body(suffix, rows);
      const std::string carry = "%carry" + suffix;
      for (size_t found; (found = chunkCode.find(carry)) != std::string::npos;)
        chunkCode.replace(found, carry.size(), end);
      code += chunkCode;
      parts += (count ? ", %yc" : "%yc") + suffix;
      end = "%next" + suffix;
    }
    if (count > 1)
      code += "    %all = hydra.concat " + parts + " axis = " + std::to_string(axis) + "\n";
    return code + "    %y = hydra.mul " + (count > 1 ? "%all" : parts) + ", " + end + "\n";
  }

  SmallModel model(const std::string &code) const {
    SmallModel m;
    m.parameters = {{"x", shape(length)}, {"start", shape(1)}, {"w", shape(1)}};
    m.resultShape = shape(length);
    m.code = code;
    return m;
  }
};

} // namespace hydra::test
