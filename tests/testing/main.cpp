// Runs the tests of one file, on the instruction set that RAPT_TEST_ISA names, if any.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "rapt/base/cpu.h"
#include "rapt/base/error.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    if (const char* name = std::getenv("RAPT_TEST_ISA")) {
      rapt::restrict_isa(rapt::parse_isa(name));
    }
  } catch (const rapt::Error& error) {
    std::fprintf(stderr, "RAPT_TEST_ISA: %s\n", error.what());
    return 1;
  }
  return RUN_ALL_TESTS();
}
