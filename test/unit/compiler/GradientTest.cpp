#include "test/support/RandomProgram.h"
#include "test/support/Compile.h"
#include <gtest/gtest.h>
#include <cstdio>
#include <cstdlib>
using namespace hydra::test;
TEST(Dump, One) {
  uint64_t seed = atoi(getenv("SEED") ? getenv("SEED") : "1");
  auto p = randomProgram(seed);
  puts(p.layered.text.c_str());
  puts(p.flat.text.c_str());
}
