// The curve of losses.
#include "runtime/report/LossPlot.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace hydra::report;

TEST(LossPlot, FallsFromTheFirstLineToTheLast) {
  LossCurve training;
  for (int64_t step = 1; step <= 100; ++step)
    training.emplace_back(step, 5.0 - 0.04 * double(step));
  EXPECT_EQ(lossPlot(training, {{50, 3.0}}, 10, 5), "  loss\n"
                                                    "  4.76 |..\n"
                                                    "  3.82 |  ..\n"
                                                    "  2.88 |    o.\n"
                                                    "  1.94 |      ..\n"
                                                    "     1 |        ..\n"
                                                    "       +----------\n"
                                                    "        1      100 step\n"
                                                    "  . training   o held out");
}

TEST(LossPlot, TakesWhateverComes) {
  EXPECT_EQ(lossPlot({}, {}), "");
  EXPECT_EQ(lossPlot({{1, std::nan("")}}, {}), "");
  EXPECT_NE(lossPlot({{7, 1.0}}, {}).find('.'), std::string::npos);
  EXPECT_NE(lossPlot({{7, 1.0}, {8, INFINITY}, {9, 1.0}}, {}).find('.'), std::string::npos);
}
