#include "runtime/support/StreamOrder.h"

#include <gtest/gtest.h>

namespace hydra::support {
namespace {

TEST(StreamOrder, OneStreamIsAlone) {
  StreamOrder order(1);
  EXPECT_TRUE(order.isAlone(0));
  order.add(0);
  EXPECT_TRUE(order.isAlone(0));
}

TEST(StreamOrder, AloneUntilAnotherBeginsAndAgainBehindItsEvent) {
  StreamOrder order(2);
  order.add(0);
  order.signal(0, 0);
  order.wait(1, 0);
  order.add(1);
  EXPECT_FALSE(order.isAlone(0));
  EXPECT_TRUE(order.isAlone(1));
  order.add(0);
  EXPECT_FALSE(order.isAlone(1));
  order.signal(1, 1);
  order.add(1); // behind the event
  order.wait(0, 1);
  EXPECT_FALSE(order.isAlone(0));
  order.signal(1, 2);
  order.wait(0, 2);
  EXPECT_TRUE(order.isAlone(0));
}

TEST(StreamOrder, WaitsForWhatOthersWaitedFor) {
  StreamOrder order(3);
  order.add(2);
  order.signal(2, 0);
  order.wait(1, 0);
  order.add(1);
  order.signal(1, 1);
  order.wait(0, 1);
  EXPECT_TRUE(order.isAlone(0));
  EXPECT_FALSE(order.isAlone(2));
}

} // namespace
} // namespace hydra::support
