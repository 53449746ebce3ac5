// Scans with random bodies are what they are when their chunks are written out by hand; prefix
// scans what a scan row by row is.
#include "test/support/RandomScan.h"

#include <gtest/gtest.h>

using namespace hydra;
using namespace hydra::test;

namespace {

/// Equal but for the order of sums.
void expectClose(const RefTensor &one, const RefTensor &other, const char *name,
                 const std::string &where) {
  ASSERT_EQ(one.shape, other.shape);
  for (int64_t i = 0; i < one.size(); ++i)
    ASSERT_NEAR(one.data[i], other.data[i], 1e-11 * (1 + std::abs(other.data[i])))
        << name << " of\n"
        << where;
}

} // namespace

TEST(Scan, IsItsChunksWrittenOut) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const RandomScan scan(random);
    const SmallModel one = scan.model(scan.scan() + "    %y = hydra.mul %all, %end\n");
    SmallProgram scanned(one), written(scan.model(scan.byHand()));
    ASSERT_EQ(scanned.error, "") << one.text();
    ASSERT_EQ(written.error, "") << scan.byHand();
    const TensorMap values = one.values(seed);
    const TensorMap a = scanned.differentiate(values), b = written.differentiate(values);
    for (const char *name : {"loss", "grad.x", "grad.start", "grad.w"}) {
      ASSERT_EQ(a.contains(name), b.contains(name)) << name << " of\n" << one.text();
      if (a.contains(name))
        expectClose(a.lookup(name), b.lookup(name), name, one.text());
    }
  }
}

namespace {

/// An associative combination of rows [1, rows, 2] or, of several values, of each.
struct Combination {
  const char *name;
  int values; ///< sequences at once
  const char *body;
};

/// The scan of random sequences in `log2` steps, or one row after the other.
std::string prefixScan(const Combination &c, int64_t length, bool inSteps) {
  const auto names = [&](const char *stem) {
    std::string text;
    for (int i = 0; i < c.values; ++i)
      text += (i ? ", %" : "%") + std::string(stem) + std::to_string(i);
    return text;
  };
  if (inSteps) {
    std::string here;
    for (int i = 0; i < c.values; ++i)
      here += (i ? ", %b" : "%b") + std::to_string(i) + " = %x" + std::to_string(i);
    return "    " + names("s") + " = hydra.prefix_scan axis = 1 over(" + here + ") combine(" +
           names("a") + ") {\n" + c.body + "    hydra.yield " + names("c") + "\n    }\n";
  }
  std::string code, rest, first, carry;
  for (int i = 0; i < c.values; ++i) {
    const std::string n = std::to_string(i);
    code += "    %first" + n + " = hydra.slice %x" + n + " axis = 1 start = 0 size = 1\n    %rest" +
            n + " = hydra.slice %x" + n +
            " axis = 1 start = 1 size = " + std::to_string(length - 1) + "\n";
    rest += (i ? ", %b" : "%b") + n + " = %rest" + n;
    carry += (i ? ", %a" : "%a") + n + " = %first" + n;
  }
  code += "    " + names("later") + ", " + names("end") + " = hydra.scan axis = 1 chunk = 1 over(" +
          rest + ") carry(" + carry + ") {\n" + c.body + "    hydra.yield " + names("c") + ", " +
          names("c") + "\n    }\n";
  for (int i = 0; i < c.values; ++i) {
    const std::string n = std::to_string(i);
    code += "    %s" + n + " = hydra.concat %first" + n + ", %later" + n + " axis = 1\n";
  }
  return code;
}

} // namespace

TEST(PrefixScan, IsTheScanRowByRow) {
  const Combination combinations[] = {
      {"sum", 1, "    %c0 = hydra.add %a0, %b0\n"},
      {"product", 1, "    %c0 = hydra.mul %a0, %b0\n"},
      {"maximum", 1, "    %c0 = hydra.max %a0, %b0\n"},
      {"matrices", 1, "    %c0 = hydra.matmul %a0, %b0\n"}, // which do not commute
      {"linear recurrence", 2,
       "    %c0 = hydra.mul %a0, %b0\n    %t = hydra.mul %b0, %a1\n    %c1 = hydra.add %t, %b1\n"},
      {"with what is outside", 1, "    %s = hydra.add %a0, %b0\n    %c0 = hydra.add %s, %w\n"},
  };
  for (const Combination &c : combinations)
    // By steps; by one loop; by chunks, without and with rows left.
    for (int64_t length : {2, 3, 8, 13, 150, 131}) {
      SmallModel stepped;
      for (int i = 0; i < c.values; ++i)
        stepped.parameters.push_back({"x" + std::to_string(i), {3, length, 2, 2}});
      stepped.parameters.push_back({"w", {1, 1, 2, 2}});
      stepped.resultShape = {3, length, 2, 2};
      SmallModel walked = stepped;
      const std::string end = c.values > 1
                                  ? "    %s = hydra.mul %s0, %s1\n    %y = hydra.mul %s, %w\n"
                                  : "    %y = hydra.mul %s0, %w\n";
      stepped.code = prefixScan(c, length, true) + end;
      walked.code = prefixScan(c, length, false) + end;
      SmallProgram a(stepped), b(walked);
      ASSERT_EQ(a.error, "") << stepped.text();
      ASSERT_EQ(b.error, "") << walked.text();
      const TensorMap values = stepped.values(static_cast<uint64_t>(length));
      const TensorMap x = a.differentiate(values), y = b.differentiate(values);
      for (const char *name : {"loss", "result", "grad.x0", "grad.x1", "grad.w"}) {
        ASSERT_EQ(x.contains(name), y.contains(name)) << name;
        if (!x.contains(name))
          continue;
        expectClose(x.lookup(name), y.lookup(name), name, stepped.text());
      }
    }
}
